"""Figures for papers and notebooks, drawn from prepared data objects with matplotlib.

Only ``Figure`` objects are used, never pyplot, so nothing global changes and no window opens. The palette is that of
Okabe and Ito, which colour-blind readers can tell apart; hatching and position carry the meaning as well.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from certcal._checks import InputError
from certcal.report._files import refuse_overwriting, write_bytes
from certcal.report._text import printable

if TYPE_CHECKING:
    from certcal.metrics import Reliability

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#666666"
FORMATS = ("png", "svg", "pdf")

_PANEL_INCHES = 4.4
_MAX_PANELS = 24


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
        _draw_gaps(ax, reliability, title)
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
    columns = min(3, len(reliabilities))
    rows = -(-len(reliabilities) // columns)
    figure = new_figure(figsize=(_PANEL_INCHES * columns, 1.3 * _PANEL_INCHES * rows + 0.4), layout="constrained")
    axes = figure.subplots(2 * rows, columns, squeeze=False, sharex=True, height_ratios=(4, 1) * rows)
    for ax in axes.flat:
        ax.set_axis_off()
    for place, (title, reliability) in enumerate(reliabilities.items()):
        row, column = divmod(place, columns)
        diagram, counts = axes[2 * row, column], axes[2 * row + 1, column]
        _draw_gaps(diagram, reliability, title)
        _draw_counts(counts, reliability)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=2 if columns == 1 else 4, fontsize="small", frameon=False
    )
    return figure


def save(figure: Any, path: str | os.PathLike[str], *, force: bool = False, dpi: int = 200) -> Path:
    """Write a figure as PNG, SVG or PDF, whole or not at all.

    Parameters
    ----------
    figure
        A matplotlib figure.
    path
        Where to; the ending decides the format.
    force
        Replace an existing file.
    dpi
        Dots per inch of a PNG.

    Examples
    --------
    >>> save(None, "picture.gif")
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: picture.gif: figures are written as .png, .svg or .pdf; choose one of these endings
    """
    target = Path(path)
    kind = target.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise InputError(f"{target}: figures are written as .png, .svg or .pdf; choose one of these endings")
    refuse_overwriting(target, force=force)
    buffer = io.BytesIO()
    # Without dates and random names the same figure gives the same file.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    settings: Any = import_module("matplotlib").rc_context({"svg.hashsalt": "certcal"})
    with settings, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a box is shown instead
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata)
    write_bytes(target, buffer.getvalue(), force=force)
    return target


def new_figure(**options: Any) -> Any:
    """Make an empty figure without pyplot."""
    try:
        return import_module("matplotlib.figure").Figure(**options)
    except ImportError as error:
        raise InputError("figures need matplotlib; run: pip install 'certcal[report]'") from error


def _draw_gaps(ax: Any, reliability: Reliability, title: str | None) -> None:
    table = reliability.table
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
    if reliability.lower is not None and reliability.upper is not None:
        ax.vlines(
            confidence,
            reliability.lower[used],
            reliability.upper[used],
            color="black",
            linewidth=1.2,
            zorder=4,
            label=f"{100 * reliability.level:g} % band (asymptotic)",
        )
    ax.plot(confidence, accuracy, "o", color="black", markersize=3.2, zorder=5, clip_on=False)
    ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy")
    _tidy(ax)
    facts = f"ECE {reliability.ece:.4f}, {len(table.count)} bins, n = {int(table.count.sum()):,}"
    ax.set_title(f"{printable(title)}\n{facts}" if title else facts, fontsize="small", parse_math=False)


def _draw_counts(ax: Any, reliability: Reliability) -> None:
    """Samples per bin; on a logarithmic scale when the smallest bins would otherwise not be seen."""
    table = reliability.table
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
    _tidy(ax)


def _tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize="small", labelbottom=True)
