"""The exact worst-case calibration error over intervals of confidences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, choice
from certcal.binning import CLOSED, BinTable, edges_for, sums
from certcal.worst_case._best import smallest_calibration_error
from certcal.worst_case._cells import UNIT, squares
from certcal.worst_case._intervals import NOTHING, Intervals
from certcal.worst_case._program import Program
from certcal.worst_case._result import WorstCase, outward
from certcal.worst_case._witness import witness

NAME = "calibration error"


def calibration_error(
    lower: Any,
    upper: Any,
    correct: Any,
    bins: int = 15,
    *,
    edges: Any = None,
    closed: str = "left",
    certified: Any = None,
    best: bool = False,
) -> WorstCase:
    """Largest calibration error that any confidences inside the intervals can have, exactly.

    What is claimed: for every choice of confidences with ``lower <= z <= upper``, ``ece(z, correct)`` with the same
    bins is at most ``value``, and the witness comes as close to it as floats allow (a half-open bin does not contain
    its open end).

    Parameters
    ----------
    lower, upper
        Interval of each sample's confidence, in [0, 1].
    correct
        Whether each (certified) prediction is correct, 0 or 1.
    bins, edges, closed
        As for :func:`certcal.metrics.ece`.
    certified
        Which samples are certified, or None for all. ``value`` is then over the certified samples only, and
        ``all_samples`` over all of them, with the others free in confidence and correctness (what is given for them
        is not read).
    best
        Whether to bracket the smallest calibration error instead: ``lower_end`` is proved, ``value`` is attained.

    Returns
    -------
    WorstCase
        ``value``, ``signs``, ``witness`` and ``bins``.

    Examples
    --------
    The worked example of Emde et al. (2024), appendix E.2:

    >>> round(calibration_error([0.1, 0.5], [0.6, 0.9], [1, 0], bins=3).value, 12)
    0.9
    """
    side = choice(closed, CLOSED, "closed")
    program, intervals = Program.read(lower, upper, correct, certified, edges_for(bins, edges), side, own=True)
    if best:
        return smallest_calibration_error(NAME, program, intervals, intervals.only_certified())
    return solve(program, lambda: squares(intervals.only_certified().arrays), intervals)


def solve(program: Program, square_sum: Callable[[], int], intervals: Intervals | None) -> WorstCase:
    """The worst case of a program, with a witness when its intervals are at hand."""
    if program.n == 0:
        raise InputError(NOTHING)
    everything = None
    if program.masked:
        total, signs, right = max(
            ((*program.solve(program.free, right), right) for right in (1, 0)), key=lambda solution: solution[0]
        )
        everything = _result(program, square_sum, intervals, total, signs, right)
    return _result(program, square_sum, intervals, *program.solve(), None, everything)


def _result(
    program: Program,
    square_sum: Callable[[], int],
    intervals: Intervals | None,
    total: float,
    signs: NDArray[np.int8],
    free_correct: int | None,
    all_samples: WorstCase | None = None,
) -> WorstCase:
    bins = program.bins
    free = 0 if free_correct is None else program.free
    n = program.n + free
    settings: dict[str, Any] = {"bins": bins.given.size - 1, "closed": bins.closed}
    if free_correct is not None:
        settings["uncertified"] = "free"

    def attain() -> tuple[NDArray[Any], BinTable]:
        assert intervals is not None
        z, c = witness(bins, intervals, signs, free_correct)
        used = ~np.isnan(z)
        return z, sums(z[used], c[used], None, bins.given, bins.closed)

    def correct() -> NDArray[np.uint8]:
        assert intervals is not None
        if intervals.certified is None or free_correct is None:
            return intervals.correct
        return np.where(intervals.certified, intervals.correct, np.uint8(free_correct))

    return WorstCase(
        NAME,
        outward(total / n, bins.rounding),
        n,
        bins.spread(signs),
        None if intervals is None else attain,
        all_samples,
        settings=settings,
        square=lambda: (square_sum() * UNIT + free) / n,
        correct=None if intervals is None else correct,
    )
