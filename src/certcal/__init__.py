"""How wrong a classifier's confidences can be.

On the data you have, on data you have not seen, and when somebody perturbs the inputs. Importing this package
loads NumPy only; everything else loads when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from certcal._base.checks import InputError
from certcal._base.extensions import EXTENSIONS

if TYPE_CHECKING:
    from certcal import (
        attacks,
        binning,
        bounds,
        calibrators,
        claims,
        data,
        engines,
        interop,
        lab,
        metrics,
        models,
        report,
        smoothing,
        torchmetrics,
        verification,
        worst_case,
    )
    from certcal._base.progress import Progress
    from certcal.claims import Bound, Certificate, Estimate
    from certcal.lab import study, training
    from certcal.lab.logs import Comparison
    from certcal.lab.reproduce import Reproduction, reproduce
    from certcal.lab.train import Training, train
    from certcal.metrics import Measurements
    from certcal.predictions import Predictions
    from certcal.result import Answer, Result
    from certcal.verbs.apply_map import MappedTable, apply_map
    from certcal.verbs.attack import Attack, attack
    from certcal.verbs.bound import Bounds, bound
    from certcal.verbs.certified_recalibration import CertifiedRecalibration
    from certcal.verbs.certify import Certification, certify
    from certcal.verbs.check import Check, check
    from certcal.verbs.compare import ChangeComparison, compare
    from certcal.verbs.export_map import export_map
    from certcal.verbs.measure import Measurement, measure
    from certcal.verbs.plan import plan
    from certcal.verbs.predict import predict
    from certcal.verbs.recalibrate import PredictionRecalibration, Recalibration, recalibrate
    from certcal.verbs.sample import RunSummary, decide, sample, summarize
    from certcal.verbs.verify import Verification, verify
    from certcal.verdict import Verdict

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Attack",
    "Bound",
    "Bounds",
    "Certificate",
    "Certification",
    "CertifiedRecalibration",
    "ChangeComparison",
    "Check",
    "Comparison",
    "Estimate",
    "InputError",
    "MappedTable",
    "Measurement",
    "Measurements",
    "PredictionRecalibration",
    "Predictions",
    "Progress",
    "Recalibration",
    "Reproduction",
    "Result",
    "RunSummary",
    "Training",
    "Verdict",
    "Verification",
    "apply_map",
    "attack",
    "attacks",
    "binning",
    "bound",
    "bounds",
    "calibrators",
    "certify",
    "check",
    "claims",
    "compare",
    "data",
    "decide",
    "engines",
    "export_map",
    "interop",
    "lab",
    "measure",
    "metrics",
    "models",
    "plan",
    "predict",
    "recalibrate",
    "report",
    "reproduce",
    "sample",
    "smoothing",
    "study",
    "summarize",
    "torchmetrics",
    "train",
    "training",
    "verification",
    "verify",
    "worst_case",
]

# Where the names are that are not rooms; all load when they are first used.
_HOMES = {
    "certcal._base.progress": ("Progress",),
    "certcal.claims": ("Bound", "Certificate", "Estimate"),
    "certcal.metrics": ("Measurements",),
    "certcal.predictions": ("Predictions",),
    "certcal.result": ("Answer", "Result"),
    "certcal.lab.logs": ("Comparison",),
    "certcal.verbs.apply_map": ("MappedTable", "apply_map"),
    "certcal.verbs.attack": ("Attack", "attack"),
    "certcal.verbs.bound": ("Bounds", "bound"),
    "certcal.verbs.certified_recalibration": ("CertifiedRecalibration",),
    "certcal.verbs.certify": ("Certification", "certify"),
    "certcal.verbs.check": ("Check", "check"),
    "certcal.verbs.compare": ("ChangeComparison", "compare"),
    "certcal.verbs.export_map": ("export_map",),
    "certcal.verbs.measure": ("Measurement", "measure"),
    "certcal.verbs.plan": ("plan",),
    "certcal.verbs.predict": ("predict",),
    "certcal.verbs.recalibrate": ("PredictionRecalibration", "Recalibration", "recalibrate"),
    "certcal.verbs.sample": ("RunSummary", "decide", "sample", "summarize"),
    "certcal.lab.reproduce": ("Reproduction", "reproduce"),
    "certcal.lab.train": ("Training", "train"),
    "certcal.verbs.verify": ("Verification", "verify"),
    "certcal.verdict": ("Verdict",),
}
# Rooms of the lab that stand at the top as well.
_LAB = ("study", "training")
# What certify and compare ask of the lab: the published methods, and runs and logs beside each other.
EXTENSIONS.update(
    baselines=lambda: importlib.import_module("certcal.lab.baselines"),
    logs=lambda: importlib.import_module("certcal.lab.logs"),
)


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    if name in __all__:
        return importlib.import_module(f"certcal.lab.{name}" if name in _LAB else f"certcal.{name}")
    raise AttributeError(f"module 'certcal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
