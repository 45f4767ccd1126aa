"""Slow twins of the attacks: one sample at a time, in double precision, written as one would explain them."""

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
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


def turned(
    network: Callable[[Tensor], Tensor], clean: Tensor, label: int, noise: Tensor, steps: int, length: float, norm: str
) -> tuple[Tensor, int]:
    """The noise of one input after the attack, and how many steps it took."""
    size = math.sqrt(sum(float(each) ** 2 for each in noise.flatten()))
    for step in range(steps):
        point = (clean + noise).clone().requires_grad_(True)
        probabilities = torch.softmax(network(point.unsqueeze(0))[0], 0)
        if int(probabilities.argmax()) != label:
            return noise, step
        (gradient,) = torch.autograd.grad(-torch.log(probabilities[label]), point)
        direction = gradient.sign() if norm == "linf" else gradient / gradient.norm()
        moved = noise + length * direction
        noise = size * moved / math.sqrt(sum(float(each) ** 2 for each in moved.flatten()))
    return noise, steps


# --- what steers the exact adversary ----------------------------------------------------------------------------------


def error(z: Sequence[float], correct: Sequence[int], edges: Sequence[float]) -> float:
    """The calibration error, bin by bin; bins are closed on the left."""
    gaps = [0.0] * (len(edges) - 1)
    for each, c in zip(z, correct, strict=True):
        gaps[max(m for m in range(len(gaps)) if edges[m] <= each)] += c - each
    return sum(abs(gap) for gap in gaps) / len(z)


def aims(
    low: Sequence[float],
    high: Sequence[float],
    now: Sequence[float],
    correct: Sequence[int],
    edges: Sequence[float],
    rules: tuple[float, float, float],
) -> tuple[float, list[float]]:
    """Largest calibration error over all 2^M sign patterns, and where each sample aims.

    ``rules`` are the margin in widths of a bin, the margin in parts of the way, and what is enough.
    """
    bins = len(edges) - 1
    best, chosen = -np.inf, []
    for signs in product((1, -1), repeat=bins):
        total, places = 0.0, []
        for least, most, c in zip(low, high, correct, strict=True):
            options = []
            for m in range(bins):
                bottom, top = max(least, edges[m]), min(most, edges[m + 1])
                if bottom < top or (bottom == top and bottom < edges[m + 1]):
                    z = bottom if signs[m] > 0 else top
                    options.append((signs[m] * (c - z), m, z))
            worth, m, z = max(options)
            total += worth
            places.append((m, z))
        if total > best:
            best, chosen = total, places
    far = [least if c else most for least, most, c in zip(low, high, correct, strict=True)]
    if error(far, correct, edges) >= rules[2] * best / len(low):
        return best / len(low), far
    out = []
    for (m, z), least, most, here in zip(chosen, low, high, now, strict=True):
        width = edges[m + 1] - edges[m]
        margin = min(max(rules[1] * abs(z - here), rules[0] * width), 0.5 * width)
        inside = min(max(z, edges[m] + margin), edges[m + 1] - margin)
        out.append(min(max(inside, least), most))
    return best / len(low), out


def reach(
    gradient: np.ndarray,
    clean: np.ndarray,
    moved: np.ndarray,
    log_odds: float,
    epsilon: float,
    left: float,
    norm: str,
    box: tuple[float, float],
) -> tuple[float, float]:
    """Lowest and highest confidence of one sample, to first order in its log odds."""
    ends = []
    for way in (-1, 1):
        followed = [
            0.0
            if (way * g < 0 and x <= box[0])
            or (way * g > 0 and x >= box[1])
            or (norm == "linf" and math.copysign(1, way * g) * (x - start) >= epsilon)
            else g
            for g, x, start in zip(gradient, moved, clean, strict=True)
        ]
        size = sum(abs(g) for g in followed) if norm == "linf" else sum(g * g for g in followed) ** 0.5
        already = sum(way * g * (x - start) for g, x, start in zip(followed, moved, clean, strict=True))
        gain = max(0.0, min(size * epsilon - already, size * left))
        ends.append(1 / (1 + math.exp(-(log_odds + way * gain))))
    return ends[0], ends[1]


def one_stopping(
    network: Network,
    clean: Tensor,
    kept: int,
    of: int,
    eta: int,
    epsilon: float,
    norm: str,
    box: tuple[float, float] | None,
    steps: int,
    rate: float,
) -> Tensor:
    """Plain ascent on eta times the cross entropy of a class, until the label would change or the steps are used up."""
    place, found, best, idle = clean, clean, -math.inf, 0
    for step in range(steps + 1):
        point = place.clone().requires_grad_(True)
        logs = torch.log_softmax(network(point.unsqueeze(0))[0], 0)
        if step and logs[kept] - max(logs[k] for k in range(len(logs)) if k != kept) <= 1e-4:
            return found
        found = place
        value = -eta * logs[of]
        (gradient,) = torch.autograd.grad(value, point)
        if value.item() > best + 1e-4 * (abs(best) if math.isfinite(best) else 0):
            best, idle = value.item(), 0
        else:
            idle += 1
        if idle > 10:
            rate, idle = rate / 10, 0
        place = into_ball(clean, place + rate * gradient, epsilon, norm, box)
    return found
