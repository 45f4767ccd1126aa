"""What an adversary of a batch is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

from certcal.attacks._ball import Ball
from certcal.attacks._target import Target

Keep = Literal["best", "last"]


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
