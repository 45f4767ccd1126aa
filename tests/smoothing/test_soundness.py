"""Certificates hold where the truth is known, as often as they must, and smaller ones would not."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from certcal.smoothing import CONFIDENCES, KINDS, Counts, certificates, default_thresholds
from certcal.smoothing import _bands as bands
from certcal.smoothing import _tangent as tangents
from certcal.smoothing._bands import HistogramRows, Side
from tests.smoothing.naive_certificates import ALPHA, ENDS, ROWS, Balls, HalfSpaces, allowed, dealt, failures


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
    found = certificates(truth.counts(n, grid, rng), r, ALPHA, confidence, predictions="each")
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
        found = certificates(truth.counts(n, grid, rng), r, ALPHA, confidence, predictions="each")
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
    found = certificates(counts, r, ALPHA, confidence, predictions="each")
    assert found.n_certified > 300
    assert failures(found, worst, place)[3] <= allowed(ALPHA)


# ----------------------------------------------------------------------------- coverage of one side, by enumeration

# One threshold: the union over thresholds costs nothing, and nothing hides a mistake. At the lower end the confidence
# is 0 or the threshold, at the upper end just below it or 1, so that rounding to the grid gives nothing away.
HALF = {"lower": 0.5, "upper": 0.5}
WHOLE = {"lower": 1 - 1e-9, "upper": 1e-9}  # (nearly) 0 or 1: a mean is as good as a band

COINS = 40  # ways in which the draws of each outcome are dealt out
KEYS = np.arange(4000, dtype=np.uint64)

Outcomes = tuple[np.ndarray, np.ndarray, np.ndarray]


def all_outcomes(n: int, coins: int = 1) -> Outcomes:
    """Histograms of a confidence with two values for every number of hits, keys of the coins, and the hits."""
    hits = np.repeat(np.arange(n + 1), coins)
    return np.stack([n - hits, hits], axis=1), np.arange(hits.size, dtype=np.uint64), hits


def failure_rate(bound: np.ndarray, outcomes: Outcomes, p: float, r: float, width: float = 0.5) -> float:
    """Probability that the bound is above the worst case width · h(p): exact, but for the coins, which are sampled."""
    _, _, hits = outcomes
    n = int(hits[-1])
    truth = width * stats.norm.cdf(stats.norm.ppf(p) - r)
    return float(stats.binom.pmf(hits, n, p)[bound > truth].sum() * (n + 1) / hits.size)


PROBABILITIES = np.concatenate([np.linspace(0.01, 0.99, 50), 1 - np.logspace(-5, -2, 20)])


@cache
def chances(n: int, coins: int) -> list[np.ndarray]:
    """For each of the probabilities, how likely every outcome of n draws is."""
    _, _, hits = all_outcomes(n, coins)
    return [stats.binom.pmf(hits, n, p) / coins for p in PROBABILITIES]


def one_side(
    confidence: str, outcomes: Outcomes, r: float, level: float, end: str, place: dict[str, float] = HALF
) -> np.ndarray:
    """Lower ends for X, or for 1 - X: there a hit is a draw below the threshold."""
    histogram, keys, _ = outcomes
    if end == "upper":
        histogram = np.ascontiguousarray(histogram[:, ::-1])
    side = Side.of(np.array([place[end]]), end == "upper")
    return KINDS[confidence].bound(HistogramRows(histogram, keys, side, r, level))


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("n", [20, 60, 200])
@pytest.mark.parametrize("r", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("end", ENDS)
def test_each_bound_fails_with_at_most_its_level_by_enumeration_of_all_outcomes(
    confidence: str, n: int, r: float, end: str
) -> None:
    coins = COINS if confidence == "tangent" else 1
    outcomes = all_outcomes(n, coins)
    truths = 0.5 * stats.norm.cdf(stats.norm.ppf(PROBABILITIES) - r)
    for level in (0.3, 0.05, 0.001):
        bound = one_side(confidence, outcomes, r, level, end)
        rates = [chance[bound > truth].sum() for chance, truth in zip(chances(n, coins), truths, strict=True)]
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
    estimate = 0.5 * bands.shift(outcomes[2] / n, r)
    shrunk = bound + 0.02 * (estimate - bound)
    p = stats.beta.ppf(level, n - 3, 4) * (1 + 1e-7)
    assert failure_rate(shrunk, outcomes, p, r) > level


@pytest.mark.parametrize("level", [0.9, 0.05])
@pytest.mark.parametrize("end", ENDS)
def test_what_no_certificate_can_exceed_is_exceeded_with_at_most_its_level_by_enumeration(
    level: float, end: str
) -> None:
    # Two thresholds whose numbers of draws are nearly independent. Where limits are below their estimates, at 0.9, the
    # sum of limits that have all of the level each would fail more often; at small levels sums fail less often anyway.
    n, survival = 200, np.array([0.9, 0.1])
    most, least = (each.ravel() for each in np.meshgrid(np.arange(n + 1), np.arange(n + 1)))
    below, above = n - most[most >= least], least[most >= least]
    cells = np.stack([below, n - below - above, above], axis=1)
    chance = stats.multinomial.pmf(cells, n, [0.1, 0.8, 0.1])
    histogram = cells if end == "lower" else np.ascontiguousarray(cells[:, ::-1])
    keys = np.zeros(len(cells), np.uint64)
    side = Side.of(np.array([0.49, 0.98 if end == "lower" else 0.51]), end == "upper")
    for r in (0.0, 0.1):
        bound = bands.tight_above(HistogramRows(histogram, keys, side, r, level))
        failed = chance[bound < side.widths @ bands.shift(survival, r)].sum()
        assert 0.05 * level < failed <= level
        limits = stats.beta.ppf(1 - level / 2, np.arange(n) + 1, n - np.arange(n))
        exact = bands.shift(np.append(limits, 1.0), r)
        np.testing.assert_allclose(bound, side.widths @ exact[np.stack([n - below, above])], atol=1e-9)


# By how much each width could be smaller until the bound fails more often than it may, at level 0.05. Hoeffding's and
# Massart's inequalities are not sharp for a coin, Bernstein's pays for its variance, and Markov's for the bets.
GIVEN_AWAY = {"tight": (0.02, 200), "cdf": (0.4, 200), "standard": (0.4, 200), "bernstein": (0.6, 20_000)}


@pytest.mark.parametrize("confidence", GIVEN_AWAY)
@pytest.mark.parametrize("r", [0.0, 0.7])
@pytest.mark.parametrize("end", ENDS)
def test_a_width_that_is_smaller_by_what_it_gives_away_would_fail(confidence: str, r: float, end: str) -> None:
    share, n = GIVEN_AWAY[confidence]
    outcomes, level = all_outcomes(n), 0.05
    bound = one_side(confidence, outcomes, r, level, end, WHOLE)
    estimate = bands.shift(outcomes[2] / n, r)
    shrunk = bound + share * (estimate - bound)
    probabilities = np.linspace(0.02, 0.98, 97)
    assert max(failure_rate(bound, outcomes, p, r, 1 - 1e-9) for p in probabilities) <= level
    assert max(failure_rate(shrunk, outcomes, p, r, 1 - 1e-9) for p in probabilities) > level


@pytest.mark.parametrize("end", ENDS)
def test_a_tangent_bound_is_nearly_exact_where_every_draw_is_a_hit_and_two_per_cent_less_would_fail(end: str) -> None:
    # All n draws are hits with probability p^n, so no bound on p at this level can be above level^(1/n).
    n, level, r = 1000, 0.01, 0.0
    hits = np.tile([0, n], (COINS, 1))
    bound = one_side("tangent", (hits, KEYS[:COINS], np.full(COINS, n)), r, level, end)
    exact = 0.5 * level ** (1 / n)
    assert bound.max() < exact
    shrunk = bound + 0.02 * (0.5 - bound)
    # Where p is just above level^(1/n), a bound above the truth fails with more than the level.
    assert shrunk.min() > exact


@pytest.mark.parametrize("end", ENDS)
def test_a_tangent_bound_that_is_narrower_by_three_tenths_would_fail_elsewhere(end: str) -> None:
    # Bets are settled by Markov's inequality, which is not sharp: the room it leaves is measured here.
    n, r, level = 60, 0.7, 0.05
    outcomes = all_outcomes(n, COINS)
    bound = one_side("tangent", outcomes, r, level, end)
    estimate = 0.5 * bands.shift(outcomes[2] / n, r)
    shrunk = bound + 0.3 * np.maximum(estimate - bound, 0)
    probabilities = 1 - np.logspace(-3, -0.5, 200)
    assert max(failure_rate(bound, outcomes, p, r) for p in probabilities) > 0.2 * level
    assert max(failure_rate(shrunk, outcomes, p, r) for p in probabilities) > level


REGIMES = {  # survival at three thresholds; draws; radius
    "near one": ((0.999, 0.998, 0.99), 300, 0.5),
    "one, then a drop": ((1.0, 1.0, 0.6), 60, 0.5),
    "rare draws below": ((0.99, 0.99, 0.99), 100, 1.0),
    "all alike": ((0.9, 0.9, 0.9), 50, 0.0),
    "steps": ((0.9, 0.6, 0.3), 100, 0.7),
    "low": ((0.3, 0.1, 0.02), 100, 0.3),
    "rare draws above": ((0.5, 0.01, 0.005), 200, 0.2),
    "few draws": ((0.95, 0.9, 0.8), 8, 0.5),
    "one draw": ((0.9, 0.8, 0.7), 1, 0.1),
    "far": ((0.99, 0.97, 0.9), 200, 2.0),
    "many draws": ((0.97, 0.8, 0.2), 5000, 1.0),
    "certain": ((1.0, 1.0, 1.0), 30, 1.0),
}


@pytest.mark.parametrize("regime", REGIMES)
def test_tangent_bounds_hold_in_every_regime(regime: str) -> None:
    """4,000 samples at level 0.3, where failures are frequent; and the same bounds from the other side."""
    survival, n, r = REGIMES[regime]
    grid, level, rows = np.array([0.25, 0.5, 0.75]), 0.3, 4000
    shares = -np.diff(np.concatenate(([1.0], survival, [0.0])))
    drawn = np.random.default_rng(len(regime)).multinomial(n, np.maximum(shares, 0), rows)
    truth = 0.25 * float(bands.shift(np.array(survival), r).sum())
    bound = tangents.tangent(HistogramRows(drawn, KEYS[:rows], Side.of(grid, False), r, level))
    assert np.count_nonzero(bound > truth) <= allowed(level, rows)
    flipped = tangents.tangent(
        HistogramRows(np.ascontiguousarray(drawn[:, ::-1]), KEYS[:rows], Side.of(1 - grid[::-1], True), r, level)
    )
    np.testing.assert_allclose(flipped, bound, atol=1e-12)


# ------------------------------------------------------------------------------ why the tangent holds, without chance


def laid(past: np.ndarray, r: float, grid: np.ndarray, slack: float = 0.0, nats: float = 0.01) -> Any:
    """Offset, bet, worth and touching points of the tangents that draws of the past choose."""
    from certcal._kernels.certificates import lay_tangent

    point = tangents.touching_points(nats)
    slope, intercept = tangents.lines(point, r)
    line = np.empty(past.size, np.int64)
    worth, mass, gain = (np.empty(past.size) for _ in range(3))
    tables = (point, slope * (1 + slack), intercept)
    offset, _, theta = lay_tangent(past, 0.003, np.diff(grid, prepend=0.0), *tables, line, worth, mass, gain)
    return offset, theta, worth, point[line[1:]]


def test_no_bet_is_expected_to_win_against_the_truth_and_one_with_lines_a_per_cent_steeper_is() -> None:
    rng = np.random.default_rng(0)
    grid = np.linspace(0.05, 0.95, 19)

    def expected(survival: np.ndarray, past: np.ndarray, r: float, slack: float = 0.0) -> float:
        """Gain per draw under a true survival whose functional is what is bet against."""
        offset, theta, worth, _ = laid(past, r, grid, slack)
        truth = float(np.diff(grid, prepend=0.0) @ bands.shift(survival, r))
        shares = -np.diff(np.concatenate(([1.0], survival, [0.0])))
        return float(shares @ (1 - theta + theta * worth / (truth - offset)))

    for r in (0.2, 1.0, 2.5):
        for _ in range(100):
            survival = np.sort(rng.beta(0.8, 0.3, grid.size))[::-1]
            past = rng.multinomial(50, rng.dirichlet(np.full(grid.size + 1, 0.3)))
            assert expected(survival, past, r) <= 1 + 1e-12
            # At the point of touching the bound is attained, so that the gain is one and nothing is given away.
            touched = laid(past, r, grid)[3]
            assert expected(touched, past, r) == pytest.approx(1.0, abs=1e-9)
            assert expected(touched, past, r, 0.01) > 1 + 1e-6


def test_draws_are_dealt_out_by_fair_coins_that_do_not_look_at_them() -> None:
    from certcal._kernels.certificates import split_draws

    rows = 2000
    histogram = np.array([3, 0, 200, 64, 1])
    parts = np.empty((rows, 9, 5), np.int64)
    for key in range(rows):
        split_draws(histogram, False, key, parts[key])
        assert np.array_equal(parts[key].sum(axis=0), histogram)
    share = 0.5 ** np.array([8, *range(8, 0, -1)])
    mean, spread = parts.mean(axis=0), parts.var(axis=0)
    expected = share[:, None] * histogram
    variance = expected * (1 - share[:, None])
    assert np.all(np.abs(mean - expected) <= 5 * np.sqrt(variance / rows))
    assert np.all(np.abs(spread - variance) <= 6 * np.sqrt((2 * variance**2 + variance) / rows))
    # Of one key the cells share no coins: what one cell keeps says nothing about another.
    together = np.corrcoef(parts[:, 8][:, [0, 2, 3, 4]].T)
    assert np.all(np.abs(together[np.triu_indices(4, 1)]) < 5 / np.sqrt(rows))
    turned = np.empty((9, 5), np.int64)
    split_draws(histogram[::-1], True, 7, turned)
    np.testing.assert_array_equal(turned, parts[7])


@pytest.mark.parametrize("end", ENDS)
def test_the_bet_on_a_part_is_chosen_by_the_parts_before_it(end: str) -> None:
    """The capital at the bound is 1/level: a product over parts, with the tangents and the bet of what came before."""
    rng = np.random.default_rng(4)
    grid, n, r, level = np.linspace(0.1, 0.9, 9), 400, 0.5, 0.01
    histogram = rng.multinomial(n, rng.dirichlet(np.full(10, 0.5), 20))
    seen = np.ascontiguousarray(histogram[:, ::-1]) if end == "upper" else histogram
    side = Side.of(grid, end == "upper")
    bound = tangents.tangent(HistogramRows(seen, KEYS[:20], side, r, level))
    assert bound.min() > 0
    for row in range(20):
        past, *parts = dealt([int(k) for k in histogram[row]], row)
        log = 0.0
        for part in parts:
            offset, theta, worth, _ = laid(past, r, np.cumsum(side.widths), nats=0.75 * np.log(1 / level) / n)
            log += float(part @ np.log(1 - theta + theta * worth / (bound[row] - offset)))
            past = past + part
        assert log == pytest.approx(np.log(1 / level), abs=1e-3)


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
