"""Predictions: what a classifier said and what was true, checked once and never guessed.

There are four ways in, one per kind of number, because the values cannot tell them apart: a row of logits may look
like probabilities, and a binary score is not the confidence of the predicted class.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base import checks as _checks
from certcal._base.assumptions import CERTAIN, LOGITS
from certcal._base.checks import InputError
from certcal._base.outcomes import outcome_array
from certcal._base.text import counted
from certcal._base.threads import map_blocks

Kind = Literal["probabilities", "logits", "confidence", "score"]
# What a question about predictions is about: P(y = 1), whether the predicted class is right, or all classes.
Task = Literal["binary", "top-label", "multiclass"]

# Rows are worked through in blocks of about this many entries, so temporaries stay in the cache and small.
_BLOCK_ENTRIES = 1 << 18


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Predictions:
    """Confidences and whether they were right, with the class probabilities when there are any.

    Build one with :meth:`from_scores`, :meth:`from_confidence`, :meth:`from_probabilities` or :meth:`from_logits`.
    Arrays may come from NumPy, torch, pandas, polars or plain lists; they are viewed, not copied, where their type
    allows it, and the views are read-only.

    Examples
    --------
    >>> Predictions.from_probabilities([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    Predictions(n=2, classes=2, kind='probabilities', accuracy=0.5)
    """

    kind: Kind
    """What was given: "score", "confidence", "probabilities" or "logits"."""
    confidence: NDArray[Any]
    """One number in [0, 1] per sample: the probability of the predicted class, or the binary score. float16, float32
    and float64 stay what they were, because a value that lies on a bin edge is compared in its own type."""
    correct: NDArray[np.uint8]
    """1 where the prediction was right (binary score: where the outcome was 1), else 0, as bytes."""
    probabilities: NDArray[Any] | None
    logits: NDArray[Any] | None
    """The matrices, one row per sample, or None."""
    labels: NDArray[np.int64] | None
    """The true class of each sample as int64, or None."""
    sample_weight: NDArray[np.float64] | None
    """Weights as float64, or None."""

    def __init__(self, *_args: Any, **_options: Any) -> NoReturn:
        raise InputError(
            "Predictions does not guess what it is given: use Predictions.from_scores, Predictions.from_confidence, "
            "Predictions.from_probabilities or Predictions.from_logits"
        )

    @classmethod
    def from_probabilities(cls, probabilities: Any, labels: Any, sample_weight: Any = None) -> Predictions:
        """Class probabilities (one row per sample, each summing to one) and true classes.

        The predicted class is the one with the largest probability, the first of them when several tie. An entry
        above one by rounding (at most 1e-6) is a confidence of one.

        Parameters
        ----------
        probabilities
            Matrix of shape (n, classes). Rows that do not sum to 1 within 1e-3 (2e-2 for float16) are refused.
        labels
            True classes, whole numbers from 0 to classes - 1.
        sample_weight
            Weights >= 0, or None.

        Examples
        --------
        >>> p = Predictions.from_probabilities([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]], [1, 1])
        >>> p.confidence.tolist(), p.correct.tolist()
        ([0.5, 0.4], [1, 0])
        """
        half = _is_half(probabilities)
        p, y, w = _checks.class_pair(probabilities, labels, sample_weight)
        confidence, correct = _top_label(p, y)
        if half:  # the check widened the values; back to the type whose edges they lie on, exactly
            confidence = confidence.astype(np.float16)
        return cls._of_checked("probabilities", confidence, correct, probabilities=p, labels=y, sample_weight=w)

    @classmethod
    def from_logits(cls, logits: Any, labels: Any, sample_weight: Any = None) -> Predictions:
        """Logits (one row per sample, before the softmax) and true classes.

        Probabilities are the softmax of each row after subtracting its maximum, computed in float64 and then rounded
        to the type of the logits (float32 stays float32; float16 becomes float32; integers become float64). The
        predicted class is the largest logit, the first of them when several tie.

        Parameters
        ----------
        logits
            Matrix of shape (n, classes) of finite numbers. Rows in [0, 1] that sum to 1 are most likely probabilities:
            that gets a ``LogitsWarning``, and a line in what is assumed.
        labels
            True classes, whole numbers from 0 to classes - 1.
        sample_weight
            Weights >= 0, or None.

        Examples
        --------
        >>> p = Predictions.from_logits([[0.0, 1000.0], [0.0, 0.0]], [1, 1])
        >>> p.confidence.tolist(), p.correct.tolist()
        ([1.0, 0.5], [1, 0])
        """
        matrix = _checks.logit_matrix(logits)
        y = _checks.labels(labels, matrix.shape[1])
        _checks.same_length(logits=matrix.shape[0], labels=y.size)
        w = _checks.weights(sample_weight, y.size)
        p = _softmax(matrix)
        confidence, correct = _top_label(matrix, y, values=p)
        if _checks.look_like_probabilities(matrix):
            warnings.warn(
                "every row of the logits lies in [0, 1] and sums to 1: these look like probabilities, of which another "
                "softmax is taken; if they are, use from_probabilities or declare them as probabilities",
                _checks.LogitsWarning,
                stacklevel=2,
            )
        return cls._of_checked("logits", confidence, correct, probabilities=p, logits=matrix, labels=y, sample_weight=w)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is assumed of these numbers although they look otherwise: that they are logits, or probabilities.

        Examples
        --------
        >>> Predictions.from_logits([[2.0, 0.5]], [0]).doubts
        ()
        """
        if self.logits is not None:
            return (LOGITS,) if _checks.look_like_probabilities(self.logits) else ()
        some = self.confidence[:9], self.confidence
        sure = self.kind == "score" and len(self) > 1 and not any(np.mod(z, 1).any() for z in some)
        return (CERTAIN,) if sure else ()

    @classmethod
    def from_confidence(cls, confidence: Any, correct: Any, sample_weight: Any = None) -> Predictions:
        """Confidences of the predicted class and whether it was right.

        Parameters
        ----------
        confidence
            Probability given to the predicted class. Scores of a binary task are for :meth:`from_scores`.
        correct
            Whether the prediction was right. 0/1 or true/false.
        sample_weight
            Weights >= 0, or None.

        Examples
        --------
        >>> Predictions.from_confidence([0.8, 0.7, 0.1], [True, True, False])
        Predictions(n=3, kind='confidence', accuracy=0.667)
        """
        z, c, w = _checks.score_pair(confidence, correct, sample_weight)
        return cls._of_checked("confidence", z, c, sample_weight=w)

    @classmethod
    def from_scores(cls, scores: Any, outcomes: Any, sample_weight: Any = None, *, positive: Any = None) -> Predictions:
        """Binary scores, P(y = 1), and the outcomes y.

        Parameters
        ----------
        scores
            Probability given to outcome 1, as it is (never max(p, 1 - p)).
        outcomes
            What happened: 0/1, true/false, words for these, or two other values of which ``positive`` is one.
        sample_weight
            Weights >= 0, or None.
        positive
            The outcome that counts as 1, where it is not 1, true or yes.

        Examples
        --------
        >>> Predictions.from_scores([0.8, 0.7, 0.1], ["default", "paid", "paid"], positive="default")
        Predictions(n=3, kind='score', base_rate=0.333)
        """
        remedy = "pass probabilities"
        logits = (
            f"{remedy}; log-odds become probabilities by the sigmoid, 1/(1 + exp(-x)), other margins by "
            "certcal recalibrate fit with real_scores"
        )
        z = _checks.confidences(scores, "scores", remedy, of_log_odds=logits)
        y = outcome_array(outcomes, positive)
        _checks.same_length(scores=z.size, outcomes=y.size)
        return cls._of_checked("score", z, y, sample_weight=_checks.weights(sample_weight, z.size, partner="scores"))

    @classmethod
    def _of_checked(
        cls,
        kind: Kind,
        confidence: NDArray[Any],
        correct: NDArray[np.uint8],
        *,
        probabilities: NDArray[Any] | None = None,
        logits: NDArray[Any] | None = None,
        labels: NDArray[np.int64] | None = None,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Predictions:
        new = object.__new__(cls)
        object.__setattr__(new, "kind", kind)
        arrays = {
            "confidence": confidence,
            "correct": correct,
            "probabilities": probabilities,
            "logits": logits,
            "labels": labels,
            "sample_weight": sample_weight,
        }
        for name, array in arrays.items():
            object.__setattr__(new, name, None if array is None else _checks.read_only(array))
        return new

    def __len__(self) -> int:
        return self.confidence.size

    @property
    def task(self) -> Task:
        """What is asked: "binary" (P(y = 1) and y), "top-label" (is the predicted class right?) or "multiclass".

        Examples
        --------
        >>> Predictions.from_scores([0.2], [0]).task, Predictions.from_logits([[0.5, 1.5]], [0]).task
        ('binary', 'multiclass')
        """
        return task_of(self.kind)

    @property
    def classes(self) -> int | None:
        """Number of classes, or None when only scores or confidences were given.

        Examples
        --------
        >>> Predictions.from_logits([[1.0, 2.0, 3.0]], [0]).classes
        3
        """
        return None if self.probabilities is None else int(self.probabilities.shape[1])

    def select(self, mask_or_index: Any) -> Predictions:
        """The samples that a true/false mask, a slice or an array of positions picks.

        Examples
        --------
        >>> p = Predictions.from_confidence([0.8, 0.7, 0.1], [1, 1, 0])
        >>> p.select([True, False, True]).confidence.tolist()
        [0.8, 0.1]
        >>> p.select(slice(1, None))
        Predictions(n=2, kind='confidence', accuracy=0.5)
        """
        rows = _check_positions(mask_or_index, len(self))

        def pick(array: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if array is None else array[rows]

        confidence = self.confidence[rows]
        if confidence.size == 0:
            raise InputError("mask_or_index picks no samples; a Predictions holds at least one")
        w = pick(self.sample_weight)
        if w is not None and not w.sum() > 0:
            raise InputError("mask_or_index picks only samples of weight 0; at least one weight must be positive")
        return self._of_checked(
            self.kind,
            confidence,
            self.correct[rows],
            probabilities=pick(self.probabilities),
            logits=pick(self.logits),
            labels=pick(self.labels),
            sample_weight=w,
        )

    def __repr__(self) -> str:
        classes = "" if self.classes is None else f", classes={self.classes}"
        weighted = "" if self.sample_weight is None else ", weighted=True"
        rate = f"{'base_rate' if self.task == 'binary' else 'accuracy'}={self._rate():.3g}"
        return f"Predictions(n={len(self)}{classes}, kind={self.kind!r}, {rate}{weighted})"

    def __str__(self) -> str:
        classes = "" if self.classes is None else f" of {self.classes:,} classes"
        rate = "happened" if self.task == "binary" else "right"
        return f"{counted(len(self), 'prediction')}{classes} from {self.kind}, {100 * self._rate():.3g}% {rate}"

    def _rate(self) -> float:
        return float(np.average(self.correct, weights=self.sample_weight))


def task_of(kind: str) -> Task:
    """The task of a kind of predictions.

    Examples
    --------
    >>> task_of("confidence")
    'top-label'
    """
    return "binary" if kind == "score" else "top-label" if kind == "confidence" else "multiclass"


def _is_half(value: Any) -> bool:
    return str(getattr(value, "dtype", "")).removeprefix("torch.").lower() == "float16"


def _row_blocks(rows: int, columns: int) -> Iterator[slice]:
    step = max(1, _BLOCK_ENTRIES // columns)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def _softmax(logits: NDArray[Any]) -> NDArray[Any]:
    out = np.empty_like(logits)

    def some(start: int, stop: int) -> None:
        for rows in _row_blocks(stop - start, logits.shape[1]):
            block = logits[start:stop][rows].astype(np.float64)
            with np.errstate(over="ignore", under="ignore"):  # a difference of -inf is a probability of 0
                block -= block.max(axis=1, keepdims=True)
                np.exp(block, out=block)
            block /= block.sum(axis=1, keepdims=True)
            out[start:stop][rows] = block

    map_blocks(some, logits.shape[0], small=1 + _BLOCK_ENTRIES // logits.shape[1])
    return out


def _top_label(
    scores: NDArray[Any], labels: NDArray[np.int64], values: NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Value (at most one) of the first largest score of each row, and whether it belongs to the true class."""
    values = scores if values is None else values
    confidence = np.empty(labels.size, values.dtype)
    correct = np.empty(labels.size, np.uint8)
    for rows in _row_blocks(*scores.shape):
        top = scores[rows].argmax(axis=1)
        largest = np.take_along_axis(values[rows], top[:, None], axis=1)[:, 0]
        np.minimum(largest, 1, out=confidence[rows])
        np.equal(top, labels[rows], out=correct[rows].view(np.bool_))
    return confidence, correct


def _check_positions(value: Any, n: int) -> Any:
    """A slice, a mask of n entries or positions below n, checked."""
    if isinstance(value, slice):
        return cast(Any, value)
    array = np.asarray(_checks.to_numpy(value, "mask_or_index"))
    if array.ndim == 1 and array.dtype == np.bool_:
        _checks.same_length(predictions=n, mask_or_index=array.size)
        return array
    if array.ndim != 1 or array.dtype.kind not in "iu":
        if array.size == 0:
            raise InputError("mask_or_index picks no samples; a Predictions holds at least one")
        raise InputError(
            "mask_or_index is neither true/false per sample nor whole numbers; pass a mask, positions or a slice"
        )
    bad = (array < -n) | (array >= n)
    if bad.any():
        index = int(np.argmax(bad))
        raise InputError(f"mask_or_index[{index}] is {array[index]}, outside the {n} samples; pass positions below {n}")
    return array
