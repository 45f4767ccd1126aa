"""Bounds that hold with a stated probability for any number of samples."""

from __future__ import annotations

from certcal.bounds._band import CalibrationBand, Region, StepFunction
from certcal.bounds._binned import binned, binned_interval, binned_lower
from certcal.bounds._bounded_variation import bounded_variation, denoised
from certcal.bounds._cumulative import ks, ks_lower, kuiper, kuiper_lower
from certcal.bounds._difference import DifferenceBounds, difference
from certcal.bounds._every import ClasswiseBounds, bound_functions, classwise, equal_share, every_bound
from certcal.bounds._isotonic_band import isotonic_band
from certcal.bounds._lipschitz import lipschitz
from certcal.bounds._perturb import BandwidthChoice, choose_bandwidth, perturb
from certcal.bounds._planner import Plan, PlannedSize, plan
from certcal.bounds._smooth import nadaraya_watson, smooth
from certcal.bounds._surrogate import surrogate
from certcal.bounds.concentration import Limits, betting, clopper_pearson, dkw_width, empirical_bernstein, hoeffding

__all__ = [
    "BandwidthChoice",
    "CalibrationBand",
    "ClasswiseBounds",
    "DifferenceBounds",
    "Limits",
    "Plan",
    "PlannedSize",
    "Region",
    "StepFunction",
    "betting",
    "binned",
    "binned_interval",
    "binned_lower",
    "bound_functions",
    "bounded_variation",
    "choose_bandwidth",
    "classwise",
    "clopper_pearson",
    "denoised",
    "difference",
    "dkw_width",
    "empirical_bernstein",
    "equal_share",
    "every_bound",
    "hoeffding",
    "isotonic_band",
    "ks",
    "ks_lower",
    "kuiper",
    "kuiper_lower",
    "lipschitz",
    "nadaraya_watson",
    "perturb",
    "plan",
    "smooth",
    "surrogate",
]
