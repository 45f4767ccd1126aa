"""What an objective sees, small enough for sums by hand and for finite differences."""

from collections.abc import Callable

import torch
from torch import Tensor

from certcal.attacks import Found, Target
from certcal.lab.training import Moment, View
from tests.attacks.small import differences

LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])


def seen(logits: Tensor, labels: list[int], now: Moment, outputs: str = "logits") -> View:
    """Samples whose network outputs under each draw are given: (draws, n, classes)."""
    clean = torch.zeros(logits.shape[1:], dtype=logits.dtype)
    target = Target(lambda batch: batch, outputs, noise=logits)
    return View(target, clean, torch.tensor(labels), Found(clean), now, torch.Generator())


def linear(weights: Tensor, now: Moment, find: Callable[[Target, Tensor], Found] | None = None) -> View:
    """Eight samples under three draws through one linear layer, in double precision, perhaps after an adversary."""
    random = torch.Generator().manual_seed(3)
    inputs = torch.rand((8, 4), generator=random, dtype=torch.float64)
    noise = 0.5 * torch.randn((3, 8, 4), generator=random, dtype=torch.float64)
    target = Target(lambda batch: batch @ weights, noise=noise)
    found = Found(inputs) if find is None else find(target, inputs)
    return View(target, inputs, LABELS, found, now, torch.Generator())


def slopes(loss: Callable[[Tensor], Tensor], start: Tensor, rtol: float = 1e-5, atol: float = 1e-7) -> Tensor:
    """The gradient of a loss of weights, compared with finite differences."""
    weights = start.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(loss(weights), weights)
    torch.testing.assert_close(gradient, differences(lambda moved: loss(moved).detach(), start), rtol=rtol, atol=atol)
    return gradient


def finite_slopes(loss: Tensor, weights: Tensor) -> bool:
    """Whether a loss and its gradient are numbers."""
    (gradient,) = torch.autograd.grad(loss, weights)
    return bool(loss.isfinite()) and bool(gradient.isfinite().all())
