"""Exact worst cases of calibration over intervals of confidences, and the baselines they replace."""

from __future__ import annotations

from certcal.worst_case._information import Information, information
from certcal.worst_case._ks import ks_error
from certcal.worst_case._mce import mce
from certcal.worst_case._pooled import MOST_POOLED_BINS, PooledEnds, pooled_calibration_error
from certcal.worst_case._population import population_bound
from certcal.worst_case._result import CertifiedValue, WorstCase
from certcal.worst_case._scores import brier_score, nll
from certcal.worst_case._summary import CertifiedRange, CertifiedSummary, certify
from certcal.worst_case.calibration import SignProgram, calibration_error
from certcal.worst_case.equal_mass import any_edges_error, equal_mass_error

__all__ = [
    "MOST_POOLED_BINS",
    "CertifiedRange",
    "CertifiedSummary",
    "CertifiedValue",
    "Information",
    "PooledEnds",
    "SignProgram",
    "WorstCase",
    "any_edges_error",
    "brier_score",
    "calibration_error",
    "certify",
    "equal_mass_error",
    "information",
    "ks_error",
    "mce",
    "nll",
    "pooled_calibration_error",
    "population_bound",
]
