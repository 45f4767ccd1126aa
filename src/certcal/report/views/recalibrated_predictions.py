"""What a map does to predictions, or that nothing was held out to say so: words and layout of a Recalibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.text import capital, counted
from certcal.calibrators import GroupedMap, ScoreCalibrator, VennAbers, describe, takes_real_scores
from certcal.predictions import task_of
from certcal.report.charts import Band, Bars, Chart, Line, Mark, Panel, Points, Segments, counts, unit
from certcal.report.document import (
    NOTHING,
    Cell,
    Claim,
    Column,
    Facts,
    Figures,
    Heading,
    Report,
    Section,
    Table,
    Text,
    cell_of,
)
from certcal.report.names import definitions, label, metric_rows, wording
from certcal.report.numbers import interval, number
from certcal.report.views.changes import (
    changes_table,
    diagrams,
    difference_claim,
    interval_of_change,
    sides_picture,
    signed_difference,
)
from certcal.verbs.map_answer import deciding_change

if TYPE_CHECKING:
    from certcal.binning import BinTable
    from certcal.verbs.recalibrate import PredictionRecalibration, Recalibration

Floats = NDArray[np.float64]

_MOST_FLAT, _MOST_ROWS, _MOST_LINES = 60, 40, 7
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
        [_headline_after_map(found)],
        [
            Section("Before and after", _numbers(found), brief=True),
            Section("Groups", _groups_table(found) if found.groups else None, brief=True),
            Section("Maps that were compared", _tried_table(found), brief=True),
            Section("Two probabilities", _pairs_table(found), brief=True),
            Section("Reliability diagrams", _diagrams(found)),
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
        picture=sides_picture(
            ({} if found.is_real else {"before": found.change.old}) | {"after": found.change.new},
            *(found.after.task, 1),
        ),
    )


def charts(found: Recalibration) -> Sequence[Chart]:
    """The map, where it is one of confidences; one by group with its groups, where these are few."""
    fitted = found.map
    if isinstance(fitted, ScoreCalibrator) or takes_real_scores(fitted):
        return []
    maps: dict[str, Any] = {found.method: fitted}
    if isinstance(fitted, GroupedMap):
        maps = {"common map": fitted.common_}
        first = fitted.corrections_[0]
        if len(fitted.corrections_) == 1 and first.codes.size <= _MOST_LINES:
            for code in first.codes.tolist():
                maps["*".join(first.rule.where(code).values())] = _OfGroup(fitted, code)
    return [map_chart(maps, None, _mapped_number(found))]


@dataclass(frozen=True)
class _OfGroup:
    """A map by group, of one group."""

    map: GroupedMap
    code: int

    def predict(self, confidence: Floats) -> Floats:
        """Confidences after the map."""
        codes = np.full((1, len(confidence)), self.code)
        return self.map.corrected(self.map.common_.predict(confidence), codes)


def _numbers(found: PredictionRecalibration) -> Table:
    """Before and after; of real scores all numbers after the map, and before it their ranks."""
    if not found.is_real:
        return changes_table(found.change, ("before", found.method))
    before = {row.name: cell_of(row) for row in found.before.rows}
    columns = [Column("metric"), Column("before", "estimate"), Column(found.method, "estimate")]
    columns.append(Column("interval", "interval", priority=1))
    rows = metric_rows(
        found.after.rows, found.after.task, lambda row: [before.get(row.name, NOTHING), cell_of(row), interval(row)]
    )
    return Table(columns, [_without_bins(row) for row in rows])


def _without_bins(row: Any) -> Any:
    return row if isinstance(row, Heading) else [row[0], *row[2:]]


def _diagrams(found: PredictionRecalibration) -> Figures:
    drawn = diagrams(found.change, ("Before", capital(found.method)))
    return replace(drawn, charts=drawn.charts[1:]) if found.is_real else drawn


def _groups_table(found: PredictionRecalibration) -> Table:
    """A line per group: log loss, then slope, then ranges that are wrong."""
    paired, several = found.groups[0].score is not None, len({each.by for each in found.groups}) > 1
    sloped = any(each.slope_after is not None for each in found.groups)
    what = label(found.groups[0].new.name, found.after.task)
    names = ("one map", "by group") if found.is_real else ("before", "after")
    columns = [Column("group"), Column("samples", "count", priority=6)]
    columns += [Column(f"{what} {names[0]}", "estimate", priority=5)] if paired else []
    columns += [Column(f"{what} {names[1]}", "estimate")]
    if paired:
        columns += [Column("difference", "estimate"), Column("interval", "interval", priority=4), Column("is")]
    columns += [Column("slope", "text", priority=1)] if sloped else []
    columns += [Column("wrong ranges", "text", priority=2)]
    rows: list[Sequence[Cell]] = []
    for each in found.groups:
        cells: list[Cell] = [each.group, f"{each.n:,}"]
        if each.score is not None:
            cells += [number(each.score.old.value), number(each.new.value), signed_difference(each.score)]
            cells += [interval_of_change(each.score), each.verdict or ""]
        else:
            cells += [number(each.new.value)]
        cells += [_both(each.slope_before, each.slope_after, lambda value: f"{value:.2f}")] if sloped else []
        rows.append([*cells, _both(each.wrong_before, each.wrong_after, str)])
    asked = "Groups of different columns overlap. " if several else ""
    note = f"{asked}The intervals of all groups hold together at 99 %, from paired rows and as samples become many."
    return Table(columns, rows, note=note if paired else asked, most=1_000)


def _both(before: Any, after: Any, text: Callable[[Any], str]) -> str:
    if after is None or after != after:
        return NOTHING
    return text(after) if before is None or before != before else f"{text(before)} → {text(after)}"


def _mapped_number(found: Recalibration) -> str:
    about = found.about
    return wording(task_of(about.get("kind") or about.get("columns", {}).get("kind", "confidence"))).number


def _headline_after_map(found: PredictionRecalibration) -> Claim:
    if found.is_real:
        row = next(row for row in found.after.rows if row.name == "nll")
        over = f"on {counted(found.n_held_out, 'sample')} that the map was not fitted to"
        return Claim.of(row, f"After the map, {label(row.name, found.after.task)}", over=over, settings=False)
    change = deciding_change(found.change) or next(row for row in found.change.rows if row.name == "ece")
    return difference_claim(change, label(change.name, found.after.task), "after the map minus before")


def _tried_table(found: PredictionRecalibration) -> Table | None:
    if found.choice is None or not found.choice.tried:
        return None
    rows = [
        [each.method, each.nll, each.nll - found.choice.tried[0].nll, each.difference, each.standard_error]
        for each in found.choice.tried
    ]
    heads = ("log loss", "behind the best", "minus no map", "standard error")
    if found.is_real:  # no map is none of these
        heads, rows = heads[:2], [row[:3] for row in rows]
    columns = [Column("map"), *(Column(head, "estimate", priority=place) for place, head in enumerate(heads))]
    others = sorted(set(found.fold_methods) - {found.method})
    note = "Before and after, above, also counts what choosing among the maps costs, anew in every fold."
    note += f" In other folds the choice was {', '.join(others)}." if others else ""
    return Table(columns, rows, found.choice.why, note)


def _pairs_table(found: PredictionRecalibration) -> Table | None:
    """The interval of Venn and Abers at deciles of the scores, and what is proved about its ends."""
    pair = found.two_probabilities
    if pair is None:
        return None
    names = (_mapped_number(found), "p0", "p1", "one number")
    rows = list(zip(pair.score, pair.p0, pair.p1, pair.value, strict=True))
    return Table([Column(name, "estimate") for name in names], rows, note=pair.claim)


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
    one = next(iter(maps.values()))
    if isinstance(one, VennAbers):
        low, high = one.probabilities(first.x)
        marks.append(Band(first.x.tolist(), low.tolist(), high.tolist(), 0, "from p0 to p1"))
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
