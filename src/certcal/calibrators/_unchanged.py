"""No map, as a map: what is used where none helps."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certcal.calibrators._base import OutcomeMap
from certcal.calibrators._formulas import SCORE, ClassFormula, ScoreFormula
from certcal.calibrators._logistic import NEAREST, resolution
from certcal.calibrators.scores import LEAST, Floats, ScoreMap, as_probabilities


class Unchanged(OutcomeMap):
    """g(z) = z, but for scores nearer to 0 and 1 than 2^-24, or than half a vote where a sample contradicts a 0 or 1.

    Attributes
    ----------
    nearest_
        2^-24; as for :class:`PlattScaling` where a sample has a score of 0 and outcome 1, or of 1 and outcome 0.

    Examples
    --------
    >>> Unchanged().fit([0, 0.25, 0.75, 1], [1, 0, 1, 1]).transform([0, 0.5, 1]).tolist()
    [0.125, 0.5, 0.875]
    >>> Unchanged().fit([0, 0.25, 0.75, 1], [0, 0, 1, 1]).transform([0, 0.5, 1]).round(6).tolist()
    [0.0, 0.5, 1.0]
    """

    nearest_: float
    _kept: ClassVar = {"nearest": (NEAREST, 0.5)}

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        wrong = np.where(c == 1, z < NEAREST, z > 1 - NEAREST)
        self.nearest_ = resolution(z) if (wrong if w is None else wrong[w > 0]).any() else NEAREST

    def _apply(self, values: Floats) -> Floats:
        return np.clip(values, self.nearest_, 1 - self.nearest_)

    def _formula(self) -> ScoreFormula:
        ends = self.nearest_, 1 - self.nearest_
        return ScoreFormula(SCORE.clip(*ends), f"the score, at least {ends[0]:g} away from 0 and 1")

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        return self._apply(lower), self._apply(upper)


class UnchangedScores(ScoreMap):
    """The given probabilities, or the softmax of the given logits.

    A probability of 0 counts as at most 2^-24 or, where it is that of a sample's class, as for
    :class:`TemperatureScaling`.

    Parameters
    ----------
    inputs
        What the scores are: "logits" or "probabilities".

    Examples
    --------
    >>> UnchangedScores("probabilities").fit([[0.2, 0.8], [0.4, 0.6]], [1, 0]).predict_proba([[0.3, 0.7]]).tolist()
    [[0.3, 0.7]]
    """

    _keeps_predictions = True
    _kept: ClassVar = {"classes": None}

    def __init__(self, inputs: str = "logits") -> None:
        self.inputs = inputs

    def _fit(self, x: NDArray[Any], y: NDArray[np.int64], w: Floats | None) -> None:
        own = x[np.arange(y.size), y]
        if self.inputs == "logits" or (own if w is None else own[w > 0]).all():
            self.floor_ = min(self.floor_, NEAREST)

    def _probabilities(self, x: NDArray[Any]) -> Floats:
        p = as_probabilities(x, self.inputs)[0]
        if self.floor_ > LEAST:
            p = np.maximum(p, self.floor_)
            p /= p.sum(axis=1, keepdims=True)
        return np.maximum(p, LEAST, out=p)

    def _formula(self) -> ClassFormula:
        k = self.classes_.size
        return ClassFormula(self.inputs, k, "the given probabilities", np.ones(k), np.zeros(k), self.floor_)
