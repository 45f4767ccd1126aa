"""Graphs in rows: arrows lead down, boxes stand apart, and no arrow runs behind a box."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal.report._layers import LANE, layers

NAMES = tuple("abcdefghi")


@st.composite
def graphs(draw):
    count = draw(st.integers(1, len(NAMES)))
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else []
    # An order that is not that of the names.
    order = draw(st.permutations(range(count)))
    return NAMES[:count], [(NAMES[order[a]], NAMES[order[b]]) for a, b in chosen]


@given(graphs(), st.integers(1, 4))
def test_every_arrow_leads_down_through_every_row_and_every_box_has_a_place(graph, most):
    names, arrows = graph
    placed = layers(names, arrows, most)
    assert sorted(name for row in placed.rows for name in row) == sorted(names)
    assert all(1 <= len(row) <= most for row in placed.rows)
    assert set(placed.ways) == set(arrows)
    for (start, stop), way in placed.ways.items():
        assert (way[0], way[-1]) == (placed.middles[start], placed.middles[stop])
        assert [row for _, row in way] == list(range(placed.middles[start][1], placed.middles[stop][1] + 1))
        assert len(way) > 1


@given(graphs(), st.integers(1, 4))
def test_boxes_and_lanes_of_a_row_do_not_touch(graph, most):
    placed = layers(*graph, most)
    for number, row in enumerate(placed.rows):
        spans = [(placed.middles[name][0], 1.0) for name in row]
        spans += [(x, LANE) for way in placed.ways.values() for x, at in way[1:-1] if at == number]
        spans.sort()
        edges = [(x - size / 2, x + size / 2) for x, size in spans]
        assert edges[0][0] >= -1e-9
        assert edges[-1][1] <= placed.width + 1e-9
        assert all(before[1] <= after[0] + 1e-9 for before, after in pairwise(edges))


@given(graphs(), st.integers(1, 4))
def test_what_nothing_points_to_stands_above_all_others(graph, most):
    names, arrows = graph
    placed = layers(names, arrows, most)
    top = [placed.middles[name][1] for name in names if all(stop != name for _, stop in arrows)]
    others = [placed.middles[name][1] for name in names if any(stop == name for _, stop in arrows)]
    assert max(top) < min(others, default=len(names))


def test_arrows_that_need_not_cross_do_not():
    placed = layers(["a", "b", "c", "d"], [("a", "d"), ("b", "c")])
    (a, _), (b, _), (c, _), (d, _) = (placed.middles[name] for name in "abcd")
    assert (a < b) == (d < c)


def test_a_circle_is_refused():
    with pytest.raises(ValueError, match="arrows lead around in a circle"):
        layers(["a", "b"], [("a", "b"), ("b", "a")])


def test_no_boxes_need_no_rows():
    assert layers([], []).rows == ()
