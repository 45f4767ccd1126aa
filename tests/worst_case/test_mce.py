"""The worst-case maximum calibration error: exact against brute force, and attained."""

from itertools import product

import numpy as np
import pytest

from certcal.binning import bin_table, equal_width_edges
from certcal.metrics import mce as plain_mce
from certcal.worst_case import WorstCase, calibration_error, mce
from tests.worst_case import naive

EXACT = 1e-12
ATTAINED = 1e-9


def worst(p: naive.Problem) -> WorstCase:
    return mce(*p.arguments, **p.options)


def assert_attained(p: naive.Problem) -> None:
    result = worst(p)
    assert ((result.witness >= p.lower) & (result.witness <= p.upper)).all()
    assert plain_mce(result.witness, p.correct, **p.options) == pytest.approx(result.value, abs=ATTAINED)
    table = bin_table(result.witness, p.correct, p.edges, p.closed)
    assert result.bins is not None
    used = result.bins.count > 0
    assert result.bins.count[used].tolist() == table.count[table.count > 0].tolist()


def largest_mean(p: naive.Problem) -> float:
    """For every bin and sign, every subset of the samples that can but need not be in it."""
    gains, best = naive.gains(p), -1.0
    for m, k in product(range(p.bins), (0, 1)):
        can = [i for i in range(p.n) if np.isfinite(gains[i, m, k])]
        must = [i for i in can if np.isfinite(gains[i, :, k]).sum() == 1]
        may = [i for i in can if i not in must]
        for taken in product((False, True), repeat=len(may)):
            group = must + [i for i, yes in zip(may, taken, strict=True) if yes]
            if group:
                best = max(best, float(np.mean(gains[group, m, k])))
    return best


@pytest.mark.parametrize("start", range(0, 84, 21))
def test_the_value_is_the_largest_over_all_ends_of_all_bins(start: int) -> None:
    for seed in range(start, start + 21):
        p = naive.instance(seed, n=4, bins=4)
        assert worst(p).value == pytest.approx(naive.worst_by_points(p, naive.mce_at), abs=EXACT), seed
        assert_attained(p)


@pytest.mark.parametrize("start", range(0, 84, 42))
def test_the_value_is_the_largest_mean_over_all_subsets_of_every_bin(start: int) -> None:
    for seed in range(start, start + 42):
        p = naive.instance(seed, n=7, bins=6)
        assert worst(p).value == pytest.approx(largest_mean(p), abs=EXACT), seed
        assert_attained(p)


def test_many_samples_and_bins_are_attained_and_not_exceeded() -> None:
    random = np.random.default_rng(2)
    ends = np.sort(random.integers(0, 41, (2, 300)) / 40, axis=0)
    for bins, closed in product((1, 10, 300), ("left", "right")):
        p = naive.problem(ends[0], ends[1], random.integers(0, 2, 300), equal_width_edges(bins), closed)
        assert_attained(p)
        for seed in range(10):
            assert plain_mce(naive.feasible(p, seed), p.correct, **p.options) <= worst(p).value + EXACT


def test_samples_that_cannot_leave_a_bin_dilute_its_gap() -> None:
    # The second sample must stay in [.5, 1] with gap .1; the first avoids it below .5 unless it starts there too.
    p = naive.problem([0.4, 0.9], [0.6, 0.9], [1, 1], [0, 0.5, 1])
    assert worst(p).value == pytest.approx(0.6, abs=EXACT)
    stuck = naive.problem([0.5, 0.9], [0.6, 0.9], [1, 1], [0, 0.5, 1])
    assert worst(stuck).value == pytest.approx(0.3, abs=EXACT)


def test_points_give_the_plain_error() -> None:
    for seed in range(30):
        p = naive.instance(seed)
        p = naive.problem(p.lower, p.lower, p.correct, p.edges, p.closed)
        assert worst(p).value == pytest.approx(plain_mce(p.lower, p.correct, **p.options), abs=EXACT)


def test_the_maximum_is_never_below_the_mean() -> None:
    for seed in range(40):
        p = naive.instance(seed)
        assert worst(p).value >= calibration_error(*p.arguments, **p.options).value - EXACT


def test_certified_samples_are_counted_alone_and_all_samples_with_the_others_free() -> None:
    for seed in range(63):
        p = naive.instance(seed, n=4, bins=3)
        mask = np.random.default_rng(seed).random(p.n) < 0.6
        mask[0] = True
        result = mce(*p.arguments, **p.options, certified=mask)
        alone = worst(p.select(mask))
        assert result.value == alone.value
        assert result.n == mask.sum()
        assert np.isnan(result.witness).tolist() == (~mask).tolist()
        free = result.all_samples
        assert free is not None
        expected = naive.worst_by_points(p, naive.mce_at, mask.tolist())
        assert free.value == pytest.approx(expected, abs=EXACT), seed
        attained = [plain_mce(free.witness, np.where(mask, p.correct, c), **p.options) for c in (0, 1)]
        assert max(attained) == pytest.approx(expected, abs=ATTAINED), seed


def test_a_free_sample_reaches_the_closed_point_bin_at_zero() -> None:
    # Bins closed on the right: [0, 0] and (0, 1]. The free sample is alone at exactly 0, correct: a gap of one.
    edges = [0, 0, 1]
    free = mce([0.5, 0.5], [0.5, 0.5], [1, 1], edges=edges, closed="right", certified=[1, 0]).all_samples
    assert free is not None
    assert free.value == pytest.approx(1, abs=EXACT)
    assert plain_mce(free.witness, [1, 1], edges=edges, closed="right") == pytest.approx(1, abs=ATTAINED)
