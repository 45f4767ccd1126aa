"""Charts as inline SVG: bars, lines and bands in a frame. What they look like is said once, in the page's style sheet.

A chart is drawn in units that are about pixels at the width of a phone, and scales with the place it is given. All bars
(or steps, or markers) of one kind are a single path, so that thousands of them stay small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from certcal._html import Child, Raw, element, join
from certcal.report.page._axes import Axis

WIDTH = 420
# A line of a chart: a colour, a dash and a marker that belong together, in this order.
SERIES = ("blue", "orange", "green", "purple", "sky", "grey", "black", "olive")
_MARKERS = ("circle", "square", "triangle", "diamond", "cross", "circle", "turned", "slab")


@dataclass(frozen=True)
class Frame:
    """The plotting area of a chart and its axes; makes marks at the right places.

    Values that are not finite are left out of every mark.

    Attributes
    ----------
    x, y
        The axes.
    left, top, width, height
        Place of the plotting area inside the chart, in its units.

    Examples
    --------
    >>> from certcal.report.page._axes import unit
    >>> frame = Frame(unit("confidence"), unit("accuracy"), left=50, top=10, width=100, height=100)
    >>> frame.bars([0.0], [0.5], [0.0], [0.25], "accuracy")
    '<path class="accuracy" d="M50 110H100V85H50Z"></path>'
    """

    x: Axis
    y: Axis
    left: float = 54
    top: float = 12
    width: float = WIDTH - 54 - 14
    height: float = 240

    @property
    def bottom(self) -> float:
        """The lower edge of the plotting area."""
        return self.top + self.height

    def across(self, value: float) -> float:
        """Horizontal place of a value."""
        return self.left + self.width * self.x.at(value)

    def up(self, value: float) -> float:
        """Vertical place of a value."""
        return self.bottom - self.height * self.y.at(value)

    def furniture(self, *, x_axis: bool = True, label_gap: float = 42) -> Raw:
        """Grid, axes, ticks and names; without the names along x when another chart stands directly below.

        Parameters
        ----------
        x_axis
            Whether ticks and name of x are written.
        label_gap
            How far to the left of the plotting area the name of y stands.
        """
        right = self.left + self.width
        grid = "".join(
            f"M{coordinate(self.left)} {coordinate(self.up(place))}H{coordinate(right)}" for place, _ in self.y.ticks
        )
        across = "".join(f"M{coordinate(self.across(place))} {coordinate(self.bottom)}v4" for place, _ in self.x.ticks)
        middle = self.top + self.height / 2
        side = self.left - label_gap
        return element(
            "g",
            element("path", class_="grid", d=grid) if grid else None,
            element(
                "path",
                class_="axis",
                d=f"M{coordinate(self.left)} {coordinate(self.bottom)}H{coordinate(right)}{across}",
            ),
            [
                element("text", text, x=coordinate(self.left - 7), y=coordinate(self.up(place) + 4), class_="end")
                for place, text in self.y.ticks
            ],
            [
                element("text", text, x=coordinate(self.across(place)), y=coordinate(self.bottom + 18), class_="middle")
                for place, text in self.x.ticks
            ]
            if x_axis
            else None,
            element(
                "text",
                self.x.label,
                x=coordinate(self.left + self.width / 2),
                y=coordinate(self.bottom + 37),
                class_="middle name",
            )
            if x_axis
            else None,
            element(
                "text",
                self.y.label,
                x=coordinate(side),
                y=coordinate(middle),
                class_="middle name",
                transform=f"rotate(-90 {coordinate(side)} {coordinate(middle)})",
            )
            if self.y.label
            else None,
        )

    def bars(
        self, lefts: Iterable[Any], rights: Iterable[Any], starts: Iterable[Any], ends: Iterable[Any], kind: str
    ) -> Raw:
        """Upright rectangles between ``starts`` and ``ends``, all of one kind (a class of the style sheet)."""
        pieces: list[str] = []
        for corners in zip(lefts, rights, starts, ends, strict=True):
            left, right, start, end = map(float, corners)
            if not all(map(math.isfinite, (left, right, start, end))):
                continue
            near, far = coordinate(self.across(left)), coordinate(self.across(right))
            low, high = coordinate(self.up(start)), coordinate(self.up(end))
            if low != high and near != far:
                pieces.append(f"M{near} {low}H{far}V{high}H{near}Z")
        return element("path", class_=kind, d="".join(pieces)) if pieces else Raw("")

    def line(self, xs: Sequence[Any], ys: Sequence[Any], series: int = 0, *, markers: bool = True) -> Raw:
        """A line through points, with the colour, dash and markers of a series; it is broken where a value is missing.

        Parameters
        ----------
        xs, ys
            The points.
        series
            Number of the line, from 0.
        markers
            Whether each point is marked.
        """
        points = self._points(xs, ys)
        if not any(points):
            return Raw("")
        kind = SERIES[series % len(SERIES)]
        drawn = "".join(
            "M" + "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in run) for run in points if len(run) > 1
        )
        dots = [_marker(_MARKERS[series % len(_MARKERS)], x, y) for run in points for x, y in run]
        return join(
            element("path", class_=f"line {kind}", d=drawn) if drawn else None,
            element("path", class_=f"dot {kind}", d="".join(dots)) if markers or not drawn else None,
        )

    def steps(self, xs: Sequence[Any], ys: Sequence[Any], series: int = 0) -> Raw:
        """A staircase: from each x on, the height is y until the next x (as of a distribution function)."""
        points = [point for run in self._points(xs, ys) for point in run]
        if not points:
            return Raw("")
        drawn = f"M{coordinate(points[0][0])} {coordinate(points[0][1])}" + "".join(
            f"H{coordinate(x)}V{coordinate(y)}" for x, y in points[1:]
        )
        drawn += f"H{coordinate(self.left + self.width)}"
        return element("path", class_=f"line {SERIES[series % len(SERIES)]}", d=drawn)

    def marks(self, xs: Sequence[Any], ys: Sequence[Any], series: int = 0) -> Raw:
        """The markers of a series without its line, to tell staircases apart."""
        shape, kind = (each[series % len(each)] for each in (_MARKERS, SERIES))
        return self.dots(xs, ys, f"dot {kind}", shape)

    def band(self, xs: Sequence[Any], lows: Sequence[Any], highs: Sequence[Any], series: int = 0) -> Raw:
        """The area between two lines."""
        whole = [
            (self.across(x), self.up(low), self.up(high))
            for x, low, high in zip(xs, lows, highs, strict=True)
            if all(map(math.isfinite, (x, low, high)))
        ]
        if len(whole) < 2:
            return Raw("")
        there = "L".join(f"{coordinate(x)} {coordinate(high)}" for x, _, high in whole)
        back = "L".join(f"{coordinate(x)} {coordinate(low)}" for x, low, _ in reversed(whole))
        return element("path", class_=f"band {SERIES[series % len(SERIES)]}", d=f"M{there}L{back}Z")

    def whiskers(self, xs: Iterable[Any], lows: Iterable[Any], highs: Iterable[Any], kind: str = "whisker") -> Raw:
        """Upright lines from ``lows`` to ``highs``."""
        pieces = [
            f"M{coordinate(self.across(x))} {coordinate(self.up(low))}V{coordinate(self.up(high))}"
            for x, low, high in zip(xs, lows, highs, strict=True)
            if all(map(math.isfinite, (x, low, high)))
        ]
        return element("path", class_=kind, d="".join(pieces)) if pieces else Raw("")

    def dots(self, xs: Sequence[Any], ys: Sequence[Any], kind: str = "dot ink", shape: str = "circle") -> Raw:
        """Points without a line; shapes are circle, square, triangle (also turned), diamond, cross and slab."""
        pieces = [_marker(shape, x, y) for run in self._points(xs, ys) for x, y in run]
        return element("path", class_=kind, d="".join(pieces)) if pieces else Raw("")

    def segment(self, start: tuple[float, float], end: tuple[float, float], kind: str) -> Raw:
        """A straight line between two points, such as the diagonal (``kind="ideal"``)."""
        ends = [f"{coordinate(self.across(x))} {coordinate(self.up(y))}" for x, y in (start, end)]
        return element("path", class_=kind, d=f"M{'L'.join(ends)}")

    def empty(self, words: str) -> Raw:
        """Words in the middle of a chart that has nothing to show."""
        return element(
            "text",
            words,
            x=coordinate(self.left + self.width / 2),
            y=coordinate(self.top + self.height * 0.3),
            class_="middle empty",
        )

    def _points(self, xs: Sequence[Any], ys: Sequence[Any]) -> list[list[tuple[float, float]]]:
        """Runs of points without a gap."""
        runs: list[list[tuple[float, float]]] = [[]]
        for x, y in zip(xs, ys, strict=True):
            if math.isfinite(x) and math.isfinite(y):
                runs[-1].append((self.across(float(x)), self.up(float(y))))
            elif runs[-1]:
                runs.append([])
        return runs


def chart(
    key: str, title: str, description: str, *marks: Child, height: float, width: float = WIDTH, size: str | None = None
) -> Raw:
    """Marks as one picture with a name and a text that stands for it where it cannot be seen.

    Parameters
    ----------
    key
        A name of our own making, unique on the page; titles are found by it.
    title, description
        What the picture is, and what it shows, in a sentence or two.
    marks
        From a :class:`Frame`.
    height, width
        Size of the picture in its units.
    size
        "medium" or "wide" for a picture that is not made smaller on a phone, but scrolls there.
    """
    return element(
        "svg",
        element("title", title, id=f"{key}-title"),
        element("desc", description, id=f"{key}-desc"),
        element("g", marks, aria_hidden="true"),
        viewBox=f"0 0 {coordinate(width)} {coordinate(height)}",
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        class_="chart" if size is None else f"chart {size}",
    )


def swatch(kind: str) -> Raw:
    """A small sample of a mark for a legend: the class of an area, or what the mark is.

    Marks are "line 0" for a series ("line 0 plain" where its points are not marked), "ideal", "edge", "whisker", and
    "dot blue" or, with another shape, "dot blue square".
    """
    words = kind.split()
    if words[0] == "line":
        series = int(words[1])
        colour, marker = SERIES[series % len(SERIES)], _MARKERS[series % len(_MARKERS)]
        inside = join(
            element("path", class_=f"line {colour}", d="M1 7H27"),
            element("path", class_=f"dot {colour}", d=_marker(marker, 14, 7)) if "plain" not in words else None,
        )
    elif words[0] == "dot":
        shape = words.pop() if words[-1] in _MARKERS else "circle"
        inside = element("path", class_=" ".join(words), d=_marker(shape, 14, 7))
    elif kind == "whisker":
        inside = element("path", class_=kind, d="M14 1V13")
    elif words[0] in ("ideal", "edge"):
        inside = element("path", class_=kind, d="M1 7H27")
    else:
        inside = element("path", class_=kind, d="M2 1H26V13H2Z")
    return element("svg", inside, viewBox="0 0 28 14", class_="swatch", aria_hidden="true")


def legend(*entries: tuple[str, str]) -> Raw:
    """What marks mean: pairs of a kind (see :func:`swatch`) and words."""
    return element("ul", [element("li", swatch(kind), words) for kind, words in entries], class_="legend")


def _marker(shape: str, x: float, y: float) -> str:
    a, b = coordinate(x), coordinate(y)
    if shape == "square":
        return f"M{coordinate(x - 3)} {coordinate(y - 3)}h6v6h-6Z"
    if shape == "triangle":
        return f"M{a} {coordinate(y - 4)}l4 7h-8Z"
    if shape == "diamond":
        return f"M{a} {coordinate(y - 4.2)}l4.2 4.2l-4.2 4.2l-4.2-4.2Z"
    if shape == "cross":
        return f"M{coordinate(x - 3.4)} {coordinate(y - 1)}h2.4v-2.4h2v2.4h2.4v2h-2.4v2.4h-2v-2.4h-2.4Z"
    if shape == "turned":
        return f"M{a} {coordinate(y + 4)}l4 -7h-8Z"
    if shape == "slab":
        return f"M{coordinate(x - 1.6)} {coordinate(y - 4.4)}h3.2v8.8h-3.2Z"
    return f"M{coordinate(x - 3.2)} {b}a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0Z"


def coordinate(value: float) -> str:
    """A coordinate, to a tenth of a unit."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")
