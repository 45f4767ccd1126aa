"""Worst calibration error when the edges are chosen after the attack: equal-mass bins recomputed, or any edges at all.

The calibration error of M bins is Σ_n s(z_n)(c_n - z_n) / N for a function s on [0, 1] that is +1 or -1 on each bin. So
it is at most max_s Σ_n g_n(s) / N, where g_n(s) is the best that sample n can do alone: a correct one goes to the first
place of sign + inside its interval, an incorrect one to the last place of sign -. That sum is one term per run of equal
signs, hence the best s with a limited number of changes is found by dynamic programming over where they are. For
recomputed equal-mass bins the changes are edges, edge m is the k_m-th smallest confidence, and that lies between the
k_m-th smallest lower end and the k_m-th smallest upper end. What an edge cannot do is therefore known; that the bins
must also hold equal masses is not used, because ties never split: samples on an edge go to the bin above it, and a bin
below may be as small as one likes.

In steps. (1) N · ECE <= Σ_n g_n(s) for the signs s of the bins of any confidences: a correct sample gets 1 - t at the
first t >= l of sign +, or u - 1 if none is within reach; a wrong one t at the last t <= u of sign -, or -l. (2) Each
term depends on where its run of equal signs begins and ends only: a correct sample belongs to the run that holds l and
looks no further than the next change, a wrong one to the run that holds u and looks back to the last change. (3) Each
change is one of the edges, no two the same. So the program's maximum is over a set of sign functions that contains all
that any confidences can have. (4) In a cell with a change + counts from its lower end and - up to its upper end, which
only adds to each g_n; a run inside one cell gives back what its neighbours both counted. Rounding is bounded and added.

Changes are placed in the cells of a grid, in each of which every sample may have both signs: that only adds, so the
value is a bound for all places. A search from its solution finds confidences that come close.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import bin_count, choice, whole_number
from certcal.binning import CLOSED, BinTable, mass_edges, sums
from certcal.metrics.binned import ece_of
from certcal.worst_case._gains import Chernoff
from certcal.worst_case._result import WorstCase, outward
from certcal.worst_case.intervals import Intervals, check_intervals

Floats = NDArray[np.float64]

EQUAL_MASS, ANY_EDGES = "equal-mass calibration error", "calibration error with any edges"

# Cells of the grid, a quarter of them of equal width and the others with equally many ends of intervals.
CELLS = 1024
# Places of the search: at most so many, and fewer for many samples, whose every placing takes longer.
MOST_TRIALS, FEWEST_TRIALS, TRIED_SAMPLES = 3000, 60, 20_000_000


@names_wrong_types
def equal_mass_error(
    lower: Any,
    upper: Any,
    correct: Any,
    bins: int = 15,
    *,
    closed: str = "left",
    certified: Any = None,
    failing: int = 0,
    trials: int | None = None,
) -> WorstCase:
    """Bracket of the largest equal-mass calibration error inside the intervals, its edges recomputed after the attack.

    What is claimed: for every choice of confidences with ``lower <= z <= upper``, ``equal_mass_ece(z, correct)`` is at
    most ``value``; and that of the witness is ``reached``. The two are equal where every interval is a point.

    Parameters
    ----------
    lower, upper, correct, bins, closed, certified
        As for :func:`calibration_error`.
    failing
        How many samples may be outside their intervals or wrong about correctness, besides.
    trials
        How many neighbours the search for the witness tries; by default fewer the more samples there are.

    Returns
    -------
    WorstCase
        ``value`` (proved), ``reached`` (attained) and ``witness``.

    Examples
    --------
    >>> worst = equal_mass_error([0.1, 0.5], [0.6, 0.9], [1, 0], bins=2)
    >>> round(worst.reached, 12), worst.value < 0.902
    (0.9, True)
    """
    intervals, side = check_intervals(lower, upper, correct, certified), choice(closed, CLOSED, "closed")
    return equal_mass_error_of(intervals, bin_count(bins), side, failing=failing, trials=trials)


@names_wrong_types
def any_edges_error(
    lower: Any, upper: Any, correct: Any, bins: int = 15, *, closed: str = "left", certified: Any = None
) -> WorstCase:
    """Bracket of the largest calibration error inside the intervals that any edges of so many bins can show.

    The edges may be chosen after everything else was seen. It bounds equal-width and equal-mass errors alike, in the
    population too (:func:`population_bound`), where edges that were read off the samples have no bound of their own.

    Parameters
    ----------
    lower, upper, correct, bins, closed, certified
        As for :func:`calibration_error`.

    Examples
    --------
    >>> worst = any_edges_error([0.1, 0.5], [0.6, 0.9], [1, 0], bins=3)
    >>> worst.reached <= worst.value, 0.9 <= worst.value < 0.902
    (True, True)
    """
    intervals, side = check_intervals(lower, upper, correct, certified), choice(closed, CLOSED, "closed")
    return any_edges_error_of(intervals, bin_count(bins), side)


def equal_mass_error_of(
    intervals: Intervals, bins: int, closed: str, *, failing: int = 0, trials: int | None = None
) -> WorstCase:
    """:func:`equal_mass_error` of checked intervals."""
    return _bracket(EQUAL_MASS, intervals, bins, closed, recomputed=True, failing=failing, trials=trials)


def any_edges_error_of(intervals: Intervals, bins: int, closed: str) -> WorstCase:
    """:func:`any_edges_error` of checked intervals."""
    return _bracket(ANY_EDGES, intervals, bins, closed, recomputed=False)


def _bracket(
    name: str,
    intervals: Intervals,
    count: int,
    side: str,
    *,
    recomputed: bool,
    failing: int = 0,
    trials: int | None = None,
) -> WorstCase:
    wrong = whole_number(failing, 0, len(intervals), "failing", "pass how many certificates may fail")
    if trials is not None:
        whole_number(trials, 0, 10**9, "trials", "pass how many neighbours are tried")
    kept = intervals.only_certified()
    settings: dict[str, Any] = {"bins": count, "closed": side, "edges": "recomputed" if recomputed else "any"}

    def solve_free(free: int, right: int) -> tuple[_Problem, float, Floats]:
        ends = (np.append(kept.lower, np.zeros(free, kept.lower.dtype)), np.append(kept.upper, np.ones(free)))
        c = np.append(kept.correct, np.full(free, right, np.uint8))
        problem = _Problem(ends[0], ends[1].astype(kept.lower.dtype), c, count, side, recomputed)
        value, changes = problem.bound(wrong)
        return problem, value, problem.search(changes, trials)

    def result(free: int, everything: WorstCase | None = None) -> WorstCase:
        found = [solve_free(free, right) for right in ((1, 0) if free else (1,))]
        problem, _, z = max(found, key=lambda each: each[0].error(each[2]))
        n = problem.n
        reached, table = problem.error(z), problem.table(z)
        value = outward(max(each[1] + each[0].gain_of_failing(wrong) for each in found), problem.rounding)
        order = _free_places(intervals, free)
        more = {"uncertified": "free"} if everything is None and intervals.certified is not None else {}
        return WorstCase(
            name,
            value,
            n,
            np.where(table.gap_sum < 0, -1, 1).astype(np.int8),
            lambda: (_spread_over_bins(z, order, len(intervals), np.nan), table),
            everything,
            settings={**settings, **more},
            stakes=Chernoff(n),
            correct=_spread_over_bins(problem.c, order, len(intervals), 0),
            reached=reached,
        )

    if intervals.certified is None:
        return result(0)
    return result(0, result(len(intervals) - len(kept)))


def _free_places(intervals: Intervals, free: int) -> NDArray[np.intp]:
    if intervals.certified is None:
        return np.arange(len(intervals))
    kept, rest = np.flatnonzero(intervals.certified), np.flatnonzero(~intervals.certified)
    return np.append(kept, rest) if free else kept


def _spread_over_bins(values: NDArray[Any], order: NDArray[np.intp], n: int, rest: float) -> NDArray[Any]:
    whole = np.full(n, rest, values.dtype)
    whole[order] = values
    return whole


class Changes(NamedTuple):
    """A sign function: where it changes, ascending, and its first sign."""

    places: Floats
    first: int


@dataclass(eq=False)
class _Problem:
    """Samples with intervals, and bins whose edges come last."""

    low: NDArray[Any]
    high: NDArray[Any]
    c: NDArray[np.uint8]
    bins: int
    closed: str
    recomputed: bool
    shown: Changes | None = None  # whose places are the edges, where any will do

    @property
    def n(self) -> int:
        return self.low.size

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Of the confidence that is inner edge m = 1 … M - 1, from 0: the first with more than m/M of all up to it.

        With bins closed on the right it is the mirror image: the last with more than 1 - m/M of all from it on.
        """
        m = np.arange(1, self.bins, dtype=np.int64)
        return m * self.n // self.bins if self.closed == "left" else -(-m * self.n // self.bins) - 1

    @property
    def rounding(self) -> float:
        """Bound on the rounding error of the value.

        A table of sums adds up at most n + 2 K numbers of at most 1, hence is off by (n + 2 K) n units of 2^-53. Fewer
        than 32 entries and products make the worth of a run, and there are at most M runs (or K + 1, if that is less).
        """
        return 2.0**-53 * 32 * min(self.bins, CELLS + 4 * self.bins) * (self.n + 4 * CELLS + 8 * self.bins)

    # --- the bound ---------------------------------------------------------------------------------------------------

    def bound(self, failing: int) -> tuple[float, Changes]:
        """A value that no sign function exceeds, without what failing samples add, and where the best one changes."""
        if self.recomputed and not failing and np.array_equal(self.low, self.high):
            return self.error(self.low), self.changes_of(self.low)
        low, high = np.sort(self.low).astype(np.float64), np.sort(self.high).astype(np.float64)
        windows = [(0.0, 1.0)] * (self.bins - 1)
        if self.recomputed:
            before, after = self.ranks - failing, self.ranks + failing
            first = np.where(before < 0, 0.0, low[np.maximum(before, 0)])
            last = np.where(after >= self.n, 1.0, high[np.minimum(after, self.n - 1)])
            windows = list(zip(first.tolist(), last.tolist(), strict=True))
        grid = _grid(low, high, windows)
        plus, minus = _worths(self.low, self.high, self.c, grid)
        total, cells, first_sign = _best_changes(plus, minus, _cells_of(windows, grid))
        return total / self.n, Changes(grid[np.array(cells, np.int64)], first_sign)

    def gain_of_failing(self, failing: int) -> float:
        """What failing samples add at most: a sample that is anything brings at most 1.

        Inside its interval it brings no less than -(1 - upper) if it is correct, and than -lower if it is not.
        """
        least = np.where(self.c == 1, self.high.astype(np.float64) - 1, -self.low.astype(np.float64))
        return float((1 - np.sort(least)[:failing]).sum()) / self.n

    # --- the search --------------------------------------------------------------------------------------------------

    def table(self, z: NDArray[Any]) -> BinTable:
        """Per-bin sums of confidences, with edges recomputed or where the signs change."""
        edges = mass_edges(z, None, self.bins, self.closed) if self.shown is None else self.shown.places
        edges = edges if self.shown is None else np.concatenate(([0.0], np.clip(edges, 0, 1), [1.0]))
        return sums(z, self.c, None, edges, self.closed)

    def error(self, z: NDArray[Any]) -> float:
        return float(ece_of(self.table(z)))

    def quick_error(self, z: NDArray[Any]) -> tuple[float, NDArray[Any], NDArray[Any]]:
        """About the same, faster: error, ranked confidences at the edges, and gap sums."""
        if self.bins == 1:
            gap = float((self.c - z.astype(np.float64)).sum())
            return abs(gap) / self.n, np.empty(0, z.dtype), np.array([gap])
        ends = np.partition(z, self.ranks)[self.ranks]
        gaps = np.bincount(self._bins_of(z, ends), self.c - z.astype(np.float64), self.bins)
        return float(np.abs(gaps).sum()) / self.n, ends, gaps

    def _bins_of(self, z: NDArray[Any], ends: NDArray[Any]) -> NDArray[np.intp]:
        return np.searchsorted(ends, z, side="right" if self.closed == "left" else "left")

    def changes_of(self, z: NDArray[Any]) -> Changes:
        """The sign function of the bins that these confidences have."""
        _, ends, gaps = self.quick_error(z)
        used = np.bincount(self._bins_of(z, ends), minlength=self.bins) > 0
        signs = np.where(gaps[used] < 0, -1, 1)
        starts = np.append(0.0, ends.astype(np.float64))[used]
        turns = np.flatnonzero(np.diff(signs)) + 1
        return Changes(starts[turns], int(signs[0]))

    def best_confidences(self, changes: Changes) -> NDArray[Any]:
        """Each sample's best confidence for a sign function; where there is none, the nearest float inside the run."""
        low, high = self.low, self.high
        t = changes.places.astype(low.dtype)
        side = "right" if self.closed == "left" else "left"
        at_low, at_high = np.searchsorted(t, low, side), np.searchsorted(t, high, side)
        begins = t if self.closed == "left" else np.nextafter(t, low.dtype.type(2))
        finishes = np.nextafter(t, low.dtype.type(-1)) if self.closed == "left" else t
        following, previous = np.append(begins, low.dtype.type(2))[at_low], np.append([low.dtype.type(-1)], finishes)
        previous = previous[at_high]
        is_plus = (at_low % 2 == 0) == (changes.first > 0)
        is_minus = (at_high % 2 == 0) != (changes.first > 0)
        right = np.where(is_plus, low, np.where(following <= high, following, high))
        wrong = np.where(is_minus, high, np.where(previous >= low, previous, low))
        return np.where(self.c == 1, right, wrong)

    def search(self, changes: Changes, trials: int | None = None) -> NDArray[Any]:
        """Confidences inside the intervals with a large calibration error.

        The places of the changes are moved, added and removed, always by the error that the samples then have.
        """
        if not self.recomputed:
            self.shown = changes
            return self.best_confidences(changes)
        starts = [np.where(self.c == 1, self.low, self.high), self.low, self.high, self.best_confidences(changes)]
        best = max(starts, key=lambda z: self.quick_error(z)[0])
        value = self.quick_error(best)[0]
        rng = np.random.default_rng(0)
        ends = np.sort(np.concatenate((self.low, self.high))).astype(np.float64)
        if trials is None:
            trials = int(np.clip(TRIED_SAMPLES // self.n, FEWEST_TRIALS, MOST_TRIALS))
        for begun in (changes, self.changes_of(best)):
            now, here = begun, self.quick_error(self.best_confidences(begun))[0]
            for _ in range(trials // 2):
                tried = self.neighbour(now, ends, rng)
                z = self.best_confidences(tried)
                there, _, _ = self.quick_error(z)
                if there >= here:
                    now, here = tried, there
                if there > value:
                    best, value = z, there
        return best

    def neighbour(self, changes: Changes, ends: Floats, rng: np.random.Generator) -> Changes:
        places, first, kind = changes.places.copy(), changes.first, rng.random()
        if kind < 0.75 and places.size:  # one change goes elsewhere, mostly not far
            j = int(rng.integers(places.size))
            if kind < 0.15:  # to the edge that the samples make of it
                _, made, _ = self.quick_error(self.best_confidences(changes))
                if made.size:
                    places[j] = made[np.argmin(np.abs(made - places[j]))]
            else:
                far = int(float(rng.normal()) * math.pow(0.1, 1 + 3 * rng.random()) * ends.size)
                rank = int(np.searchsorted(ends, float(places[j]))) + far
                places[j] = ends[min(max(rank, 0), ends.size - 1)]
        elif kind < 0.85 and places.size < self.bins - 1:
            where = int(rng.integers(ends.size))
            places = np.append(places, ends[where])
            if places.size < self.bins - 1:
                places = np.append(places, ends[min(ends.size - 1, where + int(rng.integers(1 + ends.size // 20)))])
        elif kind < 0.88:
            first = -first
        elif places.size:
            places = np.delete(places, int(rng.integers(places.size)))
        return Changes(np.sort(places), first)


def _grid(low: Floats, high: Floats, windows: Sequence[tuple[float, float]]) -> Floats:
    """Ends of cells from 0 to 1: of equal width, of equally many ends of intervals, and around narrow windows."""
    ends = np.sort(np.concatenate((low, high)))
    ranks = np.linspace(0, ends.size - 1, 3 * CELLS // 4).astype(np.int64)
    parts = [np.linspace(0, 1, CELLS // 4 + 1), ends[ranks]]
    if ends.size <= CELLS // 2:  # cells that hold one end and nothing beside it
        parts.append(np.nextafter(ends, 2.0))
    if len(windows) <= CELLS // 8:
        borders = np.array(windows).reshape(-1)
        parts += [borders, np.nextafter(borders, 2.0)]
    inner = np.unique(np.concatenate(parts))
    return np.concatenate(([0.0], inner[(inner > 0) & (inner < 1)], [1.0]))


def _cells_of(windows: Sequence[tuple[float, float]], grid: Floats) -> list[tuple[int, int]]:
    if not windows:
        return []
    found = np.clip(np.searchsorted(grid, np.array(windows), side="right") - 1, 0, grid.size - 2)
    return [(int(first), int(last)) for first, last in found]


def _worths(low: NDArray[Any], high: NDArray[Any], c: NDArray[np.uint8], grid: Floats) -> tuple[Floats, Floats]:
    """What all samples get from a run of sign + and of sign -, by the cells of the changes where it begins and ends.

    Row 0 is a run from the start, row a + 1 one that begins in cell a; column b is one that ends in cell b, the last
    one a run to the end. A run covers the cells of both its changes. Correct samples belong to the run of sign + that
    covers their lower end, else to that of sign - in which it lies; incorrect ones to the run of sign - that covers
    their upper end, else to that of sign +. A run inside one cell takes back what its neighbours both count.
    """
    k = grid.size - 1
    at_low = np.clip(np.searchsorted(grid, low, side="right") - 1, 0, k - 1)
    at_high = np.clip(np.searchsorted(grid, high, side="right") - 1, 0, k - 1)
    low, high, right = low.astype(np.float64), high.astype(np.float64), c == 1

    def along(cell: NDArray[np.intp], values: Floats, which: NDArray[np.bool_]) -> Floats:
        """Sums over the cells before each."""
        return np.append(0.0, np.cumsum(np.bincount(cell[which], values[which], k)))

    def corner(values: Floats, which: NDArray[np.bool_]) -> Callable[..., Floats]:
        """Sums over lower ends in cells from i0 to before i1 and upper ends in those from j0 to before j1."""
        flat = np.bincount(at_low[which] * k + at_high[which], values[which], k * k).reshape(k, k)
        x = np.pad(flat.cumsum(0).cumsum(1), ((1, 0), (1, 0)))

        def between(i0: Any, i1: Any, j0: Any, j1: Any) -> Floats:
            return x[i1, j1] - x[i0, j1] - x[i1, j0] + x[i0, j0]

        return between

    ones = np.ones(low.size)
    a, b = np.arange(-1, k)[:, None], np.arange(k + 1)[None, :]
    from_a, after_a, after_b = np.maximum(a, 0), a + 1, np.minimum(b + 1, k)
    between, zero, end = np.minimum(after_a, b), np.zeros_like(b), np.full_like(b, k)
    gained, lost = along(at_low, 1 - low, right), along(at_high, high, ~right)
    count, ends = corner(ones, right), corner(high - 1, right)
    minus = count(between, b, b, end) * (1 - grid[b]) + ends(between, b, zero, b) + lost[after_b] - lost[from_a]
    count, ends = corner(ones, ~right), corner(low, ~right)
    plus = gained[after_b] - gained[from_a]
    plus = plus + count(zero.T[:1], after_a, between, b) * grid[after_a] - ends(after_a, end[:, :1], between, b)
    inside = (a == b) & (a >= 0)
    own = (gained[after_b] - gained[b]) - (lost[after_b] - lost[b])
    plus, minus = np.where(inside, own, plus), np.where(inside, -own, minus)
    return np.where(a <= b, plus, -np.inf), np.where(a <= b, minus, -np.inf)


def _best_changes(plus: Floats, minus: Floats, windows: Sequence[tuple[int, int]]) -> tuple[float, list[int], int]:
    """The largest total of runs with alternating signs, each change one edge, in the cells of that edge's window.

    Also the cells of the changes and the first sign.
    """
    k = plus.shape[0] - 1
    worths = {1: plus, -1: minus}
    # What runs so far are worth when the next has a sign and begins in a cell (row 0: at the start), with edges so far.
    so_far = {sign: np.full(k + 1, -np.inf) for sign in worths}
    for sign in worths:
        so_far[sign][0] = 0.0
    taken: list[dict[int, NDArray[np.int64]]] = []
    for first, last in windows:
        cells = slice(first + 1, last + 2)
        steps, updated = dict[int, NDArray[np.int64]](), dict[int, Floats]()
        for sign, worth in worths.items():
            totals = so_far[sign][: last + 2, None] + worth[: last + 2, first : last + 1]
            rows = totals.argmax(0)
            made = totals[rows, np.arange(rows.size)]
            better = made > so_far[-sign][cells]
            updated[-sign] = np.where(better, made, so_far[-sign][cells])
            steps[-sign] = np.full(k + 1, -1, np.int64)
            steps[-sign][cells] = np.where(better, rows, -1)
        for sign in worths:
            so_far[sign] = so_far[sign].copy()
            so_far[sign][cells] = updated[sign]
        taken.append(steps)
    finals = {sign: so_far[sign] + worths[sign][:, k] for sign in worths}
    sign = max(finals, key=lambda each: finals[each].max())
    row = int(finals[sign].argmax())
    total, changes = float(finals[sign][row]), list[int]()
    for steps in reversed(taken):
        if row > 0 and steps[sign][row] >= 0:
            changes.append(row - 1)
            row, sign = int(steps[sign][row]), -sign
    return total, changes[::-1], sign
