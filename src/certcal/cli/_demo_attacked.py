"""An attack in ``certcal demo``, on the network that is certified, within the radius that it is certified at."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from certcal.claims import round_outward
from certcal.cli._progress import Waiting
from certcal.data import EmbeddedNetwork
from certcal.metrics import ece
from certcal.models import wrap
from certcal.smoothing import Review

# Enough for the attack to end where many more would: seconds.
DRAWS, STEPS, BATCH = 16, 10, 8192


@dataclass(frozen=True)
class DemoAttack:
    """What the attack has done to the smoothed classifier's confidences.

    Attributes
    ----------
    name
        Of the attack.
    radius
        The Euclidean length that perturbations have at most.
    before, after
        ECE over all images.
    accuracy, changed
        The accuracy before, and how many predicted labels changed.
    certified_after, certified_most
        ECE after the attack of the images that are certified at the radius, and what no attack on them can exceed
        according to the certificates; None when none is certified.
    """

    name: str
    radius: str
    before: float
    after: float
    accuracy: float
    changed: int
    certified_after: float | None
    certified_most: str | None

    @property
    def sentence(self) -> str:
        """What was done, and what was not."""
        kept = "no predicted label changed" if self.changed == 0 else f"{self.changed} predicted labels changed"
        return (
            f"{self.name} moved every image by at most {self.radius}: {kept} and the accuracy stays "
            f"{self.accuracy:.1%}, but the ECE went from {self.before:.3f} to {self.after:.3f}."
        )

    @property
    def comparison(self) -> str:
        """The attack against the certificate, on the same images."""
        if self.certified_after is None:
            return "No image is certified at this radius, so there is nothing to compare it with."
        return (
            f"On the images that are certified at this radius it reached "
            f"{round_outward(self.certified_after, 'lower', 3)}; the certificate says that nothing reaches more than "
            f"{self.certified_most}."
        )

    @property
    def what(self) -> str:
        """What exactly was attacked."""
        return (
            f"The smoothed classifier was attacked, as a mean over {DRAWS} draws of noise that stay the same; an "
            "attack shows what is possible, not the worst case."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "attack": self.name,
            "norm": "l2",
            "epsilon": float(self.radius),
            "draws": DRAWS,
            "steps": STEPS,
            "accuracy": self.accuracy,
            "labels_changed": self.changed,
            "ece_before": self.before,
            "ece_after": self.after,
            "ece_of_certified_after": self.certified_after,
        }


def demo_attack(network: EmbeddedNetwork, review: Review) -> DemoAttack | None:
    """Attack the smoothed classifier; None where there is no torch.

    Parameters
    ----------
    network
        What is certified, and the images.
    review
        What is certified about it.
    """
    if find_spec("torch") is None:
        return None
    with Waiting() as waiting:
        waiting.stage("attacking")
        return _attacked(network, review)


def _attacked(network: EmbeddedNetwork, review: Review) -> DemoAttack:
    from certcal.attacks import Ace, perturb

    one = review.at()
    found = perturb(
        wrap(network.classifier),
        network.test.inputs,
        network.test.labels,
        Ace(steps=STEPS),
        epsilon=float(one.radius),
        norm="l2",
        box=None,
        sigma=network.sigma,
        draws=DRAWS,
        batch=BATCH,
    )

    def error(predictions: Any, rows: Any = slice(None)) -> float:
        confidence, correct = predictions.confidence[rows], predictions.correct[rows]
        return ece(confidence, correct, review.bins, closed=review.closed)

    certified = one.certificates.certified
    some = bool(certified.any())
    return DemoAttack(
        found.name,
        one.radius,
        error(found.clean_predictions),
        error(found.predictions),
        found.clean_accuracy,
        found.changed,
        error(found.predictions, certified) if some else None,
        one.claim.text if some else None,
    )
