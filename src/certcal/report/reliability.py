"""Reliability diagrams as charts: alone, beside the worst case, one per group."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.rounding import percent_text, round_outward, share_text
from certcal._base.text import capital, counted
from certcal.binning import BinTable
from certcal.report.charts import (
    Axis,
    Band,
    Bars,
    Chart,
    Line,
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
from certcal.report.names import Wording, wording
from certcal.report.numbers import between, number

if TYPE_CHECKING:
    from certcal.bounds import CalibrationBand
    from certcal.metrics import Reliability

# With more bins than this, bars would be narrower than a pixel of a phone: neighbours are drawn as one.
MOST_BARS = 200
_MOST_SIGNS, _MOST_DOTS = 40, 60
_FEW_BINS = 25
# Pieces of a staircase that a picture can show.
_MOST_STEPS = 400
NOWHERE = "The diagonal stays inside the band: no miscalibration is proved at this level."
REFUTED = "The band contradicts itself, so it says nothing about single scores: what was assumed does not hold here."
# How many bins, or ranges of scores, a sentence names.
_MOST_NAMED = 4
_BAND_LABELS = {"joint": "{} band, joint over the bins", "per-bin": "{} interval of each bin"}
SIGNS, SCORE_SIGNS = (
    f"+ and −: whether the worst case puts the {words.rate} of a bin above or below its {words.number}."
    for words in (wording(None), wording("binary"))
)


def reliability_chart(
    prepared: Reliability | None,
    title: str = "Reliability diagram",
    *,
    caption: str = "",
    signs: Any = None,
    axis: Axis | None = None,
    size: str = "normal",
    relation: str = "",
    name: str = "ECE",
    task: str | None = None,
) -> Chart:
    """Accuracy against confidence per bin, the gap to perfect calibration, its band, and the samples per bin below.

    For a binary score ("binary" as task) it is the observed rate against the score.
    """
    words = wording(task)
    across = unit(words.number)
    ideal = Segments([(0.0, 0.0, 1.0, 1.0)], "ideal", "perfect calibration")
    if prepared is None or not prepared.table.count.any():
        empty = Panel(across, unit(words.rate), [ideal, Words([0.5], [0.7], ["no sample"])], 275)
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
        _make_bars(left, right, np.zeros(used.size), accuracy, "accuracy", words.rate),
        _make_bars(left[over], right[over], accuracy[over], confidence[over], "over", f"gap, {words.over}"),
        _make_bars(left[~over], right[~over], confidence[~over], accuracy[~over], "under", f"gap, {words.under}"),
        ideal,
    ]
    if prepared.isotonic is not None:
        marks += band_marks(prepared.isotonic, "ink")
    elif lower is not None and upper is not None:
        ends = lower[used].tolist(), upper[used].tolist()
        marks.append(whiskers(confidence.tolist(), *ends, _BAND_LABELS[prepared.band].format(_level_text(prepared))))
    if used.size <= _MOST_DOTS:
        marks.append(Points(confidence.tolist(), accuracy.tolist(), "ink", f"{words.mean} and {words.rate}"))
    if signs is not None and len(drawn.count) <= _MOST_SIGNS:
        middles = (drawn.edges[:-1] + drawn.edges[1:]) / 2
        texts = ["+" if sign > 0 else "−" for sign in signs]
        marks.append(Words(middles.tolist(), [1.0] * len(texts), texts, "sign"))
    own = counts(drawn.count.tolist()) if axis is None else axis
    floor = np.full(drawn.count.size, own.low)
    below = _make_bars(drawn.edges[:-1], drawn.edges[1:], floor, drawn.count, "count", "samples per bin")
    side = "upper" if relation == "at most" else "lower"
    error = f"{relation} {share_text(prepared.ece, side)}" if relation else share_text(prepared.ece)
    facts = f"{name} {error}, {len(bins.count):,} bins, "
    facts += f"{int(bins.count.sum()):,} samples. {beyond_sampling_error(prepared, task)}".rstrip()
    merged = " Neighbouring bins are drawn as one." if drawn is not bins else ""
    return Chart(
        title,
        describe(bins, task),
        [Panel(across, unit(words.rate), marks, 275), Panel(across, own, [below], 58)],
        f"{facts}{merged} {caption}".strip(),
        bins_table(prepared, title, signs=signs, task=task),
        size,
        _text_bars(prepared, words),
    )


def reliability_charts(parts: Mapping[str, Reliability], **looks: Any) -> list[Chart]:
    """Several diagrams by their titles, which share the axis of the samples per bin."""
    axis = shared_counts([each.table for each in parts.values()])
    return [reliability_chart(each, title, axis=axis, **looks) for title, each in parts.items()]


def beyond_sampling_error(prepared: Reliability, task: str | None = None) -> str:
    """Which bins, or scores, are miscalibrated beyond sampling error."""
    if prepared.isotonic is not None:
        return where_outside(prepared.isotonic, task)
    if prepared.lower is None:
        return ""
    bins, beyond, words = prepared.table, prepared.beyond, wording(task)
    used = int(np.count_nonzero(bins.count))
    facts = _BAND_LABELS[prepared.band].format(_level_text(prepared))
    if prepared.band == "per-bin":
        facts += f", {(1 - prepared.level) * used:.2g} of them expected of a calibrated model"
    many = int(np.count_nonzero(beyond))
    if not many:
        return f"No bin is miscalibrated beyond sampling error ({facts})."
    texts: list[str] = []
    for what, sign in ((words.over, -1), (words.under, 1)):
        ranges = _ranges(bins, beyond == sign)
        more = [f"{len(ranges) - _MOST_NAMED} more ranges"] * (len(ranges) > _MOST_NAMED)
        texts += [f"{what} from {', '.join([*ranges[:_MOST_NAMED], *more])}"] * bool(ranges)
    count = f"{many} of {counted(used, 'bin')} {'is' if many == 1 else 'are'}"
    return f"{count} miscalibrated beyond sampling error ({facts}): {'; '.join(texts)}."


def _ranges(bins: BinTable, chosen: NDArray[np.bool_]) -> list[str]:
    """Chosen bins as ranges; neighbours are one range, also across bins without samples."""
    held = np.flatnonzero(bins.count)
    steps = np.diff(np.concatenate(([False], chosen[held], [False])).astype(np.int8))
    ends = zip(held[np.flatnonzero(steps == 1)], held[np.flatnonzero(steps == -1) - 1], strict=True)
    return [f"{bins.edges[first]:.3g} to {bins.edges[last + 1]:.3g}" for first, last in ends]


def where_outside(band: CalibrationBand, task: str | None = None) -> str:
    """Where the diagonal leaves a band, from low scores to high."""
    if not band.regions:
        return REFUTED if band.contradicts else NOWHERE
    words = wording(task)
    texts: list[str] = []
    for side, run in itertools.groupby(band.regions, key=lambda region: region.side):
        ranges = list(run)
        what, relation = (words.under, "at least") if side == "lower" else (words.over, "at most")
        start, end = ranges[0].start, ranges[-1].end
        worst = max(ranges, key=lambda region: abs(region.rate - region.score))
        span, at = f"from {start:.4f} to {end:.4f}", f", most at {worst.score:.4f}, where"
        if len(ranges) > 1:
            span = f"in {len(ranges)} ranges between {start:.4f} and {end:.4f}"
        elif start == end:
            span, at = f"of {start:.4f}", ":"
        limit = f"the {words.rate} is {relation} {round_outward(worst.rate, worst.side)}"
        texts.append(f"{capital(words.number)}s {span} are {what}{at} {limit}.")
    more = len(texts) - _MOST_NAMED
    return " ".join([*texts[:_MOST_NAMED], *([f"{more} more."] if more > 0 else [])])


def band_marks(found: CalibrationBand, look: int | str = 0) -> list[Mark]:
    """The area of a band, and the estimate where there is one."""
    label = f"{percent_text(found.level)} band ({found.kind})"
    if not found.steps:
        x, low, high = (each.tolist() for each in (found.scores, found.lower, found.upper))
        marks: list[Mark] = [Band(x, low, high, look, label)]
        if found.estimate is not None:
            marks.append(Line(x, found.estimate.tolist(), look, "local average of the outcomes", markers=False))
        return marks + _denoised_marks(found)
    some = np.unique(np.linspace(0, found.scores.size - 1, _MOST_STEPS).astype(int))
    lower, upper = found.lower[some[:-1]], found.upper[some[1:]]  # what is left out makes the band wider
    twice = np.repeat(found.scores[some], 2)[1:-1]
    marks: list[Mark] = [Band(twice.tolist(), np.repeat(lower, 2).tolist(), np.repeat(upper, 2).tolist(), look, label)]
    return marks + _denoised_marks(found)


def _denoised_marks(found: CalibrationBand) -> list[Mark]:
    """The staircase of the denoised outcomes over the scores that there are."""
    if found.denoised is None:
        return []
    x, y = (each.tolist() for each in found.denoised)
    return [Line([*x, found.span[1]], [*y, y[-1]], 1, "total variation denoising (estimate)", "post", markers=False)]


def _level_text(prepared: Reliability) -> str:
    return percent_text(prepared.level)


def shared_counts(tables: Iterable[BinTable | None]) -> Axis:
    """An axis for the samples per bin of several diagrams."""
    drawn = [coarser(each) for each in tables if each is not None]
    return counts(value for each in drawn for value in each.count.tolist())


def coarser(bins: BinTable) -> BinTable:
    """Neighbouring bins put together, for a picture that cannot show them all; the same bins when it can."""
    if len(bins.count) <= MOST_BARS:
        return bins
    starts = np.arange(0, len(bins.count), -(-len(bins.count) // MOST_BARS))
    names = ("count", "weight", "squared_weight", "confidence_sum", "correct_sum")
    sums = (np.add.reduceat(getattr(bins, name), starts) for name in names)
    return BinTable(np.append(bins.edges[starts], bins.edges[-1]), bins.closed, *sums)


def describe(bins: BinTable, task: str | None = None) -> str:
    """What a reliability diagram shows, for those who do not see it."""
    words = wording(task)
    used = np.flatnonzero(bins.count)
    gaps = bins.accuracy[used] - bins.mean_confidence[used]
    largest = int(np.argmax(np.abs(gaps)))
    gap, place = float(gaps[largest]), int(used[largest])
    where = f"from {bins.edges[place]:.4g} to {bins.edges[place + 1]:.4g}"
    return (
        f"{used.size:,} of {bins.count.size:,} bins hold samples, {int(bins.count.sum()):,} in all. "
        f"{words.over.capitalize()} bins: {int((gaps < 0).sum()):,}; {words.under}: {int((gaps > 0).sum()):,}. "
        f"The largest gap is {number(abs(gap))}, {words.over if gap < 0 else words.under}, in the bin {where}."
    )


def bins_table(prepared: Reliability, title: str, *, signs: Any = None, task: str | None = None) -> Table:
    """The numbers of a reliability diagram: a row for each bin that holds samples."""
    bins, lower, upper, beyond = prepared.table, prepared.lower, prepared.upper, prepared.beyond
    columns = [
        Column("bin"),
        Column("samples", "count"),
        Column(wording(task).mean, "estimate"),
        Column(wording(task).rate, "estimate"),
        Column("gap", "estimate"),
    ]
    columns += [Column(f"{_level_text(prepared)} band", "interval")] * (lower is not None)
    columns += [Column("sign")] * (signs is not None)
    rows: list[list[Any]] = []
    for m in np.flatnonzero(bins.count).tolist():
        accuracy, confidence = float(bins.accuracy[m]), float(bins.mean_confidence[m])
        row: list[Any] = [_bin(bins, m), int(bins.count[m]), confidence, accuracy]
        row.append(number(accuracy - confidence) + (" *" if beyond[m] else ""))
        if lower is not None and upper is not None:
            row.append(between(lower[m], upper[m], 4))
        if signs is not None:
            row.append("+" if signs[m] > 0 else "−")
        rows.append(row)
    return Table(columns, rows, f"Bins: {title}{' (* beyond sampling error)' if beyond.any() else ''}")


def _make_bars(left: Any, right: Any, start: Any, end: Any, look: str, label: str) -> Bars:
    sides = [np.asarray(each).tolist() for each in (left, right, start, end)]
    return Bars(sides[0], sides[1], sides[2], sides[3], look, label)


def _bin(bins: BinTable, m: int) -> str:
    """A bin as an interval; the outermost ends belong to it."""
    digits = 3 if len(bins.count) <= 100 else 5
    opening = "[" if bins.closed == "left" or m == 0 else "("
    closing = "]" if bins.closed == "right" or m + 1 == len(bins.count) else ")"
    return f"{opening}{bins.edges[m]:.{digits}g}, {bins.edges[m + 1]:.{digits}g}{closing}"


def _text_bars(prepared: Reliability, words: Wording) -> TextBars:
    bins, lower, upper = prepared.table, prepared.lower, prepared.upper
    digits = 2 if len(bins.count) <= 100 else 3
    few, banded, beyond = len(bins.count) <= _FEW_BINS, lower is not None, prepared.beyond
    rows: list[tuple[str, float | None, float | None, Sequence[str]]] = []
    for m, count in enumerate(bins.count.tolist()):
        name = f"{bins.edges[m]:.{digits}f} – {bins.edges[m + 1]:.{digits}f}"
        if count:
            accuracy, confidence = float(bins.accuracy[m]), float(bins.mean_confidence[m])
            texts = [_gap(accuracy - confidence) + (" *" if beyond[m] else ""), f"{count:,}"]
            if lower is not None and upper is not None:
                texts.append(between(lower[m], upper[m], 3))
            rows.append((name, accuracy, confidence, texts))
        elif few:
            rows.append((name, None, None, ("", "0", "")[: 2 + banded]))
    hidden = len(bins.count) - len(rows)
    notes = [f"{hidden} empty bins are not shown"] * bool(hidden) + ["* beyond sampling error"] * bool(beyond.any())
    heads = (words.number, f"{words.rate} {{bar}}   {words.mean} {{mark}}", "gap", "samples")
    return TextBars((*heads, *[f"{_level_text(prepared)} band"] * banded), rows, "; ".join(notes))


def _gap(gap: float) -> str:
    text = f"{abs(gap):.3f}"
    if float(text) == 0:
        return text
    return f"−{text} over" if gap < 0 else f"+{text} under"
