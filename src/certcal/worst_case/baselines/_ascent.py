"""Ascent on the differentiable calibration error for a batch of starts, in torch: Emde et al. (2024), appendix M."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certcal.worst_case.baselines._placement import Placement
from certcal.worst_case.baselines._problem import Problem

Floats = NDArray[np.float64]


def soft_bins(confidence: Tensor, cuts: Tensor, temperature: float) -> Tensor:
    """S of eq. (34) as (runs, M, N): softmax of (w z + b)/τ with w = 1 … M and b_i = -(β_1 + … + β_{i-1})."""
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
    chosen = torch.bucketize(confidence, cuts, right=closed == "left")
    gaps = confidence.new_zeros((confidence.shape[0], cuts.numel() + 1))
    gaps.scatter_add_(1, chosen, correct - confidence)
    return gaps.abs_().sum(1) / confidence.shape[1]


def ascend(
    problem: Problem, start: Floats, schedule: Floats, rate: float, track: bool, device: str, precision: str
) -> tuple[Floats, dict[str, NDArray[Any]]]:
    """Confidences (runs, N) with the largest calibration error seen on the way, and the curves if tracked."""
    place = Placement(device, precision)
    lower, upper, correct = place(problem.lower), place(problem.upper), place(problem.correct)
    cuts, z = place(problem.edges[1:-1]), place(start)
    kept, best = z, hard_error(z, correct, cuts, problem.closed)
    curves = {name: z.new_zeros((z.shape[0], schedule.size)) for name in ("relaxed", "projected")}
    for step, temperature in enumerate(schedule.tolist()):
        z.requires_grad_(True)
        relaxed = soft_error(z, correct, cuts, temperature)
        (gradient,) = torch.autograd.grad(relaxed.sum(), z)
        z = torch.add(z.detach(), gradient, alpha=rate).clamp_(lower, upper)
        value = hard_error(z, correct, cuts, problem.closed)
        better = value > best
        best = torch.where(better, value, best)
        kept = torch.where(better.unsqueeze(1), z, kept)
        if track:
            curves["relaxed"][:, step] = relaxed.detach() / z.shape[1]
            curves["projected"][:, step] = value
    history: dict[str, NDArray[Any]] = {name: curve.cpu().numpy() for name, curve in curves.items()} if track else {}
    return kept.detach().double().cpu().numpy(), history
