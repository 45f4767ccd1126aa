"""Isotonic regression of outcomes on places: pool what ties, then pool adjacent violators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pooled:
    """The non-decreasing function g with the least Σ w (g(x) - c)², at the places themselves.

    Attributes
    ----------
    x
        Places, ascending, each once.
    mass, total
        Σ w and Σ w c at each place.
    value
        g at each place.
    blocks
        Index of the first place of each flat part, and the number of places after them.
    """

    x: Floats
    mass: Floats
    total: Floats
    value: Floats
    blocks: NDArray[np.int64]


def isotonic(places: Floats, outcomes: Floats, weights: Floats | None = None) -> Pooled:
    """Fit the non-decreasing function with the least weighted sum of squares.

    Parameters
    ----------
    places
        x, in any order; equal ones get one value.
    outcomes
        c in [0, 1].
    weights
        w > 0, all 1 when not given. Sums of equal weights are then whole numbers, and exact.

    Examples
    --------
    >>> found = isotonic(np.array([0.9, 0.2, 0.5, 0.2]), np.array([1.0, 1.0, 0.0, 1.0]))
    >>> found.x.tolist(), found.mass.tolist(), found.blocks.tolist()
    ([0.2, 0.5, 0.9], [2.0, 1.0, 1.0], [0, 2, 3])
    """
    order = np.argsort(places)
    x, c = places[order], outcomes[order]
    first = np.flatnonzero(np.concatenate(([True], x[1:] != x[:-1])))
    if weights is None:
        mass, total = np.diff(first, append=x.size).astype(np.float64), np.add.reduceat(c, first)
    else:
        w = weights[order]
        mass, total = np.add.reduceat(w, first), np.add.reduceat(w * c, first)
    return pool(x[first], mass, total)


def pool(x: Floats, mass: Floats, total: Floats) -> Pooled:
    """The same from sums per place.

    Parameters
    ----------
    x
        Places, ascending, each once.
    mass, total
        Σ w > 0 and Σ w c at each.

    Examples
    --------
    >>> pool(np.array([0.2, 0.5]), np.array([2.0, 1.0]), np.array([2.0, 0.0])).value.round(6).tolist()
    [0.666667, 0.666667]
    """
    from scipy.optimize import isotonic_regression

    fitted = isotonic_regression(np.clip(total / mass, 0, 1), weights=mass)
    return Pooled(x, mass, total, np.asarray(fitted.x), np.asarray(fitted.blocks, np.int64))


def counted(places: Floats, correct: NDArray[np.uint8]) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Places in ascending order, each once, and how many samples and how many correct ones are there.

    Numbers from 0 to 1 have the order of their bits, of which the first two are 0. So the outcome fits behind them, and
    sorting whole numbers does what would need two sorts, in a quarter of the time that sorting positions takes.

    Parameters
    ----------
    places
        In [0, 1], in any order.
    correct
        0 or 1.

    Examples
    --------
    >>> x, n, right = counted(np.array([0.5, 0.25, 0.5]), np.array([1, 1, 0], np.uint8))
    >>> x.tolist(), n.tolist(), right.tolist()
    ([0.25, 0.5], [1, 2], [1, 1])
    """
    keys = (places + 0.0).view(np.uint64)  # a new array, in which -0 has become 0
    keys <<= np.uint64(1)
    keys |= correct
    keys.sort()
    right = (keys & np.uint64(1)).view(np.int64)
    keys >>= np.uint64(1)
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[first].view(np.float64), np.diff(first, append=keys.size), np.add.reduceat(right, first)
