"""The adaptive attack: noise that keeps its length and turns to where the network is wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from certcal._base.checks import InputError
from certcal.attacks._protocol import Target
from certcal.attacks.ascent import odds_against
from certcal.attacks.ball import LONGEST, Ball, Norm, wide
from certcal.models.devices import has_doubles

# Rows that the network gets at a time. From 125 to 1000 made little difference to LeNet; 2000 took clearly longer.
_ROWS = 250


def sphere_attack(
    target: Target, inputs: Tensor, labels: Tensor, noise: Tensor, *, steps: int, length: float, norm: Norm = "l2"
) -> Tensor:
    """Turn every draw of noise, at its length, until the network misclassifies the noisy input.

    Algorithm 1 of Sun et al. (2025), for every draw by itself: a gradient step on the cross entropy of the noisy input,
    then back to the ℓ2 length that the draw had, at most ``steps`` times, and none once the noisy input is
    misclassified. So noise that already fools the network stays as it is, bit by bit, and hard inputs are not affected.
    A Gaussian has the same density everywhere on the sphere (their theorem 2). The noisy input may leave the box of
    valid inputs, as it may under Gaussian noise.

    Lengths are kept to float precision: a draw's length in double precision changes by a relative 2⁻²³ at most. A draw
    whose gradient is zero or not finite, or that a step takes to the centre of its sphere, is not moved by that step.

    The noise has shape (draws, n, …). ``target`` has none of its own, and is used in the mode that it is in, which
    should be evaluation. ``length`` is ε, that of a step before the noise is brought back: along the gradient for
    "l2", in every entry along its sign for "linf".

    Examples
    --------
    >>> inputs, labels = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> noise = torch.tensor([[[3.0, 4.0]], [[-3.0, 4.0]]])
    >>> sphere_attack(Target(lambda x: x), inputs, labels, noise, steps=9, length=1.0)  # the second is wrong already
    tensor([[[ 2.1896,  4.4951]],
    <BLANKLINE>
            [[-3.0000,  4.0000]]])
    """
    found = noise.detach().clone(memory_format=torch.contiguous_format)
    every, n, ball = found.flatten(0, 1), labels.shape[0], Ball(length, norm, None)
    for first in range(0, every.shape[0], _ROWS):
        rows = every[first : first + _ROWS]
        samples = torch.arange(first, first + rows.shape[0], device=labels.device) % n
        _turn(target, inputs[samples], labels[samples], rows, steps, ball)
    return found


def checked_length(value: Any, name: str) -> float:
    """The length of a step."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not 0 < number <= LONGEST:
        raise InputError(f"{name} is {value!r}; pass the length of a step, above 0 and at most {LONGEST:g}")
    return number


def _turn(target: Target, inputs: Tensor, labels: Tensor, noise: Tensor, steps: int, ball: Ball) -> None:
    """Turn draws (rows, …) in place. Those that are misclassified stay, and are not worked on again."""
    rows = torch.arange(labels.shape[0], device=noise.device)
    at, sizes = noise, _lengths(noise)
    for step in range(steps):
        with torch.enable_grad():
            noisy = (inputs + at).detach().requires_grad_(True)
            log_probabilities = target.log_probabilities(noisy)
            # The direction of the cross entropy's gradient, which vanishes in float32 where the network is sure.
            (gradient,) = torch.autograd.grad(odds_against(log_probabilities, labels).sum(), noisy)
        right = (log_probabilities.detach().argmax(1) == labels).nonzero().squeeze(1)  # one wait for the device
        if right.numel() < rows.numel():
            if step:
                noise[rows] = at
            rows, at, sizes = rows[right], at[right], sizes[right.to(sizes.device)]
            inputs, labels, gradient = inputs[right], labels[right], gradient[right]
            if not rows.numel():
                return
        at = _back(at, at + ball.step(gradient, ball.epsilon), sizes)
    noise[rows] = at


def _back(at: Tensor, moved: Tensor, sizes: Tensor) -> Tensor:
    """Draws of these lengths in the direction of the moved ones; where they were if that has none."""
    if not has_doubles(at.device):
        return _back(at.cpu(), moved.cpu(), sizes).to(at.device)
    reached = _lengths(moved)
    usable = (reached > 0) & reached.isfinite()
    scale = torch.where(usable, sizes / reached, 0.0).reshape(-1, *(1,) * (at.ndim - 1))
    return torch.where(usable.reshape(scale.shape), (moved.double() * scale).to(at.dtype), at)


def _lengths(noise: Tensor) -> Tensor:
    """In double precision: sums of hundreds of squares lose digits in single."""
    return wide(noise).flatten(1).square().sum(1).sqrt()
