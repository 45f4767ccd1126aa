import copy
import math
import pickle
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from certcal.lab.baselines import AdmmSettings, admm
from certcal.worst_case import WorstCase, brier_score, calibration_error, ks_error, mce, nll, population_bound
from tests.worst_case import naive

# A few units in the last place.
CLOSE = Fraction(2) ** -45


def draw(n, seed):
    """Intervals like those of a smoothed classifier."""
    rng = np.random.default_rng(seed)
    centre, width = rng.beta(8, 1, n), rng.beta(2, 5, n)
    return np.clip(centre - width, 0, 1), np.clip(centre + width, 0, 1), rng.random(n) < centre


@pytest.mark.parametrize("n", [1_000, 100_000, 600_000])
@pytest.mark.parametrize(("correct", "end"), [(1, 0.3), (0, 0.1), (0, 0.7)])
@pytest.mark.parametrize("worst", [lambda *samples: calibration_error(*samples, bins=1), ks_error])
def test_the_printed_worst_case_is_never_below_the_exact_one(worst, n, correct, end):
    ends = np.full(n, end)
    result = worst(ends, ends, np.full(n, correct))
    exact = abs(correct - Fraction(end))
    assert exact <= Fraction(result.value) <= exact + CLOSE
    assert Fraction(Decimal(result.text)) >= exact


def test_a_million_samples_do_not_bring_the_mce_below_the_exact_one():
    # One sample must be in the bin; the mean rises with each of the others, of whose gaps a plain running sum loses
    # 1e-11 of the mean. The exact one is just above 0.9964.
    n = 1_000_000
    lower, upper = np.full(n + 1, 0.0036 - 1.05e-10), np.ones(n + 1)
    lower[n] = upper[n] = 0.0037
    result = mce(lower, upper, np.ones(n + 1, np.uint8), bins=2)
    exact = 1 - (n * Fraction(lower[0]) + Fraction(lower[n])) / (n + 1)
    assert Fraction(Decimal(result.text)) >= exact
    assert exact <= Fraction(result.value) <= exact + CLOSE


@pytest.mark.parametrize("end", [0.0036, 0.3])
def test_a_million_samples_do_not_bring_the_ks_error_below_the_exact_one(end):
    n = 1_000_000
    result = ks_error(np.full(n, end), np.ones(n), np.ones(n, np.uint8))
    exact = 1 - Fraction(end)
    assert exact <= Fraction(result.value) <= exact + CLOSE
    assert Fraction(Decimal(result.text)) >= exact


def test_losses_too_small_for_a_sum_are_not_lost_from_the_brier_score():
    # NumPy adds up eight running sums, in which each of the small losses is less than half a unit in the last place.
    upper = np.append(np.ones(8), np.full(120, 1.05e-8))
    result = brier_score(np.zeros(128), upper, np.zeros(128))
    exact = sum(Fraction(end) ** 2 for end in upper.tolist()) / 128
    assert float((upper**2).sum() / 128) < exact
    assert exact <= Fraction(result.value) <= exact + CLOSE


def test_free_samples_do_not_bring_the_brier_score_below_the_exact_one():
    result = brier_score([1, 1, 0.5], [1, 1, 0.6], [1, 1, 0], certified=[True, True, False])
    assert result.value == 0
    assert Fraction(result.all_samples.value) >= Fraction(1, 3)


def check(found: WorstCase, exact: Fraction) -> None:
    """The number is on the safe side of the exact one, and next to it."""
    claimed = found.value if found.lower_end is None else found.lower_end
    apart = Fraction(claimed) - exact if found.extreme == "highest" else exact - Fraction(claimed)
    assert 0 <= apart <= CLOSE * max(1, exact)
    document = found.to_dict()
    assert document["value" if found.lower_end is None else "lower_end"] == claimed
    printed = Fraction(Decimal(found.text))
    assert printed >= exact if found.extreme == "highest" else printed <= exact


@given(naive.problems(max_n=4, max_bins=3), st.lists(st.booleans(), min_size=4, max_size=4))
def test_values_are_on_the_safe_side_of_exact_arithmetic(p: naive.Problem, mask: list[bool]) -> None:
    worst = calibration_error(*p.arguments, **p.options)
    check(worst, naive.exact_calibration_error(p, max))
    check(
        calibration_error(*p.arguments, **p.options, best=True),
        max(Fraction(0), -naive.exact_calibration_error(p, min)),
    )
    check(mce(*p.arguments, **p.options), naive.exact_mce(p))
    rises, falls = naive.exact_cumulative_sums(p)
    check(ks_error(*p.arguments), max(*rises, *falls) / p.n)
    check(ks_error(*p.arguments, best=True), max(0, -min(rises), -min(falls)) / p.n)
    for best in (False, True):
        gaps = [abs(naive.exact_gap(p, i, best)) for i in range(p.n)]
        check(brier_score(*p.arguments, best=best), sum(gap**2 for gap in gaps) / p.n)
        if max(gaps) < 1:
            with localcontext(prec=60):
                logs = [-(Decimal((1 - gap).numerator) / (1 - gap).denominator).ln() for gap in gaps]
                check(nll(*p.arguments, best=best), Fraction(sum(logs) / p.n))
    certified = mask[: p.n]
    if any(certified):
        everything = calibration_error(*p.arguments, **p.options, certified=certified).all_samples
        check(everything, naive.exact_calibration_error(p, max, certified))
        check(mce(*p.arguments, **p.options, certified=certified).all_samples, naive.exact_mce(p, certified))
        gaps = [abs(naive.exact_gap(p, i, False)) if certified[i] else Fraction(1) for i in range(p.n)]
        check(brier_score(*p.arguments, certified=certified).all_samples, sum(gap**2 for gap in gaps) / p.n)


@given(naive.problems(max_n=6, max_bins=3), st.sampled_from([0.3, 0.05, 1e-9]), st.sampled_from([0.0, 0.001]))
def test_a_population_bound_is_on_the_safe_side_of_exact_arithmetic(
    p: naive.Problem, delta: float, alpha: float
) -> None:
    bound = population_bound(calibration_error(*p.arguments, **p.options), delta, alpha)
    with localcontext(prec=60):
        m = Decimal(bound.value) - 2 * Decimal(alpha)
        if m < 1 and bound.value < 1:
            first = (2 * (1 / Decimal(delta)).ln() / p.n).sqrt()
            capital = Decimal(0)
            for k in range(7):  # each bet's least product over all sign patterns
                bet = min(first * (Decimal(2) ** (Decimal(k) / 2)), Decimal("0.9") / (1 - m))
                products: list[Decimal] = []
                for worths in naive.worth_by_pattern(p):
                    product = Decimal(1)
                    for worth in worths.tolist():
                        product *= 1 + bet * (m - Decimal(worth))
                    products.append(product)
                capital += min(products) / 7
            assert capital >= 1 / Decimal(delta) * (1 - Decimal("1e-12"))


def test_many_different_intervals_sum_to_the_last_digits():
    rng = np.random.default_rng(0)
    lower = rng.random(300_000)
    result = calibration_error(lower, lower, np.zeros(lower.size), bins=3)
    assert result.value == pytest.approx(math.fsum(lower) / lower.size, abs=1e-14)


def test_a_result_can_be_copied_and_sent_to_another_process():
    result = calibration_error([0.1, 0.5], [0.6, 0.9], [1, 0], bins=3, certified=[1, 1])
    for other in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert other.value == result.value
        assert other.to_dict() == result.to_dict()
        np.testing.assert_array_equal(other.witness, result.witness)
        assert population_bound(other).value == population_bound(result).value


def test_a_population_bound_from_a_heuristic_value_is_false_where_the_exact_one_holds():
    torch.set_num_threads(1)
    # The worst case of a large sample differs from the population's by far less than what is compared here.
    truth = calibration_error(*draw(500_000, 99)).value
    for seed in range(2):
        samples = draw(7_000, seed)
        exact = population_bound(calibration_error(*samples))
        found = admm(*samples, steps=300, settings=AdmmSettings(initial="clean")).value
        assert found < calibration_error(*samples).value
        assert exact.value >= truth
        assert found + exact.terms["deviation"] < truth - 0.005
