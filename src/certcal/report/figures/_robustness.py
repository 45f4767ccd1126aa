"""Runs beside each other: certified accuracy against the radius."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal.report.figures._canvas import legend, new_figure, note, shortened, style, tidy

if TYPE_CHECKING:
    from certcal.smoothing.robustness import Comparison

_MOST = 16
_MOST_MARKERS = 30


def certified_accuracy_curves(comparison: Comparison) -> Any:
    """Draw the certified accuracy of every run against the radius; a broad grey line is the best at each radius.

    Parameters
    ----------
    comparison
        From ``certcal.smoothing.robustness.compare``.

    Examples
    --------
    >>> from certcal.smoothing.robustness import VoteRecord, compare
    >>> runs = [VoteRecord.of([100, 100 - k], 100, [1, 1], sigma=1.0, name=f"run {k}") for k in (5, 30)]
    >>> figure = certified_accuracy_curves(compare(runs, at=[0, 0.5, 1]))
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['run 5', 'run 30', 'best of them']
    """
    _check_number(len(comparison.runs), "runs")
    figure = new_figure(figsize=(6.0, 4.2))
    ax = figure.add_subplot()
    handles: list[Any] = []
    for place, run in enumerate(comparison.runs):
        look = style(place)
        if len(run.curve.at) > _MOST_MARKERS:
            look["markevery"] = len(run.curve.at) // 15
        handles += ax.plot(run.curve.at, run.curve.values, markersize=5, linewidth=1.4, zorder=4, **look)
    names = [run.name for run in comparison.runs]
    if len(names) > 1:
        handles += ax.plot(comparison.best.at, comparison.best.values, color="0.8", linewidth=7, zorder=2)
        names.append("best of them")
    at = comparison.best.at
    ax.set(xlabel="radius", ylabel="certified accuracy (at least)", ylim=(0, 1.03))
    if len(at) == 1:
        ax.set_xlabel("radius (only one was asked for)")
        ax.set(xticks=at, xlim=(at[0] - max(0.1, 0.2 * at[0]), at[0] + max(0.1, 0.2 * at[0])))
    if all(count == 0 for run in comparison.runs for count in run.curve.certified):
        note(ax, "no sample is certified and correct at any of these radii")
    tidy(ax, grid=True)
    legend(figure, handles, [shortened(name) for name in names], columns=_columns(names))
    return figure


def _check_number(count: int, what: str) -> None:
    if not 1 <= count <= _MOST:
        raise InputError(f"{count} {what} were asked for in one figure; draw from 1 to {_MOST}")


def _columns(names: list[str]) -> int:
    longest = max(map(len, names))
    return 3 if longest <= 14 else 2 if longest <= 30 else 1
