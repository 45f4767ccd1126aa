"""Maps of the scores of all classes, and scores as they take them: logits or probabilities, said and never guessed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, choice, logit_matrix, probability_matrix, same_length, shortened, weights
from certcal._base.checks import labels as check_labels
from certcal.calibrators._base import INPUTS, Calibrator, Floats, number

LEAST = float(np.finfo(np.float32).tiny)  # what a probability of 0 counts as, and the least that scaling makes
MOST_CLASSES = 10_000_000


class ScoreMap(Calibrator):
    """A map from logits (or probabilities) of all classes to probabilities of all classes.

    Attributes
    ----------
    n_features_in_
        Number of columns.
    """

    inputs: Any
    classes_: NDArray[Any]
    """What the columns stand for: 0, 1, … up to the last class, or the labels of the fit, sorted."""
    floor_: float = LEAST
    """What a probability of 0 counts as: see :func:`least_probability`."""
    _keeps_predictions: ClassVar[bool] = False

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to samples.

        Parameters
        ----------
        scores
            One row per sample, one column per class.
        y
            True class of each sample: its column, from 0; or texts (or other numbers), as many different ones as there
            are columns, which are then in their sorted order.
        sample_weight
            Weights >= 0, or None. A weight of 2 counts like two samples.
        """
        x = read_scores(scores, self.inputs)
        if self.inputs == "logits":
            refuse_probabilities(x)
        labels, weight, classes = check_labelled(x, y, sample_weight)
        self.floor_ = least_probability(x) if self.inputs == "probabilities" else LEAST
        self._fit(x, labels, weight)
        self.classes_ = classes
        return self

    @abstractmethod
    def _fit(self, x: NDArray[Any], y: NDArray[np.int64], w: Floats | None) -> None:
        """Fit to checked scores as they were given, columns of the labels, and weights."""

    def fit_transform(self, scores: Any, y: Any, sample_weight: Any = None) -> Floats:
        """Fit, and :meth:`transform` the same scores."""
        return self.fit(scores, y, sample_weight).transform(scores)

    def predict_proba(self, scores: Any) -> Floats:
        """Probabilities after the map, one row per sample."""
        return self._probabilities(self._matrix(scores))

    @abstractmethod
    def _probabilities(self, x: NDArray[Any]) -> Floats:
        """Probabilities of checked scores."""

    def predict(self, scores: Any) -> NDArray[Any]:
        """The most probable class after the map, the first of several; that before it, if the map keeps predictions."""
        x = self._matrix(scores)
        places = (x if self._keeps_predictions else self._probabilities(x)).argmax(axis=1)
        return self.classes_[places]

    def transform(self, scores: Any) -> Floats:
        """Logarithms of the probabilities after the map: logits for the next calibrator of a pipeline."""
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(self.predict_proba(scores)), -745.0)  # exp of it is the smallest number above 0

    def _matrix(self, scores: Any) -> NDArray[Any]:
        """Scores of as many classes as were fitted."""
        self._require_fitted()
        x = read_scores(scores, self.inputs)
        if x.shape[1] != self.classes_.size:
            raise InputError(
                f"scores have {x.shape[1]} columns; this {type(self).__name__} was fitted to {self.classes_.size} "
                "classes, so give it one column each"
            )
        return x

    @property
    def n_features_in_(self) -> int:
        """Number of columns, once it is fitted."""
        return self.classes_.size

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        return state | {"classes": int(self.classes_.size)} if "classes" in state else state

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        if "classes" in self._kept:
            self.classes_ = np.arange(class_count(state), dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the labels too, where they are not the numbers of the columns."""
        document, labels = super().to_dict(), getattr(self, "classes_", np.empty(0)).tolist()
        if self.floor_ != LEAST:
            document["fitted"]["floor"] = self.floor_
        if labels != list(range(len(labels))):
            document["fitted"]["labels"] = labels
        return document

    def _take_over(self, state: Mapping[str, Any]) -> None:
        super()._take_over(state)
        self.floor_ = number({"floor": LEAST, **state}, "floor", LEAST, 0.5)
        if "labels" not in state:
            return
        given, count = state["labels"], self.classes_.size
        labels = cast("list[Any]", given) if isinstance(given, list) else []
        alike = all(type(label) is type(labels[0]) for label in labels) and isinstance([*labels, None][0], str | int)
        if not alike or len(set(labels)) != count or sorted(labels) != labels:
            raise InputError(f"labels is damaged; expected {count} different texts or whole numbers, sorted")
        self.classes_ = np.array(labels)


def read_scores(scores: Any, inputs: str, name: str = "scores") -> NDArray[Any]:
    """Checked scores, one row per sample, as they are: logits, or probabilities."""
    if choice(inputs, INPUTS, "inputs") == "logits":
        return logit_matrix(scores, name)
    return probability_matrix(scores, name, "inputs='logits'")


def least_probability(p: NDArray[Any]) -> float:
    """What a probability of 0 counts as: half the least positive one, since votes have steps; at least 1.2e-38."""
    if p.all():
        return LEAST
    return max(LEAST, float(p[p > 0].min()) / 2)


def as_logits(scores: NDArray[Any], inputs: str, floor: float = LEAST) -> NDArray[Any]:
    """Checked scores as logits: logarithms of probabilities, of which none counts as less than ``floor``."""
    return scores if inputs == "logits" else np.log(np.maximum(scores.astype(np.float64), floor))


def as_probabilities(scores: NDArray[Any], inputs: str) -> tuple[Floats, NDArray[np.int64]]:
    """Checked scores as probabilities, the softmax of logits, and where the largest score is."""
    top, x = scores.argmax(axis=1).astype(np.int64), scores.astype(np.float64)
    with np.errstate(over="ignore"):  # logits of 1e308 and -1e308: a probability of 0
        return softmax(x) if inputs == "logits" else np.minimum(x, 1.0), top


def refuse_probabilities(logits: NDArray[Any]) -> None:
    """Refuse logits of which every row is a distribution: somebody forgot a word, and the map would do next to nothing.

    Only a fit asks: a single row of logits may happen to add up to 1.
    """
    for rows in (logits[:1], logits):
        if len(logits) < 2 or rows.min() < 0 or rows.max() > 1 or np.abs(rows.sum(axis=1) - 1).max() > 1e-5:
            return
    raise InputError(
        "every row of scores is in [0, 1] and adds up to 1, and inputs is 'logits'; pass inputs='probabilities'"
    )


def class_codes(labels: Any, count: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The column of each label, and the classes: numbers from 0, or other values, in their order one per column."""
    numbered = np.arange(count)
    try:
        array = np.asarray([] if hasattr(labels, "detach") else labels)
    except ValueError:  # lists of several lengths
        raise InputError(f"labels is {shortened(labels)}; pass one label per sample") from None
    texts = array.dtype.kind in "OUT" and array.size > 0 and all(isinstance(each, str) for each in array.ravel())
    outside = array.dtype.kind in "iuf" and array.size > 0 and bool(array.min() < 0 or array.max() >= count)
    known = np.unique(array) if texts or outside else numbered
    if texts and known.size != count:
        raise InputError(
            f"labels are {known.size} different texts, and scores have {count} columns; give samples of every class, "
            "whose columns are in the order of the sorted texts, or number the classes from 0"
        )
    whole = outside and known.size == count and bool(np.isfinite(known).all()) and not np.any(known % 1)
    others = whole and not np.array_equal(known, numbered + 1)
    if not texts and not others:
        return check_labels(labels, count), numbered
    return np.searchsorted(known, array.reshape(-1)).astype(np.int64), known


def check_labelled(
    x: NDArray[Any], labels: Any, sample_weight: Any, name: str = "scores"
) -> tuple[NDArray[np.int64], Floats | None, NDArray[Any]]:
    """Columns of the labels of checked scores, weights, and the classes."""
    y, classes = class_codes(labels, x.shape[1])
    same_length(**{name: x.shape[0], "labels": y.size})
    return y, weights(sample_weight, y.size, partner="labels"), classes


def class_count(state: Mapping[str, Any]) -> int:
    """The number of classes of a state."""
    value = state.get("classes")
    if isinstance(value, bool) or not isinstance(value, int) or not 2 <= value <= MOST_CLASSES:
        raise InputError(f"classes is {value!r}; expected a whole number of classes, at least 2")
    return value


def softmax(logits: Floats) -> Floats:
    """Probabilities of the rows; the logits are overwritten."""
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits
