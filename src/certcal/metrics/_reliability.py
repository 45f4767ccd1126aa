"""What a reliability diagram shows, prepared once for the terminal, figures and pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import choice, score_pair
from certcal._html import table as html_table
from certcal._rounding import percent_text
from certcal.binning import CLOSED, BinTable, edges_for, sums
from certcal.metrics._bootstrap import Atoms, check_request, make_atoms, table_of
from certcal.metrics.binned import ece_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Per-bin confidence and accuracy, perhaps with bands.

    Attributes
    ----------
    table
        Per-bin sums.
    ece
        Expected calibration error of the same bins.
    lower, upper
        Bootstrap percentile band of the accuracy per bin, NaN in empty bins; None when not asked for.
    level
        Level of the band.

    Examples
    --------
    >>> reliability([0.2, 0.9], [0, 1], bins=2).table.accuracy.tolist()
    [0.0, 1.0]
    """

    table: BinTable
    ece: float
    lower: Floats | None
    upper: Floats | None
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; None stands for the mean of an empty bin."""

        def plain(values: Floats | None) -> list[float | None] | None:
            return None if values is None else [None if np.isnan(value) else float(value) for value in values]

        return {
            "edges": self.table.edges.tolist(),
            "closed": self.table.closed,
            "count": self.table.count.tolist(),
            "confidence": plain(self.table.mean_confidence),
            "accuracy": plain(self.table.accuracy),
            "lower": plain(self.lower),
            "upper": plain(self.upper),
            "level": self.level,
            "ece": self.ece,
        }

    def _repr_html_(self) -> str:
        bins = self.table
        header = ["confidence", "samples", "mean confidence", "accuracy", "accuracy − confidence"]
        if self.lower is not None:
            header.append(f"{percent_text(self.level)} bootstrap band")
        rows: list[list[str]] = []
        for m in np.flatnonzero(bins.count):
            confidence, accuracy = bins.mean_confidence[m], bins.accuracy[m]
            row = [f"{bins.edges[m]:.3g} to {bins.edges[m + 1]:.3g}", f"{bins.count[m]:,}"]
            row += [f"{confidence:.4f}", f"{accuracy:.4f}", f"{accuracy - confidence:+.4f}"]
            if self.lower is not None and self.upper is not None:
                row.append(f"{self.lower[m]:.4f} to {self.upper[m]:.4f}")
            rows.append(row)
        empty = bins.count.size - len(rows)
        caption = f"ECE {self.ece:.5f}: an estimate, {bins.count.size} bins, {empty} of them empty and not shown"
        return html_table(header, rows, caption, numeric=range(1, len(header)))


def reliability(
    confidence: Any,
    correct: Any,
    bins: int = 15,
    *,
    edges: Any = None,
    closed: str = "left",
    sample_weight: Any = None,
    replicates: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> Reliability:
    """Prepare a reliability diagram.

    Parameters
    ----------
    confidence, correct, bins, edges, closed, sample_weight
        As for :func:`certcal.metrics.ece`.
    replicates
        Bootstrap replicates for a band around each bin's accuracy; 0 for no band.
    level, seed
        Level of the band, and the seed it is drawn with.

    Examples
    --------
    >>> prepared = reliability([0.2, 0.3, 0.9, 0.8], [0, 1, 1, 1], bins=2, replicates=100)
    >>> prepared.lower[1] <= prepared.table.accuracy[1] <= prepared.upper[1]
    np.True_
    """
    z, c, w = score_pair(confidence, correct, sample_weight)
    all_edges, side = edges_for(bins, edges), choice(closed, CLOSED, "closed")
    table = sums(z, c, w, all_edges, side)
    if not replicates:
        return Reliability(table, ece_of(table), None, None, level)
    return with_band(table, make_atoms(z, c, w, all_edges, side), replicates, level, seed)


def with_band(table: BinTable, atoms: Atoms, replicates: int, level: float, seed: int) -> Reliability:
    """A diagram whose band comes from replicates of the atoms behind it."""
    check_request(level, "percentile", replicates, seed)
    rng = np.random.default_rng(seed)
    drawn = np.stack([table_of(atoms, atoms.draw(rng), table.edges, table.closed).accuracy for _ in range(replicates)])
    lower, upper = np.full((2, table.edges.size - 1), np.nan)
    for m in np.flatnonzero(table.weight > 0):
        known = np.sort(drawn[~np.isnan(drawn[:, m]), m])
        if known.size == 0:  # so few samples that no replicate has one
            known = table.accuracy[m : m + 1]
        tail = (1 - level) / 2
        lower[m] = known[int(tail * known.size)]
        upper[m] = known[min(known.size - 1, int((1 - tail) * known.size))]
    return Reliability(table, ece_of(table), lower, upper, level)
