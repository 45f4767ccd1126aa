"""Post-hoc maps that repair confidences, and those that repair them in the worst case."""

from __future__ import annotations

from certcal.calibrators._base import Calibrator, ConfidenceMap, NotFittedError, ScoreMap
from certcal.calibrators._beta import BetaCalibration
from certcal.calibrators._certified_isotonic import CertifiedIsotonic
from certcal.calibrators._certified_map import CertifiedMap
from certcal.calibrators._certified_parametric import CertifiedBeta, CertifiedTemperature
from certcal.calibrators._chain import Chain
from certcal.calibrators._confidence_chain import ConfidenceChain
from certcal.calibrators._described import described
from certcal.calibrators._equal_mass import EqualMassBinning
from certcal.calibrators._files import FittedOn, Saved, load, save
from certcal.calibrators._histogram import HistogramBinning
from certcal.calibrators._isotonic import IsotonicCalibration
from certcal.calibrators._judged import FrontPoint, Judged, JudgedAt, front_of, gain_over, judge
from certcal.calibrators._matrix import MatrixScaling
from certcal.calibrators._one_vs_rest import OneVsRest
from certcal.calibrators._outcomes import OutcomeMap
from certcal.calibrators._path import METHODS as CERTIFIED_METHODS
from certcal.calibrators._path import TRADEOFFS, certified_path
from certcal.calibrators._platt import PlattScaling
from certcal.calibrators._points import radius_shares
from certcal.calibrators._predictions import METHODS as PREDICTION_METHODS
from certcal.calibrators._predictions import default_method, fit_predictions, mapped, recalibrated
from certcal.calibrators._protocols import ConfidenceCalibrator, IntervalCalibrator, ScoreCalibrator
from certcal.calibrators._samples import CertifiedSamples
from certcal.calibrators._split import split_positions
from certcal.calibrators._temperature import TemperatureScaling, fit_temperature
from certcal.calibrators._top_label import TopLabel
from certcal.calibrators._vector import VectorScaling

__all__ = [
    "CERTIFIED_METHODS",
    "PREDICTION_METHODS",
    "TRADEOFFS",
    "BetaCalibration",
    "Calibrator",
    "CertifiedBeta",
    "CertifiedIsotonic",
    "CertifiedMap",
    "CertifiedSamples",
    "CertifiedTemperature",
    "Chain",
    "ConfidenceCalibrator",
    "ConfidenceChain",
    "ConfidenceMap",
    "EqualMassBinning",
    "FittedOn",
    "FrontPoint",
    "HistogramBinning",
    "IntervalCalibrator",
    "IsotonicCalibration",
    "Judged",
    "JudgedAt",
    "MatrixScaling",
    "NotFittedError",
    "OneVsRest",
    "OutcomeMap",
    "PlattScaling",
    "Saved",
    "ScoreCalibrator",
    "ScoreMap",
    "TemperatureScaling",
    "TopLabel",
    "VectorScaling",
    "certified_path",
    "default_method",
    "described",
    "fit_predictions",
    "fit_temperature",
    "front_of",
    "gain_over",
    "judge",
    "load",
    "mapped",
    "radius_shares",
    "recalibrated",
    "save",
    "split_positions",
]
