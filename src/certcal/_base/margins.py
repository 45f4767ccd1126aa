"""From bounds on scores before the link (logits, raw scores) to intervals of confidences, rounded outward.

A softmax is a function of the margins alone: the confidence of class A is 1 / (1 + Σ_j exp(l_j − l_A)), which falls in
every margin. So bounds on each margin give bounds on the confidence, and nothing is lost in between but what the
margins lose by being bounded one at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DOUBLE, SINGLE = 2.0**-53, 2.0**-24
# Roundings of a link in a library: exponential, sum, quotient, and what a vectorised exponential adds.
_STEPS = 16


def score_intervals(lower: Any, upper: Any, *, unit: float = DOUBLE) -> tuple[Floats, Floats]:
    """Intervals of a binary score 1 / (1 + exp(−s)) from bounds on its raw score s.

    What is claimed: for every s from lower to upper, the logistic function of s is inside, and so is what a library
    makes of s in arithmetic with the given unit roundoff.

    Parameters
    ----------
    lower, upper
        Bounds on the raw score of each sample.
    unit
        Unit roundoff of the arithmetic in which the model itself applies the link: 2⁻⁵³, or 2⁻²⁴ for float32.

    Examples
    --------
    >>> low, high = score_intervals([-1.0, 0.0], [0.0, 2.0])
    >>> low.round(4), high.round(4), bool((high >= [0.5, 0.88]).all())
    (array([0.2689, 0.5   ]), array([0.5   , 0.8808]), True)
    """
    below, above = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    with np.errstate(over="ignore"):
        return _move_outward(1 / (1 + np.exp(-below)), 1 / (1 + np.exp(-above)), unit, 2)


def confidence_intervals(
    lower: Any, upper: Any, predicted: Any, *, unit: float = DOUBLE
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Intervals of the predicted class's confidence from bounds on margins, and where that class cannot change.

    Parameters
    ----------
    lower, upper
        A row per sample and a column per class: bounds on l_j − l_A, with A the predicted class. Its own column is not
        looked at.
    predicted
        The class A of each sample.
    unit
        As for :func:`score_intervals`.

    Examples
    --------
    >>> low, high, certified = confidence_intervals([[0.0, -3.0, -4.0]], [[0.0, -1.0, -2.0]], [0])
    >>> low.round(4), high.round(4), certified
    (array([0.6652]), array([0.9362]), array([ True]))
    """
    below, above, own = _rounded_margins(lower, upper, predicted, unit)
    classes = int(below.shape[1])
    with np.errstate(over="ignore"):
        least, most = (1 / np.exp(margins).sum(axis=1) for margins in (above, below))
    # A margin that rounding could close is not enough.
    certified = np.where(own, -np.inf, above).max(axis=1) < -(classes + _STEPS) * unit
    return *_move_outward(least, most, unit, classes), certified


def predicted_intervals(
    lower: Any, upper: Any, predicted: Any, *, unit: float = DOUBLE
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """What a verifier reports of its margins: of two classes the score of class 1, of more the predicted confidence.

    A binary score needs no certified class, so every sample of it counts as certified.

    Parameters
    ----------
    lower, upper, predicted, unit
        As for :func:`confidence_intervals`.

    Examples
    --------
    >>> low, high, certified = predicted_intervals([[-2.0, 0.0]], [[1.0, 0.0]], [1])
    >>> low.round(4), high.round(4), certified
    (array([0.2689]), array([0.8808]), array([ True]))
    """
    if np.shape(lower)[1] > 2:
        return confidence_intervals(lower, upper, predicted, unit=unit)
    low, high, own = _rounded_margins(lower, upper, predicted, unit)
    below = np.where(own[:, 0], low[:, 1], -high[:, 0])
    above = np.where(own[:, 0], high[:, 1], -low[:, 0])
    return *score_intervals(below, above, unit=unit), np.ones(len(own), np.bool_)


def _rounded_margins(lower: Any, upper: Any, predicted: Any, unit: float) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The margins that a softmax computes with, where the predicted class's own is 0, and which column that is.

    A softmax subtracts the largest logit m from all, rounded: it sees l_j - l_A up to unit (|l_j - m| + |l_A - m|), at
    most unit (|l_j - l_A| + 2 |l_A - m|), and l_A is below m by no more than the largest upper end.
    """
    ends = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    own = np.equal(np.asarray(predicted, np.int64)[:, None], np.arange(int(ends[0].shape[1])))
    below, above = (np.where(own, 0.0, each) for each in ends)
    behind = 2 * np.maximum(above, 0.0).max(axis=1, keepdims=True)
    # Twice, for the rounding of this.
    below, above = (each + sign * 2 * unit * (np.abs(each) + behind) for each, sign in ((below, -1), (above, 1)))
    return np.where(own, 0.0, below), np.where(own, 0.0, above), own


def _move_outward(low: Floats, high: Floats, unit: float, classes: int) -> tuple[Floats, Floats]:
    room = (classes + _STEPS) * unit + 16 * DOUBLE
    tiny = float(np.finfo(np.float32 if unit > DOUBLE else np.float64).tiny)  # what is smaller, a library may flush
    return np.clip(low * (1 - room) - tiny, 0.0, 1.0), np.clip(high * (1 + room) + tiny, 0.0, 1.0)
