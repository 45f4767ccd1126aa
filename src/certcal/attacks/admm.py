"""ADMM's steps that an attack and the search of confidences share: Emde et al. (2024), appendices E.3, E.4 and G.2.

The printed vectors of length NM are tensors (runs, M, N) here, samples last. B, C and K never exist: Cᵀa is a sum over
bins, Kᵀa a sum over the blocked ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(eq=False)
class AdmmProgram:
    """What stays fixed during the steps. Numbers that differ between runs are (runs, 1, 1)."""

    lower: Tensor  # l', (M, N)
    upper: Tensor  # u', (M, N)
    blocked: Tensor  # k as 0 and 1, (M, N)
    correct: Tensor  # c, (N,)
    assignment_rate: Tensor  # α_a
    confidence_rate: Tensor  # α_z
    gradient_clip: Tensor
    rho_growth: Tensor
    rho_ceiling: Tensor
    updates: tuple[int, ...] = (1,)  # of a and z per step, by run


@dataclass(eq=False)
class AdmmState:
    """Primal variables, residuals of the five constraints, their dual variables λ₁ … λ₅, and the common ρ.

    The residuals are a - q₁, a - q₂, Cᵀa - 1, Kᵀa and z - g, the gradients of the Lagrangian with respect to the λs.
    """

    a: Tensor
    z: Tensor
    g: Tensor
    q1: Tensor
    q2: Tensor
    residual: tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
    dual: tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
    rho: Tensor


def residuals(
    program: AdmmProgram, a: Tensor, z: Tensor, g: Tensor, q1: Tensor, q2: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """How far each of the five constraints is from holding."""
    return a - q1, a - q2, a.sum(1, keepdim=True) - 1, (a * program.blocked).sum(1, keepdim=True), z - g


def update_assignment(program: AdmmProgram, state: AdmmState) -> None:
    """Gradient step on a, with both clips of appendix G.2."""
    (r1, r2, r3, r4, _), (dual1, dual2, dual3, dual4, _), rho = state.residual, state.dual, state.rho
    gap = program.correct - state.z
    sign = (gap * state.a).sum(2, keepdim=True).sign_()
    gradient = (dual1 + dual2).addcmul_(rho, r1 + r2)
    gradient += torch.addcmul(dual3, rho, r3)
    gradient.addcmul_(program.blocked, torch.addcmul(dual4, rho, r4))
    gradient.addcmul_(sign, gap, value=-1)
    # "Clipped in infinity norm" is read as the projection onto that ball, which is entry by entry. Where we tried the
    # other reading, to rescale the whole gradient, it found smaller values.
    gradient.clamp_(-program.gradient_clip, program.gradient_clip)
    # ‖a - 1/2‖∞ <= 1.2 ‖q₂ - 1/2‖∞, with the q₂ at hand: that of the step before.
    reach = 1.2 * (state.q2 - 0.5).abs_().amax((1, 2), keepdim=True)
    state.a = torch.addcmul(state.a, program.assignment_rate, gradient, value=-1).clamp_(0.5 - reach, 0.5 + reach)


def update_binary_variables(state: AdmmState) -> None:
    """Closed forms for q₁ and q₂, which together make a binary: eqs. (28) and (29)."""
    rho = state.rho
    state.q1 = torch.addcdiv(state.a, state.dual[0], rho).clamp_(0, 1)
    centred = torch.addcdiv(state.a, state.dual[1], rho).sub_(0.5)
    radius = 0.5 * centred[0].numel() ** 0.5
    # The centre of the sphere has no nearest point on it and stays where it is.
    length = centred.square().sum((1, 2), keepdim=True).sqrt_().clamp_min_(torch.finfo(centred.dtype).tiny)
    state.q2 = centred.mul_(radius / length).add_(0.5)


def ascend_duals(program: AdmmProgram, state: AdmmState) -> None:
    """One step of length ρ on every λ, then the schedule of ρ."""
    state.residual = residuals(program, state.a, state.z, state.g, state.q1, state.q2)
    for dual, residual in zip(state.dual, state.residual, strict=True):
        dual.addcmul_(state.rho, residual)
    state.rho = (state.rho * program.rho_growth).minimum(program.rho_ceiling)
