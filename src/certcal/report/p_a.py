"""Distributions of p_A as charts and texts: the share of samples whose true class gets at least a share p of votes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from certcal.report.charts import (
    Axis,
    Band,
    Chart,
    Line,
    Mark,
    Panel,
    Segments,
    Words,
    drawn_steps,
    percent,
    ticks,
    unit,
)
from certcal.report.numbers import number, percent_of

if TYPE_CHECKING:
    from certcal.smoothing.robustness import PaDistribution

P_A = (
    "p_A is the probability that noise leaves the true class on top, estimated by its share of votes, and 0 where "
    "another class was chosen."
)
QUANTILES, SHARES = (0.1, 0.25, 0.5, 0.75, 0.9), (0.5, 0.9, 0.99)
# Probabilities that are marked on the scale of radii, where there is room.
_MARKED = (0.5, 0.7, 0.9, 0.99, 0.999, 0.9999, 0.99999)
_MOST_STEPS = 100_000
_APART = 0.1


class PaLine(NamedTuple):
    """One line of a chart: its look, its name, and the distribution."""

    look: int
    name: str
    distribution: PaDistribution


def p_a_chart(
    title: str, lines: Sequence[PaLine], *, draws: int | None = None, caption: str = "", in_percent: bool = False
) -> Chart:
    """The share of samples with p_A of at least p, from one half on, as falling staircases."""
    up = (percent if in_percent else unit)("share with p_A ≥ p")
    up = up if draws is None else replace(up, high=1.13)  # room for the p that are marked
    if draws is None:
        across, marks, scale = Axis(0.5, 1.0, ticks(0.5, 1), "p"), list[Mark](), float
    else:
        across, marks, scale = _by_radius(lines[0].distribution.sigma, draws)
    for line in lines:
        marks += _staircase(line, across, scale)
    unit_of = " %" if in_percent else ""
    shares = [
        [f"{share_text(each.distribution, p, in_percent)}{unit_of} with p_A of at least {p:g}" for p in SHARES]
        for each in lines
    ]
    said = " ".join(f"{line.name}: {', '.join(texts)}." for line, texts in zip(lines, shares, strict=True))
    return Chart(title, said, [Panel(across, up, marks, 240)], caption)


def share_text(seen: PaDistribution, p: float, in_percent: bool = False) -> str:
    """The share of samples with p_A of at least p; a range where a log leaves votes open."""
    low, high = (percent_of(each) if in_percent else number(each) for each in map(float, seen.survival(p)))
    return low if low == high else f"{low} – {high}"


def _by_radius(sigma: float, draws: int) -> tuple[Axis, list[Mark], Callable[[float], float]]:
    quantile = NormalDist().inv_cdf
    end = sigma * quantile(1 - 0.5 / max(2, draws))  # one vote less than all lies well inside

    def radius(p: float) -> float:
        return sigma * quantile(p) if p < 1 else end

    axis = Axis(0.0, end, ticks(0, end), "radius if p_A were known exactly")
    kept: list[float] = []
    for p in _MARKED:
        if radius(p) < end and (not kept or axis.at(radius(p)) - axis.at(radius(kept[-1])) > _APART):
            kept.append(p)
    at = [radius(p) for p in kept]
    marks: list[Mark] = [Segments([(x, 0.0, x, 1.0) for x in at], "lead")]
    marks.append(Words(at, [1.08] * len(at), [f"{p:g}" for p in kept]))
    return axis, marks, radius


def _staircase(line: PaLine, across: Axis, scale: Callable[[float], float]) -> list[Mark]:
    found = line.distribution.curve(_MOST_STEPS)
    x = [scale(p) for p in found.p.tolist()]
    kept = drawn_steps(x, across)
    at, lower, upper = ([values[step] for step in kept] for values in (x, found.lower.tolist(), found.upper.tolist()))
    marks: list[Mark] = []
    if lower != upper:  # a share holds from the place before its own
        twice = [value for value in at for _ in (0, 1)][1:-1]
        ends = [[share for share in shares[1:] for _ in (0, 1)] for shares in (lower, upper)]
        marks.append(Band(twice, ends[0], ends[1], line.look))
    return [*marks, Line(at, lower, line.look, line.name, "pre", markers=False)]
