"""Worst cases where some intervals do not hold: every choice of samples that fail and of signs, one by one."""

from dataclasses import replace

import numpy as np
import pytest

from certcal import InputError
from certcal.worst_case import SignProgram, calibration_error, equal_mass_error, ks_error
from tests.worst_case import naive

# What the grid of ends and the places of the floor may add.
CLOSE = 1e-6


def cases():
    """Small problems with one to three failing samples, a third of them with free samples beside."""
    for seed in range(60):
        p = naive.instance(seed, n=7, bins=5)
        certified = np.ones(p.n, bool)
        if seed % 3 == 0 and p.n > 1:
            certified[: p.n // 3] = False
        yield p, 1 + seed % 3, certified


def test_the_bound_is_never_below_the_worst_choice_of_failing_samples_and_mostly_is_that() -> None:
    excess = []
    for p, failing, certified in cases():
        worst = calibration_error(*p.arguments, **p.options, certified=certified).all_samples
        assert worst is not None
        truth, found = naive.worst_with_failing(p, failing, certified), worst.with_failing(failing)
        assert found >= truth - 1e-12  # the twin rounds, too
        assert found >= worst.value - 1e-12
        assert worst.with_failing(failing - 1) <= found + CLOSE
        excess.append(found / truth - 1)
    assert np.mean(np.array(excess) < CLOSE) > 0.9
    assert max(excess) < 0.1


def test_it_is_about_the_samples_that_the_value_is_about() -> None:
    rng = np.random.default_rng(0)
    low, high = np.sort(rng.random((2, 40)), axis=0)
    correct, certified = rng.integers(0, 2, 40), rng.random(40) < 0.6
    worst = calibration_error(low, high, correct, certified=certified)
    alone = calibration_error(low[certified], high[certified], correct[certified])
    assert worst.with_failing(3) == alone.with_failing(3)
    assert worst.with_failing(0) == worst.value
    assert worst.all_samples.with_failing(40) == 1.0  # pyright: ignore[reportOptionalMemberAccess]


def test_pieces_and_copies_give_the_same_bound() -> None:
    rng = np.random.default_rng(1)
    low, high = np.sort(rng.random((2, 200)), axis=0)
    correct, program = rng.integers(0, 2, 200), SignProgram()
    for rows in np.array_split(rng.permutation(200), 3):
        program.add(low[rows], high[rows], correct[rows])
    whole = calibration_error(low, high, correct)
    assert program.result().with_failing(5) == whole.with_failing(5) == replace(whole).with_failing(5)


def test_equal_mass_bins_pay_each_failing_sample_what_its_end_allows() -> None:
    low, high, correct = np.full(20, 0.7), np.full(20, 0.8), np.arange(20) % 4 > 0
    few = [equal_mass_error(low, high, correct, 1, failing=k, trials=0).value for k in (0, 5, 6)]
    assert few[1] - few[0] == pytest.approx(5 * 1.7 / 20)  # the five that are wrong
    assert few[2] - few[1] == pytest.approx(1.2 / 20)
    assert few[1] >= calibration_error(low, high, correct, 1).with_failing(5) - CLOSE


def test_mistakes_are_answered_in_a_sentence() -> None:
    with pytest.raises(InputError, match="failing is -1"):
        calibration_error([0.1], [0.2], [1]).with_failing(-1)
    with pytest.raises(InputError, match="has no such bound; ask for that of calibration_error"):
        ks_error([0.1], [0.2], [1]).with_failing(1)
