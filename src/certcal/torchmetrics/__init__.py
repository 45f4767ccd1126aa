"""Calibration metrics as ``torchmetrics.Metric`` classes: integer states of fixed size that add exactly.

Values are float64 scalars and the same bits for any batches, order, merges and processes. What ``preds`` holds is
declared by ``inputs=``, never guessed. Importing this module needs the extra ``certcal[torch]``.
"""

from __future__ import annotations

try:
    from certcal.torchmetrics._binned import ECE, MCE, ClasswiseECE, DebiasedECE, LpECE
    from certcal.torchmetrics._kernel import KDEECE, SmoothECE
    from certcal.torchmetrics._scores import NLL, BrierScore, TopLabelBrierScore
except ModuleNotFoundError as error:
    if error.name not in ("torch", "torchmetrics"):
        raise
    raise ImportError(
        "certcal.torchmetrics needs torch and torchmetrics; install them with: pip install 'certcal[torch]'",
        name=error.name,
    ) from error

__all__ = [
    "ECE",
    "KDEECE",
    "MCE",
    "NLL",
    "BrierScore",
    "ClasswiseECE",
    "DebiasedECE",
    "LpECE",
    "SmoothECE",
    "TopLabelBrierScore",
]
