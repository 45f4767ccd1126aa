"""Where the boxes of a graph that points downwards stand: rows, the order in each, and the way of every arrow.

Every arrow leads to a lower row. One that passes rows in between has a lane of its own through each, so that it never
runs behind a box. Nothing here knows what the boxes mean, or with what they are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

LANE = 0.3  # width of a lane, in boxes
_SWEEPS = 6


@dataclass(frozen=True)
class Layers:
    """Places of boxes and arrows, in widths of a box across and rows down.

    Attributes
    ----------
    rows
        Names from the top row to the last, each from left to right.
    middles
        By name: the middle of the box, and its row.
    ways
        By arrow, as (from, to): the places it goes through, the boxes' own first and last.
    width
        Of the widest row, its lanes included.

    Examples
    --------
    >>> placed = layers(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    >>> placed.rows, [row for _, row in placed.ways["a", "c"]]
    ((('a',), ('b',), ('c',)), [0, 1, 2])
    """

    rows: tuple[tuple[str, ...], ...]
    middles: Mapping[str, tuple[float, int]]
    ways: Mapping[tuple[str, str], tuple[tuple[float, int], ...]]
    width: float


def layers(names: Sequence[str], arrows: Iterable[tuple[str, str]], most: int = 4) -> Layers:
    """Put boxes into rows of at most ``most``, each below all that point to it, with few arrows across another."""
    number = {name: place for place, name in enumerate(names)}
    edges = [(number[start], number[stop]) for start, stop in dict.fromkeys(arrows)]
    row_of = _rows(len(names), edges, most)
    grid: list[list[int]] = [[] for _ in range(max(row_of, default=-1) + 1)]
    for place, row in enumerate(row_of):
        grid[row].append(place)
    # Lanes have the numbers that follow those of the boxes.
    chains: list[list[int]] = []
    last = len(names)
    for start, stop in edges:
        lanes = range(last, last + row_of[stop] - row_of[start] - 1)
        for row, lane in enumerate(lanes, row_of[start] + 1):
            grid[row].append(lane)
        last = max(last, lanes.stop)
        chains.append([start, *lanes, stop])
    at, width = _ordered(grid, [pair for chain in chains for pair in pairwise(chain)], len(names))
    return Layers(
        tuple(tuple(names[each] for each in row if each < len(names)) for row in grid),
        {name: (at[place], row_of[place]) for name, place in number.items()},
        {
            (names[chain[0]], names[chain[-1]]): tuple(
                (at[each], row_of[chain[0]] + step) for step, each in enumerate(chain)
            )
            for chain in chains
        },
        width,
    )


def _rows(count: int, edges: Sequence[tuple[int, int]], most: int) -> list[int]:
    """Boxes that nothing points to come first, then those that only these point to, and so on: whole rows each."""
    above = [[start for start, stop in edges if stop == box] for box in range(count)]
    joined = {box for edge in edges for box in edge}
    row_of: dict[int, int] = {}
    free = 0
    while len(row_of) < count:
        ready = [box for box in range(count) if box not in row_of and all(each in row_of for each in above[box])]
        if not ready:
            raise ValueError("arrows lead around in a circle; nothing stands on top")
        # Boxes without an arrow stand where no arrow has to pass them.
        ready.sort(key=joined.__contains__)
        rows = -(-len(ready) // most)
        for place, box in enumerate(ready):
            row_of[box] = free + place * rows // len(ready)
        free += rows
    return [row_of[box] for box in range(count)]


def _ordered(grid: list[list[int]], links: Sequence[tuple[int, int]], boxes: int) -> tuple[dict[int, float], float]:
    """Move each entry of a row near those it is joined to, up and down by turns; keep the tidiest order."""
    best, least = [list(row) for row in grid], _untidiness(grid, links, boxes)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row in grid[1:] if down else grid[-2::-1]:
            at, _ = _places(grid, boxes)
            wanted: dict[int, float] = {}
            for each in row:
                near = [at[a if down else b] for a, b in links if (b if down else a) == each]
                wanted[each] = sum(near) / len(near) if near else at[each]
            row.sort(key=wanted.__getitem__)
        if (found := _untidiness(grid, links, boxes)) < least:
            best, least = [list(row) for row in grid], found
    grid[:] = best
    return _places(grid, boxes)


def _places(grid: Sequence[Sequence[int]], boxes: int) -> tuple[dict[int, float], float]:
    """Middles across when every row stands in the middle, and the width of the widest."""
    sizes = [[1.0 if each < boxes else LANE for each in row] for row in grid]
    width = max(map(sum, sizes), default=0.0)
    at: dict[int, float] = {}
    for row, own in zip(grid, sizes, strict=True):
        start = (width - sum(own)) / 2
        for each, size in zip(row, own, strict=True):
            at[each] = start + size / 2
            start += size
    return at, width


def _untidiness(grid: Sequence[Sequence[int]], links: Sequence[tuple[int, int]], boxes: int) -> tuple[int, float]:
    """How often arrows cross, and how far they go sideways."""
    order = {each: (row, place) for row, entries in enumerate(grid) for place, each in enumerate(entries)}
    ends = [(order[a], order[b]) for a, b in links]
    at, _ = _places(grid, boxes)
    crossings = sum(
        a[0] == c[0] and (a[1] - c[1]) * (b[1] - d[1]) < 0
        for place, (a, b) in enumerate(ends)
        for c, d in ends[place + 1 :]
    )
    return crossings, round(sum(abs(at[a] - at[b]) for a, b in links), 6)
