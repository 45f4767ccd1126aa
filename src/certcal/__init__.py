"""How wrong a classifier's confidences can be.

On the data you have, on data you have not seen, and when somebody perturbs the inputs. Importing this package
loads NumPy only; everything else loads when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError

if TYPE_CHECKING:
    from certcal import (
        binning,
        bounds,
        calibrators,
        claims,
        data,
        engines,
        metrics,
        models,
        report,
        smoothing,
        study,
        worst_case,
    )
    from certcal.claims import Bound, Certificate, Estimate
    from certcal.metrics import Measurements
    from certcal.predictions import Predictions
    from certcal.result import Result
    from certcal.smoothing.robustness import Comparison, FamilyComparison
    from certcal.verbs.apply_map import MappedTable, apply_map
    from certcal.verbs.attack import Attack, attack
    from certcal.verbs.bound import Bounds, bound
    from certcal.verbs.certified_recalibration import CertifiedRecalibration
    from certcal.verbs.certify import Certification, certify
    from certcal.verbs.compare import ChangeComparison, compare
    from certcal.verbs.measure import Measurement, measure
    from certcal.verbs.recalibrate import PredictionRecalibration, Recalibration, recalibrate
    from certcal.verbs.sample import RunSummary, decide, sample, summarize
    from certcal.verbs.train import Training, train

__version__ = "0.1.0"

__all__ = [
    "Attack",
    "Bound",
    "Bounds",
    "Certificate",
    "Certification",
    "CertifiedRecalibration",
    "ChangeComparison",
    "Comparison",
    "Estimate",
    "FamilyComparison",
    "InputError",
    "MappedTable",
    "Measurement",
    "Measurements",
    "PredictionRecalibration",
    "Predictions",
    "Recalibration",
    "Result",
    "RunSummary",
    "Training",
    "apply_map",
    "attack",
    "binning",
    "bound",
    "bounds",
    "calibrators",
    "certify",
    "claims",
    "compare",
    "data",
    "decide",
    "engines",
    "measure",
    "metrics",
    "models",
    "recalibrate",
    "report",
    "sample",
    "smoothing",
    "study",
    "summarize",
    "train",
    "worst_case",
]

_HOMES = {
    "Attack": "certcal.verbs.attack",
    "Bound": "certcal.claims",
    "Bounds": "certcal.verbs.bound",
    "Certificate": "certcal.claims",
    "Certification": "certcal.verbs.certify",
    "CertifiedRecalibration": "certcal.verbs.certified_recalibration",
    "ChangeComparison": "certcal.verbs.compare",
    "Comparison": "certcal.smoothing.robustness",
    "Estimate": "certcal.claims",
    "FamilyComparison": "certcal.smoothing.robustness",
    "MappedTable": "certcal.verbs.apply_map",
    "Measurement": "certcal.verbs.measure",
    "Measurements": "certcal.metrics",
    "PredictionRecalibration": "certcal.verbs.recalibrate",
    "Predictions": "certcal.predictions",
    "Recalibration": "certcal.verbs.recalibrate",
    "Result": "certcal.result",
    "RunSummary": "certcal.verbs.sample",
    "apply_map": "certcal.verbs.apply_map",
    "Training": "certcal.verbs.train",
    "attack": "certcal.verbs.attack",
    "bound": "certcal.verbs.bound",
    "certify": "certcal.verbs.certify",
    "compare": "certcal.verbs.compare",
    "decide": "certcal.verbs.sample",
    "measure": "certcal.verbs.measure",
    "recalibrate": "certcal.verbs.recalibrate",
    "train": "certcal.verbs.train",
    "sample": "certcal.verbs.sample",
    "summarize": "certcal.verbs.sample",
}
_ROOMS = frozenset(
    {
        "attacks",
        "binning",
        "bounds",
        "calibrators",
        "claims",
        "data",
        "engines",
        "metrics",
        "models",
        "report",
        "smoothing",
        "study",
        "torchmetrics",
        "training",
        "worst_case",
    }
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"certcal.{name}")
    raise AttributeError(f"module 'certcal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
