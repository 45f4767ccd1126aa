"""Bounds that hold with a stated probability for any number of samples."""

from __future__ import annotations

from certcal.bounds._binned import binned, binned_lower
from certcal.bounds._bounded_variation import bounded_variation
from certcal.bounds._every import ClasswiseBounds, classwise, every_bound
from certcal.bounds._lipschitz import lipschitz
from certcal.bounds._perturb import BandwidthChoice, choose_bandwidth, perturb
from certcal.bounds._smooth import smooth
from certcal.bounds.concentration import (
    Limits,
    betting,
    clopper_pearson,
    dkw_width,
    empirical_bernstein,
    hoeffding,
)

__all__ = [
    "BandwidthChoice",
    "ClasswiseBounds",
    "Limits",
    "betting",
    "binned",
    "binned_lower",
    "bounded_variation",
    "choose_bandwidth",
    "classwise",
    "clopper_pearson",
    "dkw_width",
    "empirical_bernstein",
    "every_bound",
    "hoeffding",
    "lipschitz",
    "perturb",
    "smooth",
]
