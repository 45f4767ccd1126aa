"""The exact worst-case calibration error over intervals of confidences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import choice
from certcal.binning import CLOSED, BinTable, edges_for, sums
from certcal.worst_case._best import smallest_calibration_error
from certcal.worst_case._intervals import Intervals, check_intervals
from certcal.worst_case._program import SignProgram
from certcal.worst_case._result import WorstCase

Floats = NDArray[np.float64]
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
    intervals = check_intervals(lower, upper, correct, certified)
    side = choice(closed, CLOSED, "closed")
    given = edges_for(bins, edges)
    program = SignProgram(given, side, intervals.lower.dtype)
    kept = intervals.only_certified()
    program.add(kept)
    if best:
        return smallest_calibration_error(NAME, program, intervals, kept)
    value, signs = program.solve()
    n = len(kept)
    everything = None
    if intervals.certified is not None:
        free = len(intervals) - n
        solutions = [(*program.solve(free, right), right) for right in (1, 0)]
        everything = _result(
            program,
            intervals,
            *max(solutions, key=lambda solution: solution[0]),
            len(intervals),
            program.squares + free,
        )
    return _result(program, intervals, value, signs, None, n, program.squares, everything)


def _result(
    program: SignProgram,
    intervals: Intervals,
    total: float,
    signs: NDArray[np.int8],
    free_correct: int | None,
    n: int,
    squares: float,
    all_samples: WorstCase | None = None,
) -> WorstCase:
    bins = program.bins
    settings: dict[str, Any] = {"bins": bins.given.size - 1, "closed": bins.closed}

    def attain() -> tuple[NDArray[Any], BinTable]:
        z, c = program.witness(intervals, signs, free_correct)
        used = ~np.isnan(z)
        return z, sums(z[used], c[used], None, bins.given, bins.closed)

    if free_correct is not None:
        settings["uncertified"] = "free"
    return WorstCase(
        NAME,
        total / n,
        n,
        bins.spread(signs),
        attain,
        all_samples,
        settings=settings,
        mean_square=squares / n,
    )
