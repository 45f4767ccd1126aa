"""From the worst case on these samples to the worst case in the population they were drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._base.arguments import names_wrong_types
from certcal._base.assumptions import NOT_USED_BEFORE
from certcal._base.checks import InputError, failure_probability, share
from certcal.claims import Bound, move_outward, short_text
from certcal.worst_case._result import WorstCase


@names_wrong_types
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
    it is m = E g(s*) for signs s* that depend on the population alone. For a bet λ chosen in advance, at most
    0.9/(1 - m), the gain 1 + λ (m - g_n(s*)) is not negative and has expectation 1, and so have the product over the
    samples and the average of such products over several bets: it reaches 1/delta with probability at most delta
    (Markov). For each bet the product is at least as large as for the signs that make it smallest, which are found
    exactly as the worst case is (:mod:`certcal.worst_case._gains`): no union over the 2^M patterns is needed. The
    average of these smallest products grows with m; the value is where it reaches 1/delta. Bets depend on N and delta
    only and are the same for every sample, so there is no order in which they are placed. Within 1024 cells the
    logarithm of a gain is replaced by its chord, which is smaller. For the worst case over any edges, Chernoff's
    inequality for variables in [-1, 1] takes the place of the bets: the mean of g_n(s*) is at most that worst case.

    What is given away: the price of Markov's inequality and of seven bets in place of the best one. Where the worst
    case is a coin (gaps of +1 and -1 in one bin), 58 % of the deviation would do at delta = 0.05, and 95 % at 1e-30.
    Besides, the empirical worst case is itself too large on average, being a maximum over signs.

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
    if worst_case.gains is None or worst_case.extreme != "highest":
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
    deviation = max(0.0, worst_case.gains.upper_limit(delta, worst_case.value) - worst_case.value)
    failures = 2 * alpha / (1.0 if certified_fraction is None else certified_fraction)
    total = move_outward(worst_case.value + deviation + failures, "upper", 1e-15)
    settings: dict[str, Any] = {"alpha": alpha}
    if worst_case.value + deviation + failures > 1:
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
