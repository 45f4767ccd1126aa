"""Calibrators one after the other: chains of maps of scores, and of maps of confidences."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.calibrators._base import Calibrator, OutcomeMap
from certcal.calibrators.scores import Floats, ScoreMap


class Steps(Calibrator):
    """A calibrator whose one parameter is a list of calibrators. Their parameters go by place: ``0__bins``."""

    steps: Any
    steps_: list[Any]
    _of: tuple[type[Calibrator], str]  # what the steps are

    @abstractmethod
    def __init__(self, steps: Sequence[Any]) -> None: ...

    def _inner(self) -> dict[str, Calibrator]:
        steps = enumerate(_listed(self.steps))
        return {str(place): step for place, step in steps if isinstance(step, Calibrator)}

    @classmethod
    def _param(cls, name: str, value: Any) -> Any:
        each_of = cast("list[Any]", value) if isinstance(value, list) else [value]
        return [super(Steps, cls)._param(name, each) for each in each_of]

    def _checked(self) -> list[Any]:
        """Steps of the right kind, at least one."""
        given, (kind, what) = _listed(self.steps), self._of
        if not given:
            raise InputError(f"steps is {self.steps!r}; pass a list of at least one calibrator")
        for place, step in enumerate(given):
            if not isinstance(step, kind):
                raise InputError(f"steps[{place}] is {step!r}; {type(self).__name__} takes {what}")
        return given

    def _state(self) -> dict[str, Any] | None:
        return {"steps": [step.to_dict() for step in self.steps_]} if hasattr(self, "steps_") else None

    def _restore(self, state: Mapping[str, Any]) -> None:
        found = [Calibrator._fitted_in(each) for each in _listed(state.get("steps"))]
        if not found or not all(isinstance(each, self._of[0]) for each in found):
            raise InputError("steps is damaged; expected fitted calibrators")
        self.steps_ = found


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

    Examples
    --------
    >>> from certcal.calibrators import HistogramBinning, TemperatureScaling, TopLabel
    >>> chain = Chain([TemperatureScaling(), TopLabel(HistogramBinning(bins=2))])
    >>> fitted = chain.fit([[0, 2], [2, 0], [0, 2], [0, 2]], [1, 0, 1, 0])
    >>> fitted.predict_proba([[0, 3]]).tolist()
    [[0.25, 0.75]]
    """

    _of = ScoreMap, "maps of scores (TopLabel makes one of a map of confidences; ConfidenceChain takes those)"

    def __init__(self, steps: Sequence[ScoreMap]) -> None:
        self.steps = steps

    @property
    def inputs(self) -> str:
        """What the scores are: what the first step takes."""
        return self._checked()[0].inputs

    def _fit(self, x: NDArray[Any], y: NDArray[np.int64], w: Floats | None) -> None:
        fitted: list[Any] = []
        for step in self._checked():
            x = _through(fitted[-1:], x, step)
            fitted.append(step.unfitted().fit(x, y, w))
        self.steps_ = fitted

    def _probabilities(self, x: NDArray[Any]) -> Floats:
        return self.steps_[-1].predict_proba(_through(self.steps_[:-1], x, self.steps_[-1]))

    def predict(self, scores: Any) -> NDArray[Any]:
        """What the last step predicts."""
        x = self._matrix(scores)
        places = self.steps_[-1].predict(_through(self.steps_[:-1], x, self.steps_[-1]))
        return self.classes_[places]

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self.classes_ = self.steps_[-1].classes_


class ConfidenceChain(Steps, OutcomeMap):
    """Maps of confidences, each fitted to what the one before makes of the samples.

    Platt scaling and then binning, for example, is the scaling-binning of Kumar, Liang and Ma (2019). All steps see the
    same samples, so a guarantee of a later step does not hold: it assumes that the maps before were fitted to others.

    Parameters
    ----------
    steps
        Maps that are fitted to confidences and outcomes, in order; copies of them are fitted.

    Attributes
    ----------
    steps_
        The fitted maps.

    Examples
    --------
    >>> from certcal.calibrators import HistogramBinning, PlattScaling
    >>> chain = ConfidenceChain([PlattScaling(), HistogramBinning(bins=2)])
    >>> fitted = chain.fit([0.6, 0.7, 0.8, 0.9], [0, 0, 1, 1])
    >>> fitted.transform([0.5, 1.0]).tolist()
    [0.0, 1.0]
    """

    _of = OutcomeMap, "maps that are fitted to confidences and outcomes"

    def __init__(self, steps: Sequence[OutcomeMap]) -> None:
        self.steps = steps

    @property
    def monotone(self) -> bool:
        """Whether every step is; False before the fit."""
        return hasattr(self, "steps_") and all(step.monotone for step in self.steps_)

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        fitted: list[OutcomeMap] = []
        for step in self._checked():
            fitted.append(step.unfitted().fit(z, c, w))
            z = fitted[-1].transform(z)
        self.steps_ = fitted

    def _apply(self, values: Floats) -> Floats:
        for step in self.steps_:
            values = step.transform(values)
        return values

    def _interval(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        for step in self.steps_:
            lower, upper = step.intervals(lower, upper)
        return lower, upper


def _listed(steps: Any) -> list[Any]:
    return list(cast("Sequence[Any]", steps)) if isinstance(steps, list | tuple) else []


def _through(before: list[Any], scores: Any, following: Any) -> Any:
    """Scores through steps, as the one that follows takes them."""
    for step, after in pairwise([*before, following]):
        scores = step.predict_proba(scores) if after.inputs == "probabilities" else step.transform(scores)
    return scores
