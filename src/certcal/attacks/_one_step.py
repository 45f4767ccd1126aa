"""Attacks on confidences by one step (Galil & El-Yaniv 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certcal._checks import share, whole_number
from certcal.attacks._kept import MARGIN, cross_entropy
from certcal.attacks._odds import lead, odds_against
from certcal.attacks._protocol import AttackedModel
from certcal.attacks._target import Target
from certcal.attacks.ball import Ball
from certcal.predictions import Predictions


@dataclass(frozen=True)
class OneStepAce:
    """Move every input once along the gradient of its confidence: down where the prediction is right, up where not.

    The attack of Galil & El-Yaniv (*Disrupting deep uncertainty estimation without harming accuracy*, NeurIPS 2021)
    with the softmax confidence as what is attacked. One gradient is taken, at the clean input; a step that would change
    the label is made shorter, again and again, until the label stays. It wants what the (+1, y)-ACE attack of
    :class:`Ace` wants for predictions that are right, and what (-1, ŷ) wants for those that are wrong; it is cheaper
    and weaker than both.

    Attributes
    ----------
    decay
        What the length of a step that changes the label is multiplied with.
    attempts
        How many lengths are tried; a sample for which none keeps the label stays where it is.

    Examples
    --------
    >>> OneStepAce(decay=0.7).name
    'one-step ACE'
    """

    key: ClassVar[str] = "one-step"
    aim: ClassVar[str] = "right down, wrong up"

    decay: float = 0.5
    attempts: int = 15

    def __post_init__(self) -> None:
        rate = share(self.decay, "decay", "pass a number between 0 and 1, such as 0.5")
        remedy = "pass how many step lengths are tried, from 1 to 1000"
        object.__setattr__(self, "decay", rate)
        object.__setattr__(self, "attempts", whole_number(self.attempts, 1, 1000, "attempts", remedy))

    @property
    def name(self) -> str:
        """What it is called."""
        return "one-step ACE"

    def run(self, model: AttackedModel, inputs: Tensor, labels: Tensor, epsilon: float) -> Tensor:
        """Perturbed inputs; see :class:`AttackMethod`."""
        signs = torch.where(model.predicted == labels, 1, -1)
        return shortened(model, inputs, model.predicted, signs, model.ball(epsilon), self.decay, self.attempts)

    def objective(self, predictions: Predictions, predicted: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cross entropy of the predicted class where it is right, minus that where it is wrong."""
        return np.where(predicted == predictions.labels, 1, -1) * cross_entropy(predictions, predicted)


def shortened(
    target: Target, clean: Tensor, kept: Tensor, signs: Tensor, ball: Ball, decay: float, attempts: int
) -> Tensor:
    """One step for every sample of a batch, the longest of the lengths tried that keeps the label."""
    at = clean.detach().requires_grad_(True)
    values = signs * odds_against(target.log_probabilities(at), kept)
    direction = ball.step(torch.autograd.grad(values.sum(), at)[0], 1.0)
    found = clean.clone()
    left = torch.arange(clean.shape[0], device=clean.device)
    length = ball.epsilon
    with torch.no_grad():
        for _ in range(attempts):
            ahead = ball.seal(clean[left], clean[left] + length * direction[left])
            fits = lead(target.rows(left).log_probabilities(ahead), kept[left]) > MARGIN
            found[left[fits]] = ahead[fits]
            left = left[~fits]
            if not left.numel():
                break
            length *= decay
    return found
