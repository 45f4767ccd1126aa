"""Cells of a binning map whose samples are independent draws, and what they say about the population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._assumptions import INDEPENDENT
from certcal._checks import InputError
from certcal.bounds import clopper_pearson, dkw_width
from certcal.claims import Bound, move_outward

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

NOT_FITTED = "they were not used to train or choose the classifier or to fit an earlier map"

# Room for the rounding of a value, a limit and their difference.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Cells:
    """Parts of [0, 1] in ascending order, each inside one bin of a map."""

    value: Floats
    n: Whole
    correct: Whole
    seen: Whole

    def distances(self, alpha: float) -> Floats:
        """How far E[c | cell] may be from the value in each cell, all together except with probability alpha.

        Where no sample counts, as far as 0 or 1 is.
        """
        far = np.maximum(self.value, 1 - self.value)
        counted = self.n > 0
        if counted.any():
            level = alpha / int(np.count_nonzero(counted))
            limits = clopper_pearson(self.correct[counted], self.n[counted], level)
            value = self.value[counted]
            far[counted] = np.maximum(limits.upper - value, value - limits.lower) + _ROUNDING
        return np.minimum(far, 1.0)

    def largest(self, name: str, delta: float, settings: dict[str, Any]) -> Bound:
        """Upper bound on the largest |E[c | cell] - value| over the cells in which samples count."""
        counted = self.n > 0
        if not counted.any():
            raise InputError("no bin holds a sample that counts, so nothing is guaranteed; fit to more samples")
        found = float(self.distances(delta)[counted].max())
        return Bound(name, found, "upper", delta, int(self.seen.sum()), (INDEPENDENT, NOT_FITTED), {}, settings)

    def mean(self, name: str, delta: float, settings: dict[str, Any], *assumptions: str) -> Bound:
        """Upper bound on Σ P(cell) |E[c | cell] - value| over all cells.

        Half of delta is spent on the distances. The mean of a function that is constant on cells differs between the
        samples and the population by at most its variation times the largest distance of the two distribution
        functions (summation by parts); the other half is spent on that distance.
        """
        n = int(self.seen.sum())
        far = self.distances(delta / 2)
        here = float(self.seen @ far) / n
        shares = float(np.abs(np.diff(far)).sum()) * float(dkw_width(n, delta / 2))
        value = min(move_outward(here + shares, "upper", _ROUNDING), float(far.max()))
        terms = {"limits in the bins": here, "shares of the bins": shares}
        return Bound(name, value, "upper", delta, n, (INDEPENDENT, NOT_FITTED, *assumptions), terms, settings)
