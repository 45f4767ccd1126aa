"""Two tables, two measurements or two results of bounds side by side: words and layout of a ChangeComparison."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from certcal._base.text import capital, counted, ends_of_paths
from certcal.claims import Estimate, percent_text, sure_text
from certcal.report.charts import Chart, Panel, Points, covering, named_axis
from certcal.report.document import (
    NOTHING,
    SIGNS,
    Block,
    Cell,
    Choice,
    Claim,
    Column,
    Figures,
    Heading,
    Report,
    Section,
    Strong,
    Table,
    assumptions_of,
    cell_of,
    kind_of,
    relation_of,
    text_of,
)
from certcal.report.names import cautions, definitions, headlines, label, metric_rows, per_group, short_label
from certcal.report.numbers import between, bins_text, interval, number
from certcal.report.observed_rates import rates_chart
from certcal.report.reliability import reliability_charts
from certcal.report.views.bounds import bound_name, two_sided_claim

if TYPE_CHECKING:
    from certcal.verbs.changes import Change, ChangeComparison

_LIMITS = "Differences of bounds, which are no bounds on the difference."
_DIGITS = 4
_LONGEST, _UNNAMED = 20, ("old", "new")  # letters of a name over a column
_MEANS = (
    "Differences of means (accuracy, Brier score, log loss) and of AUROC{bins}: {how}, at a level that is reached as "
    "samples become many. All others:"
)
_IDEAL = (
    "where the ideal is a value (slope and O/E 1, intercept 0), the new interval is all nearer to it than the old one."
)
_JOINT = "between the differences of the ends of two intervals that hold together, which is cautious."
_HOW = {True: "from the differences of the paired rows", False: "as of two independent sets of samples"}


def view(found: ChangeComparison) -> Report:
    """The report of two results side by side."""
    estimates = [row.new for row in found.rows if isinstance(row.new, Estimate)]
    measured, numbers = found.kind == "estimates", [_chart_of_changes(found)] if found.rows else []
    return Report(
        "What changed?",
        [_headline_of_changes(found)],
        [
            Section("All numbers", changes_table(found, _names(found)), brief=True),
            Section("Groups", groups_table(found) if found.groups else None, brief=True),
            Section("Bounds on the difference", _claims_of_bounds(found), brief=True),
            Section("Reliability diagrams", diagrams(found, _names(found)) if measured else None),
            Section("Differences", numbers, folded=True, pictured=not measured),
        ],
        [Section("Definitions", definitions(estimates, _task_of_tables(found)) if measured else None)],
        f"{found.old.source} → {found.new.source}",
        _description(found),
        notes=_notes_of_changes(found),
        picture=sides_picture(dict(zip(_names(found), (found.old, found.new), strict=True)), _task_of_tables(found), 1)
        if measured
        else numbers,
    )


def sides_picture(sides: Mapping[str, Any], task: str, first: int) -> list[Block]:
    """What happened, and what was predicted, by each of two measurements; one is seen first."""
    drawn = {
        name: [rates_chart(side.diagnosis, task, logit=True)]
        for name, side in sides.items()
        if getattr(side, "diagnosis", None) is not None
    }
    if len(drawn) < 2:
        return [Figures(each) for each in drawn.values()]
    return [Choice("side", "Scores", (*drawn,), first, [*drawn.values()], switch=True)]


def charts(found: ChangeComparison) -> Sequence[Chart]:
    """Both diagrams, or the numbers where there are none."""
    return diagrams(found, _names(found)).charts if found.kind == "estimates" else [_chart_of_changes(found)]


def _interval_head(levels: set[float]) -> str:
    return f"{percent_text(levels.pop())} interval" if len(levels) == 1 else "interval"


def _names(found: ChangeComparison) -> tuple[str, str]:
    """What the two are called at the head of a column: files, columns or models, else old and new."""
    ends = ends_of_paths([str(found.old.source), str(found.new.source)])
    return (ends[0], ends[1]) if ends is not None and max(map(len, ends)) <= _LONGEST else _UNNAMED


def changes_table(found: ChangeComparison, names: tuple[str, str]) -> Table:
    """Every number before and after, and the difference; those that differ for sure stand out."""
    tested = any(row.interval is not None for row in found.rows)
    columns = [Column("metric" if found.kind == "estimates" else "method"), Column("bins", "count", priority=3)]
    ends = [row.new.interval for row in found.rows if isinstance(row.new, Estimate) and row.new.interval]
    own = _interval_head({each.level for each in ends})
    apart = {row.interval.level for row in found.rows if row.interval is not None}
    for name in names:
        columns += [
            Column(name, "estimate"),
            *([Column(own, "interval", priority=2)] if ends else []),
        ]
    columns += [Column("difference", "estimate")]
    judged = any(row.verdict is not None for row in found.rows)
    columns += [Column(_interval_head(apart), "interval", priority=1)] if tested else []
    columns += [Column("change")] if judged else []
    rows: Sequence[Sequence[Cell] | Heading]
    if found.kind == "bounds":
        rows = [
            [bound_name(row.name), bins_text(row.old), *_cells_of_change(row, bool(ends), tested, judged)]
            for row in found.rows
        ]
    else:
        mine = {id(row.new): row for row in found.rows}
        estimates = [row.new for row in found.rows if isinstance(row.new, Estimate)]
        rows = metric_rows(
            estimates, _task_of_tables(found), lambda each: _cells_of_change(mine[id(each)], bool(ends), tested, judged)
        )
    task = _task_of_tables(found) if found.kind == "estimates" else None
    shown = [row.new for row in found.rows if isinstance(row.new, Estimate)]
    return Table(columns, rows, note=cautions(shown, task), most=10_000)


def _cells_of_change(row: Change, spread: bool, tested: bool, judged: bool) -> list[Cell]:
    made: list[Cell] = []
    for each in (row.old, row.new):
        made.append(cell_of(each) if isinstance(each, Estimate) else f"{SIGNS[each.side]} {each.text}")
        made += [interval(each) if isinstance(each, Estimate) else ""] if spread else []
    made += [signed_difference(row), *([interval_of_change(row)] if tested else [])]
    return [*made, row.verdict or ""] if judged else made


def signed_difference(row: Change) -> Cell:
    """The difference, which stands out where it is one for sure."""
    return Strong(_signed_value(row)) if row.changed else _signed_value(row)


def groups_table(found: ChangeComparison) -> Table:
    """A line per group: the differences of the metrics that tell most, each with its interval."""
    first = {row.name: row for row in reversed(found.rows)}
    decisive = [row.name for row in found.judged]
    telling = [name for name in dict.fromkeys((*decisive, *headlines(_task_of_tables(found)))) if name in first]
    telling = telling[:4] or list(first)[:4]
    columns: dict[Any, Column] = {}
    for place, name in enumerate(telling):
        priority = place + 2 if place > 2 else 0
        columns[name] = Column(short_label(name, _task_of_tables(found)), "estimate", priority=priority)
        columns["interval", name] = Column("interval", "interval", priority=place + 2)
    lines: list[tuple[str, int, Mapping[Any, Cell]]] = []
    for group, members in (("all", found.rows), *found.groups.items()):
        by_name = {row.name: row for row in reversed(members)}
        cells: dict[Any, Cell] = {name: signed_difference(row) for name, row in by_name.items()}
        cells |= {("interval", name): interval_of_change(row) for name, row in by_name.items()}
        lines.append((group, members[0].new.n if members else 0, cells))
    caption, note = "Differences per group: new minus old", "Intervals hold one by one, not for all groups together."
    return per_group(getattr(found.new, "by", None), columns, lines, caption, note)


def diagrams(found: ChangeComparison, names: tuple[str, str]) -> Figures:
    """Both reliability diagrams beside each other."""
    parts = [getattr(each, "whole").reliability for each in (found.old, found.new)]  # noqa: B009
    titles = tuple(map(capital, names)) if names == _UNNAMED else names
    drawn = reliability_charts(dict(zip(titles, parts, strict=True)), task=_task_of_tables(found))
    return Figures([replace(each, numbers=None, bars=None) for each in drawn])


def _chart_of_changes(found: ChangeComparison) -> Chart:
    names = [f"{_label_of_number(found, row.name)} {bins_text(row.old)}".strip() for row in found.rows]
    places = [place + 0.5 for place in range(len(names))]
    old, new = ([float(getattr(row, side).value) for row in found.rows] for side in ("old", "new"))
    lowest = min([0.0, *(value for value in (*old, *new) if math.isfinite(value))])
    up = covering([*old, *new], "value", low=None if lowest < 0 else 0.0)
    called = _names(found)
    marks = [Points(places, old, 1, called[0]), Points(places, new, 0, called[1])]
    said = "Each number of the old result beside the new one; the table has them all."
    size = "wide" if len(names) > 14 else "normal"
    return Chart(f"{capital(called[0])} and {called[1]}", said, [Panel(named_axis(names), up, marks)], size=size)


def _task_of_tables(found: ChangeComparison) -> str:
    return str(found.new.about["task"])


def _label_of_number(found: ChangeComparison, name: str) -> str:
    return label(name, _task_of_tables(found)) if found.kind == "estimates" else bound_name(name)


def _claims_of_bounds(found: ChangeComparison) -> list[Block]:
    return [] if found.bounds is None else [two_sided_claim(both) for both in (found.bounds.binned, found.bounds.brier)]


def _headline_of_changes(found: ChangeComparison) -> Claim:
    row = found.headline
    if row is None:
        return Claim("Estimate", "The two have no number in common.")
    name = label(row.name, _task_of_tables(found)).split(" (")[0] if found.kind == "estimates" else row.new.name
    if isinstance(row.old, Estimate) or isinstance(row.new, Estimate):
        return difference_claim(row, name, "new minus old")
    old, new = (f"{relation_of(each)} {text_of(each)}".strip() for each in (row.old, row.new))
    sentence = f"{capital(name)} was {old} and is {new}, a difference of {_signed_value(row)}."
    fails = f"{sure_text(max(row.old.delta, row.new.delta))} of each of the two, for samples drawn like its own."
    rests = tuple(dict.fromkeys((*assumptions_of(row.old), *assumptions_of(row.new))))
    return Claim(kind_of(row.new), sentence, _signed_value(row), f"{fails} {_LIMITS}", rests)


def difference_claim(row: Change, name: str, which: str) -> Claim:
    """A difference of estimates with its interval, and where that shows none, that it does not."""
    value, said = _signed_value(row), "A difference of estimates, without an interval."
    if row.interval is not None and row.changed is not None:
        ends = interval_of_change(row).replace(" – ", " to ")
        said = f"{percent_text(row.interval.level)} interval {ends}"
        said += "." if row.changed else ": this number does not show a change."
    return Claim(kind_of(row.new), f"Difference in {name}, {which}: {value}.", value, said)


def interval_of_change(row: Change) -> str:
    """The interval of the difference."""
    return NOTHING if row.interval is None else between(row.interval.lower, row.interval.upper, _DIGITS)


def _signed_value(row: Change) -> str:
    if math.isnan(row.difference):
        return NOTHING
    text = number(row.difference)
    return f"+{text}" if row.difference > 0 and text != number(0.0) else text


def _description(found: ChangeComparison) -> str:
    if found.pairing is None:
        return ""
    given = found.pairing
    sizes = f"{counted(found.new.n, 'sample')}"
    if given.by is None:
        sizes = f"{counted(found.old.n, 'sample')} and {found.new.n:,}"
    alone = [
        f"{counted(count, 'row')} only in {name}"
        for count, name in ((given.only_old, "the old"), (given.only_new, "the new"))
        if count
    ]
    return "; ".join((f"{sizes}, {given.why}", *([f"left out: {' and '.join(alone)}"] if alone else [])))


def _notes_of_changes(found: ChangeComparison) -> list[str]:
    notes: list[str] = []
    if found.kind == "estimates" and any(row.interval is not None for row in found.rows):
        paired = found.paired
        levels = {row.interval.level for row in found.rows if row.interval is not None}
        said = " and ".join(percent_text(level) for level in sorted(levels, reverse=True))
        notes.append(
            f"In bold, better, worse: the {said} interval of the difference excludes 0, one number at a time; {_IDEAL}"
        )
        notes.append(
            f"All: {_JOINT}"
            if not found.of_tables
            else f"{_MEANS.format(how=_HOW[paired], bins=' and, bin by bin, of ECE' if paired else '')} {_JOINT}"
        )
    if found.unmatched:
        notes.append(f"Only in one of them: {', '.join(_label_of_number(found, name) for name in found.unmatched)}.")
    return notes
