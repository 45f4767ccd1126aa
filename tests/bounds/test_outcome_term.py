"""What the draw of the outcomes can do to a fixed sum of them: the smaller of Hoeffding's and Bernstein's deviation."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from certcal.bounds import bounded_variation, lipschitz, perturb, smooth
from certcal.bounds._shared import outcome_term
from tests.bounds import naive

DELTA = 0.1


class Group(NamedTuple):
    """Samples with one score, one probability of outcome 1, and one weight; its sign is that in the sum."""

    n: int
    score: float
    eta: float
    weight: float


REGIMES: dict[str, tuple[Group, Group]] = {
    "fair coins": (Group(40, 0.5, 0.5, 1), Group(40, 0.5, 0.5, -1)),
    "calibrated, rare": (Group(200, 0.03, 0.03, 1), Group(200, 0.05, 0.05, -1)),
    "calibrated, very rare": (Group(300, 0.002, 0.002, -1), Group(300, 0.01, 0.01, -1)),
    "calibrated, nearly sure": (Group(150, 0.97, 0.97, 1), Group(50, 0.9, 0.9, 1)),
    "rare, more than the score says": (Group(200, 0.02, 0.1, 1), Group(100, 0.01, 0.05, -1)),
    "rare, less than the score says": (Group(200, 0.1, 0.01, -1), Group(100, 0.3, 0.02, 1)),
    "scores of 0, coins": (Group(60, 0.0, 0.5, 1), Group(60, 0.0, 0.5, -1)),
    "scores of 0 and 1, the other way round": (Group(60, 0.0, 0.95, -1), Group(60, 1.0, 0.05, 1)),
    "scores of a half, nearly sure": (Group(80, 0.5, 0.98, 1), Group(80, 0.5, 0.02, -1)),
    "one weighs most": (Group(1, 0.3, 0.3, 1), Group(300, 0.03, 0.03, -0.01)),
    "a few weigh most": (Group(5, 0.05, 0.2, -1), Group(300, 0.04, 0.04, 0.05)),
    "few samples": (Group(3, 0.1, 0.1, -1), Group(2, 0.2, 0.2, 1)),
    "never": (Group(50, 0.01, 0.0, 1), Group(50, 0.02, 0.0, -1)),
}


def terms(groups: tuple[Group, Group], delta: float, candidates: int = 1) -> np.ndarray:
    """The term for every pair of numbers of outcomes 1 in the two groups."""
    ones = np.ogrid[tuple(slice(0, group.n + 1) for group in groups)]
    squares = sum(g.n * g.weight**2 for g in groups)
    errors = sum(
        g.weight**2 * (k * (1 - g.score) ** 2 + (g.n - k) * g.score**2) for g, k in zip(groups, ones, strict=True)
    )
    largest = max(abs(g.weight) for g in groups)
    return np.vectorize(lambda e: outcome_term(delta, candidates, squares, e, largest))(errors)


def failing(groups: tuple[Group, Group], delta: float, part: float = 1.0) -> float:
    """Exact probability that the sum exceeds a part of its term."""
    ones = np.ogrid[tuple(slice(0, group.n + 1) for group in groups)]
    total = sum(g.weight * (g.n * g.eta - k) for g, k in zip(groups, ones, strict=True))
    chance = np.outer(*(stats.binom.pmf(np.arange(g.n + 1), g.n, g.eta) for g in groups))
    return float(chance[total > part * terms(groups, delta) + 1e-12].sum())


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("delta", [0.2, 0.05, 1e-3])
def test_the_sum_exceeds_its_term_with_at_most_delta(regime: str, delta: float) -> None:
    groups = REGIMES[regime]
    assert failing(groups, delta) <= delta
    mirrored = tuple(g._replace(weight=-g.weight) for g in groups)
    assert failing((mirrored[0], mirrored[1]), delta) <= delta


@pytest.mark.parametrize("sign", [1, -1])
def test_two_per_cent_less_fails_where_the_inequality_is_sharp(sign: int) -> None:
    # Ten billion calibrated outcomes, 3 % of them 1: the variance is known, and tails are as those of the normal.
    n, p, log_delta = 10**10, 0.03, -400.0
    delta = math.exp(log_delta)

    def log_rate(part: float) -> float:
        low, high = 0, n // 20  # by how many ones more or fewer than expected
        while high - low > 1:
            middle = (low + high) // 2
            ones = n * p + sign * middle
            errors = (ones * (1 - p) ** 2 + (n - ones) * p**2) / n**2
            term = outcome_term(delta, 1, 1 / n, errors, 1 / n)
            low, high = (low, middle) if middle / n > part * term else (middle, high)
        place = n * p + sign * high
        return float(stats.binom.logsf(place - 1, n, p) if sign > 0 else stats.binom.logcdf(place, n, p))

    assert log_rate(1.0) <= log_delta
    assert log_rate(0.98) > log_delta


def test_the_variance_must_be_paid_for() -> None:
    # By luck no outcome is 1. Taking that for the variance, without its deviation, would claim far too much.
    group = Group(400, 0.0, 0.005, 1)
    spared = Group(1, 0.0, 0.0, 0)
    assert failing((group, spared), DELTA) <= DELTA
    ones = np.arange(group.n + 1)
    log = math.log(1 / DELTA)
    unpaid = np.sqrt(2 * ones * log)
    chance = stats.binom.pmf(ones, group.n, group.eta)
    fewer = group.n * group.eta - ones
    assert chance[fewer > unpaid].sum() > DELTA


def test_the_term_is_that_of_its_twin_and_never_much_larger_than_hoeffding_s() -> None:
    rng = np.random.default_rng(1)
    for n in (1, 7, 400, 3000):
        for a, b in ((1, 1), (0.3, 9), (20, 0.5)):
            s = rng.beta(a, b, n)
            y = (rng.random(n) < s).astype(np.uint8)
            weights = rng.random(n) / n
            for delta, candidates in ((0.4, 1), (0.05, 12), (1e-9, 3)):
                squares, errors = float(weights @ weights), float((weights * (y - s)) @ (weights * (y - s)))
                found = outcome_term(delta, candidates, squares, errors, float(weights.max()))
                assert found == pytest.approx(naive.outcome_term(s, y, weights, delta, candidates), rel=1e-9)
                hoeffding = math.sqrt(squares * math.log(candidates / delta) / 2)
                assert found <= hoeffding * math.sqrt(1 + math.log(64 / 63) / math.log(candidates / delta)) * (1 + 1e-9)


def test_rare_outcomes_make_the_smooth_bound_tighter() -> None:
    rng = np.random.default_rng(2)
    n = 10_000
    s = rng.beta(0.6, 19.4, n)
    bound = smooth(perturb(s, 0.05, 1), rng.random(n) < s, 0.05)
    assert bound.terms["draw of the outcomes"] < 0.45 * math.sqrt(math.log(2 / 0.05) / (2 * n))


@pytest.mark.parametrize("eta", [0.01, 0.03, 0.08])
def test_bounds_of_a_rare_score_hold_with_every_number_of_outcomes(eta: float) -> None:
    # All scores are 0.03, so a sample is a number of ones: the probability of failing is exact.
    n, score = 300, 0.03
    s = np.full(n, score)
    chance = stats.binom.pmf(np.arange(n + 1), n, eta)
    likely = np.flatnonzero(chance > 1e-7)
    for bound in (lambda y: bounded_variation(s, y, DELTA), lambda y: lipschitz(s, y, 2.0, DELTA)):
        values = np.array([bound(np.arange(n) < ones).value for ones in likely])
        assert chance[likely][values < abs(score - eta)].sum() + 1e-4 <= DELTA
        assert values.min() < 0.05
