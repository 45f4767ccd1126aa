"""Bounds that hold with a stated probability for any number of samples."""

from __future__ import annotations

from certcal.bounds.concentration import (
    Limits,
    betting,
    clopper_pearson,
    dkw_width,
    empirical_bernstein,
    hoeffding,
)

__all__ = ["Limits", "betting", "clopper_pearson", "dkw_width", "empirical_bernstein", "hoeffding"]
