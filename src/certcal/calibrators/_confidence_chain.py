"""Maps of confidences, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.calibrators._outcomes import OutcomeMap
from certcal.calibrators._steps import Steps, fitted_steps

Floats = NDArray[np.float64]


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

    steps_: list[OutcomeMap]

    def __init__(self, steps: Sequence[OutcomeMap]) -> None:
        self.steps = steps

    @property
    def monotone(self) -> bool:
        """Whether every step is; False before the fit."""
        return hasattr(self, "steps_") and all(step.monotone for step in self.steps_)

    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        given = self._checked(self.steps, OutcomeMap, "maps that are fitted to confidences and outcomes")
        fitted: list[OutcomeMap] = []
        for step in given:
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

    def _state(self) -> dict[str, Any] | None:
        return {"steps": [step.to_dict() for step in self.steps_]} if hasattr(self, "steps_") else None

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.steps_ = fitted_steps(state, OutcomeMap)
