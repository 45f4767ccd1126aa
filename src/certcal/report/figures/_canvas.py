"""The names that figures of single results take from the renderer of charts."""

from __future__ import annotations

from certcal.report.mpl import (
    BLUE,
    COLOURS,
    FORMATS,
    GREEN,
    GREY,
    HATCHES,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    legend,
    new_figure,
    note,
    save,
    set_title,
    shortened,
    style,
    tidy,
)

__all__ = [
    "BLUE",
    "COLOURS",
    "FORMATS",
    "GREEN",
    "GREY",
    "HATCHES",
    "ORANGE",
    "PURPLE",
    "SKY",
    "VERMILION",
    "legend",
    "new_figure",
    "note",
    "save",
    "set_title",
    "shortened",
    "style",
    "tidy",
]
