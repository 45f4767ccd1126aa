"""Runs beside each other: certified accuracy against the radius, and the distribution of p_A."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from certcal._checks import InputError
from certcal.report.figures._canvas import GREY, legend, new_figure, note, shortened, style, tidy

if TYPE_CHECKING:
    from certcal.smoothing.robustness import Comparison, PaDistribution

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


def pa_distribution(distributions: PaDistribution | Comparison | Iterable[PaDistribution]) -> Any:
    """Draw the empirical distribution of p_A: the share of samples whose true label gets at most a share p of votes.

    Where the curve is lower, more samples have many votes. Samples up to p = 1/2 (shaded) are certified at no radius.
    Where a log leaves votes open, a band shows between which curves the distribution lies.

    Parameters
    ----------
    distributions
        One or several ``certcal.smoothing.robustness.PaDistribution``, or a comparison.

    Examples
    --------
    >>> from certcal.smoothing.robustness import PaDistribution, VoteRecord
    >>> figure = pa_distribution(PaDistribution.of(VoteRecord.of([100, 90], 100, [1, 1], sigma=1.0, name="a")))
    >>> figure.axes[0].get_xlabel()
    'p_A, share of votes for the true label'
    """
    several = _distributions(distributions)
    _check_number(len(several), "distributions")
    figure = new_figure(figsize=(6.0, 4.2))
    ax = figure.add_subplot()
    ax.axvspan(0, 0.5, facecolor="0.94", linewidth=0, zorder=0)
    ax.text(0.25, 0.98, "certified at no radius", ha="center", va="top", fontsize="small", color=GREY)
    handles: list[Any] = []
    for place, seen in enumerate(several):
        look = style(place)
        look.pop("marker")
        p, least, most = _shares(seen)
        handles += ax.step(p, most, where="post", linewidth=1.6, zorder=4, **look)
        if not np.array_equal(least, most):
            ax.fill_between(p, least, most, step="post", color=look["color"], alpha=0.25, linewidth=0, zorder=3)
    ax.set(xlabel="p_A, share of votes for the true label", ylabel="share of samples with at most this p_A")
    ax.set(xlim=(0, 1), ylim=(0, 1.03))
    tidy(ax, grid=True)
    names = [f"{shortened(seen.name, 40) or 'samples'} (σ = {seen.sigma:g}, n = {len(seen):,})" for seen in several]
    legend(figure, handles, names, columns=_columns(names))
    return figure


def _distributions(given: Any) -> list[PaDistribution]:
    if hasattr(given, "runs"):
        return [run.distribution for run in given.runs]
    if hasattr(given, "survival"):
        return [given]
    several = list(cast("Iterable[Any]", given))
    for place, each in enumerate(several):
        if not (hasattr(each, "low") and hasattr(each, "survival_counts")):
            raise InputError(f"distributions[{place}] is {type(each).__name__}; pass PaDistribution objects")
    return several


def _shares(seen: PaDistribution) -> tuple[Any, Any, Any]:
    """Where the steps are, and the least and most that the share of samples with at most this p_A can be there."""
    p = np.unique(np.concatenate([seen.low, seen.high, [0.0, 1.0]]))
    counts = [np.searchsorted(values, p, side="right") / len(seen) for values in (seen.high, seen.low)]
    return p, counts[0], counts[1]


def _check_number(count: int, what: str) -> None:
    if not 1 <= count <= _MOST:
        raise InputError(f"{count} {what} were asked for in one figure; draw from 1 to {_MOST}")


def _columns(names: list[str]) -> int:
    longest = max(map(len, names))
    return 3 if longest <= 14 else 2 if longest <= 30 else 1
