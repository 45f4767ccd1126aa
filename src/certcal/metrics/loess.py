"""How far a score is from its smoothed calibration curve: ICI, E50 and E90 (Austin & Steyerberg 2019).

The curve is the one of the paper: loess of the outcomes on the scores (Cleveland 1979), local quadratics over the
nearest three quarters of the samples. It needs no bins, adapts to where the scores are, and is linear in the outcomes,
so the same matrix that smooths them gives the noise of the curve. Many samples are averaged over 500 runs of
neighbouring scores first, which moves a curve as smooth as this by nothing that can be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.metrics._intervals import Ends, part_rule
from certcal.metrics.binary import binary_pair

Floats = NDArray[np.float64]

SPAN = 0.75
# Up to this many samples each is a point of its own; above, this many runs of neighbouring scores are.
POINTS = 500
# Curves that are drawn for an interval.
DRAWS = 400


def ici(scores: Any, outcomes: Any, *, sample_weight: Any = None) -> float:
    """Integrated calibration index: the mean distance between the scores and the smoothed calibration curve.

    The curve is a loess of the outcomes on the scores, of degree 2 and span 0.75 (Austin & Steyerberg 2019).

    Parameters
    ----------
    scores, outcomes, sample_weight
        As for :func:`certcal.metrics.calibration_slope`.

    Examples
    --------
    >>> round(ici([0.2, 0.2, 0.2, 0.2, 0.8, 0.8], [0, 0, 1, 1, 1, 1]), 6)
    0.266667
    """
    return CalibrationCurve(*binary_pair(scores, outcomes, sample_weight)).mean


def e50(scores: Any, outcomes: Any, *, sample_weight: Any = None) -> float:
    """Median distance between the scores and the smoothed calibration curve of :func:`ici`.

    Examples
    --------
    >>> round(e50([0.2, 0.2, 0.2, 0.2, 0.8, 0.8], [0, 0, 1, 1, 1, 1]), 6)
    0.3
    """
    return CalibrationCurve(*binary_pair(scores, outcomes, sample_weight)).quantile(0.5)


def e90(scores: Any, outcomes: Any, *, sample_weight: Any = None) -> float:
    """90th percentile of the distance between the scores and the smoothed calibration curve of :func:`ici`.

    Examples
    --------
    >>> round(e90([0.2, 0.2, 0.2, 0.2, 0.8, 0.8], [0, 0, 1, 1, 1, 1]), 6)
    0.3
    """
    return CalibrationCurve(*binary_pair(scores, outcomes, sample_weight)).quantile(0.9)


class CalibrationCurve:
    """The smoothed curve at points that stand for the samples, in the order of their scores."""

    def __init__(self, s: NDArray[Any], y: NDArray[np.uint8], w: Floats | None) -> None:
        order = np.lexsort((y, s))
        if w is not None:
            order = order[w[order] > 0]
        score, outcome = s[order].astype(np.float64), y[order]
        weight = np.ones(order.size) if w is None else w[order]
        starts = np.arange(order.size)
        if order.size > POINTS:
            ends = np.cumsum(weight)
            run = np.minimum((ends - weight / 2) / ends[-1] * POINTS, POINTS - 1).astype(np.int64)
            starts = np.flatnonzero(np.diff(run, prepend=-1))
        total = np.add.reduceat(weight, starts)
        self.score = np.add.reduceat(weight * score, starts) / total
        self.residual = np.add.reduceat(weight * (outcome - score), starts) / total
        self.spread = np.add.reduceat(weight * weight, starts) / total**2
        self.weight = total / total.sum()

    @cached_property
    def smoother(self) -> Floats:
        """The matrix of the loess: a row for each point. Local quadratics reproduce the scores themselves."""
        u = (self.score - self.score[:, None]) / self._reach[:, None]
        cube = np.abs(u)
        cube *= cube * cube
        near = np.clip(1 - cube, 0, None) ** 3 * self.weight
        terms = [near]
        for _ in range(4):
            terms.append(terms[-1] * u)
        powers = np.stack([each.sum(axis=1) for each in terms], axis=1)
        # Where too few scores differ for a parabola, the pseudo-inverse takes the flattest one.
        matrices = powers[:, np.arange(3)[:, None] + np.arange(3)]
        first = np.linalg.pinv(matrices, rcond=1e-10, hermitian=True)[:, 0, :, None]
        return first[:, 0] * terms[0] + first[:, 1] * terms[1] + first[:, 2] * terms[2]

    @property
    def _reach(self) -> Floats:
        """The least distance from each point within which a share ``SPAN`` of the weight lies."""
        x, ends = self.score, np.concatenate(([0.0], np.cumsum(self.weight)))
        low, high = np.zeros(x.size), np.full(x.size, x[-1] - x[0])
        for _ in range(60):
            middle = (low + high) / 2
            first, last = np.searchsorted(x, x - middle, "left"), np.searchsorted(x, x + middle, "right")
            enough = ends[last] - ends[first] >= SPAN * (1 - 1e-12)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(high > 0, high, 1.0)

    @cached_property
    def gap(self) -> Floats:
        """Height of the curve above the score, at each point."""
        return self.smoother @ self.residual

    @property
    def mean(self) -> float:
        """The ICI."""
        return float(self._mean(np.abs(self.gap[:, None]))[0])

    def quantile(self, share: float) -> float:
        """The distance that a share of the samples does not exceed; the middle where two are as good."""
        distance = np.abs(self.gap[:, None])
        low, high = (float(self._quantile(distance, share + side)[0]) for side in (-1e-12, 1e-12))
        return (low + high) / 2

    def mean_ends(self, tail: float) -> Ends:
        """Interval of the ICI; see :meth:`_ends`."""
        return self._ends(self._mean, self.mean, tail)

    def quantile_ends(self, share: float, tail: float) -> Ends:
        """Interval of E50 or E90; see :meth:`_ends`."""
        return self._ends(partial(self._quantile, share=share), self.quantile(share), tail)

    def _ends(self, measure: Callable[[Floats], Floats], value: float, tail: float) -> Ends:
        """Interval of a summary of the distances |gap|, from curves of pure noise.

        Given the scores, the curve is the population's smoothed curve plus noise: the smoother applied to outcomes
        minus their probabilities, which is nearly normal. By the triangle inequality the summary of the curve exceeds
        that of the population's by at most the summary of the noise: the lower end subtracts its quantile, and reaches
        0 for a calibrated score. The upper end is the quantile of the summary of the curve with more noise added, which
        only adds to a distance on average. The variance of an outcome is taken from the curve or, where larger, from
        the score: a curve near 0 shows none. (For the quantiles the inequality holds for curves of one shape, and the
        coverage is that of simulations.)
        """
        noise = self._noise
        low = value - float(np.quantile(measure(np.abs(noise)), 1 - tail))
        high = float(np.quantile(measure(np.abs(self.gap[:, None] + noise)), 1 - tail))
        return max(low, 0.0), max(high, value)

    @cached_property
    def _noise(self) -> Floats:
        """Curves of pure noise, a column each; always the same."""
        height = np.clip(self.score + self.gap, 0, 1)
        variance = np.maximum(height * (1 - height), self.score * (1 - self.score)) * self.spread
        normal = np.random.default_rng(0).standard_normal((self.score.size, DRAWS))
        return self.smoother @ (np.sqrt(variance)[:, None] * normal)

    def _mean(self, distance: Floats) -> Floats:
        return self.weight @ distance

    def _quantile(self, distance: Floats, share: float) -> Floats:
        order = np.argsort(distance, axis=0)
        below = (np.cumsum(self.weight[order], axis=0) < share).sum(axis=0)
        places = order[np.minimum(below, self.score.size - 1), np.arange(order.shape[1])]
        return distance[places, np.arange(order.shape[1])]


ICI = part_rule("noise", CalibrationCurve, CalibrationCurve.mean_ends)
E50 = part_rule("noise", CalibrationCurve, lambda curve, tail: curve.quantile_ends(0.5, tail))
E90 = part_rule("noise", CalibrationCurve, lambda curve, tail: curve.quantile_ends(0.9, tail))
