# pyright: basic
"""A figure that notebooks show without pyplot."""

from __future__ import annotations

from matplotlib.figure import Figure

from certcal.report.mpl import rendered


class ShownFigure(Figure):
    """A matplotlib figure with the picture that notebooks ask for."""

    def _repr_png_(self) -> bytes:
        return rendered(self, "png", 110)
