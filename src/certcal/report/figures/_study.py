"""Figures of a study: rank correlations, distributions side by side, models as points, lines with their intervals."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal.report.figures._canvas import (
    BLUE,
    COLOURS,
    GREY,
    ORANGE,
    SKY,
    legend,
    new_figure,
    note,
    set_title,
    shortened,
    style,
    tidy,
)

if TYPE_CHECKING:
    from certcal.study import Boxes, Lines, Matrix, Points

_MOST_WRITTEN, _MOST_NAMED, _MOST_LINES, _MOST_BOXES = 20, 120, 8, 80
_LABEL = 40


def correlation_matrix(matrix: Matrix, *, title: str | None = None) -> Any:
    """Draw rank correlations as coloured cells: blue is positive, orange negative, white zero.

    Up to 20 columns the numbers are written into the cells. With more, negative cells carry a dash, so that the sign
    does not rest on colour. Undefined correlations are grey.

    Parameters
    ----------
    matrix
        From :func:`certcal.study.review`.
    title
        By default the matrix' own; an empty text for none.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal.study import Matrix
    >>> figure = correlation_matrix(Matrix("ECE", ("digits", "fashion"), np.array([[1, 0.42], [0.42, 1]]), 300))
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['1.00', '0.42', '0.42', '1.00']
    """
    count = len(matrix.names)
    if count == 0:
        raise InputError("matrix has no columns; give one with at least one")
    written = count <= _MOST_WRITTEN
    side = min(11.0, max(3.2, 1.6 + (0.42 if written else 0.1) * count))
    figure = new_figure(figsize=(side + 0.8, side))
    ax = figure.add_subplot()
    colours: Any = import_module("matplotlib.colors")
    scale = colours.LinearSegmentedColormap.from_list("certcal", [ORANGE, "white", BLUE]).with_extremes(bad="0.85")
    image = ax.imshow(matrix.values, cmap=scale, vmin=-1, vmax=1, interpolation="nearest")
    values: list[list[float]] = matrix.values.tolist()
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            if written and not math.isnan(value):
                ink = "white" if value > 0.75 else "black"
                text = f"{round(value, 2) + 0.0:.2f}".replace("-", "−")
                ax.text(column, row, text, ha="center", va="center", fontsize="x-small", color=ink)
    if not written:
        negative = [(row, column) for row, line in enumerate(values) for column, value in enumerate(line) if value < 0]
        ax.plot(
            [column for _, column in negative],
            [row for row, _ in negative],
            linestyle="none",
            marker="_",
            markersize=min(4.0, 240 / count),
            markeredgewidth=0.5,
            color="black",
        )
    _name_cells(ax, [shortened(name, _LABEL) for name in matrix.names])
    figure.colorbar(image, ax=ax, shrink=0.7, label=f"{matrix.method} rank correlation")
    _title(ax, matrix.title if title is None else title)
    return figure


def _name_cells(ax: Any, names: list[str]) -> None:
    """Names beside and below the cells, fewer of them where they would cover each other."""
    step = max(1, math.ceil(len(names) / _MOST_NAMED))
    places = list(range(0, len(names), step))
    size = "small" if len(names) <= _MOST_WRITTEN else max(3.0, min(7.0, 420 / len(names)))
    for axis, turn in ((ax.xaxis, 90), (ax.yaxis, 0)):
        axis.set_ticks(places, labels=[names[place] for place in places], rotation=turn, fontsize=size)
        for label in axis.get_ticklabels():
            label.set_parse_math(False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def boxes(drawn: Boxes, *, title: str | None = None) -> Any:
    """Draw distributions side by side: the middle half as a box, the median as a line.

    The lines reach to the last models within 1.5 of the box' height.

    Parameters
    ----------
    drawn
        From :func:`certcal.study.review`.
    title
        By default its own; an empty text for none.

    Examples
    --------
    >>> from certcal.study import Box, Boxes
    >>> box = Box("15", 300, 0.01, 0.02, 0.03, 0.05, 0.09)
    >>> boxes(Boxes("By bins", "bins", "ECE", (box,))).axes[0].get_ylabel()
    'ECE'
    """
    if len(drawn.boxes) > _MOST_BOXES:
        raise InputError(f"{len(drawn.boxes)} boxes are too many for one figure; give at most {_MOST_BOXES}")
    figure = new_figure(figsize=(max(4.2, min(12.0, 1.4 + 0.42 * len(drawn.boxes))), 3.6))
    ax = figure.add_subplot()
    tidy(ax, grid=True)
    known = [(place, box) for place, box in enumerate(drawn.boxes) if not math.isnan(box.median)]
    if known:
        ax.bxp(
            [
                {"med": box.median, "q1": box.first, "q3": box.third, "whislo": box.low, "whishi": box.high}
                for _, box in known
            ],
            positions=[place for place, _ in known],
            widths=0.6,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": SKY, "edgecolor": "black", "linewidth": 0.8},
            medianprops={"color": "black", "linewidth": 1.6},
            manage_ticks=False,
        )
    else:
        note(ax, "nothing to draw")
    names = [shortened(box.name, _LABEL) for box in drawn.boxes]
    turn = 90 if max(map(len, names), default=0) * len(names) > 60 else 0
    ax.set_xticks(range(len(names)), labels=names, rotation=turn, fontsize="small")
    for label in ax.get_xticklabels():
        label.set_parse_math(False)
    ax.set_xlim(-0.6, max(1, len(names)) - 0.4)
    _axes(ax, drawn.across, drawn.up)
    _title(ax, drawn.title if title is None else title)
    return figure


def scatter(drawn: Points, *, title: str | None = None) -> Any:
    """Draw models as points, with a third number as their shade where there is one.

    Parameters
    ----------
    drawn
        From :func:`certcal.study.review`.
    title
        By default its own; an empty text for none.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal.study import Points
    >>> models = Points("Models", "accuracy", "ECE", np.array([0.8, 0.9]), np.array([0.1, 0.05]), ("a", "b"))
    >>> scatter(models).axes[0].get_xlabel()
    'accuracy'
    """
    figure = new_figure(figsize=(5.2, 4.0))
    ax = figure.add_subplot()
    tidy(ax, grid=True)
    size = max(3.0, min(16.0, 6000 / max(1, len(drawn.x))))
    if drawn.colour is None:
        ax.scatter(drawn.x, drawn.y, s=size, color=BLUE, alpha=0.7, linewidths=0)
    else:
        made = ax.scatter(drawn.x, drawn.y, s=size, c=drawn.colour, cmap="cividis_r", alpha=0.85, linewidths=0)
        bar = figure.colorbar(made, ax=ax)
        bar.set_label(shortened(drawn.colour_name), parse_math=False)
    _axes(ax, drawn.across, drawn.up)
    _title(ax, drawn.title if title is None else title)
    return figure


def lines(drawn: Lines, *, title: str | None = None) -> Any:
    """Draw one line per name, with its interval as a band; the places are on a logarithmic axis if they span a decade.

    Parameters
    ----------
    drawn
        From :func:`certcal.study.review`, with at most eight lines.
    title
        By default its own; an empty text for none.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal.study import Lines
    >>> tau = np.array([[0.2, 0.4]])
    >>> found = Lines("Kendall with ECE", "best models", "tau", (100, 1000), ("accuracy",), tau, tau - 0.1, tau + 0.1)
    >>> lines(found).axes[0].get_xscale()
    'log'
    """
    if len(drawn.names) > _MOST_LINES:
        raise InputError(f"{len(drawn.names)} lines are too many to tell apart; give at most {_MOST_LINES}")
    figure = new_figure(figsize=(5.2, 4.0))
    ax = figure.add_subplot()
    tidy(ax, grid=True)
    handles: list[Any] = []
    for place in range(len(drawn.names)):
        ax.fill_between(
            drawn.x, drawn.low[place], drawn.high[place], color=COLOURS[place], alpha=0.15, linewidth=0, zorder=2
        )
        handles += ax.plot(drawn.x, drawn.values[place], markersize=4, linewidth=1.5, zorder=3, **style(place))
    low, high = ax.get_ylim()
    if low < 0 < high:
        ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    if drawn.x and min(drawn.x) > 0 and max(drawn.x) >= 10 * min(drawn.x):
        ticker: Any = import_module("matplotlib.ticker")
        ax.set_xscale("log")
        ax.set_xticks(drawn.x, labels=[f"{x:,.0f}" if x % 1 == 0 else f"{x:g}" for x in drawn.x])
        ax.xaxis.set_minor_locator(ticker.NullLocator())
    _axes(ax, drawn.across, drawn.up)
    _title(ax, drawn.title if title is None else title)
    if handles:
        legend(figure, handles, [shortened(name) for name in drawn.names], columns=2)
    return figure


def _axes(ax: Any, across: str, up: str) -> None:
    ax.set_xlabel(shortened(across), parse_math=False)
    ax.set_ylabel(shortened(up), parse_math=False)


def _title(ax: Any, text: str) -> None:
    if text:
        set_title(ax, shortened(text, 90))
