"""Figures for papers and notebooks, drawn from prepared data objects with matplotlib.

Only ``Figure`` objects are used, never pyplot, so nothing global changes and no window opens. The palette is that of
Okabe and Ito, which colour-blind readers can tell apart; hatching, markers and line styles carry the meaning as well,
so that a grey print can be read. Names from outside are drawn letter by letter, never read as formulas.
"""

from __future__ import annotations

from certcal.report.figures._bias import gradient_norm_boxes
from certcal.report.figures._bounds import bound_terms
from certcal.report.figures._canvas import BLUE, FORMATS, GREY, ORANGE, new_figure, save
from certcal.report.figures._families import (
    accuracy_panels,
    certified_calibration_panels,
    dominance_graphs,
    p_a_panels,
)
from certcal.report.figures._recalibration import pareto_front, recalibration_map
from certcal.report.figures._reliability import reliability_diagram, reliability_panels
from certcal.report.figures._robustness import certified_accuracy_curves
from certcal.report.figures._study import boxes, correlation_matrix, lines, scatter

__all__ = [
    "BLUE",
    "FORMATS",
    "GREY",
    "ORANGE",
    "accuracy_panels",
    "bound_terms",
    "boxes",
    "certified_accuracy_curves",
    "certified_calibration_panels",
    "correlation_matrix",
    "dominance_graphs",
    "gradient_norm_boxes",
    "lines",
    "new_figure",
    "p_a_panels",
    "pareto_front",
    "recalibration_map",
    "reliability_diagram",
    "reliability_panels",
    "save",
    "scatter",
]
