"""What a score is worth for a decision: net benefit over thresholds (Vickers & Elkin 2006).

Whoever acts on scores of at least t holds one unnecessary action for t/(1 - t) times as bad as the event it would have
prevented is worth. The net benefit is the share of events acted upon, minus the share of unnecessary actions at that
exchange rate. It is to be compared with acting on all samples and with acting on none, which has a net benefit of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, confidence_level, share, to_numpy
from certcal._base.json import PlainValues
from certcal.binning import BinTable, sums
from certcal.metrics._intervals import rate_ends
from certcal.metrics.binary import binary_pair

Floats = NDArray[np.float64]

# The thresholds of a curve where none are given.
THRESHOLDS = tuple(k / 100 for k in range(1, 100))


@dataclass(frozen=True, eq=False)
class DecisionCurve(PlainValues, without="rate n"):
    """Net benefit of acting on scores of at least a threshold, for several thresholds.

    Examples
    --------
    >>> curve = decision_curve([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1], [0.2, 0.5])
    >>> curve.net_benefit.tolist(), curve.treat_all.tolist()
    ([0.4375, 0.0], [0.375, 0.0])
    """

    threshold: Floats
    """Increasing, between 0 and 1."""
    net_benefit: Floats
    """Net benefit of acting on scores of at least the threshold."""
    acted: Floats
    """Share of the samples acted upon."""
    lower: Floats
    upper: Floats
    """Interval of the net benefit at each threshold on its own."""
    treat_all: Floats
    """Net benefit of acting on all samples; acting on none has 0."""
    rate: float
    """The base rate: the most that a net benefit can be."""
    level: float
    """Confidence level of the intervals."""
    n: int
    """Number of samples."""

    @classmethod
    def of(cls, table: BinTable, level: float) -> DecisionCurve:
        """The curve of sums per bin, closed on the left, whose inner edges are the thresholds."""
        threshold = table.edges[1:-1]
        odds = threshold / (1 - threshold)
        # Weight of the events, and of the others, with scores from each threshold up.
        hits = np.cumsum(table.correct_sum[::-1])[::-1][1:] / table.total
        acted = np.cumsum(table.weight[::-1])[::-1][1:] / table.total
        wrong = np.maximum(acted - hits, 0.0)
        rate = float(table.correct_sum.sum()) / table.total
        benefit = hits - odds * wrong
        size = table.total**2 / float(table.squared_weight.sum())
        lower, upper = _ends(hits, wrong, odds, size, level)
        treat_all = rate - odds * (1 - rate)
        return cls(threshold, benefit, acted, lower, upper, treat_all, rate, level, int(table.count.sum()))


def decision_curve(
    scores: Any,
    outcomes: Any,
    thresholds: Sequence[float] | Any = THRESHOLDS,
    *,
    level: float = 0.95,
    sample_weight: Any = None,
) -> DecisionCurve:
    """Net benefit of acting on scores of at least t, for every threshold t (Vickers & Elkin 2006).

    Parameters
    ----------
    scores, outcomes, sample_weight
        As for :func:`certcal.metrics.calibration_slope`.
    thresholds
        Increasing numbers between 0 and 1; by default 0.01 to 0.99.
    level
        Confidence level of the interval at each threshold.

    Examples
    --------
    >>> curve = decision_curve([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1], [0.2, 0.5])
    >>> curve.net_benefit.tolist()
    [0.4375, 0.0]
    """
    s, y, w = binary_pair(scores, outcomes, sample_weight)
    return DecisionCurve.of(sums(s, y, w, threshold_edges(thresholds)), confidence_level(level))


def net_benefit(scores: Any, outcomes: Any, threshold: float, *, sample_weight: Any = None) -> float:
    """Net benefit of acting on scores of at least one threshold; see :func:`decision_curve`.

    Examples
    --------
    >>> net_benefit([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1], 0.2)
    0.4375
    """
    at = share(threshold, "threshold", "pass a probability between 0 and 1 from which on you would act")
    return float(decision_curve(scores, outcomes, [at], sample_weight=sample_weight).net_benefit[0])


def threshold_edges(thresholds: Any = THRESHOLDS) -> Floats:
    """Edges of bins with the thresholds inside."""
    given = np.atleast_1d(to_numpy(thresholds, "thresholds")).astype(np.float64)
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"thresholds have shape {given.shape}; pass a sequence of numbers between 0 and 1")
    bad = ~((given > 0) & (given < 1))
    if bad.any():
        place = int(np.argmax(bad))
        raise InputError(f"thresholds[{place}] is {given[place]:g}; pass numbers between 0 and 1")
    if (np.diff(given) <= 0).any():
        place = int(np.argmax(np.diff(given) <= 0)) + 1
        raise InputError(f"thresholds[{place}] is not above the one before it; sort them and leave out repetitions")
    return np.concatenate(([0.0], given, [1.0]))


def _ends(hits: Floats, wrong: Floats, odds: Floats, size: float, level: float) -> tuple[Floats, Floats]:
    """Interval of hits - odds · wrong, two shares of one multinomial sample.

    Clopper-Pearson intervals of both are combined as variances would be, each with the end that counts on that side
    (MOVER: Zou & Donner 2008). They hold for shares of 0 as well, where the normal interval has no width.
    """
    below_hits, above_hits = rate_ends(hits, size, (1 - level) / 2)
    below_wrong, above_wrong = rate_ends(wrong, size, (1 - level) / 2)
    together = np.sqrt(hits * wrong / np.maximum((1 - hits) * (1 - wrong), 1e-300))

    def apart(one: Floats, two: Floats) -> Floats:
        return np.sqrt(one**2 + two**2 + 2 * together * one * two)

    benefit = hits - odds * wrong
    lower = benefit - apart(hits - below_hits, odds * (above_wrong - wrong))
    return lower, benefit + apart(above_hits - hits, odds * (wrong - below_wrong))
