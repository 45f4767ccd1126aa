"""How ADMM converges on the worst-case calibration program: Figures 9 to 11 of Emde et al. (2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.report.figures._canvas import BLUE, GREY, ORANGE, PURPLE, VERMILION, legend, new_figure, note, tidy

if TYPE_CHECKING:
    from certcal.worst_case import WorstCase
    from certcal.worst_case.baselines import Baseline

_RUNS_ON = "stopped being\nfinite"
# Rows of Figure 9 below the Lagrangian and the two errors, and panels of Figure 10.
_TERMS = {
    "box_term": "box\nconstraint",
    "sphere_term": "sphere\nconstraint",
    "confidence_term": "bounded\nconfidence",
    "unique_term": "unique\nassignment",
    "valid_term": "valid\nassignment",
}
_CONSTRAINTS = {
    "bounded": "bounded confidence",
    "binary": "binary assignment",
    "unique": "unique assignment",
    "valid": "valid assignment",
}


def admm_convergence(found: Baseline, *, run: int | None = None, exact: WorstCase | None = None) -> Any:
    """Draw the parts of the Lagrangian over the steps, with the relaxed and the projected calibration error.

    Parameters
    ----------
    found
        From ``certcal.worst_case.baselines.admm(..., track=True)``.
    run
        Which of its runs; the one with the largest value by default.
    exact
        The worst case from ``certcal.worst_case.calibration_error``, drawn as a line that no step can cross.

    Examples
    --------
    >>> from certcal.worst_case.baselines import Baseline
    >>> curves = ["lagrangian", "relaxed", "projected", *_TERMS]
    >>> found = Baseline("ADMM", 0.5, np.array([0.5]), (0.5,), {name: np.zeros((1, 3)) for name in curves})
    >>> len(admm_convergence(found).axes)
    7
    """
    curves = _curves(found, run, ("lagrangian", "relaxed", "projected", *_TERMS))
    figure = new_figure(figsize=(6.4, 9.2))
    axes = figure.subplots(2 + len(_TERMS), 1, sharex=True, height_ratios=(1, 2, *[1] * len(_TERMS)))
    _draw_curve(axes[0], curves["lagrangian"], "Lagrangian")
    handles = [
        _draw_curve(axes[1], curves["relaxed"], "calibration\nerror", color=ORANGE, linestyle=(0, (5, 2))),
        _draw_curve(axes[1], curves["projected"], "calibration\nerror", color=BLUE),
    ]
    names = ["relaxed", "projected: feasible at every step"]
    if exact is not None:
        handles.append(axes[1].axhline(exact.value, color="black", linewidth=1.4, linestyle=(0, (1, 1.5))))
        names.append("exact worst case")
    _cut_at_one(axes[1], curves["relaxed"])
    for ax, (name, label) in zip(axes[2:], _TERMS.items(), strict=True):
        ax.axhline(0, color=GREY, linewidth=0.6)
        _draw_curve(ax, curves[name], label)
    axes[-1].set_xlabel("step")
    for ax in axes:
        ax.label_outer()
    figure.align_ylabels(axes)
    legend(figure, handles, names, where="upper")
    return figure


def admm_constraints(found: Baseline, *, run: int | None = None) -> Any:
    """Draw how far the steps are from each constraint, in the 1-norm and the maximum norm.

    Parameters
    ----------
    found
        From ``certcal.worst_case.baselines.admm(..., track=True)``.
    run
        Which of its runs; the one with the largest value by default.

    Examples
    --------
    >>> from certcal.worst_case.baselines import Baseline
    >>> curves = [f"{name}_distance_{norm}" for name in _CONSTRAINTS for norm in ("sum", "max")]
    >>> found = Baseline("ADMM", 0.5, np.array([0.5]), (0.5,), {name: np.zeros((1, 3)) for name in curves})
    >>> len(admm_constraints(found).axes)
    8
    """
    norms = {"sum": ("1-norm", PURPLE), "max": ("∞-norm", VERMILION)}
    curves = _curves(found, run, tuple(f"{name}_distance_{norm}" for name in _CONSTRAINTS for norm in norms))
    figure = new_figure(figsize=(10.4, 4.4))
    axes = figure.subplots(2, len(_CONSTRAINTS), sharex=True)
    for row, (norm, (label, colour)) in zip(axes, norms.items(), strict=True):
        for ax, (name, title) in zip(row, _CONSTRAINTS.items(), strict=True):
            curve = curves[f"{name}_distance_{norm}"]
            _draw_curve(ax, curve, f"distance, {label}" if name == "bounded" else "", color=colour)
            ax.set_ylim(0, None if np.nanmax(np.where(np.isfinite(curve), curve, 0.0)) > 0 else 1)
            if not curve.any():
                note(ax, "met at every step")
            if norm == "sum":
                ax.set_title(title, fontsize="small")
    for ax in axes[-1]:
        ax.set_xlabel("step")
    for ax in axes[0]:
        ax.tick_params(labelbottom=False)
    return figure


def admm_assignments(found: Baseline, *, run: int | None = None) -> Any:
    """Draw the assignments of the first samples to the bins, before, during and after the steps.

    Every sample has one bar per bin; shading separates samples. At the end each sample should have one bar of height 1.

    Parameters
    ----------
    found
        From ``certcal.worst_case.baselines.admm(..., track=True)``.
    run
        Which of its runs; the one with the largest value by default.

    Examples
    --------
    >>> from certcal.worst_case.baselines import Baseline
    >>> history = {"assignment": np.full((1, 2, 3, 4), 0.25), "assignment_step": np.array([0, 9])}
    >>> figure = admm_assignments(Baseline("ADMM", 0.5, np.array([0.5]), (0.5,), history))
    >>> [ax.get_ylabel() for ax in figure.axes]
    ['step 0', 'step 9']
    """
    snapshots = _curves(found, run, ("assignment",))["assignment"]
    steps = found.history["assignment_step"].tolist()
    _, samples, bins = snapshots.shape
    figure = new_figure(figsize=(8.2, 1.4 * len(steps) + 0.7))
    axes = figure.subplots(len(steps), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for ax, step, entries in zip(axes, steps, snapshots, strict=True):
        for sample in range(0, samples, 2):
            ax.axvspan(sample * bins - 0.5, (sample + 1) * bins - 0.5, facecolor="0.93", linewidth=0, zorder=0)
        heights = np.where(np.isfinite(entries), entries, 0.0).reshape(-1)
        ax.vlines(np.arange(entries.size), 0, heights, color=BLUE, linewidth=min(8.0, 420 / entries.size))
        ax.axhline(1, color=GREY, linewidth=0.6, linestyle=(0, (4, 3)))
        ax.set_ylabel(f"step {step:,}")
        if not np.isfinite(entries).all():
            note(ax, _RUNS_ON)
        tidy(ax)
        ax.label_outer()
    axes[-1].set(xlim=(-0.5, samples * bins - 0.5), xticks=[(sample + 0.5) * bins - 0.5 for sample in range(samples)])
    axes[-1].set_xticklabels([f"sample {sample}" if sample == 0 else str(sample) for sample in range(samples)])
    axes[-1].set_xlabel(f"assignment to each of the {bins} bins, sample by sample")
    return figure


def _curves(found: Baseline, run: int | None, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Rows of the history that belong to one run."""
    missing = [name for name in names if name not in found.history]
    if missing:
        raise InputError(f"found has no {missing[0]!r} in its history; pass a result of admm(..., track=True)")
    chosen = int(np.argmax(found.runs)) if run is None else run
    if not 0 <= chosen < len(found.runs):
        raise InputError(f"run is {run}; choose one from 0 to {len(found.runs) - 1}")
    return {name: found.history[name][chosen] for name in names}


def _cut_at_one(ax: Any, relaxed: NDArray[Any]) -> None:
    """Errors of feasible points are at most 1; the relaxed one may be far above, and would press the others flat."""
    finite = relaxed[np.isfinite(relaxed)]
    if not finite.size or finite.max() <= 1:
        ax.set_ylim(0, None)
        return
    ax.set_ylim(0, 1.02)
    text = f"relaxed: up to {finite.max():.3g}"
    ax.text(0.99, 0.94, text, transform=ax.transAxes, ha="right", va="top", fontsize="small", color=GREY)


def _draw_curve(ax: Any, curve: NDArray[Any], label: str, **look: Any) -> Any:
    """One value per step; where it is not finite there is a gap, and a word about it."""
    steps = np.arange(1, curve.size + 1)
    shown = np.where(np.isfinite(curve), curve, np.nan)
    alone = {"marker": "o"} if curve.size == 1 else {}
    (line,) = ax.plot(steps, shown, linewidth=1.2, **{"color": BLUE, **alone, **look})
    ax.set_ylabel(label, fontsize="small")
    ax.set_xlim(0, max(curve.size, 2))
    tidy(ax)
    if not np.isfinite(curve).all():
        note(ax, _RUNS_ON, x=0.8)
    return line
