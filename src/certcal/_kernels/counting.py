# pyright: basic
"""From a model's outputs to votes and histograms of one class's confidence.

A vote goes to the largest output; among equal ones to the class with the lowest number. That is a function of the
outputs like any other, so certificates hold for it. A row that is no prediction at all (a NaN or infinite logit; a
probability that is NaN, negative or above one; probabilities that do not sum to one) has no vote and confidence 0: it
counts against the class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._kernels._compile import njit


@njit(error_model="numpy")
def _valid(row: Any, logits: Any, above: Any, tolerance: Any) -> Any:
    if logits:
        good = True
        for k in range(row.size):
            good &= np.isfinite(row[k])
        return good
    total = 0.0
    for k in range(row.size):
        if not 0.0 <= row[k] <= 1.0 + above:  # false for NaN
            return False
        total += row[k]
    return abs(total - 1.0) <= tolerance


@njit
def _largest(row: Any) -> Any:
    best = 0
    for k in range(1, row.size):
        if row[k] > row[best]:
            best = k
    return best


@njit(error_model="numpy")
def _confidence(row: Any, chosen: Any, logits: Any) -> Any:
    """Probability of one class: for logits 1 / Σ_k exp(l_k - l_A), where an overflow means 0."""
    own = np.float64(row[chosen])
    if not logits:
        return min(own, 1.0)
    total = 0.0
    for k in range(row.size):
        total += np.exp(np.float64(row[k]) - own)
    return 1.0 / total


@njit
def _cell(value: Any, thresholds: Any) -> Any:
    """How many thresholds are at most the value."""
    low, high = 0, thresholds.size
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def add_votes(
    outputs: Any,
    rows: Any,
    first: Any,
    per_sample: Any,
    logits: Any,
    above: Any,
    tolerance: Any,
    votes: Any,
    invalid: Any,
) -> None:
    """Count the votes of the first ``rows`` outputs, row by row for the sample ``(first + row) // per_sample``."""
    for row in range(rows):
        place = (first + row) // per_sample
        if _valid(outputs[row], logits, above, tolerance):
            votes[place, _largest(outputs[row])] += 1
        else:
            invalid[place] += 1


@njit(error_model="numpy")
def _rest(row: Any, chosen: Any, others: Any, logits: Any) -> Any:
    """Probability of all classes but the chosen one and the others."""
    top = np.float64(row[_largest(row)])
    total, rest = 0.0, 0.0
    for k in range(row.size):
        weight = np.exp(np.float64(row[k]) - top) if logits else np.float64(row[k])
        total += weight
        named = k == chosen
        for other in others:
            named |= k == other
        rest += 0.0 if named else weight
    return min(rest / total if logits else rest, 1.0)


@njit
def add_confidences(
    outputs: Any,
    rows: Any,
    first: Any,
    per_sample: Any,
    logits: Any,
    above: Any,
    tolerance: Any,
    classes: Any,
    others: Any,
    thresholds: Any,
    units: Any,
    votes: Any,
    invalid: Any,
    sums: Any,
    histogram: Any,
    other_histograms: Any,
) -> None:
    """Count votes as :func:`add_votes` does, and the confidence of each sample's class: its cell, and its sum.

    A confidence is added as the whole number of ``units`` in it (a power of two, so that nothing else is rounded). The
    ``others`` are further classes of each sample, which get a histogram each; the last one is of all the rest.
    """
    more = others.shape[1]
    for row in range(rows):
        place = (first + row) // per_sample
        chosen = classes[place]
        if not _valid(outputs[row], logits, above, tolerance):
            invalid[place] += 1
            histogram[place, 0] += 1
            for k in range(other_histograms.shape[1]):
                other_histograms[place, k, 0] += 1
            continue
        votes[place, _largest(outputs[row])] += 1
        confidence = _confidence(outputs[row], chosen, logits)
        sums[place] += np.int64(np.floor(confidence * units))
        histogram[place, _cell(confidence, thresholds)] += 1
        for k in range(more):
            other_histograms[place, k, _cell(_confidence(outputs[row], others[place, k], logits), thresholds)] += 1
        if more:
            other_histograms[place, more, _cell(_rest(outputs[row], chosen, others[place], logits), thresholds)] += 1
