"""Which designs go with good calibration.

Accuracy and calibration go together, and designs with accuracy: designs of the models with the best harmonic
calibration score, which rewards accuracy, may be those of accurate models and say nothing of calibration. So everything
is said twice: as it is, and at equal accuracy. There, the models are cut by accuracy into strata of five. If a design
has nothing to do with calibration once the accuracy is given, each of the five is as likely as the others to be the
best calibrated one, so that the number of strata whose best has the design is a sum of independent events, whose
probabilities are the design's shares in the strata.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np
from numpy.typing import NDArray

from certcal._base.text import counted
from certcal.lab.study._findings import Finding, FindingTable, join_words
from certcal.lab.study._population import Population, Sheet
from certcal.lab.study.questions._form import SheetAnswer, Statistic
from certcal.lab.study.questions._relations import NAMED, STRATUM, strata

Floats = NDArray[np.float64]

# Best models that are compared with the population, at most, and the share of the population that they may be.
_BEST, _SHARE = 20, 10
_FEWEST_BEST = 5


@dataclass(frozen=True)
class Designs(Statistic):
    """Shares of each value of columns: among the best by harmonic calibration score, and at equal accuracy."""

    columns: str = "architecture"

    def on(self, population: Population, sheet: Sheet) -> SheetAnswer | None:
        columns = population.columns(self.columns)
        if not columns:
            return None
        shares, table, sentence = _designs(population, sheet, columns)
        return SheetAnswer(sentence, shares, [len(sheet)], always=() if table is None else (table,))

    def cautions(self, population: Population, parts: Sequence[SheetAnswer]) -> Iterator[str]:
        if len(parts) > 1:
            yield "Designs are corrected for comparisons on one data set, not for those of all together."


@dataclass(frozen=True)
class _Design:
    """How often a value occurs among chosen models, against a choice that does not look at it."""

    column: str
    value: str
    seen: int
    chosen: int
    expected: float  # share
    p_value: float
    adjusted: float = math.nan  # the p-value, corrected for all values that are looked at
    accurate: float = math.nan  # share among as many of the most accurate models

    def __str__(self) -> str:
        return f"{self.column} = {self.value}"


def _designs(
    population: Population, sheet: Sheet, names: Sequence[str]
) -> tuple[list[Finding], FindingTable | None, str]:
    """Shares of each value among the models with the best harmonic calibration score, and at equal accuracy."""
    scores = population.harmonic_scores(sheet)
    if scores is None:
        return (
            [],
            None,
            f"On {sheet.name} there is no ECE or accuracy, and so no harmonic calibration score to rank by.",
        )
    rows = np.flatnonzero(~(np.isnan(scores) | np.isnan(sheet[population.column])))  # the most accurate first
    scores, n = scores[rows], rows.size
    order = np.argsort(-scores, kind="stable")
    wanted = min(_BEST, n // _SHARE)
    # Of models with the same score none is better: the best end where the score changes.
    k = int((scores > scores[order[wanted]]).sum()) if wanted else 0
    if k < _FEWEST_BEST:
        why = (
            "too many models share the best harmonic calibration scores to tell the best from others."
            if wanted >= _FEWEST_BEST
            else f"{counted(n, 'model')} are too few to look at the best tenth (from {_SHARE * _FEWEST_BEST} on)."
        )
        return [], None, f"On {sheet.name} {why}"
    columns = {name: _design_texts(sheet, name, rows) for name in names}
    columns = {name: texts for name, texts in columns.items() if len(set(texts.tolist())) > 1}
    if not columns:
        return [], None, f"On {sheet.name} all models have the same design."
    best = _correct_for_multiplicity(_among_the_best(columns, order[:k]))
    alike = _correct_for_multiplicity(_at_equal_accuracy(columns, sheet[population.column][rows]))
    label, score = population.label, f"{k} models with the best harmonic calibration score"
    at_equal, found_alike = _report_designs(
        population,
        sheet,
        alike,
        f"with the lowest {label} at equal accuracy",
        "expected",
        "the better calibrated models",
    )
    raw, found_best = _report_designs(
        population, sheet, best, f"among the {score}, which rewards accuracy too", "of all", f"the {score}"
    )
    table = FindingTable(
        f"{sheet.name}: designs at equal accuracy, and of the {score}",
        (
            *("column", "value", "of all", f"of the best {k}", "expected by chance", "p (Holm)"),
            *(
                f"of the {k} {population.most} accurate",
                "lowest at equal accuracy",
                "expected there",
                "p at equal accuracy (Holm)",
            ),
        ),
        tuple(
            (
                *(test.column, test.value, test.expected, test.seen / k),
                *(_random_share_range(n, round(test.expected * n), k, population), test.adjusted),
                test.accurate,
                *((same.seen / same.chosen, same.expected, same.adjusted) if same.chosen else (math.nan,) * 3),
            )
            for test, same in zip(best, alike, strict=True)
        ),
        note=f"p of the best: of a share at least as far from expectation in a random choice of {k} of {n:,} models "
        f"(hypergeometric). At equal accuracy: models with the lowest {label} of every {STRATUM} of nearly the same "
        f"accuracy, {alike[0].chosen:,} in all; p where each of the {STRATUM} is as likely to be that one. Either is "
        f"corrected for {len(best)} comparisons",
    )
    return (
        [*found_alike, *found_best],
        table,
        f"On {sheet.name}, at equal accuracy {at_equal} Whatever the accuracy, {raw}",
    )


def _report_designs(
    population: Population, sheet: Sheet, tests: list[_Design], among: str, against: str, who: str
) -> tuple[str, list[Finding]]:
    """Sentence and findings on designs clearly more or less frequent than expected, or on the furthest off.

    Given the score that follows the best ones, these are independent draws from the models with a better score: the
    exact interval is for the share among all models of the kind that are better than that. Where their probabilities
    differ, as between strata, it is for their mean, and wider than it would have to be (Hoeffding 1956).
    """
    if not tests[0].chosen:
        return f"nothing can be told: too many models share their {population.label}.", []
    clear = [test for test in tests if test.adjusted <= 1 - population.resampling.level]
    shown = clear or [min(tests, key=lambda test: test.p_value)]
    found = [
        population.resampling.share(
            f"{sheet.name}: share with {test} {among} ({100 * test.expected:.0f} % {against})", test.seen, test.chosen
        )
        for test in shown
    ]
    said = [
        f"{test} ({share:share} against {100 * test.expected:.0f} % {against}"
        + (
            ""
            if math.isnan(test.accurate)
            else f" and {100 * test.accurate:.0f} % of the {test.chosen} {population.most} accurate"
        )
        + ")"
        for test, share in zip(shown, found, strict=True)
    ]
    if clear:
        return f"{who} differ in the share of {join_words(said, NAMED)}.", found
    return (
        f"no design is clearly more or less frequent among {who}, corrected for {len(tests)} comparisons; the furthest "
        f"off is {said[0]}.",
        found,
    )


def _design_texts(sheet: Sheet, name: str, rows: NDArray[np.int64]) -> NDArray[np.object_]:
    values = sheet.raw(name)[rows].tolist()
    return np.array([value if isinstance(value, str) else f"{value:g}" for value in values], object)


def _among_the_best(columns: dict[str, NDArray[np.object_]], best: NDArray[np.int64]) -> list[_Design]:
    """Values among the best models, against as many that are chosen at random."""
    found: list[_Design] = []
    for name, texts in columns.items():
        for value in sorted(set(texts.tolist())):
            has = texts == value
            seen, among = int(has[best].sum()), int(has.sum())
            p_value = _p_value(has.size, among, best.size, seen)
            accurate = float(has[: best.size].mean())
            found.append(_Design(name, value, seen, best.size, among / has.size, p_value, accurate=accurate))
    return found


def _at_equal_accuracy(columns: dict[str, NDArray[np.object_]], error: Floats) -> list[_Design]:
    """Values among the best calibrated models of strata of accuracy, against any model of each; ties tell nothing."""
    ends = strata(error.size)
    starts, sizes = ends[:-1], np.diff(ends)
    lowest = np.repeat(np.minimum.reduceat(error, starts), sizes) == error
    kept = np.add.reduceat(lowest.astype(np.int64), starts) == 1
    best = np.flatnonzero(lowest & np.repeat(kept, sizes))
    found: list[_Design] = []
    for name, texts in columns.items():
        for value in sorted(set(texts.tolist())):
            has = (texts == value).astype(np.int64)
            shares = (np.add.reduceat(has, starts) / sizes)[kept]
            seen, law = int(has[best].sum()), _number_of_events(shares)
            p_value = min(1.0, 2 * float(min(law[: seen + 1].sum(), law[seen:].sum())))
            found.append(
                _Design(name, value, seen, best.size, float(shares.mean()) if best.size else math.nan, p_value)
            )
    return found


def _number_of_events(probabilities: Floats) -> Floats:
    """The distribution of how many of some independent events happen."""
    from scipy.special import gammaln, xlog1py, xlogy

    law: Floats = np.ones(1)
    for p in np.unique(probabilities).tolist():
        times = int((probabilities == p).sum())
        j = np.arange(times + 1.0)
        ways = gammaln(times + 1) - gammaln(j + 1) - gammaln(times - j + 1)
        law = np.convolve(law, np.exp(ways + xlogy(j, p) + xlog1py(times - j, -p))).astype(np.float64)
    return law


def _correct_for_multiplicity(tests: list[_Design]) -> list[_Design]:
    adjusted = _holm([test.p_value for test in tests])
    return [replace(test, adjusted=p) for test, p in zip(tests, adjusted, strict=True)]


def _weights(n: int, among: int, k: int) -> list[int]:
    """In how many of the comb(n, k) choices j of them have the value, for j from 0 to k."""
    return [comb(among, j) * comb(n - among, k - j) for j in range(k + 1)]


def _p_value(n: int, among: int, k: int, seen: int) -> float:
    """Twice the smaller tail probability of the hypergeometric distribution, at most 1."""
    weights = _weights(n, among, k)
    tail = min(sum(weights[: seen + 1]), sum(weights[seen:]))
    return min(1.0, 2 * tail / comb(n, k))


def _random_share_range(n: int, among: int, k: int, population: Population) -> str:
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
