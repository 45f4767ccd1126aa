"""Decision curves as charts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from certcal._rounding import percent_text
from certcal.report.charts import Axis, Band, Chart, Line, Mark, Panel, TextBars, covering, ticks
from certcal.report.document import Cell, Column, Table
from certcal.report.numbers import number

if TYPE_CHECKING:
    from certcal.metrics import DecisionCurve

# Rows of the table and of the terminal.
_ROWS = 10
# How far below zero a picture goes, as a share of the largest net benefit.
_BELOW = 0.25
CAPTION = (
    "Net benefit: the share of events acted upon, minus the share of unnecessary actions times t/(1 − t), for a "
    "threshold t. A score is worth using where its curve is above both others."
)


def decision_chart(curve: DecisionCurve, title: str = "Net benefit over thresholds") -> Chart:
    """Net benefit of the score over thresholds, beside treating all and treating none."""
    used = _informative(curve)
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
        _description(curve, used),
        [Panel(across, up, marks, 240)],
        CAPTION,
        _numbers(curve, used, title),
        bars=_bars(curve, used),
    )


def _informative(curve: DecisionCurve) -> slice:
    """The thresholds up to the last at which anybody is acted upon."""
    acted = np.flatnonzero(curve.acted > 0)
    return slice(0, max(2, int(acted[-1]) + 2 if acted.size else 2))


def _some(used: slice, size: int) -> list[int]:
    """Some of the thresholds, evenly, at round values where there are many."""
    count = len(range(*used.indices(size)))
    step = next((step for step in (1, 2, 5, 10) if count / step <= _ROWS + 1), math.ceil(count / _ROWS))
    return list(range(step - 1, count, step))


def _description(curve: DecisionCurve, used: slice) -> str:
    best = np.maximum(curve.treat_all, 0)[used]
    above = curve.threshold[used][curve.net_benefit[used] > best + 1e-12]
    if above.size == 0:
        return "At no threshold is the net benefit of the score above those of treating all and of treating none."
    return (
        f"The net benefit of the score is above those of treating all and of treating none at {above.size} of "
        f"{best.size} thresholds, from {above[0]:.4g} to {above[-1]:.4g}."
    )


def _numbers(curve: DecisionCurve, used: slice, title: str) -> Table:
    columns = [Column("threshold"), Column("acted upon"), Column("net benefit", "estimate")]
    columns += [Column("interval", "interval"), Column("treat all", "estimate")]
    rows: list[list[Cell]] = []
    for k in _some(used, curve.threshold.size):
        ends = float(curve.lower[k]), float(curve.upper[k])
        rows.append([f"{curve.threshold[k]:.4g}", f"{curve.acted[k]:.1%}"])
        rows[-1] += [float(curve.net_benefit[k]), ends, float(curve.treat_all[k])]
    return Table(columns, rows, f"Numbers: {title}")


def _bars(curve: DecisionCurve, used: slice) -> TextBars:
    """Net benefit as a share of the base rate, which is the most that it can be."""
    rows: list[tuple[str, float | None, float | None, list[str]]] = []
    for k in _some(used, curve.threshold.size):
        values = float(curve.net_benefit[k]), float(curve.treat_all[k])
        bar, mark = (min(1.0, each / curve.rate) if each > 0 else None for each in values)
        rows.append((f"{curve.threshold[k]:.4g}", bar or 0.0, mark, [number(values[0]), number(values[1])]))
    return TextBars(
        ("threshold", "net benefit {bar}   treat all {mark}", "net benefit", "treat all"),
        rows,
        f"bars are shares of the base rate, {number(curve.rate)}; treating none has a net benefit of 0",
    )
