from __future__ import annotations

import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

from certcal.worst_case import calibration_error, ks_error, population_bound
from certcal.worst_case.baselines import AdmmSettings, admm


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
    assert abs(Fraction(result.value) - exact) <= Fraction(result.rounding)
    assert Fraction(Decimal(result.text)) >= exact


def test_many_different_intervals_sum_to_the_last_digits():
    rng = np.random.default_rng(0)
    lower = rng.random(300_000)
    result = calibration_error(lower, lower, np.zeros(lower.size), bins=3)
    assert result.value == pytest.approx(math.fsum(lower) / lower.size, rel=4e-16)


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
    truth = calibration_error(*draw(2_000_000, 99)).value
    for seed in range(3):
        samples = draw(7_000, seed)
        exact = population_bound(calibration_error(*samples))
        found = admm(*samples, steps=300, settings=AdmmSettings(initial="clean")).value
        assert found < calibration_error(*samples).value
        assert exact.value >= truth
        assert found + exact.terms["deviation"] < truth - 0.005
