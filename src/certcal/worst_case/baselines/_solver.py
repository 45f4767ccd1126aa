"""The loop around the ADMM updates: many runs at once, each with its best feasible point so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certcal.worst_case.baselines._history import Recorder
from certcal.worst_case.baselines._placement import Placement
from certcal.worst_case.baselines._problem import Problem
from certcal.worst_case.baselines.admm_steps import Program, advance, begin, project

if TYPE_CHECKING:
    from certcal.worst_case.baselines._admm import AdmmSettings

Found = tuple[NDArray[np.float64], NDArray[np.int64], dict[str, NDArray[Any]]]


def build_program(problem: Problem, settings: tuple[AdmmSettings, ...], place: Placement) -> Program:
    """The fixed part of the steps."""

    def per_run(values: list[float]) -> Tensor:
        return place(values).view(-1, 1, 1)

    lower, upper = problem.bounds()
    return Program(
        lower=place(lower),
        upper=place(upper),
        blocked=place(problem.blocked),
        correct=place(problem.correct),
        assignment_rate=per_run([each.assignment_rate for each in settings]),
        confidence_rate=per_run([each.confidence_rate for each in settings]),
        gradient_clip=per_run([each.gradient_clip for each in settings]),
        rho_growth=per_run([each.rho_growth for each in settings]),
        rho_ceiling=per_run([each.rho_ceiling for each in settings]),
    )


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
    start = place([problem.start(each.initial, seed) for each in settings])
    with torch.no_grad():
        state = begin(program, start, place([each.rho for each in settings]).view(-1, 1, 1))
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
    return confidence.double().cpu().numpy(), bin_of.cpu().numpy(), history
