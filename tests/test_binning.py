"""Binning: where a value goes, what a bin holds, and that nothing depends on order, cut or threads."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import InputError
from certcal.binning import (
    BinSums,
    ExactSum,
    assign,
    bin_table,
    check_edges,
    equal_mass_edges,
    equal_width_edges,
)
from tests import naive

MANY = 45_001  # enough for several threads, if blocks are small


def rounded(value: Fraction, dtype) -> float:
    """The float of the given type nearest to an exact number, found without converting through another type."""
    near = dtype(float(value))
    candidates = [np.nextafter(near, dtype(-1)), near, np.nextafter(near, dtype(2))]
    return min((abs(Fraction(float(x)) - value), float(x)) for x in candidates)[1]


@pytest.mark.parametrize("dtype", naive.DTYPES)
def test_a_decimal_equal_to_an_edge_lies_on_it_in_every_type_for_up_to_two_hundred_bins(dtype):
    for bins in range(1, 201):
        written = [float(repr(m / bins)) for m in range(bins + 1)]
        edges = equal_width_edges(bins)
        values = np.array(written, dtype)
        expected = np.arange(bins + 1)
        assert assign(values, edges).tolist() == np.minimum(expected, bins - 1).tolist()
        assert assign(values, edges, "right").tolist() == np.maximum(expected - 1, 0).tolist()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_decimal_read_straight_into_a_short_float_lies_on_its_edge_too(dtype):
    for bins in range(1, 201):
        values = np.array([rounded(Fraction(m, bins), dtype) for m in range(bins + 1)], dtype)
        assert assign(values, equal_width_edges(bins)).tolist() == [*range(bins), bins - 1]


@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("bins", [2, 3, 7, 10, 15, 100, 500])
def test_the_floats_next_to_an_edge_fall_on_its_two_sides(dtype, bins):
    m = np.arange(1, bins)
    edges = equal_width_edges(bins)
    on = edges[1:-1].astype(dtype)
    below, above = np.nextafter(on, dtype(0)), np.nextafter(on, dtype(1))
    assert assign(below, edges).tolist() == (m - 1).tolist()
    assert assign(above, edges).tolist() == m.tolist()
    assert assign(below, edges, "right").tolist() == (m - 1).tolist()
    assert assign(above, edges, "right").tolist() == m.tolist()


@given(st.integers(1, 5000))
def test_equal_width_edges_are_correctly_rounded(bins):
    assert equal_width_edges(bins).tolist() == naive.equal_width_edges(bins)


@given(naive.scored(), st.integers(1, 700), st.sampled_from(["left", "right"]))
def test_assign_agrees_with_the_naive_twin_for_equal_width_bins(pair, bins, closed):
    z, _ = pair
    assert assign(z, equal_width_edges(bins), closed).tolist() == naive.bins_of(z, equal_width_edges(bins), closed)


@given(naive.scored(), naive.own_edges(), st.sampled_from(["left", "right"]))
def test_assign_agrees_with_the_naive_twin_for_own_edges(pair, edges, closed):
    z, _ = pair
    assert assign(z, edges, closed).tolist() == naive.bins_of(z, edges, closed)


@given(naive.scored(), st.sampled_from(["left", "right"]))
def test_assign_agrees_with_the_naive_twin_when_every_value_is_an_edge(pair, closed):
    z, _ = pair
    edges = [0.0, *np.sort(z).astype(np.float64).tolist(), 1.0]
    assert assign(z, edges, closed).tolist() == naive.bins_of(z, edges, closed)


@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("crowd", [lambda x: x, lambda x: 1e-6 * x, lambda x: 1 - 1e-6 * x, np.round])
def test_assign_agrees_with_a_search_when_there_are_tens_of_thousands_of_edges(dtype, closed, crowd):
    rng = np.random.default_rng(0)
    edges = np.concatenate(([0.0], np.sort(crowd(rng.random(20_000))), [1.0]))
    z = np.concatenate((crowd(rng.random(300)), edges[:100], [0.0, 1.0])).astype(dtype)
    inner = edges[1:-1].astype(dtype)
    expected = np.searchsorted(inner, z, side="right" if closed == "left" else "left")
    np.testing.assert_array_equal(assign(z, edges, closed), expected)


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("bins", [1, 2, 15, 700])
def test_zero_and_one_are_always_counted_in_the_first_and_last_bin(closed, bins):
    assert assign([0.0, 1.0], equal_width_edges(bins), closed).tolist() == [0, bins - 1]
    assert bin_table([0.0, 1.0], [0, 1], equal_width_edges(bins), closed).count.sum() == 2


def test_a_repeated_edge_makes_an_empty_bin():
    assert assign([0.2, 0.5, 0.7], [0, 0.5, 0.5, 1]).tolist() == [0, 2, 2]
    assert assign([0.2, 0.5, 0.7], [0, 0.5, 0.5, 1], "right").tolist() == [0, 0, 2]
    assert bin_table([0.2, 0.5, 0.7], [0, 1, 1], [0, 0.5, 0.5, 1]).count.tolist() == [1, 0, 2]


def test_edges_at_zero_and_one_give_those_values_to_the_side_that_the_rule_says():
    assert assign([0.0, 0.5, 1.0], [0, 0, 1, 1]).tolist() == [1, 1, 2]
    assert assign([0.0, 0.5, 1.0], [0, 0, 1, 1], "right").tolist() == [0, 1, 1]


@given(naive.weighted(), naive.own_edges(), st.sampled_from(["left", "right"]))
def test_bin_tables_hold_the_exact_sums(data, edges, closed):
    z, c, w = data
    table = bin_table(z, c, edges, closed, w)
    where = naive.bins_of(z, edges, closed)
    for m, (found_w, found_ww, found_z, found_c) in enumerate(
        zip(table.weight, table.squared_weight, table.confidence_sum, table.correct_sum, strict=True)
    ):
        inside = [s for s, b in zip(naive.samples(z, c, w), where, strict=True) if b == m]
        assert table.count[m] == len(inside)
        assert found_w == pytest.approx(float(sum(s[2] for s in inside)), rel=1e-15)
        assert found_ww == pytest.approx(float(sum(s[2] ** 2 for s in inside)), rel=1e-15)
        assert found_z == pytest.approx(float(sum(s[2] * s[0] for s in inside)), rel=1e-15, abs=1e-15 * len(inside))
        assert found_c == pytest.approx(float(sum(s[2] * s[1] for s in inside)), rel=1e-15)


def test_empty_bins_have_no_accuracy_and_no_gap():
    table = bin_table([0.1, 0.9], [1, 1], equal_width_edges(3))
    assert math.isnan(table.accuracy[1])
    assert math.isnan(table.mean_confidence[1])
    assert table.gap_sum[1] == 0
    assert table.total == 2


def test_a_bin_table_cannot_be_changed():
    table = bin_table([0.1], [1], [0, 1])
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.count = np.zeros(1)


def as_bits(table):
    return [np.asarray(getattr(table, f.name)).tobytes() for f in dataclasses.fields(table) if f.name != "closed"]


@given(naive.weighted(), st.integers(1, 700), st.randoms(use_true_random=False))
def test_bin_sums_are_the_same_bits_for_any_order_of_the_samples(data, bins, random):
    z, c, w = data
    order = list(range(z.size))
    random.shuffle(order)
    shuffled = bin_table(z[order], c[order], equal_width_edges(bins), "left", None if w is None else w[order])
    assert as_bits(shuffled) == as_bits(bin_table(z, c, equal_width_edges(bins), "left", w))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("bins", [15, 700])
@pytest.mark.parametrize("weigh", [False, True])
@pytest.mark.parametrize("dtype", naive.DTYPES)
def test_bin_sums_are_the_same_bits_for_any_number_of_threads_and_any_cut(monkeypatch, bins, weigh, dtype):
    rng = np.random.default_rng(1)
    z = rng.beta(5, 1, MANY).astype(dtype)
    c = (rng.random(MANY) < 0.7).astype(np.uint8)
    w = rng.gamma(1.0, size=MANY) if weigh else None
    edges = equal_width_edges(bins)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr("certcal._base.threads.thread_count", lambda threads=threads: threads)
        found.append(as_bits(bin_table(z, c, edges, "left", w)))
    pieces = [BinSums(edges) for _ in range(3)]
    for k, piece in enumerate(pieces):
        piece.add(z[k::3], c[k::3], None if w is None else np.ascontiguousarray(w[k::3]))
    pieces[2].merge(pieces[0])
    pieces[2].merge(pieces[1])
    found.append(as_bits(pieces[2].table()))
    assert all(bits == found[0] for bits in found)
    where = np.searchsorted(edges[1:-1].astype(dtype), z, side="right")
    weight = np.ones(MANY) if w is None else w
    np.testing.assert_allclose(bin_table(z, c, edges, "left", w).weight, np.bincount(where, weight, bins), rtol=1e-12)


def test_bin_sums_of_different_bins_do_not_merge():
    with pytest.raises(InputError, match="different bins"):
        BinSums(equal_width_edges(3)).merge(BinSums(equal_width_edges(4)))
    with pytest.raises(InputError, match="different bins"):
        BinSums(equal_width_edges(3)).merge(BinSums(equal_width_edges(3), "right"))


@given(naive.weighted(40), st.integers(1, 60), st.sampled_from(["left", "right"]))
def test_equal_mass_edges_agree_with_the_naive_twin(data, bins, closed):
    z, _, w = data
    assert equal_mass_edges(z, bins, closed, w).tolist() == naive.equal_mass_edges(z, bins, closed, w)


@given(st.integers(1, 200), st.integers(1, 300), st.sampled_from(["left", "right"]), st.integers(0, 2**32))
def test_equal_mass_bins_without_ties_differ_in_size_by_at_most_one(n, bins, closed, seed):
    rng = np.random.default_rng(seed)
    z = np.sort(rng.permutation(1000)[:n] + 1) / 1002
    rng.shuffle(z)
    count = bin_table(z, np.zeros(n), equal_mass_edges(z, bins, closed), closed).count
    assert count.sum() == n
    assert count.max() - count.min() <= 1


@given(naive.scored(), st.integers(1, 40))
def test_equal_mass_bins_of_mirrored_confidences_are_mirrored(pair, bins):
    z = np.round(pair[0].astype(np.float64) * 64) / 64
    right = equal_mass_edges(1 - z, bins, "right")
    np.testing.assert_array_equal(1 - right[::-1], equal_mass_edges(z, bins, "left"))


@given(naive.scored(), st.integers(1, 40), st.sampled_from([0.1, 0.3, 1 / 3, 7.0]), st.sampled_from(["left", "right"]))
def test_equal_weights_choose_the_same_equal_mass_edges_as_none(pair, bins, weight, closed):
    z, _ = pair
    weighted = equal_mass_edges(z, bins, closed, np.full(z.size, weight))
    np.testing.assert_array_equal(weighted, equal_mass_edges(z, bins, closed))


@pytest.mark.parametrize(("closed", "weight"), [("left", 0.1), ("right", 0.7)])
def test_millions_of_equal_weights_on_four_values_choose_the_same_edges_as_none(closed, weight):
    z = np.repeat([0.2, 0.4, 0.6, 0.8], 500_000)
    weighted = equal_mass_edges(z, 4, closed, np.full(z.size, weight))
    np.testing.assert_array_equal(weighted, equal_mass_edges(z, 4, closed))


@given(naive.scored(), st.integers(1, 40), st.sampled_from(["left", "right"]))
def test_whole_weights_choose_the_edges_of_repeated_samples_and_zero_weights_do_not_count(pair, bins, closed):
    z, _ = pair
    times = np.random.default_rng(z.size).integers(0, 4, z.size)
    times[0] += 1
    repeated = equal_mass_edges(np.repeat(z, times), bins, closed)
    np.testing.assert_array_equal(equal_mass_edges(z, bins, closed, times), repeated)


@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("crowd", [lambda x: x, lambda x: 1 - 1e-5 * x, lambda x: x**40, lambda x: np.round(x, 2)])
@pytest.mark.usefixtures("small_blocks")
def test_equal_mass_edges_of_many_samples_are_order_statistics(dtype, closed, crowd):
    z = crowd(np.random.default_rng(2).random(MANY)).astype(dtype)
    ordered, bins = np.sort(z).astype(np.float64), 17
    if closed == "left":
        expected = [ordered[m * MANY // bins] for m in range(1, bins)]
    else:
        expected = [ordered[-(m * MANY // bins) - 1] for m in range(bins - 1, 0, -1)]
    assert equal_mass_edges(z, bins, closed)[1:-1].tolist() == expected


@given(st.lists(st.floats(0, 1e100), max_size=50), st.randoms(use_true_random=False))
def test_exact_sums_are_rounded_once_in_any_order_and_any_pieces(values, random):
    whole, pieces = ExactSum(), ExactSum()
    whole.add(np.array(values))
    random.shuffle(values)
    for value in values:
        other = ExactSum()
        other.add(np.array([value]))
        pieces.merge(other)
    assert whole.value == pieces.value == math.fsum(values)


def test_exact_sums_of_something_infinite_are_infinite():
    total = ExactSum()
    total.add(np.array([1.0, np.inf]))
    total.add(np.array([2.0]))
    assert total.value == math.inf


BAD_EDGES = {
    "do not start at zero": ([0.1, 0.5, 1], r"edges run from 0\.1 to 1\.0; the first must be 0 and the last 1"),
    "do not end at one": ([0, 0.5, 0.9], r"edges run from 0\.0 to 0\.9; the first must be 0 and the last 1"),
    "in percent": ([0, 50, 100], r"edges run from 0\.0 to 100\.0"),
    "decrease": ([0, 0.6, 0.5, 1], r"edges\[2\] is 0\.5.*sort them"),
    "not a number": ([0, math.nan, 1], r"edges\[1\] is nan"),
    "start with not a number": ([math.nan, 0.5, 1], r"edges run from nan"),
    "infinite": ([0, math.inf, 1], r"edges\[\d\]"),
    "a single one": ([0], r"edges has shape \(1,\); pass at least the two edges 0 and 1"),
    "none at all": ([], r"edges has shape \(0,\)"),
    "a matrix": ([[0, 1]], r"edges has shape \(1, 2\)"),
    "a number": (0.5, r"edges has shape \(\)"),
    "words": (["a", "b"], r"edges\[0\] is .*'a'.*not a number"),
}


@pytest.mark.parametrize(("edges", "message"), BAD_EDGES.values(), ids=BAD_EDGES.keys())
def test_bad_edges_are_refused_with_a_sentence(edges, message):
    with pytest.raises(InputError, match=message):
        check_edges(edges)
    with pytest.raises(InputError, match=message):
        assign([0.5], edges)
    with pytest.raises(InputError, match=message):
        bin_table([0.5], [1], edges)


@pytest.mark.parametrize("closed", ["both", "neither", None, "LEFT", 0])
def test_an_unknown_side_is_refused(closed):
    for call in (
        lambda: assign([0.5], [0, 1], closed),
        lambda: bin_table([0.5], [1], [0, 1], closed),
        lambda: equal_mass_edges([0.5], 2, closed),
    ):
        with pytest.raises(InputError, match=r"closed is .*; pass one of 'left', 'right'"):
            call()
