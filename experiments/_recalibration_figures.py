"""Figures of experiments/recalibration.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _recalibration_maps import (
    BINS,
    CHOSEN,
    CONSTANT,
    IDENTITY,
    certified,
    constant_map,
    fit_maps,
    measure,
    share_correct,
)

from certcal.calibrators import CertifiedIsotonic, CertifiedSamples
from certcal.worst_case import calibration_error

LEVELS = tuple(np.linspace(0, 1, 21).round(2))
_COLOURS = ("C0", "C1", "C2", "C3", "C4")


def _plots(rows: int, columns: int) -> tuple[Any, Any, Any]:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "certcal"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(rows, columns, figsize=(4.4 * columns, 3.6 * rows), squeeze=False, layout="constrained")
    return plt, figure, axes


def _save(plt: Any, figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _legend(figure: Any, axis: Any, columns: int) -> None:
    """One for all panels, below them."""
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=columns, fontsize=7)


def fronts(panels: Mapping[str, Mapping[str, CertifiedSamples]], path: Path) -> None:
    """Clean against certified Brier score on held-out samples: per model the front of maps, and as it is."""
    plt, figure, axes = _plots((len(panels) + 1) // 2, 2)
    for axis, (title, models) in zip(axes.flat, panels.items(), strict=False):
        for colour, (model, samples) in zip(_COLOURS, models.items(), strict=False):
            fit, rest = samples.split(0.5, 0)
            constant = share_correct(fit)
            points = [measure(rest, CertifiedIsotonic(level).fit_samples(fit), constant) for level in LEVELS]
            x, y = ([100 * getattr(row, name) for row in points] for name in ("clean_brier", "brier"))
            axis.plot(x, y, "-", color=colour, linewidth=1, label=f"{model}, certified isotonic")
            marked = [LEVELS.index(level) for level in (0.0, 0.5, 1.0)]
            axis.plot([x[k] for k in marked], [y[k] for k in marked], ".", color=colour)
            row = measure(rest, None, constant)
            axis.plot(100 * row.clean_brier, 100 * row.brier, "s", color=colour, label=f"{model}, {IDENTITY}")
            flat = measure(rest, constant_map(constant), constant)
            axis.plot(100 * flat.clean_brier, 100 * flat.brier, "x", color=colour, label=f"{model}, {CONSTANT}")
        axis.set(title=title, xlabel="clean Brier score, %", ylabel="certified Brier score, %")
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    _legend(figure, axes[0][0], 4)
    _save(plt, figure, path)


def before_and_after(
    panels: Mapping[str, tuple[str, Mapping[str, tuple[CertifiedSamples, CertifiedSamples]]]], path: Path
) -> None:
    """Per panel: maps of its first model, and certified errors over radii of all.

    Each model has its samples at the radius of the fit, and the same samples at many radii. Each panel names the
    radius.
    """
    plt, figure, axes = _plots(len(panels), 2)
    for (left, right), (title, (radius, models)) in zip(axes, panels.items(), strict=True):
        grid = np.linspace(0, 1, 1001)
        first, _ = next(iter(models.values()))
        fitted = fit_maps(first.split(0.5, 0)[0], ["temperature", "isotonic", CHOSEN, certified(1)], repeats=1)
        left.plot(grid, grid, color="0.7", linewidth=0.8)
        for name, each in fitted.items():
            assert each.calibrator is not None
            left.plot(grid, each.calibrator.transform(grid), label=name)
        left.set(title=f"{title}: maps fitted at R = {radius}", xlabel="confidence", ylabel="confidence after the map")
        left.legend(fontsize=7)
        for colour, (model, (one, many)) in zip(_COLOURS, models.items(), strict=False):
            calibrator = fit_maps(one.split(0.5, 0)[0], [CHOSEN], repeats=1)[CHOSEN].calibrator
            rest = many.split(0.5, 0)[1]
            for name, style, samples in ((IDENTITY, "--", rest), (CHOSEN, "-", rest.mapped(calibrator))):
                errors = [
                    100 * calibration_error(low, high, samples.correct, BINS, certified=kept).value
                    for low, high, kept in zip(samples.lower.T, samples.upper.T, samples.certified.T, strict=True)
                ]
                radii = [float(text) for text in samples.radii]
                right.plot(radii, errors, style, color=colour, label=f"{model}, {name}")
        right.set(title=title, xlabel="R", ylabel="exact certified calibration error, %", ylim=(0, None))
        right.legend(fontsize=7)
    _save(plt, figure, path)


def profits(panels: Mapping[str, Mapping[str, Sequence[tuple[float, float, float]]]], path: Path) -> None:
    """Per panel and map: radius, profit at least, profit under an attack."""
    plt, figure, axes = _plots(1, len(panels))
    for axis, (title, lines) in zip(axes[0], panels.items(), strict=True):
        for colour, (name, points) in zip(_COLOURS, lines.items(), strict=False):
            radii, least, attacked = zip(*points, strict=True)
            axis.plot(radii, least, "-", color=colour, label=f"{name}: at least, whoever shifts")
            axis.plot(radii, attacked, ".", color=colour, label=f"{name}: under an attack")
        axis.axhline(0, color="0.7", linewidth=0.8)
        axis.set(title=title, xlabel="R, in standard deviations", ylabel="profit per 100 applicants")
    _legend(figure, axes[0][0], 3)
    _save(plt, figure, path)
