"""Point estimates of calibration: functions of arrays that return floats.

All take ``sample_weight``; all that bin share one edge rule (see :mod:`certcal.binning`).
"""

from __future__ import annotations

from certcal.metrics._bootstrap import bootstrap, with_interval
from certcal.metrics._intervals import Evidence, IntervalRule
from certcal.metrics._measure import STUDY_BINS, Measurements, Metric, measure
from certcal.metrics._passes import Survey, check_bins, measure_stream, survey_stream
from certcal.metrics._reliability import Reliability, reliability
from certcal.metrics._streaming import StreamingCalibration
from certcal.metrics.binary import (
    calibration_intercept,
    calibration_slope,
    observed_expected_ratio,
    spiegelhalter_p,
    spiegelhalter_z,
)
from certcal.metrics.binned import debiased_ece, ece, equal_mass_ece, lp_ece, mce, sweep_ece
from certcal.metrics.classwise import classwise_ece, classwise_equal_mass_ece
from certcal.metrics.cumulative import ks_error, kuiper_error
from certcal.metrics.decision import DecisionCurve, decision_curve, net_benefit
from certcal.metrics.kernel import kde_ece, mmce, smooth_ece
from certcal.metrics.loess import e50, e90, ici
from certcal.metrics.registry import METRICS, MetricEntry
from certcal.metrics.scores import (
    BrierDecomposition,
    accuracy,
    accuracy_at_threshold,
    auroc,
    base_rate,
    brier_decomposition,
    brier_score,
    harmonic_calibration_score,
    harmonic_score,
    nll,
    top_label_brier_score,
    top_label_nll,
)

__all__ = [
    "METRICS",
    "STUDY_BINS",
    "BrierDecomposition",
    "DecisionCurve",
    "Evidence",
    "IntervalRule",
    "Measurements",
    "Metric",
    "MetricEntry",
    "Reliability",
    "StreamingCalibration",
    "Survey",
    "accuracy",
    "accuracy_at_threshold",
    "auroc",
    "base_rate",
    "bootstrap",
    "brier_decomposition",
    "brier_score",
    "calibration_intercept",
    "calibration_slope",
    "check_bins",
    "classwise_ece",
    "classwise_equal_mass_ece",
    "debiased_ece",
    "decision_curve",
    "e50",
    "e90",
    "ece",
    "equal_mass_ece",
    "harmonic_calibration_score",
    "harmonic_score",
    "ici",
    "kde_ece",
    "ks_error",
    "kuiper_error",
    "lp_ece",
    "mce",
    "measure",
    "measure_stream",
    "mmce",
    "net_benefit",
    "nll",
    "observed_expected_ratio",
    "reliability",
    "smooth_ece",
    "spiegelhalter_p",
    "spiegelhalter_z",
    "survey_stream",
    "sweep_ece",
    "top_label_brier_score",
    "top_label_nll",
    "with_interval",
]
