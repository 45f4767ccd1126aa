"""What all figures share: an empty figure, the palette, names drawn as they are, legends beside the data, files."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from certcal._checks import InputError
from certcal._files import refuse_overwriting, write_bytes
from certcal._text import printable

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#666666"
GREEN, VERMILION, PURPLE, SKY, YELLOW = "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442"
FORMATS = ("png", "svg", "pdf")

# One per series, most different first. Yellow comes last: thin lines of it are hard to see on white.
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, "black", YELLOW)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (2, 2)), "-.")
HATCHES = ("", "////", "..", "\\\\\\\\", "xx", "---", "o", "++")

_LONGEST = 60


def new_figure(**options: Any) -> Any:
    """Make an empty figure without pyplot; notebooks show it when it is the last value of a cell."""
    try:
        import_module("matplotlib.figure")
    except ImportError as error:
        raise InputError("figures need matplotlib; run: pip install 'certcal[report]'") from error
    from certcal.report.figures._shown import ShownFigure

    figure: Any = ShownFigure(**options)
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.08)  # inches
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
    write_bytes(target, rendered(figure, kind, dpi), force=force)
    return target


def rendered(figure: Any, kind: str, dpi: int) -> bytes:
    """A figure as the bytes of a file; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    # Without dates and random names.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    settings: Any = import_module("matplotlib").rc_context({"svg.hashsalt": "certcal"})
    with settings, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a box is shown instead
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata)
    return buffer.getvalue()


def shortened(text: str, longest: int = _LONGEST) -> str:
    r"""A name from outside: visible, on one line, and no longer than a legend can bear.

    Examples
    --------
    >>> shortened("a\nb"), len(shortened("x" * 500))
    ('a\\nb', 60)
    """
    shown = printable(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def set_title(ax: Any, text: str, **options: Any) -> None:
    """Text above a panel, letter by letter."""
    ax.set_title(text, fontsize="small", parse_math=False, **options)


def legend(figure: Any, handles: Sequence[Any], names: Sequence[str], *, columns: int = 3, where: str = "lower") -> Any:
    """A legend outside of the panels, so that it covers no data."""
    made = figure.legend(
        list(handles),
        [str(place) for place in range(len(names))],  # the names are set below, since some would be read as commands
        loc=f"outside {where} center",
        ncols=min(columns, max(1, len(names))),
        fontsize="small",
        frameon=False,
    )
    for text, name in zip(made.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
    return made


def note(ax: Any, sentence: str, *, x: float = 0.5, y: float = 0.5) -> None:
    """A sentence inside a panel, where there is nothing to draw; in fractions of the panel."""
    ax.text(
        x,
        y,
        sentence,
        transform=ax.transAxes,
        ha="center",
        va="center",
        fontsize="small",
        color=GREY,
        wrap=True,
        parse_math=False,
        zorder=6,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2},
    )


def tidy(ax: Any, *, grid: bool = False) -> None:
    """No frame on the sides without numbers, small numbers on the others."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize="small", labelbottom=True)
    if grid:
        ax.grid(axis="y", color="0.9", linewidth=0.6)


def style(place: int) -> dict[str, Any]:
    """Colour, marker and line of the series at this place: no two of the first 64 are alike."""
    turn, index = divmod(place, len(COLOURS))
    return {
        "color": COLOURS[index],
        "marker": MARKERS[(index + turn) % len(MARKERS)],
        "linestyle": LINES[(index + turn) % len(LINES)],
    }
