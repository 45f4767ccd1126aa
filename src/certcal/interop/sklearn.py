# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUntypedBaseClass=false, reportMissingTypeArgument=false
# pyright: reportMissingTypeStubs=false
# scikit-learn has no annotations.
"""scikit-learn: a classifier joined with a calibrator, and metrics of certcal as scorers and losses.

Importing this module needs the extra ``certcal[sklearn]``.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal.calibrators import RealScores, TopLabel, choose, fit_predictions, mapped, named_calibrator, takes_scores
from certcal.metrics import measure
from certcal.predictions import Predictions

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.model_selection import check_cv, cross_validate
    from sklearn.utils import _safe_indexing, get_tags, indexable  # pyright: ignore[reportPrivateUsage]
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d
except ModuleNotFoundError as error:
    if error.name != "sklearn":
        raise
    raise ImportError(
        "certcal.interop.sklearn needs scikit-learn; install it with: pip install 'certcal[sklearn]'", name="sklearn"
    ) from error

Floats = NDArray[np.float64]
PREFIT = "prefit"
_LARGEST = 16.0


class CalibratedModel(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities go through a calibrator: one estimator, for pipelines, searches and scoring.

    ``cv=5`` cross-fits: the calibrator is fitted to the scores that each of five classifiers gave samples that it was
    not fitted to; probabilities are then the mean of the five after the calibrator, or those of one classifier that is
    fitted to all samples (``ensemble=False``). ``cv="prefit"`` takes the classifier as it is and fits the calibrator to
    the samples given, which the classifier must not have seen; clones keep it, so that ``cross_val_score`` judges the
    calibrator alone. scikit-learn's ``FrozenEstimator`` does the same.

    Parameters
    ----------
    estimator
        A classifier with ``predict_proba``, or with ``decision_function``, whose values then count as logits or, of two
        classes and for the default calibrator, as any real scores (:class:`~certcal.calibrators.RealScores`).
    calibrator
        A name, as for :func:`certcal.calibrators.fit_predictions`, or a
        calibrator, also one's own; a copy is fitted. A map of confidences maps the probability of the second class of
        two; of several classes, that of the predicted one (:class:`~certcal.calibrators.TopLabel`). Default: "auto",
        the best of several by cross-fitted log loss, or none where none helps (:func:`~certcal.calibrators.choose`).
        Isotonic regression and binning make probabilities of 0 and 1, and with them a log loss that may be infinite;
        the default never does.
    cv
        "prefit", a number of folds, or a splitter of scikit-learn.
    ensemble
        Average the classifiers of the folds, as scikit-learn's ``CalibratedClassifierCV`` does: better probabilities
        for as many times the time to predict.

    Attributes
    ----------
    estimators_, calibrator_
        Fitted; one classifier per fold of an ensemble, else one.
    unit_
        What values of ``decision_function`` are divided by; 1 unless some are larger than 16.
    choice_
        What was compared, where the calibrator is "auto".
    classes_
        In the order of the columns of ``predict_proba``.
    n_features_in_, feature_names_in_
        Where the classifier has them.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> x, y = make_classification(600, n_informative=4, random_state=0)
    >>> words = np.array(["no", "yes"])[y]
    >>> model = CalibratedModel(GaussianNB()).fit(x[:300], words[:300])
    >>> model.classes_.tolist(), model.predict_proba(x[300:]).shape
    (['no', 'yes'], (300, 2))
    """

    def __init__(self, estimator: Any, calibrator: Any = "auto", cv: Any = 5, ensemble: bool = True) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the calibrator and, unless it is fitted already, the classifier.

        Parameters
        ----------
        X
            Features, as the classifier takes them.
        y
            True classes: numbers or texts.
        sample_weight
            Weights of the samples, for the calibrator, and for the classifier if it takes some.
        """
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        prefit = self._is_prefit()
        classes = np.asarray(self.estimator.classes_) if prefit else np.unique(y)
        if not y.size:
            raise InputError("there are 0 samples; give at least 2, of different classes")
        if classes.size < 2:
            raise InputError(f"every label is {classes.item()!r}, only one class; give samples of at least 2 classes")
        codes = _codes(y, classes)
        method = self._response()
        self.classes_ = classes
        if prefit:
            self.estimators_, rows = [self.estimator], np.arange(codes.size)
            raw = self._raw_scores(self.estimator, method, X)
        else:
            options = self._weight_argument(sample_weight)
            found = cross_validate(
                self.estimator,
                X,
                y,
                cv=check_cv(self.cv, y, classifier=True),
                params=options,
                scoring=_no_score,
                return_estimator=True,
                return_indices=True,
                error_score="raise",  # pyright: ignore[reportArgumentType]
            )
            tests = found["indices"]["test"]
            (features,) = indexable(X)
            parts = [
                self._raw_scores(fitted, method, _safe_indexing(features, test))
                for fitted, test in zip(found["estimator"], tests, strict=True)
            ]
            rows, raw = np.concatenate(tests), np.concatenate(parts)
            order = np.argsort(rows, kind="stable")
            rows, raw = rows[order], raw[order]
            whole: Any = clone(self.estimator)
            self.estimators_ = list(found["estimator"]) if self.ensemble else [whole.fit(X, y, **options)]
        calibrator = self._calibrator_to_fit()
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        self.unit_ = 1.0
        if raw.ndim == 1 and isinstance(calibrator, str) and calibrator == "auto":
            self.calibrator_ = RealScores().fit(raw, codes[rows], weight)
            self.choice_ = self.calibrator_.choice_
            return self._with_features()
        # Log-odds beyond 16 all count as 16, so margins that are larger are divided by what brings them there.
        self.unit_ = max(1.0, float(np.abs(raw).max()) / _LARGEST) if method == "decision_function" else 1.0
        raw = raw / self.unit_
        samples = self._read_scores(raw, method, calibrator, codes[rows], weight)
        if isinstance(calibrator, str) and calibrator == "auto":
            self.choice_ = choose(samples)
            self.calibrator_ = self.choice_.calibrator
        else:
            self.calibrator_ = fit_predictions(samples, calibrator)
        return self._with_features()

    def _with_features(self) -> Self:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities of the classes, one row per sample."""
        check_is_fitted(self)
        method = self._response()

        def calibrated(estimator: Any) -> Floats:
            raw = self._raw_scores(estimator, method, X) / self.unit_
            if isinstance(self.calibrator_, RealScores):
                found = self.calibrator_.transform(raw)
            else:
                scores = self._read_scores(raw, method, self.calibrator_, np.zeros(len(raw), np.int64), None)
                found = mapped(self.calibrator_, scores)
            return np.stack([1 - found, found], axis=1) if found.ndim == 1 else found

        return np.mean([calibrated(each) for each in self.estimators_], axis=0)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class after the calibrator, the first of several."""
        places = self.predict_proba(X).argmax(axis=1)
        return self.classes_[places]

    def _is_prefit(self) -> bool:
        if self.cv != PREFIT and type(self.estimator).__name__ != "FrozenEstimator":
            return False
        if not hasattr(self.estimator, "classes_"):
            raise InputError("the estimator is not fitted, and it is used as it is; fit it first, or give cv as folds")
        return True

    def _response(self) -> str:
        """The method of the classifier that gives the scores: logits are asked for where a calibrator takes them."""
        wants_logits = getattr(self.calibrator, "inputs", None) == "logits"
        names = ("decision_function", "predict_proba") if wants_logits else ("predict_proba", "decision_function")
        for name in names:
            if hasattr(self.estimator, name):
                return name
        raise InputError(
            f"{type(self.estimator).__name__} has neither predict_proba nor decision_function; give a classifier that "
            "scores"
        )

    def _raw_scores(self, estimator: Any, method: str, X: Any) -> Floats:
        """Scores of a classifier; a class that its fold had no sample of has probability 0."""
        raw = np.asarray(getattr(estimator, method)(X), np.float64)
        own = np.asarray(getattr(estimator, "classes_", self.classes_))
        if own.size == self.classes_.size:
            return raw
        if method != "predict_proba" or raw.ndim != 2:
            lost = np.setdiff1d(self.classes_, own)[:1].tolist()[0]
            raise InputError(
                f"a fold has no other sample of the class {lost!r}; give fewer folds, or more samples of it"
            )
        full = np.zeros((len(raw), self.classes_.size))
        full[:, np.searchsorted(self.classes_, own)] = raw
        return full

    def _calibrator_to_fit(self) -> Any:
        """The calibrator to fit, as one of all classes where there are more than two."""
        given, several = self.calibrator, self.classes_.size > 2
        if takes_scores(given, "probabilities") or not several:
            return given
        return TopLabel(
            named_calibrator(given, "confidence") if isinstance(given, str) else given, inputs="probabilities"
        )

    def _read_scores(self, raw: Any, method: str, calibrator: Any, codes: Any, weight: Any) -> Predictions:
        """Scores of the classifier as the calibrator takes them."""
        k = self.classes_.size
        scores = np.stack([-raw / 2, raw / 2], axis=1) if raw.ndim == 1 else raw
        if scores.shape[1] != k:
            raise InputError(
                f"{method} gives {scores.shape[1]} columns for {k} classes; give a classifier with one each"
            )
        make = Predictions.from_logits if method == "decision_function" else Predictions.from_probabilities
        result = make(scores, codes, weight)
        assert result.probabilities is not None
        if not takes_scores(calibrator, "score" if k == 2 else result.kind):
            return Predictions.from_scores(result.probabilities[:, 1].clip(0.0, 1.0), codes, weight)
        wanted = getattr(calibrator, "inputs", result.kind)
        if wanted == result.kind:
            return result
        if wanted == "probabilities":
            return Predictions.from_probabilities(result.probabilities, codes, weight)
        return Predictions.from_logits(np.log(np.maximum(scores, np.finfo(np.float32).tiny)), codes, weight)

    def _weight_argument(self, sample_weight: Any) -> dict[str, Any]:
        """Weights for the classifier, where there are some and it takes them."""
        takes = "sample_weight" in inspect.signature(self.estimator.fit).parameters
        return {} if sample_weight is None or not takes else {"sample_weight": np.asarray(sample_weight)}

    def __sklearn_clone__(self) -> Any:
        if self.cv != PREFIT:
            return super().__sklearn_clone__()
        return type(self)(self.estimator, clone(self.calibrator, safe=False), self.cv, self.ensemble)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.input_tags.sparse, inner.input_tags.allow_nan
        return tags


def _no_score(estimator: Any, X: Any, y: Any) -> float:
    return 0.0


def _codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each label among the classes."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    try:
        return np.array([places[label] for label in y.tolist()], np.int64)
    except KeyError as error:
        shown = ", ".join(map(repr, classes.tolist()[:10]))
        raise InputError(f"the label {error.args[0]!r} is none of the estimator's classes, {shown}") from None


@dataclass(frozen=True)
class CalibrationScorer:
    """A metric as scikit-learn's ``scoring=``, larger is better: an error or a loss comes with a minus sign.

    Parameters
    ----------
    metric
        Name of a metric of :func:`certcal.measure` that falls as a model gets better, such as "ece" or "smooth_ece".
    bins, closed
        Of metrics that have bins.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> x, y = make_classification(600, n_informative=4, random_state=0)
    >>> (cross_val_score(GaussianNB(), x, y, scoring=ece_scorer) < 0).all()
    np.True_
    """

    metric: str = "ece"
    bins: int = 15
    closed: str = "left"

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the metric of the probabilities that an estimator gives."""
        return -ece_loss(
            y,
            estimator.predict_proba(X),
            metric=self.metric,
            bins=self.bins,
            closed=self.closed,
            labels=estimator.classes_,
            sample_weight=sample_weight,
        )


ece_scorer = CalibrationScorer()


def ece_loss(
    y_true: Any,
    y_proba: Any,
    *,
    metric: str = "ece",
    bins: int = 15,
    closed: str = "left",
    labels: Sequence[Any] | NDArray[Any] | None = None,
    sample_weight: Any = None,
) -> float:
    """A calibration error in scikit-learn's argument order.

    Parameters
    ----------
    y_true
        True classes: numbers or texts.
    y_proba
        Of two classes, probabilities of the second, or two columns, of which the second counts; of more classes, one
        column each, of which the largest counts (top-label calibration).
    metric, bins, closed
        As for :class:`CalibrationScorer`.
    labels
        The classes in the order of the columns; by default those of ``y_true``, sorted.
    sample_weight
        Weights, or None.

    Examples
    --------
    >>> round(ece_loss(["no", "yes", "yes", "no"], [0.2, 0.7, 0.7, 0.7], bins=10), 6)
    0.075
    """
    y = column_or_1d(y_true)
    classes = np.unique(y) if labels is None else np.asarray(labels)
    scores = np.asarray(y_proba, np.float64)
    columns = 2 if scores.ndim == 1 else scores.shape[1]
    if classes.size != columns:
        raise InputError(
            f"there are {classes.size} classes and probabilities of {columns}; pass all classes in the order of the "
            "columns as labels"
        )
    codes = _codes(y, classes)
    if columns == 2:
        given = Predictions.from_scores(scores if scores.ndim == 1 else scores[:, 1], codes, sample_weight)
    else:
        given = Predictions.from_probabilities(scores, codes, sample_weight)
    (row,) = measure(given, bins=bins, closed=closed, metrics=[metric]).rows
    return float(row.value)
