"""The picture of a worst case: intervals, the sign of every bin, and where each sample goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from certcal._checks import InputError
from certcal.report.figures._canvas import BLUE, GREY, ORANGE, legend, new_figure

if TYPE_CHECKING:
    from certcal.worst_case import WorstCase

_MOST = 60


def sign_runs(worst: WorstCase, lower: Any, upper: Any, correct: Any) -> Any:
    """Draw each sample's interval over bins marked with their sign, and the confidence it takes in the worst case.

    Correct samples go to the first '+' bin they reach, incorrect ones to the last '-' bin.

    Parameters
    ----------
    worst
        From ``certcal.worst_case.calibration_error``.
    lower, upper, correct
        What it was computed from, up to 60 samples.

    Examples
    --------
    >>> from certcal.worst_case import calibration_error
    >>> samples = [0.1, 0.5], [0.6, 0.9], [1, 0]
    >>> figure = sign_runs(calibration_error(*samples, bins=3), *samples)
    >>> figure.axes[0].get_xlabel()
    'confidence'
    """
    low, high, c = np.asarray(lower, np.float64), np.asarray(upper, np.float64), np.asarray(correct)
    if worst.signs is None or worst.bins is None:
        raise InputError("worst has no signs; pass a result of certcal.worst_case.calibration_error")
    if low.size > _MOST:
        raise InputError(f"lower has {low.size} samples, too many to draw; pass at most {_MOST}")
    if not low.size == high.size == c.size == worst.witness.size:
        raise InputError(
            f"lengths differ: lower has {low.size}, upper {high.size}, correct {c.size} and the worst case "
            f"{worst.witness.size}; pass what worst was computed from"
        )
    edges = worst.bins.edges
    figure = new_figure(figsize=(7.2, 1.4 + 0.2 * low.size))
    ax = figure.add_subplot()
    for m, sign in enumerate(worst.signs):
        ax.axvspan(edges[m], edges[m + 1], color=BLUE if sign > 0 else ORANGE, alpha=0.13, linewidth=0)
        middle = (edges[m] + edges[m + 1]) / 2
        ax.text(middle, low.size - 0.2, "+" if sign > 0 else "−", ha="center", va="bottom", fontweight="bold")
    ax.vlines(edges, -0.8, low.size - 0.3, color=GREY, linewidth=0.4)
    rows = np.lexsort((low, c))
    handles: list[Any] = []
    for right, colour, marker in ((1, BLUE, "o"), (0, ORANGE, "s")):
        chosen = np.flatnonzero(c[rows] == right)
        samples = rows[chosen]
        ax.hlines(chosen, low[samples], high[samples], color=colour, linewidth=2.2)
        handles += ax.plot(
            worst.witness[samples],
            chosen,
            marker,
            color=colour,
            markeredgecolor="black",
            markersize=6,
            clip_on=False,
            zorder=5,
        )
    ax.set(xlim=(0, 1), ylim=(-0.8, low.size + 0.6), xlabel="confidence", yticks=[])
    ax.spines[["left", "right", "top"]].set_visible(False)
    legend(figure, handles, ["correct: goes to the first + bin", "incorrect: goes to the last − bin"])
    return figure
