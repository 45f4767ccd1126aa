"""Curves over a radius and the terms of bounds, as figures of a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from certcal._html import Child, Raw, element, join, table
from certcal.claims import Bound, round_outward
from certcal.report.page._axes import Axis, covering
from certcal.report.page._frames import framed
from certcal.report.page._pieces import clipped, figure, scrolling, shown
from certcal.report.page._svg import WIDTH, Frame, chart, legend

# Said wherever values at single radii are joined by lines.
BETWEEN = "Claims are made at the radii of the table; lines between them only guide the eye."


def curves(
    key: str,
    title: str,
    xs: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    x_label: str,
    y_label: str,
    description: str,
    most: float = math.inf,
    low: float | None = 0.0,
    steps: bool = False,
    mark: tuple[str, Sequence[int], int] | None = None,
    height: float = 220,
) -> tuple[Raw, Raw]:
    """Several lines over common x values: the picture and its legend.

    Parameters
    ----------
    key, title, description
        As for :func:`certcal.report.page._svg.chart`.
    xs
        Places.
    series
        Values by what they are called, up to eight; NaN leaves a gap.
    x_label, y_label
        Names of the axes.
    most, low
        Where the axis of values ends at most, and where it starts (None: near the smallest).
    steps
        Draw staircases rather than straight lines.
    mark
        An upright line at the place that a slider has chosen: the slider's key, the index into ``xs`` of each of its
        frames, and the frame that is seen at first.
    height
        Of the plotting area.
    """
    values = [value for line in series.values() for value in line]
    across = covering(xs, x_label) if len(set(xs)) > 1 else covering([0.0, 2 * max(xs, default=0.5) or 1.0], x_label)
    frame = Frame(across, covering(values, y_label, low=low, most=most), height=height)
    dotted = len(xs) <= 40
    drawn: list[Raw] = [
        frame.steps(xs, line, place) if steps else frame.line(xs, line, place, markers=dotted)
        for place, line in enumerate(series.values())
    ]
    cursor: list[Raw] = []
    if mark is not None:
        slider, places, start = mark
        cursor = [
            framed("g", slider, index, start, frame.whiskers([xs[place]], [frame.y.low], [frame.y.high], "cursor"))
            for index, place in enumerate(places)
        ]
    picture = chart(
        key,
        title,
        description,
        frame.furniture(),
        cursor,
        drawn,
        None if any(map(math.isfinite, values)) else frame.empty("nothing to draw"),
        height=frame.bottom + 46,
    )
    return picture, legend(*((f"line {place}", name) for place, name in enumerate(series)))


# Areas of stacked bars, in the order of a bound's terms; each with its own hatching.
STACK = tuple(f"stack-{place}" for place in range(8))


def terms_figure(key: str, bounds: Sequence[Bound], names: Sequence[str], heading: Child = None) -> Raw:
    """Bars of what bounds add up to, one below the other, with the same numbers as a table.

    Parameters
    ----------
    key
        A name of our own making, unique on the page.
    bounds
        Upper bounds with their terms.
    names
        What each is called, for people.
    heading
        Short title above the picture.
    """
    terms = list(dict.fromkeys(term for bound in bounds for term in bound.terms))
    sums = [math.fsum(bound.terms.values()) for bound in bounds]
    axis = covering([*(bound.value for bound in bounds), *sums], "value")
    line, bar, top = 50, 16, 8
    height = top + line * len(bounds)
    frame = Frame(axis, Axis(0, 1, (), ""), left=10, width=WIDTH - 24, top=top, height=height - top)
    marks: list[Raw] = []
    for place, (bound, name) in enumerate(zip(bounds, names, strict=True)):
        y = top + place * line
        start = 0.0
        marks.append(element("text", clipped(name, 48), x=10, y=y + 14))
        for term, value in bound.terms.items():
            near, far = frame.across(start), frame.across(start + value)
            start += value
            if far - near > 0.05:
                kind = STACK[terms.index(term) % len(STACK)]
                marks.append(
                    element("path", class_=kind, d=f"M{near:.1f} {y + 20}H{far:.1f}V{y + 20 + bar}H{near:.1f}Z")
                )
        marks.append(element("text", bound.text, x=WIDTH - 14, y=y + 14, class_="end total"))
    sums_up = [f"{clipped(name, 80)}: at most {bound.text}." for name, bound in zip(names, bounds, strict=True)]
    picture = chart(key, "What the bounds add up to", " ".join(sums_up), _value_axis(frame), marks, height=height + 46)
    rows = [
        (
            shown(name, 80),
            *(round_outward(bound.terms[term], bound.side) if term in bound.terms else "" for term in terms),
            bound.text,
        )
        for name, bound in zip(names, bounds, strict=True)
    ]
    header = ["bound", *(clipped(term, 80) for term in terms), "at most"]
    caption = "Terms of the bounds, each rounded up"
    numbers = scrolling(table(header, rows, caption, numeric=range(1, len(header)), row_headers=True), caption)
    keys = legend(*((STACK[place % len(STACK)], clipped(term, 80)) for place, term in enumerate(terms)))
    said = "Each bar adds up the terms of one bound; the number at its right is the bound, rounded up."
    if any(total > 1 >= bound.value for total, bound in zip(sums, bounds, strict=True)):
        said += " Where a bar goes beyond 1, the bound is 1."
    return figure(picture, said, heading=heading, legend=keys if terms else None, numbers=numbers)


def _value_axis(frame: Frame) -> Raw:
    """Only what runs along x, with upright grid lines."""
    grid = "".join(f"M{frame.across(place):.1f} {frame.top}V{frame.bottom}" for place, _ in frame.x.ticks)
    return join(element("path", class_="grid", d=grid), frame.furniture())
