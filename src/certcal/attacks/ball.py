"""Where an attacker may go: within a distance of the clean input, and inside the box of valid inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from certcal._base.checks import InputError, choice
from certcal.models.devices import has_doubles

Norm = Literal["l2", "linf"]
NORMS: tuple[Norm, ...] = ("l2", "linf")

# No distance and no step is longer: their squares are still far from the largest float32.
LONGEST = 1e18

# Beyond epsilon or the box by this much, relatively, is rounding in single precision.
_ROUNDING = 1e-5

# How often a point is drawn towards the clean one before the clean one itself is taken.
_TRIES = 48


@dataclass(frozen=True)
class Ball:
    """All inputs within ``epsilon`` of the clean ones, inside the box.

    Examples
    --------
    >>> ball = Ball(1.0)
    >>> ball.project(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]])).tolist()
    [[0.7071067690849304, 0.7071067690849304]]
    >>> Ball(5.0, box=None).project(torch.zeros(1, 2), torch.tensor([[6.0, 8.0]])).tolist()
    [[3.0, 4.0]]
    """

    epsilon: float
    """The largest distance, from 0 to 1e18."""
    norm: Norm = "l2"
    """``"l2"`` or ``"linf"``, of one input's perturbation."""
    box: tuple[float, float] | None = (0.0, 1.0)
    """Smallest and largest value that an input may have, or None if any may."""

    def __post_init__(self) -> None:
        choice(self.norm, NORMS, "norm")
        if not 0 <= self.epsilon <= LONGEST:
            raise InputError(f"epsilon is {self.epsilon}; pass a distance from 0 to {LONGEST:g}")
        if self.box is not None and not self.box[0] < self.box[1]:
            raise InputError(f"box is {self.box}; pass the smallest and the largest value, in this order, or None")

    def lengths(self, clean: Tensor, moved: Tensor) -> Tensor:
        """Distance of each moved input from its clean one, measured in double precision."""
        change = (wide(moved) - wide(clean)).flatten(1)
        return change.abs().amax(1) if self.norm == "linf" else change.square().sum(1).sqrt()

    def step(self, gradient: Tensor, length: float | Tensor) -> Tensor:
        """The step of a given length (in this norm, or one per sample) that gains most along the gradient.

        No step is taken along a gradient that is zero or not finite.
        """
        usable = gradient.nan_to_num(0.0, 0.0, 0.0)
        if isinstance(length, Tensor):
            length = length.reshape(-1, *(1,) * (gradient.ndim - 1))
        if self.norm == "linf":
            return length * usable.sign()
        # Divided by the largest entry first: squares of tiny gradients would be zero.
        usable = usable / _per_sample(usable.flatten(1).abs().amax(1), usable).clamp_min(_tiny(usable))
        size = usable.flatten(1).square().sum(1).sqrt()
        return length * usable / _per_sample(size, usable).clamp_min(_tiny(usable))

    def project(self, clean: Tensor, moved: Tensor) -> Tensor:
        """Into the box, then towards the clean inputs until within epsilon: right to float precision."""
        boxed = moved if self.box is None else moved.clamp(*self.box)
        change = boxed - clean
        if self.norm == "linf":
            return clean + change.clamp(-self.epsilon, self.epsilon)
        size = _per_sample(change.flatten(1).square().sum(1).sqrt(), change)
        return clean + change * (self.epsilon / size.clamp_min(_tiny(size))).clamp_max(1.0)

    def seal(self, clean: Tensor, moved: Tensor) -> Tensor:
        """As :meth:`project`, for inputs that are handed over: what is returned is in ball and box exactly.

        What is claimed: the float32 numbers that come out are within epsilon of the clean ones and inside the box when
        both are measured in double precision, in whatever order squares are added, provided that the clean ones are
        inside the box. Where rounding would leave the ball, the perturbation is made shorter; where no shorter one is
        representable, or where it is not finite, it is dropped.
        """
        if not has_doubles(clean.device):
            return self.seal(clean.cpu(), moved.cpu()).to(clean.device)
        start = clean.double()
        change = (moved.double() if self.box is None else moved.double().clamp(*self.box)) - start
        if self.norm == "linf":
            change = change.clamp(-self.epsilon, self.epsilon).nan_to_num_(0.0)
            return self._sealed_box(clean, (start + change).to(clean.dtype))
        size = change.flatten(1).square().sum(1).sqrt()
        if clean.device.type != "cpu" or not bool(size.isfinite().all()):  # elsewhere looking costs more than doing
            change = change.nan_to_num(0.0, 0.0, 0.0)
            size = change.flatten(1).square().sum(1).sqrt()
        # Adding d squares in double precision and taking the root is off by less than (d + 4) 2⁻⁵²; of one, not at all.
        several = (change != 0).flatten(1).sum(1).double()
        limit = self.epsilon * (1 - torch.where(several > 1, several + 4, 0.0) * 2.0**-52)
        scale = torch.where(size > limit, limit / size.clamp_min(_tiny(size)), 1.0)
        found = self._round_inside(clean, start + _per_sample(scale, change) * change)
        over = self.lengths(clean, found) > limit
        for attempt in range(_TRIES):
            rows = over.nonzero().squeeze(1)
            if not rows.numel():
                return found
            scale[rows] *= 1 - 2.0 ** (attempt - 22) if attempt < 21 else 0.5
            found[rows] = self._round_inside(clean[rows], start[rows] + _per_sample(scale[rows], change) * change[rows])
            over[rows] = self.lengths(clean[rows], found[rows]) > limit[rows]
        return torch.where(_per_sample(over, change), clean, found)

    def check_moved(self, name: str, clean: Tensor, moved: Any, first: int = 0) -> Tensor:
        """What an attack called ``name`` returned, if it is in ball and box; what rounding put outside is sealed.

        Parameters
        ----------
        name, clean, moved
            Whose inputs these are, where they were, and where they are now.
        first
            Number of the first input, for what is said about them.
        """
        if isinstance(moved, np.ndarray):
            moved = torch.as_tensor(moved)
        if not isinstance(moved, Tensor):
            raise InputError(f"{name} returned a {type(moved).__name__}; return a tensor of the perturbed inputs")
        if moved.shape != clean.shape:
            raise InputError(
                f"{name} returned inputs of shape {tuple(moved.shape)} for {tuple(clean.shape)}; return one per input"
            )
        moved = moved.detach().to(clean)
        if not has_doubles(clean.device):
            return self.check_moved(name, clean.cpu(), moved.cpu(), first).to(clean.device)
        low, high = (-math.inf, math.inf) if self.box is None else self.box
        lengths, size = self.lengths(clean, moved), clean.flatten(1).abs().amax(1).double()
        beyond = torch.maximum(low - moved, moved - high).flatten(1).amax(1)
        odd = ~moved.flatten(1).isfinite().all(1)
        far = lengths > self.epsilon + _ROUNDING * (self.epsilon + size)
        out = beyond > _ROUNDING * max(abs(low), abs(high))
        slightly = (lengths > self.epsilon) | (beyond > 0)
        together: Any = torch.stack([each.any() for each in (odd, far, out, slightly)])
        seen: list[bool] = together.tolist()  # the one wait for the device
        remedy = "end it with ball.seal(inputs, moved)"
        if seen[0]:
            raise InputError(f"{name} returned inputs[{first + _first(odd)}] with values that are not finite; {remedy}")
        if seen[1]:
            place = _first(far)
            raise InputError(
                f"{name} moved inputs[{first + place}] by {float(lengths[place]):.6g} ({self.norm}), further than "
                f"epsilon, {self.epsilon:g}; {remedy}"
            )
        if seen[2]:
            place = _first(out)
            raise InputError(
                f"{name} took inputs[{first + place}] {float(beyond[place]):.6g} outside the box from {low:g} to "
                f"{high:g}; {remedy}"
            )
        if not seen[3]:
            return moved
        rows = slightly.nonzero().squeeze(1)
        return moved.index_put((rows,), self.seal(clean[rows], moved[rows]))

    def _round_inside(self, clean: Tensor, moved: Tensor) -> Tensor:
        rounded = moved.to(clean.dtype)
        return rounded if self.box is None else self._inside(clean, rounded, *self.box)

    def _sealed_box(self, clean: Tensor, moved: Tensor) -> Tensor:
        """One float towards the clean input where rounding went beyond epsilon, or beyond the box."""
        far = (moved.double() - clean.double()).abs() > self.epsilon
        moved = torch.where(far, torch.nextafter(moved, clean), moved)
        return moved if self.box is None else self._inside(clean, moved, *self.box)

    def _inside(self, clean: Tensor, moved: Tensor, low: float, high: float) -> Tensor:
        wide = moved.double()
        return torch.where((wide < low) | (wide > high), torch.nextafter(moved, clean), moved)


def wide(values: Tensor) -> Tensor:
    """The same numbers in double precision, on the host where their device has none."""
    return values.double() if has_doubles(values.device) else values.cpu().double()


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """A few numbers on a device; CUDA takes them without waiting for what is computed there."""
    return values.to(device, non_blocking=device.type == "cuda")


def _first(wrong: Tensor) -> int:
    return int(wrong.nonzero()[0])


def _per_sample(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(-1, *(1,) * (like.ndim - 1))


def _tiny(like: Tensor) -> float:
    return torch.finfo(like.dtype).tiny
