"""Intervals of confidences, checked once: every perturbed confidence of sample n lies in [lower_n, upper_n]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, confidences, correctness, same_length, to_numpy
from certcal._base.threads import map_blocks

Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[np.uint8]]

NOTHING = "certified is false for every sample; a worst case over no sample is undefined"
REMEDY = "pass probabilities for both ends of each interval"


@dataclass(frozen=True, eq=False)
class Intervals:
    """Checked intervals of one type, correctness, and which samples are certified (None for all)."""

    lower: NDArray[Any]
    upper: NDArray[Any]
    correct: NDArray[np.uint8]
    certified: NDArray[np.bool_] | None

    def __len__(self) -> int:
        return self.lower.size

    @property
    def arrays(self) -> Arrays:
        """Lower ends, upper ends and correctness."""
        return self.lower, self.upper, self.correct

    @property
    def certified_count(self) -> int:
        """Number of certified samples."""
        return len(self) if self.certified is None else int(np.count_nonzero(self.certified))

    def only_certified(self) -> Intervals:
        """The certified samples; an error when there is none."""
        if self.certified is None:
            return self
        if not self.certified.any():
            raise InputError(NOTHING)
        keep = self.certified
        return Intervals(self.lower[keep], self.upper[keep], self.correct[keep], None)

    def among_all(self, values: NDArray[Any], rest: float = np.nan) -> NDArray[Any]:
        """Values of the certified samples in the input order, with ``rest`` for the others."""
        if self.certified is None:
            return values
        whole = np.full(len(self), rest, values.dtype)
        whole[self.certified] = values
        return whole


def check_intervals(lower: Any, upper: Any, correct: Any, certified: Any = None, own: bool = True) -> Intervals:
    """Check intervals in [0, 1] with lower <= upper, correctness and the certified mask together.

    What is returned does not change when the given arrays do, if it is to own its memory. Samples that are not
    certified may hold anything, NaN too; they become [0, 1].
    """
    low, high, c, mask = lower, upper, correct, None
    if certified is not None:
        low, high, c = to_numpy(lower, "lower"), to_numpy(upper, "upper"), to_numpy(correct, "correct")
        remedy = "pass true or false for each sample"
        mask = correctness(certified, "certified", remedy).view(np.bool_).copy()
        same_length(lower=low.size, upper=high.size, correct=c.size, certified=mask.size)
        low, high, c = (_fill_uncertified(values, mask, rest) for values, rest in ((low, 0), (high, 1), (c, 0)))
    low, high, c = confidences(low, "lower", REMEDY), confidences(high, "upper", REMEDY), correctness(c)
    same_length(lower=low.size, upper=high.size, correct=c.size)
    _check_order(low, high)
    if low.dtype != high.dtype:
        low, high = low.astype(np.float64), high.astype(np.float64)
    if own:
        low, high, c = _copy_unless_owned(low, lower), _copy_unless_owned(high, upper), _copy_unless_owned(c, correct)
    return Intervals(low, high, c, mask)


def readable_arrays(lower: Any, upper: Any, correct: Any) -> Arrays | None:
    """The arrays as they are, with correctness checked but the ends not, when compiled code can read them; else None.

    For whoever checks the ends while reading them, and asks :func:`check_intervals` for the sentence when one is wrong.
    """
    low, high, c = to_numpy(lower, "lower"), to_numpy(upper, "upper"), to_numpy(correct, "correct")
    simple = low.dtype == high.dtype and low.dtype.kind == "f" and low.dtype.itemsize >= 4
    if not simple or not low.shape == high.shape == c.shape == (low.size,) or low.size == 0:
        return None
    if not (low.flags.c_contiguous and high.flags.c_contiguous):
        return None
    return low, high, correctness(c)


def _fill_uncertified(values: NDArray[Any], mask: NDArray[np.bool_], rest: int) -> NDArray[Any]:
    flat = values.reshape(-1).copy()
    flat[~mask] = rest
    return flat


def _copy_unless_owned(values: NDArray[Any], source: Any) -> NDArray[Any]:
    """A copy, unless nobody else holds the memory; on all threads, because it is large."""
    if values.base is None and isinstance(source, list | tuple):
        return values
    out = np.empty_like(values)
    map_blocks(lambda start, stop: np.copyto(out[start:stop], values[start:stop]), values.size)
    return out


def _check_order(low: NDArray[Any], high: NDArray[Any]) -> None:
    for start in range(0, low.size, 1 << 16):  # in blocks that stay in the cache
        bad = low[start : start + (1 << 16)] > high[start : start + (1 << 16)]
        if bad.any():
            index = start + int(np.argmax(bad))
            raise InputError(
                f"lower[{index}] is {low[index]:.9g}, above upper[{index}] = {high[index]:.9g}; are the two swapped?"
            )
