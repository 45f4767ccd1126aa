"""From the worst case on these samples to the worst case in the population they were drawn from."""

from __future__ import annotations

import math

import numpy as np

from certcal._assumptions import NOT_USED_BEFORE
from certcal._checks import InputError, failure_probability, share
from certcal.claims import Bound, move_outward, short_text
from certcal.worst_case._result import WorstCase


def population_bound(
    worst_case: WorstCase, delta: float = 0.05, alpha: float = 0.0, *, certified_fraction: float | None = None
) -> Bound:
    """Bound on the worst-case calibration error of the population.

    What is random: the N samples (with their intervals), drawn independently from the population and not used to train,
    choose or recalibrate the classifier. What is claimed: with probability at least 1 - delta over them, the largest
    calibration error that confidences inside the intervals can have *in the population*, with the same bins, is at most
    ``value``. For the worst case of :func:`any_edges_error` the edges may be any, also those read off the samples:
    signs are then a function on [0, 1] that changes at most M - 1 times, and the rest of the proof is the same.

    Why: for given signs s the worth g_n(s) of a sample is in [-1, 1]. The population's worst case is max_s E g(s), so
    it is E g(s*) for signs s* that depend on the population alone. The empirical one is F = max_s mean g_n(s) >= mean
    g_n(s*), and that is a mean of independent draws of *one* variable: no union over the 2^M patterns is needed.
    (1) Chernoff's inequality for variables in [-1, 1]: with probability 1 - δ₁, kl((1 + mean)/2, (1 + E g(s*))/2) is
    at most ln(1/δ₁)/N unless the mean is the larger one, where kl is the divergence of two coins. The largest
    expectation for which that holds grows with the mean, so F may stand in its place. (2) Maurer and Pontil's empirical
    Bernstein inequality at level δ₂, with the variance bounded by the mean of the largest (c - z)² of each sample,
    whatever the signs. δ₁ = δ₂ = delta/2 in advance, and the smaller bound is taken. This needs the *exact* maximum: a
    smaller value, such as ADMM's, may be below mean g_n(s*), and nothing is guaranteed any more.

    What is given away: where the worst case is a coin (gaps of +1 and -1 in one bin) and delta is 0.05, 60 % of the
    deviation would do; at delta = 1e-30, 97 %. It is the distance of Chernoff's bound from a binomial tail, and the
    split of delta.

    A certificate that fails with probability alpha per sample may be wrong for that share of the population; each such
    sample moves the error by at most 2/N, hence the term 2·alpha (divided by a lower bound on the certified fraction
    when only certified samples are counted).

    Parameters
    ----------
    worst_case
        From :func:`calibration_error` or :func:`any_edges_error`.
    delta
        Probability with which the bound may fail over the draw of the samples.
    alpha
        Probability with which a sample's interval or correctness may be wrong.
    certified_fraction
        When the worst case is over certified samples only and alpha > 0: a lower bound on the certified share.

    Examples
    --------
    >>> from certcal.worst_case import calibration_error
    >>> bound = population_bound(calibration_error([0.6] * 1000, [0.8] * 1000, [1, 1, 1, 0] * 250), delta=0.05)
    >>> bound.value > 0.15, sorted(bound.terms)
    (True, ['certificate failures', 'deviation', 'empirical worst case'])
    """
    if not isinstance(worst_case, WorstCase):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"worst_case is {worst_case!r}; pass a result of calibration_error")
    if worst_case.settings.get("edges") == "recomputed":
        raise InputError(
            f"worst_case is an {worst_case.name}, whose edges depend on the samples; pass any_edges_error's"
        )
    if worst_case.mean_square is None or worst_case.extreme != "highest":
        raise InputError(f"worst_case is a {worst_case.extreme} {worst_case.name}; pass one from calibration_error")
    delta = failure_probability(delta, "delta")
    alpha = failure_probability(alpha, "alpha", zero=True)
    whole = isinstance(certified_fraction, int | float | np.number) and bool(certified_fraction == 1)
    if certified_fraction is not None and not whole:
        remedy = "pass a lower bound on the certified share"
        certified_fraction = share(certified_fraction, "certified_fraction", remedy)
    conditional = worst_case.all_samples is not None
    if conditional and alpha > 0 and certified_fraction is None:
        raise InputError(
            "certified_fraction is missing: the worst case is over certified samples only, so a failure probability "
            "alpha must be divided by a lower bound on the certified share; pass it, or use worst_case.all_samples"
        )
    alpha = float(short_text(alpha, "upper"))  # the assumption as it is printed is the one that is paid for
    n = worst_case.n
    chernoff = _largest_mean(worst_case.value, math.log(2 / delta) / n) - worst_case.value
    bernstein = math.inf
    if n > 1:
        level = math.log(4 / delta)  # ln(2 / δ₂)
        variance = worst_case.mean_square * n / (n - 1)
        bernstein = math.sqrt(2 * variance * level / n) + 7 * 2 * level / (3 * (n - 1))
    deviation = min(chernoff, bernstein)
    failures = 2 * alpha / (1.0 if certified_fraction is None else certified_fraction)
    total = move_outward(worst_case.value + deviation + failures, "upper", 1e-15)
    settings = {"alpha": alpha, "deviation": "Chernoff" if chernoff <= bernstein else "Bernstein"}
    if total > 1:
        settings["sum of the terms"] = "capped at 1"
    return Bound(
        "worst-case calibration error of the population" + (" given that a sample is certified" if conditional else ""),
        min(1.0, total),
        "upper",
        delta,
        n,
        (
            "samples with their intervals are independent draws from the population",
            NOT_USED_BEFORE,
            *(() if worst_case.settings.get("edges") == "any" else ("the edges were not chosen from them",)),
            "each interval and correctness holds except with probability alpha",
        ),
        {"empirical worst case": worst_case.value, "deviation": deviation, "certificate failures": failures},
        {**worst_case.settings, **settings},
    )


def _largest_mean(mean: float, divergence: float) -> float:
    """The largest expectation of a variable in [-1, 1] whose coin is within a divergence of the mean's; rounded up."""
    p = (1 + mean) / 2
    allowed = divergence * (1 + 1e-12) + 1e-15  # room for the rounding of the logarithms

    def apart(q: float) -> float:
        return p * math.log(p / q) + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)

    inside, outside = p, 1.0
    while inside < (middle := (inside + outside) / 2) < outside:
        inside, outside = (middle, outside) if apart(middle) <= allowed else (inside, middle)
    return 2 * outside - 1
