"""Diagnostics of ADMM, step by step: what Figures 9, 10 and 11 of Emde et al. (2024) show."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certcal.worst_case.baselines.admm_steps import Program, State, bin_gaps

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


class Recorder:
    """Collects the diagnostics on the device and hands them over once."""

    def __init__(self, state: State, steps: int) -> None:
        runs = state.a.shape[0]
        self._curves = {name: state.a.new_zeros((runs, steps)) for name in NAMES}
        self._snapshot_steps = sorted({0, steps // 6, steps})
        self._snapshots = [state.a[:, :, :SHOWN].clone()]

    def record(self, program: Program, state: State, step: int, projected: Tensor) -> None:
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
