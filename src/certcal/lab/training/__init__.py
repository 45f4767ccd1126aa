"""Training classifiers that keep their confidences under attack: one loop, made of parts.

Importing this room needs torch: ``pip install 'certcal[torch]'``.
"""

from __future__ import annotations

from certcal.lab.training_methods import METHODS
from certcal.lab.training_presets import preset_grid, preset_sources

try:
    # Each of these is the objective of a method, and names its entry.
    from certcal.lab.training import _calibrated, _catrs, _consistency, _macer, _smoothmix, acr  # noqa: F401  # pyright: ignore[reportUnusedImport]
    from certcal.lab.training._calibrated import PerturbedLoss
    from certcal.lab.training._log import export_events, read_log
    from certcal.lab.training._loop import Diverged, Trained, TrainingProgress, train
    from certcal.lab.training._recipe import Recipe, constants_of, presets, recipe
    from certcal.lab.training.parts import Judged, Objective, SelectionWarning, View
    from certcal.lab.training.prepare import soft_labels
    from certcal.lab.training.schedules import Moment, moment
except ModuleNotFoundError as error:
    if error.name not in ("torch", "safetensors"):
        raise
    raise ImportError(
        f"certcal.lab.training needs {error.name}; install it with: pip install 'certcal[torch]'", name=error.name
    ) from error

__all__ = [
    "METHODS",
    "Diverged",
    "Judged",
    "Moment",
    "Objective",
    "PerturbedLoss",
    "Recipe",
    "SelectionWarning",
    "Trained",
    "TrainingProgress",
    "View",
    "constants_of",
    "export_events",
    "moment",
    "preset_grid",
    "preset_sources",
    "presets",
    "read_log",
    "recipe",
    "soft_labels",
    "train",
]
