"""Bounds on the KS and the Kuiper calibration error of the population: no bins, and nothing assumed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.assumptions import INDEPENDENT, NOT_USED_BEFORE
from certcal._base.checks import InputError, failure_probability, score_pair
from certcal.bounds._bets import mean_limit
from certcal.bounds._shared import Sample, check_seed, fold_of_each, sort_pairs, upper_bound
from certcal.bounds.concentration import place_bets
from certcal.claims import ORDER, Bound, move_outward

KS = "KS calibration error of the population"
KUIPER = "Kuiper calibration error of the population"

_ASSUMPTIONS = (INDEPENDENT, NOT_USED_BEFORE)

# Cells that the samples in order are cut into. A cut-off inside a cell costs about ln(1/delta)/2048 of the logarithm of
# the capital.
_CELLS = 2048


def ks(confidence: Any, correct: Any, delta: float = 0.05) -> Bound:
    """Upper bound on sup_t |E[(c - z) 1(z <= t)]|, the KS calibration error of the population.

    What is random: n independent draws of (z, c). What is claimed: with probability at least 1 - delta over them, the
    KS calibration error of the population is at most ``value``. Nothing is assumed about how accuracy depends on
    confidence, and there are no bins. The true error E|z - P(c | z)| may be larger: errors of both signs cancel.

    Why. For every cut-off t and sign s, X = s (c - z) 1(z <= t) is in [-1, 1]; those at which E X comes within ε of the
    population's error are fixed, though unknown. So for bets θ chosen in advance the product of the gains
    1 + θ(m - X)/(1 - m) has expectation 1 at m = E X, and for each bet and m it is at least the smallest product over
    all cut-offs and both signs. The average of the smallest products over the bets reaches 1/delta with probability at
    most delta, as in :func:`binned`: no union over cut-offs, no logarithm of n, and the bound falls like 1/√n. The
    value is where it does; let ε go to 0. (In cells of samples next to each other, logarithms are replaced by their
    chords, which are smaller.)

    Parameters
    ----------
    confidence
        Confidence of each prediction, in [0, 1].
    correct
        Whether each prediction is correct (binary task: the outcome), 0 or 1.
    delta
        Probability with which the bound may fail.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> print(ks(z, rng.random(z.size) < z**2).text)  # the population's is 0.1667
    0.1871
    """
    return ks_of(*score_pair(confidence, correct)[:2], delta)


def kuiper(confidence: Any, correct: Any, delta: float = 0.05) -> Bound:
    """Upper bound on sup_{a<b} |E[(c - z) 1(a < z <= b)]|, the Kuiper calibration error of the population.

    It bounds the miscalibration of every interval of confidences, weighted by how often it occurs, all at once. What is
    random, what is claimed and why: as for :func:`ks`, with intervals in place of cut-offs. Parameters are the same.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> print(kuiper(z, rng.random(z.size) < z**2).text)  # the population's is 0.1667
    0.1871
    """
    return kuiper_of(*score_pair(confidence, correct)[:2], delta)


def ks_lower(confidence: Any, correct: Any, delta: float = 0.05, *, seed: int = 0) -> Bound:
    """Lower bound on the KS calibration error of the population, hence on its true calibration error.

    What is random: n independent draws of (z, c), in the order in which they are given. What is claimed: with
    probability at least 1 - delta over them, for every ``seed`` that was not chosen by looking at the result, the KS
    error is at least ``value``, and so is the true error E|z - P(c | z)|.

    Why: the cut-off t and the sign s that are best on one half of the samples are fixed for the other half, and
    E[s (c - z) 1(z <= t)] is at most the error for any of them. Its lower limit is a bet on the other half.

    Parameters
    ----------
    confidence, correct, delta
        As for :func:`ks`.
    seed
        Seed of the split.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> print(ks_lower(z, rng.random(z.size) < z**2).text)  # the population's is 0.1667
    0.1647
    """
    return _lower(KS, confidence, correct, delta, seed, interval=False)


def kuiper_lower(confidence: Any, correct: Any, delta: float = 0.05, *, seed: int = 0) -> Bound:
    """Lower bound on the Kuiper calibration error of the population, hence on its true calibration error.

    As :func:`ks_lower`, with the interval that is best on one half of the samples. Parameters are the same.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(10_000)
    >>> print(kuiper_lower(z, rng.random(z.size) < z**2).text)  # the population's is 0.1667
    0.1647
    """
    return _lower(KUIPER, confidence, correct, delta, seed, interval=True)


def ks_of(z: NDArray[Any], c: NDArray[np.uint8], delta: float) -> Bound:
    return _upper(KS, z, c, delta, interval=False)


def kuiper_of(z: NDArray[Any], c: NDArray[np.uint8], delta: float) -> Bound:
    return _upper(KUIPER, z, c, delta, interval=True)


def _upper(name: str, z: NDArray[Any], c: NDArray[np.uint8], delta: float, *, interval: bool) -> Bound:
    from certcal._kernels.capital import CELL, cut_cells, largest_mean_of_cuts

    level = failure_probability(delta, "delta")
    n, sample = z.size, sort_pairs(z, c)
    cells = np.empty((min(n, 2 * _CELLS + 2), CELL))
    cells = cells[: cut_cells(sample.scores, sample.outcomes, -(-n // _CELLS), cells)]
    # As for the binned error: the logarithms of n gains are added over the cells, with a few more to each.
    target = math.log(1 / level) + 1e-9 + n * (len(cells) + 20) * 2.0**-51
    limit = float(largest_mean_of_cuts(cells, place_bets(level, n), target, interval))
    observed = _best_cut(sample, interval=interval)[3] / n
    terms = {"error on the samples": observed, "deviation": max(0.0, limit - observed)}
    return upper_bound(name, terms, level, n, _ASSUMPTIONS, {})


def _lower(name: str, confidence: Any, correct: Any, delta: float, seed: int, *, interval: bool) -> Bound:
    level = failure_probability(delta, "delta")
    z, c, _ = score_pair(confidence, correct)
    settings: dict[str, Any] = {"seed": check_seed(seed)}
    if z.size < 2:
        raise InputError("confidence has 1 entry; pass at least 2 samples, some to choose a cut-off, some to test it")
    tested = fold_of_each(z.size, 2, seed) == 1
    low, high, sign, _ = _best_cut(sort_pairs(z[~tested], c[~tested]), interval=interval)
    z, c, n = z[tested].astype(np.float64), c[tested], z.size
    values = np.where((z > low) & (z <= high), sign * (c - z), 0.0)
    limit, observed = -mean_limit(-values, level), float(values.mean())
    terms = {"error of the tested half": observed, "deviation": limit - observed}
    if limit < 0:
        settings["sum of the terms"] = "raised to 0"
    value = max(0.0, move_outward(limit, "lower"))
    return Bound(name, value, "lower", level, n, (*_ASSUMPTIONS, ORDER), terms, settings)


def _best_cut(sample: Sample, *, interval: bool) -> tuple[float, float, int, float]:
    """Low end (not included), high end and sign of the interval with the largest gap on the samples, and that gap."""
    z: NDArray[np.float64] = sample.scores
    last = np.flatnonzero(np.append(z[1:] != z[:-1], True))  # the last of equal confidences
    sums = np.concatenate(([0.0], np.cumsum(sample.outcomes - z)[last]))
    ends = np.concatenate(([-1.0], z[last]))
    top, bottom = int(np.argmax(sums)), int(np.argmin(sums))
    if interval:
        low, high = sorted((top, bottom))
    else:
        low, high = 0, top if sums[top] > -sums[bottom] else bottom
    gap = float(sums[high] - sums[low])
    return float(ends[low]), float(ends[high]), 1 if gap > 0 else -1, abs(gap)
