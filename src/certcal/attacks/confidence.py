"""Adversaries of confidences: what they watch, and those of the Brier score and of the calibration error at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from certcal.attacks._protocol import Found, Keep, Target
from certcal.attacks.ascent import BatchAdversary, Score
from certcal.attacks.ball import Ball, to_device
from certcal.binning import edges_for


class HeldConfidences:
    """Confidences of a batch while it is attacked, with class and correctness held as they were for the clean inputs.

    The first log probabilities it is shown must be those of the clean inputs.

    Examples
    --------
    >>> held = HeldConfidences(torch.tensor([1, 0]))
    >>> held(torch.tensor([[0.25, 0.75], [0.25, 0.75]]).log())
    tensor([0.7500, 0.7500])
    >>> held(torch.tensor([[0.5, 0.5], [0.75, 0.25]]).log()), held.correct
    (tensor([0.5000, 0.2500]), tensor([1., 0.]))
    """

    def __init__(self, labels: Tensor) -> None:
        self._labels = labels
        self._chosen: Tensor | None = None
        self.correct = torch.empty(0)

    def __call__(self, log_probabilities: Tensor) -> Tensor:
        """Confidence (n,) in the class predicted for the clean inputs."""
        logarithm = log_probabilities.gather(1, self._column(log_probabilities)).squeeze(1)
        # The logarithm of an average can be above 0 by rounding; its gradient is as good there as elsewhere.
        return (logarithm - logarithm.detach().clamp_min(0)).exp()

    def log_odds(self, log_probabilities: Tensor) -> Tensor:
        """Log odds (n,) of that class against all others, which have a gradient where the confidence rounds to 1."""
        column = self._column(log_probabilities)
        others = log_probabilities.scatter(1, column, -torch.inf).logsumexp(1)
        return log_probabilities.gather(1, column).squeeze(1) - others

    def _column(self, log_probabilities: Tensor) -> Tensor:
        if self._chosen is None:
            self._chosen = log_probabilities.detach().argmax(1, keepdim=True)
            right = self._chosen.squeeze(1) == self._labels
            self.correct = right.to(log_probabilities.dtype)
        return self._chosen


def bin_edges(bins: int, like: Tensor) -> Tensor:
    """Edges of equal-width bins in the type of the confidences."""
    return to_device(torch.as_tensor(edges_for(bins, None), dtype=like.dtype), like.device)


def locate(confidence: Tensor, edges: Tensor) -> Tensor:
    """Bin of every confidence; bins are closed on the left, the last one on both sides."""
    return torch.bucketize(confidence.detach(), edges[1:-1], right=True)


def calibration_error(confidence: Tensor, correct: Tensor, edges: Tensor) -> Tensor:
    """The calibration error of a batch, (1/N) Σ_m |Σ_{n in m} (c_n - z_n)|.

    Examples
    --------
    >>> z = torch.tensor([0.1, 0.9])
    >>> calibration_error(z, torch.tensor([1.0, 0.0]), bin_edges(3, z))
    tensor(0.9000)
    """
    gaps = confidence.new_zeros(edges.shape[0] - 1)
    return gaps.index_add(0, locate(confidence, edges), correct - confidence).abs().sum() / confidence.shape[0]


@dataclass(frozen=True)
class BrierAdversary(BatchAdversary):
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
    >>> target = Target(lambda x: x)
    >>> found = BrierAdversary(steps=2)(target, torch.tensor([[1.0, 0.5]]), torch.tensor([1]), Ball(0.5))
    >>> bool(found.inputs[0, 1] < 0.5)  # wrong, so its confidence is raised
    True
    """

    def __call__(self, target: Target, inputs: Tensor, labels: Tensor, ball: Ball, keep: Keep = "best") -> Found:
        """Perturbed inputs; see :class:`Adversary`."""
        held = HeldConfidences(labels)

        # Steps are normalised, so climbing |c - z| takes the steps of (c - z)², and does not stop where it is 0.
        def error(log_probabilities: Tensor, step: int = 0) -> Tensor:
            confidence = held(log_probabilities)
            return (1 - 2 * held.correct) * confidence + held.correct

        return Found(self.climb(target, inputs, ball, error, error, keep))


@dataclass(frozen=True)
class CalibrationAdversary(BatchAdversary):
    """Base of the adversaries of a batch's calibration error."""

    together: ClassVar[bool] = True

    bins: int = 15

    def __post_init__(self) -> None:
        super().__post_init__()
        edges_for(self.bins, None)

    def error(self, held: HeldConfidences) -> Score:
        """From log probabilities to the calibration error of the batch."""

        def score(log_probabilities: Tensor) -> Tensor:
            confidence = held(log_probabilities)
            return calibration_error(confidence, held.correct, bin_edges(self.bins, confidence))

        return score


@dataclass(frozen=True)
class EceAdversary(CalibrationAdversary):
    """Climbs the calibration error of a batch along its own gradient, (1/N) Σ_n s_m(n) (c_n - z_n).

    s_m is the sign of bin m's sum as it is before the step: what the exact program answers for samples that cannot
    move. So where a bin's predictions are right more often than they are sure, all its confidences go down, also those
    of wrong predictions. :class:`ExactAdversary`, which looks ahead to where samples can still go, reaches far larger
    errors; but as an adversary to train against this one has served better (docs/results.md).

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

    def __call__(self, target: Target, inputs: Tensor, labels: Tensor, ball: Ball, keep: Keep = "best") -> Found:
        """Perturbed inputs; see :class:`Adversary`."""
        held = HeldConfidences(labels)
        signs = torch.zeros(inputs.shape[0], device=inputs.device)

        def signed_gaps(log_probabilities: Tensor, step: int) -> Tensor:
            nonlocal signs
            confidence = held(log_probabilities)
            gap = held.correct - confidence
            bins = locate(confidence, bin_edges(self.bins, confidence))
            signs = confidence.new_zeros(self.bins).index_add(0, bins, gap.detach()).sign()[bins]
            return signs * gap

        found = self.climb(target, inputs, ball, signed_gaps, self.error(held), keep)
        return Found(found, lambda at: (signs * (held.correct - held(at))).mean())


@dataclass(frozen=True)
class SignAdversary(CalibrationAdversary):
    """Moves all confidences of a batch one way: further from its accuracy, by the sign of its mean gap Σ_n (c_n - z_n).

    That is the first step of :class:`AcceAdversary`, whose assignments are still all alike then, and all of its steps
    while a small rate of the assignments keeps them nearly so: what is left of it without ADMM.

    z is the confidence in the class predicted for the clean input and c whether that is the true one, both held fixed.

    Attributes
    ----------
    steps
        Number of steps T.
    scale
        Factor v of the step length 2vε/T.
    bins
        Number of equal-width bins of the calibration error by which the best point is kept.

    Examples
    --------
    >>> target = Target(lambda x: torch.cat((x, torch.zeros_like(x)), 1))
    >>> inputs, labels = torch.tensor([[0.5], [0.75]]), torch.tensor([0, 0])
    >>> SignAdversary(steps=2)(target, inputs, labels, Ball(0.25)).inputs.tolist()  # the accuracy is above both
    [[0.25], [0.5]]
    """

    def __call__(self, target: Target, inputs: Tensor, labels: Tensor, ball: Ball, keep: Keep = "best") -> Found:
        """Perturbed inputs; see :class:`Adversary`."""
        held, sign = HeldConfidences(labels), torch.zeros((), device=inputs.device)

        def signed_gaps(log_probabilities: Tensor, step: int) -> Tensor:
            nonlocal sign
            confidence = held(log_probabilities)
            gap = held.correct - confidence
            sign = gap.detach().sum().sign()
            return sign * gap

        found = self.climb(target, inputs, ball, signed_gaps, self.error(held), keep)
        return Found(found, lambda at: (sign * (held.correct - held(at))).mean())
