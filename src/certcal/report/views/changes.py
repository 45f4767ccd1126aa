"""Two measurements, or two results of bounds, side by side: the words and the layout of a ChangeComparison."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from certcal._text import capital
from certcal.claims import Estimate, short_text
from certcal.report.charts import Chart, Panel, Points, covering, named
from certcal.report.document import (
    Cell,
    Claim,
    Column,
    Report,
    Section,
    Strong,
    Table,
    assumptions_of,
    kind_of,
    relation_of,
    text_of,
)
from certcal.report.names import label
from certcal.report.numbers import interval, number
from certcal.report.views.bounds import bound_name

if TYPE_CHECKING:
    from certcal.verbs.compare import Change, ChangeComparison

_LIMITS = {
    "estimates": "Differences of estimates, without a test of significance.",
    "bounds": "Differences of bounds, which are no bounds on the difference.",
}
_INTERVALS = (
    "In bold: the bootstrap intervals do not overlap. For averages (accuracy, Brier score, log loss) of independent "
    "samples that is a cautious sign of a difference, one number at a time. For calibration errors it is none: they "
    "are biased upward, more so with fewer samples."
)
_SIGNS = {"upper": "≤", "lower": "≥"}
_OVERLAP = {True: " The intervals overlap.", False: " The intervals do not overlap.", None: ""}


def view(found: ChangeComparison) -> Report:
    """The report of two results side by side."""
    tested = any(row.overlap is not None for row in found.rows)
    spread = [Column("interval", "interval", priority=1)] if tested else []
    columns = [Column("metric" if found.kind == "estimates" else "method"), Column("bins", "count", priority=2)]
    columns += [
        Column("old", "estimate"),
        *spread,
        Column("new", "estimate"),
        *spread,
        Column("difference", "estimate"),
    ]
    notes = [_INTERVALS] if tested else []
    if found.unmatched:
        notes.append(f"Only in one of them: {', '.join(_label(found, name) for name in found.unmatched)}.")
    return Report(
        "What changed?",
        [_headline(found)],
        [
            Section("All numbers", [Table(columns, [_row(found, row, tested) for row in found.rows])], brief=True),
            *([Section("Old and new", [_chart(found)], folded=True)] if found.rows else []),
        ],
        [],
        f"{found.old} → {found.new}",
        notes=notes,
    )


def _chart(found: ChangeComparison) -> Chart:
    names = [f"{_label(found, row.name)} {row.old.settings.get('bins', '')}".strip() for row in found.rows]
    places = [place + 0.5 for place in range(len(names))]
    old, new = ([float(getattr(row, side).value) for row in found.rows] for side in ("old", "new"))
    lowest = min([0.0, *(value for value in (*old, *new) if math.isfinite(value))])
    up = covering([*old, *new], "value", low=None if lowest < 0 else 0.0)
    marks = [Points(places, old, 1, "old"), Points(places, new, 0, "new")]
    said = "Each number of the old result beside the new one; the table has them all."
    return Chart("Old and new", said, [Panel(named(names), up, marks)], size="wide" if len(names) > 14 else "normal")


def _label(found: ChangeComparison, name: str) -> str:
    return label(name) if found.kind == "estimates" else bound_name(name)


def _headline(found: ChangeComparison) -> Claim:
    row = found.headline
    if row is None:
        return Claim("Estimate", "The two have no number in common.")
    name = label(row.name).split(" (")[0] if found.kind == "estimates" else row.new.name
    old, new = (f"{relation_of(each)} {text_of(each)}".strip() for each in (row.old, row.new))
    sentence = f"{capital(name)} was {old} and is {new}: a difference of {_signed(row)}."
    limits = f"{_LIMITS[found.kind]}{_OVERLAP[row.overlap]}"
    if isinstance(row.old, Estimate) or isinstance(row.new, Estimate):
        return Claim(kind_of(row.new), sentence, _signed(row), limits)
    level = short_text(max(row.old.delta, row.new.delta), "upper")
    fails = f"Each of the two fails with probability at most {level} over the draw of its samples."
    rests = tuple(dict.fromkeys((*assumptions_of(row.old), *assumptions_of(row.new))))
    return Claim(kind_of(row.new), sentence, _signed(row), f"{fails} {limits}", rests)


def _signed(row: Change) -> str:
    text = number(row.difference)
    return f"+{text}" if row.difference > 0 else text


def _row(found: ChangeComparison, row: Change, tested: bool) -> list[Cell]:
    made: list[Cell] = [_label(found, row.name), str(row.old.settings.get("bins", ""))]
    for each in (row.old, row.new):
        made.append(text_of(each) if isinstance(each, Estimate) else f"{_SIGNS[each.side]} {each.text}")
        made += [interval(each) if isinstance(each, Estimate) else ""] if tested else []
    return [*made, Strong(_signed(row)) if row.overlap is False else _signed(row)]
