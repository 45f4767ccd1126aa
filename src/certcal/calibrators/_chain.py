"""Maps of scores, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certcal.calibrators._base import ScoreMap
from certcal.calibrators._steps import Steps, fitted_steps

Floats = NDArray[np.float64]


class Chain(Steps, ScoreMap):
    """Maps of scores, each fitted to what the one before makes of the samples.

    The first step takes scores as its ``inputs`` say. A later one gets probabilities if its ``inputs`` are
    "probabilities", and their logarithms if they are "logits". For maps of confidences there is
    :class:`ConfidenceChain`; :class:`TopLabel` makes a map of scores of one.

    Parameters
    ----------
    steps
        Maps of scores, in order; copies of them are fitted.

    Attributes
    ----------
    steps_
        The fitted maps.
    classes_
        0, 1, … up to the last class.

    Examples
    --------
    >>> from certcal.calibrators import HistogramBinning, TemperatureScaling, TopLabel
    >>> chain = Chain([TemperatureScaling(), TopLabel(HistogramBinning(bins=2))])
    >>> fitted = chain.fit([[0, 2], [2, 0], [0, 2], [0, 2]], [1, 0, 1, 0])
    >>> fitted.predict_proba([[0, 3]]).tolist()
    [[0.25, 0.75]]
    """

    steps_: list[Any]
    classes_: NDArray[np.int64]

    def __init__(self, steps: Sequence[ScoreMap]) -> None:
        self.steps = steps

    @property
    def inputs(self) -> str:
        """What the scores are: what the first step takes."""
        first: Any = self._checked(self.steps, ScoreMap, _WHAT)[0]
        return first.inputs

    def fit(self, scores: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Fit each step to what the one before makes of the scores.

        Parameters
        ----------
        scores
            One row per sample, one column per class.
        labels
            True class of each sample, from 0.
        sample_weight
            Weights >= 0, or None.
        """
        fitted: list[Any] = []
        for step in self._checked(self.steps, ScoreMap, _WHAT):
            scores = _through(fitted[-1:], scores, step)
            fitted.append(step.unfitted().fit(scores, labels, sample_weight))
        self.steps_, self.classes_ = fitted, fitted[-1].classes_
        return self

    def predict_proba(self, scores: Any) -> Floats:
        """Probabilities after the last step, one row per sample."""
        self._require_fitted()
        return self.steps_[-1].predict_proba(_through(self.steps_[:-1], scores, self.steps_[-1]))

    def predict(self, scores: Any) -> NDArray[np.int64]:
        """What the last step predicts."""
        self._require_fitted()
        return self.steps_[-1].predict(_through(self.steps_[:-1], scores, self.steps_[-1]))

    def _state(self) -> dict[str, Any] | None:
        return {"steps": [step.to_dict() for step in self.steps_]} if hasattr(self, "steps_") else None

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.steps_ = fitted_steps(state, ScoreMap)
        self.classes_ = self.steps_[-1].classes_


_WHAT = "maps of scores (TopLabel makes one of a map of confidences; ConfidenceChain takes those)"


def _through(before: list[Any], scores: Any, following: Any) -> Any:
    """Scores through steps, as the one that follows takes them."""
    for step, after in pairwise([*before, following]):
        scores = step.predict_proba(scores) if after.inputs == "probabilities" else step.transform(scores)
    return scores
