"""The bound on the population's worst case: every inequality behind it, and its coverage by simulation."""

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import binom, binomtest

from certcal import InputError
from certcal.claims import Bound
from certcal.worst_case import WorstCase, brier_score, calibration_error, ks_error, mce, population_bound
from certcal.worst_case import _gains as gains_module
from certcal.worst_case._gains import Gains
from tests.worst_case import naive


@dataclass(frozen=True)
class Population:
    """Kinds of samples, how probable each is, and which of them are certified."""

    kinds: naive.Problem
    probability: np.ndarray
    certified: np.ndarray | None = None

    @property
    def worst_case(self) -> float:
        mask = None if self.certified is None else self.certified.tolist()
        return naive.worst_in_population(self.kinds, self.probability, mask)

    @property
    def worst_case_of_certified(self) -> float:
        mask = np.asarray(self.certified)
        share = self.probability[mask] / self.probability[mask].sum()
        return naive.worst_in_population(self.kinds.select(mask), share)

    def draw(self, n: int, random: np.random.Generator) -> np.ndarray:
        return random.choice(self.probability.size, n, p=self.probability)

    def solve(self, index: np.ndarray) -> WorstCase:
        p = self.kinds.select(index)
        mask = None if self.certified is None else self.certified[index]
        return calibration_error(*p.arguments, **p.options, certified=mask)


def random_population(seed: int, kinds: int, bins: int, certified: float = 1.0) -> Population:
    random = np.random.default_rng(seed)
    ends = np.sort(random.random((2, kinds)), axis=0)
    edges = np.concatenate(([0], np.sort(random.random(bins - 1)), [1]))
    p = naive.problem(ends[0], ends[1], random.integers(0, 2, kinds), edges, ("left", "right")[seed % 2])
    mask = None if certified == 1 else random.permutation(kinds) < round(certified * kinds)
    return Population(p, random.dirichlet(np.ones(kinds)), mask)


# Gaps are +1 or -1: nothing varies more, so the deviation term is as needed here as anywhere.
COIN = Population(naive.problem([0, 1], [0, 1], [1, 0]), np.array([0.75, 0.25]))
# Gaps are small.
QUIET = Population(
    naive.problem([0.95, 0.9, 0.05, 0.1], [0.98, 0.96, 0.06, 0.12], [1, 1, 0, 0], [0, 0.5, 0.95, 1]),
    np.array([0.4, 0.2, 0.3, 0.1]),
)


def bounds(population: Population, n: int, delta: float, draws: int) -> list[Bound]:
    """One for each draw; the same for the same numbers of each kind, in whatever order they came."""
    random, known = np.random.default_rng(n), dict[bytes, Bound]()
    found: list[Bound] = []
    for _ in range(draws):
        index = np.sort(population.draw(n, random))
        if index.tobytes() not in known:
            known[index.tobytes()] = population_bound(population.solve(index), delta)
        found.append(known[index.tobytes()])
    return found


def failures(population: Population, n: int, delta: float, draws: int) -> int:
    """In how many draws the bound is below the population's worst case."""
    truth = population.worst_case
    return sum(bound.value < truth for bound in bounds(population, n, delta, draws))


def more_often_than(delta: float, failed: int, draws: int) -> bool:
    """Whether so many failures are evidence (at 0.1 %) that they happen more often than delta."""
    return binomtest(failed, draws, delta, alternative="greater").pvalue < 0.001


# ----------------------------------------------------------------------------------------------------------- coverage


@pytest.mark.parametrize("n", [1, 5, 400])
@pytest.mark.parametrize(
    "population",
    [COIN, QUIET, random_population(1, 6, 4), random_population(2, 12, 8), random_population(3, 20, 2)],
    ids=["coin", "quiet", "four bins", "eight bins", "two bins"],
)
def test_the_bound_covers_the_population_as_often_as_it_says(population: Population, n: int) -> None:
    draws, delta = 120, 0.2
    assert not more_often_than(delta, failures(population, n, delta, draws), draws)


@pytest.mark.parametrize("n", [5, 60])
def test_the_bound_over_all_samples_covers_with_uncertified_samples_free(n: int) -> None:
    draws, delta = 100, 0.2
    for seed in (4, 5):
        population = random_population(seed, 8, 3, certified=0.6)
        random = np.random.default_rng(n)
        truth, failed, drawn = population.worst_case, 0, 0
        for _ in range(draws):
            index = population.draw(n, random)
            if population.certified is not None and population.certified[index].any():
                everything = population.solve(index).all_samples
                assert everything is not None
                failed += population_bound(everything, delta).value < truth
                drawn += 1
        assert drawn > draws / 2
        assert not more_often_than(delta, failed, drawn)


def test_the_bound_over_certified_samples_covers_the_certified_part_of_the_population() -> None:
    draws, delta = 100, 0.2
    for seed, n in ((4, 10), (5, 80)):
        population = random_population(seed, 8, 3, certified=0.6)
        random = np.random.default_rng(n)
        solved = [population.solve(population.draw(n, random)) for _ in range(draws)]
        truth = population.worst_case_of_certified
        failed = sum(population_bound(each, delta).value < truth for each in solved)
        assert not more_often_than(delta, failed, draws)
        assert "given that a sample is certified" in population_bound(solved[0], delta).name


def test_with_a_quarter_of_the_deviation_the_bound_would_fail_too_often() -> None:
    draws, delta = 400, 0.1
    for n in (10, 25, 100):
        found = bounds(COIN, n, delta, draws)
        assert not more_often_than(delta, sum(each.value < COIN.worst_case for each in found), draws)
        shrunk = [each.value - 0.75 * each.terms["deviation"] for each in found]
        assert more_often_than(delta, sum(value < COIN.worst_case for value in shrunk), draws)


def coin_of(gap: float, n: int, heads: int) -> WorstCase:
    """The worst case of n points in one bin with gaps of +gap and -gap, without drawing them."""
    kinds = calibration_error([1 - gap], [1 - gap], [1], bins=1), calibration_error([gap], [gap], [0], bins=1)
    parts = [many(kind.gains, count) for kind, count in zip(kinds, (heads, n - heads), strict=True) if count]
    drawn = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    return replace(kinds[0], value=gap * abs(2 * heads - n) / n, n=n, stakes=drawn)


def many(one: Gains | None, count: int) -> Gains:
    assert one is not None
    return replace(one, sums=one.sums * count, n=count)


def failure_probability(gap: float, n: int, chance: float, delta: float, part: float) -> float:
    """Exact probability with which a bound with only a part of its deviation is below the truth, for coins."""
    truth = gap * (2 * chance - 1)

    def fails(heads: int) -> bool:
        result = coin_of(gap, n, heads)
        return result.value + part * population_bound(result, delta).terms["deviation"] < truth

    # The bound rises with the heads above n/2, where it starts below the truth: the last count that fails.
    low, high = n // 2, math.ceil(n * chance)
    assert not fails(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    return float(binom.cdf(low, n, chance)) if fails(low) else 0.0


@pytest.mark.parametrize(
    ("gap", "n", "chance", "lost"), [(1.0, 1_000, 0.75, 0.0), (1.0, 10**6, 0.75, 0.01), (0.1, 10**8, 0.6, 0.06)]
)
@pytest.mark.parametrize(
    ("delta", "enough"),
    [(0.05, 0.59), (1e-3, 0.77), (1e-12, 0.92), (1e-30, 0.96)],
    ids=["5 %", "1e-3", "1e-12", "1e-30"],
)
def test_with_a_few_per_cent_less_deviation_an_exact_tail_would_exceed_delta(
    gap: float, n: int, chance: float, lost: float, delta: float, enough: float
) -> None:
    # For large deviations the bound is sharp: the exponent of the best bet is that of the binomial tail.
    assert failure_probability(gap, n, chance, delta, 1.0) <= delta
    assert failure_probability(gap, n, chance, delta, enough - lost - 0.04) > delta


@pytest.mark.parametrize("delta", [0.49, 0.1, 0.01])
def test_small_samples_of_every_coin_fail_no_more_often_than_allowed(delta: float) -> None:
    # All outcomes of up to twelve draws, with their probabilities.
    for n in (1, 2, 3, 5, 8, 12):
        limits = np.array([population_bound(coin_of(1.0, n, heads), delta).value for heads in range(n + 1)])
        for chance in np.linspace(0.5, 1, 41):
            failing = np.flatnonzero(limits < 2 * chance - 1 - 1e-12)
            assert binom.pmf(failing, n, chance).sum() <= delta


def test_without_any_deviation_the_bound_would_fail_too_often_where_gaps_are_small() -> None:
    # Nearly all samples are calibrated; a rare one with a gap is often not in the draw.
    rare = Population(naive.problem([1, 1], [1, 1], [1, 0], [0, 0.5, 1]), np.array([0.999, 0.001]))
    draws, delta, n = 300, 0.1, 500
    found = bounds(rare, n, delta, draws)
    assert not more_often_than(delta, sum(each.value < rare.worst_case for each in found), draws)
    none = sum(each.value - each.terms["deviation"] < rare.worst_case for each in found)
    assert more_often_than(delta, none, draws)


def test_signs_that_are_not_the_worst_for_a_bet_take_the_guarantee_away(monkeypatch: pytest.MonkeyPatch) -> None:
    # What a heuristic loses: with signs that are best for one bin alone, the capital is too large.
    draws, delta, n = 60, 0.05, 2_000
    population = random_population(2, 12, 8)
    random = np.random.default_rng(0)
    solved = [population.solve(population.draw(n, random)) for _ in range(draws)]
    exact = [population_bound(each, delta).value for each in solved]
    assert not more_often_than(delta, sum(value < population.worst_case for value in exact), draws)

    def all_plus(up: Any, down: Any, right: Any, wrong: Any) -> Any:
        held = wrong.held.sum(axis=1)  # nobody finds a '-'
        return right.stays.sum(axis=1) + held

    monkeypatch.setattr(gains_module, "least_sums", all_plus)
    lowered = [replace(each, value=0.0) for each in solved]
    failed = sum(population_bound(each, delta).value < population.worst_case for each in lowered)
    assert more_often_than(delta, failed, draws)


# ------------------------------------------------------------------------------------------- one inequality at a time


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_expected_empirical_worst_case_is_at_least_that_of_the_population(n: int) -> None:
    for population in (COIN, random_population(6, 3, 3), random_population(7, 3, 2), random_population(8, 3, 5)):
        mean = 0.0
        for index in product(range(population.probability.size), repeat=n):
            chance = math.prod(population.probability[list(index)])
            mean += chance * population.solve(np.array(index)).value
        assert mean >= population.worst_case - 1e-12


def test_one_sample_moves_the_worst_case_by_at_most_two_over_n_and_can_do_so() -> None:
    random = np.random.default_rng(3)
    for seed in range(150):
        p = naive.instance(seed)
        i = int(random.integers(p.n))
        ends = np.sort(random.choice([0.0, 1.0, random.random()], 2))
        lower, upper, correct = (array.copy() for array in p.arguments)
        lower[i], upper[i], correct[i] = ends[0], ends[1], 1 - correct[i]
        before = calibration_error(*p.arguments, **p.options)
        after = calibration_error(lower, upper, correct, **p.options)
        assert abs(before.value - after.value) <= 2 / p.n + 1e-12
    before, after = COIN.solve(np.zeros(10, int)).value, COIN.solve(np.array([0] * 9 + [1])).value
    assert before - after == pytest.approx(2 / 10, abs=1e-12)


BETS = np.array([0.02, 0.3, 0.9, 5.0])


@pytest.mark.parametrize("arrays", [True, False], ids=["tables", "program"])
def test_the_least_capital_is_that_of_all_sign_patterns_and_never_more(
    arrays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gains_module, "_ARRAYS", 257 if arrays else 0)
    for seed, m in product(range(40), (0.02, 0.5, 0.97)):
        p = naive.instance(seed)
        mask = np.random.default_rng(seed).random(p.n) < 0.5
        mask[0] = True
        worst = calibration_error(*p.arguments, **p.options, certified=mask)
        everything = worst.all_samples
        assert worst.gains is not None
        assert everything is not None
        assert everything.gains is not None
        certified = naive.least_log_capital(p.select(mask), BETS, m)
        free = naive.least_log_capital(p, BETS, m, mask.tolist())
        for expected, gains in ((certified, worst.gains), (free, everything.gains)):
            found = gains.least_logs(BETS, m)
            assert (found <= expected + 1e-12 * p.n).all()
            assert found == pytest.approx(expected, abs=2e-4 * p.n, rel=1e-4)


def naive_limit(population: Population, index: np.ndarray, delta: float) -> float:
    """Where the mean over seven bets of the least capital reaches 1/delta."""
    bets = np.sqrt(2 * math.log(1 / delta) / index.size) / 0.5 ** (np.arange(7) / 2)
    p = population.kinds.select(index)

    def excess(m: float) -> float:
        logs = naive.least_log_capital(p, bets, m)
        return float(logsumexp(logs)) - math.log(7) - math.log(1 / delta)

    last = 1 - 1e-12
    return 1.0 if excess(last) < 0 else float(brentq(excess, -0.5, last, xtol=1e-12))


@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-6])
def test_the_bound_is_where_the_least_capital_reaches_one_over_delta(delta: float) -> None:
    for population, n in product((COIN, QUIET, random_population(1, 6, 4)), (2, 30, 1000)):
        index = population.draw(n, np.random.default_rng(n))
        bound, expected = population_bound(population.solve(index), delta), naive_limit(population, index, delta)
        assert expected - 1e-12 <= bound.value <= expected + max(1e-8, 0.001 * bound.terms["deviation"])


def test_the_tables_have_the_same_bits_for_any_pieces_and_for_many_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    lower, upper = np.sort(random.random((2, 3000)), axis=0)
    correct = (random.random(3000) < 0.5).astype(np.uint8)
    for bins, kind in ((15, np.float64), (3, np.float32), (400, np.float64)):
        low, high = lower.astype(kind), upper.astype(kind)
        whole = calibration_error(low, high, correct, bins).gains
        assert whole is not None
        parts = [calibration_error(low[s], high[s], correct[s], bins).gains for s in (slice(900, None), slice(900))]
        assert parts[0] is not None
        assert parts[1] is not None
        both = parts[0] + parts[1]
        monkeypatch.setattr(gains_module, "_DENSE", 0)
        sparse = calibration_error(low, high, correct, bins).gains
        monkeypatch.undo()
        assert sparse is not None
        for other in (both, sparse):
            assert np.array_equal(other.keys, whole.keys)
            assert np.array_equal(other.sums, whole.sums)
            assert other.n == whole.n


def test_the_bound_beats_chernoff_and_bernstein_where_gains_vary_less_than_a_coin() -> None:
    # What it replaced: the smaller of two inequalities, each at half of delta.
    for n, times in ((300, 2.0), (1_000, 1.8), (10_000, 1.5)):
        random = np.random.default_rng(n)
        z, width = random.beta(8, 2, n), 0.2 * random.random(n)
        correct = (random.random(n) < z - 0.05).astype(np.uint8)
        lower, upper = np.clip(z - width, 0, 1), np.clip(z + width, 0, 1)
        worst = calibration_error(lower, upper, correct)
        square = float(np.mean(np.where(correct == 1, 1 - lower, upper) ** 2)) * n / (n - 1)
        level = math.log(4 / 0.05)
        bernstein = math.sqrt(2 * square * level / n) + 14 * level / (3 * (n - 1))
        assert population_bound(worst, 0.05).terms["deviation"] * times < min(bernstein, math.sqrt(2 * level / n))


# ----------------------------------------------------------------------------------------------- failing certificates


def test_wrong_certificates_cost_up_to_twice_their_probability() -> None:
    # Every sample is truly incorrect at confidence 1: worst case 1. Of a tenth the certificate says "correct at 0".
    alpha, n = 0.1, 20_000
    shown = Population(naive.problem([0, 1], [0, 1], [1, 0]), np.array([alpha, 1 - alpha]))
    result = shown.solve(shown.draw(n, np.random.default_rng(0)))
    assert population_bound(result, 0.05, alpha).value >= 1
    assert population_bound(result, 0.05, alpha / 2).value < 1
    assert population_bound(result, 0.05, alpha).terms["certificate failures"] == pytest.approx(2 * alpha)


def test_the_alpha_in_the_sentence_is_the_one_that_is_paid_for() -> None:
    result = calibration_error([0.25, 0.5], [0.5, 0.75], [1, 0])
    bound = population_bound(result, 0.05, 0.001 / 300)
    assert "alpha=3.33334e-06," in bound.statement
    assert bound.settings["alpha"] == 3.33334e-06 > 0.001 / 300
    assert bound.terms["certificate failures"] == 2 * 3.33334e-06


def certified_fifth() -> WorstCase:
    """A fifth is certified, truly incorrect at 1. A twentieth of all, a quarter of these, is shown as correct at 0."""
    n = 20_000
    kind = np.random.default_rng(1).choice(3, n, p=[0.05, 0.15, 0.8])
    lower = np.array([0.0, 1.0, 0.5])[kind]
    return calibration_error(lower, lower, np.array([1, 0, 1])[kind], bins=1, certified=kind < 2)


def test_wrong_certificates_weigh_more_when_only_certified_samples_count() -> None:
    result = certified_fifth()
    bound = population_bound(result, 0.05, 0.05, certified_fraction=0.2)
    assert bound.terms["certificate failures"] == pytest.approx(2 * 0.05 / 0.2)
    assert bound.value >= 1
    assert result.all_samples is not None
    assert population_bound(result.all_samples, 0.05, 0.05).terms["certificate failures"] == pytest.approx(0.1)


def test_a_bound_over_certified_samples_asks_for_their_share_when_certificates_may_fail() -> None:
    # Without the share the bound would be about .65 where the truth is 1.
    with pytest.raises(InputError, match="certified_fraction"):
        population_bound(certified_fifth(), 0.05, 0.05)
    assert population_bound(certified_fifth(), 0.05).terms["certificate failures"] == 0


# ------------------------------------------------------------------------------------------------------------- claims


def test_a_bound_assumes_samples_that_the_classifier_does_not_depend_on() -> None:
    bound = population_bound(calibration_error([0.6] * 9, [0.8] * 9, [1] * 9))
    said = "they were not used to train, choose or recalibrate the classifier"
    assert said in bound.assumptions
    assert f"independent draws from the population; {said}; the edges" in bound.statement


def test_terms_add_up_to_a_value_rounded_outward() -> None:
    for seed in range(20):
        population = random_population(seed, 6, 3)
        bound = population_bound(population.solve(population.draw(500, np.random.default_rng(seed))), 0.1, 0.01)
        total = math.fsum(bound.terms.values())
        assert min(total, 1) <= bound.value <= min(total + 1e-9, 1)
        assert sorted(bound.terms) == ["certificate failures", "deviation", "empirical worst case"]
        assert bound.side == "upper"
        assert bound.delta == 0.1
        assert float(bound.text) >= bound.value


def test_the_bound_is_capped_at_one() -> None:
    assert population_bound(calibration_error([0.0], [1.0], [1]), 0.05).value == 1
    capped = population_bound(calibration_error([0.5], [0.5], [1]), 0.05, 0.3)
    assert capped.value == 1
    assert sum(capped.terms.values()) > 1
    assert "capped at 1" in capped.statement
    assert "capped" not in population_bound(calibration_error([0.5], [0.5], [1]), 0.05).statement


def test_less_risk_fewer_samples_and_worse_certificates_raise_the_bound() -> None:
    index = COIN.draw(2000, np.random.default_rng(0))
    result = COIN.solve(index)
    by_delta = [population_bound(result, delta).value for delta in (0.4, 0.1, 0.01)]
    assert by_delta == sorted(by_delta)
    assert population_bound(result, 0.1, 0.02).value > population_bound(result, 0.1, 0.01).value
    repeated = population_bound(COIN.solve(np.tile(index, 4)), 0.1)
    # Half, but for terms of higher order.
    assert repeated.terms["deviation"] == pytest.approx(population_bound(result, 0.1).terms["deviation"] / 2, rel=0.02)
    assert repeated.value < population_bound(result, 0.1).value


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"delta": 0.0}, "delta is 0.0; pass a probability between 0 and 0.5"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"delta": -0.1}, "delta is -0.1"),
        ({"delta": math.nan}, "delta is nan"),
        ({"alpha": -0.1}, "alpha is -0.1; pass a probability"),
        ({"alpha": 1.0}, "alpha is 1.0"),
        ({"alpha": math.nan}, "alpha is nan"),
        ({"certified_fraction": 0.0}, "certified_fraction is 0.0; pass"),
        ({"certified_fraction": 1.5}, "certified_fraction is 1.5"),
        ({"delta": "x"}, "delta is 'x'; pass a probability between 0 and 0.5"),
        ({"delta": None}, "delta is None; pass"),
        ({"alpha": "x"}, "alpha is 'x'; pass a probability"),
        ({"alpha": [0.1, 0.2]}, "alpha is .*; pass a probability"),
        ({"certified_fraction": "x"}, "certified_fraction is 'x'; pass a lower bound"),
    ],
)
def test_probabilities_out_of_range_are_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        population_bound(COIN.solve(np.zeros(5, int)), **change)


@pytest.mark.parametrize("metric", [ks_error, mce, brier_score])
def test_only_the_worst_calibration_error_has_a_population_bound(metric: Any) -> None:
    with pytest.raises(InputError, match="calibration_error"):
        population_bound(metric([0.2], [0.4], [1]))
    with pytest.raises(InputError, match="lowest"):
        population_bound(calibration_error([0.2], [0.4], [1], best=True))
