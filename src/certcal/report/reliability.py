"""Reliability diagrams as charts: alone, beside the worst case, one per group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from certcal._rounding import percent_text, round_outward
from certcal.binning import BinTable
from certcal.report.charts import (
    Axis,
    Bars,
    Chart,
    Mark,
    Panel,
    Points,
    Segments,
    TextBars,
    Words,
    counts,
    unit,
    whiskers,
)
from certcal.report.document import Column, Table
from certcal.report.numbers import number

if TYPE_CHECKING:
    from certcal.metrics import Reliability

# With more bins than this, bars would be narrower than a pixel of a phone: neighbours are drawn as one.
MOST_BARS = 200
_MOST_SIGNS, _MOST_DOTS = 40, 60
_FEW_BINS = 25
SIGNS = "+ and −: whether the worst case puts the accuracy of a bin above or below its confidence."


def reliability_chart(
    prepared: Reliability | None,
    title: str = "Reliability diagram",
    *,
    caption: str = "",
    signs: Any = None,
    axis: Axis | None = None,
    size: str = "normal",
    relation: str = "",
) -> Chart:
    """Accuracy against confidence per bin, the gap to perfect calibration, and the samples per bin below.

    Examples
    --------
    >>> from certcal.metrics import reliability
    >>> made = reliability_chart(reliability([0.95, 0.9, 0.3], [1, 0, 1], bins=2))
    >>> [row[3] for row in made.bars.rows]
    [('+0.700 under', '1'), ('−0.425 over', '2')]
    """
    across = unit("confidence")
    ideal = Segments([(0.0, 0.0, 1.0, 1.0)], "ideal", "perfect calibration")
    if prepared is None or not prepared.table.count.any():
        empty = Panel(across, unit("accuracy"), [ideal, Words([0.5], [0.7], ["no sample"])], 275)
        return Chart(title, "No bin holds a sample.", [empty], caption, size=size)
    bins, lower, upper = prepared.table, prepared.lower, prepared.upper
    drawn = coarser(bins)
    if drawn is not bins:
        lower = upper = signs = None
    used = np.flatnonzero(drawn.count)
    left, right = drawn.edges[:-1][used], drawn.edges[1:][used]
    accuracy, confidence = drawn.accuracy[used], drawn.mean_confidence[used]
    over = confidence > accuracy
    marks: list[Mark] = [
        _bars(left, right, np.zeros(used.size), accuracy, "accuracy", "accuracy"),
        _bars(left[over], right[over], accuracy[over], confidence[over], "over", "gap, overconfident"),
        _bars(left[~over], right[~over], confidence[~over], accuracy[~over], "under", "gap, underconfident"),
        ideal,
    ]
    if lower is not None and upper is not None:
        band = f"{percent_text(prepared.level)} bootstrap interval of each bin"
        marks.append(whiskers(confidence.tolist(), lower[used].tolist(), upper[used].tolist(), band))
    if used.size <= _MOST_DOTS:
        marks.append(Points(confidence.tolist(), accuracy.tolist(), "ink", "mean confidence and accuracy"))
    if signs is not None and len(drawn.count) <= _MOST_SIGNS:
        middles = (drawn.edges[:-1] + drawn.edges[1:]) / 2
        texts = ["+" if sign > 0 else "−" for sign in signs]
        marks.append(Words(middles.tolist(), [1.0] * len(texts), texts, "sign"))
    own = counts(drawn.count.tolist()) if axis is None else axis
    floor = np.full(drawn.count.size, own.low)
    below = _bars(drawn.edges[:-1], drawn.edges[1:], floor, drawn.count, "count", "samples per bin")
    side = "upper" if relation == "at most" else "lower"
    error = f"{relation} {round_outward(prepared.ece, side)}" if relation else number(prepared.ece)
    facts = f"ECE {error}, {len(bins.count):,} bins, "
    facts += f"{int(bins.count.sum()):,} samples."
    merged = " Neighbouring bins are drawn as one." if drawn is not bins else ""
    return Chart(
        title,
        describe(bins),
        [Panel(across, unit("accuracy"), marks, 275), Panel(across, own, [below], 58)],
        f"{facts}{merged} {caption}".strip(),
        bins_table(prepared, title, signs=signs),
        size,
        _text_bars(bins),
    )


def shared_counts(tables: Iterable[BinTable | None]) -> Axis:
    """An axis for the samples per bin of several diagrams."""
    drawn = [coarser(each) for each in tables if each is not None]
    return counts(value for each in drawn for value in each.count.tolist())


def coarser(bins: BinTable, most: int = MOST_BARS) -> BinTable:
    """Neighbouring bins put together, for a picture that cannot show them all; the same bins when it can."""
    if len(bins.count) <= most:
        return bins
    starts = np.arange(0, len(bins.count), -(-len(bins.count) // most))
    names = ("count", "weight", "squared_weight", "confidence_sum", "correct_sum")
    sums = (np.add.reduceat(getattr(bins, name), starts) for name in names)
    return BinTable(np.append(bins.edges[starts], bins.edges[-1]), bins.closed, *sums)


def describe(bins: BinTable) -> str:
    """What a reliability diagram shows, for those who do not see it."""
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


def bins_table(prepared: Reliability, title: str, *, signs: Any = None) -> Table:
    """The numbers of a reliability diagram: a row for each bin that holds samples."""
    bins, lower, upper = prepared.table, prepared.lower, prepared.upper
    columns = [
        Column("bin"),
        Column("samples", "count"),
        Column("mean confidence", "estimate"),
        Column("accuracy", "estimate"),
        Column("gap", "estimate"),
    ]
    columns += [Column("interval", "interval")] * (lower is not None) + [Column("sign")] * (signs is not None)
    rows: list[list[Any]] = []
    for m in np.flatnonzero(bins.count).tolist():
        accuracy, confidence = float(bins.accuracy[m]), float(bins.mean_confidence[m])
        row: list[Any] = [_bin(bins, m), int(bins.count[m]), confidence, accuracy]
        row.append(number(accuracy - confidence))
        if lower is not None and upper is not None:
            row.append((float(lower[m]), float(upper[m])))
        if signs is not None:
            row.append("+" if signs[m] > 0 else "−")
        rows.append(row)
    return Table(columns, rows, f"Bins: {title}")


def _bars(left: Any, right: Any, start: Any, end: Any, look: str, label: str) -> Bars:
    sides = [np.asarray(each).tolist() for each in (left, right, start, end)]
    return Bars(sides[0], sides[1], sides[2], sides[3], look, label)


def _bin(bins: BinTable, m: int) -> str:
    """A bin as an interval; the outermost ends belong to it."""
    digits = 3 if len(bins.count) <= 100 else 5
    opening = "[" if bins.closed == "left" or m == 0 else "("
    closing = "]" if bins.closed == "right" or m + 1 == len(bins.count) else ")"
    return f"{opening}{bins.edges[m]:.{digits}g}, {bins.edges[m + 1]:.{digits}g}{closing}"


def _text_bars(bins: BinTable) -> TextBars:
    digits = 2 if len(bins.count) <= 100 else 3
    few = len(bins.count) <= _FEW_BINS
    rows: list[tuple[str, float | None, float | None, Sequence[str]]] = []
    for m, count in enumerate(bins.count.tolist()):
        name = f"{bins.edges[m]:.{digits}f} – {bins.edges[m + 1]:.{digits}f}"
        if count:
            accuracy, confidence = float(bins.accuracy[m]), float(bins.mean_confidence[m])
            rows.append((name, accuracy, confidence, (_gap(accuracy - confidence), f"{count:,}")))
        elif few:
            rows.append((name, None, None, ("", "0")))
    hidden = len(bins.count) - len(rows)
    note = f"{hidden} empty bins are not shown" if hidden else ""
    return TextBars(("confidence", "accuracy {bar}   mean confidence {mark}", "gap", "samples"), rows, note)


def _gap(gap: float) -> str:
    text = f"{abs(gap):.3f}"
    if float(text) == 0:
        return text
    return f"−{text} over" if gap < 0 else f"+{text} under"
