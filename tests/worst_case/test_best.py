"""Best cases: a proved lower end, a true minimum, and a value that is attained, in this order."""

import re
from typing import Any

import numpy as np
import pytest

from certcal.metrics import ece
from certcal.metrics import ks_error as plain_ks_error
from certcal.worst_case import WorstCase, brier_score, calibration_error, ks_error, nll
from tests.worst_case import naive

ROUNDING = 1e-12


def bracket(p: naive.Problem, **more: Any) -> WorstCase:
    return calibration_error(*p.arguments, **p.options, best=True, **more)


def lower_end(result: WorstCase) -> float:
    assert result.lower_end is not None
    return result.lower_end


def claimed(sentence: str) -> float:
    """The number after "at least"."""
    found = re.search(r"at least (\d\.\d+)", sentence)
    assert found is not None
    return float(found[1])


@pytest.mark.parametrize("start", range(0, 126, 42))
def test_the_smallest_calibration_error_is_inside_its_bracket(start: int) -> None:
    for seed in range(start, start + 42):
        p = naive.instance(seed, n=5, bins=4)
        result, smallest = bracket(p), naive.best_by_assignment(p)
        assert lower_end(result) <= smallest + ROUNDING, seed
        assert smallest <= result.value + ROUNDING, seed
        assert ((result.witness >= p.lower) & (result.witness <= p.upper)).all()
        assert ece(result.witness, p.correct, **p.options) == pytest.approx(result.value, abs=ROUNDING)
        assert result.extreme == "lowest"


def test_the_smallest_ks_error_is_inside_its_bracket() -> None:
    for seed in range(28):
        p = naive.instance(seed, n=3)
        result, smallest = ks_error(*p.arguments, best=True), naive.best_ks_by_orders(p)
        assert lower_end(result) <= smallest + 1e-9, seed
        assert smallest <= result.value + 1e-9, seed
        assert ((result.witness >= p.lower) & (result.witness <= p.upper)).all()
        assert plain_ks_error(result.witness, p.correct) == pytest.approx(result.value, abs=ROUNDING)


def test_no_feasible_confidences_are_below_the_proved_lower_end() -> None:
    for seed in range(60):
        p = naive.instance(seed)
        z = naive.feasible(p, seed)
        assert ece(z, p.correct, **p.options) >= lower_end(bracket(p)) - ROUNDING
        assert plain_ks_error(z, p.correct) >= lower_end(ks_error(*p.arguments, best=True)) - ROUNDING


def test_the_lower_end_is_the_largest_over_signs_of_the_smallest_signed_sum() -> None:
    for seed in range(80):
        p = naive.instance(seed)
        expected = max(0.0, -float(naive.worth_by_pattern(p).mean(axis=1).min()))
        assert lower_end(bracket(p)) == pytest.approx(expected, abs=ROUNDING), seed


def test_the_lower_end_says_something_when_confidences_are_stuck_in_their_bins() -> None:
    p = naive.problem([0.5, 0.85], [0.6, 0.9], [0, 1], [0, 0.7, 1])
    assert lower_end(bracket(p)) == pytest.approx((0.5 + 0.1) / 2, abs=ROUNDING)
    assert bracket(p).value == pytest.approx((0.5 + 0.1) / 2, abs=ROUNDING)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_points_close_the_bracket_at_the_plain_error(dtype: Any) -> None:
    for seed in range(30):
        p = naive.instance(seed)
        z = p.lower.astype(dtype)
        p = naive.problem(z, z, p.correct, p.edges, p.closed, dtype)
        result, plain = bracket(p), ece(z, p.correct, **p.options)
        assert lower_end(result) == pytest.approx(plain, abs=1e-7)
        assert result.value == pytest.approx(plain, abs=1e-7)
        ks, plain = ks_error(z, z, p.correct, best=True), plain_ks_error(z, p.correct)
        assert lower_end(ks) == pytest.approx(plain, abs=ROUNDING)
        assert ks.value == pytest.approx(plain, abs=ROUNDING)


def test_a_float32_point_on_an_edge_is_in_the_bin_of_its_type() -> None:
    z = np.array([0.7, 0.65], np.float32)
    result = calibration_error(z, z, [1, 0], bins=10, best=True)
    assert result.value == pytest.approx(ece(z, [1, 0], bins=10), abs=1e-7)
    assert lower_end(result) == pytest.approx(result.value, abs=1e-7)


def test_intervals_around_a_calibrated_point_reach_zero() -> None:
    result = calibration_error([0.4] * 4, [0.6] * 4, [1, 0, 1, 0], bins=3, best=True)
    assert result.value == pytest.approx(0, abs=ROUNDING)
    assert lower_end(result) == 0


def test_best_is_never_above_worst() -> None:
    for seed in range(60):
        p = naive.instance(seed)
        assert bracket(p).value <= calibration_error(*p.arguments, **p.options).value + ROUNDING
        assert ks_error(*p.arguments, best=True).value <= ks_error(*p.arguments).value + ROUNDING


def test_a_mask_brackets_the_certified_samples_only() -> None:
    for seed in range(20):
        p = naive.instance(seed)
        mask = np.random.default_rng(seed).random(p.n) < 0.6
        mask[0] = True
        for result, alone in (
            (bracket(p, certified=mask), bracket(p.select(mask))),
            (
                ks_error(*p.arguments, certified=mask, best=True),
                ks_error(*p.select(mask).arguments, best=True),
            ),
        ):
            assert result.value == alone.value
            assert result.lower_end == alone.lower_end
            assert result.n == mask.sum()
            np.testing.assert_array_equal(np.isnan(result.witness), ~mask)
            np.testing.assert_array_equal(result.witness[mask], alone.witness)


def test_the_sentence_claims_no_more_than_what_is_proved() -> None:
    # The smallest KS calibration error of this problem is 1/12, and 1/4 is what the search found.
    p = naive.instance(8, n=3)
    result = ks_error(*p.arguments, best=True)
    assert naive.best_ks_by_orders(p) < result.value - 0.1
    assert claimed(result.sentence) <= lower_end(result)
    assert float(result.text) <= lower_end(result)
    assert result.to_dict()["lower_end"] == lower_end(result)
    for seed in range(40):
        p = naive.instance(seed, n=5, bins=4)
        assert claimed(bracket(p).sentence) <= naive.best_by_assignment(p) + ROUNDING, seed


@pytest.mark.parametrize("metric", [brier_score, nll])
def test_exact_best_cases_claim_their_value_rounded_down(metric: Any) -> None:
    result = metric([0.2, 0.3], [2 / 3, 2 / 3], [1, 0], best=True)
    assert claimed(result.sentence) <= result.value <= claimed(result.sentence) + 1e-4
    assert result.to_dict()["lower_end"] == result.value
