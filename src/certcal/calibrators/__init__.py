"""Post-hoc maps that repair confidences, and those that repair them in the worst case."""

from __future__ import annotations

from certcal.calibrators._affine import MatrixScaling, StructuredMatrixScaling, StructuredVectorScaling, VectorScaling
from certcal.calibrators._base import Calibrator, ConfidenceMap, NotFittedError, OutcomeMap, describe
from certcal.calibrators._binned import EqualMassBinning, HistogramBinning
from certcal.calibrators._certified import METHODS as CERTIFIED_METHODS
from certcal.calibrators._certified import (
    TRADEOFFS,
    CertifiedBeta,
    CertifiedIsotonic,
    CertifiedMap,
    CertifiedTemperature,
    certified_path,
    radius_shares,
)
from certcal.calibrators._choice import FOLDS, MapChoice, TriedMap, choose, cross_fit
from certcal.calibrators._files import FittedOn, Saved, load, save
from certcal.calibrators._grouped import GroupedMap, fit_by_group, takes_real_scores
from certcal.calibrators._inputs import MapInput
from certcal.calibrators._isotonic import IsotonicCalibration
from certcal.calibrators._judged import FrontPoint, JudgedAt, JudgedMap, front_of, gain_over, judge
from certcal.calibrators._logistic import NEAREST, BetaCalibration, PlattScaling
from certcal.calibrators._multiclass import OneVsRest, TopLabel
from certcal.calibrators._perturbed import PerturbedModel, PerturbedScores
from certcal.calibrators._predictions import METHODS as PREDICTION_METHODS
from certcal.calibrators._predictions import fit_predictions, mapped, named_calibrator, recalibrated, takes_scores
from certcal.calibrators._protocols import ConfidenceCalibrator, IntervalCalibrator, ScoreCalibrator
from certcal.calibrators._real_scores import RealScores
from certcal.calibrators._samples import CertifiedSamples, split_positions
from certcal.calibrators._spline import QuadraticScaling, SplineScaling
from certcal.calibrators._temperature import TemperatureScaling, fit_temperature
from certcal.calibrators._unchanged import Unchanged, UnchangedScores
from certcal.calibrators._venn_abers import TwoProbabilities, VennAbers
from certcal.calibrators.scores import ScoreMap

__all__ = [
    "CERTIFIED_METHODS",
    "FOLDS",
    "NEAREST",
    "PREDICTION_METHODS",
    "TRADEOFFS",
    "BetaCalibration",
    "Calibrator",
    "CertifiedBeta",
    "CertifiedIsotonic",
    "CertifiedMap",
    "CertifiedSamples",
    "CertifiedTemperature",
    "ConfidenceCalibrator",
    "ConfidenceMap",
    "EqualMassBinning",
    "FittedOn",
    "FrontPoint",
    "GroupedMap",
    "HistogramBinning",
    "IntervalCalibrator",
    "IsotonicCalibration",
    "JudgedAt",
    "JudgedMap",
    "MapChoice",
    "MapInput",
    "MatrixScaling",
    "NotFittedError",
    "OneVsRest",
    "OutcomeMap",
    "PerturbedModel",
    "PerturbedScores",
    "PlattScaling",
    "QuadraticScaling",
    "RealScores",
    "Saved",
    "ScoreCalibrator",
    "ScoreMap",
    "SplineScaling",
    "StructuredMatrixScaling",
    "StructuredVectorScaling",
    "TemperatureScaling",
    "TopLabel",
    "TriedMap",
    "TwoProbabilities",
    "Unchanged",
    "UnchangedScores",
    "VectorScaling",
    "VennAbers",
    "certified_path",
    "choose",
    "cross_fit",
    "describe",
    "fit_by_group",
    "fit_predictions",
    "fit_temperature",
    "front_of",
    "gain_over",
    "judge",
    "load",
    "mapped",
    "named_calibrator",
    "radius_shares",
    "recalibrated",
    "save",
    "split_positions",
    "takes_real_scores",
    "takes_scores",
]
