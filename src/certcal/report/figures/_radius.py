"""Certified values against the radius."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal.report.figures._canvas import (
    BLUE,
    GREY,
    PURPLE,
    VERMILION,
    legend,
    new_figure,
    note,
    set_title,
    shortened,
    tidy,
)

if TYPE_CHECKING:
    from certcal.report.results import Line

_MOST_GROUPS = 8
_ALL = "all samples"


def _accuracy(line: Line) -> float:
    return line.summary.accuracy.value


def _worst(metric: str) -> Callable[[Line], float | None]:
    def value(line: Line) -> float | None:
        worst = line.summary[metric].worst
        return None if worst is None else worst.value

    return value


def _claimed(line: Line) -> float | None:
    return None if line.claim is None else line.claim.value


def _population(line: Line) -> float | None:
    return None if line.summary.population is None else line.summary.population.value


# Panels from left to right, and what each shows. A name has the same look wherever it stands.
_PANELS: tuple[tuple[str, tuple[tuple[str, Callable[[Line], float | None]], ...]], ...] = (
    ("certified accuracy", (("at least", _accuracy),)),
    ("Brier score", (("worst case on these samples", _worst("brier_score")),)),
    (
        "calibration error",
        (
            ("worst case on these samples", _worst("calibration_error")),
            ("claimed, with intervals that fail", _claimed),
            ("bound for the population", _population),
        ),
    ),
)
_LOOKS: dict[str, dict[str, Any]] = {
    "at least": {"color": BLUE, "marker": "D", "linestyle": "-"},
    "worst case on these samples": {"color": VERMILION, "marker": "o", "linestyle": "-"},
    "claimed, with intervals that fail": {"color": "black", "marker": "s", "linestyle": (0, (5, 2))},
    "bound for the population": {"color": PURPLE, "marker": "^", "linestyle": (0, (1, 1.5))},
}


def radius_curves(lines: Sequence[Line], *, group: str | None = None) -> Any:
    """Draw certified accuracy, Brier score and calibration error against the radius.

    Of the calibration error: the worst case on the certified samples, what is claimed when intervals may fail, and the
    bound for the population, where the lines have them. Radii at which no sample is certified are marked on the axis.

    Parameters
    ----------
    lines
        One per radius and group, as :class:`certcal.report.results.Line`.
    group
        Draw this group only. By default every group has a row of its own.

    Examples
    --------
    >>> from certcal.report.results import Line
    >>> from certcal.worst_case import certify
    >>> lines = [Line(str(radius), None, certify([0.5 - radius], [0.5 + radius], [1])) for radius in (0, 0.25)]
    >>> [ax.get_ylabel() for ax in radius_curves(lines).axes]
    ['certified accuracy', 'Brier score', 'calibration error']
    """
    rows = _rows(lines, group)
    figure = new_figure(figsize=(10.2, 3.0 * len(rows) + 0.5))
    axes = figure.subplots(len(rows), len(_PANELS), squeeze=False, sharex=True)
    handles: dict[str, Any] = {}
    for (name, members), panels in zip(rows.items(), axes, strict=True):
        for ax, (label, curves) in zip(panels, _PANELS, strict=True):
            _draw_panel(ax, label, curves, members, handles)
        if len(rows) > 1 or name is not None:
            set_title(panels[0], shortened(name or _ALL), loc="left", fontweight="bold")
    alone = all(len(members) == 1 for members in rows.values())
    for ax in axes[-1]:
        ax.set_xlabel("radius (only one was asked for)" if alone else "radius")
    names = [name for name in _LOOKS if name in handles]
    shown = [f"certified accuracy, {name}" if name == "at least" else name for name in names]
    legend(figure, [handles[name] for name in names], shown, columns=4)
    return figure


def _rows(lines: Sequence[Line], group: str | None) -> dict[str | None, list[tuple[float, Line]]]:
    """Lines of each group by radius."""
    rows: dict[str | None, list[tuple[float, Line]]] = {}
    for line in lines:
        if group is None or line.group == group:
            rows.setdefault(line.group, []).append((_radius(line), line))
    if not rows:
        what = "lines is empty" if group is None else f"no line is of the group {group!r}"
        raise InputError(f"{what}; pass at least one line with a radius")
    if len(rows) > _MOST_GROUPS:
        raise InputError(f"lines has {len(rows)} groups, too many for one figure; name one with group=")
    for name, members in rows.items():
        members.sort(key=lambda member: member[0])
        if len({radius for radius, _ in members}) < len(members):
            where = "" if name is None else f" of the group {name!r}"
            raise InputError(f"lines has a radius twice{where}; pass one line per radius and group")
    return rows


def _radius(line: Line) -> float:
    try:
        value = float(line.radius or "")
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"a line has the radius {line.radius!r}; radius curves need numbers of at least 0")
    return value


def _draw_panel(
    ax: Any,
    label: str,
    curves: Sequence[tuple[str, Callable[[Line], float | None]]],
    members: Sequence[tuple[float, Line]],
    handles: dict[str, Any],
) -> None:
    highest, known = 0.0, False
    for name, value in curves:
        points = [(radius, height) for radius, line in members if (height := value(line)) is not None]
        if not points:
            continue
        known = True
        (handles[name],) = ax.plot(*zip(*points, strict=True), markersize=4.5, linewidth=1.4, **_LOOKS[name], zorder=4)
        highest = max(highest, *(height for _, height in points))
    whole = label == "certified accuracy" or highest > 0.7 or not known
    ax.set(ylabel=label, ylim=(0, 1.03 if whole else max(0.05, 1.15 * highest)))
    radii = [radius for radius, _ in members]
    room = 0.04 * (radii[-1] - radii[0]) or max(0.1, 0.2 * radii[0])
    ax.set_xlim(radii[0] - room, radii[-1] + room)
    if len(radii) == 1:
        ax.set_xticks(radii)
    tidy(ax, grid=True)
    empty = [radius for radius, line in members if line.summary.n_certified == 0]
    if not known:
        note(ax, "no sample is certified\nat any of these radii")
    elif empty and label != "certified accuracy":
        ax.axvspan(empty[0], empty[-1] + room, facecolor="0.95", edgecolor="0.8", hatch="//", linewidth=0, zorder=0)
        ax.annotate(
            f"no sample certified from {empty[0]:g} on",
            (empty[0], 0.5),
            xycoords=("data", "axes fraction"),
            xytext=(-3, 0),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="center",
            fontsize="x-small",
            color=GREY,
        )
