"""The bound on the calibration error of perturbed scores."""

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from certcal import InputError
from certcal.bounds import classwise, nadaraya_watson, perturb, smooth
from certcal.bounds._shared import bernstein_term, fold_of_each
from certcal.bounds._smooth import SHARES, Surrogate, best_width, one_split, plug_in_width
from certcal.bounds.concentration import chernoff_upper
from certcal.claims import Bound, Estimate
from certcal.lab.study import SYNTHETIC
from tests.bounds import naive_smooth as naive
from tests.bounds.naive import outcome_term

DELTA = 0.1
WIDTHS = (1e-6, 1e-3, 0.03, 0.2, 1.0, 50.0)
TERMS = {
    "direct": ["surrogate gap", "bias", "draw of the outcomes", "draw of the scores"],
    "repaired": ["surrogate gap", "smoothing error", "validation samples", "training outcomes"],
    "published": ["surrogate gap", "smoothing error", "validation of the gap", "validation of the error"],
}


def kinds_of_scores(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Sorted scores: spread out, tied, at the ends, or close together."""
    makers: dict[str, Callable[[], Any]] = {
        "uniform": lambda: rng.random(n),
        "tied": lambda: rng.integers(0, 6, n) / 5,
        "at the ends": lambda: rng.beta(0.05, 0.05, n),
        "close": lambda: 0.5 + rng.random(n) * 1e-3,
    }
    return np.sort(makers[kind]())


@pytest.mark.parametrize("kind", ["uniform", "tied", "at the ends", "close"])
def test_the_sliding_window_agrees_with_every_weight_written_out(kind: str) -> None:
    rng = np.random.default_rng(3)
    for n, m in ((1, 1), (1, 20), (2, 7), (60, 1), (57, 40)):
        train, points = kinds_of_scores(kind, n, rng), kinds_of_scores(kind, m, rng)
        outcomes = rng.integers(0, 2, n).astype(np.uint8)
        for width in WIDTHS:
            for tight in (True, False):
                fast = Surrogate(train, outcomes, points, width, 3.0, 20.0, tight=tight, keep=True)
                slow = naive.local_averages(train, outcomes, points, width, 3.0, 20.0, tight=tight)
                assert np.max(np.abs(fast.average - slow.average)) <= fast.rounding < 1e-11
                assert np.max(np.abs(fast.error - slow.error)) <= fast.rounding_of_error
                length = float(np.linalg.norm(slow.weights.mean(axis=0)))
                assert length * (1 - 1e-12) <= fast.weight_norm() <= length * (1 + 2e-6) + 1e-9
                gap = np.abs(points - slow.average)
                assert abs(fast.mean_gap - gap.mean()) <= fast.rounding
                assert abs(fast.mean_error - slow.error.mean()) <= fast.rounding_of_error
                found = fast.variances
                np.testing.assert_allclose(found[0], gap.var(), atol=1e-9)
                np.testing.assert_allclose(found[1], slow.error.var(), rtol=1e-6, atol=1e-9)
                np.testing.assert_allclose(found[2], (gap + slow.error).var(), rtol=1e-6, atol=1e-9)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.floats(1e-9, 3),
)
@settings(max_examples=100)
def test_averages_are_weighted_means_of_outcomes_for_any_scores(
    train: list[float], points: list[float], width: float
) -> None:
    scores, at = np.sort(train), np.sort(points)
    ones = np.ones(scores.size, np.uint8)
    fast = Surrogate(scores, ones, at, width, 3.0, 20.0, tight=True, keep=True)
    np.testing.assert_allclose(fast.average, 1, rtol=0, atol=1e-11)
    assert np.all(fast.error >= 0)
    assert 1 / math.sqrt(scores.size) * (1 - 1e-9) <= fast.weight_norm() <= 1


def test_many_scores_that_enter_and_leave_leave_nothing_behind() -> None:
    # A million scores pass through the window before it meets the two that are left.
    train = np.concatenate([np.linspace(0.1, 0.1001, 1_000_000), [0.1502, 0.1506]])
    outcomes = np.zeros(train.size, np.uint8)
    outcomes[-1] = 1
    points = np.concatenate([np.linspace(0.1, 0.1001, 1000), [0.1503, 0.1504]])
    fast = Surrogate(train, outcomes, points, 0.0501, 3.0, 20.0, tight=True, keep=True)
    alone = naive.local_averages(train[-2:], outcomes[-2:], points[-1:], 0.0501, 3.0, 20.0, tight=True)
    kernel = 1 - ((train - points[-1]) / 0.0501) ** 2
    inside = kernel > 0
    assert inside.sum() == 2
    assert fast.average[-1] == pytest.approx(kernel[-1] / kernel[inside].sum(), abs=1e-9)
    assert fast.average[-1] == pytest.approx(alone.average[0], abs=1e-9)
    assert fast.error[-1] == pytest.approx(alone.error[0], abs=1e-9)


def test_threads_do_not_change_the_averages(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    scores, outcomes = rng.random(90_000), rng.integers(0, 2, 90_000)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    one = smooth(scores, outcomes, 0.1)
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert smooth(scores, outcomes, 0.1).value == pytest.approx(one.value, rel=1e-9)


@pytest.mark.parametrize("form", ["repaired", "published"])
def test_every_term_is_its_formula(form: str) -> None:
    rng = np.random.default_rng(5)
    h, delta = 0.1, 0.02
    train, points = np.sort(rng.random(150)), np.sort(rng.random(90))
    outcomes = rng.integers(0, 2, 150).astype(np.uint8)
    split = one_split(train, outcomes, points, h, delta, form, 0.07)
    first, second = 1 / (2 * h), (1 if form == "repaired" else 3) / (2 * h**2)
    local = naive.local_averages(train, outcomes, points, 0.07, first, second, tight=form == "repaired")
    gap = np.abs(points - local.average)
    assert list(split.terms) == TERMS[form]
    assert split.terms["surrogate gap"] == pytest.approx(gap.mean(), rel=1e-9)
    assert split.terms["smoothing error"] == pytest.approx(local.error.mean(), rel=1e-9)
    if form == "published":
        largest = first * 0.07 + second / 2 * 0.07**2 + 0.5
        error = largest * bernstein_term(90, delta / 2, (local.error / largest).var())
        assert split.terms["validation of the gap"] == pytest.approx(bernstein_term(90, delta / 2, gap.var()), rel=1e-6)
        assert split.terms["validation of the error"] == pytest.approx(error, rel=1e-6)
        return
    per = delta / sum(SHARES.values())
    whole = 1 + min(1, first * max(0.07, np.max(np.diff(train)) / 2, train[0], 1 - train[-1]) + 0.5)
    sampled = whole * bernstein_term(90, SHARES["validation"] * per, ((gap + local.error) / whole).var())
    length = chernoff_upper(float(np.linalg.norm(local.weights.mean(axis=0))), 90, SHARES["weights"] * per)
    outcome_term = math.sqrt(math.log(1 / (SHARES["outcomes"] * per)) / 2) * length
    assert split.terms["validation samples"] == pytest.approx(sampled, rel=1e-6)
    assert split.terms["training outcomes"] == pytest.approx(outcome_term, rel=1e-5)


@pytest.mark.parametrize("rare", [False, True])
def test_every_term_of_the_direct_form_is_its_formula(rare: bool) -> None:
    rng = np.random.default_rng(16)
    h, n, delta = 0.1, 120, 0.02
    scores, outcomes = np.sort(rng.random(n)), rng.integers(0, 2, n)
    if rare:  # Bernstein's inequality is the better one, and most scores stand alone in their windows
        scores, outcomes = np.sort(rng.beta(0.3, 20, n)), np.zeros(n, np.uint8)
    bound = smooth(scores, outcomes, h, delta, smoothing=0.07)
    local = naive.local_averages(scores, outcomes, scores, 0.07, 1 / (2 * h), 1 / (2 * h**2), tight=True)
    bias = local.error - 0.5 * np.sqrt((local.weights**2).sum(axis=1))
    deviation = outcome_term(scores, outcomes, local.weights.mean(axis=0), delta / 2, 1)
    seen = np.mean(np.abs(scores - local.average)) + bias.mean() + deviation
    assert local.error.max() < 1
    assert list(bound.terms) == TERMS["direct"]
    assert bound.terms["surrogate gap"] == pytest.approx(np.mean(np.abs(scores - local.average)), rel=1e-9)
    assert bound.terms["bias"] == pytest.approx(bias.mean(), rel=1e-8)
    assert bound.terms["draw of the outcomes"] == pytest.approx(deviation, rel=2e-6)
    assert bound.value == pytest.approx(chernoff_upper(seen, n, delta / 2), rel=1e-5)
    assert bound.value >= chernoff_upper(seen, n, delta / 2)


def test_one_bound_on_the_bias_alone_is_hardly_larger_in_narrow_windows() -> None:
    rng = np.random.default_rng(17)
    scores, none = np.sort(rng.beta(0.4, 0.4, 20_000)), np.zeros(20_000, np.uint8)
    h = 0.1
    for width in (h / 4, h / 16):
        both, one = (
            Surrogate(scores, none, scores, width, 0.5 / h, 0.5 / h**2, tight=True, noise=0.0, sides=sides, keep=True)
            for sides in (True, False)
        )
        assert np.all(one.error >= both.error - 1e-12)
        assert one.mean_error <= 1.05 * both.mean_error


def test_no_error_bound_exceeds_the_range_that_bernstein_is_told() -> None:
    rng = np.random.default_rng(6)
    everywhere = np.linspace(0, 1, 4001)
    for n in (1, 2, 5, 50):
        train = np.sort(rng.random(n))
        none = np.zeros(n, np.uint8)
        for h, width in ((0.1, 0.01), (1.0, 0.3), (5.0, 1e-4)):
            local = Surrogate(train, none, everywhere, width, 0.5 / h, 0.5 / h**2, tight=True, keep=True)
            distance = np.max(np.abs(everywhere[:, None] - train[None, :]).min(axis=1))
            assert local.error.max() <= min(1, 0.5 / h * max(width, distance) + 0.5) + 1e-12


def test_the_smoothing_error_is_the_largest_there_can_be() -> None:
    # One training sample far from the others: the average is its outcome, off by exactly ½ when η = ½.
    local = Surrogate(np.array([0.5]), np.ones(1, np.uint8), np.array([0.5]), 0.1, 0.0, 0.0, tight=True, keep=True)
    assert local.error[0] == pytest.approx(0.5)
    # A line of the steepest slope: left of all training scores the average is off by the slope times the distance.
    train = np.array([0.5, 0.51])
    far = Surrogate(train, np.zeros(2, np.uint8), np.array([0.3]), 0.1, 2.0, 8.0, tight=True, noise=0.0, keep=True)
    assert far.error[0] == pytest.approx(2.0 * 0.2)
    # A parabola of the largest curvature with its vertex between two scores.
    both = Surrogate(
        np.array([0.49, 0.51]), np.zeros(2, np.uint8), np.array([0.5]), 0.1, 2.0, 8.0, tight=True, noise=0.0, keep=True
    )
    assert both.error[0] == pytest.approx(8.0 / 2 * 0.01**2)


def test_expected_errors_of_averages_are_below_their_bound() -> None:
    # Exact expectation over all outcomes of a few training samples, for calibration functions with the right slopes.
    rng = np.random.default_rng(7)
    h = 0.2
    for _ in range(20):
        original, probability = rng.random(3), rng.integers(0, 2, 3).astype(float)
        grid, _, eta = naive.perturbed_calibration(original, probability, rng.dirichlet([1, 1, 1]), h, 2000)
        train = np.sort(rng.random(6))
        points = np.sort(rng.random(5))
        at_train, at_points = np.interp(train, grid, eta), np.interp(points, grid, eta)
        for width in (0.05, 0.3, 1.0):
            local = naive.local_averages(train, np.zeros(6), points, width, 0.5 / h, 0.5 / h**2, tight=True)
            expected = np.zeros(5)
            for bits in range(64):
                y = (bits >> np.arange(6)) & 1
                chance = np.prod(np.where(y == 1, at_train, 1 - at_train))
                expected += chance * np.abs(local.weights @ y - at_points)
            assert np.all(expected <= local.error + 1e-9)


def test_the_weights_do_not_depend_on_outcomes_even_when_scores_are_tied() -> None:
    # Sorting puts outcomes 0 first among equal scores; the samples nearest to a point must then all answer.
    train = np.array([0.2, 0.2, 0.2, 0.8])
    for outcomes, expected in (([0, 0, 1, 1], 1 / 3), ([0, 1, 1, 1], 2 / 3), ([0, 0, 0, 1], 0)):
        given_outcomes = np.array(outcomes, np.uint8)
        local = Surrogate(train, given_outcomes, np.array([0.3]), 0.01, 1.0, 1.0, tight=True, keep=True)
        assert local.average[0] == pytest.approx(expected)
        assert local.error[0] == pytest.approx(0.1 + 0.5 / math.sqrt(3))
        assert local.weight_norm() == pytest.approx(1 / math.sqrt(3), rel=1e-5)


def populations() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Scores before the noise as finite mixtures: values, probabilities of outcome 1, and masses."""
    fine = (np.arange(400) + 0.5) / 400
    even = np.full(400, 1 / 400)
    found = {name: (fine, each.eta(fine), even) for name, each in SYNTHETIC.items()}
    few = np.array([0.0, 0.25, 0.5, 1.0])
    found["few values, two at the ends"] = (few, np.array([0.1, 0.2, 0.7, 0.6]), np.array([0.4, 0.1, 0.1, 0.4]))
    found["always sure and often wrong"] = (np.array([1.0]), np.array([0.7]), np.ones(1))
    return found


@pytest.mark.parametrize(("form", "n", "repetitions"), [("direct", 100, 250), ("repaired", 400, 100)])
@pytest.mark.parametrize("name", list(populations()))
def test_the_bound_holds_as_often_as_it_says(name: str, form: str, n: int, repetitions: int) -> None:
    values, probability, mass = populations()[name]
    rng = np.random.default_rng(8)
    h = 0.25
    truth = naive.perturbed_calibration_error(values, probability, mass, h)
    failures, bounds = 0, []
    for _ in range(repetitions):
        drawn = rng.choice(values.size, n, p=mass)
        outcomes = rng.random(n) < probability[drawn]
        bound = smooth(perturb(values[drawn], h, rng), outcomes, h, DELTA, smoothing=0.2, form=form)
        bounds.append(bound.value)
        failures += bound.value < truth
    assert failures <= repetitions * DELTA
    assert np.mean(bounds) < 1  # so that the bound is more than the trivial one


def one_window(form: str, positives: int, delta: float, points: np.ndarray) -> float:
    """The bound from 100 training samples that all weigh the same, in the limit of a very wide perturbation."""
    train = (np.arange(100) + 0.5) / 100
    outcomes = np.zeros(100, np.uint8)
    outcomes[np.linspace(0, 99, positives).astype(int)] = 1
    return sum(one_split(train, outcomes, points, 1000.0, delta, form, 100.0).terms.values())


def chance_of_failing(form: str, delta: float) -> float:
    """Probability over the training outcomes, enumerated, that the bound is below the calibration error."""
    # At such a bandwidth perturbed scores are uniform and the calibration function is the share of outcomes 1.
    share, points = 0.1, (np.arange(200_000) + 0.5) / 200_000
    truth = 0.5 - share + share**2
    return math.fsum(
        float(binom.pmf(positives, 100, share))
        for positives in range(61)
        if one_window(form, positives, delta, points) < truth
    )


def test_the_published_form_fails_more_often_than_it_says_and_the_repaired_one_does_not() -> None:
    delta = 0.001
    assert chance_of_failing("published", delta) > 5 * delta
    assert chance_of_failing("repaired", delta) <= delta


def test_the_published_form_is_an_estimate_because_it_is_no_bound() -> None:
    rng = np.random.default_rng(1)
    scores, outcomes = rng.random(200), rng.integers(0, 2, 200)
    found = smooth(scores, outcomes, 0.25, form="published")
    assert isinstance(found, Estimate)
    assert not isinstance(found, Bound)
    assert found.to_dict()["type"] == "estimate"
    assert "probability" not in found.sentence
    assert "at most" not in found.sentence
    assert "proof has a gap" in found.sentence
    assert found.sentence.endswith("an estimate, not a guarantee.")
    assert list(found.terms) == list(found.to_dict()["terms"]) == TERMS["published"]
    assert found.value == min(1.0, math.fsum(found.terms.values()))
    assert pickle.loads(pickle.dumps(found)) == found
    p = np.column_stack((scores, 1 - scores))
    with pytest.raises(InputError, match="bound gives estimates"):
        classwise(smooth, p, outcomes, bandwidth=0.25, form="published")


def test_the_step_that_the_repair_replaces_fails_for_a_third_of_the_training_outcomes() -> None:
    # With η = ½ and equal weights the bound on the expectation of |η̂ - η| is the standard deviation of η̂.
    n = 100
    step = math.fsum(float(binom.pmf(k, n, 0.5)) for k in range(n + 1) if abs(k / n - 0.5) > 0.5 / math.sqrt(n))
    repaired = math.sqrt(math.log(1 / DELTA) / 2) / math.sqrt(n)
    safe = math.fsum(
        float(binom.pmf(k, n, 0.5)) for k in range(n + 1) if abs(k / n - 0.5) > 0.5 / math.sqrt(n) + repaired
    )
    assert step > 0.27
    assert safe <= DELTA


def test_the_length_of_the_mean_weights_is_bounded_from_validation_scores() -> None:
    rng = np.random.default_rng(9)
    train = np.sort(rng.beta(0.3, 0.5, 80))
    many = np.sort(rng.beta(0.3, 0.5, 200_000))
    none = np.zeros(80, np.uint8)
    truth = Surrogate(train, none, many, 0.05, 1.0, 1.0, tight=True).weight_norm()
    limits = []
    for _ in range(1000):
        few = Surrogate(train, none, np.sort(rng.beta(0.3, 0.5, 60)), 0.05, 1.0, 1.0, tight=True)
        limits.append(chernoff_upper(few.weight_norm(), 60, DELTA))
    assert np.mean(np.array(limits) < truth) <= DELTA


@pytest.mark.parametrize("form", ["direct", "repaired"])
def test_the_bound_is_the_sum_of_its_terms_rounded_up_and_says_what_it_rests_on(form: str) -> None:
    rng = np.random.default_rng(10)
    scores = rng.random(5000)
    bound = smooth(scores, rng.random(5000) < scores, 0.1, 0.05, form=form, perturb=True, seed=3)
    assert list(bound.terms) == TERMS[form]
    assert math.fsum(bound.terms.values()) <= bound.value < 1
    assert bound.value == pytest.approx(math.fsum(bound.terms.values()), rel=1e-9)
    assert bound.settings["form"] == form
    assert bound.settings["bandwidth"] == 0.1
    assert "perturbed once by the sech kernel of bandwidth 0.1" in bound.statement
    assert "independently of all else and not chosen among draws" in bound.statement
    assert "perturbed scores" in bound.name
    assert bound.side == "upper"
    assert bound.n == 5000


def test_a_width_that_somebody_chose_is_part_of_what_the_bound_rests_on() -> None:
    rng = np.random.default_rng(10)
    scores, outcomes = rng.random(500), rng.integers(0, 2, 500)
    chosen = "the smoothing was chosen without looking at the outcomes"
    assert chosen in smooth(scores, outcomes, 0.1, smoothing=0.2).assumptions
    assert chosen not in smooth(scores, outcomes, 0.1).assumptions


def test_perturbing_inside_is_perturbing_before() -> None:
    rng = np.random.default_rng(11)
    scores, outcomes = rng.random(300), rng.integers(0, 2, 300)
    inside = smooth(scores, outcomes, 0.3, perturb=True, seed=5)
    before = perturb(scores, 0.3, 5)
    np.testing.assert_array_equal(before, perturb(scores, 0.3, np.random.default_rng([5, 1])))
    assert smooth(before, outcomes, 0.3, seed=5).terms == inside.terms


def test_more_samples_a_larger_delta_and_more_noise_make_the_bound_smaller() -> None:
    rng = np.random.default_rng(12)
    scores = rng.random(100_000)
    outcomes = rng.random(100_000) < scores

    def value(n: int, h: float, delta: float) -> float:
        return smooth(scores[:n], outcomes[:n], h, delta, perturb=True).value

    assert value(100_000, 0.05, 0.05) < value(10_000, 0.05, 0.05) < value(1000, 0.05, 0.05)
    assert value(10_000, 0.05, 0.2) < value(10_000, 0.05, 0.05) < value(10_000, 0.05, 1e-6)
    assert value(1000, 0.2, 0.05) < value(1000, 0.01, 0.05)


@pytest.mark.parametrize("folds", [2, 3])
def test_folds_are_parts_of_the_samples_as_they_came_and_each_is_held_out_once(folds: int) -> None:
    rng = np.random.default_rng(18)
    scores, outcomes = rng.random(90), rng.integers(0, 2, 90).astype(np.uint8)
    fold = fold_of_each(90, folds, 4)
    bound = smooth(scores, outcomes, 0.3, 0.06, form="repaired", folds=folds, seed=4, smoothing=0.2)
    terms = []
    for k in range(folds):
        order = np.argsort(scores[fold != k])
        train, labels = scores[fold != k][order], outcomes[fold != k][order]
        terms.append(one_split(train, labels, np.sort(scores[fold == k]), 0.3, 0.06 / folds, "repaired", 0.2).terms)
    for name, size in bound.terms.items():
        assert size == pytest.approx(np.mean([each[name] for each in terms]), rel=1e-9)


def test_the_order_of_the_samples_does_not_matter() -> None:
    rng = np.random.default_rng(13)
    scores, outcomes = rng.integers(0, 50, 500) / 49, rng.integers(0, 2, 500)
    order = rng.permutation(500)
    assert smooth(scores, outcomes, 0.3) == smooth(scores[order], outcomes[order], 0.3)


def test_the_forms_that_hold_are_smaller_than_the_published_one_from_ten_thousand_samples_on() -> None:
    rng = np.random.default_rng(14)
    for n, direct, repaired in ((10_000, 0.5, 0.95), (200_000, 0.33, 0.7)):
        scores = rng.random(n)
        outcomes = rng.random(n) < scores
        value = {form: smooth(scores, outcomes, 2**-6, perturb=True, form=form).value for form in TERMS}
        assert value["direct"] < direct * value["published"]
        assert value["repaired"] < repaired * value["published"]


def test_the_outcomes_can_use_up_what_is_kept_for_them() -> None:
    # With one window and scores above η everywhere, what is kept is used up exactly when the mean outcome is too high.
    n, delta = 400, 0.1
    scores = (np.arange(n) + 0.5) / n
    room = math.sqrt(math.log(2 / delta * 64 / 63) / (2 * n))
    for smoothing in (100.0, None):  # one window, or one node
        term = smooth(scores, scores < 0.5, 1000.0, delta, smoothing=smoothing).terms["draw of the outcomes"]
        assert term == pytest.approx(room, rel=1e-3)
    fails = {shrunk: float(binom.sf(math.floor(n * (0.5 + shrunk * room)), n, 0.5)) for shrunk in (1.0, 0.6)}
    assert fails[1.0] <= delta / 2 < fails[0.6]  # Hoeffding gives away less than four tenths here


def test_the_plug_in_width_is_the_least_of_its_proxy() -> None:
    for n in (100, 10_000, 10**7):
        for h in (2**-6, 0.1):
            first, second = 0.5 / h, 1.5 / h**2
            found = plug_in_width(n, first, second)
            tried = np.geomspace(1e-4, 0.25, 4001)
            proxy = 0.375 * first * tried + 0.1 * second * tried**2 + 1.15 / (2 * math.sqrt(2 * n)) / np.sqrt(tried)
            assert found == pytest.approx(tried[np.argmin(proxy)], rel=3e-3)


def test_the_chosen_width_depends_on_training_scores_only_and_is_near_the_best() -> None:
    rng = np.random.default_rng(15)
    train = np.sort(rng.random(40_000))
    h = 0.05
    chosen, _ = best_width(train, h)
    points = np.sort(rng.random(2000))
    none = np.zeros(train.size, np.uint8)

    def mean_error(width: float) -> float:
        return Surrogate(train, none, points, width, 0.5 / h, 0.5 / h**2, tight=True).mean_error

    assert mean_error(chosen) <= 1.1 * min(mean_error(h * 2.0**power) for power in range(-8, 5))


def every_bound(scores: Any, outcomes: Any, **options: Any) -> list[Bound]:
    return [smooth(scores, outcomes, 0.1, form=form, **options) for form in TERMS]


@pytest.mark.parametrize(
    ("scores", "outcomes"),
    [
        (np.full(50, 0.5), np.zeros(50)),
        (np.zeros(50), np.ones(50)),
        (np.ones(50), np.arange(50) % 2),
        (np.arange(50) % 2, np.arange(50) % 2),
        ([0.1, 0.9], [0, 1]),
        ([0.5, 0.5, 0.5], [True, False, True]),
    ],
)
def test_constant_tied_and_few_scores_have_a_bound(scores: Any, outcomes: Any) -> None:
    for bound in every_bound(scores, outcomes):
        assert 0 < bound.value <= 1


def test_one_sample_bounds_nothing() -> None:
    assert smooth([0.3], [1], 0.1).value == 1


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"bandwidth": 0}, "bandwidth is 0"),
        ({"bandwidth": -0.1}, "bandwidth is -0.1"),
        ({"bandwidth": float("nan")}, "bandwidth is nan"),
        ({"form": "asymptotic"}, "form is 'asymptotic'"),
        ({"folds": 2}, "folds is 2, but nothing is split in this form"),
        ({"folds": 1, "form": "repaired"}, "folds is 1"),
        ({"folds": 11, "form": "published"}, "scores has 10 entries for 11 folds"),
        ({"smoothing": 0}, "smoothing is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"scores": [0.5], "outcomes": [1], "form": "repaired"}, "scores has 1 entries for 2 folds"),
    ],
)
def test_what_cannot_be_used_is_named(options: dict[str, Any], complaint: str) -> None:
    arguments = {"scores": np.linspace(0, 1, 10), "outcomes": np.ones(10), "bandwidth": 0.1, **options}
    with pytest.raises(InputError, match=complaint):
        smooth(**arguments)


def test_the_published_local_average_is_the_slow_one_at_any_places_in_any_order() -> None:
    rng = np.random.default_rng(3)
    s = rng.random(300)
    y = (rng.random(300) < s).astype(np.uint8)
    at = np.array([0.9, 0.0, 0.31, 1.0, 0.31])
    h = 0.1
    slow = naive.local_averages(s, y, at, plug_in_width(300, 5.0, 150.0), 5.0, 150.0, tight=False)
    np.testing.assert_allclose(nadaraya_watson(s, y, h, at), slow.average, atol=1e-6)
