"""A matrix as coloured cells: with their numbers, or as a picture when there are many.

Blue is positive, orange negative, and the paper's own colour is zero. The sign never rests on colour alone: it is
written in the cells, and in a picture negative cells carry a dash.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import groupby

from certcal.report.charts import Heatmap
from certcal.report.html.elements import Raw, element, join
from certcal.report.html.markup import as_markup, clip_end, clip_middle, details, note, scrolling
from certcal.report.html.svg import WIDTHS, coordinate, picture
from certcal.report.numbers import minus

# Numbers are written into the cells up to this many columns; beyond the second number nothing is drawn.
_MOST_WRITTEN, _MOST_DRAWN = 20, 160
_MOST_MEDIUM = 45
_STEPS = 10
_GAP, _LABEL = 15, 29
_NUMBERED = re.compile(r"[\s_,]{0,9}\d{1,9}(\s*bins)?$")


def heatmap_picture(key: str, title: str, description: str, heatmap: Heatmap) -> Raw:
    """The matrix with its scale; a large one with a line that says what the pointer is on, and with its numbers."""
    names = heatmap.names
    values: list[list[float]] = [[float(value) for value in row] for row in heatmap.values]
    if not names:
        return note("There is nothing to draw.")
    if len(names) > _MOST_DRAWN:
        return element("p", f"{len(names):,} columns are too many to draw; the JSON has the numbers.")
    label = f"{clip_middle(title)} ({key.replace('-', ' ')})"
    if len(names) <= _MOST_WRITTEN:
        return join(
            scrolling(_table_of_cells(names, values, description, key=key, coloured=True), label), _colour_scale()
        )
    pointed = element(
        "p", "Point at a cell to read it.", class_="note", data_said=key, data_needs_script=True, hidden=True
    )
    numbers = _table_of_cells(names, values, "Each pair once.", key=key)
    return join(
        scrolling(_picture(key, title, description, names, values), label),
        _colour_scale(),
        pointed,
        note("Lines separate groups of columns whose names differ only in a number."),
        details("Numbers of this figure", scrolling(numbers, f"Numbers of {label}")),
    )


def _shade(value: float) -> str:
    """The class of a cell: its sign and its step, or that it is undefined."""
    if math.isnan(value):
        return "undefined"
    step = max(-_STEPS, min(_STEPS, round(_STEPS * value)))
    return f"minus-{-step}" if step < 0 else f"plus-{step}"


def _cell_text(value: float) -> str:
    return "" if math.isnan(value) else minus(f"{round(value, 2) + 0.0:.2f}")


def _colour_scale() -> Raw:
    steps = [value / _STEPS for value in range(-_STEPS, _STEPS + 1)]
    cells = [element("path", class_=f"cell {_shade(value)}", d=f"M{place} .5h1") for place, value in enumerate(steps)]
    dashes = element("path", class_="dash", d="".join(f"M{place}.3 .5h.4" for place in range(_STEPS)))
    return element(
        "p",
        element("span", "−1, opposite order"),
        element("svg", cells, dashes, viewBox=f"0 0 {len(steps)} 1", class_="scale", aria_hidden="true"),
        element("span", "+1, same order"),
        class_="heat-scale",
    )


def _table_of_cells(
    names: Sequence[str], values: Sequence[Sequence[float]], caption: str, *, key: str, coloured: bool = False
) -> Raw:
    """All cells as a table; without colours only one of each pair, since the two are the same."""
    kind = ("heat upright" if max(map(len, names)) > 5 else "heat") if coloured else "pairs"
    heads = [element("th", element("span", as_markup(name, 48)), scope="col") for name in names]
    lines = [
        element(
            "tr",
            element("th", as_markup(name, 48), scope="row"),
            [
                element("td", _cell_text(value), class_=f"cell {_shade(value)}" if coloured else None)
                for value in (line if coloured else line[: row + 1])
            ],
        )
        for row, (name, line) in enumerate(zip(names, values, strict=True))
    ]
    return element(
        "table",
        element("caption", as_markup(caption, 1000)),
        element("thead", element("tr", element("td"), heads)),
        element("tbody", lines),
        class_=kind,
        id=f"{key}-numbers",
    )


def _picture(key: str, title: str, description: str, names: Sequence[str], values: Sequence[Sequence[float]]) -> Raw:
    count = len(values)
    size = "medium" if count <= _MOST_MEDIUM else "wide"
    blocks = _blocks_of_names(names)
    margin = round(22 + 7.2 * min(_LABEL, max(len(name) for name, _, _ in blocks)))
    cell = (WIDTHS[size] - margin - 10) / count
    side = coordinate(count * cell)
    borders = [coordinate(margin + stop * cell) for _, _, stop in blocks[:-1]]
    return picture(
        key,
        title,
        f"{clip_middle(description, 800)} The table below has every number.",
        _labels(blocks, cell, margin),
        element(
            "g",
            [element("path", class_=f"cell {kind}", d=path) for kind, path in _runs(values).items()],
            transform=f"translate({margin} {coordinate(margin + cell / 2)}) scale({cell:.5g})",
        ),
        element(
            "path", class_="border", d="".join(f"M{place} {margin}v{side}M{margin} {place}h{side}" for place in borders)
        ),
        element("rect", x=margin, y=margin, width=side, height=side, class_="sensor", data_cells=key),
        width=WIDTHS[size],
        height=margin + count * cell + 4,
        size=size,
    )


def _runs(values: Sequence[Sequence[float]]) -> dict[str, str]:
    """A path for each step of the scale: neighbours of one colour are one stroke. The last has the negative signs."""
    paths: dict[str, list[str]] = {}
    dashes: list[str] = []
    for row, line in enumerate(values):
        place = 0
        for kind, members in groupby(line, _shade):
            length = sum(1 for _ in members)
            paths.setdefault(kind, []).append(f"M{place} {row}h{length}")
            if kind.startswith("minus"):
                dashes += [f"M{place + each}.3 {row}h.4" for each in range(length)]
            place += length
    found = {kind: "".join(pieces) for kind, pieces in paths.items()}
    return {**found, "dash": "".join(dashes)} if dashes else found


def _blocks_of_names(names: Sequence[str]) -> list[tuple[str, int, int]]:
    """Neighbours whose names differ in a number at their end only, as a name with its first and its last place."""
    found: list[tuple[str, int, int]] = []
    for name, members in groupby(names, lambda name: _NUMBERED.sub("", name) or name):
        start = found[-1][2] if found else 0
        found.append((name, start, start + sum(1 for _ in members)))
    return found


def _labels(blocks: Sequence[tuple[str, int, int]], cell: float, margin: int) -> list[Raw]:
    """Names of the blocks to the left and above, moved apart where they would cover each other."""
    middles = [margin + cell * (start + stop) / 2 for _, start, stop in blocks]
    places = _move_apart(middles, margin + 4, margin + cell * blocks[-1][2] - 4)
    edge = margin - 2
    made: list[Raw] = []
    for (name, _, _), middle, place in zip(blocks, middles, places, strict=False):
        text = clip_end(name, _LABEL)
        at = f"{coordinate(place + 4)} {edge - 12}"
        made += [
            element("path", class_="lead", d=f"M{edge} {coordinate(middle)}L{edge - 9} {coordinate(place)}"),
            element("path", class_="lead", d=f"M{coordinate(middle)} {edge}L{coordinate(place)} {edge - 9}"),
            element("text", text, x=edge - 12, y=coordinate(place + 4), class_="end"),
            element("text", text, x=coordinate(place + 4), y=edge - 12, transform=f"rotate(-90 {at})"),
        ]
    return made


def _move_apart(places: Sequence[float], low: float, high: float) -> list[float]:
    """Places near the given ones, in their order, that are far enough apart; none where there is no room."""
    if _GAP * (len(places) - 1) > high - low:
        return []
    found: list[float] = []
    for place in places:
        found.append(max(place, low) if not found else max(place, found[-1] + _GAP))
    limit = high
    for index in range(len(found) - 1, -1, -1):
        found[index] = min(found[index], limit)
        limit = found[index] - _GAP
    return found
