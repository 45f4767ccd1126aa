"""Worst and best cases of scores in which every sample decides alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal.worst_case._result import WorstCase, outward
from certcal.worst_case.intervals import Intervals, check_intervals

Floats = NDArray[np.float64]

# Of a mean, relative to it, because nothing is negative: NumPy adds up in a tree of depth log2(n) + 16, and a loss is
# off by a few units in the last place; what underflows is less than 1e-300.
ROUNDING, UNDERFLOW = 64 * 2.0**-52, 1e-300

Loss = Callable[[Floats, NDArray[np.uint8]], Floats]


@names_wrong_types
def brier_score(lower: Any, upper: Any, correct: Any, *, certified: Any = None, best: bool = False) -> WorstCase:
    """Largest top-label Brier score inside the intervals: the mean of (1 - lower)² where correct and upper² where not.

    Theorem 3.3 of Emde et al. (2024). The smallest with ``best=True``: (1 - upper)² and lower².

    Parameters
    ----------
    lower, upper, correct, certified
        As for :func:`calibration_error`; an uncertified sample costs at most 1 and at least 0.
    best
        Whether to return the smallest value instead.

    Examples
    --------
    >>> round(brier_score([0.5, 0.2], [0.9, 0.4], [1, 0]).value, 12)
    0.205
    """
    return brier_score_of(check_intervals(lower, upper, correct, certified), best)


@names_wrong_types
def nll(lower: Any, upper: Any, correct: Any, *, certified: Any = None, best: bool = False) -> WorstCase:
    """Largest top-label log loss inside the intervals: the mean of -log lower where correct, -log(1 - upper) where not.

    Infinite when an interval reaches 0 for a correct or 1 for an incorrect sample, and over all samples as soon as
    one is not certified. Parameters are those of :func:`brier_score`.

    Examples
    --------
    >>> round(nll([0.5, 0.2], [0.9, 0.5], [1, 0]).value, 6)
    0.693147
    """
    return nll_of(check_intervals(lower, upper, correct, certified), best)


def brier_score_of(intervals: Intervals, best: bool = False) -> WorstCase:
    return _separable("Brier score", _squares, 1.0, intervals, best)


def nll_of(intervals: Intervals, best: bool = False) -> WorstCase:
    return _separable("log loss", _logs, float("inf"), intervals, best)


def _squares(z: Floats, c: NDArray[np.uint8]) -> Floats:
    return (c - z) ** 2


def _logs(z: Floats, c: NDArray[np.uint8]) -> Floats:
    with np.errstate(divide="ignore"):
        return -np.where(c == 1, np.log(z), np.log1p(-z))


def _separable(name: str, loss: Loss, free: float, intervals: Intervals, best: bool) -> WorstCase:
    kept = intervals.only_certified()

    def choose(part: Intervals) -> Floats:
        return np.where((part.correct == 1) != best, part.lower, part.upper).astype(np.float64)

    chosen = choose(kept)
    total = float(loss(chosen, kept.correct).sum())
    perfect = np.array_equal(chosen, kept.correct)  # no loss, rather than one that underflows
    extreme, side = ("lowest", "lower") if best else ("highest", "upper")

    def mean(total: float, n: int) -> float:
        error = 0.0 if perfect and total == 0 else total / n * ROUNDING + UNDERFLOW
        return outward(total / n, error, side, free)

    def witness() -> tuple[Floats, None]:
        chosen = choose(intervals)
        if intervals.certified is not None:
            chosen[~intervals.certified] = np.nan
        return chosen, None

    def free_witness() -> tuple[Floats, None]:
        chosen = witness()[0]
        # A free sample is certain, and wrong in the worst case, right in the best.
        return np.where(np.isnan(chosen), 1.0, chosen), None

    everything = None
    if intervals.certified is not None:
        missing = len(intervals) - len(kept)
        extra = 0.0 if best or missing == 0 else missing * free
        everything = WorstCase(
            name,
            mean(total + extra, len(intervals)),
            len(intervals),
            None,
            free_witness,
            extreme=extreme,
            settings={"uncertified": "free"},
        )
    return WorstCase(name, mean(total, len(kept)), len(kept), None, witness, everything, extreme=extreme)
