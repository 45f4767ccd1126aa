"""Bound on the binned calibration error of the population: a guarantee for the number that is usually reported."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._assumptions import INDEPENDENT, NOT_USED_BEFORE
from certcal._checks import InputError, choice, failure_probability, score_pair
from certcal.binning import CLOSED, BinSums, edges_for
from certcal.bounds._shared import (
    Floats,
    check_seed,
    fold_of_each,
    upper_bound,
)
from certcal.claims import ORDER, Bound, move_outward

NAME = "binned calibration error of the population"

_ASSUMPTIONS = (INDEPENDENT, NOT_USED_BEFORE, "the edges were not chosen from them")

# Cells that the bins are cut into, altogether. Within a cell a logarithm is replaced by its chord, which changes the
# logarithm of the capital by about ln(1/delta) · (width of a cell / standard deviation)² / 4: some 1e-5.
_CELLS = 1024

# Standard deviations of correctness minus confidence for which a bet is placed, and the largest bet.
_DEVIATIONS = 0.5 ** (np.arange(7) / 2)
_LARGEST_BET = 0.9


def binned(
    confidence: Any, correct: Any, bins: int = 15, delta: float = 0.05, *, edges: Any = None, closed: str = "left"
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

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> print(binned(z, rng.random(z.size) < z**2).text)  # the population's is 0.1667
    0.1871
    """
    z, c, given, settings, delta = _checked(confidence, correct, bins, delta, edges, closed)
    cells, owner, gaps = _cells(z, c, given, closed)
    observed = float(np.abs(gaps).sum()) / z.size
    limit = _limit(cells, owner, np.zeros(gaps.size, np.int8), delta, z.size)
    terms = {"error on the samples": observed, "deviation": max(0.0, limit - observed)}
    return upper_bound(NAME, terms, delta, z.size, _ASSUMPTIONS, settings)


def binned_lower(
    confidence: Any,
    correct: Any,
    bins: int = 15,
    delta: float = 0.05,
    *,
    edges: Any = None,
    closed: str = "left",
    seed: int = 0,
) -> Bound:
    """Lower bound on the binned calibration error of the population, hence on its true calibration error.

    What is random: n independent draws of (z, c), in the order in which they are given. What is claimed: with
    probability at least 1 - delta over them, for every ``seed`` that was not chosen by looking at the result,
    Σ_m |E[(c - z) 1(z in bin m)]| is at least ``value``. The true error E|z - P(c | z)| is never below the binned one,
    so this is a lower bound for it too, without any assumption on how accuracy depends on confidence.

    Why: the seed splits the places of the samples into two halves, which are then independent. Signs σ that are chosen
    on one half give E[σ(z)(c - z)], and no signs bring that above the error. Its lower limit from the other half is the
    bet of :func:`binned` with the signs reversed and known. Samples in an order that depends on confidence or
    correctness are split in one fixed way, and the bound may then fail more often: of 82 samples of confidence 0.6 from
    a calibrated population, sorted by correctness, seed 0 claims an error with probability 0.0165 at delta = 0.01.
    Shuffle such samples first, or draw the seed at random: the claim is then over that choice too.

    Parameters
    ----------
    confidence, correct, bins, delta, edges, closed
        As for :func:`binned`.
    seed
        Seed of the split.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> print(binned_lower(z, rng.random(z.size) < z**2).text)  # the population's is 0.1667
    0.1650
    """
    z, c, given, settings, delta = _checked(confidence, correct, bins, delta, edges, closed)
    settings["seed"] = seed = check_seed(seed)
    if z.size < 2:
        raise InputError("confidence has 1 entry; pass at least 2 samples, some to choose signs and some to test them")
    tested = fold_of_each(z.size, 2, seed) == 1
    _, _, chosen_on = _cells(z[~tested], c[~tested], given, closed)
    signs = np.where(chosen_on > 0, 1, -1).astype(np.int8)
    cells, owner, gaps = _cells(z[tested], c[tested], given, closed)
    n = int(np.count_nonzero(tested))
    observed = float((signs * gaps).sum()) / n
    limit = -_limit(cells, owner, -signs, delta, n)
    terms = {"error of the tested half": observed, "deviation": limit - observed}
    if limit < 0:
        settings["sum of the terms"] = "raised to 0"
    value, assumptions = max(0.0, move_outward(limit, "lower")), (*_ASSUMPTIONS, ORDER)
    return Bound(NAME, value, "lower", delta, z.size, assumptions, terms, settings)


def _checked(
    confidence: Any, correct: Any, bins: int, delta: Any, edges: Any, closed: str
) -> tuple[NDArray[Any], NDArray[np.uint8], Floats, dict[str, Any], float]:
    """Checked samples, edges, settings to be recorded, and level."""
    level = failure_probability(delta, "delta")
    z, c, _ = score_pair(confidence, correct)
    given = edges_for(bins, edges)
    settings: dict[str, Any] = {"bins": given.size - 1, "closed": choice(closed, CLOSED, "closed")}
    return z, c, given, settings if edges is None else {**settings, "edges": "given"}, level


def _cells(
    z: NDArray[Any], c: NDArray[np.uint8], edges: Floats, closed: str
) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Cells that hold samples (see the kernel), the bin of each, and Σ (c - z) of every bin."""
    from certcal._kernels.bins import SCALE_BITS

    bins = edges.size - 1
    parts = max(1, _CELLS // bins)
    fine = np.interp(np.arange(bins * parts + 1) / parts, np.arange(bins + 1), edges)
    fine[::parts] = edges
    state = BinSums(fine, closed)
    state.add(z, c)
    number = state.whole[:, :, 0]
    total = np.ldexp(state.whole[:, :, 1] * 2.0**32 + state.whole[:, :, 2], -SCALE_BITS)
    gaps = (number[:, 1].astype(np.float64) - total.sum(axis=1)).reshape(bins, parts).sum(axis=1)
    cell, hit = np.nonzero(number)
    ends = fine.astype(z.dtype).astype(np.float64)
    low, high = ends[cell], ends[cell + 1]
    count = number[cell, hit].astype(np.float64)
    share = np.divide(total[cell, hit] / count - low, high - low, out=np.zeros(cell.size), where=high > low)
    return np.column_stack((count, hit.astype(np.float64), low, high, np.clip(share, 0, 1))), cell // parts, gaps


def _limit(cells: Floats, owner: NDArray[np.int64], signs: NDArray[np.int8], delta: float, n: int) -> float:
    """Upper limit for the expectation of sign times gap, rounded up."""
    from certcal._kernels.capital import largest_mean

    log = math.log(1 / delta)
    bets = np.minimum(np.sqrt(2 * log / n) / _DEVIATIONS, _LARGEST_BET)
    # The logarithms of the n gains are below 2.4 in size where it matters and are added over the cells: each addition
    # loses a 2^-53rd, and each logarithm a few.
    rounding = 1e-9 + n * (len(cells) + 10) * 2.0**-51
    return float(largest_mean(cells, owner, signs, bets, log + rounding))
