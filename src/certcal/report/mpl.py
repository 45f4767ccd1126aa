"""Charts as matplotlib figures, for papers and notebooks.

Only ``Figure`` objects are used, never pyplot, so nothing global changes and no window opens. A chart is as wide as a
column of a paper, several as a page. Names from outside are drawn letter by letter, never read as formulas.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import textwrap
import warnings
from collections.abc import Callable, Generator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from certcal._base.checks import InputError
from certcal._base.files import refuse_overwriting, write_bytes
from certcal._base.text import printable
from certcal.report.charts import (
    MOST_MARKED,
    PALETTE,
    SERIES,
    STACKED,
    Axis,
    Band,
    Bars,
    Boxes,
    Chart,
    Cursor,
    Graph,
    Heatmap,
    Line,
    Look,
    Panel,
    Points,
    Segments,
    Stack,
    Words,
    legend_of,
)
from certcal.report.numbers import minus

FORMATS = ("png", "svg", "pdf")
# Files are the same in every run, and fonts are embedded as TrueType, which publishers ask for.
_SAVED = {"svg.hashsalt": "certcal", "pdf.fonttype": 42, "ps.fonttype": 42}

COLOURS = tuple(PALETTE[name] for name in SERIES)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (2, 2)), "-.")
HATCHES = ("", "////", "..", "\\\\\\\\", "xx", "---", "o", "++")

_PAPER = (1.0, 1.0, 1.0, 0.7)
_FILLS: dict[str, dict[str, Any]] = {
    "accuracy": {"facecolor": PALETTE["blue-fill"], "edgecolor": "white"},
    "over": {"facecolor": _PAPER, "edgecolor": PALETTE["orange"], "hatch": "////"},
    "under": {"facecolor": _PAPER, "edgecolor": PALETTE["purple"], "hatch": "\\\\\\\\"},
    "count": {"facecolor": PALETTE["grey-fill"], "edgecolor": "white"},
    "plus": {"facecolor": PALETTE["blue-fill"], "edgecolor": PALETTE["blue"]},
    "minus": {"facecolor": _PAPER, "edgecolor": PALETTE["orange"], "hatch": "////"},
    "box": {"facecolor": PALETTE["sky-fill"], "edgecolor": "black"},
    "top": {"facecolor": "white", "edgecolor": "black", "linewidth": 1.8},
    "node": {"facecolor": "white", "edgecolor": "0.5", "linewidth": 0.8},
}
_STROKES: dict[str, dict[str, Any]] = {
    "ideal": {"color": PALETTE["grey"], "linestyle": (0, (4, 3)), "linewidth": 1.1},
    "zero": {"color": "0.6", "linewidth": 0.8},
    "cursor": {"color": "0.3", "linestyle": (0, (1, 2)), "linewidth": 1.3},
    "lead": {"color": "0.5", "linewidth": 0.7},
    "edge": {"color": "0.25", "linewidth": 1.1},
    "whisker": {"color": "black", "linewidth": 1.2},
    "firm": {"color": "0.25", "linewidth": 2.2},
    "strict": {"color": "0.25", "linewidth": 1.1},
    "weak": {"color": "0.25", "linewidth": 1.1, "linestyle": (0, (4, 2))},
}

_GUIDE = {"linewidth": 0.8, "alpha": 0.55}
_MOST_CHARTS, _MOST_WRITTEN, _MOST_NAMED = 24, 20, 120
_LONGEST, _LONGEST_TICK, _LONGEST_LEFT = 40, 24, 20
# In inches: a pixel of a page, a small letter, a line of a legend, and the widths of a column and a page of a paper.
_PIXEL, _LETTER, _ROW = 1 / 115, 0.07, 0.19
_COLUMN, _PAGE = 3.4, 6.9
# A box of a graph, in its widths and rows, and letters in it.
_BOX_WIDE, _BOX_HIGH, _BOX_LETTERS, _BOX_INCHES = 0.88, 0.44, 13, 1.15
# Where words can stand beside their point, best first, in points.
_SIDES = ((6, 0), (4, 4), (4, -4), (0, 6), (0, -6), (-6, 0), (-4, 4), (-4, -4))

_Entry: TypeAlias = "tuple[str, str, Look]"


def draw(charts: Sequence[Chart], ax: Any = None) -> Any:
    """Draw charts side by side as one figure, or one chart into given axes.

    Parameters
    ----------
    charts
        At most 24. Those that are wide have a row of their own.
    ax
        Axes for the only panel of a single chart, or for its highest.

    Returns
    -------
    matplotlib.figure.Figure
        Also shown by notebooks when it is the last value of a cell.

    Examples
    --------
    >>> from certcal.report.charts import curves
    >>> chart = curves("Error by radius", [0, 1], {"a": [0.1, 0.2]}, y_label="error", description="It grows.")
    >>> [panel.get_ylabel() for panel in draw([chart, chart]).axes]
    ['error', 'error']
    """
    if ax is not None:
        return _draw_into(list(charts), ax)
    if not 1 <= len(charts) <= _MOST_CHARTS:
        raise InputError(
            f"{len(charts)} charts were asked for in one figure; draw from 1 to {_MOST_CHARTS}, or each by its figure()"
        )
    entries = [_legend_entries(chart) for chart in charts]
    legend = _common_legend(entries)
    sizes = [_chart_inches(chart) for chart in charts]
    alone = [width > _COLUMN for width, _ in sizes]
    most = 3 if all(chart.size == "small" for chart in charts) and len(charts) not in (2, 4) else 2
    rows: list[list[int]] = []
    for place in range(len(charts)):
        if not rows or alone[place] or alone[rows[-1][0]] or len(rows[-1]) == most:
            rows.append([])
        rows[-1].append(place)
    columns = max(map(len, rows))
    width = max(_PAGE if columns > 1 else _COLUMN, *(size for size, _ in sizes))
    own_width = [width if own else width / columns for own in alone]
    below = [_legend_height(each, wide) for each, wide in zip(entries, own_width, strict=True)]
    heights = [max(sizes[place][1] + (0.0 if legend else below[place]) for place in row) for row in rows]
    foot = _legend_height(legend, width)
    figure = new_figure(figsize=(width, sum(heights) + foot))
    grid = figure.add_gridspec(len(rows), columns, height_ratios=heights) if len(charts) > 1 else None
    drawn: list[tuple[Any, Any]] = []
    for row, members in enumerate(rows):
        signed = any(_is_signed(panel) for place in members for panel in charts[place].panels)
        for column, place in enumerate(members):
            part = figure
            if grid is not None:
                part = figure.add_subfigure(grid[row, :] if alone[place] else grid[row, column])
            drawn += _draw_chart(part, charts[place], signed=signed)
            if not legend:
                _add_legend(part, entries[place], _legend_columns(entries[place], own_width[place]))
    _add_legend(figure, legend, _legend_columns(legend, width))
    _place_words(figure, drawn)
    return figure


def _draw_into(charts: list[Chart], ax: Any) -> Any:
    if not hasattr(ax, "get_xaxis"):
        raise InputError(f"ax is a {type(ax).__name__}; give matplotlib axes")
    if len(charts) != 1:
        raise InputError(f"{len(charts)} charts cannot be drawn into one axes; draw them without ax")
    heights = [_panel_inches(panel)[1] for panel in charts[0].panels]
    if heights.count(max(heights, default=0.0)) != 1:
        raise InputError(f"a chart of {len(heights)} panels cannot be drawn into one axes; draw it without ax")
    panel = charts[0].panels[heights.index(max(heights))]
    _draw_panel(ax, panel, title=charts[0].title, clip=True)
    look = {"loc": "best", "frameon": True, "framealpha": 0.9, "edgecolor": "none"}
    _add_legend(ax, _legend_entries(Chart("", "", [panel])), 1, **look)
    _place_words(ax.figure, [(ax, panel)])
    return ax.figure


def _chart_inches(chart: Chart) -> tuple[float, float]:
    sizes = [_panel_inches(panel) for panel in chart.panels] or [(0.0, 2.0)]
    width = max(_PAGE if chart.size in ("medium", "wide") else _COLUMN, *(wide for wide, _ in sizes))
    names = [text for panel in chart.panels if isinstance(panel, Panel) for _, text in panel.x.ticks]
    longest = max(map(len, names), default=0)
    upright = min(longest, _LONGEST_TICK) * _LETTER if longest * _LETTER * len(names) > width - 1 else 0.0
    return width, sum(high + 0.15 for _, high in sizes) + 0.8 + upright


def _panel_inches(panel: Any) -> tuple[float, float]:
    if isinstance(panel, Panel):
        return 0.0, panel.height * _PIXEL
    if isinstance(panel, Stack):
        return 0.0, 0.3 + (0.6 if _is_long(panel.names) else 0.4) * len(panel.names)
    if isinstance(panel, Heatmap):
        count = len(panel.names)
        side = min(9.5, max(2.2, (0.4 if count <= _MOST_WRITTEN else 0.11) * count))
        margin = _LETTER * min(_LONGEST_TICK, max(map(len, panel.names), default=0))
        return side + margin + 1.0, side + margin
    placed = panel.placed()
    return _BOX_INCHES * placed.width + 0.2, max(1.0, 0.95 * len(placed.rows))


def _is_signed(panel: Any) -> bool:
    """Whether signs stand above it."""
    marks = panel.marks if isinstance(panel, Panel) else ()
    return any(isinstance(mark, Words) and mark.look == "sign" and max(mark.y) >= panel.y.high for mark in marks)


def _draw_chart(part: Any, chart: Chart, *, signed: bool = False) -> list[tuple[Any, Any]]:
    """The panels of a chart below each other, with room for signs if a neighbour has some; each with its axes."""
    panels = list(chart.panels) or [Panel(Axis(0, 1, (), ""), Axis(0, 1, (), ""), ())]
    shared = all(isinstance(panel, Panel) for panel in panels)
    ratios = [_panel_inches(panel)[1] for panel in panels]
    axes: list[Any] = part.subplots(len(panels), squeeze=False, sharex=shared, height_ratios=ratios)[:, 0].tolist()
    for ax, panel in zip(axes, panels, strict=True):
        title = chart.title if ax is axes[0] else ""
        _draw_panel(ax, panel, title=title, numbers=not shared or ax is axes[-1], signed=signed and ax is axes[0])
    part.align_ylabels(axes)
    return list(zip(axes, panels, strict=True))


def _draw_panel(
    ax: Any, panel: Any, *, title: str = "", numbers: bool = True, clip: bool = False, signed: bool = False
) -> None:
    """A panel with its axes; ``clip`` cuts what would stick out of the axes once their owner moves their ends."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize="small", labelbottom=True)
    room = _axes_inches(ax)[0]
    above = [_in_two_lines(title, room)]
    if isinstance(panel, Panel):
        ax.grid(axis="y", color="0.9", linewidth=0.6)
        above.append(_in_two_lines(panel.title, room))
        _set_axis(ax, "x", panel.x, numbers=numbers)
        _set_axis(ax, "y", panel.y)
        # The order of marks is the order in which they cover each other.
        found = [
            _MARKS[type(mark)](ax, mark, panel, {"zorder": 2 + place / 100, "clip_on": clip, "in_layout": False})
            for place, mark in enumerate(panel.marks)
        ]
        if not any(found):
            _write_nothing_to_draw(ax)
    else:
        _WHOLE[type(panel)](ax, panel)
    pad = 16 if signed or _is_signed(panel) else 6
    ax.set_title("\n".join(filter(None, above)), fontsize="small", parse_math=False, pad=pad)


def _set_axis(ax: Any, name: str, axis: Axis, *, numbers: bool = True) -> None:
    """Ends, ticks and label as they are given; long names stand upright."""
    room = _axes_inches(ax)[name == "y"]
    texts = [legend_name(text, _LONGEST_TICK) for _, text in axis.ticks]
    upright = name == "x" and max(map(len, texts), default=0) * _LETTER * len(texts) > room
    made = getattr(ax, f"{name}axis")
    if axis.log or axis.logit:
        getattr(ax, f"set_{name}scale")("log" if axis.log else "logit")
    options = {"rotation": 90} if upright else {}
    made.set_ticks([place for place, _ in axis.ticks], labels=texts, parse_math=False, **options)
    made.set_ticks([], minor=True)
    getattr(ax, f"set_{name}lim")(axis.low, axis.high if axis.high > axis.low else axis.low + 1)
    if numbers:
        made.set_label_text(_in_two_lines(axis.label, room), fontsize="small", parse_math=False)
    else:
        ax.tick_params(labelbottom=False)


def _axes_inches(ax: Any) -> tuple[float, float]:
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def _in_two_lines(text: str, inches: float) -> str:
    letters = max(9, int(inches / _LETTER))
    lines = textwrap.wrap(legend_name(text, 2 * letters), letters, max_lines=2, placeholder="…")
    return "\n".join(lines)


def _drawn_places(values: Any, axis: Axis) -> Any:
    """Where values are drawn: what is not finite nowhere, what lies beyond an end of the axis there."""
    given = np.asarray(values, dtype=float)
    return np.clip(np.where(np.isfinite(given), given, np.nan), axis.low, axis.high)


def _finite_places(panel: Panel, x: Sequence[Any], y: Sequence[Any], *others: Any) -> list[Any]:
    """Places across and up, and what belongs to them, without those that miss one."""
    found = [*(_drawn_places(each, panel.x) for each in x), *(_drawn_places(each, panel.y) for each in y)]
    whole = np.isfinite(found).all(axis=0)
    return [np.asarray(each)[whole] for each in (*found, *others)]


def _line_look(look: Look) -> dict[str, Any]:
    if isinstance(look, int):
        series = style(look)
        return {"color": series["color"], "linestyle": series["linestyle"], "linewidth": 1.5}
    return _STROKES.get(look, {"color": "black", "linewidth": 1.2})


def _area_look(look: Look) -> dict[str, Any]:
    if isinstance(look, int):
        turn, index = divmod(look, len(COLOURS))
        hatch = HATCHES[(index + turn) % len(HATCHES)]
        return {"facecolor": COLOURS[index], "hatch": hatch, "alpha": 0.75, "edgecolor": "black", "linewidth": 0.6}
    return {"linewidth": 0.6, **_FILLS.get(look, {"facecolor": "0.8", "edgecolor": "0.3", "hatch": "--"})}


def _term_look(place: int) -> dict[str, Any]:
    colour, hatch = STACKED[place % len(STACKED)]
    return {"facecolor": _PAPER if hatch else PALETTE[f"{colour}-fill"], "edgecolor": PALETTE[colour], "hatch": hatch}


def _marker_look(look: Look) -> dict[str, Any]:
    return {**_line_look(look), "marker": style(look)["marker"] if isinstance(look, int) else "o", "markersize": 4.5}


def _draw_line(ax: Any, mark: Line, panel: Panel, options: dict[str, Any]) -> bool:
    x, y = _drawn_places(mark.x, panel.x), _drawn_places(mark.y, panel.y)
    whole = np.isfinite(x) & np.isfinite(y)
    marked = np.flatnonzero(whole)
    if not mark.markers:  # a point without neighbours would not be seen
        joined = whole[1:] & whole[:-1]
        marked = np.flatnonzero(whole & ~np.append(joined, False) & ~np.append(False, joined))
    elif marked.size > MOST_MARKED:
        marked = marked[:: marked.size // 15]
    # The last step lasts to the end of the axis, as the first one does where steps end at their own place.
    if mark.steps == "post" and whole.any():
        x, y = np.append(x, panel.x.high), np.append(y, y[-1])
    elif mark.steps == "pre" and whole.any():
        x, y, marked = np.append(panel.x.low, x), np.append(y[0], y), marked + 1
    drawstyle = f"steps-{mark.steps}" if mark.steps else "default"
    look = _marker_look(mark.look)
    if mark.marked is None and not (mark.guide and mark.markers):
        ax.plot(x, y, drawstyle=drawstyle, markevery=marked.tolist(), **look, **options)
        return bool(whole.any())
    light = _GUIDE if mark.guide else {}
    ax.plot(x, y, drawstyle=drawstyle, **{**look, "marker": "", **light}, **options)
    if mark.marked is not None:
        x, y = _drawn_places(mark.marked[0], panel.x), _drawn_places(mark.marked[1], panel.y)
        marked = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    ax.plot(x[marked], y[marked], **{**look, "linestyle": "none"}, **options)
    return bool(whole.any())


def _draw_band(ax: Any, mark: Band, panel: Panel, options: dict[str, Any]) -> bool:
    x, low, high = _drawn_places(mark.x, panel.x), _drawn_places(mark.low, panel.y), _drawn_places(mark.high, panel.y)
    whole = np.isfinite([x, low, high]).all(axis=0)
    ax.fill_between(x, low, high, where=whole, facecolor=_line_look(mark.look)["color"], alpha=0.18, lw=0, **options)
    return bool(whole.any())


def _draw_bars(ax: Any, mark: Bars, panel: Panel, options: dict[str, Any]) -> bool:
    left, right, start, end = _finite_places(panel, [mark.left, mark.right], [mark.start, mark.end])
    look = {**_area_look(mark.look), **({"linewidth": 0} if left.size > 60 else {})}
    ax.bar(left, end - start, right - left, bottom=start, align="edge", **look, **options)
    return left.size > 0


def _draw_points(ax: Any, mark: Points, panel: Panel, options: dict[str, Any]) -> bool:
    x, y, *shades = _finite_places(panel, [mark.x], [mark.y], *([] if mark.shade is None else [mark.shade]))
    size = max(1.8, min(4.0, 80 / math.sqrt(max(1, x.size))))
    if not shades or not np.isfinite(shades[0]).any():
        ax.plot(x, y, **{**_marker_look(mark.look), "linestyle": "none", "markersize": size}, **options)
        return x.size > 0
    scale = import_module("matplotlib").colormaps["cividis_r"].with_extremes(bad="0.75")
    shade = np.ma.masked_invalid(shades[0])
    made = ax.scatter(x, y, s=size**2, c=shade, cmap=scale, linewidths=0, plotnonfinite=True, **options)
    _add_colour_scale(ax, made, _in_two_lines(mark.shade_label, _axes_inches(ax)[1]))
    return True


def _add_colour_scale(ax: Any, made: Any, label: str = "") -> None:
    """A colour scale as high as its axes and part of them, so that the axes of a figure are its panels."""
    bar = ax.figure.colorbar(made, cax=ax.inset_axes((1.03, 0, 0.04, 1)))
    bar.set_label(label, fontsize="small", parse_math=False)
    bar.ax.tick_params(labelsize="small")


def _draw_segments(ax: Any, mark: Segments, panel: Panel, options: dict[str, Any]) -> bool:
    first, start, last, stop = np.asarray(mark.ends, dtype=float).reshape(-1, 4).T
    first, last, start, stop = _finite_places(panel, [first, last], [start, stop])
    ends = np.stack([first, start, last, stop], axis=1).reshape(-1, 2, 2)
    lines = import_module("matplotlib.collections").LineCollection(ends, **_line_look(mark.look), **options)
    ax.add_collection(lines, autolim=False)
    return isinstance(mark.look, int) and first.size > 0


def _draw_words(ax: Any, mark: Words, panel: Panel, options: dict[str, Any]) -> bool:
    said = _finite_words(mark, panel)
    look = {"va": "bottom", "fontweight": "bold"} if mark.look == "sign" else {"va": "center"}
    for x, y, text in [] if mark.beside else said:
        _write_beside(
            ax, text, (x, y), (0, 2 if mark.look == "sign" else 0), ha="center", zorder=options["zorder"], **look
        )
    return bool(said)


def _finite_words(mark: Words, panel: Panel) -> list[tuple[float, float, str]]:
    x, y, texts = _finite_places(panel, [mark.x], [mark.y], np.array(mark.texts, dtype=object))
    return [each for each in zip(x.tolist(), y.tolist(), texts.tolist(), strict=True) if each[2]]


def _write_beside(ax: Any, text: str, place: tuple[float, float], offset: tuple[float, float], **look: Any) -> Any:
    """A text next to a place; the offset is in points."""
    look = {"fontsize": "small", "parse_math": False, "annotation_clip": False, **look}
    return ax.annotate(legend_name(text, _LONGEST_TICK), place, offset, textcoords="offset points", **look)


def _place_words(figure: Any, drawn: Sequence[tuple[Any, Any]]) -> None:
    """Put words beside their points, now that the axes have their places; what would cover another is left out."""
    waiting = [
        (
            ax,
            [
                each
                for mark in panel.marks
                if isinstance(mark, Words) and mark.beside
                for each in _finite_words(mark, panel)
            ],
        )
        for ax, panel in drawn
        if isinstance(panel, Panel)
    ]
    if not any(said for _, said in waiting):
        return
    around: Any = import_module("matplotlib.transforms").Bbox.from_bounds
    with _missing_glyphs_ignored():
        figure.canvas.figure.draw_without_rendering()  # of the whole, where this is a part
        for ax, said in waiting:
            inside = ax.get_window_extent()
            taken = [around(x - 3, y - 3, 6, 6) for x, y in (ax.transData.transform(each[:2]) for each in said)]
            for x, y, text in said:
                made = _write_beside(ax, text, (x, y), (0, 0), zorder=4)
                made.set_in_layout(False)
                for across, up in _SIDES:
                    side = ("center", "left", "right")[(across > 0) - (across < 0)]
                    made.set(position=(across, up), ha=side, va=("center", "bottom", "top")[(up > 0) - (up < 0)])
                    box = made.get_window_extent()
                    fits = inside.contains(box.x0, box.y0) and inside.contains(box.x1, box.y1)
                    if fits and not box.count_overlaps(taken):
                        taken.append(box)
                        break
                else:
                    made.remove()


def _draw_boxes(ax: Any, mark: Boxes, panel: Panel, options: dict[str, Any]) -> bool:
    middles = np.arange(len(mark.median)) + 0.5
    x, *values = _finite_places(panel, [middles], [mark.low, mark.first, mark.median, mark.third, mark.high])
    names = ("whislo", "q1", "med", "q3", "whishi")
    stats = [dict(zip(names, each, strict=True)) for each in np.transpose(values).tolist()]
    line = {"color": "black", "linewidth": 1.6}
    look = {"patch_artist": True, "boxprops": _area_look("box"), "medianprops": line, "zorder": options["zorder"]}
    ax.bxp(stats, positions=x.tolist(), widths=0.6, showfliers=False, manage_ticks=False, **look)
    return x.size > 0


def _cursor(ax: Any, mark: Cursor, panel: Panel, options: dict[str, Any]) -> bool:
    place = float(_drawn_places(mark.x[mark.start], panel.x))
    if math.isfinite(place):
        ax.axvline(place, **_line_look("cursor"), **options)
    return False


_MARKS: dict[type, Callable[..., bool]] = {
    Line: _draw_line,
    Band: _draw_band,
    Bars: _draw_bars,
    Points: _draw_points,
    Segments: _draw_segments,
    Words: _draw_words,
    Boxes: _draw_boxes,
    Cursor: _cursor,
}


def _is_long(names: Sequence[str]) -> bool:
    return any(len(name) > _LONGEST_LEFT for name in names)


def _draw_stack(ax: Any, stack: Stack) -> None:
    """Names stand to the left of their bars, or above where they are long."""
    looks, above = stack.looks, _is_long(stack.names)
    _set_axis(ax, "x", stack.axis)
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    for place, (name, own, total) in enumerate(zip(stack.names, stack.terms, stack.totals, strict=True)):
        known = {term: value for term, value in own.items() if math.isfinite(value)}
        ends = _drawn_places(np.cumsum([0.0, *known.values()]), stack.axis)
        for term, start, end in zip(known, ends, ends[1:], strict=False):
            ax.barh(place, end - start, 0.5, left=start, **_term_look(looks[term]))
        _write_beside(ax, total, (float(ends[-1]), place), (4, 0), va="center")
        if above:
            letters = max(_LONGEST_TICK, int(_axes_inches(ax)[0] / _LETTER))
            made = _write_beside(ax, "", (stack.axis.low, place - 0.25), (0, 2), va="bottom")
            made.set_text(legend_name(name, letters))
    names = ["" if above else legend_name(name) for name in stack.names]
    ax.set_yticks(range(len(names)), labels=names, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(1, len(stack.names)) - 0.5, -0.8 if above else -0.5)
    if not looks:
        _write_nothing_to_draw(ax)


def _heatmap(ax: Any, heatmap: Heatmap) -> None:
    """Numbers in the cells, or a dash in negative ones, so that the sign does not rest on colour."""
    given = np.asarray(heatmap.values, dtype=float)
    values = np.where(np.isfinite(given), given, np.nan)
    names = [legend_name(name, _LONGEST_TICK) for name in heatmap.names]
    ax.spines[:].set_visible(False)
    if not np.isfinite(values).any():
        ax.set(xticks=[], yticks=[])
        return _write_nothing_to_draw(ax)
    colours: Any = import_module("matplotlib.colors")
    ends = [PALETTE["minus"], "white", PALETTE["plus"]]
    scale = colours.LinearSegmentedColormap.from_list("certcal", ends).with_extremes(bad="0.85")
    image = ax.imshow(values, cmap=scale, vmin=-1, vmax=1, interpolation="nearest")
    written = len(names) <= _MOST_WRITTEN
    if written:
        for row, column in np.argwhere(np.isfinite(values)):
            value = float(values[row, column])
            text = minus(f"{round(value, 2) + 0.0:.2f}")
            ink = "white" if value > 0.75 else "black"
            ax.text(column, row, text, ha="center", va="center", fontsize="x-small", color=ink)
    else:
        rows, columns = np.nonzero(values < 0)
        dash = {"marker": "_", "markersize": min(4.0, 240 / len(names)), "markeredgewidth": 0.5, "color": "black"}
        ax.plot(columns, rows, linestyle="none", **dash)
    places = range(0, len(names), math.ceil(len(names) / _MOST_NAMED))
    size = "small" if written else max(3.0, min(7.0, 420 / len(names)))
    for axis, turn in ((ax.xaxis, 90 if any(len(name) > 5 for name in names) else 0), (ax.yaxis, 0)):
        axis.set_ticks(places, labels=[names[each] for each in places], parse_math=False, rotation=turn, fontsize=size)
    ax.tick_params(length=0)
    _add_colour_scale(ax, image)
    return None


def _graph(ax: Any, graph: Graph) -> None:
    patches: Any = import_module("matplotlib.patches")
    path: Any = import_module("matplotlib.path").Path
    looks = {(start, stop): look for start, stop, look in graph.edges}
    placed = graph.placed()
    half = _BOX_HIGH / 2
    for edge, way in placed.ways.items():
        (first, start), *through, (last, stop) = way
        corners = [(first, start + half)]
        for x, row in through:
            corners += [(x, row - half), (x, row + half)]
        corners.append((last, stop - half))
        ax.add_patch(
            patches.FancyArrowPatch(
                path=path(corners), arrowstyle="-|>", mutation_scale=10, zorder=2, **_line_look(looks[edge])
            )
        )
    for name, (x, row) in placed.middles.items():
        look = _area_look("top" if name in graph.top else "node")
        ax.add_patch(patches.Rectangle((x - _BOX_WIDE / 2, row - half), _BOX_WIDE, _BOX_HIGH, zorder=3, **look))
        text = _in_two_lines(name, _BOX_LETTERS * _LETTER)
        ax.text(x, row, text, ha="center", va="center", fontsize="small", parse_math=False, zorder=4)
    rows = max(1, len(placed.rows))
    ax.set(xlim=(0, max(1.0, placed.width)), ylim=(rows - 0.5, -0.5))
    ax.set_axis_off()
    if not graph.names:
        _write_nothing_to_draw(ax)


_WHOLE: dict[type, Callable[[Any, Any], None]] = {Stack: _draw_stack, Heatmap: _heatmap, Graph: _graph}
_KINDS: dict[type, str] = {Band: "band", Bars: "area", Points: "points", Segments: "stroke"}


def _legend_entries(chart: Chart) -> list[_Entry]:
    found: list[_Entry] = []
    for mark, label in legend_of(chart.panels):
        kind = ("marked" if mark.markers else "stroke") if isinstance(mark, Line) else _KINDS[type(mark)]
        found.append((label, kind, getattr(mark, "look", 0)))
    for panel in chart.panels:
        if isinstance(panel, Stack):
            found += [(term, "term", place) for term, place in panel.looks.items()]
        elif isinstance(panel, Graph):
            found += [(text, "area" if look in ("top", "node") else "stroke", look) for look, text in panel.entries]
    return found


def _common_legend(entries: Sequence[Sequence[_Entry]]) -> list[_Entry]:
    """One legend for charts that mean the same by the same; empty where they do not."""
    found = list(dict.fromkeys(entry for each in entries for entry in each))
    names, looks = ({entry[:1] for entry in found}, {entry[1:] for entry in found})
    related = all(set(each) & set(entries[0]) for each in entries)
    return found if related and len(names) == len(looks) == len(found) else []


def _legend_mark(kind: str, look: Look) -> Any:
    patch: Any = import_module("matplotlib.patches").Patch
    line: Any = import_module("matplotlib.lines").Line2D
    if kind in ("area", "term"):
        return patch(**(_term_look(look) if isinstance(look, int) and kind == "term" else _area_look(look)))
    if kind == "band":
        return patch(facecolor=_line_look(look)["color"], alpha=0.3, linewidth=0)
    if look == "whisker":
        return line([], [], color="black", linestyle="none", marker="|", markersize=9, markeredgewidth=1.2)
    if kind == "stroke":
        return line([], [], **_line_look(look))
    return line([], [], **{**_marker_look(look), **({"linestyle": "none"} if kind == "points" else {})})


def _legend_columns(entries: Sequence[_Entry], width: float) -> int:
    sizes = [len(legend_name(label)) * _LETTER + 0.6 for label, _, _ in entries]
    rows = 1
    while rows < len(sizes) and sum(max(sizes[at : at + rows]) for at in range(0, len(sizes), rows)) > width:
        rows += 1
    return max(1, math.ceil(len(sizes) / rows))


def _legend_height(entries: Sequence[_Entry], width: float) -> float:
    return math.ceil(len(entries) / _legend_columns(entries, width)) * _ROW + 0.1


def _add_legend(place: Any, entries: Sequence[_Entry], columns: int, **options: Any) -> None:
    """A legend outside of the panels, so that it covers no data, unless options say otherwise."""
    if not entries:
        return
    look = {"loc": "outside lower center", "ncols": columns, "fontsize": "small", "frameon": False, **options}
    # The names are set below, since some would be read as commands.
    numbers = [str(number) for number in range(len(entries))]
    made = place.legend([_legend_mark(kind, its) for _, kind, its in entries], numbers, **look)
    for text, (label, _, _) in zip(made.get_texts(), entries, strict=True):
        text.set_parse_math(False)
        text.set_text(legend_name(label))


def new_figure(**options: Any) -> Any:
    """Make an empty figure without pyplot; notebooks show it when it is the last value of a cell."""
    try:
        base = import_module("matplotlib.figure").Figure
    except ImportError as error:
        raise InputError("figures need matplotlib; run: pip install 'certcal[report]'") from error
    figure = _notebook_figure(base)(**options)
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.08)  # inches
    return figure


@cache
def _notebook_figure(base: Any) -> Any:
    """A class of figures with the picture that notebooks ask for."""

    class ShownFigure(base):
        def _repr_png_(self) -> bytes:
            return figure_bytes(self, "png", 110)

    return ShownFigure


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
    certcal.InputError: picture.gif: figures are written as .png, .svg or .pdf; choose one of these endings
    """
    target = Path(path)
    kind = target.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise InputError(f"{target}: figures are written as .png, .svg or .pdf; choose one of these endings")
    refuse_overwriting(target, force=force)
    write_bytes(target, figure_bytes(figure, kind, dpi), force=force)
    return target


def figure_bytes(figure: Any, kind: str, dpi: int = 200) -> bytes:
    """A figure as the bytes of a file; figures that are made alike give the same bytes."""
    buffer = io.BytesIO()
    # Without dates and random names.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    settings: Any = import_module("matplotlib").rc_context(_SAVED)
    with settings, _missing_glyphs_ignored():
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata)
    return buffer.getvalue()


@contextlib.contextmanager
def _missing_glyphs_ignored() -> Generator[None]:
    """A box is shown instead."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def legend_name(text: str, longest: int = _LONGEST) -> str:
    r"""A name from outside: visible, on one line, and no longer than a legend can bear."""
    shown = printable(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def _write_nothing_to_draw(ax: Any) -> None:
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small", "color": PALETTE["grey"], "zorder": 6}
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2}
    ax.text(0.5, 0.5, "nothing to draw", transform=ax.transAxes, bbox=box, **look)


def style(place: int) -> dict[str, Any]:
    """Colour, marker and line of the series at this place: no two of the first 64 are alike."""
    turn, index = divmod(place, len(COLOURS))
    return {
        "color": COLOURS[index],
        "marker": MARKERS[(index + turn) % len(MARKERS)],
        "linestyle": LINES[(index + turn) % len(LINES)],
    }
