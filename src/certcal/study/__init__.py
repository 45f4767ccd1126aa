"""Many models, many metrics; and calibration functions whose error is known."""

from __future__ import annotations

from certcal.study._battery import Battery, battery
from certcal.study._synthetic import SYNTHETIC, Synthetic

__all__ = ["SYNTHETIC", "Battery", "Synthetic", "battery"]
