"""Published approximations of the worst-case calibration error (Emde et al. 2024), to compare the exact value with.

Each returns a feasible point, so its value is a lower bound of the worst case and no certificate. torch is loaded when
:func:`admm`, :func:`admm_grid` or :func:`dece_ascent` is called.
"""

from __future__ import annotations

from certcal.lab.baselines._admm import GRID, ONE_SIZE_FITS_ALL, AdmmSettings, admm, admm_grid
from certcal.lab.baselines._compare import brier_confidences, compare, prepare
from certcal.lab.baselines._dece import dece_ascent
from certcal.lab.baselines._problem import Baseline
from certcal.lab.baselines.charts import admm_assignments, admm_constraints, admm_convergence
from certcal.verbs.certification import ComparedMethod

__all__ = [
    "GRID",
    "ONE_SIZE_FITS_ALL",
    "AdmmSettings",
    "Baseline",
    "ComparedMethod",
    "admm",
    "admm_assignments",
    "admm_constraints",
    "admm_convergence",
    "admm_grid",
    "brier_confidences",
    "compare",
    "dece_ascent",
    "prepare",
]
