"""Bootstrap intervals: the ordinary bootstrap's distribution, textbook corrections, honest levels."""

from __future__ import annotations

import functools
import json
import math
import tracemalloc
from itertools import product
from unittest import mock

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import bootstrap as scipy_bootstrap
from scipy.stats import skew

from certcal import Estimate, InputError, _threads, metrics
from certcal.binning import bin_table, equal_mass_edges, equal_width_edges
from certcal.metrics import bootstrap
from certcal.metrics._bootstrap import (
    acceleration,
    bin_metric,
    interval_from,
    left_out,
    make_atoms,
    mean_metric,
    table_of,
)
from certcal.metrics._rows import ResampledClasswise, ResampledClasswiseMass, ResampledFunction
from certcal.metrics.registry import METRICS
from certcal.metrics.scores import mean_confidence
from tests import naive


def data(n, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    z = rng.beta(4, 1.5, n).astype(dtype)
    return z, (rng.random(n) < 0.9 * z).astype(np.uint8)


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 0.5), n)
    return p, np.where(rng.random(n) < 0.6, p.argmax(axis=1), rng.integers(0, 4, n))


def intervals(metric, arrays, levels, **options):
    """Intervals of several levels from the replicates of one call, of which those of other levels have the same."""
    seen = []

    def watched(*arguments):
        seen.append(arguments)
        return interval_from(*arguments)

    first, *others = levels
    with (
        mock.patch("certcal.metrics._bootstrap.interval_from", watched),
        mock.patch("certcal.metrics._rows.interval_from", watched),
    ):
        found = [bootstrap(metric, *arrays, level=first, **options).interval]
    ((drawn, value, level, method, skewed),) = seen
    assert level == first
    return found + [interval_from(drawn, value, other, method, skewed) for other in others]


def assert_same_quantiles(metric, arrays, drawn, *, sample_weight=None, **options):
    """Every end of the intervals lies where the ordinary replicates have that quantile, up to Monte-Carlo error."""
    ordinary = np.sort(drawn)
    count = drawn.size
    levels, options = (0.5, 0.9), {"replicates": count, "seed": 1, "sample_weight": sample_weight} | options
    for level, interval in zip(levels, intervals(metric, arrays, levels, **options), strict=True):
        for end, share in ((interval.lower, (1 - level) / 2), (interval.upper, (1 + level) / 2)):
            # Positions of a quantile in two independent samples differ by five standard deviations at most.
            room = 5 * math.sqrt(share * (1 - share) * (1 / drawn.size + 1 / count))
            low, high = between(ordinary, share, room)
            assert low - 1e-12 <= end <= high + 1e-12, (metric, level, share)


def between(ordered, share, room):
    """Quantiles on both sides of a share; beyond the ends nothing is known."""
    low = np.quantile(ordered, share - room, method="nearest") if share > room else -math.inf
    high = np.quantile(ordered, share + room, method="nearest") if share + room < 1 else math.inf
    return low, high


# ------------------------------------------------------------------------------------------------ the same distribution

OF_CONFIDENCE = [
    (metrics.ece, {"bins": 10}),
    (metrics.ece, {"bins": 5, "closed": "right"}),
    (metrics.ece, {"edges": [0, 0.3, 0.7, 0.9, 1]}),
    (metrics.mce, {"bins": 5}),
    (metrics.lp_ece, {"bins": 10, "p": 3.0}),
    (metrics.debiased_ece, {"bins": 10}),
    (metrics.harmonic_calibration_score, {"bins": 10, "beta": 2.0}),
    (metrics.equal_mass_ece, {"bins": 5}),
    (metrics.top_label_brier_score, {}),
    (metrics.top_label_nll, {}),
    (metrics.auroc, {}),
    (METRICS["brier_reliability"].function, {"bins": 10}),
    (METRICS["brier_resolution"].function, {"bins": 5, "closed": "right"}),
    (METRICS["brier_uncertainty"].function, {}),
    (METRICS["brier_within_bin"].function, {"bins": 4}),
]


def id_of(case):
    return f"{case[0].__name__} {case[1]}"


@pytest.mark.parametrize("case", OF_CONFIDENCE, ids=id_of)
@pytest.mark.parametrize("tenths", [False, True])
def test_replicates_of_few_samples_are_distributed_like_the_ordinary_bootstrap(case, tenths):
    metric, options = case
    z, c = data(150, dtype=np.float32)
    if tenths:
        z = (np.clip(np.round(z * 10), 1, 9) / 10).astype(np.float32)
    drawn = naive.replicates(functools.partial(metric, **options), (z, c), 600, seed=2)
    assert_same_quantiles(metric, (z, c), drawn, **options)


@pytest.mark.parametrize("metric", [metrics.ks_error, metrics.kuiper_error, metrics.smooth_ece, metrics.mmce])
def test_replicates_of_metrics_without_bins_are_distributed_like_the_ordinary_bootstrap(metric):
    z, c = data(100)
    drawn = naive.replicates(metric, (z, c), 120, seed=2)
    assert_same_quantiles(metric, (z, c), drawn)


@pytest.mark.parametrize("metric", [metrics.brier_score, metrics.nll, metrics.classwise_ece])
def test_replicates_of_rows_are_distributed_like_the_ordinary_bootstrap(metric):
    p, y = rows(150)
    drawn = naive.replicates(metric, (p, y), 800, seed=2)
    assert_same_quantiles(metric, (p, y), drawn)


def test_replicates_of_the_mean_confidence_are_distributed_like_the_ordinary_bootstrap():
    for z in (data(150)[0], data(20_000, dtype=np.float32)[0]):
        assert_same_quantiles(mean_confidence, (z,), naive.replicates(np.mean, (z.astype(np.float64),), 600, seed=2))


@pytest.mark.parametrize("n", [200, 20_000])
@pytest.mark.parametrize("weigh", [False, True])
def test_the_terms_of_every_replicate_add_up_to_its_brier_score(n, weigh):
    z, c = data(n)
    w = np.random.default_rng(3).gamma(1.0, size=n) if weigh else None
    edges = equal_width_edges(6)
    atoms = make_atoms(z, c, w, edges, "left")
    for sums in ((atoms.count, atoms.weight, atoms.squared), atoms.draw(np.random.default_rng(1))):
        parts = {
            name: bin_metric(METRICS[f"brier_{name}"].form, {"bins": 6}, edges, "left")(atoms, sums)
            for name in ("reliability", "resolution", "uncertainty", "within_bin")
        }
        total = parts["reliability"] - parts["resolution"] + parts["uncertainty"] + parts["within_bin"]
        if sums[0] is atoms.count:
            assert total == pytest.approx(metrics.top_label_brier_score(z, c, sample_weight=w), rel=1e-12)
            expected = metrics.brier_decomposition(z, c, 6, sample_weight=w)
            assert parts["within_bin"] == pytest.approx(expected.within_bin, rel=1e-9)
        else:
            near = np.dot(sums[1], (atoms.correct - atoms.confidence) ** 2) / sums[1].sum()
            assert total == pytest.approx(near, rel=1e-4)


def test_replicates_of_accuracy_are_binomial():
    c = (np.arange(400) < 300).astype(np.uint8)
    drawn = np.random.default_rng(0).binomial(400, 0.75, 4000) / 400
    assert_same_quantiles(metrics.accuracy, (c,), drawn)


@pytest.mark.parametrize(
    ("metric", "n", "count"),
    [
        (metrics.ece, 150, 600),
        (metrics.equal_mass_ece, 150, 300),
        (metrics.top_label_brier_score, 150, 600),
        (metrics.auroc, 150, 600),
        (metrics.ece, 20_000, 150),
        (metrics.top_label_brier_score, 20_000, 150),
    ],
)
def test_samples_are_resampled_together_with_their_weights(metric, n, count):
    z, c = data(n)
    w = np.random.default_rng(5).gamma(1.0, size=n)

    def heavy(z, c, w):
        return metric(z, c, sample_weight=w)

    drawn = naive.replicates(heavy, (z, c, w), count, seed=2)
    assert_same_quantiles(metric, (z, c), drawn, sample_weight=w)


@pytest.mark.parametrize("case", OF_CONFIDENCE, ids=id_of)
def test_replicates_of_many_samples_are_distributed_like_the_ordinary_bootstrap(case):
    metric, options = case
    z, c = data(20_000)
    drawn = naive.replicates(functools.partial(metric, **options), (z, c), 200, seed=2)
    assert_same_quantiles(metric, (z, c), drawn, **options)


@pytest.mark.parametrize("n", [1, 2, 4096, 4097, 20_000])
@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("weigh", [False, True])
def test_atoms_add_up_to_the_bins_of_the_samples_and_never_cross_an_edge(n, dtype, weigh):
    z, c = data(n, dtype=dtype)
    z[: n // 2] = (np.round(z[: n // 2] * 10) / 10).astype(dtype)
    w = np.random.default_rng(3).integers(0, 5, n) + 0.5 if weigh else None
    for closed in ("left", "right"):
        edges = equal_width_edges(10)
        atoms = make_atoms(z, c, w, edges, closed)
        table = bin_table(z, c, edges, closed, w)
        found = table_of(atoms, (atoms.count, atoms.weight, atoms.squared), edges, closed)
        np.testing.assert_array_equal(found.count, table.count)
        for name in ("weight", "squared_weight", "confidence_sum", "correct_sum"):
            np.testing.assert_allclose(getattr(found, name), getattr(table, name), rtol=1e-12, atol=1e-12)
        assert atoms.count.size <= n
        assert n > 4096 or atoms.count.size == n


@pytest.mark.parametrize("n", [4097, 20_000])
@pytest.mark.parametrize("weigh", [False, True])
def test_atoms_hold_one_outcome_each_when_there_are_no_bins(n, weigh):
    z, c = np.full(n, 0.5), np.zeros(n, np.uint8)
    c[: n // 3 + 1] = 1
    w = np.ones(n) if weigh else None
    atoms = make_atoms(z, c, w, None, "left")
    assert (atoms.count * atoms.correct).sum() == c.sum()
    assert atoms.count.size <= 4098


def test_every_replicate_draws_as_many_samples_as_there_are():
    z, c = data(10_000)
    for w in (None, np.full(10_000, 0.5)):
        atoms = make_atoms(z, c, w, equal_width_edges(15), "left")
        for seed in range(5):
            count, weight, squared = atoms.draw(np.random.default_rng(seed))
            assert count.sum() == 10_000
            assert weight.sum() == pytest.approx(10_000 * (1 if w is None else 0.5))
            assert squared.sum() == pytest.approx(10_000 * (1 if w is None else 0.25))
            assert count.min() >= 0


# ------------------------------------------------------------------------------------------------------------------ BCa


def textbook_bca(drawn, value, left_out, level):
    """Efron (1987), equations 2.3, 6.6 and 7.4."""
    shift = ndtri((np.mean(drawn < value) + np.mean(drawn <= value)) / 2)
    influence = left_out.mean() - left_out
    skewed = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    ends = ndtri([(1 - level) / 2, (1 + level) / 2])
    shares = ndtr(shift + (shift + ends) / (1 - skewed * (shift + ends)))
    return shares, skewed


def jackknife(metric, *arrays):
    keep = ~np.eye(len(arrays[0]), dtype=bool)
    return np.array([metric(*(array[rest] for array in arrays)) for rest in keep])


CASES = [
    (metrics.top_label_brier_score, {}),
    (metrics.top_label_nll, {}),
    (metrics.ece, {"bins": 5}),
    (metrics.lp_ece, {"bins": 5}),
    (metrics.auroc, {}),
]


@pytest.mark.parametrize("case", CASES, ids=id_of)
def test_bca_agrees_with_the_textbook(case):
    metric, options = case
    z, c = data(120, seed=4)
    plain = functools.partial(metric, **options)
    drawn = np.sort(naive.replicates(plain, (z, c), 2000, seed=5))
    shares, _ = textbook_bca(drawn, plain(z, c), jackknife(plain, z, c), 0.9)
    found = bootstrap(metric, z, c, method="bca", level=0.9, replicates=2000, seed=6, **options).interval
    for end, share in ((found.lower, shares[0]), (found.upper, shares[1])):
        # The shift is estimated as well, which doubles the Monte-Carlo error of a quantile.
        room = 2 * 4 * math.sqrt(share * (1 - share) * 2 / 2000)
        low, high = between(drawn, share, room)
        assert low - 1e-12 <= end <= high + 1e-12
    assert found.method == "bca"


def test_bca_of_very_skewed_losses_needs_the_acceleration_and_agrees_with_the_textbook():
    z = np.random.default_rng(3).random(40) ** 16
    c = np.zeros(40, np.uint8)
    losses = z**2
    count = 20_000
    drawn = np.sort(naive.replicates(np.mean, (losses,), count, seed=5))
    shares, skewed = textbook_bca(drawn, losses.mean(), jackknife(np.mean, losses), 0.9)
    assert skewed > 0.1
    found = bootstrap(metrics.top_label_brier_score, z, c, method="bca", level=0.9, replicates=count, seed=6).interval
    for end, share in ((found.lower, shares[0]), (found.upper, shares[1])):
        low, high = between(drawn, share, 2 * 4 * math.sqrt(share * (1 - share) * 2 / count))
        assert low <= end <= high


@pytest.mark.parametrize(("value", "skewed"), [(500.0, 0.0), (430.0, 0.05), (610.0, -0.1)])
def test_bca_ends_are_the_order_statistics_of_the_corrected_tails(value, skewed):
    drawn = np.arange(1.0, 1001.0)
    shift = ndtri((np.mean(drawn < value) + np.mean(drawn <= value)) / 2)
    moved = shift + ndtri([0.05, 0.95])
    low, high = ndtr(shift + moved / (1 - skewed * moved))
    found = interval_from(drawn, value, 0.9, "bca", skewed)
    assert found.lower == pytest.approx(1000 * low, abs=1.001)
    assert found.upper == pytest.approx(1000 * high, abs=1.001)


@pytest.mark.parametrize("metric", [metrics.top_label_brier_score, metrics.accuracy])
def test_bca_agrees_with_scipy(metric):
    z, c = data(300, seed=7)
    losses = (c - z) ** 2 if metric is metrics.top_label_brier_score else c.astype(np.float64)
    arrays = (z, c) if metric is metrics.top_label_brier_score else (c,)
    expected = scipy_bootstrap(
        (losses,), np.mean, n_resamples=6000, method="BCa", confidence_level=0.95, rng=np.random.default_rng(0)
    )
    found = bootstrap(metric, *arrays, method="bca", replicates=6000, seed=1).interval
    spread = expected.standard_error
    assert found.lower == pytest.approx(expected.confidence_interval.low, abs=0.2 * spread)
    assert found.upper == pytest.approx(expected.confidence_interval.high, abs=0.2 * spread)
    percentile = bootstrap(metric, *arrays, replicates=6000, seed=1).interval
    assert percentile != found


@pytest.mark.parametrize("case", CASES[:3], ids=id_of)
def test_the_acceleration_of_few_samples_is_that_of_leaving_each_out(case):
    metric, options = case
    z, c = data(120, seed=8)
    plain = functools.partial(metric, **options)
    expected = textbook_bca(np.array([0.0, 1.0]), 0.5, jackknife(plain, z, c), 0.9)[1]
    if metric is metrics.ece:
        edges = equal_width_edges(5)
        atoms, evaluate = make_atoms(z, c, None, edges, "left"), bin_metric(METRICS["ece"].form, {}, edges, "left")
    else:
        losses = np.array([metric(z[k : k + 1], c[k : k + 1]) for k in range(120)])
        atoms, evaluate = make_atoms(losses, np.zeros(120, np.uint8), None, None, "left"), mean_metric
    assert acceleration(*left_out(atoms, evaluate)) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("n", [512, 3000, 30_000])
def test_the_acceleration_of_a_mean_is_its_skewness_over_six_roots_of_n(n):
    losses = np.random.default_rng(9).gamma(0.7, size=n)
    losses /= losses.max()
    atoms = make_atoms(losses, np.zeros(n, np.uint8), None, None, "left")
    assert acceleration(*left_out(atoms, mean_metric)) == pytest.approx(skew(losses) / 6 / math.sqrt(n), rel=0.02)


def test_bca_of_a_symmetric_mean_is_nearly_the_percentile_interval():
    z = np.concatenate((np.linspace(0.2, 0.8, 300), [0.5]))
    c = np.zeros(301)
    found = bootstrap(metrics.mce, z, c, bins=1, method="bca", replicates=4000).interval
    percentile = bootstrap(metrics.mce, z, c, bins=1, replicates=4000).interval
    assert found.lower == pytest.approx(percentile.lower, abs=2e-3)
    assert found.upper == pytest.approx(percentile.upper, abs=2e-3)


def test_bca_of_replicates_entirely_on_one_side_is_still_an_interval():
    # A perfectly calibrated bin: every replicate of the error is above the value 0.
    z, c = np.full(40, 0.5), np.arange(40) % 2
    found = bootstrap(metrics.ece, z, c, bins=1, method="bca", replicates=200).interval
    assert 0 <= found.lower <= found.upper <= 1


# --------------------------------------------------------------------------------------------------------- BCa of rows


def whole_rows(n, kind, seed=0):
    """Rows of probabilities; tenths have many ties in every class."""
    p, y = rows(n, seed)
    if kind == "tenths":
        p = np.round(p, 1)
        p[:, 0] = np.clip(p[:, 0] + 1 - p.sum(axis=1), 0, 1)
        p /= p.sum(axis=1, keepdims=True)
    return p.astype(np.float32 if kind == "float32" else np.float64), y


def weights_of(n, kind):
    rng = np.random.default_rng(11)
    return {"none": None, "gamma": rng.gamma(1.0, size=n), "some zero": rng.integers(0, 3, n) * 0.1}[kind]


def exactly(metric, p, y, bins, closed, w):
    """The classwise metrics from their definition."""
    of = naive.ece if metric is metrics.classwise_ece else naive.equal_mass_ece
    return naive.classwise(p, y, lambda z, c: of(z, c, bins, closed=closed, w=w))


def strategy(metric, p, y, w, bins, closed):
    if metric is metrics.classwise_ece:
        return ResampledClasswise(p, y, w, equal_width_edges(bins), closed)
    return ResampledClasswiseMass(p, y, w, bins, closed)


CLASSWISE = [metrics.classwise_ece, metrics.classwise_equal_mass_ece]


@pytest.mark.parametrize("metric", CLASSWISE)
@pytest.mark.parametrize("kind", ["float64", "float32", "tenths"])
@pytest.mark.parametrize("weigh", ["none", "gamma", "some zero"])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_leaving_a_row_out_gives_the_definition_on_the_rest(metric, kind, weigh, closed):
    n = 14
    p, y = whole_rows(n, kind)
    w = weights_of(n, weigh)
    for bins in (1, 3, 5):
        found = strategy(metric, p, y, w, bins, closed).left_out()
        for i in range(n):
            rest = np.arange(n) != i
            expected = exactly(metric, p[rest], y[rest], bins, closed, None if w is None else w[rest])
            assert found[i] == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("metric", CLASSWISE)
@pytest.mark.parametrize("kind", ["float64", "float32", "tenths"])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_a_replicate_of_rows_is_the_definition_on_the_rows_drawn(metric, kind, closed):
    p, y = whole_rows(14, kind)
    rng = np.random.default_rng(1)
    drawn = [rng.integers(0, 14, 14) for _ in range(5)]
    times = np.stack([np.bincount(index, minlength=14) for index in drawn], axis=1).astype(np.float64)
    for bins in (1, 4, 15):
        found = strategy(metric, p, y, None, bins, closed).evaluate(times)
        expected = [exactly(metric, p[index], y[index], bins, closed, None) for index in drawn]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("metric", CLASSWISE)
@pytest.mark.parametrize("weigh", [False, True])
def test_rows_left_out_on_several_threads_agree_with_the_metric_on_the_rest(monkeypatch, metric, weigh):
    n, bins = 70_000, 10
    p, y = rows(n)
    w = np.random.default_rng(2).gamma(1.0, size=n) if weigh else None
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(_threads, "thread_count", lambda threads=threads: threads)
        found.append(strategy(metric, p, y, w, bins, "left").left_out())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
    for i in (0, 1, 35_000, n - 1):
        rest = np.arange(n) != i
        expected = metric(p[rest], y[rest], bins, sample_weight=None if w is None else w[rest])
        assert found[0][i] == pytest.approx(expected, rel=1e-11)


def test_intervals_of_rows_are_the_same_bits_on_any_number_of_threads(monkeypatch):
    p, y = rows(3000)
    for metric in CLASSWISE:
        found = []
        for threads in (1, 2, 5):
            monkeypatch.setattr(_threads, "thread_count", lambda threads=threads: threads)
            found.append(bootstrap(metric, p, y, replicates=20, seed=4).interval)
        assert found[0] == found[1] == found[2]


def mean_of_first(probabilities, labels, sample_weight=None):
    """A metric of rows that nothing is known about."""
    return float(np.average(np.asarray(probabilities)[:, 0] ** 4, weights=sample_weight))


@pytest.mark.parametrize("metric", [*CLASSWISE, mean_of_first])
def test_bca_of_rows_agrees_with_the_textbook(metric):
    p, y = rows(80, seed=4)
    drawn = np.sort(naive.replicates(metric, (p, y), 1000, seed=5))
    shares, skewed = textbook_bca(drawn, metric(p, y), jackknife(metric, p, y), 0.9)
    found = bootstrap(metric, p, y, method="bca", level=0.9, replicates=1000, seed=6).interval
    for end, share in ((found.lower, shares[0]), (found.upper, shares[1])):
        room = 2 * 4 * math.sqrt(share * (1 - share) * 2 / 1000)
        low, high = between(drawn, share, room)
        assert low - 1e-12 <= end <= high + 1e-12
    assert found.method == "bca"
    percentile = bootstrap(metric, p, y, level=0.9, replicates=1000, seed=6).interval
    assert percentile.method == "percentile"
    assert (percentile.lower, percentile.upper) != (found.lower, found.upper)
    if metric is mean_of_first:  # so few rows that each is left out alone
        assert acceleration(ResampledFunction(metric, [p, y], None, {}, 0).left_out()) == pytest.approx(
            skewed, rel=1e-9
        )


def test_the_acceleration_of_groups_of_rows_is_that_of_leaving_each_out_up_to_its_noise():
    n = 5000
    p, y = rows(n, seed=3)
    values = p[:, 0] ** 4
    found = [acceleration(ResampledFunction(mean_of_first, [p, y], None, {}, seed).left_out()) for seed in range(8)]
    # The skewness of 512 normal sums has the standard deviation √(6 / 512).
    noise = math.sqrt(6 / 512) / 6 / math.sqrt(512)
    assert np.mean(found) == pytest.approx(skew(values) / 6 / math.sqrt(n), abs=4 * noise / math.sqrt(8))
    assert max(found) > min(found)


@pytest.mark.parametrize("metric", [*CLASSWISE, mean_of_first])
def test_bca_of_one_row_or_of_one_row_with_all_the_weight_never_varies(metric):
    one = bootstrap(metric, [[0.75, 0.25]], [0], method="bca", replicates=20)
    assert one.interval.lower == one.interval.upper == pytest.approx(one.value)
    p, y = rows(3)
    heavy = bootstrap(metric, p, y, sample_weight=[0, 1, 0], method="bca", replicates=50)
    assert heavy.interval.lower == pytest.approx(heavy.value)
    assert heavy.interval.upper == pytest.approx(heavy.value)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("metric", CLASSWISE)
def test_rows_are_resampled_together_with_their_weights(method, metric):
    p, y = rows(60, seed=2)
    w = weights_of(60, "gamma")
    named = bootstrap(metric, p, y, bins=4, method=method, replicates=40, seed=3, sample_weight=w).interval

    def unnamed(probabilities, labels, sample_weight=None):
        return metric(probabilities, labels, 4, sample_weight=sample_weight)

    other = bootstrap(unnamed, p, y, method=method, replicates=40, seed=3, sample_weight=w).interval
    assert (named.lower, named.upper) == pytest.approx((other.lower, other.upper), rel=1e-12)


# ------------------------------------------------------------------------------------------------------------- coverage


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("metric", [metrics.accuracy, metrics.top_label_brier_score])
def test_intervals_of_smooth_metrics_cover_the_truth_about_as_often_as_they_say(method, metric):
    simulations, covered = 200, 0
    # z uniform on [0.5, 1] and perfectly calibrated: accuracy is E z = 3/4, the Brier score E z(1 - z) = 1/6.
    truth = 0.75 if metric is metrics.accuracy else 1 / 6
    for seed in range(simulations):
        rng = np.random.default_rng(seed)
        z = 0.5 + 0.5 * rng.random(100)
        c = (rng.random(100) < z).astype(np.uint8)
        arrays = (c,) if metric is metrics.accuracy else (z, c)
        interval = bootstrap(metric, *arrays, level=0.9, method=method, replicates=120, seed=seed).interval
        covered += interval.lower <= truth <= interval.upper
    # Three standard deviations of a binomial share, and a little for n = 100.
    assert abs(covered / simulations - 0.9) < 3 * math.sqrt(0.09 / simulations) + 0.02


# ----------------------------------------------------------------------------------------------------------- the result


@pytest.mark.parametrize("metric", [metrics.ece, metrics.top_label_brier_score, metrics.accuracy, metrics.brier_score])
def test_intervals_of_several_levels_are_of_the_same_replicates(metric):
    arrays = rows(60) if metric is metrics.brier_score else data(60)[metric is metrics.accuracy :]
    options, levels = {"replicates": 40, "seed": 3}, (0.5, 0.9)
    found = intervals(metric, arrays, levels, **options)
    assert found == [bootstrap(metric, *arrays, level=level, **options).interval for level in levels]


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("weigh", [False, True])
@pytest.mark.parametrize("n", [100, 5000])
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(method, weigh, n):
    z, c = data(n)
    w = np.random.default_rng(0).random(n) if weigh else None
    options = {"method": method, "replicates": 30, "sample_weight": w}
    one, again, other = (bootstrap(metrics.ece, z, c, seed=seed, **options).interval for seed in (3, 3, 4))
    assert one == again
    assert one != other


def test_the_global_random_state_is_neither_used_nor_changed():
    z, c = data(50)
    np.random.seed(1)  # noqa: NPY002
    before = bootstrap(metrics.ece, z, c, replicates=20).interval
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert bootstrap(metrics.ece, z, c, replicates=20).interval == before
    np.random.seed(1)  # noqa: NPY002
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


def test_the_order_of_the_samples_does_not_matter():
    z, c = data(300)
    order = np.random.default_rng(1).permutation(300)
    one = bootstrap(metrics.ece, z, c, replicates=50).interval
    assert bootstrap(metrics.ece, z[order], c[order], replicates=50).interval == one


def test_at_a_calibrated_model_intervals_of_calibration_errors_miss_zero_and_those_of_means_do_not():
    resampled = [(metrics.ece, "percentile"), (metrics.ece, "bca"), (metrics.mce, "percentile")]
    inside = 0
    for seed, n in product(range(10), (1_000, 5_000)):
        rng = np.random.default_rng(seed)
        z = rng.random(n)
        c = rng.random(n) < z  # so that every calibration error is 0 in the population
        for metric, method in [*resampled, *([(metrics.ks_error, "percentile")] if n == 1_000 else [])]:
            assert bootstrap(metric, z, c, replicates=50, method=method).interval.lower > 0
        spread = bootstrap(metrics.top_label_brier_score, z, c, replicates=50).interval
        inside += spread.lower <= 1 / 6 <= spread.upper  # the mean of z (1 - z)
    assert inside >= 17


def test_the_result_is_an_estimate_with_the_value_of_the_metric_and_its_settings():
    z, c = data(300)
    found = bootstrap(metrics.ece, z, c, bins=7, closed="right", replicates=20, level=0.8)
    assert isinstance(found, Estimate)
    assert (found.name, found.value, found.n) == ("ece", metrics.ece(z, c, 7, closed="right"), 300)
    assert found.settings == {"bins": 7, "closed": "right"}
    assert (found.interval.level, found.interval.method) == (0.8, "percentile")


@pytest.mark.parametrize("options", [{"bins": np.int64(5)}, {"edges": np.array([0, 0.5, 1])}, {"edges": [0, 0.5, 1]}])
def test_the_result_becomes_json_whatever_the_options_were(options):
    z, c = data(20)
    found = bootstrap(metrics.ece, z, c, replicates=10, **options)
    assert json.loads(json.dumps(found.to_dict()))["interval"] == found.interval.to_dict()


def test_lists_and_columns_are_taken_like_arrays():
    z, c = data(30)
    expected = bootstrap(metrics.ece, z, c, replicates=20).interval
    assert bootstrap(metrics.ece, z.tolist(), c.tolist(), replicates=20).interval == expected
    assert bootstrap(metrics.accuracy, c.tolist(), replicates=20).n == 30


def test_your_own_metric_is_resampled_as_well():
    def largest(confidence, correct, sample_weight=None):
        return float(np.max(confidence))

    found = bootstrap(largest, [0.2, 0.4, 0.9], [0, 1, 1], replicates=50)
    assert found.name == "largest"
    assert found.interval.upper == 0.9
    assert found.interval.lower < 0.9


@pytest.mark.parametrize("dtype", naive.DTYPES)
def test_your_own_binned_metric_sees_confidences_of_the_type_you_gave(dtype):
    # In float32 and float16 seven tenths is below 0.7: as float64 it would fall into another bin.
    rng = np.random.default_rng(0)
    z = (rng.integers(0, 11, 200) / 10).astype(dtype)
    c = rng.integers(0, 2, 200)
    mine = functools.partial(metrics.ece, bins=10)
    expected = bootstrap(metrics.ece, z, c, bins=10, replicates=50).interval
    found = bootstrap(mine, z, c, replicates=50).interval
    assert (found.lower, found.upper) == pytest.approx((expected.lower, expected.upper), abs=1e-12)


def test_your_own_metric_of_rows_is_resampled_by_rows():
    def first_column(probabilities, labels, sample_weight=None):
        return float(np.average(np.asarray(probabilities)[:, 0], weights=sample_weight))

    p, y = rows(200)
    found = bootstrap(first_column, p, y, replicates=300)
    spread = p[:, 0].std() / math.sqrt(200)
    assert found.interval.lower == pytest.approx(found.value - 1.96 * spread, abs=0.5 * spread)
    assert found.interval.upper == pytest.approx(found.value + 1.96 * spread, abs=0.5 * spread)


# --------------------------------------------------------------------------------------------------- decided edge cases


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("n", [10, 6000])
def test_one_infinite_loss_makes_the_upper_end_infinite(method, n):
    z, c = np.full(n, 0.5), np.ones(n, np.uint8)
    z[0], c[0] = 1.0, 0
    found = bootstrap(metrics.top_label_nll, z, c, method=method, replicates=100)
    assert found.value == math.inf
    assert found.interval.upper == math.inf
    assert found.interval.lower == pytest.approx(math.log(2)) or found.interval.lower == math.inf


def test_an_infinite_loss_of_weight_zero_does_not_count():
    z, c, w = [1.0, 0.5, 0.25], [0, 1, 1], [0.0, 1.0, 1.0]
    found = bootstrap(metrics.top_label_nll, z, c, sample_weight=w, replicates=50)
    assert found.value == pytest.approx(1.5 * math.log(2))
    assert math.log(2) <= found.interval.lower <= found.interval.upper <= 2 * math.log(2) + 1e-12


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_replicates_without_a_value_are_left_out(method):
    # One wrong sample of six: a third of the replicates has none, and no area.
    z, c = [0.9, 0.8, 0.7, 0.6, 0.55, 0.65], [1, 1, 1, 1, 1, 0]
    found = bootstrap(metrics.auroc, z, c, method=method, replicates=300).interval
    assert 0 <= found.lower < found.upper <= 1


def test_an_undefined_value_has_an_undefined_interval():
    found = bootstrap(metrics.auroc, [0.5, 0.6], [1, 1], replicates=10)
    assert math.isnan(found.value)
    assert math.isnan(found.interval.lower)
    assert math.isnan(found.interval.upper)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("metric", [metrics.ece, metrics.top_label_brier_score, metrics.equal_mass_ece])
def test_a_single_sample_never_varies(method, metric):
    found = bootstrap(metric, [0.25], [1], method=method, replicates=20)
    assert found.interval.lower == found.interval.upper == pytest.approx(found.value)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_weights_mostly_zero_leave_empty_replicates_out(method):
    w = [1, 0, 0]
    found = bootstrap(metrics.ece, [0.25, 0.5, 0.75], [1, 1, 1], sample_weight=w, replicates=200, method=method)
    assert found.interval.lower == found.interval.upper == 0.75


def test_percentile_ends_are_order_statistics():
    drawn = np.random.default_rng(0).permutation(np.arange(1.0, 1001.0))
    found = interval_from(drawn, 500.0, 0.9, "percentile", 0.0)
    assert (found.lower, found.upper) == (50.0, 950.0)
    assert interval_from(drawn[:20] * 0 + 3, 3.0, 0.95, "percentile", 0.0).upper == 3.0
    wide = interval_from(np.arange(10.0), 5.0, 0.999, "percentile", 0.0)
    assert (wide.lower, wide.upper) == (0.0, 9.0)


def test_a_higher_level_gives_a_wider_interval():
    z, c = data(200)
    for method in ("percentile", "bca"):
        ends = [bootstrap(metrics.ece, z, c, level=level, method=method).interval for level in (0.5, 0.9, 0.99)]
        assert ends[0].lower >= ends[1].lower >= ends[2].lower
        assert ends[0].upper <= ends[1].upper <= ends[2].upper


BAD = {
    "unknown method": ({"method": "basic"}, r"^method is 'basic'; pass one of 'percentile', 'bca'"),
    "no method": ({"method": None}, r"^method is None; pass one of"),
    "level 0": ({"level": 0}, r"^level is 0; pass a confidence level between 0 and 1"),
    "level 1": ({"level": 1.0}, r"^level is 1\.0; pass a confidence level between 0 and 1"),
    "level in percent": ({"level": 95}, r"^level is 95; pass a confidence level between 0 and 1"),
    "level not a number": ({"level": math.nan}, r"^level is nan; pass a confidence level"),
    "level in words": ({"level": "95%"}, r"^level is '?95%'?; pass a confidence level"),
    "no replicates": ({"replicates": 0}, r"^replicates is 0; pass a (whole )?number from 10"),
    "too few replicates": ({"replicates": 9}, r"^replicates is 9; pass a (whole )?number from 10"),
    "negative replicates": ({"replicates": -5}, r"^replicates is -5; pass a (whole )?number from 10"),
    "too many replicates": ({"replicates": 10**7}, r"^replicates is 10000000; pass a (whole )?number from 10"),
    "half a replicate": ({"replicates": 100.5}, r"^replicates is 100\.5; pass a (whole )?number"),
    "replicates in words": ({"replicates": "many"}, r"^replicates is '?many'?; pass a (whole )?number"),
    "negative seed": ({"seed": -1}, r"^seed is -1; pass "),
    "seed in words": ({"seed": "x"}, r"^seed is '?x'?; pass "),
    "half a seed": ({"seed": 2.5}, r"^seed is 2\.5; pass "),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD.keys())
def test_bad_requests_are_refused_with_a_sentence(options, message):
    with pytest.raises(InputError, match=message):
        bootstrap(metrics.ece, [0.5, 0.6], [1, 0], **options)


def test_more_equal_mass_bins_than_samples_take_no_memory_for_the_empty_ones():
    z, c = np.array([0.0, 0.2, 0.5, 0.7, 1.0, 1.0]), np.array([0, 0, 1, 1, 0, 1])
    bootstrap(metrics.equal_mass_ece, z, c, bins=20, replicates=10)
    tracemalloc.start()
    found = bootstrap(metrics.equal_mass_ece, z, c, bins=10_000, replicates=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000  # exact sums of weights took 44 MB
    assert found.value == metrics.ece(z, c, edges=equal_mass_edges(z, 10_000))
    assert found.interval == bootstrap(metrics.equal_mass_ece, z, c, bins=9_000, replicates=10).interval
