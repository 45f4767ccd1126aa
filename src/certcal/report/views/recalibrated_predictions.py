"""What a map does to predictions, or that nothing was held out to say so: words and layout of a Recalibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.text import capital, counted
from certcal.calibrators import ScoreCalibrator, describe
from certcal.predictions import task_of
from certcal.report.charts import Bars, Chart, Line, Mark, Panel, Points, Segments, counts, unit
from certcal.report.document import Claim, Column, Facts, Report, Section, Table, Text
from certcal.report.names import definitions, label, wording
from certcal.report.numbers import number
from certcal.report.views.changes import changes_table, diagrams, difference_said
from certcal.verbs.map_answer import deciding_change

if TYPE_CHECKING:
    from certcal.binning import BinTable
    from certcal.verbs.recalibrate import PredictionRecalibration, Recalibration

Floats = NDArray[np.float64]

_MOST_FLAT, _MOST_ROWS = 60, 40
_GRID = 400
_NARROWEST = 0.004  # parts of a map narrower than this would not be seen


def view(found: Any) -> Report:
    """The report of a map of predictions, or of a map that was fitted to all samples."""
    title = f"Does the map repair the {_mapped_number(found)}s?"
    if not found.n_held_out:
        return Report(title, [Text(found.notes[0])])
    given = found.conventions
    return Report(
        title,
        [_headline_after_map(found), Text(" ".join(each.text for each in found.answer if each.kind != "next"))],
        [
            Section("Before and after", changes_table(found.change, ("before", found.method)), brief=True),
            Section("Maps that were compared", _tried_table(found), brief=True),
            Section("Reliability diagrams", diagrams(found.change, ("Before", capital(found.method)))),
            Section("Map", charts(found)),
        ],
        [
            Section("Samples and settings", Facts([*split_facts(found), ("Map", describe(found.map))])),
            Section("Definitions", definitions(found.after.rows, found.after.task)),
        ],
        notes=[
            *found.notes,
            f"Drawn with seed {given['seed']}. ECE has {given['bins']:,} bins, closed on the {given['closed']}. "
            "Estimates from samples that the maps were not fitted to, not guarantees.",
        ],
    )


def charts(found: Recalibration) -> Sequence[Chart]:
    """The map, where it is one of confidences."""
    if isinstance(found.map, ScoreCalibrator):
        return []
    return [map_chart({found.method: found.map}, None, _mapped_number(found))]


def _mapped_number(found: Recalibration) -> str:
    about = found.about
    return wording(task_of(about.get("kind") or about.get("columns", {}).get("kind", "confidence"))).number


def _headline_after_map(found: PredictionRecalibration) -> Claim:
    change = deciding_change(found.change) or next(row for row in found.change.rows if row.name == "ece")
    name = label(change.name, found.after.task)
    over = (
        f"on {counted(found.n_held_out, 'sample')} that the map was not fitted to; before, {number(change.old.value)}"
    )
    made = Claim.of(change.new, f"After the map, {name}", over=over, settings=False)
    return replace(made, probability=f"The difference: {difference_said(change)} {made.probability}")


def _tried_table(found: PredictionRecalibration) -> Table | None:
    if found.choice is None or not found.choice.tried:
        return None
    rows = [
        [each.method, each.nll, each.nll - found.choice.tried[0].nll, each.difference, each.standard_error]
        for each in found.choice.tried
    ]
    heads = ("log loss", "behind the best", "minus no map", "standard error")
    columns = [Column("map"), *(Column(head, "estimate", priority=place) for place, head in enumerate(heads))]
    others = sorted(set(found.fold_methods) - {found.method})
    note = f"In other folds the choice was {', '.join(others)}." if others else ""
    return Table(columns, rows, found.choice.why, note)


def split_facts(found: Recalibration) -> list[tuple[str, str]]:
    """Which samples a map was fitted to and judged on, and by which bins."""
    given = found.conventions
    bins = ("Bins", f"{given['bins']:,} of equal width, closed on the {given['closed']}")
    if given["fraction"] is None:
        folds = f"{given['folds']} folds, drawn with seed {given['seed']}; each is judged by a map fitted to the others"
        return [("Fitted to and judged on", f"all {found.n_fit:,} samples"), ("Cross-fitting", folds), bins]
    return [
        ("Fitted to", f"{counted(found.n_fit, 'sample')}, a share of {given['fraction']:g}"),
        ("Judged on", counted(found.n_held_out, "other sample")),
        ("Split", f"by position with seed {given['seed']}, independent of what the samples hold"),
        bins,
    ]


# --- a map as a chart ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MapPoints:
    """A map as a line that can be drawn."""

    x: Floats
    y: Floats
    flat: Floats


def map_points(calibrator: Any) -> MapPoints:
    """Points of a map's line and its flat parts.

    Between the points the map differs from the straight line by less than can be seen. Flat parts narrower than 0.004
    are left out.
    """
    curve = getattr(calibrator, "curve_", None)
    near = np.logspace(-6, -2, 60)  # places are closer near 0 and 1, where sigmoids of logits turn fastest
    grid = np.unique(np.concatenate([near, np.arange(_GRID + 1) / _GRID, 1 - near]))
    corners = grid if curve is None else np.unique(np.concatenate([[0.0, 1.0], curve.x]))
    x = corners if corners.size <= _GRID + 2 else grid
    values = np.asarray(calibrator.predict(corners))
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    ends = np.append(starts[1:], values.size) - 1
    rows = np.stack([corners[starts], corners[ends], values[starts]], axis=1)
    return MapPoints(x, np.asarray(calibrator.predict(x)), rows[rows[:, 1] - rows[:, 0] >= _NARROWEST])


def map_chart(maps: Mapping[str, Any], held_out: BinTable | None, what: str = "confidence") -> Chart:
    """Maps against the diagonal, the first of them in words, and where held-out confidences (or scores) lie."""
    lines = {name: map_points(each) for name, each in maps.items()}
    first = next(iter(lines.values()))
    across = unit(f"{what} before the map")
    marks: list[Mark] = [Segments([(0.0, 0.0, 1.0, 1.0)], "ideal", "no change")]
    for place, (name, each) in enumerate(lines.items()):
        marks.append(Line(each.x.tolist(), each.y.tolist(), place, name, markers=False))
    if 0 < len(first.flat) <= _MOST_FLAT:
        values = first.flat[:, 2].repeat(2).tolist()
        marks.append(Points(first.flat[:, :2].ravel().tolist(), values, 0, "ends of a flat part"))
    panels = [Panel(across, unit(f"{what} after the map"), marks, 275)]
    if held_out is not None:
        own = counts(held_out.count.tolist())
        left, right, count = (each.tolist() for each in (held_out.edges[:-1], held_out.edges[1:], held_out.count))
        bars = Bars(left, right, [own.low] * len(count), count, "count", f"held-out {what}s")
        panels.append(Panel(across, own, [bars], 52))
    said = _map_in_words(first, what)
    caption = f"Below the diagonal the map lowers a {what}, above it raises one. {said}"
    return Chart(f"Map: {next(iter(maps))}", said, panels, caption, _map_table(first, what))


def _map_in_words(points: MapPoints, what: str) -> str:
    low, high = number(float(points.y[0])), number(float(points.y[-1]))
    if low == high and len(points.flat) == 1:
        return f"Every {what} becomes {low}."
    said = f"It takes 0 to {low} and 1 to {high}."
    if not len(points.flat):
        return f"{said} No part of it is flat."
    width = number(float((points.flat[:, 1] - points.flat[:, 0]).max()))
    parts = f"{counted(len(points.flat), 'flat part')}, the widest {width} wide"
    return f"{said} It has {parts}: all {what}s on a flat part become the same."


def _map_table(points: MapPoints, what: str) -> Table:
    if len(points.flat):
        heads, rows, caption = ("flat from", "to", "becomes"), points.flat.tolist(), "Flat parts of the map"
    else:
        wanted = [place / 20 for place in range(21)]
        pairs = zip(points.x.tolist(), points.y.tolist(), strict=True)
        heads, rows, caption = (what, "becomes"), [p for p in pairs if p[0] in wanted], "Values of the map"
    return Table([Column(head, "estimate") for head in heads], rows, caption, most=_MOST_ROWS)
