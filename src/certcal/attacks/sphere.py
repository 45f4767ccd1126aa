"""The adaptive attack: noise that keeps its length and turns to where the network is wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from certcal._base.checks import InputError, choice, whole_number
from certcal._base.text import reason
from certcal.attacks._protocol import Target
from certcal.attacks.ascent import odds_against
from certcal.attacks.ball import LONGEST, NORMS, Ball, Norm, wide
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

    Parameters
    ----------
    target
        The network, without noise. It is used in the mode that it is in, which should be evaluation.
    inputs, labels
        The samples (n, …) and their classes (n,).
    noise
        (draws, n, …).
    steps
        T, the most steps per draw.
    length
        ε, the length of a step before the noise is brought back.
    norm
        ``"l2"`` for steps of this length along the gradient, ``"linf"`` for steps of this size in every entry, along
        its sign.

    Returns
    -------
    Tensor
        Noise of the same shape and type.

    Examples
    --------
    >>> inputs, labels = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> noise = torch.tensor([[[3.0, 4.0]], [[-3.0, 4.0]]])
    >>> sphere_attack(Target(lambda x: x), inputs, labels, noise, steps=9, length=1.0)  # the second is wrong already
    tensor([[[ 2.1896,  4.4951]],
    <BLANKLINE>
            [[-3.0000,  4.0000]]])
    """
    _check(target, inputs, labels, noise)
    count = whole_number(steps, 1, 1_000_000, "steps", "pass the most steps per draw, at least 1")
    choice(norm, NORMS, "norm")
    return on_sphere(target, inputs, labels, noise, count, checked_length(length, "length"), norm)


def on_sphere(
    target: Target, inputs: Tensor, labels: Tensor, noise: Tensor, steps: int, length: float, norm: Norm
) -> Tensor:
    """As :func:`sphere_attack`, when the arguments are known to be right."""
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


def _check(target: Target, inputs: Any, labels: Any, noise: Any) -> None:
    """Raise unless noise, inputs and labels fit each other and can be computed with."""
    if not isinstance(target, Target):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"target is a {type(target).__name__}; pass certcal.attacks.Target(network, outputs)")
    if target.noise is not None:
        raise InputError("target has noise of its own; pass Target(network, outputs), and the noise as noise")
    for name, value in (("inputs", inputs), ("labels", labels), ("noise", noise)):
        if not isinstance(value, Tensor):
            raise InputError(f"{name} is a {type(value).__name__}; pass a torch tensor")
    for name, value in (("inputs", inputs), ("noise", noise)):
        if not value.is_floating_point():
            raise InputError(f"{name} has type {value.dtype}; pass floating point numbers")
        if not bool(value.isfinite().all()):
            place = ", ".join(str(each) for each in (~value.isfinite()).nonzero()[0].tolist())
            raise InputError(f"{name}[{place}] is not finite; repair or drop it")
    if inputs.ndim < 2 or not inputs.numel():
        raise InputError(f"inputs has shape {tuple(inputs.shape)}; pass at least one sample, (n, …)")
    if noise.ndim != inputs.ndim + 1 or noise.shape[1:] != inputs.shape or not noise.shape[0]:
        raise InputError(
            f"noise has shape {tuple(noise.shape)}; for inputs of shape {tuple(inputs.shape)} pass (draws, "
            f"{', '.join(map(str, inputs.shape))})"
        )
    if labels.shape != inputs.shape[:1] or labels.dtype != torch.int64:
        raise InputError(
            f"labels has shape {tuple(labels.shape)} and type {labels.dtype}; pass {inputs.shape[0]} classes as int64"
        )
    try:
        with torch.no_grad():
            classes = target.log_probabilities(inputs[:1]).shape[1]
    except (RuntimeError, ValueError, IndexError) as error:
        found = f"shape {tuple(inputs.shape[1:])} ({reason(error)})"
        raise InputError(f"the network takes no inputs of {found}; reshape them") from error
    wrong = ((labels < 0) | (labels >= classes)).nonzero().flatten()
    if wrong.numel():
        index = int(wrong[0])
        raise InputError(f"labels[{index}] is {int(labels[index])}; the network has classes from 0 to {classes - 1}")
