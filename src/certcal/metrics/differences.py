"""Intervals for how much a metric differs between two sets of predictions.

*Means* (accuracy, Brier score, log loss) and AUROC differ by a mean over samples. Where both sets are answers for the
same samples, the samples' own differences are averaged, which vary less than either set where the two agree. AUROC is a
mean of placements: the share of the other outcome that a sample's score is on the right side of (DeLong, DeLong and
Clarke-Pearson, 1988).

*Everything else*, calibration errors above all: these are norms, biased upward by an amount that differs between the
two sets, so that resampling their difference promises too much near zero. If two intervals hold together with a
probability, the difference lies between the differences of their ends with that probability, whatever the two have to
do with each other. It is wider than it need be, and it holds where the two intervals do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.claims import Estimate, Interval
from certcal.metrics._intervals import deviation
from certcal.metrics.registry import MeanOf, MetricEntry, entry_named
from certcal.predictions import Predictions

Floats = NDArray[np.float64]

PAIRED, UNPAIRED, JOINT = "paired mean", "unpaired mean", "difference of two intervals"
# Of a binary score these depend on the outcomes alone, which two answers for the same samples share.
_OF_OUTCOMES = ("base_rate", "brier_uncertainty")
# With fewer misplaced samples of the rarer outcome the placements do not show how much AUROC varies.
_FEW = 10
# A mean of contributions is the metric up to rounding, or it is another metric.
_SAME = 1e-9


def joint_level(level: float) -> float:
    """The level of two intervals that hold together with this one, by the union bound."""
    return round(1 - (1 - level) / 2, 12)


def joint_interval(old: Estimate, new: Estimate) -> Interval | None:
    """Where the new value minus the old one lies if both are inside their intervals; None where one has none."""
    one, other = old.interval, new.interval
    if one is None or other is None:
        return None
    level = round(max(0.0, one.level + other.level - 1), 12)
    return Interval(other.lower - one.upper, other.upper - one.lower, level, JOINT)


def difference_interval(
    old: Estimate, new: Estimate, before: Predictions, after: Predictions, level: float, *, paired: bool
) -> Interval | None:
    """An interval for the new value minus the old one.

    What is random: the samples, independent draws; with ``paired``, of one sample's answers by both. The level of means
    is reached as samples become many. A mean is taken to vary as it would if it lay as far away as the interval's end
    (Wilson, 1927), and at least as it would if the scores were calibrated: outcomes that have not occurred do not make
    it certain.

    Parameters
    ----------
    old, new
        The values, with intervals at :func:`joint_level`.
    before, after
        What they were measured on.
    level
        Of the interval.
    paired
        Whether both are answers for the same samples, in the same order.
    """
    from scipy.special import ndtri

    entry = entry_named(new.name, after.task)
    first, second = contributions(entry, before), contributions(entry, after)
    if entry is None or (paired and not _same_weights(before, after)):
        return joint_interval(old, new)
    if paired and after.task == "binary" and entry.name in _OF_OUTCOMES:
        return Interval(0.0, 0.0, level, PAIRED)
    if first is None or second is None:
        return joint_interval(old, new)
    values, weights = (float(old.value), float(new.value)), (before.sample_weight, after.sample_weight)
    if not (_is_mean(first, weights[0], values[0]) and _is_mean(second, weights[1], values[1])):
        return joint_interval(old, new)
    others = contributions(entry, before, otherwise=True), contributions(entry, after, otherwise=True)
    if any(each is not None and not np.isfinite(each).all() for each in others):
        return joint_interval(old, new)  # a loss that can be infinite, though it was not here
    if entry.name == "auroc":
        if min(_count_misplaced(before, values[0]), _count_misplaced(after, values[1])) < _FEW:
            return joint_interval(old, new)
        sides = [(second - first, after)] if paired else [(first, before), (second, after)]
        parts = [_class_noise(values, predictions) for values, predictions in sides]
        noise, reach = sum(part[0] for part in parts), max(part[1] for part in parts)
    elif paired:
        other = None if others[0] is None or others[1] is None else others[1] - others[0]
        noise, reach = _noise(second - first, other, after, (before.confidence, after.confidence))
    else:
        both = [
            _noise(first, others[0], before, (before.confidence,)),
            _noise(second, others[1], after, (after.confidence,)),
        ]
        noise, reach = both[0][0] + both[1][0], max(both[0][1], both[1][1])
    margin = deviation(noise, reach, float(ndtri((1 + level) / 2)))
    middle = values[1] - values[0]
    return Interval(middle - margin, middle + margin, level, PAIRED if paired else UNPAIRED)


def contributions(entry: MetricEntry | None, predictions: Predictions, *, otherwise: bool = False) -> Floats | None:
    """One number per sample whose mean is the metric and varies as it does; None for what is no such mean.

    ``otherwise`` asks what the samples would contribute had the other thing happened, where there are two.
    """
    given = None if entry is None else entry.arguments(predictions)
    if entry is None or given is None:
        return None
    arrays, options = given
    if otherwise:
        if entry.reads not in ("pair", "correct") or not isinstance(entry.form, MeanOf):
            return None
        arrays = (*arrays[:-1], 1 - arrays[-1])
    if isinstance(entry.form, MeanOf):
        return np.asarray(entry.form.losses(*arrays, **options, **entry.options), np.float64)
    if entry.name == "auroc":
        return _placements(arrays[0], arrays[1], predictions.sample_weight)
    return None


def _placements(z: NDArray[Any], c: NDArray[Any], w: Floats | None) -> Floats | None:
    """AUROC plus the influence of each sample on it."""
    weight = np.ones(z.size) if w is None else w
    share = float(np.dot(weight, c)) / float(weight.sum())
    if not 0 < share < 1:
        return None
    place: NDArray[np.intp] = np.unique(z, return_inverse=True)[1]
    ones, zeros = (np.bincount(place, weight * part) for part in (c, 1 - c))
    below = (np.cumsum(zeros) - zeros / 2) / zeros.sum()
    above = (ones.sum() - np.cumsum(ones) + ones / 2) / ones.sum()
    area = float(np.dot(ones, below)) / float(ones.sum())
    influence = c * (below[place] - area) / share + (1 - c) * (above[place] - area) / (1 - share)
    return np.asarray(area + influence, np.float64)


def _same_weights(before: Predictions, after: Predictions) -> bool:
    one, other = before.sample_weight, after.sample_weight
    return one is other if one is None or other is None else bool(np.array_equal(one, other))


def _is_mean(values: Floats, w: Floats | None, value: float) -> bool:
    return math.isfinite(value) and abs(_mean(values, w) - value) <= _SAME * max(1.0, abs(value))


def _mean(values: Floats, w: Floats | None) -> float:
    return float(np.average(values, weights=w))


def _count_misplaced(predictions: Predictions, area: float) -> float:
    """How many samples of the rarer outcome are on the wrong side of the other outcome's, counted in parts."""
    w = np.ones(len(predictions)) if predictions.sample_weight is None else predictions.sample_weight
    heavy = [w[predictions.correct == outcome] for outcome in (0, 1)]
    return min(float(each.sum()) ** 2 / float(np.dot(each, each)) for each in heavy) * (1 - area)


def _class_noise(values: Floats, predictions: Predictions) -> tuple[float, float]:
    """Variance of a mean of placements, and how much one sample of the rarer outcome can move it."""
    w = np.ones(values.size) if predictions.sample_weight is None else predictions.sample_weight
    centred, noise, reach = values - _mean(values, w), 0.0, 0.0
    for own in (predictions.correct == 1, predictions.correct == 0):
        heavy = w[own]
        crowding = float(np.dot(heavy, heavy)) / float(heavy.sum()) ** 2
        lost = 1 / (1 - crowding) if crowding < 1 - 1e-12 else math.inf
        noise += lost * float(np.dot(heavy**2, centred[own] ** 2)) / float(w.sum()) ** 2
        reach = max(reach, float(heavy.max()) * float(np.abs(centred[own]).max()) / float(w.sum()))
    return noise, reach


def _noise(
    values: Floats, others: Floats | None, predictions: Predictions, chances: tuple[NDArray[Any], ...]
) -> tuple[float, float]:
    """Variance of the mean, and how much one sample can move it.

    The variance is what was seen or, where that is more, what it would be if the scores were right about how often the
    other thing happens: rare outcomes that did not occur show no variance.
    """
    w = predictions.sample_weight
    total = float(values.size) if w is None else float(w.sum())

    def sum_of_squares(each: Floats) -> float:
        heavy = each if w is None else w * each
        return float(np.dot(heavy, heavy)) / total**2

    centred = values - _mean(values, w)
    noise = [sum_of_squares(centred)]
    if others is not None:
        gap = others - values
        for z in chances:
            other = np.abs(predictions.correct - z.astype(np.float64))  # how often it would have been the other
            expected = values + other * gap
            expected -= _mean(expected, w)
            gaps = np.sqrt(other * (1 - other)) * gap
            noise.append(sum_of_squares(expected) + sum_of_squares(gaps))
    reach = max(float(centred.max()), -float(centred.min())) or 1.0
    return max(noise), reach * (1.0 if w is None else float(w.max())) / total
