"""Histogram and equal-mass binning: mean outcomes of bins, and guarantees that are those of their formulas."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from certcal import InputError
from certcal.binning import equal_mass_edges, equal_width_edges
from certcal.calibrators import Calibrator, EqualMassBinning, HistogramBinning
from tests.calibrators import naive_maps as naive

CLOSED = st.sampled_from(["left", "right"])
PLACES = st.sampled_from([None, 1, 3, 12])
BOTH = pytest.mark.parametrize("kind", [HistogramBinning, EqualMassBinning])


def drawn(seed, n, places):
    rng = np.random.default_rng([seed, 12])
    z = rng.random(n) if places is None else rng.integers(0, places + 1, n) / places
    return z, rng.integers(0, 2, n)


@BOTH
@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 12), CLOSED, PLACES, st.booleans())
def test_values_are_mean_outcomes_of_bins_and_middles_of_empty_ones(kind, seed, n, bins, closed, places, weighted):
    z, c = drawn(seed, n, places)
    rng = np.random.default_rng([seed, 7])
    w = rng.random(n) + 0.01 if weighted else None
    fitted = kind(bins=bins, closed=closed).fit(z, c, w)
    if kind is HistogramBinning:
        assert fitted.edges_.tolist() == equal_width_edges(bins).tolist()
    elif not weighted:
        shared = {*equal_mass_edges(z, bins, closed), 0.0, 1.0}
        assert shared == {*fitted.edges_}
    values = naive.binned_values(z, c, w, fitted.edges_, closed)
    assert fitted.values_ == pytest.approx(values, abs=1e-12)
    places = np.concatenate([fitted.edges_, z, rng.random(20)])
    homes = [naive.bin_of(place, fitted.edges_, closed) for place in places]
    assert fitted.transform(places) == pytest.approx(values[homes], abs=1e-12)


@BOTH
@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(1, 40), CLOSED, PLACES)
def test_mapped_intervals_are_the_range_of_the_values_that_can_be_reached(kind, seed, bins, closed, places):
    z, c = drawn(seed, 40, places)
    fitted = kind(bins=bins, closed=closed).fit(z, c)
    rng = np.random.default_rng([seed, 8])
    ends = np.sort(np.where(rng.random((2, 15)) < 0.5, rng.random((2, 15)), rng.choice(fitted.edges_, (2, 15))), axis=0)
    lower, upper = fitted.intervals(*ends)
    for k, (low, high) in enumerate(ends.T):
        values = naive.reached(fitted, low, high, fitted.edges_)
        assert (lower[k], upper[k]) == (values.min(), values.max())


@BOTH
def test_bad_parameters_are_refused(kind):
    for bins in (0, 2.5, "ten"):
        with pytest.raises(InputError, match="bins is"):
            kind(bins=bins).fit([0.5], [1])
    with pytest.raises(InputError, match="closed is 'both'; pass one of 'left', 'right'"):
        kind(closed="both").fit([0.5], [1])


# --- guarantees of bins of equal width ---------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(1, 200), st.integers(1, 10), st.sampled_from([0.001, 0.05, 0.49]))
def test_guarantees_are_those_of_their_formulas(seed, n, bins, delta):
    rng = np.random.default_rng([seed, 10])
    z, c = rng.random(n), rng.integers(0, 2, n)
    fitted = HistogramBinning(bins=bins).fit(z, c)
    home = np.array([naive.bin_of(value, fitted.edges_, "left") for value in z])
    cells = [(v, (home == m).sum(), c[home == m].sum(), (home == m).sum()) for m, v in enumerate(fitted.values_)]
    assert fitted.guarantee(delta).value == pytest.approx(naive.largest_distance(cells, delta), abs=1e-8)
    assert fitted.mean_guarantee(delta).value == pytest.approx(naive.mean_distance(cells, delta), abs=1e-8)


def failure(n, p, delta, bound, scale):
    """Probability that the share of correct ones among n is farther from p than the bound, times a scale."""
    k = np.arange(n + 1)
    likely = stats.binom.pmf(k, n, p)
    used = likely > 1e-12
    far = np.array([bound(int(each)) for each in k[used]]) * scale
    return float(likely[used] @ (np.abs(k[used] / n - p) > far))


@pytest.mark.parametrize("delta", [0.05, 0.45])
def test_the_guarantee_fails_with_probability_delta_and_one_of_97_per_cent_of_it_more_often(delta):
    # Limits for counts give away about half a count. At delta = 0.45 the bound is 0.76 √n / 2 counts wide, so it is
    # within 3 % of the best only where n is well above 2500; here half a count is 1.5 %.
    n = 10_000
    z = np.full(n, 0.5)
    known = {}

    def bound(k):
        if k not in known:
            known[k] = HistogramBinning(bins=1).fit(z, np.arange(n) < k).guarantee(delta).value
        return known[k]

    shares = np.linspace(0.49, 0.51, 21)
    assert max(failure(n, p, delta, bound, 1.0) for p in shares) <= delta
    assert max(failure(n, p, delta, bound, 0.97) for p in shares) > delta


def test_the_guarantee_of_several_bins_spends_delta_on_all_of_them_together():
    one, ten = np.full(400, 0.5), np.repeat((np.arange(10) + 0.5) / 10, 400)
    alone = HistogramBinning(bins=1).fit(one, np.arange(400) % 4 == 0).guarantee(0.005)
    together = HistogramBinning(bins=10).fit(ten, np.arange(4000) % 4 == 0).guarantee(0.05)
    assert together.value == pytest.approx(alone.value, rel=1e-9)


def test_the_mean_guarantee_of_one_bin_is_the_guarantee_at_half_of_delta():
    fitted = HistogramBinning(bins=1).fit(np.full(400, 0.5), np.arange(400) % 3 == 0)
    assert fitted.mean_guarantee(0.1).value == pytest.approx(fitted.guarantee(0.05).value, rel=1e-12)


def test_the_mean_guarantee_covers_the_error_of_the_population():
    rng = np.random.default_rng(11)
    edges = equal_width_edges(8)
    truth = np.array([(b**3 - a**3) / 3 / (b - a) for a, b in pairwise(edges)])  # E[z² | bin]
    for _ in range(60):
        z = rng.random(300)
        fitted = HistogramBinning(bins=8).fit(z, rng.random(300) < z**2)
        assert np.abs(fitted.values_ - truth).mean() <= fitted.mean_guarantee(0.01).value


def test_a_guarantee_says_what_it_claims():
    bound = HistogramBinning(bins=2).fit([0.1, 0.3, 0.8], [0, 1, 1]).guarantee(0.1)
    assert bound.side == "upper"
    assert bound.n == 3
    assert bound.sentence.startswith("largest |E[c | bin] - value| over the bins that hold samples is at most ")
    assert "samples are independent draws from the population" in bound.assumptions


def test_nothing_is_guaranteed_of_weighted_samples():
    fitted = HistogramBinning(bins=2).fit([0.1, 0.9], [0, 1], [1.0, 2.0])
    with pytest.raises(InputError, match="fitted with sample_weight, for which no guarantee is known; fit without"):
        fitted.guarantee()
    with pytest.raises(InputError, match="no guarantee is known"):
        fitted.mean_guarantee()


@BOTH
@pytest.mark.parametrize("delta", [0, 1, "small"])
def test_a_delta_that_is_no_probability_is_refused(kind, delta):
    with pytest.raises(InputError, match="delta is"):
        kind().fit([0.5], [1]).guarantee(delta)


# --- bins of equal mass ------------------------------------------------------------------------------------------


def test_without_ties_bins_hold_equally_many():
    z = np.random.default_rng(14).random(100)
    fitted = EqualMassBinning(bins=10).fit(z, z > 0.5)
    assert np.histogram(z, fitted.edges_)[0].tolist() == [10] * 10


def test_saturated_confidences_are_a_bin_of_their_own():
    z = [0.5, 0.6, 0.7, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    fitted = EqualMassBinning(bins=3).fit(z, [0, 0, 1, 1, 1, 1, 1, 1, 0])
    assert fitted.edges_.tolist() == [0.0, 1.0, 1.0]
    assert fitted.transform([0.99, 1.0]) == pytest.approx([1 / 3, 5 / 6])


def test_fewer_samples_than_bins_give_fewer_bins():
    fitted = EqualMassBinning(bins=15).fit([0.2, 0.6, 0.8], [0, 1, 0])
    assert fitted.values_.size <= 4
    assert fitted.transform([0.2, 0.6, 0.8]).tolist() == [0.0, 1.0, 0.0]


@given(
    st.integers(0, 10_000),
    st.integers(2, 80),
    st.integers(1, 8),
    CLOSED,
    st.sampled_from([None, 3, 12, 40]),
    st.sampled_from([0.001, 0.05, 0.499]),
)
def test_guarantees_of_equal_mass_are_those_of_their_formulas(seed, n, bins, closed, places, delta):
    z, c = drawn(seed, n, places)
    fitted = EqualMassBinning(bins=bins, closed=closed).fit(z, c)
    cells = naive.equal_mass_cells(z, c, fitted.edges_, fitted.values_, closed)
    assert sum(seen for *_, seen in cells) == n
    if any(counted for _, counted, _, _ in cells):
        assert fitted.guarantee(delta).value == pytest.approx(naive.largest_distance(cells, delta), abs=1e-8)
        assert fitted.mean_guarantee(delta).value == pytest.approx(naive.mean_distance(cells, delta), abs=1e-8)
    again = Calibrator.from_dict(fitted.to_dict())
    assert again.to_dict() == fitted.to_dict()
    assert again.mean_guarantee(delta) == fitted.mean_guarantee(delta)


def test_the_guarantee_of_equal_mass_fails_with_probability_delta_and_one_of_97_per_cent_of_it_more_often():
    """Exactly, over the outcomes of two bins, given the confidences: the formula is that of the test above."""
    n, delta = 10_000, 0.05
    z = (np.arange(n) + 0.5) / n
    fitted = EqualMassBinning(bins=2).fit(z, np.arange(n) % 2)
    (_, first, _, _), (_, second, _, _) = naive.equal_mass_cells(
        z, np.arange(n) % 2, fitted.edges_, fitted.values_, "left"
    )
    assert (first, second) == (5000, 4999)  # the edge is not counted
    k = np.arange(2250, 2751)

    def far(right, size, value):
        lower, upper = (
            stats.beta.ppf(delta / 4, right, size - right + 1),
            stats.beta.isf(delta / 4, right + 1, size - right),
        )
        return np.maximum(upper - value, value - lower)

    failed = {1.0: 0.0, 0.97: 0.0}
    v0 = k / first
    for edge in (0, 1):
        v1 = (k + edge) / (second + 1)
        bound = np.maximum(far(k, first, v0)[:, None], far(k, second, v1)[None, :])
        likely = stats.binom.pmf(k, first, 0.5)[:, None] * stats.binom.pmf(k, second, 0.5)[None, :] / 2
        gap = np.maximum(np.abs(v0 - 0.5)[:, None], np.abs(v1 - 0.5)[None, :])
        for scale in failed:
            failed[scale] += float(likely[gap > scale * bound].sum())
    assert failed[1.0] <= delta
    assert failed[0.97] > delta


@pytest.mark.parametrize("closed", ["left", "right"])
def test_the_guarantee_holds_where_confidences_tie_and_edges_are_shared(closed):
    """Thirty places, alternately nearly never and nearly always right: whatever an edge takes with it shows."""
    rng = np.random.default_rng(15)
    places = np.arange(1, 31) / 31
    chance = np.where(np.arange(30) % 2, 0.1, 0.9)
    failed = 0
    for _ in range(200):
        drawn_places = rng.integers(0, 30, 400)
        z, c = places[drawn_places], rng.random(400) < chance[drawn_places]
        fitted = EqualMassBinning(bins=4, closed=closed).fit(z, c)
        bound = fitted.guarantee(0.2).value
        inner = fitted.edges_[1:-1]
        inside = np.searchsorted(inner, places)
        on = np.isin(places, inner)
        gaps = [
            abs(chance[(inside == m) & ~on].mean() - fitted.values_[m])
            for m in range(fitted.values_.size)
            if ((inside == m) & ~on).any()
        ]
        gaps += list(np.abs(chance[on] - fitted.transform(places[on])))
        failed += max(gaps) > bound
    assert failed <= 0.2 * 200


def test_edges_that_few_samples_share_make_the_guarantee_weak_and_not_wrong():
    z = np.repeat(np.arange(1, 101) / 101, 2)
    fitted = EqualMassBinning(bins=4).fit(z, np.arange(200) % 2)
    assert fitted.guarantee(0.05).value > 0.45
    apart = np.arange(1, 201) / 201
    assert EqualMassBinning(bins=4).fit(apart, np.arange(200) % 2).guarantee(0.05).value < 0.25


def test_the_mean_guarantee_says_what_it_assumes_of_edges():
    bound = EqualMassBinning(bins=2).fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1]).mean_guarantee()
    assert bound.assumptions[-1] == "no confidence that is an edge of one sample has a positive probability"


def test_samples_that_are_all_edges_guarantee_nothing():
    fitted = EqualMassBinning(bins=15).fit([0.5], [1])
    with pytest.raises(InputError, match="no bin holds a sample that counts, so nothing is guaranteed"):
        fitted.guarantee()
