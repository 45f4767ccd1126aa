"""Question 3, whether calibration metrics agree on which models are better calibrated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from certcal._text import capital
from certcal.study._battery import BINNED, UNBINNED
from certcal.study._findings import Draft, Finding, Matrix, across, signed
from certcal.study._population import LABELS, Population, Sheet
from certcal.study._ranks import correlations
from certcal.study._resampling import FEWEST, LEAST, kendall_draws, shrinkage

Floats = NDArray[np.float64]

_SUSPECT = "classwise_equal_mass_ece"


@dataclass(frozen=True, eq=False)
class _Agreement:
    """How each metric agrees with the others on a data set."""

    metrics: list[str]
    means: list[Finding]
    matrix: Matrix
    # Shares of resamples in which the same metric agrees least, and best.
    steadiness: tuple[float, float]

    @property
    def values(self) -> list[float]:
        return [mean.value for mean in self.means]

    @property
    def lowest(self) -> int:
        return self.values.index(min(self.values))


def agreement(population: Population) -> Draft | str:
    """Kendall's correlations between metrics at the chosen bins, and the mean of each with the others."""
    draft, lowest = Draft(), list[Finding]()
    for sheet in population.sheets:
        found = _agree(population, sheet)
        if found is not None:
            draft.findings += found.means
            draft.parts.append(_sentence(sheet, found))
            draft.models.append(found.matrix.n)
            draft.draw([found.matrix])
            lowest.append(found.means[found.lowest])
    if not draft.parts:
        return (
            f"Needs three metrics before scaling that differ between models, of the same {LEAST} or more; measure the "
            "whole battery."
        )
    draft.begin = across(lowest, "The mean correlation of the least agreeing metric")
    draft.cautions.append(
        "Metrics of a model share their test samples, so chance makes them agree more than their true values do. "
        "Agreement does not prove that they measure the right thing: NLL and Brier score also reward accuracy."
    )
    return draft


def _agree(population: Population, sheet: Sheet) -> _Agreement | None:
    columns = {m: sheet.measured(m, population.bins) for m in (*BINNED, *UNBINNED)}
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
    draws: dict[tuple[int, int], Floats] = {}
    if n >= FEWEST:
        rows = population.resampling.rows(n, tag=f"metrics/{sheet.name}")
        pairs = combinations(range(len(metrics)), 2)
        draws = {(i, j): kendall_draws(values[:, i], values[:, j], rows) for i, j in pairs}
    means: list[Finding] = []
    resampled: list[Floats] = []
    for k, metric in enumerate(metrics):
        mean = float(matrix.values[k].sum() - 1) / (len(metrics) - 1)
        mine = [found for pair, found in draws.items() if k in pair]
        resampled.append(np.mean(mine, axis=0) if mine else np.empty(0))
        name = f"{sheet.name}: {LABELS[metric]} with the other metrics, mean"
        means.append(population.resampling.found(name, mean, resampled[-1], n, "correlation"))
    steady = _steadiness(np.array([found.value for found in means]), np.array(resampled), n)
    return _Agreement(metrics, means, matrix, steady)


def _steadiness(values: Floats, resampled: Floats, n: int) -> tuple[float, float]:
    """How often the least and the best of some numbers are so in resamples (columns) as large as the population."""
    known = resampled[:, ~np.isnan(resampled).any(axis=0)]
    if not known.size:
        return math.nan, math.nan
    whole = values[:, None] + shrinkage(n) * (known - values[:, None])
    return float((whole.argmin(0) == values.argmin()).mean()), float((whole.argmax(0) == values.argmax()).mean())


def _sentence(sheet: Sheet, found: _Agreement) -> str:
    values, lowest = found.values, found.lowest
    best, least = values.index(max(values)), found.means[lowest]
    if values[best] == values[lowest]:
        return f"On {sheet.name}, all metrics agree alike with one another (mean correlation {signed(least)})."
    rarely, often = (
        "" if math.isnan(share) else f"; the {word} in {100 * share:.0f} % of the resamples"
        for share, word in zip(found.steadiness, ("least", "best"), strict=True)
    )
    text = (
        f"On {sheet.name}, {LABELS[found.metrics[best]]} agrees best with the other metrics (mean correlation "
        f"{signed(found.means[best])}{often}) and {LABELS[found.metrics[lowest]]} least ({signed(least)}{rarely})."
    )
    if _SUSPECT in found.metrics and found.metrics[lowest] != _SUSPECT:
        place = found.metrics.index(_SUSPECT)
        rank = sorted(values).index(values[place]) + 1
        text += (
            f" {capital(LABELS[_SUSPECT])} has {signed(found.means[place])}: number {rank} of "
            f"{len(values)} from the bottom."
        )
    return text
