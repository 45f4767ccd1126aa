"""Binned calibration errors: equal to their definitions, exact at the edges, and with the properties they must have."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from certcal.binning import assign, equal_mass_edges, equal_width_edges
from certcal.metrics import (
    StreamingCalibration,
    brier_decomposition,
    classwise_ece,
    debiased_ece,
    ece,
    equal_mass_ece,
    harmonic_calibration_score,
    harmonic_score,
    lp_ece,
    mce,
    reliability,
)
from tests import naive

CLOSED = st.sampled_from(["left", "right"])
BINS = st.one_of(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.integers(1, 700))
CLOSE = {"rel": 1e-12, "abs": 1e-12}
MANY = 45_001


# ---------------------------------------------------------------------------------------------------------- definitions


@given(naive.weighted(), BINS, CLOSED)
def test_equal_width_errors_agree_with_their_definitions(data, bins, closed):
    z, c, w = data
    groups = naive.groups(z, c, naive.equal_width_edges(bins), closed, w)
    options = {"bins": bins, "closed": closed, "sample_weight": w}
    assert ece(z, c, **options) == pytest.approx(naive.ece_of(groups), **CLOSE)
    assert mce(z, c, **options) == pytest.approx(naive.mce_of(groups), **CLOSE)
    assert lp_ece(z, c, **options) == pytest.approx(naive.lp_ece_of(groups, 2.0), **CLOSE)
    square = max(0.0, naive.debiased_square_of(groups))
    assert debiased_ece(z, c, **options) ** 2 == pytest.approx(square, **CLOSE)


@given(naive.weighted(), naive.own_edges(), CLOSED)
def test_errors_with_own_edges_agree_with_their_definitions(data, edges, closed):
    z, c, w = data
    groups = naive.groups(z, c, edges, closed, w)
    options = {"edges": edges, "closed": closed, "sample_weight": w}
    assert ece(z, c, **options) == pytest.approx(naive.ece_of(groups), **CLOSE)
    assert mce(z, c, **options) == pytest.approx(naive.mce_of(groups), **CLOSE)
    assert lp_ece(z, c, p=3.0, **options) == pytest.approx(naive.lp_ece_of(groups, 3.0), **CLOSE)
    square = max(0.0, naive.debiased_square_of(groups))
    # Where weights differ by millions, what is subtracted has few digits.
    assert debiased_ece(z, c, **options) ** 2 == pytest.approx(square, abs=1e-9)


@given(naive.weighted(), st.integers(1, 80), CLOSED)
def test_equal_mass_error_agrees_with_its_definition(data, bins, closed):
    z, c, w = data
    expected = naive.equal_mass_ece(z, c, bins, closed, w)
    assert equal_mass_ece(z, c, bins, closed=closed, sample_weight=w) == pytest.approx(expected, **CLOSE)


@given(naive.weighted(), st.integers(1, 40), st.sampled_from([1.0, 1.5, 2.0, 7.0, 40.0, 1000.0, math.inf]))
def test_errors_of_any_order_agree_with_their_definition(data, bins, p):
    z, c, w = data
    expected = naive.lp_ece_of(naive.groups(z, c, naive.equal_width_edges(bins), "left", w), p)
    assert lp_ece(z, c, bins, p=p, sample_weight=w) == pytest.approx(expected, rel=1e-10, abs=1e-12)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("weigh", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_errors_of_many_samples_on_several_threads_agree_with_their_definitions(monkeypatch, dtype, weigh, threads):
    monkeypatch.setattr("certcal._base.threads.thread_count", lambda: threads)
    rng = np.random.default_rng(0)
    distinct = np.unique(np.concatenate((rng.beta(4, 1, 300), np.arange(31) / 30)).astype(dtype))
    which = rng.integers(0, distinct.size, MANY)
    z = distinct[which]
    c = (rng.random(MANY) < z**2).astype(np.uint8)
    w = rng.integers(0, 8, MANY) / 4 if weigh else None
    # The definitions see each distinct (confidence, outcome) once, with the weight of all its samples.
    short_z, short_c = np.repeat(distinct, 2), np.tile([0, 1], distinct.size)
    heavy = np.bincount(2 * which + c, w, 2 * distinct.size)
    for closed in ("left", "right"):
        options = {"closed": closed, "sample_weight": w}
        groups = naive.groups(short_z, short_c, naive.equal_width_edges(15), closed, heavy)
        assert ece(z, c, **options) == pytest.approx(naive.ece_of(groups), **CLOSE)
        assert mce(z, c, **options) == pytest.approx(naive.mce_of(groups), **CLOSE)
        assert lp_ece(z, c, **options) == pytest.approx(naive.lp_ece_of(groups, 2.0), **CLOSE)
        expected = naive.equal_mass_ece(short_z, short_c, 15, closed, heavy)
        assert equal_mass_ece(z, c, **options) == pytest.approx(expected, **CLOSE)
        many = naive.groups(short_z, short_c, naive.equal_width_edges(700), closed, heavy)
        assert ece(z, c, 700, **options) == pytest.approx(naive.ece_of(many), **CLOSE)


def test_debiased_error_of_many_samples_subtracts_the_noise_of_each_bin():
    rng = np.random.default_rng(1)
    z = rng.random(MANY)
    c = rng.random(MANY) < 0.9 * z
    square = 0.0
    for m in range(15):
        inside = (z >= m / 15) & ((z < (m + 1) / 15) | (m == 14))
        mean, n = c[inside].mean(), inside.sum()
        square += n / MANY * ((mean - z[inside].mean()) ** 2 - mean * (1 - mean) / (n - 1))
    assert debiased_ece(z, c) == pytest.approx(math.sqrt(square), rel=1e-12)


# ------------------------------------------------------------------------------------------------------------ edge rule


def by_hand(closed: str) -> tuple[list[list[Fraction]], Fraction]:
    """p = k/10 with alternating outcomes in ten bins: the gaps c - z of every bin, and the error, exactly."""
    bins: list[list[Fraction]] = [[] for _ in range(10)]
    for k in range(11):
        m = min(k, 9) if closed == "left" else max(k - 1, 0)
        bins[m].append(k % 2 - Fraction(k, 10))
    return bins, sum((abs(sum(inside)) for inside in bins), Fraction(0)) / 11


def test_tenths_with_alternating_outcomes_are_known_by_hand():
    assert by_hand("left")[1] == Fraction(53, 110)  # 5.3 / 11
    assert by_hand("right")[1] == Fraction(55, 110)  # 5.5 / 11


@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("weigh", [False, True])
def test_tenths_have_the_value_of_exact_arithmetic_in_every_type_and_every_metric(dtype, closed, weigh):
    z, c = (np.arange(11) / 10).astype(dtype), np.arange(11) % 2
    gaps, error = by_hand(closed)
    w = np.full(11, 0.1) if weigh else None
    options = {"bins": 10, "closed": closed, "sample_weight": w}
    near = {"abs": 11 * float(np.finfo(dtype).eps)}
    means = [abs(sum(inside)) / len(inside) for inside in gaps if inside]
    shares = [Fraction(len(inside), 11) for inside in gaps if inside]
    squares = sum(share * mean**2 for share, mean in zip(shares, means, strict=True))

    assert ece(z, c, **options) == pytest.approx(float(error), **near)
    assert mce(z, c, **options) == pytest.approx(float(max(means)), **near)
    assert lp_ece(z, c, p=1, **options) == pytest.approx(float(error), **near)
    assert lp_ece(z, c, p=2, **options) == pytest.approx(math.sqrt(squares), **near)
    assert brier_decomposition(z, c, **options).reliability == pytest.approx(float(squares), **near)
    score = harmonic_score(5 / 11, float(error))
    assert harmonic_calibration_score(z, c, **options) == pytest.approx(score, **near)
    assert reliability(z, c, **options).ece == pytest.approx(float(error), **near)
    assert reliability(z, c, **options).table.count.tolist() == [len(inside) for inside in gaps]
    stream = StreamingCalibration(10, closed=closed)
    for k in range(11):
        stream.update(z[k : k + 1], c[k : k + 1], None if w is None else w[k : k + 1])
    assert stream.result()["ece"].value == pytest.approx(float(error), **near)
    own = equal_width_edges(10).astype(dtype)
    assert ece(z, c, edges=own, closed=closed, sample_weight=w) == pytest.approx(float(error), **near)
    # Two classes: the second column is z, the first 1 - z, whose tenths lie on edges as well.
    both = np.stack((((10 - np.arange(11)) / 10).astype(dtype), z), axis=1)
    expected = float(error + mirrored_error(closed)) / 2
    assert classwise_ece(both, c, **options) == pytest.approx(expected, **near)


def mirrored_error(closed: str) -> Fraction:
    """The error of 1 - k/10 against the opposite outcome."""
    bins: list[list[Fraction]] = [[] for _ in range(10)]
    for k in range(11):
        m = min(10 - k, 9) if closed == "left" else max(9 - k, 0)
        bins[m].append((1 - k % 2) - (1 - Fraction(k, 10)))
    return sum((abs(sum(inside)) for inside in bins), Fraction(0)) / 11


@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("bins", [3, 7, 15, 20, 30, 100])
def test_every_type_bins_written_fractions_alike(dtype, closed, bins):
    z, c = (np.arange(bins + 1) / bins).astype(dtype), np.arange(bins + 1) % 2
    exact = z.astype(np.float64)
    where = np.minimum(np.arange(bins + 1), bins - 1) if closed == "left" else np.maximum(np.arange(bins + 1) - 1, 0)
    expected = np.abs(np.bincount(where, c - exact)).sum() / (bins + 1)
    assert ece(z, c, bins, closed=closed) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("closed", ["left", "right"])
def test_equal_mass_bins_given_as_edges_are_the_equal_mass_bins(dtype, closed):
    rng = np.random.default_rng(5)
    z, c = rng.integers(0, 16, 500).astype(dtype) / dtype(15), rng.random(500) < 0.5
    edges = equal_mass_edges(z, 6, closed)
    assert ece(z, c, edges=edges, closed=closed) == equal_mass_ece(z, c, 6, closed=closed)


@pytest.mark.parametrize("n", [60, 64])
def test_equal_mass_bins_are_those_of_an_even_cut_only_if_the_number_of_bins_divides_that_of_samples(n):
    z = np.sort(np.random.default_rng(n).random(n))
    sizes = np.bincount(assign(z, equal_mass_edges(z, 6), "left"), minlength=6)
    assert sizes.max() - sizes.min() == (0 if n % 6 == 0 else 1)
    assert (sizes.tolist() == [each.size for each in np.array_split(z, 6)]) == (n % 6 == 0)


# ----------------------------------------------------------------------------------------------------------- properties

METRICS = [ece, mce, lp_ece, debiased_ece]


@given(naive.weighted(), naive.own_edges(), st.integers(0, 100))
def test_merging_two_neighbouring_bins_never_increases_the_error(data, edges, which):
    z, c, w = data
    assume(len(edges) > 2)
    merged = [edge for k, edge in enumerate(edges) if k != 1 + which % (len(edges) - 2)]
    assert ece(z, c, edges=merged, sample_weight=w) <= ece(z, c, edges=edges, sample_weight=w) + 1e-14


@given(naive.weighted(), BINS, CLOSED)
def test_the_error_lies_between_the_mean_gap_and_the_mean_absolute_gap_and_below_the_maximum(data, bins, closed):
    z, c, w = data
    gaps = c - z.astype(np.float64)
    error = ece(z, c, bins, closed=closed, sample_weight=w)
    assert abs(np.average(gaps, weights=w)) <= error + 1e-14
    assert error <= np.average(np.abs(gaps), weights=w) + 1e-14
    assert error <= mce(z, c, bins, closed=closed, sample_weight=w) + 1e-14
    assert abs(np.average(gaps, weights=w)) <= equal_mass_ece(z, c, bins, sample_weight=w) + 1e-14


@given(naive.weighted(), BINS)
def test_errors_rise_with_their_order_from_the_mean_to_the_maximum(data, bins):
    z, c, w = data
    orders = [1, 1.5, 2, 3, 10, 100, math.inf]
    found = [lp_ece(z, c, bins, p=p, sample_weight=w) for p in orders]
    assert all(later >= earlier - 1e-14 for earlier, later in pairwise(found))
    assert found[0] == pytest.approx(ece(z, c, bins, sample_weight=w), **CLOSE)
    assert found[-1] == mce(z, c, bins, sample_weight=w)


@given(naive.weighted(), BINS)
def test_the_debiased_error_is_at_most_the_plain_one_when_every_bin_counts(data, bins):
    z, c, w = data
    assert 0 <= debiased_ece(z, c, bins, sample_weight=w) <= lp_ece(z, c, bins, sample_weight=w) + 1e-12


@given(naive.scored(), BINS)
def test_all_errors_lie_in_the_unit_interval(pair, bins):
    z, c = pair
    for metric in (*METRICS, equal_mass_ece):
        assert 0 <= metric(z, c, bins) <= 1


@given(naive.scored(dtypes=(np.float64,)), st.sampled_from([1, 2, 4, 8, 64]))
def test_mirroring_confidences_and_outcomes_mirrors_the_closed_side(pair, bins):
    z = np.round(pair[0] * 1024) / 1024  # 1 - z is then exact
    c = pair[1]
    for metric in (ece, mce, equal_mass_ece):
        left = metric(z, c, bins)
        assert metric(1 - z, 1 - c, bins, closed="right") == pytest.approx(left, **CLOSE)


def test_perfect_calibration_has_no_error():
    z, c = [0.25] * 4 + [0.75] * 4, [0, 0, 0, 1, 1, 1, 1, 0]
    for metric in (*METRICS, equal_mass_ece):
        assert metric(z, c, 2) == 0


def test_more_bins_than_samples_leave_empty_bins_that_count_nothing():
    assert ece([0.3], [1], bins=700) == pytest.approx(0.7)
    assert equal_mass_ece([0.3, 0.6], [1, 1], bins=700) == pytest.approx(0.55)
    assert mce([0.3], [1], bins=700) == pytest.approx(0.7)
    assert debiased_ece([0.3], [1], bins=700) == 0


def test_equal_confidences_are_never_split_over_two_bins():
    # Half of the ties are right: if they were split by position, the error would be one half.
    z, c = [0.5] * 10, [0] * 5 + [1] * 5
    assert equal_mass_ece(z, c, bins=2) == 0


def test_debiased_error_uses_the_effective_number_of_samples_of_each_bin():
    z, c, w = [0.5, 0.5, 0.5], [1, 0, 1], [2.0, 1.0, 1.0]
    effective = 16 / 6
    mean, gap = 0.75, 0.25
    assert debiased_ece(z, c, bins=1, sample_weight=w) == math.sqrt(max(0, gap**2 - mean * 0.25 / (effective - 1)))
    z = [0.0, 0.0, 0.0]
    expected = math.sqrt(0.75**2 - 0.75 * 0.25 / (effective - 1))
    assert debiased_ece(z, c, bins=1, sample_weight=w) == pytest.approx(expected)
