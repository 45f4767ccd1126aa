"""The published approximations: as printed, always feasible, never above the exact worst case."""

import copy
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from certcal import InputError
from certcal.binning import assign
from certcal.lab.baselines import (
    GRID,
    ONE_SIZE_FITS_ALL,
    AdmmSettings,
    Baseline,
    _dece,
    admm,
    admm_grid,
    admm_steps,
    brier_confidences,
    dece_ascent,
)
from certcal.lab.baselines._problem import check_problem
from certcal.lab.baselines.admm_steps import Placement, build_program
from certcal.metrics import ece
from certcal.worst_case import calibration_error
from tests.accelerator import accelerator
from tests.worst_case import naive_admm

# Appendix E.2: two samples, three bins.
LOWER, CLEAN, UPPER, CORRECT = [0.1, 0.5], [0.23, 0.78], [0.6, 0.9], [1, 0]

# Settings under which a few dozen steps already move samples between bins.
QUICK = (
    AdmmSettings("brier", 0.01, 0.1, rho_growth=1.1),
    AdmmSettings("clean", 0.02, 0.1, rho_growth=1.05),
    AdmmSettings("uniform", 0.05, 0.05, rho_growth=1.05),
)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def instance(seed: int, n: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
    """A small problem; every third has ends on edges, every fifth degenerate intervals, every fourth uneven bins."""
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 13)) if n is None else n
    bins = int(random.integers(1, 7))
    ends = np.sort(random.random((2, size)), axis=0)
    if seed % 3 == 0:
        ends = np.round(ends * bins) / bins
    if seed % 5 == 0:
        ends[1, ::2] = ends[0, ::2]
    options: dict[str, Any] = {"bins": bins, "closed": ("left", "right")[seed % 2]}
    if seed % 4 == 0:
        options["edges"] = np.concatenate(([0], np.sort(random.random(bins - 1)), [1]))
    return ends[0], ends[1], random.integers(0, 2, size), options


def smoothed(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Intervals, correctness and clean confidences like those of a smoothed classifier."""
    random = np.random.default_rng(seed)
    clean, width = random.beta(8, 1, n), random.beta(2, 5, n)
    lower, upper = np.clip(clean - width / 2, 0, 1), np.clip(clean + width / 2, 0, 1)
    return lower, upper, (random.random(n) < clean).astype(int), clean


# ---------------------------------------------------------------------------------------------------- worked example


def test_the_worked_example_has_the_printed_bounds_and_inaccessible_bins() -> None:
    problem = check_problem(LOWER, UPPER, CORRECT, 3, None, "left", CLEAN)
    by_sample = [each.T.reshape(-1).tolist() for each in (*problem.bounds(), problem.blocked)]
    assert by_sample[0] == [0.1, 1 / 3, 0, 0, 0.5, 2 / 3]  # l', eq. (24)
    assert by_sample[1] == [1 / 3, 0.6, 0, 0, 2 / 3, 0.9]  # u', eq. (24)
    assert by_sample[2] == [0, 0, 1, 1, 0, 0]  # k


def test_the_naive_program_has_the_printed_vectors_and_matrices() -> None:
    program = naive_admm.printed(LOWER, UPPER, CORRECT, [0, 1 / 3, 2 / 3, 1])
    assert program.lower.tolist() == [0.1, 1 / 3, 2 / 3, 0.5, 0.5, 2 / 3]  # eq. (23)
    assert program.upper.tolist() == [1 / 3, 0.6, 0.6, 1 / 3, 2 / 3, 0.9]
    assert program.K.tolist() == [[0, 0], [0, 0], [1, 0], [0, 1], [0, 0], [0, 0]]  # eq. (26)
    E = program.E(np.array([0.23, 0.45, 0, 0, 0.6, 0.78]))
    # Eq. (25) prints the second sample's entries without the sign that e = c - z gives them.
    printed = [[0.77, 0, 0], [0, 0.55, 0], [0, 0, 1], [0, 0, 0], [0, -0.6, 0], [0, 0, -0.78]]
    np.testing.assert_allclose(E, printed, atol=1e-15)
    a = np.array([1, 0, 0, 0, 0, 1])
    assert np.abs(E.T @ a).sum() / 2 == pytest.approx(ece(CLEAN, CORRECT, 3), abs=1e-12)  # Theorem 3.5


def test_every_baseline_reaches_the_worst_case_of_the_worked_example() -> None:
    exact = calibration_error(LOWER, UPPER, CORRECT, 3).value
    assert exact == pytest.approx(0.9, abs=1e-12)
    assert brier_confidences(LOWER, UPPER, CORRECT, 3).value == pytest.approx(exact, abs=1e-12)
    assert dece_ascent(LOWER, UPPER, CORRECT, 3, confidence=CLEAN, steps=100).value == pytest.approx(exact, abs=1e-12)
    found = admm(LOWER, UPPER, CORRECT, 3, confidence=CLEAN, steps=1500)
    assert found.value == pytest.approx(exact, abs=1e-12)
    np.testing.assert_allclose(found.confidence, [0.1, 0.9], atol=1e-12)


# ------------------------------------------------------------------------------------------------------ update rules


@pytest.mark.parametrize("seed", range(4))
def test_updates_follow_the_printed_algorithm_step_by_step(seed: int) -> None:
    lower, upper, correct, clean = smoothed(7, seed)
    settings = (
        AdmmSettings("clean", 0.01, 0.02, rho=0.3, rho_growth=1.2, rho_ceiling=2.0, gradient_clip=0.7),
        AdmmSettings("brier", 0.02, 0.1, rho=0.05, rho_growth=1.05, gradient_clip=5.0),
    )
    problem = check_problem(lower, upper, correct, 5, None, "left", clean)
    place = Placement("cpu", "float64")
    program = build_program(problem, settings, place)
    starts = [problem.start(each.initial, 0) for each in settings]
    state = admm_steps.begin(program, place(starts), place([each.rho for each in settings]).view(-1, 1, 1))
    slow_program = naive_admm.printed(lower.tolist(), upper.tolist(), correct.tolist(), problem.edges.tolist())
    slow = [naive_admm.start(slow_program, start, each.rho) for start, each in zip(starts, settings, strict=True)]
    for _ in range(25):
        admm_steps.advance(program, state)
        values = admm_steps.project(program, state)[0]
        for run, each in enumerate(settings):
            naive_admm.step(
                slow_program,
                slow[run],
                (each.assignment_rate, each.confidence_rate),
                each.gradient_clip,
                each.rho_growth,
                each.rho_ceiling,
            )
            for name in ("a", "z", "g", "q1", "q2"):
                fast = getattr(state, name)[run].T.reshape(-1).numpy()
                np.testing.assert_allclose(fast, slow[run][name], atol=1e-10, err_msg=name)
            for fast, dual in zip(state.dual, slow[run]["dual"], strict=True):
                np.testing.assert_allclose(fast[run].T.reshape(-1).numpy(), dual, atol=1e-10)
            assert float(state.rho[run]) == pytest.approx(slow[run]["rho"])
            assert float(values[run]) == pytest.approx(naive_admm.projected(slow_program, slow[run]), abs=1e-9)


def test_the_naive_gradients_are_those_of_the_printed_lagrangian() -> None:
    random = np.random.default_rng(5)
    lower, upper, correct, clean = smoothed(4, 5)
    program = naive_admm.printed(lower.tolist(), upper.tolist(), correct.tolist(), [0, 0.3, 0.6, 0.8, 1])
    state = naive_admm.start(program, clean.tolist(), 0.4)
    for name in ("a", "z", "g", "q1", "q2"):
        state[name] = state[name] + 0.1 * random.standard_normal(16)
    state["dual"] = [random.standard_normal(each.size) for each in state["dual"]]
    for name, gradient in (("a", naive_admm.gradient_of_a), ("z", naive_admm.gradient_of_z)):
        expected = gradient(program, state)
        for i in range(16):
            step = np.zeros(16)
            step[i] = 1e-5
            ahead = naive_admm.lagrangian(program, state | {name: state[name] + step})
            behind = naive_admm.lagrangian(program, state | {name: state[name] - step})
            assert (ahead - behind) / 2e-5 == pytest.approx(expected[i], abs=1e-6)


def test_tracked_terms_and_distances_are_those_of_the_printed_program() -> None:
    lower, upper, correct, clean = smoothed(6, 1)
    settings = AdmmSettings("clean", 0.01, 0.05, rho=0.2, rho_growth=1.1)
    found = admm(lower, upper, correct, 4, confidence=clean, settings=settings, steps=9, track=True)
    program = naive_admm.printed(lower.tolist(), upper.tolist(), correct.tolist(), [0, 0.25, 0.5, 0.75, 1])
    state = naive_admm.start(program, clean.tolist(), 0.2)
    for step in range(9):
        naive_admm.step(program, state, (0.05, 0.01), 1.0, 1.1, 10.0)
        seen = {name: curve[0, step] for name, curve in found.history.items() if name in admm_steps.NAMES}
        a, z = state["a"], state["z"]
        assert seen["lagrangian"] == pytest.approx(naive_admm.lagrangian(program, state), abs=1e-9)
        assert seen["relaxed"] == pytest.approx(np.abs(program.E(z).T @ a).sum() / 6, abs=1e-9)
        assert seen["projected"] == pytest.approx(naive_admm.projected(program, state), abs=1e-9)
        residuals = naive_admm.constraints(program, state)
        for name, dual, each in zip(admm_steps.TERMS, state["dual"], residuals, strict=True):
            assert seen[name] == pytest.approx(dual @ each + state["rho"] / 2 * each @ each, abs=1e-9)
        away = {
            "bounded": np.abs(z - np.clip(z, program.lower_prime, program.upper_prime)),
            "binary": np.minimum(np.abs(a), np.abs(a - 1)),
            "unique": np.abs(program.C.T @ a - 1),
            "valid": np.abs(program.K.T @ a),
        }
        for name, distance in away.items():
            assert seen[f"{name}_distance_sum"] == pytest.approx(distance.sum(), abs=1e-9)
            assert seen[f"{name}_distance_max"] == pytest.approx(distance.max(), abs=1e-9)
        if step + 1 in (1, 9):
            snapshot = found.history["assignment_step"].tolist().index(step + 1)
            np.testing.assert_allclose(found.history["assignment"][0, snapshot], a.reshape(6, 4), atol=1e-9)
    assert found.history["assignment_step"].tolist() == [0, 1, 9]
    np.testing.assert_array_equal(found.history["assignment"][0, 0], np.full((6, 4), 0.25))


# ------------------------------------------------------------------------------------------------------------- claims


def baselines(lower: Any, upper: Any, correct: Any, seed: int, options: dict[str, Any]) -> list[Baseline]:
    return [
        admm(lower, upper, correct, settings=QUICK, steps=40, seed=seed, **options),
        dece_ascent(lower, upper, correct, initial=("clean", "brier", "gaussian"), steps=25, seed=seed, **options),
        brier_confidences(lower, upper, correct, **options),
    ]


# What is special about an instance repeats after sixty seeds: each mixture comes twice.
@pytest.mark.parametrize("block", range(6))
def test_values_are_plain_errors_of_feasible_points_and_never_above_the_exact_worst_case(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        lower, upper, correct, options = instance(seed)
        exact = calibration_error(lower, upper, correct, **options).value
        for found in baselines(lower, upper, correct, seed, options):
            assert (found.confidence >= lower).all()
            assert (found.confidence <= upper).all()
            assert found.value == ece(found.confidence, correct, **options)
            assert found.value == max(found.runs)
            assert found.value <= exact + 1e-12


def test_admm_finds_most_of_the_worst_case_of_small_problems() -> None:
    shares: list[float] = []
    for seed in range(12):
        lower, upper, correct, options = instance(seed, n=8)
        found = admm(lower, upper, correct, settings=QUICK, steps=150, **options)
        shares.append(found.value / calibration_error(lower, upper, correct, **options).value)
    assert np.median(shares) > 0.95
    assert min(shares) > 0.6


def test_a_run_on_the_intervals_of_a_smoothed_classifier_lies_between_the_start_and_the_exact_value() -> None:
    lower, upper, correct, clean = smoothed(150)
    exact = calibration_error(lower, upper, correct).value
    fast = AdmmSettings("clean", 0.01, 0.1, rho_growth=1.02)
    found = admm(lower, upper, correct, confidence=clean, settings=fast, steps=400)
    assert ece(clean, correct) < 0.7 * found.value
    assert found.value < exact


def test_confidences_stay_in_the_bin_they_were_counted_in() -> None:
    # The supremum over [1/3, 2/3) is not attained: the reported point stays below the edge.
    problem = check_problem([0.2, 0.4], [1.0, 1.0], [0, 0], 3, None, "left")
    moved = problem.inside(np.array([0.9, 0.1]), np.array([1, 2]))
    assert assign(moved, problem.edges).tolist() == [1, 2]
    assert moved.tolist() == [np.nextafter(2 / 3, 0), 2 / 3]
    right = check_problem([0.2, 0.4], [1.0, 1.0], [0, 0], 3, None, "right")
    moved = right.inside(np.array([0.9, 0.1]), np.array([1, 2]))
    assert assign(moved, problem.edges, "right").tolist() == [1, 2]
    assert moved.tolist() == [2 / 3, np.nextafter(2 / 3, 1)]


def test_constraint_residuals_shrink_and_the_assignment_becomes_binary() -> None:
    lower, upper, correct, clean = smoothed(40, 3)
    settings = AdmmSettings("clean", 0.01, 0.02, rho_growth=1.01, rho_ceiling=5.0)
    found = admm(lower, upper, correct, 4, confidence=clean, settings=settings, steps=1200, track=True)
    history = {name: curve[0] for name, curve in found.history.items()}
    for name in admm_steps.DISTANCES:
        curve = history[f"{name}_distance_sum"]
        assert curve[-1] < 0.25 * curve.max(), name
    assert history["binary_distance_sum"][-1] < 0.5 * history["binary_distance_sum"][0]
    assert abs(history["relaxed"][-1] - history["projected"][-1]) < 0.1
    assert history["projected"].max() == pytest.approx(found.value, abs=1e-9)


# -------------------------------------------------------------------------------------------------- grid and settings


def test_the_grid_holds_the_sixteen_printed_settings() -> None:
    assert len(set(GRID)) == 16
    assert {each.initial for each in GRID} == {"clean", "brier"}
    assert {each.confidence_rate for each in GRID} == {0.001, 0.01}
    assert {each.assignment_rate for each in GRID} == {0.01, 0.1}
    assert {each.rho_growth for each in GRID} == {1.004, 1.01}
    assert [each.initial for each in ONE_SIZE_FITS_ALL] == ["clean", "brier"]
    assert replace(ONE_SIZE_FITS_ALL[0], initial="brier") == ONE_SIZE_FITS_ALL[1]


def test_the_grid_runs_each_setting_as_it_would_run_alone_and_keeps_the_best() -> None:
    lower, upper, correct, clean = smoothed(30, 2)
    together = admm_grid(lower, upper, correct, 5, confidence=clean, steps=120)
    alone = [admm(lower, upper, correct, 5, confidence=clean, settings=each, steps=120).value for each in GRID[::5]]
    np.testing.assert_allclose(together.runs[::5], alone, atol=1e-9)
    assert together.value == max(together.runs)
    best = GRID[int(np.argmax(together.runs))]
    assert together.settings["initial"] == best.initial
    assert together.settings["assignment_rate"] == best.assignment_rate


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_start() -> None:
    lower, upper, correct, _ = smoothed(25, 4)
    random_start = AdmmSettings("gaussian", 0.01, 0.1)
    runs = [admm(lower, upper, correct, settings=random_start, steps=15, seed=seed) for seed in (1, 1, 2)]
    assert runs[0].confidence.tobytes() == runs[1].confidence.tobytes()
    assert runs[0].confidence.tobytes() != runs[2].confidence.tobytes()
    climbs = [dece_ascent(lower, upper, correct, initial="uniform", steps=15, seed=seed) for seed in (1, 1, 2)]
    assert climbs[0].confidence.tobytes() == climbs[1].confidence.tobytes()
    assert climbs[0].confidence.tobytes() != climbs[2].confidence.tobytes()


def test_single_precision_still_reports_a_feasible_double_precision_value() -> None:
    for seed in range(12):
        lower, upper, correct, options = instance(seed)
        exact = calibration_error(lower, upper, correct, **options).value
        found = [
            admm(lower, upper, correct, settings=QUICK, steps=20, precision="float32", **options),
            dece_ascent(lower, upper, correct, steps=20, precision="float32", **options),
        ]
        for each in found:
            assert each.confidence.dtype == np.float64
            assert ((lower <= each.confidence) & (each.confidence <= upper)).all()
            assert each.value <= exact + 1e-12


def test_a_run_that_overflows_keeps_the_best_feasible_point_it_had() -> None:
    lower, upper, correct, _ = smoothed(20, 8)
    wild = AdmmSettings("clean", 1e3, 1e3, rho=1e200, rho_growth=1e50, rho_ceiling=1e300, gradient_clip=1e300)
    found = admm(lower, upper, correct, settings=(wild, AdmmSettings("brier")), steps=8, track=True)
    assert not np.isfinite(found.history["lagrangian"][0, -1])
    assert np.isfinite(found.runs).all()
    assert ((lower <= found.confidence) & (found.confidence <= upper)).all()
    assert found.value <= calibration_error(lower, upper, correct).value + 1e-12


# --------------------------------------------------------------------------------------------------------------- dECE


def test_soft_bins_are_a_softmax_that_becomes_the_hard_bins() -> None:
    z = torch.tensor([[0.05, 0.31, 0.62, 0.97]], dtype=torch.float64)
    cuts = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
    soft = _dece.soft_bins(z, cuts, 0.1)[0].numpy()
    logits = np.array([[1 * v, 2 * v - 0.25, 3 * v - 0.75, 4 * v - 1.5] for v in z[0].tolist()]) / 0.1
    np.testing.assert_allclose(soft.T, np.exp(logits) / np.exp(logits).sum(1, keepdims=True), atol=1e-12)
    hard = _dece.soft_bins(z, cuts, 1e-6)[0].numpy()
    np.testing.assert_allclose(hard, np.eye(4), atol=1e-12)


def test_at_the_last_temperature_the_soft_error_is_the_plain_one() -> None:
    _, _, correct, clean = smoothed(300, 6)
    z, c = torch.tensor(clean[None]), torch.tensor(correct, dtype=torch.float64)
    cuts = torch.arange(1, 15, dtype=torch.float64) / 15
    assert float(_dece.soft_error(z, c, cuts, 1e-6)[0]) / 300 == pytest.approx(ece(clean, correct), abs=1e-6)
    assert float(_dece.hard_error(z, c, cuts, "left")[0]) == pytest.approx(ece(clean, correct), abs=1e-12)


def test_ascent_improves_on_its_start_and_tracks_its_curves() -> None:
    lower, upper, correct, clean = smoothed(200, 7)
    found = dece_ascent(lower, upper, correct, confidence=clean, initial=("clean", "brier"), steps=150, track=True)
    starts = [ece(clean, correct), brier_confidences(lower, upper, correct).value]
    assert all(run > start for run, start in zip(found.runs, starts, strict=True))
    assert found.history["relaxed"].shape == found.history["projected"].shape == (2, 150)
    np.testing.assert_allclose(found.history["projected"].max(1), found.runs, atol=1e-9)
    assert found.settings["initial"] == ("clean", "brier")[int(np.argmax(found.runs))]


def test_the_knobs_of_the_ablations_act_on_their_own_run_and_stay_below_the_exact_value() -> None:
    lower, upper, correct, clean = smoothed(60, 3)
    runs = [
        AdmmSettings(assignment_rate=0.05, assignment=each, updates=updates)
        for each, updates in (("uniform", 1), ("zeros", 1), ("ones", 2), ("valid", 3))
    ]
    together = admm(lower, upper, correct, confidence=clean, settings=runs, steps=40, track=True)
    alone = [admm(lower, upper, correct, confidence=clean, settings=each, steps=40).value for each in runs]
    np.testing.assert_allclose(together.runs, alone, atol=1e-12)
    first = together.history["assignment"][:, 0]
    assert (first[1] == 0).all()
    assert (first[2] == 1).all()
    np.testing.assert_array_equal(first[3].argmax(1), assign(clean[:10], np.arange(16) / 15))
    assert (first[3].sum(1) == 1).all()
    exact = calibration_error(lower, upper, correct).value
    assert max(together.runs) <= exact
    with pytest.raises(InputError, match="assignment is 'twos'"):
        AdmmSettings(assignment="twos")
    with pytest.raises(InputError, match="updates is 0"):
        AdmmSettings(updates=0)


def test_two_updates_in_a_step_are_two_gradient_steps_at_the_state_between() -> None:
    lower, upper, correct, clean = smoothed(7, 1)
    problem, place = check_problem(lower, upper, correct, 5, None, "left", clean), Placement("cpu", "float64")
    twice, once = AdmmSettings(assignment_rate=0.02, updates=2), AdmmSettings(assignment_rate=0.02)
    fast, slow = (build_program(problem, (each,), place) for each in (twice, once))
    states = [admm_steps.begin(fast, place([clean]), place([0.3]).view(-1, 1, 1)) for _ in range(2)]
    admm_steps.advance(fast, states[0])
    for _ in range(2):
        admm_steps.update_assignment(slow, states[1])
        admm_steps.update_confidence(slow, states[1])
        each = states[1]
        each.residual = admm_steps.residuals(slow, each.a, each.z, each.g, each.q1, each.q2)
    np.testing.assert_allclose(states[0].a.numpy(), states[1].a.numpy(), atol=1e-14)
    np.testing.assert_allclose(states[0].z.numpy(), states[1].z.numpy(), atol=1e-14)


def test_ascent_takes_momentum_and_schedules() -> None:
    lower, upper, correct, clean = smoothed(100, 7)
    given: dict[str, Any] = {"confidence": clean, "initial": "clean", "steps": 60, "track": True}
    exact, start = calibration_error(lower, upper, correct).value, ece(clean, correct)
    ways = [{"momentum": 0.9}, {"schedule": "cosine"}, {"schedule": "plateau"}, {"cooling": "linear"}]
    for way in ways:
        rate = 1e-7 if way == {"schedule": "plateau"} else 0.01  # gains too small to count: the rate falls
        found, plain = (dece_ascent(lower, upper, correct, **given, rate=rate, **more) for more in (way, {}))
        assert start < found.value <= exact
        assert not np.array_equal(found.history["projected"], plain.history["projected"]), way
        assert way.items() <= dict(found.settings).items()
    for bad in ({"momentum": 1.0}, {"schedule": "steep"}, {"cooling": "quick"}):
        with pytest.raises(InputError, match=next(iter(bad))):
            dece_ascent(lower, upper, correct, **given, **bad)


# -------------------------------------------------------------------------------------------------------------- input


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"confidence": [0.5, 0.6]}, "lengths differ"),
        ({"confidence": [1.5]}, r"confidence\[0\] is 1.5"),
        ({"steps": 0}, "steps is 0; pass a whole number of at least 1"),
        ({"steps": 2.5}, "steps is 2.5"),
        ({"device": "nowhere"}, "device: there is no 'nowhere' here, only cpu; give one of these"),
        ({"precision": "half"}, "precision is 'half'"),
    ],
)
@pytest.mark.parametrize("method", [admm, dece_ascent])
def test_bad_options_are_refused_with_one_sentence(method: Any, options: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        method([0.5], [0.6], [1], **options)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="initial is 'cold'; pass one of 'clean'"):
        AdmmSettings("cold")
    with pytest.raises(InputError, match="rho is 0"):
        AdmmSettings(rho=0.0)
    with pytest.raises(InputError, match="settings is empty"):
        admm([0.5], [0.6], [1], settings=())
    with pytest.raises(InputError, match="initial is empty"):
        dece_ascent([0.5], [0.6], [1], initial=())
    with pytest.raises(InputError, match="temperature is -1"):
        dece_ascent([0.5], [0.6], [1], temperature=(0.01, -1.0))


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for method, name in ((admm, "admm"), (dece_ascent, "dece_ascent")):
        with pytest.raises(InputError, match=rf"{name} needs torch; install it with: pip install 'certcal\[torch\]'"):
            method([0.5], [0.6], [1])
    assert brier_confidences([0.5], [0.75], [1]).value == 0.5


# ------------------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize("method", [lambda *data: admm(*data, 3, steps=5, track=True), brier_confidences, dece_ascent])
def test_a_result_can_be_copied_and_sent_to_another_process_but_not_changed(method: Any) -> None:
    result = method(LOWER, UPPER, CORRECT)
    for other in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert isinstance(other, Baseline)
        assert (other.name, other.value, other.runs) == (result.name, result.value, result.runs)
        assert dict(other.settings) == dict(result.settings)
        np.testing.assert_array_equal(other.confidence, result.confidence)
        assert other.history.keys() == result.history.keys()
        for name, curve in result.history.items():
            np.testing.assert_array_equal(other.history[name], curve)
        with pytest.raises(TypeError):
            other.settings["bins"] = 3  # pyright: ignore[reportIndexIssue]


@pytest.mark.parametrize("method", [admm, admm_grid, dece_ascent])
def test_a_baseline_finds_on_an_accelerator_what_it_finds_on_the_cpu_without_waiting_in_its_steps(method: Any) -> None:
    rng = np.random.default_rng(5)
    lower = rng.random(30) * 0.6
    given = {"lower": lower, "upper": lower + 0.3, "correct": rng.integers(0, 2, 30), "bins": 5, "steps": 20}
    expected = method(**given, device="cpu", track=True)
    with accelerator() as state:
        found = method(**given, track=True)
        assert state.operations > 100
        assert state.waits == 0
    np.testing.assert_array_equal(found.confidence, expected.confidence)
    assert found.runs == expected.runs
    for name, curve in expected.history.items():
        np.testing.assert_array_equal(found.history[name], curve)
    single = method(**given, device="cpu", precision="float32")
    with accelerator(doubles=False) as state:
        assert method(**given, device="pretend", precision="float32").value == single.value
        assert method(**given).value == expected.value  # on the CPU, which has float64
        with pytest.raises(InputError, match="'pretend' does not compute in float64; pass precision='float32'"):
            method(**given, device="pretend")
