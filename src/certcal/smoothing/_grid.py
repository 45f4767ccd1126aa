"""The thresholds at which confidences are counted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, to_numpy

COUNT = 255


def default_thresholds() -> NDArray[np.float64]:
    """255 thresholds sin²(πk/512): evenly spaced in the arcsine of the root, from 3.8·10⁻⁵ to 1 - 3.8·10⁻⁵.

    Dense where certificates need it: Φ⁻¹ magnifies the tails, and the confidences of a trained network gather near 0
    and 1. Intervals from it were narrower than from a grid evenly spaced in the logit, near 1 and in the middle. The
    grid is symmetric about ½: 1 - t is in it for every t, to the last bit of t above ½.

    Examples
    --------
    >>> t = default_thresholds()
    >>> t[[0, 127, 254]].tolist()
    [3.764908e-05, 0.5, 0.99996235092]
    >>> bool(np.all(t + t[::-1] == 1))
    True
    """
    # Rounded to twelve decimals, so that a last bit of some machine's sine does not matter.
    below = [round(math.sin(math.pi * step / (2 * COUNT + 2)) ** 2, 12) for step in range(1, COUNT // 2 + 1)]
    return np.array([*below, 0.5, *(1 - share for share in reversed(below))])


def check_thresholds(thresholds: Any) -> NDArray[np.float64]:
    """Strictly increasing numbers in (0, 1), at most 65,535, as float64."""
    values = np.ascontiguousarray(to_numpy(thresholds, "thresholds"), dtype=np.float64)
    if values.ndim != 1 or not 1 <= values.size <= 65_535:
        raise InputError(f"thresholds has shape {values.shape}; pass from 1 to 65535 numbers between 0 and 1")
    outside = ~((values > 0) & (values < 1))
    if outside.any():
        index = int(np.argmax(outside))
        raise InputError(f"thresholds[{index}] is {values[index]}; pass numbers strictly between 0 and 1")
    falling = np.diff(values) <= 0
    if falling.any():
        index = int(np.argmax(falling))
        raise InputError(
            f"thresholds[{index + 1}] is {values[index + 1]}, not above thresholds[{index}] = {values[index]}; "
            "sort them and drop repetitions"
        )
    return values
