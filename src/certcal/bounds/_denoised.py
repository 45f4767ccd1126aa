"""Proposition 1 of *Measuring uncertainty calibration*: a surrogate for η by total variation denoising.

Kept for comparison with :func:`certcal.bounds.bounded_variation`, which claims the same and is several times smaller.

What is random: n independent draws of (s, y), in the order in which they came. Fixed places are split into K folds. For
each fold the surrogate is fitted to the N samples of the other folds, which are independent of its own M samples; over
these |s - surrogate| is averaged. The fold's bound is at level delta/K, all K hold together except with probability
delta, and so does their mean, however large the folds are.

With δ₁ = … = δ₄ = delta/(4K), m different scores among the N, and V the variation allowed, the terms are

* ``estimate``: the mean of |s - surrogate| over the fold (the paper divides the sum by N, which must be M),
* ``draw of the validation scores``: BB(M, δ₄, variance) of the empirical Bernstein inequality,
* ``denoising`` (TVB): (t₁ + √(t₁² + 4 t₂ V))/√N, with t₁ = √(½ ln(4/δ₁)) and t₂ = √(N/8 · ln(4(m-1)/δ₁)),
* ``draw of the training scores`` (PTB): (V + variation of the surrogate) √(ln(2/δ₂)/2N) + √(ln(2/δ₃)/2N).

Where the paper's proof was mended (the page on bounds has the details): equal scores are one design point, because the
step function has one value there while the paper's vector has several; with m points the union behind t₂ is over m - 1
places. Lemma 5 is Koksma's inequality, which needs no term with δ₃; it is kept as published. The constraint to [0, 1]
in the paper's problem is never active, since denoising does not leave the range of the data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._threads import SMALL, map_blocks
from certcal.bounds import _buckets
from certcal.bounds._shared import Sample, average_terms, bernstein_term, check_folds, check_seed, in_folds


def terms(
    s: NDArray[Any], y: NDArray[np.uint8], delta: float, allowed: float, folds: int, seed: int
) -> tuple[dict[str, float], dict[str, Any]]:
    """Terms averaged over the folds, and the settings to be recorded."""
    folds, seed = check_folds(folds, s.size), check_seed(seed)
    sample, fold = in_folds(s, y, folds, seed)

    def some(start: int, stop: int) -> list[dict[str, float]]:
        return [_fold_terms(sample, fold, k, delta / folds, allowed) for k in range(start, stop)]

    parts = map_blocks(some, folds, small=1 if s.size > SMALL else folds)
    settings = {"folds": folds, "seed": seed, "form": "published"}
    return average_terms([each for part in parts for each in part]), settings


def _fold_terms(sample: Sample, fold: Any, held_out: int, delta: float, allowed: float) -> dict[str, float]:
    """Terms of Proposition 1 when one fold is for validation and the rest for training."""
    from certcal._kernels.denoise import denoise, design_points, held_out_gaps, variation

    s = sample.scores
    part = delta / 4
    n = int(np.count_nonzero(fold != held_out))
    weight, total = np.empty(n + 1, np.int32), np.empty(n + 1, np.int32)
    m = design_points(*sample, fold, held_out, weight, total)
    t1 = math.sqrt(math.log(4 / part) / 2)
    t2 = math.sqrt(n * math.log(4 * (m - 1) / part) / 8) if m > 1 else 0.0
    # The paper's λ is t₂/n for a mean of squares; for their sum the price is t₂.
    surrogate = denoise(weight[1 : m + 1], total[1 : m + 1], t2)
    number, gaps, squares = held_out_gaps(s, fold, held_out, surrogate)
    mean = gaps / number + _buckets.rounding(number)
    variance = max(0.0, squares / number - (gaps / number) ** 2) + 3 * _buckets.rounding(number)
    transfer = math.sqrt(math.log(2 / part) / (2 * n))
    return {
        "estimate": mean,
        "draw of the validation scores": bernstein_term(number, part, variance),
        "denoising": (t1 + math.sqrt(t1 * t1 + 4 * t2 * allowed)) / math.sqrt(n),
        "draw of the training scores": (allowed + variation(surrogate) + 1) * transfer,
    }
