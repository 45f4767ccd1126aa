"""The scale on which noise is added, or on which a calibration function changes slowly: probability or log-odds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import choice

Floats = NDArray[np.float64]

SCALES = ("probability", "logit")

# Scores nearer to 0 or 1 than this have no useful log-odds: noise is added to those of the end.
NEAREST = 1e-6


class Places(NamedTuple):
    """Where sorted scores stand on a scale: as numbers from 0 to 1, of which one unit is ``stretch`` units of it.

    What is claimed is about the scores as they were rounded. A function of the log-odds that changes by at most
    ``slope`` per unit of it differs by at most ``rounding`` from a function of the rounded scores, on average over
    them, where one rounded score stands for all that it came from.
    """

    values: Floats
    stretch: float
    rounding: float


def check_scale(scale: Any) -> str:
    """One of the scales."""
    return choice(scale, SCALES, "scale")


def log_odds(scores: Floats) -> Floats:
    """ln(s/(1 - s)), at the ends that of the nearest score that has one."""
    s = np.clip(scores, np.finfo(np.float64).tiny, 1 - 2.0**-53)
    return np.asarray(np.log(s) - np.log1p(-s), np.float64)


def places(scores: Floats, scale: str, slope: float) -> Places:
    """Sorted scores on their scale. On that of probabilities they are what they are.

    A score is known to a few units in its last place, so its log-odds t to within 2^-48 (1 + |t|)/(1 - s); a score of 1
    stands for all beyond, and η for a number in [0, 1].
    """
    if scale == "probability":
        return Places(scores, 1.0, 0.0)
    t = log_odds(scores)
    off = np.minimum(slope * 2.0**-48 * (1 + np.abs(t)) / np.maximum(1 - scores, 2.0**-60), 1.0)
    off[scores < np.finfo(np.float64).tiny] = 1.0
    stretch = float(t[-1] - t[0]) or 1.0
    return Places(np.clip((t - t[0]) / stretch, 0.0, 1.0), stretch, float(off.mean()) * (1 + 1e-9))
