"""Calibration functions with a known calibration error, to see what estimates and bounds make of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import whole_number
from certcal.claims import move_outward

Floats = NDArray[np.float64]

# Waves of the oscillating function; with 15 equal bins each bin holds two whole ones.
WAVES = 30
_HEIGHT = 0.8


@dataclass(frozen=True)
class Synthetic:
    """Scores that are uniform on [0, 1] and outcomes that are 1 with probability η(s).

    Examples
    --------
    >>> import numpy as np
    >>> square = SYNTHETIC["monotone"]
    >>> scores, outcomes = square.draw(5, np.random.default_rng(0))
    >>> scores.size, round(square.calibration_error, 4)
    (5, 0.1667)
    """

    name: str
    """What the miscalibration is like."""
    formula: str
    """η as text."""
    eta: Callable[[Floats], Floats]
    """η as a function of an array of scores."""
    calibration_error: float
    """E|s - η(s)|, exactly."""
    variation: float
    """A number that the total variation of η does not exceed."""
    lipschitz: float
    """A number that the slope of η does not exceed."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.uint8]]:
        """Independent scores and outcomes."""
        count = whole_number(n, 1, 2**40, "n", "pass a number of samples of at least 1")
        scores = rng.random(count)
        return scores, (rng.random(count) < self.eta(scores)).astype(np.uint8)


def _smooth(s: Floats) -> Floats:
    return s + 0.1 * np.sin(2 * math.pi * s)


def _oscillating(s: Floats) -> Floats:
    return s + _HEIGHT * np.minimum(s, 1 - s) * np.sin(2 * math.pi * WAVES * s)


def turning_points() -> Floats:
    """Where the oscillating function turns on [0, ½], rising: one place in every half wave, to the last digit.

    With x = 2π · WAVES · s its slope there is g(x) = 1 + H sin x + H x cos x. At x = kπ that is 1 + H kπ (-1)^k, of
    alternating sign since Hπ > 1. Between two of these places g′ = H (2 cos x - x sin x) vanishes once, where tan x =
    2/x; at the left one g′ has the sign of g. So g moves away from zero, turns once, and crosses zero once.
    """
    low: Floats = math.pi * np.arange(WAVES, dtype=np.float64)
    high: Floats = low + math.pi
    sign = np.where(np.arange(WAVES) % 2 == 0, 1.0, -1.0)
    for _ in range(60):
        x = (low + high) / 2
        before = sign * (1 + _HEIGHT * (np.sin(x) + x * np.cos(x))) > 0
        low[before], high[~before] = x[before], x[~before]
    return low / (2 * math.pi * WAVES)


def _oscillation() -> float:
    """Variation of the oscillating function, rounded up: what it climbs and falls between turns, on [0, ½] and again.

    η(1 - s) = 1 - η(s), so both halves are alike. An error e in a turning point changes the height there by about e²
    times the curvature, so what is left is the rounding of some thirty differences.
    """
    places = np.concatenate(([0.0], turning_points(), [0.5]))
    return move_outward(2 * math.fsum(np.abs(np.diff(_oscillating(places))).tolist()), "upper", 1e-13)


# In the oscillating one, min(s, 1 - s)|sin| averages to 1/4 · 2/π: every half wave is symmetric about its middle. Its
# |η'| is at most 1 + height · (|sin| + 2π · WAVES · ½).
SYNTHETIC: dict[str, Synthetic] = {
    each.name: each
    for each in (
        Synthetic("calibrated", "s", lambda s: s, 0.0, 1.0, 1.0),
        Synthetic("smooth", "s + 0.1 sin(2πs)", _smooth, 0.2 / math.pi, 1.0, 1 + 0.2 * math.pi),
        Synthetic("monotone", "s²", lambda s: s * s, 1 / 6, 1.0, 2.0),
        Synthetic(
            "oscillating",
            f"s + {_HEIGHT} min(s, 1 - s) sin({2 * WAVES}πs)",
            _oscillating,
            _HEIGHT / (2 * math.pi),
            _oscillation(),
            1 + _HEIGHT * (1 + math.pi * WAVES),
        ),
    )
}
