"""What calibrators of all classes that are made of maps of confidences have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, choice, logit_matrix, probability_matrix, same_length, weights
from certcal._checks import labels as check_labels
from certcal.calibrators._base import Calibrator, ScoreMap
from certcal.calibrators._outcomes import OutcomeMap
from certcal.calibrators.scores import INPUTS, check_classes, softmax

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class MadeOfMaps(ScoreMap):
    """A map of scores that is made of maps of confidences.

    Probabilities are used as they are given, not as the softmax of their logarithms, so that a probability on the edge
    of a bin stays there.
    """

    calibrator: Any
    inputs: str
    classes_: Whole

    def _labelled(
        self, scores: Any, labels: Any, sample_weight: Any
    ) -> tuple[tuple[Floats, Whole], Whole, Floats | None, OutcomeMap]:
        """Probabilities with predictions, classes, weights, and the map to fit copies of."""
        if not isinstance(self.calibrator, OutcomeMap):
            raise InputError(
                f"calibrator is {self.calibrator!r}; pass a map that is fitted to confidences and outcomes, such as "
                "IsotonicCalibration()"
            )
        p, top = read_probabilities(scores, self.inputs)
        y = check_labels(labels, p.shape[1])
        same_length(scores=p.shape[0], labels=y.size)
        return (p, top), y, weights(sample_weight, y.size, partner="labels"), self.calibrator

    def _read(self, scores: Any) -> tuple[Floats, Whole]:
        """Probabilities of as many classes as were fitted, and predictions."""
        self._require_fitted()
        p, top = read_probabilities(scores, self.inputs)
        check_classes(p, self.classes_.size, type(self).__name__)
        return p, top


def read_probabilities(scores: Any, inputs: str) -> tuple[Floats, Whole]:
    """Checked probabilities, one row per sample: as they are, or the softmax of logits; and the largest scores."""
    if choice(inputs, INPUTS, "inputs") == "logits":
        x = logit_matrix(scores, "scores").astype(np.float64)
        top = x.argmax(axis=1).astype(np.int64)
        with np.errstate(over="ignore"):  # logits of 1e308 and -1e308: a probability of 0
            return softmax(x), top
    p = probability_matrix(scores, "scores", "inputs='logits'").astype(np.float64)
    return np.minimum(p, 1.0), p.argmax(axis=1).astype(np.int64)


def fitted_map(document: Any, name: str) -> OutcomeMap:
    """A map of a state, which may come from a file."""
    found = Calibrator.from_dict(cast("Mapping[str, Any]", document)) if isinstance(document, Mapping) else None
    if not isinstance(found, OutcomeMap) or not found.__sklearn_is_fitted__():
        raise InputError(f"{name} is damaged; expected fitted maps of confidences")
    return found
