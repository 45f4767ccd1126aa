"""The slow twin of the attack on the sphere: algorithm 1 for one draw, line by line, in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


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
