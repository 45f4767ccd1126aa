"""Isotonic regression of outcomes on places: pool what ties, then pool adjacent violators."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certcal.calibrators._curve import MonotoneCurve

Floats = NDArray[np.float64]


def isotonic_curve(places: Floats, outcomes: Floats, weights: Floats) -> MonotoneCurve:
    """The monotone function with the least Σ w (g(x) - c)², through the ends of its flat parts.

    Between two flat parts any monotone function would do as well: the sum is over the places only. The straight line is
    the choice of scikit-learn too, and has no jumps where a confidence falls between two places.

    Parameters
    ----------
    places
        x, in any order; equal ones get one value.
    outcomes
        c in [0, 1].
    weights
        w >= 0, not all 0.

    Examples
    --------
    >>> curve = isotonic_curve(np.array([0.9, 0.2, 0.5]), np.array([1.0, 1.0, 0.0]), np.ones(3))
    >>> curve.x.tolist(), curve.y.tolist()
    ([0.2, 0.5, 0.9], [0.5, 0.5, 1.0])
    """
    from scipy.optimize import isotonic_regression

    used = weights > 0
    if not used.all():
        places, outcomes, weights = places[used], outcomes[used], weights[used]
    order = np.argsort(places)
    x, w = places[order], weights[order]
    first = np.flatnonzero(np.concatenate(([True], x[1:] != x[:-1])))
    mass = np.add.reduceat(w, first)
    mean = np.add.reduceat(w * outcomes[order], first) / mass
    fitted = isotonic_regression(np.clip(mean, 0, 1), weights=mass)
    blocks: NDArray[np.int64] = np.asarray(fitted.blocks)
    begin, end = blocks[:-1], blocks[1:] - 1
    knots = np.unique(np.concatenate([begin, end]))
    return MonotoneCurve(x[first][knots], np.maximum.accumulate(np.clip(fitted.x[knots], 0.0, 1.0)))
