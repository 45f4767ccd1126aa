"""Reliability diagrams: accuracy against confidence, alone and in groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from certcal._checks import InputError
from certcal._rounding import percent_text
from certcal.report.figures._canvas import BLUE, GREY, ORANGE, legend, new_figure, set_title, shortened, tidy

if TYPE_CHECKING:
    from certcal.binning import BinTable
    from certcal.metrics import Reliability

_PANEL_INCHES = 4.4
_MAX_PANELS = 24


@dataclass(frozen=True, eq=False)
class _Panel:
    """One diagram: a title, the facts below it, the bins, and their bands if there are any."""

    title: str
    facts: str
    table: BinTable
    band: tuple[Any, Any, float] | None = None


def reliability_diagram(reliability: Reliability, ax: Any = None, *, title: str | None = None) -> Any:
    """Draw accuracy against confidence, with the gap to perfect calibration, and the number of samples below.

    A bar per bin reaches from zero to the accuracy of its samples; a dot stands at their mean confidence and
    accuracy; the hatched part is the gap between the two. Vertical lines are the bootstrap bands, when the data
    object has them.

    Parameters
    ----------
    reliability
        From ``certcal.metrics.reliability``.
    ax
        Axes to draw the diagram into, without the counts. By default a new figure with both is made.
    title
        Text above the diagram.

    Returns
    -------
    matplotlib.figure.Figure
        Also shown by notebooks when it is the last value of a cell.

    Examples
    --------
    >>> import certcal
    >>> prepared = certcal.metrics.reliability([0.95, 0.9, 0.3], [1, 0, 1], bins=5)
    >>> figure = reliability_diagram(prepared, title="three samples")
    >>> [ax.get_ylabel() for ax in figure.axes]
    ['accuracy', 'samples']
    """
    if ax is not None:
        _draw_gaps(ax, _panel(title or "", reliability))
        ax.set_xlabel("confidence")
        ax.legend(loc="best", fontsize="small", framealpha=0.9, edgecolor="none")
        return ax.figure
    return reliability_panels({title or "": reliability})


def reliability_panels(reliabilities: Mapping[str, Reliability]) -> Any:
    """Draw several reliability diagrams side by side, for example one per group.

    Parameters
    ----------
    reliabilities
        Prepared data by title.

    Examples
    --------
    >>> import certcal
    >>> one = certcal.metrics.reliability([0.95, 0.9, 0.3], [1, 0, 1], bins=5)
    >>> len(reliability_panels({"a": one, "b": one}).axes)
    4
    """
    if not 1 <= len(reliabilities) <= _MAX_PANELS:
        raise InputError(f"{len(reliabilities)} diagrams were asked for in one figure; draw from 1 to {_MAX_PANELS}")
    return _draw_panels([_panel(title, each) for title, each in reliabilities.items()])


def _panel(title: str, reliability: Reliability) -> _Panel:
    band = None
    if reliability.lower is not None and reliability.upper is not None:
        band = (reliability.lower, reliability.upper, reliability.level)
    return _Panel(title, f"ECE {reliability.ece:.4f}, {_size(reliability.table)}", reliability.table, band)


def _size(table: BinTable) -> str:
    bins = len(table.count)
    return f"{bins} {'bin' if bins == 1 else 'bins'}, n = {int(table.count.sum()):,}"


def _draw_panels(panels: list[_Panel]) -> Any:
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(figsize=(_PANEL_INCHES * columns, 1.3 * _PANEL_INCHES * rows + 0.4))
    axes = figure.subplots(2 * rows, columns, squeeze=False, sharex=True, height_ratios=(4, 1) * rows)
    for ax in axes.flat:
        ax.set_axis_off()
    for place, panel in enumerate(panels):
        row, column = divmod(place, columns)
        _draw_gaps(axes[2 * row, column], panel)
        _draw_counts(axes[2 * row + 1, column], panel.table)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    legend(figure, handles, labels, columns=2 if columns == 1 else 4, where="upper")
    return figure


def _draw_gaps(ax: Any, panel: _Panel) -> None:
    table = panel.table
    used = np.flatnonzero(table.count)
    left, width = table.edges[used], np.diff(table.edges)[used]
    accuracy, confidence = table.accuracy[used], table.mean_confidence[used]
    ax.set_axis_on()
    ax.plot((0, 1), (0, 1), color=GREY, linestyle=(0, (4, 3)), linewidth=1, label="perfect calibration", zorder=3)
    ax.bar(
        left, accuracy, width, align="edge", color=BLUE, alpha=0.85, edgecolor="white", linewidth=0.6, label="accuracy"
    )
    ax.bar(
        left,
        confidence - accuracy,
        width,
        bottom=accuracy,
        align="edge",
        facecolor=(0.9, 0.62, 0, 0.25),
        edgecolor=ORANGE,
        hatch="////",
        linewidth=0.8,
        label="gap to mean confidence",
    )
    if panel.band is not None:
        lower, upper, level = panel.band
        ax.vlines(
            confidence,
            lower[used],
            upper[used],
            color="black",
            linewidth=1.2,
            zorder=4,
            label=f"{percent_text(level)} bootstrap band",
        )
    ax.plot(confidence, accuracy, "o", color="black", markersize=3.2, zorder=5, clip_on=False)
    ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy")
    tidy(ax)
    set_title(ax, f"{shortened(panel.title)}\n{panel.facts}" if panel.title else panel.facts, pad=6)


def _draw_counts(ax: Any, table: BinTable) -> None:
    """Samples per bin; on a logarithmic scale when the smallest bins would otherwise not be seen."""
    ax.set_axis_on()
    ax.bar(
        table.edges[:-1], table.count, np.diff(table.edges), align="edge", color=GREY, edgecolor="white", linewidth=0.6
    )
    ax.set(xlim=(0, 1), xlabel="confidence", ylabel="samples")
    ticker = import_module("matplotlib.ticker")
    if table.count.max() > 50 * table.count[table.count > 0].min():
        ax.set(yscale="log", ylabel="samples (log)", ylim=(0.5, None))
        ax.yaxis.set_major_locator(ticker.LogLocator(numticks=4))
        ax.yaxis.set_minor_locator(ticker.NullLocator())
    else:
        ax.yaxis.set_major_locator(ticker.MaxNLocator(nbins=3, integer=True))
    ax.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    tidy(ax)
