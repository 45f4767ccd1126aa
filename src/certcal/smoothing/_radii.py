"""From a limit of p_A to a certified radius."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# What Φ⁻¹ may be off by, relative to the radius; certified radii give that much away.
ROUNDING = 1e-12


def radii_of_limits(limits: NDArray[np.float64], scores: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Radius σΦ⁻¹(p) within which a class is predicted if its probability is at least p, rounded down.

    NaN where p is not above ½: nothing is certified then, and the sample abstains.
    """
    return np.where(limits > 0.5, sigma * scores * (1.0 - ROUNDING), np.nan)
