"""Question 6, what the number of bins does."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certcal.study._battery import BINNED
from certcal.study._boxes import box
from certcal.study._cautions import by_chance, few
from certcal.study._findings import Answer, Boxes, Chart, Finding
from certcal.study._population import LABELS, Population, Sheet
from certcal.study._resampling import LEAST
from certcal.study._table import Stage
from certcal.study._words import plain, signed, size, told

Floats = NDArray[np.float64]

QUESTION = "What is the impact of bin size on calibration measurement?"
PUBLISHED = (
    "On CIFAR-10 the ECE grows with the number of bins, and more so after temperature scaling: twice as large at 100 "
    "bins and five times at 500, where its order of the models has almost nothing to do with that at 100. Before "
    "scaling it is steadier. Undertrained models depend more on the number of bins."
)
_DRAWN = 6
_STAGES: tuple[tuple[Stage, str], ...] = (("pre", "before"), ("post", "after"))


def bin_counts(population: Population) -> Answer:
    """How the metric's size and its order of the models change with the number of bins."""
    metric = population.metric if population.metric in BINNED else "ece"
    findings: list[Finding] = []
    charts: list[Chart] = []
    cautions: list[str] = []
    biases: list[tuple[float, str]] = []
    parts: list[str] = []
    smallest = math.inf
    for sheet in population.sheets:
        pair = _pair(sheet, metric, population.bins)
        if pair is None:
            continue
        known: dict[Stage, tuple[Finding, Finding]] = {}
        for stage, words in _STAGES:
            both = _stage(population, sheet, metric, stage, words, pair)
            if both is not None:
                known[stage] = both
        if not known:
            continue
        findings.extend(finding for both in known.values() for finding in both)
        smallest = min(smallest, *(both[0].n for both in known.values()))
        contrast = _contrast(population, sheet, metric, pair)
        if contrast is not None:
            findings.append(contrast)
        parts.append(_sentence(sheet, metric, pair, known, contrast))
        if len(charts) < 2 * _DRAWN:
            charts.extend(_boxes(sheet, metric, stage, words) for stage, words in _STAGES if stage in known)
        biases.extend(_bias(sheet, metric, pair))
    if not parts:
        text = (
            f"Needs {LABELS[metric]} at two numbers of bins or more, of at least {LEAST} models; measure with several "
            "numbers of bins."
        )
        return Answer(6, QUESTION, text, published=PUBLISHED)
    if biases:
        cautions.append(max(biases)[1])
    if metric in ("ece", "classwise_ece"):
        cautions.append(
            "Bins of equal width that split wider ones never give a smaller error, whatever the model: of 5, 10, 20, "
            "100 and 500 bins each splits the one before, so that growth along these is no finding; its size is."
        )
    cautions = [*few(int(smallest), population.resampling.level), *cautions]
    return Answer(6, QUESTION, told(parts), tuple(findings), tuple(charts), tuple(cautions), PUBLISHED)


def _pair(sheet: Sheet, metric: str, bins: int) -> tuple[int, int] | None:
    """The chosen number of bins and the largest one; the smallest if the chosen one was not measured or is largest."""
    counts = sheet.bins(metric, "pre") or sheet.bins(metric, "post")
    if len(counts) < 2:
        return None
    return (bins if bins in counts and bins < counts[-1] else counts[0]), counts[-1]


def _values(sheet: Sheet, metric: str, stage: Stage, pair: tuple[int, int]) -> tuple[Floats, ...] | None:
    names = [sheet.measured(metric, bins, stage) for bins in pair]
    if any(name not in sheet for name in names):
        return None
    values = sheet.complete(*names)
    return values if values[0].size >= LEAST else None


def _stage(
    population: Population, sheet: Sheet, metric: str, stage: Stage, words: str, pair: tuple[int, int]
) -> tuple[Finding, Finding] | None:
    """How many times the median grows from the first to the second number of bins, and the correlation of the two."""
    values = _values(sheet, metric, stage, pair)
    if values is None:
        return None
    few_bins, many = pair
    ratio = population.resampling.finding(
        f"{sheet.name}: median {LABELS[metric]} {words} scaling, {many} bins / {few_bins} bins",
        _growth,
        *values,
        tag=f"bins/{sheet.name}/{stage}",
        scale="ratio",
        note="" if np.median(values[0]) > 0 else "the median at the smaller number of bins is zero",
    )
    name = f"{LABELS[metric]} {words} scaling, {few_bins} with {many} bins"
    first, second = (sheet.measured(metric, bins, stage) for bins in pair)
    return ratio, population.correlation(sheet, first, second, name=name)


def _growth(first: Floats, second: Floats) -> float:
    middle = float(np.median(first))
    return float(np.median(second)) / middle if middle > 0 else math.nan


def _contrast(population: Population, sheet: Sheet, metric: str, pair: tuple[int, int]) -> Finding | None:
    """How many times more the median grows after scaling than before."""
    names = [sheet.measured(metric, bins, stage) for stage, _ in _STAGES for bins in pair]
    if any(name not in sheet for name in names):
        return None
    values = sheet.complete(*names)
    if values[0].size < LEAST:
        return None

    def growths(a: Floats, b: Floats, c: Floats, d: Floats) -> float:
        before = _growth(a, b)
        return _growth(c, d) / before if before > 0 else math.nan

    return population.resampling.finding(
        f"{sheet.name}: growth of the median {LABELS[metric]} after scaling / before",
        growths,
        *values,
        tag=f"bins/{sheet.name}",
        scale="ratio",
    )


def _sentence(
    sheet: Sheet,
    metric: str,
    pair: tuple[int, int],
    known: dict[Stage, tuple[Finding, Finding]],
    contrast: Finding | None,
) -> str:
    said = [
        f"{words} scaling it is {plain(known[stage][0])} times as large, and the two orders of the models have a "
        f"correlation of {signed(known[stage][1])}"
        for stage, words in _STAGES
        if stage in known
    ]
    text = f"On {sheet.name}, from {pair[0]} to {pair[1]} bins, the median {LABELS[metric]}: {'; '.join(said)}."
    if contrast is None or math.isnan(contrast.low):
        return text
    if contrast.low > 1:
        return f"{text} The number of bins matters more after scaling ({plain(contrast)} times the growth)."
    if contrast.high < 1:
        return f"{text} The number of bins matters more before scaling ({plain(contrast)} times the growth after it)."
    return f"{text} That it matters more after scaling is not clear ({plain(contrast)} times the growth)."


def _boxes(sheet: Sheet, metric: str, stage: Stage, words: str) -> Boxes:
    boxes = tuple(box(str(bins), sheet[sheet.measured(metric, bins, stage)]) for bins in sheet.bins(metric, stage))
    return Boxes(f"{sheet.name}: {LABELS[metric]} {words} temperature scaling", "bins", LABELS[metric], boxes)


def _bias(sheet: Sheet, metric: str, pair: tuple[int, int]) -> list[tuple[float, str]]:
    """What a perfectly calibrated model would show at these numbers of bins; the larger number, and in words."""
    few_bins, many = (by_chance(sheet, bins) for bins in pair)
    if metric not in ("ece", "equal_mass_ece") or math.isnan(many):
        return []
    text = (
        f"Part of the growth is bias: a perfectly calibrated model as accurate as the median one on {sheet.name} "
        f"({sheet.accuracy:.3f}), on {sheet.samples:,.0f} test samples, would show an {LABELS[metric]} of up to "
        f"{size(few_bins)} on average at {pair[0]} bins and of up to {size(many)} at {pair[1]}."
    )
    return [(many, text)]
