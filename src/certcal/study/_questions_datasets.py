"""Question 1, whether the order of models by calibration carries over from one data set to another."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from certcal.study._cautions import few
from certcal.study._findings import Answer, Finding, Matrix
from certcal.study._population import Population, of_models
from certcal.study._resampling import FEWEST, LEAST, kendall_draws, shrinkage
from certcal.study._words import excludes_zero, signed, strength

Floats = NDArray[np.float64]

QUESTION = "Can model calibration be generalised across different data sets?"
PUBLISHED = (
    "The ECE on CIFAR-10 says little about that on CIFAR-100 and nothing about that on ImageNet16-120 (for the "
    '"top 1000" models it is even negatively correlated); CIFAR-100 and ImageNet16-120 agree more. The calibration '
    "of an architecture does not carry over."
)
# Up to so many data sets every pair is a finding of its own.
_PAIRS = 6
# Correlations weaker than this are not called opposite, nor opposite to one another.
_OPPOSITE = 0.1


def across_datasets(population: Population) -> Answer:
    """Kendall's correlation of the metric between data sets, for all models and for the most accurate."""
    names = [sheet.name for sheet in population.sheets]
    if len(names) < 2:
        return Answer(
            1, QUESTION, f"The table has one data set, {names[0]}: measure the models on another one too.",
            published=PUBLISHED,
        )  # fmt: skip
    values, score = _by_model(population)
    if len(values) < LEAST:
        text = f"Only {len(values)} models were measured on more than one data set; this needs at least {LEAST}."
        return Answer(1, QUESTION, text, published=PUBLISHED)
    tops = _tops(population, len(values), score)
    findings: list[Finding] = []
    charts: list[Matrix] = []
    means: list[Finding] = []
    pairs: list[Finding] = []
    for top in tops:
        which = of_models(top, len(values))
        mean, matrix, draws = _mean(population, values, names, top, which)
        pairs = _pairs(population, values, names, top, which, matrix, draws)
        means.append(mean)
        charts.append(matrix)
        findings.append(mean)
        if 2 < len(names) <= _PAIRS:
            findings.extend(pairs)
    cautions = list(few(len(values), population.resampling.level))
    if len(tops) > 1:
        cautions.append(
            "The most accurate models are those with the best mean rank by accuracy over the data sets, so that all "
            "data sets are compared on the same models."
        )
    text = _text(population, means, pairs, charts, tops)
    return Answer(1, QUESTION, text, tuple(findings), tuple(charts), tuple(cautions), PUBLISHED)


def _by_model(population: Population) -> tuple[Floats, Floats]:
    """The metric of models with two data sets or more, the most accurate first; and what they are sorted by."""
    values = population.wide(population.column)
    if "accuracy" not in population:
        values = values[(~np.isnan(values)).sum(axis=1) > 1]
        return values, np.full(len(values), np.nan)
    accuracy = population.wide("accuracy")
    place = np.full(accuracy.shape, np.nan)
    for column in range(accuracy.shape[1]):
        known = ~np.isnan(accuracy[:, column])
        _, ranks, counts = np.unique(-accuracy[known, column], return_inverse=True, return_counts=True)
        middle = np.cumsum(counts) - counts / 2
        place[known, column] = middle[ranks] / known.sum()
    known = ~np.isnan(place)
    score = np.full(len(place), np.nan)
    np.divide(np.where(known, place, 0).sum(axis=1), known.sum(axis=1), out=score, where=known.any(axis=1))
    order = np.argsort(score, kind="stable")
    order = order[(~np.isnan(values[order])).sum(axis=1) > 1]
    return values[order], score[order]


def _tops(population: Population, n: int, score: Floats) -> tuple[int, ...]:
    """The smallest of the most accurate parts, and all."""
    tops = population.tops(n)
    return tops if len(tops) == 1 else (tops[0], n) if not np.isnan(score).any() else (n,)


def _mean(
    population: Population, values: Floats, names: list[str], top: int, which: str
) -> tuple[Finding, Matrix, dict[tuple[int, int], Floats]]:
    """The mean correlation over pairs of data sets, the matrix, and the resamples of each pair."""
    from certcal.study._ranks import correlations

    title = f"{population.label} on different data sets: {which}"
    matrix = correlations(values[:top], names, title=title)
    pairs = list(combinations(range(len(names)), 2))
    draws: dict[tuple[int, int], Floats] = {}
    if top >= FEWEST:
        rows = population.resampling.rows(len(values), tag=f"data sets/{top}", top=top)
        draws = {(i, j): kendall_draws(values[:, i], values[:, j], rows) for i, j in pairs}
    found = {pair: float(matrix.values[pair]) for pair in pairs if _shared(values[:top], pair) >= LEAST}
    found = {pair: value for pair, value in found.items() if not math.isnan(value)}
    name = f"{names[0]} and {names[1]}, {which}" if len(pairs) == 1 else f"mean over pairs of data sets, {which}"
    if not found:
        note = "too few models in common, or the same for all of them"
        return Finding(name, math.nan, math.nan, math.nan, top, note), matrix, draws
    together = np.mean([draws[pair] for pair in found], axis=0) if draws else np.empty(0)
    note = "" if len(found) == len(pairs) else f"over the {len(found)} of {len(pairs)} pairs that have a correlation"
    mean = float(np.mean(list(found.values())))
    shared = [_shared(values[:top], pair) for pair in found]
    n = min(shared)
    if n < max(shared):
        note = "; ".join(filter(None, (note, f"pairs have {n:,} to {max(shared):,} models in common")))
    how = population.resampling
    return how.found(name, mean, together, n, "correlation", note, shrinkage(top)), matrix, draws


def _shared(values: Floats, pair: tuple[int, int]) -> int:
    """Models that were measured on both data sets of a pair."""
    return int((~np.isnan(values[:, list(pair)]).any(axis=1)).sum())


def _pairs(
    population: Population,
    values: Floats,
    names: list[str],
    top: int,
    which: str,
    matrix: Matrix,
    draws: dict[tuple[int, int], Floats],
) -> list[Finding]:
    found: list[Finding] = []
    for i, j in combinations(range(len(names)), 2):
        name = f"{names[i]} and {names[j]}, {which}"
        shared = _shared(values[:top], (i, j))
        value = float(matrix.values[i, j])
        if shared < LEAST or np.isnan(value):
            note = (
                f"needs at least {LEAST} shared models" if shared < LEAST else "the same for all models on one of them"
            )
            found.append(Finding(name, math.nan, math.nan, math.nan, shared, note))
        else:
            drawn = draws.get((i, j), np.empty(0))
            found.append(population.resampling.found(name, value, drawn, shared, "correlation", shrink=shrinkage(top)))
    return found


def _text(
    population: Population, means: list[Finding], pairs: list[Finding], charts: list[Matrix], tops: tuple[int, ...]
) -> str:
    """The answer; ``pairs`` are those of all models."""
    everyone = means[-1]
    label = population.label
    several = len(charts[-1].names) > 2
    subject = (
        f"The orders of models by {label} have a mean correlation between data sets of {signed(everyone)}"
        if several
        else f"The orders of models by {label} on {charts[-1].names[0]} and {charts[-1].names[1]} have a correlation "
        f"of {signed(everyone)}"
    )
    parts = [f"{_verdict(everyone, pairs)} {subject} ({of_models(tops[-1], tops[-1])})."]
    if several and not np.isnan(everyone.value):
        upper = [(float(charts[-1].values[i, j]), i, j) for i, j in combinations(range(len(charts[-1].names)), 2)]
        upper = [pair for pair in upper if not math.isnan(pair[0])]
        least, most = min(upper), max(upper)
        names = charts[-1].names
        parts.append(
            f"The pairs lie between {least[0]:+.2f} ({names[least[1]]} and {names[least[2]]}) and {most[0]:+.2f} "
            f"({names[most[1]]} and {names[most[2]]})."
        )
    if len(means) > 1:
        parts.append(f"Among {of_models(tops[0], tops[-1])} it is {signed(means[0])}.")
    return " ".join(parts)


def _verdict(mean: Finding, pairs: list[Finding]) -> str:
    if np.isnan(mean.value):
        return "It cannot be told."
    clear = [pair.value for pair in pairs if excludes_zero(pair)]
    if clear and min(clear) <= -_OPPOSITE and max(clear) >= _OPPOSITE:
        return "It depends on the data sets."
    if not excludes_zero(mean):
        return "No." if strength(mean) == "practically no" else "It cannot be told from these models."
    if mean.value < 0:
        return "No, rather the opposite." if mean.value <= -_OPPOSITE else "No."
    return "Largely." if mean.low >= 0.6 else "In part." if mean.value >= 0.3 else "Hardly."
