"""The calibration error that chooses its own number of bins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import kernel_float, score_pair
from certcal._select import SLACK
from certcal.binning import mass_edges, sums
from certcal.metrics.binned import ece_of

Floats = NDArray[np.float64]


def sweep_ece(confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
    """Equal-mass calibration error with as many bins as keep the accuracies rising (Roelofs et al. 2022).

    Bins are added one at a time until the accuracy of a bin falls below that of the bin before it. Bins are closed on
    the left and equal confidences share one, as in :func:`equal_mass_ece`.

    Parameters
    ----------
    confidence
        Confidence of each prediction, in [0, 1].
    correct
        Whether each prediction is correct, 0 or 1.
    sample_weight
        Weights >= 0, or None.

    Examples
    --------
    >>> round(sweep_ece([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]), 12)
    0.2
    """
    z, c, w = score_pair(confidence, correct, sample_weight)
    count = sweep_bins(z, c, w)
    if count is None:
        edges = np.concatenate(([0.0], np.unique(z)[1:].astype(np.float64), [1.0]))
        return ece_of(sums(z, c, w, edges))
    return ece_of(sums(z, c, w, mass_edges(z, w, count, "left")))


def sweep_bins(z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None) -> int | None:
    """Largest number of equal-mass bins, counted up from one, whose accuracies never fall.

    None when no number of bins makes them fall; then every distinct confidence has a bin of its own.
    """
    from certcal._kernels.sweep import most_rising_bins

    values = kernel_float(z)
    none = np.empty(0)
    if w is not None:
        values, c, w = values[w > 0], c[w > 0], w[w > 0]
    wrong = values[c == 0]
    right = values[c == 1]
    if wrong.size == 0 or right.size == 0 or right.min() >= wrong.max():
        return None  # sorted by correctness
    limits = (float(right.min()), float(wrong.max()))
    del right
    if w is None:
        wrong.sort()
        return int(most_rising_bins(np.sort(values), none, wrong, none, *limits, SLACK))
    order = np.argsort(values, kind="stable")
    values, c, w = values[order], c[order], w[order]
    return int(most_rising_bins(values, np.cumsum(w), values[c == 0], np.cumsum(w[c == 0]), *limits, SLACK))
