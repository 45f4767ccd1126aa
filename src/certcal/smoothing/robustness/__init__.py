"""Robustness of smoothed classifiers: certified accuracy, the distribution of p_A, and who is ahead."""

from __future__ import annotations

from certcal.smoothing.robustness._accuracy import (
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
from certcal.smoothing.robustness._budgets import DEFAULT_BUDGETS, Budget, SettingTable
from certcal.smoothing.robustness._calibration import CertifiedCalibration
from certcal.smoothing.robustness._chance import Chance, chance
from certcal.smoothing.robustness._compare import (
    Compared,
    Comparison,
    RunFamily,
    compare,
    gathered,
)
from certcal.smoothing.robustness._distribution import (
    ConvertedAccuracy,
    PaCurve,
    PaDistribution,
    PaPoints,
    from_curve,
)
from certcal.smoothing.robustness._dominance import Dominance, Stretch, dominance, dominance_table, just_above
from certcal.smoothing.robustness._families import FamilyComparison, compare_families
from certcal.smoothing.robustness._graph import DominanceGraph
from certcal.smoothing.robustness._repeats import RepeatedRuns, Spread
from certcal.smoothing.robustness._samples import check_same_samples, on_common_samples
from certcal.smoothing.robustness._votes import VoteRecord, named, smallest_votes, vote_radii

__all__ = [
    "DEFAULT_BUDGETS",
    "WARNING",
    "AccuracyCurve",
    "AccuracySteps",
    "AverageCertifiedRadius",
    "BestCurve",
    "Budget",
    "CertifiedCalibration",
    "Chance",
    "Compared",
    "Comparison",
    "ConvertedAccuracy",
    "Dominance",
    "DominanceGraph",
    "FamilyComparison",
    "PaCurve",
    "PaDistribution",
    "PaPoints",
    "RepeatedRuns",
    "RunFamily",
    "SettingTable",
    "Spread",
    "Stretch",
    "VoteRecord",
    "average_certified_radius",
    "best_accuracy",
    "certified_accuracy",
    "chance",
    "check_same_samples",
    "compare",
    "compare_families",
    "dominance",
    "dominance_table",
    "from_curve",
    "gathered",
    "just_above",
    "named",
    "on_common_samples",
    "smallest_votes",
    "trivial_average_radius",
    "vote_radii",
]
