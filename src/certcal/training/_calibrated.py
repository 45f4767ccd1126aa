"""Objectives for calibrated confidences of clean inputs: the focal loss, the MMCE, and that of perturbed scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from certcal._checks import InputError, positive
from certcal.training._parts import Constants, GaussianNoise, Judged, TrainingParts, View
from certcal.training._perturbed_loss import NODES, PerturbedLoss
from certcal.training._recipe import Recipe, real_number

# Added under the square root of the MMCE, whose slope is infinite at 0; as in Kumar et al.'s code.
_LEAST = 1e-10


class _OfConfidences(Constants):
    """A loss of the classifier's own probabilities, averaged over the draws where there is noise."""

    def parts(self, recipe: Recipe) -> TrainingParts:
        """No adversary, and no noise unless the recipe has some."""
        return TrainingParts(GaussianNoise(recipe.draws) if recipe.sigma else None, self)

    def __call__(self, view: View) -> Judged:
        """The loss."""
        log_probabilities = view.target.log_probabilities(view.found.inputs)
        return Judged(self.loss(log_probabilities, view.labels), log_probabilities)

    def loss(self, log_probabilities: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        raise NotImplementedError


@dataclass(frozen=True)
class FocalLoss(_OfConfidences, method="focal"):
    """Mean of -(1 - p_y)^γ log p_y: Lin et al. (2017), for calibration Mukhoti et al. (2020).

    It weighs down what is right and sure already, so confidences stay lower than under the cross entropy (γ = 0).
    γ = 3 is Mukhoti et al.'s "FL-3"; their schedules of γ are not here. 1 - p_y is taken from log p_y without
    cancellation.
    """

    gamma: float = 3.0

    def __post_init__(self) -> None:
        self._set(gamma=real_number(self.gamma, 0.0, 100.0, "gamma"))

    def loss(self, log_probabilities: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        right = log_probabilities.gather(1, labels[:, None])[:, 0]
        missing = (-torch.expm1(right)).clamp_min(torch.finfo(right.dtype).tiny)
        return -(missing**self.gamma * right).mean()


@dataclass(frozen=True)
class MmceLoss(_OfConfidences, method="mmce"):
    """Cross entropy plus λ times the maximum mean calibration error of the batch: Kumar et al. (2018).

    With confidences r of the predicted classes, c whether they are right, and k(r, r') = exp(-|r - r'|/0.4), the second
    term is the root of the mean over pairs of (c - r)(c' - r')k, which is :func:`certcal.metrics.mmce`. ``weighted`` is
    their MMCE_w: pairs of n right samples count 1/n², of m wrong ones 1/m² and mixed ones 1/nm, so that few wrong
    samples count as much as many right ones; a group without samples adds nothing.

    λ (``penalty``) = 2 is Mukhoti et al.'s, for the weighted one. But their code, and that of Kumar et al., takes means
    over pairs *and* divides by their number again, so that its term is far smaller. As the formula is printed, λ = 2
    with weights costs accuracy and calibration on small data, and without weights improves the latter: hence the
    default.
    """

    penalty: float = 2.0
    width: float = 0.4
    weighted: bool = False

    together: ClassVar[bool] = True  # one sample has no loss of its own

    def __post_init__(self) -> None:
        if not isinstance(self.weighted, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"weighted is {self.weighted!r}; pass True or False")
        self._set(penalty=real_number(self.penalty, 0.0, math.inf, "penalty"), width=positive(self.width, "width"))

    def loss(self, log_probabilities: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        top, predicted = log_probabilities.max(1)
        confidence, right = top.exp(), predicted == labels
        share = torch.full_like(confidence, 1 / len(labels))
        if self.weighted:
            share = torch.where(right, 1 / right.sum().clamp_min(1), 1 / (~right).sum().clamp_min(1)).to(confidence)
        residual = (right.to(confidence) - confidence) * share
        kernel = torch.exp(-(confidence[:, None] - confidence).abs() / self.width)
        square = (residual[:, None] * kernel * residual).sum().clamp_min(0.0)
        return functional.nll_loss(log_probabilities, labels) + self.penalty * torch.sqrt(square + _LEAST)


@dataclass(frozen=True)
class PerturbedScoreLoss(_OfConfidences, method="perturbed"):
    """The loss of a classifier with two classes whose scores will be perturbed, :class:`PerturbedLoss`.

    ``bandwidth`` is h, the paper's 2^-6 by default; ``margin`` weighs the near pairs. Serve the network's scores
    through :class:`certcal.calibrators.PerturbedScores` with the same bandwidth: it is part of the classifier.
    """

    bandwidth: float = 2.0**-6
    margin: float = 1.0
    nodes: int = NODES

    two_classes: ClassVar[bool] = True
    together: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked = PerturbedLoss(self.bandwidth, margin=self.margin, nodes=self.nodes)
        self._set(bandwidth=checked.bandwidth, margin=checked.margin, nodes=checked.nodes)

    def loss(self, log_probabilities: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        return PerturbedLoss(self.bandwidth, margin=self.margin, nodes=self.nodes)(log_probabilities, labels)
