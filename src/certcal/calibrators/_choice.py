"""Which map? Those of a list are cross-fitted, and the best by log loss is taken if it beats no map."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.json import PlainValues
from certcal._base.rounding import signed
from certcal._base.text import counted
from certcal.calibrators._inputs import MapInput
from certcal.calibrators._isotonic import IsotonicCalibration
from certcal.calibrators._logistic import groups_of, resolution
from certcal.calibrators._predictions import fit_predictions, mapped, named_calibrator, takes_scores
from certcal.predictions import Predictions

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

FOLDS, _FEWEST = 5, 50
# In the order of their simplicity, which decides between equals.
OF_SCORES = ("none", "temperature", "platt", "beta", "quadratic", "spline", "isotonic")
OF_CLASSES = ("none", "temperature", "vector", "svs", "sms")
_MOST_CLASSES = 100  # of a matrix that is tried
_SAME = 1e-12  # of two log losses


@dataclass(frozen=True)
class TriedMap(PlainValues):
    """A map that was compared, by the mean log loss of samples that it was not fitted to."""

    method: str
    nll: float
    difference: float
    """The log loss minus that of no map."""
    standard_error: float
    """Of the difference; of paired samples."""


@dataclass(frozen=True, eq=False)
class MapChoice:
    """The map that was taken, and why."""

    method: str
    calibrator: Any
    """Fitted to all samples."""
    tried: tuple[TriedMap, ...]
    """From the least log loss on; empty where samples were too few."""
    why: str


def choose(predictions: Predictions, seed: int = 0) -> MapChoice:
    """The map with the least cross-fitted log loss, if it beats no map by more than one standard error; else no map.

    Scores and confidences: temperature, Platt, beta, quadratic, spline, or isotonic with one mean sample added to every
    flat part. Scores of all classes: temperature, vector, structured vector or matrix (of up to 100 classes, and of no
    more numbers than samples). Each is fitted five times, to four fifths of the samples, and judged on the others; the
    one that is taken is fitted to all. Fewer than 50 samples, or 5 of an outcome, get no map. No map leaves all as it
    is, but for scores of exactly 0 and 1, which are votes.

    Parameters
    ----------
    predictions
        With what was true.
    seed
        Of the folds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(4000)
    >>> overconfident = Predictions.from_scores(z, rng.random(4000) < 0.25 + z / 2)
    >>> choose(overconfident).method, choose(Predictions.from_scores(z, rng.random(4000) < z)).method
    ('spline', 'none')
    """
    folds = fold_of_rows(predictions, seed)
    rare = min(np.bincount(predictions.correct, minlength=2).tolist())
    of_classes = takes_scores("auto", predictions.kind)
    if len(predictions) < _FEWEST or (rare < FOLDS and not of_classes):
        fewest = f"{rare} of one outcome" if len(predictions) >= _FEWEST else counted(len(predictions), "sample")
        fitted = fit_predictions(predictions, "none")
        return MapChoice("none", fitted, (), f"No map: {fewest} is too little to choose one.")
    losses, weights = (_class_losses if of_classes else _score_losses)(predictions, folds)
    first = losses["none"]
    size = float(weights[0].sum())
    tried: list[TriedMap] = []
    for method, each in losses.items():
        change = each - first
        mean = float(weights[0] @ change) / size
        error = math.sqrt(float(weights[1] @ (change - mean) ** 2)) / size
        tried.append(TriedMap(method, float(weights[0] @ each) / size, mean, error))
    tried.sort(key=lambda one: one.nll)  # stable: the simpler of two equals stays first
    least = tried[0].nll + _SAME
    best = min((one for one in tried if one.nll <= least), key=lambda one: list(losses).index(one.method))
    second = next((one for one in tried if one.method not in (best.method, "none")), None)
    if best.difference >= -best.standard_error:
        closest = second if best.method == "none" else best
        why = "No map helps" + ("." if closest is None else f": the best, {closest.method}, changes the log loss by ")
        if closest is not None:
            why += f"{signed(closest.difference)} ± {closest.standard_error:.4f}."
        return MapChoice("none", fit_predictions(predictions, "none"), tuple(tried), why)
    why = f"{best.method} lowers the cross-fitted log loss by {-best.difference:.4f} ± {best.standard_error:.4f}"
    why += "." if second is None else f", {second.nll - best.nll:.4f} more than {second.method}."
    fitted = fit_predictions(predictions, _smooth(best.method))
    return MapChoice(best.method, fitted, tuple(tried), why)


def cross_fit(given: Any, fit: Any, seed: int = 0) -> tuple[Predictions, list[Any]]:
    """Predictions after maps that were fitted without them, and what was fitted, fold by fold.

    Parameters
    ----------
    given
        Predictions, at least two, or :class:`MapInput`.
    fit
        Makes a fitted calibrator of a part of them.
    seed
        Of the folds.
    """
    whole = given if isinstance(given, MapInput) else MapInput(given)
    if len(whole.predictions) < 2:
        raise InputError("there is 1 sample; give at least 2, so that one can be held out")
    folds = fold_of_rows(whole.predictions, seed, 1)
    made: Any = None
    fitted: list[Any] = []
    for train, test in _splits(folds):
        fitted.append(fit(given.select(train)))
        found = whole.select(test).apply(fitted[-1])
        made = np.empty((len(whole.predictions), *found.shape[1:])) if made is None else made
        made[test] = found
    return whole.after(made), fitted


def fold_of_rows(predictions: Predictions, seed: int, stream: int = 0) -> Rows:
    """The fold of each row: at random, with about as many of either outcome in each."""
    rng = np.random.default_rng([seed, stream])
    folds = np.empty(len(predictions), np.int64)
    start = 0
    for outcome in (1, 0):
        rows = rng.permutation(np.flatnonzero(predictions.correct == outcome))
        folds[rows] = (start + np.arange(rows.size)) % FOLDS
        start += rows.size
    return folds


def _splits(folds: Rows) -> Iterator[tuple[Rows, Rows]]:
    for fold in np.unique(folds):
        yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


def _smooth(method: str) -> Any:
    return IsotonicCalibration(smoothing=1.0) if method == "isotonic" else method


Losses = tuple[Mapping[str, Floats], tuple[Floats, Floats]]


def _class_losses(predictions: Predictions, folds: Rows) -> Losses:
    """The log loss of each row by each map that was fitted without it; weights, and their squares."""
    n = len(predictions)
    assert predictions.probabilities is not None
    assert predictions.labels is not None
    k: int = predictions.probabilities.shape[1]
    methods = OF_CLASSES if k <= _MOST_CLASSES and k * (k + 1) <= n else OF_CLASSES[:-1]
    losses = {method: np.empty(n) for method in methods}
    for train, test in _splits(folds):
        fit, rest = predictions.select(train), predictions.select(test)
        for method, loss in losses.items():
            p = mapped(fit_predictions(fit, method), rest)
            loss[test] = -np.log(p[np.arange(test.size), cast("Rows", rest.labels)])
    w = np.ones(n) if predictions.sample_weight is None else predictions.sample_weight
    return losses, (w, w**2)


def _score_losses(predictions: Predictions, folds: Rows) -> Losses:
    """The same for groups of equal (or, when there are many, neighbouring) scores of one outcome and fold."""
    z = predictions.confidence.astype(np.float64)
    z = np.clip(z, resolution(z), 1 - resolution(z))
    w = np.ones(z.size) if predictions.sample_weight is None else predictions.sample_weight
    place, group = groups_of(z, w)
    shape = (FOLDS, 2, place.size)
    cell = np.ravel_multi_index((folds, predictions.correct.astype(np.int64), group), shape)
    size = math.prod(shape)
    mass, square = (np.bincount(cell, each, size).astype(np.float64).reshape(shape) for each in (w, w**2))
    losses = {method: np.empty(shape) for method in OF_SCORES}
    both, outcome = np.tile(place, 2), np.repeat([0, 1], place.size)
    for fold in range(FOLDS):
        left = (mass.sum(axis=0) - mass[fold]).ravel()
        rows = left > 1e-12 * w.max()  # of differences of sums
        for method, loss in losses.items():
            chosen = _smooth(method)
            made = named_calibrator(chosen, "score") if isinstance(chosen, str) else chosen
            p = made.fit(both[rows], outcome[rows], left[rows]).transform(place)
            loss[fold] = -np.log1p(-p), -np.log(p)
    return {method: loss.ravel() for method, loss in losses.items()}, (mass.ravel(), square.ravel())
