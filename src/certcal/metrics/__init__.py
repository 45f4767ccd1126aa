"""Point estimates of calibration: functions of arrays that return floats.

All take ``sample_weight``; all that bin share one edge rule (see :mod:`certcal.binning`).
"""

from __future__ import annotations

from certcal.metrics._bootstrap import bootstrap
from certcal.metrics._measure import STUDY_BINS, Measurements, Metric, measure
from certcal.metrics._mmce import mmce
from certcal.metrics._passes import Survey, check_bins, measure_stream, reliability_stream, survey_stream
from certcal.metrics._reliability import Reliability, reliability
from certcal.metrics._streaming import StreamingCalibration
from certcal.metrics.binned import debiased_ece, ece, equal_mass_ece, lp_ece, mce, sweep_ece
from certcal.metrics.classwise import classwise_ece, classwise_equal_mass_ece
from certcal.metrics.cumulative import ks_error, kuiper_error
from certcal.metrics.kde import kde_ece
from certcal.metrics.registry import METRICS, NAMES, SECTIONS, MetricEntry, check_names
from certcal.metrics.scores import (
    BrierDecomposition,
    accuracy,
    auroc,
    brier_decomposition,
    brier_score,
    harmonic_calibration_score,
    harmonic_score,
    nll,
    top_label_brier_score,
    top_label_nll,
)
from certcal.metrics.smooth import smooth_ece

__all__ = [
    "METRICS",
    "NAMES",
    "SECTIONS",
    "STUDY_BINS",
    "BrierDecomposition",
    "Measurements",
    "Metric",
    "MetricEntry",
    "Reliability",
    "StreamingCalibration",
    "Survey",
    "accuracy",
    "auroc",
    "bootstrap",
    "brier_decomposition",
    "brier_score",
    "check_bins",
    "check_names",
    "classwise_ece",
    "classwise_equal_mass_ece",
    "debiased_ece",
    "ece",
    "equal_mass_ece",
    "harmonic_calibration_score",
    "harmonic_score",
    "kde_ece",
    "ks_error",
    "kuiper_error",
    "lp_ece",
    "mce",
    "measure",
    "measure_stream",
    "mmce",
    "nll",
    "reliability",
    "reliability_stream",
    "smooth_ece",
    "survey_stream",
    "sweep_ece",
    "top_label_brier_score",
    "top_label_nll",
]
