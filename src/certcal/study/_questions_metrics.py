"""Question 3, whether calibration metrics agree on which models are better calibrated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from certcal.study._battery import BINNED, UNBINNED
from certcal.study._cautions import few
from certcal.study._findings import Answer, Finding, Matrix
from certcal.study._population import LABELS, Population, Sheet
from certcal.study._resampling import FEWEST, LEAST, kendall_draws, shrinkage
from certcal.study._words import overview, signed, told

Floats = NDArray[np.float64]

QUESTION = "How reliable are calibration metrics?"
PUBLISHED = (
    "Most metrics order the models alike, whether they bin or not, NLL and Brier score included, and in spite of its "
    "known faults the ECE agrees with most of them. The classwise errors agree less; the classwise equal-mass one is "
    "even negatively correlated with others on ImageNet16-120 and may not be reliable."
)
_SUSPECT = "classwise_equal_mass_ece"
_DRAWN = 6


@dataclass(frozen=True, eq=False)
class _Agreement:
    """How each metric agrees with the others on a data set."""

    metrics: list[str]
    means: list[Finding]
    matrix: Matrix
    lowest: int
    # Shares of resamples in which the same metric agrees least, and best.
    steadiness: tuple[float, float]


def agreement(population: Population) -> Answer:
    """Kendall's correlations between metrics at the chosen bins, and the mean of each with the others."""
    findings: list[Finding] = []
    charts: list[Matrix] = []
    parts: list[str] = []
    lowest: list[Finding] = []
    smallest = math.inf
    for sheet in population.sheets:
        found = _agree(population, sheet)
        if found is None:
            continue
        findings.extend(found.means)
        lowest.append(found.means[found.lowest])
        if len(charts) < _DRAWN:
            charts.append(found.matrix)
        parts.append(_sentence(sheet, found))
        smallest = min(smallest, found.matrix.n)
    if not parts:
        text = (
            f"Needs three metrics before temperature scaling, of the same {LEAST} models or more, that are not the "
            "same for all of them; measure with the whole battery."
        )
        return Answer(3, QUESTION, text, published=PUBLISHED)
    cautions = [
        *few(int(smallest), population.resampling.level),
        "All metrics of a model are computed from the same test samples, so chance makes them agree more than their "
        "true values do. Agreement is no proof that they measure the right thing: NLL and Brier score "
        "also reward accuracy.",
    ]
    return Answer(
        3,
        QUESTION,
        told(parts, overview(lowest, "The mean correlation of the least agreeing metric")),
        tuple(findings),
        tuple(charts),
        tuple(cautions),
        PUBLISHED,
    )


def _agree(population: Population, sheet: Sheet) -> _Agreement | None:
    from certcal.study._ranks import correlations

    columns = {m: sheet.measured(m, population.bins) for m in (*BINNED, *UNBINNED)}
    columns = {m: c for m, c in columns.items() if c in sheet and not np.isnan(sheet[c]).all()}
    if not columns:
        return None
    values = np.column_stack(sheet.complete(*columns.values()))
    if len(values) < LEAST:
        return None
    varying = [k for k in range(values.shape[1]) if (values[:, k] != values[0, k]).any()]
    if len(varying) < 3:
        return None
    values, metrics = values[:, varying], [list(columns)[k] for k in varying]
    n = len(values)
    matrix = correlations(values, [LABELS[m] for m in metrics], title=f"{sheet.name}: agreement of metrics, all models")
    draws: dict[tuple[int, int], Floats] = {}
    if n >= FEWEST:
        rows = population.resampling.rows(n, tag=f"metrics/{sheet.name}")
        pairs = combinations(range(len(metrics)), 2)
        draws = {(i, j): kendall_draws(values[:, i], values[:, j], rows) for i, j in pairs}
    others = len(metrics) - 1
    means: list[Finding] = []
    resampled: list[Floats] = []
    for k, metric in enumerate(metrics):
        mean = float(matrix.values[k].sum() - 1) / others
        mine = [found for pair, found in draws.items() if k in pair]
        resampled.append(np.mean(mine, axis=0) if mine else np.empty(0))
        name = f"{sheet.name}: {LABELS[metric]} with the other metrics, mean"
        means.append(population.resampling.found(name, mean, resampled[-1], n, "correlation"))
    values = np.array([found.value for found in means])
    lowest = int(values.argmin())
    return _Agreement(metrics, means, matrix, lowest, _steadiness(values, np.array(resampled), n))


def _steadiness(values: Floats, resampled: Floats, n: int) -> tuple[float, float]:
    """How often the least and the best of some numbers are so in resamples (columns) as large as the population."""
    known = resampled[:, ~np.isnan(resampled).any(axis=0)]
    if not known.size:
        return math.nan, math.nan
    whole = values[:, None] + shrinkage(n) * (known - values[:, None])
    return float((whole.argmin(0) == values.argmin()).mean()), float((whole.argmax(0) == values.argmax()).mean())


def _sentence(sheet: Sheet, found: _Agreement) -> str:
    values = [mean.value for mean in found.means]
    best = int(np.argmax(values))
    least = found.means[found.lowest]
    if values[best] == values[found.lowest]:
        return f"On {sheet.name}, all metrics agree alike with one another (mean correlation {signed(least)})."
    lowest, highest = (
        "" if math.isnan(share) else f"; the {word} in {100 * share:.0f} % of the resamples"
        for share, word in zip(found.steadiness, ("least", "best"), strict=True)
    )
    text = (
        f"On {sheet.name}, {LABELS[found.metrics[best]]} agrees best with the other metrics (mean correlation "
        f"{signed(found.means[best])}{highest}) and {LABELS[found.metrics[found.lowest]]} least "
        f"({signed(least)}{lowest})."
    )
    if _SUSPECT in found.metrics and found.metrics[found.lowest] != _SUSPECT:
        place = found.metrics.index(_SUSPECT)
        rank = sorted(values).index(values[place]) + 1
        text += (
            f" {LABELS[_SUSPECT][0].upper() + LABELS[_SUSPECT][1:]} has {signed(found.means[place])}: number {rank} of "
            f"{len(values)} from the bottom."
        )
    return text
