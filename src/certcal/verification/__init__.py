"""Certificates without noise: intervals of a model's scores over all inputs that a perturbation set allows."""

from __future__ import annotations

from certcal._base.margins import confidence_intervals, predicted_intervals, score_intervals
from certcal.verification.boxes import BoxedRows, InputBox, Perturbations
from certcal.verification.kinds import KINDS, Verified, Verifier, verifier_of

__all__ = [
    "KINDS",
    "BoxedRows",
    "InputBox",
    "Perturbations",
    "Verified",
    "Verifier",
    "confidence_intervals",
    "predicted_intervals",
    "score_intervals",
    "verifier_of",
]
