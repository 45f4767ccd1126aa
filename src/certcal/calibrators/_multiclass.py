"""Calibrators of all classes made of maps of confidences: of the top label, or of each class against the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal.calibrators._base import Calibrator, OutcomeMap
from certcal.calibrators._formulas import ClassFormula, ScoreFormula
from certcal.calibrators.scores import Floats, ScoreMap, as_probabilities, class_count

Whole = NDArray[np.int64]

_CLASS = re.compile("0|[1-9][0-9]{0,7}")


class MadeOfMaps(ScoreMap):
    """A map of scores that is made of maps of confidences.

    Probabilities are used as they are given, not as the softmax of their logarithms, so that a probability on the edge
    of a bin stays there.
    """

    calibrator: Any

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the maps; arguments are those of :meth:`ScoreMap.fit`."""
        if not isinstance(self.calibrator, OutcomeMap):
            raise InputError(
                f"calibrator is {self.calibrator!r}; pass a map that is fitted to confidences and outcomes, such as "
                "IsotonicCalibration()"
            )
        return super().fit(scores, y, sample_weight)

    @staticmethod
    def _formula_in(each: OutcomeMap) -> ScoreFormula:
        return cast("ScoreFormula", each._formula())

    @staticmethod
    def _map_in(document: Any, name: str) -> OutcomeMap:
        """A map of a state, which may come from a file."""
        found = Calibrator._fitted_in(document)
        if not isinstance(found, OutcomeMap):
            raise InputError(f"{name} is damaged; expected fitted maps of confidences")
        return found


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

    Examples
    --------
    >>> from certcal.calibrators import HistogramBinning
    >>> p = [[0.8, 0.2], [0.9, 0.1], [0.7, 0.3], [0.1, 0.9]]
    >>> fitted = OneVsRest(HistogramBinning(bins=2), inputs="probabilities").fit(p, [0, 0, 1, 1])
    >>> fitted.predict_proba([[0.6, 0.4]]).round(6).tolist()
    [[0.666667, 0.333333]]
    """

    maps_: list[OutcomeMap]
    """One map per class."""
    _kept: ClassVar = {"maps": None}

    def __init__(self, calibrator: OutcomeMap, inputs: str = "logits") -> None:
        self.calibrator = calibrator
        self.inputs = inputs

    def _fit(self, x: NDArray[Any], y: Whole, w: Floats | None) -> None:
        columns = np.ascontiguousarray(as_probabilities(x, self.inputs)[0].T)
        self.maps_ = [self.calibrator.unfitted().fit(column, y == k, w) for k, column in enumerate(columns)]

    def _probabilities(self, x: NDArray[Any]) -> Floats:
        p, _ = as_probabilities(x, self.inputs)
        columns = np.ascontiguousarray(p.T)
        mapped = np.stack([each.transform(column) for each, column in zip(self.maps_, columns, strict=True)], axis=1)
        nothing = mapped.sum(axis=1) == 0
        mapped[nothing] = p[nothing]
        return mapped / mapped.sum(axis=1, keepdims=True)

    def _formula(self) -> ClassFormula:
        maps = tuple(map(self._formula_in, self.maps_))
        return ClassFormula(self.inputs, len(maps), "one map per class, made to sum to 1", each=maps)

    def _restore(self, state: Mapping[str, Any]) -> None:
        given = state.get("maps")
        maps = cast("list[Any]", given) if isinstance(given, list) else []
        classes = class_count({"classes": len(maps)})
        self.maps_ = [self._map_in(each, "maps") for each in maps]
        self.classes_ = np.arange(classes)


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

    Examples
    --------
    >>> from certcal.calibrators import HistogramBinning
    >>> p = [[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.0, 0.1, 0.9]]
    >>> fitted = TopLabel(HistogramBinning(bins=1), inputs="probabilities").fit(p, [0, 1, 2, 2])
    >>> fitted.predict_proba([[0.5, 0.4, 0.1]]).round(6).tolist()
    [[0.75, 0.2, 0.05]]
    """

    pooled_: OutcomeMap
    """The map that was fitted to all samples."""
    maps_: dict[int, OutcomeMap]
    """Maps by predicted class; empty without ``per_class``."""
    _keeps_predictions = True
    _kept: ClassVar = {"classes": None, "pooled": None, "maps": None}

    def __init__(self, calibrator: OutcomeMap, per_class: bool = False, inputs: str = "logits") -> None:
        self.calibrator = calibrator
        self.per_class = per_class
        self.inputs = inputs

    def _fit(self, x: NDArray[Any], y: Whole, w: Floats | None) -> None:
        p, top = as_probabilities(x, self.inputs)
        confidence = p[np.arange(top.size), top]
        correct = (top == y).astype(np.uint8)
        self.pooled_, self.maps_ = self.calibrator.unfitted().fit(confidence, correct, w), {}
        for k in np.unique(top) if self.per_class else ():
            rows = top == k
            part = None if w is None else w[rows]
            if part is None or part.any():
                self.maps_[int(k)] = self.calibrator.unfitted().fit(confidence[rows], correct[rows], part)

    def _probabilities(self, x: NDArray[Any]) -> Floats:
        p, top = as_probabilities(x, self.inputs)
        rows = np.arange(top.size)
        confidence = p[rows, top]
        mapped, unknown = np.empty(confidence.size), ~np.isin(top, list(self.maps_))
        for here, each in ((top == k, each) for k, each in self.maps_.items()):
            if here.any():
                mapped[here] = each.transform(confidence[here])
        if unknown.any():
            mapped[unknown] = self.pooled_.transform(confidence[unknown])
        p[rows, top] = 0.0
        p[p.sum(axis=1) == 0] = 1.0  # nothing to be in proportion to: equal shares
        p[rows, top] = 0.0
        p *= ((1 - mapped) / p.sum(axis=1))[:, None]
        p[rows, top] = mapped
        return p

    def _formula(self) -> ClassFormula:
        words, top = "a map of the predicted class, the others in proportion", self._formula_in(self.pooled_)
        tops = {k: self._formula_in(each) for k, each in self.maps_.items()}
        return ClassFormula(self.inputs, self.classes_.size, words, top=top, tops=tops)

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        classes, given = self.classes_.size, state.get("maps")
        maps = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {"": None}
        if not all(_CLASS.fullmatch(key) and int(key) < classes for key in maps):
            raise InputError(f"maps is damaged; expected maps of some of the {classes} classes")
        self.pooled_ = self._map_in(state.get("pooled"), "pooled")
        self.maps_ = {int(key): self._map_in(each, "maps") for key, each in maps.items()}
