"""Certificates hold where the truth is known, as often as they must, and smaller ones would not."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from certcal.smoothing import CONFIDENCES, KINDS, Counts, certificates, default_thresholds
from certcal.smoothing import _bands as bands
from certcal.smoothing import _tangent as tangents
from certcal.smoothing._bands import HistogramRows, Side
from tests.smoothing.naive_certificates import ALPHA, ENDS, ROWS, Balls, HalfSpaces, allowed, failures


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("n", [30, 200, 5000])
@pytest.mark.parametrize("r", [0.0, 0.5, 1.5])
@pytest.mark.parametrize("end", ENDS)
def test_certificates_of_linear_classifiers_hold_as_often_as_they_say(
    confidence: str, n: int, r: float, end: str
) -> None:
    rng = np.random.default_rng(n)
    grid = np.linspace(0.1, 0.9, 9)
    truth = HalfSpaces.random(rng, ROWS, grid, end)
    found = certificates(truth.counts(n, grid, rng), r, ALPHA, confidence)
    low, high, radius, any_ = failures(found, truth.worst(r), stats.norm.ppf(truth.survival[:, 0]))
    spent = dict(found.ledger.entries)
    assert found.n_certified > 100 or r > 1
    assert low <= allowed(spent["lower"])
    assert high <= allowed(spent["upper"])
    assert radius <= allowed(spent["prediction"])
    assert any_ <= allowed(ALPHA)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("n", [30, 1000])
@pytest.mark.parametrize("end", ENDS)
def test_certificates_around_balls_hold_as_often_as_they_say(confidence: str, n: int, end: str) -> None:
    rng = np.random.default_rng(n + 1)
    grid = np.linspace(0.05, 0.95, 19)
    truth = Balls.random(rng, ROWS, grid, end)
    for r in (0.3, 0.8):
        found = certificates(truth.counts(n, grid, rng), r, ALPHA, confidence)
        assert found.n_certified > 100
        assert failures(found, truth.worst(r))[3] <= allowed(ALPHA)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_certificates_of_a_smooth_linear_classifier_on_the_default_grid_hold(confidence: str) -> None:
    # f(x) = Φ((x - b)/τ): smoothing with σ = 1 gives Φ((x - b)/√(1 + τ²)), and the worst perturbation is along x.
    rng = np.random.default_rng(3)
    grid, n, r = default_thresholds(), 2000, 0.7
    place, slope = rng.uniform(0.5, 3, ROWS), rng.uniform(0.2, 1.5, ROWS)
    x = stats.norm.cdf((place[:, None] + rng.standard_normal((ROWS, n))) / slope[:, None])
    counts = Counts.from_confidences(x, grid, votes=np.count_nonzero(x > 0.5, axis=1), sigma=1.0)
    spread = np.sqrt(1 + slope**2)
    worst = stats.norm.cdf((place - r) / spread), stats.norm.cdf((place + r) / spread)
    found = certificates(counts, r, ALPHA, confidence)
    assert found.n_certified > 300
    assert failures(found, worst, place)[3] <= allowed(ALPHA)


# ----------------------------------------------------------------------------- coverage of one side, by enumeration

# One threshold: the union over thresholds costs nothing, and nothing hides a mistake. At the lower end the confidence
# is 0 or the threshold, at the upper end just below it or 1, so that rounding to the grid gives nothing away.
HALF = {"lower": 0.5, "upper": 0.5}
WHOLE = {"lower": 1 - 1e-9, "upper": 1e-9}  # (nearly) 0 or 1: a mean is as good as a band

Outcomes = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def all_outcomes(n: int, first: int | None = None) -> Outcomes:
    """Histograms of a confidence with two values for every number of hits in pilot and rest, with both numbers."""
    first = max(1, n // 10) if first is None else first
    hits = np.array([(i, j) for i in range(first + 1) for j in range(n - first + 1)])
    pilot = np.stack([first - hits[:, 0], hits[:, 0]], axis=1)
    rest = np.stack([n - first - hits[:, 1], hits[:, 1]], axis=1)
    return pilot + rest, pilot, hits, np.array([first, n - first])


def failure_rate(bound: np.ndarray, outcomes: Outcomes, p: float, r: float, width: float = 0.5) -> float:
    """Exact probability that the bound is above the worst case width · h(p)."""
    _, _, hits, sizes = outcomes
    chance = stats.binom.pmf(hits[:, 0], sizes[0], p) * stats.binom.pmf(hits[:, 1], sizes[1], p)
    truth = width * stats.norm.cdf(stats.norm.ppf(p) - r)
    return float(chance[bound > truth].sum())


PROBABILITIES = np.concatenate([np.linspace(0.01, 0.99, 50), 1 - np.logspace(-5, -2, 20)])


@cache
def chances(n: int) -> list[np.ndarray]:
    """For each of the probabilities, how likely every outcome of n draws is."""
    _, _, hits, sizes = all_outcomes(n)
    return [np.prod([stats.binom.pmf(hits[:, i], sizes[i], p) for i in (0, 1)], axis=0) for p in PROBABILITIES]


def one_side(
    confidence: str, outcomes: Outcomes, r: float, level: float, end: str, place: dict[str, float] = HALF
) -> np.ndarray:
    """Lower ends for X, or for 1 - X: there a hit is a draw below the threshold."""
    histogram, pilot, _, _ = outcomes
    if end == "upper":
        histogram, pilot = (np.ascontiguousarray(each[:, ::-1]) for each in (histogram, pilot))
    side = Side.of(np.array([place[end]]), end == "upper")
    return KINDS[confidence].bound(HistogramRows(histogram, pilot, side, r, level))


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("n", [20, 60, 200])
@pytest.mark.parametrize("r", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("end", ENDS)
def test_each_bound_fails_with_at_most_its_level_by_enumeration_of_all_outcomes(
    confidence: str, n: int, r: float, end: str
) -> None:
    outcomes = all_outcomes(n)
    truths = 0.5 * stats.norm.cdf(stats.norm.ppf(PROBABILITIES) - r)
    for level in (0.3, 0.05, 0.001):
        bound = one_side(confidence, outcomes, r, level, end)
        rates = [chance[bound > truth].sum() for chance, truth in zip(chances(n), truths, strict=True)]
        assert max(rates) <= level
        assert bound.max() > 0 or (confidence, n) == ("bernstein", 20)  # whose width is above 1 with so few draws


@pytest.mark.parametrize("n", [20, 60, 200])
@pytest.mark.parametrize("end", ENDS)
def test_the_tight_bound_at_one_threshold_is_exact_and_two_per_cent_less_would_fail(n: int, end: str) -> None:
    outcomes, r, level = all_outcomes(n), 0.7, 0.05
    bound = one_side("tight", outcomes, r, level, end)
    limits = 0.5 * stats.norm.cdf(stats.norm.ppf(stats.beta.ppf(level, np.arange(1, n + 1), n - np.arange(n))) - r)
    assert np.allclose(np.unique(bound)[1:], limits, atol=1e-9)
    p = stats.beta.ppf(level, n - 3, 4) * (1 - 1e-7)
    assert 0.999 * level < failure_rate(bound, outcomes, p, r) <= level
    estimate = 0.5 * bands.shift(outcomes[2].sum(axis=1) / n, r)
    shrunk = bound + 0.02 * (estimate - bound)
    p = stats.beta.ppf(level, n - 3, 4) * (1 + 1e-7)
    assert failure_rate(shrunk, outcomes, p, r) > level


# By how much each width could be smaller until the bound fails more often than it may, at level 0.05. Hoeffding's and
# Massart's inequalities are not sharp for a coin, Bernstein's pays for its variance, and Markov's for the bets.
GIVEN_AWAY = {"tight": (0.02, 200), "cdf": (0.4, 200), "standard": (0.4, 200), "bernstein": (0.6, 20_000)}


@pytest.mark.parametrize("confidence", GIVEN_AWAY)
@pytest.mark.parametrize("r", [0.0, 0.7])
@pytest.mark.parametrize("end", ENDS)
def test_a_width_that_is_smaller_by_what_it_gives_away_would_fail(confidence: str, r: float, end: str) -> None:
    share, n = GIVEN_AWAY[confidence]
    outcomes, level = all_outcomes(n, first=0), 0.05
    bound = one_side(confidence, outcomes, r, level, end, WHOLE)
    estimate = bands.shift(outcomes[2].sum(axis=1) / n, r)
    shrunk = bound + share * (estimate - bound)
    probabilities = np.linspace(0.02, 0.98, 97)
    assert max(failure_rate(bound, outcomes, p, r, 1 - 1e-9) for p in probabilities) <= level
    assert max(failure_rate(shrunk, outcomes, p, r, 1 - 1e-9) for p in probabilities) > level


@pytest.mark.parametrize("n", [60, 200])
@pytest.mark.parametrize("end", ENDS)
def test_a_tangent_bound_that_is_narrower_by_three_tenths_would_fail(n: int, end: str) -> None:
    # Bets are settled by Markov's inequality, which is not sharp: the room it leaves is measured here.
    outcomes, r, level = all_outcomes(n), 0.7, 0.05
    bound = one_side("tangent", outcomes, r, level, end)
    estimate = 0.5 * bands.shift(outcomes[2].sum(axis=1) / n, r)
    shrunk = bound + 0.3 * np.maximum(estimate - bound, 0)
    probabilities = 1 - np.logspace(-3, -0.5, 200)
    assert max(failure_rate(bound, outcomes, p, r) for p in probabilities) > 0.2 * level
    assert max(failure_rate(shrunk, outcomes, p, r) for p in probabilities) > level


# ------------------------------------------------------------------------------ why the tangent holds, without chance


def expected_gains(survival: np.ndarray, r: float, pilot: np.ndarray, grid: np.ndarray, slack: float = 0.0) -> Any:
    """Expected gain of each bet of a pilot, per draw, under a true survival whose functional is what is bet against."""
    from certcal._kernels.certificates import lay_tangent

    widths = np.diff(grid, prepend=0.0)
    first = int(pilot.sum())
    assumed, point = tangents.views(first, 9 * first, 0.01)
    slope, intercept = tangents.lines(point, r)
    slope = slope * (1 + slack)
    above = np.cumsum(pilot[::-1])[::-1].copy()
    truth = float(widths @ bands.shift(survival, r))
    shares = -np.diff(np.concatenate(([1.0], survival, [0.0])))
    gains = []
    for c in range(len(assumed)):
        worth, mass, gain = (np.empty(len(grid) + 1) for _ in range(3))
        offset, _, theta = lay_tangent(above, widths, assumed[c], point[c], slope[c], intercept[c], worth, mass, gain)
        gains.append(float(shares @ (1 - theta + theta * worth / (truth - offset))))
    return gains, point, above


def test_no_bet_is_expected_to_win_against_the_truth_and_one_with_lines_a_per_cent_steeper_is() -> None:
    rng = np.random.default_rng(0)
    grid = np.linspace(0.05, 0.95, 19)
    for r in (0.2, 1.0, 2.5):
        for _ in range(100):
            survival = np.sort(rng.beta(0.8, 0.3, grid.size))[::-1]
            pilot = rng.multinomial(50, rng.dirichlet(np.full(grid.size + 1, 0.3)))
            gains, point, above = expected_gains(survival, r, pilot, grid)
            assert max(gains) <= 1 + 1e-12
            # At the point of touching the bound is attained, so that the gain is one and nothing is given away.
            touched = point[1][above[1:]]
            assert expected_gains(touched, r, pilot, grid)[0][1] == pytest.approx(1.0, abs=1e-9)
            assert expected_gains(touched, r, pilot, grid, 0.01)[0][1] > 1 + 1e-6


@pytest.mark.parametrize("end", ENDS)
def test_bets_are_on_what_the_pilot_leaves_and_on_nothing_else(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With bets that do not look at the pilot, any pilot in front of the same other draws gives the same bound."""
    rng = np.random.default_rng(4)
    grid, first, rest = np.linspace(0.1, 0.9, 9), 40, 360
    survival, point = tangents.views(first, rest, 0.01)
    blind = tuple(np.repeat(each[:, 30:31], first + 1, axis=1) for each in (survival, point))
    left = rng.multinomial(rest, rng.dirichlet(np.full(10, 0.5), 20))
    pilots = [rng.multinomial(first, rng.dirichlet(np.full(10, 0.3), 20)) for _ in range(3)]
    side = Side.of(grid, end == "upper")
    seeing = [tangents.tangent(HistogramRows(left + pilot, pilot, side, 0.5, 0.01)) for pilot in pilots]
    assert not np.array_equal(seeing[0], seeing[1])
    monkeypatch.setattr(tangents, "views", lambda *_: blind)
    found = [tangents.tangent(HistogramRows(left + pilot, pilot, side, 0.5, 0.01)) for pilot in pilots]
    assert found[0].min() > 0
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_pilot_alone_refutes_nothing() -> None:
    pilot = np.array([[0, 1000]])
    for left in (0, 1):
        histogram = pilot + np.array([[0, left]])
        assert tangents.tangent(HistogramRows(histogram, pilot, Side.of(np.array([0.5]), False), 0.5, 0.01))[0] < 0.01


# ------------------------------------------------------------------------------------------------------ many draws


@pytest.mark.parametrize("confidence", ["cdf", "tight", "tangent"])
@pytest.mark.parametrize("end", ENDS)
def test_with_many_draws_intervals_shrink_to_the_worst_case(confidence: str, end: str) -> None:
    rng = np.random.default_rng(5)
    grid = np.linspace(0.1, 0.9, 9)
    truth = HalfSpaces.random(rng, 50, grid, end)
    r = 1.0
    worst = truth.worst(r)
    gaps = []
    for n in (10_000, 100_000, 1_000_000):
        found = certificates(truth.counts(n, grid, rng), r, 1e-3, confidence)
        sure = found.certified
        below, above = worst[0][sure] - found.lower[sure], found.upper[sure] - worst[1][sure]
        gaps.append(np.max(below if end == "lower" else above))
        # At the other end X is rounded outward by one step of the grid.
        assert np.all(below >= 0)
        assert np.all(above >= 0)
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.03 if confidence == "cdf" else gaps[2] < 0.01
