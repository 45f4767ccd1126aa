"""The curve of an isotonic regression is that of scikit-learn, and places are counted exactly."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from certcal._isotonic import counted
from certcal.calibrators._points import Points
from certcal.calibrators._pooled import isotonic_curve

SAMPLES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=30)


def points_of(samples):
    places = sorted({x for x, _, _ in samples})
    total = sum(w for _, _, w in samples)
    sums = [[sum(w for x, c, w in samples if (x, c) == (place, hit)) / total for place in places] for hit in (1, 0)]
    return Points(np.array(places) / 9, np.array(sums[0]), np.array(sums[1]))


@settings(max_examples=60)
@given(SAMPLES)
def test_the_curve_is_that_of_scikit_learn_everywhere(samples):
    x, c, w = (np.array(column, float) for column in zip(*samples, strict=True))
    peer = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(x / 9, c, sample_weight=w)
    grid = np.linspace(0, 1, 101)
    np.testing.assert_allclose(isotonic_curve(points_of(samples))(grid), peer.predict(grid), atol=1e-9)


@given(SAMPLES)
def test_knots_are_the_ends_of_flat_parts_and_no_others(samples):
    curve = isotonic_curve(points_of(samples))
    inner = curve.y[1:-1]
    assert not ((inner == curve.y[:-2]) & (inner == curve.y[2:])).any()


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=40))
def test_places_are_counted_as_by_a_dictionary(samples):
    places, correct = (np.array(column) for column in zip(*samples, strict=True))
    x, n, right = counted(places.astype(float), correct.astype(np.uint8))
    every, hits = Counter(places.tolist()), Counter(place for place, hit in samples if hit)
    assert x.tolist() == sorted(every)
    assert n.tolist() == [every[place] for place in x.tolist()]
    assert right.tolist() == [hits[place] for place in x.tolist()]


def test_counting_takes_minus_zero_as_zero_and_leaves_its_input_alone():
    places = np.array([0.0, -0.0, 1.0])
    x, n, right = counted(places, np.array([1, 0, 1], np.uint8))
    assert (x.tolist(), n.tolist(), right.tolist()) == ([0.0, 1.0], [2, 1], [1, 1])
    assert np.signbit(places).tolist() == [False, True, False]
