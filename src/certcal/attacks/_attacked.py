"""What an attack found, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._rounding import round_outward, short_text
from certcal.attacks.subject import Floats, Subject
from certcal.claims import Frozen
from certcal.metrics import ece
from certcal.predictions import Predictions

BINS = 15


@dataclass(frozen=True, eq=False, repr=False)
class Attacked:
    """Perturbed inputs, and what the model predicts before and after.

    Every number after the attack is a *lower* bound on the worst case: it was reached, and another attack may reach
    more. What no attack can exceed is what certificates say (:mod:`certcal.smoothing`).

    Attributes
    ----------
    name
        The attack, such as ``"(+1, y)-ACE"``.
    inputs
        Perturbed inputs, float32: within epsilon of the clean ones and inside the box, exactly.
    labels
        True classes.
    clean_predictions, predictions
        Of the clean and of the perturbed inputs, by the model's ordinary call.
    lengths
        Distance of each perturbed input from the clean one, measured in float64.
    settings
        Norm, epsilon, box, number of steps, and the noise of a smoothed classifier.
    """

    name: str
    inputs: Floats
    labels: NDArray[np.int64]
    clean_predictions: Predictions
    predictions: Predictions
    lengths: NDArray[np.float64]
    settings: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", Frozen(self.settings))

    @property
    def epsilon(self) -> float:
        """The largest distance that was allowed."""
        return float(self.settings["epsilon"])

    @cached_property
    def clean_predicted(self) -> NDArray[np.int64]:
        """Predicted classes of the clean inputs."""
        return predicted(self.clean_predictions)

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        """Predicted classes of the perturbed inputs."""
        return predicted(self.predictions)

    @property
    def clean_probabilities(self) -> NDArray[Any]:
        """Class probabilities of the clean inputs."""
        return _probabilities(self.clean_predictions)

    @property
    def probabilities(self) -> NDArray[Any]:
        """Class probabilities of the perturbed inputs."""
        return _probabilities(self.predictions)

    @property
    def clean_accuracy(self) -> float:
        """Share of clean inputs predicted correctly."""
        return float(self.clean_predictions.correct.mean())

    @property
    def accuracy(self) -> float:
        """Share of perturbed inputs predicted correctly."""
        return float(self.predictions.correct.mean())

    @property
    def changed(self) -> int:
        """How many labels differ; 0 for every attack that keeps them, which is checked before it returns."""
        return int((self.predicted != self.clean_predicted).sum())

    @property
    def moved(self) -> int:
        """How many inputs were perturbed at all."""
        return int((self.lengths > 0).sum())

    @property
    def sentence(self) -> str:
        """What was found."""
        before, after = (ece(p.confidence, p.correct, BINS) for p in (self.clean_predictions, self.predictions))
        limit = f"{short_text(self.epsilon, 'lower')} ({self.settings['norm']})"
        kept = (
            f"no label changed (verified), the accuracy stays {self.accuracy:.4f}"
            if self.changed == 0
            else f"{self.changed} labels changed, the accuracy is {self.accuracy:.4f} and was {self.clean_accuracy:.4f}"
        )
        reached = round_outward(max(before, after), "lower")
        return (
            f"{self.name} moved {self.moved} of {len(self.labels)} inputs by at most {limit}: {kept}, and the "
            f"calibration error ({BINS} bins){of_what(self.settings)} went from {before:.4f} to {after:.4f}; at least "
            f"{reached} is reachable, the worst case may be larger."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the arrays."""
        return {
            "type": "attacked",
            "name": self.name,
            "n": len(self.labels),
            "settings": dict(self.settings),
            "clean_accuracy": self.clean_accuracy,
            "accuracy": self.accuracy,
            "labels_changed": self.changed,
            "moved": self.moved,
            "largest_length": float(self.lengths.max()),
            "sentence": self.sentence,
        }

    def __repr__(self) -> str:
        return (
            f"Attacked({self.name!r}, n={len(self.labels)}, norm={self.settings['norm']!r}, epsilon={self.epsilon:g}, "
            f"moved={self.moved}, labels_changed={self.changed}, accuracy={self.accuracy:.3g})"
        )


def attacked(
    name: str, subject: Subject, inputs: Floats, clean: Predictions, found: Predictions, more: Mapping[str, Any]
) -> Attacked:
    """The result of an attack."""
    inputs.flags.writeable = False
    change = (inputs.astype(np.float64) - subject.inputs).reshape(len(inputs), -1)
    lengths = np.abs(change).max(axis=1) if subject.ball.norm == "linf" else np.sqrt(np.square(change).sum(axis=1))
    shared = subject.settings
    own = {key: value for key, value in more.items() if key not in shared}
    return Attacked(name, inputs, subject.labels, clean, found, lengths, shared | own)


def of_what(settings: Mapping[str, Any]) -> str:
    """What the numbers of an attack on a smoothed classifier are of: the mean that was attacked, not the true one.

    Examples
    --------
    >>> of_what({"norm": "l2"}), of_what({"sigma": 0.25, "draws": 16})
    ('', ' of the mean over 16 fixed draws of noise')
    """
    return f" of the mean over {settings['draws']} fixed draws of noise" if "sigma" in settings else ""


def predicted(predictions: Predictions) -> NDArray[np.int64]:
    """Predicted classes: the first of the largest outputs of each row."""
    rows = _probabilities(predictions) if predictions.logits is None else predictions.logits
    return np.asarray(rows.argmax(axis=1), np.int64)


def _probabilities(predictions: Predictions) -> NDArray[Any]:
    assert predictions.probabilities is not None
    return predictions.probabilities
