"""Bound on the binned calibration error of the population: a guarantee for the number that is usually reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.assumptions import INDEPENDENT, NOT_USED_BEFORE
from certcal._base.checks import InputError, choice, failure_probability, positive, score_pair
from certcal.binning import CLOSED, BinSums, bin_indices, edges_for, sums
from certcal.bounds._bets import SMALL_DEVIATIONS, BetPoints, mean_limit, spread, stake_nodes, upper_limit
from certcal.bounds._shared import FOLDS, Floats, check_seed, upper_bound
from certcal.bounds.concentration import DEVIATIONS
from certcal.claims import ORDER, Bound, TwoSidedBound, move_outward

NAME = "binned calibration error of the population"
WEIGHTED = "binned calibration error of the weighted population"

_ASSUMPTIONS = (INDEPENDENT, NOT_USED_BEFORE, "the edges were not chosen from them")

# Cells that the bins are cut into, altogether. Within a cell a logarithm is replaced by its chord, which changes the
# logarithm of the capital by about ln(1/delta) · (width of a cell / standard deviation)² / 4: some 1e-5.
_CELLS = 1024

# Orders whose capitals are averaged, and samples up to which they are.
_ORDERS, _FEW = 4, 1 << 16


def binned(
    confidence: Any,
    correct: Any,
    bins: int = 15,
    delta: float = 0.05,
    *,
    edges: Any = None,
    closed: str = "left",
    sample_weight: Any = None,
    largest_weight: float | None = None,
) -> Bound:
    """Upper bound on Σ_m |E[(c - z) 1(z in bin m)]|, the binned calibration error of the population at fixed edges.

    What is random: n independent draws of (z, c). What is claimed: with probability at least 1 - delta over them, the
    binned calibration error of the population is at most ``value``. Nothing is assumed about how accuracy depends on
    confidence; but the true error E|z - P(c | z)| may be larger than the binned one.

    Why. The population's error is E[σ(z) (c - z)] for the signs σ of its bins: they are fixed, though unknown. For bets
    θ chosen in advance and X = σ(z)(c - z) in [-1, 1], the product of 1 - θ + θ(1 - X_i)/(1 - m) over the draws has
    expectation 1 when m is E X, and so has the average over several bets: it reaches 1/delta with probability at most
    delta (Markov). Bets depend on n and delta only and are the same for every draw, so there is no order in which they
    are placed, and nothing that would have to be predictable. For each bet and m the product is smallest for signs that
    can be found bin by bin, so the average of the smallest products reaches 1/delta even more rarely, whatever σ is: no
    union over the 2^M patterns. It grows with m; the value is where it reaches 1/delta. (Within 1024 cells the
    logarithm of a product is replaced by its chord, which is smaller.)

    What is given away: where one bin is a coin, 8/10 of the deviation would do at delta = 0.05 and 7/10 would not; at
    1e-12, 9/10 would not. It is the price of Markov's inequality and of placing seven bets instead of the best one.
    Besides, the error on the samples is itself too large on average, by about 0.8 √(p(1 - p) · bins/n).

    With weights w it bounds Σ_m |E[w (c - z) 1(z in bin m)]| / E[w], the error of the population in which everybody
    counts w times. Random are then draws of (z, c, w), and the weights must have an upper limit W: the gain is
    1 + θ (w/W)(m - X)/(1 - m), whose expectation is 1 where m is E[wX]/E[w]. Few heavy weights make it wide.

    Parameters
    ----------
    confidence
        Confidence of each prediction, in [0, 1].
    correct
        Whether each prediction is correct (binary task: the outcome), 0 or 1.
    bins
        Number of equal-width bins.
    delta
        Probability with which the bound may fail.
    edges
        Your own edges from 0 to 1 instead of equal-width ones; they must not have been chosen from these samples.
    closed
        "left" for bins [a, b) with the last closed, "right" for (a, b] with the first closed.
    sample_weight
        Weights >= 0, such as importance weights or inverse sampling probabilities; or None.
    largest_weight
        A number that no weight in the population exceeds. Without it the largest one seen is taken, which is then an
        assumption.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> print(binned(z, rng.random(z.size) < z**2).text)  # the population's is 0.1667
    0.1871
    """
    z, c, w = score_pair(confidence, correct, sample_weight)
    return binned_of(z, c, delta, w=w, bins=bins, edges=edges, closed=closed, largest_weight=largest_weight)


def binned_of(z: NDArray[Any], c: NDArray[np.uint8], delta: float, **options: Any) -> Bound:
    asked = binned_question(z, c, delta, **options)
    points, gaps, total = asked.bet_points()
    n, observed = asked.z.size, float(np.abs(gaps).sum()) / total
    limit = upper_limit(points, asked.delta, n, asked.deviations)
    terms = {"error on the samples": observed, "deviation": max(0.0, limit - observed)}
    return upper_bound(asked.name, terms, asked.delta, n, asked.assumptions, asked.settings)


def binned_lower(
    confidence: Any,
    correct: Any,
    bins: int = 15,
    delta: float = 0.05,
    *,
    edges: Any = None,
    closed: str = "left",
    seed: int = 0,
    sample_weight: Any = None,
    largest_weight: float | None = None,
) -> Bound:
    """Lower bound on the binned calibration error of the population, hence on its true calibration error.

    What is random: n independent draws of (z, c), in the order in which they are given. What is claimed: with
    probability at least 1 - delta over them, for every ``seed`` that was not chosen by looking at the result,
    Σ_m |E[(c - z) 1(z in bin m)]| is at least ``value``. The true error E|z - P(c | z)| is never below the binned one,
    so this is a lower bound for it too, without any assumption on how accuracy depends on confidence.

    Why. The seed puts the samples into a random order. The sign σ_i of a sample's bin is chosen from the samples before
    it, by the sum of c - z in the bin so far. Given those, σ_i is fixed for every bin, and no signs bring
    E[σ_i(z)(c - z)] above the error. So for X_i = σ_i(z_i)(c_i - z_i), bets θ chosen in advance and m the error, each
    gain 1 + θ(X_i - m)/(1 + m) is not negative and is expected to be at most 1 given the past; so is the product, at
    any stage and in any order, and so is the average over bets and over four orders (one of more than 65,536 samples):
    it reaches 1/delta with probability at most delta (Markov). It falls with m; the value is the last m where it
    reaches 1/delta. Every sample is tested, and all before it choose its sign. Signs that are wrong make the value
    smaller, never wrong: that is why they may be helped by the bins beside (up to half a standard deviation).

    Independent draws may be put into any order that does not depend on them, so the claim holds for each seed by
    itself. Samples in an order that depends on confidence or correctness are put into one fixed other order, in which
    the past may tell something about what follows. Shuffle such samples first, or draw the seed at random: the claim is
    then over that choice too.

    Parameters
    ----------
    confidence, correct, bins, delta, edges, closed, sample_weight, largest_weight
        As for :func:`binned`.
    seed
        Seed of the orders.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> print(binned_lower(z, rng.random(z.size) < z**2).text)  # the population's is 0.1667
    0.1654
    """
    z, c, w = score_pair(confidence, correct, sample_weight)
    return binned_lower_of(
        z, c, delta, seed=seed, w=w, bins=bins, edges=edges, closed=closed, largest_weight=largest_weight
    )


def binned_lower_of(z: NDArray[Any], c: NDArray[np.uint8], delta: float, *, seed: int = 0, **options: Any) -> Bound:
    asked = binned_question(z, c, delta, **options)
    settings = {**asked.settings, "seed": check_seed(seed)}
    given = asked.z, asked.c, asked.edges, asked.closed
    values = np.stack([gaps_with_past_signs(*given, order, asked.stakes) for order in orders(asked.z.size, seed)])
    observed = float(np.average(values.mean(axis=0), weights=asked.stakes))
    limit = -mean_limit(-values, asked.delta, asked.deviations, asked.stakes)
    terms = {"error with the signs seen before": observed, "deviation": limit - observed}
    if limit < 0:
        settings["sum of the terms"] = "raised to 0"
    value, assumptions = max(0.0, move_outward(limit, "lower")), (*asked.assumptions, ORDER)
    return Bound(asked.name, value, "lower", asked.delta, asked.z.size, assumptions, terms, settings)


def binned_interval(
    confidence: Any, correct: Any, bins: int = 15, delta: float = 0.05, **options: Any
) -> TwoSidedBound:
    """Both bounds on the binned calibration error of the population at one joint level, half of delta for each.

    What is claimed: with probability at least 1 - delta over the draw of the samples, the binned error is at least the
    lower and at most the upper end. Why: either end fails with probability at most delta/2. What else is assumed is
    that of :func:`binned` and :func:`binned_lower`, whose further options are taken.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> print(binned_interval(z, rng.random(z.size) < z**2).text)  # the population's is 0.1667
    0.1644 to 0.1881
    """
    half = failure_probability(delta, "delta") / 2
    seed = options.pop("seed", 0)
    z, c, w = score_pair(confidence, correct, options.pop("sample_weight", None))
    lower = binned_lower_of(z, c, half, seed=seed, w=w, bins=bins, **options)
    return TwoSidedBound(lower, binned_of(z, c, half, w=w, bins=bins, **options))


class _BinnedQuestion(NamedTuple):
    """Checked samples, with the share of the largest weight that each has, and what will be said about the bound."""

    z: NDArray[Any]
    c: NDArray[np.uint8]
    stakes: Floats | None
    edges: Floats
    closed: str
    delta: float
    name: str
    assumptions: tuple[str, ...]
    settings: dict[str, Any]

    @property
    def deviations(self) -> Floats:
        return DEVIATIONS if self.stakes is None else SMALL_DEVIATIONS

    def bet_points(self) -> tuple[BetPoints, Floats, float]:
        """What is bet on, Σ w (c - z) of every bin, and Σ w; w as a share of the largest."""
        z, c, stakes = self.z, self.c, self.stakes
        if stakes is None:
            return *binned_points(z, c, self.edges, self.closed), float(z.size)
        corners = spread(z, c, self.edges, self.closed, stakes, stake_nodes(stakes))
        rows = np.column_stack((corners.number, corners.other, corners.gap, np.zeros(corners.bin.size)))
        gaps = sums(z, c, stakes, self.edges, self.closed).gap_sum
        return BetPoints(rows, corners.bin), gaps, float(stakes.sum())


def orders(n: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Random orders of n samples, of their places in the input: several, or one of many samples."""
    generator = np.random.default_rng([seed, FOLDS])
    for _ in range(_ORDERS if n <= _FEW else 1):
        yield generator.permutation(n)


def gaps_with_past_signs(
    z: NDArray[Any],
    c: NDArray[np.uint8],
    edges: Floats,
    closed: str,
    order: NDArray[np.int64],
    stakes: Floats | None = None,
) -> Floats:
    """σ (c - z) of every sample, with the sign σ that the samples before it in the order give to its bin."""
    from certcal._kernels.capital import signs_so_far

    gaps, up = c - z.astype(np.float64), np.empty(z.size, np.bool_)
    weighted = gaps if stakes is None else gaps * stakes
    signs_so_far(order, bin_indices(z, edges, closed), weighted, edges.size - 1, up)
    return np.where(up, gaps, -gaps)


def binned_question(
    z: NDArray[Any],
    c: NDArray[np.uint8],
    delta: Any,
    *,
    w: Floats | None = None,
    bins: int = 15,
    edges: Any = None,
    closed: str = "left",
    largest_weight: Any = None,
) -> _BinnedQuestion:
    level = failure_probability(delta, "delta")
    given = edges_for(bins, edges)
    settings: dict[str, Any] = {"bins": given.size - 1, "closed": choice(closed, CLOSED, "closed")}
    settings |= {} if edges is None else {"edges": "given"}
    if w is None:
        if largest_weight is not None:
            raise InputError("largest_weight is given without sample_weight; pass the weights or leave it out")
        return _BinnedQuestion(z, c, None, given, closed, level, NAME, _ASSUMPTIONS, settings)
    seen = float(w.max())
    most = seen if largest_weight is None else positive(largest_weight, "largest_weight")
    if most < seen:
        index = int(np.argmax(w))
        raise InputError(f"sample_weight[{index}] is {seen:g}, above largest_weight = {most:g}; pass a larger limit")
    limited = f"no weight in the population exceeds {most:g}{', the largest seen' if largest_weight is None else ''}"
    settings |= {"largest weight": most, "effective samples": round(float(w.sum() ** 2 / np.square(w).sum()))}
    return _BinnedQuestion(z, c, w / most, given, closed, level, WEIGHTED, (*_ASSUMPTIONS, limited), settings)


def binned_points(z: NDArray[Any], c: NDArray[np.uint8], edges: Floats, closed: str) -> tuple[BetPoints, Floats]:
    """Points at the ends of the cells in place of the samples within, and Σ (c - z) of every bin."""
    from certcal._kernels.bins import SCALE_BITS

    bins = edges.size - 1
    parts = max(1, _CELLS // bins)
    fine = fine_edges(edges, parts)
    state = BinSums(fine, closed)
    state.add(z, c)
    number = state.whole[:, :, 0].astype(np.float64)
    total = np.ldexp(state.whole[:, :, 1] * 2.0**32 + state.whole[:, :, 2], -SCALE_BITS)
    gaps = (number[:, 1] - total.sum(axis=1)).reshape(bins, parts).sum(axis=1)
    ends = fine.astype(z.dtype).astype(np.float64)
    low, width = ends[:-1, None], np.diff(ends)[:, None]
    mean = np.divide(total, number, out=np.zeros_like(total), where=number > 0)
    share = np.clip(np.divide(mean - low, width, out=np.zeros_like(mean), where=width > 0), 0, 1)
    count = np.zeros((bins, parts + 1, 2))
    count[:, :-1] += ((1 - share) * number).reshape(bins, parts, 2)
    count[:, 1:] += (share * number).reshape(bins, parts, 2)
    bin, end, hit = np.nonzero(count)
    rows = np.zeros((bin.size, 4))
    rows[:, 0], rows[:, 1], rows[:, 2] = count[bin, end, hit], 1.0, hit - ends[bin * parts + end]
    return BetPoints(rows, bin), gaps


def fine_edges(edges: Floats, parts: int) -> Floats:
    """Edges of cells: every bin cut into so many equal parts."""
    bins = edges.size - 1
    fine = np.interp(np.arange(bins * parts + 1) / parts, np.arange(bins + 1), edges)
    fine[::parts] = edges
    return fine
