"""Post-hoc maps that repair confidences, and those that repair them in the worst case."""

from __future__ import annotations

from certcal.calibrators._base import Calibrator, ConfidenceMap, NotFittedError, ScoreMap
from certcal.calibrators._certified_isotonic import CertifiedIsotonic
from certcal.calibrators._judged import Judged, JudgedAt, gain_over, judge
from certcal.calibrators._recalibrate import FrontPoint, Recalibration, recalibrate
from certcal.calibrators._samples import CertifiedSamples
from certcal.calibrators._temperature import fit_temperature

__all__ = [
    "Calibrator",
    "CertifiedIsotonic",
    "CertifiedSamples",
    "ConfidenceMap",
    "FrontPoint",
    "Judged",
    "JudgedAt",
    "NotFittedError",
    "Recalibration",
    "ScoreMap",
    "fit_temperature",
    "gain_over",
    "judge",
    "recalibrate",
]
