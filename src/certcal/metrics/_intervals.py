"""Confidence intervals for the population value of every metric, in closed form.

What is random: the samples, drawn independently from one population. What is covered: the metric of that population, at
the settings of the row (its bins, its bandwidth). Intervals of unweighted rates are exact. Of the others the level is
reached in the limit of many samples and, in the simulations of ``experiments/intervals.py``, to two points from 30
samples on; those of norms cover more often than they say where their bias cannot be known. No resampling is needed.

*Norms.* ECE, KS, Kuiper, MMCE and smoothed errors are T = sup over f in F of E f, where each f(z, c) = s(z) (c - z)
with |s| <= 1. Let f° be the maximiser for the population. The estimate is at least the mean of f° over the samples, so

    T - estimate <= E f° - mean f°          (the upper end: an ordinary mean, whatever the upward bias is),
    estimate - T <= sup |E f - mean f|      (the lower end: the norm of the sampling noise),
    T >= E f for any one f                  (the lower end of the ECE, too: f has the signs that clear bins show).

The right-hand side of the first is normal with variance at most (E (c - z)² - T²) / n. The second is the norm of a
Gaussian process G, whose quantiles are known for each: sup and range of Brownian motion for KS and Kuiper (reflection
principle; Feller 1951), Σ λ χ² for MMCE (Székely and Bakirov 2003), and in general, by Borell (1975), at most
E‖G‖ + q σ with the normal quantile q and σ² the largest variance of any f.

*The ECE* is Σ |S_b| over bins, and its bias is what noise adds to the sizes of gaps. That depends on gaps that nobody
knows, but it has a most, by bin, and a least, for one T. The most is taken from the lower end, the least from the upper
(:class:`BinNoise`); both hold for every pattern of gaps. Simulated over patterns of Gaussian gaps, both ends together
miss in 5 % at the worst: where all gaps are clear, in 2.5 % each; where some are and the others are 0, the lower alone.

*Rare outcomes.* Where nothing happened, the samples show no variance. Two things are therefore added. Scores tell what
the variance would be if they were calibrated, z (1 - z); the larger of the two is used. And the variance of a mean that
lies x higher than observed is larger by up to x times the reach of one sample, so that x solves x² = q² (v + x reach),
as in the interval of Wilson (1927). For a lower end of the ECE the smaller of the two suffices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import bin_count
from certcal.binning import BinTable, bin_indices, edges_for, mass_edges, sums
from certcal.claims import Interval

Floats = NDArray[np.float64]
Ends = tuple[float, float]
Made = TypeVar("Made")

# A bin whose gap is this many standard errors from zero has its sign for certain.
CERTAIN = 3.5
# Shared by all bins: how often each side of any calibrated bin is taken for clear. Simulations of docs/intervals.md.
_UNCLEAR = 0.1
# Tails of levels whose ends contain each other.
_LADDER = (0.0005, 0.005, 0.025, 0.05)
# Bins with fewer samples than this are too small for the normal approximation.
_FEW = 5
# Mean of the absolute value of a standard normal variable N.
_HALF = math.sqrt(2 / math.pi)
# Variance, third and fourth cumulant of |N| - 2/√π exp(-N²/2), whose mean is 0.
_CALM = (1 - 2 * math.sqrt(2) / math.pi + 4 / (math.pi * math.sqrt(3)), 0.69646, 0.15764)
# With more samples than this the reach of one does not matter, unless it is infinite.
_MANY = 100_000
# Cells in which the noise of kernel sums is summed.
_CELLS = 4096


@dataclass(frozen=True)
class IntervalRule:
    """How a metric gets its interval.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal.metrics import METRICS
    >>> rule, z, c = METRICS["ks_error"].interval, np.full(100, 0.5), np.repeat(np.array([0, 1], np.uint8), 50)
    >>> found = rule.interval(Evidence((z, c)), 0.0, 0.95, {})
    >>> found.lower, round(found.upper, 3), found.method
    (0.0, 0.119, 'norm')
    """

    name: str
    """What is recorded as the method of the interval."""
    ends: Callable[[Evidence, float, float, Mapping[str, Any]], Ends]
    """Gives both ends from the evidence, the value, the probability of each tail and the settings of the row."""
    least: float = 0.0
    most: float = 1.0
    """The ends of what the metric can be."""
    stays_infinite: bool = True
    """Whether a metric that is infinite on the samples is infinite in the population, as a mean of losses is."""

    def interval(self, evidence: Evidence, value: float, level: float, settings: Mapping[str, Any]) -> Interval:
        """The interval, within the range of the metric; it contains the value."""
        if math.isnan(value) or (math.isinf(value) and self.stays_infinite):
            return Interval(value, value, level, self.name)
        lower, upper = self.ends(evidence, value, (1 - level) / 2, settings)
        lower, upper = min(max(lower, self.least), value), max(min(upper, self.most), value)
        return Interval(float(lower), float(upper), level, self.name)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What an interval is computed from: the arrays of a metric, or cells that stand for the samples of a stream.

    Examples
    --------
    >>> import numpy as np
    >>> Evidence((np.array([0.5, 0.5]), np.array([0, 1], np.uint8)), np.array([1.0, 3.0])).crowding
    0.625
    """

    arrays: tuple[NDArray[Any], ...]
    """Checked arrays in the order of the metric's function."""
    weight: Floats | None = None
    """Weights of the samples, or None. Of cells, how many samples each stands for."""
    counts: bool = False
    """Whether the weights are numbers of samples."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further options of the metric's function."""
    tables: Callable[[int, bool], BinTable] | None = None
    """Gives the sums per bin for a number of bins and whether they have equal mass, where they are known."""
    parts: Callable[[Callable[..., Any]], Any] | None = None
    """Gives what several metrics share, where it is kept."""

    @classmethod
    def of(cls, arrays: tuple[NDArray[Any], ...], weight: Floats | None, **more: Any) -> Evidence:
        """From checked arrays; samples of weight 0 are left out, as their losses may be infinite."""
        if weight is not None and not weight.all():
            arrays, weight = tuple(array[weight > 0] for array in arrays), weight[weight > 0]
        return cls(arrays, weight, **more)

    @cached_property
    def size(self) -> int:
        """Number of samples or cells."""
        return int(self.arrays[0].shape[0])

    @cached_property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.size) if self.weight is None else float(self.weight.sum())

    @cached_property
    def crowding(self) -> float:
        """One over the effective number of samples, Σw² / (Σw)²."""
        return self.noise(None)

    @cached_property
    def largest(self) -> float:
        """Largest share of one sample."""
        return 1 / self.total if self.weight is None or self.counts else float(self.weight.max()) / self.total

    def noise(self, squares: Floats | None) -> float:
        """Σ w² f² / (Σw)² for the squares f²: the variance of a weighted mean of f with mean zero."""
        if self.weight is None:
            return (1.0 if squares is None else float(np.mean(squares))) / self.total
        heavy = self.weight if self.counts else self.weight**2
        return float(heavy.sum() if squares is None else np.dot(heavy, squares)) / self.total**2

    def spread(self, values: Floats, centre: float) -> float:
        """The variance of the weighted mean of values."""
        off = values - centre
        return float(np.dot(off, off)) / self.total**2 if self.weight is None else self.noise(off**2)

    @cached_property
    def scores(self) -> tuple[Floats, Floats]:
        """Confidences and outcomes as float64."""
        return self.arrays[0].astype(np.float64, copy=False), self.arrays[1].astype(np.float64)

    @cached_property
    def residual_noise(self) -> tuple[float, float]:
        """Σ w² (c - z)² / (Σw)², and the same if the scores were calibrated."""
        z, c = self.scores
        if self.weight is None:
            square = float(np.dot(z, z))
            seen, calm = float(c.sum()) - 2 * float(np.dot(c, z)) + square, float(z.sum()) - square
            return seen / self.total**2, calm / self.total**2
        return self.noise((c - z) ** 2), self.noise(z * (1 - z))

    def part(self, make: Callable[..., Made]) -> Made:
        """What several metrics share: made of scores, outcomes and weights."""
        return make(*self.arrays[:2], self.weight) if self.parts is None else self.parts(make)

    def bins(self, settings: Mapping[str, Any], *, mass: bool = False) -> BinTable:
        """Sums per bin at the settings of a row."""
        if self.tables is not None:
            return self.tables(settings["bins"], mass)
        z, c = self.arrays[:2]
        closed = settings.get("closed", "left")
        if mass:
            edges = mass_edges(z, self.weight, bin_count(settings.get("bins", 15)), closed)
        else:
            edges = edges_for(settings.get("bins", 15), settings.get("edges"))
        return sums(z, c, self.weight, edges, closed)


# ----------------------------------------------------------------------------------------------- quantiles, deviations


def quantile(tail: float) -> float:
    """The standard normal value that is exceeded with this probability."""
    from scipy.special import ndtri

    found: Any = ndtri(tail)
    return -float(found)


def deviation(noise: float, reach: float, q: float) -> float:
    """The x with x² = q² (noise + x reach): how far a mean may lie beyond what was observed."""
    half = q * q * reach / 2
    return half + math.sqrt(half * half + q * q * max(noise, 0.0))


def part_rule(
    name: str, make: Callable[..., Made], ends: Callable[[Made, float], Ends], least: float = 0.0, most: float = 1.0
) -> IntervalRule:
    """The rule of a metric of something that is made of scores, outcomes and weights once, and shared."""
    return IntervalRule(name, lambda evidence, _, tail, __: ends(evidence.part(make), tail), least, most)


# ------------------------------------------------------------------------------------------------------ rates and means


def rate_ends(share: Any, size: Any, tail: Any) -> tuple[Any, Any]:
    """Both ends of Clopper and Pearson's (1934) interval for a share of so many trials, which may be fractional."""
    from scipy.special import betaincinv

    hits = np.clip(np.asarray(share) * size, 0, size)
    misses = size - hits
    with np.errstate(invalid="ignore"):
        low = np.asarray(betaincinv(np.maximum(hits, 1e-12), misses + 1, tail), np.float64)
        high = np.asarray(betaincinv(hits + 1, np.maximum(misses, 1e-12), 1 - tail), np.float64)
    return np.where(hits > 1e-9, low, 0.0), np.where(misses > 1e-9, high, 1.0)


def rate_of(hits: Callable[..., NDArray[Any]]) -> IntervalRule:
    """The rule of a share of samples; ``hits`` says which count."""

    def ends(evidence: Evidence, value: float, tail: float, settings: Mapping[str, Any]) -> Ends:
        return share_ends(evidence, hits(*evidence.arrays, **settings), value, tail)

    return IntervalRule("Clopper-Pearson", ends)


def share_ends(evidence: Evidence, hits: NDArray[Any], value: float, tail: float) -> Ends:
    """Both ends of a share of samples; with weights, for their effective number (Korn and Graubard 1998)."""
    size = 1 / evidence.crowding
    if evidence.weight is not None and not evidence.counts:
        spread = evidence.spread(hits.astype(np.float64), value)
        size = min(size, value * (1 - value) / spread) if spread > 0 else size
    lower, upper = rate_ends(value, size, tail)
    return float(lower), float(upper)


def mean_of(losses: Callable[..., NDArray[Any]], most: float = math.inf) -> IntervalRule:
    return IntervalRule("score", partial(_mean, losses, most), most=most)


def _mean(
    losses: Callable[..., NDArray[Any]],
    most: float,
    evidence: Evidence,
    value: float,
    tail: float,
    settings: Mapping[str, Any],
) -> Ends:
    """The reach is that of the losses that would have been, had the few samples with the largest come out otherwise."""
    arrays, options = evidence.arrays, {**evidence.options, **settings}
    found, q = losses(*arrays, **options).astype(np.float64, copy=False), quantile(tail)
    if evidence.crowding > 1 - 1e-9:  # one sample, which says nothing of any other
        return 0.0, most
    if len(arrays) == 1 or (found.size > _MANY and math.isfinite(most)):
        highest, lowest = most, 0.0
    else:
        others = losses(arrays[0], _other_outcome(*arrays[:2]), **options).astype(np.float64, copy=False)
        few = min(found.size, max(1, math.ceil(q * q)))
        highest = float(np.mean(-np.partition(-np.maximum(found, others), few - 1)[:few]))
        lowest = float(np.mean(np.partition(np.minimum(found, others), few - 1)[:few]))
    noise = evidence.spread(found, value)
    below = deviation(noise, evidence.largest * max(0.0, value - lowest), q)
    above = deviation(noise, evidence.largest * max(0.0, highest - value), q) if math.isfinite(highest) else math.inf
    return value - below, value + above


def _other_outcome(values: NDArray[Any], outcome: NDArray[Any]) -> NDArray[Any]:
    """The other outcome, or the most likely class but the true one."""
    if values.ndim == 1:
        return 1 - outcome
    rows = np.arange(outcome.size)
    rest = values.copy()
    rest[rows, outcome] = -np.inf
    return rest.argmax(axis=1)


def score_ends(evidence: Evidence, value: float, tail: float) -> Ends:
    """Both ends of the mean of scores, of which any in [0, 1] may have been drawn."""
    low, high = _mean(np.asarray, 1.0, evidence, value, tail, {})
    return max(0.0, low), min(1.0, high)


def _uncertainty(evidence: Evidence, value: float, tail: float, settings: Mapping[str, Any]) -> Ends:
    table = evidence.bins(settings)
    rate = float(table.correct_sum.sum()) / table.total
    low, high = share_ends(evidence, evidence.arrays[1], rate, tail)
    ends = [low * (1 - low), high * (1 - high)]
    return min(ends), 0.25 if low <= 0.5 <= high else max(ends)


def _auroc(evidence: Evidence, value: float, tail: float, _: Mapping[str, Any]) -> Ends:
    """The variance of DeLong, DeLong and Clarke-Pearson (1988), with the reach of one sample of the rarer outcome."""
    z, c = evidence.arrays[0], evidence.arrays[1].view(np.bool_)
    w = np.ones(z.size) if evidence.weight is None else evidence.weight
    noise, reach = 0.0, 0.0
    for own, other, sign in ((c, ~c, 1.0), (~c, c, -1.0)):
        order = np.argsort(z[other], kind="stable")
        rest, heavy = z[other][order], w[own]
        up_to = np.concatenate(([0.0], np.cumsum(w[other][order])))
        mine = np.sort(z[own], kind="stable") if evidence.weight is None else z[own]
        below = up_to[np.searchsorted(rest, mine)] + up_to[np.searchsorted(rest, mine, side="right")]
        place = 0.5 + sign * (below / (2 * up_to[-1]) - 0.5)
        crowding = float((heavy**2).sum() / heavy.sum() ** 2)
        lost = 1 / (1 - crowding) if crowding < 1 - 1e-12 else 1.0
        noise += lost * float(np.dot(heavy**2, (place - value) ** 2)) / float(heavy.sum()) ** 2
        reach = max(reach, float(heavy.max() / heavy.sum()))
    q = quantile(tail)
    return value - deviation(noise, reach * value, q), value + deviation(noise, reach * (1 - value), q)


# ----------------------------------------------------------------------------------------------------------------- bins


@dataclass(frozen=True, eq=False)
class BinNoise:
    """Shares and gaps of the bins that hold samples, and how they vary.

    ``noise`` is the variance of share times gap, seen or expected of calibrated scores, whichever is larger; ``seen``
    and ``own`` are what was seen, about zero and about the gap of the bin. ``size`` and ``rarer`` are how many samples,
    and how many of the rarer outcome, a bin has.
    """

    share: Floats
    gap: Floats
    noise: Floats
    seen: Floats
    own: Floats
    size: Floats
    rarer: Floats

    @classmethod
    def of(cls, evidence: Evidence, table: BinTable) -> BinNoise:
        used = table.weight > 0
        weight = table.weight[used]
        share, size = weight / table.total, weight**2 / table.squared_weight[used]
        rate, z = table.correct_sum[used] / weight, np.clip(table.confidence_sum[used] / weight, 0, 1)
        gap = rate - z
        if evidence.weight is None or evidence.counts:
            # Confidences between two edges vary by at most the product of their mean's distances (Bhatia and Davis).
            within = np.maximum((table.edges[1:][used] - z) * (z - table.edges[:-1][used]), 0.0)
            each = share / table.total
            own, seen, calm = each * (rate * (1 - rate) + within), each * gap**2, each * z * (1 - z)
            seen += own
        else:
            where, (scores, outcomes) = bin_indices(evidence.arrays[0], table.edges, table.closed), evidence.scores
            residual, heavy = outcomes - scores, (evidence.weight / table.total) ** 2
            centred = residual - (table.gap_sum / np.where(used, table.weight, 1))[where]
            own, seen, calm = (
                np.bincount(where, heavy * squares, used.size)[used].astype(np.float64)
                for squares in (centred**2, residual**2, scores * (1 - scores))
            )
        return cls(share, gap, np.maximum(seen, calm), seen, own, size, np.minimum(rate, 1 - rate) * size)

    @cached_property
    def certain(self) -> NDArray[np.bool_]:
        """Which gaps have their sign for certain: their noise adds with its sign, not with its size."""
        return np.abs(self.share * self.gap) > CERTAIN * np.sqrt(self.noise)

    def shown_signs(self, tail: float) -> Floats | None:
        """The sign of each bin's gap, or of the nearest clear one's; None if no bin is clear.

        T = Σ |S_b| is at least Σ s_b S_b for any signs s, so an ordinary mean, without a norm's bias, bounds it from
        below; it reaches T where the signs are right. If all gaps are 0, no bin is clear in four draws of five or, if
        there are few bins, as often as the interval holds.
        """
        clear = np.abs(self.share * self.gap) > quantile(min(_UNCLEAR / self.gap.size, tail / 2)) * np.sqrt(self.noise)
        if not (places := np.flatnonzero(clear & (self.size >= _FEW))).size:
            return None
        nearest = np.searchsorted((places[1:] + places[:-1]) / 2, np.arange(self.gap.size))
        return np.sign(self.gap[places[nearest]])

    @cached_property
    def expected(self) -> float:
        """Mean of Σ |noise| over the other bins; where few samples are, it is at most the standard deviation."""
        factor = np.where(self.size >= _FEW, _HALF, 1.0)
        return float((factor * np.sqrt(self.noise))[~self.certain].sum())

    @cached_property
    def lengthening(self) -> Floats:
        """At least, in the mean, what noise adds to the size of a bin's gap: E|N + x| - |x| for its gap x.

        Here x and N are in units of the noise. What is added is 0.80 at x = 0 and at most 0.80 exp(-x²/2) elsewhere.
        Of N + x alone one can see 2/√π exp(-(N + x)²/2), whose mean is 0.80 exp(-x²/4). A bin of few samples takes the
        whole standard deviation, as E|N| is at most that.
        """
        sd = np.sqrt(self.noise)
        far = np.divide(self.share * self.gap, sd, out=np.zeros_like(sd), where=sd > 0)
        return sd * np.where(self.size >= _FEW, 2 / math.sqrt(math.pi) * np.exp(-(far**2) / 2), 1.0)

    def norm_quantile(self, q: float, more: float = 0.0) -> float:
        """What Σ |noise| - lengthening exceeds with the tail probability of q, if gaps that are not certain are 0.

        By the expansion of Cornish and Fisher (1937), at 2.5 % within 3 % for a single bin, the worst; ``more`` is
        further variance.
        """
        half = ~self.certain & (self.size >= _FEW)
        free = self.noise[half]
        variance = more + float(self.noise[~half].sum()) + _CALM[0] * float(free.sum())
        if variance <= 0:
            return 0.0
        skew = _CALM[1] * float(((free / variance) ** 1.5).sum())
        peak = _CALM[2] * float(((free / variance) ** 2).sum())
        moved = q + (q**2 - 1) * skew / 6 + (q**3 - 3 * q) * peak / 24 - (2 * q**3 - 5 * q) * skew**2 / 36
        return math.sqrt(variance) * moved

    def least_lengthening(self, total: float) -> Ends:
        """What noise adds to Σ |S_b|, at least, if that is the total in the population; and the variance it then lacks.

        A bin adds its standard deviation times E|N + x| - x, which is convex in x: for one total the sum is least where
        all x are equal. There a bin varies by 1 + x² - (E|N + x|)² of its noise. Bins with few of an outcome add 0.
        """
        known = self.seen[self.rarer >= _FEW]
        if (sd := float(np.sqrt(known).sum())) <= 0:
            return 0.0, 0.0
        x = total / sd
        added = 2 * (math.exp(-x * x / 2) / math.sqrt(2 * math.pi) - x * math.erfc(x / math.sqrt(2)) / 2)
        return sd * added, max((x + added) ** 2 - x * x, 0.0) * float(known.sum())


def _ece_of(evidence: Evidence, table: BinTable, value: float, tail: float) -> Ends:
    return bin_ends(BinNoise.of(evidence, table), value, tail, _ratio_noise(evidence, 1.0), evidence.largest)


def bin_ends(found: BinNoise, value: float, tail: float, ratio: float = 0.0, reach: float = 0.0) -> Ends:
    """Both ends for the sum of sizes of gaps; ``ratio`` times its square is further variance.

    The lower end is the higher of two: by the norm of the noise, and by the signs that clear bins show. Each of them is
    too high with the tail probability. Where they differ, because some bins are not clear, the upper end is far, so
    that both tails cover what the two lower ends miss; where all bins are clear, they are one.

    The upper end is the largest total T that the estimate would not reach so rarely: value + q sd where noise adds
    nothing to the gaps, and less by the least that it adds where all gaps of that T may be within their noise.
    """
    q, seen = quantile(tail), float(found.seen.sum())

    def below(mean: float) -> float:
        """How far the mean of signed gaps may lie too high: as far as calibrated scores, or what was seen, allow.

        What calibrated scores vary by is not less where the mean is larger.
        """
        calm = q * math.sqrt(float(found.noise.sum()) + max(ratio, 0.0) * mean**2)
        return min(calm, deviation(seen + ratio * mean**2, reach, q))

    middle = max(value - float(found.lengthening.sum()), 0.0)
    lower = middle - max(below(middle), found.norm_quantile(q, max(ratio * middle**2, 0.0)))
    if (signs := found.shown_signs(tail)) is not None:
        mean = float(np.dot(signs, found.share * found.gap))
        lower = max(lower, mean - below(mean))
    # Which bins are clear depends on the level: a higher one must not have a higher end.
    if (lower_level := next((each for each in _LADDER if each > tail), None)) is not None:
        lower = min(lower, bin_ends(found, value, lower_level, ratio, reach)[0])
    seen += ratio * value**2
    upper = value + deviation(seen, reach, q)
    for _ in range(50 if q >= 1 else 0):  # from above, until it does not move; the noise of low levels is too skewed
        added, lacking = found.least_lengthening(upper)
        last, upper = upper, value - added + deviation(seen - lacking, reach, q)
        if last - upper <= 1e-9 * last:
            break
    return lower, upper


def _ratio_noise(evidence: Evidence, value: float) -> float:
    """What is known of the mean takes from the noise; weights, by whose sum everything is divided, add to it."""
    weighted = evidence.weight is not None and not evidence.counts
    return value**2 * evidence.crowding * (1 if weighted else -1)


def _ece(evidence: Evidence, value: float, tail: float, settings: Mapping[str, Any], *, mass: bool = False) -> Ends:
    """With equal-mass bins about those that were found: their edges vary less than their gaps do."""
    return _ece_of(evidence, evidence.bins(settings, mass=mass), value, tail)


def _sweep(evidence: Evidence, value: float, tail: float, _: Mapping[str, Any]) -> Ends:
    from certcal.metrics.binned import sweep_table

    z, c = evidence.arrays[:2]
    return _ece_of(evidence, sweep_table(z, c, evidence.weight), value, tail)


def _largest_gap(evidence: Evidence, _: float, tail: float, settings: Mapping[str, Any]) -> Ends:
    """Nothing is known of a bin without samples, so that with one the upper end is 1.

    Else: the population's largest gap is in one bin, which does not depend on the samples. Its own interval covers it,
    so the largest upper end does. For the lower end all must hold at once.
    """
    table = evidence.bins(settings)
    used = table.weight > 0
    weight = table.weight[used]
    rate, z = table.correct_sum[used] / weight, table.confidence_sum[used] / weight
    size = weight / (evidence.largest * evidence.total)  # as many as there would be, were each as heavy as the heaviest
    within = np.sqrt(np.maximum((table.edges[1:][used] - z) * (z - table.edges[:-1][used]), 0.0) / size)

    def gaps(each: float) -> tuple[Any, Any]:
        low, high = rate_ends(rate, size, each)
        slack = quantile(each) * within
        return low - z - slack, high - z + slack

    low, high = gaps(tail)
    first, last = gaps(tail / weight.size)
    upper = float(np.maximum(np.abs(low), np.abs(high)).max()) if used.all() else 1.0
    return float(np.maximum(first, -last).max()), upper


def _lp(evidence: Evidence, value: float, tail: float, settings: Mapping[str, Any]) -> Ends:
    order = float(settings.get("p", 2.0))
    if order == 1:
        return _ece(evidence, value, tail, settings)
    if order == 2:
        return _root_mean_square(evidence, value, tail, settings)
    if math.isinf(order):
        return _largest_gap(evidence, value, tail, settings)
    # Norms with respect to a probability rise with their order; and |gap|^p <= gap² for p >= 2.
    from certcal.metrics.binned import ece_of

    mean = _ece(evidence, ece_of(evidence.bins(settings)), tail, settings)
    return mean[0], _root_mean_square(evidence, value, tail, settings)[1] ** min(1.0, 2 / order)


def squares_ends(
    share: Floats, gap: Floats, variance: Ends | tuple[Floats, Floats], each: Floats, crowding: float, tail: float
) -> Ends:
    """Both ends for Σ share gap² from gaps with these variances (those sure to be large enough, and unbiased ones).

    The estimate exceeds the population value by 2 Σ share gap h + Σ share h² with h the error of the gap. The first is
    normal, the second has a mean, which is subtracted, and a variance. For the upper end the variance of the first
    is that of a hypothetical value: 4 T² times the largest variance of an outcome, ``each``.
    """
    q = quantile(tail)
    high, low = variance
    value = float((share * gap**2).sum())
    spread = max(0.0, float((share * gap**4).sum()) - value**2) * crowding
    square = 2 * float((share**2 * high**2).sum())
    total = 4 * float((share**2 * gap**2 * high).sum()) + spread + square
    skew = 8 * float(((share * high / math.sqrt(total)) ** 3).sum()) if total > 0 else 0.0
    below = float((share * high).sum()) + math.sqrt(total) * (q + max(q * q - 1, 0.0) * skew / 6)
    base = max(0.0, value - float((share * low).sum()))
    widest = float(np.max(each)) * crowding
    upper = 4.0
    for _ in range(100):
        root = math.sqrt(upper)
        upper = base + q * math.sqrt(4 * upper * (widest + root * crowding) + spread + square)
    return value - below, upper


def _mean_square(evidence: Evidence, _: float, tail: float, settings: Mapping[str, Any]) -> Ends:
    found = BinNoise.of(evidence, evidence.bins(settings))
    inverse = 1 / found.share**2
    each = np.minimum(found.noise / found.share / evidence.crowding, 0.3)
    lower, upper = squares_ends(
        found.share, found.gap, (found.noise * inverse, found.own * inverse), each, evidence.crowding, tail
    )
    return max(0.0, lower), upper


def _root_mean_square(evidence: Evidence, _: float, tail: float, settings: Mapping[str, Any]) -> Ends:
    lower, upper = _mean_square(evidence, _, tail, settings)
    return math.sqrt(lower), math.sqrt(upper)


def _resolution(evidence: Evidence, _: float, tail: float, settings: Mapping[str, Any]) -> Ends:
    """As the mean square, of the distances of the bins' rates from the whole rate."""
    table = evidence.bins(settings)
    used = table.weight > 0
    weight = table.weight[used]
    rate, size = table.correct_sum[used] / weight, weight**2 / table.squared_weight[used]
    smooth = (rate * size + 2) / (size + 4)  # Agresti and Coull (1998): no outcome seen is not no outcome
    gap, each = rate - float(table.correct_sum.sum()) / table.total, smooth * (1 - smooth)
    return squares_ends(
        weight / table.total, gap, (each / size, rate * (1 - rate) / size), each, evidence.crowding, tail
    )


def _within(evidence: Evidence, value: float, tail: float, settings: Mapping[str, Any]) -> Ends:
    """A mean of (z - mean z)² - 2 (z - mean z) (c - mean c), the means being those of the bin."""
    table = evidence.bins(settings)
    where = bin_indices(evidence.arrays[0], table.edges, table.closed)
    z, c = evidence.scores
    divisor = np.where(table.weight > 0, table.weight, 1)
    off, out = z - (table.confidence_sum / divisor)[where], c - (table.correct_sum / divisor)[where]
    noise = evidence.noise((off * (off - 2 * out) - value) ** 2)
    calm = evidence.noise(4 * off**2 * z * (1 - z))
    lost = min(0.5, float(np.count_nonzero(table.weight)) * evidence.crowding)
    width = float(np.diff(table.edges).max())
    x = deviation(max(noise, calm) / (1 - lost) ** 2, evidence.largest * width, quantile(tail)) + lost * abs(value)
    return value - x, value + x


def _harmonic(evidence: Evidence, _: float, tail: float, settings: Mapping[str, Any]) -> Ends:
    """The score rises with the accuracy and falls with the error, each of which has half of the failure probability."""
    from certcal.metrics.binned import ece_of
    from certcal.metrics.scores import accuracy_of, harmonic_score

    table = evidence.bins(settings)
    accuracy, error, beta = accuracy_of(table), ece_of(table), float(settings.get("beta", 1.0))
    low, high = share_ends(evidence, evidence.arrays[1], accuracy, tail / 2)
    least, most = _ece_of(evidence, table, error, tail / 2)
    return harmonic_score(low, min(1.0, max(most, 0.0)), beta), harmonic_score(high, max(0.0, least), beta)


# ----------------------------------------------------------------------------------------------------- classes at once


def _classwise(
    evidence: Evidence, value: float, tail: float, settings: Mapping[str, Any], *, mass: bool = False
) -> Ends:
    """A row counts in one bin of every class: the noise of the bins is bounded as a whole (Borell)."""
    p, y = evidence.arrays
    classes, q = p.shape[1], quantile(tail)
    rows = np.arange(y.size)
    missed = 1 - p[rows, y].astype(np.float64)
    calm = np.zeros(y.size)
    spread = 0.0
    for k in range(classes):
        column = np.minimum(np.ascontiguousarray(p[:, k]), 1)
        own = Evidence((column, (y == k).view(np.uint8)), evidence.weight)
        found = BinNoise.of(own, own.bins(settings, mass=mass))
        spread += found.expected
        exact = column.astype(np.float64)
        calm += exact * (1 - exact) ** 2
    # Σ_k |1{y = k} - p_k| = 2 (1 - p_y)
    seen, expected = (evidence.noise(each) * (2 / classes) ** 2 for each in (missed**2, calm))
    ratio = _ratio_noise(evidence, value)
    below = spread / classes + q * math.sqrt(max(seen, expected) + max(ratio, 0.0))
    above = deviation(seen + ratio, evidence.largest * 2 / classes, q)
    return value - below, value + above


# --------------------------------------------------------------------------------------------------------- without bins


def _norm(evidence: Evidence, value: float, tail: float, lower_quantile: float) -> Ends:
    """The upper end of every norm, and a lower end from a quantile of the noise in units of its standard deviation."""
    seen, calm = evidence.residual_noise
    ratio = _ratio_noise(evidence, value)
    below = lower_quantile * math.sqrt(max(seen, calm) + max(ratio, 0.0))
    return value - below, value + deviation(seen + ratio, evidence.largest, quantile(tail))


def _sup(evidence: Evidence, value: float, tail: float, _: Mapping[str, Any]) -> Ends:
    """P(sup |W| > x) <= 4 P(W(1) > x) for Brownian motion W, by reflection."""
    return _norm(evidence, value, tail, quantile(tail / 4))


def _range(evidence: Evidence, value: float, tail: float, _: Mapping[str, Any]) -> Ends:
    """P(sup W - inf W > x) <= 8 P(W(1) > x) for Brownian motion W (Feller 1951)."""
    return _norm(evidence, value, tail, quantile(tail / 8))


def _hilbert(evidence: Evidence, value: float, tail: float, _: Mapping[str, Any]) -> Ends:
    """P(Σ λ χ² > x) <= P(χ² > x) for Σ λ = 1 and x >= 1.54 (Székely and Bakirov 2003)."""
    return _norm(evidence, value, tail, max(quantile(tail / 2), 1.24))


class KernelNoise:
    """E ∫ |Σ w h K_σ(t, z)| dt for the sampling noise h is at most ∫ √(Σ w² r² K_σ²), with the residuals r.

    The square of the reflected kernel is a reflected kernel of width σ/√2 times a constant and, near 0 and 1, the
    product of the kernel and its mirror image. Residuals may be larger by ``beyond``.
    """

    def __init__(self, evidence: Evidence, beyond: float = 0.0) -> None:
        z, c = evidence.scores
        seen, calm = ((each + beyond) ** 2 for each in (np.abs(c - z), np.sqrt(z * (1 - z))))
        self.seen, self.calm = evidence.noise(seen), evidence.noise(calm)
        heavy = 1.0 if evidence.weight is None else evidence.weight if evidence.counts else evidence.weight**2
        where = np.minimum((z * _CELLS).astype(np.int64), _CELLS - 1)
        squares = seen if self.seen >= self.calm else calm
        self.mass = np.bincount(where, heavy * squares, _CELLS) / evidence.total**2
        self.spectrum = np.fft.rfft(np.concatenate((self.mass, self.mass[::-1])))

    def expected(self, sigma: float) -> float:
        t, width = (np.arange(_CELLS) + 0.5) / _CELLS, max(sigma / math.sqrt(2), 1 / _CELLS)
        damped = self.spectrum * np.exp(-0.5 * (np.pi * np.arange(_CELLS + 1) * width) ** 2)  # as heat is
        smooth = np.maximum(np.fft.irfft(damped)[:_CELLS], 0.0) * _CELLS / (2 * sigma * math.sqrt(math.pi))
        for distance in (t, 1 - t):
            mirrored = float(np.dot(self.mass, np.exp(-((distance / sigma) ** 2)))) / (sigma * math.sqrt(math.pi))
            smooth += mirrored * np.exp(-0.5 * (distance / width) ** 2) / (width * math.sqrt(2 * math.pi))
        return float(np.sqrt(smooth).mean())


def _kernel_ends(evidence: Evidence, value: float, tail: float, noise: KernelNoise, sigma: float, reach: float) -> Ends:
    q, ratio = quantile(tail), _ratio_noise(evidence, value)
    below = noise.expected(sigma) + q * math.sqrt(max(noise.seen, noise.calm) + max(ratio, 0.0))
    return value - below, value + deviation(noise.seen + ratio, evidence.largest * reach, q)


def _smooth(evidence: Evidence, value: float, tail: float, settings: Mapping[str, Any]) -> Ends:
    """With its own width, the error T is where N(σ) = σ, and N does not increase: if N(σ) >= v, T >= min(σ, v)."""
    sigma = settings.get("bandwidth") or max(value, 1 / _CELLS)
    return _kernel_ends(evidence, value, tail, KernelNoise(evidence), sigma, 1.0)


def _density(evidence: Evidence, value: float, tail: float, settings: Mapping[str, Any]) -> Ends:
    """At the bandwidth of these samples. The residual t - c at t differs from z - c by the kernel's width at most."""
    from certcal.metrics.kernel import SMALLEST_SPREAD

    z, w = evidence.scores[0], evidence.weight
    spread = math.sqrt(float(np.average((z - np.average(z, weights=w)) ** 2, weights=w)))
    h = settings.get("bandwidth") or max(1.06 * spread * evidence.crowding**0.2, SMALLEST_SPREAD)
    beyond = _HALF * min(h, 1.0)
    return _kernel_ends(evidence, value, tail, KernelNoise(evidence, beyond), h, 1 + beyond)


# ------------------------------------------------------------------------------------------------------------ the rules

UNCERTAINTY = IntervalRule("Clopper-Pearson", _uncertainty, most=0.25)
AUROC = IntervalRule("DeLong", _auroc)
ECE = IntervalRule("norm", _ece)
MASS_ECE = IntervalRule("norm", partial(_ece, mass=True))
SWEEP_ECE = IntervalRule("norm", _sweep)
LARGEST_GAP = IntervalRule("Clopper-Pearson", _largest_gap)
LP = IntervalRule("norm", _lp)
RMS = IntervalRule("norm", _root_mean_square)
RELIABILITY = IntervalRule("norm", _mean_square)
RESOLUTION = IntervalRule("norm", _resolution, most=0.25)
WITHIN = IntervalRule("score", _within, least=-1.0)
HARMONIC = IntervalRule("joint", _harmonic)
CLASSWISE = IntervalRule("norm", _classwise)
CLASSWISE_MASS = IntervalRule("norm", partial(_classwise, mass=True))
SUP = IntervalRule("norm", _sup)
RANGE = IntervalRule("norm", _range)
HILBERT = IntervalRule("norm", _hilbert)
SMOOTH = IntervalRule("norm", _smooth)
DENSITY = IntervalRule("norm", _density)
