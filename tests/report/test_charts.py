"""Axes: ticks at round places, ends that hold what is drawn."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal.report.charts import Axis, counts, covering, ticks

REAL = st.floats(-1e6, 1e6)


@given(REAL, st.floats(1e-6, 1e6))
def test_ticks_are_round_rising_and_inside_and_their_texts_are_their_values(low: float, size: float) -> None:
    high = low + size
    marked = ticks(low, high)
    if high <= low:
        assert marked == ()
        return
    places = [place for place, _ in marked]
    assert 1 <= len(places) <= 7
    assert places == sorted(set(places))
    slack = 1e-8 * max(1e-9, size, abs(low))
    assert all(low - slack <= place <= high + slack for place in places)
    assert all(float(text.replace(",", "")) == place for place, text in marked)


@given(st.lists(st.floats(0, 1e4) | st.just(math.nan) | st.just(math.inf), max_size=8))
def test_an_axis_covers_every_finite_value_and_ends_on_a_tick(values: list[float]) -> None:
    axis = covering(values, "value")
    finite = [value for value in values if math.isfinite(value)]
    assert axis.low == 0
    assert axis.high >= max(finite, default=0) * (1 - 1e-5)
    assert axis.ticks[-1][0] == pytest.approx(axis.high)


def test_an_axis_can_start_near_the_smallest_value_and_end_where_it_must() -> None:
    axis = covering([0.62, 0.78], "accuracy", low=None)
    assert 0.5 < axis.low <= 0.62
    assert covering([0.97], "accuracy", most=1.0).high == 1.0


def test_an_axis_of_counts_is_logarithmic_when_small_bars_would_vanish() -> None:
    assert not counts([10, 400]).log
    wide = counts([1, 5_000_000])
    assert wide.log
    assert wide.at(1) > 0
    assert [text for _, text in wide.ticks] == ["1", "1k", "1M"]
    assert counts([]).high == 1
    assert all(place == int(place) for place, _ in counts([0, 3]).ticks)


def test_an_axis_puts_what_lies_beyond_at_its_end() -> None:
    axis = Axis(0.0, 2.0, (), "x")
    assert (axis.at(-1), axis.at(1), axis.at(9)) == (0.0, 0.5, 1.0)
