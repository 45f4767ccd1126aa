"""Bounds on the calibration error E|s - η(s)| when η, the share of outcomes 1 at a score, has bounded variation."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._assumptions import INDEPENDENT, NOT_USED_BEFORE
from certcal._checks import MOST_CHANGE, InputError, choice, positive
from certcal.bounds import _buckets, _denoised
from certcal.bounds._shared import Sample, check_pairs, in_order, upper_bound
from certcal.claims import ORDER, Bound, short_text

NAME = "calibration error"

FORMS = ("direct", "published")


def bounded_variation(
    scores: Any,
    outcomes: Any,
    delta: float = 0.05,
    *,
    variation: float = 1.0,
    form: str = "direct",
    folds: int | None = None,
    seed: int | None = None,
) -> Bound:
    """Upper bound on E|s - η(s)|, η(s) = E[y | s], for every η whose total variation is at most ``variation``.

    A rising η has a variation of at most 1. What is random: n independent draws of (s, y) from the population. What is
    claimed: with probability at least 1 - delta over them, the population's calibration error is at most ``value``.

    Why, for the default form. Let g = η - s, and cut the sorted sample into buckets by looking at the scores only.
    Given the scores:

    1. mean |g(s_i)| <= (1/n) Σ_m |Σ_{i in m} g(s_i)| + (1/n) Σ_m Σ_{i in m} |g(s_i) - (mean of g in m)|.
    2. The signs σ_m of the inner sums in the first term depend on the scores and on η, not on the outcomes. So it is
       (1/n) Σ_i σ_{m(i)} (y_i - s_i) plus a mean of n independent variables of expectation 0, each in an interval of
       length 1: at most the *gap* (1/n) Σ_m |Σ_{i in m} (y_i - s_i)| plus √(ln(1/δ')/2n) (Hoeffding). There is no union
       over buckets or signs. Numbers of buckets are tried, and δ' is half of delta divided by how many: which are tried
       depends on n and ``variation`` only, so the one whose bound is least may be chosen by looking at the outcomes.
    3. In a bucket where η has the range r, the mean distance of η from its mean is at most r/2, and 0 where all scores
       are equal. Ranges add up to at most the variation, so η gives at most ½ · variation · (largest share of a bucket
       with different scores); s gives at most its mean standard deviation within buckets, which is computed.
    4. |g(s)| is in [0, 1] and a function of the score alone, so its expectation is bounded from its mean by Chernoff's
       inequality at level delta/2: no uniform deviation of distribution functions is needed.

    The rate is n^(-1/3). What is given away: the gap counts the noise of each bucket as if it were miscalibration,
    about 0.4 √(buckets/n), and the ranges are taken as if all of the variation happened within buckets.

    Parameters
    ----------
    scores
        Predicted probability of outcome 1, in [0, 1]; or the confidence of the top label.
    outcomes
        What happened, 0 or 1; or whether the top label is correct.
    delta
        Probability with which the bound may fail.
    variation
        Largest total variation of η that the claim covers.
    form
        "direct" as above. "published": Proposition 1 of *Measuring uncertainty calibration*, in which η is replaced by
        a surrogate that total variation denoising finds on other folds. It claims the same and is several times larger;
        the page on bounds has its terms and what was mended. It splits the samples as they came, so they should be in
        the order in which they were drawn (or any that has nothing to do with scores and outcomes).
    folds
        Number of folds of the published form, at least 2. Default: 2.
    seed
        Seed of the split into folds, for the published form. Default: 0.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(100_000)
    >>> y = rng.random(s.size) < s
    >>> print(bounded_variation(s, y).text)
    0.0252
    >>> bound = bounded_variation(s, y, form="published")
    >>> print(bound.text, max(bound.terms, key=bound.terms.get))
    0.2132 denoising
    """
    s, y, delta = check_pairs(scores, outcomes, delta)
    allowed = positive(variation, "variation", MOST_CHANGE)
    if choice(form, FORMS, "form") == "published":
        terms, settings = _denoised.terms(s, y, delta, allowed, 2 if folds is None else folds, seed or 0)
        assumptions = (*_assumptions(allowed), ORDER)
        return upper_bound(NAME, terms, delta, s.size, assumptions, {"variation": allowed, **settings})
    for name, given in (("folds", folds), ("seed", seed)):
        if given is not None:
            raise InputError(
                f"{name} is {given}, but nothing is split in this form; leave it out or pass form='published'"
            )
    sample, n = in_order(s, y), s.size
    # Where ½ · variation / B and the noise 0.4 √(B/n) balance, and some room to both sides.
    counts = _buckets.powers_of_two(8 * ((allowed + 0.5) ** 2 * n) ** (1 / 3), n)
    best, chosen = dict[str, float](), 0
    for count in counts:
        terms = _bucket_terms(sample, count, allowed)
        if not best or sum(terms.values()) < sum(best.values()):
            best, chosen = terms, count
    terms = best | _buckets.labels_and_scores(sum(best.values()), n, delta, len(counts))
    settings = {"variation": allowed, "buckets": chosen}
    return upper_bound(NAME, terms, delta, n, _assumptions(allowed), settings)


def _bucket_terms(sample: Sample, count: int, variation: float) -> dict[str, float]:
    """Gap and bias of about ``count`` buckets of equal mass."""
    from certcal._kernels.buckets import equal_mass_starts, run_sums

    n = sample.scores.size
    starts = np.empty(2 * count + 2, np.int64)
    starts = starts[: equal_mass_starts(sample.scores, count, starts)]
    sums = np.empty((starts.size - 1, 4))
    run_sums(*sample, starts, sums)
    mixed = sample.scores[starts[:-1]] < sample.scores[starts[1:] - 1]
    largest = float(sums[:, 0].max(where=mixed, initial=0.0)) / n
    within = _buckets.spread(sums[mixed], n) if mixed.any() else 0.0
    return {"gap": _buckets.gap(sums, n), "variation of eta": variation * largest / 2, "scores in a bucket": within}


def _assumptions(variation: float) -> tuple[str, ...]:
    limit = short_text(variation, "lower")
    return (
        INDEPENDENT,
        NOT_USED_BEFORE,
        f"the share of outcomes 1 as a function of the score varies by at most {limit}",
    )
