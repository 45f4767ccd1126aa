"""Figures for papers and notebooks, drawn from prepared data objects with matplotlib.

Only ``Figure`` objects are used, never pyplot, so nothing global changes and no window opens. The palette is that of
Okabe and Ito, which colour-blind readers can tell apart; hatching, markers and line styles carry the meaning as well,
so that a grey print can be read. Names from outside are drawn letter by letter, never read as formulas.
"""

from __future__ import annotations

from certcal.report.figures._admm import admm_assignments, admm_constraints, admm_convergence
from certcal.report.figures._bounds import bound_terms
from certcal.report.figures._canvas import BLUE, FORMATS, GREY, ORANGE, new_figure, save
from certcal.report.figures._families import (
    accuracy_panels,
    certified_calibration_panels,
    dominance_graphs,
    p_a_panels,
)
from certcal.report.figures._radius import radius_curves
from certcal.report.figures._recalibration import pareto_front, recalibration_map
from certcal.report.figures._reliability import reliability_diagram, reliability_panels, worst_case_diagram
from certcal.report.figures._robustness import certified_accuracy_curves, pa_distribution
from certcal.report.figures._sign_runs import sign_runs
from certcal.report.figures._study import boxes, correlation_matrix, lines, scatter
from certcal.report.figures._widths import interval_widths

__all__ = [
    "BLUE",
    "FORMATS",
    "GREY",
    "ORANGE",
    "accuracy_panels",
    "admm_assignments",
    "admm_constraints",
    "admm_convergence",
    "bound_terms",
    "boxes",
    "certified_accuracy_curves",
    "certified_calibration_panels",
    "correlation_matrix",
    "dominance_graphs",
    "interval_widths",
    "lines",
    "new_figure",
    "p_a_panels",
    "pa_distribution",
    "pareto_front",
    "radius_curves",
    "recalibration_map",
    "reliability_diagram",
    "reliability_panels",
    "save",
    "scatter",
    "sign_runs",
    "worst_case_diagram",
]
