"""What a map does to predictions, or that nothing was held out to say so: words and layout of a Recalibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from certcal._text import counted
from certcal.calibrators import ScoreCalibrator, described
from certcal.report.charts import Chart
from certcal.report.document import Cell, Claim, Column, Facts, Heading, Report, Section, Table, Text
from certcal.report.names import CALIBRATION_ERROR, definitions, in_sections, label
from certcal.report.numbers import bins_text, number
from certcal.report.views.recalibration import map_chart

if TYPE_CHECKING:
    from certcal.claims import Estimate
    from certcal.verbs.recalibrate import PredictionRecalibration, Recalibration


def view(found: Any) -> Report:
    """The report of a map of predictions, or of a map that was fitted to all samples."""
    title = "Does the map repair the confidences?"
    if not found.n_held_out:
        return Report(title, [Text(found.notes[0])], source=found.source, description=found.description)
    maps = charts(found)
    given = found.conventions
    bins = f"{given['bins']:,} of equal width, closed on the {given['closed']}"
    return Report(
        title,
        [_headline(found)],
        [
            Section("Before and after", [_both(found)], brief=True),
            *([Section("Map", list(maps))] if maps else []),
        ],
        [
            Section("Samples and settings", [_facts(found, bins)]),
            Section("Definitions", [definitions(found.after.rows)]),
        ],
        found.source,
        found.description,
        [
            *found.notes,
            f"The split is drawn with seed {given['seed']}. ECE has {bins.replace(' of equal width', ' bins')}. "
            "Estimates from the held-out samples, not guarantees.",
        ],
    )


def charts(found: Recalibration) -> Sequence[Chart]:
    """The map, where it is one of confidences."""
    return [] if isinstance(found.map, ScoreCalibrator) else [map_chart({found.method: found.map}, None)]


def _headline(found: PredictionRecalibration) -> Claim:
    before, after = (next(row for row in each.rows if row.name == "ece") for each in (found.before, found.after))
    over = f"on {counted(found.n_held_out, 'held-out sample')}; as it is, {number(before.value)}"
    return Claim.of(after, "After the map, ECE", over=over, meaning=CALIBRATION_ERROR, settings=False)


def _both(found: PredictionRecalibration) -> Table:
    after = {(row.name, bins_text(row)): row for row in found.after.rows}
    rows: list[Sequence[Cell] | Heading] = []
    for heading, members in in_sections(found.before.rows):
        rows.append(Heading(heading))
        rows += [_row(row, after[row.name, bins_text(row)]) for row in members]
    columns = (
        Column("metric"),
        Column("bins", "count"),
        Column("as it is", "estimate"),
        Column(found.method, "estimate"),
    )
    return Table(columns, rows, f"Estimates on {counted(found.n_held_out, 'held-out sample')}")


def _row(before: Estimate, after: Estimate) -> list[Cell]:
    return [label(before.name), bins_text(before), float(before.value), float(after.value)]


def _facts(found: PredictionRecalibration, bins: str) -> Facts:
    given = found.conventions
    return Facts(
        [
            ("Fitted to", f"{counted(found.n_fit, 'sample')}, a share of {given['fraction']:g}"),
            ("Judged on", counted(found.n_held_out, "other sample")),
            ("Split", f"by position with seed {given['seed']}, whatever the samples hold"),
            ("Map", described(found.map)),
            ("Bins", bins),
        ]
    )
