"""The four (η, ω)-ACE attacks: confidences are ruined, labels stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certcal._checks import InputError, choice, positive, whole_number
from certcal.attacks._climb import Schedule, climb
from certcal.attacks._kept import cross_entropy
from certcal.attacks._protocol import AttackedModel
from certcal.attacks.ball import LONGEST as MOST
from certcal.predictions import Predictions

Omega = Literal["true", "predicted"]
OMEGAS: tuple[Omega, ...] = ("true", "predicted")

# Longest and shortest steps as shares of epsilon. On a perceptron for digits (linf, ε = .1) a quarter reached a little
# more than a half or one; without the barrier, lengths from .1 to 2 made next to no difference.
LONGEST, SHORTEST = 0.25, 1e-3


@dataclass(frozen=True)
class Ace:
    """Raise η·CE(f(x + γ), ω) over ‖γ‖ ≤ ε and F(x + γ) = F(x): an (η, ω)-ACE attack (Emde et al., eq. 2).

    With η = 1 confidence is taken from the class ω, with η = -1 it is given to it. No label changes, so the accuracy
    stays what it was, while the calibration may be ruined. What is found is a lower bound on the worst case.

    It is gradient ascent by normalised steps, one forward and one backward pass each, and the best point on the way is
    kept per sample, the clean one included: no sample's objective decreases. A step that would change the label is not
    taken; where the original attack stops then, this one halves the sample's step and goes on, and near the border
    follows it (:mod:`certcal.attacks._climb`). Where the objective stalls the step is halved, too; a sample whose steps
    have become tiny is finished, so later steps cost less.

    Attributes
    ----------
    eta
        1 to lower the confidence in ω, -1 to raise it.
    omega
        ``"true"`` for the true class y, ``"predicted"`` for the predicted class ŷ.
    steps
        The most steps that are taken.
    step
        Length of the longest step; a quarter of epsilon by default.

    Examples
    --------
    >>> Ace(-1, "predicted").name
    '(-1, ŷ)-ACE'
    """

    eta: int = 1
    omega: Omega = "true"
    steps: int = 100
    step: float | None = None

    def __post_init__(self) -> None:
        if self.eta not in (1, -1):
            raise InputError(f"eta is {self.eta!r}; pass 1 to lower the confidence in omega, -1 to raise it")
        choice(self.omega, OMEGAS, "omega")
        steps = whole_number(self.steps, 1, 1_000_000, "steps", "pass the number of steps, at least 1")
        object.__setattr__(self, "steps", steps)
        if self.step is not None:
            object.__setattr__(self, "step", min(positive(self.step, "step"), MOST))

    @property
    def name(self) -> str:
        """As the paper writes it."""
        return f"({self.eta:+d}, {'y' if self.omega == 'true' else 'ŷ'})-ACE"

    @property
    def key(self) -> str:
        """In commands and files, such as "plus-true"."""
        return f"{'plus' if self.eta == 1 else 'minus'}-{self.omega}"

    @property
    def aim(self) -> str:
        """What becomes of which confidence."""
        way = "down" if self.eta == 1 else "up"
        return f"{'true class' if self.omega == 'true' else 'prediction'}, {way}"

    def run(self, model: AttackedModel, inputs: Tensor, labels: Tensor, epsilon: float) -> Tensor:
        """Perturbed inputs; see :class:`AttackMethod`."""
        longest = LONGEST * epsilon if self.step is None else self.step
        schedule = Schedule(self.steps, longest, SHORTEST * min(epsilon, longest))
        classes = labels if self.omega == "true" else model.predicted
        signs = torch.full_like(labels, self.eta)
        return climb(model, inputs, model.predicted, classes, signs, model.ball(epsilon), schedule)

    def objective(self, predictions: Predictions, predicted: NDArray[np.int64]) -> NDArray[np.float64]:
        """What is climbed, per sample."""
        assert predictions.labels is not None
        return self.eta * cross_entropy(predictions, predictions.labels if self.omega == "true" else predicted)
