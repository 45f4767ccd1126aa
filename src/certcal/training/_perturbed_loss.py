"""A loss for classifiers whose scores will be perturbed, so that they lose little by it.

Where the cross entropy has the logarithm of a score, this loss has its expectation over the noise of
:func:`certcal.bounds.perturb`; a second term keeps positives above negatives whose scores the noise could exchange.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from certcal._checks import InputError, positive, whole_number
from certcal.attacks.ball import wide

NODES = 32


class PerturbedLoss(nn.Module):
    """Cross entropy in expectation over the perturbation, plus the margin of near pairs.

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

    Parameters
    ----------
    logits
        One logit of the positive class per sample, or two columns, of which the second is the positive class.
    outcomes
        0 or 1 per sample.
    bandwidth
        Bandwidth h of the perturbation.
    nodes
        Nodes of the quadrature.

    Examples
    --------
    >>> logits = torch.tensor([2.0, -1.0, 0.1])
    >>> round(perturbed_cross_entropy(logits, torch.tensor([1, 0, 1]), 2**-6).item(), 4)
    0.3622
    """
    margin, y = _binary(logits, outcomes)
    # 1 - S is the score 1 - s perturbed, because the kernel is symmetric; its logit is minus that of s.
    score = torch.sigmoid(wide(torch.where(y, margin, -margin)))
    return -expected_log_score(score, bandwidth, nodes=nodes).mean().to(margin)


def expected_log_score(score: Tensor, bandwidth: float, *, nodes: int = NODES) -> Tensor:
    """E log S for S with density proportional to sech((S - score)/h) on [0, 1], differentiable in the score.

    In the angle φ with S = score + h log(tan(φ/2)) the density is constant, so the expectation is the mean of log S
    over an interval of angles. Gauss and Legendre's nodes are pushed to its ends by v³(10 - 15v + 6v²), which takes
    away the logarithm's singularity at S = 0. Computed in double precision, on the host where a device has none, and
    returned in that of the input.

    Examples
    --------
    >>> [round(each, 4) for each in expected_log_score(torch.tensor([0.0, 0.5, 1.0]), 0.01).tolist()]
    [-4.9368, -0.6936, -0.0118]
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

    Examples
    --------
    >>> round(near_pair_margin(torch.tensor([0.1, 0.1, 3.0]), torch.tensor([1, 0, 0]), 2**-6).item(), 4)
    0.7089
    """
    h = positive(bandwidth, "bandwidth")
    z, y = _binary(logits, outcomes)
    score = torch.sigmoid(z.detach())
    near = (score[y].unsqueeze(1) - score[~y].unsqueeze(0)).abs() < 2 * h
    first, second = torch.nonzero(near, as_tuple=True)
    if first.numel() == 0:
        return z.sum() * 0.0
    return functional.softplus(2 * h - (z[y][first] - z[~y][second])).mean()


def _binary(logits: Tensor, outcomes: Tensor) -> tuple[Tensor, Tensor]:
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
