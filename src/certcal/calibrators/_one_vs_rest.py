"""One map of confidences for each class, and then shares of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from certcal.calibrators._multiclass import MadeOfMaps, fitted_map
from certcal.calibrators._outcomes import OutcomeMap
from certcal.calibrators.scores import class_count

Floats = NDArray[np.float64]


class OneVsRest(MadeOfMaps):
    """One map for each class, fitted to its probability and whether it is the label; rows are then made to sum to 1.

    A row whose mapped probabilities are all 0 keeps the given ones. Normalising undoes some of what the maps repaired
    (Zadrozny and Elkan 2002); guarantees of the maps hold before it.

    Parameters
    ----------
    calibrator
        A map that is fitted to confidences and outcomes; copies of it are fitted.
    inputs
        What the scores are: "logits" or "probabilities". Never guessed from the values.

    Attributes
    ----------
    maps_
        One map per class.
    classes_
        0, 1, … up to the last class.

    Examples
    --------
    >>> from certcal.calibrators import HistogramBinning
    >>> p = [[0.8, 0.2], [0.9, 0.1], [0.7, 0.3], [0.1, 0.9]]
    >>> fitted = OneVsRest(HistogramBinning(bins=2), inputs="probabilities").fit(p, [0, 0, 1, 1])
    >>> fitted.predict_proba([[0.6, 0.4]]).round(6).tolist()
    [[0.666667, 0.333333]]
    """

    maps_: list[OutcomeMap]

    def __init__(self, calibrator: OutcomeMap, inputs: str = "logits") -> None:
        self.calibrator = calibrator
        self.inputs = inputs

    def fit(self, scores: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Fit the maps.

        Parameters
        ----------
        scores
            One row per sample, one column per class.
        labels
            True class of each sample, from 0.
        sample_weight
            Weights >= 0, or None.
        """
        (p, _), y, w, template = self._labelled(scores, labels, sample_weight)
        columns = np.ascontiguousarray(p.T)
        self.maps_ = [template.unfitted().fit(column, y == k, w) for k, column in enumerate(columns)]
        self.classes_ = np.arange(p.shape[1])
        return self

    def predict_proba(self, scores: Any) -> Floats:
        """Probabilities after the maps, one row per sample."""
        p, _ = self._read(scores)
        columns = np.ascontiguousarray(p.T)
        mapped = np.stack([each.transform(column) for each, column in zip(self.maps_, columns, strict=True)], axis=1)
        nothing = mapped.sum(axis=1) == 0
        mapped[nothing] = p[nothing]
        return mapped / mapped.sum(axis=1, keepdims=True)

    def _state(self) -> dict[str, Any] | None:
        return {"maps": [each.to_dict() for each in self.maps_]} if hasattr(self, "maps_") else None

    def _restore(self, state: Mapping[str, Any]) -> None:
        given = state.get("maps")
        maps = cast("list[Any]", given) if isinstance(given, list) else []
        classes = class_count({"classes": len(maps)})
        self.maps_ = [fitted_map(each, "maps") for each in maps]
        self.classes_ = np.arange(classes)
