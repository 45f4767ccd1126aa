"""SmoothAdv: the label attack on a smoothed classifier (Salman et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from certcal.attacks._protocol import Found, Keep
from certcal.attacks._target import Target
from certcal.attacks.ascent import ascend
from certcal.attacks.ball import Ball
from certcal.attacks.confidence import check_settings, step_length


@dataclass(frozen=True)
class SmoothAdv:
    """Raises the cross entropy of the smoothed classifier: -log of the average probability of the true class.

    The average over the draws is inside the logarithm, so this is the loss of f̄ and not the average loss of f. Without
    noise it is ordinary projected gradient ascent on the cross entropy.

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
    >>> found = SmoothAdv(steps=2)(target, torch.tensor([[1.0, 0.0]]), torch.tensor([0]), Ball(0.5))
    >>> bool(found.inputs[0, 0] < 1)
    True
    """

    steps: int
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self.steps, self.scale)

    def __call__(self, target: Target, inputs: Tensor, labels: Tensor, ball: Ball, keep: Keep = "best") -> Found:
        """Perturbed inputs; see :class:`Adversary`."""
        column = labels.unsqueeze(1)

        def loss(log_probabilities: Tensor, step: int = 0) -> Tensor:
            return -log_probabilities.gather(1, column).squeeze(1)

        length = step_length(ball, self.steps, self.scale)
        score = loss if keep == "best" else None
        return Found(ascend(target, inputs, ball, self.steps, length, loss, score))
