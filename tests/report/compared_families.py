"""Families of runs that are made up: cheap ones of votes alone, and small ones with confidences."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from certcal.lab.logs import Comparison, compare
from certcal.smoothing import Counts
from certcal.smoothing.robustness import VoteRecord

SEVEN = ("gaussian", "smoothadv", "macer", "consistency", "smoothmix", "cat-rs", "acr")
# A name that would like to be markup or a formula.
HOSTILE = "<b>_$\\frac{\"'&"
SIGMAS = (0.25, 0.5, 1.0)
SAMPLES = 40


def votes(place: int, sigma: float, draws: int) -> Any:
    """Votes for the true class: of two neighbours the second is better everywhere, of two pairs each is somewhere."""
    hardness = np.arange(SAMPLES) / SAMPLES
    given_up = hardness > 0.95 - 0.05 * (place // 2)
    share = np.where(given_up, 0.2, 1 - hardness ** (2.0 + place) * sigma / 2)
    return np.round(draws * share).astype(int)


def record(place: int, sigma: float, draws: int = 1000) -> VoteRecord:
    """Votes of one run."""
    labels = np.arange(SAMPLES) % 10
    seen = votes(place, sigma, draws)
    return VoteRecord.of(np.maximum(seen, draws - seen), draws, 2 * seen > draws, sigma=sigma, label=labels)


def counts(place: int, sigma: float, draws: int = 400) -> Counts:
    """Votes and confidences of one run."""
    seen = votes(place, sigma, draws)
    top = np.maximum(seen, draws - seen)
    rng = np.random.default_rng([9, place])
    drawn = np.clip(top[:, None] / draws + rng.normal(0, 0.08, (SAMPLES, draws)), 0, 1)
    made = Counts.from_confidences(drawn, np.linspace(0.05, 0.95, 19), votes=top, sigma=sigma)
    labels = np.arange(SAMPLES) % 10
    return replace(made, label=labels, predicted=np.where(2 * seen > draws, labels, (labels + 1) % 10))


def results_of(sources: Mapping[str, Sequence[Any]], **options: Any) -> Comparison:
    """What a comparison of families finds, as if every run had a folder."""
    found = compare(sources, **options)
    return replace(found, origins={run.name: f"runs/{run.name}" for run in found.runs})


@cache
def seven() -> Comparison:
    """All seven methods at three noise levels, of votes alone."""
    return results_of({name: [record(place, sigma) for sigma in SIGMAS] for place, name in enumerate(SEVEN)})


@cache
def with_confidences() -> Comparison:
    """Families at two noise levels, with what is certified of their confidences; the last has one of them only."""
    sources = {
        "gaussian": [counts(0, sigma) for sigma in SIGMAS[:2]],
        "smoothadv": [counts(1, sigma) for sigma in SIGMAS[:2]],
        HOSTILE: [counts(2, SIGMAS[0])],
    }
    return results_of(sources, calibration_at=(0.0, 0.125, 40.0))


def rich() -> Comparison:
    """As much as a page can hold: all seven methods, and for two of them what is certified of their confidences."""
    known = [each for each in with_confidences().calibration if each.family in SEVEN]
    return replace(seven(), calibration=tuple(known))
