"""Robustness of smoothed classifiers: certified accuracy, the average certified radius, the distribution of p_A."""

from __future__ import annotations

from certcal.smoothing.robustness.accuracy import (
    WARNING,
    AccuracyCurve,
    AccuracySteps,
    AverageCertifiedRadius,
    BestCurve,
    average_certified_radius,
    best_accuracy,
    certified_accuracy,
    trivial_average_radius,
)
from certcal.smoothing.robustness.distribution import ConvertedAccuracy, PaCurve, PaDistribution, PaPoints, from_curve
from certcal.smoothing.robustness.votes import VoteRecord, named, smallest_votes, vote_radii

__all__ = [
    "WARNING",
    "AccuracyCurve",
    "AccuracySteps",
    "AverageCertifiedRadius",
    "BestCurve",
    "ConvertedAccuracy",
    "PaCurve",
    "PaDistribution",
    "PaPoints",
    "VoteRecord",
    "average_certified_radius",
    "best_accuracy",
    "certified_accuracy",
    "from_curve",
    "named",
    "smallest_votes",
    "trivial_average_radius",
    "vote_radii",
]
