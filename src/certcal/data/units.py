"""Units of inputs: whether their range fits the noise, the perturbations and what models usually take."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._base.rounding import minus
from certcal.data.inputs import blocks

if TYPE_CHECKING:
    from certcal.data.inputs import Inputs, Rows

Range = tuple[float, float]
# A size beyond the range, or below this share of it, is likely one in other units.
_TOO_SMALL = 0.001
# What normalising leaves: values around 0, a few standard deviations wide.
_NORMALISED = 6.0
# Inputs that show the units of all, and rows that show the range of a feature.
_SEEN, _ENOUGH = 1000, 20
_DEVIATIONS = "standard deviations of each feature, such as 0.1sd"


class UnitsWarning(UserWarning):
    """Inputs, noise or perturbations that look as if they were in other units."""


def range_of(inputs: NDArray[Any] | Rows) -> Range:
    """Smallest and largest value of all inputs, read in pieces."""
    ends = [(float(block.min()), float(block.max())) for _, block in blocks(inputs)]
    return min(low for low, _ in ends), max(high for _, high in ends)


def range_text(ends: Range) -> str:
    """The range of inputs in words."""
    return f"from {' to '.join(minus(f'{end:.6g}') for end in ends)}"


def unit_doubts(
    ends: Range,
    shape: Sequence[int],
    *,
    sigma: float | None = None,
    epsilon: Sequence[float] = (),
    norm: Literal["linf", "l2"] = "linf",
) -> tuple[str, ...]:
    """What is odd about the units of inputs, noise and perturbations, each with the likely remedy.

    Inputs of two dimensions or more are taken as images.
    """
    (low, high), image = ends, len(shape) > 1
    found: list[str] = []
    sizes = [("sigma", sigma, 1.0)] if sigma is not None else []
    sizes += [("epsilon", each, math.sqrt(math.prod(shape)) if norm == "l2" else 1.0) for each in epsilon]
    if image and low >= 0 and 100 < high <= 255:
        found.append(
            f"inputs go {range_text(ends)}, as pixels do, and models usually take 0 to 1; pass uint8, or divide by 255"
        )
    elif image and sizes and -_NORMALISED < low < -0.5 and 0.5 < high < _NORMALISED:
        names = " and ".join(dict.fromkeys(name for name, _, _ in sizes)) + (" are" if sigma and epsilon else " is")
        found.append(
            f"inputs go {range_text(ends)}, as normalised images do, and {names} in these units, not in pixels; "
            "put the normalisation into the model and pass pixels from 0 to 1"
        )
    for name, size, longest in sizes:
        reach = (high - low) * longest
        if size > reach > 0:
            pixels = size <= 255 and low >= 0 and high <= 1
            remedy = f"in pixels of 255 it is {size:g}/255" if pixels else "give it in the units of the inputs"
            found.append(f"{name} {size:g} is more than the whole range of the inputs ({range_text(ends)}); {remedy}")
        elif 0 < size < _TOO_SMALL * (high - low):
            scaled = f", {size * 255:g} for pixels of 255" if high > 1 else ""
            units = f"the units of the inputs{scaled}" if image or name == "epsilon" else _DEVIATIONS
            found.append(
                f"{name} {size:g} is less than a thousandth of the range of the inputs ({range_text(ends)}); give it "
                f"in {units}"
            )
    return tuple(found)


def feature_doubts(inputs: NDArray[Any] | Rows, sigma: float) -> tuple[str, ...]:
    """Whether one size of noise fits none of several features, whose ranges differ."""
    if len(inputs.shape) != 2 or inputs.shape[1] > 10_000:
        return ()
    ends = [(block.min(axis=0), block.max(axis=0)) for _, block in blocks(inputs)]
    low, high = np.min([each for each, _ in ends], axis=0), np.max([each for _, each in ends], axis=0)
    reach, found = (high - low).astype(np.float64), list[str]()
    for words, odd in (
        ("more than the whole range", (sigma > reach) & (reach > 0)),
        ("less than a thousandth of the range", sigma < _TOO_SMALL * reach),
    ):
        if odd.any():
            first = int(np.argmax(odd))
            example = f"feature {first} goes {range_text((low[first], high[first]))}"
            found.append(
                f"sigma {sigma:g} is {words} of {int(odd.sum())} of {reach.size} features ({example}); give it in "
                f"{_DEVIATIONS}"
            )
    return tuple(found)


def warn_of_odd_units(
    inputs: Inputs,
    *,
    sigma: float | None = None,
    epsilon: Sequence[float] = (),
    norm: Literal["linf", "l2"] = "linf",
) -> None:
    """Warn where the first inputs look as if they, the noise or the perturbations were in other units."""
    some = next(blocks(inputs.inputs))[1][:_SEEN]  # of large images fewer, which memory has room for
    doubts = unit_doubts(range_of(some), some.shape[1:], sigma=sigma, epsilon=epsilon, norm=norm)
    if some.ndim == 2:  # a table: its features have ranges of their own, which a few rows do not show
        doubts = feature_doubts(some, sigma) if sigma is not None and len(some) >= _ENOUGH else ()
    warn_of_units(doubts)


def described(ends: Range, shape: Sequence[int], sigma: float) -> str:
    """The range of a run's inputs, and what is odd about it."""
    return "; ".join((range_text(ends), *unit_doubts(ends, shape, sigma=sigma)))


def warn_of_units(doubts: Iterable[str]) -> None:
    """Say once each what is odd about units."""
    for doubt in doubts:
        warnings.warn(doubt, UnitsWarning, stacklevel=4)
