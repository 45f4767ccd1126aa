"""Tables and figure of experiments/fashion_mnist.py, from models that are trained and sampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from _certified import WITHIN, Column, Model, approximated, column, difference, evaluate, made
from _running import markdown

KINDS = ("tight", "cdf", "standard")
FAR = 0.5  # from this radius on differences are shown with intervals


def compared(
    jobs: Sequence[Any],
    titles: Mapping[str, str],
    radii: Sequence[float],
    confirmed: Sequence[str],
) -> tuple[str, Callable[[Path], None]]:
    """The page's tables, and a function that draws its figure."""
    models = [Model(titles[job.method], job.name, job.folder / "run") for job in jobs]
    methods = list(titles.values())
    fresh = [job for job in jobs if job.method in confirmed]
    others = [Model(titles[job.method], job.name, job.folder / "fresh") for job in fresh]
    far = [radius for radius in radii if radius >= FAR]
    columns = {kind: [column(models, radius, kind) for radius in radii] for kind in KINDS}
    parts = [
        _layout(columns, methods, radii),
        "The differences, on the same images:",
        _differences(jobs, models, far),
        "On as many other images, which no choice was made on:",
        _differences(fresh, others, far),
        "Which models the first table shows:",
        _chosen(columns["tight"], methods),
    ]
    return "\n\n".join(parts), lambda path: _figure(models, jobs, radii, path)


def _layout(columns: Mapping[str, Sequence[Column]], methods: Sequence[str], radii: Sequence[float]) -> str:
    """The rows of the paper's Table 7, in per cent, with the exact error first and ADMM's beside it."""
    tight = columns["tight"]
    head = ["metric, certificate", "method", *(f"R = {radius:g}" for radius in radii)]
    rows = [["certified accuracy", "", *(f"[{100 * (c.highest - WITHIN):.0f}, {100 * c.highest:.0f}]" for c in tight)]]
    for kind in KINDS:
        rows += [
            [f"exact calibration error, {kind}", m, *(_percent(c.by_error.get(m), "error") for c in columns[kind])]
            for m in methods
        ]
    rows += [["the same by ADMM (2 runs), tight", m, *(_admm(c, m, "tight") for c in tight)] for m in methods]
    rows += [
        ["certified Brier score, tight", m, *(_percent(c.by_brier.get(m), "brier") for c in tight)] for m in methods
    ]
    return markdown(head, rows)


def _percent(cell: Any, name: str) -> str:
    return "–" if cell is None else f"{100 * getattr(cell, name):.2f}"


def _admm(found: Column, method: str, kind: str) -> str:
    if found.radius < FAR:
        return ""
    cell = found.by_error.get(method)
    return "–" if cell is None else f"{100 * approximated(cell.model, found.radius, kind):.2f}"


def _differences(jobs: Sequence[Any], models: Sequence[Model], radii: Sequence[float]) -> str:
    """Every fine-tuned model against fine-tuned AT from the same baseline at the same learning rate.

    In points of exact error, with intervals over images, and of certified accuracy.
    """
    known = {
        (job.method, job.sigma, job.rate, job.attack_steps, job.attack_scale): model
        for job, model in zip(jobs, models, strict=True)
    }
    rows: list[list[str]] = []
    for (method, sigma, rate, *searched), model in known.items():
        other = known.get(("tuned-at", sigma, rate, *searched))
        if method in ("at", "tuned-at") or other is None:
            continue
        row = [model.method, f"{sigma:g}", f"{rate:g}"]
        for radius in radii:
            ours, theirs = evaluate(model, radius, "tight"), evaluate(other, radius, "tight")
            if ours is None or theirs is None:
                row += ["–", "–"]
                continue
            value, low, high = difference(model, other, radius, "tight")
            row.append(f"{100 * value:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]".replace("-", "−"))
            row.append(f"{100 * (ours.accuracy - theirs.accuracy):+.1f}".replace("-", "−"))
        rows.append(row)
    pairs = (text for radius in radii for text in (f"error at R = {radius:g}", "certified accuracy"))
    return markdown(["against fine-tuned AT", "σ", "rate", *pairs], rows)


def _chosen(columns: Sequence[Column], methods: Sequence[str]) -> str:
    """Which model each number is of, with its certified accuracy and its error over all images."""
    rows = [
        [
            f"{found.radius:g}",
            method,
            cell.model.name,
            f"{100 * cell.accuracy:.1f}",
            f"{100 * cell.error:.2f}",
            f"{100 * cell.error_all:.2f}",
        ]
        for found in columns
        if found.radius >= FAR
        for method in methods
        if (cell := found.by_error.get(method)) is not None
    ]
    return markdown(["R", "method", "model", "certified accuracy", "exact error", "over all images"], rows)


def _figure(models: Sequence[Model], jobs: Sequence[Any], radii: Sequence[float], path: Path) -> None:
    """What fine-tuning changes: certified accuracy against exact error, the baseline at the origin (Figure 4)."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "certcal"
    from matplotlib import pyplot as plt

    far = [radius for radius in radii if radius >= FAR]
    fig, axes = plt.subplots(1, len(far), figsize=(4.5 * len(far), 3.8), squeeze=False, layout="constrained")
    baselines = {job.sigma: model for job, model in zip(jobs, models, strict=True) if job.method == "at"}
    marks = dict(zip(dict.fromkeys(model.method for model in models), "oosvP^DXd<>", strict=False))
    for axis, radius in zip(axes[0], far, strict=True):
        for method, mark in marks.items():
            points = []
            for job, model in zip(jobs, models, strict=True):
                if model.method != method or made(baselines[job.sigma].run, radius, "tight").n_certified == 0:
                    continue
                here, there = evaluate(model, radius, "tight"), evaluate(baselines[job.sigma], radius, "tight")
                if here is not None and there is not None:
                    points.append((100 * (here.accuracy - there.accuracy), 100 * (here.error - there.error)))
            if points and method != "AT":
                axis.plot(*zip(*points, strict=True), mark, label=method, markersize=6, alpha=0.8)
        axis.plot(0, 0, "k*", markersize=10, label="AT")
        axis.axhline(0, color="0.7", linewidth=0.8)
        axis.axvline(0, color="0.7", linewidth=0.8)
        axis.set(title=f"R = {radius:g}", xlabel="change of certified accuracy, points")
    axes[0][0].set_ylabel("change of exact calibration error, points")
    axes[0][-1].legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
