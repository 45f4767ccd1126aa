"""What a calibrator of one's own needs: two methods, or three for certified confidences, as built-in ones have."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from certcal._base.checks import InputError, confidences, same_length, shortened
from certcal.calibrators.scores import Floats


@runtime_checkable
class ConfidenceCalibrator(Protocol):
    """A calibrator of one confidence per sample, such as scikit-learn's ``IsotonicRegression``.

    Examples
    --------
    >>> class Shrunk:
    ...     def fit(self, confidence, correct, sample_weight=None):
    ...         self.mean = np.average(correct, weights=sample_weight)
    ...
    ...     def predict(self, confidence):
    ...         return (confidence + self.mean) / 2
    >>> isinstance(Shrunk(), ConfidenceCalibrator), isinstance(Shrunk(), IntervalCalibrator)
    (True, False)
    """

    def fit(self, confidence: Any, correct: Any, sample_weight: Any = None, /) -> Any:
        """Fit to confidences and whether each was right; weights are passed where there are some."""
        ...

    def predict(self, confidence: Any, /) -> Any:
        """Confidences after the map, each in [0, 1]."""
        ...


@runtime_checkable
class ScoreCalibrator(Protocol):
    """A calibrator of the scores of all classes.

    An attribute ``inputs``, "logits" or "probabilities", says which of them it takes; without it, whichever there are.
    """

    def fit(self, scores: Any, labels: Any, sample_weight: Any = None, /) -> Any:
        """Fit to scores, one row per sample and one column per class, and true classes from 0."""
        ...

    def predict_proba(self, scores: Any, /) -> Any:
        """Probabilities of all classes after the map, one row per sample."""
        ...


@runtime_checkable
class IntervalCalibrator(Protocol):
    """A calibrator that certificates can go through.

    It is fitted to certified samples by ``fit_samples(samples, radius_weight)`` if it has such a method, and to
    confidences without a perturbation by ``fit(confidence, correct)`` otherwise.
    """

    def predict(self, confidence: Any, /) -> Any:
        """Confidences after the map, each in [0, 1]."""
        ...

    def intervals(self, lower: Any, upper: Any, /) -> Any:
        """Lower and upper ends of intervals that hold every mapped confidence of the given ones."""
        ...


def predicted(calibrator: Any, confidence: Any) -> Floats:
    if not callable(getattr(calibrator, "predict", None)):
        raise InputError(f"{shortened(calibrator)} has no predict; pass a fitted calibrator, or load one from its file")
    found = confidences(calibrator.predict(confidence), f"{type(calibrator).__name__}.predict").astype(np.float64)
    same_length(confidence=np.size(confidence), predicted=found.size)
    return found


def interval_of(calibrator: IntervalCalibrator, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Intervals after a map. Ends that are swapped, or that miss what the map makes of the given ends, are refused."""
    name = f"{type(calibrator).__name__}.intervals"
    ends = calibrator.intervals(lower, upper)
    low, high = (confidences(each, name).astype(np.float64) for each in ends)
    same_length(lower=lower.size, mapped=low.size)
    same_length(upper=upper.size, mapped=high.size)
    for given in (lower, upper):
        value = predicted(calibrator, given)
        outside = (value < low) | (value > high)
        if outside.any():
            k = int(np.argmax(outside))
            raise InputError(
                f"{name} makes [{low[k]:g}, {high[k]:g}] of [{lower[k]:g}, {upper[k]:g}], and predict takes "
                f"{given[k]:g} to {value[k]:g}, which is outside; intervals must hold every mapped confidence"
            )
    return low, high
