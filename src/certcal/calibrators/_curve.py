"""A monotone function on [0, 1] through knots, monotone in floating point too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MonotoneCurve:
    """Straight lines between knots, constant outside them.

    Why it is monotone as computed, not only as written: the subtraction, division, multiplication and addition below
    are each rounded to the nearest number, which keeps the order, and the result is cut off at the segment's ends. At a
    knot the value is the knot's own.
    """

    x: Floats
    y: Floats

    def __post_init__(self) -> None:
        x, y = np.asarray(self.x, np.float64), np.asarray(self.y, np.float64)
        if x.ndim != 1 or x.shape != y.shape or x.size == 0:
            raise InputError("the knots of a curve must be as many values as places, at least one; refit the map")
        if not ((x >= 0).all() and (x <= 1).all() and (np.diff(x) > 0).all()):
            raise InputError("the knots of a curve must be in [0, 1] and strictly ascending; refit the map")
        if not ((y >= 0).all() and (y <= 1).all() and (np.diff(y) >= 0).all()):
            raise InputError("the values of a curve must be in [0, 1] and not descend; refit the map")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)

    def __call__(self, values: Floats) -> Floats:
        """The function at values without NaN."""
        if self.x.size == 1:
            return np.full(values.shape, self.y[0])
        left = np.clip(np.searchsorted(self.x, values, side="right") - 1, 0, self.x.size - 2)
        x0, x1, y0, y1 = self.x[left], self.x[left + 1], self.y[left], self.y[left + 1]
        part = (np.clip(values, x0, x1) - x0) / (x1 - x0)
        return np.where(values >= x1, y1, np.clip(y0 + part * (y1 - y0), y0, y1))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"x": self.x.tolist(), "y": self.y.tolist()}
