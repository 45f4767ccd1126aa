"""Gradient ascent on the differentiable calibration error: a comparison for the exact solver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, choice, positive
from certcal.lab.baselines._problem import (
    STARTS,
    Baseline,
    Problem,
    check_problem,
    check_steps,
    plain_error,
    require_torch,
)

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]


def dece_ascent(
    lower: Any,
    upper: Any,
    correct: Any,
    bins: int = 15,
    *,
    edges: Any = None,
    closed: str = "left",
    confidence: Any = None,
    initial: str | Sequence[str] = ("clean", "brier"),
    steps: int = 1000,
    rate: float = 0.01,
    temperature: tuple[float, float] = (1e-2, 1e-6),
    cooling: str = "geometric",
    momentum: float = 0.0,
    schedule: str = "constant",
    seed: int = 0,
    track: bool = False,
    device: str = "auto",
    precision: str = "float64",
) -> Baseline:
    """Approximate the worst-case calibration error by ascent on the dECE (Emde et al. 2024, appendix M).

    The hard bins become softmax weights at a temperature that falls geometrically (Bohdal et al. 2023, with the
    correctness fixed); every step follows the gradient and is projected back into the intervals. The best calibration
    error with hard bins over all steps and starts is kept. It is a *lower* bound of the worst case, not a certificate.

    Appendix M.2 gives the temperatures and finds that all but the start matters little, without printing the rest; what
    it tried can be set here. By default steps of constant rate, no momentum, along the gradient of N · dECE (so that
    the rate does not depend on N).

    Parameters
    ----------
    lower, upper
        Interval of each sample's confidence, in [0, 1].
    correct
        Whether each prediction is correct, 0 or 1.
    bins, edges, closed
        As for :func:`certcal.metrics.ece`.
    confidence
        Clean confidences, for runs that start from them; None takes the middle of each interval.
    initial
        Start or starts: "clean", "brier", "uniform", "gaussian". All advance together as one batch.
    steps, rate
        Number and length of the steps.
    temperature
        First and last temperature of the softmax.
    cooling
        How it falls from one to the other: "geometric" or "linear".
    momentum
        Share of the step before that is added to each, from 0 to below 1.
    schedule
        How the rate falls: "constant", "cosine" (annealed to 0), or "plateau" (to a tenth in a run whose calibration
        error has not grown for ten steps).
    seed
        For random starts.
    track
        Whether to keep the curves "relaxed" (dECE before each step) and "projected" (calibration error after it), of
        shape (runs, steps), in ``history``.
    device, precision
        Where torch computes (as for :func:`certcal.models.load`), and in "float64" or "float32"; "auto" is a device
        that has the precision. The reported value is always that of float64 confidences.

    Returns
    -------
    Baseline
        ``value``, ``confidence``, ``runs`` and ``history``.

    Examples
    --------
    >>> result = dece_ascent([0.1, 0.5], [0.6, 0.9], [1, 0], bins=3, initial="clean", steps=100)
    >>> round(result.value, 12)
    0.9
    """
    problem = check_problem(lower, upper, correct, bins, edges, closed, confidence)
    starts = (initial,) if isinstance(initial, str) else tuple(initial)
    if not starts:
        raise InputError("initial is empty; pass at least one start, such as 'brier'")
    begin = np.stack([problem.start(choice(each, STARTS, "initial"), seed) for each in starts])
    count, length = check_steps(steps), positive(rate, "rate")
    warm, cold = (positive(each, "temperature") for each in temperature)
    require_torch("dece_ascent")
    spaced = np.geomspace if choice(cooling, ("geometric", "linear"), "cooling") == "geometric" else np.linspace
    if not 0 <= momentum < 1:
        raise InputError(f"momentum is {momentum!r}; pass a number from 0 to below 1")
    pace = _Pace(length, choice(schedule, SCHEDULES, "schedule"), float(momentum), count)
    found, history = _ascend(problem, begin, spaced(warm, cold, count), pace, track, device, precision)
    confidences = [np.clip(z, problem.lower, problem.upper) for z in found]
    values = [plain_error(z, problem.correct, problem.edges, problem.closed) for z in confidences]
    best = int(np.argmax(values))
    used = {"bins": problem.edges.size - 1, "closed": problem.closed, "steps": count, "initial": starts[best]}
    used |= {"cooling": cooling, "momentum": momentum, "schedule": schedule}
    return Baseline("dECE", values[best], confidences[best], tuple(values), history, used)


def soft_bins(confidence: Tensor, cuts: Tensor, temperature: float) -> Tensor:
    """S of eq. (34) as (runs, M, N): softmax of (w z + b)/τ with w = 1 … M and b_i = -(β_1 + … + β_{i-1})."""
    import torch

    slope = torch.arange(1, cuts.numel() + 2, dtype=cuts.dtype, device=cuts.device)
    offset = torch.cat((cuts.new_zeros(1), -cuts.cumsum(0)))
    logits = torch.addcmul(offset.unsqueeze(1), slope.unsqueeze(1), confidence.unsqueeze(1))
    return (logits / temperature).softmax(1)


def soft_error(confidence: Tensor, correct: Tensor, cuts: Tensor, temperature: float) -> Tensor:
    """N times the dECE, eq. (34), of every run."""
    weights = soft_bins(confidence, cuts, temperature)
    return (weights * (correct - confidence).unsqueeze(1)).sum(2).abs().sum(1)


def hard_error(confidence: Tensor, correct: Tensor, cuts: Tensor, closed: str) -> Tensor:
    """The calibration error of every run."""
    import torch

    chosen = torch.bucketize(confidence, cuts, right=closed == "left")
    gaps = confidence.new_zeros((confidence.shape[0], cuts.numel() + 1))
    gaps.scatter_add_(1, chosen, correct - confidence)
    return gaps.abs_().sum(1) / confidence.shape[1]


SCHEDULES = ("constant", "cosine", "plateau")
# torch's defaults for plateaus: factor, patience, and the least relative gain that counts.
PLATEAU = (0.1, 10, 1e-4)


@dataclass(frozen=True)
class _Pace:
    """How long the steps are."""

    rate: float
    schedule: str
    momentum: float
    steps: int

    def __call__(self, step: int, fallen: Tensor) -> Tensor:
        """Rates (runs, 1) of a step, given by how much those on plateaus have fallen."""
        annealed = 0.5 * (1 + math.cos(math.pi * step / self.steps)) if self.schedule == "cosine" else 1.0
        return self.rate * annealed * fallen


def _ascend(
    problem: Problem, start: Floats, schedule: Floats, pace: _Pace, track: bool, device: str, precision: str
) -> tuple[Floats, dict[str, NDArray[Any]]]:
    """Confidences (runs, N) with the largest calibration error seen on the way, and the curves if tracked."""
    import torch

    from certcal.lab.baselines.admm_steps import Placement

    place = Placement(device, precision)
    lower, upper, correct = place(problem.lower), place(problem.upper), place(problem.correct)
    cuts, z = place(problem.edges[1:-1]), place(start)
    kept, best = z, hard_error(z, correct, cuts, problem.closed)
    speed, fallen, idle = torch.zeros_like(z), torch.ones_like(z[:, :1]), torch.zeros_like(z[:, 0])
    high, (factor, patience, gain) = best.clone(), PLATEAU
    curves = {name: z.new_zeros((z.shape[0], schedule.size)) for name in ("relaxed", "projected")}
    for step, temperature in enumerate(schedule.tolist()):
        z.requires_grad_(True)
        relaxed = soft_error(z, correct, cuts, temperature)
        (gradient,) = torch.autograd.grad(relaxed.sum(), z)
        speed = torch.add(gradient, speed, alpha=pace.momentum)
        z = torch.addcmul(z.detach(), pace(step, fallen), speed).clamp_(lower, upper)
        value = hard_error(z, correct, cuts, problem.closed)
        if pace.schedule == "plateau":
            grows = value > high * (1 + gain)
            high, idle = torch.where(grows, value, high), torch.where(grows, 0, idle + 1)
            fallen = torch.where((idle > patience).unsqueeze(1), fallen * factor, fallen)
            idle = torch.where(idle > patience, 0, idle)
        better = value > best
        best = torch.where(better, value, best)
        kept = torch.where(better.unsqueeze(1), z, kept)
        if track:
            curves["relaxed"][:, step] = relaxed.detach() / z.shape[1]
            curves["projected"][:, step] = value
    history: dict[str, NDArray[Any]] = {name: curve.cpu().numpy() for name, curve in curves.items()} if track else {}
    return kept.detach().cpu().double().numpy(), history
