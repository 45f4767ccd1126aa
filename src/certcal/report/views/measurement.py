"""What was measured in a table of predictions: the words and the layout of a Measurement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from certcal._base.rounding import claim_text, percent_text, sure_text, times_text
from certcal.claims import Bound, Estimate
from certcal.metrics.registry import DEFAULT, row_names
from certcal.report.charts import Axis, Band, Chart, Line, Mark, Panel, TextBars, covering, ticks
from certcal.report.document import (
    Block,
    Cell,
    Column,
    Figures,
    KeyNumber,
    KeyNumbers,
    Report,
    Section,
    Table,
    Text,
    cell_of,
    left_out,
    text_of,
)
from certcal.report.names import (
    calibration_error,
    cautions,
    definition,
    definitions,
    label,
    metric_rows,
    per_group,
    row_label,
    wording,
)
from certcal.report.numbers import INTERVALS, bins_text, interval, number
from certcal.report.observed_rates import rates_choice, rates_table
from certcal.report.reliability import reliability_chart
from certcal.report.views.bounds import bound_blocks, bound_claim, claims_in_full
from certcal.report.views.groups import group_charts, group_head, key_of_row, measured_groups, short_name
from certcal.verbs.measure import bound_method

if TYPE_CHECKING:
    from certcal.metrics import DecisionCurve
    from certcal.verbs.measure import MeasuredGroup, Measurement

# A bin takes a hundred characters of JSON.
_MOST_BINS_KEPT = 30_000
_KEY = ("accuracy", "mean_confidence", "ece", "smooth_ece", "top_label_brier_score", "auroc")
_KEYS = {"binary": ("base_rate", "mean_score", "ece", "brier_score", "auroc", "accuracy")}
# Why a model with two classes has other numbers when it is given as one score.
_TWO_CLASSES = (
    "These numbers are about the predicted class: its confidence, max(p, 1 − p), against whether it is right. For the "
    "probability of one class against how often it occurs, name {columns}."
)


def view(found: Measurement) -> Report:
    """The report of what was measured."""
    whole = found.whole
    task, words = found.task, wording(found.task)
    caption = (
        f"A calibrated model has no gaps beyond sampling error: its {words.rate} equals its {words.mean} in every bin."
    )
    diagram = reliability_chart(whole.reliability, caption=caption, task=task)
    curve, name = found.decision_curve, "" if found.headline is None else found.headline.name
    error = calibration_error(task) if name == "ece" else definition(name, task)
    return Report(
        f"How calibrated are the {words.number}s?",
        [rates_table(found.rates, task), *(bound_claim(each, calibration_error(task)) for each in found.bounds[:1])],
        [
            Section("Key numbers", [_key_numbers(found), Text(error, "note")]),
            Section("Reliability diagram", _with_numbers(diagram), brief=True),
            Section("Decision curve", None if curve is None else _with_numbers(decision_chart(curve))),
            Section(
                "Bounds for the population", [bound_blocks(_by_method(found.bounds)), _group_bounds(found)], brief=True
            ),
            Section("Groups", measured_groups(found), brief=True),
        ],
        [
            Section("Metrics", metrics_table(whole, task), brief=True),
            Section("Metrics per group", _group_intervals(found)),
            Section("Definitions", definitions(whole.rows, task)),
            claims_in_full(found.claims()),
        ],
        notes=_notes_of_measurement(found),
        smaller=_smaller_documents(found),
        data=_document_for_page(found),
        picture=[rates_choice(found.rates, task)],
    )


def charts(found: Measurement) -> Sequence[Chart]:
    """The diagram, and what is drawn of groups."""
    title = found.source.rpartition("/")[2]
    return [
        reliability_chart(found.whole.reliability, title, task=found.task),
        *(group_charts(found) if found.groups else ()),
    ]


def _key_numbers(found: Measurement) -> KeyNumbers:
    numbers = [KeyNumber("samples", f"{found.n:,}")]
    for name in _KEYS.get(found.task, _KEY):
        row = found.row_of(name)
        if row is not None:
            bins = bins_text(row)
            undefined = math.isnan(row.value)  # as AUROC is where all are right; the word is too long for large type
            at = f"threshold {row.settings['threshold']:g}" if "threshold" in row.settings else ""
            facts = tuple(filter(None, (interval(row, in_sentence=True), bins and f"{bins} bins", at)))
            name = label(name, found.task).split(" (")[0]
            numbers.append(KeyNumber(name, "–" if undefined else text_of(row), ("undefined",) if undefined else facts))
    return KeyNumbers(numbers)


def _with_numbers(chart: Chart) -> Block:
    """A chart with its numbers at its side when they are few, and on demand when they are many."""
    if chart.numbers is None or len(chart.numbers.rows) > 25:
        return chart
    return Figures([replace(chart, numbers=None)], beside=[chart.numbers])


def metrics_table(group: MeasuredGroup, task: str | None = None) -> Table:
    """Metrics under their headings, with intervals where there are some."""
    levels = [row.interval.level for row in group.rows if row.interval is not None]
    columns = [Column("metric"), Column("bins", "count"), Column("value", "estimate")]
    if levels:
        columns.append(Column(f"{percent_text(levels[0])} interval", "interval"))

    def cells(row: Estimate) -> list[Cell]:
        return [cell_of(row), *([interval(row)] if levels else [])]

    rows = metric_rows(group.rows, task, cells)
    caption = f"Estimates on {group.n:,} sample{'' if group.n == 1 else 's'}"
    return Table(columns, rows, caption, cautions(group.rows, task), most=10_000)


_BESIDE = 5  # columns of groups that a page has room for


def _group_intervals(found: Measurement) -> list[Block]:
    if not found.groups:
        return []
    spreads = any(row.interval is not None for group in found.groups for row in group.rows)
    parts = (found.whole, *found.groups)
    return [
        _metrics_of_groups(found, parts[start : start + _BESIDE], start, spreads)
        for start in range(0, len(parts), _BESIDE)
    ]


def _metrics_of_groups(found: Measurement, parts: Sequence[Any], start: int, spreads: bool) -> Table:
    columns = [Column("metric"), Column("bins", "count"), *(Column(short_name(group), "estimate") for group in parts)]
    by_key = [{key_of_row(row): row for row in group.rows} for group in parts]
    rows: list[list[Cell]] = []
    for row in found.whole.rows:
        mine = [values.get(key_of_row(row)) for values in by_key]
        name = row_label(row, found.task)
        rows.append([name, bins_text(row), *("" if each is None else float(each.value) for each in mine)])
        if spreads:
            rows.append(["", "", *("" if each is None else interval(each) for each in mine)])
    title = "" if start else f"Every metric per group{', with intervals' if spreads else ''}"
    return Table(columns, rows, title, fit="split", most=10_000)


def _by_method(bounds: Sequence[Bound]) -> dict[str, Bound]:
    return {bound_method(each).replace("_", " "): each for each in bounds}


def _group_bounds(found: Measurement) -> Table | None:
    if not any(group.bounds for group in found.groups):
        return None
    methods = _by_method(found.groups[0].bounds)
    columns = {method: Column(method, "bound", "upper") for method in methods}
    lines = [
        (group.name, group.n, {method: claim_text(each) for method, each in _by_method(group.bounds).items()})
        for group in found.groups
    ]
    note = (
        f"Bounds of one kind hold for all {len(lines):,} groups together ({sure_text(found.conventions['delta'])}): "
        f"each fails {times_text(found.groups[0].bounds[0].delta)}."
    )
    return per_group(group_head(found.groupings, found.by), columns, lines, "Bounds per group", note)


def _notes_of_measurement(found: Measurement) -> list[str]:
    given = found.conventions
    what = "Metrics are estimates" if found.bounds else "Estimates"
    said = [_certainty_note(found)] if found.certain_errors is not None else []
    said += [_two_classes_note(found)] if found.about.get("classes") == 2 else []
    said.append(f"Bins are {given['bins_are']}. {what} from these samples, not guarantees.")
    if found.row_of("accuracy") is not None and "threshold" in given:
        said.append(f"Outcome 1 is predicted from a score of {given['threshold']:g} on ({given['threshold_is']}).")
    if found.settings is not None and not {*found.settings.metrics} - {DEFAULT}:
        shown, every = len({row.name for row in found.rows}), len(row_names(found.task))
        said.append(f"{shown} of {every} metrics; asking for the metric 'all' gives every one.")
    if len(found.bounds) > 1:
        said.append(f"Each bound is {sure_text(given['delta'])} on its own: choose one before looking.")
    if any(row.interval is not None for row in found.whole.rows):
        said.append(_intervals_note(given))
        said += found.interval_notes
    said += (
        [f"No bounds on the true calibration error: {given['without_bounds']}."] if "without_bounds" in given else []
    )
    without = given.get("without_interval")
    if without:
        named = ", ".join(label(name, found.task) for name in without)
        said.append(f"Without an interval, for which all rows must fit in memory: {named}.")
    if given.get("streamed"):
        said.append("The table was read in pieces, without the metrics that need all samples at once.")
    return said


def _certainty_note(found: Measurement) -> str:
    """Which certainties were wrong, and what the numbers are without them."""
    errors = found.certain_errors
    if errors is None:
        return ""
    told = [(label(row.name, found.task), text_of(row), interval(row, in_sentence=True)) for row in errors.without]
    rest = [f"{name} {value}{f' ({spread})' if spread else ''}" for name, value, spread in told]
    return errors.sentence + (f" Without {'it' if errors.n == 1 else 'them'}: {', '.join(rest)}." if rest else "")


def _intervals_note(given: Mapping[str, Any]) -> str:
    together = "those of the answer hold together" + ("" if given["level"] == 0.95 else ", with 95%")
    said = f"Intervals: {percent_text(given['level'])}, each on its own; {together}. {INTERVALS}"
    if "bootstrap" not in given:
        return said
    drawn = f"{given['bootstrap']:,} resamples, seed {given['seed']}"
    return f"{said} Metrics of your own have percentiles of {drawn}, which cover averages only."


def _two_classes_note(found: Measurement) -> str:
    """Why the numbers of a model with two classes differ from those of its score, and how to ask for these."""
    columns: Mapping[str, Any] = found.about.get("columns", {})
    names: Sequence[str] = columns.get("probabilities", ())
    if len(names) != 2:
        return _TWO_CLASSES.format(columns="the probabilities of that class as score, with an outcome")
    return _TWO_CLASSES.format(columns=f"{names[1]!r} as score and {columns['label']!r} as outcome")


def _document_for_page(found: Measurement) -> Mapping[str, Any]:
    """Everything for machines, or less where the bins alone are too many for a page."""
    bins = sum(len(group.reliability.table.count) for group in (found.whole, *found.groups))
    return found.to_dict() if bins <= _MOST_BINS_KEPT else _smaller_documents(found)[0]()[1]


def _smaller_documents(found: Measurement) -> list[Any]:
    def without_bins() -> Mapping[str, Any]:
        groups = [{"group": g.name, "n": g.n, "measurements": [row.to_dict() for row in g.rows]} for g in found.groups]
        return {**replace(found, groups=()).to_dict(), "groups": groups}

    def without_groups() -> Mapping[str, Any]:
        whole = replace(found, groups=(), by=None).to_dict()
        return {key: value for key, value in whole.items() if key != "reliability"}

    return [left_out("The bins of the groups", without_bins), left_out("Bins and groups", without_groups)]


# --- decision curves ------------------------------------------------------------------------------------------------

# Rows of the table and of the terminal.
_ROWS = 10
# How far below zero a picture goes, as a share of the largest net benefit.
_BELOW = 0.25
CAPTION = (
    "Net benefit: the share of events acted upon, minus the share of unnecessary actions times t/(1 − t), for a "
    "threshold t. A score is worth using where its curve is above both others."
)


def decision_chart(curve: DecisionCurve) -> Chart:
    """Net benefit of the score over thresholds, beside treating all and treating none."""
    title, used = "Net benefit over thresholds", _thresholds_with_action(curve)
    x = curve.threshold[used]
    top = float(max(curve.rate, curve.upper[used].max()))
    bottom = -_BELOW * float(max(curve.rate, curve.net_benefit[used].max(), 1e-9))
    lines = (curve.net_benefit[used], curve.treat_all[used], np.zeros(x.size))
    places = x.tolist()
    low, high = (np.maximum(each[used], bottom).tolist() for each in (curve.lower, curve.upper))
    marks: list[Mark] = [Band(places, low, high, 0, f"{percent_text(curve.level)} interval at each threshold")]
    for look, (name, line) in enumerate(zip(("score", "treat all", "treat none"), lines, strict=True)):
        inside = np.where(line >= bottom, line, np.nan)
        marks.append(Line(places, inside.tolist(), look, name, markers=False))
    up = Axis(bottom, top, ticks(bottom, top), "net benefit")
    across = covering([0.0, *places], "threshold", most=1.0)
    return Chart(
        title,
        _where_score_helps(curve, used),
        [Panel(across, up, marks, 240)],
        CAPTION,
        _decision_table(curve, used, title),
        bars=_decision_bars(curve, used),
    )


def _thresholds_with_action(curve: DecisionCurve) -> slice:
    acted = np.flatnonzero(curve.acted > 0)
    return slice(0, max(2, int(acted[-1]) + 2 if acted.size else 2))


def _thresholds_of_rows(used: slice, size: int) -> list[int]:
    """Some of the thresholds, evenly, at round values where there are many."""
    count = len(range(*used.indices(size)))
    step = next((step for step in (1, 2, 5, 10) if count / step <= _ROWS + 1), math.ceil(count / _ROWS))
    return list(range(step - 1, count, step))


def _where_score_helps(curve: DecisionCurve, used: slice) -> str:
    best = np.maximum(curve.treat_all, 0)[used]
    above = curve.threshold[used][curve.net_benefit[used] > best + 1e-12]
    if above.size == 0:
        return "At no threshold is the net benefit of the score above those of treating all and of treating none."
    return (
        f"The net benefit of the score is above those of treating all and of treating none at {above.size} of "
        f"{best.size} thresholds, from {above[0]:.4g} to {above[-1]:.4g}."
    )


def _decision_table(curve: DecisionCurve, used: slice, title: str) -> Table:
    columns = [Column("threshold"), Column("acted upon"), Column("net benefit", "estimate")]
    columns += [Column("interval", "interval"), Column("treat all", "estimate")]
    rows: list[list[Cell]] = []
    for k in _thresholds_of_rows(used, curve.threshold.size):
        ends = float(curve.lower[k]), float(curve.upper[k])
        rows.append([f"{curve.threshold[k]:.4g}", f"{curve.acted[k]:.1%}"])
        rows[-1] += [float(curve.net_benefit[k]), ends, float(curve.treat_all[k])]
    return Table(columns, rows, f"Numbers: {title}")


def _decision_bars(curve: DecisionCurve, used: slice) -> TextBars:
    """Net benefit as a share of the base rate, which is the most that it can be."""
    rows: list[tuple[str, float | None, float | None, list[str]]] = []
    for k in _thresholds_of_rows(used, curve.threshold.size):
        values = float(curve.net_benefit[k]), float(curve.treat_all[k])
        bar, mark = (min(1.0, each / curve.rate) if each > 0 else None for each in values)
        rows.append((f"{curve.threshold[k]:.4g}", bar or 0.0, mark, [number(values[0]), number(values[1])]))
    return TextBars(
        ("threshold", "net benefit {bar}   treat all {mark}", "net benefit", "treat all"),
        rows,
        f"bars are shares of the base rate, {number(curve.rate)}; treating none has a net benefit of 0",
    )
