"""The worst-case calibration error of tables that do not fit in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._checks import InputError, choice
from certcal.binning import CLOSED, edges_for
from certcal.worst_case._calibration import solve
from certcal.worst_case._cells import squares
from certcal.worst_case._program import Program
from certcal.worst_case._result import WorstCase


class SignProgram:
    """:func:`calibration_error` for samples that come in pieces, on one machine or on several.

    What is kept are sums over the samples that can reach the same bins: at most bins² of them for correct and as many
    for incorrect samples, however many samples there are. The sums are exact, so the result has the same bits however
    the samples were cut, ordered, and merged; and they are the bits of :func:`calibration_error` on all of them.

    Parameters
    ----------
    bins, edges, closed
        As for :func:`certcal.metrics.ece`. Edges are rounded to the type of the intervals, so all pieces need one type.

    Examples
    --------
    >>> program = SignProgram(bins=3)
    >>> program.add([0.1], [0.6], [1])
    >>> program.add([0.5], [0.9], [0])
    >>> round(program.result().value, 12)
    0.9
    """

    def __init__(self, bins: int = 15, *, edges: Any = None, closed: str = "left") -> None:
        self._edges = edges_for(bins, edges)
        self._closed = choice(closed, CLOSED, "closed")
        self._program = Program(self._edges, self._closed)
        self._squares = 0

    def __len__(self) -> int:
        """Number of samples added so far, certified or not."""
        return self._program.n + self._program.free

    def add(self, lower: Any, upper: Any, correct: Any, certified: Any = None) -> None:
        """Add samples; after an error nothing has been added.

        Parameters
        ----------
        lower, upper, correct, certified
            As for :func:`calibration_error`, except that a piece may be without certified samples.

        Examples
        --------
        >>> program = SignProgram()
        >>> program.add([0.5, 0.25], [0.75, 0.5], [1, 0], certified=[True, False])
        >>> len(program), program.result().n
        (2, 1)
        """
        program, intervals = Program.read(lower, upper, correct, certified, self._edges, self._closed)
        self._program.merge(program)
        if program.n:
            self._squares += squares(intervals.only_certified().arrays)

    def merge(self, other: SignProgram) -> None:
        """Add the samples of another program with the same bins, which stays as it is.

        Examples
        --------
        >>> one, other = SignProgram(), SignProgram()
        >>> one.add([0.5], [0.75], [1])
        >>> other.add([0.25], [0.5], [0])
        >>> one.merge(other)
        >>> len(one)
        2
        """
        if not isinstance(other, SignProgram):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"other is {other!r}; pass a SignProgram")
        if self._closed != other._closed or not np.array_equal(self._edges, other._edges):
            raise InputError("other has different bins; merge programs made with the same edges and closed=")
        self._program.merge(other._program)
        self._squares += other._squares

    def result(self) -> WorstCase:
        """The worst case of all samples so far, for :func:`population_bound` too; more can be added afterwards.

        Returns
        -------
        WorstCase
            That of :func:`calibration_error`, without ``witness`` and ``bins``: the samples are no longer there.

        Examples
        --------
        >>> program = SignProgram(bins=1)
        >>> program.add([0.25] * 1000, [0.5] * 1000, [1] * 1000)
        >>> print(program.result().sentence)
        calibration error (bins=1, closed=left) is at most 0.7501 on these 1000 samples
        for all confidences inside the given intervals.
        """
        if not len(self):
            raise InputError("no samples were added; add some before asking for the result")
        square_sum = self._squares
        return solve(self._program, lambda: square_sum, None)
