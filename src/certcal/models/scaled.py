"""A model of inputs in other units, such as features in standard deviations."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal.models.protocol import Model, Outputs


class ScaledModel:
    """What a model says about inputs that were divided by a scale, one number per feature.

    Noise that is added to such inputs has the scale of each feature, and a certified radius is counted in it.
    """

    source = None  # another process could load the model, but not the scale

    def __init__(self, model: Model, scale: NDArray[Any], units: str) -> None:
        self._model, self._scale = model, np.asarray(scale, np.float32)
        self.outputs: Outputs = model.outputs
        self.description = f"{model.description}; {units}"

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[Any]:
        """The model's answers to the inputs in its own units."""
        return self._model(np.asarray(batch, np.float32) * self._scale)

    def fingerprint(self, probe: NDArray[np.float32]) -> str:
        """Digits of the model and of the scale."""
        inner = self._model.fingerprint(np.asarray(probe, np.float32) * self._scale)
        return hashlib.sha256(inner.encode() + self._scale.astype("<f4").tobytes()).hexdigest()
