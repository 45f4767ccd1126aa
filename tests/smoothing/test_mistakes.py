"""Mistakes in certificates would be seen: at either end of an interval, in every kind, and in how alpha is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from certcal.claims import Ledger
from certcal.smoothing import CONFIDENCES, Counts, certificates
from certcal.smoothing import _bands as bands
from certcal.smoothing import _tangent as tangents
from certcal.smoothing._bands import Side
from certcal.smoothing._kinds import BandKind
from tests.smoothing.naive_certificates import ALPHA, ENDS, ROWS, HalfSpaces, allowed, failures

CACHES = (bands.lower_limits, tangents.touching_points)


@dataclass(frozen=True)
class Close:
    """A classifier whose confidence is (nearly) 0 or 1: at one end every kind of interval is close to its worst case.

    What the end bounds from below, X or 1 - X, is 1 with probability 0.85.
    """

    grid: np.ndarray
    truth: HalfSpaces

    @classmethod
    def at(cls, end: str) -> Close:
        if end == "lower":
            top = 0.999999
            return cls(np.array([top]), HalfSpaces(np.full((ROWS, 1), top), np.full((ROWS, 1), 0.85)))
        low, row = 1e-6, np.ones((ROWS, 1))
        below = float(np.nextafter(low, 0))  # class A is predicted nearly always, with confidence 0 or 1
        return cls(np.array([low]), HalfSpaces(row * [below, 1.0], row * [0.9999, 0.15], below))

    def failing(self, end: str, confidence: str, n: int, r: float = 0.7) -> int:
        """Certificates with this end wrong."""
        counts = self.truth.counts(n, self.grid, np.random.default_rng(9))
        return failures(certificates(counts, r, ALPHA, confidence, predictions="each"), self.truth.worst(r))[
            ENDS.index(end)
        ]


@pytest.fixture
def fresh() -> Iterator[None]:
    """Tables that were made with a mistake do not outlive it, nor do those made without get into it."""
    for made in CACHES:
        made.cache_clear()
    yield
    for made in CACHES:
        made.cache_clear()


def narrower(factor: float) -> Callable[[Any], Any]:
    """Limits of a mean, moved towards it."""
    return lambda limits: (
        lambda mean, *rest, **more: limits(mean, *rest, **more)._replace(
            lower=mean - factor * (mean - limits(mean, *rest, **more).lower)
        )
    )


def shrunk(share: float, end: str) -> Callable[[Any], Any]:
    """One end of every interval, moved to where it would be with the probabilities seen instead of their limits."""

    def seen(counts: Counts, side: Side, confidence: str, r: float) -> np.ndarray:
        if confidence in ("standard", "bernstein"):
            return bands.shift(side.means(counts.histogram)[0], r)
        survival = bands.survival_counts(counts.histogram, side)[:, ::-1] / counts.draws[:, None]
        return bands.shift(survival, r) @ side.widths

    def change(ends: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        def moved(kind: Any, counts: Counts, r: float, level: float, flip: bool) -> np.ndarray:
            bound = ends(kind, counts, r, level, flip)
            if flip != (end == "upper"):
                return bound
            return bound + share * (seen(counts, Side.of(counts.thresholds, flip), kind.name, r) - bound)

        return moved

    return change


# How much of the width of an end can go until too many certificates fail: (share, draws). All of it would be 1.
WIDTHS = {
    "standard": (0.7, 4000),
    "bernstein": (0.7, 40_000),
    "cdf": (0.7, 4000),
    "tight": (0.3, 4000),
    "tangent": (0.6, 4000),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.usefixtures("fresh")
def test_an_end_with_a_part_of_its_width_or_none_fails_more_often_than_alpha_allows(
    end: str, confidence: str, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    share, n = WIDTHS[confidence]
    close = Close.at(end)
    assert close.failing(end, confidence, n) <= allowed(0.375 * ALPHA)
    other = ENDS[1 - ENDS.index(end)]
    monkeypatch.setattr(BandKind, "_lower", shrunk(1.0 if whole else share, end)(BandKind._lower))
    assert close.failing(end, confidence, n) > allowed(0.375 * ALPHA)
    assert close.failing(other, confidence, n) <= allowed(0.375 * ALPHA)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_an_end_without_width_is_seen_among_random_linear_classifiers(
    end: str, confidence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data of the first tests of this page: they can fail at either end, for every kind."""
    rng = np.random.default_rng(5000)
    grid = np.linspace(0.1, 0.9, 9)
    truth = HalfSpaces.random(rng, ROWS, grid, end)
    counts = truth.counts(5000, grid, rng)
    monkeypatch.setattr(BandKind, "_lower", shrunk(1.0, end)(BandKind._lower))
    found = certificates(counts, 0.0, ALPHA, confidence, predictions="each")
    assert failures(found, truth.worst(0.0))[ENDS.index(end)] > allowed(0.375 * ALPHA)


MISTAKES: dict[str, tuple[Any, str, Callable[[Any], Any], str, int]] = {
    "hoeffding's width divided by four": (bands, "hoeffding", narrower(1 / 4), "standard", 400),
    "bernstein's width divided by four": (bands, "empirical_bernstein", narrower(1 / 4), "bernstein", 40_000),
    "the width of a band divided by four": (bands, "dkw_width", lambda w: lambda *a, **k: w(*a, **k) / 4, "cdf", 400),
    "the level of a limit five times too large": (
        bands,
        "lower_limits",
        lambda table: lambda n, level: table(n, 5 * level),
        "tight",
        4000,
    ),
    "a radius five per cent too small": (
        bands,
        "shift",
        lambda shift: lambda p, r: shift(p, 0.95 * r),
        "cdf",
        1_000_000,
    ),
    "a radius of the mean five per cent too small": (
        bands,
        "shift",
        lambda shift: lambda p, r: shift(p, 0.95 * r),
        "standard",
        1_000_000,
    ),
    "a radius of the limits five per cent too small": (
        bands.LowerLimits,
        "shifted",
        lambda shifted: lambda self, r: shifted(self, 0.95 * r),
        "tight",
        1_000_000,
    ),
    "tangents for a radius five per cent too small": (
        tangents,
        "lines",
        lambda lines: lambda point, r: lines(point, 0.95 * r),
        "tangent",
        100_000,
    ),
    "lines that do not touch": (
        tangents,
        "lines",
        lambda lines: lambda point, r: (lines(point, r)[0], lines(point, r)[1] + 0.02),
        "tangent",
        100_000,
    ),
    "bets settled at the twentieth part of the logarithm of the level": (
        tangents.math,
        "log",
        lambda log: lambda x: 0.05 * log(x),
        "tangent",
        4000,
    ),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.usefixtures("fresh")
def test_a_mistake_makes_more_certificates_fail_than_alpha_allows(
    mistake: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, name, change, confidence, n = MISTAKES[mistake]
    close = Close.at(end)
    assert close.failing(end, confidence, n) <= allowed(0.375 * ALPHA)
    for made in CACHES:
        made.cache_clear()
    monkeypatch.setattr(place, name, change(getattr(place, name)))
    assert close.failing(end, confidence, n) > allowed(0.375 * ALPHA)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.usefixtures("fresh")
def test_an_end_that_spends_all_of_alpha_would_be_seen(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    close = Close.at(end)
    assert close.failing(end, "tight", 4000) <= allowed(0.375 * ALPHA)
    lower = BandKind._lower

    def spending(kind: Any, counts: Counts, r: float, level: float, flip: bool) -> np.ndarray:
        return lower(kind, counts, r, ALPHA if flip == (end == "upper") else level, flip)

    monkeypatch.setattr(BandKind, "_lower", spending)
    assert close.failing(end, "tight", 4000) > allowed(0.375 * ALPHA)


@pytest.mark.usefixtures("fresh")
def test_both_ends_and_the_prediction_each_spending_all_of_alpha_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Confidences of (nearly) 0 and 1 leave neither end any room, and votes are for class A where they are 1."""
    grid, r, n = np.array([1e-6, 1 - 1e-6]), 0.7, 100_000
    below = float(np.nextafter(grid[0], 0))
    truth = HalfSpaces(np.ones((ROWS, 1)), np.full((ROWS, 1), 0.85), below)
    counts = truth.counts(n, grid, np.random.default_rng(10))

    def failing() -> int:
        found = certificates(counts, r, ALPHA, "tight", predictions="each")
        assert found.certified.all()
        return failures(found, truth.worst(r), np.full(ROWS, stats.norm.ppf(0.85)))[3]

    assert failing() <= allowed(ALPHA)
    monkeypatch.setattr(
        Ledger, "split", lambda self, **shares: Ledger(0.99, tuple((name, self.budget) for name in shares))
    )
    assert failing() > allowed(ALPHA)
