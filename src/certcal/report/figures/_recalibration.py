"""A recalibration: the map against the diagonal, and clean against certified Brier scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from certcal._text import counted
from certcal.report.figures._canvas import (
    BLUE,
    GREEN,
    GREY,
    VERMILION,
    legend,
    new_figure,
    note,
    shortened,
    style,
    tidy,
)

if TYPE_CHECKING:
    from certcal.calibrators import FrontPoint, Recalibration

_MOST_FLAT = 60
# Closer than these shares of the panel, two labels would cover each other.
_APART = (0.1, 0.05)


def recalibration_map(found: Recalibration) -> Any:
    """Draw the map that was asked for against the diagonal, with where the held-out confidences lie below.

    Beside it are the maps of the smallest and the largest λ. Dots are the ends of flat parts, on which all confidences
    become the same.

    Parameters
    ----------
    found
        From :func:`certcal.calibrators.recalibrate`.

    Examples
    --------
    >>> from certcal.calibrators import CertifiedSamples, recalibrate
    >>> samples = CertifiedSamples.from_intervals([0.2, 0.5] * 9, [0.4, 0.9] * 9, [0, 1] * 9, [0.3, 0.7] * 9)
    >>> figure = recalibration_map(recalibrate(samples))
    >>> [ax.get_ylabel() for ax in figure.axes]
    ['confidence after the map', 'samples']
    """
    from certcal.calibrators._drawn import confidence_counts, map_points

    held_out = confidence_counts(found)
    figure = new_figure(figsize=(5.2, 6.0))
    axes = figure.subplots(2, 1, sharex=True, height_ratios=(5, 1)) if held_out is not None else [figure.add_subplot()]
    ax = axes[0]
    drawn = [found.chosen, *(line for line in (found.lines[1], found.lines[-1]) if line is not found.chosen)]
    handles: list[Any] = []
    for place, line in enumerate(drawn):
        points = map_points(line.calibrator)
        look = style(place)
        del look["marker"]
        handles += ax.plot(points.x, points.y, linewidth=1.8 if place == 0 else 1.3, zorder=5 - place, **look)
    names = [shortened(line.name) for line in drawn]
    flat = map_points(found.calibrator).flat
    if 0 < len(flat) <= _MOST_FLAT:
        handles += ax.plot(
            flat[:, :2].ravel(), flat[:, 2].repeat(2), "o", color=BLUE, markersize=3.5, zorder=6, clip_on=False
        )
        names.append("ends of a flat part")
    handles += ax.plot((0, 1), (0, 1), color=GREY, linestyle=(0, (4, 3)), linewidth=1, zorder=1)
    names.append("no change")
    ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="confidence after the map")
    tidy(ax, grid=True)
    if held_out is not None:
        axes[1].bar(held_out.edges[:-1], held_out.count, 1 / held_out.count.size, align="edge", color=GREY)
        axes[1].set_ylabel("samples")
        tidy(axes[1])
    axes[-1].set_xlabel("confidence as it is")
    legend(figure, handles, names, columns=2)
    return figure


def pareto_front(found: Recalibration) -> Any:
    """Draw clean against certified Brier scores of all maps: lower is better under attack, further left without one.

    The line is of the samples that the maps were fitted to; squares are the same maps on held-out samples, with their
    λ. The diamond is no map at all, the triangle one constant confidence, both on held-out samples.

    Parameters
    ----------
    found
        From :func:`certcal.calibrators.recalibrate`.

    Examples
    --------
    >>> from certcal.calibrators import CertifiedSamples, recalibrate
    >>> samples = CertifiedSamples.from_intervals([0.2, 0.5] * 9, [0.4, 0.9] * 9, [0, 1] * 9, [0.3, 0.7] * 9)
    >>> pareto_front(recalibrate(samples)).axes[0].get_ylabel()
    'certified Brier score'
    """
    from certcal.calibrators._drawn import constant_point

    figure = new_figure(figsize=(5.6, 4.6))
    ax = figure.add_subplot()
    maps, identity, constant = found.front[1:], found.front[0], constant_point(found)
    several = " (weighted over radii)" if len(found.radii) > 1 else ""
    ax.set(xlabel="Brier score without a perturbation", ylabel=f"certified Brier score{several}")
    tidy(ax, grid=True)
    if not any(None not in point.held_out for point in maps):
        note(ax, "no front: it needs confidences without a perturbation and certified ones")
        return figure
    chosen = next(point for point in maps if point.tradeoff == found.tradeoff)
    fitted = [_pair(point.fitted) for point in maps]
    handles = [*ax.plot(*zip(*fitted, strict=True), "o-", color=BLUE, markersize=4, linewidth=1.4, zorder=3)]
    names = [f"{found.method}, {counted(found.n_fit, 'sample')} of the fit"]
    marked: list[tuple[list[FrontPoint], str, str, str]] = [
        (list(maps), "s", VERMILION, f"{counted(found.n_held_out, 'held-out sample')}, with λ"),
        ([identity], "D", "black", "as it is, held-out"),
        ([constant] if constant is not None else [], "^", GREEN, "one constant, held-out"),
    ]
    for points, marker, colour, name in marked:
        if not points:
            continue
        pairs = [_pair(point.held_out) for point in points]
        handles += ax.plot(*zip(*pairs, strict=True), marker, color=colour, markersize=5.5, zorder=4, linestyle="none")
        names.append(name)
    _label(ax, [chosen, *(point for point in maps if point is not chosen)])
    (x0, y0), (x1, y1) = _pair(identity.held_out), _pair(chosen.held_out)
    ax.plot((x0, x1), (y0, y1), linestyle=":", color=GREY, linewidth=1.2, zorder=2)
    legend(figure, handles, names, columns=2)
    return figure


def _pair(pair: tuple[float | None, float | None]) -> tuple[float, float]:
    clean, worst = pair
    return math.nan if clean is None else clean, math.nan if worst is None else worst


def _label(ax: Any, points: list[FrontPoint]) -> None:
    """Write λ beside held-out points, the first in bold; one that would cover another is left out."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    taken: list[tuple[float, float]] = []
    for point in points:
        x, y = _pair(point.held_out)
        place = (x - left) / (right - left), (y - bottom) / (top - bottom)
        if any(abs(place[0] - a) < _APART[0] and abs(place[1] - b) < _APART[1] for a, b in taken):
            continue
        weight = "bold" if not taken else "normal"
        taken.append(place)
        said = f"{point.tradeoff:g}"
        ax.annotate(said, (x, y), (6, 3), textcoords="offset points", fontsize="small", fontweight=weight, zorder=6)
