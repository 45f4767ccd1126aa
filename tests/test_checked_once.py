"""An array is checked when it comes in, and the numerics inside do not check it again."""

import sys
import threading
from collections import Counter
from types import FrameType

import numpy as np
import pytest

import certcal
from certcal import Predictions
from certcal._base import checks
from certcal.smoothing import Counts
from certcal.worst_case import intervals

CHECKS = (
    checks.confidences,
    checks.correctness,
    checks.weights,
    checks.probability_matrix,
    checks.logit_matrix,
    checks.labels,
    intervals.check_intervals,
)
CODES = {check.__code__: check.__name__ for check in (*CHECKS, checks.to_numpy)}
SAMPLES, CERTIFIED = 300, 60


class Count:
    """Calls of each check, and conversions to NumPy of arrays with an entry per sample."""

    def __init__(self, n: int) -> None:
        self.n, self.checks, self.conversions = n, Counter[str](), 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_code not in CODES:
            return
        given = frame.f_locals.get("value", ())
        if frame.f_code is checks.to_numpy.__code__:
            self.conversions += np.shape(given)[:1] == (self.n,)
        elif given is not None:
            self.checks[CODES[frame.f_code]] += 1


@pytest.fixture
def count_of():
    def count(n, question):
        found = Count(n)
        sys.setprofile(found)
        threading.setprofile(found)
        try:
            question()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return found

    return count


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def scores(rng):
    z = rng.random(SAMPLES)
    return z, (rng.random(SAMPLES) < z).astype(np.int64), rng.random(SAMPLES)


@pytest.fixture(scope="module")
def counts(rng):
    draws, grid = rng.beta(50, 0.5, (CERTIFIED, 400)), np.linspace(0.01, 0.99, 99)
    return Counts.from_confidences(draws, grid, votes=[400, 390, 210] * (CERTIFIED // 3), sigma=0.5)


@pytest.mark.parametrize("verb", [certcal.measure, certcal.bound])
def test_scores_and_outcomes_are_checked_at_most_twice(verb, scores, count_of):
    z, y, _ = scores
    found = count_of(SAMPLES, lambda: verb(Predictions.from_scores(z, y)))
    assert 1 <= found.checks["confidences"] <= 2
    assert 1 <= found.checks["correctness"] <= 2
    assert found.conversions <= 4


def test_weights_are_checked_at_most_twice(scores, count_of):
    z, y, w = scores
    for verb in (certcal.measure, certcal.bound):
        found = count_of(SAMPLES, lambda verb=verb: verb(Predictions.from_scores(z, y, w)))
        assert found.checks["weights"] <= 2
        assert found.conversions <= 6


@pytest.mark.parametrize("bounds", [False, True])
def test_predictions_are_measured_without_another_check_and_bounded_with_one(bounds, scores, rng, count_of):
    z, y, _ = scores
    matrix, labels = rng.dirichlet(np.ones(4), SAMPLES), rng.integers(0, 4, SAMPLES)
    for given in (
        Predictions.from_scores(z, y),
        Predictions.from_confidence(z, y),
        Predictions.from_probabilities(matrix, labels),
        Predictions.from_logits(np.log(matrix) * 2, labels),
    ):
        found = count_of(SAMPLES, lambda given=given: certcal.measure(given, bounds=bounds))
        most = {"confidences": 1, "correctness": 1} if bounds else {}
        assert dict(found.checks) == most
        assert found.conversions == sum(most.values())


def test_classwise_and_perturbed_bounds_check_an_array_once(rng, count_of):
    matrix, labels = rng.dirichlet(np.ones(4), SAMPLES), rng.integers(0, 4, SAMPLES)
    given = Predictions.from_probabilities(matrix, labels)
    found = count_of(SAMPLES, lambda: certcal.bound(given, classwise=True))
    assert dict(found.checks) == {"confidences": 1, "correctness": 1, "probability_matrix": 1, "labels": 1}
    found = count_of(SAMPLES, lambda: certcal.bound(given, perturb=0.1))
    assert dict(found.checks) == {"confidences": 1, "correctness": 1}


def test_the_intervals_of_each_radius_are_checked_once(counts, count_of):
    certcal.certify(counts, radii=[0.25])  # what is loaded and compiled first is not counted
    for kinds, radii in ((1, [0.25]), (1, [0.25, 0.5, 0.75]), (5, [0.25])):
        asked = {"radii": radii, "kind": "all" if kinds > 1 else "tangent"}
        found = count_of(CERTIFIED, lambda asked=asked: certcal.certify(counts, **asked))
        made = kinds * len(radii)
        assert found.checks["check_intervals"] == made
        assert found.checks["confidences"] == 2 * made  # both ends
        assert found.checks["correctness"] == 2 * made  # and which samples are certified
        assert found.conversions <= 2 * 4 * made + 8


def test_a_table_of_intervals_is_checked_at_most_twice(scores, count_of):
    z, y, _ = scores
    lower, upper = np.clip(z[:CERTIFIED] - 0.05, 0, 1), np.clip(z[:CERTIFIED] + 0.05, 0, 1)
    table = {"lower": lower, "upper": upper, "correct": y[:CERTIFIED], "radius": np.full(CERTIFIED, 0.25)}
    found = count_of(CERTIFIED, lambda: certcal.certify(table))
    assert found.checks["check_intervals"] == 1
    assert found.checks["confidences"] == 2
    assert found.checks["correctness"] <= 2
    assert found.conversions <= 2 * len(table)
