"""What an attack and an adversary of a batch are, and what they attack: built-in ones and your own alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional

from certcal.attacks.ball import Ball, Norm
from certcal.models.protocol import Outputs

Keep = Literal["best", "last"]


@dataclass(frozen=True, eq=False)
class Target:
    """A classifier with gradients.

    With noise it is the Monte Carlo estimate f̄(x) = mean over draws v of f(x + noise_v) of the smoothed classifier. The
    noise is drawn once, so that all steps of an attack climb the same function (Salman et al. 2019).

    Examples
    --------
    >>> inputs = torch.tensor([[0.0, 0.0]])
    >>> noise = torch.tensor([[[1.0, 0.0]], [[-1.0, 0.0]]])
    >>> Target(lambda x: x, noise=noise).log_probabilities(inputs).exp()
    tensor([[0.5000, 0.5000]])
    """

    network: Callable[[Tensor], Tensor]
    """From inputs (n, …) to a row per input."""
    outputs: Outputs = "logits"
    """What the rows are, ``"logits"`` or ``"probabilities"``."""
    noise: Tensor | None = None
    """(draws, n, …), or None to attack the network itself."""

    @property
    def draws(self) -> int:
        """How many draws the average is over; 1 without noise."""
        return 1 if self.noise is None else self.noise.shape[0]

    def draw_log_probabilities(self, inputs: Tensor) -> Tensor:
        """Log probabilities (draws, n, classes) of every draw."""
        if self.noise is None:
            return self._logarithms(inputs).unsqueeze(0)
        noisy = (inputs.unsqueeze(0) + self.noise).flatten(0, 1)
        every = self._logarithms(noisy)
        return every.reshape(self.draws, inputs.shape[0], every.shape[1])

    def log_probabilities(self, inputs: Tensor) -> Tensor:
        """Log probabilities (n, classes) of the average over the draws."""
        every = self.draw_log_probabilities(inputs)
        return every[0] if self.draws == 1 else torch.logsumexp(every, 0) - math.log(self.draws)

    def rows(self, index: Tensor | slice) -> Target:
        """The same for some of the inputs, with their own noise."""
        return self if self.noise is None else Target(self.network, self.outputs, self.noise[:, index])

    def _logarithms(self, inputs: Tensor) -> Tensor:
        out = self.network(inputs)
        out = out if out.dtype == torch.float64 else out.float()
        if self.outputs == "logits":
            return functional.log_softmax(out, 1)
        return out.clamp_min(torch.finfo(out.dtype).tiny).log()


@dataclass(frozen=True, eq=False)
class AttackedModel(Target):
    """What an attack is given: a classifier with gradients, where it may go, and the labels that are to stay.

    Calling it gives log probabilities (n, classes), for a smoothed classifier those of the mean over its draws.

    Examples
    --------
    >>> model = AttackedModel(lambda x: x, norm="linf", predicted=torch.tensor([0]))
    >>> model(torch.zeros(1, 2)).exp(), model.ball(0.1).epsilon
    (tensor([[0.5000, 0.5000]]), 0.1)
    """

    norm: Norm = "linf"
    box: tuple[float, float] | None = (0.0, 1.0)
    """How distances are measured, and the values that an input may have, or None."""
    predicted: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    """Predicted classes of the clean inputs."""
    start: Tensor | None = None
    """Where an attack that can begin anywhere begins, within ball and box, with the labels kept; None for the clean
    inputs."""

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
    fallen gets its clean input back, too. ``begins_anywhere``, False unless it says otherwise: it begins at
    ``model.start`` where that is given, so that it can be run again from random points and the best be kept.

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
    """Perturbed inputs of a batch."""

    inputs: Tensor
    """In ball and box, without history."""
    calibration: Callable[[Tensor], Tensor] | None = None
    """The calibration error of the batch as the adversary sees it, with its bins and the correctness held fixed: from
    log probabilities (n, classes) to one number that can be differentiated. None if it attacks something else."""


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
