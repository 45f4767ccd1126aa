"""Question 1, whether the order of models by calibration carries over from one data set to another."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from certcal.study._findings import Draft, Finding, Matrix, signed
from certcal.study._population import Population, of_models
from certcal.study._ranks import correlations
from certcal.study._resampling import FEWEST, LEAST, kendall_draws, shrinkage

Floats = NDArray[np.float64]

# Up to so many data sets every pair is a finding of its own.
_PAIRS = 6
# Correlations weaker than this are not called opposite, nor opposite to one another.
_OPPOSITE = 0.1


def across_datasets(population: Population) -> Draft | str:
    """Kendall's correlation of the metric between data sets, for all models and for the most accurate."""
    names = [sheet.name for sheet in population.sheets]
    if len(names) < 2:
        return f"The table has one data set, {names[0]}: measure the models on another one too."
    values, score = _by_model(population)
    n = len(values)
    if n < LEAST:
        return f"Only {n} models were measured on more than one data set; this needs at least {LEAST}."
    tops = population.tops(n)
    # The smallest of the most accurate parts, if all have an accuracy; and all.
    tops = (*(tops[:1] if len(tops) > 1 and not np.isnan(score).any() else ()), n)
    draft, means, pairs = Draft(models=[n]), list[Finding](), list[Finding]()
    for top in tops:
        mean, pairs, matrix = _correlated(population, values, names, top)
        means.append(mean)
        draft.findings += (mean, *(pairs if 2 < len(names) <= _PAIRS else ()))
        draft.charts.append(matrix)
    if len(tops) > 1:
        draft.cautions.append(
            "The most accurate models have the best mean rank by accuracy: the same models on all data sets."
        )
    draft.parts.append(_text(population, means, pairs, tops))
    return draft


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


def _correlated(
    population: Population, values: Floats, names: list[str], top: int
) -> tuple[Finding, list[Finding], Matrix]:
    """The mean correlation over pairs of data sets, that of each pair, and the matrix."""
    how, which, whole = population.resampling, of_models(top, len(values)), len(values)
    matrix = correlations(values[:top], names, title=f"{population.label} on different data sets: {which}")
    pairs = list(combinations(range(len(names)), 2))
    draws: dict[tuple[int, int], Floats] = {}
    if top >= FEWEST:
        rows = how.rows(whole, tag=f"data sets/{top}", top=top)
        draws = {(i, j): kendall_draws(values[:, i], values[:, j], rows) for i, j in pairs}
    shared = {pair: int((~np.isnan(values[:top, list(pair)]).any(axis=1)).sum()) for pair in pairs}
    found: list[Finding] = []
    for i, j in pairs:
        name, value = f"{names[i]} and {names[j]}, {which}", float(matrix.values[i, j])
        if shared[i, j] < LEAST:
            found.append(Finding.undefined(name, shared[i, j], f"needs at least {LEAST} shared models"))
        elif math.isnan(value):
            found.append(Finding.undefined(name, shared[i, j], "the same for all models on one of them"))
        else:
            drawn = draws.get((i, j), np.empty(0))
            found.append(how.found(name, value, drawn, shared[i, j], "correlation", shrink=shrinkage(top)))
    known = [pair for pair, each in zip(pairs, found, strict=True) if not math.isnan(each.value)]
    name = f"{names[0]} and {names[1]}, {which}" if len(pairs) == 1 else f"mean over pairs of data sets, {which}"
    if not known:
        note = "too few models in common, or the same for all of them"
        return Finding.undefined(name, top, note), found, matrix
    notes = [] if len(known) == len(pairs) else [f"over the {len(known)} of {len(pairs)} pairs that have a correlation"]
    least, most = (choose(shared[pair] for pair in known) for choose in (min, max))
    if least < most:
        notes.append(f"pairs have {least:,} to {most:,} models in common")
    together = np.mean([draws[pair] for pair in known], axis=0) if draws else np.empty(0)
    mean = float(np.mean([float(matrix.values[pair]) for pair in known]))
    return how.found(name, mean, together, least, "correlation", "; ".join(notes), shrinkage(top)), found, matrix


def _text(population: Population, means: list[Finding], pairs: list[Finding], tops: tuple[int, ...]) -> str:
    """The answer; ``pairs`` are those of all models."""
    everyone, names = means[-1], [sheet.name for sheet in population.sheets]
    subject = f"Orders of models by {population.label}"
    if len(names) > 2:
        subject += f" have a mean correlation between data sets of {signed(everyone)}"
    else:
        subject += f" on {names[0]} and {names[1]} have a correlation of {signed(everyone)}"
    text = f"{_verdict(everyone, pairs)} {subject} ({of_models(tops[-1], tops[-1])})."
    if len(names) > 2 and not math.isnan(everyone.value):
        known = [pair for pair in pairs if not math.isnan(pair.value)]
        ends = [choose(known, key=lambda pair: pair.value) for choose in (min, max)]
        low, high = (f"{pair.value:+.2f} ({pair.name.rpartition(', ')[0]})" for pair in ends)
        text += f" The pairs lie between {low} and {high}."
    if len(means) > 1:
        text += f" Among {of_models(tops[0], tops[-1])} it is {signed(means[0])}."
    return text


def _verdict(mean: Finding, pairs: list[Finding]) -> str:
    if math.isnan(mean.value):
        return "It cannot be told."
    clear = [pair.value for pair in pairs if pair.excludes_zero]
    if clear and min(clear) <= -_OPPOSITE and max(clear) >= _OPPOSITE:
        return "It depends on the data sets."
    if not mean.excludes_zero:
        return "No." if mean.strength == "practically no" else "It cannot be told from these models."
    if mean.value < 0:
        return "No, rather the opposite." if mean.value <= -_OPPOSITE else "No."
    return "Largely." if mean.low >= 0.6 else "In part." if mean.value >= 0.3 else "Hardly."
