"""A fitted scikit-learn classifier. Nothing here imports scikit-learn: any object with its conventions will do."""

from __future__ import annotations

from typing import Any

import numpy as np

from certcal._checks import InputError
from certcal.models._adapter import Adapter, Batch, check_shape
from certcal.models._callable import looked_at
from certcal.models.protocol import declared


class EstimatorModel(Adapter):
    """The probabilities of ``predict_proba``. Inputs of more than two dimensions are flattened, one row per sample."""

    def __init__(self, estimator: Any, outputs: str | None = None) -> None:
        name = type(estimator).__name__
        super().__init__(declared(outputs, "probabilities", f"predict_proba of {name}"), f"{name} (scikit-learn)")
        self.estimator = estimator
        _check_classes(estimator, name)
        features: Any = getattr(estimator, "n_features_in_", None)
        self._features = None if features is None else (int(features),)

    def _forward(self, batch: Batch) -> Any:
        rows = batch.reshape(batch.shape[0], -1)
        check_shape(rows.shape[1:], self._features, self.description)
        return self.estimator.predict_proba(rows)

    def identity(self, probe: Any) -> str | None:
        """Of the estimator's class, parameters and fitted attributes, if Python shows them all."""
        inside = looked_at(self, self.estimator, "", probe)
        return inside.digits if inside.complete else None

    def fingerprint(self, probe: Any) -> str:
        """Of the same, and its probabilities for the probe."""
        inside = looked_at(self, self.estimator, "", probe)
        return self._behaviour(probe, inside.digits, inside.complete)


def _check_classes(estimator: Any, name: str) -> None:
    """Column k must be class k."""
    try:
        classes: Any = estimator.classes_
    except AttributeError:
        raise InputError(f"{name} has no classes_; fit it first") from None
    if isinstance(classes, list):
        raise InputError(f"{name} predicts several outputs at once; wrap one classifier for each")
    values = np.asarray(classes)
    if values.dtype.kind not in "iu" or not np.array_equal(values, np.arange(values.size)):
        shown = ", ".join(repr(value) for value in values[:5].tolist()) + (", …" if values.size > 5 else "")
        raise InputError(
            f"{name} was fitted on the classes {shown}; fit it on whole numbers from 0 to {values.size - 1}, "
            "so that column k is class k"
        )
