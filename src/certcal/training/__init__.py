"""Training losses. Importing this room needs torch: ``pip install 'certcal[torch]'``."""

from __future__ import annotations

try:
    from certcal.training._perturbed_loss import (
        PerturbedLoss,
        expected_log_score,
        near_pair_margin,
        perturbed_cross_entropy,
    )
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "certcal.training needs torch; install it with: pip install 'certcal[torch]'", name=error.name
    ) from error

__all__ = ["PerturbedLoss", "expected_log_score", "near_pair_margin", "perturbed_cross_entropy"]
