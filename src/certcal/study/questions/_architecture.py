"""Question 7, which sizes and designs go with good calibration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from certcal._text import counted
from certcal.study._findings import (
    Box,
    BoxPlots,
    Draft,
    Finding,
    FindingTable,
    Lines,
    brackets,
    listed,
    percent,
    signed,
)
from certcal.study._population import Population, Sheet

# Best models that are compared with the population, at most, and the share of the population that they may be.
_BEST, _SHARE = 20, 10
_FEWEST_BEST = 5
# Columns that are drawn, and that the sentences name.
_DRAWN, _NAMED = 8, 4
# A column that says how wide all layers are, and how many widths are drawn as a line.
_WIDTH, _WIDTHS = "width", 64


def architecture(population: Population) -> Draft | str:
    """Correlation of sizes with the metric, and what the models with the best harmonic calibration score have."""
    sizes, designs, sheets = population.sizes, population.architecture, population.sheets
    if not sizes and not designs:
        return (
            "The table has no columns that describe the models and differ between them. Add some to the manifest: "
            "numbers such as parameters or width, or texts with a few values such as the operation on an edge."
        )
    draft = Draft()
    for sheet in sheets:
        draft.models.append(len(sheet))
        said: list[str] = []
        if sizes:
            found = {
                name: population.correlation(sheet, name, population.column, f"{name} with {population.label}")
                for name in sizes
            }
            draft.findings += found.values()
            draft.models += [
                each.n for name, each in found.items() if name != _WIDTH
            ]  # few are equally wide throughout
            said.append(_size_sentence(population, sheet, found))
            draft.draw((_size_boxes(population, sheet, name) for name in sizes[:_NAMED]), most=_DRAWN)
            if _WIDTH in sizes and population.scaled in sheet:
                draft.charts += _by_width(population, sheet)
        if designs:
            shares, table, sentence = _designs(population, sheet)
            draft.findings += shares
            draft.charts += () if table is None else (table,)
            said.append(sentence)
        draft.parts.append(" ".join(said))
    looked = len(sizes) * len(sheets)
    if looked > 1:
        missed = looked * (1 - population.resampling.level)
        draft.cautions.append(
            f"Of {looked} intervals for sizes and data sets about {missed:.1f} miss the truth; a single one that "
            "excludes zero is a hint at most."
        )
    if designs and len(sheets) > 1:
        draft.cautions.append("Designs are corrected for comparisons on one data set, not for those of all together.")
    draft.cautions.append("Associations among these models: a size or a design may only come with something else.")
    return draft


def _size_sentence(population: Population, sheet: Sheet, found: dict[str, Finding]) -> str:
    def some(names: list[str]) -> str:
        return listed([f"{name} ({signed(found[name])})" for name in names], _NAMED)

    smaller = [name for name, each in found.items() if each.excludes_zero and each.value < 0]
    larger = [name for name, each in found.items() if each.excludes_zero and each.value > 0]
    unclear = [name for name in found if name not in (*smaller, *larger)]
    said = [
        f"larger {some(names)} {'goes' if len(names) == 1 else 'go'} with a {word} {population.label}"
        for names, word in ((smaller, "smaller"), (larger, "larger"))
        if names
    ]
    if unclear:
        verb = "has" if len(unclear) == 1 else "have"
        said.append(f"{some(unclear)} {verb} no clear relation to {'it' if said else population.label}")
    return f"On {sheet.name}, {'; '.join(said)}."


def _size_boxes(population: Population, sheet: Sheet, name: str) -> BoxPlots:
    column, values = sheet[name], sheet[population.column]
    boxes = tuple(Box.of(words, values[which]) for words, which in brackets(column))
    return BoxPlots(f"{sheet.name}: {population.label} by {name}", name, population.label, boxes)


def _by_width(population: Population, sheet: Sheet) -> Iterator[Lines]:
    """The metric before and after temperature scaling by width, as in the benchmark study's Figure 9."""
    width, before, after = sheet.complete(_WIDTH, population.column, population.scaled)
    places = np.unique(width)
    if not 2 <= places.size <= _WIDTHS:
        return
    groups = [width == place for place in places]
    values = np.array([[float(np.median(stage[group])) for group in groups] for stage in (before, after)])
    most = max(int(group.sum()) for group in groups)
    yield Lines(
        f"{sheet.name}: {population.label} by width, before and after temperature scaling",
        _WIDTH,
        population.label if most == 1 else f"median {population.label}",
        tuple(places.tolist()),
        ("before temperature scaling", "after temperature scaling"),
        values,
        np.full_like(values, np.nan),
        np.full_like(values, np.nan),
        "One model per width" if most == 1 else f"Medians over models of one width, at most {most:,}",
    )


@dataclass(frozen=True)
class _Design:
    """How often a value occurs among the best models, against the population."""

    column: str
    value: str
    among: int
    best: int
    p_value: float


def _designs(population: Population, sheet: Sheet) -> tuple[list[Finding], FindingTable | None, str]:
    """Shares of each value among the models with the best harmonic calibration score."""
    scores = population.harmonic_scores(sheet)
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
    if k < _FEWEST_BEST:
        why = (
            "too many models share the best harmonic calibration scores to tell the best from others."
            if wanted >= _FEWEST_BEST
            else f"{counted(n, 'model')} are too few to look at the best tenth (from {_SHARE * _FEWEST_BEST} on)."
        )
        return [], None, f"On {sheet.name} {why}"
    tests = [test for name in population.architecture for test in _tests(sheet, name, rows, k)]
    adjusted = _holm([test.p_value for test in tests])
    clear = [(test, p) for test, p in zip(tests, adjusted, strict=True) if p <= 1 - population.resampling.level]
    shown = clear or [min(zip(tests, adjusted, strict=True), key=lambda pair: pair[0].p_value)] if tests else []
    # Given the score that follows the best ones, these are independent draws from the models with a better score: the
    # exact interval is for the share among all models of the kind that are better than that.
    place, best = f"{sheet.name}: share with", f"among the best {k}"
    findings = [
        population.resampling.share(
            f"{place} {test.column} = {test.value} {best} ({100 * test.among / n:.0f} % of all)", test.best, k
        )
        for test, _ in shown
    ]
    table = FindingTable(
        f"{sheet.name}: designs of the {k} models with the best harmonic calibration score",
        ("column", "value", "of all", f"of the best {k}", "expected by chance", "p (Holm)"),
        tuple(
            (test.column, test.value, test.among / n, test.best / k, _by_chance(n, test.among, k, population), p)
            for test, p in zip(tests, adjusted, strict=True)
        ),
        note=f"p: of a share at least as far from expectation in a random choice of {k} of {n:,} models "
        f"(hypergeometric), corrected for {len(tests)} comparisons",
    )
    said = [
        f"{test.column} = {test.value} ({percent(found)} against {100 * test.among / n:.0f} % of all)"
        for (test, _), found in zip(shown, findings, strict=True)
    ]
    score = f"{k} models with the best harmonic calibration score"
    if not said:
        text = f"On {sheet.name} all models have the same design."
    elif clear:
        text = f"On {sheet.name}, the {score} differ from the population in the share of {listed(said, _NAMED)}."
    else:
        text = (
            f"On {sheet.name}, no design is clearly more or less frequent among the {score}, corrected for "
            f"{len(tests)} comparisons; the furthest off is {said[0]}."
        )
    return findings, table, text


def _tests(sheet: Sheet, name: str, rows: NDArray[np.int64], k: int) -> list[_Design]:
    texts = [value if isinstance(value, str) else f"{value:g}" for value in sheet.raw(name)[rows].tolist()]
    counts, best, n = Counter(texts), Counter(texts[:k]), len(texts)
    if len(counts) < 2:
        return []
    return [
        _Design(name, value, counts[value], best[value], _p_value(n, counts[value], k, best[value]))
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
