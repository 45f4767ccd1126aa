"""Reliability diagrams on a page: one, many small ones, or several states of one that a slider chooses from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from certcal._html import Child, Raw, element, join, table
from certcal._rounding import percent_text
from certcal.binning import BinTable
from certcal.claims import round_outward
from certcal.report.numbers import number
from certcal.report.page._axes import Axis, counts, unit
from certcal.report.page._frames import framed
from certcal.report.page._pieces import figure, scrolling
from certcal.report.page._svg import WIDTH, Frame, chart, legend

if TYPE_CHECKING:
    from certcal.metrics import Reliability

SMALL = 320
# With more bins than this, bars would be narrower than a pixel of a phone: neighbours are drawn as one.
MOST_BARS = 200
_MOST_ROWS = 200
_MOST_ROWS_OF_MANY = 50
MOST_SIGNS = 40


def reliability_axes(count_axis: Axis, width: float = WIDTH) -> tuple[Frame, Frame]:
    """Where the diagram and the samples per bin below it are drawn."""
    left, right = 54, 14
    inside = width - left - right
    main = Frame(unit("confidence"), unit("accuracy"), left, 20, inside, round(inside * 0.78))
    return main, Frame(unit("confidence"), count_axis, left, main.bottom + 22, inside, 58)


def reliability_height(width: float = WIDTH) -> float:
    """Height of the picture of a reliability diagram."""
    return reliability_axes(counts(()), width)[1].bottom + 44


def reliability_marks(
    bins: BinTable | None,
    *,
    lower: Any = None,
    upper: Any = None,
    signs: Any = None,
    count_axis: Axis | None = None,
    width: float = WIDTH,
) -> Raw:
    """Axes, bars as high as the accuracy, the hatched gap to the mean confidence, bands, and the samples per bin below.

    Parameters
    ----------
    bins
        Per-bin sums; None when there is no sample.
    lower, upper
        Band of the accuracy per bin, or None.
    signs
        +1 or -1 per bin, written above it: is its accuracy above its confidence in the worst case? None for no signs.
    count_axis
        For several diagrams: an axis that holds the counts of all of them, as :func:`counts_of` makes it.
    width
        Of the picture.
    """
    main, below = reliability_axes(counts_of([bins]) if count_axis is None else count_axis, width)
    axes = main.furniture(x_axis=False), below.furniture()
    diagonal = main.segment((0, 0), (1, 1), "ideal")
    if bins is None or not bins.count.any():
        return join(axes, diagonal, main.empty("no sample"))
    if len(bins.count) > MOST_BARS:
        bins, lower, upper, signs = coarser(bins), None, None, None
    used = np.flatnonzero(bins.count)
    left, right = bins.edges[:-1][used], bins.edges[1:][used]
    accuracy, confidence = bins.accuracy[used], bins.mean_confidence[used]
    over = confidence > accuracy
    few = used.size <= 60
    floor = np.full(bins.count.size, below.y.low)
    return join(
        axes,
        main.bars(left, right, np.zeros(used.size), accuracy, "accuracy"),
        main.bars(left[over], right[over], accuracy[over], confidence[over], "gap over"),
        main.bars(left[~over], right[~over], confidence[~over], accuracy[~over], "gap under"),
        diagonal,
        main.whiskers(confidence, lower[used], upper[used]) if lower is not None and upper is not None else None,
        main.dots(confidence.tolist(), accuracy.tolist()) if few else None,
        _signs(main, bins, signs) if signs is not None else None,
        below.bars(bins.edges[:-1], bins.edges[1:], floor, bins.count, "count"),
    )


def coarser(bins: BinTable, most: int = MOST_BARS) -> BinTable:
    """Neighbouring bins put together, for a picture that cannot show them all.

    Examples
    --------
    >>> from certcal.binning import bin_table, equal_width_edges
    >>> coarser(bin_table([0.1, 0.3, 0.9], [0, 1, 1], equal_width_edges(1000)), 2).count.tolist()
    [2, 1]
    """
    step = -(-len(bins.count) // most)
    starts = np.arange(0, len(bins.count), step)

    def total(values: Any) -> Any:
        return np.add.reduceat(values, starts)

    return BinTable(
        np.append(bins.edges[starts], bins.edges[-1]),
        bins.closed,
        total(bins.count),
        total(bins.weight),
        total(bins.squared_weight),
        total(bins.confidence_sum),
        total(bins.correct_sum),
    )


def _signs(frame: Frame, bins: BinTable, signs: Any) -> Raw | None:
    if len(bins.count) > MOST_SIGNS:
        return None
    middles = (bins.edges[:-1] + bins.edges[1:]) / 2
    return join(
        [
            element(
                "text",
                "+" if sign > 0 else "−",
                x=f"{frame.across(float(middle)):.1f}",
                y=f"{frame.top - 6:.1f}",
                class_="middle sign" if count else "middle sign idle",
            )
            for middle, sign, count in zip(middles, signs, bins.count, strict=True)
        ]
    )


def describe(bins: BinTable | None) -> str:
    """What a reliability diagram shows, for those who do not see it.

    Examples
    --------
    >>> from certcal.binning import bin_table
    >>> print(describe(bin_table([0.9, 0.95, 0.2], [1, 0, 0], [0, 0.5, 1])))
    2 of 2 bins hold samples, 3 in all. Overconfident bins: 2; underconfident: 0.
    The largest gap is 0.4250, overconfident, in the bin from 0.5 to 1.
    """
    if bins is None or not bins.count.any():
        return "No bin holds a sample."
    used = np.flatnonzero(bins.count)
    gaps = bins.accuracy[used] - bins.mean_confidence[used]
    largest = int(np.argmax(np.abs(gaps)))
    gap, place = float(gaps[largest]), int(used[largest])
    where = f"from {bins.edges[place]:.4g} to {bins.edges[place + 1]:.4g}"
    return (
        f"{used.size:,} of {bins.count.size:,} bins hold samples, {int(bins.count.sum()):,} in all. "
        f"Overconfident bins: {int((gaps < 0).sum()):,}; underconfident: {int((gaps > 0).sum()):,}. "
        f"The largest gap is {number(abs(gap))}, {'over' if gap < 0 else 'under'}confident, in the bin {where}."
    )


def reliability_legend(*, band: str | None = None, signs: bool = False, many: bool = False) -> Raw:
    """What the marks of a reliability diagram mean.

    Parameters
    ----------
    band
        What the upright lines are; None when there are none.
    signs
        Whether signs are written above the bins.
    many
        Whether there are more bins than are drawn, and so no dots.
    """
    entries = [
        ("accuracy", "accuracy"),
        ("gap over", "gap, overconfident"),
        ("gap under", "gap, underconfident"),
        ("ideal", "perfect calibration"),
    ]
    if not many:
        entries.append(("dot ink", "mean confidence and accuracy"))
    if band is not None and not many:
        entries.append(("whisker", band))
    said = "+ and −: whether the worst case puts the accuracy of a bin above or below its confidence."
    return join(
        legend(*entries, ("count", "samples per bin")),
        element("p", said, class_="note") if signs else None,
    )


def bins_table(
    bins: BinTable | None,
    *,
    lower: Any = None,
    upper: Any = None,
    signs: Any = None,
    caption: str,
    most: int = _MOST_ROWS,
) -> Raw:
    """The numbers of a reliability diagram: one line per bin that holds samples, up to ``most``."""
    if bins is None or not bins.count.any():
        return element("p", "No sample.", class_="note")
    used = np.flatnonzero(bins.count)
    header = ["bin", "samples", "mean confidence", "accuracy", "gap"]
    banded = lower is not None and upper is not None
    header += ["band"] * banded + ["sign"] * (signs is not None)
    rows: list[list[Child]] = []
    for m in used[:most].tolist():
        line: list[Child] = [
            _bin(bins, m),
            f"{int(bins.count[m]):,}",
            number(float(bins.mean_confidence[m])),
            number(float(bins.accuracy[m])),
            number(float(bins.accuracy[m] - bins.mean_confidence[m])).replace("-", "−"),
        ]
        if lower is not None and upper is not None:
            line.append(f"{round_outward(float(lower[m]), 'lower')} – {round_outward(float(upper[m]), 'upper')}")
        if signs is not None:
            line.append("+" if signs[m] > 0 else "−")
        rows.append(line)
    rest = used.size - len(rows)
    return join(
        scrolling(table(header, rows, caption, numeric=range(len(header)), row_headers=True), caption),
        element("p", f"{rest:,} further bins are not listed; the JSON has them.", class_="note") if rest else None,
    )


def _bin(bins: BinTable, m: int) -> str:
    """A bin as an interval; the outermost ends belong to it."""
    digits = 3 if len(bins.count) <= 100 else 5
    opening = "[" if bins.closed == "left" or m == 0 else "("
    closing = "]" if bins.closed == "right" or m + 1 == len(bins.count) else ")"
    return f"{opening}{bins.edges[m]:.{digits}g}, {bins.edges[m + 1]:.{digits}g}{closing}"


def reliability_figure(
    key: str,
    title: str,
    prepared: Reliability,
    *,
    heading: Child = None,
    caption: Child = None,
    small: bool = False,
    count_axis: Axis | None = None,
) -> Raw:
    """A reliability diagram with legend and caption.

    Parameters
    ----------
    key
        A name of our own making, unique on the page.
    title
        What the picture is, in words of our own.
    prepared
        From :func:`certcal.metrics.reliability`.
    heading
        Short title above the picture.
    caption
        What is seen; by default a few facts.
    small
        One of many: without a legend, and with its table inside.
    count_axis
        To share the axis of samples with others, as :func:`counts_of` makes it.
    """
    bins = prepared.table
    width = SMALL if small else WIDTH
    many = len(bins.count) > MOST_BARS
    bands: dict[str, Any] = {"lower": prepared.lower, "upper": prepared.upper}
    picture = chart(
        key,
        title,
        describe(bins),
        reliability_marks(bins, width=width, count_axis=count_axis, **bands),
        height=reliability_height(width),
        width=width,
    )
    facts = f"ECE {number(prepared.ece)}, {len(bins.count):,} bins, {int(bins.count.sum()):,} samples."
    if many:
        facts += " Neighbouring bins are drawn as one."
    band = f"{percent_text(prepared.level)} bootstrap band" if prepared.lower is not None else None
    return figure(
        picture,
        join(facts, " ", caption),
        heading=heading,
        legend=None if small else reliability_legend(band=band, many=many),
        numbers=bins_table(bins, **bands, caption=f"Bins: {title}", most=_MOST_ROWS_OF_MANY) if small else None,
    )


def reliability_states(
    key: str,
    title: str,
    tables: Sequence[BinTable | None],
    names: Sequence[str],
    *,
    chosen_by: str,
    start: int,
    signs: Sequence[Any] | None = None,
    count_axis: Axis | None = None,
) -> tuple[Raw, Raw]:
    """Several states of one diagram, of which a slider shows one: the pictures, and the tables of their numbers.

    Parameters
    ----------
    key
        A name of our own making, unique on the page.
    title
        What the picture is.
    tables
        Per state its bins, or None when there is no sample.
    names
        Per state what it is called, such as "radius 0.25".
    chosen_by
        Key of the :func:`certcal.report.page._frames.slider`.
    start
        The state that is seen at first.
    signs
        Per state the signs of the bins, or None.
    count_axis
        To share the axis of samples with another diagram.
    """
    axis = counts_of(tables) if count_axis is None else count_axis
    pictures: list[Raw] = []
    numbers: list[Raw] = []
    for frame, (bins, name) in enumerate(zip(tables, names, strict=True)):
        own = None if signs is None else signs[frame]
        called = f"{title}, {name}" if name else title
        marks = reliability_marks(bins, signs=own, count_axis=axis)
        picture = chart(f"{key}-{frame}", called, describe(bins), marks, height=reliability_height())
        pictures.append(framed("div", chosen_by, frame, start, picture))
        written = bins_table(bins, signs=own, caption=f"Bins: {called}", most=_MOST_ROWS_OF_MANY)
        numbers.append(framed("div", chosen_by, frame, start, written))
    return join(pictures), join(numbers)


def counts_of(tables: Sequence[BinTable | None]) -> Axis:
    """An axis for the samples per bin of all tables."""
    drawn = [coarser(each) if len(each.count) > MOST_BARS else each for each in tables if each is not None]
    return counts(value for each in drawn for value in each.count.tolist())
