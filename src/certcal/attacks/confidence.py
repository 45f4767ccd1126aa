"""What the calibration adversaries look at: the confidence in the class that was predicted for the clean input."""

from __future__ import annotations

import math
import operator

import torch
from torch import Tensor

from certcal._checks import InputError, positive
from certcal.attacks.ball import LONGEST, Ball
from certcal.binning import edges_for


class Watched:
    """Confidences of a batch while it is attacked, with class and correctness held as they were for the clean inputs.

    The first log probabilities it is shown must be those of the clean inputs.

    Examples
    --------
    >>> watched = Watched(torch.tensor([1, 0]))
    >>> watched(torch.tensor([[0.25, 0.75], [0.25, 0.75]]).log())
    tensor([0.7500, 0.7500])
    >>> watched(torch.tensor([[0.5, 0.5], [0.75, 0.25]]).log()), watched.correct
    (tensor([0.5000, 0.2500]), tensor([1., 0.]))
    """

    def __init__(self, labels: Tensor) -> None:
        self._labels = labels
        self._chosen: Tensor | None = None
        self.correct = torch.empty(0)

    def __call__(self, log_probabilities: Tensor) -> Tensor:
        """Confidence (n,) in the class predicted for the clean inputs."""
        logarithm = log_probabilities.gather(1, self._column(log_probabilities)).squeeze(1)
        # The logarithm of an average can be above 0 by rounding; its gradient is as good there as elsewhere.
        return (logarithm - logarithm.detach().clamp_min(0)).exp()

    def log_odds(self, log_probabilities: Tensor) -> Tensor:
        """Log odds (n,) of that class against all others, which have a gradient where the confidence rounds to 1."""
        column = self._column(log_probabilities)
        others = log_probabilities.scatter(1, column, -torch.inf).logsumexp(1)
        return log_probabilities.gather(1, column).squeeze(1) - others

    def _column(self, log_probabilities: Tensor) -> Tensor:
        if self._chosen is None:
            self._chosen = log_probabilities.detach().argmax(1, keepdim=True)
            right = self._chosen.squeeze(1) == self._labels
            self.correct = right.to(log_probabilities.dtype)
        return self._chosen


def bin_edges(bins: int, like: Tensor) -> Tensor:
    """Edges of equal-width bins in the type of the confidences."""
    return torch.as_tensor(edges_for(bins, None), dtype=like.dtype, device=like.device)


def locate(confidence: Tensor, edges: Tensor) -> Tensor:
    """Bin of every confidence; bins are closed on the left, the last one on both sides."""
    return torch.bucketize(confidence.detach(), edges[1:-1], right=True)


def calibration_error(confidence: Tensor, correct: Tensor, edges: Tensor) -> Tensor:
    """The calibration error of a batch, (1/N) Σ_m |Σ_{n in m} (c_n - z_n)|.

    Examples
    --------
    >>> z = torch.tensor([0.1, 0.9])
    >>> calibration_error(z, torch.tensor([1.0, 0.0]), bin_edges(3, z))
    tensor(0.9000)
    """
    gaps = confidence.new_zeros(edges.shape[0] - 1)
    return gaps.index_add(0, locate(confidence, edges), correct - confidence).abs().sum() / confidence.shape[0]


def reachable(confidence: Tensor, shift: float) -> tuple[Tensor, Tensor]:
    """Ends of what a smoothed confidence can become, [Φ(Φ⁻¹(z) - shift), Φ(Φ⁻¹(z) + shift)], shift = distance / σ.

    That is the standard certificate (Kumar et al. 2020) with the confidence taken as it was estimated, from few draws
    and without abstaining: it steers an attack and certifies nothing. Estimates of exactly 0 or 1, which no smoothed
    classifier has, count as 2⁻²⁴ less extreme.
    """
    at = math.sqrt(2) * torch.erfinv(2 * confidence.detach().double().clamp(2.0**-24, 1 - 2.0**-24) - 1)
    low, high = (0.5 * torch.erfc((way * shift - at) / math.sqrt(2)) for way in (1, -1))
    return low, high


def check_settings(steps: object, scale: float) -> None:
    """A whole number of steps, at least one, and a positive scale."""
    try:
        count = operator.index(steps)  # pyright: ignore[reportArgumentType]
    except TypeError:
        count = 0
    if count < 1:
        raise InputError(f"steps is {steps!r}; pass a whole number of at least 1")
    positive(scale, "scale")


def step_length(ball: Ball, steps: int, scale: float) -> float:
    """2 · scale · ε / steps: twice the radius in all, as Salman et al. (2019), times the factor v of Emde et al."""
    return min(2 * scale * ball.epsilon / steps, LONGEST)
