"""Bootstrap of a table that was read in pieces, from counts per cell.

For metrics of bin sums a replicate need not say how often each sample was drawn. It is enough how often each *cell*
was: a small interval of confidences, inside one bin of every bin count, with one outcome. These are the atoms of
:mod:`certcal.metrics._bootstrap`, cut at fixed places instead of by rank, so that they can be counted in one pass;
inside a cell confidences are replaced by their mean. Metrics that depend on the order of the samples or on whole rows
have no such form, and neither have weights, which are drawn with their samples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from certcal.binning import BinSums, equal_width_edges
from certcal.claims import Interval
from certcal.metrics._bootstrap import Atoms, Sums, interval_from, left_out, mean_metric, table_of
from certcal.metrics._jackknife import acceleration
from certcal.metrics._streaming import binned_values

Floats = NDArray[np.float64]
Key = tuple[str, int | None]

# Cells are at most this wide.
CELLS = 2048


def cell_edges(counts: Iterable[int]) -> Floats:
    """Edges of all the bins and of the cells."""
    return np.unique(np.concatenate([equal_width_edges(count) for count in (CELLS, *counts)]))


def cell_atoms(state: BinSums) -> Atoms:
    """The cells that hold samples as weighted points, in the order of (outcome, confidence); ``bin`` is the cell."""
    from certcal._kernels.bins import SCALE_BITS

    count = state.whole[:, :, 0].T.astype(np.float64)
    sums = np.ldexp(state.whole[:, :, 1] * 2.0**32 + state.whole[:, :, 2], -SCALE_BITS).T
    outcome, cell = np.nonzero(count)
    often = count[outcome, cell]
    confidence = np.clip(sums[outcome, cell] / often, 0.0, 1.0)
    n = int(often.sum())
    shares = often / n

    def draw(rng: np.random.Generator) -> Sums:
        drawn = rng.multinomial(n, shares).astype(np.float64)
        return drawn, drawn, drawn

    dtype = np.dtype(np.float64)
    return Atoms(confidence, confidence**2, outcome.astype(np.uint8), cell, often, often, often, dtype, draw)


def in_bins(atoms: Atoms, edges: Floats, bins: int) -> Atoms:
    """The same atoms with the bins of a bin count; every cell lies in one."""
    first = np.searchsorted(edges, equal_width_edges(bins))  # the cell that begins each bin
    return replace(atoms, bin=np.searchsorted(first, atoms.bin, side="right") - 1)


def cell_intervals(
    state: BinSums,
    counts: tuple[int, ...],
    values: dict[Key, float],
    level: float,
    method: str,
    replicates: int,
    seed: int,
) -> dict[Key, Interval]:
    """Intervals of all rows that are functions of bin sums, by name and bin count; all see the same replicates."""
    atoms = cell_atoms(state)
    binned = {count: in_bins(atoms, state.edges, count) for count in counts}
    keys: list[Key] = [("accuracy", None), ("mean_confidence", None), ("top_label_brier_score", None)]

    def evaluate(atoms: Atoms, sums: Sums) -> list[float]:
        weight = sums[1]
        total = weight.sum()
        loss = atoms.correct * (1 - 2 * atoms.confidence) + atoms.confidence_square
        score = float(np.dot(weight, loss) / total)
        found = [float(np.dot(weight, atoms.correct) / total), mean_metric(atoms, sums), score]
        for count, some in binned.items():
            rows = binned_values(table_of(some, sums, equal_width_edges(count), state.closed), score, {})
            found += [value for _, value, _ in rows]
        return found

    for count, some in binned.items():
        table = table_of(some, (some.count, some.weight, some.squared), equal_width_edges(count), state.closed)
        keys += [(name, count) for name, _, _ in binned_values(table, 0.0, {})]
    rng = np.random.default_rng(seed)
    drawn = np.array([evaluate(atoms, atoms.draw(rng)) for _ in range(replicates)])
    skewed = np.zeros(len(keys))
    if method == "bca":
        without, size = left_out(atoms, evaluate)
        if without.ndim == 2:
            skewed = np.array([acceleration(column, size) for column in without.T])
    return {
        key: interval_from(column, values[key], level, method, float(skew))
        for key, column, skew in zip(keys, drawn.T, skewed, strict=True)
    }
