"""ADMM on the calibration program, for a batch of runs: Emde et al. (2024), appendix E.3-E.4, in torch.

Tensors are (runs, M, N) as in :mod:`certcal.attacks.admm`; E(z)ᵀa is a sum over samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certcal._base.checks import InputError, choice
from certcal.attacks.admm import (
    AdmmProgram,
    AdmmState,
    ascend_duals,
    residuals,
    update_assignment,
    update_binary_variables,
)
from certcal.binning import assign
from certcal.lab.baselines._problem import Problem
from certcal.models.devices import has_doubles, resolve

if TYPE_CHECKING:
    from certcal.lab.baselines._admm import AdmmSettings

Found = tuple[NDArray[np.float64], NDArray[np.int64], dict[str, NDArray[Any]]]

PRECISIONS = {"float64": torch.float64, "float32": torch.float32}

# Figure 9: the terms λᵀr + ρ/2 ‖r‖² of the Lagrangian (27), in the order of its constraints.
TERMS = ("box_term", "sphere_term", "unique_term", "valid_term", "confidence_term")
# Figure 10: distances to the constraint sets in the 1-norm and the maximum norm.
DISTANCES = ("bounded", "binary", "unique", "valid")
NAMES = (
    *("lagrangian", "relaxed", "projected"),
    *TERMS,
    *(f"{name}_distance_{norm}" for name in DISTANCES for norm in ("sum", "max")),
)
# Figure 11: the assignments of the first ten samples.
SHOWN = 10


class Placement:
    """Puts arrays on the device in the wanted precision."""

    def __init__(self, device: str, precision: str) -> None:
        self.dtype = PRECISIONS[choice(precision, tuple(PRECISIONS), "precision")]
        self.device = resolve(device)
        if self.dtype == torch.float64 and not has_doubles(self.device):
            if device != "auto":
                remedy = "pass precision='float32', or the device 'cpu'"
                raise InputError(f"{device!r} does not compute in float64", argument="device", remedy=remedy)
            self.device = "cpu"

    def __call__(self, values: Any) -> Tensor:
        """A tensor of these numbers."""
        return torch.as_tensor(np.asarray(values), dtype=self.dtype).to(self.device)


def begin(program: AdmmProgram, start: Tensor, rho: Tensor, assignment: Tensor | None = None) -> AdmmState:
    """Step 0 from confidences (runs, N): a = 1/M (appendix G.2) or as given, q₁ = q₂ = a, g = z, λ = 0 (algorithm 2).

    z starts as the given confidence moved inside every accessible bin, and as 0 in the others (§3.3).
    """
    z = start.unsqueeze(1).clamp(program.lower, program.upper)
    a = torch.full_like(z, 1 / z.shape[1]) if assignment is None else assignment
    residual = residuals(program, a, z, z, a, a)
    first, second, third, fourth, fifth = (torch.zeros_like(each) for each in residual)
    return AdmmState(a, z, z, a, a, residual, (first, second, third, fourth, fifth), rho)


def bin_gaps(program: AdmmProgram, a: Tensor, z: Tensor) -> Tensor:
    """E(z)ᵀa, (runs, M, 1)."""
    return ((program.correct - z) * a).sum(2, keepdim=True)


def advance(program: AdmmProgram, state: AdmmState) -> None:
    """One pass through algorithm 1, in its order, then the schedule of ρ."""
    update_assignment(program, state)
    update_confidence(program, state)
    for done in range(1, max(program.updates)):
        a, z = state.a, state.z
        more = torch.tensor([each > done for each in program.updates], device=a.device).view(-1, 1, 1)
        state.residual = residuals(program, a, z, state.g, state.q1, state.q2)
        update_assignment(program, state)
        state.a = torch.where(more, state.a, a)
        update_confidence(program, state)
        state.z = torch.where(more, state.z, z)
    update_split_variables(program, state)
    ascend_duals(program, state)


def update_confidence(program: AdmmProgram, state: AdmmState) -> None:
    """Gradient step on z, at the new a."""
    sign = bin_gaps(program, state.a, state.z).sign_()
    gradient = torch.addcmul(state.dual[4], sign, state.a).addcmul_(state.rho, state.residual[4])
    state.z = torch.addcmul(state.z, program.confidence_rate, gradient, value=-1)


def update_split_variables(program: AdmmProgram, state: AdmmState) -> None:
    """Closed forms for g, q₁ and q₂: eqs. (30), (28) and (29)."""
    state.g = torch.addcdiv(state.z, state.dual[4], state.rho).clamp_(program.lower, program.upper)
    update_binary_variables(state)


def project(program: AdmmProgram, state: AdmmState) -> tuple[Tensor, Tensor, Tensor]:
    """A feasible copy: its calibration error (runs,), and bin and confidence of every sample (runs, N).

    Among the accessible bins the first with the largest entry of a, and z of that bin moved inside its bounds: the
    nearest point to (a, z) that meets all constraints (appendix G.1).
    """
    bins, n = program.lower.shape
    # The second term puts blocked bins below all others. (argmax along a strided axis is slow; the clamp at the end is
    # for a run that has overflowed, whose value is not a number and never the best.)
    ranked = state.a - program.blocked * (1 + 2 * state.a.abs().amax((1, 2), keepdim=True))
    order = torch.arange(bins, 0, -1, device=ranked.device, dtype=ranked.dtype).unsqueeze(1)
    first = torch.where(ranked == ranked.amax(1, keepdim=True), order, 0).amax(1, keepdim=True)
    chosen = (bins - first.long()).clamp_max_(bins - 1)
    low, high, z = (each.expand_as(ranked).gather(1, chosen) for each in (program.lower, program.upper, state.z))
    confidence = z.clamp_(low, high).squeeze(1)
    gaps = confidence.new_zeros(ranked.shape[:2])
    gaps.scatter_add_(1, chosen.squeeze(1), program.correct - confidence)
    return gaps.abs_().sum(1) / n, chosen.squeeze(1), confidence


class Recorder:
    """Collects the diagnostics on the device and hands them over once."""

    def __init__(self, state: AdmmState, steps: int) -> None:
        runs = state.a.shape[0]
        self._curves = {name: state.a.new_zeros((runs, steps)) for name in NAMES}
        self._snapshot_steps = sorted({0, steps // 6, steps})
        self._snapshots = [state.a[:, :, :SHOWN].clone()]

    def record(self, program: AdmmProgram, state: AdmmState, step: int, projected: Tensor) -> None:
        """Note the state at the end of step 1, 2, …."""
        n = state.a.shape[2]
        relaxed = bin_gaps(program, state.a, state.z).abs_().sum((1, 2))
        terms = [
            (dual * residual).sum((1, 2)) + 0.5 * state.rho.view(-1) * residual.square().sum((1, 2))
            for dual, residual in zip(state.dual, state.residual, strict=True)
        ]
        _, _, unique, valid, _ = state.residual
        apart = (
            (state.z - state.z.clamp(program.lower, program.upper)).abs_(),
            torch.minimum(state.a.abs(), (state.a - 1).abs_()),
            unique.abs(),
            valid.abs(),
        )
        distances = [each for away in apart for each in (away.sum((1, 2)), away.amax((1, 2)))]
        lagrangian = torch.stack(terms).sum(0) - relaxed
        values = (lagrangian, relaxed / n, projected, *terms, *distances)
        for curve, value in zip(self._curves.values(), values, strict=True):
            curve[:, step - 1] = value
        if step in self._snapshot_steps:
            self._snapshots.append(state.a[:, :, :SHOWN].clone())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Curves (runs, steps), and assignments (runs, snapshots, samples, bins) with the steps they were taken at."""
        curves: dict[str, NDArray[Any]] = {name: curve.cpu().numpy() for name, curve in self._curves.items()}
        curves["assignment"] = torch.stack(self._snapshots, 1).transpose(2, 3).cpu().numpy()
        curves["assignment_step"] = np.array(self._snapshot_steps)
        return curves


def build_program(problem: Problem, settings: tuple[AdmmSettings, ...], place: Placement) -> AdmmProgram:
    """The fixed part of the steps."""

    def per_run(values: list[float]) -> Tensor:
        return place(values).view(-1, 1, 1)

    lower, upper = problem.bounds()
    return AdmmProgram(
        lower=place(lower),
        upper=place(upper),
        blocked=place(problem.blocked),
        correct=place(problem.correct),
        assignment_rate=per_run([each.assignment_rate for each in settings]),
        confidence_rate=per_run([each.confidence_rate for each in settings]),
        gradient_clip=per_run([each.gradient_clip for each in settings]),
        rho_growth=per_run([each.rho_growth for each in settings]),
        rho_ceiling=per_run([each.rho_ceiling for each in settings]),
        updates=tuple(each.updates for each in settings),
    )


def first_assignment(problem: Problem, settings: tuple[AdmmSettings, ...], start: NDArray[Any]) -> NDArray[Any]:
    """a⁰ of every run, (runs, M, N)."""
    bins = problem.edges.size - 1
    out = np.empty((len(settings), bins, start.shape[1]))
    for each, confidence, a in zip(settings, start, out, strict=True):
        a[:] = {"zeros": 0.0, "ones": 1.0, "valid": 0.0}.get(each.assignment, 1 / bins)
        if each.assignment == "valid":
            a[assign(confidence, problem.edges, problem.closed), np.arange(confidence.size)] = 1.0
    return out


def solve(
    problem: Problem,
    settings: tuple[AdmmSettings, ...],
    steps: int,
    seed: int,
    track: bool,
    device: str,
    precision: str,
) -> Found:
    """Confidences and bins (runs, N) of every run's best projected step, and the diagnostics if tracked."""
    place = Placement(device, precision)
    program = build_program(problem, settings, place)
    begun = np.array([problem.start(each.initial, seed) for each in settings])
    start = place(begun)
    with torch.no_grad():
        a = place(first_assignment(problem, settings, begun))
        state = begin(program, start, place([each.rho for each in settings]).view(-1, 1, 1), a)
        recorder = Recorder(state, steps) if track else None
        best = torch.full_like(start[:, 0], -1)
        confidence, bin_of = torch.zeros_like(start), torch.zeros_like(start, dtype=torch.int64)
        for step in range(1, steps + 1):
            advance(program, state)
            value, bin_now, confidence_now = project(program, state)
            # Chosen on the device: no step waits for the host.
            better = value > best
            best = torch.where(better, value, best)
            confidence = torch.where(better.unsqueeze(1), confidence_now, confidence)
            bin_of = torch.where(better.unsqueeze(1), bin_now, bin_of)
            if recorder is not None:
                recorder.record(program, state, step, value)
    history = {} if recorder is None else recorder.arrays()
    return confidence.cpu().double().numpy(), bin_of.cpu().numpy(), history
