"""Objectives for calibrated confidences of clean inputs: the focal loss, the MMCE, and that of perturbed scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from certcal._base.checks import InputError, positive, whole_number
from certcal.attacks.ball import wide
from certcal.lab.training._recipe import Recipe, real_number
from certcal.lab.training.parts import Constants, GaussianNoise, Judged, TrainingParts, View

NODES = 32


class PerturbedLoss(nn.Module):
    """Cross entropy in expectation over the perturbation, plus the margin of near pairs.

    For classifiers whose scores will be perturbed, so that they lose little by it: where the cross entropy has the
    logarithm of a score, this has its expectation over the noise of :func:`certcal.bounds.perturb`, and the second term
    keeps positives above negatives whose scores the noise could exchange.

    Parameters
    ----------
    bandwidth
        Bandwidth h with which scores will be perturbed.
    margin
        Weight of :func:`near_pair_margin`; 0 leaves it out.
    nodes
        Nodes of the quadrature.

    Examples
    --------
    >>> loss = PerturbedLoss(2**-6)
    >>> logits = torch.tensor([2.0, -1.0, 0.1], requires_grad=True)
    >>> value = loss(logits, torch.tensor([1, 0, 1]))
    >>> round(value.item(), 4)
    0.3622
    """

    def __init__(self, bandwidth: float, *, margin: float = 1.0, nodes: int = NODES) -> None:
        super().__init__()
        self.bandwidth = positive(bandwidth, "bandwidth")
        self.margin = 0.0 if margin == 0 else positive(margin, "margin")
        self.nodes = whole_number(nodes, 2, 1000, "nodes", "pass a whole number from 2 to 1000")

    def forward(self, logits: Tensor, outcomes: Tensor) -> Tensor:
        """Mean over the batch; ``logits`` are one logit of the positive class per sample, or two columns."""
        loss = perturbed_cross_entropy(logits, outcomes, self.bandwidth, nodes=self.nodes)
        if self.margin:
            loss = loss + self.margin * near_pair_margin(logits, outcomes, self.bandwidth)
        return loss


def perturbed_cross_entropy(logits: Tensor, outcomes: Tensor, bandwidth: float, *, nodes: int = NODES) -> Tensor:
    """Mean of -E log S for positives and -E log(1 - S) for negatives, S being the perturbed score.

    Of two columns of logits the second is that of the positive class.
    """
    margin, y = _as_binary(logits, outcomes)
    # 1 - S is the score 1 - s perturbed, because the kernel is symmetric; its logit is minus that of s.
    score = torch.sigmoid(wide(torch.where(y, margin, -margin)))
    return -expected_log_score(score, bandwidth, nodes=nodes).mean().to(margin)


def expected_log_score(score: Tensor, bandwidth: float, *, nodes: int = NODES) -> Tensor:
    """E log S for S with density proportional to sech((S - score)/h) on [0, 1], differentiable in the score.

    In the angle φ with S = score + h log(tan(φ/2)) the density is constant, so the expectation is the mean of log S
    over an interval of angles. Gauss and Legendre's nodes are pushed to its ends by v³(10 - 15v + 6v²), which takes
    away the logarithm's singularity at S = 0. Computed in double precision, on the host where a device has none.
    """
    h = positive(bandwidth, "bandwidth")
    s = wide(score).unsqueeze(-1)
    start = 2 * torch.atan(torch.exp(-s / h))
    stop = math.pi - 2 * torch.atan(torch.exp(-(1 - s) / h))
    x, weight = np.polynomial.legendre.leggauss(nodes)
    v = (x + 1) / 2
    place = torch.as_tensor(v**3 * (10 - 15 * v + 6 * v * v)).to(s)
    share = torch.as_tensor(weight / 2 * 30 * (v * (1 - v)) ** 2).to(s)
    angle = start + (stop - start) * place
    perturbed = s + h * torch.log(torch.tan(angle / 2))
    least = torch.finfo(torch.float64).tiny
    return (torch.log(perturbed.clamp(least, 1.0)) * share).sum(-1).to(score)


def near_pair_margin(logits: Tensor, outcomes: Tensor, bandwidth: float) -> Tensor:
    """Mean of softplus(2h - (zᵢ - zⱼ)) over positives i and negatives j of the batch whose scores are closer than 2h.

    z is the logit. Which pairs are near is not differentiated. Without any near pair the value is 0.
    """
    h = positive(bandwidth, "bandwidth")
    z, y = _as_binary(logits, outcomes)
    score = torch.sigmoid(z.detach())
    near = (score[y].unsqueeze(1) - score[~y].unsqueeze(0)).abs() < 2 * h
    first, second = torch.nonzero(near, as_tuple=True)
    if first.numel() == 0:
        return z.sum() * 0.0
    return functional.softplus(2 * h - (z[y][first] - z[~y][second])).mean()


def _as_binary(logits: Tensor, outcomes: Tensor) -> tuple[Tensor, Tensor]:
    """One logit per sample, and which samples are positive."""
    if logits.ndim == 2 and logits.shape[1] == 2:
        logits = logits[:, 1] - logits[:, 0]
    if logits.ndim == 2 and logits.shape[1] == 1:
        logits = logits[:, 0]
    if logits.ndim != 1 or not logits.is_floating_point() or logits.numel() == 0:
        raise InputError(
            f"logits has shape {tuple(logits.shape)} and type {logits.dtype}; pass one float per sample or two columns"
        )
    flat = outcomes.reshape(-1)
    if flat.numel() != logits.numel():
        raise InputError(
            f"lengths differ: logits has {logits.numel()}, outcomes has {flat.numel()}; pass one per sample"
        )
    y = flat == 1
    wrong = torch.nonzero(~(y | (flat == 0)))
    if wrong.numel():
        index = int(wrong[0])
        raise InputError(f"outcomes[{index}] is {flat[index].item()}, neither 0 nor 1; pass what happened")
    return logits, y


# Added under the square root of the MMCE, whose slope is infinite at 0; as in Kumar et al.'s code.
_LEAST = 1e-10


class _ConfidenceLoss(Constants):
    """A loss of the classifier's own probabilities, averaged over the draws where there is noise."""

    def parts(self, recipe: Recipe) -> TrainingParts:
        """No adversary, and no noise unless the recipe has some."""
        return TrainingParts(GaussianNoise(recipe.draws) if recipe.sigma else None, self)

    def __call__(self, view: View) -> Judged:
        log_probabilities = view.target.log_probabilities(view.found.inputs)
        return Judged(self.loss(log_probabilities, view.labels), log_probabilities)

    def loss(self, log_probabilities: Tensor, labels: Tensor) -> Tensor:
        raise NotImplementedError


@dataclass(frozen=True)
class FocalLoss(_ConfidenceLoss, method="focal"):
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
class MmceLoss(_ConfidenceLoss, method="mmce"):
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
class PerturbedScoreLoss(_ConfidenceLoss, method="perturbed"):
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
