"""Isotonic regression and its curve, which is monotone as computed, also between numbers next to each other."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from certcal import InputError
from certcal.calibrators import CertifiedIsotonic, IsotonicCalibration
from certcal.calibrators._isotonic import MonotoneCurve
from certcal.metrics.isotonic import count_places

UNIT = st.floats(0, 1)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(1, 80), st.sampled_from([3, 1000]), st.booleans())
def test_it_is_the_regression_of_scikit_learn(seed, n, places, weighted):
    rng = np.random.default_rng([seed, 3])
    z, c = rng.integers(0, places + 1, n) / places, rng.integers(0, 2, n)
    w = (rng.random(n) + 0.01) * (rng.random(n) < 0.9) if weighted else None  # some weigh nothing
    if weighted:
        w[0] = 1.0
    other = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(z, c, sample_weight=w)
    values = rng.random(50)
    assert IsotonicCalibration().fit(z, c, w).transform(values) == pytest.approx(other.predict(values), abs=1e-12)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(1, 80), st.sampled_from([3, 1000]))
def test_it_is_certified_isotonic_regression_without_an_attack(seed, n, places):
    rng = np.random.default_rng([seed, 4])
    z, c = rng.integers(0, places + 1, n) / places, rng.integers(0, 2, n)
    certified = CertifiedIsotonic(tradeoff=0).fit(np.zeros(n), np.ones(n), c, z)
    values = np.concatenate([rng.random(50), z])
    assert IsotonicCalibration().fit(z, c).transform(values) == pytest.approx(certified.transform(values), abs=1e-12)
    knots = certified.curve_.y  # the ends of flat parts and no others
    assert not ((knots[1:-1] == knots[:-2]) & (knots[1:-1] == knots[2:])).any()


def test_single_precision_confidences_that_are_close_are_not_taken_as_equal():
    z = np.array([0.5, 0.5 + 2**-23], np.float32)
    assert IsotonicCalibration().fit(z, [0, 1]).transform(z).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("outcome", [0, 1])
def test_one_class_gives_a_constant(outcome):
    assert IsotonicCalibration().fit([0.2, 0.9], [outcome] * 2).transform([0.0, 1.0]).tolist() == [outcome] * 2


@st.composite
def curves(draw):
    x = sorted(draw(st.sets(UNIT, min_size=1, max_size=8)))
    y = sorted(draw(st.lists(UNIT, min_size=len(x), max_size=len(x))))
    return MonotoneCurve(np.array(x), np.array(y))


@settings(max_examples=75)
@given(curves(), st.lists(UNIT, min_size=2, max_size=20))
def test_a_larger_number_never_gets_a_smaller_value_not_even_the_next_one(curve, values):
    near = np.concatenate([values, curve.x])
    z = np.sort(np.concatenate([near, np.nextafter(near, 2), np.nextafter(near, -1)]).clip(0, 1))
    found = curve(z)
    assert (np.diff(found) >= 0).all()
    assert found.min() >= curve.y[0]
    assert found.max() <= curve.y[-1]


@given(curves())
def test_the_curve_goes_through_its_knots_and_is_flat_outside_them(curve):
    np.testing.assert_array_equal(curve(curve.x), curve.y)
    np.testing.assert_array_equal(curve(np.array([-1.0, 2.0])), curve.y[[0, -1]])


@given(curves(), st.lists(UNIT, min_size=1, max_size=20))
def test_values_are_those_of_linear_interpolation(curve, values):
    np.testing.assert_allclose(curve(np.array(values)), np.interp(values, curve.x, curve.y), atol=1e-12)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([0.1, 0.1], [0.2, 0.3], "strictly ascending"),
        ([0.1, np.nan], [0.2, 0.3], "strictly ascending"),
        ([-1e308, 1e308], [0.2, 0.3], r"in \[0, 1\] and strictly ascending"),
        ([0.1, 0.2], [0.3, 0.2], "not descend"),
        ([0.1, 0.2], [0.3, 1.2], r"in \[0, 1\]"),
        ([0.1, 0.2], [0.3, np.nan], r"in \[0, 1\]"),
        ([], [], "at least one"),
        ([0.1], [0.2, 0.3], "as many values as places"),
    ],
)
def test_knots_that_make_no_monotone_curve_are_refused(x, y, message):
    with pytest.raises(InputError, match=message):
        MonotoneCurve(np.array(x), np.array(y))


def test_no_value_passes_the_knot_after_it_because_of_rounding():
    """y0 + (y1 - y0) is often not y1; it may be above."""
    ends = np.sort(10 ** np.random.default_rng(0).uniform(-3, 0, (3000, 2)), axis=1)
    assert (ends[:, 0] + (ends[:, 1] - ends[:, 0]) > ends[:, 1]).any()
    for low, high in ends:
        before, at = MonotoneCurve([0.0, 1.0], [low, high])(np.array([np.nextafter(1, 0), 1.0]))
        assert before <= at == high


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=40))
def test_places_are_counted_as_by_a_dictionary(samples):
    places, correct = (np.array(column) for column in zip(*samples, strict=True))
    x, n, right = count_places(places.astype(float), correct.astype(np.uint8))
    every, hits = Counter(places.tolist()), Counter(place for place, hit in samples if hit)
    assert x.tolist() == sorted(every)
    assert n.tolist() == [every[place] for place in x.tolist()]
    assert right.tolist() == [hits[place] for place in x.tolist()]


def test_counting_takes_minus_zero_as_zero_and_leaves_its_input_alone():
    places = np.array([0.0, -0.0, 1.0])
    x, n, right = count_places(places, np.array([1, 0, 1], np.uint8))
    assert (x.tolist(), n.tolist(), right.tolist()) == ([0.0, 1.0], [2, 1], [1, 1])
    assert np.signbit(places).tolist() == [False, True, False]
