"""Classwise calibration errors: every class is a binary task of its own, and all count alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal.metrics import classwise_ece, classwise_equal_mass_ece, ece, equal_mass_ece
from tests import naive

CLOSED = st.sampled_from(["left", "right"])
CLOSE = {"rel": 1e-12, "abs": 1e-12}


@given(naive.classified(), st.integers(1, 40), CLOSED)
def test_classwise_error_agrees_with_its_definition(data, bins, closed):
    p, y, w = data
    expected = naive.classwise(p, y, lambda z, c: naive.ece(z, c, bins, None, closed, w))
    assert classwise_ece(p, y, bins, closed=closed, sample_weight=w) == pytest.approx(expected, **CLOSE)


@given(naive.classified(), naive.own_edges(), CLOSED)
def test_classwise_error_with_own_edges_agrees_with_its_definition(data, edges, closed):
    p, y, w = data
    expected = naive.classwise(p, y, lambda z, c: naive.ece(z, c, edges=edges, closed=closed, w=w))
    assert classwise_ece(p, y, edges=edges, closed=closed, sample_weight=w) == pytest.approx(expected, **CLOSE)


@given(naive.classified(), st.integers(1, 40), CLOSED)
def test_classwise_equal_mass_error_agrees_with_its_definition(data, bins, closed):
    p, y, w = data
    expected = naive.classwise(p, y, lambda z, c: naive.equal_mass_ece(z, c, bins, closed, w))
    assert classwise_equal_mass_ece(p, y, bins, closed=closed, sample_weight=w) == pytest.approx(expected, **CLOSE)


@given(naive.classified(classes=20), st.integers(1, 700), CLOSED)
def test_classwise_errors_are_the_mean_of_the_binary_errors_of_the_classes(data, bins, closed):
    p, y, w = data
    options = {"closed": closed, "sample_weight": w}
    columns = [(p[:, k], y == k) for k in range(p.shape[1])]
    binary = np.mean([ece(z, c, bins, **options) for z, c in columns])
    assert classwise_ece(p, y, bins, **options) == pytest.approx(binary, **CLOSE)
    by_mass = np.mean([equal_mass_ece(z, c, 10, **options) for z, c in columns])
    assert classwise_equal_mass_ece(p, y, 10, **options) == pytest.approx(by_mass, **CLOSE)


@given(naive.scored(dtypes=(np.float64,)), st.sampled_from([1, 2, 8, 64]))
def test_two_classes_that_mirror_each_other_have_the_binary_error_of_either_side(pair, bins):
    z, c = np.round(pair[0] * 1024) / 1024, pair[1]
    both = np.stack((1 - z, z), axis=1)
    expected = (ece(z, c, bins) + ece(z, c, bins, closed="right")) / 2  # mirroring swaps the closed side
    assert classwise_ece(both, c, bins) == pytest.approx(expected, **CLOSE)


@given(naive.classified(), st.randoms(use_true_random=False))
def test_the_order_of_the_classes_does_not_matter(data, random):
    p, y, w = data
    columns = list(range(p.shape[1]))
    random.shuffle(columns)
    for metric in (classwise_ece, classwise_equal_mass_ece):
        expected = metric(p, y, sample_weight=w)
        assert metric(p[:, columns], np.argsort(columns)[y], sample_weight=w) == pytest.approx(expected, **CLOSE)


@pytest.mark.parametrize("dtype", naive.DTYPES)
@pytest.mark.parametrize("weigh", [False, True])
def test_many_samples_on_several_threads_agree_with_their_definition(monkeypatch, dtype, weigh):
    rng = np.random.default_rng(0)
    kinds = rng.dirichlet(np.full(4, 0.3), 60).astype(dtype)
    # Three threads share rows of four from 100,003 on, and each class is one's own from 200,001 on.
    which, y = rng.integers(0, 60, 200_001), rng.integers(0, 4, 200_001)
    w = rng.integers(0, 8, y.size) / 4 if weigh else None
    short, labels = np.repeat(kinds, 4, axis=0), np.tile(np.arange(4), 60)
    heavy = np.bincount(4 * which + y, w, 240)
    wide = naive.classwise(short, labels, lambda z, c: naive.ece(z, c, 15, w=heavy))
    mass = naive.classwise(short, labels, lambda z, c: naive.equal_mass_ece(z, c, 15, w=heavy))
    found = []
    for threads in (1, 3):
        monkeypatch.setattr("certcal._base.threads.thread_count", lambda threads=threads: threads)
        found.append(classwise_ece(kinds[which], y, sample_weight=w))
        assert found[-1] == pytest.approx(wide, **CLOSE)
        assert classwise_equal_mass_ece(kinds[which], y, sample_weight=w) == pytest.approx(mass, **CLOSE)
    assert weigh or len(set(found)) == 1


@pytest.mark.parametrize("dtype", naive.DTYPES)
def test_a_thousand_classes_agree_with_a_plain_sum(dtype):
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(400, 1000)) * 3
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = (p / p.sum(axis=1, keepdims=True)).astype(dtype)
    y = rng.integers(0, 1000, 400)
    exact, outcome = p.astype(np.float64), np.eye(1000)[y]
    edges = (np.arange(1, 15) / 15).astype(dtype)
    where = np.searchsorted(edges, p.ravel(), side="right").reshape(p.shape)
    gaps = np.bincount((where + 15 * np.arange(1000)).ravel(), (outcome - exact).ravel(), 15_000)
    expected = np.abs(gaps).sum() / 400 / 1000
    assert classwise_ece(p, y) == pytest.approx(expected, **CLOSE)
    some = [equal_mass_ece(p[:, k], y == k) for k in range(1000)]
    assert classwise_equal_mass_ece(p, y) == pytest.approx(np.mean(some), **CLOSE)


def test_an_entry_above_one_by_rounding_counts_as_one():
    for above in (1 + 1e-7, 1 + 9e-7, np.nextafter(1, 2)):
        rows = np.array([[above, 0.0], [0.5, 0.5]])
        for metric in (classwise_ece, classwise_equal_mass_ece):
            assert metric(rows, [0, 1], 1) == pytest.approx(0.25, abs=1e-15)
            assert metric(rows, [0, 1], 15) == metric(np.minimum(rows, 1), [0, 1], 15)


def test_certain_and_right_has_no_error_and_certain_and_wrong_the_largest():
    rows = np.eye(5)
    for metric in (classwise_ece, classwise_equal_mass_ece):
        assert metric(rows, np.arange(5)) == 0
        assert metric(rows, (np.arange(5) + 1) % 5) == pytest.approx(2 / 5)


def test_one_sample_has_the_mean_absolute_gap_of_its_row():
    assert classwise_ece([[0.7, 0.2, 0.1]], [1]) == pytest.approx((0.7 + 0.8 + 0.1) / 3)
    assert classwise_equal_mass_ece([[0.7, 0.2, 0.1]], [1]) == pytest.approx((0.7 + 0.8 + 0.1) / 3)


@pytest.mark.parametrize("off", [1e-6, -1e-6])
def test_rows_are_not_renormalised(off):
    rows = [[0.25 + off, 0.75], [0.5, 0.5]]
    assert classwise_ece(rows, [1, 0], 1) == pytest.approx(abs(0.75 + off - 1) / 4 + abs(1.25 - 1) / 4, abs=1e-15)
