"""What bucketing bounds share: from sums over buckets to a bound on E|s - η(s)|. See :func:`bounded_variation`."""

from __future__ import annotations

import math

import numpy as np

from certcal.bounds._shared import Floats, chernoff_upper, hoeffding_term


def gap(sums: Floats, n: int) -> float:
    """(1/n) Σ_m |Σ_{i in m} (y_i - s_i)|, rounded up.

    Rows of ``sums``, one per bucket: number, Σ outcome, Σ score, Σ (score - mean)².
    """
    return float(np.abs(sums[:, 1] - sums[:, 2]).sum()) / n + rounding(n)


def spread(sums: Floats, n: int) -> float:
    """(1/n) Σ_m n_m sd_m, rounded up: at least the mean distance of a score from the mean score of its bucket."""
    return float(np.sqrt(sums[:, 0] * sums[:, 3]).sum()) / n + rounding(n)


def rounding(n: int) -> float:
    """What a mean of n scores can lose: each of the n additions rounds by at most a 2^-53rd, in whatever order."""
    return 1e-12 + n * 2.0**-52


def labels_and_scores(on_sample: float, n: int, delta: float, candidates: int) -> dict[str, float]:
    """Terms for the draw of the outcomes and of the scores, given a bucket sum that was the best of some candidates.

    Half of delta is for the outcomes, shared by the candidates; half is for the scores. How many candidates there are
    must not depend on the outcomes; which of them was the best may.
    """
    labels = hoeffding_term(n, delta / (2 * candidates))
    scores = max(0.0, chernoff_upper(min(1.0, on_sample + labels), n, delta / 2) - on_sample - labels)
    return {"draw of the outcomes": labels, "draw of the scores": scores}


def powers_of_two(most: float, n: int) -> list[int]:
    """Numbers of buckets that are tried: 1, 2, 4 … up to at least ``most``, not more than twice n."""
    top = math.ceil(math.log2(max(1.0, min(most, n))))
    return [2**k for k in range(top + 1)]
