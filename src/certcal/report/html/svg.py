"""Charts as inline SVG. What marks look like is said once, in the page's style sheet.

A chart is drawn in units that are about pixels at the width of a phone, and scales with the place it is given. All bars
(or steps, or markers) of one mark are a single path, so that thousands of them stay small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import assert_never

from certcal.report.charts import (
    MEANINGS,
    SERIES,
    STACKED,
    Axis,
    Band,
    Bars,
    Boxes,
    Cursor,
    Line,
    Look,
    Mark,
    Panel,
    Points,
    Segments,
    Stack,
    Values,
    Words,
)
from certcal.report.html.elements import Child, Raw, element, join
from certcal.report.html.markup import as_markup, clip_end, clip_middle
from certcal.report.numbers import brief

# Width of a picture by the size of its chart.
WIDTHS = {"small": 320, "normal": 420, "medium": 660, "wide": 1000}
# Width of a letter, as large as it is on a phone, of a wide one, and height of a line.
LETTER, _WIDEST, _LINE = 7.4, 8.4, 14.0
# A series is a colour, a dash (of the style sheet) and a marker that belong together.
_MARKERS = ("circle", "square", "triangle", "diamond", "cross", "circle", "turned", "slab")
_INKED = ("ink", "ideal", "zero", "cursor", "whisker", "median", "label", "sign", "lead", "edge")
_COLOURS = MEANINGS | dict.fromkeys(_INKED, "ink")
_AREAS = {
    **{"accuracy": "accuracy", "over": "gap over", "under": "gap under", "count": "count", "box": "box"},
    **{"plus": "bar plus", "minus": "bar minus"},
}
_STROKES = ("ideal", "zero", "cursor", "whisker", "median", "lead", "edge")
_WORDS = ("label", "sign", "idle", "lead", "total")
# Letters of a tick beside a picture.
_LONGEST_TICK = 22
# Points beyond this many have no name under the pointer and no marker of their own shape.
_MOST_NAMED = 400
_SHADES = 5


@dataclass(frozen=True)
class Frame:
    """The plotting area of a panel and its axes."""

    x: Axis
    y: Axis
    left: float
    top: float
    width: float
    height: float

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height

    def across(self, value: float) -> float:
        """Horizontal place of a value."""
        return self.left + self.width * self.x.at(value)

    def up(self, value: float) -> float:
        """Vertical place of a value."""
        return self.bottom - self.height * self.y.at(value)

    def runs(self, x: Values, y: Values) -> list[list[tuple[float, float]]]:
        """Places of points, in runs without a gap."""
        found: list[list[tuple[float, float]]] = [[]]
        for one, two in zip(x, y, strict=True):
            if math.isfinite(one) and math.isfinite(two):
                found[-1].append((self.across(one), self.up(two)))
            elif found[-1]:
                found.append([])
        return [run for run in found if run]


def coordinate(value: float) -> str:
    """A coordinate, to a tenth of a unit."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def picture(
    key: str, title: str, description: str, *marks: Child, height: float, width: float = 420, size: str = "normal"
) -> Raw:
    """Marks as one picture with a name and a text that stands for it; the key is unique on the page."""
    return element(
        "svg",
        element("title", clip_middle(title), id=f"{key}-title"),
        element("desc", clip_middle(description, 1000), id=f"{key}-desc"),
        element("g", marks, aria_hidden="true"),
        viewBox=f"0 0 {coordinate(width)} {coordinate(height)}",
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        class_=f"chart {size}" if size in ("medium", "wide") else "chart",
    )


def panels_picture(key: str, title: str, description: str, panels: Sequence[Panel], size: str) -> Raw:
    """Panels below each other on one x axis, of which the last writes its ticks."""
    width = WIDTHS.get(size, 420)
    longest = max((len(clip_end(text, _LONGEST_TICK)) for panel in panels for _, text in panel.y.ticks), default=0)
    left = max(54.0, 32 + LETTER * longest)
    drawn: list[Child] = []
    bottom = -8.0
    for panel in panels:
        signed = any(isinstance(mark, Words) and mark.look == "sign" for mark in panel.marks)
        top = bottom + 22 + (28 if signed else 20) * bool(panel.title)
        height = panel.height * (0.8 if size == "small" and panel.height > 100 else 1.0)
        frame = Frame(panel.x, panel.y, left, top, width - left - 16, height)
        drawn += [
            _svg_text(clip_end(panel.title, (width - left) / _WIDEST), left, top - 8 - 8 * signed, "total")
            if panel.title
            else None,
            _axes(frame),
            [_mark(mark, frame, panel.marks) for mark in panel.marks],
        ]
        bottom = frame.bottom
        if panel is panels[0] and not any(map(_is_drawn, (mark for each in panels for mark in each.marks))):
            drawn.append(_svg_text("nothing to draw", left + frame.width / 2, top + height * 0.3, "middle empty"))
        if panel is panels[-1]:
            names, room = _x_axis(frame)
            drawn.append(names)
            bottom += room
    return picture(key, title, description, drawn, height=bottom + 4, width=width, size=size)


def _is_drawn(mark: Mark) -> bool:
    """Whether anything of a mark can be seen that is not there in any case."""
    match mark:
        case Line() | Points():
            values: Iterable[float] = mark.y
        case Bars():
            values = mark.end
        case Band():
            values = mark.high
        case Boxes():
            values = mark.median
        case Segments():
            values = (
                [value for ends in mark.ends for value in ends]
                if mark.look not in _STROKES or mark.look == "whisker"
                else ()
            )
        case Words() | Cursor():
            values = ()
        case _:
            assert_never(mark)
    return any(map(math.isfinite, values))


def _svg_text(text: str, x: float, y: float, kind: str | None = None, turn: bool = False) -> Raw:
    at = f"rotate(-90 {coordinate(x)} {coordinate(y)})" if turn else None
    return element("text", text, x=coordinate(x), y=coordinate(y), class_=kind, transform=at)


def _path(kind: str, pieces: Iterable[str]) -> Raw:
    drawn = "".join(pieces)
    return element("path", class_=kind, d=drawn) if drawn else Raw("")


def _axes(frame: Frame) -> Raw:
    right = coordinate(frame.left + frame.width)
    ticks = "".join(f"M{coordinate(frame.across(place))} {coordinate(frame.bottom)}v4" for place, _ in frame.x.ticks)
    return join(
        _path("grid", (f"M{coordinate(frame.left)} {coordinate(frame.up(y))}H{right}" for y, _ in frame.y.ticks)),
        _path("axis", [f"M{coordinate(frame.left)} {coordinate(frame.bottom)}H{right}{ticks}"]),
        [
            _svg_text(clip_end(text, _LONGEST_TICK), frame.left - 7, frame.up(place) + 4, "end")
            for place, text in frame.y.ticks
        ],
        _svg_text(
            clip_end(frame.y.label, max(13, frame.height / _WIDEST)),
            12,
            frame.top + frame.height / 2,
            "middle name",
            turn=True,
        )
        if frame.y.label
        else None,
    )


def _x_axis(frame: Frame) -> tuple[Raw, float]:
    """Ticks and name below a panel, and the room they take; long texts stand upright."""
    ticks = [(frame.across(place), clip_end(text, 22)) for place, text in frame.x.ticks]
    upright = any(
        after - before < LETTER * (len(one) + len(two)) / 2 + 4 for (before, one), (after, two) in pairwise(ticks)
    )
    room = 10 + LETTER * max(len(text) for _, text in ticks) if upright else 20.0 if ticks else 4.0
    texts = [
        _svg_text(text, x + 4, frame.bottom + 9, "end", turn=True)
        if upright
        else _svg_text(text, x, frame.bottom + 18, "middle")
        for x, text in ticks
    ]
    if not frame.x.label:
        return join(texts), room
    name = clip_end(frame.x.label, frame.width / _WIDEST)
    return join(
        texts, _svg_text(name, frame.left + frame.width / 2, frame.bottom + room + 17, "middle name")
    ), room + 22


def _colour(look: Look) -> str:
    return SERIES[look % len(SERIES)] if isinstance(look, int) else _COLOURS.get(look, SERIES[0])


def _area(look: Look) -> str:
    return _AREAS.get(look, f"bar {_colour(look)}") if isinstance(look, str) else f"bar {_colour(look)}"


def _stroke(look: Look) -> str:
    return look if isinstance(look, str) and look in _STROKES else f"line {_colour(look)}"


def _shape(look: Look) -> str:
    return _MARKERS[look % len(_MARKERS)] if isinstance(look, int) else "circle"


def _mark(mark: Mark, frame: Frame, beside: Sequence[Mark]) -> Child:
    match mark:
        case Line():
            return _line_path(mark, frame)
        case Band():
            return _band_path(mark, frame)
        case Bars():
            return _bar_paths(frame, mark.left, mark.right, mark.start, mark.end, _area(mark.look))
        case Points():
            return _point_markers(mark, frame)
        case Segments():
            return _segment_paths(frame, mark.ends, _stroke(mark.look))
        case Words():
            return _texts_beside_points(mark, frame, beside) if mark.beside else _texts_at_points(mark, frame)
        case Boxes():
            return _boxes(mark, frame)
        case Cursor():
            return [
                element(
                    "g",
                    _segment_paths(frame, [(x, frame.y.low, x, frame.y.high)], "cursor"),
                    data_of=mark.choice,
                    data_frame=place,
                    hidden=place != mark.start,
                )
                for place, x in enumerate(mark.x)
            ]
        case _:
            assert_never(mark)


def _line_path(mark: Line, frame: Frame) -> Raw:
    runs = frame.runs(mark.x, mark.y)
    pieces: list[str] = []
    for run in runs:
        (x, y), *rest = [(coordinate(x), coordinate(y)) for x, y in run]
        step = {"post": "H{0}V{1}", "pre": "V{1}H{0}"}.get(mark.steps, "L{0} {1}")
        start = f"M{coordinate(frame.left)} {y}H{x}" if mark.steps == "pre" and run is runs[0] else f"M{x} {y}"
        end = f"H{coordinate(frame.left + frame.width)}" if mark.steps == "post" and run is runs[-1] else ""
        pieces += [start, *(step.format(*point) for point in rest), end] if rest or mark.steps else []
    # A point between two gaps has no line, and would not be seen without a marker.
    marked = [point for run in runs for point in run if mark.markers or len(run) == 1]
    if mark.marked is not None:
        marked = [point for run in frame.runs(*mark.marked) for point in run]
    dots = (_marker(_shape(mark.look), x, y) for x, y in marked)
    stroke = f"{_stroke(mark.look)} guide" if mark.guide and mark.markers else _stroke(mark.look)
    return join(_path(stroke, pieces), _path(f"dot {_colour(mark.look)}", dots))


def _band_path(mark: Band, frame: Frame) -> Raw:
    pieces: list[str] = []
    run: list[tuple[float, float, float]] = []
    for x, low, high in [*zip(mark.x, mark.low, mark.high, strict=True), (math.nan, math.nan, math.nan)]:
        if all(map(math.isfinite, (x, low, high))):
            run.append((frame.across(x), frame.up(low), frame.up(high)))
            continue
        if len(run) > 1:
            there = [f"{coordinate(x)} {coordinate(high)}" for x, _, high in run]
            back = [f"{coordinate(x)} {coordinate(low)}" for x, low, _ in reversed(run)]
            pieces.append(f"M{'L'.join(there + back)}Z")
        run = []
    return _path(f"band {_colour(mark.look)}", pieces)


def _bar_paths(frame: Frame, left: Values, right: Values, start: Values, end: Values, kind: str) -> Raw:
    pieces: list[str] = []
    for corners in zip(left, right, start, end, strict=True):
        if all(map(math.isfinite, corners)):
            near, far = (coordinate(frame.across(value)) for value in corners[:2])
            low, high = (coordinate(frame.up(value)) for value in corners[2:])
            if low != high and near != far:
                pieces.append(f"M{near} {low}H{far}V{high}H{near}Z")
    return _path(kind, pieces)


def _segment_paths(frame: Frame, ends: Iterable[tuple[float, float, float, float]], kind: str) -> Raw:
    return _path(
        kind,
        (
            f"M{coordinate(frame.across(x))} {coordinate(frame.up(y))}"
            f"L{coordinate(frame.across(to))} {coordinate(frame.up(height))}"
            for x, y, to, height in ends
            if all(map(math.isfinite, (x, y, to, height)))
        ),
    )


def _boxes(mark: Boxes, frame: Frame) -> Raw:
    middles = [place + 0.5 for place in range(len(mark.median))]
    left, right = [middle - 0.3 for middle in middles], [middle + 0.3 for middle in middles]
    return join(
        _segment_paths(frame, zip(middles, mark.low, middles, mark.high, strict=True), "whisker"),
        _bar_paths(frame, left, right, mark.first, mark.third, "box"),
        _segment_paths(frame, zip(left, mark.median, right, mark.median, strict=True), "median"),
    )


def _point_markers(mark: Points, frame: Frame) -> Child:
    many = len(mark.x) > _MOST_NAMED
    shades = None if mark.shade is None else _shades(mark.shade)
    by_kind: dict[str, list[tuple[int, str]]] = {}
    for place, (x, y) in enumerate(zip(mark.x, mark.y, strict=True)):
        if not (math.isfinite(x) and math.isfinite(y)):
            continue
        across, up = frame.across(x), frame.up(y)
        if shades is None and not many:
            kind, drawn = f"dot {_colour(mark.look)}", _marker(_shape(mark.look), across, up)
        else:
            kind = f"point {_colour(mark.look)}" if shades is None else f"point shade-{shades[place]}"
            drawn = f"M{coordinate(across)} {coordinate(up)}h0"
        by_kind.setdefault(kind, []).append((place, drawn))
    if many or not mark.names:
        return [_path(kind, (drawn for _, drawn in points)) for kind, points in sorted(by_kind.items())]
    return [
        element("path", element("title", clip_middle(mark.names[place])), class_=kind, d=drawn)
        for kind, points in sorted(by_kind.items())
        for place, drawn in points
    ]


def _finite_range(values: Values) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else (0.0, 0.0)


def _shades(values: Values) -> list[int]:
    """A step for each value: equal parts of the way from the smallest to the largest."""
    low, high = _finite_range(values)
    return [
        min(_SHADES - 1, int(_SHADES * (value - low) / (high - low))) if math.isfinite(value) and high > low else 0
        for value in values
    ]


def _texts_at_points(mark: Words, frame: Frame) -> list[Raw]:
    above, most = (3, 2) if mark.look in ("sign", "idle") else (-4, 20)
    kind = f"middle {mark.look if mark.look in _WORDS else 'label'}"
    return [
        _svg_text(clip_end(text, most), frame.across(x), frame.up(y) - above, kind)
        for x, y, text in zip(mark.x, mark.y, mark.texts, strict=True)
        if text and math.isfinite(x) and math.isfinite(y)
    ]


# Where a text may stand beside its point: offsets of its anchor, and which end of the text that is.
_PLACES = ((8, 4, ""), (-8, 4, "end"), (0, -9, "middle"), (0, 18, "middle"), (8, -7, ""), (8, 15, ""), (-8, -7, "end"))


def _texts_beside_points(mark: Words, frame: Frame, marks: Sequence[Mark]) -> list[Raw]:
    """Texts next to their points, most important first; one that would cover another or a marker is left out.

    Of the places that are left each takes the first that crosses as little of the lines as possible.
    """
    marked = [each for each in marks if isinstance(each, Points) or (isinstance(each, Line) and each.markers)]
    taken = [(x - 4, y - 4, x + 4, y + 4) for each in marked for run in frame.runs(each.x, each.y) for x, y in run]
    lines = [(x - 1, y - 1, x + 1, y + 1) for each in marks for x, y in _along(each, frame)]
    made: list[Raw] = []
    kind = mark.look if mark.look in _WORDS else "label"
    for value, height, full in zip(mark.x, mark.y, mark.texts, strict=True):
        if not (full and math.isfinite(value) and math.isfinite(height)):
            continue
        x, y, text = frame.across(value), frame.up(height), clip_end(full, 40)
        width, free = LETTER * len(text), list[tuple[int, int, tuple[float, float, float, float]]]()
        for place, (dx, dy, anchor) in enumerate(_PLACES):
            left = x + dx - {"end": width, "middle": width / 2, "": 0.0}[anchor]
            box = (left, y + dy - _LINE + 3, left + width, y + dy + 3)
            inside = frame.left < box[0] and box[2] < frame.left + frame.width + 16
            inside = inside and frame.top - 6 < box[1] and box[3] < frame.bottom
            if inside and not any(_covers(box, other) for other in taken):
                free.append((sum(_covers(box, other) for other in lines), place, box))
        if free:
            _, place, box = min(free)
            dx, dy, anchor = _PLACES[place]
            taken.append(box)
            made.append(_svg_text(text, x + dx, y + dy, f"{anchor} {kind}".strip()))
    return made


def _along(mark: Mark, frame: Frame) -> Iterator[tuple[float, float]]:
    """Places a few units apart on the lines of a mark."""
    runs = frame.runs(mark.x, mark.y) if isinstance(mark, Line) else []
    if isinstance(mark, Segments):
        runs = [run for x, y, u, v in mark.ends for run in frame.runs((x, u), (y, v))]
    for run in runs:
        for (x, y), (u, v) in pairwise(run):
            steps = max(1, math.ceil(math.hypot(u - x, v - y) / 4))
            yield from ((x + (u - x) * step / steps, y + (v - y) * step / steps) for step in range(steps + 1))


def _covers(one: tuple[float, float, float, float], two: tuple[float, float, float, float]) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def stack_picture(key: str, title: str, description: str, stack: Stack) -> Raw:
    """Lying bars below their names, with their sums at the right."""
    width, line, bar, top = WIDTHS["normal"], 50, 16, 8
    height = top + line * len(stack.names)
    frame = Frame(stack.axis, Axis(0, 1, (), ""), 10, top, width - 24, height - top)
    looks = stack.looks
    grid = (f"M{coordinate(frame.across(place))} {top}V{coordinate(frame.bottom)}" for place, _ in frame.x.ticks)
    marks: list[Raw] = [_path("grid", grid), _axes(frame)]
    for place, (name, parts, total) in enumerate(zip(stack.names, stack.terms, stack.totals, strict=True)):
        y, start = top + place * line, 0.0
        said = clip_end(total, 24)
        marks += [
            _svg_text(clip_end(name, (width - 34) / _WIDEST - len(said)), 10, y + 14),
            _svg_text(said, width - 14, y + 14, "end total"),
        ]
        for term, value in parts.items():
            if not (math.isfinite(value) and value > 0):
                continue
            near, far = (coordinate(frame.across(each)) for each in (start, start + value))
            start += value
            kind = f"stack-{looks[term] % len(STACKED)}"
            marks.append(_path(kind, [f"M{near} {y + 20}H{far}v{bar}H{near}Z"] if near != far else []))
    names, room = _x_axis(frame)
    return picture(key, title, description, marks, names, height=height + room + 4)


def legend(entries: Iterable[tuple[Raw, str]]) -> Raw:
    """What marks mean: samples of them and words; nothing when there are none."""
    made = [element("li", sample, as_markup(words)) for sample, words in entries]
    return element("ul", made, class_="legend") if made else Raw("")


def stack_legend(stack: Stack) -> list[tuple[Raw, str]]:
    """A sample of each term."""
    kinds = {term: f"stack-{place % len(STACKED)}" for term, place in stack.looks.items()}
    return [(sample(_path(kind, [_RECTANGLE])), term) for term, kind in kinds.items()]


def shade_legend(mark: Points) -> Raw:
    """What the shades of points mean."""
    low, high = _finite_range(() if mark.shade is None else mark.shade)
    edges = [low + (high - low) * step / _SHADES for step in range(_SHADES + 1)]
    steps = [
        element("li", sample(_path(f"point shade-{step}", ["M14 7h0"]), "spot"), f"{brief(start)} to {brief(stop)}")
        for step, (start, stop) in enumerate(pairwise(edges))
    ]
    name = element("li", as_markup(f"{clip_end(mark.shade_label, 60)}:"))
    return element("ul", name, steps if high > low else element("li", brief(low)), class_="legend")


_RECTANGLE = "M2 1H26V13H2Z"


def swatch(mark: Mark) -> Raw:
    """A small sample of a mark."""
    match mark:
        case Line():
            dot = _path(f"dot {_colour(mark.look)}", [_marker(_shape(mark.look), 14, 7)]) if mark.markers else None
            light = " guide" if mark.guide and mark.markers else ""
            return sample(join(_path(f"{_stroke(mark.look)}{light}", ["M1 7H27"]), dot))
        case Segments():
            return sample(_path(_stroke(mark.look), ["M14 1V13" if mark.look == "whisker" else "M1 7H27"]))
        case Points():
            return sample(_path(f"dot {_colour(mark.look)}", [_marker(_shape(mark.look), 14, 7)]))
        case Band():
            return sample(_path(f"band {_colour(mark.look)}", [_RECTANGLE]))
        case Bars():
            return sample(_path(_area(mark.look), [_RECTANGLE]))
        case Words() | Boxes() | Cursor():
            return sample(None)
        case _:
            assert_never(mark)


def sample(inside: Child, kind: str = "swatch") -> Raw:
    """Something small to stand in a legend."""
    box = "7 0 14 14" if kind == "spot" else "0 0 28 14"
    return element("svg", inside, viewBox=box, class_=kind, aria_hidden="true")


def _marker(shape: str, x: float, y: float) -> str:
    a, b = coordinate(x), coordinate(y)
    match shape:
        case "square":
            return f"M{coordinate(x - 3)} {coordinate(y - 3)}h6v6h-6Z"
        case "triangle":
            return f"M{a} {coordinate(y - 4)}l4 7h-8Z"
        case "diamond":
            return f"M{a} {coordinate(y - 4.2)}l4.2 4.2l-4.2 4.2l-4.2-4.2Z"
        case "cross":
            return f"M{coordinate(x - 3.4)} {coordinate(y - 1)}h2.4v-2.4h2v2.4h2.4v2h-2.4v2.4h-2v-2.4h-2.4Z"
        case "turned":
            return f"M{a} {coordinate(y + 4)}l4 -7h-8Z"
        case "slab":
            return f"M{coordinate(x - 1.6)} {coordinate(y - 4.4)}h3.2v8.8h-3.2Z"
        case _:
            return f"M{coordinate(x - 3.2)} {b}a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0Z"
