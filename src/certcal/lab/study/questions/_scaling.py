"""What temperature scaling (question 4) and the number of bins (question 6) do to a metric."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certcal.lab.study._battery import BINNED
from certcal.lab.study._findings import (
    Box,
    BoxPlots,
    Draft,
    Finding,
    Matrix,
    format_correlation,
    format_number,
    format_share,
    join_words,
    range_sentence,
)
from certcal.lab.study._population import LABELS, Population, Sheet
from certcal.lab.study._ranks import correlations
from certcal.lab.study._resampling import LEAST, median_growth
from certcal.lab.study._table import Stage

# What happens to the order of the models, by the strength of the correlation of before and after.
_KEPT = {
    "strong positive": "mostly survives",
    "moderate positive": "survives in part",
    "weak positive": "survives a little",
    "negligible positive": "hardly survives",
    "practically no": "does not survive",
    "no clear": "does not clearly survive",
    "strong negative": "is mostly reversed",
    "moderate negative": "is reversed in part",
    "weak negative": "is reversed a little",
    "negligible negative": "hardly survives",
}


def scaling(population: Population) -> Draft | str:
    """Kendall's correlation of the metric before and after scaling, and the share of models that it improves."""
    before, after, label = population.column, population.scaled, population.label
    if after not in population:
        return f"The table has no column {after}: measure the models with temperature scaling (certcal study measure)."
    draft, orders, floors = Draft(), list[Finding](), list[str]()
    name = f"{label} before with after"
    for sheet in population.sheets:
        pre, post = sheet.complete(before, after)
        if pre.size < LEAST:
            draft.parts.append(f"On {sheet.name} {pre.size} models were measured before and after; this needs {LEAST}.")
            continue
        draft.models.append(pre.size)
        order = population.correlation(sheet, before, after, name)
        improved = population.resampling.share(
            f"{sheet.name}: share of models with a smaller {label} after scaling", int((post < pre).sum()), pre.size
        )
        ratio = population.resampling.finding(
            f"{sheet.name}: median {label} after / before",
            median_growth,
            pre,
            post,
            tag=f"scaling/{sheet.name}",
            scale="ratio",
        )
        draft.findings += (order, improved, ratio)
        orders.append(order)
        text = (
            f"On {sheet.name}, scaling lowers the {label} of {format_share(improved)} of {improved.n:,} models"
            + ("" if math.isnan(ratio.value) else f", its median to {format_number(ratio)} of what it was")
            + f". The order {_KEPT.get(order.strength, 'cannot be compared')} (correlation "
            f"{format_correlation(order)}"
        )
        if "accuracy" in sheet:
            ranked = sheet.columns_by_accuracy(before, after)[0].size
            tops = population.tops(ranked)
            if len(tops) > 1:
                best = population.correlation(sheet, before, after, name, top=tops[0])
                draft.findings.append(best)
                text += f"; among the {tops[0]:,} most accurate {format_correlation(best)}"
        draft.parts.append(f"{text}).")
        draft.draw([_scaling_matrix(population, sheet)])
        # Above the mean error of calibrated models, often by half or more: a median below it may still be no chance.
        limit, middle = sheet.error_by_chance(population.bins), float(np.median(post))
        if population.metric in ("ece", "equal_mass_ece") and middle <= limit:
            samples = f"{sheet.samples:,.0f} samples"
            floors.append(f"on {sheet.name} {middle:.4f}, against a limit of {limit:.4f} ({samples})")
    if floors:
        draft.cautions.append(
            f"After scaling, the median {label} is within what chance alone can make of perfectly calibrated models on "
            f"average: {join_words(floors)}. The order may be mostly noise, and a correlation near zero says little."
        )
    draft.begin = range_sentence(orders, "The correlation of before and after")
    return draft


def _scaling_matrix(population: Population, sheet: Sheet) -> Matrix:
    """Before and after at every bin count, as in the benchmark study's Figure 4b."""
    metric, title = population.metric, f"{sheet.name}: {population.label} before and after temperature scaling"
    if metric not in BINNED:
        return correlations(sheet.numbers([population.column, population.scaled]), ["pre", "post"], title=title)
    pairs: list[tuple[Stage, int]] = [(s, bins) for s in ("pre", "post") for bins in sheet.bins(metric, s)]
    values = sheet.numbers([sheet.column_of(metric, bins, stage) for stage, bins in pairs])
    return correlations(values, [f"{stage} {bins}" for stage, bins in pairs], title=f"{title}, by number of bins")


Floats = NDArray[np.float64]
Known = dict[str, tuple[Finding, Finding]]

_STAGES: tuple[tuple[Stage, str], ...] = (("pre", "before"), ("post", "after"))


def bin_counts(population: Population) -> Draft | str:
    """How the metric's size and its order of the models change with the number of bins."""
    metric = population.metric if population.metric in BINNED else "ece"
    draft, biases = Draft(), list[tuple[float, str]]()
    for sheet in population.sheets:
        counts = sheet.bins(metric, "pre") or sheet.bins(metric, "post")
        if len(counts) < 2:
            continue
        # From the chosen number to the largest one; from the smallest if the chosen one was not measured or is largest.
        pair = (population.bins if population.bins in counts[:-1] else counts[0]), counts[-1]
        known: Known = {}
        for stage, words in _STAGES:
            names = [sheet.column_of(metric, bins, stage) for bins in pair]
            values = _complete_columns(sheet, names)
            if values is not None:
                grown = population.resampling.finding(
                    f"{sheet.name}: median {LABELS[metric]} {words} scaling, {pair[1]} bins / {pair[0]} bins",
                    median_growth,
                    *values,
                    tag=f"bins/{sheet.name}/{stage}",
                    scale="ratio",
                    note="" if np.median(values[0]) > 0 else "the median at the smaller number of bins is zero",
                )
                name = f"{LABELS[metric]} {words} scaling, {pair[0]} with {pair[1]} bins"
                known[stage] = grown, population.correlation(sheet, names[0], names[1], name)
                draft.findings += known[stage]
        if not known:
            continue
        draft.models += [grown.n for grown, _ in known.values()]
        contrast = _contrast(population, sheet, metric, pair)
        draft.findings += () if contrast is None else (contrast,)
        draft.parts.append(_bins_sentence(sheet, metric, pair, known, contrast))
        draft.draw((_bins_boxes(sheet, metric, stage, words) for stage, words in _STAGES if stage in known), most=12)
        biases += _bias_cautions(sheet, metric, pair)
    if not draft.parts:
        return (
            f"Needs {LABELS[metric]} at two numbers of bins or more, of at least {LEAST} models; measure with several "
            "numbers of bins."
        )
    if biases:
        draft.cautions.append(max(biases)[1])
    if metric in ("ece", "classwise_ece"):
        draft.cautions.append(
            "Equal-width bins that split wider ones (5, 10, 20, 100, 500) never give a smaller error, whatever the "
            "model: growth along these is no finding; its size is."
        )
    return draft


def _complete_columns(sheet: Sheet, names: list[str]) -> tuple[Floats, ...] | None:
    """Columns of the models that have them all; None if there are too few."""
    values = sheet.complete(*names) if all(name in sheet for name in names) else ()
    return values if values and values[0].size >= LEAST else None


def _contrast(population: Population, sheet: Sheet, metric: str, pair: tuple[int, int]) -> Finding | None:
    """How many times more the median grows after scaling than before."""
    values = _complete_columns(sheet, [sheet.column_of(metric, bins, stage) for stage, _ in _STAGES for bins in pair])
    if values is None:
        return None

    def growths(a: Floats, b: Floats, c: Floats, d: Floats) -> float:
        before = median_growth(a, b)
        return median_growth(c, d) / before if before > 0 else math.nan

    name = f"{sheet.name}: growth of the median {LABELS[metric]} after scaling / before"
    return population.resampling.finding(name, growths, *values, tag=f"bins/{sheet.name}", scale="ratio")


def _bins_sentence(sheet: Sheet, metric: str, pair: tuple[int, int], known: Known, contrast: Finding | None) -> str:
    stages = [(words, *known[stage]) for stage, words in _STAGES if stage in known]
    grows = " and ".join(f"{format_number(grown)} {words}" for words, grown, _ in stages) + " scaling"
    orders = " and ".join(format_correlation(order) for _, _, order in stages)
    text = (
        f"On {sheet.name}, from {pair[0]} to {pair[1]} bins the median {LABELS[metric]} changes by a factor of "
        f"{grows}, and the two orders have a correlation of {orders}."
    )
    if contrast is None or math.isnan(contrast.low):
        return text
    if contrast.low > 1:
        return f"{text} Bins matter more after scaling ({format_number(contrast)} times)."
    if contrast.high < 1:
        return f"{text} Bins matter more before scaling ({format_number(contrast)} times as much after it)."
    return f"{text} That bins matter more after scaling is not clear ({format_number(contrast)} times)."


def _bins_boxes(sheet: Sheet, metric: str, stage: Stage, words: str) -> BoxPlots:
    boxes = tuple(Box.of(str(bins), sheet[sheet.column_of(metric, bins, stage)]) for bins in sheet.bins(metric, stage))
    return BoxPlots(f"{sheet.name}: {LABELS[metric]} {words} temperature scaling", "bins", LABELS[metric], boxes)


def _bias_cautions(sheet: Sheet, metric: str, pair: tuple[int, int]) -> list[tuple[float, str]]:
    """Metric of a perfectly calibrated model at these numbers of bins: the larger number, and a sentence."""
    few_bins, many = (sheet.error_by_chance(bins) for bins in pair)
    if metric not in ("ece", "equal_mass_ece") or math.isnan(many):
        return []
    text = (
        f"Part of the growth is bias: on {sheet.name}, a perfectly calibrated model of median accuracy "
        f"({sheet.accuracy:.3f}) shows an {LABELS[metric]} of up to {few_bins:.4f} on average at {pair[0]} bins and "
        f"{many:.4f} at {pair[1]} ({sheet.samples:,.0f} test samples)."
    )
    return [(many, text)]
