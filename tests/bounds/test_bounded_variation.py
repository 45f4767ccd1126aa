"""Bounds for calibration functions of bounded variation: every term is its formula, and the claim holds."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from certcal import InputError
from certcal.bounds import bounded_variation, denoised
from certcal.bounds._bets import OUTCOME_DEVIATIONS
from certcal.bounds._bounded_variation import _Buckets
from certcal.bounds._shared import (
    Sample,
    bernstein_term,
    fold_of_each,
    outcome_term,
    sort_in_folds,
    sort_pairs,
)
from certcal.bounds.concentration import chernoff_upper, place_bets
from certcal.claims import Bound
from certcal.lab.study import SYNTHETIC, Synthetic
from tests.bounds import naive

DELTA = 0.1
published = partial(bounded_variation, form="published")
BOTH = (bounded_variation, published)


def coins(s: np.ndarray, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random(s.size) < eta).astype(np.uint8)


# -------------------------------------------------------------------------------------------- what is shared by bounds


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
@settings(max_examples=50)
def test_sorting_keeps_pairs_together_and_puts_outcome_0_first(rows: list[tuple[float, bool]]) -> None:
    s, y = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], np.uint8)
    found = sort_pairs(s, y)
    assert list(zip(found.scores.tolist(), found.outcomes.tolist(), strict=True)) == sorted(
        (abs(score), int(outcome)) for score, outcome in rows
    )


def test_the_sorted_sample_of_float32_and_of_minus_zero_is_the_same_numbers() -> None:
    s = np.array([0.3, -0.0, 1.0, 0.0], np.float32)
    found = sort_pairs(s, np.array([1, 1, 0, 0], np.uint8))
    assert found.scores.tolist() == [0.0, 0.0, float(np.float32(0.3)), 1.0]
    assert found.outcomes.tolist() == [0, 1, 1, 0]
    assert not np.signbit(found.scores).any()


@pytest.mark.parametrize("n", [5, 60, 400])
@pytest.mark.parametrize("delta", [0.2, 0.05, 1e-6])
def test_the_chernoff_limit_fails_with_at_most_delta_for_every_coin(n: int, delta: float) -> None:
    counts = np.arange(n + 1)
    upper = np.array([chernoff_upper(k / n, n, delta) for k in counts])
    for p in np.nextafter(upper[upper < 1], 2):  # failures are most likely just above a limit
        assert stats.binom.pmf(counts, n, p)[upper < p].sum() <= delta


def test_deviations_five_per_cent_smaller_fail_where_the_inequalities_are_sharp() -> None:
    n, delta = 20_000, 1e-40
    counts = np.arange(n + 1)
    # Hoeffding: the mean of fair coins falls below 1/2 by the term.
    term = outcome_term(delta, 1, 1 / n, 1 / n, 1 / n)
    assert stats.binom.cdf(math.ceil(n * (0.5 - term)) - 1, n, 0.5) <= delta
    assert stats.binom.cdf(math.floor(n * (0.5 - 0.95 * term)), n, 0.5) > delta
    # Chernoff: the same for rare outcomes, where Hoeffding is far off.
    k = 100
    upper = chernoff_upper(k / n, n, delta)
    shorter = k / n + 0.95 * (upper - k / n)
    assert stats.binom.logcdf(counts[k], n, upper) <= math.log(delta)
    assert stats.binom.logcdf(counts[k], n, shorter) > math.log(delta)


def test_terms_of_deviations_are_their_formulas_rounded_up() -> None:
    log = math.log(3 / 0.01)
    exact = math.sqrt(2 * 0.04 * log / 500) + 3 * log / 500
    assert exact < bernstein_term(500, 0.01, 0.04) < exact * (1 + 1e-12)
    assert chernoff_upper(0.0, 500, 0.01) == pytest.approx(1 - 0.01 ** (1 / 500), rel=1e-9)
    assert chernoff_upper(1.0, 500, 0.01) == 1.0


@pytest.mark.parametrize(("n", "folds"), [(2, 2), (7, 3), (1000, 4)])
def test_folds_have_equal_sizes_and_depend_on_the_seed_only(n: int, folds: int) -> None:
    sizes = np.bincount(fold_of_each(n, folds, 3), minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(fold_of_each(n, folds, 3), fold_of_each(n, folds, 3))
    assert n < 100 or not np.array_equal(fold_of_each(n, folds, 3), fold_of_each(n, folds, 4))


@pytest.mark.parametrize("folds", [2, 3])
def test_samples_are_sorted_together_with_their_folds_which_were_given_to_them_as_they_came(folds: int) -> None:
    rng = np.random.default_rng(4)
    s, y = np.round(rng.random(300), 1), (rng.random(300) < 0.5).astype(np.uint8)
    sample, fold = sort_in_folds(s, y, folds, 5)
    found = sorted(zip(sample.scores.tolist(), sample.outcomes.tolist(), fold.tolist(), strict=True))
    assert found == sorted(zip(s.tolist(), y.tolist(), fold_of_each(300, folds, 5).tolist(), strict=True))
    assert np.array_equal(sample.scores, np.sort(s))


@pytest.mark.parametrize("n", [1000, 200_000])
def test_folds_have_nothing_to_do_with_samples_or_noise_of_the_same_seed(n: int) -> None:
    for drawn in (np.random.default_rng(0).random(n) < 0.5, np.random.default_rng([0, 1]).random(n) < 0.5):
        for other in (drawn, np.repeat(drawn, 4)[:n], np.repeat(drawn, 8)[:n]):
            hits = np.count_nonzero((fold_of_each(n, 2, 0) == 1) == other)
            assert abs(hits - n / 2) < 4.5 * math.sqrt(n * 8 / 4)


# --------------------------------------------------------------------------------------------------------- the buckets


def labels_of(s: np.ndarray, count: int) -> np.ndarray:
    """Bucket of each sorted score, by the rule in words: cut at every n/count-th sample, before equal scores."""
    n = s.size
    cuts = set()
    for k in range(count):
        place = k * n // count
        first, behind = np.searchsorted(s, s[place], "left"), np.searchsorted(s, s[place], "right")
        cuts.add(int(first))
        if (behind - first) * count >= n and behind - first > 1:
            cuts.add(int(behind))
    return np.searchsorted(sorted(cuts), np.arange(n), side="right")


def bias_of(s: np.ndarray, labels: np.ndarray, variation: float) -> float:
    """What η and the scores contribute, by the rule in words."""
    mixed = [label for label in set(labels.tolist()) if len(set(s[labels == label].tolist())) > 1]
    largest = max((int(np.sum(labels == label)) for label in mixed), default=0)
    return variation * largest / (2 * s.size) + naive.bucket_bound(s, s, labels)[1]


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]), st.booleans()), min_size=1, max_size=60),
)
@settings(max_examples=75)
def test_gap_and_bias_of_buckets_agree_with_sums_sample_by_sample(rows: list[tuple[float, bool]]) -> None:
    s, y = sample = sort_pairs(np.array([row[0] for row in rows]), np.array([row[1] for row in rows], np.uint8))
    buckets = _Buckets.of(sample, 0.7)
    gaps = -buckets.least(np.array([0.5]))[:, -1] / s.size
    for k, (starts, gap) in enumerate(zip(buckets.candidates, gaps, strict=True)):
        labels = labels_of(s, 2**k)
        assert np.array_equal(np.diff(buckets.number[starts]), np.unique(labels, return_counts=True)[1])
        assert gap == pytest.approx(naive.bucket_bound(s, y, labels)[0], abs=1e-11)
        assert sum(buckets.bias(starts, 0.7)) == pytest.approx(bias_of(s, labels, 0.7), abs=1e-11)
        assert sum(buckets.bias(starts, 0.7)) >= bias_of(s, labels, 0.7) - 1e-15


def covered_by_all(s: np.ndarray, y: np.ndarray, variation: float) -> float:
    """The least sum of gap and bias over the numbers of buckets."""
    buckets = _Buckets.of(Sample(s, y), variation)
    bias = [sum(buckets.bias(starts, variation)) for starts in buckets.candidates]
    return float(np.min(np.array(bias) - buckets.least(np.array([0.5]))[:, -1] / s.size))


@given(st.dictionaries(st.integers(0, 40), st.tuples(st.booleans(), st.integers(1, 6)), min_size=1, max_size=25))
@settings(max_examples=100)
def test_without_noise_every_bucket_count_covers_the_error_on_the_samples(
    points: dict[int, tuple[bool, int]],
) -> None:
    # η is 0 or 1 at every score, so outcomes are certain and the steps without bets must hold as they are.
    design = sorted(points)
    eta = np.array([points[x][0] for x in design], float)
    many = [points[x][1] for x in design]
    s, y = np.repeat(np.array(design) / 40, many), np.repeat(eta, many).astype(np.uint8)
    assert np.abs(s - y).mean() <= covered_by_all(s, y, float(np.abs(np.diff(eta)).sum())) + 1e-11


def test_the_bias_is_attained_by_a_jump_in_the_middle_of_equal_scores() -> None:
    # η jumps from 0 to 1 at scores that are all about 1/2: the gap cancels, the variation term alone must cover 1/2.
    s = 0.5 + 1e-9 * np.arange(-500, 500)
    y = (s >= 0.5).astype(np.uint8)
    true = float(np.abs(s - y).mean())
    assert true <= covered_by_all(s, y, 1.0) < true / 0.999
    assert bounded_variation(s, y, 0.05).settings["buckets"] == 1


@pytest.mark.parametrize(("n", "room"), [(60, 1e-9), (4000, 2e-4)])
def test_the_value_is_where_the_mean_capital_reaches_one_over_delta(n: int, room: float) -> None:
    """Of many samples the ends of cells stand for them, which makes the value a little larger, never smaller."""
    rng = np.random.default_rng(3)
    s, y = sort_pairs(s := np.round(rng.random(n), 3), coins(s, s**2, rng))
    bound = bounded_variation(s, y, 0.02, variation=1.5)
    most = math.ceil(math.log2(min(n, 8 * (4 * n) ** (1 / 3))))
    labels = [labels_of(s, 2**k) for k in range(most + 1)]
    given = labels, [bias_of(s, each, 1.5) for each in labels], place_bets(0.02, n, OUTCOME_DEVIATIONS)
    assert naive.capital_of_buckets(s, y, *given, bound.value) >= math.log(50)
    assert naive.capital_of_buckets(s, y, *given, bound.value - 10 * room) < math.log(50)
    assert bound.value == pytest.approx(math.fsum(bound.terms.values()), rel=1e-12)


@pytest.mark.parametrize("theta", [0.02, 0.3, 0.9])
def test_what_gaps_of_the_other_sign_cost_is_paid_and_hardly_more(theta: float) -> None:
    # Given the scores: the expected product with one sign, over that of |g|, is at most e^(n b artanh θ), and nearly so
    # where all gaps are 1 in size (the dearest ones).
    rng = np.random.default_rng(1)
    for g in (rng.uniform(-1, 1, 20), np.repeat([1.0, -1.0], 10), np.repeat([1.0, -1.0], [15, 5])):
        sign = 1 if g.sum() >= 0 else -1
        paid = (np.abs(g).sum() - abs(g.sum())) * math.atanh(theta)
        excess = np.log((1 - theta * sign * g) / (1 - theta * np.abs(g))).sum()
        assert excess <= paid + 1e-12
        assert np.abs(g).min() < 1 or excess > 0.98 * paid


# ------------------------------------------------------------------------------------------------------- Proposition 1


def test_every_term_of_proposition_1_is_its_formula() -> None:
    rng = np.random.default_rng(5)
    s = np.round(rng.random(400), 2)  # with ties
    y = coins(s, s, rng)
    delta, variation, folds = 0.05, 1.3, 2
    bound = published(s, y, delta, variation=variation, folds=folds, seed=9)
    fold = fold_of_each(400, folds, 9)
    part = delta / folds / 4
    expected = dict.fromkeys(bound.terms, 0.0)
    for k in range(folds):
        training = fold != k
        n = int(training.sum())
        design = np.unique(s[training])
        t1 = math.sqrt(0.5 * math.log(4 / part))
        t2 = math.sqrt(n / 8 * math.log(4 * (design.size - 1) / part))
        values = denoised_slowly(s[training], y[training], design, t2)
        gaps = np.abs(s[~training] - naive.step_function(s[~training], design, values))
        up = np.abs(np.diff(values)).sum()
        expected["estimate"] += gaps.mean() / folds
        log = math.log(3 / part)
        expected["draw of the validation scores"] += (
            math.sqrt(2 * gaps.var() * log / gaps.size) + 3 * log / gaps.size
        ) / folds
        squared = 2 * t1**2 + 2 * t1 * math.sqrt(t1**2 + 4 * t2 * variation) + 4 * t2 * variation
        expected["denoising"] += math.sqrt(squared / n) / folds
        transfer = (variation + up) * math.sqrt(math.log(2 / part) / (2 * n)) + math.sqrt(math.log(2 / part) / (2 * n))
        expected["draw of the training scores"] += transfer / folds
    assert bound.terms == pytest.approx(expected, rel=1e-6)


def test_the_denoised_curve_is_the_surrogate_of_all_samples_and_its_steps_are_where_it_changes() -> None:
    rng = np.random.default_rng(6)
    s = np.round(rng.random(400), 2)
    y = coins(s, s, rng)
    design, part = np.unique(s), 0.2 / 4
    price = math.sqrt(400 / 8 * math.log(4 * (design.size - 1) / part))
    curve = denoised(s, y, 0.2)
    np.testing.assert_allclose(curve.at(design), denoised_slowly(s, y, design, price), atol=1e-9)
    assert (np.diff(curve.values) != 0).all()
    assert set(curve.scores) <= set(design)
    assert curve.at([0.0, 1.0]).tolist() == [curve.values[0], curve.values[-1]]
    assert denoised([0.3, 0.3], [0, 1]).values.tolist() == [0.5]
    far = denoised(*SYNTHETIC["monotone"].draw(300_000, rng))
    assert np.abs(far.at(s) - s * s).mean() < 0.02  # consistent


def denoised_slowly(s: np.ndarray, y: np.ndarray, design: np.ndarray, price: float) -> np.ndarray:
    """Denoising by bounded least squares on the dual: another method, another library."""
    from scipy.optimize import lsq_linear

    weight = np.array([np.sum(s == x) for x in design], float)
    total = np.array([np.sum(y[s == x]) for x in design], float)
    m = design.size
    differences = np.zeros((m - 1, m))
    differences[np.arange(m - 1), np.arange(m - 1)] = -1
    differences[np.arange(m - 1), np.arange(1, m)] = 1
    scaled = (differences / np.sqrt(weight)).T
    found = lsq_linear(scaled, total / np.sqrt(weight), (-price, price), tol=1e-14, method="bvls")
    return (total - differences.T @ found.x) / weight


def test_the_error_of_the_surrogate_on_its_design_stays_below_the_denoising_term() -> None:
    # Lemma 4 with equal scores merged, at a level where it could be seen to fail: 2000 draws at delta 0.1.
    from certcal._kernels.denoise import denoise

    rng = np.random.default_rng(8)
    points, many = 40, 5
    eta = np.where(np.arange(points) < 20, 0.3, 0.7)
    n = points * many
    t1 = math.sqrt(0.5 * math.log(4 / DELTA))
    t2 = math.sqrt(n / 8 * math.log(4 * (points - 1) / DELTA))
    limit = (t1 + math.sqrt(t1**2 + 4 * t2 * 0.4)) / math.sqrt(n)
    sharper = (t1 + math.sqrt(t1**2 + 8 * t2 * 0.4)) / (2 * math.sqrt(n))
    weight = np.full(points, many, np.int32)
    errors = np.array(
        [
            math.sqrt(np.mean((denoise(weight, total, t2) - eta) ** 2))
            for total in rng.binomial(many, eta, (2000, points)).astype(np.int32)
        ]
    )
    assert np.mean(errors > sharper) <= DELTA
    assert sharper < 0.75 * limit
    assert errors.max() < limit


def test_taking_equal_scores_one_by_one_as_printed_breaks_the_proposition() -> None:
    # All scores are 1 and half of the outcomes are 0, so the calibration error is 1/2. Sorted by score and outcome and
    # denoised one by one, the last value (which the printed rule takes for score 1) is near 1: the "surrogate" agrees
    # with the scores. Merged, it is the mean.
    from certcal._kernels.denoise import denoise

    n = 2_000_000
    y = np.repeat([0, 1], n // 2).astype(np.int32)
    price = math.sqrt(n / 8 * math.log(4 * (n - 1) / 0.0125))
    printed = denoise(np.ones(n, np.int32), y, price)[-1]
    t1 = math.sqrt(0.5 * math.log(4 / 0.0125))
    term = (t1 + math.sqrt(t1**2 + 4 * price)) / math.sqrt(n)
    transfer = 3 * math.sqrt(math.log(2 / 0.0125) / (2 * n))
    assert (1 - printed) + term + transfer < 0.2 < 0.5
    assert published(np.ones(2000), np.arange(2000) % 2).value > 0.5
    assert bounded_variation(np.ones(2000), np.arange(2000) % 2).value > 0.5


# ----------------------------------------------------------------------------------------------------- the claim holds


def failures(function: Synthetic, bound: Callable[..., Bound], n: int, repetitions: int) -> tuple[float, float]:
    """Share of draws in which the bound is below the truth, and the mean of the bounds."""
    rng = np.random.default_rng(11)
    values = np.array(
        [bound(*function.draw(n, rng), DELTA, variation=function.variation).value for _ in range(repetitions)]
    )
    return float(np.mean(values < function.calibration_error)), float(values.mean())


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_bound_holds_for_known_functions(name: str) -> None:  # with 20 samples: test_coverage.py
    share, mean = failures(SYNTHETIC[name], bounded_variation, 200, 300)
    assert share <= DELTA
    assert mean < 0.6


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_published_bound_holds_for_known_functions(name: str) -> None:
    share, _ = failures(SYNTHETIC[name], published, 4000, 100)
    assert share <= DELTA


@pytest.mark.parametrize("bound", BOTH)
@pytest.mark.parametrize(
    ("scores", "eta"),
    [
        ([0.0, 1.0], [0.3, 0.7]),  # mass at 0 and 1
        ([0.2], [0.6]),  # one score
        ([0.1, 0.5, 0.5000001, 0.9], [0.0, 0.4, 0.9, 1.0]),  # discrete, with a jump between neighbours
    ],
)
def test_the_bound_holds_for_discrete_scores_and_is_not_far_off(
    bound: Callable[..., Bound], scores: list[float], eta: list[float]
) -> None:
    rng = np.random.default_rng(12)
    s, share = np.array(scores), np.array(eta)
    true = float(np.abs(s - share).mean())
    values = []
    for _ in range(150):
        chosen = rng.integers(0, s.size, 1000)
        values.append(bound(s[chosen], coins(chosen, share[chosen], rng), DELTA).value)
    assert np.mean(np.array(values) < true) <= DELTA
    assert bound is published or np.mean(values) < true + 0.08


def test_at_one_score_half_of_the_deviation_would_still_do_and_four_tenths_would_not() -> None:
    # What is given away where buckets cost nothing: Markov's inequality, and placing several bets.
    n, eta = 400, 0.3
    counts = np.arange(n + 1)
    values = np.array([bounded_variation(np.zeros(n), np.arange(n) < k, DELTA).value for k in counts])
    chance = stats.binom.pmf(counts, n, eta)

    def rate(part: float) -> float:
        return float(chance[counts / n + part * (values - counts / n) < eta].sum())

    assert rate(1.0) <= rate(0.5) <= DELTA
    assert rate(0.4) > DELTA


# ----------------------------------------------------------------------------------------------------------- behaviour


@pytest.mark.parametrize("bound", BOTH)
def test_the_order_of_the_samples_does_not_matter_but_for_the_folds_they_are_in(bound: Callable[..., Bound]) -> None:
    rng = np.random.default_rng(2)
    s = np.round(rng.random(500), 2)
    y = coins(s, s, rng)
    first = bound(s, y)
    fold = fold_of_each(500, 2, 0)
    for _ in range(3):
        order = rng.permutation(500)
        if bound is published:  # within folds
            order = np.lexsort((order, fold))[np.argsort(np.argsort(fold, kind="stable"))]
            assert np.array_equal(fold[order], fold)
        assert not np.array_equal(order, np.arange(500))
        assert bound(s[order], y[order]) == first


@pytest.mark.parametrize("bound", BOTH)
def test_smaller_delta_and_larger_variation_give_larger_bounds(bound: Callable[..., Bound]) -> None:
    rng = np.random.default_rng(2)
    s = rng.random(20_000)
    y = coins(s, s, rng)
    values = [bound(s, y, delta).value for delta in (0.4, 0.1, 0.01, 1e-6)]
    assert values == sorted(values)
    values = [bound(s, y, variation=variation).value for variation in (0.1, 1, 3)]
    assert values == sorted(values)


def test_the_published_bound_is_several_times_larger_and_both_shrink_with_data() -> None:
    rng = np.random.default_rng(4)
    s = rng.random(200_000)
    y = coins(s, s, rng)
    ours = [bounded_variation(s[:n], y[:n]).value for n in (2000, 20_000, 200_000)]
    theirs = [published(s[:n], y[:n]).value for n in (2000, 20_000, 200_000)]
    assert ours == sorted(ours, reverse=True)
    assert theirs == sorted(theirs, reverse=True)
    assert all(5 * a < b for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("outcome", [0, 1])
def test_constant_scores_and_equal_outcomes_have_a_defined_bound(outcome: int) -> None:
    for n in (1, 2, 1000):
        for bound in BOTH[: 1 + (n > 1)]:
            found = bound(np.full(n, 0.25), np.full(n, outcome))
            assert abs(0.25 - outcome) <= found.value <= 1
    found = bounded_variation(np.full(1000, 0.25), np.full(1000, outcome))
    assert found.terms["variation of eta"] == found.terms["scores in a bucket"] == 0


def test_one_sample_gives_the_trivial_bound_and_says_that_it_was_capped() -> None:
    bound = bounded_variation([0.5], [1])
    assert bound.value == 1
    assert bound.settings["sum of the terms"] == "capped at 1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variation": -1.0}, "variation is -1.0; pass a positive finite number"),
        ({"folds": 1}, "folds is 1; pass a whole number from 2 to 100"),
        ({"folds": 3}, "scores has 2 entries for 3 folds"),
        ({"seed": -1}, "seed is -1; pass a whole number"),
        ({"form": "direct", "folds": 2}, "folds is 2, but nothing is split in this form; leave it out or pass form="),
        ({"form": "direct", "seed": 0}, "seed is 0, but nothing is split in this form; leave it out or pass form="),
        ({"form": "repaired"}, "form is 'repaired'; pass one of"),
    ],
)
def test_unusable_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        published([0.5, 0.6], [0, 1], **options)


def test_the_claim_in_words() -> None:
    bound = bounded_variation(np.full(1000, 0.5), np.arange(1000) % 2, variation=1.25)
    assert bound.statement == (
        f"calibration error is at most {bound.text}: 95% sure, for samples drawn like these 1,000. "
        "Assumptions: samples are independent draws from the population; they were not used to train, choose or "
        "recalibrate the classifier; higher scores never mean lower risk, or their ups and downs add up "
        "to at most 1.25. "
        "Settings: variation=1.25, buckets=1."
    )
