"""Groups of a table: intervals that hold for all of them, clearest first, in a forest plot, over time and a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from certcal._base.rounding import claim_text, percent_text, round_outward
from certcal._base.text import capital
from certcal.claims import Estimate
from certcal.report.charts import (
    Axis,
    Chart,
    Line,
    Mark,
    NamedInterval,
    Panel,
    Points,
    TextRanges,
    around,
    covering,
    forest,
    named_axis,
    whiskers,
    with_percent_ticks,
)
from certcal.report.document import NOTHING, Block, Cell, Column, Figures, Strong, Table, Text
from certcal.report.names import per_group, short_label, wording
from certcal.report.numbers import between, bins_text, minus, signed

if TYPE_CHECKING:
    from certcal.data.grouping import GroupingColumns
    from certcal.verbs.bound import Bounds
    from certcal.verbs.groups import GroupRate
    from certcal.verbs.measure import MeasuredGroup, Measurement

# Intervals below each other that can be read.
_MOST_DRAWN = 30
# What the table of rates says already.
_SAID = {"binary": {"base_rate", "mean_score", "observed_expected_ratio", "calibration_slope"}}
_SAID_OF_CONFIDENCES = {"accuracy", "mean_confidence"}


def measured_groups(found: Measurement) -> list[Block]:
    """What is said of groups: the picture, and the table of rates and metrics."""
    if not found.groups:
        return []
    said = Text(" ".join((_claim(found), *cuts(found.groupings))))
    return [said, Figures(group_charts(found)), _rates(found)]


def group_charts(found: Measurement) -> list[Chart]:
    """A forest plot of the groups that are no periods, and a chart over time of those that are."""
    periods = {each.by for each in found.groupings if each.time}
    plain = [each for each in found.worst_groups if each.by not in periods]
    over_time = [_over_time(found, by, [each for each in found.groups if each.by == by]) for by in periods]
    return [*([_forest(found, plain)] if plain else []), *over_time]


def cuts(groupings: Sequence[GroupingColumns]) -> list[str]:
    """How columns were cut, and what is left out, in sentences."""
    said = [f"{capital(cut)}." for cut in dict.fromkeys(cut for each in groupings for cut in each.cuts)]
    gone = [name for each in groupings for name in each.left_out]
    return said + ([f"Left out, since all samples have weight 0 or almost 0: {', '.join(gone)}."] if gone else [])


def _rate(group: MeasuredGroup) -> GroupRate:
    assert group.rate is not None
    return group.rate


def _claim(found: Measurement) -> str:
    rates = [_rate(each) for each in found.groups]
    wrong, level = sum(bool(each.direction) for each in rates), percent_text(rates[0].level)
    what = "observed/expected" if found.task == "binary" else "gaps"
    many = f"{len(rates):,} groups" if len(rates) > 1 else "the group"
    name = "observed/expected" if found.task == "binary" else "the gap"
    said = f"In {wrong or 'none'} of {many} {name} is off beyond sampling error."
    slopes = "; those of slopes do so among themselves, for many samples" if any(each.slope for each in rates) else ""
    return f"{said} Intervals of {what} hold for all of them together ({level}, for any number of samples){slopes}."


def _interval(group: MeasuredGroup, task: str) -> NamedInterval:
    """Observed over expected of a binary score, else the gap in points; the largest and smallest are told by words."""
    rate = _rate(group)
    if task == "binary":
        known = rate.predicted > 0
        low, value, high = (rate.ratio_interval[0], rate.ratio, rate.ratio_interval[1]) if known else (math.nan,) * 3
        return NamedInterval(group.name, low, value, high, (_two(value), _ends(low, high, 2, 1.0)))
    low, value, high = (100 * each for each in (rate.gap_interval[0], rate.gap, rate.gap_interval[1]))
    return NamedInterval(group.name, low, value, high, (signed(value, 1), _ends(low, high, 1, 0.0)))


def _two(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "–"


def _ends(low: float, high: float, digits: int, ideal: float = math.nan) -> str:
    """Both ends; an interval without the ideal in as many digits as show that."""
    end, side = (low, "lower") if low > ideal else (high, "upper")
    if low > ideal or high < ideal:
        digits = next((more for more in range(digits, 6) if float(round_outward(end, side, more)) != ideal), digits)
    return between(low, high, digits) or NOTHING


def _scale(rows: Sequence[NamedInterval], task: str) -> tuple[Axis, float, str]:
    """The axis of a forest plot, what would be ideal, and the name of what is drawn."""
    ends = [end for row in rows for end in row[1:4] if isinstance(end, float)]
    if task == "binary":
        return around(ends, 1.0, "observed / expected", log=True), 1.0, "O/E"
    return around(ends, 0.0, "accuracy − confidence, points"), 0.0, "gap"


def _forest(found: Measurement, groups: Sequence[MeasuredGroup]) -> Chart:
    rows = [_interval(each, found.task)._replace(name=short_name(each)) for each in groups[:_MOST_DRAWN]]
    axis, ideal, name = _scale(rows, found.task)
    left = len(groups) - len(rows)
    caption = (
        f"The {len(rows)} of {len(groups):,} groups with the most evidence; the table has all." if left > 0 else ""
    )
    level = percent_text(_rate(groups[0]).level)
    return forest(
        "Groups, clearest first",
        rows,
        axis,
        ideal,
        head=(group_head(found.groupings, found.by), name, f"{level} interval, joint"),
        beyond="beyond sampling error",
        within="not beyond sampling error",
        caption=caption,
    )


def short_name(group: MeasuredGroup) -> str:
    """Of a crossing the values, which say which columns they are of."""
    return " × ".join(group.where.values()) if len(group.where) > 1 else group.name


def group_head(groupings: Sequence[GroupingColumns], by: str | None) -> str:
    """What the column of the groups is called."""
    return "group" if by is None or len(groupings) > 1 else by


def _over_time(found: Measurement, by: str, groups: Sequence[MeasuredGroup]) -> Chart:
    """Predicted and observed rates, period by period; in a terminal the intervals of the periods in their order."""
    words, rates = wording(found.task), [_rate(each) for each in groups]
    names = [" and ".join(each.where.values()) for each in groups]
    places = [place + 0.5 for place in range(len(names))]
    names_drawn = ("predicted", "observed", "lower", "upper")
    predicted, observed, low, high = ([100 * getattr(each, name) for each in rates] for name in names_drawn)
    level = percent_text(rates[0].level)
    marks: list[Mark] = [
        whiskers(places, low, high, f"{level} interval, for all groups together"),
        Line(places, predicted, 0, f"mean {words.number}"),
        Points(places, observed, 1, words.rate),
    ]
    rows = [_interval(each, found.task)._replace(name=name) for each, name in zip(groups, names, strict=True)]
    axis, ideal, name = _scale(rows, found.task)
    texts = TextRanges(
        (by, axis.label, name, f"{level} interval, joint"),
        [(row.name, row[1:4], row.texts) for row in rows],
        axis,
        ideal,
    )
    up = covering([*predicted, *observed, *high], f"{words.rate}, %", most=100.0)
    across = named_axis(names, by)
    said = " ".join(f"{row.name}: {' '.join(row.texts)}." for row in rows)
    return Chart(f"Over time, by {by}", said, [Panel(across, up, marks, 220)], bars=texts)


def _rates(found: Measurement) -> Table:
    """A row per group, clearest first: what was predicted, what was observed, and intervals that hold together."""
    rates = [_rate(each) for each in found.worst_groups]
    level, words = percent_text(rates[0].level), wording(found.task)
    slopes, metrics = any(rate.slope_interval for rate in rates), _metrics(found)
    binary = found.task == "binary"
    columns = {
        "events": Column("events", "count", priority=2) if binary else None,
        "predicted": Column(f"mean {words.number} %", "percent", priority=3 if binary else 0),
        "observed": Column(f"{words.rate} %", "percent", priority=4 if binary else 0),
        "value": Column("O/E" if binary else "gap, points", "estimate"),
        "interval": Column(f"{level} interval, joint", "interval"),
        "gap": Column("gap, points", "estimate", priority=8) if binary else None,
        "gap interval": Column("joint interval of the gap", "interval", priority=9) if binary else None,
        "slope": Column("slope", "estimate", priority=6) if slopes else None,
        "slope interval": Column("joint interval of the slope", "interval", priority=7) if slopes else None,
    }
    lines: list[tuple[str, int, Mapping[Any, Cell]]] = []
    for group, rate in zip(found.worst_groups, rates, strict=True):
        value, ends = _interval(group, found.task).texts
        cells: dict[Any, Cell] = {"value": Strong(value) if rate.direction else value, "interval": ends}
        cells |= {"predicted": rate.predicted, "observed": rate.observed}
        cells["events"] = f"{rate.events:,.0f}"
        cells |= {key_of_row(row): float(row.value) for row in group.rows}
        cells["gap"] = signed(100 * rate.gap, 1)
        cells["gap interval"] = _ends(100 * rate.gap_interval[0], 100 * rate.gap_interval[1], 1)
        cells["slope"] = "–" if rate.slope is None else minus(f"{rate.slope:.2f}")
        cells["slope interval"] = _ends(*(rate.slope_interval or (math.nan, math.nan)), 2)
        lines.append((short_name(group), group.n, cells))
    note = "In bold: beyond sampling error." if any(rate.direction for rate in rates) else ""
    shown: dict[Any, Column] = {key: column for key, column in columns.items() if column is not None}
    for row in metrics:
        name = f"{short_label(row.name, found.task)} {bins_text(row)}".strip()
        shown[key_of_row(row)] = Column(name, "estimate", priority=2 if len(metrics) > 1 else 5)
    by = group_head(found.groupings, found.by)
    return per_group(by, shown, lines, "Predicted and observed per group, clearest first", note)


def _metrics(found: Measurement) -> list[Estimate]:
    """Metrics that the table of rates has: those that were asked for by name, else the ECE; the appendix has all."""
    if found.settings is None or not found.settings.by_name:
        return [row for row in [found.row_of("ece")] if row is not None]
    said = _SAID.get(found.task, _SAID_OF_CONFIDENCES)
    return [row for row in found.whole.rows if row.name not in said][:8]


def key_of_row(row: Estimate) -> tuple[str, str]:
    """What a metric of one group has in common with that of another."""
    return row.name, repr(sorted(row.settings.items()))


def bounded_groups(found: Bounds, table: Table) -> list[Block]:
    """The bounds of each group in a table, below a picture of the binned error from both sides, the largest on top."""
    ordered = sorted(found.groups, key=lambda each: -each.interval.lower.value)
    rows = [
        NamedInterval(each.name, both.lower.value, math.nan, both.upper.value, (claim_text(both),))
        for each in ordered[:_MOST_DRAWN]
        for both in [each.interval]
    ]
    said = cuts(found.groupings)
    if len(ordered) > len(rows):
        said.append(f"The picture has {len(rows)} of {len(ordered):,} groups, the table has all.")
    ends = [end for row in rows for end in (row.low, row.high)]
    axis = with_percent_ticks(around(ends, 0.0, "binned calibration error"))
    head = (group_head(found.groupings, found.by), "between")
    drawn = forest("Groups", rows, axis, 0.0, head=head, beyond="not calibrated", within="may be calibrated")
    return [*([Text(" ".join(said))] if said else []), Figures([drawn]), table]
