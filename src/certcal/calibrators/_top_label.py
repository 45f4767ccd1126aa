"""Calibrate the confidence of the predicted class; the others share what it leaves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.calibrators._multiclass import MadeOfMaps, fitted_map
from certcal.calibrators._outcomes import OutcomeMap
from certcal.calibrators.scores import class_count

Floats = NDArray[np.float64]

_CLASS = re.compile("0|[1-9][0-9]{0,7}")


class TopLabel(MadeOfMaps):
    """A map of the confidence in the predicted class; the other classes share the rest in their proportions.

    With ``per_class`` there is one map for each predicted class (Gupta and Ramdas 2022), which calibrates confidence
    given the prediction and not only on average over predictions. A class that no sample of the fit was predicted to be
    is served by the map that was fitted to all samples.

    The prediction stays: ``predict`` gives the class with the largest of the given scores. Its mapped confidence may be
    below the share of another class; then the largest of ``predict_proba`` is another class.

    Parameters
    ----------
    calibrator
        A map that is fitted to confidences and outcomes; copies of it are fitted.
    per_class
        One map for each predicted class, or one for all.
    inputs
        What the scores are: "logits" or "probabilities". Never guessed from the values.

    Attributes
    ----------
    pooled_
        The map that was fitted to all samples.
    maps_
        Maps by predicted class; empty without ``per_class``.
    classes_
        0, 1, … up to the last class.

    Examples
    --------
    >>> from certcal.calibrators import HistogramBinning
    >>> p = [[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.0, 0.1, 0.9]]
    >>> fitted = TopLabel(HistogramBinning(bins=1), inputs="probabilities").fit(p, [0, 1, 2, 2])
    >>> fitted.predict_proba([[0.5, 0.4, 0.1]]).round(6).tolist()
    [[0.75, 0.2, 0.05]]
    """

    pooled_: OutcomeMap
    maps_: dict[int, OutcomeMap]

    def __init__(self, calibrator: OutcomeMap, per_class: bool = False, inputs: str = "logits") -> None:
        self.calibrator = calibrator
        self.per_class = per_class
        self.inputs = inputs

    def fit(self, scores: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Fit the map, or the maps.

        Parameters
        ----------
        scores
            One row per sample, one column per class.
        labels
            True class of each sample, from 0.
        sample_weight
            Weights >= 0, or None.
        """
        (p, top), y, w, template = self._labelled(scores, labels, sample_weight)
        confidence = p[np.arange(top.size), top]
        correct = (top == y).astype(np.uint8)
        self.pooled_ = template.unfitted().fit(confidence, correct, w)
        self.maps_ = {}
        for k in np.unique(top) if self.per_class else ():
            rows = top == k
            part = None if w is None else w[rows]
            if part is None or part.any():
                self.maps_[int(k)] = template.unfitted().fit(confidence[rows], correct[rows], part)
        self.classes_ = np.arange(p.shape[1])
        return self

    def predict_proba(self, scores: Any) -> Floats:
        """Probabilities after the map, one row per sample."""
        p, top = self._read(scores)
        rows = np.arange(top.size)
        confidence = p[rows, top]
        mapped = np.empty(confidence.size)
        known = np.zeros(confidence.size, np.bool_)
        for k, each in self.maps_.items():
            here = top == k
            if here.any():
                mapped[here], known[here] = each.transform(confidence[here]), True
        if not known.all():
            mapped[~known] = self.pooled_.transform(confidence[~known])
        p[rows, top] = 0.0
        p[p.sum(axis=1) == 0] = 1.0  # nothing to be in proportion to: equal shares
        p[rows, top] = 0.0
        p *= ((1 - mapped) / p.sum(axis=1))[:, None]
        p[rows, top] = mapped
        return p

    def predict(self, scores: Any) -> NDArray[np.int64]:
        """The class with the largest of the given scores, the first of several: the map changes no prediction."""
        return self._read(scores)[1]

    def _state(self) -> dict[str, Any] | None:
        if not hasattr(self, "pooled_"):
            return None
        maps = {str(k): each.to_dict() for k, each in self.maps_.items()}
        return {"classes": int(self.classes_.size), "pooled": self.pooled_.to_dict(), "maps": maps}

    def _restore(self, state: Mapping[str, Any]) -> None:
        classes = class_count(state)
        given = state.get("maps")
        maps = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {"": None}
        if not all(_CLASS.fullmatch(key) and int(key) < classes for key in maps):
            raise InputError(f"maps is damaged; expected maps of some of the {classes} classes")
        self.pooled_ = fitted_map(state.get("pooled"), "pooled")
        self.maps_ = {int(key): fitted_map(each, "maps") for key, each in maps.items()}
        self.classes_ = np.arange(classes)
