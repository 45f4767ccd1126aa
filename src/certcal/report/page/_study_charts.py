"""What is drawn beside the answers of a study: boxes, points, lines with bands, tables."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise

from certcal._html import Child, Raw, element, join, table
from certcal._text import counted
from certcal.report.numbers import between, brief
from certcal.report.page._axes import Axis, covering, ticks
from certcal.report.page._pieces import aside, clipped, figure, region, scrolling, shown
from certcal.report.page._study_matrix import matrix_figure
from certcal.report.page._svg import WIDTH, Frame, chart, coordinate, legend
from certcal.study import Boxes, Lines, Matrix, Points, Table
from certcal.study._findings import Chart

# Points beyond this many have no name under the pointer, and further rows of a table are in the JSON only.
MOST_NAMED, MOST_ROWS, MOST_BOXES = 400, 200, 60
_SHADES = 5
# Lines in one picture.
_TOGETHER = 6
_NUMBER = re.compile(r"[-+−]?[\d.,]*\s?%?")
_MOST_NARROW, _MOST_BESIDE = 14, 8
# Room for the texts beside an axis, and for both sides of a chart.
_LEFT, _SIDES = 66, 84
# Width of a letter, as large as it is on a phone.
_LETTER = 7.6


def chart_figure(key: str, drawn: Chart) -> Raw:
    """One chart with its title, its legend and its numbers.

    Parameters
    ----------
    key
        A name of our own making, unique on the page.
    drawn
        Of :func:`certcal.study.review`.
    """
    if isinstance(drawn, Matrix):
        return matrix_figure(key, drawn)
    if isinstance(drawn, Boxes):
        return _boxes(key, drawn)
    if isinstance(drawn, Points):
        return _points(key, drawn)
    if isinstance(drawn, Lines):
        return _lines(key, drawn)
    return _table(key, drawn)


def is_wide(drawn: Chart) -> bool:
    """Whether a chart needs the whole width of a page for itself."""
    if isinstance(drawn, Matrix):
        return len(drawn.names) > _MOST_BESIDE
    if isinstance(drawn, Boxes):
        return len(drawn.boxes) > _MOST_NARROW
    return isinstance(drawn, Table) and len(drawn.header) > 4


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _zero(frame: Frame) -> Raw | None:
    """A line at zero where values lie on both sides of it."""
    across = frame.y.low < 0 < frame.y.high
    return frame.segment((frame.x.low, 0.0), (frame.x.high, 0.0), "zero") if across else None


def _boxes(key: str, drawn: Boxes) -> Raw:
    boxes = drawn.boxes[:MOST_BOXES]
    ends = [value for box in boxes for value in (box.low, box.high, box.median)]
    few = len(boxes) <= _MOST_NARROW
    width = WIDTH if few else 1000
    frame = Frame(
        Axis(0.0, float(max(1, len(boxes))), (), ""),
        covering(ends, _cut(drawn.up, 36), low=None if any(value < 0 for value in ends) else 0.0),
        width=width - _SIDES,
        left=_LEFT,
    )
    middles = [place + 0.5 for place in range(len(boxes))]
    sides = [(middle - 0.3, middle + 0.3) for middle in middles]
    labels, room = _box_names([_cut(box.name, 20) for box in boxes], frame)
    medians = [
        frame.segment((left, box.median), (right, box.median), "median")
        for (left, right), box in zip(sides, boxes, strict=True)
        if math.isfinite(box.median)
    ]
    picture = chart(
        key,
        clipped(drawn.title),
        f"{counted(len(boxes), 'distribution')} side by side; the table has the quartiles of each.",
        frame.furniture(x_axis=False, label_gap=_LEFT - 12),
        _zero(frame),
        labels,
        element(
            "text",
            _cut(drawn.across, 60),
            x=coordinate(frame.left + frame.width / 2),
            y=coordinate(frame.bottom + room + 19),
            class_="middle name",
        ),
        frame.whiskers(middles, [box.low for box in boxes], [box.high for box in boxes]),
        frame.bars(
            [left for left, _ in sides],
            [right for _, right in sides],
            [box.first for box in boxes],
            [box.third for box in boxes],
            "box",
        ),
        medians,
        None if any(map(math.isfinite, ends)) else frame.empty("nothing to draw"),
        height=frame.bottom + room + 26,
        width=width,
        size=None if few else "wide",
    )
    rows = [
        [shown(box.name, 60), f"{box.n:,}", *map(brief, (box.low, box.first, box.median, box.third, box.high))]
        for box in drawn.boxes[:MOST_ROWS]
    ]
    heads = [
        _cut(drawn.across, 60) or "name",
        "models",
        "lower end",
        "1st quartile",
        "median",
        "3rd quartile",
        "upper end",
    ]
    numbers = table(heads, rows, clipped(drawn.title), numeric=range(1, 7), row_headers=True)
    said = "A box holds the middle half, with the median; lines reach to the last models within 1.5 of its height."
    more = f"The first {MOST_BOXES} of {len(drawn.boxes):,} are drawn." if len(boxes) < len(drawn.boxes) else ""
    return figure(
        picture if few else scrolling(picture, region(key, drawn.title)),
        join(said, aside(more, drawn.note)),
        heading=shown(drawn.title),
        numbers=scrolling(numbers, region(key, drawn.title, "Numbers of ")),
    )


def _box_names(names: Sequence[str], frame: Frame) -> tuple[list[Raw], float]:
    """Names below their boxes, upright where they are too long to stand beside each other, and the room they take."""
    longest = max(map(len, names), default=0)
    upright = longest * _LETTER > frame.width / max(1, len(names)) - 4
    made: list[Raw] = []
    for place, name in enumerate(names):
        x, y = frame.across(place + 0.5), frame.bottom + (8 if upright else 16)
        if upright:
            at = f"{coordinate(x + 4)} {coordinate(y)}"
            made.append(
                element("text", name, x=coordinate(x + 4), y=coordinate(y), class_="end", transform=f"rotate(-90 {at})")
            )
        else:
            made.append(element("text", name, x=coordinate(x), y=coordinate(y), class_="middle"))
    return made, 8 + longest * _LETTER if upright else 20


def _points(key: str, drawn: Points) -> Raw:
    xs: list[float] = drawn.x.tolist()
    ys: list[float] = drawn.y.tolist()
    frame = Frame(_axis(xs, drawn.across), _axis(ys, drawn.up), left=_LEFT, width=WIDTH - _SIDES, height=270)
    third: list[float] | None = None if drawn.colour is None else drawn.colour.tolist()
    shades = [0] * len(xs) if third is None else _shades(third)
    named = len(xs) <= MOST_NAMED
    marks: list[Raw] = []
    for shade in range(_SHADES):
        chosen = [
            place
            for place, own in enumerate(shades)
            if own == shade and math.isfinite(xs[place]) and math.isfinite(ys[place])
        ]
        paths = [f"M{coordinate(frame.across(xs[place]))} {coordinate(frame.up(ys[place]))}h0" for place in chosen]
        kind = f"point shade-{shade if third is not None else _SHADES - 2}"
        if named:
            marks += [
                element("path", element("title", _named(drawn, place)), class_=kind, d=path)
                for place, path in zip(chosen, paths, strict=True)
            ]
        elif paths:
            marks.append(element("path", class_=kind, d="".join(paths)))
    anything = any(math.isfinite(x) and math.isfinite(y) for x, y in zip(xs, ys, strict=True))
    picture = chart(
        key,
        clipped(drawn.title),
        f"{counted(len(xs), 'model')} as points: {_cut(drawn.up, 80)} against {_cut(drawn.across, 80)}.",
        frame.furniture(label_gap=_LEFT - 12),
        _zero(frame),
        marks,
        None if anything else frame.empty("nothing to draw"),
        height=frame.bottom + 46,
    )
    keys = None if third is None or not anything else _shade_legend(third, drawn.colour_name)
    pointed = "Point at a model for its name." if named and anything else ""
    return figure(picture, aside(pointed, drawn.note), heading=shown(drawn.title), legend=keys)


def _named(drawn: Points, place: int) -> str:
    name = clipped(drawn.names[place], 90) if place < len(drawn.names) else ""
    third = "" if drawn.colour is None else f", {_cut(drawn.colour_name, 40)} {brief(float(drawn.colour[place]))}"
    return f"{name}: {brief(float(drawn.x[place]))}, {brief(float(drawn.y[place]))}{third}"


def _axis(values: Sequence[float], name: str) -> Axis:
    """An axis around the values; a single one stands in its middle."""
    low, high = _ends(values)
    some = any(map(math.isfinite, values))
    around = [low - 0.1 * (abs(low) or 1), high + 0.1 * (abs(high) or 1)] if some and low == high else values
    return covering(around, _cut(name, 40), low=None)


def _shades(values: Sequence[float]) -> list[int]:
    """A step for each value: equal parts of the way from the smallest to the largest."""
    low, high = _ends(values)
    wide = high - low
    return [
        min(_SHADES - 1, int(_SHADES * (value - low) / wide)) if math.isfinite(value) and wide > 0 else 0
        for value in values
    ]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else (0.0, 0.0)


def _shade_legend(values: Sequence[float], name: str) -> Raw:
    low, high = _ends(values)
    edges = [low + (high - low) * step / _SHADES for step in range(_SHADES + 1)]
    entries = [
        element(
            "li",
            element(
                "svg",
                element("path", class_=f"point shade-{shade}", d="M7 7h0"),
                viewBox="0 0 14 14",
                class_="spot",
                aria_hidden="true",
            ),
            f"{brief(start)} to {brief(stop)}",
        )
        for shade, (start, stop) in enumerate(pairwise(edges))
    ]
    title = element("li", shown(f"{_cut(name, 60)}:"))
    return element("ul", title, entries if high > low else brief(low), class_="legend")


def _lines(key: str, drawn: Lines) -> Raw:
    """At most six lines in a picture, each with its band."""
    count = len(drawn.names)
    pictures = math.ceil(count / _TOGETHER)
    parts = [range(count * part // pictures, count * (part + 1) // pictures) for part in range(pictures)]
    ends = [value for rows in (drawn.values, drawn.low, drawn.high) for value in rows.ravel().tolist()]
    xs = list(drawn.x)
    made: list[Child] = []
    for number, part in enumerate(parts):
        up = covering(ends, _cut(drawn.up, 40), low=None)
        frame = Frame(_places(xs, drawn.across), up, left=_LEFT, width=WIDTH - _SIDES, height=250)
        made += [
            chart(
                f"{key}-{number}",
                f"{clipped(drawn.title)}{f', part {number + 1}' if number else ''}",
                f"{counted(len(part), 'line')} over {_cut(drawn.across, 80)}; the table has every value.",
                frame.furniture(label_gap=_LEFT - 12),
                _zero(frame),
                [
                    frame.band(xs, drawn.low[place].tolist(), drawn.high[place].tolist(), series)
                    for series, place in enumerate(part)
                ],
                [frame.line(xs, drawn.values[place].tolist(), series) for series, place in enumerate(part)],
                None if any(map(math.isfinite, ends)) else frame.empty("nothing to draw"),
                height=frame.bottom + 46,
            ),
            legend(*((f"line {series}", _cut(drawn.names[place], 48)) for series, place in enumerate(part))),
        ]
    values, lows, highs = (numbers.tolist() for numbers in (drawn.values, drawn.low, drawn.high))
    rows = [
        [shown(name, 60), *map(_spread, values[place], lows[place], highs[place])]
        for place, name in enumerate(drawn.names)
    ]
    heads = [_cut(drawn.across, 60) or "at", *(brief(x) if x % 1 else f"{x:,.0f}" for x in xs)]
    caption = f"{clipped(drawn.title)}, with intervals"
    numbers = table(heads, rows, caption, numeric=range(1, len(heads)), row_headers=True)
    return figure(
        join(made) if made else element("p", "There is nothing to draw."),
        join("Bands are the intervals of the points that they join.", aside(drawn.note)),
        heading=shown(drawn.title),
        numbers=scrolling(numbers, region(key, drawn.title, "Numbers of ")),
    )


def _spread(value: float, low: float, high: float) -> Raw:
    return join(brief(value), element("span", between(low, high), class_="spread"))


def _places(xs: Sequence[float], name: str) -> Axis:
    """The axis of the places of lines; logarithmic where they go over more than a decade."""
    label = _cut(name, 60)
    low, high = min(xs, default=0.0), max(xs, default=1.0)
    if not high > low:
        return Axis(low - 0.5, high + 0.5, ((low, _count(low)),), label)
    if low <= 0 or high < 8 * low:
        return Axis(low, high, ticks(low, high), label)
    axis = Axis(low, high, (), f"{label} (log)", log=True)
    marked: list[tuple[float, str]] = []
    for x in sorted(xs, reverse=True):
        room = (WIDTH - _SIDES) * (axis.at(marked[-1][0]) - axis.at(x)) if marked else math.inf
        if room > (_LETTER + 1) * len(_count(x)) + 6:
            marked.append((x, _count(x)))
    return Axis(low, high, tuple(marked), axis.label, log=True)


def _count(value: float) -> str:
    return f"{value:,.0f}" if value % 1 == 0 else f"{value:g}"


def _table(key: str, drawn: Table) -> Raw:
    numeric = [
        column
        for column in range(len(drawn.header))
        if all(
            not isinstance(cell, str) or _NUMBER.fullmatch(cell) for line in drawn.rows for cell in line[column:][:1]
        )
    ]
    rows = [[_cell(value) for value in line] for line in drawn.rows[:MOST_ROWS]]
    rest = len(drawn.rows) - len(rows)
    more = f"{counted(rest, 'further row')} in the JSON only." if rest > 0 else ""
    made = table(
        [shown(each, 60) for each in drawn.header], rows, element("strong", shown(drawn.title)), numeric=numeric
    )
    return figure(scrolling(made, region(key, drawn.title)), aside(drawn.note, more))


def _cell(value: str | float) -> Child:
    if isinstance(value, str):
        return shown(value, 120)
    return f"{value:,}" if isinstance(value, int) else brief(value)
