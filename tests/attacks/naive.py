"""Slow twins of the attacks: one sample at a time, in double precision, written as one would explain them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Network = Callable[[Tensor], Tensor]


def into_ball(clean: Tensor, moved: Tensor, epsilon: float, norm: str, box: tuple[float, float] | None) -> Tensor:
    """Into the box, then straight towards the clean input (l2) or each coordinate for itself (linf)."""
    if box is not None:
        moved = moved.clamp(*box)
    change = moved - clean
    if norm == "linf":
        return clean + change.clamp(-epsilon, epsilon)
    size = math.sqrt(sum(float(each) ** 2 for each in change))
    return moved if size <= epsilon else clean + change * (epsilon / size)


def unit(gradient: Tensor, norm: str) -> Tensor:
    """The step of length one that gains most."""
    return gradient.sign() if norm == "linf" else gradient / gradient.norm()


def one_ace(
    network: Network,
    clean: Tensor,
    kept: int,
    of: int,
    eta: int,
    epsilon: float,
    norm: str,
    box: tuple[float, float] | None,
    steps: int,
) -> Tensor:
    """Best point found for one input: eta times the cross entropy of a class is raised while the label stays."""

    def look(point: Tensor, weight: float) -> tuple[float, float, Tensor]:
        point = point.clone().requires_grad_(True)
        p = torch.softmax(network(point.unsqueeze(0))[0], 0)
        value = eta * torch.log((1 - p[of]) / p[of])
        others = [p[k] for k in range(len(p)) if k != kept]
        ahead = torch.log(p[kept]) - torch.log(torch.stack(others).max())
        barrier = torch.log(ahead) if ahead > 1e-4 else torch.zeros(())
        (gradient,) = torch.autograd.grad(value + weight * barrier, point)
        return value.item(), ahead.item(), gradient

    _, first_lead, _ = look(clean, 0.0)
    weight = min(1.0, 0.9 * first_lead)
    best_value, _, best_gradient = look(clean, weight)
    place, gradient, best = clean, best_gradient, clean
    length, idle = epsilon / 4, 0
    for step in range(1, steps + 1):
        if length < epsilon / 1000:
            break
        proposed = into_ball(clean, place + length * unit(gradient, norm), epsilon, norm, box)
        value, ahead, there = look(proposed, weight * 1e-6 ** (step / steps))
        if not ahead > 1e-4:  # the label would change
            length, idle = length / 2, 0
            continue
        place, gradient = proposed, there
        if value > best_value:
            best, best_value, best_gradient, idle = proposed, value, there, 0
            length = min(1.25 * length, epsilon / 4)
            continue
        idle += 1
        if idle == 3:
            place, gradient, length, idle = best, best_gradient, length / 2, 0
    return best


def one_shortened(
    network: Network, clean: Tensor, kept: int, right: bool, epsilon: float, norm: str, box: tuple[float, float] | None
) -> Tensor:
    """One step down (if right) or up in the confidence, halved until the label stays."""
    point = clean.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(torch.softmax(network(point.unsqueeze(0))[0], 0)[kept], point)
    direction = unit(-gradient if right else gradient, norm)
    for halvings in range(15):
        moved = into_ball(clean, clean + epsilon * 0.5**halvings * direction, epsilon, norm, box)
        ordered = torch.log_softmax(network(moved.unsqueeze(0))[0], 0)
        others = torch.cat((ordered[:kept], ordered[kept + 1 :]))
        if ordered[kept] - others.max() > 1e-4:
            return moved
    return clean


def one_pgd(network: Network, clean: Tensor, label: int, epsilon: float, norm: str, steps: int) -> Tensor:
    """The best of the points that steps of length 2ε/steps lead to, by the cross entropy of the label."""
    best, best_loss, at = clean, -math.inf, clean
    for step in range(steps + 1):
        point = at.clone().requires_grad_(True)
        loss = -torch.log_softmax(network(point.unsqueeze(0))[0], 0)[label]
        if loss.item() > best_loss:
            best, best_loss = at, loss.item()
        if step < steps:
            (gradient,) = torch.autograd.grad(loss, point)
            at = into_ball(clean, at + 2 * epsilon / steps * unit(gradient, norm), epsilon, norm, (0.0, 1.0))
    return best
