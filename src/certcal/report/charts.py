"""Charts as data: axes, panels and marks. What they look like is the renderers' business.

A :class:`Chart` is one picture. Its panels stand below each other and share their x axis. A mark has a *look*: a number
for the line of a series (colour, dash and marker that belong together), or a word for what the mark means, such as
"accuracy", "over", "ideal" or "count". Values that are not finite are left out of every mark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate, count, pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from certcal._base.rounding import minus

if TYPE_CHECKING:
    from certcal.report.document import Table

Values: TypeAlias = "Sequence[float]"
Look: TypeAlias = "int | str"

# How many series can be told apart in one picture.
MOST_SERIES = 8
# Lines and fills of pages and figures by day; the style sheet of pages has them by night. After Okabe and Ito, whom
# colour-blind readers can follow, but dark enough for thin lines; dashes, markers and hatches say the same once more.
PALETTE = {
    **{"blue": "#0072b2", "orange": "#b25f00", "green": "#00795a", "purple": "#a04a7d", "sky": "#2a7fae"},
    **{"grey": "#5f6872", "ink": "#1b1f24", "olive": "#6d6500", "minus": "#e58a2c", "plus": "#3f93cf"},
    **{"blue-fill": "#4b95c4", "orange-fill": "#f3c98b", "green-fill": "#8fd0bc"},
    **{"sky-fill": "#b9def3", "grey-fill": "#868f98"},
}
# What stands for each series, most different first, and for what is a kind of bar.
SERIES = ("blue", "orange", "green", "purple", "sky", "grey", "ink", "olive")
MEANINGS = {"accuracy": "blue", "plus": "blue", "over": "orange", "minus": "orange", "under": "purple", "count": "grey"}
# Terms of bounds that have their place among the looks below wherever they are drawn; others get what is left.
_TERMS = {
    **{"error on the samples": 0, "empirical worst case": 0, "deviation": 1, "certificate failures": 2},
    **{"variation of eta": 3, "scores in a bucket": 4},
    **{"as they are": 0, "reached by an attack": 6, "left open by the verifier": 1, "sampling error": 2},
}
STACKED = (
    *(("blue", ""), ("orange", "////"), ("grey", ".."), ("green", "---"), ("purple", "\\\\\\\\")),
    *(("sky", ""), ("orange", ""), ("green", "")),
)
# Points of a line that are marked one by one.
MOST_MARKED = 41
# Places of an axis that a picture can tell apart.
_PLACES = 800
# Shares that a logit axis may name.
_NEAR_0 = [factor * 10.0**-power for power in range(6, 1, -1) for factor in (1, 2, 5)]
_LOGIT_TICKS = (*_NEAR_0, 0.1, 0.2, 0.5, 0.8, 0.9, *(1 - share for share in reversed(_NEAR_0)))
# Log-odds beyond which a share is not told from 0 or 1.
_FARTHEST = 30.0
# Width of an arrow's lane beside the boxes of a graph, in boxes.
LANE = 0.3


@dataclass(frozen=True)
class Axis:
    """One direction of a chart: its ends, its ticks with their texts, and its name."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    label: str
    log: bool = False
    logit: bool = False

    def at(self, value: float) -> float:
        """Where a value lies, as a share of the axis; what lies beyond an end is put there."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            place = (math.log(max(value, self.low)) - low) / (high - low)
        elif self.logit:
            low, high = log_odds(self.low), log_odds(self.high)
            place = (log_odds(min(self.high, max(value, self.low))) - low) / (high - low)
        else:
            place = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, place))


def unit(label: str) -> Axis:
    """An axis from 0 to 1 with ticks at fifths."""
    return Axis(0.0, 1.0, ticks(0, 1), label)


def percent(label: str) -> Axis:
    """An axis for shares, from 0 to 1, with ticks in per cent."""
    return Axis(0.0, 1.0, tuple((place, f"{100 * place:g}") for place, _ in ticks(0, 1)), f"{label}, %")


def percent_axis(label: str, low: float = 0.0, high: float = 1.0) -> Axis:
    """An axis for shares whose ticks have percent signs."""
    return with_percent_ticks(Axis(low, high, ticks(low, high), label))


def with_percent_ticks(axis: Axis) -> Axis:
    """An axis of shares whose ticks have percent signs."""
    return replace(axis, ticks=tuple((place, f"{100 * place:g}%") for place, _ in axis.ticks))


def log_odds(share: float) -> float:
    """The logit of a share between 0 and 1."""
    return math.log(share) - math.log1p(-share)


def logit_axis(values: Iterable[float], label: str) -> Axis:
    """An axis that spreads out shares near 0 and 1, around those of the values that are neither.

    Examples
    --------
    >>> [text for _, text in logit_axis([0.012, 0.3, 0.8], "score").ticks]
    ['1%', '2%', '5%', '10%', '20%', '50%', '80%']
    """
    inside = [value for value in values if 0 < value < 1] or [0.5]
    low, high = (min(max(log_odds(end), -_FARTHEST), _FARTHEST) for end in (min(inside), max(inside)))
    room = max(0.3, 0.06 * (high - low))
    low, high = low - room, high + room
    kept: list[float] = []
    for share in sorted(_LOGIT_TICKS, key=lambda share: (share not in (0.5, 0.1, 0.9), share)):
        apart = all(abs(log_odds(share) - log_odds(other)) > 0.07 * (high - low) for other in kept)
        if low <= log_odds(share) <= high and apart:
            kept.append(share)
    start, end = (1 / (1 + math.exp(-end)) for end in (low, high))
    kept = kept if len(kept) > 2 else [place for place, _ in ticks(start, end, 4)]
    return Axis(start, end, tuple((share, f"{100 * share:.6g}%") for share in sorted(kept)), label, logit=True)


def named_axis(names: Sequence[str], label: str = "") -> Axis:
    """An axis with a place for each name, in the middle of its unit.

    Examples
    --------
    >>> named_axis(["a", "b"]).ticks
    ((0.5, 'a'), (1.5, 'b'))
    """
    return Axis(0.0, float(max(1, len(names))), tuple((i + 0.5, name) for i, name in enumerate(names)), label)


def covering(values: Iterable[float], label: str, *, low: float | None = 0.0, most: float = math.inf) -> Axis:
    """An axis that holds all finite values and ends on a tick."""
    finite = [float(value) for value in values if math.isfinite(value)] or [0.0, 1.0]
    start = min(finite) if low is None else low
    end = max(max(finite), start)
    end = end if end - start > 1e-200 else start + 1.0
    step = _round_step(start, end)
    top = float(step * math.ceil(end / float(step) - 1e-6))
    bottom = start if low is not None else float(step * math.floor(start / float(step) + 1e-6))
    top = min(most, top)
    return Axis(bottom, top, ticks(bottom, top), label)


def radii_axis(radii: Sequence[float], label: str = "radius") -> Axis:
    """Radii from 0 on; a single one stands in the middle."""
    return covering(radii if len(set(radii)) > 1 else [2 * max(radii, default=0.5) or 1.0], label)


def counts(values: Iterable[int], label: str = "samples") -> Axis:
    """An axis for numbers of samples; logarithmic where the smallest bars would not be seen otherwise."""
    present = [int(value) for value in values if value > 0] or [1]
    high, low = max(present), min(present)
    if high <= 50 * low:
        marked = tuple((place, _with_unit_letter(place)) for place, _ in ticks(0, high, 3) if place == int(place))
        return Axis(0.0, float(high), marked, label)
    decades = math.ceil(math.log10(high))
    step = max(1, math.ceil(decades / 3))
    marked = tuple(
        (10.0**power, _with_unit_letter(10**power)) for power in range(0, decades + 1, step) if 10**power <= high
    )
    return Axis(0.5, float(high), marked, f"{label} (log)", log=True)


def ticks(low: float, high: float, count: int = 5) -> tuple[tuple[float, str], ...]:
    """Round places between two values with their texts: about ``count`` of them."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return ()
    step = _round_step(low, high, count)
    first, last = math.ceil(low / float(step) - 1e-9), math.floor(high / float(step) + 1e-9)
    return tuple((float(step * index), _decimal_text(step * index)) for index in range(first, last + 1))


def _round_step(low: float, high: float, count: int = 5) -> Decimal:
    """The smallest round step that gives at most ``count`` intervals."""
    exponent = math.floor(math.log10((high - low) / count))
    steps = [Decimal(factor).scaleb(exponent) for factor in ("1", "2", "2.5", "5", "10")]
    return next((step for step in steps if (high - low) / float(step) <= count + 1e-9), steps[-1])


def _decimal_text(value: Decimal) -> str:
    if value == 0:
        return "0"
    text = minus(f"{value:,f}")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _with_unit_letter(value: float) -> str:
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


@dataclass(frozen=True)
class Line:
    """A line through points, broken where a value is missing; ``steps`` draws a staircase.

    With steps "post" the height is y from each x on until the next; with "pre" it is y from the x before up to its own.
    ``marked`` are the places of markers that are not those of the line. A ``guide`` only leads the eye from marker to
    marker: it is drawn lightly, since nothing is known between them.
    """

    x: Values
    y: Values
    look: Look = 0
    label: str = ""
    steps: str = ""
    markers: bool = True
    marked: tuple[Values, Values] | None = None
    guide: bool = False


def drawn_steps(x: Values, axis: Axis) -> list[int]:
    """Which steps of a staircase to draw: of those that no picture can tell apart the first and the last.

    Heights hold up to their own place, so a falling staircase is drawn nowhere above the true one, and below it only
    between the two.
    """
    places = [round(_PLACES * axis.at(value)) for value in x]
    around = zip([None, *places], places, [*places[1:], None], strict=False)
    return [step for step, (before, place, after) in enumerate(around) if not before == place == after]


def falling_steps(
    x: Values, y: Values, axis: Axis, look: Look, label: str, marked: tuple[Values, Values] | None = None
) -> Line:
    """A falling staircase to the end of an axis; each height holds up to its own place, and beyond the last it is 0."""
    inside = [(place, height) for place, height in zip(x, y, strict=True) if place < axis.high]
    rest = next((height for place, height in zip(x, y, strict=True) if place >= axis.high), 0.0)
    points = [*inside, (axis.high, rest)]
    kept = [points[step] for step in drawn_steps([place for place, _ in points], axis)]
    return Line([place for place, _ in kept], [height for _, height in kept], look, label, "pre", marked=marked)


@dataclass(frozen=True)
class Band:
    """The area between two lines."""

    x: Values
    low: Values
    high: Values
    look: Look = 0
    label: str = ""


@dataclass(frozen=True)
class Bars:
    """Upright rectangles from ``start`` to ``end`` of their height, all of one look."""

    left: Values
    right: Values
    start: Values
    end: Values
    look: Look
    label: str = ""


@dataclass(frozen=True)
class Points:
    """Points without a line."""

    x: Values
    y: Values
    look: Look = "ink"
    label: str = ""
    names: Sequence[str] = ()  # what each point is called, shown where a renderer can point at it
    shade: Values | None = None  # A third value per point, drawn as a step of a colour scale, and its name
    shade_label: str = ""


@dataclass(frozen=True)
class Segments:
    """Straight lines between pairs of points.

    Looks are "ideal", "cursor", "zero", "lead", "edge", "whisker" or a series.
    """

    ends: Sequence[tuple[float, float, float, float]]
    look: Look
    label: str = ""


def whiskers(x: Values, low: Values, high: Values, label: str = "") -> Segments:
    """Upright lines from ``low`` to ``high``."""
    return Segments(list(zip(x, low, x, high, strict=True)), "whisker", label)


@dataclass(frozen=True)
class Words:
    """Texts at points. With ``beside`` they stand next to their points, and what would cover another is left out."""

    x: Values
    y: Values
    texts: Sequence[str]
    look: str = "label"
    beside: bool = False


@dataclass(frozen=True)
class Boxes:
    """Box plots at the places of a :func:`named` axis."""

    low: Values
    first: Values
    median: Values
    third: Values
    high: Values


@dataclass(frozen=True)
class Cursor:
    """An upright line at the place that a :class:`~certcal.report.document.Choice` has chosen."""

    choice: str
    x: Values
    start: int


Mark: TypeAlias = "Line | Band | Bars | Points | Segments | Words | Boxes | Cursor"


@dataclass(frozen=True)
class Panel:
    """Marks on two axes; ``height`` is in pixels of a page as wide as a phone."""

    x: Axis
    y: Axis
    marks: Sequence[Mark]
    height: float = 240
    title: str = ""


@dataclass(frozen=True)
class Stack:
    """Lying bars that add up terms, one below the other, with the text of their sum."""

    names: Sequence[str]
    terms: Sequence[Mapping[str, float]]
    totals: Sequence[str]
    axis: Axis

    @property
    def looks(self) -> dict[str, int]:
        """The place of each term among ``STACKED``, in the order in which they are drawn."""
        terms = dict.fromkeys(term for own in self.terms for term in own)
        known = {_TERMS[term]: term for term in terms if term in _TERMS}
        free = (place for place in count() if place not in known)
        return {term: _TERMS[term] if term in known.values() else next(free) for term in terms}


@dataclass(frozen=True, eq=False)
class Heatmap:
    """A symmetric matrix of values from -1 to 1; NaN leaves a cell empty."""

    names: Sequence[str]
    values: Any


@dataclass(frozen=True)
class Graph:
    """Boxes in rows, and arrows that lead downwards."""

    names: Sequence[str]
    edges: Sequence[tuple[str, str, str]]
    top: frozenset[str]
    legend: Mapping[str, str]

    @property
    def entries(self) -> list[tuple[str, str]]:
        """Look and words of what the graph has, for its legend."""
        there = {look for _, _, look in self.edges} | {"top" if name in self.top else "node" for name in self.names}
        return [(look, words) for look, words in self.legend.items() if look in there]

    def placed(self, most: int = 4) -> Placed:
        """Boxes by their longest path from the top, in rows of at most ``most``.

        An arrow that passes rows in between has a lane of its own through each, so that it never runs behind a box.
        """
        arrows = list(dict.fromkeys((start, stop) for start, stop, _ in self.edges))
        joined = {name for arrow in arrows for name in arrow}
        rows, row_of = list[list[Any]](), dict[str, int]()
        while left := [name for name in self.names if name not in row_of]:
            ready = [name for name in left if all(a in row_of for a, b in arrows if b == name)]
            if not ready:
                raise ValueError("arrows lead around in a circle; nothing stands on top")
            ready.sort(key=joined.__contains__)  # where no arrow has to pass boxes without one
            count = -(-len(ready) // most)
            for place, name in enumerate(ready):
                row_of[name] = len(rows) + place * count // len(ready)
            rows += [[name for name in ready if row_of[name] == len(rows) + step] for step in range(count)]
        ways: dict[tuple[str, str], list[Any]] = {}
        for start, stop in arrows:
            between = range(row_of[start] + 1, row_of[stop])
            ways[start, stop] = [start, *((start, stop, row) for row in between), stop]
            for row in between:
                rows[row].append((start, stop, row))
        above: dict[Any, list[Any]] = {}
        for way in ways.values():
            for one, two in pairwise(way):
                above.setdefault(two, []).append(one)
        at: dict[Any, float] = {}  # from the middle of the picture
        width = 0.0
        for row in rows:
            row.sort(key=lambda each: fmean(at[other] for other in above[each]) if each in above else 0.0)
            sizes = [1.0 if each in row_of else LANE for each in row]
            ends = list(accumulate(sizes, initial=-sum(sizes) / 2))
            at |= {each: (left + right) / 2 for each, (left, right) in zip(row, pairwise(ends), strict=True)}
            width = max(width, sum(sizes))
        return Placed(
            tuple(tuple(each for each in row if each in row_of) for row in rows),
            {name: (width / 2 + at[name], row) for name, row in row_of.items()},
            {
                arrow: [(width / 2 + at[each], row) for row, each in enumerate(way, row_of[arrow[0]])]
                for arrow, way in ways.items()
            },
            width,
        )


class Placed(NamedTuple):
    """Where a graph's boxes and arrows are, in widths of a box across and rows down.

    ``middles`` has the middle of each box with its row, ``ways`` the places of each arrow, from box to box.
    """

    rows: tuple[tuple[str, ...], ...]
    middles: Mapping[str, tuple[float, int]]
    ways: Mapping[tuple[str, str], Sequence[tuple[float, int]]]
    width: float


@dataclass(frozen=True)
class TextBars:
    """A chart as a terminal shows it: a row per bar, with a mark on it and texts behind it."""

    head: tuple[str, str, *tuple[str, ...]]
    rows: Sequence[tuple[str, float | None, float | None, Sequence[str]]]
    note: str = ""


@dataclass(frozen=True)
class TextRanges:
    """Intervals as a terminal shows them: a row for each on one axis, with a mark at what would be ideal."""

    head: tuple[str, str, *tuple[str, ...]]
    rows: Sequence[tuple[str, tuple[float, float, float], Sequence[str]]]
    axis: Axis
    ideal: float
    note: str = ""


@dataclass(frozen=True)
class Chart:
    """One picture."""

    title: str
    description: str
    panels: Sequence[Panel | Stack | Heatmap | Graph]
    caption: str = ""
    numbers: Table | None = None
    size: str = "normal"
    bars: TextBars | TextRanges | None = None

    def figure(self, ax: Any = None) -> Any:
        """The chart as a matplotlib figure, or drawn into given axes."""
        from certcal.report.mpl import draw

        return draw([self], ax=ax)


class NamedInterval(NamedTuple):
    """A row of a forest plot: NaN where there is no value; texts stand behind it in a terminal."""

    name: str
    low: float
    value: float
    high: float
    texts: Sequence[str] = ()

    def leaves_out(self, ideal: float) -> bool:
        """Whether what would be ideal lies outside."""
        return self.low > ideal or self.high < ideal


def around(values: Iterable[float], ideal: float, label: str, *, log: bool = False) -> Axis:
    """An axis that holds values and what would be ideal; of ratios no further than fifty times from it.

    Examples
    --------
    >>> [text for _, text in around([0.6, 4.0], 1.0, "observed / expected", log=True).ticks]
    ['0.5', '1', '2', '5']
    """
    finite = [float(value) for value in values if math.isfinite(value)]
    if not log:
        return covering([*finite, ideal], label, low=None)
    places = [factor * 10.0**power for power in (-2, -1, 0, 1) for factor in (1, 2, 5)][1:]
    low = max((place for place in places if place <= min([*(v for v in finite if v > 0), 0.5])), default=places[0])
    high = min((place for place in places if place >= max([*finite, 2.0])), default=places[-1])
    return Axis(low, high, tuple((place, f"{place:g}") for place in places if low <= place <= high), label, log=True)


def forest(
    title: str,
    rows: Sequence[NamedInterval],
    axis: Axis,
    ideal: float,
    *,
    head: Sequence[str],
    beyond: str,
    within: str,
    caption: str = "",
) -> Chart:
    """Lying intervals below each other, the first on top, beside a line where each would be ideally."""
    places = [len(rows) - place - 0.5 for place in range(len(rows))]

    def end(value: float) -> float:
        return min(axis.high, max(axis.low, value))

    up = Axis(0.0, float(max(1, len(rows))), tuple((y, row.name) for y, row in zip(places, rows, strict=True)), "")
    marks: list[Mark] = [Segments([(ideal, 0.0, ideal, up.high)], "ideal", "ideal")]
    marks.append(
        Segments([(end(row.low), y, end(row.high), y) for y, row in zip(places, rows, strict=True)], "whisker")
    )
    for look, label, chosen in ((1, beyond, True), (0, within, False)):
        some = [(row, y) for row, y in zip(rows, places, strict=True) if row.leaves_out(ideal) == chosen]
        if any(math.isfinite(row.value) for row, _ in some):
            names = [" ".join((row.name, *row.texts)) for row, _ in some]
            marks.append(Points([end(row.value) for row, _ in some], [y for _, y in some], look, label, names))
    said = [f"{row.name}: {' '.join(row.texts)}." for row in rows]
    text_rows = [(row.name, (row.low, row.value, row.high), row.texts) for row in rows]
    texts = TextRanges((head[0], axis.label, *head[1:]), text_rows, axis, ideal)
    panel = Panel(axis, up, marks, max(70.0, 22.0 * len(rows)))
    return Chart(title, " ".join(said), [panel], caption, bars=texts)


def legend_of(panels: Iterable[Panel | Stack | Heatmap | Graph]) -> list[tuple[Mark, str]]:
    """The marks that have a label, each label once, in their order."""
    found: dict[str, Mark] = {}
    for panel in panels:
        for mark in panel.marks if isinstance(panel, Panel) else ():
            label = getattr(mark, "label", "")
            if label and label not in found:
                found[label] = mark
    return [(mark, label) for label, mark in found.items()]


def curves(
    title: str,
    x: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    x_label: str = "radius",
    y_label: str,
    description: str,
    most: float = math.inf,
    cursor: Cursor | None = None,
    caption: str = "",
    numbers: Table | None = None,
    looks: Sequence[int] | None = None,
    guide: bool = False,
    percent: bool = False,
    at: Words | None = None,
) -> Chart:
    """Several lines over common places from 0 up: the chart that most answers need.

    ``at`` is the place that the answer is about: an upright line, and texts beside it.
    """
    marks: list[Mark] = [cursor] if cursor is not None else []
    marks += [
        Line(x, line, look, name, markers=len(x) <= MOST_MARKED, guide=guide)
        for (name, line), look in zip(series.items(), looks or range(len(series)), strict=True)
    ]
    up = covering([value for line in series.values() for value in line], y_label, most=most)
    up = with_percent_ticks(up) if percent else up
    if at is not None:
        marks += [Segments([(x, up.low, x, up.high) for x in dict.fromkeys(at.x)], "cursor"), at]
    return Chart(title, description, [Panel(radii_axis(x, x_label), up, marks, 220)], caption, numbers)
