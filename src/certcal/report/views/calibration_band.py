"""Where a model is miscalibrated: the words and the layout of a CalibrationBand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from certcal._base.rounding import round_outward
from certcal._base.text import capital, counted
from certcal.report.charts import Chart, Panel, Segments, unit
from certcal.report.document import Block, Cell, Claim, Column, Report, Section, Table, Text, settings_of
from certcal.report.reliability import NOWHERE, REFUTED, band_marks, where_outside

if TYPE_CHECKING:
    from certcal.bounds import CalibrationBand


def view(found: CalibrationBand) -> Report:
    """The report of a band."""
    claim = Claim(
        "Bound",
        capital(found.sentence),
        assumptions=found.assumptions,
        settings=settings_of(found),
        meaning=where_outside(found, "binary"),
    )
    blocks: list[Block] = [_regions(found)] if found.regions else [Text(REFUTED if found.contradicts else NOWHERE)]
    drawn = charts(found)
    return Report(
        "Where is the model miscalibrated?",
        [claim],
        [
            Section("Calibration function", drawn, brief=True, pictured=True),
            Section("Miscalibrated scores", blocks, brief=True),
        ],
        source=found.source or f"{found.kind} band",
        description=counted(found.n, "sample"),
        picture=drawn,
    )


def charts(found: CalibrationBand) -> Sequence[Chart]:
    """The band, the estimate and the diagonal."""
    panel = Panel(
        unit("score"),
        unit("rate of outcome 1"),
        [*band_marks(found), Segments([(0.0, 0.0, 1.0, 1.0)], "ideal", "perfect calibration")],
        275,
    )
    return [Chart("Calibration function", where_outside(found, "binary"), [panel], capital(found.sentence))]


def _regions(found: CalibrationBand) -> Table:
    columns = [Column("scores"), Column("verdict"), Column("worst at", "estimate"), Column("rate there")]
    rows: list[list[Cell]] = []
    for each in found.regions:
        relation, verb = ("≥", "under-predict") if each.side == "lower" else ("≤", "over-predict")
        rate = f"{relation} {round_outward(each.rate, each.side)}"
        rows.append([f"{each.start:.4f} – {each.end:.4f}", verb, each.score, rate])
    return Table(columns, rows)
