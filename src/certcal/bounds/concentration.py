"""Confidence limits for means of bounded variables, each valid for every number of samples.

One convention for all: ``alpha`` is the probability with which the limits may fail. With ``side="both"`` it is shared
by the two sides and both limits hold together; with "lower" or "upper" it is spent on that side, and the other limit is
the trivial 0 or 1. What is random are n independent draws with the same distribution on [0, 1] (or {0, 1}); nothing
else is assumed. Limits are rounded outward: the limit in memory is never inside the limit in mathematics.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, choice, flag, share, to_numpy

Floats = NDArray[np.float64]

SIDES = ("both", "lower", "upper")

# Room left for rounding, relative: in an incomplete beta function (correct to about 1e-11) and in sums of a few terms.
_BETA = 1e-10
_SUM = 1e-14

# Standard deviations for which a bet is placed, and the largest bet.
DEVIATIONS: Floats = 0.5 ** (np.arange(7.0) / 2)
LARGEST_BET = 0.9

# Near the smallest floats the incomplete beta function loses its digits.
_LEAST = 1e-250


class Limits(NamedTuple):
    """A lower and an upper limit, floats or arrays.

    Examples
    --------
    >>> limits = hoeffding(0.5, 100, 0.05)
    >>> round(limits.lower, 4), round(limits.upper, 4)
    (0.3642, 0.6358)
    """

    lower: Any
    upper: Any


def clopper_pearson(
    count: ArrayLike, n: ArrayLike, alpha: float, side: str = "both", *, identical: bool = True
) -> Limits:
    """Limits for a probability p of which ``count`` successes in ``n`` draws were seen.

    Why: the lower limit is the p at which P(Bin(n, p) >= count) = alpha. That probability grows with p, so a true p
    below the limit means that a result at least as extreme had probability below alpha; the counts for which this
    happens form an upper tail, whose probability is at most alpha. The upper limit is the mirror image. Exact: no
    smaller limits that are monotone in the count hold for all p.

    Draws with probabilities p_i of their own (``identical=False``): limits for their mean p̄. Hoeffding (1956) showed
    that P(sum >= k) is at most that of the binomial with p̄ when k >= n p̄ + 1. For k >= 2 this is so wherever the
    binomial tail is below ¼, since P(Bin(n, p) >= k) > ¼ for p > (k - 1)/n >= 1/n (Greenberg and Mohri 2014). For k = 1
    the tail is at most n p̄, and the lower limit becomes alpha/n, a little less than 1 - (1 - alpha)^(1/n). So these
    limits hold in both cases; a side spends at most ¼.

    Parameters
    ----------
    count
        Successes, whole numbers from 0 to n.
    n
        Draws.
    alpha
        Probability of failing, shared by the sides when there are two.
    side
        "both", "lower" or "upper".
    identical
        Whether all draws have the same probability.

    Examples
    --------
    >>> limits = clopper_pearson(10, 10, 0.05)
    >>> round(limits.lower, 6), limits.upper
    (0.691503, 1.0)
    >>> [round(clopper_pearson(1, 2, 0.2, "lower", identical=each).lower, 4) for each in (True, False)]
    [0.1056, 0.1]
    """
    counts, draws = _broadcast(count=_whole_counts(count, "count"), n=_whole_counts(n, "n"))
    if np.any(draws < 1) or np.any(counts < 0) or np.any(counts > draws):
        raise InputError("count must be from 0 to n and n at least 1; pass successes and draws in this order")
    return binomial_limits(counts, draws, alpha, side, identical=identical)


def binomial_limits(
    counts: NDArray[Any], draws: NDArray[Any], alpha: float, side: str = "both", *, identical: bool = True
) -> Limits:
    """:func:`clopper_pearson` of checked counts, two arrays of one shape."""
    level = _level_of_side(alpha, side) if flag(identical, "identical") else min(_level_of_side(alpha, side), 0.25)
    if level < _LEAST:
        raise InputError(f"alpha is {alpha:g}; below {_LEAST:g} binomial tails lose their digits: pass a larger one")
    lower = _clopper_pearson_lower(counts, draws, level, identical) if side != "upper" else np.zeros(counts.shape)
    upper = np.ones(counts.shape)
    if side != "lower":
        # 1 - p is a limit for the failures. Near 0 it keeps its digits, which a limit near 1 would not.
        upper = np.minimum(np.nextafter(1 - _clopper_pearson_lower(draws - counts, draws, level, identical), 2), 1)
    return _as_limits(lower, upper)


def hoeffding(mean: ArrayLike, n: ArrayLike, alpha: float, side: str = "both") -> Limits:
    """Limits for the expectation of a variable in [0, 1]: the mean of n draws ± √(ln(1/α)/2n), α per side.

    Why: E exp(s(X - EX)) <= exp(s²/8) for X in [0, 1] (Hoeffding's lemma), and Markov's inequality for the exponential
    of the sum with the best s.

    Examples
    --------
    >>> round(hoeffding(0.9, 10_000, 0.05, side="lower").lower, 5)
    0.88776
    """
    means, draws = _checked_means(mean, n)
    width = np.sqrt(math.log(1 / _level_of_side(alpha, side)) / (2 * draws))
    return _limits_around(means, width, side)


def empirical_bernstein(mean: ArrayLike, variance: ArrayLike, n: ArrayLike, alpha: float, side: str = "both") -> Limits:
    """Limits for the expectation of a variable in [0, 1]: mean ± √(2 v ln(3/α)/n) + 3 ln(3/α)/n.

    ``variance`` is the mean of (X - mean)² over the same n draws. Why (Audibert, Munos and Szepesvári; Mnih et al.
    2008): Bernstein's inequality on either side of the mean and once for the squares, each at level α/3, with the
    variance replaced by its upper limit. One event carries both sides, so a single side costs as much as two.

    Examples
    --------
    >>> limits = empirical_bernstein(0.9, 0.001, 10_000, 0.05)
    >>> round(limits.lower, 4), round(limits.upper, 4)
    (0.8979, 0.9021)
    """
    means, draws = _checked_means(mean, n)
    spread = np.asarray(to_numpy(variance, "variance"), np.float64)
    if not np.all((spread >= 0) & (spread <= 0.2500001)):
        raise InputError("variance is outside [0, 0.25]; pass the mean of (X - mean)² for X in [0, 1]")
    _broadcast(mean=means, variance=spread)
    choice(side, SIDES, "side")
    log = math.log(3 / share(alpha, "alpha", "pass a probability between 0 and 1"))
    return _limits_around(means, np.sqrt(2 * spread * log / draws) + 3 * log / draws, side)


def dkw_width(n: ArrayLike, alpha: float, side: str = "both") -> Any:
    """Half-width √(ln(1/α)/2n), α per side, of a band around an empirical distribution function.

    Why (Dvoretzky, Kiefer and Wolfowitz with Massart's constant): P(sup_t (F_n(t) - F(t)) > w) <= exp(-2 n w²) whenever
    the right side is at most ½; larger levels are served by ½. Holds for all t at once and for any distribution.

    Examples
    --------
    >>> round(dkw_width(10_000, 0.001), 5)
    0.01949
    """
    draws = _draws(n)
    width = np.sqrt(math.log(1 / min(_level_of_side(alpha, side), 0.5)) / (2 * draws))
    return _float_or_array(width * (1 + _SUM))


@names_wrong_types
def betting(
    values: ArrayLike,
    alpha: float,
    side: str = "both",
    *,
    counts: ArrayLike | None = None,
    bets: ArrayLike | None = None,
) -> Limits:
    """Limits for the expectation μ of a variable in [0, 1] from the capital of bets against it.

    Why: for a bet θ in [0, 1] chosen before the draws, the product of (1 - θ + θ X_i/m) over the draws is not negative
    and has expectation 1 when m = μ; so has the average K(m) over several bets. By Markov's inequality K(μ) >= 1/α has
    probability at most α. K falls in m, so all m with K(m) >= 1/α lie below one limit, which μ is below with
    probability at most α. The upper limit is the mirror image. The product does not depend on the order of the draws,
    so counts of the different values are enough.

    Parameters
    ----------
    values
        The draws, or the different values they can take when ``counts`` is given.
    alpha
        Probability of failing, shared by the sides when there are two.
    side
        "both", "lower" or "upper".
    counts
        How often each value was drawn, along the last axis; limits come with the shape of the other axes.
    bets
        Bets θ in [0, 1], chosen without looking at the draws. By default 1, ½, ¼ … down to about 1/√n.

    Examples
    --------
    >>> limits = betting([0.0, 0.9, 1.0], 0.05, counts=[1, 500, 499])
    >>> round(limits.lower, 4), round(limits.upper, 4)
    (0.9379, 0.9546)
    """
    points = np.asarray(to_numpy(values, "values"), np.float64)
    if points.ndim != 1 or points.size == 0 or not np.all((points >= 0) & (points <= 1)):
        raise InputError("values must be numbers in [0, 1], at least one; scale them, or drop what is not finite")
    many = np.ones(points.size, np.int64) if counts is None else _whole_counts(counts, "counts")
    if many.ndim == 0 or many.shape[-1] != points.size or np.any(many < 0):
        raise InputError(f"counts has shape {many.shape}; pass one count >= 0 for each of the {points.size} values")
    largest = int(many.sum(axis=-1).max(initial=1))
    chosen = 0.5 ** np.arange(1 + max(1, math.ceil(math.log2(max(largest, 1)) / 2))) if bets is None else bets
    thetas = np.atleast_1d(np.asarray(to_numpy(chosen, "bets"), np.float64))
    if thetas.ndim != 1 or not thetas.size or not np.all((thetas >= 0) & (thetas <= 1)):
        raise InputError("bets must be numbers in [0, 1]; choose them without looking at the draws")
    level = _level_of_side(alpha, side)
    lower = _betting_lower(points, many, level, thetas) if side != "upper" else np.zeros(many.shape[:-1])
    upper = np.ones(many.shape[:-1])
    if side != "lower":
        # 1 - x is exact to half a unit in the last place of 1; the limit is moved by far more.
        upper = np.minimum(1 - _betting_lower(1 - points, many, level, thetas) + 1e-15, 1)
    return _as_limits(lower, upper)


def _betting_lower(points: Floats, counts: NDArray[np.int64], level: float, thetas: Floats) -> Floats:
    """The largest m, to within 1e-12, at which the capital is seen to be at least 1/level."""
    rows = counts.reshape(-1, points.size).astype(np.float64)
    target = math.log(1 / level) + 1e-9 + 1e-14 * float(rows.sum(axis=1).max(initial=0))
    low, high = np.zeros(rows.shape[0]), np.ones(rows.shape[0])
    for _ in range(42):
        middle = (low + high) / 2
        enough = _log_capital(points, rows, middle, thetas) >= target
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return np.maximum(low - 1e-15, 0).reshape(counts.shape[:-1])


def _log_capital(points: Floats, rows: Floats, m: Floats, thetas: Floats) -> Floats:
    logs = np.empty((thetas.size, m.size))
    with np.errstate(divide="ignore", invalid="ignore"):
        for index, theta in enumerate(thetas):
            gains = np.log(1 - theta + theta * points[None, :] / m[:, None])
            logs[index] = np.where(rows > 0, rows * gains, 0).sum(axis=1)
    top = logs.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        return safe + np.log(np.exp(logs - safe).mean(axis=0))


def _clopper_pearson_lower(
    counts: NDArray[np.int64], n: NDArray[np.int64], level: float, identical: bool = True
) -> Floats:
    """Largest float p found with P(Bin(n, p) >= count) <= level, the probability being evaluated at p itself.

    The inverse of the incomplete beta function is only a first guess: its level is off by up to 1e-7, and it is NaN or
    far off at extreme levels.
    """
    from scipy.special import betainc, betaincinv

    p = np.zeros(counts.shape)
    some = counts > 0
    a = counts[some].astype(np.float64)
    b = (n - counts)[some].astype(np.float64) + 1
    guess = np.asarray(betaincinv(a, b, level), np.float64)
    lost = ~(np.abs(betainc(a, b, guess) - level) <= 1e-6 * level)
    if lost.any():
        guess[lost] = _invert_by_bisection(a[lost], b[lost], level)
    step = 2.0**-52
    unsafe = np.arange(guess.size)
    while unsafe.size:
        checked = betainc(a[unsafe], b[unsafe], guess[unsafe]) * (1 + _BETA) <= level
        unsafe = unsafe[~checked & (guess[unsafe] > 0)]
        # Near 1 a step is a share of the distance to 1, so that long runs of successes keep their digits.
        moved = guess[unsafe] - step * guess[unsafe] * (1 - guess[unsafe])
        guess[unsafe] = np.nextafter(np.maximum(moved, 0), 0)
        step *= 4
    p[some] = guess
    return p if identical else np.where(counts == 1, np.minimum(p, level / n * (1 - _SUM)), p)


def _invert_by_bisection(a: Floats, b: Floats, level: float) -> Floats:
    """Inverse incomplete beta function by bisection, for levels where the library has none."""
    from scipy.special import betainc

    low, high = np.full(a.shape, -745.0), np.zeros(a.shape)
    for _ in range(80):
        middle = (low + high) / 2
        below = betainc(a, b, np.exp(middle)) <= level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.exp(low)


def _level_of_side(alpha: float, side: str) -> float:
    """What one side may spend, rounded down."""
    choice(side, SIDES, "side")
    level = share(alpha, "alpha", "pass a probability between 0 and 1")
    return level / 2 if side == "both" else level


def _limits_around(means: Floats, width: Floats, side: str) -> Limits:
    """Mean minus and plus a width, within [0, 1] and outward by more than the rounding."""
    wide = width * (1 + _SUM) + _SUM
    lower = np.maximum(means - wide, 0) if side != "upper" else np.zeros(np.broadcast(means, wide).shape)
    upper = np.minimum(means + wide, 1) if side != "lower" else np.ones(np.broadcast(means, wide).shape)
    return _as_limits(lower, upper)


def _checked_means(mean: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    means = np.asarray(to_numpy(mean, "mean"), np.float64)
    if not np.all((means >= 0) & (means <= 1)):
        raise InputError("mean is outside [0, 1]; pass means of values in [0, 1]")
    means, draws = _broadcast(mean=means, n=_draws(n))
    return means, draws


def _broadcast(**arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError:
        shapes = " and ".join(f"{name} has shape {array.shape}" for name, array in arrays.items())
        raise InputError(f"{shapes}; pass as many of each, or one for all") from None


def _draws(n: ArrayLike) -> Floats:
    draws = _whole_counts(n, "n")
    if np.any(draws < 1):
        raise InputError("n must be at least 1; pass the number of draws")
    return draws.astype(np.float64)


def _whole_counts(value: ArrayLike, name: str) -> NDArray[np.int64]:
    array = to_numpy(value, name)
    if array.dtype.kind not in "iu" and not (array.dtype.kind == "f" and np.all(np.floor(array) == array)):
        raise InputError(f"{name} must be whole numbers; pass counts, not shares")
    return array.astype(np.int64)


def _float_or_array(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value


def _as_limits(lower: Floats, upper: Floats) -> Limits:
    return Limits(_float_or_array(lower), _float_or_array(upper))


def chernoff_upper(mean: float, n: int, delta: float) -> float:
    """Upper limit, rounded up, for the expectation of a variable in [0, 1] whose n draws have at most this mean.

    Why: with probability 1 - δ the divergence kl(mean, expectation) of two coins is at most ln(1/δ)/n unless the
    expectation is the smaller one (Chernoff's inequality). The largest expectation for which that holds grows with the
    mean, so a number that is at least the mean may stand in its place.
    """
    p = max(mean, 0.0)
    if p >= 1:
        return 1.0
    allowed = math.log(1 / delta) / n * (1 + 1e-12) + 1e-15  # room for the rounding of the logarithms

    def apart(q: float) -> float:
        return (p * math.log(p / q) if p > 0 else 0.0) + (1 - p) * math.log((1 - p) / (1 - q))

    inside, outside = p, 1.0
    while inside < (middle := (inside + outside) / 2) < outside:
        inside, outside = (middle, outside) if apart(middle) <= allowed else (inside, middle)
    return outside


def place_bets(delta: float, n: int, deviations: Floats = DEVIATIONS, largest: float = LARGEST_BET) -> Floats:
    """Bets that depend on nothing but how many draws there are and the level."""
    return np.minimum(np.sqrt(2 * math.log(1 / delta) / n) / deviations, largest)
