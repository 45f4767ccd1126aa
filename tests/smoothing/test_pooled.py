"""The claim about a data set whose samples' noise is averaged: each step of its proof, its coverage, and its power."""

import math
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom, binomtest

from certcal import InputError
from certcal.smoothing import Counts, certificates, pooled_claim
from certcal.smoothing import _pooled as module
from certcal.smoothing._bands import Side
from certcal.worst_case import PooledEnds, calibration_error
from tests.smoothing import naive_certificates as naive

GRID = np.linspace(0.05, 0.95, 19)


@dataclass(frozen=True)
class DataSet:
    """Samples by the probabilities of the cells of their confidences and of a vote in each cell."""

    cells: np.ndarray
    votes: np.ndarray
    correct: np.ndarray

    def draw(self, n: int, random: np.random.Generator) -> Counts:
        histogram = random.multinomial(n, self.cells)
        votes = random.binomial(histogram, self.votes).sum(axis=1)
        rows, none = np.arange(len(self.cells)), np.zeros(len(self.cells), np.int64)
        label = np.where(self.correct, 0, 1)
        return Counts(GRID, 1.0, rows, label, none, none + n, votes, none, histogram)

    @property
    def probability(self) -> np.ndarray:
        return (self.cells * self.votes).sum(axis=1)

    def ends(self, r: float) -> tuple[np.ndarray, np.ndarray]:
        """What the certificates of infinitely many draws would be."""
        survival = np.cumsum(self.cells[:, ::-1], axis=1)[:, ::-1]
        t = np.concatenate([[0.0], GRID, [1.0]])
        lower = ndtr(ndtri(survival[:, 1:].clip(0, 1)) - r) @ np.diff(t[:-1])
        upper = ndtr(ndtri(survival.clip(0, 1)) + r) @ np.diff(t)
        return lower.clip(0, 1), upper.clip(0, 1)

    def truth(self, r: float, certified: np.ndarray, bins: int) -> float:
        """The worst calibration error of these samples; infinite if one of them is not certain."""
        if (self.probability[certified] < ndtr(r)).any():
            return math.inf
        lower, upper = self.ends(r)
        return calibration_error(lower[certified], upper[certified], self.correct[certified], bins).value


def data_set(seed: int, n: int, sharp: float = 1.0, accuracy: float = 0.8) -> DataSet:
    """Confidences around a level of each sample's own; a draw above ½ is a vote, one below is one half of the time."""
    random = np.random.default_rng([seed, 7])
    level = random.beta(6, 1, n)[:, None]
    places = np.concatenate([[0.025], GRID + 0.025])
    cells = np.exp(-sharp * 30 * (places - level) ** 2) + 1e-4
    votes = np.where(places >= 0.5, 1.0, 0.5) * np.ones((n, 1))
    return DataSet(cells / cells.sum(axis=1, keepdims=True), votes, random.random(n) < accuracy)


REGIMES = [
    # seed, samples, draws, radius, bins, sharpness, delta
    (0, 1, 40, 0.0, 5, 1.0, 0.4),
    (1, 30, 40, 0.0, 15, 1.0, 0.4),
    (2, 30, 200, 0.25, 15, 1.0, 0.4),
    (3, 30, 60, 0.5, 4, 1.0, 0.4),
    (4, 60, 100, 0.5, 15, 0.2, 0.4),
    (5, 60, 100, 1.0, 10, 5.0, 0.4),
    (6, 10, 400, 1.0, 15, 1.0, 0.4),
    (7, 100, 30, 0.1, 2, 1.0, 0.2),
    (8, 200, 50, 0.5, 15, 1.0, 0.2),
    (9, 20, 1000, 1.5, 15, 3.0, 0.4),
    (10, 5, 500, 2.0, 3, 10.0, 0.4),
]


@pytest.mark.parametrize(("seed", "n", "draws", "radius", "bins", "sharp", "delta"), REGIMES)
def test_the_claim_fails_no_more_often_than_it_says(
    seed: int, n: int, draws: int, radius: float, bins: int, sharp: float, delta: float
) -> None:
    data, random, times = data_set(seed, n, sharp), np.random.default_rng(seed), 40
    failed = meaningful = 0
    for _ in range(times):
        counts = data.draw(draws, random)
        certified = module._membership(counts, radius, delta)[0]
        if not certified.any():
            continue
        claim = pooled_claim(counts, radius, delta, bins=bins)
        assert claim.n == np.count_nonzero(certified)
        meaningful += claim.value < 1
        failed += claim.value < data.truth(radius, certified, bins)
    assert meaningful > times / 2
    assert binomtest(failed, times, delta, alternative="greater").pvalue > 1e-3


def test_with_many_draws_two_per_cent_less_would_be_wrong() -> None:
    data, random = data_set(5, 100), np.random.default_rng(0)
    for radius in (0.25, 0.5, 1.0):
        counts = data.draw(2_000_000, random)
        claim = pooled_claim(counts, radius)
        certified = module._membership(counts, radius, 0.001)[0]
        truth = data.truth(radius, certified, 15)
        assert 0.98 * claim.value < truth <= claim.value


def test_the_price_of_squares_is_just_what_a_rare_drop_costs() -> None:
    # Y is 0 with a small probability, so ξ = -1; else it is at its mean. The expectation of the exponential is 1 up to
    # the square of that probability, and more than 1 if squares cost two per cent less.
    for bet in (0.01, 0.3, 0.9):
        for p in (1e-6, 1e-4):
            xi = np.array([-1.0, p / (1 - p)])
            mass, price = np.array([p, 1 - p]), module._price(bet)
            assert mass @ np.expm1(bet * xi - price * xi**2) <= 0
            assert mass @ np.expm1(bet * xi - 0.98 * price * xi**2) > 0
            # The mean Ŷ that the first half foresees may be wrong to either side.
            for foreseen in (0.2, 0.9, 1.0, 1.5):
                y = np.array([0.0, 1 / (1 - p)])
                gain = bet * (y - 1) / foreseen - price * ((y - foreseen) / foreseen) ** 2
                assert mass @ np.exp(gain) <= 1 + 1e-12


def test_the_sum_of_the_ends_keeps_its_level_and_with_much_less_of_the_deviation_would_not() -> None:
    # At r = 0 tangents give nothing away; a sum of many draws is nearly normal, and Markov's inequality costs a half.
    data, random, level, times = data_set(2, 60, 0.3), np.random.default_rng(11), 0.1, 300
    lower, upper = data.ends(0.0)
    failed = {1.0: 0, 0.4: 0}
    for _ in range(times):
        pool = module._Pool.of(data.draw(200, random), 0.0, level, 15)
        apart = np.where(pool.end < 0, pool.estimate - lower, np.where(pool.end > 0, upper - pool.estimate, 0.0))
        for share in failed:
            failed[share] += apart.sum() > share * pool.deviation(level, pool.end != 0)
    assert failed[1.0] <= times * level < failed[0.4]


@pytest.mark.parametrize("r", [0.0, 0.4, 1.0, 2.5])
def test_estimates_are_expected_below_their_ends_whatever_the_first_half_is(r: float) -> None:
    data, random = data_set(1, 200, 0.5), np.random.default_rng(1)
    lower, upper = data.ends(r)
    for draws in (4, 50, 3000):
        first = random.multinomial(draws, data.cells)
        for flip, end in ((False, lower), (True, 1 - upper)):
            estimate = module._half_means(first, data.cells, Side.of(GRID, flip), r)[1]
            assert (estimate <= end + 1e-12).all()
    # Where it touches: a first half that has the true shares, without the counts that are added to both sides.
    large = np.round(data.cells * 1e15).astype(np.int64)
    estimate = module._half_means(large, data.cells, Side.of(GRID, False), r)[1]
    assert estimate == pytest.approx(lower, abs=1e-5)


# ------------------------------------------------------------------------------- levels, where nothing is given away


def of_every_outcome(n: int, threshold: float) -> Counts:
    """Confidences of two values: samples, correct and not, for every number of draws at or above one threshold."""
    hits = np.repeat(np.arange(1, n), 2)
    none = 0 * hits
    cells = np.stack([n - hits, hits], axis=1)
    return Counts(np.array([threshold]), 1.0, none, np.arange(hits.size) % 2, none, none + n, none + n, none, cells)


@pytest.mark.parametrize("r", [0.0, 0.7])
def test_the_limits_of_all_ends_fail_with_just_the_probability_that_the_ledger_gives_them(
    r: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One threshold t: the ends are t h(p) and 1 - (1 - t) h(1 - p), and p is above the limit that k draws give with at
    # most the probability of k draws or more where p is the limit itself. Of every sample four limits may be wrong.
    n, t, delta, given = 40, 0.3, 0.2, list[PooledEnds]()
    counts = of_every_outcome(n, t)
    original = module.pooled_calibration_error

    def kept(ends: PooledEnds, *rest: Any, **more: Any) -> float:
        given.append(ends)
        return original(ends, *rest, **more)

    monkeypatch.setattr(module, "pooled_calibration_error", kept)
    claim = pooled_claim(counts, r, delta, "tight")
    ends, hits, spent = given[-1], counts.histogram[:, 1], dict(claim.ledger.entries)
    level, of_sum = spent["limits_of_the_ends"], spent["sum_of_the_ends"]
    assert np.count_nonzero(ends.end < 0) > n / 2 < np.count_nonzero(ends.end > 0)

    def probability(end: np.ndarray, of_lower: Any) -> np.ndarray:
        """Of a draw at or above the threshold, where the end is this."""
        share = np.where(of_lower, end / t, (1 - end) / (1 - t))
        p = ndtr(ndtri(share) + r)
        return np.where(of_lower, p, 1 - p)

    outward = [
        binom.sf(hits - 1, n, probability(ends.lower, True)),
        binom.cdf(hits, n, probability(ends.upper, False)),
    ]
    p = probability(ends.inner, ends.end < 0)
    inward = np.where(ends.end < 0, binom.cdf(hits, n, p), binom.sf(hits - 1, n, p))
    for wrong in (*outward, inward):
        assert wrong == pytest.approx(level / 4 / len(counts), rel=1e-4)
    # With the two outward and the two inward limits of each sample all that may be spent is spent.
    assert 0.999 * level < outward[0].sum() + outward[1].sum() + 2 * inward.sum() < 1.0001 * level
    assert ends.deviation == module._Pool.of(counts, r, of_sum, 15).deviation(of_sum, ends.end != 0)


@pytest.mark.parametrize("radius", [0.0, 0.6])
def test_predictions_fail_with_just_the_probability_that_the_ledger_gives_them(radius: float) -> None:
    # One sample for every number of votes. Where the class probability is just what certifies, k votes or more are
    # called certified, and j or fewer impossible; delta is such that either is as likely as it may be.
    n, p = 60, float(ndtr(radius))
    votes = np.arange(n + 1)
    none = 0 * votes
    counts = Counts(np.array([0.5]), 1.0, none, none, none, none + n, votes, none, np.stack([n - votes, votes], axis=1))
    shares = 4 * 2 * len(counts)  # predictions have one of four shares
    assert dict(pooled_claim(counts, radius, 0.1).ledger.entries)["predictions"] == pytest.approx(0.1 / 4)
    chance = binom.pmf(votes, n, p)
    sure, never = ((45, 52), (10, 14)) if radius == 0 else ((55, 58), (26, 29))
    for of_votes, which in [*((binom.sf(k - 1, n, p), 0) for k in sure), *((binom.cdf(j, n, p), 1) for j in never)]:
        for enough, delta in ((True, shares * of_votes * (1 + 1e-6)), (False, shares * of_votes * (1 - 1e-6))):
            certified, possible = module._membership(counts, radius, delta)
            wrong = chance[~possible if which else certified].sum()
            assert wrong <= delta / shares
            assert (wrong > 0.999 * delta / shares) == enough


# ----------------------------------------------------------------------------------------- rounding, to fifty digits


@pytest.mark.parametrize("r", [0.0, 0.4, 2.5])
def test_no_estimate_of_an_end_is_above_that_of_fifty_digits(r: float) -> None:
    """The lines touch at shares that are rounded; from there on nothing is."""
    random = np.random.default_rng(3)
    cells = random.dirichlet([0.3] * 9 + [3.0], 6)
    grid, first, rest = np.linspace(0.1, 0.9, 9), random.multinomial(5000, cells), random.multinomial(5001, cells)
    estimate = module._half_means(first, rest, Side.of(grid, False), r)[1]
    above = np.cumsum(first[:, :0:-1], axis=1)[:, ::-1]
    point = (above + module.PRIOR) / (5000 + 2 * module.PRIOR)
    with mpmath.workdps(50):
        for row in range(len(cells)):
            exact, before, left = mpmath.mpf(0), mpmath.mpf(0), 5001
            for t, q, below in zip(map(mpmath.mpf, grid), map(mpmath.mpf, point[row]), rest[row], strict=False):
                left -= int(below)
                score = naive.probit(q)
                slope = mpmath.exp(r * score - mpmath.mpf(r) ** 2 / 2)
                exact += (t - before) * (mpmath.ncdf(score - r) + slope * (mpmath.mpf(left) / 5001 - q))
                before = t
            assert exact - 1e-10 < mpmath.mpf(float(estimate[row])) <= exact


def test_no_deviation_of_a_sum_is_below_that_of_fifty_digits() -> None:
    random = np.random.default_rng(4)
    for _ in range(20):
        squares, (bet, scale, level) = random.random(30), random.uniform(0.01, 0.9, 3).tolist()
        found = module._Pool(np.ones(30, np.int8), squares, squares, bet, scale).deviation(level, squares > 0)
        with mpmath.workdps(50):
            x, rho = mpmath.mpf(bet), mpmath.mpf(scale)
            price = -mpmath.log(1 - x) - x
            total = rho**2 * mpmath.fsum(map(mpmath.mpf, squares))
            exact = (-mpmath.log(mpmath.mpf(level)) + price * total) / (x * rho)
            assert exact <= mpmath.mpf(found) < exact * (1 + mpmath.mpf(1e-11))


def test_halves_are_random_halves_of_the_draws() -> None:
    histogram = np.tile([3, 0, 1, 4], (20_000, 1))
    first = module._first_half(histogram, np.random.default_rng(0))
    assert (first.sum(axis=1) == 4).all()
    assert (first <= histogram).all()
    # Of 8 draws 4 are taken: the one in the third cell half of the time, all three of the first with 5/70.
    assert first[:, 2].mean() == pytest.approx(0.5, abs=0.02)
    assert (first[:, 0] == 3).mean() == pytest.approx(5 / 70, abs=0.008)
    assert first[first[:, 2] == 1, 0].mean() == pytest.approx(3 * 3 / 7, abs=0.03)


def test_halves_are_not_cut_by_the_numbers_that_draws_may_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    states = list[Any]()
    original = module._first_half

    def seen(histogram: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        states.append(generator.bit_generator.state)
        return original(histogram, generator)

    monkeypatch.setattr(module, "_first_half", seen)
    counts = replace(data_set(3, 30).draw(300, np.random.default_rng(7)), seed=7)
    pooled_claim(counts, 0.5, confidence="tight")
    assert states
    assert states[0] not in [np.random.default_rng(each).bit_generator.state for each in (7, [7], [7, 0])]


def test_halves_and_coins_are_those_of_the_seed() -> None:
    counts = data_set(3, 30).draw(300, np.random.default_rng(0))
    of_seed = [replace(counts, seed=seed) for seed in (0, 1, 0, 2**64 - 1)]
    claims = [pooled_claim(each, 0.5, confidence="tight").value for each in of_seed]
    pools = [module._Pool.of(each, 0.5, 0.001, 15).estimate for each in of_seed]
    assert claims[0] == claims[2]
    np.testing.assert_array_equal(pools[0], pools[2])
    assert len({*claims}) == 3
    keys = np.stack([each.keys for each in of_seed])
    assert np.unique(keys).size == 3 * 30
    np.testing.assert_array_equal(of_seed[1].select([4, 7]).keys, keys[1, [4, 7]])
    with pytest.raises(InputError, match="seed is -1; pass"):
        replace(counts, seed=-1)


def test_the_claim_is_far_below_that_of_the_intervals_one_by_one() -> None:
    data = data_set(3, 300)
    counts = data.draw(1000, np.random.default_rng(0))
    for radius in (0.25, 0.75):
        alone, together = certificates(counts, radius).claim_of_intervals(), pooled_claim(counts, radius)
        truth = data.truth(radius, certificates(counts, radius, familywise=True).certified, 15)
        assert truth < together.value < alone.value
        assert together.value - truth < 0.75 * (alone.value - truth)
        both = [certificates(counts, radius).claim(samples="all")]
        both.append(certificates(counts, radius).claim_of_intervals(samples="all"))
        assert both[0].value < both[1].value
        assert both[0].n == both[1].n == 300


def test_it_does_not_depend_on_the_order_of_the_bins_or_on_unequal_numbers_of_draws() -> None:
    data, random = data_set(4, 40), np.random.default_rng(5)
    few, many = data.draw(300, random), data.draw(700, random)
    rows = np.arange(40) % 2 == 0

    def mixed(name: str) -> np.ndarray:
        one, other = getattr(few, name), getattr(many, name)
        return np.where(rows.reshape(-1, *[1] * (one.ndim - 1)), one, other)

    names = ("index", "label", "predicted", "draws", "votes", "invalid", "histogram")
    counts = Counts(GRID, 1.0, *(mixed(name) for name in names))
    claim = pooled_claim(counts, 0.5, edges=np.linspace(0, 1, 16))
    assert claim.value == pooled_claim(counts, 0.5).value
    assert claim.settings["edges"] == "given"
    certified = module._membership(counts, 0.5, 0.001)[0]
    assert data.truth(0.5, certified, 15) <= claim.value < certificates(counts, 0.5).claim_of_intervals().value


def test_what_cannot_be_claimed_is_refused_or_vacuous() -> None:
    counts = data_set(0, 4, 0.01).draw(20, np.random.default_rng(0))
    assert pooled_claim(counts, 3.0).settings["samples"] == "all"
    assert pooled_claim(counts, 3.0).value == 1
    with pytest.raises(InputError, match="no sample is certified at radius 3"):
        pooled_claim(counts, 3.0, samples="certified")
    with pytest.raises(InputError, match="samples"):
        pooled_claim(counts, 0.5, samples="some")
    with pytest.raises(InputError, match="delta"):
        pooled_claim(counts, 0.5, 0.0)
    sure = data_set(0, 4, 5.0).draw(400, np.random.default_rng(0))
    with pytest.raises(InputError, match="has its lower end above its upper end"):
        pooled_claim(sure, 0.1, confidence=lambda counts, radius, alpha: (np.full(4, 0.9), np.full(4, 0.1)))
