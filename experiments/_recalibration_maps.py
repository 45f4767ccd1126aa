"""Maps fitted to one half of certified samples and measured on the other: rows, differences, several splits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certcal.calibrators import (
    Calibrator,
    CertifiedIsotonic,
    CertifiedSamples,
    CertifiedTemperature,
    ConfidenceMap,
    gain_over,
)
from certcal.metrics import auroc, ece, top_label_brier_score
from certcal.worst_case import calibration_error, information

BINS = 15
DELTA = 0.05
RESAMPLES = 1000
REPEATS = 9  # fits that are timed
IDENTITY = "as it is"
CONSTANT = "one constant"


def certified(tradeoff: float) -> str:
    """Name of the certified isotonic map of a trade-off."""
    return f"certified isotonic, λ = {tradeoff:g}"


CHOSEN = certified(0.5)  # fixed before looking
FITTED: dict[str, Callable[[], Any]] = {
    "temperature": lambda: CertifiedTemperature(0.0),
    "isotonic": lambda: CertifiedIsotonic(0.0),
    certified(0.25): lambda: CertifiedIsotonic(0.25),
    CHOSEN: lambda: CertifiedIsotonic(0.5),
    certified(1): lambda: CertifiedIsotonic(1.0),
}
NAMES = (IDENTITY, CONSTANT, *FITTED)


@dataclass(frozen=True)
class Fit:
    """A map, and how long fitting it took: the median of several times, in milliseconds."""

    calibrator: ConfidenceMap | None
    milliseconds: float


@dataclass(frozen=True)
class Row:
    """A map on samples that it was not fitted to. Of certified samples, but for what is clean: that is of all.

    Attributes
    ----------
    brier, skill, error
        Certified Brier score, certified skill (NaN where all samples are correct), and exact calibration error.
    error_all
        The same error over all samples, uncertified ones being free.
    gain
        How much lower the certified Brier score of the population is than that of one constant, at least (95 %).
    clean_brier, clean_ece, auroc
        Without a perturbation.
    accuracy
        Certified accuracy, which no map changes.
    """

    brier: float
    skill: float
    error: float
    error_all: float
    gain: float
    clean_brier: float
    clean_ece: float
    auroc: float
    accuracy: float


def fit_maps(fit: CertifiedSamples, names: Sequence[str] = NAMES, repeats: int = REPEATS) -> dict[str, Fit]:
    """The maps of these names."""
    found: dict[str, Fit] = {}
    for name in names:
        if name == IDENTITY:
            found[name] = Fit(None, 0.0)
        elif name == CONSTANT:
            found[name] = Fit(constant_map(share_correct(fit)), 0.0)
        else:
            seconds: list[float] = []
            for _ in range(repeats):
                began = time.perf_counter()
                calibrator = FITTED[name]().fit_samples(fit)
                seconds.append(time.perf_counter() - began)
            found[name] = Fit(calibrator, 1000 * float(np.median(seconds)))
    return found


def share_correct(samples: CertifiedSamples) -> float:
    """Share of the certified samples, at the only radius, that are correct."""
    return float(samples.correct[samples.certified[:, 0]].mean())


def constant_map(value: float) -> ConfidenceMap:
    """The same confidence for everybody."""
    document = {"type": "CertifiedIsotonic", "params": {"tradeoff": 1.0}, "fitted": {"x": [0.5], "y": [value]}}
    made = Calibrator.from_dict(document)
    assert isinstance(made, ConfidenceMap)
    return made


def measure(held_out: CertifiedSamples, calibrator: ConfidenceMap | None, constant: float) -> Row:
    """A map on held-out samples at their only radius; ``constant`` is what the gain is measured against."""
    mapped = held_out.mapped(calibrator)
    kept = mapped.certified[:, 0]
    given = (mapped.lower[:, 0], mapped.upper[:, 0], mapped.correct)
    worst = calibration_error(*given, BINS, certified=kept)
    parts = information(*given, certified=kept)
    gain = gain_over(mapped, 0, constant, DELTA)
    assert mapped.confidence is not None
    assert worst.all_samples is not None
    assert gain is not None
    assert parts.brier is not None
    return Row(
        parts.brier,
        parts.skill.value,
        worst.value,
        worst.all_samples.value,
        gain.value,
        top_label_brier_score(mapped.confidence, mapped.correct),
        ece(mapped.confidence, mapped.correct, bins=BINS),
        auroc(mapped.confidence, mapped.correct),
        float(np.mean(kept & (mapped.correct == 1))),
    )


METRICS = ("brier", "error", "clean_brier", "clean_ece")


def _few(samples: CertifiedSamples, rows: Any = slice(None)) -> dict[str, float]:
    """The metrics of which differences are shown, of mapped samples."""
    kept = samples.certified[rows, 0]
    low, high = samples.lower[rows, 0][kept], samples.upper[rows, 0][kept]
    c, z = samples.correct[rows], samples.confidence[rows]
    right = c[kept] == 1
    return {
        "brier": float(np.mean(np.where(right, 1 - low, high) ** 2)),
        "error": calibration_error(low, high, c[kept], BINS).value,
        "clean_brier": float(np.mean((c - z) ** 2)),
        "clean_ece": ece(z, c, bins=BINS),
    }


@dataclass(frozen=True)
class Difference:
    """One line minus another: the value, the middle 95 % over resampled images, and the same over several splits."""

    value: float
    low: float
    high: float
    mean: float
    least: float
    most: float


@dataclass(frozen=True, eq=False)
class Side:
    """What is compared: samples of a model at one radius, and the name of a map for them."""

    samples: CertifiedSamples
    name: str

    def after(self, seed: int) -> CertifiedSamples:
        """Held-out samples of a split after the map that is fitted to the others."""
        fit, rest = self.samples.split(0.5, seed)
        return rest.mapped(fit_maps(fit, [self.name], repeats=1)[self.name].calibrator)


def differences(one: Side, other: Side, splits: int, common: bool = False) -> dict[str, Difference]:
    """Differences of two lines on the same held-out samples, which are resampled in pairs with the maps fixed.

    With ``common``, certified are those that both sides certify.
    """
    first, second = _both(one, other, 0, common)
    here, there = _few(first), _few(second)
    rng = np.random.default_rng([0, 0xB007])
    n = len(first)
    drawn = {name: np.empty(RESAMPLES) for name in METRICS}
    for k in range(RESAMPLES):
        rows = rng.integers(0, n, n)
        ours, theirs = _few(first, rows), _few(second, rows)
        for name in METRICS:
            drawn[name][k] = ours[name] - theirs[name]
    again = [tuple(map(_few, _both(one, other, seed, common))) for seed in range(splits)]
    found: dict[str, Difference] = {}
    for name in METRICS:
        low, high = map(float, np.quantile(drawn[name], [0.025, 0.975]))
        several = [ours[name] - theirs[name] for ours, theirs in again]
        spread = (float(np.mean(several)), min(several), max(several))
        found[name] = Difference(here[name] - there[name], low, high, *spread)
    return found


def _both(one: Side, other: Side, seed: int, common: bool) -> tuple[CertifiedSamples, CertifiedSamples]:
    first, second = one.after(seed), other.after(seed)
    assert (first.index == second.index).all()
    if common:
        kept = first.certified & second.certified
        first, second = (replace(each, certified=kept) for each in (first, second))
    return first, second
