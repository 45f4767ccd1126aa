"""Calibrators of predictions: by name or one's own, fitted and applied through the same few methods."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, choice, shortened
from certcal.calibrators._affine import MatrixScaling, StructuredMatrixScaling, StructuredVectorScaling, VectorScaling
from certcal.calibrators._binned import EqualMassBinning, HistogramBinning
from certcal.calibrators._isotonic import IsotonicCalibration
from certcal.calibrators._logistic import BetaCalibration, PlattScaling
from certcal.calibrators._protocols import ConfidenceCalibrator, ScoreCalibrator, predicted
from certcal.calibrators._spline import QuadraticScaling, SplineScaling
from certcal.calibrators._temperature import TemperatureScaling
from certcal.calibrators._unchanged import Unchanged, UnchangedScores
from certcal.calibrators._venn_abers import VennAbers
from certcal.calibrators.scores import ScoreMap
from certcal.predictions import Predictions

_SCORES: dict[str, Any] = {
    "none": UnchangedScores,
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "svs": StructuredVectorScaling,
    "sms": StructuredMatrixScaling,
    "matrix": MatrixScaling,
}
_CONFIDENCES: dict[str, Any] = {
    "none": Unchanged,
    "temperature": partial(PlattScaling, "outcomes", intercept=False),
    "platt": PlattScaling,
    "beta": BetaCalibration,
    "quadratic": QuadraticScaling,
    "spline": SplineScaling,
    "isotonic": IsotonicCalibration,
    "venn-abers": VennAbers,
    "histogram": HistogramBinning,
    "equal-mass": EqualMassBinning,
}
# Kinds of predictions with one number per sample, in words.
_ONE_NUMBER = {"confidence": "confidences only", "score": "binary scores"}
# Maps of the scores of all classes, and maps of one confidence. Those that are both go by what there is.
SCORE_METHODS, CONFIDENCE_METHODS = tuple(_SCORES), tuple(_CONFIDENCES)
METHODS = ("auto", *dict.fromkeys((*SCORE_METHODS, *CONFIDENCE_METHODS)))
BINNED = ("histogram", "equal-mass")


@names_wrong_types
def fit_predictions(predictions: Predictions, method: Any = "auto", *, map_bins: int | None = None) -> Any:
    """Fit a calibrator to all of the given predictions.

    Parameters
    ----------
    predictions
        Logits, probabilities or confidences with what was true.
    method
        "auto" for the best of several by cross-fitted log loss (:func:`choose`); "none" or "temperature"; "vector",
        "svs", "sms" or "matrix" for scores of all classes; "platt", "beta", "quadratic", "spline", "isotonic",
        "venn-abers", "histogram" or "equal-mass" for one confidence, which for scores of all classes is that of the
        predicted class: predictions stay, and the other classes get no probabilities
        (:class:`certcal.calibrators.TopLabel` gives them some, and may then change which is largest). Or a calibrator
        of one's own, of which a copy is fitted: :class:`ScoreCalibrator` or :class:`ConfidenceCalibrator`.
    map_bins
        Bins of the maps "histogram" and "equal-mass"; None for their default.

    Examples
    --------
    >>> predictions = Predictions.from_confidence([0.6, 0.7, 0.8, 0.9], [0, 1, 0, 1])
    >>> type(fit_predictions(predictions, "platt")).__name__
    'PlattScaling'
    """
    given = method
    _refuse_bins(given, map_bins)
    if isinstance(given, str) and given == "auto":
        from certcal.calibrators._choice import choose

        return choose(predictions).calibrator
    if isinstance(given, str) and takes_scores(given, predictions.kind) and predictions.probabilities is None:
        raise InputError(
            f"{given} needs logits or probabilities of all classes, and there is one number per sample",
            argument="method",
            remedy=f"choose one of {', '.join(CONFIDENCE_METHODS)}",
        )
    made = named_calibrator(given, predictions.kind, map_bins) if isinstance(given, str) else copy.deepcopy(given)
    name = type(made).__name__
    weight = () if predictions.sample_weight is None else (predictions.sample_weight,)
    if hasattr(made, "fit_samples"):
        raise InputError(f"{name} is fitted to certified intervals, and these are predictions", argument="method")
    if isinstance(made, ScoreCalibrator):
        _check_inputs(made, predictions)
        made.fit(_scores(predictions), predictions.labels, *weight)
    elif isinstance(made, ConfidenceCalibrator):
        made.fit(predictions.confidence, predictions.correct, *weight)
    else:
        remedy = f"give it fit and predict (or predict_proba), or choose one of {', '.join(METHODS)}"
        raise InputError(f"{name} is not a calibrator", argument="method", remedy=remedy)
    return made


def takes_scores(method: Any, kind: str) -> bool:
    """Whether a map, or the one that is called so, takes the scores of all classes of predictions of a kind."""
    if isinstance(method, str):
        if method == "auto":
            return kind not in _ONE_NUMBER
        return method in SCORE_METHODS and (kind not in _ONE_NUMBER or method not in CONFIDENCE_METHODS)
    return isinstance(method, ScoreCalibrator)


@names_wrong_types
def named_calibrator(name: str, kind: str = "probabilities", map_bins: int | None = None) -> Any:
    """The calibrator that goes by a name, not fitted; of all classes, for scores of a kind."""
    choice(name, METHODS[1:], "method")
    if takes_scores(name, kind):
        return _SCORES[name](inputs=kind)
    _refuse_bins(name, map_bins)
    return _CONFIDENCES[name](**({} if map_bins is None else {"bins": map_bins}))


def _refuse_bins(method: Any, map_bins: int | None) -> None:
    if map_bins is not None and not (isinstance(method, str) and method in BINNED):
        reason = f"it is for the methods {' and '.join(BINNED)}, and the method is {method}"
        raise InputError(reason, argument="map_bins", remedy="leave it out")


@names_wrong_types
def recalibrated(calibrator: Any, predictions: Predictions) -> Predictions:
    """Predictions after a map: probabilities of all classes after a map of scores, else confidences.

    Parameters
    ----------
    calibrator
        Fitted.
    predictions
        Of the kind that it takes: a map of logits does not take probabilities.

    Examples
    --------
    >>> from certcal.calibrators import CertifiedIsotonic
    >>> halved = CertifiedIsotonic(0).fit([0, 0], [1, 1], [1, 0], [0.9, 0.8])
    >>> recalibrated(halved, Predictions.from_confidence([0.7, 0.85], [1, 1])).confidence.round(9).tolist()
    [0.0, 0.5]
    """
    after, weight = mapped(calibrator, predictions), predictions.sample_weight
    if after.ndim == 1:
        make = Predictions.from_scores if predictions.kind == "score" else Predictions.from_confidence
        return make(after, predictions.correct, weight)
    return Predictions.from_probabilities(after, predictions.labels, weight)


@names_wrong_types
def mapped(calibrator: Any, predictions: Any) -> NDArray[Any]:
    """Confidences after a map of them, or the probabilities of all classes, one row per sample, after a map of scores.

    Parameters
    ----------
    calibrator
        Fitted.
    predictions
        As for :func:`recalibrated`, or whatever else has their ``kind``, ``confidence``, ``probabilities`` and
        ``logits``: nothing about what was true is needed.
    """
    if not hasattr(predictions, "confidence"):
        raise InputError(f"predictions is {shortened(predictions)}; pass Predictions")
    if not isinstance(calibrator, ScoreCalibrator):
        return predicted(calibrator, predictions.confidence)
    _check_inputs(calibrator, predictions)
    found = np.asarray(calibrator.predict_proba(_scores(predictions)))
    if not isinstance(calibrator, ScoreMap):  # somebody's own: the checks of predictions, whatever the labels are
        Predictions.from_probabilities(found, np.zeros(len(found), np.int64))
    return found


def _check_inputs(calibrator: ScoreCalibrator, predictions: Any) -> None:
    kind = predictions.kind
    wanted = getattr(calibrator, "inputs", "scores of all classes" if kind in _ONE_NUMBER else kind)
    if kind != wanted:
        words = _ONE_NUMBER.get(kind, kind)
        raise InputError(
            f"the map, a {type(calibrator).__name__}, takes {wanted}, and these predictions are {words}; give it "
            f"{wanted}, or fit another map"
        )


def _scores(predictions: Any) -> NDArray[Any]:
    scores = predictions.logits if predictions.kind == "logits" else predictions.probabilities
    assert scores is not None
    return scores
