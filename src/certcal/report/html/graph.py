"""A graph that points downwards: boxes in rows, and arrows that never run behind a box."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from certcal.report.charts import Graph
from certcal.report.html.elements import Raw, element
from certcal.report.html.markup import clip_middle
from certcal.report.html.svg import WIDTHS, coordinate, picture, sample

# Boxes in a row, letters in a line of a box, lines in a box, boxes that are drawn at all.
_MOST, _LETTERS, _LINES, _MOST_BOXES = 4, 12, 2, 40
_GAP, _DOWN, _HIGH, _LOW = 10.0, 44.0, 42.0, 26.0
_TOP, _TIP = 4.0, 7.0
_EDGES = {"firm": "edge firm", "strict": "edge", "weak": "edge weak"}


def graph_picture(key: str, title: str, description: str, graph: Graph) -> Raw:
    """The graph as a picture."""
    if len(graph.names) > _MOST_BOXES:
        return element("p", f"{len(graph.names):,} boxes are too many to draw.")
    width = WIDTHS["normal"]
    looks = {(start, stop): look for start, stop, look in graph.edges}
    placed = graph.placed(_MOST)
    rows: list[tuple[float, float]] = []
    top = _TOP
    for row in placed.rows:
        height = _HIGH if any(len(_wrap_name(name)) > 1 for name in row) else _LOW
        rows.append((top, height))
        top += height + _DOWN
    unit = (width - 2.0) / max(placed.width, _MOST)
    left = (width - unit * placed.width) / 2
    marks: list[Raw] = []
    for edge, way in placed.ways.items():
        marks += _arrow([(left + unit * x, rows[row]) for x, row in way], _EDGES.get(looks[edge], "edge"))
    for name, (x, row) in placed.middles.items():
        marks.append(_box_element(name, left + unit * x, rows[row], unit - _GAP, on_top=name in graph.top))
    return picture(key, title, description, marks, height=sum(rows[-1]) + _TOP if rows else 40)


def graph_legend(graph: Graph) -> list[tuple[Raw, str]]:
    """A sample of each look that the graph has."""
    return [(_sample(look), words) for look, words in graph.entries]


def _sample(look: str) -> Raw:
    if look in ("top", "node"):
        return sample(element("path", class_="node top" if look == "top" else "node", d="M2 1H26V13H2Z"))
    return sample(element("path", class_=_EDGES.get(look, "edge"), d="M1 7H27"))


def _wrap_name(name: str) -> list[str]:
    return textwrap.wrap(clip_middle(name), _LETTERS, max_lines=_LINES, placeholder="…") or [" "]


def _box_element(name: str, x: float, place: tuple[float, float], width: float, *, on_top: bool) -> Raw:
    top, height = place
    lines = _wrap_name(name)
    first = top + height / 2 + 4 - 8 * (len(lines) - 1)
    return element(
        "g",
        element("title", clip_middle(name)),
        element(
            "rect",
            class_="node top" if on_top else "node",
            x=coordinate(x - width / 2),
            y=coordinate(top),
            width=coordinate(width),
            height=coordinate(height),
            rx=4,
        ),
        [
            element("text", line, x=coordinate(x), y=coordinate(first + 16 * step), class_="middle")
            for step, line in enumerate(lines)
        ],
    )


def _arrow(way: Sequence[tuple[float, tuple[float, float]]], kind: str) -> list[Raw]:
    """A line out of the box above, straight through its lanes, into the box below."""
    (x, (top, height)), *through = way
    drawn, y = f"M{coordinate(x)} {coordinate(top + height)}", top + height
    for step, (across, (down, size)) in enumerate(through):
        last = step == len(through) - 1
        end = down - _TIP + 1 if last else down
        middle = coordinate((y + end) / 2)
        drawn += f"C{coordinate(x)} {middle} {coordinate(across)} {middle} {coordinate(across)} {coordinate(end)}"
        x, y = across, end
        if not last:
            y = down + size
            drawn += f"V{coordinate(y)}"
    tip = f"M{coordinate(x)} {coordinate(y + _TIP - 1)}l-4 -{coordinate(_TIP)}h8Z"
    return [element("path", class_=kind, d=drawn), element("path", class_="tip", d=tip)]
