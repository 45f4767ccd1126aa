"""Training classifiers that keep their confidences under attack: one loop, made of parts.

Importing this room needs torch: ``pip install 'certcal[torch]'``.
"""

from __future__ import annotations

from certcal._training_methods import METHODS

try:
    from certcal.training._bias import gradient_norms
    from certcal.training._events import export_events
    from certcal.training._gradient_norms import GradientNorms, NormBox, NormGroup
    from certcal.training._log import read_log
    from certcal.training._loop import train
    from certcal.training._objectives import Judged, Objective, View
    from certcal.training._own import constants_of
    from certcal.training._perturbed_loss import (
        PerturbedLoss,
        expected_log_score,
        near_pair_margin,
        perturbed_cross_entropy,
    )
    from certcal.training._presets import presets, recipe
    from certcal.training._recipe import Recipe
    from certcal.training._schedules import Moment, moment
    from certcal.training._selection import SelectionWarning
    from certcal.training._trained import Diverged, Progress, Trained
except ModuleNotFoundError as error:
    if error.name not in ("torch", "safetensors"):
        raise
    raise ImportError(
        f"certcal.training needs {error.name}; install it with: pip install 'certcal[torch]'", name=error.name
    ) from error

__all__ = [
    "METHODS",
    "Diverged",
    "GradientNorms",
    "Judged",
    "Moment",
    "NormBox",
    "NormGroup",
    "Objective",
    "PerturbedLoss",
    "Progress",
    "Recipe",
    "SelectionWarning",
    "Trained",
    "View",
    "constants_of",
    "expected_log_score",
    "export_events",
    "gradient_norms",
    "moment",
    "near_pair_margin",
    "perturbed_cross_entropy",
    "presets",
    "read_log",
    "recipe",
    "train",
]
