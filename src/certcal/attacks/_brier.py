"""The adversary of the Brier score (Emde et al. 2024, §4)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from certcal.attacks._protocol import Found, Keep
from certcal.attacks._target import Target
from certcal.attacks.ascent import ascend
from certcal.attacks.ball import Ball
from certcal.attacks.confidence import Watched, check_settings, step_length


@dataclass(frozen=True)
class BrierAdversary:
    """Raises the top-label Brier score (c - z)²: down with the confidence where the prediction is correct, else up.

    z is the confidence in the class that was predicted for the clean input, and c whether that is the true one; both
    the class and c stay as they were, so the score is the one that a certificate speaks of.

    Attributes
    ----------
    steps
        Number of steps T.
    scale
        Factor v of the step length 2vε/T.

    Examples
    --------
    >>> import torch
    >>> target = Target(lambda x: x)
    >>> found = BrierAdversary(steps=2)(target, torch.tensor([[1.0, 0.5]]), torch.tensor([1]), Ball(0.5))
    >>> bool(found.inputs[0, 1] < 0.5)  # wrong, so its confidence is raised
    True
    """

    steps: int
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self.steps, self.scale)

    def __call__(self, target: Target, inputs: Tensor, labels: Tensor, ball: Ball, keep: Keep = "best") -> Found:
        """Perturbed inputs; see :class:`Adversary`."""
        watched = Watched(labels)

        def error(log_probabilities: Tensor, step: int = 0) -> Tensor:
            confidence = watched(log_probabilities)
            return (1 - 2 * watched.correct) * confidence + watched.correct

        # Steps are normalised, so climbing |c - z| takes the steps of (c - z)², and does not stop where it is 0.
        length = step_length(ball, self.steps, self.scale)
        score = error if keep == "best" else None
        return Found(ascend(target, inputs, ball, self.steps, length, error, score))
