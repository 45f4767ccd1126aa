"""Which samples a map is fitted to, and which it is judged on: drawn by position, whatever the samples hold."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, share, whole_number

# Keeps the split's random numbers apart from those that anybody makes of the same seed.
_SPLIT = 0x5EC7


def split_positions(n: int, fraction: float = 0.5, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of the samples to fit to, and of the others, both ascending.

    The others are fresh draws if the order of the samples does not depend on what they hold (or the seed was drawn at
    random): :data:`certcal.claims.ORDER`.

    Parameters
    ----------
    n
        Number of samples.
    fraction
        Share to fit to.
    seed
        The same three numbers give the same split.

    Examples
    --------
    >>> fit, rest = split_positions(10, 0.3, seed=1)
    >>> len(fit), sorted([*fit, *rest]) == list(range(10))
    (3, True)
    """
    first = share(fraction, "fraction", "pass the share of samples to fit to, between 0 and 1")
    start = whole_number(seed, 0, 2**63 - 1, "seed", "pass a whole number of at least 0")
    size = math.floor(n * first + 0.5)
    if not 0 < size < n:
        raise InputError(
            f"{n:,} {'sample' if n == 1 else 'samples'} cannot be split into parts of {size:,} and {n - size:,}; give "
            "more samples or another fraction"
        )
    order = np.random.default_rng([start, _SPLIT]).permutation(n)
    return np.sort(order[:size]), np.sort(order[size:])
