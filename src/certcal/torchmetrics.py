"""Another name of :mod:`certcal.interop.torchmetrics`."""

from __future__ import annotations

from certcal.interop.torchmetrics import (
    ECE,
    KDEECE,
    MCE,
    NLL,
    BrierScore,
    ClasswiseECE,
    DebiasedECE,
    LpECE,
    SmoothECE,
    TopLabelBrierScore,
)

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
