"""Isotonic regression: the function of the definition, with ties pooled and weights respected."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal.metrics.isotonic import count_places, isotonic
from tests.worst_case.naive import best_map

POINTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1), st.integers(1, 4)), min_size=1, max_size=25)


@given(POINTS)
def test_values_are_those_of_the_definition_with_and_without_weights(points):
    repeated = [(x, c) for x, c, w in points for _ in range(w)]
    exact = best_map([Fraction(x, 16) for x, _ in repeated], [c for _, c in repeated])
    x, c, w = (np.array(column, float) for column in zip(*points, strict=True))
    every = np.array([pair[0] for pair in repeated]) / 16, np.array([pair[1] for pair in repeated], float)
    for found in (isotonic(x / 16, c, w), isotonic(*every)):
        assert found.x.tolist() == [float(place) for place in exact]
        np.testing.assert_allclose(found.value, [float(value) for value in exact.values()], atol=1e-12)
        assert found.mass.sum() == len(repeated)
        assert found.total.sum() == sum(c for _, c in repeated)


@given(POINTS)
def test_blocks_are_the_flat_parts_and_hold_the_mean_of_their_outcomes(points):
    x, c, w = (np.array(column, float) for column in zip(*points, strict=True))
    found = isotonic(x, c, w)
    assert (found.blocks[0], found.blocks[-1]) == (0, found.x.size)
    means = []
    for begin, end in zip(found.blocks[:-1], found.blocks[1:], strict=True):
        means.append(found.total[begin:end].sum() / found.mass[begin:end].sum())
        assert found.value[begin:end] == pytest.approx(means[-1], abs=1e-12)
    assert (np.diff(means) > 0).all()


def test_one_place_has_one_value():
    found = isotonic(np.full(3, 0.5), np.array([1.0, 0.0, 0.0]))
    assert (found.x.tolist(), found.mass.tolist(), found.blocks.tolist()) == ([0.5], [3], [0, 1])
    assert found.value == pytest.approx([1 / 3])


PLACES = st.floats(0, 1) | st.sampled_from([0.0, -0.0, 5e-324, 0.5, np.nextafter(0.5, 1), np.nextafter(1, 0), 1.0])


@given(st.lists(st.tuples(PLACES, st.integers(0, 1)), min_size=1, max_size=25))
def test_places_are_counted_with_their_outcomes_in_ascending_order_also_the_smallest_and_both_zeros(points):
    given_places, outcomes = (list(column) for column in zip(*points, strict=True))
    x, n, right = count_places(np.array(given_places, float), np.array(outcomes, np.uint8))
    assert x.tolist() == sorted(set(given_places))
    assert n.tolist() == [given_places.count(place) for place in x]
    assert right.tolist() == [sum(c for z, c in points if z == place) for place in x]
