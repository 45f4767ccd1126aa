"""The adversary of the calibration error that is there, without looking ahead."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from certcal.attacks._protocol import Found, Keep
from certcal.attacks._target import Target
from certcal.attacks.ascent import ascend
from certcal.attacks.ball import Ball
from certcal.attacks.confidence import (
    Watched,
    bin_edges,
    calibration_error,
    check_settings,
    locate,
    step_length,
)
from certcal.binning import edges_for


@dataclass(frozen=True)
class EceAdversary:
    """Climbs the calibration error of a batch along its own gradient, (1/N) Σ_n s_m(n) (c_n - z_n).

    s_m is the sign of bin m's sum as it is before the step: what the exact program answers for samples that cannot
    move. So where a bin's predictions are right more often than they are sure, all its confidences go down, also those
    of wrong predictions. :class:`ExactAdversary`, which looks ahead to where samples can still go, reaches far larger
    errors; but as an adversary to train against this one has served better (docs/results).

    z is the confidence in the class predicted for the clean input and c whether that is the true one, both held fixed.

    Attributes
    ----------
    steps
        Number of steps T.
    scale
        Factor v of the step length 2vε/T.
    bins
        Number of equal-width bins.

    Examples
    --------
    >>> target = Target(lambda x: torch.cat((x, torch.zeros_like(x)), 1))
    >>> inputs, labels = torch.tensor([[0.5], [0.75]]), torch.tensor([0, 0])
    >>> found = EceAdversary(steps=2)(target, inputs, labels, Ball(0.25))
    >>> found.inputs.tolist()  # both are right, so both confidences are lowered
    [[0.25], [0.5]]
    """

    steps: int
    scale: float = 1.0
    bins: int = 15

    def __post_init__(self) -> None:
        check_settings(self.steps, self.scale)
        edges_for(self.bins, None)

    def __call__(self, target: Target, inputs: Tensor, labels: Tensor, ball: Ball, keep: Keep = "best") -> Found:
        """Perturbed inputs; see :class:`Adversary`."""
        watched = Watched(labels)
        signs = torch.zeros(inputs.shape[0], device=inputs.device)

        def climbed(log_probabilities: Tensor, step: int) -> Tensor:
            nonlocal signs
            confidence = watched(log_probabilities)
            gap = watched.correct - confidence
            bins = locate(confidence, bin_edges(self.bins, confidence))
            signs = confidence.new_zeros(self.bins).index_add(0, bins, gap.detach()).sign()[bins]
            return signs * gap

        def error(log_probabilities: Tensor) -> Tensor:
            confidence = watched(log_probabilities)
            return calibration_error(confidence, watched.correct, bin_edges(self.bins, confidence))

        length = step_length(ball, self.steps, self.scale)
        found = ascend(target, inputs, ball, self.steps, length, climbed, error if keep == "best" else None)
        return Found(found, lambda at: (signs * (watched.correct - watched(at))).mean())
