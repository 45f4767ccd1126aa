"""Calibration of a binary score in the terms of medicine and credit: slope, intercept, observed/expected, z test.

Slope and intercept are those of a logistic regression of the outcome on the log-odds of the score (Cox 1958). A score
of exactly 0 or 1 has infinite log-odds: where its outcome agrees, its likelihood is 1 whatever the line, and it does
not take part; where its outcome disagrees, its likelihood is 0, and slope and intercept are undefined (NaN), as the log
loss is infinite. Nothing is clipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import confidences, correctness, flag, same_length, weights
from certcal._base.rounding import LEAST_P
from certcal._base.threads import map_blocks
from certcal.metrics._intervals import Ends, Evidence, IntervalRule, part_rule, quantile, score_ends, share_ends
from certcal.metrics.scores import weighted_mean

Floats = NDArray[np.float64]

# Samples whose terms are summed at a time: their arrays stay in the cache, and the sums do not depend on threads.
_BLOCK = 1 << 13
_MOST_STEPS = 200
# Newton's method stops after a step that lowers the loss by this part of its curvature: the next would be its square.
_CLOSE = 1e-15
# The longest step in log-odds, at any score, beyond those reached: curvature may vanish where scores are extreme.
_LONGEST = 16.0
_MOST_POWER = 709.0  # of e, beyond which there is no number


def binary_pair(
    scores: Any, outcomes: Any, sample_weight: Any = None
) -> tuple[NDArray[Any], NDArray[np.uint8], Floats | None]:
    """Check scores, outcomes and weights together."""
    s = confidences(scores, "scores", "pass the probability of the outcome 1")
    y = correctness(outcomes, "outcomes", "pass 1 where the event happened and 0 where it did not")
    same_length(scores=s.size, outcomes=y.size)
    return s, y, weights(sample_weight, s.size, partner="scores")


# ------------------------------------------------------------------------------------------------- slope and intercept


def calibration_slope(scores: Any, outcomes: Any, *, sample_weight: Any = None) -> float:
    """Calibration slope: β of logit P(y = 1) = α + β logit(score), fitted by maximum likelihood (Cox 1958).

    1 for a calibrated score; below 1 the scores are too extreme, above 1 not extreme enough. NaN where no finite slope
    is the best: a single outcome, equal scores, outcomes that a threshold separates, or a score of exactly 0 or 1 whose
    outcome disagrees.

    Parameters
    ----------
    scores
        Probability of the outcome 1 of each sample, in [0, 1].
    outcomes
        0 or 1 per sample.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> round(calibration_slope([0.1, 0.1, 0.2, 0.8, 0.9, 0.9], [0, 1, 0, 1, 0, 1]), 6)
    0.244642
    """
    return OutcomeRegression(*binary_pair(scores, outcomes, sample_weight)).line[1]


def calibration_intercept(scores: Any, outcomes: Any, *, joint: bool = False, sample_weight: Any = None) -> float:
    """Calibration intercept: α of logit P(y = 1) = α + logit(score), or with ``joint`` that of the fit of the slope.

    With the slope held at 1 it is the calibration in the large (Cox 1958; Van Calster et al. 2019): 0 for a calibrated
    score, positive where outcomes are more frequent than the scores say. The joint one is the log-odds at a score of
    one half and means little without its slope. NaN where it is not finite, as for :func:`calibration_slope`; with the
    slope at 1 only one outcome, or a score of exactly 0 or 1 that was wrong, makes it so.

    Examples
    --------
    >>> round(calibration_intercept([0.2, 0.2, 0.2, 0.2], [0, 0, 1, 1]), 6)
    1.386294
    """
    fit = OutcomeRegression(*binary_pair(scores, outcomes, sample_weight))
    return fit.line[0] if flag(joint, "joint") else fit.shift


class OutcomeRegression:
    """The likelihood of a logistic regression of the outcomes on the log-odds of the scores.

    A line is kept as its height at the mean log-odds and its slope per standard deviation of them.
    """

    def __init__(self, s: NDArray[Any], y: NDArray[np.uint8], w: Floats | None) -> None:
        z = s.astype(np.float64)
        with np.errstate(divide="ignore"):
            x = np.log(z) - np.log1p(-z)
        counted = np.ones(z.size, np.bool_) if w is None else w > 0
        finite = np.isfinite(x)
        certain = counted & ~finite
        self.contradicted = bool((y[certain] != z[certain]).any())
        used = counted & finite
        if not used.all():
            x, y, w = x[used], y[used], None if w is None else w[used]
        self.y, self.w = y, w
        self.both = bool(y.any()) and not bool(y.all())
        self.centre = float(np.average(x, weights=w)) if x.size else 0.0
        self.spread = float(np.sqrt(np.average((x - self.centre) ** 2, weights=w))) if x.size else 0.0
        self.spread = self.spread or 1.0
        self.x = (x - self.centre) / self.spread
        self._range = np.array((self.x.min(), self.x.max())) if x.size else np.zeros(2)

    @property
    def overlaps(self) -> bool:
        """Whether no threshold separates the outcomes: the best slope is then finite (Albert & Anderson 1984)."""
        if self.contradicted or not self.both:
            return False
        ones, zeros = self.x[self.y == 1], self.x[self.y == 0]
        return bool(zeros.max() > ones.min() and ones.max() > zeros.min())

    @cached_property
    def line(self) -> tuple[float, float]:
        """Intercept and slope of the joint fit."""
        if not self.overlaps:
            return math.nan, math.nan
        (height, slope), _ = self._fit_of_line
        return float(height - slope * self.centre / self.spread), float(slope / self.spread)

    @cached_property
    def shift(self) -> float:
        """The intercept with the slope at 1."""
        return float(self._fit_of_shift[0][0] - self.centre) if self.both and not self.contradicted else math.nan

    @cached_property
    def _fit_of_line(self) -> tuple[Floats, Floats]:
        share = float(np.average(self.y, weights=self.w))
        return self._descend(np.array((math.log(share / (1 - share)), 0.0)), 2)

    @cached_property
    def _fit_of_shift(self) -> tuple[Floats, Floats]:
        return self._descend(np.array((self.centre, self.spread)), 1)

    def line_ends(self, tail: float) -> Ends:
        """Interval of the slope with a probability of ``tail`` on each side; see :meth:`_ends`."""
        low, high = self._ends(tail, 1) if self.overlaps else (math.nan, math.nan)
        return low / self.spread, high / self.spread

    def shift_ends(self, tail: float) -> Ends:
        """Interval of the intercept with the slope at 1; see :meth:`_ends`."""
        defined = self.both and not self.contradicted
        low, high = self._ends(tail, 0) if defined else (math.nan, math.nan)
        return low - self.centre, high - self.centre

    def _ends(self, tail: float, which: int) -> Ends:
        """The values whose log-likelihood, at the best height, is half a quantile of χ² below the largest at most.

        That is right where the regression holds. Where it does not, or samples have weights, it is the line that fits
        the population best, and the quantile is multiplied by the ratio of the sandwich variance to the variance under
        the model (Rao & Scott 1984). The ratio counts from 1 up, since the sandwich is too small for few samples.
        """
        best, sums = self._fit_of_line if which else self._fit_of_shift
        # Weights add up to the number of equal ones that would say as much (Kish 1965).
        scale = 1.0 if self.w is None else float(self.w.sum() / (self.w @ self.w))
        inverse = np.linalg.inv(_hessian(sums, 1 + which))
        meat = np.array(((sums[6], sums[7]), (sums[7], sums[8])))[: 1 + which, : 1 + which]
        variance = float(inverse[which, which])
        ratio = max(1.0, scale * float((inverse @ meat @ inverse)[which, which]) / variance)
        target = quantile(tail) ** 2 * ratio / scale

        def excess(value: float) -> tuple[float, float]:
            """Twice the loss above the least, with the other parameter at its best, and its derivative."""
            at = best.copy()
            at[which] = value
            if which:
                at[0] -= (value - best[1]) * sums[4] / sums[3]
            here = self._descend(at, 1)[1] if which else self._sums(at)
            return 2 * float(here[0] - sums[0]), 2 * float(here[1 + which])

        step = math.sqrt(target * variance)
        start = float(best[which])
        return _crossing(excess, start, -step, target), _crossing(excess, start, step, target)

    def _sums(self, at: Floats) -> Floats:
        """Loss; Σq, Σqx; Σv, Σvx, Σvx²; Σq², Σq²x, Σq²x², with q = p - y and v = p (1 - p), all weighted."""
        height, slope = map(float, at)

        def some(start: int, stop: int) -> list[tuple[Any, ...]]:
            return [self._block(height, slope, slice(_BLOCK * k, _BLOCK * (k + 1))) for k in range(start, stop)]

        rows = [row for part in map_blocks(some, -(-self.x.size // _BLOCK), small=16) for row in part]
        return np.array(rows, np.float64).sum(axis=0)

    def _block(self, height: float, slope: float, part: slice) -> tuple[Any, ...]:
        x, y = self.x[part], self.y[part]
        t = height + slope * x
        small = np.exp(-np.abs(t))
        likelier = 1 / (1 + small)
        q = np.where(t >= 0, likelier, small * likelier) - y
        v = small * likelier * likelier
        loss = np.maximum(np.where(y == 1, -t, t), 0) + np.log1p(small)
        if self.w is not None:
            w = self.w[part]
            loss, q, v = w * loss, w * q, w * v
        qx, vx = q * x, v * x
        return loss.sum(), q.sum(), qx.sum(), v.sum(), vx.sum(), vx @ x, q @ q, q @ qx, qx @ qx

    def _descend(self, start: Floats, free: int) -> tuple[Floats, Floats]:
        """The height, and with ``free`` = 2 the slope, with the least loss, and the sums there: damped Newton steps."""
        at, sums = start, self._sums(start)
        for _ in range(_MOST_STEPS):
            gradient = sums[1 : 1 + free]
            step = np.zeros(2)
            if free == 2:
                step[:] = np.linalg.solve(_hessian(sums, 2), gradient)
                now, change = (float(np.abs(each[0] + each[1] * self._range).max()) for each in (at, step))
                step *= min(1.0, (_LONGEST + now) / (change or 1.0))
            else:
                step[0] = np.clip(float(sums[1]) / max(float(sums[3]), 1e-300), -_LONGEST, _LONGEST)
            decrease = float(gradient @ step[:free])
            size = 1.0
            while (after := self._sums(at - size * step))[0] > sums[0] * (1 + 1e-13) and size > 1e-12:
                size /= 2
            at, sums = at - size * step, after
            if decrease <= _CLOSE * sums[3]:
                break
        return at, sums


def _hessian(sums: Floats, free: int) -> Floats:
    return np.array(((sums[3], sums[4]), (sums[4], sums[5])))[:free, :free]


def _crossing(excess: Callable[[float], tuple[float, float]], start: float, step: float, target: float) -> float:
    """Where a convex function that is 0 at ``start`` reaches ``target``, on the side of ``step``: nearly at it.

    Newton's method on the root of the function, which is nearly a line; inside what is known to hold the answer.
    """
    inside, outside = start, math.copysign(math.inf, step)
    at = start + step
    for _ in range(_MOST_STEPS):
        value, slope = excess(at)
        if abs(value - target) <= 1e-8 * target:
            break
        inside, outside = (at, outside) if value < target else (inside, at)
        root = math.sqrt(max(value, 0.0))
        new = at + (math.sqrt(target) - root) * 2 * root / slope if slope else math.nan
        low, high = min(inside, outside), max(inside, outside)
        if not low < new < high:
            new = start + 2 * (at - start) if math.isinf(outside) else (inside + outside) / 2
        if new == at:
            break
        at = new
    return at


# --------------------------------------------------------------------------------------------------- sums over samples


def observed_expected_ratio(scores: Any, outcomes: Any, *, sample_weight: Any = None) -> float:
    """Observed over expected: the number of events divided by the sum of the scores.

    1 for a calibrated score; above 1 events are more frequent than the scores say. NaN where all scores are 0 and no
    event happened, infinite where one did.

    Examples
    --------
    >>> observed_expected_ratio([0.25, 0.25, 0.5, 1.0], [0, 0, 0, 1])
    0.5
    """
    return ratio_of(*binary_pair(scores, outcomes, sample_weight))


def ratio_of(s: NDArray[Any], y: NDArray[np.uint8], w: Floats | None) -> float:
    """:func:`observed_expected_ratio` of checked arrays."""
    return _ratio(weighted_mean(y, w), weighted_mean(s.astype(np.float64), w))


def ratio_ends(evidence: Evidence, tail: float) -> Ends:
    """Interval of observed over expected, ρ = E y / E s, for samples drawn independently: scores are random, too.

    With the rate p of events, the mean score a of events and b of others,

        1/ρ = E s / E y = a + b (1 - p)/p,

    and the three are estimated independently of each other: given the number of events, their scores are draws of their
    own. So the interval of p is exact (Clopper and Pearson 1934), and those of a and b are score intervals of means of
    numbers in [0, 1] (Wilson 1927). They are put together by recovering variances (MOVER: Zou and Donner 2008; Donner
    and Zou 2012): squared distances from the estimate add up, in logarithms for the product.

    *Exact*: where all events have one score and all others one (equal scores, or a score that tells them apart), a and
    b are known, the interval contains that of p, and its level holds for every n. *For many samples* squared distances
    are variances, and their sum is that of y - ρs, divided by (E y)² ρ² n. Between the two it is an approximation.

    With weights the three may be correlated; where the residuals s - y/ρ vary more than their sum, by that factor.
    """
    s, y = evidence.scores
    w = evidence.weight
    rate = float(np.average(y, weights=w))
    low_rate, high_rate = share_ends(evidence, evidence.arrays[1], rate, tail)
    few, many = (1 - high_rate) / high_rate, (1 - low_rate) / low_rate if low_rate > 0 else math.inf

    def mean_score(here: NDArray[np.bool_]) -> tuple[float, float, float, float]:
        """Mean score of some samples, both ends, and its variance."""
        if not here.any():
            return 0.0, 0.0, 1.0, 0.0
        part = Evidence((s[here],), None if w is None else w[here], evidence.counts)
        mean = float(np.average(part.arrays[0], weights=part.weight))
        return mean, *score_ends(part, mean, tail), part.spread(part.arrays[0], mean)

    events, low_events, high_events, noise_events = mean_score(y == 1)
    others, low_others, high_others, noise_others = mean_score(y == 0)
    if rate == 0:
        return 0.0, _inverse(low_others * few)
    odds = (1 - rate) / rate
    product = others * odds
    if product > 0:
        below = product * math.exp(-math.hypot(_log_ratio(others, low_others), _log_ratio(odds, few)))
        power = math.log(product) + math.hypot(_log_ratio(high_others, others), _log_ratio(many, odds))
        above = math.exp(power) if power < _MOST_POWER else math.inf
    else:
        below, above = 0.0, high_others * (odds or many)
    inverse, scale = events + product, 1.0
    if w is not None and not evidence.counts:
        seen = evidence.noise((s - inverse * y) ** 2) / rate**2
        noise_rate = max(evidence.spread(y, rate), rate * (1 - rate) * evidence.crowding)
        parts = noise_events + odds**2 * noise_others + (others / rate**2) ** 2 * noise_rate
        scale = math.sqrt(max(1.0, seen / parts)) if parts > 0 else 1.0
    least = inverse - scale * math.hypot(events - low_events, product - below)
    most = inverse + scale * math.hypot(high_events - events, above - product)
    return _inverse(most), _inverse(least)


def _log_ratio(larger: float, smaller: float) -> float:
    return math.log(larger / smaller) if smaller > 0 else math.inf


def _inverse(value: float) -> float:
    return 1 / value if value > 0 else math.inf


def _ratio(observed: float, expected: float) -> float:
    if expected > 0:
        return observed / expected
    return math.inf if observed > 0 else math.nan


def spiegelhalter_z(scores: Any, outcomes: Any, *, sample_weight: Any = None) -> float:
    """Spiegelhalter's z: how far the Brier score is from what calibrated scores would give, in standard deviations.

    Σ (y - s)(1 - 2s) / √Σ (1 - 2s)² s(1 - s) (Spiegelhalter 1986); weights enter the sum, and their squares the
    variance. Positive where the scores are more extreme than the outcomes allow. Scores of 0, ½ and 1 have no variance:
    where there are no others it is NaN, or infinite if a score of 0 or 1 was wrong.

    Examples
    --------
    >>> round(spiegelhalter_z([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 0]), 6)
    2.083333
    """
    return spiegelhalter_z_of(*binary_pair(scores, outcomes, sample_weight))


def spiegelhalter_z_of(s: NDArray[Any], y: NDArray[np.uint8], w: Floats | None) -> float:
    """:func:`spiegelhalter_z` of checked arrays."""
    z = s.astype(np.float64)
    tilt = 1 - 2 * z
    gap, variance = (y - z) * tilt, tilt * tilt * z * (1 - z)
    if w is not None:
        gap, variance = w * gap, w * w * variance
    total, spread = float(gap.sum()), math.sqrt(float(variance.sum()))
    if spread > 0:
        return total / spread
    return math.copysign(math.inf, total) if total else math.nan


def spiegelhalter_p(scores: Any, outcomes: Any, *, sample_weight: Any = None) -> float:
    """Two-sided p-value of :func:`spiegelhalter_z`: how often calibrated scores have one as large, for many samples.

    Examples
    --------
    >>> round(spiegelhalter_p([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 0]), 6)
    0.037221
    """
    return spiegelhalter_p_of(*binary_pair(scores, outcomes, sample_weight))


def spiegelhalter_p_of(s: NDArray[Any], y: NDArray[np.uint8], w: Floats | None) -> float:
    """:func:`spiegelhalter_p` of checked arrays."""
    z = spiegelhalter_z_of(s, y, w)
    found = math.erfc(abs(z) / math.sqrt(2))
    return max(found, LEAST_P) if math.isfinite(z) else found


# ----------------------------------------------------------------------------------------------------------- intervals


_UNLIMITED = (-math.inf, math.inf)
SLOPE = part_rule("profile likelihood", OutcomeRegression, OutcomeRegression.line_ends, *_UNLIMITED)
INTERCEPT = part_rule("profile likelihood", OutcomeRegression, OutcomeRegression.shift_ends, *_UNLIMITED)
# Infinite where all scores here are 0 and an event happened: others may have other scores.
RATIO = IntervalRule("MOVER", lambda evidence, _, tail, __: ratio_ends(evidence, tail), 0.0, math.inf, False)
