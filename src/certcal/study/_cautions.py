"""What a reader should know before believing a review."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certcal._text import counted
from certcal.study._population import SMALLEST_TOP, Population, Sheet
from certcal.study._resampling import FEWEST, chance, enough
from certcal.study._words import listed, size

Floats = NDArray[np.float64]

# Below so many models a review says what chance alone can do.
_FEW = 100
_CLOSE = 0.1
# More than this share of the most accurate models that are no more accurate than others is pointed out.
_TIED = 0.1


def few(n: int, level: float) -> tuple[str, ...]:
    """That a correlation rests on few models, and from how many on it would not; nothing if there are enough."""
    if n >= _FEW:
        return ()
    if n < FEWEST:
        return (
            f"{counted(n, 'model')}: too few to say anything of models of this kind. Intervals are given from {FEWEST} "
            f"on, and from about {enough(_CLOSE, level)} on chance alone stays within ±{_CLOSE:g}.",
        )
    return (
        f"With {n} models, two unrelated numbers reach a correlation of ±{chance(n, level):.2f} by chance (at the "
        f"level of {100 * level:g} %); from about {enough(_CLOSE, level)} models on that would be ±{_CLOSE:g}.",
    )


def by_chance(sheet: Sheet, bins: int, accuracy: float | None = None) -> float:
    """What the ECE of a perfectly calibrated model is at most on average, because of the finite test set.

    For given confidences z, the gap of a bin is a sum of independent terms of mean zero and variance z(1 - z), whose
    mean absolute value is at most the square root of their summed variance. Over M bins (Cauchy and Schwarz) that
    makes at most √(M v / n), with v the mean of z(1 - z), and v is at most a(1 - a) for the accuracy a, the mean of z
    (Jensen). NaN if the table has no sample counts or accuracies.
    """
    share = sheet.accuracy if accuracy is None else accuracy
    if not sheet.samples >= 1 or not 0 <= share <= 1:
        return math.nan
    return min(1.0, math.sqrt(bins * share * (1 - share) / sheet.samples))  # no ECE is larger


def noisy(population: Population) -> tuple[str, ...]:
    """Data sets on which the sampling error of one model's measurement is not small against the models' differences.

    For given confidences, the standard error of these metrics is at most √(a(1 - a)/n), calibrated or not: another
    outcome of one sample changes them by at most 1/n, so that (Efron and Stein) their variance is at most Σ p(1 - p)/n²
    with p the probabilities of being correct, and Jensen's inequality does the rest, a being the mean of p. That is
    nearly reached where all bins err to one side.
    """
    if population.metric not in ("ece", "equal_mass_ece", "ks_error"):
        return ()
    found: list[str] = []
    for sheet in population.sheets:
        error, spread = by_chance(sheet, 1), _spread(sheet.complete(population.column)[0])
        if spread > 0 and error > 0.5 * spread:
            found.append(
                f"{sheet.name}: one model's {population.label} has a sampling error of about {size(error)} "
                f"({sheet.samples:,.0f} test samples), and between models it varies by {size(spread)}."
            )
    if not found:
        return ()
    return (
        " ".join(found)
        + " Such noise makes correlations between data sets too small; between measurements on the same "
        "test samples, which share their luck, it can also make them too large.",
    )


def duplicates(population: Population) -> tuple[str, ...]:
    """Models with the same measurements as another one on a data set."""
    found: list[str] = []
    for sheet in population.sheets:
        names = [str(m) for m in sheet.source.measurements]
        values = sheet.numbers(names)
        values[values == 0] = 0.0  # one zero
        known = values[~np.isnan(values).any(axis=1)]
        same = len(known) - len({row.tobytes() for row in known})
        if same:
            found.append(f"{same:,} of {len(known):,} on {sheet.name}")
    if not found:
        return ()
    return (
        f"Some models have exactly the measurements of another one ({listed(found)}): copies are no further evidence, "
        "and the intervals, which count them as such, are too narrow.",
    )


def tied(population: Population) -> tuple[str, ...]:
    """Cuts of the most accurate models that fall among models of the same accuracy."""
    found: list[str] = []
    for sheet in population.sheets:
        best = sheet.ranked("accuracy", population.column)[0] if "accuracy" in sheet else np.empty(0)
        for top in population.tops(best.size)[:-1]:
            same = best == best[top]
            chosen = int(same[:top].sum())
            if chosen > _TIED * top:
                found.append(
                    f"{chosen:,} of the {top:,} on {sheet.name} are as accurate as {same[top:].sum():,} others"
                )
                break
    if not found:
        return ()
    return (
        f"The most accurate models are not all more accurate than the rest ({listed(found)}): the order of the table "
        "decides between equals.",
    )


def unasked(population: Population) -> tuple[str, ...]:
    """Parts of the models that were asked for and cannot be reviewed."""
    wanted, models = population.wanted or (), len(population.models)
    found = [f"the top {top:,} (fewer than {SMALLEST_TOP} models are too few)" for top in wanted if top < SMALLEST_TOP]
    found += [f"the top {top:,} (there are only {counted(models, 'model')})" for top in wanted if top > models]
    return (f"Not reviewed: {listed(found)}.",) if found else ()


def uneven(population: Population) -> tuple[str, ...]:
    """Data sets that differ in their models or in the number of their test samples."""
    if len(population.sheets) < 2:
        return ()
    found: list[str] = []
    models = [len(sheet) for sheet in population.sheets]
    if min(models) < max(models):
        found.append(
            f"The data sets have between {min(models):,} and {max(models):,} models; what compares two of them uses "
            "the models that both have."
        )
    samples = [sheet.samples for sheet in population.sheets if not math.isnan(sheet.samples)]
    if samples and max(samples) > 2 * min(samples):
        found.append(
            f"The data sets have between {min(samples):,.0f} and {max(samples):,.0f} test samples: errors of binned "
            "metrics are larger on small ones by chance alone, so compare orders of models, not sizes of errors."
        )
    return tuple(found)


def of_intervals(population: Population) -> str:
    """What the intervals say and what they leave out."""
    how = population.resampling
    return (
        f"Intervals are at {100 * how.level:g} % each, not jointly ({how.resamples} resamples of models). They say "
        "how a number would vary with other models drawn like these; the test samples are taken as given."
    )


def _spread(values: Floats) -> float:
    """Standard deviation that a normal sample with these quartiles has."""
    if values.size < 2:
        return math.nan
    first, third = np.quantile(values, (0.25, 0.75))
    return float(third - first) / 1.349
