"""The curve of an isotonic regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certcal._isotonic import pool
from certcal.calibrators._curve import MonotoneCurve
from certcal.calibrators._points import Points

Floats = NDArray[np.float64]


def isotonic_curve(points: Points) -> MonotoneCurve:
    """The monotone function with the least squared error at the points, through the ends of its flat parts.

    Between two flat parts any monotone function would do as well: the error is counted at the places only. The straight
    line is the choice of scikit-learn too, and has no jumps where a confidence falls between two places.
    """
    fitted = pool(points.x, points.right + points.wrong, points.right)
    begin, end = fitted.blocks[:-1], fitted.blocks[1:] - 1
    knots = np.stack([begin, end], axis=1).ravel()  # a part of one place has one knot
    knots = knots[np.concatenate(([True], knots[1:] > knots[:-1]))]
    return MonotoneCurve(fitted.x[knots], np.maximum.accumulate(np.clip(fitted.value[knots], 0.0, 1.0)))
