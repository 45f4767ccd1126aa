"""Projected gradient ascent, and the attacks on labels: PGD and SmoothAdv (Salman et al. 2019)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certcal._base.checks import positive, whole_number
from certcal.attacks._protocol import AttackedModel, Found, Keep, Target
from certcal.attacks.ball import LONGEST, Ball
from certcal.predictions import Predictions

Objective = Callable[[Tensor, int], Tensor]
Score = Callable[[Tensor], Tensor]
Move = Callable[[Tensor, Tensor, int], Tensor]


def ascend(
    target: Target,
    clean: Tensor,
    ball: Ball,
    steps: int,
    length: float | Move,
    objective: Objective,
    score: Score | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """Inputs after some steps of one length along the normalised gradient, each projected into the ball."""
    moved = clean if start is None else start
    best, best_score = moved, None
    for step in range(steps):
        at = moved.detach().requires_grad_(True)
        log_probabilities = target.log_probabilities(at)
        if score is not None:
            best, best_score = _better(best, best_score, moved, score(log_probabilities.detach()))
        (gradient,) = torch.autograd.grad(objective(log_probabilities, step).sum(), at)
        ahead = moved + (length(gradient, moved, step) if callable(length) else ball.step(gradient, length))
        # Points that are judged are judged as they would be handed over.
        moved = ball.project(clean, ahead) if score is None else ball.seal(clean, ahead)
    if score is None:
        return ball.seal(clean, moved)
    with torch.no_grad():
        best, _ = _better(best, best_score, moved, score(target.log_probabilities(moved)))
    return best


def _better(best: Tensor, best_score: Tensor | None, moved: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    if best_score is None:
        return moved, score
    gains = score > best_score
    return torch.where(gains.reshape(-1, *(1,) * (moved.ndim - 1)), moved, best), torch.where(gains, score, best_score)


def step_length(ball: Ball, steps: int, scale: float) -> float:
    """2 · scale · ε / steps: twice the radius in all, as Salman et al. (2019), times the factor v of Emde et al."""
    return min(2 * scale * ball.epsilon / steps, LONGEST)


def checked_steps(value: object) -> int:
    """A number of steps."""
    return whole_number(value, 1, 1_000_000, "steps", "pass a whole number of steps, at least 1")


def odds_against(log_probabilities: Tensor, classes: Tensor) -> Tensor:
    """log((1 - p) / p) of the probability p of one class per sample.

    The cross entropy -log p is log(1 + exp(this)), which grows with it: the two have the same maxima, and their
    gradients the same direction, which is all that a normalised step takes from a gradient. But where p is within a
    rounding of 0 or 1, as that of a network that is sure of itself, the cross entropy is flat in float32 and this is
    not.
    """
    chosen = classes.unsqueeze(1)
    others = log_probabilities.scatter(1, chosen, -torch.inf)
    return torch.logsumexp(others, 1) - log_probabilities.gather(1, chosen).squeeze(1)


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


@dataclass(frozen=True)
class Pgd:
    """Raise the cross entropy of the true class over ‖γ‖ ≤ ε, whatever becomes of the label.

    Steps have length 2 · scale · ε / steps along the normalised gradient, and the noise of a smoothed classifier stays
    the same during the attack (Salman et al. 2019). Per sample the best point on the way is kept.

    Examples
    --------
    >>> Pgd(steps=40).keeps_labels
    False
    """

    keeps_labels: ClassVar[bool] = False
    begins_anywhere: ClassVar[bool] = True

    steps: int = 20
    """How many steps are taken."""
    scale: float = 1.0
    """Factor of their length."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", checked_steps(self.steps))
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
        length = step_length(ball, self.steps, self.scale)
        return ascend(model, inputs, ball, self.steps, length, against, against, model.start)

    def objective(self, predictions: Predictions, predicted: NDArray[np.int64]) -> NDArray[np.float64]:
        """What is climbed, per sample."""
        assert predictions.labels is not None
        return cross_entropy(predictions, predictions.labels)


@dataclass(frozen=True)
class BatchAdversary:
    """Base of the adversaries that a network is trained against: steps of length 2vε/T."""

    steps: int
    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", checked_steps(self.steps))
        positive(self.scale, "scale")

    def climb(
        self,
        target: Target,
        inputs: Tensor,
        ball: Ball,
        objective: Objective,
        score: Score,
        keep: Keep,
        move: Move | None = None,
    ) -> Tensor:
        """The last point of the ascent, or the best by a score."""
        length = move or step_length(ball, self.steps, self.scale)
        return ascend(target, inputs, ball, self.steps, length, objective, score if keep == "best" else None)


@dataclass(frozen=True)
class SmoothAdv(BatchAdversary):
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
    >>> target = Target(lambda x: x)
    >>> found = SmoothAdv(steps=2)(target, torch.tensor([[1.0, 0.0]]), torch.tensor([0]), Ball(0.5))
    >>> bool(found.inputs[0, 0] < 1)
    True
    """

    def __call__(self, target: Target, inputs: Tensor, labels: Tensor, ball: Ball, keep: Keep = "best") -> Found:
        """Perturbed inputs; see :class:`Adversary`."""
        column = labels.unsqueeze(1)

        def loss(log_probabilities: Tensor, step: int = 0) -> Tensor:
            return -log_probabilities.gather(1, column).squeeze(1)

        return Found(self.climb(target, inputs, ball, loss, loss, keep))
