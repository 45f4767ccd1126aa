"""From the worst case on these samples to the worst case in the population they were drawn from."""

from __future__ import annotations

import math

from certcal._checks import InputError, share
from certcal.claims import Bound, move_outward
from certcal.worst_case._result import WorstCase


def population_bound(
    worst_case: WorstCase, delta: float = 0.05, alpha: float = 0.0, *, certified_fraction: float | None = None
) -> Bound:
    """Bound on the worst-case calibration error of the population.

    What is random: the N samples (with their intervals), drawn independently from the population. What is claimed: with
    probability at least 1 - delta over them, the largest calibration error that confidences inside the intervals can
    have *in the population*, with the same bins, is at most ``value``.

    Why: for given signs s the worth g_n(s) of a sample is in [-1, 1], the population's worst case is max_s E g(s),
    and the empirical one is F = max_s mean g_n(s), so E F >= max_s E g(s). (1) Changing one sample changes F by at
    most 2/N; by McDiarmid's inequality F >= E F - √(2 ln(1/δ₁)/N) with probability 1 - δ₁. (2) For each of the 2^M
    sign patterns Maurer and Pontil's empirical Bernstein inequality at level δ₂/2^M, with the variance bounded by the
    mean of the largest (c - z)² of each sample, whatever the signs. δ₁ = δ₂ = delta/2 in advance, and the smaller of
    the two is taken. This needs the *exact* maximum: a smaller value, such as ADMM's, takes the guarantee away.

    A certificate that fails with probability alpha per sample may be wrong for that share of the population; each such
    sample moves the error by at most 2/N, hence the term 2·alpha (divided by a lower bound on the certified fraction
    when only certified samples are counted).

    Parameters
    ----------
    worst_case
        From :func:`calibration_error`.
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
    if worst_case.mean_square is None or worst_case.extreme != "highest":
        raise InputError(f"worst_case is a {worst_case.extreme} {worst_case.name}; pass one from calibration_error")
    share(delta, "delta", "pass a probability between 0 and 1")
    if not 0 <= alpha < 1:
        raise InputError(f"alpha is {alpha}; pass a probability from 0 to below 1")
    if certified_fraction is not None and not 0 < certified_fraction <= 1:
        raise InputError(f"certified_fraction is {certified_fraction}; pass a lower bound on the certified share")
    conditional = worst_case.all_samples is not None
    if conditional and alpha > 0 and certified_fraction is None:
        raise InputError(
            "certified_fraction is missing: the worst case is over certified samples only, so a failure probability "
            "alpha must be divided by a lower bound on the certified share; pass it, or use worst_case.all_samples"
        )
    n, bins = worst_case.n, int(worst_case.settings["bins"])
    mcdiarmid = math.sqrt(2 * math.log(2 / delta) / n)
    bernstein = math.inf
    if n > 1:
        level = math.log(2) * (bins + 1) + math.log(2 / delta)  # ln(2 · 2^M / (delta / 2))
        variance = worst_case.mean_square * n / (n - 1)
        bernstein = math.sqrt(2 * variance * level / n) + 7 * 2 * level / (3 * (n - 1))
    deviation = min(mcdiarmid, bernstein)
    failures = 2 * alpha / (1.0 if certified_fraction is None else certified_fraction)
    value = min(1.0, move_outward(worst_case.value + worst_case.rounding + deviation + failures, "upper", 1e-15))
    return Bound(
        "worst-case calibration error of the population" + (" given that a sample is certified" if conditional else ""),
        value,
        "upper",
        delta,
        n,
        (
            "samples with their intervals are independent draws from the population",
            "the edges were not chosen from them",
            "each interval and correctness holds except with probability alpha",
        ),
        {"empirical worst case": worst_case.value, "deviation": deviation, "certificate failures": failures},
        {**worst_case.settings, "alpha": alpha, "deviation": "McDiarmid" if mcdiarmid <= bernstein else "Bernstein"},
    )
