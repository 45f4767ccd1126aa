"""Bets against the worst case of the population: what the samples' gains are under the signs that are worst for a bet.

For a bet λ and a supposed mean m the logarithm of a sample's gain, f(g) = log(1 + λ (m - g)), falls with its worth g;
where λ (1 - m) is above 0.9 it is lowered to that, so that no gain is negative. For given signs every worth is at an
end of the sample's interval or at an edge, so the smallest Σ f(g_n(s)) over all sign patterns is found by the program
of ``_kernels/signs.py``, with f of a worth in place of the worth.

Ends lie in cells of a grid that the bins are cut into. f is concave, so between two lines of the grid it is above its
chord; and it falls with an upper end and rises with a lower one. So a chord through the values at the two lines, at the
places rounded outward, gives a sum that is too small, never too large.

The same holds of f(g) = -max(g, τ), with which the worst case is found of samples of which K may be anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import kernel_float
from certcal._base.threads import map_blocks
from certcal.binning import build_lookup
from certcal.bounds.concentration import LARGEST_BET, chernoff_upper, place_bets
from certcal.worst_case._program import Bins, Columns, append_cells, best_signs
from certcal.worst_case.intervals import Arrays

Floats = NDArray[np.float64]
Words = NDArray[np.int64]

# Cells that the bins are cut into, altogether, and steps from one line of the grid to the next.
CELLS = 1024
STEPS = 1 << 20
# Tables with a place for every key up to this size; beyond, only keys that hold samples exist.
_DENSE = 1 << 20
_BLOCK = 1 << 18
# Edges up to which sums over runs are tables.
_ARRAYS = 257
# How often, and at how many places, the floor of gains is looked for that failing samples cost least with.
_CLOSER, _FLOORS = 4, 17


class Limit(Protocol):
    """From the worst case of samples to that of their population."""

    def upper_limit(self, delta: float, least: float) -> float:
        """What the population's worst case exceeds with probability at most delta, given that of the samples."""
        ...


@dataclass(frozen=True, eq=False)
class Chernoff:
    """For n samples of which only the worst case is known: a mean of variables in [-1, 1]."""

    n: int

    def upper_limit(self, delta: float, least: float) -> float:
        return 2 * chernoff_upper((1 + least) / 2, self.n, delta) - 1


@dataclass(frozen=True, eq=False)
class Gains:
    """Samples by the ends of their intervals: rising ``keys``, and how many samples and steps each has.

    A key is (correct · (bins + 1) + row) · cells + cell. In row ``bins`` a sample stands by the end that it stays at:
    the lower one of correct samples, the upper one of others. In the row of that end's bin it stands by the other end.
    Steps are the place of the end between the two lines of its cell. All are whole numbers, so nothing depends on the
    order of the samples. ``free`` more samples may be anything.
    """

    bins: Bins
    keys: Words
    sums: Words
    n: int = 0
    free: int = 0

    @classmethod
    def of(cls, samples: Arrays, bins: Bins) -> Gains:
        grid = EndGrid.of(bins)
        low, high, c = kernel_float(samples[0]), kernel_float(samples[1]), samples[2]

        def one(start: int, stop: int) -> list[tuple[Words, Words]]:
            found: list[tuple[Words, Words]] = []
            for first in range(start, stop, _BLOCK):
                part = slice(first, min(stop, first + _BLOCK))
                found.append(grid.keys_and_steps(low[part], high[part], c[part].astype(bool), bins.count))
            return [_add_by_key(found, 2 * (bins.count + 1) * grid.cells)]

        parts = [each for block in map_blocks(one, low.size) for each in block]
        return cls(bins, *_add_by_key(parts, 0), low.size)

    def __add__(self, other: Gains) -> Gains:
        if not self.n:
            return replace(other, free=self.free + other.free)
        parts = [(self.keys, self.sums), (other.keys, other.sums)]
        return Gains(self.bins, *_add_by_key(parts, 0), self.n + other.n, self.free + other.free)

    def with_free(self, free: int) -> Gains:
        return replace(self, free=free)

    def upper_limit(self, delta: float, least: float) -> float:
        """Where the average over the bets of the least capital reaches 1/delta, rounded up; above ``least``."""
        n, bets = self.n + self.free, place_bets(delta, self.n + self.free, largest=math.inf)

        def excess(m: float) -> float:
            logs = self.least_logs(bets, m)
            top, size = float(logs.max()), max(2.4, math.log1p(1.8 / (1 - m)))
            rounding = 1e-9 + n * size * self._rounding
            return top + math.log(float(np.exp(logs - top).mean())) - math.log(1 / delta) - rounding

        return first_at_least_zero(excess, min(least, 1 - 1e-9), float(bets[0]))

    def largest(self, failing: int) -> float:
        """No less than the largest Σ_m |S_m| where, of the samples with intervals, ``failing`` may be anything instead.

        For signs s a sample brings g_n(s), and at most h(s) when it may be anything. So the K that are freed best are
        those with the smallest g_n(s), and for every τ

            Σ_n g_n(s) + Σ_(freed) (h(s) - g_n(s)) <= Σ_n max(g_n(s), τ) + K h(s) - K τ,

        because a freed sample brings g_n(s) + h(s) - g_n(s) on the left and, with its own part of K, at least
        h(s) on the right; the others bring at least g_n(s). With τ the K-th smallest g_n(s) both sides are equal. The
        largest right side over s is the program with f(g) = -max(g, τ) and K more free samples. It is convex in τ:
        the smallest is found by looking at it ever more closely, and every τ looked at gives a bound.
        """
        k = min(failing, self.n)
        freed, low, high, least = self.with_free(self.free + k), -1.0, 1.0, math.inf
        for _ in range(_CLOSER):
            floors = np.linspace(low, high, _FLOORS)
            totals = -freed.least(lambda worth: -np.maximum(worth, floors[:, None])) - k * floors  # noqa: B023
            at = int(totals.argmin())
            low, high, least = floors[max(at - 1, 0)], floors[min(at + 1, _FLOORS - 1)], min(least, float(totals[at]))
        return least + (self.n + freed.free) * self._rounding

    @property
    def _rounding(self) -> float:
        """What additions lose, of what all samples together can bring: each a 2^-53rd.

        There are as many as cells, and then those along the bins and between runs.
        """
        return (self._grid.cells + 4 * self.bins.count + 20) * 2.0**-52

    @cached_property
    def _grid(self) -> EndGrid:
        return EndGrid.of(self.bins)

    @cached_property
    def _samples_by_ends(self) -> tuple[_Ends, _Ends]:
        cells, rows = self._grid.cells, self.bins.count + 1
        kind, rest = np.divmod(self.keys, rows * cells)
        row, cell = np.divmod(rest, cells)
        ends: list[_Ends] = []
        for which in (0, 1):
            stays = (kind == which) & (row == self.bins.count)
            goes = (kind == which) & (row < self.bins.count)
            first, last = row[goes], self._grid.bin_of[cell[goes]]  # of the end that stays, and of the other one
            low, high = (first, last) if which else (last, first)
            pairs, pair = np.unique(low * self.bins.count + high, return_inverse=True)
            ends.append(
                _Ends(
                    (cell[stays], *_share_between_lines(self.sums[stays])),
                    self._grid.bin_of[cell[stays]],
                    (cell[goes], *_share_between_lines(self.sums[goes])),
                    pair.reshape(-1),
                    (pairs // self.bins.count, pairs % self.bins.count),
                    _sum_at(pair.reshape(-1), self.sums[goes, 0], pairs.size),
                )
            )
        return ends[0], ends[1]

    def least_logs(self, bets: Floats, m: float) -> Floats:
        scale = np.minimum(bets, LARGEST_BET / (1 - m))[:, None]

        def log(worth: Floats) -> Floats:
            return np.log1p(scale * (m - worth))

        return self.least(log)

    def least(self, f: Callable[[Floats], Floats]) -> Floats:
        """The smallest Σ f(g_n(s)) over all sign patterns, for each row of f, all of which fall and are concave."""
        lines, edges = self._grid.bins.edges, self.bins.edges
        wrong = self._samples_by_ends[0].worths(f(lines), f(-lines), self.bins.count)
        right = self._samples_by_ends[1].worths(f(1 - lines), f(lines - 1), self.bins.count)
        solve = partial(least_sums, f(1 - edges), f(edges))
        if not self.free:
            return solve(right, wrong)
        anywhere = (np.zeros(1, np.int64), np.array([self.bins.count - 1]))
        number, (stay, held) = np.array([float(self.free)]), self.free * f(np.array([1.0, 0.0])).T
        more = PairWorths(anywhere, number, held[:, None], stay[:, None] * (np.arange(self.bins.count) == 0))
        less = replace(more, stays=stay[:, None] * (np.arange(self.bins.count) == self.bins.count - 1))
        return np.minimum(solve(right + more, wrong), solve(right, wrong + less))


@dataclass(frozen=True, eq=False)
class EndGrid:
    """The cells that bins are cut into, and the bin of each."""

    bins: Bins
    bin_of: Words

    @classmethod
    def of(cls, bins: Bins) -> EndGrid:
        """At most CELLS in all, or one for each bin."""
        parts = max(1, CELLS // bins.count)
        lines: list[NDArray[Any]] = []
        for a, b in zip(bins.edges[:-1].tolist(), bins.edges[1:].tolist(), strict=True):
            cuts: NDArray[Any] = np.unique(np.linspace(a, b, parts + 1, dtype=bins.dtype))
            lines.append(cuts[:-1] if cuts.size > 1 else cuts)
        edges = np.append(np.concatenate(lines), 1.0).astype(np.float64)
        fine = replace(bins, edges=edges, lookup=build_lookup(edges, bins.closed, bins.dtype))
        return cls(fine, np.repeat(np.arange(bins.count), [each.size for each in lines]))

    @property
    def cells(self) -> int:
        return self.bins.count

    def keys_and_steps(
        self, low: NDArray[Any], high: NDArray[Any], right: NDArray[np.bool_], bins: int
    ) -> tuple[Words, Words]:
        """Keys of some samples, two for each, with a one and the steps."""
        first, begun = self._places(low, -1)
        last, ended = self._places(high, 2)
        row = right * (bins + 1)
        own, other = np.where(right, first, last), np.where(right, last, first)
        keys = np.concatenate([(row + bins) * self.cells + own, (row + self.bin_of[own]) * self.cells + other])
        steps = np.concatenate([np.where(right, begun, ended), np.where(right, ended, begun)])
        return keys, np.stack([np.ones_like(steps), steps], axis=1)

    def _places(self, values: NDArray[Any], outward: int) -> tuple[Words, Words]:
        """Cells of values, and where they are between the lines: rounded down, then moved by more than rounding."""
        cell, lines = self.bins.locate(values), self.bins.edges
        width = lines[cell + 1] - lines[cell]
        along = np.divide(values - lines[cell], width, out=np.zeros(values.size), where=width > 0)
        return cell, np.clip((along * STEPS).astype(np.int64) + outward, 0, STEPS)


@dataclass(frozen=True, eq=False)
class _Ends:
    """Correct or incorrect samples: by cells of the ends they stay at, and by bins and cells of the other ends."""

    stay: tuple[Words, Floats, Floats]
    stay_bin: Words
    go: tuple[Words, Floats, Floats]
    pair: Words
    pairs: tuple[Words, Words]
    number: Floats

    def worths(self, staying: Floats, going: Floats, bins: int) -> PairWorths:
        """What the samples bring, from values at the lines of the grid, a row for each bet."""
        held = np.stack([_sum_at(self.pair, row, self.number.size) for row in _chord(self.go, going)])
        stays = np.stack([_sum_at(self.stay_bin, row, bins) for row in _chord(self.stay, staying)])
        return PairWorths(self.pairs, self.number, held, stays)


@dataclass(frozen=True, eq=False)
class PairWorths:
    """Correct or incorrect samples by their lowest and highest bin, and what they bring, a row for each bet.

    ``number`` and ``held`` are per pair of bins: how many they are, and what they bring where no bin has the sign that
    they look for. ``stays`` is per bin: what those bring that stay in it.
    """

    pairs: tuple[Words, Words]
    number: Floats
    held: Floats
    stays: Floats

    def __add__(self, other: PairWorths) -> PairWorths:
        low, high = (np.append(one, another) for one, another in zip(self.pairs, other.pairs, strict=True))
        number, held = np.append(self.number, other.number), np.concatenate([self.held, other.held], axis=1)
        return PairWorths((low, high), number, held, self.stays + other.stays)


def least_sums(up: Floats, down: Floats, right: PairWorths, wrong: PairWorths) -> Floats:
    """The smallest sum over all sign patterns, for each bet: as ``_kernels/signs.py`` finds it, in whole arrays.

    ``up`` and ``down`` are what a correct sample brings that goes up to an edge, and an incorrect one that comes down.
    """
    if up.shape[1] > _ARRAYS:
        return np.array([_least_sum(k, up, down, right, wrong) for k in range(len(up))])
    # By what runs of '-' from a to t, and runs of '+' from t to b, bring; a run is a sum over its bins.
    worth_minus = _tables(right, reach=True) + up[:, None, 1:] * _moves_to_edges(right, reach=True)
    worth_minus += wrong.stays[:, :, None]
    worth_plus = _tables(wrong, reach=False) + down[:, None, :-1] * _moves_to_edges(wrong, reach=False)
    worth_plus += right.stays[:, :, None]
    return least_runs(worth_minus, worth_plus)


def least_runs(worth_minus: Floats, worth_plus: Floats) -> Floats:
    """The smallest sum over all ways to cut the bins into runs of '-' and '+', a row for each bet.

    ``worth_minus[:, i, t - 1]`` is what bin i brings in a run of '-' that ends at edge t > i, and
    ``worth_plus[:, j, t]`` what bin j brings in a run of '+' that begins at edge t <= j.
    """
    from_a = np.cumsum(worth_minus[:, ::-1], axis=1)[:, ::-1]  # over bins from a on, also those beyond t
    to_b = np.cumsum(worth_plus, axis=1)
    bets, bins = worth_minus.shape[:2]
    plus, minus = np.full((bets, bins + 1), np.inf), np.full((bets, bins + 1), np.inf)
    plus[:, 0] = minus[:, 0] = 0.0
    for t in range(bins + 1):
        if t:
            beyond = from_a[:, t, t - 1][:, None] if t < bins else 0.0
            minus[:, t] = (plus[:, :t] + from_a[:, :t, t - 1] - beyond).min(axis=1)
        if t < bins:
            before = to_b[:, t - 1, t][:, None] if t else 0.0
            plus[:, t + 1 :] = np.minimum(plus[:, t + 1 :], minus[:, t, None] + to_b[:, t:, t] - before)
    return np.minimum(plus[:, -1], minus[:, -1])


def _tables(side: PairWorths, *, reach: bool) -> Floats:
    """What those bring that find no bin, by their own bin and the edge under way: (bets, bins, bins).

    With ``reach`` of correct samples, whose highest bin is below edge t = 1, …; else of incorrect ones, whose lowest
    bin is not below edge t = 0, ….
    """
    bins = side.stays.shape[1]
    own, other = side.pairs if reach else side.pairs[::-1]
    table = np.stack([_sum_at(own * bins + other, row, bins * bins) for row in side.held]).reshape(-1, bins, bins)
    return np.cumsum(table, axis=2) if reach else np.cumsum(table[:, :, ::-1], axis=2)[:, :, ::-1]


def _moves_to_edges(side: PairWorths, *, reach: bool) -> Floats:
    """How many go to the edge under way, by their own bin and the edge."""
    bins = side.stays.shape[1]
    own, other = side.pairs if reach else side.pairs[::-1]
    table = _sum_at(own * bins + other, side.number, bins * bins).reshape(bins, bins)
    before = np.cumsum(table, axis=1)
    return before[:, -1:] - before if reach else before - table


def _least_sum(k: int, up: Floats, down: Floats, right: PairWorths, wrong: PairWorths) -> float:
    bins: Words = np.arange(right.stays.shape[1], dtype=np.int64)

    def columns(side: PairWorths) -> Columns:
        none = np.zeros(bins.size)
        held = np.stack([side.number, np.zeros(side.number.size), side.held[k]], axis=1)
        return append_cells((*side.pairs, held), (bins, bins, np.stack([none, side.stays[k], none], axis=1)))

    return best_signs(up[k], down[k], columns(right), columns(wrong), -1)[0]


def _sum_at(where: Words, values: NDArray[Any], size: int) -> Floats:
    return np.bincount(where, values, size).astype(np.float64, copy=False)


def _share_between_lines(sums: Words) -> tuple[Floats, Floats]:
    """How many samples of a cell belong to its first line, and how many to the next."""
    beyond = sums[:, 1] / STEPS
    return sums[:, 0] - beyond, beyond


def _chord(ends: tuple[Words, Floats, Floats], at: Floats) -> Floats:
    cell, before, beyond = ends
    return before * at[:, cell] + beyond * at[:, cell + 1]


def _add_by_key(parts: Sequence[tuple[Words, Words]], most: int) -> tuple[Words, Words]:
    """Rising keys, each once, with their sums; in a table where keys below ``most`` fit into one."""
    if 0 < most <= _DENSE:
        table = np.zeros((most, 2), np.int64)
        for keys, sums in parts:
            for column in (0, 1):  # sums below 2^53, so floats hold them
                table[:, column] += np.bincount(keys, sums[:, column], most).astype(np.int64)
        keys = np.flatnonzero(table[:, 0])
        return keys, table[keys]
    keys, sums = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[starts], np.add.reduceat(sums[order], starts, axis=0)


def first_at_least_zero(rising: Callable[[float], float], low: float, step: float) -> float:
    """A point just beyond the first one above ``low`` where a rising function is at least 0; 1 if there is none below.

    "Just" is a ten-thousandth of the way. Found by steps that double, then by the secant, and by halving after a step
    that did not halve.
    """
    begun, below = low, rising(low)
    last = 1 - 1e-12
    high = min(low + step, last)
    while (above := rising(high)) < 0:
        if high == last:
            return 1.0
        step *= 2
        low, below, high = high, above, min(high + step, last)
    part = below / (below - above)
    while high - low > max(1e-4 * (high - begun), 1e-12):
        width, middle = high - low, low + (high - low) * min(max(part, 0.01), 0.99)
        found = rising(middle)
        if found < 0:
            low, below = middle, found
        else:
            high, above = middle, found
        part = 0.5 if high - low > width / 2 else below / (below - above)
    return high
