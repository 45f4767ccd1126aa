"""The exact worst-case calibration error over intervals, of samples at once or in pieces, and its smallest value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, choice
from certcal.binning import CLOSED, BinTable, edges_for, sums
from certcal.metrics.binned import ece_of
from certcal.worst_case._gains import Gains
from certcal.worst_case._program import Bins, Program, witness
from certcal.worst_case._result import WorstCase, outward
from certcal.worst_case.intervals import NOTHING, Intervals

Floats = NDArray[np.float64]
NAME = "calibration error"


@names_wrong_types
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
    return _extreme(*Program.read(lower, upper, correct, certified, edges_for(bins, edges), side, own=True), best)


def calibration_error_of(intervals: Intervals, edges: Floats, closed: str, best: bool = False) -> WorstCase:
    """:func:`calibration_error` of checked intervals."""
    return _extreme(Program.of(intervals, edges, closed), intervals, best)


def _extreme(program: Program, intervals: Intervals, best: bool) -> WorstCase:
    if best:
        return _bracket_smallest(program, intervals, intervals.only_certified())
    return _solve(program, lambda: Gains.of(intervals.only_certified().arrays, program.bins), intervals)


def _solve(program: Program, gains: Callable[[], Gains], intervals: Intervals | None) -> WorstCase:
    if program.n == 0:
        raise InputError(NOTHING)
    everything = None
    if program.masked:
        total, signs, right = max(
            ((*program.solve(program.free, right), right) for right in (1, 0)), key=lambda solution: solution[0]
        )
        everything = _result(program, gains, intervals, total, signs, right)
    return _result(program, gains, intervals, *program.solve(), None, everything)


def _result(
    program: Program,
    gains: Callable[[], Gains],
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
        stakes=lambda: gains().with_free(free),
        correct=None if intervals is None else correct,
    )


class SignProgram:
    """:func:`calibration_error` for samples that come in pieces, on one machine or on several.

    What is kept are sums over the samples that can reach the same bins: at most bins² of them for correct and as many
    for incorrect samples, and counts on a finer grid for :func:`population_bound`, however many samples there are. The
    sums are exact, so the result has the same bits however the samples were cut, ordered, and merged; and they are the
    bits of :func:`calibration_error` on all of them.

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
        self._gains: Gains | None = None

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
            self._take(Gains.of(intervals.only_certified().arrays, program.bins))

    def _take(self, more: Gains | None) -> None:
        self._gains = self._gains + more if self._gains is not None and more is not None else self._gains or more

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
        self._take(other._gains)

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
        gains = self._gains
        return _solve(self._program, lambda: cast("Gains", gains), None)


class BatchWorstCase(NamedTuple):
    """Where the worst case puts the samples.

    ``value`` is the calibration error there, ``signs`` those of the bins, and ``bins`` and ``confidence`` where each
    sample is then.
    """

    value: float
    signs: NDArray[np.int8]
    bins: NDArray[np.int64]
    confidence: Floats


class BatchProgram:
    """The worst case of one batch after another over the same bins, for intervals that need no checking.

    The same program as :func:`certcal.worst_case.calibration_error`, without what a result carries: a fifth of a
    millisecond for a few thousand samples.

    Examples
    --------
    >>> program = BatchProgram(np.array([0, 1 / 3, 2 / 3, 1]))
    >>> found = program(np.array([0.1, 0.5]), np.array([0.6, 0.9]), np.array([1, 0], np.uint8))
    >>> round(found.value, 12), found.signs.tolist(), found.bins.tolist(), found.confidence.tolist()
    (0.9, [1, 1, -1], [0, 2], [0.1, 0.9])
    """

    def __init__(self, edges: Floats, closed: str = "left") -> None:
        self._program = Program(edges, closed)

    def __call__(self, lower: Floats, upper: Floats, correct: NDArray[np.uint8]) -> BatchWorstCase:
        """Worst case of intervals with 0 <= lower <= upper <= 1; signs are for bins that a confidence can be in."""
        program = self._program
        ordered = program.group((lower, upper, correct))
        assert ordered, "intervals are out of order"
        total, signs = program.solve()
        confidence, _ = witness(program.bins, Intervals(lower, upper, correct, None), signs)
        return BatchWorstCase(total / lower.size, signs, program.bins.locate(confidence), confidence)


def _bracket_smallest(program: Program, intervals: Intervals, kept: Intervals) -> WorstCase:
    """Bracket of the smallest calibration error.

    Lower end: min over z of max over s of Σ s(c - z) is at least max over s of min over z, and for given signs that
    minimum is minus the best that the samples can do with all signs turned; so the maximum over s is -min_s Σ g_n(s).
    A free sample can cancel at most 1 of Σ_m |S_m|, and adds nothing when it is certain and right.
    """
    bins, n = program.bins, len(kept)
    proved = -program.solve(sense=-1)[0]
    z = _search_small_error(kept, bins)
    total = ece_of(sums(z, kept.correct, None, bins.given, bins.closed)) * n
    settings: dict[str, Any] = {"bins": bins.given.size - 1, "closed": bins.closed}

    def attain(rest: float) -> tuple[NDArray[Any], BinTable]:
        whole, c = intervals.among_all(z, rest), intervals.among_all(kept.correct, 1)
        used = ~np.isnan(whole)
        return whole, sums(whole[used], c[used], None, bins.given, bins.closed)

    def result(free: int, rest: float, more: dict[str, Any], everything: WorstCase | None = None) -> WorstCase:
        value, end = total / (n + free), outward((proved - free) / (n + free), bins.rounding, "lower")
        return WorstCase(
            NAME,
            value,
            n + free,
            None,
            lambda: attain(rest),
            everything,
            extreme="lowest",
            lower_end=min(end, value),
            settings={**settings, **more},
        )

    if intervals.certified is None:
        return result(0, np.nan, {})
    return result(0, np.nan, {}, result(len(intervals) - n, 1.0, {"uncertified": "free"}))


def _search_small_error(kept: Intervals, bins: Bins) -> NDArray[Any]:
    """Confidences inside the intervals with a small calibration error.

    From several starts, every bin's samples are moved inside bin and interval until the bin's mean gap vanishes or
    they can move no further; the best of these is returned.
    """
    low, high = kept.lower.astype(np.float64), kept.upper.astype(np.float64)
    found: list[tuple[float, NDArray[Any]]] = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        start = np.clip((low + share * (high - low)).astype(bins.dtype), kept.lower, kept.upper)
        where = bins.locate(start)
        bottom, top = bins.inside(where)
        least, most = np.maximum(low, bottom), np.minimum(high, top)

        def per_bin(values: NDArray[Any], where: NDArray[np.int64] = where) -> Floats:
            return np.bincount(where, values, bins.count).astype(np.float64)

        wanted = per_bin(kept.correct) - per_bin(start)
        room = np.where(wanted > 0, per_bin(most - start), per_bin(start - least))
        part = np.clip(np.divide(np.abs(wanted), room, out=np.zeros(bins.count), where=room > 0), 0, 1)
        moved = np.where(wanted[where] > 0, most - start, least - start) * part[where] + start
        z = np.clip(moved, least, most).astype(bins.dtype)
        found.append((ece_of(sums(z, kept.correct, None, bins.given, bins.closed)), z))
    return min(found, key=lambda pair: pair[0])[1]
