"""Families of runs beside each other: one panel per noise level, and who is better than whom."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal.report._layers import layers
from certcal.report.figures._canvas import legend, new_figure, note, set_title, shortened, style, tidy

if TYPE_CHECKING:
    from certcal.smoothing.robustness import CertifiedCalibration, DominanceGraph, Families
    from certcal.worst_case import CertifiedSummary

_MOST, _MOST_PANELS = 16, 12
_WIDE, _HIGH = 3.4, 2.9  # inches of a panel
_MOST_MARKERS = 30
_IN_ROW = 3
_LOWEST_SKILL = -1.0


def p_a_panels(families: Families) -> Any:
    """Draw P(p_A >= p) from p = 1/2 on, one panel per noise level and one line per family.

    Certified accuracy as read off a line that is nowhere below another's is ahead at every radius, number of draws and
    alpha. Where a log leaves votes open, a band shows between which curves the share lies.

    Parameters
    ----------
    families
        From ``certcal.smoothing.robustness.compare_families``.

    Examples
    --------
    >>> from certcal.smoothing.robustness import VoteRecord, compare_families
    >>> runs = {name: [VoteRecord.of([100, 100 - k], 100, [1, 1], sigma=1.0)] for name, k in (("a", 5), ("b", 30))}
    >>> figure = p_a_panels(compare_families(runs, at=[0, 0.5]))
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['a', 'b']
    """
    figure, panels = _panels(families, families.sigmas)
    handles: dict[str, Any] = {}
    for ax, sigma in zip(panels, families.sigmas, strict=True):
        for name, run in families.at_sigma(sigma):
            look = _look(families, name)
            look.pop("marker")
            seen = run.distribution.curve(100_000)
            # A share holds from the p before it up to its own.
            (handles[name],) = ax.step(seen.p, seen.lower, where="pre", linewidth=1.5, zorder=4, **look)
            if not (seen.lower == seen.upper).all():
                between = {"step": "pre", "color": look["color"], "alpha": 0.25, "linewidth": 0}
                ax.fill_between(seen.p, seen.lower, seen.upper, zorder=3, **between)
        ax.set(xlim=(0.5, 1), ylim=(0, 1.03), xlabel="p")
        _titled(ax, sigma)
    _finish(figure, panels, families, handles, "share with p_A ≥ p")
    return figure


def accuracy_panels(families: Families) -> Any:
    """Draw certified accuracy against the radius, one panel per noise level, and the best over them where several are.

    Parameters
    ----------
    families
        From ``certcal.smoothing.robustness.compare_families``.

    Examples
    --------
    >>> from certcal.smoothing.robustness import VoteRecord, compare_families
    >>> runs = {name: [VoteRecord.of([100, 100 - k], 100, [1, 1], sigma=1.0)] for name, k in (("a", 5), ("b", 30))}
    >>> figure = accuracy_panels(compare_families(runs, at=[0, 0.5]))
    >>> [ax.get_title() for ax in figure.axes], figure.axes[0].lines[1].get_ydata().tolist()
    (['σ = 1'], [1.0, 0.5])
    """
    several = len(families.sigmas) > 1
    figure, panels = _panels(families, [*families.sigmas, *([None] if several else [])])
    handles: dict[str, Any] = {}
    for ax, sigma in zip(panels, families.sigmas, strict=False):
        for name, run in families.at_sigma(sigma):
            handles[name] = _line(ax, families.at, run.curve.values, _look(families, name))
        _titled(ax, sigma)
    if several:
        for family in families.families:
            _line(panels[-1], families.at, family.best.values, _look(families, family.name))
        _titled(panels[-1], None)
    for ax in panels:
        ax.set(xlabel="radius", ylim=(0, 1.03))
        _one_place(ax, families.at)
    _finish(figure, panels, families, handles, "certified accuracy (at least)")
    return figure


def _certified(metric: str) -> Callable[[CertifiedSummary], float]:
    def value(summary: CertifiedSummary) -> float:
        worst = summary[metric].worst
        return math.nan if worst is None else worst.value

    return value


# Rows from top to bottom, and what each shows.
_ROWS: tuple[tuple[str, Callable[[CertifiedSummary], float]], ...] = (
    ("calibration error\ncertified (at most)", _certified("calibration_error")),
    ("calibration error\nall (at most)", lambda summary: summary["calibration_error"].worst_all.value),
    ("Brier score\ncertified (at most)", _certified("brier_score")),
    ("skill\ncertified (at least)", lambda summary: summary.skill.value),
)


def certified_calibration_panels(families: Families) -> Any:
    """Draw what is certified of confidences against the radius: a column per noise level, a row per quantity.

    The exact worst case of the calibration error over the certified samples and over all, of the Brier score, and the
    skill. Skill below -1 lies outside of its panel.

    Parameters
    ----------
    families
        From ``certcal.smoothing.robustness.compare_families``, of runs; logs hold no confidences.
    """
    found = families.calibration
    if not found:
        raise InputError("families has no certified calibration; compare runs, since logs hold no confidences")
    sigmas = [sigma for sigma in families.sigmas if any(each.sigma == sigma for each in found)]
    _check(len(families.families), len(sigmas))
    figure = new_figure(figsize=(_WIDE * len(sigmas) + 0.6, 2.1 * len(_ROWS) + 0.7))
    axes = figure.subplots(len(_ROWS), len(sigmas), squeeze=False, sharex=True, sharey="row")
    handles: dict[str, Any] = {}
    for panels, (label, value) in zip(axes, _ROWS, strict=True):
        for ax, sigma in zip(panels, sigmas, strict=True):
            own = [each for each in found if each.sigma == sigma]
            _draw_calibration(ax, families, own, value, handles)
            tidy(ax, grid=True)
        panels[0].set_ylabel(label, fontsize="small")
        _set_height(panels[0], label)
    for ax, sigma in zip(axes[0], sigmas, strict=True):
        _titled(ax, sigma)
    for ax in axes[-1]:
        ax.set_xlabel("radius")
    _legend(figure, families, handles)
    return figure


def _draw_calibration(
    ax: Any,
    families: Families,
    own: Sequence[CertifiedCalibration],
    value: Callable[[CertifiedSummary], float],
    handles: dict[str, Any],
) -> None:
    known = False
    for each in own:
        values = [value(summary) for summary in each.summaries]
        known |= any(map(math.isfinite, values))
        handles[each.family] = _line(ax, each.radii, values, _look(families, each.family))
    _one_place(ax, own[0].radii)
    if not known:
        note(ax, "undefined: nothing is certified")


def _set_height(ax: Any, label: str) -> None:
    """From zero, or for skill to one; skill is cut below -1."""
    if label.startswith("skill"):
        ax.set_ylim(max(_LOWEST_SKILL, min(0.0, ax.get_ylim()[0])), 1.03)
        ax.axhline(0, color="0.6", linewidth=0.8, zorder=1)
    else:
        ax.set_ylim(0, min(1.03, max(0.05, ax.get_ylim()[1])))


def dominance_graphs(families: Families) -> Any:
    """Draw who is better than whom whatever the setting: one panel per noise level, then by the best over them.

    Arrows lead from the better family to the worse one; those that follow from others are left out. Boxes with a thick
    border are those that none is better than. Thick arrows hold beyond the chance of the samples, for shares of votes;
    broken ones where the curves touch.

    Parameters
    ----------
    families
        From ``certcal.smoothing.robustness.compare_families``, at least two.

    Examples
    --------
    >>> from certcal.smoothing.robustness import VoteRecord, compare_families
    >>> runs = {name: [VoteRecord.of([100, 100 - k], 100, [1, 1], sigma=1.0)] for name, k in (("a", 5), ("b", 30))}
    >>> figure = dominance_graphs(compare_families(runs, at=[0, 0.5]))
    >>> [text.get_text() for text in figure.axes[0].texts if text.get_text()]
    ['a', 'b']
    """
    graphs = families.graphs
    if not graphs:
        raise InputError("families has no graph; compare at least two families that share a noise level")
    figure, panels = _panels(families, graphs)
    for ax, graph in zip(panels, graphs, strict=True):
        _draw_graph(ax, graph)
        _titled(ax, graph.sigma)
    return figure


def _draw_graph(ax: Any, graph: DominanceGraph) -> None:
    placed = layers(graph.names, graph.reduced, _IN_ROW)
    strict, firm, top = set(graph.strict_edges), set(graph.firm_edges), set(graph.undominated)
    width = max(placed.width, float(_IN_ROW))
    left = (width - placed.width) / 2
    rows = max(len(placed.rows), 2)
    # From the middle of a row to the edge of its boxes, in rows.
    half = [(0.05 + 0.08 * max(len(_lines(name)) for name in row)) * rows / _HIGH for row in placed.rows]
    for edge, way in placed.ways.items():
        (first, start), *through, (last, stop) = [(left + x, row) for x, row in way]
        corners = [(first, start + half[start])]
        for x, row in through:
            corners += [(x, row - half[row]), (x, row + half[row])]
        corners.append((last, stop - half[stop]))
        look = {"linewidth": 2.2 if edge in firm else 1.1, "linestyle": "-" if edge in strict | firm else (0, (4, 2))}
        if len(corners) > 2:
            ax.plot(*zip(*corners[:-1], strict=True), color="0.25", solid_capstyle="round", zorder=2, **look)
        ax.annotate(
            "",
            xy=corners[-1],
            xytext=corners[-2],
            arrowprops={"arrowstyle": "-|>", "color": "0.25", "shrinkA": 0, "shrinkB": 0, **look},
            zorder=2,
        )
    for name, (x, row) in placed.middles.items():
        border = {"edgecolor": "black" if name in top else "0.5", "linewidth": 1.8 if name in top else 0.8}
        ax.text(
            left + x,
            row,
            "\n".join(_lines(name)),
            ha="center",
            va="center",
            fontsize="small",
            parse_math=False,
            zorder=4,
            bbox={"boxstyle": "round,pad=0.35", "facecolor": "white", **border},
        )
    ax.set(xlim=(0, width), ylim=(rows - 0.5, -0.5))
    ax.set_axis_off()


def _lines(name: str) -> list[str]:
    return textwrap.wrap(shortened(name, 30), 12) or [" "]


def _panels(families: Families, wanted: Iterable[Any]) -> tuple[Any, list[Any]]:
    """A figure with a panel for each that is wanted, in rows."""
    count = len(list(wanted))
    _check(len(families.families), count)
    rows = math.ceil(count / _IN_ROW) if count != _IN_ROW + 1 else 2
    columns = math.ceil(count / rows)
    figure = new_figure(figsize=(_WIDE * columns + 0.4, _HIGH * rows + 0.6))
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax in axes[count:]:
        ax.remove()
    return figure, axes[:count]


def _check(families: int, panels: int) -> None:
    if not 1 <= families <= _MOST:
        raise InputError(f"{families} families were asked for in one figure; draw from 1 to {_MOST}")
    if panels > _MOST_PANELS:
        raise InputError(f"{panels} panels were asked for in one figure; draw at most {_MOST_PANELS}")


def _look(families: Families, name: str) -> dict[str, Any]:
    """A family looks the same in every panel."""
    return style(families.names.index(name))


def _line(ax: Any, at: Sequence[float], values: Sequence[float], look: dict[str, Any]) -> Any:
    if len(at) > _MOST_MARKERS:
        look["markevery"] = len(at) // 15
    return ax.plot(at, values, markersize=4, linewidth=1.3, zorder=4, **look)[0]


def _one_place(ax: Any, at: Sequence[float]) -> None:
    """A single radius stands in the middle."""
    if len(at) == 1:
        room = max(0.1, 0.2 * at[0])
        ax.set(xticks=list(at), xlim=(at[0] - room, at[0] + room))


def _titled(ax: Any, sigma: float | None) -> None:
    set_title(ax, "best over σ" if sigma is None else f"σ = {sigma:g}")


def _finish(figure: Any, panels: Sequence[Any], families: Families, handles: dict[str, Any], label: str) -> None:
    for ax in panels:
        tidy(ax, grid=True)
        if ax.get_subplotspec().is_first_col():
            ax.set_ylabel(label, fontsize="small")
    _legend(figure, families, handles)


def _legend(figure: Any, families: Families, handles: dict[str, Any]) -> None:
    names = [name for name in families.names if name in handles]
    longest = max(map(len, names))
    columns = 4 if longest <= 14 else 2 if longest <= 30 else 1
    legend(figure, [handles[name] for name in names], [shortened(name) for name in names], columns=columns)
