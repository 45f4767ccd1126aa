"""What the charts of families share: a line for each, the same colour wherever it stands, and never too many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from certcal._html import Raw, element
from certcal.report.page._axes import Axis, covering
from certcal.report.page._pieces import clipped, figure, note
from certcal.report.page._svg import SERIES, WIDTH, Frame, chart, legend
from certcal.smoothing.robustness import Compared, Families

# Families in one picture, and in all pictures of a kind together.
TOGETHER, MOST_DRAWN = len(SERIES), 3 * len(SERIES)
_LEGEND, _SIDES = 28, 68


@dataclass(frozen=True)
class Line:
    """One family in a chart: its place among the families (which decides its colour), its name and its values."""

    place: int
    name: str
    values: Sequence[float]


def members(found: Families, sigma: float) -> list[tuple[int, str, Compared]]:
    """The runs at one noise level: place and name of the family, and the run."""
    return [(found.names.index(name), name, run) for name, run in found.at_sigma(sigma)]


def key_of(sigma: float, found: Families) -> str:
    """A name of our own making for a noise level."""
    return f"sigma-{found.sigmas.index(sigma)}"


def grouped(places: Sequence[int]) -> list[list[int]]:
    """Which of the given entries share a picture: those whose colours differ.

    Examples
    --------
    >>> grouped([0, 1, 7, 8, 9])
    [[0, 1, 2], [3, 4]]
    """
    groups: dict[int, list[int]] = {}
    for entry, place in enumerate(places):
        if place < MOST_DRAWN:
            groups.setdefault(place // TOGETHER, []).append(entry)
    return list(groups.values())


def left_out(found: Families) -> Raw | None:
    """A word about families that have no line."""
    rest = len(found.families) - MOST_DRAWN
    return (
        note(f"{rest:,} further {'families are' if rest > 1 else 'family is'} in the tables only.")
        if rest > 0
        else None
    )


def names_legend(lines: Sequence[tuple[int, str]]) -> Raw:
    """Places and names of families beside what their lines look like."""
    return legend(*((f"line {place}", clipped(name, _LEGEND)) for place, name in lines))


def radius_axis(radii: Sequence[float]) -> Axis:
    """Radii from 0 on; a single one stands in the middle."""
    return covering(radii if len(radii) > 1 else [2 * radii[0] or 1.0], "radius")


def lines_figure(
    key: str,
    title: str,
    radii: Sequence[float],
    lines: Sequence[Line],
    up: Axis,
    said: Sequence[str],
    *,
    caption: str | None,
    heading: str | None = None,
    height: float = 220,
    width: float = WIDTH,
    keys: bool = True,
) -> list[Raw]:
    """A line for each family over the radius, in as many figures as are needed.

    Parameters
    ----------
    key, title
        As for :func:`certcal.report.page._svg.chart`.
    radii
        Where the values are.
    lines
        What is drawn; NaN leaves a gap.
    up
        The axis of the values.
    said
        For each line, what it shows in words.
    caption, heading
        Below and above each figure.
    height, width
        Of the plotting area, and of the whole.
    keys
        Whether the figures have a legend.
    """
    figures: list[Raw] = []
    for part, group in enumerate(grouped([line.place for line in lines])):
        frame = Frame(radius_axis(radii), up, width=width - _SIDES, height=height)
        drawn = [lines[entry] for entry in group]
        zero = frame.segment((frame.x.low, 0.0), (frame.x.high, 0.0), "zero") if up.low < 0 < up.high else None
        anything = any(math.isfinite(value) for line in drawn for value in line.values)
        picture = chart(
            f"{key}-{part}",
            title,
            " ".join(said[entry] for entry in group),
            frame.furniture(),
            zero,
            [frame.line(radii, line.values, line.place, markers=len(radii) <= 40) for line in drawn],
            None if anything else frame.empty("nothing is certified here"),
            height=frame.bottom + 46,
            width=width,
        )
        own = names_legend([(line.place, line.name) for line in drawn]) if keys else None
        figures.append(figure(picture, caption, heading=heading, legend=own))
    return figures


def group_head(words: str, width: int) -> Raw:
    """The row of a table that says what the rows below are about."""
    return element("tr", element("th", words, colspan=width, scope="colgroup"))


def grouped_table(header: Sequence[str], parts: Sequence[tuple[str, Sequence[Sequence[str]]]], caption: str) -> Raw:
    """A table whose rows come in groups with a head each; the first cell of a row is a name, the others are numbers."""
    lines: list[Raw] = []
    for words, rows in parts:
        lines.append(group_head(words, len(header)))
        lines += [
            element(
                "tr",
                element("th", element("bdi", clipped(cells[0], 60)), scope="row"),
                [element("td", cell, class_="number") for cell in cells[1:]],
            )
            for cells in rows
        ]
    heads = [element("th", each, scope="col", class_="number" if place else None) for place, each in enumerate(header)]
    return element(
        "table", element("caption", caption), element("thead", element("tr", heads)), element("tbody", lines)
    )
