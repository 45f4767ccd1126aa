"""The exact worst case of changing intervals, asked for at every step of a search that follows it.

A search that knows more of some samples together than of each of them has it with relief.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal.binning import edges_for
from certcal.worst_case._intervals import Intervals
from certcal.worst_case._program import Program, witness
from certcal.worst_case._result import outward

Floats = NDArray[np.float64]


class Course(NamedTuple):
    """Where the worst case puts the samples.

    ``value`` is the calibration error there, ``signs`` those of the bins, and ``bins`` and ``confidence`` where each
    sample is then.
    """

    value: float
    signs: NDArray[np.int8]
    bins: NDArray[np.int64]
    confidence: Floats


class Steering:
    """The worst case of one batch after another over the same bins, for intervals that need no checking.

    The same program as :func:`certcal.worst_case.calibration_error`, without what a result carries: a fifth of a
    millisecond for a few thousand samples.

    Examples
    --------
    >>> steering = Steering(np.array([0, 1 / 3, 2 / 3, 1]))
    >>> course = steering(np.array([0.1, 0.5]), np.array([0.6, 0.9]), np.array([1, 0], np.uint8))
    >>> round(course.value, 12), course.signs.tolist(), course.bins.tolist(), course.confidence.tolist()
    (0.9, [1, 1, -1], [0, 2], [0.1, 0.9])
    """

    def __init__(self, edges: Floats, closed: str = "left") -> None:
        self._program = Program(edges, closed)

    def __call__(self, lower: Floats, upper: Floats, correct: NDArray[np.uint8]) -> Course:
        """Worst case of intervals with 0 <= lower <= upper <= 1; signs are for bins that a confidence can be in."""
        program = self._program
        ordered = program.group((lower, upper, correct))
        assert ordered, "intervals are out of order"
        total, signs = program.solve()
        confidence, _ = witness(program.bins, Intervals(lower, upper, correct, None), signs)
        return Course(total / lower.size, signs, program.bins.locate(confidence), confidence)


class Relieved(NamedTuple):
    """Largest calibration errors of the certified samples alone and of all, and the signs behind the latter."""

    certified: float
    everyone: float
    signs: NDArray[np.int8]


def relieved_error(
    lower: Floats, upper: Floats, correct: Any, certified: Any, relief: Floats, bins: int = 15, closed: str = "left"
) -> Relieved:
    """The worst case of intervals where more is known of sums of samples than the intervals say.

    For signs s the worst case is Σ_n g_n(s). A correct sample of lower end l has g_n(s) <= 1 - z for every z <= z_n,
    so where the bin of l has sign + and g_n(s) = 1 - l, it is also at most 1 - l - (z_n - l); an incorrect one likewise
    with its upper end and sign -. ``relief`` is z_n - l (or u - z_n) as far as it is known *in sums over bins*: the
    value is the largest over s of Σ g_n(s) less the relief of the samples whose bin has their sign.

    Examples
    --------
    >>> ends = np.array([0.2, 0.5]), np.array([1.0, 0.9]), np.array([1, 0])
    >>> everyone = np.array([True, True])
    >>> [round(relieved_error(*ends, everyone, np.array(each), 1).everyone, 6) for each in ([0.0, 0.0], [0.0, 0.3])]
    [0.45, 0.3]
    """
    edges = edges_for(bins, None)
    program, intervals = Program.read(lower, upper, correct, certified, edges, closed)
    kept, given, held = intervals.only_certified(), relief[np.asarray(certified, np.bool_)], program.bins
    right = kept.correct == 1
    ends = np.where(right, kept.lower, kept.upper)
    parts = [np.bincount(held.locate(ends[own]), given[own], held.count) for own in (right, ~right)]
    both = (parts[0].astype(np.float64), parts[1].astype(np.float64))
    alone, n = program.solve(relief=both)[0], program.n + program.free
    total, signs = max((program.solve(program.free, c, relief=both) for c in (1, 0)), key=lambda found: found[0])
    room = 2 * held.rounding
    return Relieved(outward(alone / program.n, room), outward(total / n, room), held.spread(signs))
