"""Whether orders of models agree: between data sets (question 1), and between metrics (question 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from certcal._base.rounding import signed
from certcal._base.text import capital
from certcal.lab.study._battery import BINNED, UNBINNED
from certcal.lab.study._findings import Finding, Matrix, join_words
from certcal.lab.study._population import LABELS, Population, Sheet
from certcal.lab.study._ranks import correlations
from certcal.lab.study._resampling import FEWEST, LEAST, kendall_draws, shrinkage
from certcal.lab.study.questions._form import SheetAnswer, Statistic

Floats = NDArray[np.float64]

# Up to so many data sets every pair is a finding of its own.
_PAIRS = 6
# Correlations weaker than this are not called opposite, nor opposite to one another.
_OPPOSITE = 0.1
# Mean correlations that differ by less differ by the rounding of their sums: of n models, tau itself moves in steps of
# 1/n², and no population has 10⁵.
_ROUNDING = 1e-12
_SAME_MODELS = {
    most: f"The {most} accurate models have the {best} mean rank by accuracy: the same models on all data sets."
    for most, best in (("most", "best"), ("least", "worst"))
}
# The metric that the benchmark study doubts.
_SUSPECT = "classwise_equal_mass_ece"


def _pair_draws(population: Population, values: Floats, tag: str, top: int) -> dict[tuple[int, int], Floats]:
    """Kendall's correlation of each pair of columns among the first models, in resamples; none of too few models."""
    if top < FEWEST:
        return {}
    rows = population.resampling.rows(len(values), tag=tag, top=top)
    pairs = combinations(range(values.shape[1]), 2)
    return {(i, j): kendall_draws(values[:, i], values[:, j], rows) for i, j in pairs}


@dataclass(frozen=True)
class Transfer(Statistic):
    """Kendall's correlation of a column between data sets, for all models and for the most accurate."""

    column: str

    def on(self, population: Population, sheet: Sheet) -> SheetAnswer | None:
        names = [each.name for each in population.sheets]
        if len(names) < 2:
            return SheetAnswer(f"The table has one data set, {names[0]}: measure the models on another one too.")
        (column,) = population.columns(self.column)
        (values,), score = population.by_mean_rank(column)
        n = len(values)
        if n < LEAST:
            return SheetAnswer(f"Only {n} models were measured on more than one data set; this needs at least {LEAST}.")
        tops = population.tops(n)
        # The smallest of the most accurate parts, if all have an accuracy; and all.
        tops = (*(tops[:1] if len(tops) > 1 and not np.isnan(score).any() else ()), n)
        found = [_correlate_datasets(population, values, names, top) for top in tops]
        listed = 2 < len(names) <= _PAIRS
        return SheetAnswer(
            _data_sentence(population, [mean for mean, _, _ in found], found[-1][1], tops),
            [each for mean, pairs, _ in found for each in (mean, *(pairs if listed else ()))],
            [n],
            always=[matrix for _, _, matrix in found],
            remarks=[(0.0, _SAME_MODELS[population.most])] if len(tops) > 1 else (),
        )


def _correlate_datasets(
    population: Population, values: Floats, names: list[str], top: int
) -> tuple[Finding, list[Finding], Matrix]:
    """The mean correlation over pairs of data sets, that of each pair, and the matrix."""
    how, which = population.resampling, population.models_text(top, len(values))
    matrix = correlations(values[:top], names, title=f"{population.label} on different data sets: {which}")
    pairs = list(combinations(range(len(names)), 2))
    draws = _pair_draws(population, values, f"data sets/{top}", top)
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
            found.append(how.finding_from_draws(name, value, drawn, shared[i, j], "correlation", shrink=shrinkage(top)))
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
    return (
        how.finding_from_draws(name, mean, together, least, "correlation", "; ".join(notes), shrinkage(top)),
        found,
        matrix,
    )


def _data_sentence(population: Population, means: list[Finding], pairs: list[Finding], tops: tuple[int, ...]) -> str:
    """The answer; ``pairs`` are those of all models."""
    everyone, names = means[-1], [sheet.name for sheet in population.sheets]
    subject = f"Orders of models by {population.label}"
    if len(names) > 2:
        subject += f" have a mean correlation between data sets of {everyone:correlation}"
    else:
        subject += f" on {names[0]} and {names[1]} have a correlation of {everyone:correlation}"
    text = f"{_verdict(everyone, pairs)} {subject} ({population.models_text(tops[-1], tops[-1])})."
    if len(names) > 2 and not math.isnan(everyone.value):
        known = [pair for pair in pairs if not math.isnan(pair.value)]
        ends = [choose(known, key=lambda pair: pair.value) for choose in (min, max)]
        low, high = (f"{signed(pair.value, 2)} ({pair.name.rpartition(', ')[0]})" for pair in ends)
        text += f" The pairs lie between {low} and {high}."
    if len(means) > 1:
        text += f" Among {population.models_text(tops[0], tops[-1])} it is {means[0]:correlation}."
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


@dataclass(frozen=True, eq=False)
class _Agreement:
    """How each metric agrees with the others on a data set."""

    metrics: list[str]
    means: list[Finding]
    matrix: Matrix
    # Shares of resamples in which one of those that agree least does so too, and of those that agree best.
    steadiness: tuple[float, float]

    @property
    def values(self) -> Floats:
        return np.array([mean.value for mean in self.means])

    @property
    def lowest(self) -> list[int]:
        return np.flatnonzero(_least(self.values)).tolist()

    @property
    def highest(self) -> list[int]:
        return np.flatnonzero(_least(-self.values)).tolist()


def _least(values: Floats) -> NDArray[np.bool_]:
    """Which of the numbers (of each column) are the least but for rounding."""
    return values <= values.min(axis=0) + _ROUNDING


@dataclass(frozen=True)
class Agreement(Statistic):
    """Kendall's correlations between metrics at the chosen bins, and the mean of each with the others."""

    metrics: tuple[str, ...] = (*BINNED, *UNBINNED)

    def on(self, population: Population, sheet: Sheet) -> SheetAnswer | None:
        found = _measure_agreement(population, sheet, self.metrics)
        if found is None:
            return None
        sentence, lowest = _agreement_sentence(sheet, found), found.means[found.lowest[0]]
        return SheetAnswer(sentence, found.means, [found.matrix.n], [found.matrix], leading=lowest)


def _measure_agreement(population: Population, sheet: Sheet, wanted: Sequence[str]) -> _Agreement | None:
    columns = {m: sheet.column_of(m, population.bins) for m in wanted}
    columns = {m: c for m, c in columns.items() if c in sheet and not np.isnan(sheet[c]).all()}
    if not columns:
        return None
    values = np.column_stack(sheet.complete(*columns.values()))
    n = len(values)
    if n < LEAST:
        return None
    varying = np.flatnonzero((values != values[0]).any(axis=0)).tolist()
    if len(varying) < 3:
        return None
    values, metrics = values[:, varying], [list(columns)[k] for k in varying]
    matrix = correlations(values, [LABELS[m] for m in metrics], title=f"{sheet.name}: agreement of metrics, all models")
    draws = _pair_draws(population, values, f"metrics/{sheet.name}", n)
    means: list[Finding] = []
    resampled: list[Floats] = []
    for k, metric in enumerate(metrics):
        mean = float(matrix.values[k].sum() - 1) / (len(metrics) - 1)
        mine = [found for pair, found in draws.items() if k in pair]
        resampled.append(np.mean(mine, axis=0) if mine else np.empty(0))
        name = f"{sheet.name}: {LABELS[metric]} with the other metrics, mean"
        means.append(population.resampling.finding_from_draws(name, mean, resampled[-1], n, "correlation"))
    steady = _steadiness(np.array([found.value for found in means]), np.array(resampled), n)
    return _Agreement(metrics, means, matrix, steady)


def _steadiness(values: Floats, resampled: Floats, n: int) -> tuple[float, float]:
    """How often the least and the best of some numbers are so in resamples (columns) as large as the population."""
    known = resampled[:, ~np.isnan(resampled).any(axis=0)]
    if not known.size:
        return math.nan, math.nan
    whole = values[:, None] + shrinkage(n) * (known - values[:, None])
    least, best = (float(_least(side * whole)[_least(side * values)].any(axis=0).mean()) for side in (1, -1))
    return least, best


def _agreement_sentence(sheet: Sheet, found: _Agreement) -> str:
    values, lowest, best = found.values, found.lowest, found.highest
    least = found.means[lowest[0]]
    if len(lowest) == len(values):
        return f"On {sheet.name}, all metrics agree alike with one another (mean correlation {least:correlation})."
    rarely, often = (
        ""
        if math.isnan(share)
        else f"; {'one of them ' * (len(places) > 1)}the {word} in {100 * share:.0f} % of the resamples"
        for share, word, places in zip(found.steadiness, ("least", "best"), (lowest, best), strict=True)
    )
    text = (
        f"On {sheet.name}, {_who_agrees(found, best)} best with the other metrics (mean correlation "
        f"{found.means[best[0]]:correlation}{often}) and {_who_agrees(found, lowest)} least "
        f"({least:correlation}{rarely})."
    )
    if _SUSPECT in found.metrics and found.metrics.index(_SUSPECT) not in lowest:
        place = found.metrics.index(_SUSPECT)
        rank = 1 + int((values < values[place] - _ROUNDING).sum())
        text += (
            f" {capital(LABELS[_SUSPECT])} has {found.means[place]:correlation}: number {rank} of "
            f"{len(values)} from the bottom."
        )
    return text


def _who_agrees(found: _Agreement, places: list[int]) -> str:
    """Metrics that agree alike, with the verb."""
    names = [LABELS[found.metrics[place]] for place in places]
    return f"{join_words(names)} {'agrees' if len(names) == 1 else 'agree'}"
