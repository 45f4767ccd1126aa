"""What an attack is, and what an adversary of a batch is: protocols that built-in ones and your own go through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from certcal.attacks._target import Target
from certcal.attacks.ball import Ball, Norm

Keep = Literal["best", "last"]


@dataclass(frozen=True, eq=False)
class AttackedModel(Target):
    """What an attack is given: a classifier with gradients, where it may go, and the labels that are to stay.

    Calling it gives log probabilities (n, classes), for a smoothed classifier those of the mean over its draws.

    Attributes
    ----------
    norm, box
        How distances are measured, and the values that an input may have, or None.
    predicted
        Predicted classes of the clean inputs.

    Examples
    --------
    >>> model = AttackedModel(lambda x: x, norm="linf", predicted=torch.tensor([0]))
    >>> model(torch.zeros(1, 2)).exp(), model.ball(0.1).epsilon
    (tensor([[0.5000, 0.5000]]), 0.1)
    """

    norm: Norm = "linf"
    box: tuple[float, float] | None = (0.0, 1.0)
    predicted: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))

    def __call__(self, inputs: Tensor) -> Tensor:
        """Log probabilities (n, classes)."""
        return self.log_probabilities(inputs)

    def ball(self, epsilon: float) -> Ball:
        """Where the attack may go; its ``seal`` brings inputs there."""
        return Ball(epsilon, self.norm, self.box)


@runtime_checkable
class AttackMethod(Protocol):
    """An attack: parameters in its constructor, the rest in ``run``.

    Whatever ``run`` returns is checked (shape, finite values, distance, box), and predicted once more by the model's
    ordinary call. Two optional attributes say more. ``keeps_labels``, True unless it says otherwise: a sample whose
    predicted label has changed gets its clean input back. ``objective(predictions, predicted)``: one number per sample
    from the :class:`~certcal.Predictions` and the classes predicted for the clean inputs; a sample for which it has
    fallen gets its clean input back, too.

    Attributes
    ----------
    name
        What the attack is called.

    Examples
    --------
    >>> class Fade:
    ...     name = "fade"
    ...
    ...     def run(self, model, inputs, labels, epsilon):
    ...         return model.ball(epsilon).seal(inputs, inputs - epsilon)
    >>> isinstance(Fade(), AttackMethod)
    True
    """

    @property
    def name(self) -> str:
        """What the attack is called."""
        ...

    def run(self, model: AttackedModel, inputs: Tensor, labels: Tensor, epsilon: float) -> Tensor:
        """Perturbed inputs of a batch, of the same shape.

        Parameters
        ----------
        model
            What is attacked; its noise, if any, belongs to these inputs.
        inputs, labels
            The clean batch (n, …) and its true classes (n,).
        epsilon
            The largest distance.
        """
        ...


@dataclass(frozen=True, eq=False)
class Found:
    """Perturbed inputs of a batch.

    Attributes
    ----------
    inputs
        In ball and box, without history.
    calibration
        The calibration error of the batch as the adversary sees it, with its bins and the correctness held fixed: from
        log probabilities (n, classes) to one number that can be differentiated. None if it attacks something else.
    """

    inputs: Tensor
    calibration: Callable[[Tensor], Tensor] | None = None


class Adversary(Protocol):
    """Searches for the perturbation of a batch that is worst in its own measure."""

    def __call__(self, target: Target, inputs: Tensor, labels: Tensor, ball: Ball, keep: Keep = "best") -> Found:
        """Perturbed inputs.

        Parameters
        ----------
        target
            What is attacked; its noise, if any, belongs to these inputs.
        inputs, labels
            The clean batch (n, …) and its true classes (n,).
        ball
            Where the attacker may go.
        keep
            ``"best"`` for the best point on the way, clean inputs included, judged by the adversary's own measure;
            ``"last"`` for the last one, which saves a forward pass and is what training uses.
        """
        ...
