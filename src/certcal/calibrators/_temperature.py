"""Temperature scaling: the one number by which logits are divided."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import labels as check_labels
from certcal._checks import logit_matrix, same_length, weights
from certcal._threads import map_blocks

# Beyond these the loss has no minimum (every label is the largest logit, or the logits point away from the labels).
SMALLEST, LARGEST = 1e-3, 1e3


def fit_temperature(logits: Any, labels: Any, sample_weight: Any = None) -> float:
    """Temperature T that minimises the negative log-likelihood of softmax(logits / T) (Guo et al. 2017).

    The loss is convex in 1/T, so Newton steps inside a shrinking bracket find its minimum to machine precision. When
    there is none (every label has the largest logit, say), the nearer end of [0.001, 1000] is returned.

    Parameters
    ----------
    logits
        One row per sample, one column per class.
    labels
        True class of each sample, from 0.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> round(fit_temperature([[0.0, 2.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]], [1, 0, 1, 0]), 6)
    1.820478
    """
    x = logit_matrix(logits)
    y = check_labels(labels, x.shape[1])
    same_length(logits=x.shape[0], labels=y.size)
    w = weights(sample_weight, y.size)
    low, high = 1 / LARGEST, 1 / SMALLEST
    if _derivatives(x, y, w, low)[0] >= 0:
        return LARGEST
    if _derivatives(x, y, w, high)[0] <= 0:
        return SMALLEST
    inverse = 1.0
    for _ in range(200):
        slope, curvature = _derivatives(x, y, w, inverse)
        low, high = (inverse, high) if slope < 0 else (low, inverse)
        step = inverse - slope / curvature if curvature > 0 else math.inf
        following = step if low < step < high else math.sqrt(low * high)
        if abs(following - inverse) <= 1e-14 * inverse:
            break
        inverse = following
    return 1 / inverse


def _derivatives(
    x: NDArray[Any], y: NDArray[np.int64], w: NDArray[np.float64] | None, inverse: float
) -> tuple[float, float]:
    from certcal._kernels.temperature import scaled_loss

    none = np.empty(0)
    parts = map_blocks(
        lambda start, stop: scaled_loss(x[start:stop], y[start:stop], none if w is None else w[start:stop], inverse),
        y.size,
        small=1 + 20_000 // x.shape[1],
    )
    return sum(part[1] for part in parts), sum(part[2] for part in parts)
