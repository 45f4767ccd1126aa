"""Maps of confidences that are fitted to outcomes: one confidence and whether it was right, per sample."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certcal._checks import score_pair
from certcal.calibrators._base import ConfidenceMap

Floats = NDArray[np.float64]


class OutcomeMap(ConfidenceMap):
    """A map of confidences that is fitted to confidences and outcomes.

    Confidences are compared and mapped as float64 whatever their type, so that a number has one image.
    """

    def fit(self, confidence: Any, correct: Any, sample_weight: Any = None) -> Self:
        """Fit to samples.

        Parameters
        ----------
        confidence
            In [0, 1], one per sample.
        correct
            Whether each prediction is correct (binary task: the outcome), 0 or 1.
        sample_weight
            Weights >= 0, or None. A weight of 2 counts like two samples.
        """
        z, c, w = score_pair(confidence, correct, sample_weight)
        self._fit(z.astype(np.float64), c, w)
        return self

    def fit_transform(self, confidence: Any, correct: Any, sample_weight: Any = None) -> Floats:
        """Fit, and :meth:`transform` the same confidences."""
        return self.fit(confidence, correct, sample_weight).transform(confidence)

    @abstractmethod
    def _fit(self, z: Floats, c: NDArray[np.uint8], w: Floats | None) -> None:
        """Fit to checked samples."""
