"""Bounds on the root mean square of the binned calibration error of the population, from above and from below."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.binning import assign
from certcal.bounds._bets import SMALL_DEVIATIONS, mean_limit
from certcal.bounds._binned import asked_bins, binned_points
from certcal.bounds._shared import Floats, check_seed, fold_of_each, upper_bound
from certcal.bounds.concentration import LARGEST_BET
from certcal.claims import ORDER, Bound, move_outward

NAME = "binned root mean square calibration error of the population"

# Cells that the bins are cut into, altogether; and points whose logarithms are taken at once.
_CELLS = 64
_BLOCK = 1 << 11

# Gaps that are tried are this far apart, relative to their size; the least of them is so many standard errors.
_APART = 0.03
_LEAST = 0.2

# Each bet is this share of the one before.
_NEXT_BET = 0.25


def binned_rms(
    confidence: Any, correct: Any, bins: int = 15, delta: float = 0.05, *, edges: Any = None, closed: str = "left"
) -> Bound:
    """Upper bound on √(Σ_m p_m g_m²), g_m = E[c - z | bin m], p_m = P(bin m), of the population at fixed edges.

    What is random: n independent draws of (z, c). What is claimed: with probability at least 1 - delta over them, the
    root mean square of the binned calibration error is at most ``value``. Nothing is assumed about how accuracy depends
    on confidence. Large gaps of a few samples count for more than in :func:`binned`, whose error is never larger than
    this one; the true root mean square error √E(z - P(c | z))² is never smaller.

    Why. For any vector a of one number per bin, U = 2 a(z)(c - z) - a(z)² has the expectation Σ p_m (g_m² - (g_m -
    a_m)²): that of the true gaps is the square R² of the error. U is at most 1, so for a bet θ in [0, 1) chosen in
    advance the product of 1 + θ(m - U_i)/(1 - m) over the draws is not negative and has expectation 1 at m = E U; so
    has the average over several bets: it reaches 1/delta with probability at most delta (Markov). a is unknown but
    fixed. For each bet and m the product is smallest for numbers a_m that can be found bin by bin: no union over
    vectors, and no weights for rare bins. It grows with m; where it reaches 1/delta is a limit for E U.

    So that the smallest product can be found, the a_m are from a grid: g_m rounded to it differs by at most 3 % of g_m
    or by 1/10 of a standard error 1/√n, so E U is at least (1 - 0.03²) R² - (0.1/√n)². And samples are replaced by the
    ends of the cells they are in, where the logarithm has its chord, which is smaller.

    What is given away: the error on the samples is itself too large on average, by the noise of every bin; R² on the
    samples by about p(1 - p) · bins/n. With the standard errors that remain this is near what a bound without
    debiasing can do: at 10,000 calibrated samples 0.030, where 0.026 would be the limit for normal noise.

    Parameters
    ----------
    confidence, correct, bins, delta, edges, closed
        As for :func:`binned`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> print(binned_rms(z, rng.random(z.size) < z**2).text)  # the population's is 0.1822
    0.2037
    """
    asked = asked_bins(confidence, correct, bins, delta, edges, closed)
    wagers, gaps = binned_points(asked.z, asked.c, asked.edges, asked.closed, _CELLS)
    n = asked.z.size
    count = np.bincount(assign(asked.z, asked.edges, asked.closed), minlength=gaps.size)
    used = count > 0
    observed = min(1.0, math.sqrt(float((gaps[used] ** 2 / count[used]).sum()) / n))
    limit = _largest_rms(wagers.rows[:, 0], wagers.rows[:, 2], wagers.owner, n, asked.delta, observed)
    terms = {"error on the samples": observed, "deviation": max(0.0, limit - observed)}
    return upper_bound(NAME, terms, asked.delta, n, asked.assumptions, asked.settings)


def binned_rms_lower(
    confidence: Any,
    correct: Any,
    bins: int = 15,
    delta: float = 0.05,
    *,
    edges: Any = None,
    closed: str = "left",
    seed: int = 0,
) -> Bound:
    """Lower bound on the binned root mean square error of the population, hence on its true root mean square error.

    What is random and assumed: as for :func:`binned_lower`. What is claimed: with probability at least 1 - delta over
    the draw, for every ``seed`` that was not chosen by looking at the result, √(Σ_m p_m g_m²) is at least ``value``.

    Why: gaps a_m that are estimated on one half are fixed for the other half. Whatever they are, U = 2 a(z)(c - z) -
    a(z)² has an expectation of at most Σ p_m g_m² (see :func:`binned_rms`). Its lower limit from the other half is a
    bet as in :func:`binned`. The estimates are shrunk by their own noise, which makes U larger on average.

    Parameters
    ----------
    confidence, correct, bins, delta, edges, closed, seed
        As for :func:`binned_lower`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> print(binned_rms_lower(z, rng.random(z.size) < z**2).text)  # the population's is 0.1822
    0.1728
    """
    asked = asked_bins(confidence, correct, bins, delta, edges, closed)
    settings = {**asked.settings, "seed": check_seed(seed)}
    if asked.z.size < 2:
        raise InputError("confidence has 1 entry; pass at least 2 samples, some to choose gaps and some to test them")
    tested = fold_of_each(asked.z.size, 2, seed) == 1
    bin, x = assign(asked.z, asked.edges, asked.closed), asked.c - asked.z.astype(np.float64)
    gap = _shrunk(bin[~tested], x[~tested], asked.edges.size - 1)
    scale = float((2 * np.abs(gap) + gap**2).max()) or 1.0
    a = gap[bin[tested]]
    u = 2 * a * x[tested] - a**2
    limit = -scale * mean_limit(np.clip(-u / scale, -1, 1), asked.delta, SMALL_DEVIATIONS)
    observed, value = float(u.mean()), math.sqrt(max(0.0, limit))
    terms = {"error of the tested half": math.sqrt(max(0.0, observed))}
    terms["deviation"] = value - terms["error of the tested half"]
    if limit < 0:
        settings["sum of the terms"] = "raised to 0"
    value = max(0.0, move_outward(value, "lower", 1e-12))
    return Bound(NAME, value, "lower", asked.delta, asked.z.size, (*asked.assumptions, ORDER), terms, settings)


def _shrunk(bin: NDArray[np.int64], x: Floats, bins: int) -> Floats:
    """The mean of each bin, made smaller by its variance over its size, both relative to its square."""
    count, total, square = (np.bincount(bin, each, bins) for each in (np.ones(x.size), x, x * x))
    mean = np.divide(total, count, out=np.zeros(bins), where=count > 0)
    noise = np.divide(np.divide(square, count, out=np.zeros(bins), where=count > 0) - mean**2, np.maximum(count, 1))
    return mean * np.maximum(1 - np.divide(noise, mean**2, out=np.ones(bins), where=mean != 0), 0)


def grid_of_gaps(n: int) -> tuple[Floats, float]:
    """Numbers from -1 to 1, and the largest distance of a small one from the nearest of them."""
    least = min(1.0, _LEAST / math.sqrt(n))
    growth = (1 + _APART) / (1 - _APART)
    steps = math.ceil(-math.log(least) / math.log(growth))
    sizes = np.minimum(least * growth ** np.arange(steps + 1), 1.0)
    return np.concatenate((-sizes[::-1], [0.0], sizes)), least / 2


def rms_bets(delta: float, n: int) -> Floats:
    """Bets from the largest that is allowed down to that for the largest standard deviation of U, which is 2."""
    least = math.sqrt(2 * math.log(1 / delta) / n) / 2
    count = 1 + max(0, math.floor(math.log(LARGEST_BET / least) / -math.log(_NEXT_BET)))
    return LARGEST_BET * _NEXT_BET ** np.arange(float(count))


def _largest_rms(number: Floats, x: Floats, owner: NDArray[np.int64], n: int, delta: float, observed: float) -> float:
    """Where the least capital against the square reaches 1/delta, rounded up."""
    gaps, off = grid_of_gaps(n)
    bets = rms_bets(delta, n)
    blocks = [(number[a:b], x[a:b], owner[a:b]) for a, b in _blocks(owner)]
    # The logarithms of the n gains are below 3 in size where it matters and are added over the points: each addition
    # loses a 2^-53rd, and each logarithm a few.
    target = math.log(len(bets) / delta) + 1e-9 + n * (x.size + 10) * 2.0**-51

    def reached(rms: float) -> bool:
        m, logs = rms * rms, np.zeros(len(bets))
        for count, value, bin in blocks:
            over = m + gaps[:, None] ** 2 - 2 * gaps[:, None] * value  # m - U
            first = np.flatnonzero(np.concatenate(([True], bin[1:] != bin[:-1])))
            for index, bet in enumerate(bets):
                gains = np.log1p(bet / (1 - m) * over) * count
                logs[index] += float(np.add.reduceat(gains, first, axis=1).min(axis=0).sum())
        return float(np.logaddexp.reduce(logs)) >= target

    low, high = observed, 1.0
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return min(1.0, math.sqrt((high * high + off * off) / (1 - _APART**2)))


def _blocks(owner: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Parts of the points that do not separate those of one bin."""
    firsts = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
    starts = [int(firsts[0])]
    for first in firsts[1:].tolist():
        if first - starts[-1] > _BLOCK:
            starts.append(first)
    return list(zip(starts, [*starts[1:], owner.size], strict=True))
