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
from certcal._base.told import Told
from certcal.calibrators._inputs import MapInput
from certcal.calibrators._isotonic import IsotonicCalibration
from certcal.calibrators._logistic import groups_of, resolution
from certcal.calibrators._predictions import fit_predictions, mapped, named_calibrator, takes_scores
from certcal.calibrators._unchanged import Unchanged
from certcal.calibrators.scores import LEAST
from certcal.predictions import Predictions

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

FOLDS, _FEWEST, _FEWEST_NOT_BELIEVED = 5, 10, 50
# How many times as likely a map must make outcomes that it was not fitted to. Less is too easily had by chance from few
# samples, and where no map is needed every other one loses.
LIKELIER = 100
# Scores of few samples are believed: 40 more, whose outcomes agree with them, take part in every fit; of all classes,
# those of up to 100 samples, spread over all.
_FEW, _AGREEING, _SPREAD = 1000, 40, 100
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
class MapChoice(Told):
    """The map that was taken, and why."""

    method: str
    calibrator: Any
    """Fitted to all samples."""
    tried: tuple[TriedMap, ...]
    """From the least log loss on; empty where samples were too few."""
    why: str


def choose(predictions: Predictions, seed: int = 0, *, believed: bool = True) -> MapChoice:
    """The map with the least cross-fitted log loss, if it makes the outcomes 100 times as likely as no map; else none.

    Scores and confidences: temperature, Platt, beta, quadratic, spline, or isotonic with one mean sample added to every
    flat part. Scores of all classes: temperature, vector (from four samples per number on), structured vector or matrix
    (of up to 100 classes, and of no more numbers than samples). Each is fitted five times, to four fifths of the
    samples, and judged on the others; the one that is taken is fitted to all. Fewer than 10 samples (50 where scores
    are not believed), or 2 of an outcome, get no map. No map leaves all as it is, but for scores nearer to 0
    and 1 than 2^-24, or than half a vote where a sample contradicts a 0 or 1 (:class:`Unchanged`).

    Fewer than 1,000 samples move a map little: to each fit 40 are added whose outcomes agree with the scores, so that
    of those with score z the share z has outcome 1 (:func:`fit_chosen`).

    Parameters
    ----------
    predictions
        With what was true.
    seed
        Of the folds.
    believed
        Whether scores are probabilities, to which maps of few samples are drawn.

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
    least = _FEWEST if believed else _FEWEST_NOT_BELIEVED
    if len(predictions) < least or (rare < 2 and not of_classes):
        fewest = f"{rare} of one outcome" if len(predictions) >= least else counted(len(predictions), "sample")
        fitted = fit_predictions(predictions, "none")
        return MapChoice("none", fitted, (), f"No map: {fewest} is too little to choose one.")
    if of_classes:
        losses, weights = _class_losses(predictions, folds)
    else:
        losses, weights = _score_losses(predictions, folds, believed=believed)
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
    alike = size / one_sample(_weights(predictions))
    wanted = math.log(LIKELIER)
    if -best.difference * alike < wanted:
        closest = second if best.method == "none" else best
        why = "No map helps" + ("." if closest is None else f": the best, {closest.method}, changes the log loss by ")
        if closest is not None:
            why += f"{signed(closest.difference)} ± {closest.standard_error:.4f}."
        if best.method != "none":
            many = math.ceil(wanted / -best.difference * len(predictions) / alike)
            why = f"{why[:-1]}, which {counted(many, 'sample')} would show and {len(predictions):,} do not."
        return MapChoice("none", fit_predictions(predictions, "none"), tuple(tried), why)
    why = f"{best.method} lowers the cross-fitted log loss by {-best.difference:.4f} ± {best.standard_error:.4f}"
    why += "." if second is None else f", {second.nll - best.nll:.4f} more than {second.method}."
    fitted = fit_chosen(predictions, best.method, believed=believed)
    return MapChoice(best.method, fitted, tuple(tried), why)


def fit_chosen(predictions: Predictions, method: Any, *, believed: bool = True) -> Any:
    """A map as :func:`choose` fits it: scores of few samples are believed."""
    none = isinstance(method, Unchanged) or method == "none"
    few = believed and not none and _is_few(predictions)
    return fit_predictions(_with_agreeing(predictions) if few else predictions, _smooth(method))


def _weights(predictions: Predictions) -> Floats:
    return np.ones(len(predictions)) if predictions.sample_weight is None else predictions.sample_weight


def one_sample(w: Floats) -> float:
    """The weight of one sample: 1 where weights are whole numbers, and so count samples."""
    return 1.0 if (w == np.floor(w)).all() else float(w @ w / w.sum())


def _is_few(predictions: Predictions) -> bool:
    return float(_weights(predictions).sum()) < _FEW * one_sample(_weights(predictions))


def _with_agreeing(predictions: Predictions) -> Predictions:
    """The samples, and as many as 40 of them more, whose outcomes are shares: the probabilities of the scores."""
    p, w = predictions.probabilities, _weights(predictions)
    share = _AGREEING * one_sample(w) / float(w.sum())
    if p is None:
        z: Floats = np.asarray(predictions.confidence, np.float64)
        y: Rows = predictions.correct.astype(np.int64)
        likely, added = np.clip(z, resolution(z), 1 - resolution(z)), w * share
        weight = np.concatenate([w + added * np.where(y, likely, 1 - likely), added * np.where(y, 1 - likely, likely)])
        return Predictions.from_scores(np.tile(z, 2), np.concatenate([y, 1 - y]), weight)
    k: int = p.shape[1]
    if k > _MOST_CLASSES:
        return predictions
    some = np.unique(np.linspace(0, w.size - 1, min(w.size, _SPREAD)).astype(np.int64))
    added = w[some] * (share * w.sum() / max(w[some].sum(), LEAST))
    given = cast("Floats", predictions.logits if predictions.kind == "logits" else p)
    labels = np.concatenate([cast("Rows", predictions.labels), np.tile(np.arange(k), some.size)])
    weight = np.concatenate([w, (added[:, None] * p[some]).ravel()])
    make = Predictions.from_logits if predictions.kind == "logits" else Predictions.from_probabilities
    return make(np.concatenate([given, np.repeat(given[some], k, axis=0)]), labels, weight)


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


def _smooth(method: Any) -> Any:
    return IsotonicCalibration(smoothing=1.0) if method == "isotonic" else method


Losses = tuple[Mapping[str, Floats], tuple[Floats, Floats]]


def _class_losses(predictions: Predictions, folds: Rows) -> Losses:
    """The log loss of each row by each map that was fitted without it; weights, and their squares."""
    n = len(predictions)
    assert predictions.probabilities is not None
    assert predictions.labels is not None
    k: int = predictions.probabilities.shape[1]
    needed = {"vector": 8 * k, "sms": k * (k + 1) if k <= _MOST_CLASSES else n + 1}
    losses = {method: np.empty(n) for method in OF_CLASSES if needed.get(method, 0) <= n}
    losses["none"], few = _row_losses(predictions), _is_few(predictions)
    for train, test in _splits(folds):
        fit, rest = predictions.select(train), predictions.select(test)
        for method, loss in list(losses.items())[1:]:
            p = mapped(fit_chosen(fit, method, believed=few), rest)
            loss[test] = -np.log(p[np.arange(test.size), cast("Rows", rest.labels)])
    w = _weights(predictions)
    return losses, (w, w**2)


def _row_losses(predictions: Predictions) -> Floats:
    """The log loss of each row as it is; no map is the same, whatever it is fitted to, but where 0 or 1 is wrong."""
    p = mapped(fit_predictions(predictions, "none"), predictions)
    own = (
        p[np.arange(len(p)), cast("Rows", predictions.labels)]
        if p.ndim == 2
        else np.where(predictions.correct, p, 1 - p)
    )
    with np.errstate(divide="ignore"):
        found = -np.log(own)
    return found if predictions.sample_weight is None else np.where(predictions.sample_weight > 0, found, 0.0)


def _score_losses(predictions: Predictions, folds: Rows, *, believed: bool) -> Losses:
    """The same for groups of equal (or, when there are many, neighbouring) scores of one outcome and fold."""
    z = predictions.confidence.astype(np.float64)
    z = np.clip(z, resolution(z), 1 - resolution(z))
    w = _weights(predictions)
    place, group = groups_of(z, w)
    shape = (FOLDS, 2, place.size)
    cell = np.ravel_multi_index((folds, predictions.correct.astype(np.int64), group), shape)
    size = math.prod(shape)
    mass, square = (np.bincount(cell, each, size).astype(np.float64).reshape(shape) for each in (w, w**2))
    losses = {method: np.empty(shape) for method in OF_SCORES}
    losses["none"] = np.bincount(cell, w * _row_losses(predictions), size).reshape(shape) / np.where(
        mass > 0, mass, 1.0
    )
    both, outcome = np.tile(place, 2), np.repeat([0, 1], place.size)
    few = believed and _is_few(predictions)
    agreeing = np.stack([1 - place, place]) * (_AGREEING * one_sample(_weights(predictions)) if few else 0)
    for fold in range(FOLDS):
        left = mass.sum(axis=0) - mass[fold]
        left = (left + agreeing * left.sum(axis=0) / max(left.sum(), LEAST)).ravel()
        rows = left > 1e-12 * w.max()  # of differences of sums
        for method, loss in list(losses.items())[1:]:
            chosen = _smooth(method)
            made = named_calibrator(chosen, "score") if isinstance(chosen, str) else chosen
            p = made.fit(both[rows], outcome[rows], left[rows]).transform(place)
            loss[fold] = -np.log1p(-p), -np.log(p)
    return {method: loss.ravel() for method, loss in losses.items()}, (mass.ravel(), square.ravel())
