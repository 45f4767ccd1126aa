"""Intervals for how much a metric differs between two sets of predictions.

*Means* (accuracy, Brier score, log loss) and AUROC differ by a mean over samples. Where both sets are answers for the
same samples, the samples' own differences are averaged, which vary less than either set where the two agree. AUROC is a
mean of placements: the share of the other outcome that a sample's score is on the right side of (DeLong, DeLong and
Clarke-Pearson, 1988).

*Binned calibration errors* of the same samples: a norm is biased upward by an amount that differs between the two sets,
so that resampling their difference promises too much near zero. :func:`paired_ece_interval` bounds each bin's part of
the bias by what is known of its sign.

*Everything else*: if two intervals hold together with a probability, the difference lies between the differences of
their ends with that probability, whatever the two have to do with each other. It is wider than it need be, and it holds
where the two intervals do.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal.binning import bin_indices, equal_width_edges, mass_edges
from certcal.claims import Estimate, Interval
from certcal.metrics._intervals import deviation, quantile
from certcal.metrics._measure import measure
from certcal.metrics.registry import MeanOf, MetricEntry, entry_named
from certcal.predictions import Predictions

Floats = NDArray[np.float64]

PAIRED, UNPAIRED, JOINT = "paired mean", "unpaired mean", "difference of two intervals"
PAIRED_BINS = "paired bins"
# Of a binary score these depend on the outcomes alone, which two answers for the same samples share.
_OF_OUTCOMES = ("base_rate", "brier_uncertainty")
# With fewer misplaced samples of the rarer outcome the placements do not show how much AUROC varies; with fewer samples
# of it, the gaps of bins how much binned errors do.
_FEW = 10
# A gap has its sign for certain beyond so many standard deviations; covariances of more bins are not held in memory.
_CLEAR, _MOST_BINS = 2.5, 500
# Binned errors whose change is that of paired bins, and whether the bins have equal mass.
_BINNED = {"ece": False, "equal_mass_ece": True}
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
    return Interval(new.end("lower") - old.end("upper"), new.end("upper") - old.end("lower"), level, JOINT)


def difference_interval(
    old: Estimate, new: Estimate, before: Predictions, after: Predictions, level: float, *, paired: bool
) -> Interval | None:
    """An interval for the new value minus the old one.

    What is random: the samples, independent draws; with ``paired``, of one sample's answers by both. The level of means
    is reached as samples become many, and not before rare kinds of samples with large losses are among them: where two
    answers of 0.001 and 1e-7 are wrong in 5 %, 95 % intervals of ten samples cover in 37 %. A mean is taken to vary as
    it would if it lay as far away as the interval's end (Wilson, 1927), and at least as it would if the scores were
    calibrated: outcomes that have not occurred do not make it certain.

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
    entry = entry_named(new.name, after.task)
    if entry is None or (paired and not _same_weights(before, after)):
        return joint_interval(old, new)
    before, after = _weighing(before), _weighing(after)
    first, second = contributions(entry, before), contributions(entry, after)
    if paired and after.task == "binary" and entry.name in _OF_OUTCOMES:
        return Interval(0.0, 0.0, level, PAIRED)
    if paired and entry.name in _BINNED:
        if min(_count_rarer(before), _count_rarer(after)) < _FEW:
            return joint_interval(old, new)
        found = paired_ece_interval(
            before, after, level, mass=_BINNED[entry.name], **{name: new.settings[name] for name in ("bins", "closed")}
        )
        return found or joint_interval(old, new)
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
    margin = deviation(noise, reach, quantile((1 - level) / 2))
    middle = values[1] - values[0]
    return Interval(middle - margin, middle + margin, level, PAIRED if paired else UNPAIRED)


def metric_change(
    name: str,
    before: Predictions,
    after: Predictions,
    level: float = 0.95,
    *,
    paired: bool,
    bins: int = 15,
    closed: str = "left",
) -> tuple[Estimate, Estimate, Interval | None]:
    """A metric before and after, with an interval for the new value minus the old one.

    Parameters
    ----------
    name, bins, closed
        Of the metric's row, and its settings if it has bins.
    before, after, level, paired
        As for :func:`difference_interval`.
    """
    asked: Any = {"metrics": [name], "bins": bins, "closed": closed, "bootstrap": 1000, "level": joint_level(level)}
    old, new = (measure(each, **asked).rows[0] for each in (before, after))
    return old, new, difference_interval(old, new, before, after, level, paired=paired)


def score_change(
    before: Predictions, after: Predictions, level: float = 0.95, *, paired: bool
) -> tuple[Estimate, Estimate, Interval]:
    """Which set is better: a proper score before and after, with an interval for the new value minus the old one.

    The log loss, or the Brier score where the log loss is infinite or one more sample could make it so (a score of
    exactly 0 or 1). What the interval claims: :func:`difference_interval`.
    """
    for name in proper_scores(after.task):
        old, new, found = metric_change(name, before, after, level, paired=paired)
        if found is not None and math.isfinite(found.lower + found.upper):
            return old, new, found
    raise InputError("a proper score needs samples whose weights are not all 0")


def proper_scores(task: str) -> tuple[str, str]:
    """Names of the rows that say which of two sets of predictions is better, the log loss first."""
    return ("top_label_nll", "top_label_brier_score") if task == "top-label" else ("nll", "brier_score")


def paired_ece_interval(
    before: Predictions,
    after: Predictions,
    level: float = 0.95,
    *,
    bins: int = 15,
    closed: str = "left",
    mass: bool = False,
) -> Interval | None:
    """An interval for the change of the binned calibration error between two answers for the same samples.

    What is random: the samples, independent draws, of both answers together. The level is reached as samples become
    many; in simulations 95 % intervals contain the change in 96 to 100 % (``experiments/changes.py``). With fewer than
    ten samples of the rarer outcome it is not used: one of nothing that happened contains it in 87 %. The proven
    :func:`certcal.bounds.difference` is 1.4 to 4 times as wide at the same level, so intersecting the two at a shared
    level would only cost. None for more than 500 bins.

    Why. In bin k let the gaps be S and those seen Ŝ = S + N, of two answers a and b, with the covariance of all N seen
    (variances at least those of calibrated scores). The upper end of T_a − T_b = Σ |S^a| − |S^b| is Σ |Ŝ^a| − |Ŝ^b|,
    moved bin by bin:

    - |S^a| − |Ŝ^a| ≤ −sN^a, s the sign of S^a: a mean of 0, and no bias.
    - |Ŝ^b| − |S^b| = sN^b where the sign is clear, |Ŝ^b| > 2.5 sd. Elsewhere it is at most |N^b|, of mean .8 sd; or
      −|S^b| ≤ −sS^b with the sign s of the nearest clear bin, again a mean. The bin's own sign is no choice: it goes
      with the noise that it would have to be free of.
    - Where b is unclear and both are nearly equal, |S^a| − |S^b| ≤ |S^a − S^b|, whose noise is that of the difference.

    Signs that are not clear count with the larger variance. The sum of |N^b| is skewed by what it shares with the other
    terms, which Cornish and Fisher's expansion follows and, for few bins, the larger variance of a sign. The lower end
    is the upper end of T_b − T_a.

    Parameters
    ----------
    before, after
        Two answers for the same samples in the same order, with the same weights.
    level
        Of the interval.
    bins, closed
        Number of bins, and their closed end.
    mass
        Whether bins have equal mass, for each answer its own.
    """
    gaps, noise = _paired_gaps(before, after, bins, closed, mass)
    if gaps.shape[1] > _MOST_BINS:
        return None
    q = quantile((1 - level) / 2)
    lower = -_most_above(gaps, noise, q)
    upper = _most_above(gaps[::-1], noise[::-1, :, ::-1], q)
    return Interval(max(lower, -1.0), min(upper, 1.0), level, PAIRED_BINS)


def _paired_gaps(before: Predictions, after: Predictions, bins: int, closed: str, mass: bool) -> tuple[Floats, Floats]:
    """Gaps by answer and bin that holds samples, and their covariance by answer, bin, answer and bin."""
    n, w = len(after), after.sample_weight
    share = np.full(n, 1 / n) if w is None else w / float(w.sum())
    places, parts, calm = list[NDArray[np.int64]](), list[Floats](), list[Floats]()
    for each in (before, after):
        edges = mass_edges(each.confidence, w, bins, closed) if mass else equal_width_edges(bins)
        places.append(bin_indices(each.confidence, edges, closed))
        z = each.confidence.astype(np.float64)
        parts.append(share * (each.correct - z))
        calm.append(share**2 * z * (1 - z))
    used: NDArray[np.int64] = np.unique(np.concatenate(places))
    size, where = used.size, [np.searchsorted(used, each) for each in places]
    if size > _MOST_BINS:
        return np.zeros((2, size)), np.zeros((2, 0, 2, 0))

    def per_bin(values: list[Floats]) -> Floats:
        return np.array([np.bincount(at, each, size) for at, each in zip(where, values, strict=True)], np.float64)

    gaps, heavy = per_bin(parts), per_bin([share * each for each in parts])
    noise = np.empty((2, size, 2, size))
    for one, other in product((0, 1), repeat=2):
        cells = np.bincount(where[one] * size + where[other], parts[one] * parts[other], size * size)
        noise[one, :, other] = cells.reshape(size, size)
    cross = np.multiply.outer(gaps, heavy)
    noise += float(np.dot(share, share)) * np.multiply.outer(gaps, gaps) - cross - cross.transpose(2, 3, 0, 1)
    own: Floats = np.einsum("ikik->ik", noise)  # a view
    own[:] = np.maximum(own, per_bin(calm))
    return gaps, noise


def _most_above(gaps: Floats, noise: Floats, q: float) -> float:
    """The upper end of the first error minus the second; ``q`` is a quantile of the normal distribution."""
    size, one, other = int(gaps.shape[1]), np.asarray(gaps[0], np.float64), np.asarray(gaps[1], np.float64)
    apart, first, second = one - other, *(np.sqrt(np.diag(noise[k, :, k])) for k in (0, 1))
    off = np.sqrt(np.maximum(first**2 + second**2 - 2 * np.diag(noise[0, :, 1]), 0.0))
    shown, clear = np.abs(one) > _CLEAR * first, np.abs(other) > _CLEAR * second
    near = ~clear & (np.abs(apart) + off < second)
    known = np.asarray(np.where(near, apart * (np.abs(apart) > _CLEAR * off), one * shown), np.float64)
    terms = np.eye(2 * size)
    terms[:size, size:][near] = -np.eye(size)[near]
    terms[size:][near] = 0.0
    shared = terms @ noise.reshape(2 * size, 2 * size) @ terms.T

    def with_signs(others: Floats) -> Floats:
        signs = np.concatenate((-np.sign(known), others))
        both = np.multiply.outer(signs, signs)
        return np.where(both != 0, both * shared, np.abs(shared))

    middle = float(np.where(near, np.abs(apart), np.abs(one) - np.abs(other)).sum())
    own, free = with_signs(np.sign(other) * clear), ~clear & ~near
    found = middle + max(_norm_quantile(own, np.concatenate((np.zeros(size, np.bool_), free)), q), q * _root(own))
    if not (places := np.flatnonzero(clear)).size:
        return found
    signs = np.sign(other[places])[np.searchsorted((places[1:] + places[:-1]) / 2, np.arange(size))]
    middle += float((np.abs(other) - signs * other)[free].sum())
    return min(found, middle + q * _root(with_signs(np.where(near, 0.0, signs))))


def _root(covariance: Floats) -> float:
    return math.sqrt(max(float(covariance.sum()), 0.0))


def _norm_quantile(covariance: Floats, free: NDArray[np.bool_], q: float) -> float:
    """What a sum of normal variables exceeds with the tail probability of q; the ``free`` ones enter by their size."""
    own = covariance[np.ix_(free, free)]
    spread = np.sqrt(np.diag(own))
    sizes = np.multiply.outer(spread, spread)
    rho = np.clip(np.divide(own, sizes, out=np.zeros_like(own), where=sizes > 0), -1, 1)
    both = 2 / math.pi * (np.sqrt(1 - rho**2) + rho * np.arcsin(rho) - 1)
    variance = max(float(covariance[np.ix_(~free, ~free)].sum()), 0.0) + float((both * sizes).sum())
    if variance <= 0:
        return 0.0
    shared = covariance[np.ix_(~free, free)].sum(axis=0)
    slope = np.divide(shared, spread**2, out=np.zeros_like(spread), where=spread > 0)
    mean = math.sqrt(2 / math.pi)
    skew = mean * float(((spread / math.sqrt(variance)) ** 3 * (3 * slope**2 + 4 / math.pi - 1)).sum())
    moved = q + (q**2 - 1) * skew / 6 - (2 * q**3 - 5 * q) * skew**2 / 36
    return mean * float(spread.sum()) + moved * math.sqrt(variance)


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


def _weighing(predictions: Predictions) -> Predictions:
    """Those that have weight: the losses of others may be infinite."""
    w = predictions.sample_weight
    return predictions if w is None or w.all() or not w.any() else predictions.select(np.flatnonzero(w))


def _same_weights(before: Predictions, after: Predictions) -> bool:
    one, other = before.sample_weight, after.sample_weight
    return one is other if one is None or other is None else bool(np.array_equal(one, other))


def _is_mean(values: Floats, w: Floats | None, value: float) -> bool:
    return math.isfinite(value) and abs(_mean(values, w) - value) <= _SAME * max(1.0, abs(value))


def _mean(values: Floats, w: Floats | None) -> float:
    return float(np.average(values, weights=w))


def _count_misplaced(predictions: Predictions, area: float) -> float:
    """How many samples of the rarer outcome are on the wrong side of the other outcome's, counted in parts."""
    return _count_rarer(predictions) * (1 - area)


def _count_rarer(predictions: Predictions) -> float:
    """How many samples have the rarer outcome; with weights, their effective number."""
    w = np.ones(len(predictions)) if predictions.sample_weight is None else predictions.sample_weight
    heavy = [w[predictions.correct == outcome] for outcome in (0, 1)]
    return min(float(each.sum()) ** 2 / (float(np.dot(each, each)) or 1.0) for each in heavy)


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
