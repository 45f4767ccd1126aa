"""The exact adversary: before every step the worst-case program says where each confidence should go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certcal.attacks._protocol import Found, Keep, Target
from certcal.attacks.ascent import step_length
from certcal.attacks.ball import Ball, to_device
from certcal.attacks.confidence import CalibrationAdversary, HeldConfidences
from certcal.binning import edges_for
from certcal.worst_case.calibration import BatchProgram, BatchWorstCase

Floats = NDArray[np.float64]

# How far inside its bin a confidence aims that would do best at the edge: in widths of the bin, and in parts of the way
# it has to go, never beyond the middle. One that falls short of its bin counts with the wrong sign.
MARGIN = 0.1
SHORTFALL = 0.3

# All confidences go to their far ends, as the Brier adversary's do, where that has this part of the worst case: it is
# reached without aiming, and what lies beyond the estimated reach is a gain as well.
ENOUGH = 0.9

# So many numbers are a few hundred kilobytes.
_ENTRIES = 1 << 16


@dataclass(frozen=True)
class ExactAdversary(CalibrationAdversary):
    """Raises the calibration error of a batch by moving every confidence to where the exact worst case has it.

    The calibration error is Σ_n s_m(n) (c_n - z_n) / N for the best signs s of the bins m, with z the confidence in the
    class predicted for the clean input and c whether that is the true one, both held fixed. Before every step the exact
    program finds signs, bins and confidences that are worst over what every sample can still reach; then each sample
    goes up or down towards its confidence, and not beyond it. There are no penalties or schedules.

    What can still be reached is estimated from the gradient, which is at hand anyway: how far the log odds can go if
    they are linear, within the ball and within the length of the steps left. So it is there for networks with and
    without noise, and shrinks to nothing as the steps run out: the last step is guided by the signs of the error that
    is really there. It steers the search and certifies nothing.

    Other ways to use the program were tried on a LeNet for Fashion-MNIST, smoothed by σ = .25, ε = .5, four steps, two
    batches of 256. The mean calibration error was .079 clean, .165 under the Brier adversary and .166 under ACCE (best
    point kept). Following the signs with certificates as reach: .165, because they are so wide that the program puts
    everything at the far ends. Following the signs with reach from the gradient: .168. Going towards the confidences
    of the worst case at full length: .236. Stopping there: .342; with a margin inside the bins .365; as here .377.

    With several steps it reached more than ACCE on every batch of the tests. With one step, which cannot correct where
    it lands, the last point did so on every batch of 800 and on the average of smaller ones, but not on each of those.
    Therefore with one step the best point is sought also where all confidences have moved the same way, as they do in
    the first step of ACCE, whose assignments are still all alike; so it is never below ACCE's, but for rounding.

    Attributes
    ----------
    steps
        Number of steps T.
    scale
        Factor v of the longest step, 2vε/T.
    bins
        Number of equal-width bins.

    Examples
    --------
    >>> target = Target(lambda x: torch.cat((x, torch.zeros_like(x)), 1))
    >>> inputs, labels = torch.tensor([[0.5], [0.75]]), torch.tensor([0, 0])
    >>> found = ExactAdversary(steps=2)(target, inputs, labels, Ball(0.25))
    >>> found.inputs  # both are right, so both confidences are lowered
    tensor([[0.2500],
            [0.5000]])
    """

    def __call__(self, target: Target, inputs: Tensor, labels: Tensor, ball: Ball, keep: Keep = "best") -> Found:
        """Perturbed inputs; see :class:`Adversary`."""
        held = HeldConfidences(labels)
        pilot = Pilot(edges_for(self.bins, None))
        longest = step_length(ball, self.steps, self.scale)
        now = slope = inputs

        def log_odds(log_probabilities: Tensor, step: int) -> Tensor:
            nonlocal now
            now = held.log_odds(log_probabilities)
            return now

        def move(gradient: Tensor, moved: Tensor, step: int) -> Tensor:
            nonlocal slope
            slope = gradient
            reach = Reach.of(ball, inputs, moved, now, gradient, (self.steps - step) * longest, held.correct)
            return reach.towards(pilot(*reach.interval(), reach.confidence(), reach.correct), longest)

        error = self.error(held)
        found = self.climb(target, inputs, ball, log_odds, error, keep, move)
        if keep == "best" and self.steps == 1:
            # All confidences up or all down, whichever adds to the gap of the batch as a whole.
            way = (torch.sigmoid(now.detach()) - held.correct).sum().sign()
            together = ball.seal(inputs, inputs + ball.step(way * slope, longest))
            with torch.no_grad():
                gains = error(target.log_probabilities(together)) > error(target.log_probabilities(found))
            found = torch.where(gains, together, found)
        signs = pilot.signs.to(inputs)
        return Found(found, lambda at: (signs * (held.correct - held(at))).mean())


class Pilot:
    """Asks the program where samples should go, and remembers the sign of the bin where each was sent last."""

    def __init__(self, edges: Floats) -> None:
        self._program = BatchProgram(edges)
        self._edges = edges
        self.signs = torch.empty(0)

    def __call__(self, low: Tensor, high: Tensor, now: Tensor, correct: Tensor) -> Tensor:
        """Confidences to go to, inside the intervals."""
        least, most, here, c = (each.double().numpy() for each in (low, high, now, correct))
        worst = self._program(least, most, c.astype(np.uint8))
        value, signs, aims = self._all_at(np.where(c > 0, least, most), c)
        if value < ENOUGH * worst.value:
            signs, aims = worst.signs[worst.bins], self._inside(worst, here).clip(least, most)
        self.signs = torch.as_tensor(signs)
        return torch.as_tensor(aims)

    def _all_at(self, ends: Floats, correct: Floats) -> tuple[float, NDArray[np.int8], Floats]:
        """Calibration error, signs of the samples' bins, and the confidences, all of them at the given ends."""
        bins = np.searchsorted(self._edges[1:-1], ends, side="right")
        gaps = np.bincount(bins, correct - ends, self._edges.size - 1)
        return float(np.abs(gaps).sum()) / ends.size, np.sign(gaps[bins]).astype(np.int8), ends

    def _inside(self, worst: BatchWorstCase, here: Floats) -> Floats:
        start, stop = self._edges[worst.bins], self._edges[worst.bins + 1]
        width = stop - start
        margin = (SHORTFALL * np.abs(worst.confidence - here)).clip(MARGIN * width, 0.5 * width)
        return worst.confidence.clip(start + margin, stop - margin)


def _to_host(*columns: Tensor) -> list[Tensor]:
    """Columns in double precision on the host, in one copy: a step waits for the device once."""
    kind = reduce(torch.promote_types, [each.dtype for each in columns])
    return list(torch.stack([each.to(kind) for each in columns]).cpu().double())


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

    Numbers per sample are on the host in double precision, gradients on the device.
    """

    ball: Ball
    at: Tensor
    correct: Tensor
    up: Way
    down: Way
    left: float

    @classmethod
    def of(
        cls,
        ball: Ball,
        clean: Tensor,
        moved: Tensor,
        log_odds: Tensor,
        gradient: Tensor,
        left: float,
        correct: Tensor | None = None,
    ) -> Reach:
        """Reach from ``moved``; ``gradient`` is that of the sum of the log odds."""
        right = torch.zeros_like(log_odds) if correct is None else correct
        up, down, at, c = _ways(ball, clean, moved, gradient, log_odds.detach(), right.detach())
        return cls(ball, at, c, up, down, left)

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
        need = torch.logit(wanted.to(self.at)) - self.at
        rises = need > 0
        up, down = self.up.length(self.ball, self.left, need), self.down.length(self.ball, self.left, -need)
        length = torch.where(rises, up, down)
        length = torch.where(need == 0, 0.0, length).nan_to_num(0.0, posinf=longest).clamp(0, longest)
        length = length.copysign(need).to(self.up.gradient.dtype)
        rising, falling = length * rises, length * ~rises
        if self.ball.norm == "linf":
            step = self.ball.step(self.up.gradient, self._on_device(rising))
            step += self.ball.step(self.down.gradient, self._on_device(falling))
        else:  # as Ball.step, whose norms are already known
            step = self.up.gradient * self._on_device(self.up.share(rising))
            step.addcmul_(self.down.gradient, self._on_device(self.down.share(falling)))
        known = bool((self.up.slope + self.down.slope).isfinite().all())
        return step if known else step.nan_to_num(0.0, 0.0, 0.0)

    def _on_device(self, values: Tensor) -> Tensor:
        return to_device(values, self.up.gradient.device)


def _ways(
    ball: Ball, clean: Tensor, moved: Tensor, gradient: Tensor, *others: Tensor
) -> tuple[Way, Way, Tensor, Tensor]:
    """The ways up and down a gradient; few passes over the inputs, because this is what a step costs.

    On a processor a few samples at a time, so that what is computed on the way stays in its cache. Two other columns go
    to the host in the same copy.
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
        dots = [(way.flatten(1) * gone).sum(1) for way in (up, down)]
        sizes.append(torch.stack((*each, *dots, _norm(gone, ball))))
    rise, fall, with_rise, with_fall, size, *rest = _to_host(*torch.cat(sizes, 1), *others)
    ways: list[Way] = []
    for g, slope, dot in ((upwards, rise, with_rise), (downwards, fall, -with_fall)):
        along = dot / slope.clamp_min(_tiny(slope))
        across = (
            torch.zeros_like(along) if ball.norm == "linf" else (size.square() - along.square()).clamp_min(0).sqrt()
        )
        ways.append(Way(g, slope, along, across))
    return ways[0], ways[1], rest[0], rest[1]


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
    return values.abs().sum(1) if ball.norm == "linf" else values.square().sum(1).sqrt()


def _tiny(like: Tensor) -> float:
    return torch.finfo(like.dtype).tiny
