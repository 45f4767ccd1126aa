"""Training classifiers that keep their confidences under attack: one loop, made of parts.

Importing this room needs torch: ``pip install 'certcal[torch]'``.
"""

from __future__ import annotations

try:
    from certcal.training._events import export_events
    from certcal.training._log import read_log
    from certcal.training._loop import train
    from certcal.training._perturbed_loss import (
        PerturbedLoss,
        expected_log_score,
        near_pair_margin,
        perturbed_cross_entropy,
    )
    from certcal.training._presets import recipe
    from certcal.training._recipe import METHODS, Recipe
    from certcal.training._schedules import Moment, moment
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
    "Moment",
    "PerturbedLoss",
    "Progress",
    "Recipe",
    "Trained",
    "expected_log_score",
    "export_events",
    "moment",
    "near_pair_margin",
    "perturbed_cross_entropy",
    "read_log",
    "recipe",
    "train",
]
