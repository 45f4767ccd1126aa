"""Correlations of columns with one another: among all models, among the most accurate, and at equal accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from certcal.lab.study._findings import Finding, Lines, join_words
from certcal.lab.study._population import LABELS, Population, Sheet
from certcal.lab.study._ranks import kendall
from certcal.lab.study._resampling import FEWEST, LARGEST, LEAST, POOL, kendall_draws, median_growth, shrinkage
from certcal.lab.study.questions._charts import STAGES
from certcal.lab.study.questions._form import SheetAnswer, Statistic, fill

Floats = NDArray[np.float64]
Grid = Mapping[str, Sequence[Finding]]

# Most accurate models in a resample, at least, where there are as many.
_SMALLEST = 100
# Columns that the sentences name.
NAMED = 4
# Models of nearly equal accuracy that are compared with one another.
STRATUM = 5
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


@dataclass(frozen=True)
class Relation(Statistic):
    """Kendall's correlation of two columns in growing parts of the models, and how it differs in the smallest.

    The sentence has the words data, n, top, most, whole and first (correlations among all and in the smallest part),
    change (their difference), clear (whether that is), says and also (``relation`` among all and in the smallest part).
    """

    x: str
    y: str
    relation: str
    """With {direction}, which is larger or smaller; of an interval on one side of zero."""
    sentence: str
    too_few: str = "On {data} there are {n} models; this needs at least {least}."

    def on(self, population: Population, sheet: Sheet) -> SheetAnswer | None:
        (x,), (y,) = population.columns(self.x), population.columns(self.y)
        if not all(column in sheet for column in (x, y, "accuracy")):
            return None
        n = sheet.columns_by_accuracy(x, y)[0].size
        words = {**population.words, "data": sheet.name, "n": n, "least": LEAST}
        if n < LEAST:
            return SheetAnswer(fill(self.too_few, **words))
        tops, name = population.tops(n), f"{x} with {population.label if self.y == 'metric' else y}"
        findings = [population.correlation(sheet, x, y, name, top=part) for part in tops]
        whole, first, top = findings[-1], findings[0], tops[0]
        says, best = self._relation_sentence(population, whole), self._relation_sentence(population, first)
        change, also, clear = None, None, None
        if top < n:
            change = _change(population, sheet, x, y, name, top)
            findings.append(change)
            clear = "clear" if change.excludes_zero else "perhaps chance"
            these = f"among the {top:,} {population.most} accurate"
            also = f"the same {these}" if best == says else f"{these}, {best}"
        return SheetAnswer(
            fill(self.sentence, **words, whole=whole, first=first, change=change, says=says, also=also, clear=clear),
            findings,
            [n],
            remarks=_shared_luck(population, sheet, top) if top < n and x == "accuracy" else (),
            leading=whole,
        )

    def _relation_sentence(self, population: Population, found: Finding) -> str:
        if not found.excludes_zero:
            return "there is no clear relation"
        return fill(self.relation, **population.words, direction="larger" if found.value > 0 else "smaller")


def _change(population: Population, sheet: Sheet, first: str, second: str, name: str, top: int) -> Finding:
    """The correlation among the most accurate minus that among all, both of the same resamples."""
    x, y = sheet.columns_by_accuracy(first, second)
    n = x.size
    name = f"{sheet.name}: {name}, {population.part_text(top)} minus all models"
    value = kendall(x[:top], y[:top]) - kendall(x, y)
    if math.isnan(value):
        return Finding.undefined(name, n, "one of the two is the same for all models")
    # Resamples of large populations are small, but not so small that few of the most accurate models are in them.
    most = min(n, max(LARGEST, _SMALLEST * n // top))
    rows = population.resampling.rows(n, tag=f"{sheet.name}/change/{top}", most=most)
    kept = rows[:, : max(LEAST, round(top * rows.shape[1] / n))]
    step = max(1, top // POOL)
    draws = kendall_draws(x, y, kept, step) - kendall_draws(x, y, rows, step)
    return population.resampling.finding_from_draws(name, value, draws, n, "difference", shrink=shrinkage(n, most))


def _shared_luck(population: Population, sheet: Sheet, top: int) -> list[tuple[float, str]]:
    """Caution that accuracy and error share their sampling error, where accuracies hardly differ."""
    best = sheet.columns_by_accuracy("accuracy")[0][:top]
    error, spread = sheet.error_by_chance(1, float(np.median(best))), float(best.std())
    if not error > 0.5 * spread:
        return []
    text = (
        f"On {sheet.name} the accuracies of the {population.part_text(top)} differ by {spread:.4f} (standard "
        f"deviation), with a sampling error of about {error:.4f} each ({sheet.samples:,.0f} test samples). Luck that "
        "raises an overconfident model's accuracy lowers its error, so chance alone makes the two look related."
    )
    return [(error, text)]


def tell_by_direction(
    found: Mapping[str, Finding], some: Callable[[Sequence[str]], str], adjective: str, label: str, again: str
) -> tuple[list[str], list[str]]:
    """Clauses on the columns that go with a smaller and with a larger metric; and those columns."""
    said: list[str] = []
    smaller = [name for name, each in found.items() if each.excludes_zero and each.value < 0]
    larger = [name for name, each in found.items() if each.excludes_zero and each.value >= 0]
    for names, word in ((smaller, "smaller"), (larger, "larger")):
        if names:
            go = "goes" if len(names) == 1 else "go"
            said.append(f"{adjective} {some(names)} {go} with a {word} {again if said else label}")
    return said, [*smaller, *larger]


@dataclass(frozen=True)
class Relations(Statistic):
    """Kendall's correlation of each of several columns with the metric, in growing parts of the models."""

    columns: str
    references: tuple[str, ...] = ()
    """Further columns and metrics that are drawn only."""

    def on(self, population: Population, sheet: Sheet) -> SheetAnswer | None:
        columns = [name for name in population.columns(self.columns) if name != population.column]
        if not columns:
            return None
        ranked, tops = "accuracy" in sheet, population.sheet_tops(sheet)
        labels = self._references(population, sheet)
        grid = {
            name: [
                population.correlation(sheet, name, population.column, f"{name} with {population.label}", top=top)
                for top in (tops if ranked else (None,))
            ]
            for name in dict.fromkeys((*columns, *labels))
        }
        return SheetAnswer(
            self._sentence(population, sheet, {name: grid[name] for name in columns}, tops),
            [each for name in columns for each in dict.fromkeys((grid[name][0], grid[name][-1]))],
            tops[-1:],
            [self._lines(population, sheet, {labels.get(name, name): row for name, row in grid.items()}, tops)],
        )

    def _references(self, population: Population, sheet: Sheet) -> dict[str, str]:
        """References as far as they were measured, and what they are called."""
        names = {
            sheet.column_of(name, population.bins) if name in LABELS else name: LABELS.get(name, name)
            for name in self.references
            if name != population.metric
        }
        return {name: label for name, label in names.items() if name in sheet}

    def _lines(self, population: Population, sheet: Sheet, grid: Grid, tops: Sequence[int]) -> Lines:
        values, low, high = (
            np.array([[getattr(found, end) for found in row] for row in grid.values()])
            for end in ("value", "low", "high")
        )
        these = f"{population.most} accurate models"
        title = f"{sheet.name}: correlation with {population.label} among the {these}"
        return Lines(title, these, "Kendall's correlation", tuple(map(float, tops)), tuple(grid), values, low, high)

    def _sentence(self, population: Population, sheet: Sheet, grid: Grid, tops: Sequence[int]) -> str:
        """Relations among all models, and changes among the most accurate."""
        n, whole = tops[-1], {name: row[-1] for name, row in grid.items()}
        absent = [name for name, found in whole.items() if math.isnan(found.value)]
        said, clear = tell_by_direction(
            whole, lambda names: _correlations_text(names, whole, n), "higher", population.label, "one"
        )
        unclear = [name for name in grid if name not in (*absent, *clear)]
        if unclear:
            verb = "shows" if len(unclear) == 1 else "show"
            said.append(f"{_correlations_text(unclear, whole, n)} {verb} no clear relation")
        if absent:
            verb = "has" if len(absent) == 1 else "have"
            said.append(
                f"{join_words(absent, NAMED)} {verb} too few values, or the same for all, to be related to anything"
            )
        text = f"On {sheet.name}, among {population.models_text(n, n)}: {'; '.join(said)}."
        if len(tops) == 1:
            return text
        # Whether two intervals have no number in common; as they are of the same models, a strict rule.
        changed = [name for name, row in grid.items() if row[0].high < row[-1].low or row[-1].high < row[0].low]
        if changed:
            told = _correlations_text(changed, {name: row[0] for name, row in grid.items()}, tops[0])
            return f"{text} Among {population.models_text(tops[0], n)} that is different for {told}."
        return f"{text} The {tops[0]:,} {population.most} accurate do not clearly differ."


def _correlations_text(names: Sequence[str], found: Mapping[str, Finding], n: int) -> str:
    """Columns with their correlations, and from how many models where these are not the ``n`` that are spoken of."""
    fewer = {name: "" if found[name].n == n else f", of the {found[name].n:,} models that have it" for name in names}
    return join_words([f"{name} ({found[name]:correlation}{fewer[name]})" for name in names], NAMED)


@dataclass(frozen=True)
class RelationsAtEqualAccuracy(Statistic):
    """Kendall's correlation of each of several columns with the metric: as it is, and at equal accuracy."""

    columns: str
    uneven: tuple[str, ...] = ()
    """Columns that few models have by their nature."""

    def on(self, population: Population, sheet: Sheet) -> SheetAnswer | None:
        columns = population.columns(self.columns)
        if not columns:
            return None
        found = {
            name: population.correlation(sheet, name, population.column, f"{name} with {population.label}")
            for name in columns
        }
        alike = {name: _at_equal_accuracy(population, sheet, name) for name in columns}
        return SheetAnswer(
            self._sentence(population, sheet, found, alike),
            [each for name in columns for each in (found[name], alike[name])],
            [len(sheet), *(each.n for name, each in found.items() if name not in self.uneven)],
        )

    def cautions(self, population: Population, parts: Sequence[SheetAnswer]) -> Iterator[str]:
        looked = sum(len(part.findings) for part in parts)
        if looked > 2:
            missed = looked * (1 - population.resampling.level)
            yield (
                f"Of {looked} intervals for sizes (on each data set, and again at equal accuracy) about {missed:.1f} "
                "miss the truth; a single one that excludes zero is a hint at most."
            )

    def _sentence(
        self, population: Population, sheet: Sheet, found: Mapping[str, Finding], alike: Mapping[str, Finding]
    ) -> str:
        def some(names: Sequence[str]) -> str:
            told = [
                f"{name} ({found[name]:correlation}; at equal accuracy {alike[name]:correlation})" for name in names
            ]
            return join_words(told, NAMED)

        said, clear = tell_by_direction(found, some, "larger", population.label, population.label)
        unclear = [name for name in found if name not in clear]
        if unclear:
            verb = "has" if len(unclear) == 1 else "have"
            said.append(f"{some(unclear)} {verb} no clear relation to {'it' if said else population.label}")
        return f"On {sheet.name}, {'; '.join(said)}."


def strata(n: int) -> NDArray[np.int64]:
    """Ends of strata of five or a few more of n models that are sorted by accuracy."""
    return np.linspace(0, n, max(1, n // STRATUM) + 1).astype(np.int64)


def _at_equal_accuracy(population: Population, sheet: Sheet, name: str) -> Finding:
    """Kendall's tau-b over pairs of models within a stratum of accuracy; the interval resamples strata."""
    words = f"{sheet.name}: {name} with {population.label}, at equal accuracy"
    if "accuracy" not in sheet:
        return Finding.undefined(words, 0, "there are no accuracies")
    size, error = sheet.columns_by_accuracy(name, population.column)
    ends = strata(size.size)
    sums = np.zeros((3, ends.size - 1))
    for place, (start, end) in enumerate(pairwise(ends.tolist())):
        x, y = (np.sign(v[:, None] - v) for v in (size[start:end], error[start:end]))
        sums[:, place] = (x * y).sum(), (x * x).sum(), (y * y).sum()

    def tau(agree: Floats, x: Floats, y: Floats) -> float:
        pairs = math.sqrt(float(x.sum()) * float(y.sum()))
        return float(agree.sum()) / pairs if pairs > 0 else math.nan

    if ends.size - 1 < FEWEST and size.size >= LEAST:
        note = f"no interval from fewer than {STRATUM * FEWEST} models"
        return Finding(words, tau(*sums), math.nan, math.nan, size.size, note)
    found = population.resampling.finding(words, tau, *sums, tag=words, scale="correlation")
    return replace(found, n=size.size)


@dataclass(frozen=True)
class Effect(Statistic):
    """What happens to a column: the share of models that it falls for, its median, and the order of the models.

    The sentence has the words data, top, most, lowered (a share), ratio (of medians), order and best (correlations of
    before and after, among all and in the smallest part) and kept (what happens to the order).
    """

    before: str
    after: str
    cause: str
    sentence: str
    too_few: str

    def on(self, population: Population, sheet: Sheet) -> SheetAnswer | None:
        (before,), (after,) = population.columns(self.before), population.columns(self.after)
        if after not in sheet:
            return None
        pre, post = sheet.complete(before, after)
        words = {**population.words, "data": sheet.name, "n": pre.size, "least": LEAST}
        if pre.size < LEAST:
            return SheetAnswer(fill(self.too_few, **words))
        label, how, name = population.label, population.resampling, f"{population.label} before with after"
        order = population.correlation(sheet, before, after, name)
        share = f"{sheet.name}: share of models with a smaller {label} after {self.cause}"
        lowered = how.share(share, int((post < pre).sum()), pre.size)
        tag = f"{self.cause}/{sheet.name}"
        median = f"{sheet.name}: median {label} after / before"
        ratio = how.finding(median, median_growth, pre, post, tag=tag, scale="ratio")
        best, top = None, 0
        findings = [order, lowered, ratio]
        if "accuracy" in sheet:
            top, *larger = population.tops(sheet.columns_by_accuracy(before, after)[0].size)
            if larger:
                best = population.correlation(sheet, before, after, name, top=top)
                findings.append(best)
        known = None if math.isnan(ratio.value) else ratio
        kept = _KEPT.get(order.strength, "cannot be compared")
        return SheetAnswer(
            fill(self.sentence, **words, lowered=lowered, ratio=known, kept=kept, order=order, best=best, top=top),
            findings,
            [pre.size],
            remarks=_within_chance(population, sheet, float(np.median(post))),
            leading=order,
        )

    def cautions(self, population: Population, parts: Sequence[SheetAnswer]) -> Iterator[str]:
        if found := [text for part in parts for _, text in part.remarks]:
            yield (
                f"After {self.cause}, the median {population.label} is within what chance alone can make of perfectly "
                f"calibrated models on average: {join_words(found)}. The order may be mostly noise, and a correlation "
                "near zero says little."
            )


def _within_chance(population: Population, sheet: Sheet, middle: float) -> list[tuple[float, str]]:
    # Above the mean error of calibrated models, often by half or more: a median below it may still be no chance.
    limit = sheet.error_by_chance(population.bins)
    if population.metric not in ("ece", "equal_mass_ece") or not middle <= limit:
        return []
    samples = f"{sheet.samples:,.0f} samples"
    return [(limit, f"on {sheet.name} {middle:.4f}, against a limit of {limit:.4f} ({samples})")]


@dataclass(frozen=True)
class GrowthWithBins(Statistic):
    """How the metric's median and its order of the models change from one number of bins to the largest.

    The sentence has the words data, few, many (bins), binned (the metric), grows, orders (before and after scaling)
    and contrast (how much more it grows after).
    """

    sentence: str

    def on(self, population: Population, sheet: Sheet) -> SheetAnswer | None:
        metric = population.binned
        counts = sheet.bins(metric, "pre") or sheet.bins(metric, "post")
        if len(counts) < 2:
            return None
        # From the chosen number to the largest one; from the smallest if the chosen one was not measured or is largest.
        pair = (population.bins if population.bins in counts[:-1] else counts[0]), counts[-1]
        growths: dict[str, Finding] = {}
        orders: list[Finding] = []
        findings: list[Finding] = []
        columns = {stage: [sheet.column_of(metric, bins, stage) for bins in pair] for stage, _ in STAGES}
        for stage, words in STAGES:
            values = _complete_columns(sheet, columns[stage])
            if values is not None:
                growths[words] = population.resampling.finding(
                    f"{sheet.name}: median {LABELS[metric]} {words} scaling, {pair[1]} bins / {pair[0]} bins",
                    median_growth,
                    *values,
                    tag=f"bins/{sheet.name}/{stage}",
                    scale="ratio",
                    note="" if np.median(values[0]) > 0 else "the median at the smaller number of bins is zero",
                )
                name = f"{LABELS[metric]} {words} scaling, {pair[0]} with {pair[1]} bins"
                few, many = columns[stage]
                orders.append(population.correlation(sheet, few, many, name))
                findings += (growths[words], orders[-1])
        if not growths:
            return None
        contrast = self._contrast(population, sheet, [each for stage, _ in STAGES for each in columns[stage]])
        text = fill(
            self.sentence,
            **population.words,
            data=sheet.name,
            few=pair[0],
            many=pair[1],
            grows=" and ".join(f"{grown:number} {words}" for words, grown in growths.items()),
            orders=" and ".join(f"{order:correlation}" for order in orders),
        )
        return SheetAnswer(
            text + _contrast_text(contrast),
            [*findings, *([] if contrast is None else [contrast])],
            [grown.n for grown in growths.values()],
            remarks=_bias(sheet, metric, pair),
        )

    def _contrast(self, population: Population, sheet: Sheet, columns: Sequence[str]) -> Finding | None:
        """How many times more the median grows after scaling than before."""
        values = _complete_columns(sheet, columns)
        if values is None:
            return None

        def growths(a: Floats, b: Floats, c: Floats, d: Floats) -> float:
            before = median_growth(a, b)
            return median_growth(c, d) / before if before > 0 else math.nan

        name = f"{sheet.name}: growth of the median {LABELS[population.binned]} after scaling / before"
        return population.resampling.finding(name, growths, *values, tag=f"bins/{sheet.name}", scale="ratio")

    def cautions(self, population: Population, parts: Sequence[SheetAnswer]) -> Iterator[str]:
        if biases := [each for part in parts for each in part.remarks]:
            yield max(biases)[1]
        if population.binned in ("ece", "classwise_ece"):
            yield (
                "Equal-width bins that split wider ones (5, 10, 20, 100, 500) never give a smaller error, whatever the "
                "model: growth along these is no finding; its size is."
            )


def _complete_columns(sheet: Sheet, names: Sequence[str]) -> tuple[Floats, ...] | None:
    """Columns of the models that have them all; None if there are too few."""
    values = sheet.complete(*names) if all(name in sheet for name in names) else ()
    return values if values and values[0].size >= LEAST else None


def _contrast_text(contrast: Finding | None) -> str:
    if contrast is None or math.isnan(contrast.low):
        return ""
    if contrast.low > 1:
        return f" Bins matter more after scaling ({contrast:number} times)."
    if contrast.high < 1:
        return f" Bins matter more before scaling ({contrast:number} times as much after it)."
    return f" That bins matter more after scaling is not clear ({contrast:number} times)."


def _bias(sheet: Sheet, metric: str, pair: tuple[int, int]) -> list[tuple[float, str]]:
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
