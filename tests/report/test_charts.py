"""Axes with ticks at round places; graphs whose arrows lead down and never run behind a box."""

import math
import re
from importlib.resources import files
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal.report.charts import LANE, PALETTE, SERIES, Axis, Graph, Placed, Stack, counts, covering, ticks

REAL = st.floats(-1e6, 1e6)
NAMES = tuple("abcdefghi")


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
    assert all(float(text.replace(",", "").replace("−", "-")) == place for place, text in marked)


def test_pages_have_the_palette_of_figures() -> None:
    style = (files("certcal.report.html") / "style.css").read_text("utf-8")
    by_day = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", style.partition("@media")[0]))
    assert {name: by_day[name] for name in PALETTE} == PALETTE
    assert all(f".{name} {{ --colour: var(--{name}); }}" in style for name in SERIES)


def test_a_term_looks_the_same_whatever_stands_beside_it() -> None:
    some, others = ["deviation", "own"], ["error on the samples", "variation of eta", "deviation", "other"]
    looks = [Stack(["a"], [dict.fromkeys(terms, 0.1)], ["1"], covering([1], "")).looks for terms in (some, others)]
    assert looks == [
        {"deviation": 1, "own": 0},
        {"error on the samples": 0, "variation of eta": 3, "deviation": 1, "other": 2},
    ]


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


# --- graphs ----------------------------------------------------------------------------------------------------------


def placed(names: tuple[str, ...], arrows: list[tuple[str, str]], most: int = 4) -> Placed:
    return Graph(names, [(*arrow, "weak") for arrow in arrows], frozenset(), {}).placed(most)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    count = draw(st.integers(1, len(NAMES)))
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else []
    # An order that is not that of the names.
    order = draw(st.permutations(range(count)))
    return NAMES[:count], [(NAMES[order[a]], NAMES[order[b]]) for a, b in chosen]


@given(graphs(), st.integers(1, 4))
def test_boxes_have_places_arrows_lead_down_and_nothing_touches(
    graph: tuple[tuple[str, ...], list[tuple[str, str]]], most: int
) -> None:
    names, arrows = graph
    made = placed(names, arrows, most)
    assert sorted(name for row in made.rows for name in row) == sorted(names)
    assert all(1 <= len(row) <= most for row in made.rows)
    assert set(made.ways) == set(arrows)
    for (start, stop), way in made.ways.items():
        assert (way[0], way[-1]) == (made.middles[start], made.middles[stop])
        assert [row for _, row in way] == list(range(made.middles[start][1], made.middles[stop][1] + 1))
        assert len(way) > 1
    for number, row in enumerate(made.rows):
        spans = [(made.middles[name][0], 1.0) for name in row]
        spans += [(x, LANE) for way in made.ways.values() for x, at in way[1:-1] if at == number]
        edges = [(x - size / 2, x + size / 2) for x, size in sorted(spans)]
        assert edges[0][0] >= -1e-9
        assert edges[-1][1] <= made.width + 1e-9
        assert all(before[1] <= after[0] + 1e-9 for before, after in pairwise(edges))
    top = [made.middles[name][1] for name in names if all(stop != name for _, stop in arrows)]
    others = [made.middles[name][1] for name in names if any(stop == name for _, stop in arrows)]
    assert max(top) < min(others, default=len(names))


def test_arrows_that_need_not_cross_do_not() -> None:
    made = placed(("a", "b", "c", "d"), [("a", "d"), ("b", "c")])
    (a, _), (b, _), (c, _), (d, _) = (made.middles[name] for name in "abcd")
    assert (a < b) == (d < c)


def test_a_circle_is_refused_and_no_boxes_need_no_rows() -> None:
    with pytest.raises(ValueError, match="arrows lead around in a circle"):
        placed(("a", "b"), [("a", "b"), ("b", "a")])
    assert placed((), []).rows == ()
