"""The bucketing bound for calibration functions of bounded slope."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from certcal import InputError
from certcal._kernels.runs import _upward, least_of_runs
from certcal.bounds import _lipschitz, lipschitz, perturb
from certcal.bounds._bets import OUTCOME_DEVIATIONS, mean_from_logs, running_sums, signed_sums
from certcal.bounds._lipschitz import CELLS, SHIFTS, BucketedSplit, _Patterns, bucket_cells
from certcal.bounds._shared import fold_of_each, sort_pairs
from certcal.bounds.concentration import place_bets
from certcal.lab.study import SYNTHETIC
from tests.bounds import naive

DELTA = 0.1

published = partial(lipschitz, form="published")


@pytest.mark.parametrize("constant", [0.5, 1.0, 1.2, 3.0, 20.0])
@pytest.mark.parametrize("spread", [1.0, 0.2])
def test_the_least_capital_is_that_over_every_choice_of_zeros_and_signs(
    constant: float, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_lipschitz, "_FINE", 0.0)  # every score is a cell
    rng = np.random.default_rng(int(constant * 10))
    design = 0.4 + spread * np.sort(rng.random(5)) / 2
    s = np.repeat(design, [1, 3, 2, 1, 4])
    sample = sort_pairs(s, (rng.random(s.size) < s).astype(np.uint8))
    patterns = _Patterns.of(sample, constant, False)
    assert len(patterns.cells) == design.size
    assert patterns.largest <= 1
    bets = np.array([0.05, 0.4, 0.9])
    reach = patterns.last, patterns.first, patterns.largest
    slow = [naive.least_over_patterns(*sample, constant, bet, reach) for bet in bets]
    np.testing.assert_allclose(patterns.least(bets)[:-1], slow, rtol=1e-9)
    # One in a million stands for the sum of X itself.
    assert patterns.least(bets)[-1] == pytest.approx(
        naive.least_over_patterns(*sample, constant, 1e-6, reach) * 1e6, rel=1e-4
    )


def test_the_value_is_where_the_mean_capital_reaches_one_over_delta() -> None:
    rng = np.random.default_rng(3)
    s = rng.random(2000)
    y = (rng.random(2000) < s).astype(np.uint8)
    bound = lipschitz(s, y, 3.0, 0.02)
    bets = place_bets(0.02, 2000, OUTCOME_DEVIATIONS)
    least = _Patterns.of(sort_pairs(s, y), 3.0, False).least(bets)[:-1]

    def capital(m: float) -> float:
        return float(np.mean(np.exp(least - 2000 * np.log(1 - bets * m))))

    assert capital(bound.value) >= 50 > capital(bound.value - 1e-6)
    assert bound.value >= math.fsum(bound.terms.values()) * (1 - 1e-14)


def test_two_per_cent_less_of_the_deviation_fails_where_betting_is_sharp() -> None:
    # Ten billion coins at the score 1/2 with an error of 1/1000: the tail is the binomial one.
    n, log_delta, p = 10**10, -400.0, 0.501
    bets = place_bets(math.exp(log_delta), n, OUTCOME_DEVIATIONS)

    def limit(heads: int) -> float:
        sums = signed_sums(np.array([[n - heads, heads, 0.0, 0.0, 0.5, 0.5]]), bets)
        return mean_from_logs(sums[:-1, :, -1].min(axis=1), bets, n, math.exp(log_delta), 0.0)

    def log_rate(part: float) -> float:
        low, high = n // 2, int(n * p)
        while high - low > 1:
            middle = (low + high) // 2
            seen = middle / n - 0.5
            low, high = (middle, high) if seen + part * (limit(middle) - seen) < p - 0.5 else (low, middle)
        return float(stats.binom.logcdf(low, n, p))

    assert log_rate(1.0) <= log_delta
    assert log_rate(0.98) > log_delta


def steepest(s: np.ndarray, constant: float, turn: np.ndarray) -> np.ndarray:
    """Gaps η - s that rise as fast as they can, or fall, where ``turn`` says so."""
    steps = np.where(turn[1:], constant - 1, -constant - 1) * np.diff(s)
    return np.concatenate(([0.0], np.cumsum(steps)))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.6, 1.0, 1.5, 4.0, 30.0]), st.sampled_from([30, 700]))
def test_whatever_the_calibration_function_is_one_of_the_patterns_covers_it(seed: int, constant: float, n: int) -> None:
    rng = np.random.default_rng(seed)
    s = np.sort(np.round(rng.random(n), int(rng.integers(2, 9))))
    turn = np.repeat(rng.random(n) < (constant + 1) / (2 * constant), rng.integers(1, 1 + n // 10, n))[:n]
    gap = steepest(s, constant, turn) + rng.normal(0, 0.02)
    gap = np.clip(gap, -s, 1 - s)  # η is in [0, 1], and no steeper for it
    patterns = _Patterns.of(sort_pairs(s, np.zeros(n, np.uint8)), constant, False)
    edges = patterns.table[2].astype(np.int64)
    sums = running_sums(-np.add.reduceat(gap, edges[:-1]))
    rest = patterns.table, patterns.last, patterns.first
    found = -least_of_runs(np.stack((sums, -sums)), *rest, -1.0, patterns.rises)
    assert found >= np.abs(gap).sum() * (1 - 1e-9)


@pytest.mark.parametrize("constant", [0.9, 4.0])
def test_two_per_cent_less_of_the_constant_does_not_cover_the_steepest_function(
    constant: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A zero at the first score that reaches all others, so that outcomes do not count: the gap falls as fast as it can.
    monkeypatch.setattr(_lipschitz, "_REACH", math.inf)
    n = 2000
    s = 0.4 + 0.1 * np.arange(n) / n
    gap = steepest(s, constant, np.zeros(n, bool))
    for part, covered in ((1.0, True), (0.98 - 0.02 / constant, False)):  # of constant + 1
        patterns = _Patterns.of(sort_pairs(s, np.zeros(n, np.uint8)), part * constant, False)
        none = np.zeros((2, len(patterns.cells) + 1))
        found = -least_of_runs(none, patterns.table, patterns.last, patterns.first, -1.0, patterns.rises)
        assert (found >= np.abs(gap).sum() * (1 - 1e-9)) == covered


def test_the_part_without_a_deviation_is_attained_by_two_scores_and_the_steepest_line() -> None:
    # Scores 1/2 ± w and η falling from 1/2 + L w to 1/2 - L w: the gaps cancel in one bucket, |g| is (L + 1) w.
    n, steep, w = 1000, 4.0, 0.05
    s = np.repeat([0.5 - w, 0.5 + w], n // 2)
    y = np.concatenate((np.arange(500) < 350, np.arange(500) < 150)).astype(np.uint8)
    assert lipschitz(s, y, steep).terms["largest error on the samples"] == pytest.approx((steep + 1) * w)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_bound_holds_for_known_functions(name: str) -> None:  # with 20 samples: test_coverage.py
    rng = np.random.default_rng(0)
    each = SYNTHETIC[name]
    values = np.array([lipschitz(*each.draw(200, rng), each.lipschitz, DELTA).value for _ in range(100)])
    assert np.mean(values < each.calibration_error) <= DELTA
    assert values.min() < 1


def test_the_bound_holds_for_ties_with_mass_at_the_ends() -> None:
    rng = np.random.default_rng(1)
    scores, eta = np.array([0.0, 0.5, 1.0]), np.array([0.2, 0.5, 0.8])
    true = 0.4 / 3
    values = []
    for _ in range(200):
        chosen = rng.integers(0, 3, 1000)
        values.append(lipschitz(scores[chosen], rng.random(1000) < eta[chosen], 0.6, DELTA).value)
    assert np.mean(np.array(values) < true) <= DELTA
    assert np.mean(values) < true + 0.06


def test_the_bound_is_consistent_and_grows_with_the_constant() -> None:
    rng = np.random.default_rng(2)
    s, y = SYNTHETIC["smooth"].draw(300_000, rng)
    true = SYNTHETIC["smooth"].calibration_error
    gaps = [lipschitz(s[:n], y[:n], 2.0).value - true for n in (3000, 30_000, 300_000)]
    assert gaps[0] > 1.7 * gaps[1] > 1.7 * 1.7 * gaps[2] > 0
    values = [lipschitz(s, y, constant).value for constant in (0.5, 2, 8, 200)]
    assert values == sorted(values)
    values = [lipschitz(s, y, 2.0, delta).value for delta in (0.4, 0.05, 1e-5)]
    assert values == sorted(values)


def test_the_order_of_the_samples_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    s, y = SYNTHETIC["smooth"].draw(3000, rng)
    order = rng.permutation(3000)
    assert lipschitz(s, y, 2) == lipschitz(s[order], y[order], 2)


def test_constant_scores_equal_outcomes_and_one_sample_have_a_defined_bound() -> None:
    for n in (1, 3, 1000):
        for score in (0.0, 0.3, 1.0):
            for outcome in (0, 1):
                found = lipschitz(np.full(n, score), np.full(n, outcome), 2.0)
                assert abs(score - outcome) <= found.value <= 1
                assert found.terms["largest error on the samples"] == pytest.approx(abs(score - outcome))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5], [1], 0.0), "constant is 0.0; pass a positive finite number"),
        (([0.5], [1], math.inf), "constant is inf; pass a positive finite number"),
    ],
)
def test_unusable_input_is_named(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lipschitz(*arguments)  # pyright: ignore


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "printed"}, "form is 'printed'; pass one of 'direct', 'published'"),
        ({"seed": 1}, "seed is 1, but nothing is split in this form; leave it out or pass form='published'"),
        ({"form": "published", "folds": 3}, "scores has 2 entries for 3 folds"),
        ({"form": "published", "scale": "logit"}, "form is 'published', which is for the scale 'probability'"),
    ],
)
def test_unusable_forms_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lipschitz([0.5, 0.6], [0, 1], 2.0, **options)  # pyright: ignore


def test_the_claim_names_the_slope_it_assumes() -> None:
    bound = lipschitz(np.full(100, 0.5), np.arange(100) % 2, 1.5)
    assert "changes by at most 1.5 per unit of the score" in bound.statement
    assert bound.settings["constant"] == 1.5


@pytest.mark.parametrize("constant", [0.5, 1.2, 4.0])
def test_in_a_cell_with_several_scores_and_a_zero_the_gap_may_have_fallen_as_steeply_as_it_can(constant: float) -> None:
    scores = np.sort(np.random.default_rng(0).uniform(0.4, 0.6, 20_000))
    patterns = _Patterns.of(sort_pairs(scores, np.zeros(scores.size, np.uint8)), constant, False)
    table = patterns.table
    starts = table[2].astype(np.int64)
    several = np.flatnonzero(table[6])
    assert several.size > 100
    for zone in several.tolist():
        inside = scores[starts[zone] : starts[zone + 1]]
        fallen = (constant + 1) * (inside - inside[0])  # |gap| after a zero at the first score of the cell
        assert min(_upward(table, sign, zone, zone) for sign in (0, 1)) >= fallen.sum()


# ------------------------------------------------------------------------------------------------ published bucketing


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 2.0, 32.0]), st.sampled_from([2, 3]))
@settings(max_examples=12)
def test_the_published_form_is_the_least_of_all_partitions_each_by_its_formula(
    seed: int, constant: float, folds: int
) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(folds, 120))
    s = np.round(rng.beta(*rng.uniform(0.2, 3, 2), n), int(rng.integers(1, 7)))
    y = (rng.random(n) < s**2).astype(np.uint8)
    bound = published(s, y, constant, DELTA, folds=folds, seed=4)
    fold = fold_of_each(n, folds, 4)
    most = math.ceil(math.log2(max(1.0, min(((constant + 1) ** 2 * n) ** (1 / 3), n))))
    level = DELTA / (folds * SHIFTS * (most + 1))
    found = []
    for count in 2 ** np.arange(most + 1):
        for shift in range(SHIFTS):
            edges = [0.0, *((j + shift / SHIFTS) / count for j in range(1, count)), 1.0]
            parts = [naive.lipschitz_bucketing(s, y, fold != k, edges, constant, level) for k in range(folds)]
            found.append({name: sum(part[name] for part in parts) / folds for name in parts[0]})
    best = min(found, key=lambda terms: sum(terms.values()))
    # A distance within the cell of the mean is at most its chord; the root of a variance feels that most.
    assert sum(best.values()) <= sum(bound.terms.values()) < sum(best.values()) * 1.003


def test_every_term_of_published_bucketing_is_its_formula() -> None:
    rng = np.random.default_rng(8)
    s = rng.random(3000)
    y = (rng.random(3000) < s).astype(np.uint8)
    training = fold_of_each(3000, 2, 0) == 0
    cut = bucket_cells(16, 3)
    expected = naive.lipschitz_bucketing(s, y, training, (cut / CELLS).tolist(), 5.0, 0.01)
    assert BucketedSplit.of(s, y, training).terms(cut, 5.0, 0.01) == pytest.approx(expected, rel=1e-3)


def test_a_shift_moves_the_inner_edges_by_a_share_of_a_bucket_and_leaves_the_ends() -> None:
    np.testing.assert_array_equal(bucket_cells(4, 1) / CELLS, [0, 0.3125, 0.5625, 0.8125, 1])
    np.testing.assert_array_equal(bucket_cells(1, 3) / CELLS, [0, 1])


def test_with_a_tenth_less_of_the_bucket_means_deviation_the_published_form_fails_too_often() -> None:
    # All scores are 0, η is ½, and validation is without end: the bound is mean + deviation, and the mean binomial.
    n, delta = 20_000_000, 3e-12
    part = delta / 3

    def log_rate(share: float) -> float:
        def total(heads: int) -> float:
            nothing = np.zeros(CELLS)
            every = [np.append(0.0, nothing + size) for size in (n, heads, 1e8, 0.0, 0.0)]
            terms = BucketedSplit(*every).terms(bucket_cells(1, 0), 1e-9, delta)
            return terms["surrogate gap"] + share * terms["bucketing error"] + terms["validation of the gap"]

        low, high = n // 4, n // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if total(middle) < 0.5 else (low, middle)
        return float(stats.binom.logcdf(low, n, 0.5))

    assert log_rate(1.0) <= math.log(part / 2)
    assert log_rate(0.9) > math.log(part)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_published_form_holds_for_known_functions(name: str) -> None:
    rng = np.random.default_rng(0)
    each = SYNTHETIC[name]
    values = np.array([published(*each.draw(4000, rng), each.lipschitz, DELTA).value for _ in range(10)])
    assert np.mean(values < each.calibration_error) <= DELTA
    assert each.lipschitz > 10 or values.max() < 1


def test_the_published_form_holds_for_ties_is_larger_than_the_direct_one_and_shrinks_with_data() -> None:
    rng = np.random.default_rng(1)
    scores, eta = np.array([0.0, 0.5, 1.0]), np.array([0.2, 0.5, 0.8])
    chosen = rng.integers(0, 3, 100_000)
    s, y = scores[chosen], (rng.random(chosen.size) < eta[chosen]).astype(np.uint8)
    values = [published(s[:n], y[:n], 0.6).value for n in (1000, 10_000, 100_000)]
    assert values[0] > values[1] > values[2] > 0.4 / 3
    for n in (2, 1000, 100_000):
        assert published(s[:n], y[:n], 0.6).value > lipschitz(s[:n], y[:n], 0.6).value
    levels = [published(s, y, 0.6, delta).value for delta in (0.4, 0.05, 1e-5)]
    assert levels == sorted(levels)


def test_perturbed_scores_have_the_constant_of_the_paper_and_the_claim_names_it() -> None:
    s, y = SYNTHETIC["monotone"].draw(50_000, np.random.default_rng(0))
    bound = published(perturb(s, 2**-4, seed=1), y, 1 / (2 * 2**-4))
    assert "changes by at most 8 per unit of the score" in bound.statement
    assert "the order of the samples does not depend" in bound.statement
    assert {**bound.settings, "buckets": 0, "shift": 0} == {
        "constant": 8.0, "buckets": 0, "shift": 0, "shifts": 4, "folds": 2, "seed": 0, "form": "published",
    }  # fmt: skip
