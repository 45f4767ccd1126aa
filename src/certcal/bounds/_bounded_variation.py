"""Bounds on the calibration error E|s - η(s)| when η, the share of outcomes 1 at a score, has bounded variation."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certcal._base.assumptions import INDEPENDENT, NOT_USED_BEFORE
from certcal._base.checks import MOST_CHANGE, choice, failure_probability, positive
from certcal._base.threads import SMALL, map_blocks
from certcal.bounds._band import StepFunction
from certcal.bounds._bets import OUTCOME_DEVIATIONS, mean_from_logs, mean_places, signed_sums, sorted_cells
from certcal.bounds._shared import (
    Floats,
    Sample,
    average_terms,
    bernstein_term,
    check_folds,
    check_pairs,
    check_seed,
    mean_rounding,
    refuse_split,
    sort_in_folds,
    sort_pairs,
    upper_bound,
)
from certcal.bounds.concentration import place_bets
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

    1. Let σ_m be the sign of the sum of g over bucket m: it depends on the scores and on η, not on the outcomes. Given
       the scores outcomes are independent, so for a bet θ in [0, 1) the product of 1 - θ σ_m(i) (y_i - s_i) has the
       expectation Π (1 - θ σ_m(i) g(s_i)).
    2. That is at most e^(n b artanh θ) Π (1 - θ |g(s_i)|), where n b >= Σ_m (Σ |g(s_i)| - |Σ g(s_i)|): a sample whose g
       has the other sign than its bucket makes a factor larger by (1 + θ|g|)/(1 - θ|g|) <= e^(2 |g| artanh θ). And
       Π (1 - θ |g(s_i)|) has the expectation (1 - θ E|g|)^n over the draw of the scores.
    3. In a bucket where η has the range r, the mean distance of η from its mean is at most r/2, and 0 where all scores
       are equal. Ranges add up to at most the variation, so b may be ½ · variation · (largest share of a bucket with
       different scores) plus the mean distance of a score from the mean of its bucket.
    4. So the product of step 1 over e^(n b artanh θ) (1 - θ m)^n has an expectation of at most 1 at m = E|g|; so has
       the average over several bets and numbers of buckets, which depend on n and ``variation`` only. It reaches
       1/delta with probability at most delta (Markov). The signs are unknown but fixed; with those that make the
       product smallest, bucket by bucket, it reaches 1/delta even more rarely: no union over signs, bets or numbers of
       buckets, and no separate deviation for the scores. The value is the m where it does.

    The rate is n^(-1/3). What is given away: the gap counts the noise of each bucket as if it were miscalibration,
    about 0.4 √(buckets/n), and the ranges are taken as if all of the variation happened within buckets. The terms are
    those of the number of buckets with which gap and bias are least.

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
    0.0227
    >>> bound = bounded_variation(s, y, form="published")
    >>> print(bound.text, max(bound.terms, key=bound.terms.get))
    0.2132 denoising
    """
    return bounded_variation_of(*check_pairs(scores, outcomes), delta, variation, form=form, folds=folds, seed=seed)


def bounded_variation_of(
    s: NDArray[Any],
    y: NDArray[np.uint8],
    delta: float,
    variation: float = 1.0,
    *,
    form: str = "direct",
    folds: int | None = None,
    seed: int | None = None,
) -> Bound:
    delta = failure_probability(delta, "delta")
    allowed = positive(variation, "variation", MOST_CHANGE)
    if choice(form, FORMS, "form") == "published":
        terms, settings = _terms_over_folds(s, y, delta, allowed, 2 if folds is None else folds, seed or 0)
        assumptions = (*_assumptions(allowed), ORDER)
        return upper_bound(NAME, terms, delta, s.size, assumptions, {"variation": allowed, **settings})
    refuse_split(folds, seed)
    n, buckets = s.size, _Buckets.of(sort_pairs(s, y), allowed)
    bets = place_bets(delta, n, OUTCOME_DEVIATIONS)
    least, bias = buckets.least(bets), np.array([buckets.bias(starts, allowed) for starts in buckets.candidates])
    logs = least[:, :-1] - n * np.arctanh(bets) * bias.sum(axis=1)[:, None]
    limit = mean_from_logs(logs, bets, n, delta, n * (len(buckets.cells) + 20) * 2.0**-51)
    gap = -least[:, -1] / n + mean_rounding(n)
    best = int(np.argmin(gap + bias.sum(axis=1)))
    terms = {"gap": gap[best], "variation of eta": bias[best, 0], "scores in a bucket": bias[best, 1]}
    terms = {name: float(size) for name, size in terms.items()}
    terms["deviation"] = max(0.0, limit - math.fsum(terms.values()))
    chosen = buckets.candidates[best].size - 1
    settings = {"variation": allowed, "buckets": chosen}
    return upper_bound(NAME, terms, delta, n, _assumptions(allowed), settings)


class _Buckets(NamedTuple):
    """Sorted samples in cells, how many the first k cells have, and the cells with which buckets start, n included."""

    cells: Floats
    number: NDArray[np.int64]
    candidates: list[NDArray[np.int64]]

    @classmethod
    def of(cls, sample: Sample, variation: float) -> _Buckets:
        """Numbers of buckets 1, 2, 4 … that depend on n and the variation only."""
        from certcal._kernels.buckets import equal_mass_starts

        n = sample.scores.size
        # Where ½ · variation / B and the noise 0.4 √(B/n) balance, and some room to both sides.
        most = math.ceil(math.log2(max(1.0, min(8 * ((variation + 0.5) ** 2 * n) ** (1 / 3), n))))
        starts = np.empty(2 ** (most + 3) + 2, np.int64)
        starts = starts[: equal_mass_starts(sample.scores, 2 ** (most + 2), starts)]
        return cls(sorted_cells(sample, starts), starts, [_equal_mass(starts, 2**k) for k in range(most + 1)])

    def least(self, bets: Floats) -> Floats:
        """For each candidate and bet the least sum of logarithms that any signs of the buckets leave; minus the gap."""
        sums = signed_sums(self.cells, bets)
        return np.stack([np.diff(sums[:, :, each], axis=2).min(axis=1).sum(axis=1) for each in self.candidates])

    def bias(self, starts: NDArray[np.int64], variation: float) -> tuple[float, float]:
        """What η and the scores contribute where buckets start with these cells, rounded up."""
        number, n, size = np.diff(self.number[starts]), int(self.number[-1]), np.diff(starts)
        low, high, place, many = *self.cells[:, 4:].T, mean_places(self.cells), np.diff(self.number)
        middle = np.add.reduceat(many * ((1 - place) * low + place * high), starts[:-1]) / number
        # The distance is convex in the score, so within a cell it is below its chord.
        away = (1 - place) * np.abs(low - np.repeat(middle, size)) + place * np.abs(high - np.repeat(middle, size))
        mixed = low[starts[:-1]] < high[starts[1:] - 1]
        largest = int(number.max(where=mixed, initial=0))
        within = float((many * away).sum(where=np.repeat(mixed, size))) / n
        return variation * largest / (2 * n), within + mean_rounding(n) if largest else 0.0


def _equal_mass(starts: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Cells with which about ``count`` buckets start: those with each n/count-th sample, and any after a large one."""
    n = int(starts[-1])
    holding = np.searchsorted(starts, np.arange(count) * n // count, "right") - 1
    large = holding[np.diff(starts)[holding] * count >= n]
    return np.unique(np.concatenate((holding, large + 1, [starts.size - 1])))


def _assumptions(variation: float) -> tuple[str, ...]:
    limit = short_text(variation, "lower")
    rise = "higher scores never mean lower risk, or their" if variation >= 1 else "the risk's"
    return INDEPENDENT, NOT_USED_BEFORE, f"{rise} ups and downs add up to at most {limit}"


def _terms_over_folds(
    s: NDArray[Any], y: NDArray[np.uint8], delta: float, allowed: float, folds: int, seed: int
) -> tuple[dict[str, float], dict[str, Any]]:
    """Terms averaged over the folds, and the settings to be recorded.

    What is random: n independent draws of (s, y), in the order in which they came. Fixed places are split into K folds.
    For each fold the surrogate is fitted to the N samples of the other folds, which are independent of its own M
    samples; over these |s - surrogate| is averaged. The fold's bound is at level delta/K, all K hold together except
    with probability delta, and so does their mean, however large the folds are.

    With δ₁ = … = δ₄ = delta/(4K), m different scores among the N, and V the variation allowed, the terms are

    * ``estimate``: the mean of |s - surrogate| over the fold (the paper divides the sum by N, which must be M),
    * ``draw of the validation scores``: BB(M, δ₄, variance) of the empirical Bernstein inequality,
    * ``denoising`` (TVB): (t₁ + √(t₁² + 4 t₂ V))/√N, with t₁ = √(½ ln(4/δ₁)) and t₂ = √(N/8 · ln(4(m-1)/δ₁)),
    * ``draw of the training scores`` (PTB): (V + variation of the surrogate) √(ln(2/δ₂)/2N) + √(ln(2/δ₃)/2N).

    Where the paper's proof was mended (the page on bounds has the details): equal scores are one design point, because
    the step function has one value there while the paper's vector has several; with m points the union behind t₂ is
    over m - 1 places. Lemma 5 is Koksma's inequality, which needs no term with δ₃; it is kept as published. The
    constraint to [0, 1] in the paper's problem is never active, since denoising does not leave the range of the data.
    """
    folds, seed = check_folds(folds, s.size), check_seed(seed)
    sample, fold = sort_in_folds(s, y, folds, seed)

    def some(start: int, stop: int) -> list[dict[str, float]]:
        return [_fold_terms(sample, fold, k, delta / folds, allowed) for k in range(start, stop)]

    parts = map_blocks(some, folds, small=1 if s.size > SMALL else folds)
    settings = {"folds": folds, "seed": seed, "form": "published"}
    return average_terms([each for part in parts for each in part]), settings


def _fold_terms(sample: Sample, fold: Any, held_out: int, delta: float, allowed: float) -> dict[str, float]:
    """Terms of Proposition 1 when one fold is for validation and the rest for training."""
    from certcal._kernels.denoise import held_out_gaps, variation

    part = delta / 4
    n, t2, surrogate = _denoise(sample, fold, held_out, part)
    t1 = math.sqrt(math.log(4 / part) / 2)
    number, gaps, squares = held_out_gaps(sample.scores, fold, held_out, surrogate)
    mean = gaps / number + mean_rounding(number)
    variance = max(0.0, squares / number - (gaps / number) ** 2) + 3 * mean_rounding(number)
    transfer = math.sqrt(math.log(2 / part) / (2 * n))
    return {
        "estimate": mean,
        "draw of the validation scores": bernstein_term(number, part, variance),
        "denoising": (t1 + math.sqrt(t1 * t1 + 4 * t2 * allowed)) / math.sqrt(n),
        "draw of the training scores": (allowed + variation(surrogate) + 1) * transfer,
    }


def _denoise(sample: Sample, fold: Any, held_out: int, delta: float) -> tuple[int, float, Floats]:
    """Samples outside the fold, the price t₂ of a unit of variation, and the values at their different scores."""
    from certcal._kernels.denoise import denoise, design_points

    n = int(np.count_nonzero(fold != held_out))
    weight, total = np.empty(n + 1, np.int32), np.empty(n + 1, np.int32)
    m = design_points(*sample, fold, held_out, weight, total)
    t2 = math.sqrt(n * math.log(4 * (m - 1) / delta) / 8) if m > 1 else 0.0
    # The paper's λ is t₂/n for a mean of squares; for their sum the price is t₂.
    return n, t2, denoise(weight[1 : m + 1], total[1 : m + 1], t2)


def denoised(scores: Any, outcomes: Any, delta: float = 0.05) -> StepFunction:
    """The calibration function η by total variation denoising: the surrogate of Proposition 1, of all samples.

    It is the red curve of Figure 5 of *Measuring uncertainty calibration* and an estimate: nothing is claimed of it at
    any one score. Denoising pulls it towards a constant, most of all near 0 and 1 and where η turns.

    Parameters
    ----------
    scores, outcomes, delta
        As for :func:`bounded_variation`; a quarter of delta sets the price of variation, as in its published form.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(100_000)
    >>> curve = denoised(s, rng.random(s.size) < s**2)
    >>> len(curve.values), curve.at([0.0, 0.5, 1.0]).round(2).tolist()
    (94, [0.04, 0.25, 0.87])
    """
    level = failure_probability(delta, "delta")
    sample = sort_pairs(*check_pairs(scores, outcomes))
    values = _denoise(sample, np.zeros(sample.scores.size, np.uint8), 1, level / 4)[2]
    starts = np.unique(sample.scores)
    jumps = np.flatnonzero(np.diff(values, prepend=-1.0))
    return StepFunction(starts[jumps], values[jumps])
