"""Intervals of differences: they cover the population's difference, paired or not, and not if they were narrower."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import Predictions
from certcal.claims import Estimate, Interval
from certcal.metrics import METRICS, auroc, measure
from certcal.metrics.differences import (
    JOINT,
    PAIRED,
    PAIRED_BINS,
    UNPAIRED,
    contributions,
    difference_interval,
    joint_interval,
    joint_level,
    metric_change,
    paired_ece_interval,
    score_change,
)
from certcal.verbs.changes import answers
from tests import naive

LEVEL = 0.95
BRIER, NLL = (METRICS[name] for name in ("top_label_brier_score", "top_label_nll"))


def estimates(entry, predictions):
    arrays, options = entry.arguments(predictions)
    return Estimate(entry.name, entry.function(*arrays, sample_weight=predictions.sample_weight, **options), 9)


@pytest.mark.parametrize(("events", "old", "new"), [(2, 0.04, 2), (3, 0.06, 5.4), (4, 0.08, 5.6), (4, 1.2, 4)])
def test_of_a_few_events_the_change_of_the_binned_error_is_covered_by_enumeration(events, old, new):
    n, missed, wrong = 100, 0.0, 0.0
    truth = (abs(new - events) - abs(old - events)) / n
    for count in range(22):
        y = np.arange(n) < count
        sides = (Predictions.from_scores(np.full(n, each / n), y) for each in (old, new))
        spread = metric_change("ece", *sides, LEVEL, paired=True)[2]
        chance = math.comb(n, count) * (events / n) ** count * (1 - events / n) ** (n - count)
        missed += chance * (not spread.lower - 1e-12 <= truth <= spread.upper + 1e-12)
        wrong += chance * (spread.lower > 0 > truth or spread.upper < 0 < truth)
    assert missed <= 0.05
    assert wrong <= 0.025


def test_percentiles_of_a_biased_metric_do_not_show_a_change():
    # Of both the truth is 0. Percentiles of resamples lie above the estimates, the farther the fewer samples there are.
    old, new = (
        Estimate("own", value, n, {}, Interval(*ends, 0.975, "percentile"))
        for n, value, ends in ((300, 0.05, (0.06, 0.12)), (30_000, 0.005, (0.006, 0.012)))
    )
    found = joint_interval(old, new)
    assert found is not None
    assert (round(found.lower, 9), round(found.upper, 9), found.level) == (-0.122, 0.032, 0.95)


def ends(entry, before, after, *, paired):
    spread = difference_interval(estimates(entry, before), estimates(entry, after), before, after, LEVEL, paired=paired)
    assert spread is not None
    assert spread.method == (PAIRED if paired else UNPAIRED)
    return spread


# Population differences by integration over z, with P(y = 1 | z) = η(z) and the two scores as functions of z.
GRID = (np.arange(200_000) + 0.5) / 200_000
REGIMES = {
    "one model squared": (lambda z: z, lambda z: z, lambda z: z**2),
    "nearly the same": (lambda z: z, lambda z: z, lambda z: np.clip(z + 0.01, 0, 1)),
    "rare outcomes": (lambda z: 0.04 * z, lambda z: 0.04 * z, lambda z: 0.02 + 0.02 * z),
    "both wrong": (lambda z: 0.5 + 0 * z, lambda z: 0.2 + 0.6 * z, lambda z: 0.8 - 0.6 * z),
}


def losses(entry, scores, outcome):
    return np.asarray(entry.form.losses(scores, np.full(scores.size, outcome, np.uint8)))


def truth(entry, eta, old, new):
    z, share = GRID, eta(GRID)
    gaps = [losses(entry, new(z), y) - losses(entry, old(z), y) for y in (0, 1)]
    return float(np.mean((1 - share) * gaps[0] + share * gaps[1]))


def coverage(entry, regime, n, paired, rng, times=400, narrower=1.0):
    eta, old, new = REGIMES[regime]
    target, covered = truth(entry, eta, old, new), 0
    for _ in range(times):
        z = rng.random(n)
        y = (rng.random(n) < eta(z)).astype(np.uint8)
        before = Predictions.from_confidence(old(z), y)
        if not paired:
            z = rng.random(n)
            y = (rng.random(n) < eta(z)).astype(np.uint8)
        after = Predictions.from_confidence(new(z), y)
        spread = ends(entry, before, after, paired=paired)
        middle, half = (spread.lower + spread.upper) / 2, (spread.upper - spread.lower) / 2
        covered += abs(target - middle) <= narrower * half
    return covered / times


@pytest.mark.parametrize("n", [100, 500])
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_of_a_mean_covers_the_difference_of_the_population(regime, n, paired):
    found = coverage(BRIER, regime, n, paired, np.random.default_rng(1))
    assert found >= LEVEL - 0.02 - 2 * math.sqrt(LEVEL * (1 - LEVEL) / 400) / 2


def test_a_narrower_interval_would_not_cover_it():
    found = coverage(BRIER, "one model squared", 500, True, np.random.default_rng(1), narrower=0.8)
    assert found < LEVEL - 0.03


def test_pairing_helps_where_the_two_agree_and_ties_are_no_certainty():
    rng = np.random.default_rng(0)
    z = rng.random(400)
    y = (rng.random(400) < z).astype(int)
    before, after = Predictions.from_confidence(z, y), Predictions.from_confidence(np.minimum(z + 0.01, 0.999), y)
    paired, unpaired = (ends(NLL, before, after, paired=each) for each in (True, False))
    assert paired.upper - paired.lower < (unpaired.upper - unpaired.lower) / 3
    same = ends(METRICS["accuracy"], before, after, paired=True)
    assert 0 < same.upper == -same.lower < 0.02  # no sample differs among 400, some may among others


def test_contributions_average_to_the_metric_and_placements_vary_as_auroc_does():
    rng = np.random.default_rng(3)
    z, w = rng.random(300).round(2), rng.random(300)
    y = (rng.random(300) < z).astype(np.uint8)
    for weight in (None, w):
        some = Predictions.from_confidence(z, y, weight)
        for name in ("auroc", "accuracy", "top_label_nll", "top_label_brier_score", "mean_confidence"):
            parts = contributions(METRICS[name], some)
            assert np.average(parts, weights=weight) == pytest.approx(float(estimates(METRICS[name], some).value))
        scores = Predictions.from_scores(z, y, weight)
        parts = contributions(METRICS["accuracy_at_threshold"], scores)
        assert np.average(parts, weights=weight) == pytest.approx(np.average((z >= 0.5) == y, weights=weight))
    assert contributions(METRICS["ece"], some) is None
    assert contributions(METRICS["auroc"], Predictions.from_confidence([0.2, 0.4], [1, 1])) is None
    parts = contributions(METRICS["auroc"], Predictions.from_confidence(z, y))
    draws = []
    for _ in range(3000):
        u = rng.random(300).round(2)
        v = rng.random(300) < u
        draws.append(auroc(u, v))
    assert parts.std() / math.sqrt(300) == pytest.approx(np.std(draws), rel=0.1)


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6), st.floats(0, 1), st.floats(0, 1))
def test_the_difference_of_two_intervals_holds_every_difference_of_their_numbers(six, place, other):
    (a, old, b), (c, new, d) = sorted(six[:3]), sorted(six[3:])
    level = joint_level(LEVEL)
    found = joint_interval(
        Estimate("ece", old, 9, {}, Interval(a, b, level, "x")), Estimate("ece", new, 9, {}, Interval(c, d, level, "x"))
    )
    assert found is not None
    assert (found.level, found.method) == (LEVEL, JOINT)
    assert found.lower <= (c + place * (d - c)) - (a + other * (b - a)) + 1e-12
    assert found.upper >= (c + place * (d - c)) - (a + other * (b - a)) - 1e-12


def logistic(slope, shift=0.0):
    return lambda z: 1 / (1 + np.exp(-(slope * np.log(z / (1 - z)) + shift)))


# P(y = 1 | z) = z for z = place + width × Beta(2, 4), and two scores as functions of z.
CHANGES = {
    "a map that works": (0.0, 1.0, lambda z: z**1.255, lambda z: z),
    "a map that works but below": (0.0, 1.0, lambda z: z**2, lambda z: np.where(z < 0.2, z / 3, z)),
    "one bin": (0.0, 0.06, lambda z: 1.5 * z, lambda z: z),
    "nearly the same": (0.0, 1.0, logistic(1.4), logistic(1.42, 0.01)),
    "both calibrated": (0.0, 1.0, lambda z: z, lambda z: np.clip(z + 0.002 * np.sin(40 * z), 0, 1)),
    "too high and too low": (0.0, 1.0, lambda z: np.clip(z + 0.02, 0, 1), lambda z: np.clip(z - 0.02, 0, 1)),
    "too timid and too extreme": (0.0, 1.0, logistic(0.8), logistic(1.25)),
}


def binned_error(z, residual, bins):
    where = np.minimum((z * bins).astype(int), bins - 1)
    return np.abs(np.bincount(where, residual, bins)).sum() / z.size


def covered_changes(regime, n, times=100, bins=15):
    """Shares of intervals that contain the change of the population, and that leave out 0; and their mean width."""
    place, width, old, new = CHANGES[regime]
    rng = np.random.default_rng(5)
    z = place + width * rng.beta(2, 4, 400_000)
    target = binned_error(new(z), z - new(z), bins) - binned_error(old(z), z - old(z), bins)
    found = []
    for _ in range(times):
        z = place + width * rng.beta(2, 4, n)
        y = (rng.random(n) < z).astype(np.uint8)
        sides = [Predictions.from_scores(each(z), y) for each in (old, new)]
        found.append(paired_ece_interval(*sides, LEVEL, bins=bins))
    inside = np.mean([each.lower <= target <= each.upper for each in found])
    decided = np.mean([each.lower > 0 or each.upper < 0 for each in found])
    return inside, decided, np.mean([each.upper - each.lower for each in found])


@pytest.mark.parametrize("regime", CHANGES)
def test_the_interval_of_a_change_of_the_binned_error_covers_that_of_the_population(regime):
    inside, _, width = covered_changes(regime, 2_000, bins=50 if regime == "a map that works but below" else 15)
    assert inside >= LEVEL - 0.01
    if regime == "nearly the same":
        assert width < 0.03  # 0.12 by two intervals


def test_pairing_decides_more_often_that_a_map_works_than_two_intervals_do():
    _, paired, _ = covered_changes("a map that works", 2_000)
    rng, joint = np.random.default_rng(5), 0
    for _ in range(60):
        z = rng.beta(2, 4, 2_000)
        y = (rng.random(2_000) < z).astype(np.uint8)
        sides = [
            measure(Predictions.from_scores(each, y), metrics="ece", bootstrap=100, level=joint_level(LEVEL))["ece"]
            for each in (z**1.255, z)
        ]
        joint += joint_interval(*sides).upper < 0
    assert paired > joint / 60 + 0.05


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("regime", CHANGES)
def test_ends_of_a_change_are_those_of_terms_bin_by_bin(regime, weighted):
    place, width, old, new = CHANGES[regime]
    rng = np.random.default_rng(1)
    for n, bins in ((40, 4), (150, 7)):
        z = place + width * rng.beta(2, 4, n)
        y = (rng.random(n) < z**1.5).astype(np.uint8)
        w = rng.choice([0.5, 1.0, 3.0], n) if weighted else np.ones(n)
        sides = [Predictions.from_scores(each(z), y, w if weighted else None) for each in (old, new)]
        found = paired_ece_interval(*sides, LEVEL, bins=bins)
        exact = naive.change_of_binned_error(old(z), new(z), y, w, bins, NormalDist().inv_cdf((1 + LEVEL) / 2))
        assert (found.lower, found.upper) == pytest.approx((max(exact[0], -1), min(exact[1], 1)), abs=1e-9)


def test_a_change_has_the_interval_of_its_bins_where_rows_are_the_same():
    rng = np.random.default_rng(2)
    z = rng.uniform(0.2, 0.8, 800)
    y = (rng.random(800) < z).astype(int)
    sides = [Predictions.from_scores(each, y) for each in (z + 0.2, z)]
    found = answers(*sides, ("old", "new"), bins=[10, 3000], metrics=["ece", "equal_mass_ece"])
    methods = {(row.name, row.new.settings["bins"]): row.interval.method for row in found.rows}
    assert methods["ece", 10] == methods["equal_mass_ece", 10] == PAIRED_BINS
    row = next(row for row in found.rows if row.name == "equal_mass_ece")
    exact = paired_ece_interval(*sides, LEVEL, bins=10, mass=True)
    assert (row.interval, row.interval.upper < 0) == (exact, True)
    assert paired_ece_interval(*sides, LEVEL, bins=3000) is None  # too many to hold their covariances in memory
    assert methods["ece", 3000] == JOINT
    assert paired_ece_interval(sides[0], sides[0]).lower <= 0 <= paired_ece_interval(sides[0], sides[0]).upper


def test_which_is_better_is_said_by_the_log_loss_and_by_the_brier_score_where_a_score_is_certain():
    rng = np.random.default_rng(4)
    z = rng.uniform(0.1, 0.9, 1_000)
    y = (rng.random(1_000) < z).astype(int)
    sharp = np.where((z < 0.15) & (y == 0), 0.0, z)
    for make, names in (
        (Predictions.from_scores, ("nll", "brier_score")),
        (Predictions.from_confidence, ("top_label_nll", "top_label_brier_score")),
    ):
        for after, name in zip((z, sharp), names, strict=True):
            sides = make(z**1.5, y), make(after, y)
            old, new, spread = score_change(*sides, LEVEL, paired=True)
            assert (old.name, new.name, spread.method) == (name, name, PAIRED)
            assert spread.lower <= float(new.value) - float(old.value) <= spread.upper < 0
            assert spread == answers(*sides, ("old", "new"), metrics=name)[name].interval
            assert score_change(*sides, LEVEL, paired=False)[2].method == UNPAIRED


def test_two_scores_for_the_same_samples_share_what_depends_on_outcomes_alone():
    rng = np.random.default_rng(0)
    z = rng.random(300)
    y = rng.random(300) < z
    old, new = Predictions.from_scores(z, y), Predictions.from_scores(z**2, y)
    found = answers(old, new, ("old", "new"), metrics="all")
    spreads = {row.name: row.interval for row in found.rows}
    assert [(spreads[name].lower, spreads[name].upper) for name in ("base_rate", "brier_uncertainty")] == [(0, 0)] * 2
    assert spreads["accuracy"].lower < spreads["accuracy"].upper


def test_other_weights_are_no_shared_base_rate():
    z, y = np.linspace(0.1, 0.9, 40), np.tile([0, 1], 20)
    old, new = (Predictions.from_scores(z, y, np.where(y == 1, heavy, 1.0)) for heavy in (1.0, 5.0))
    sides = [
        Estimate("base_rate", value, 40, {}, Interval(value - 0.1, value + 0.1, 0.975, "x")) for value in (0.5, 0.8)
    ]
    assert difference_interval(*sides, old, new, LEVEL, paired=True).method == JOINT
    left_out = [Predictions.from_scores(z, y, np.arange(40) != place) for place in (0, 39)]  # as many, other samples
    assert difference_interval(*sides, *left_out, LEVEL, paired=True).method == JOINT


def test_a_loss_that_may_be_infinite_is_not_compared_as_if_it_were_not():
    rng = np.random.default_rng(0)
    z = rng.uniform(0.1, 0.9, 300)
    y = (rng.random(300) < z).astype(int)
    sharp = np.where((y == 0) & (np.arange(300) < 60), 0.0, z)
    found = answers(Predictions.from_scores(z, y), Predictions.from_scores(sharp, y), ("a", "b"))
    row = found["nll"]
    assert row.interval.method == JOINT
    assert row.interval.upper == math.inf


def test_few_of_one_outcome_or_few_that_are_misplaced_leave_auroc_to_its_two_intervals():
    rng = np.random.default_rng(0)
    for positives, shift, method in ((5, 1.0, JOINT), (100, 4.0, JOINT), (100, 1.0, PAIRED)):
        y = np.r_[np.ones(positives), np.zeros(400)].astype(int)
        x = rng.normal(size=y.size) + shift * y
        sides = [Predictions.from_scores(1 / (1 + np.exp(-each)), y) for each in (x, x + rng.normal(size=y.size) / 2)]
        assert answers(*sides, ("a", "b"), metrics="auroc")["auroc"].interval.method == method
