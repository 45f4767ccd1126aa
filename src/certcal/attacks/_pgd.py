"""Projected gradient descent against labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from certcal._checks import positive, whole_number
from certcal.attacks._odds import odds_against
from certcal.attacks._protocol import AttackedModel
from certcal.attacks.ascent import ascend
from certcal.attacks.confidence import step_length


@dataclass(frozen=True)
class Pgd:
    """Raise the cross entropy of the true class over ‖γ‖ ≤ ε, whatever becomes of the label.

    Steps have length 2 · scale · ε / steps along the normalised gradient, and the noise of a smoothed classifier stays
    the same during the attack (Salman et al. 2019). Per sample the best point on the way is kept.

    Attributes
    ----------
    steps
        How many steps are taken.
    scale
        Factor of their length.

    Examples
    --------
    >>> Pgd(steps=40).keeps_labels
    False
    """

    keeps_labels: ClassVar[bool] = False

    steps: int = 20
    scale: float = 1.0

    def __post_init__(self) -> None:
        steps = whole_number(self.steps, 1, 1_000_000, "steps", "pass the number of steps, at least 1")
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    @property
    def name(self) -> str:
        """What it is called."""
        return "PGD"

    def run(self, model: AttackedModel, inputs: Tensor, labels: Tensor, epsilon: float) -> Tensor:
        """Perturbed inputs; see :class:`AttackMethod`."""

        def against(log_probabilities: Tensor, _: int = 0) -> Tensor:
            return odds_against(log_probabilities, labels)

        ball = model.ball(epsilon)
        return ascend(model, inputs, ball, self.steps, step_length(ball, self.steps, self.scale), against, against)
