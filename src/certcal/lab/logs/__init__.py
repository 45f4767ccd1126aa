"""Runs and published logs beside each other: training methods, dominance, budgets, sampling error."""

from __future__ import annotations

from certcal.lab.logs._accuracies import AccuracyDifference
from certcal.lab.logs._budgets import Budget, SettingTable
from certcal.lab.logs._calibration import CertifiedCalibration
from certcal.lab.logs._chance import Chance, chance
from certcal.lab.logs._compare import compare
from certcal.lab.logs._comparison import Compared, Comparison, RunFamily
from certcal.lab.logs._dominance import Dominance, Stretch, dominance, dominance_table
from certcal.lab.logs._graph import DominanceGraph
from certcal.lab.logs._log import CertificationLog, LogWarning, read_log
from certcal.lab.logs._published import ConfidenceLog, read_confidence_log, read_curve
from certcal.lab.logs._repeats import RepeatedRuns, Spread
from certcal.lab.logs._sources import compare_sources

__all__ = [
    "AccuracyDifference",
    "Budget",
    "CertificationLog",
    "CertifiedCalibration",
    "Chance",
    "Compared",
    "Comparison",
    "ConfidenceLog",
    "Dominance",
    "DominanceGraph",
    "LogWarning",
    "RepeatedRuns",
    "RunFamily",
    "SettingTable",
    "Spread",
    "Stretch",
    "chance",
    "compare",
    "compare_sources",
    "dominance",
    "dominance_table",
    "read_confidence_log",
    "read_curve",
    "read_log",
]
