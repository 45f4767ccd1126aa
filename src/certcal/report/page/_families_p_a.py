"""The distributions of p_A of families at each noise level: by p as it is, and by the radius that p stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from certcal._html import Raw, element, join, table
from certcal.report.numbers import number
from certcal.report.page._axes import Axis, ticks
from certcal.report.page._families_drawn import grouped, key_of, left_out, members, names_legend
from certcal.report.page._pieces import clipped, figure, row, scrolling, shown
from certcal.report.page._svg import Frame, chart, coordinate
from certcal.smoothing.robustness import Compared, Families

_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)
_SAID = (0.5, 0.9, 0.99)
# Probabilities that are marked above the scale of radii, where there is room.
_MARKED = (0.5, 0.7, 0.9, 0.99, 0.999, 0.9999, 0.99999)
_LETTER, _MARKERS = 7.6, 5
# No chart shows more: beyond this many steps they are thinned before they are drawn.
_MOST_STEPS = 100_000
_EXPLAINED = (
    "The p_A of a sample is the probability that noise leaves its true class on top, estimated by its share of votes, "
    "and 0 where another class was chosen. At one sigma, a curve that is nowhere below another is ahead at every "
    "radius, number of draws and alpha; only p of at least one half certifies anything. One chart draws p as it is, "
    "the other by the radius that it stands for, sigma times the quantile of the normal distribution at p: the last "
    "per cent takes a large part of the width there, as it does in the average certified radius."
)


def p_a_part(found: Families) -> Raw:
    """Two charts and a table for each noise level."""
    parts: list[Raw | None] = [element("p", _EXPLAINED)]
    for sigma in found.sigmas:
        runs = members(found, sigma)
        key = key_of(sigma, found)
        figures: list[Raw] = []
        for part, group in enumerate(grouped([place for place, _, _ in runs])):
            own = [runs[entry] for entry in group]
            figures += [_by_p(f"p-{key}-{part}", sigma, own), _by_radius(f"r-{key}-{part}", sigma, own)]
        parts.append(element("div", row(*figures), _shares(sigma, runs), class_="block"))
    return join([each for each in [*parts, left_out(found)] if each is not None])


def _by_p(key: str, sigma: float, runs: Sequence[tuple[int, str, Compared]]) -> Raw:
    frame = Frame(Axis(0.5, 1.0, ticks(0.5, 1), "p"), _share_axis(), height=240)
    title = f"Distribution of p_A at sigma {sigma:g}"
    picture = chart(
        key, title, _said(runs), frame.furniture(), _drawn(frame, runs, lambda p: p), height=frame.bottom + 46
    )
    return figure(picture, None, heading=f"Sigma {sigma:g}, by p", legend=_legend(runs))


def _by_radius(key: str, sigma: float, runs: Sequence[tuple[int, str, Compared]]) -> Raw:
    quantile = NormalDist().inv_cdf
    # One vote less than all of the most draws lies well inside.
    end = quantile(1 - 0.5 / max(2, *(run.draws[1] for _, _, run in runs)))

    def radius(p: float) -> float:
        return sigma * (quantile(p) if p < 1 else end)

    across = Axis(0.0, sigma * end, ticks(0, sigma * end), "radius, were p_A known exactly")
    frame = Frame(across, _share_axis(), top=30, height=222)
    title = f"Distribution of p_A at sigma {sigma:g} by the radius that p stands for"
    picture = chart(
        key,
        title,
        _said(runs),
        _upright(frame, radius),
        frame.furniture(),
        _drawn(frame, runs, radius),
        height=frame.bottom + 46,
    )
    return figure(picture, None, heading=f"Sigma {sigma:g}, by the radius", legend=_legend(runs))


def _share_axis() -> Axis:
    return Axis(0.0, 1.0, ticks(0, 1), "share with p_A ≥ p")


def _legend(runs: Sequence[tuple[int, str, Compared]]) -> Raw:
    return names_legend([(place, name) for place, name, _ in runs])


def _upright(frame: Frame, radius: Callable[[float], float]) -> Raw:
    """Where some p lie on the scale of radii, written above it as far as there is room."""
    lines: list[str] = []
    above = coordinate(frame.top - 9)
    texts: list[Raw] = [element("text", "p =", x=coordinate(frame.left - 16), y=above, class_="end name")]
    free = frame.left - 20
    for p in _MARKED:
        x, words = frame.across(radius(p)), f"{p:g}"
        half = _LETTER * len(words) / 2
        if radius(p) < frame.x.high and x - half > free:
            free = x + half + 4
            lines.append(f"M{coordinate(x)} {coordinate(frame.top - 4)}V{coordinate(frame.bottom)}")
            texts.append(element("text", words, x=coordinate(x), y=above, class_="middle name"))
    return element("g", element("path", class_="grid", d="".join(lines)), texts)


def _drawn(frame: Frame, runs: Sequence[tuple[int, str, Compared]], scale: Callable[[float], float]) -> list[Raw]:
    """Staircases with a few markers each, at places of their own."""
    made: list[Raw] = []
    for slot, (place, _, run) in enumerate(runs):
        xs, lower, upper = _thinned(run, frame, scale)
        if not np.array_equal(lower, upper):
            twice = [x for x in xs for _ in (0, 1)][1:-1]
            made.append(frame.band(twice, _flat(lower), _flat(upper), place))
        made.append(frame.steps([xs[0], *xs[:-1]], lower, place))
        wide = frame.x.high - frame.x.low
        at = [frame.x.low + wide * (step + (slot + 0.5) / len(runs)) / _MARKERS for step in range(_MARKERS)]
        heights = [lower[min(int(np.searchsorted(xs, x)), len(lower) - 1)] for x in at]
        made.append(frame.marks(at, heights, place))
    return made


def _flat(shares: Sequence[float]) -> list[float]:
    """Heights of both ends of each step: a share holds from the place before its own."""
    return [share for share in shares[1:] for _ in (0, 1)]


def _thinned(
    run: Compared, frame: Frame, scale: Callable[[float], float]
) -> tuple[list[float], list[float], list[float]]:
    """Places and shares of the steps; of those that fall on the same half unit of the picture, the last."""
    found = run.distribution.curve(_MOST_STEPS)
    xs = [scale(p) for p in found.p.tolist()]
    columns = [round(2 * frame.across(x)) for x in xs]
    kept = [step for step, column in enumerate(columns) if step in (0, len(xs) - 1) or column != columns[step + 1]]
    return tuple([values[step] for step in kept] for values in (xs, found.lower.tolist(), found.upper.tolist()))  # pyright: ignore[reportReturnType]


def _said(runs: Sequence[tuple[int, str, Compared]]) -> str:
    return " ".join(
        f"{clipped(name, 60)}: {', '.join(f'{share_text(run, p)} with p_A of at least {p:g}' for p in _SAID)}."
        for _, name, run in runs
    )


def share_text(run: Compared, p: Any) -> str:
    """The share of samples with p_A of at least p, as text; a range where a log leaves votes open."""
    low, high = (number(float(each)) for each in run.distribution.survival(p))
    return low if low == high else f"{low} – {high}"


def _shares(sigma: float, runs: Sequence[tuple[int, str, Compared]]) -> Raw:
    caption = f"Share of samples with p_A of at least p, at sigma {sigma:g}"
    rows = [(shown(name, 60), *(share_text(run, p) for p in _SHARES)) for _, name, run in runs]
    header = ["family", *(f"{p:g}" for p in _SHARES)]
    return scrolling(table(header, rows, caption, numeric=range(1, len(header)), row_headers=True), caption)
