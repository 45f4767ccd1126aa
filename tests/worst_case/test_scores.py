"""Worst and best Brier score and log loss: closed forms, and no feasible confidences beyond them."""

import math
from typing import Any

import numpy as np
import pytest

from certcal.metrics import top_label_brier_score, top_label_nll
from certcal.worst_case import brier_score, nll
from tests.worst_case import naive

PLAIN = {brier_score: top_label_brier_score, nll: top_label_nll}
BOTH = pytest.mark.parametrize("metric", [brier_score, nll])


def inside(seed: int, n: int = 30) -> naive.Problem:
    """Intervals strictly inside [0, 1], so that log losses are finite."""
    random = np.random.default_rng(seed)
    ends = np.sort(0.01 + 0.98 * random.random((2, n)), axis=0)
    return naive.problem(ends[0], ends[1], random.integers(0, 2, n))


def test_the_worst_brier_score_is_the_closed_form_of_theorem_3_3() -> None:
    for seed in range(20):
        p = inside(seed)
        triples = [(float(a), float(b), int(c)) for a, b, c in zip(*p.arguments, strict=True)]
        expected = math.fsum((1 - a) ** 2 if c else b**2 for a, b, c in triples) / p.n
        assert brier_score(*p.arguments).value == pytest.approx(expected, abs=1e-14)
        best = math.fsum((1 - b) ** 2 if c else a**2 for a, b, c in triples) / p.n
        assert brier_score(*p.arguments, best=True).value == pytest.approx(best, abs=1e-14)


def test_the_worst_log_loss_is_its_closed_form() -> None:
    for seed in range(20):
        p = inside(seed)
        triples = [(float(a), float(b), int(c)) for a, b, c in zip(*p.arguments, strict=True)]
        expected = math.fsum(-math.log(a) if c else -math.log1p(-b) for a, b, c in triples) / p.n
        assert nll(*p.arguments).value == pytest.approx(expected, rel=1e-13)
        best = math.fsum(-math.log(b) if c else -math.log1p(-a) for a, b, c in triples) / p.n
        assert nll(*p.arguments, best=True).value == pytest.approx(best, rel=1e-13)


@BOTH
def test_no_feasible_confidences_are_beyond_the_worst_or_the_best(metric: Any) -> None:
    for seed in range(40):
        p = inside(seed)
        worst, best = metric(*p.arguments), metric(*p.arguments, best=True)
        plain = PLAIN[metric](naive.feasible(p, seed), p.correct)
        assert best.value - 1e-12 <= plain <= worst.value + 1e-12


@BOTH
@pytest.mark.parametrize("best", [False, True])
def test_the_witness_is_feasible_and_attains_the_value(metric: Any, best: bool) -> None:
    for seed in range(10):
        p = inside(seed)
        result = metric(*p.arguments, best=best)
        assert ((result.witness >= p.lower) & (result.witness <= p.upper)).all()
        assert PLAIN[metric](result.witness, p.correct) == pytest.approx(result.value, rel=1e-12)
        assert result.extreme == ("lowest" if best else "highest")
        assert result.signs is None
        assert result.bins is None
        assert result.n == p.n


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_floats_are_taken_exactly(metric: Any, dtype: Any) -> None:
    p = inside(1)
    lower, upper = p.lower.astype(dtype), p.upper.astype(dtype)
    assert metric(lower, upper, p.correct).value == metric(lower.astype(float), upper.astype(float), p.correct).value


@BOTH
def test_points_give_the_plain_score(metric: Any) -> None:
    p = inside(2)
    for best in (False, True):
        value = metric(p.lower, p.lower, p.correct, best=best).value
        assert value == pytest.approx(PLAIN[metric](p.lower, p.correct), rel=1e-12)


def test_the_log_loss_is_infinite_when_certainty_can_be_wrong() -> None:
    assert nll([0.0], [0.5], [1]).value == math.inf
    assert nll([0.5], [1.0], [0]).value == math.inf
    assert nll([0.0, 0.2], [1.0, 0.2], [1, 0], best=True).value == pytest.approx(-math.log(0.8) / 2)
    assert nll([0.5], [1.0], [1]).value == pytest.approx(math.log(2))


def test_uncertified_samples_cost_one_at_most_and_nothing_at_least() -> None:
    p = inside(3, n=10)
    mask = np.arange(10) < 6
    worst, best = (brier_score(*p.arguments, certified=mask, best=best) for best in (False, True))
    alone = brier_score(*p.select(mask).arguments)
    assert worst.value == pytest.approx(alone.value, abs=1e-15)
    assert worst.n == 6
    assert worst.all_samples is not None
    assert worst.all_samples.value == pytest.approx((6 * alone.value + 4) / 10, abs=1e-14)
    assert best.all_samples is not None
    assert best.all_samples.value == pytest.approx(6 * best.value / 10, abs=1e-14)
    assert np.isnan(worst.witness).tolist() == (~mask).tolist()
    attained = top_label_brier_score(worst.all_samples.witness, np.where(mask, p.correct, 0))
    assert attained == pytest.approx(worst.all_samples.value, abs=1e-12)
    attained = top_label_brier_score(best.all_samples.witness, np.where(mask, p.correct, 1))
    assert attained == pytest.approx(best.all_samples.value, abs=1e-12)


def test_one_uncertified_sample_makes_the_log_loss_over_all_infinite() -> None:
    p = inside(4, n=5)
    some = nll(*p.arguments, certified=[1, 1, 1, 1, 0])
    assert math.isfinite(some.value)
    assert some.all_samples is not None
    assert some.all_samples.value == math.inf
    everyone = nll(*p.arguments, certified=[1] * 5)
    assert everyone.all_samples is not None
    assert everyone.all_samples.value == pytest.approx(everyone.value)
