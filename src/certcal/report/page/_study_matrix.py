"""Rank correlations between many columns as coloured cells: with their numbers, or as a picture when there are many.

Blue is positive, orange negative, and the paper's own colour is zero. The sign never rests on colour alone: it is
written in the cells, and in a picture negative cells carry a dash.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from certcal._html import Raw, element, join
from certcal._text import counted
from certcal.report.page._pieces import aside, clipped, figure, region, scrolling, shown
from certcal.report.page._svg import chart, coordinate
from certcal.study import Matrix

# Numbers are written into the cells up to this many columns; beyond the second number nothing is drawn.
MOST_WRITTEN, MOST_DRAWN = 20, 160
_STEPS = 10
_MARGIN, _GAP, _LABEL = 206, 15, 29
# Width of a picture with few or many columns, in units that are about pixels.
_SIZES = {"medium": 660, "wide": 1000}
_MOST_MEDIUM = 45
_NUMBERED = re.compile(r"[\s_,]*\d+(\s*bins)?$")


def matrix_figure(key: str, matrix: Matrix) -> Raw:
    """A matrix with its title, its scale and what it was computed from.

    Parameters
    ----------
    key
        A name of our own making, unique on the page.
    matrix
        Of :func:`certcal.study.review`.
    """
    count = len(matrix.names)
    said = f"{matrix.method} rank correlations of {counted(matrix.n, 'model')}."
    heading = shown(matrix.title)
    if not 0 < count <= MOST_DRAWN:
        many = (
            f"{count:,} columns are too many to draw; the JSON has the numbers." if count else "There are no columns."
        )
        return figure(element("p", many), join(said, _noted(matrix)), heading=heading)
    if count <= MOST_WRITTEN:
        picture = scrolling(_table(matrix, said, coloured=True), region(key, matrix.title))
        return figure(picture, _noted(matrix), heading=heading, legend=scale())
    pointed = element(
        "p", "Point at a cell to read it.", class_="note", data_said=key, data_needs_script=True, hidden=True
    )
    numbers = _table(matrix, f"{said} Each pair once.", id=f"{key}-numbers", class_="pairs")
    return figure(
        scrolling(_picture(key, matrix), region(key, matrix.title)),
        join(said, " Lines part groups of columns whose names differ by a number only.", _noted(matrix)),
        heading=heading,
        legend=join(scale(), pointed),
        numbers=scrolling(numbers, region(key, matrix.title, "Numbers of ")),
    )


def _noted(matrix: Matrix) -> Raw | None:
    missing = any(math.isnan(value) for value in matrix.values.ravel().tolist())
    undefined = "An empty cell is undefined: one of its two columns is constant, or too few models have both."
    return aside(*([undefined] if missing else []), matrix.note)


def level(value: float) -> int:
    """The step of the colour scale, from -10 to 10.

    Examples
    --------
    >>> level(0.0), level(0.42), level(-1.0), level(0.04)
    (0, 4, -10, 0)
    """
    return max(-_STEPS, min(_STEPS, round(_STEPS * value)))


def shade(value: float) -> str:
    """The class of a cell: its sign and its step, or that it is undefined.

    Examples
    --------
    >>> shade(0.42), shade(-0.42), shade(0.0), shade(float("nan"))
    ('plus-4', 'minus-4', 'plus-0', 'undefined')
    """
    if math.isnan(value):
        return "undefined"
    step = level(value)
    return f"minus-{-step}" if step < 0 else f"plus-{step}"


def cell_text(value: float) -> str:
    """What is written into a cell.

    Examples
    --------
    >>> cell_text(0.417), cell_text(-0.001), cell_text(-0.05), cell_text(float("nan"))
    ('0.42', '0.00', '−0.05', '')
    """
    return "" if math.isnan(value) else f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def scale() -> Raw:
    """The colours of all steps, with what the ends and the middle mean."""
    steps = [value / _STEPS for value in range(-_STEPS, _STEPS + 1)]
    cells = [element("path", class_=f"cell {shade(value)}", d=f"M{place} .5h1") for place, value in enumerate(steps)]
    dashes = element("path", class_="dash", d="".join(f"M{place}.3 .5h.4" for place in range(_STEPS)))
    return element(
        "p",
        element("span", "−1, opposite order"),
        element("svg", cells, dashes, viewBox=f"0 0 {len(steps)} 1", class_="scale", aria_hidden="true"),
        element("span", "+1, same order"),
        class_="heat-scale",
    )


def _table(matrix: Matrix, caption: str, *, coloured: bool = False, id: str | None = None, class_: str = "") -> Raw:
    """All cells as a table; without colours only one of each pair, since the two are the same."""
    values: list[list[float]] = matrix.values.tolist()
    kind = ("heat upright" if max(map(len, matrix.names)) > 5 else "heat") if coloured else class_
    heads = [element("th", element("span", shown(name, 48)), scope="col") for name in matrix.names]
    lines = [
        element(
            "tr",
            element("th", shown(name, 48), scope="row"),
            [
                element("td", cell_text(value), class_=f"cell {shade(value)}" if coloured else None)
                for value in (line if coloured else line[: row + 1])
            ],
        )
        for row, (name, line) in enumerate(zip(matrix.names, values, strict=True))
    ]
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", element("td"), heads)),
        element("tbody", lines),
        class_=kind,
        id=id,
    )


def _picture(key: str, matrix: Matrix) -> Raw:
    values: list[list[float]] = matrix.values.tolist()
    count = len(values)
    size = "medium" if count <= _MOST_MEDIUM else "wide"
    cell = (_SIZES[size] - _MARGIN - 10) / count
    blocks = _blocks(matrix.names)
    side = coordinate(count * cell)
    borders = [coordinate(_MARGIN + stop * cell) for _, _, stop in blocks[:-1]]
    return chart(
        key,
        clipped(matrix.title),
        f"{counted(count, 'column')} against each other, as coloured cells. The table below has every number.",
        _labels(blocks, cell),
        element(
            "g",
            [element("path", class_=f"cell {kind}", d=path) for kind, path in _runs(values).items()],
            transform=f"translate({_MARGIN} {coordinate(_MARGIN + cell / 2)}) scale({cell:.5g})",
        ),
        element(
            "path",
            class_="border",
            d="".join(f"M{place} {_MARGIN}v{side}M{_MARGIN} {place}h{side}" for place in borders),
        ),
        element(
            "rect",
            x=_MARGIN,
            y=_MARGIN,
            width=side,
            height=side,
            class_="sensor",
            data_cells=key,
        ),
        width=_SIZES[size],
        height=_MARGIN + count * cell + 4,
        size=size,
    )


def _runs(values: Sequence[Sequence[float]]) -> dict[str, str]:
    """A path for each step of the scale: neighbours of one colour are one stroke. The last has the negative signs."""
    paths: dict[str, list[str]] = {}
    dashes: list[str] = []
    for row, line in enumerate(values):
        place = 0
        for kind, members in groupby(line, shade):
            length = sum(1 for _ in members)
            paths.setdefault(kind, []).append(f"M{place} {row}h{length}")
            if kind.startswith("minus"):
                dashes += [f"M{place + each}.3 {row}h.4" for each in range(length)]
            place += length
    found = {kind: "".join(pieces) for kind, pieces in paths.items()}
    return {**found, "dash": "".join(dashes)} if dashes else found


def _blocks(names: Sequence[str]) -> list[tuple[str, int, int]]:
    """Neighbours whose names differ in a number at their end only, as a name with its first and its last place.

    Examples
    --------
    >>> _blocks(["pre_ece_5", "pre_ece_15", "pre_mmce", "accuracy"])
    [('pre_ece', 0, 2), ('pre_mmce', 2, 3), ('accuracy', 3, 4)]
    """
    found: list[tuple[str, int, int]] = []
    for name, members in groupby(names, lambda name: _NUMBERED.sub("", name) or name):
        start = found[-1][2] if found else 0
        found.append((name, start, start + sum(1 for _ in members)))
    return found


def _labels(blocks: Sequence[tuple[str, int, int]], cell: float) -> list[Raw]:
    """Names of the blocks to the left and above, moved apart where they would cover each other."""
    middles = [_MARGIN + cell * (start + stop) / 2 for _, start, stop in blocks]
    places = spread(middles, _GAP, _MARGIN + 4, _MARGIN + cell * blocks[-1][2] - 4)
    if places is None:
        return []
    made: list[Any] = []
    for (name, _, _), middle, place in zip(blocks, middles, places, strict=True):
        text = clipped(name, _LABEL) if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…"
        edge = _MARGIN - 2
        made += [
            element("path", class_="lead", d=f"M{edge} {coordinate(middle)}L{edge - 9} {coordinate(place)}"),
            element("path", class_="lead", d=f"M{coordinate(middle)} {edge}L{coordinate(place)} {edge - 9}"),
            element("text", text, x=edge - 12, y=coordinate(place + 4), class_="end"),
            element(
                "text",
                text,
                x=coordinate(place + 4),
                y=edge - 12,
                transform=f"rotate(-90 {coordinate(place + 4)} {edge - 12})",
            ),
        ]
    return made


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float] | None:
    """Places near the given ones, in their order, that are at least ``gap`` apart; None where there is no room.

    Examples
    --------
    >>> spread([5, 6, 30], 10, 0, 50), spread([48, 49], 10, 0, 50), spread([1, 2, 3], 30, 0, 50)
    ([5, 15, 30], [40, 50], None)
    """
    if gap * (len(places) - 1) > high - low:
        return None
    found: list[float] = []
    for place in places:
        found.append(max(place, low) if not found else max(place, found[-1] + gap))
    limit = high
    for index in range(len(found) - 1, -1, -1):
        found[index] = min(found[index], limit)
        limit = found[index] - gap
    return found
