"""Scores of all classes as calibrators take them: logits, or probabilities, as the user says and never as guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, choice, logit_matrix, probability_matrix, same_length, weights
from certcal._checks import labels as check_labels

Floats = NDArray[np.float64]

INPUTS = ("logits", "probabilities")
LEAST = float(np.finfo(np.float32).tiny)  # what a probability of 0 counts as
MOST_CLASSES = 10_000_000


def read_scores(scores: Any, inputs: str, name: str = "scores") -> NDArray[Any]:
    """Checked logits, one row per sample: as they are, or logarithms of probabilities (0 counts as 1.2e-38)."""
    if choice(inputs, INPUTS, "inputs") == "logits":
        return logit_matrix(scores, name)
    return np.log(np.maximum(probability_matrix(scores, name, "inputs='logits'").astype(np.float64), LEAST))


def read_probabilities(scores: Any, inputs: str) -> tuple[Floats, NDArray[np.int64]]:
    """Checked probabilities, one row per sample: as they are, or the softmax of logits; and the largest scores."""
    if choice(inputs, INPUTS, "inputs") == "logits":
        x = logit_matrix(scores, "scores").astype(np.float64)
        top = x.argmax(axis=1).astype(np.int64)
        with np.errstate(over="ignore"):  # logits of 1e308 and -1e308: a probability of 0
            return softmax(x), top
    p = probability_matrix(scores, "scores", "inputs='logits'").astype(np.float64)
    return np.minimum(p, 1.0), p.argmax(axis=1).astype(np.int64)


def check_labelled(
    x: NDArray[Any], labels: Any, sample_weight: Any, name: str = "scores"
) -> tuple[NDArray[np.int64], Floats | None]:
    """Labels and weights of checked scores."""
    y = check_labels(labels, x.shape[1])
    same_length(**{name: x.shape[0], "labels": y.size})
    return y, weights(sample_weight, y.size, partner="labels")


def check_classes(x: NDArray[Any], classes: int, kind: str) -> None:
    """Scores of as many classes as were fitted."""
    if x.shape[1] != classes:
        raise InputError(
            f"scores have {x.shape[1]} columns; this {kind} was fitted to {classes} classes, so give it one column each"
        )


def class_count(state: Mapping[str, Any]) -> int:
    """The number of classes of a state."""
    value = state.get("classes")
    if isinstance(value, bool) or not isinstance(value, int) or not 2 <= value <= MOST_CLASSES:
        raise InputError(f"classes is {value!r}; expected a whole number of classes, at least 2")
    return value


def softmax(logits: Floats) -> Floats:
    """Probabilities of the rows; the logits are overwritten."""
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits
