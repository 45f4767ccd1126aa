"""Maximum mean calibration error: the norm of the residuals in the space of the Laplacian kernel."""

from __future__ import annotations

import math
from typing import Any

from certcal._checks import positive, score_pair
from certcal.metrics._windows import sorted_samples


def mmce(confidence: Any, correct: Any, *, width: float = 0.4, sample_weight: Any = None) -> float:
    """Maximum mean calibration error (Kumar, Sarawagi and Jain 2018) in O(n log n), to 1e-14 at the default width.

    √(Σ_mn w_m w_n (c_m - z_m) (c_n - z_n) exp(-|z_m - z_n| / width)), with weights that sum to one. It is computed as a
    sum of squares over the sorted confidences, so nothing cancels and rounding does not grow with n.

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
    z, c, w = sorted_samples(*score_pair(confidence, correct, sample_weight))
    from certcal._kernels.mmce import squared_norm

    total = float(z.size) if w is None else math.fsum(w)
    return math.sqrt(squared_norm(z, c, w, length)) / total
