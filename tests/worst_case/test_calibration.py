"""The worst-case calibration error: exact against enumeration, brute force and branch and bound, and attained."""

from typing import Any

import numpy as np
import pytest

from certcal import InputError, metrics
from certcal.binning import bin_table, equal_mass_edges, equal_width_edges
from certcal.metrics import ece
from certcal.worst_case import WorstCase, calibration_error, mce, population_bound
from certcal.worst_case import _program as module
from tests.worst_case import naive

EXACT = 1e-12
ATTAINED = 1e-9
PLAIN = {calibration_error: metrics.ece, mce: metrics.mce}


def worst(p: naive.Problem, **more: Any) -> WorstCase:
    return calibration_error(*p.arguments, **p.options, **more)


def assert_attained(result: WorstCase, p: naive.Problem) -> None:
    """The witness is inside the intervals, its plain error is the value, and ``bins`` are its bins."""
    z = result.witness
    assert ((z >= p.lower) & (z <= p.upper)).all()
    assert ece(z, p.correct, **p.options) == pytest.approx(result.value, abs=ATTAINED)
    table = bin_table(z, p.correct, p.edges, p.closed)
    assert result.bins is not None
    used, expected = result.bins.count > 0, table.count > 0
    np.testing.assert_array_equal(result.bins.count[used], table.count[expected])
    np.testing.assert_array_equal(result.bins.correct_sum[used], table.correct_sum[expected])
    np.testing.assert_allclose(result.bins.confidence_sum[used], table.confidence_sum[expected], atol=EXACT)
    # In every bin that is used the sign is that of the gap: turning it would lose.
    gap = result.bins.gap_sum[used]
    assert (gap * result.signs[used] >= -ATTAINED).all()
    assert np.abs(gap).sum() / result.n == pytest.approx(result.value, abs=ATTAINED)


# ----------------------------------------------------------------------------------------------------------- exactness


def test_the_worked_example_of_appendix_e2_is_nine_tenths() -> None:
    p = naive.problem([0.1, 0.5], [0.6, 0.9], [1, 0], equal_width_edges(3))
    result = calibration_error(*p.arguments, bins=3)
    assert 0.9 <= result.value <= 0.9 + 1e-14
    assert result.witness.tolist() == [0.1, 0.9]
    assert result.signs is not None
    assert result.signs[0] == 1
    assert result.signs[2] == -1
    assert_attained(result, p)
    for twin in (naive.worst_by_signs, naive.worst_by_points, naive.worst_by_runs):
        assert twin(p) == pytest.approx(0.9, abs=1e-15)
    assert naive.worst_by_mip(p) == pytest.approx(0.9, abs=1e-6)


@pytest.mark.parametrize("start", range(0, 420, 42))
def test_the_value_is_the_largest_over_all_sign_patterns_and_the_witness_attains_it(start: int) -> None:
    for seed in range(start, start + 42):
        p = naive.instance(seed)
        result = worst(p)
        assert result.value == pytest.approx(naive.worst_by_signs(p), abs=EXACT), seed
        assert_attained(result, p)


@pytest.mark.parametrize("closed", ["left", "right"])
def test_the_value_is_the_largest_over_all_sign_patterns_for_eight_bins_and_many_samples(closed: str) -> None:
    random = np.random.default_rng(11)
    for edges in (equal_width_edges(8), np.concatenate(([0], np.sort(random.random(7)), [1]))):
        ends = np.sort(random.random((2, 200)), axis=0)
        p = naive.problem(ends[0], ends[1], random.integers(0, 2, 200), edges, closed)
        result = worst(p)
        assert result.value == pytest.approx(naive.worst_by_signs(p), abs=EXACT)
        assert_attained(result, p)


@pytest.mark.parametrize("start", range(0, 80, 20))
def test_the_value_is_the_largest_over_all_ends_of_all_bins(start: int) -> None:
    for seed in range(start, start + 20):
        p = naive.instance(seed, n=4, bins=4)
        assert worst(p).value == pytest.approx(naive.worst_by_points(p), abs=EXACT), seed


def test_the_value_is_that_of_the_printed_mixed_integer_program() -> None:
    # The printed program closes a bin to samples that touch it in one point only, so intervals have some width here.
    for seed in range(0, 7 * 24, 7):
        p = naive.instance(seed, n=6, bins=4)
        if seed % 3 < 2:
            assert naive.worst_by_mip(p) == pytest.approx(worst(p).value, abs=1e-6), seed


def test_bins_default_to_fifteen_closed_on_the_left() -> None:
    p = naive.instance(21)
    given = calibration_error(*p.arguments)
    assert given.value == calibration_error(*p.arguments, edges=equal_width_edges(15), closed="left").value
    assert dict(given.settings) == {"bins": 15, "closed": "left"}
    assert given.n == p.n


# --------------------------------------------------------------------------------------------------------- degenerate


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("correct", [0, 1])
def test_one_sample_gives_its_largest_gap(correct: int, closed: str) -> None:
    for lower, upper in [(0.2, 0.7), (0.0, 1.0), (0.5, 0.5), (0.0, 0.0), (1.0, 1.0), (1 / 3, 2 / 3)]:
        result = calibration_error([lower], [upper], [correct], bins=3, closed=closed)
        assert result.value == pytest.approx(max(abs(correct - lower), abs(correct - upper)), abs=EXACT)
        assert_attained(result, naive.problem([lower], [upper], [correct], equal_width_edges(3), closed))


def test_one_bin_moves_all_samples_down_or_all_up() -> None:
    random = np.random.default_rng(3)
    ends = np.sort(random.random((2, 50)), axis=0)
    c = random.integers(0, 2, 50)
    expected = max(np.mean(c - ends[0]), -np.mean(c - ends[1]))
    p = naive.problem(ends[0], ends[1], c)
    result = calibration_error(*p.arguments, bins=1)
    assert result.value == pytest.approx(expected, abs=EXACT)
    assert_attained(result, p)


@pytest.mark.parametrize("closed", ["left", "right"])
def test_unlimited_intervals_reach_one_when_two_bins_can_be_told_apart(closed: str) -> None:
    c = np.array([1, 0, 1, 1, 0])
    for bins in (2, 3, 15):
        result = calibration_error(np.zeros(5), np.ones(5), c, bins=bins, closed=closed)
        assert result.value == pytest.approx(1, abs=EXACT)
        assert_attained(result, naive.problem(np.zeros(5), np.ones(5), c, equal_width_edges(bins), closed))


@pytest.mark.parametrize("closed", ["left", "right"])
def test_a_point_on_an_edge_belongs_to_one_bin_only(closed: str) -> None:
    # One half is an edge. A correct and an incorrect sample at it share their bin with one of the two neighbours.
    p = naive.problem([0.5, 0.4, 0.6], [0.5, 0.4, 0.6], [1, 0, 0], [0, 0.5, 1], closed)
    expected = {"left": (0.4 + 0.1) / 3, "right": (0.6 + 0.1) / 3}[closed]
    assert worst(p).value == pytest.approx(expected, abs=EXACT)
    assert_attained(worst(p), p)


def test_an_upper_end_on_an_edge_opens_the_next_bin_only_when_bins_are_closed_on_the_left() -> None:
    # The wrong sample pulls bin [.5, 1] to '-'; the right one prefers it only if it can be there.
    arguments = ([0.5, 0.9, 0.0], [0.5, 0.9, 0.5], [1, 0, 0])
    values = {}
    for closed in ("left", "right"):
        p = naive.problem(*arguments, [0, 0.5, 1], closed)
        values[closed] = worst(p).value
        assert values[closed] == pytest.approx(naive.worst_by_points(p), abs=EXACT)
    assert values["left"] != pytest.approx(values["right"], abs=1e-3)


def test_the_supremum_over_a_half_open_bin_is_approached_by_a_witness_inside_it() -> None:
    # The first sample is worth 1/2 in '-' bin [0, 1/2), which does not contain 1/2; the second fixes '+' above.
    p = naive.problem([0.2, 0.5, 0.5], [0.7, 0.5, 0.5], [0, 1, 1], [0, 0.5, 1])
    result = worst(p)
    assert result.value == pytest.approx((0.5 + 1.0) / 3, abs=EXACT)
    assert result.witness[0] == np.nextafter(0.5, 0)
    mirrored = naive.problem([0.3, 0.5, 0.5], [0.8, 0.5, 0.5], [1, 0, 0], [0, 0.5, 1], "right")
    assert worst(mirrored).value == pytest.approx((0.5 + 1.0) / 3, abs=EXACT)
    assert worst(mirrored).witness[0] == np.nextafter(0.5, 1)


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("edges", [[0, 1, 1], [0, 0, 1], [0, 0, 0, 0.5, 1, 1, 1], [0, 0.5, 0.5, 0.5, 1]])
def test_repeated_edges_keep_only_the_closed_point_bin_at_the_end(edges: list[float], closed: str) -> None:
    random = np.random.default_rng(len(edges))
    for _ in range(20):
        ends = np.sort(random.choice([0, 0.25, 0.5, 0.75, 1], (2, 5)), axis=0)
        p = naive.problem(ends[0], ends[1], random.integers(0, 2, 5), edges, closed)
        assert worst(p).value == pytest.approx(naive.worst_by_signs(p), abs=EXACT)
        assert_attained(worst(p), p)


@pytest.mark.parametrize("closed", ["left", "right"])
def test_equal_mass_edges_of_tied_confidences_work(closed: str) -> None:
    random = np.random.default_rng(8)
    clean = random.choice([0.3, 0.6, 0.6, 0.9, 1.0], 40)
    edges = equal_mass_edges(clean, 8, closed)
    assert (np.diff(edges) == 0).any()
    lower, upper = np.clip(clean - 0.2, 0, 1), np.clip(clean + 0.2, 0, 1)
    p = naive.problem(lower, upper, random.integers(0, 2, 40), edges, closed)
    assert worst(p).value == pytest.approx(naive.worst_by_signs(p), abs=EXACT)
    assert_attained(worst(p), p)


@pytest.mark.parametrize("metric", [calibration_error, mce])
def test_signs_and_bins_have_one_entry_for_every_given_bin(metric: Any) -> None:
    edges = [0, 0.5, 0.5, 1]
    result = metric([0.2, 0.6], [0.3, 0.7], [1, 0], edges=edges)
    table = bin_table(result.witness, [1, 0], edges)
    assert result.settings["bins"] == 3
    assert result.bins.edges.tolist() == edges
    assert result.bins.count.tolist() == table.count.tolist()
    if result.signs is not None:
        assert result.signs.size == 3


def test_two_floats_next_to_each_other_make_a_bin() -> None:
    after = np.nextafter(0.5, 1)
    for closed in ("left", "right"):
        for seed in range(20):
            random = np.random.default_rng(seed)
            ends = np.sort(random.choice([0, np.nextafter(0.5, 0), 0.5, after, 1], (2, 6)), axis=0)
            p = naive.problem(ends[0], ends[1], random.integers(0, 2, 6), [0, 0.5, after, 1], closed)
            assert worst(p).value == pytest.approx(naive.worst_by_signs(p), abs=EXACT)
            assert_attained(worst(p), p)


# -------------------------------------------------------------------------------------------------------------- types


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_narrow_floats_have_the_value_of_enumeration_with_edges_in_their_type(dtype: Any, closed: str) -> None:
    precision = 10 * float(np.finfo(dtype).eps)
    random = np.random.default_rng(2)
    for bins in (3, 5, 8):
        ends = np.sort(random.integers(0, 21, (2, 12)) / 20, axis=0)
        p = naive.problem(ends[0], ends[1], random.integers(0, 2, 12), equal_width_edges(bins), closed, dtype)
        assert worst(p).value == pytest.approx(naive.worst_by_signs(p), abs=precision)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("metric", [calibration_error, mce])
def test_a_witness_of_narrow_floats_attains_the_value_to_their_precision(metric: Any, dtype: Any, closed: str) -> None:
    # An edge rounded to a narrow type is off by up to half a step of it, and the witness is a double.
    precision = float(np.finfo(dtype).eps)
    random = np.random.default_rng(2)
    for bins in (3, 5, 8, 10, 10, 10):
        ends = np.sort(random.integers(0, 21, (2, 12)) / 20, axis=0)
        p = naive.problem(ends[0], ends[1], random.integers(0, 2, 12), equal_width_edges(bins), closed, dtype)
        result = metric(*p.arguments, **p.options)
        assert ((result.witness >= p.lower - precision) & (result.witness <= p.upper + precision)).all()
        assert PLAIN[metric](result.witness, p.correct, **p.options) == pytest.approx(result.value, abs=precision)
        for seed in range(10):
            z = naive.feasible(p, seed).astype(dtype)
            assert PLAIN[metric](z, p.correct, **p.options) <= result.value + precision


@pytest.mark.parametrize("metric", [calibration_error, mce])
def test_a_float32_point_on_an_edge_is_in_the_same_bin_for_value_and_witness(metric: Any) -> None:
    z = np.array([0.7, 0.65], np.float32)  # float32(0.7) is below 0.7, and on the edge of its own type
    result = metric(z, z, [1, 0], bins=10)
    assert result.value == pytest.approx(PLAIN[metric](z, [1, 0], bins=10), abs=1e-7)
    assert PLAIN[metric](result.witness, [1, 0], bins=10) == pytest.approx(result.value, abs=1e-7)


def test_lower_and_upper_of_different_types_are_compared_as_doubles() -> None:
    lower, upper = np.array([0.25, 0.5], np.float32), np.array([0.75, 0.6])
    expected = calibration_error(lower.astype(float), upper, [1, 0], bins=4).value
    assert calibration_error(lower, upper, [1, 0], bins=4).value == expected


# ---------------------------------------------------------------------------------------------------------- many bins


@pytest.mark.parametrize("closed", ["left", "right"])
def test_a_small_problem_keeps_its_value_among_hundreds_of_bins_that_nobody_reaches(closed: str) -> None:
    for seed in range(12):
        small = naive.instance(seed, n=9, bins=5)
        inner = 0.9 * small.edges[:-1]
        ends = 0.89 * small.lower, 0.89 * small.upper
        few = naive.problem(*ends, small.correct, [*inner, 0.9, 1], closed)
        many = naive.problem(*ends, small.correct, [*inner, *np.linspace(0.9, 1, 300)], closed)
        expected = naive.worst_by_signs(few)
        assert worst(few).value == pytest.approx(expected, abs=EXACT)
        assert worst(many).value == pytest.approx(expected, abs=EXACT)
        assert_attained(worst(many), many)


@pytest.mark.parametrize("closed", ["left", "right"])
def test_cells_and_single_samples_give_the_same_value(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [naive.instance(seed) for seed in range(30)]
    random = np.random.default_rng(1)
    for bins in (40, 256):
        ends = np.sort(random.random((2, 500)), axis=0)
        cases.append(naive.problem(ends[0], ends[1], random.integers(0, 2, 500), equal_width_edges(bins), closed))
    dense = [worst(p).value for p in cases]
    best = [worst(p, best=True).lower_end for p in cases]
    monkeypatch.setattr(module, "DENSE", 0)
    assert [worst(p).value for p in cases] == dense
    assert [worst(p, best=True).lower_end for p in cases] == best


def test_bins_on_both_sides_of_the_limit_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    ends = np.sort(random.random((2, 400)), axis=0)
    p = naive.problem(ends[0], ends[1], random.integers(0, 2, 400), equal_width_edges(300))
    loose = worst(p)
    assert_attained(loose, p)
    monkeypatch.setattr(module, "DENSE", 1 << 20)
    assert worst(p).value == loose.value


@pytest.mark.parametrize("closed", ["left", "right"])
def test_two_thousand_bins_are_attained_and_never_below_fewer_bins_or_feasible_points(closed: str) -> None:
    random = np.random.default_rng(6)
    clean = random.beta(5, 2, 300)
    lower, upper = np.clip(clean - 0.05, 0, 1), np.clip(clean + 0.05, 0, 1)
    p = naive.problem(lower, upper, random.random(300) < clean, equal_width_edges(2000), closed)
    result = worst(p)
    assert_attained(result, p)
    assert result.value >= calibration_error(*p.arguments, bins=200, closed=closed).value - EXACT
    for seed in range(5):
        assert result.value >= ece(naive.feasible(p, seed), p.correct, **p.options) - EXACT


# ------------------------------------------------------------------------------------------------------------- masks


def mask_of(p: naive.Problem, seed: int) -> np.ndarray:
    mask = np.random.default_rng(seed).random(p.n) < 0.6
    mask[0] = True
    return mask


def test_the_value_over_certified_samples_is_that_without_the_others() -> None:
    for seed in range(60):
        p = naive.instance(seed)
        mask = mask_of(p, seed)
        result, alone = worst(p, certified=mask), worst(p.select(mask))
        assert result.value == alone.value
        assert result.n == alone.n == mask.sum()
        np.testing.assert_array_equal(result.witness[mask], alone.witness)
        assert np.isnan(result.witness[~mask]).all()
        assert result.all_samples is not None
        assert result.all_samples.n == p.n


def test_all_samples_is_the_worst_over_confidence_and_correctness_of_the_uncertified() -> None:
    for seed in range(60):
        p = naive.instance(seed, n=4, bins=3)
        mask = mask_of(p, seed)
        result = worst(p, certified=mask).all_samples
        assert result is not None
        expected = naive.worst_by_points(p, certified=mask.tolist())
        assert result.value == pytest.approx(expected, abs=EXACT), seed
        attained = [
            ece(result.witness, np.where(mask, p.correct, free), **p.options) for free in (0, 1)
        ]  # all uncertified samples choose the same correctness
        assert max(attained) == pytest.approx(expected, abs=ATTAINED)
        inside = (result.witness >= p.lower) & (result.witness <= p.upper)
        assert inside[mask].all()
        assert ((result.witness >= 0) & (result.witness <= 1)).all()
        assert result.bins is not None
        assert result.bins.count.sum() == p.n
        assert np.abs(result.bins.gap_sum).sum() / p.n == pytest.approx(expected, abs=ATTAINED)


def test_without_a_mask_there_is_one_value_and_with_a_full_mask_both_agree() -> None:
    p = naive.instance(5)
    assert worst(p).all_samples is None
    full = worst(p, certified=np.ones(p.n, bool))
    assert full.all_samples is not None
    assert full.value == full.all_samples.value == worst(p).value


@pytest.mark.parametrize("form", [list, np.asarray, lambda mask: np.asarray(mask).astype(int)])
def test_masks_may_be_booleans_or_zeros_and_ones(form: Any) -> None:
    mask = [True, False, True]
    result = calibration_error([0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [1, 0, 1], certified=form(mask))
    assert result.n == 2


# --------------------------------------------------------------------------------------------------------- large sums


def test_sums_carry_over_blocks_of_samples() -> None:
    # More samples than one block of the kernel and than one carry.
    random = np.random.default_rng(9)
    small = naive.problem([0.1, 0.35, 0.5, 0.6], [0.7, 0.35, 0.95, 0.8], [1, 0, 0, 1], equal_width_edges(5))
    counts = np.array([150_000, 90_000, 30_001, 4_000])
    index = random.permutation(np.repeat(np.arange(4), counts))
    expected = naive.worst_in_population(small, counts / counts.sum())
    assert worst(small.select(index)).value == pytest.approx(expected, abs=EXACT)


# ------------------------------------------------------------------------------------------------------------- claims


def test_the_sentence_rounds_the_worst_case_up() -> None:
    result = calibration_error([1 / 3], [1 / 3], [0], bins=3)
    assert result.text == "0.3334"
    assert "is at most 0.3334 on this sample" in result.sentence
    assert result.to_dict()["value"] == result.value
    assert result.to_dict()["lower_end"] == result.value


def test_a_result_keeps_its_witness_and_bound_when_the_given_arrays_change() -> None:
    n = 20_000
    lower, correct = np.full(n, 0.5), np.ones(n, np.uint8)
    result = calibration_error(lower, lower, correct, bins=2)
    expected = population_bound(calibration_error(lower.copy(), lower.copy(), correct, bins=2)).value
    lower[:] = 0.999
    assert population_bound(result).value == expected
    assert ece(result.witness, correct, bins=2) == pytest.approx(result.value, abs=ATTAINED)


CROWDED = np.concatenate(([0], 1 - np.geomspace(1e-3, 1e-9, 12), [1]))


@pytest.mark.parametrize("options", [{}, {"bins": 300}, {"edges": CROWDED}], ids=["few", "many", "crowded"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("mask", [None, np.ones(100, np.uint8)], ids=["plain", "masked"])
def test_a_result_shares_no_memory_with_what_was_given(options: dict[str, Any], dtype: Any, mask: Any) -> None:
    random = np.random.default_rng(0)
    ends = np.sort(random.random((2, 100)), axis=0).astype(dtype)
    correct = random.integers(0, 2, 100).astype(np.uint8)
    before = calibration_error(*ends, correct, certified=mask, **options)
    expected = before.witness.copy(), population_bound(before).value
    result = calibration_error(*ends, correct, certified=mask, **options)
    ends[0], ends[1], correct[:] = 0, 1, 0
    np.testing.assert_array_equal(result.witness, expected[0])
    assert population_bound(result).value == expected[1]


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("options", [{}, {"bins": 300}, {"edges": CROWDED}], ids=["few", "many", "crowded"])
@pytest.mark.parametrize("index", [0, 1023, 1024, 300_000, 449_999])
def test_a_wrong_interval_is_found_wherever_it_is(index: int, options: dict[str, Any]) -> None:
    lower, upper, correct = np.full(450_000, 0.25), np.full(450_000, 0.5), np.ones(450_000, np.uint8)
    for wrong, words in ((np.nan, "nan"), (0.75, "above upper"), (-1e300, "outside"), (np.inf, "inf")):
        lower[index] = wrong
        with pytest.raises(InputError, match=rf"lower\[{index}\] is .*{words}|lower\[{index}\] is {words}"):
            calibration_error(lower, upper, correct, **options)
    lower[index], correct[index] = 0.25, 2
    with pytest.raises(InputError, match=rf"correct\[{index}\] is 2"):
        calibration_error(lower, upper, correct, **options)
