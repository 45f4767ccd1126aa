"""Many models, many metrics."""

from __future__ import annotations

from certcal.study._battery import Battery, battery

__all__ = ["Battery", "battery"]
