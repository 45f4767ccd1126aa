"""What a reliability diagram shows, prepared once for the terminal, figures and pages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, choice, confidence_level, score_pair
from certcal._base.notebook import Card, CardTable, NotebookCard
from certcal._base.rounding import percent_text, round_outward
from certcal.binning import CLOSED, BinTable, edges_for, sums
from certcal.metrics.binned import ece_of

if TYPE_CHECKING:
    from certcal.bounds import CalibrationBand

Floats = NDArray[np.float64]

BANDS = ("joint", "per-bin", "isotonic", "none")


@dataclass(frozen=True, eq=False)
class Reliability(NotebookCard):
    """Per-bin confidence and accuracy, perhaps with a band.

    Examples
    --------
    >>> reliability([0.2, 0.9], [0, 1], bins=2).table.accuracy.tolist()
    [0.0, 1.0]
    """

    table: BinTable
    """Per-bin sums."""
    ece: float
    """Expected calibration error of the same bins."""
    lower: Floats | None = None
    upper: Floats | None = None
    """Ends of the band per bin, NaN in empty bins; None without a band. Of an isotonic band: its ends at the mean
    confidence of the bin."""
    level: float = 0.95
    """Level of the band."""
    band: str = "none"
    """"joint", "per-bin", "isotonic" or "none"; see :func:`reliability`."""
    isotonic: CalibrationBand | None = None
    """The whole isotonic band, if that was asked for."""

    @classmethod
    def of(
        cls,
        z: NDArray[Any],
        c: NDArray[np.uint8],
        w: Floats | None,
        edges: Floats,
        closed: str = "left",
        band: str = "joint",
        level: float = 0.95,
    ) -> Reliability:
        """:func:`reliability` of checked arrays and settings."""
        check_band(band, level)
        table = sums(z, c, w, edges, closed)
        if band != "isotonic":
            return with_band(table, band, level)
        if w is not None:
            reason = "the isotonic band needs samples of equal weight"
            raise InputError(reason, argument="band", remedy="choose another one, or leave the weights out")
        from certcal.bounds import isotonic_band

        found = isotonic_band(z, c, 1 - level)
        lower, upper = np.full((2, table.count.size), np.nan)
        used = table.count > 0
        lower[used], upper[used] = found.at(np.clip(table.mean_confidence[used], 0, 1))
        return cls(table, ece_of(table), lower, upper, level, band, found)

    @classmethod
    def of_bins(cls, table: BinTable, band: str = "joint", level: float = 0.95) -> Reliability:
        """That of sums per bin; its band needs no more, so it is any but the isotonic one."""
        return with_band(table, band, level)

    @property
    def beyond(self) -> NDArray[np.int8]:
        """Per bin 1 where the band lies above the mean confidence, -1 where it lies below it, else 0.

        A bin that is not 0 is miscalibrated beyond sampling error: a calibrated model has none, with the probability
        of the band's level (in each single bin where the band is per bin).
        """
        if self.lower is None or self.upper is None:
            return np.zeros(self.table.count.size, np.int8)
        confidence = self.table.mean_confidence
        room = 1e-12  # a mean of scores is rounded
        return (self.lower > confidence + room).astype(np.int8) - (self.upper < confidence - room).astype(np.int8)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; None stands for the mean of an empty bin."""

        def plain(values: Floats | None) -> list[float | None] | None:
            return None if values is None else [None if np.isnan(value) else float(value) for value in values]

        band = self.isotonic
        return {
            "edges": self.table.edges.tolist(),
            "closed": self.table.closed,
            "count": self.table.count.tolist(),
            "confidence": plain(self.table.mean_confidence),
            "accuracy": plain(self.table.accuracy),
            "band": self.band,
            "lower": plain(self.lower),
            "upper": plain(self.upper),
            "beyond": None if self.lower is None else self.beyond.tolist(),
            "level": self.level,
            "ece": self.ece,
            **({} if band is None else {"isotonic": {"schema": band.schema, **band.contents()}}),
        }

    def card(self) -> Card:
        """What a notebook shows."""
        bins = self.table
        header = ["confidence", "samples", "mean confidence", "accuracy", "accuracy − confidence"]
        if self.lower is not None:
            header.append(f"{percent_text(self.level)} band ({self.band})")
        rows: list[list[str]] = []
        for m in np.flatnonzero(bins.count):
            confidence, accuracy = bins.mean_confidence[m], bins.accuracy[m]
            row = [f"{bins.edges[m]:.3g} to {bins.edges[m + 1]:.3g}", f"{bins.count[m]:,}"]
            row += [f"{confidence:.4f}", f"{accuracy:.4f}", f"{accuracy - confidence:+.4f}"]
            if self.lower is not None and self.upper is not None:
                ends = round_outward(self.lower[m], "lower"), round_outward(self.upper[m], "upper")
                row.append(f"{ends[0]} to {ends[1]}{' *' if self.beyond[m] else ''}")
            rows.append(row)
        empty = bins.count.size - len(rows)
        caption = f"ECE {self.ece:.5f}: an estimate, {bins.count.size} bins, {empty} of them empty and not shown"
        caption += "; * beyond sampling error" if self.beyond.any() else ""
        return Card(tables=(CardTable(rows, header, caption),))


def reliability(
    confidence: Any,
    correct: Any,
    bins: int = 15,
    *,
    edges: Any = None,
    closed: str = "left",
    sample_weight: Any = None,
    band: str = "joint",
    level: float = 0.95,
) -> Reliability:
    """Prepare a reliability diagram with a band that holds for any number of samples.

    What is random: the outcomes, given the scores, independent of each other. What a bin's interval is for: the mean of
    η(z_i) = P(c = 1 | z_i) over its samples, which for a calibrated model is their mean score. Given the scores the
    successes in a bin are a sum of independent draws whose probabilities differ, so the limits are those of Clopper and
    Pearson with the correction for such draws (``certcal.bounds.clopper_pearson`` with ``identical=False``). They are
    as good for the population's rate P(c = 1 | z in the bin), with edges fixed beforehand and samples drawn
    independently: then the successes are binomial given their number.

    * "joint": all bins at once with probability ``level``. Given the scores the bins are independent of each other, so
      each of the K that hold samples has the level ``level``^(1/K) (Šidák).
    * "per-bin": each bin by itself. Of 15 bins of a calibrated model one is outside a 95 % band in every second sample.
    * "isotonic": no bins; see :func:`certcal.bounds.isotonic_band`. It assumes that η does not fall.

    With weights the interval is for the weighted mean of P(c = 1 | z_i, w_i), and given scores and weights it is that
    of Hoeffding's inequality: ± √(½ ln(2/α) Σw²)/Σw.

    Parameters
    ----------
    confidence, correct, bins, edges, closed, sample_weight
        As for :func:`certcal.metrics.ece`.
    band
        "joint", "per-bin", "isotonic" or "none".
    level
        Level of the band.

    Examples
    --------
    >>> prepared = reliability([0.1] * 50 + [0.9] * 50, [0] * 45 + [1] * 35 + [0] * 20, bins=2)
    >>> prepared.lower.round(3).tolist(), prepared.upper.round(3).tolist()
    ([0.028, 0.433], [0.236, 0.752])
    >>> prepared.beyond.tolist()
    [0, -1]
    """
    samples = score_pair(confidence, correct, sample_weight)
    return Reliability.of(*samples, edges_for(bins, edges), choice(closed, CLOSED, "closed"), band, level)


def check_band(band: str, level: float) -> None:
    choice(band, BANDS, "band")
    confidence_level(level)
    if band == "isotonic" and level <= 0.5:
        raise InputError(f"level is {level:g}; an isotonic band needs one above 0.5")


def with_band(table: BinTable, band: str, level: float) -> Reliability:
    """A diagram whose band needs no more than the sums of its bins."""
    if band == "none":
        return Reliability(table, ece_of(table), level=level)
    used = np.flatnonzero(table.weight > 0)
    alpha = 1 - level if band == "per-bin" else -math.expm1(math.log(level) / max(used.size, 1))
    alpha *= 1 - 1e-12
    lower, upper = np.full((2, table.count.size), np.nan)
    if np.array_equal(table.weight, table.count) and np.array_equal(table.squared_weight, table.count):
        from certcal.bounds.concentration import binomial_limits

        hits = np.rint(table.correct_sum[used]).astype(np.int64)
        lower[used], upper[used] = binomial_limits(hits, table.count[used], alpha, identical=False)
    else:
        width = np.sqrt(math.log(2 / alpha) / 2 * table.squared_weight[used]) / table.weight[used] + 1e-12
        lower[used] = np.maximum(table.accuracy[used] - width, 0)
        upper[used] = np.minimum(table.accuracy[used] + width, 1)
    return Reliability(table, ece_of(table), lower, upper, level, band)
