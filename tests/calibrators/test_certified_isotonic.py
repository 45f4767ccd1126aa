"""The certified isotonic map: the best of all monotone maps, in the trade-off that was asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from certcal import InputError
from certcal.calibrators import CertifiedIsotonic, CertifiedSamples, NotFittedError, certified_path
from certcal.calibrators._certified import BrierTerms
from certcal.metrics import equal_mass_ece
from certcal.worst_case import brier_score, calibration_error
from tests.calibrators import naive_certified as naive

TRADEOFFS = st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])


@st.composite
def problems(draw, most=7, radii=3):
    """Few samples on a coarse grid, so that places tie, at one radius or up to three; some are not certified."""
    n, count = draw(st.integers(1, most)), draw(st.integers(1, radii))
    grid = st.integers(0, 8).map(lambda k: k / 8)
    pair = st.tuples(grid, grid).map(lambda ends: (min(ends), max(ends)))
    rows = draw(st.lists(st.tuples(*[st.none() | pair] * count), min_size=n, max_size=n))
    rows[0] = tuple(one or (0.25, 0.75) for one in rows[0])
    correct = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    confidence = draw(st.lists(grid, min_size=n, max_size=n))
    return naive.Problem(rows, correct, confidence, draw(st.sampled_from([[1.0, 1.0, 1.0], [1.0, 3.0, 2.0]]))[:count])


def fitted(p, tradeoff):
    return CertifiedIsotonic(tradeoff).fit(*p.arguments, certified=p.certified, radius_weight=p.weights)


def value(calibrator):
    return lambda z: calibrator.transform([z]).item()


def drawn(n=400, seed=0, width=0.15):
    rng = np.random.default_rng(seed)
    z = rng.uniform(0.2, 1, n)
    correct = (rng.random(n) < z**2).astype(np.uint8)
    lower = np.maximum(z - width * rng.random(n), 0)
    upper = np.minimum(z + width * rng.random(n), 1)
    return lower, upper, correct, z


@settings(max_examples=15)
@given(problems(most=5), TRADEOFFS)
def test_no_solution_of_the_quadratic_program_is_better(p, tradeoff):
    found = naive.objective(value(fitted(p, tradeoff)), p, tradeoff)
    assert found == pytest.approx(naive.quadratic_program(p, tradeoff), abs=1e-6)


@given(problems(), TRADEOFFS, st.lists(st.floats(0, 1), min_size=9, max_size=9).map(sorted))
def test_no_random_monotone_map_is_better(p, tradeoff, values):
    other = naive.objective(lambda z: float(np.interp(z, np.arange(9) / 8, values)), p, tradeoff)
    assert naive.objective(value(fitted(p, tradeoff)), p, tradeoff) <= other + 1e-12


@given(problems(), TRADEOFFS)
def test_the_score_of_the_points_is_the_objective_of_the_definition(p, tradeoff):
    samples = CertifiedSamples.from_intervals(*p.arguments, certified=p.certified)
    points = BrierTerms.of(samples, p.weights).at(tradeoff)
    made = fitted(p, tradeoff)
    assert points.score(made.transform(points.x)) == pytest.approx(naive.objective(value(made), p, tradeoff), abs=1e-12)
    assert float(np.sum(points.right + points.wrong)) == pytest.approx(1)
    assert (np.diff(points.x) > 0).all()


def test_maps_of_other_tradeoffs_are_worse_than_the_one_that_was_asked_for():
    lower, upper, correct, z = drawn()
    points = BrierTerms.of(CertifiedSamples.from_intervals(lower, upper, correct, z)).at(0.5)
    best = points.score(CertifiedIsotonic(0.5).fit(lower, upper, correct, z).transform(points.x))
    others = [CertifiedIsotonic(level).fit(lower, upper, correct, z) for level in (0.4, 0.6)]
    assert all(points.score(each.transform(points.x)) > best + 1e-7 for each in others)


def test_tradeoff_0_is_the_isotonic_regression_of_scikit_learn():
    lower, upper, correct, z = drawn()
    peer = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(z, correct)
    grid = np.linspace(0, 1, 1001)
    made = CertifiedIsotonic(0).fit(lower, upper, correct, z)
    np.testing.assert_allclose(made.transform(grid), peer.predict(grid), atol=1e-9)


@pytest.mark.parametrize("width", [1.0, 5.0])
def test_tradeoff_1_with_wide_intervals_is_the_constant(width):
    _, _, correct, z = drawn()
    lower, upper = np.maximum(z - width, 0), np.minimum(z + width, 1)
    made = CertifiedIsotonic(1).fit(lower, upper, correct)
    np.testing.assert_allclose(made.transform([0, 0.3, 1]), correct.mean(), atol=1e-12)


def test_the_certified_brier_score_of_the_worst_case_room_falls_to_that_of_the_objective():
    lower, upper, correct, _ = drawn()
    made = CertifiedIsotonic(1).fit(lower, upper, correct)
    points = BrierTerms.of(CertifiedSamples.from_intervals(lower, upper, correct)).at(1)
    after = brier_score(*made.intervals(lower, upper), correct).value
    assert after == pytest.approx(points.score(made.transform(points.x)), abs=1e-12)
    assert after < brier_score(lower, upper, correct).value - 0.01


@pytest.mark.parametrize("seed", range(3))
def test_along_the_path_clean_rises_certified_falls_and_the_front_is_convex(seed):
    samples = CertifiedSamples.from_intervals(*drawn(seed=seed))
    levels = np.linspace(0, 1, 11)
    parts = BrierTerms.of(samples)
    ends = parts.at(0), parts.at(1)
    scores = [[part.score(each.transform(part.x)) for part in ends] for each in certified_path(samples, levels)]
    clean, certified = np.array(scores).T
    assert (np.diff(clean) >= -1e-12).all()
    assert (np.diff(certified) <= 1e-12).all()
    steps = np.diff(np.array(scores), axis=0)
    steps = steps[np.abs(steps).max(axis=1) > 1e-9]
    assert len(steps) > 5
    turns = steps[:-1, 0] * steps[1:, 1] - steps[:-1, 1] * steps[1:, 0]
    assert (turns >= -1e-12).all()


def test_a_path_is_what_separate_fits_give_bit_for_bit():
    lower, upper, correct, z = drawn()
    samples = CertifiedSamples.from_intervals(lower, upper, correct, z)
    levels = [0.5, 0, 1, 0.25]
    for level, made in zip(levels, certified_path(samples, levels), strict=True):
        alone = CertifiedIsotonic(level).fit(lower, upper, correct, z)
        assert made.to_dict() == alone.to_dict()


@settings(max_examples=15)
@given(problems(), TRADEOFFS, st.randoms(use_true_random=False))
def test_the_order_of_samples_changes_no_bit(p, tradeoff, random):
    order = list(range(len(p.correct)))
    random.shuffle(order)
    shuffled = naive.Problem(*([each[k] for k in order] for each in (p.intervals, p.correct, p.confidence)), p.weights)
    assert fitted(p, tradeoff).to_dict() == fitted(shuffled, tradeoff).to_dict()


def test_single_precision_is_fitted_as_the_same_numbers_in_double():
    single = [each.astype(np.float32) if each.dtype == np.float64 else each for each in drawn()]
    double = [each.astype(np.float64) if each.dtype == np.float32 else each for each in single]
    assert CertifiedIsotonic().fit(*single).to_dict() == CertifiedIsotonic().fit(*double).to_dict()


def test_samples_that_are_not_certified_count_for_the_clean_score_only():
    lower, upper, correct, z = drawn()
    kept = np.arange(z.size) % 3 > 0
    ruined = np.where(kept, lower, np.nan), np.where(kept, upper, -7.0)
    one = CertifiedIsotonic(1).fit(*ruined, correct, certified=kept)
    assert one.to_dict() == CertifiedIsotonic(1).fit(lower[kept], upper[kept], correct[kept]).to_dict()
    clean = CertifiedIsotonic(0).fit(*ruined, correct, z, certified=kept)
    assert clean.to_dict() == CertifiedIsotonic(0).fit(lower, upper, correct, z).to_dict()


def test_a_radius_of_weight_0_or_without_a_certified_sample_does_not_count():
    lower, upper, correct, z = drawn()
    both = np.stack([lower, lower / 2], axis=1), np.stack([upper, (1 + upper) / 2], axis=1)
    one = CertifiedIsotonic(0.5).fit(lower, upper, correct, z).to_dict()
    assert CertifiedIsotonic(0.5).fit(*both, correct, z, radius_weight=[2, 0]).to_dict() == one
    kept = np.stack([np.ones(z.size, bool), np.zeros(z.size, bool)], axis=1)
    assert CertifiedIsotonic(0.5).fit(*both, correct, z, certified=kept).to_dict() == one
    assert CertifiedIsotonic(0.5).fit(*both, correct, z).to_dict() != one


def test_a_tradeoff_too_small_to_weigh_anything_is_the_clean_map():
    lower, upper, correct, z = drawn(50)
    found = CertifiedIsotonic(5e-324).fit(lower, upper, correct, z)
    assert found.transform(z) == pytest.approx(CertifiedIsotonic(0).fit(lower, upper, correct, z).transform(z))


# ----------------------------------------------------------------------------------------------------- what it carries


@settings(max_examples=50)
@given(problems(), TRADEOFFS, st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1))
def test_mapped_intervals_hold_the_mapped_value_of_anything_inside(p, tradeoff, drawn_ends):
    ends = np.sort([pair[:2] for pair in drawn_ends], axis=1)
    inside = ends[:, 0] + np.array([part for _, _, part in drawn_ends]) * (ends[:, 1] - ends[:, 0])
    made = fitted(p, tradeoff)
    low, high = made.intervals(ends[:, 0], ends[:, 1])
    for z in (inside, np.nextafter(ends[:, 0], 2), np.nextafter(ends[:, 1], -1)):
        mapped = made.transform(np.clip(z, ends[:, 0], ends[:, 1]))
        assert (low <= mapped).all()
        assert (mapped <= high).all()


def test_a_flat_map_keeps_all_confidences_in_one_bin():
    """Ties are one confidence: a constant has its own gap as its worst case, and equal-mass bins do not split it."""
    _, _, correct, z = drawn()
    made = CertifiedIsotonic(1).fit(np.zeros(z.size), np.ones(z.size), correct)
    low, high = made.intervals(np.zeros(z.size), np.ones(z.size))
    np.testing.assert_array_equal(low, high)
    assert calibration_error(low, high, correct).value == pytest.approx(0, abs=1e-12)
    assert equal_mass_ece(made.transform(z), correct, bins=10) == pytest.approx(0, abs=1e-12)
    moved = 1 - correct  # the same map on samples that are right where those were wrong
    gap = abs(moved.mean() - low[0])
    assert calibration_error(low, high, moved).value == pytest.approx(gap, abs=1e-12)
    assert equal_mass_ece(made.transform(z), moved, bins=10) == pytest.approx(gap, abs=1e-12)


def test_flat_parts_are_not_split_by_equal_mass_bins():
    lower, upper, correct, z = drawn()
    mapped = CertifiedIsotonic(1).fit(lower, upper, correct).transform(z)
    levels = np.unique(mapped)
    assert levels.size < z.size
    gaps = [abs(np.sum(correct[mapped == level]) - np.sum(mapped[mapped == level])) for level in levels]
    # As many bins as samples: each level is a bin of its own.
    assert equal_mass_ece(mapped, correct, bins=z.size) == pytest.approx(sum(gaps) / z.size, abs=1e-9)


# ---------------------------------------------------------------------------------------------------------- degenerate


@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize("n", [1, 5])
def test_one_class_only_gives_that_constant(outcome, n):
    z = np.linspace(0.2, 0.9, n)
    made = CertifiedIsotonic(0.5).fit(z - 0.1, z + 0.1, np.full(n, outcome), z)
    assert made.transform([0, 0.5, 1]).tolist() == [outcome] * 3


def test_a_map_that_was_not_fitted_says_so():
    for ask in (CertifiedIsotonic().transform, lambda z: CertifiedIsotonic().intervals(z, z)):
        with pytest.raises(NotFittedError, match="call fit first"):
            ask([0.5])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lower": [0.1, np.nan]}, r"lower\[1\] is nan; .* not certified"),
        ({"upper": [0.5, 1.5]}, r"upper\[1\] is 1.5, outside \[0, 1\]; pass ends"),
        ({"lower": [0.6, 0.1]}, r"lower\[0\] is above upper\[0\]; are the two swapped"),
        ({"lower": [0.1]}, r"upper has shape \(2, 1\) and lower \(1, 1\)"),
        ({"lower": [True, False]}, "lower holds true/false"),
        ({"correct": [1, 2]}, r"correct\[1\] is 2, neither 0 nor 1"),
        ({"correct": [1, 0, 1]}, "lengths differ: lower has 2, correct has 3"),
        ({"confidence": [0.2]}, "lengths differ: correct has 2, confidence has 1"),
        ({"confidence": [0.2, -1]}, r"confidence\[1\] is -1, outside"),
        ({"confidence": None}, "confidence is missing: with tradeoff 0.5"),
        ({"certified": [1, 3]}, r"certified\[1\] is 3.*true or false"),
        ({"certified": [1]}, r"certified has shape \(1, 1\)"),
        ({"certified": [0, 0]}, "no sample to fit to is certified.*smaller radius, or tradeoff=0"),
        ({"radius_weight": [1, 2]}, r"radius_weight has shape \(2,\); pass one weight for each of 1 radii"),
        ({"radius_weight": [-1]}, r"radius_weight\[0\] is -1"),
        ({"radius_weight": [np.nan]}, r"radius_weight\[0\] is nan"),
        ({"radius_weight": [0]}, "at least one must be positive"),
        ({"tradeoff": 1.5}, "tradeoff is 1.5; pass a number from 0"),
        ({"tradeoff": "x"}, "tradeoff is 'x'; pass a number from 0"),
        ({"tradeoff": np.nan}, "tradeoff is nan; pass a number from 0"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(changes, message):
    given_ = {"lower": [0.1, 0.2], "upper": [0.5, 0.6], "correct": [1, 0], "confidence": [0.2, 0.4], "tradeoff": 0.5}
    given_ |= changes
    with pytest.raises(InputError, match=message):
        CertifiedIsotonic(given_.pop("tradeoff")).fit(**given_)


def test_the_place_of_a_bad_end_names_its_radius():
    ends = np.full((3, 2), 0.5)
    ends[2, 1] = 1.25
    with pytest.raises(InputError, match=r"lower\[2, 1\] is 1.25, outside \[0, 1\]"):
        CertifiedIsotonic(1).fit(ends, np.ones((3, 2)), [1, 0, 1])
