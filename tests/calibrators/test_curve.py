"""A curve through knots is monotone as computed, also between numbers that are next to each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal.calibrators._curve import MonotoneCurve

UNIT = st.floats(0, 1)


@st.composite
def curves(draw):
    x = sorted(draw(st.sets(UNIT, min_size=1, max_size=8)))
    y = sorted(draw(st.lists(UNIT, min_size=len(x), max_size=len(x))))
    return MonotoneCurve(np.array(x), np.array(y))


@settings(max_examples=150)
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
