"""Maximum mean calibration error: the norm of the residuals in the space of the Laplacian kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certcal._checks import kernel_float, positive, read_only, score_pair
from certcal.binning import ExactSum
from certcal.metrics.cosine import sorted_keys


def mmce(confidence: Any, correct: Any, *, width: float = 0.4, sample_weight: Any = None) -> float:
    """Maximum mean calibration error (Kumar, Sarawagi and Jain 2018) in O(n log n), to 1e-14 at the default width.

    √(Σ_mn w_m w_n (c_m - z_m) (c_n - z_n) exp(-|z_m - z_n| / width)), with weights that sum to one. It is computed as a
    sum of squares over the sorted confidences, so nothing cancels and rounding does not grow with n. The memory is
    that of one copy of the confidences or, with weights, of one position per sample.

    Parameters
    ----------
    confidence
        Confidence of each prediction, in [0, 1].
    correct
        Whether each prediction is correct, 0 or 1.
    width
        Width of the kernel.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> mmce([0.75, 0.75], [1, 0])
    0.25
    >>> round(mmce([0.5, 0.9], [1, 0]), 12) == round(math.sqrt(0.265 - 0.225 * math.exp(-1)), 12)
    True
    """
    length = positive(width, "width")
    z, c, w = score_pair(confidence, correct, sample_weight)
    values = kernel_float(z)
    from certcal._kernels import moments as kernels

    if w is not None:
        total = ExactSum()
        total.add(w)
        order, c, w = np.argsort(values), read_only(c), read_only(w)
        return math.sqrt(kernels.weighted_squared_norm(order, values, c, w, length)) / total.value
    keys, _ = sorted_keys(values, c)
    cell = np.empty(1, keys.dtype)
    return math.sqrt(kernels.squared_norm(keys, cell, cell.view(values.dtype), length)) / z.size
