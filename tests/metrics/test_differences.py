"""Intervals of differences: they cover the population's difference, paired or not, and not if they were narrower."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import Predictions
from certcal.claims import Estimate, Interval
from certcal.metrics import METRICS, auroc
from certcal.metrics.differences import (
    JOINT,
    PAIRED,
    UNPAIRED,
    contributions,
    difference_interval,
    joint_interval,
    joint_level,
)
from certcal.verbs.changes import answers

LEVEL = 0.95
BRIER, NLL = (METRICS[name] for name in ("top_label_brier_score", "top_label_nll"))


def estimates(entry, predictions):
    arrays, options = entry.arguments(predictions)
    return Estimate(entry.name, entry.function(*arrays, sample_weight=predictions.sample_weight, **options), 9)


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


@pytest.mark.parametrize("miscalibration", [0.0, 0.03, 0.15])
def test_the_interval_of_a_difference_of_calibration_errors_covers_near_zero_and_far(miscalibration):
    rng, n, covered, times = np.random.default_rng(2), 500, 0, 80
    for _ in range(times):
        z = rng.uniform(0.2, 0.8, n)
        y = (rng.random(n) < z).astype(int)
        old, new = Predictions.from_confidence(z, y), Predictions.from_confidence(z + miscalibration, y)
        row = answers(old, new, ("old", "new"), metrics="ece", bins=10)["ece"]
        assert row.interval.method == JOINT
        covered += row.interval.lower <= miscalibration <= row.interval.upper  # old is calibrated
    assert covered / times >= LEVEL - 0.02


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
