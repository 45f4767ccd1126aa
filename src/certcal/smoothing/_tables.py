"""Limits by count: one evaluation per count that occurs, however many samples and thresholds share it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from certcal._threads import map_blocks
from certcal.bounds import clopper_pearson

Floats = NDArray[np.float64]

# Entries below which a block of limits is not worth a thread.
_SMALL = 5_000


class LowerLimits:
    """Clopper-Pearson lower limits of n draws at one level, by count; filled in as counts are asked for.

    Each is wrong with probability at most ``level`` over the draws.
    """

    def __init__(self, n: int, level: float) -> None:
        self.n, self.level = n, level
        self.values: Floats = np.full(n + 1, np.nan)
        # Φ⁻¹ of the limits; the table of counts that no one asked for stays NaN.
        self.scores: Floats = np.full(n + 1, np.nan)

    def fill(self, counts: NDArray[np.int64]) -> None:
        """Make sure that the limits of these counts are there."""
        from scipy.special import ndtri

        asked = np.zeros(self.n + 1, np.bool_)
        asked[counts.ravel()] = True
        missing = np.flatnonzero(asked & np.isnan(self.values))

        def evaluate(start: int, stop: int) -> None:
            some = missing[start:stop]
            limits = clopper_pearson(some, self.n, self.level, side="lower").lower
            self.scores[some] = ndtri(limits)
            self.values[some] = limits

        if missing.size:
            map_blocks(evaluate, missing.size, small=_SMALL)

    def shifted(self, r: float) -> Floats:
        """Φ(Φ⁻¹(limit) - r) by count, and the limit itself at r = 0; NaN where it was not filled in."""
        from scipy.special import ndtr

        return self.values if r == 0 else ndtr(self.scores - r)


@lru_cache(maxsize=8)
def lower_limits(n: int, level: float) -> LowerLimits:
    """The table for (n, level), shared by all who ask in this process."""
    return LowerLimits(n, level)
