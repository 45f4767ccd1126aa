"""How ADMM converges: figures 9 to 11 of Emde et al. (2024). Each returns a chart; ``chart.figure()`` draws it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certcal._base.checks import InputError
from certcal.lab.baselines._problem import Baseline
from certcal.report.charts import Axis, Bars, Chart, Line, Mark, Panel, Segments, covering, unit
from certcal.worst_case import WorstCase

# Parts of the Lagrangian below it and the two errors, and constraints.
_TERMS = {
    "box_term": "box constraint",
    "sphere_term": "sphere constraint",
    "confidence_term": "bounded confidence",
    "unique_term": "unique assignment",
    "valid_term": "valid assignment",
}
_CONSTRAINTS = {
    "bounded": "bounded confidence",
    "binary": "binary assignment",
    "unique": "unique assignment",
    "valid": "valid assignment",
}


def admm_convergence(baseline: Baseline, *, run: int | None = None, exact: WorstCase | None = None) -> Chart:
    """The parts of ADMM's Lagrangian over the steps, with the relaxed and the projected calibration error.

    Parameters
    ----------
    baseline
        From ``certcal.lab.baselines.admm(..., track=True)``.
    run
        Which of its runs; the one with the largest value by default.
    exact
        The worst case from ``certcal.worst_case.calibration_error``: a line that no step can cross.

    Examples
    --------
    >>> from certcal.lab.baselines import Baseline
    >>> curves = ["lagrangian", "relaxed", "projected", *_TERMS]
    >>> baseline = Baseline("ADMM", 0.5, np.array([0.5]), (0.5,), {name: np.zeros((1, 3)) for name in curves})
    >>> len(admm_convergence(baseline).panels)
    7
    """
    history = _history_of_run(baseline, run, ("lagrangian", "relaxed", "projected", *_TERMS))
    steps = _steps_axis(len(history["lagrangian"]))
    relaxed = history["relaxed"]
    finite = relaxed[np.isfinite(relaxed)]
    largest = float(finite.max()) if finite.size else 0.0
    heights = [*relaxed.tolist(), *history["projected"].tolist(), *([] if exact is None else [exact.value])]
    errors: list[Mark] = [
        Line(_step_numbers(relaxed), _nan_if_infinite(np.minimum(relaxed, 1.0)), 1, "relaxed", markers=False),
        Line(
            _step_numbers(relaxed),
            _nan_if_infinite(history["projected"]),
            0,
            "projected: feasible at every step",
            markers=False,
        ),
    ]
    if exact is not None:
        errors.append(Segments([(steps.low, exact.value, steps.high, exact.value)], "ideal", "exact worst case"))
    panels = [
        _panel(steps, history["lagrangian"], "Lagrangian"),
        Panel(steps, covering(heights, "calibration error", most=1.0), errors, 160),
        *(_panel(steps, history[name], label) for name, label in _TERMS.items()),
    ]
    # Errors of feasible points are at most 1; the relaxed one may be far above, and would press the others flat.
    cut = f" The relaxed error goes up to {largest:.3g} and is cut at 1." if largest > 1 else ""
    return Chart("Convergence of ADMM", _finiteness_sentence(history), panels, f"Terms of the Lagrangian by step.{cut}")


def admm_constraints(baseline: Baseline, *, run: int | None = None) -> Chart:
    """How far ADMM's steps are from each constraint, in the 1-norm and the maximum norm.

    Parameters
    ----------
    baseline, run
        As for :func:`admm_convergence`.

    Examples
    --------
    >>> from certcal.lab.baselines import Baseline
    >>> curves = [f"{name}_distance_{norm}" for name in _CONSTRAINTS for norm in ("sum", "max")]
    >>> baseline = Baseline("ADMM", 0.5, np.array([0.5]), (0.5,), {name: np.zeros((1, 3)) for name in curves})
    >>> len(admm_constraints(baseline).panels)
    8
    """
    norms = {"sum": "1-norm", "max": "∞-norm"}
    wanted = {f"{name}_distance_{norm}": (name, norm) for name in _CONSTRAINTS for norm in norms}
    history = _history_of_run(baseline, run, tuple(wanted))
    steps = _steps_axis(len(next(iter(history.values()))))
    panels = [
        _panel(steps, history[key], f"{_CONSTRAINTS[name]}, {norms[norm]}", low=0.0)
        for key, (name, norm) in wanted.items()
    ]
    met = [_CONSTRAINTS[name] for name in _CONSTRAINTS if not history[f"{name}_distance_sum"].any()]
    said = f"Met at every step: {', '.join(met)}." if met else "Distance from each constraint by step."
    return Chart("ADMM's distance from its constraints", _finiteness_sentence(history), panels, said)


def admm_assignments(baseline: Baseline, *, run: int | None = None) -> Chart:
    """ADMM's assignments of the first samples to the bins, before, during and after the steps.

    Every sample has one bar per bin; lines separate samples. At the end each sample should have one bar of height 1.

    Parameters
    ----------
    baseline, run
        As for :func:`admm_convergence`.

    Examples
    --------
    >>> from certcal.lab.baselines import Baseline
    >>> history = {"assignment": np.full((1, 2, 3, 4), 0.25), "assignment_step": np.array([0, 9])}
    >>> chart = admm_assignments(Baseline("ADMM", 0.5, np.array([0.5]), (0.5,), history))
    >>> [panel.title for panel in chart.panels]
    ['step 0', 'step 9']
    """
    history = _history_of_run(baseline, run, ("assignment",))
    snapshots = history["assignment"]
    steps = baseline.history["assignment_step"].tolist()
    _, samples, bins = snapshots.shape
    marked = tuple(((sample + 0.5) * bins, str(sample)) for sample in range(samples))
    across = Axis(0.0, float(samples * bins), marked, f"assignment to each of the {bins} bins, sample by sample")
    edges = [(float(sample * bins), 0.0, float(sample * bins), 1.0) for sample in range(1, samples)]
    panels: list[Panel] = []
    for step, entries in zip(steps, snapshots, strict=True):
        heights = _nan_if_infinite(entries.reshape(-1))
        left = [place + 0.1 for place in range(len(heights))]
        marks: list[Mark] = [
            Segments(edges, "zero"),
            Bars(left, [place + 0.8 for place in left], [0.0] * len(left), heights, "accuracy"),
        ]
        panels.append(Panel(across, unit(""), marks, 90, f"step {step:,}"))
    said = "At the end each sample should have one bar of height 1."
    return Chart("ADMM's assignments", _finiteness_sentence(history), panels, said, size="wide")


def _history_of_run(baseline: Baseline, run: int | None, names: tuple[str, ...]) -> dict[str, Any]:
    missing = [name for name in names if name not in baseline.history]
    if missing:
        raise InputError(f"baseline has no {missing[0]!r} in its history; pass a result of admm(..., track=True)")
    chosen = int(np.argmax(baseline.runs)) if run is None else run
    if not 0 <= chosen < len(baseline.runs):
        raise InputError(f"run is {run}; choose one from 0 to {len(baseline.runs) - 1}")
    return {name: baseline.history[name][chosen] for name in names}


def _steps_axis(count: int) -> Axis:
    return covering([float(max(count, 2))], "step")


def _step_numbers(values: Any) -> list[float]:
    return [float(step) for step in range(1, len(values) + 1)]


def _nan_if_infinite(values: Any) -> list[float]:
    return np.where(np.isfinite(values), values, np.nan).tolist()


def _panel(steps: Axis, values: Any, label: str, low: float | None = None) -> Panel:
    heights = _nan_if_infinite(values)
    up = covering(heights, "", low=low)
    zero: list[Mark] = [Segments([(steps.low, 0.0, steps.high, 0.0)], "zero")] if up.low < 0 < up.high else []
    return Panel(steps, up, [*zero, Line(_step_numbers(values), heights, 0, markers=len(heights) == 1)], 80, label)


def _finiteness_sentence(history: Mapping[str, Any]) -> str:
    lost = not all(np.isfinite(values).all() for values in history.values())
    return "Some values stopped being finite." if lost else "All values stay finite."
