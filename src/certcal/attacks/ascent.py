"""Projected gradient ascent, for all adversaries."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from certcal.attacks._target import Target
from certcal.attacks.ball import Ball

Objective = Callable[[Tensor, int], Tensor]
Score = Callable[[Tensor], Tensor]
Move = Callable[[Tensor, Tensor, int], Tensor]


def ascend(
    target: Target,
    clean: Tensor,
    ball: Ball,
    steps: int,
    length: float | Move,
    objective: Objective,
    score: Score | None = None,
) -> Tensor:
    """Inputs after some steps of one length along the normalised gradient, each projected into the ball."""
    moved = clean
    best, best_score = clean, None
    for step in range(steps):
        at = moved.detach().requires_grad_(True)
        log_probabilities = target.log_probabilities(at)
        if score is not None:
            best, best_score = _better(best, best_score, moved, score(log_probabilities.detach()))
        (gradient,) = torch.autograd.grad(objective(log_probabilities, step).sum(), at)
        ahead = moved + (length(gradient, moved, step) if callable(length) else ball.step(gradient, length))
        # Points that are judged are judged as they would be handed over.
        moved = ball.project(clean, ahead) if score is None else ball.seal(clean, ahead)
    if score is None:
        return ball.seal(clean, moved)
    with torch.no_grad():
        best, _ = _better(best, best_score, moved, score(target.log_probabilities(moved)))
    return best


def _better(best: Tensor, best_score: Tensor | None, moved: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    if best_score is None:
        return moved, score
    gains = score > best_score
    return torch.where(gains.reshape(-1, *(1,) * (moved.ndim - 1)), moved, best), torch.where(gains, score, best_score)
