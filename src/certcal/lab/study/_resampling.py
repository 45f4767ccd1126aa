"""Intervals over models: how a number would vary with other models of the kind.

What is random: the models, taken as drawn independently from a population of models. A model is drawn with all its
rows, on every data set. What is not covered: the sampling error of each model's own measurements (the test samples are
given, and most often the same for all models), models that depend on one another (copies, one architecture trained with
several seeds), the choice of the questions, and that several intervals are looked at: each is at the level alone.
An interval is an estimate; it has no guarantee at finite size.

How: the standard error is that of the number over resamples, and the interval is normal on a scale on which that is a
good approximation (Fisher's z for correlations, the logarithm for ratios), with Student's quantile for n - 1. For
bivariate normal populations of 50 and 300 models this covers at the nominal level; percentiles of 200 resamples cover
one to two points less at 50 models. Of fewer models, and of medians, it is wide: it covers in 96 to 100 % of normal
populations of 10 to 20 models, and is about a tenth too wide for a ratio of medians of 80. Two copies of a model in a
resample are a tie in both variables, which tau-b leaves out of its numerator and of its denominator.

Large populations: a resample has at most :data:`LARGEST` models, and the standard error is scaled by the square root of
the sizes' ratio. The variance of a correlation is c/n + O(1/n²), so that this errs by O(1/n) in relative terms (0.4 %
of the variance for unrelated variables), and to the wide side. They are drawn from every second, third, ... model
only, in the order of the columns, of which there are still :data:`POOL` or more: enough for c, which is all that is
wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from certcal._base.text import counted
from certcal.lab.study._findings import Finding
from certcal.lab.study._ranks import kendall, kendall_resampled

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Scale = Literal["correlation", "ratio", "difference"]

# Models in one resample.
LARGEST = 1000
# Models that resamples are drawn from, at least, where there are as many.
POOL = 4000
# Fewer models give a number but no interval, and fewer than the second not even a number.
FEWEST, LEAST = 10, 3
# More undefined resamples than this share: no interval.
_UNDEFINED = 0.1
# A ratio whose interval would reach further than this factor: none.
_FURTHEST = 1000.0
# Below so many models a review says what chance alone can do, and from how many on that is small.
_FEW, _CLOSE = 100, 0.1


@dataclass(frozen=True)
class Resampling:
    """How intervals are made."""

    resamples: int = 200
    level: float = 0.95
    seed: int = 0

    def rows(self, n: int, *, tag: str, top: int | None = None, most: int = LARGEST) -> Rows:
        """Resamples of ``range(n)`` in ascending order, or of its first ``top``: what comes first in a resample of all.

        At most ``most`` of a resample are kept. The sorted places of n uniform draws are sums of exponential ones over
        the sum of n + 1. So the first of them are had without the rest, and how far down the list they reach varies as
        it does in a resample of all.
        """
        rng = np.random.default_rng([self.seed, crc32(tag.encode())])
        whole = n if top is None else top
        kept = min(whole, most)
        drawn = max(kept, round(n * kept / whole))
        steps = rng.exponential(size=(self.resamples, kept)).cumsum(axis=1)
        rest = rng.gamma(drawn + 1 - kept, size=(self.resamples, 1))
        places = steps / (steps[:, -1:] + rest)
        return np.minimum((places * n).astype(np.int64), n - 1)

    def interval(
        self, value: float, draws: Floats, n: int, scale: Scale, shrink: float | None = None
    ) -> tuple[float, float, str]:
        """Ends of the interval of a number from ``n`` models, and why there are none (NaN) otherwise."""
        from scipy.special import stdtrit

        if n < FEWEST:
            return math.nan, math.nan, f"no interval from fewer than {FEWEST} models"
        defined = draws[np.isfinite(draws)]
        if not math.isfinite(value) or defined.size < (1 - _UNDEFINED) * draws.size:
            return math.nan, math.nan, "no interval: too often undefined when models are drawn again"
        deviation = float(defined.std(ddof=1)) * (shrinkage(n) if shrink is None else shrink)
        half = float(stdtrit(n - 1, (1 + self.level) / 2)) * deviation
        if scale == "correlation":
            if 1 - abs(value) < 1e-12:
                return _perfect_correlation_interval(value, n, self.level)
            middle, half = math.atanh(value), half / (1 - value**2)
            return math.tanh(middle - half), math.tanh(middle + half), ""
        if scale == "ratio":
            if half >= math.log(_FURTHEST) * abs(value):
                return math.nan, math.nan, "no interval: it varies too much when models are drawn again"
            spread = half / value
            return value * math.exp(-spread), value * math.exp(spread), ""
        return value - half, value + half, ""

    def small_sample_caution(self, n: int) -> tuple[str, ...]:
        """Caution that a correlation rests on few models, with the number that would do; empty if there are enough."""
        if n >= _FEW:
            return ()
        many = fewest_models(_CLOSE, self.level)
        if n < FEWEST:
            return (
                f"{counted(n, 'model')}: too few to say anything of models of this kind. Intervals begin at {FEWEST}, "
                f"and from about {many} on chance alone stays within ±{_CLOSE:g}.",
            )
        return (
            f"With {n} models, unrelated numbers reach correlations of ±{chance_correlation(n, self.level):.2f} by "
            f"chance ({100 * self.level:g} %); from about {many} models on, ±{_CLOSE:g}.",
        )

    def finding(
        self,
        name: str,
        statistic: Callable[..., Any],
        *columns: Floats,
        tag: str,
        scale: Scale = "difference",
        note: str = "",
    ) -> Finding:
        """A statistic of columns of one length, with its interval."""
        n = columns[0].size
        if n < LEAST:
            return Finding.undefined(name, n, f"needs at least {LEAST} models")
        value = float(statistic(*columns))
        if not math.isfinite(value):
            return Finding.undefined(name, n, note or "undefined for these models")
        draws = np.empty(0)
        if n >= FEWEST:
            draws = np.array([statistic(*(column[rows] for column in columns)) for rows in self.rows(n, tag=tag)])
        return self.finding_from_draws(name, value, draws, n, scale, note)

    def correlation(self, name: str, x: Floats, y: Floats, *, tag: str, top: int | None = None) -> Finding:
        """Kendall's tau-b of two columns without NaN, or of their first ``top`` entries, with its interval."""
        kept = x.size if top is None else min(top, x.size)
        if kept < LEAST:
            return Finding.undefined(name, kept, f"needs at least {LEAST} models")
        value = kendall(x[:kept], y[:kept])
        if math.isnan(value):
            return Finding.undefined(name, kept, "one of the two is the same for all models")
        draws = np.empty(0)
        if kept >= FEWEST:
            draws = kendall_draws(x, y, self.rows(x.size, tag=tag, top=kept))
        return self.finding_from_draws(name, value, draws, kept, "correlation")

    def finding_from_draws(
        self, name: str, value: float, draws: Floats, n: int, scale: Scale, note: str = "", shrink: float | None = None
    ) -> Finding:
        """A number with the interval of its resamples."""
        low, high, missing = self.interval(value, draws, n, scale, shrink)
        return Finding(name, value, low, high, n, "; ".join(filter(None, (note, missing))))

    def share(self, name: str, count: int, n: int) -> Finding:
        """A share of models, with the exact (Clopper and Pearson's) interval.

        Resamples would say that a share of one is certain, and it is not.
        """
        from certcal.bounds.concentration import clopper_pearson

        low, high = clopper_pearson(count, n, 1 - self.level)
        return Finding(name, count / n, float(low), float(high), n, "exact binomial interval")


def kendall_draws(x: Floats, y: Floats, rows: Rows, step: int | None = None) -> Floats:
    """Kendall's tau-b of resamples, drawn from every ``step``-th model; None for as few as suffice if there are many.

    Numbers whose difference is taken need the same models, and so the same step.
    """
    reach = int(rows.max()) + 1
    step = max(1, reach // POOL) if step is None else step
    return kendall_resampled(x[:reach:step], y[:reach:step], rows // step)


def median_growth(first: Floats, second: Floats) -> float:
    """How many times the median grows from the first to the second."""
    middle = float(np.median(first))
    return float(np.median(second)) / middle if middle > 0 else math.nan


def shrinkage(n: int, most: int = LARGEST) -> float:
    """Factor from the deviation in resamples of at most ``most`` models to that of n models."""
    return math.sqrt(min(most, n) / n)


def _perfect_correlation_interval(value: float, n: int, level: float) -> tuple[float, float, str]:
    """The interval of a correlation of one: no resample differs from it.

    Of n/2 pairs that share no model none was ordered otherwise, so that the probability p of such a pair is at most
    what makes (1 - p)^(n/2) = 1 - level; and tau = 1 - 2p.
    """
    furthest = 1 - 2 * (1 - (1 - level) ** (1 / (n // 2)))
    note = "the same order throughout: the interval is that of n/2 separate pairs"
    return (furthest, value, note) if value > 0 else (value, -furthest, note)


def chance_correlation(n: int, level: float = 0.95) -> float:
    """The correlation that unrelated columns of n models reach by chance, with probability 1 - level.

    Normal approximation with the exact variance 2 (2n + 5) / (9n (n - 1)) of tau without ties.
    """
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)))


def fewest_models(within: float, level: float = 0.95) -> int:
    """The fewest models for which :func:`chance_correlation` is at most ``within``."""
    from bisect import bisect_left

    return 2 + bisect_left(range(2, 10_000_000), True, key=lambda n: chance_correlation(n, level) <= within)
