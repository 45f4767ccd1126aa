"""That labels are kept: checked on the final inputs, never assumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.attacks._attacked import Attacked, attacked, predicted
from certcal.attacks._protocol import AttackMethod
from certcal.attacks.subject import Floats, Subject
from certcal.predictions import Predictions

# A label counts as kept on the way only if its log probability leads by this much, so that another order of summation
# (other batches, another device) does not turn it over afterwards.
MARGIN = 1e-4


def verified(
    method: AttackMethod, subject: Subject, clean: Predictions, found: Floats, more: Mapping[str, Any]
) -> Attacked:
    """The result of an attack, after the final float32 inputs went through the model once more.

    A sample whose label is not that of its clean input, or whose objective is below that of its clean input, gets its
    clean input back; then all is predicted and compared again. An attack that does not keep labels is taken as it is.
    """
    after = subject.predict(found)
    objective = getattr(method, "objective", None)
    back = np.zeros(len(found), bool)
    keeps = getattr(method, "keeps_labels", True)
    if keeps:
        back |= _labels_differ(clean, after)
    if objective is not None:
        kept = predicted(clean)
        back |= objective(after, kept) < objective(clean, kept)
    if back.any():
        found = np.where(back.reshape(-1, *(1,) * (found.ndim - 1)), subject.inputs, found)
        after = subject.predict(found)
        wrong = np.flatnonzero(keeps & _labels_differ(clean, after))
        if wrong.size:
            raise InputError(
                f"{subject.model.description} does not give inputs[{wrong[0]}] the same label twice; attack a model "
                "that always answers the same"
            )
    return attacked(method.name, subject, found, clean, after, more)


def _labels_differ(clean: Predictions, after: Predictions) -> NDArray[np.bool_]:
    """Whether a label is another one, by the outputs or, where these are logits, by the probabilities made of them."""
    other = predicted(clean) != predicted(after)
    assert clean.probabilities is not None
    assert after.probabilities is not None
    return other | (clean.probabilities.argmax(axis=1) != after.probabilities.argmax(axis=1))


def cross_entropy(predictions: Predictions, classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """-log p of one class per sample, in float64 from the model's outputs."""
    rows = np.arange(classes.size)
    if predictions.logits is None:
        assert predictions.probabilities is not None
        p = predictions.probabilities[rows, classes].astype(np.float64)
        with np.errstate(divide="ignore"):
            return -np.log(p)
    logits = predictions.logits.astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(logits).sum(axis=1)) - logits[rows, classes])
