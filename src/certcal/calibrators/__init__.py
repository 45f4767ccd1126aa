"""Post-hoc maps that repair confidences."""

from __future__ import annotations

from certcal.calibrators._temperature import fit_temperature

__all__ = ["fit_temperature"]
