"""The exact adversary: before every step the worst-case program says where each confidence should go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certcal.attacks._protocol import Found, Keep
from certcal.attacks._reach import Reach
from certcal.attacks._target import Target
from certcal.attacks.ascent import ascend
from certcal.attacks.ball import Ball
from certcal.attacks.confidence import Watched, bin_edges, calibration_error, check_settings, step_length
from certcal.binning import edges_for
from certcal.worst_case.steering import Course, Steering

Floats = NDArray[np.float64]

# How far inside its bin a confidence aims that would do best at the edge: in widths of the bin, and in parts of the way
# it has to go, never beyond the middle. One that falls short of its bin counts with the wrong sign.
MARGIN = 0.1
SHORTFALL = 0.3

# All confidences go to their far ends, as the Brier adversary's do, where that has this part of the worst case: it is
# reached without aiming, and what lies beyond the estimated reach is a gain as well.
ENOUGH = 0.9


@dataclass(frozen=True)
class ExactAdversary:
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

    steps: int
    scale: float = 1.0
    bins: int = 15

    def __post_init__(self) -> None:
        check_settings(self.steps, self.scale)
        edges_for(self.bins, None)

    def __call__(self, target: Target, inputs: Tensor, labels: Tensor, ball: Ball, keep: Keep = "best") -> Found:
        """Perturbed inputs; see :class:`Adversary`."""
        watched = Watched(labels)
        pilot = Pilot(edges_for(self.bins, None))
        longest = step_length(ball, self.steps, self.scale)
        now = slope = inputs

        def log_odds(log_probabilities: Tensor, step: int) -> Tensor:
            nonlocal now
            now = watched.log_odds(log_probabilities)
            return now

        def move(gradient: Tensor, moved: Tensor, step: int) -> Tensor:
            nonlocal slope
            slope = gradient
            reach = Reach.of(ball, inputs, moved, now, gradient, (self.steps - step) * longest)
            return reach.towards(pilot(*reach.interval(), reach.confidence(), watched.correct), longest)

        def error(log_probabilities: Tensor) -> Tensor:
            z = watched(log_probabilities)
            return calibration_error(z, watched.correct, bin_edges(self.bins, z))

        found = ascend(target, inputs, ball, self.steps, move, log_odds, error if keep == "best" else None)
        if keep == "best" and self.steps == 1:
            # All confidences up or all down, whichever adds to the gap of the batch as a whole.
            way = (torch.sigmoid(now.detach()) - watched.correct).sum().sign()
            together = ball.seal(inputs, inputs + ball.step(way * slope, longest))
            with torch.no_grad():
                gains = error(target.log_probabilities(together)) > error(target.log_probabilities(found))
            found = together if bool(gains) else found
        signs = pilot.signs.to(inputs)
        return Found(found, lambda at: (signs * (watched.correct - watched(at))).mean())


class Pilot:
    """Asks the program where samples should go, and remembers the sign of the bin where each was sent last."""

    def __init__(self, edges: Floats) -> None:
        self._steering = Steering(edges)
        self._edges = edges
        self.signs = torch.empty(0)

    def __call__(self, low: Tensor, high: Tensor, now: Tensor, correct: Tensor) -> Tensor:
        """Confidences to go to, inside the intervals."""
        # One copy each way: a step waits for the device once.
        least, most, here, c = _to_numpy(low, high, now, correct)
        course = self._steering(least, most, c.astype(np.uint8))
        value, signs, aims = self._all_at(np.where(c > 0, least, most), c)
        if value < ENOUGH * course.value:
            signs, aims = course.signs[course.bins], self._inside(course, here).clip(least, most)
        self.signs = torch.as_tensor(signs)
        return torch.as_tensor(aims, device=low.device)

    def _all_at(self, ends: Floats, correct: Floats) -> tuple[float, NDArray[np.int8], Floats]:
        """Calibration error, signs of the samples' bins, and the confidences, all of them at the given ends."""
        bins = np.searchsorted(self._edges[1:-1], ends, side="right")
        gaps = np.bincount(bins, correct - ends, self._edges.size - 1)
        return float(np.abs(gaps).sum()) / ends.size, np.sign(gaps[bins]).astype(np.int8), ends

    def _inside(self, course: Course, here: Floats) -> Floats:
        start, stop = self._edges[course.bins], self._edges[course.bins + 1]
        width = stop - start
        margin = (SHORTFALL * np.abs(course.confidence - here)).clip(MARGIN * width, 0.5 * width)
        return course.confidence.clip(start + margin, stop - margin)


def _to_numpy(*columns: Tensor) -> list[Floats]:
    together: Floats = torch.stack([each.double() for each in columns]).cpu().numpy()
    return list(together)
