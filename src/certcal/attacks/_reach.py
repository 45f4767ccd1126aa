"""How far a confidence can still be moved, to first order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from certcal.attacks.ball import Ball

# So many numbers are a few hundred kilobytes.
_ENTRIES = 1 << 16


@dataclass(frozen=True, eq=False)
class Way:
    """Up or down the gradient, for every sample."""

    gradient: Tensor
    slope: Tensor
    along: Tensor
    across: Tensor

    def gain(self, ball: Ball, left: float) -> Tensor:
        """The largest rise within the ball, and with steps of total length ``left``, of a function that is linear."""
        return self.slope * (ball.epsilon - self.along).clamp(0, left)

    def length(self, ball: Ball, left: float, rise: Tensor) -> Tensor:
        """Length of the step after which, projected into the ball, a linear function has risen by as much.

        On the sphere a step along the gradient is drawn back towards the centre, so it has to be longer than the rise
        divided by the slope. For the largest rise of all no step is too long, so its length is infinite.
        """
        all_of_it = rise >= (1 - 1e-6) * self.gain(ball, left)
        goal = self.along + rise / self.slope.clamp_min(_tiny(self.slope))
        if ball.norm == "linf":
            return torch.where(all_of_it, torch.inf, goal - self.along)
        # Beyond the sphere when across > height; then the point before projection is on the ray through the goal.
        height = (ball.epsilon**2 - goal.square()).clamp_min(0).sqrt().clamp_min(_tiny(goal))
        return torch.where(all_of_it, torch.inf, goal * (self.across / height).clamp_min(1) - self.along)

    def share(self, length: Tensor) -> Tensor:
        """What the gradient has to be multiplied with to be of these lengths (with their signs), ready to broadcast."""
        factor = length / self.slope.clamp_min(_tiny(self.slope))
        return factor.to(self.gradient.dtype).reshape(-1, *(1,) * (self.gradient.ndim - 1))


@dataclass(frozen=True, eq=False)
class Reach:
    """First-order reach of every confidence z of a batch: how far its log odds log z/(1 - z) can rise and fall.

    A linear function with gradient g gains at most ‖g‖ε - g·γ anywhere in the ball, γ being the perturbation at hand
    and ‖·‖ the dual norm, and at most ‖g‖ times the distance that the steps left can cover.

    Log odds are where straight lines served best: those of a network are close to piecewise linear, and an average
    over the few draws of an attack is still more like them than like Φ⁻¹(z).
    """

    ball: Ball
    at: Tensor
    up: Way
    down: Way
    left: float

    @classmethod
    def of(cls, ball: Ball, clean: Tensor, moved: Tensor, log_odds: Tensor, gradient: Tensor, left: float) -> Reach:
        """Reach from ``moved``; ``gradient`` is that of the sum of the log odds."""
        up, down = _ways(ball, clean, moved, gradient)
        return cls(ball, log_odds.detach().double(), up, down, left)

    def confidence(self) -> Tensor:
        """The confidences at hand."""
        return torch.sigmoid(self.at).nan_to_num(0.5)

    def interval(self) -> tuple[Tensor, Tensor]:
        """Lowest and highest confidences within reach."""
        low = torch.sigmoid(self.at - self.down.gain(self.ball, self.left))
        high = torch.sigmoid(self.at + self.up.gain(self.ball, self.left))
        # Outputs that are not numbers say nothing about where they can go, and are for others to report.
        return low.nan_to_num(0.0), high.nan_to_num(1.0)

    def towards(self, wanted: Tensor, longest: float) -> Tensor:
        """The step that brings each confidence to the wanted one, or the longest allowed where that takes more."""
        need = torch.logit(wanted.double()) - self.at
        rises = need > 0
        up, down = self.up.length(self.ball, self.left, need), self.down.length(self.ball, self.left, -need)
        length = torch.where(rises, up, down)
        length = torch.where(need == 0, 0.0, length).nan_to_num(0.0, posinf=longest).clamp(0, longest)
        length = length.copysign(need).to(self.up.gradient.dtype)
        if self.ball.norm == "linf":
            step = self.ball.step(self.up.gradient, length * rises)
            step += self.ball.step(self.down.gradient, length * ~rises)
        else:  # as Ball.step, whose norms are already known
            step = self.up.gradient * self.up.share(length * rises)
            step.addcmul_(self.down.gradient, self.down.share(length * ~rises))
        known = bool((self.up.slope + self.down.slope).isfinite().all())
        return step if known else step.nan_to_num(0.0, 0.0, 0.0)


def _ways(ball: Ball, clean: Tensor, moved: Tensor, gradient: Tensor) -> tuple[Way, Way]:
    """The ways up and down a gradient; few passes over the inputs, because this is what a step costs.

    On a processor a few samples at a time, so that what is computed on the way stays in its cache.
    """
    limited = ball.box is not None or ball.norm == "linf"
    upwards, downwards = (torch.empty_like(gradient) if limited else gradient for _ in range(2))
    count = len(gradient) if gradient.device.type != "cpu" else max(1, _ENTRIES // gradient[0].numel())
    sizes: list[Tensor] = []
    for start in range(0, len(gradient), count):
        rows = slice(start, start + count)
        up, down, change = upwards[rows], downwards[rows], moved[rows] - clean[rows]
        if limited:
            _follow(ball, moved[rows], change, gradient[rows], up, down)
        gone = change.flatten(1)
        each = [_norm(way.flatten(1), ball) for way in (up, down)]
        dots = [(way.flatten(1) * gone).sum(1).double() for way in (up, down)]
        sizes.append(torch.stack((*each, *dots, _norm(gone, ball))))
    rise, fall, with_rise, with_fall, size = torch.cat(sizes, 1)
    ways: list[Way] = []
    for g, slope, dot in ((upwards, rise, with_rise), (downwards, fall, -with_fall)):
        along = dot / slope.clamp_min(_tiny(slope))
        across = (
            torch.zeros_like(along) if ball.norm == "linf" else (size.square() - along.square()).clamp_min(0).sqrt()
        )
        ways.append(Way(g, slope, along, across))
    return ways[0], ways[1]


def _follow(ball: Ball, moved: Tensor, change: Tensor, gradient: Tensor, up: Tensor, down: Tensor) -> None:
    """Write into ``up`` and ``down`` the gradient without entries that are at the end towards which each way leads."""
    limits: list[tuple[Tensor, float, float]] = []
    if ball.box is not None:
        limits.append((moved, *ball.box))
    if ball.norm == "linf":
        limits.append((change, -ball.epsilon * (1 - 1e-6), ball.epsilon * (1 - 1e-6)))
    # Truth values as 0.0 and 1.0: with those torch is several times as fast as with its own.
    can_fall = reduce(torch.mul, [values.clone().gt_(low) for values, low, _ in limits])
    can_rise = reduce(torch.mul, [values.clone().lt_(high) for values, _, high in limits])
    rising, falling = gradient.clamp_min(0), gradient.clamp_max(0)
    torch.mul(rising, can_rise, out=up).addcmul_(falling, can_fall)
    torch.mul(rising, can_fall, out=down).addcmul_(falling, can_rise)


def _norm(values: Tensor, ball: Ball) -> Tensor:
    """The dual norm of every row; for the ℓ2 norm its own."""
    return (values.abs().sum(1) if ball.norm == "linf" else values.square().sum(1).sqrt()).double()


def _tiny(like: Tensor) -> float:
    return torch.finfo(like.dtype).tiny
