"""What a map is fitted and applied to: predictions, real scores beside them, and the groups of the samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.calibrators._predictions import mapped
from certcal.predictions import Predictions

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MapInput:
    """Predictions, and what maps may take beside them."""

    predictions: Any
    """What is mapped; with what was true where a map is fitted."""
    real: Floats | None = None
    """Scores that are no probabilities."""
    codes: Rows | None = None
    """The number of each sample's group, a row per rule; -1 for one that is not known."""

    def select(self, rows: Any) -> MapInput:
        """Some of the samples."""
        real = None if self.real is None else self.real[rows]
        return MapInput(self.predictions.select(rows), real, None if self.codes is None else self.codes[:, rows])

    def apply(self, calibrator: Any) -> NDArray[Any]:
        """What a map makes of them."""
        if hasattr(calibrator, "corrected"):
            assert self.codes is not None
            return calibrator.corrected(self.apply(calibrator.common_), self.codes)
        return mapped(calibrator, self.predictions) if self.real is None else calibrator.transform(self.real)

    def after(self, found: NDArray[Any]) -> Predictions:
        """What was true, with other probabilities."""
        given = self.predictions
        if found.ndim == 2:
            return Predictions.from_probabilities(found, given.labels, given.sample_weight)
        make = Predictions.from_scores if given.kind == "score" else Predictions.from_confidence
        return make(found, given.correct, given.sample_weight)
