"""Question 7, which sizes and designs go with good calibration."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from certcal._text import counted
from certcal.study._boxes import box, brackets
from certcal.study._cautions import few
from certcal.study._findings import Answer, Boxes, Chart, Finding, Table
from certcal.study._population import Population, Sheet
from certcal.study._ranking import harmonic_scores
from certcal.study._words import excludes_zero, first, go, percent, signed, told

Floats = NDArray[np.float64]

QUESTION = "Which architectural designs are beneficial for calibration?"
PUBLISHED = (
    "Larger models are not always worse calibrated: on CIFAR-10 the ECE first grows and then falls with size, on "
    "ImageNet16-120 it grows; wider models are worse calibrated on hard data sets. The 20 cells with the best harmonic "
    "calibration score tend to have convolutions on edges 1, 5 and 6, and all have a skip connection on edge 4."
)
# Best models that are compared with the population, at most, and the share of the population that they may be.
_BEST, _SHARE = 20, 10
_FEWEST_BEST = 5
# Columns that are drawn, and that the sentences name.
_DRAWN, _NAMED = 8, 4


def architecture(population: Population) -> Answer:
    """Correlation of sizes with the metric, and what the models with the best harmonic calibration score have."""
    if not population.sizes and not population.architecture:
        text = (
            "The table has no columns that describe the models and differ between them. Add some to the manifest: "
            "numbers such as parameters or width, or texts with a few values such as the operation on an edge."
        )
        return Answer(7, QUESTION, text, published=PUBLISHED)
    findings: list[Finding] = []
    charts: list[Chart] = []
    parts: list[str] = []
    cautions: list[str] = []
    for sheet in population.sheets:
        sizes = [_size(population, sheet, name) for name in population.sizes]
        findings.extend(sizes)
        text = [_size_sentence(population, sheet, sizes)] if sizes else []
        if len(charts) < _DRAWN:
            charts.extend(_size_boxes(population, sheet, name) for name in population.sizes[:_NAMED])
        if population.architecture:
            found, table, sentence = _designs(population, sheet)
            findings.extend(found)
            charts.extend(() if table is None else (table,))
            text.append(sentence)
        parts.append(" ".join(text))
    counts = [found.n for found in findings if "binomial" not in found.note]
    n = min([*(len(sheet) for sheet in population.sheets), *counts])
    cautions.extend(few(n, population.resampling.level))
    looked = len(population.sizes) * len(population.sheets)
    if looked > 1:
        missed = looked * (1 - population.resampling.level)
        cautions.append(
            f"{looked} sizes and data sets were looked at, so that about {missed:.1f} of the intervals leave out the "
            "truth; a single one that excludes zero is a hint at most."
        )
    if population.architecture and len(population.sheets) > 1:
        cautions.append("Designs are corrected for the comparisons of one data set, not for those of all together.")
    cautions.append(
        "These are associations among the models that are here: a size or a design may only come with something else."
    )
    return Answer(7, QUESTION, told(parts), tuple(findings), tuple(charts), tuple(cautions), PUBLISHED)


def _size(population: Population, sheet: Sheet, name: str) -> Finding:
    return population.correlation(sheet, name, population.column, name=f"{name} with {population.label}")


def _size_sentence(population: Population, sheet: Sheet, found: list[Finding]) -> str:
    named = dict(zip(population.sizes, found, strict=True))
    smaller = [name for name, each in named.items() if excludes_zero(each) and each.value < 0]
    larger = [name for name, each in named.items() if excludes_zero(each) and each.value > 0]
    unclear = [name for name in named if name not in (*smaller, *larger)]
    said = [
        f"larger {_some(names, named)} {go(names)} with a {word} {population.label}"
        for names, word in ((smaller, "smaller"), (larger, "larger"))
        if names
    ]
    if unclear:
        verb = "has" if len(unclear) == 1 else "have"
        said.append(f"{_some(unclear, named)} {verb} no clear relation to {'it' if said else population.label}")
    return f"On {sheet.name}, {'; '.join(said)}."


def _some(names: list[str], found: dict[str, Finding]) -> str:
    return first([f"{name} ({signed(found[name])})" for name in names], _NAMED)


def _size_boxes(population: Population, sheet: Sheet, name: str) -> Boxes:
    column, values = sheet[name], sheet[population.column]
    boxes = tuple(box(words, values[which]) for words, which in brackets(column))
    return Boxes(f"{sheet.name}: {population.label} by {name}", name, population.label, boxes)


@dataclass(frozen=True)
class _Design:
    """How often a value occurs among the best models, against the population."""

    column: str
    value: str
    among: int
    best: int
    p_value: float


def _designs(population: Population, sheet: Sheet) -> tuple[list[Finding], Table | None, str]:
    """Shares of each value among the models with the best harmonic calibration score."""
    scores = harmonic_scores(population, sheet)
    if scores is None:
        return (
            [],
            None,
            f"On {sheet.name} there is no ECE or accuracy, and so no harmonic calibration score to rank by.",
        )
    rows = np.flatnonzero(~np.isnan(scores))
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    n = rows.size
    wanted = min(_BEST, n // _SHARE)
    # Of models with the same score none is better: the best end where the score changes.
    k = int((scores[rows] > scores[rows[wanted]]).sum()) if wanted else 0
    if k < _FEWEST_BEST <= wanted:
        return (
            [],
            None,
            f"On {sheet.name} too many models share the best harmonic calibration scores to tell the best from others.",
        )
    if k < _FEWEST_BEST:
        return (
            [],
            None,
            (
                f"On {sheet.name} {counted(n, 'model')} are too few to compare the best with the others; from "
                f"{_SHARE * _FEWEST_BEST} on the best tenth is."
            ),
        )
    tests = [test for name in population.architecture for test in _tests(sheet, name, rows, k)]
    adjusted = _holm([test.p_value for test in tests])
    clear = [(test, p) for test, p in zip(tests, adjusted, strict=True) if p <= 1 - population.resampling.level]
    shown = clear or [min(zip(tests, adjusted, strict=True), key=lambda pair: pair[0].p_value)] if tests else []
    findings = [_finding(population, sheet, test, k, n) for test, _ in shown]
    header = ("column", "value", "of all", f"of the best {k}", "expected by chance", "p (Holm)")
    table = Table(
        f"{sheet.name}: designs of the {k} models with the best harmonic calibration score",
        header,
        tuple(
            (test.column, test.value, test.among / n, test.best / k, _by_chance(n, test.among, k, population), p)
            for test, p in zip(tests, adjusted, strict=True)
        ),
        note=f"p: of a share at least as far from expectation in a random choice of {k} of {n:,} models "
        f"(hypergeometric), corrected for {len(tests)} comparisons",
    )
    return findings, table, _design_sentence(sheet, shown, findings, bool(clear), k, n, len(tests))


def _tests(sheet: Sheet, name: str, rows: NDArray[np.int64], k: int) -> list[_Design]:
    column = sheet.raw(name)[rows]
    texts = [str(value) if isinstance(value, str) else f"{value:g}" for value in column.tolist()]
    counts: dict[str, int] = {}
    best: dict[str, int] = {}
    for place, text in enumerate(texts):
        counts[text] = counts.get(text, 0) + 1
        if place < k:
            best[text] = best.get(text, 0) + 1
    n = len(texts)
    if len(counts) < 2:
        return []
    return [
        _Design(name, value, counts[value], best.get(value, 0), _p_value(n, counts[value], k, best.get(value, 0)))
        for value in sorted(counts)
    ]


def _weights(n: int, among: int, k: int) -> list[int]:
    """In how many of the comb(n, k) choices j of them have the value, for j from 0 to k."""
    return [comb(among, j) * comb(n - among, k - j) for j in range(k + 1)]


def _p_value(n: int, among: int, k: int, seen: int) -> float:
    """Twice the smaller tail probability of the hypergeometric distribution, at most 1."""
    weights = _weights(n, among, k)
    tail = min(sum(weights[: seen + 1]), sum(weights[seen:]))
    return min(1.0, 2 * tail / comb(n, k))


def _by_chance(n: int, among: int, k: int, population: Population) -> str:
    """The shares that a random choice of k models has, but for probability 1 - level in both tails together."""
    weights = np.cumsum([weight / comb(n, k) for weight in _weights(n, among, k)])
    tail = (1 - population.resampling.level) / 2
    low, high = int(np.searchsorted(weights, tail)), int(np.searchsorted(weights, 1 - tail))
    return f"{100 * low / k:.0f} % to {100 * min(high, k) / k:.0f} %"


def _holm(p_values: list[float]) -> list[float]:
    """Holm's adjustment: those below 1 - level hold no false one, but with probability 1 - level at most.

    That is so whatever depends on what, and whichever of the hypotheses are true.
    """
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def _finding(population: Population, sheet: Sheet, test: _Design, k: int, n: int) -> Finding:
    # Given the score that follows the best ones, these are independent draws from the models with a better score: the
    # exact interval is for the share among all models of the kind that are better than that.
    place = f"{sheet.name}: share with {test.column} = {test.value}"
    name = f"{place} among the best {k} ({100 * test.among / n:.0f} % of all)"
    return population.resampling.share(name, test.best, k)


def _design_sentence(
    sheet: Sheet,
    shown: list[tuple[_Design, float]],
    findings: list[Finding],
    clear: bool,
    k: int,
    n: int,
    tests: int,
) -> str:
    if not shown:
        return f"On {sheet.name} all models have the same design."
    said = [
        f"{test.column} = {test.value} ({percent(found)} against {100 * test.among / n:.0f} % of all)"
        for (test, _), found in zip(shown, findings, strict=True)
    ]
    if clear:
        more = "differ from the population in the share of"
        return f"On {sheet.name}, the {k} models with the best harmonic calibration score {more} {first(said, _NAMED)}."
    return (
        f"On {sheet.name}, no design is clearly more or less frequent among the {k} models with the best harmonic "
        f"calibration score, corrected for {tests} comparisons; the furthest off is {said[0]}."
    )
