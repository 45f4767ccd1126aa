"""Reading what was fitted from a state that may come from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError

Floats = NDArray[np.float64]


def number(state: Mapping[str, Any], name: str, least: float, most: float) -> float:
    """A finite number of a state in a range."""
    value = state.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InputError(f"{name} is {value!r}; expected a number from {least:g} to {most:g}")
    return float(value)


def numbers(state: Mapping[str, Any], name: str, shape: tuple[int | None, ...]) -> Floats:
    """Finite numbers of a state in an array of a shape; None is any length above 0."""
    value = state.get(name)
    try:
        array = np.array(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        array = np.empty(0)
    array = array.astype(np.float64) if array.dtype.kind in "iuf" else np.empty(0)  # texts are no numbers
    fits = array.ndim == len(shape) and all(
        size > 0 and wanted in (None, size) for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not isinstance(value, list) or not fits or not np.isfinite(array).all():
        expected = " × ".join("n" if size is None else str(size) for size in shape)
        raise InputError(f"{name} is damaged; expected {expected} finite numbers")
    return array
