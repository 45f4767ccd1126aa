"""Isotonic regression of outcomes on places: pool what ties, then pool adjacent violators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class IsotonicFit:
    """The non-decreasing function g with the least Σ w (g(x) - c)², at the places themselves."""

    x: Floats
    mass: Floats
    total: Floats
    value: Floats
    blocks: NDArray[np.int64]


def isotonic(places: Floats, outcomes: Floats, weights: Floats | None = None) -> IsotonicFit:
    """Fit the non-decreasing function with the least weighted sum of squares."""
    order = np.argsort(places)
    x, c = places[order], outcomes[order]
    first = np.flatnonzero(np.concatenate(([True], x[1:] != x[:-1])))
    if weights is None:
        mass, total = np.diff(first, append=x.size).astype(np.float64), np.add.reduceat(c, first)
    else:
        w = weights[order]
        mass, total = np.add.reduceat(w, first), np.add.reduceat(w * c, first)
    return pool(x[first], mass, total)


def pool(x: Floats, mass: Floats, total: Floats) -> IsotonicFit:
    """The isotonic fit, from sums per place."""
    from scipy.optimize import isotonic_regression

    fitted = isotonic_regression(np.clip(total / mass, 0, 1), weights=mass)
    return IsotonicFit(x, mass, total, np.asarray(fitted.x), np.asarray(fitted.blocks, np.int64))


def count_places(places: Floats, correct: NDArray[np.uint8]) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Places in ascending order, each once, and how many samples and how many correct ones are there.

    Numbers from 0 to 1 have the order of their bits, of which the first two are 0. So the outcome fits behind them, and
    sorting whole numbers does what would need two sorts, in a quarter of the time that sorting positions takes.
    """
    keys = (places + 0.0).view(np.uint64)  # a new array, in which -0 has become 0
    keys <<= np.uint64(1)
    keys |= correct
    keys.sort()
    right = (keys & np.uint64(1)).view(np.int64)
    keys >>= np.uint64(1)
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[first].view(np.float64), np.diff(first, append=keys.size), np.add.reduceat(right, first)
