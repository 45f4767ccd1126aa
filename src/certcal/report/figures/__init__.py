"""Figures for papers and notebooks, drawn from prepared data objects with matplotlib.

Only ``Figure`` objects are used, never pyplot, so nothing global changes and no window opens. The palette is that of
Okabe and Ito, which colour-blind readers can tell apart; hatching, markers and line styles carry the meaning as well,
so that a grey print can be read. Names from outside are drawn letter by letter, never read as formulas.
"""

from __future__ import annotations

from certcal.report.figures._admm import admm_assignments, admm_constraints, admm_convergence
from certcal.report.figures._bias import gradient_norm_boxes
from certcal.report.figures._bounds import bound_terms
from certcal.report.figures._canvas import BLUE, FORMATS, GREY, ORANGE, new_figure, save
from certcal.report.figures._radius import radius_curves
from certcal.report.figures._reliability import reliability_diagram, reliability_panels, worst_case_diagram
from certcal.report.figures._sign_runs import sign_runs
from certcal.report.figures._widths import interval_widths

__all__ = [
    "BLUE",
    "FORMATS",
    "GREY",
    "ORANGE",
    "admm_assignments",
    "admm_constraints",
    "admm_convergence",
    "bound_terms",
    "gradient_norm_boxes",
    "interval_widths",
    "new_figure",
    "radius_curves",
    "reliability_diagram",
    "reliability_panels",
    "save",
    "sign_runs",
    "worst_case_diagram",
]
