"""Edge cases that were decided: ends, ties, one sample, many samples, short floats, minus zero, threads."""

import json
import math
import subprocess
import sys
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given

from certcal import Predictions, measure, metrics
from certcal.binning import bin_table, equal_width_edges
from certcal.metrics.differences import metric_change
from tests import naive

# Metrics of confidences that are never undefined or negative.
OF_CONFIDENCE = [
    entry.function
    for name, entry in metrics.METRICS.items()
    if entry.reads == "pair" and "top-label" in entry.tasks and name != "auroc" and not name.startswith("brier_")
]
# Errors that are |c - z| when there is one sample, or when all samples are alike.
GAPS = [
    metric
    for metric in OF_CONFIDENCE
    if metric.__name__.endswith(("ece", "mce", "error")) and metric is not metrics.debiased_ece
]
each_gap = pytest.mark.parametrize("metric", GAPS, ids=lambda metric: metric.__name__)


@each_gap
def test_one_sample_has_its_own_gap(metric):
    for z, c in product([0.0, 5e-324, 1e-9, 0.25, 1 / 3, 0.5, 0.7, 1 - 2**-53, 1.0], [0, 1]):
        assert metric([z], [c]) == pytest.approx(abs(c - z), abs=1e-9), (z, c)
        assert metric([z], [c], sample_weight=[7.0]) == pytest.approx(abs(c - z), abs=1e-9), (z, c)


@each_gap
def test_equal_confidences_have_the_gap_to_their_accuracy(metric):
    for dtype in naive.DTYPES:
        z, c = np.full(10, 0.7, dtype), [1] * 4 + [0] * 6
        assert metric(z, c) == pytest.approx(float(dtype(0.7)) - 0.4, abs=1e-9), dtype


@pytest.mark.parametrize("metric", OF_CONFIDENCE, ids=lambda metric: metric.__name__)
@pytest.mark.parametrize("outcome", [0, 1])
def test_all_right_and_all_wrong_have_a_value(metric, outcome):
    z = np.random.default_rng(0).random(100) * 0.98 + 0.01
    c = np.full(100, outcome)
    value = metric(z, c)
    assert 0 <= value < math.inf
    if metric in GAPS and metric not in (metrics.mce, metrics.lp_ece, metrics.mmce, metrics.kde_ece):
        assert value == pytest.approx(abs(outcome - z.mean()), abs=1e-9)  # every gap has the same sign


@pytest.mark.parametrize("dtype", naive.DTYPES)
def test_certain_and_right_has_no_error_and_certain_and_wrong_the_largest(dtype):
    z, c = np.array([0, 1, 1, 0], dtype), np.array([0, 1, 1, 0])
    for metric in OF_CONFIDENCE:
        if metric not in (metrics.kde_ece, metrics.harmonic_calibration_score):
            assert metric(z, c) == 0
    for metric in (metrics.ece, metrics.equal_mass_ece, metrics.mce, metrics.lp_ece, metrics.top_label_brier_score):
        assert metric(z, 1 - c) == 1
    # The cumulative sum climbs over the wrong zeros and comes back over the wrong ones.
    assert metrics.ks_error(z, 1 - c) == metrics.kuiper_error(z, 1 - c) == 0.5
    assert metrics.top_label_nll(z, 1 - c) == math.inf


def test_single_precision_sums_of_two_million_samples_equal_the_exact_value():
    rng = np.random.default_rng(1)
    values = rng.beta(5, 1, 500).astype(np.float32)
    which = rng.integers(0, 500, 2_000_000)
    z, c = values[which], (rng.random(which.size) < 0.85).astype(np.uint8)
    heavy = np.bincount(2 * which + c, minlength=1000)
    groups = naive.groups(np.repeat(values, 2), np.tile([0, 1], 500), naive.equal_width_edges(15), "left", heavy)
    assert metrics.ece(z, c) == pytest.approx(naive.ece_of(groups), rel=1e-12)
    assert metrics.mce(z, c) == pytest.approx(naive.mce_of(groups), rel=1e-12)
    mean = float(sum(Fraction(float(v)) * int(k) for v, k in zip(values, np.bincount(which), strict=True)) / which.size)
    table = bin_table(z, c, equal_width_edges(15))
    assert table.confidence_sum.sum() / which.size == pytest.approx(mean, rel=1e-14)
    assert metrics.ece(z, c, 1) == pytest.approx(abs(mean - c.mean()), rel=1e-12)


def test_more_samples_in_one_bin_than_single_precision_can_count():
    n = 2**24 + 2**20
    z, c = np.full(n, 0.8, np.float32), np.ones(n, np.uint8)
    assert metrics.ece(z, c) == 1 - float(np.float32(0.8))
    assert metrics.mce(z, c) == 1 - float(np.float32(0.8))
    assert metrics.accuracy(c) == 1


def test_wide_sums_do_not_overflow_when_every_sample_is_in_one_bin():
    n = 3_000_000
    z = np.ones(n)
    assert metrics.ece(z, np.zeros(n, np.uint8)) == 1
    assert metrics.ece(z, np.zeros(n, np.uint8), 700) == 1
    rows = np.zeros((300_000, 2))
    rows[:, 0] = 1
    assert metrics.classwise_ece(rows, np.ones(300_000, np.int64)) == 1


MINUS_ZERO = """
import json, sys
import numpy as np
from certcal import metrics
from certcal.binning import assign, equal_mass_edges

def values(zero, above):
    rng = np.random.default_rng(0)
    z = np.where(rng.random(3000) < 0.5, zero, rng.random(3000))
    c = rng.integers(0, 2, 3000)
    p = np.stack((1 - z, z), axis=1)
    p[:100] = above, zero
    crowded = [zero, zero, 1e-9, 2e-9, 3e-9, 4e-9, 5e-9, 6e-9, 1.0]
    found = []
    for dtype in (np.float16, np.float32, np.float64):
        x, q = z.astype(dtype), p.astype(dtype)
        for name in sys.argv[1].split():
            found.append(getattr(metrics, name)(x, c))
        found += equal_mass_edges(x, 4).tolist() + assign(x, crowded).tolist()
        found += [metrics.ece(x, c, edges=crowded), metrics.equal_mass_ece(x, c, 40, closed="right")]
        found += [metrics.classwise_ece(q, c), metrics.classwise_ece(q, c, edges=crowded)]
        found += [metrics.classwise_equal_mass_ece(q, c), metrics.brier_score(q, c)]
    return found


print(json.dumps([values(0.0, 1.0), values(-0.0, 1.0000000000000002)]))
"""


def test_minus_zero_is_zero_and_just_above_one_is_one_in_every_metric():
    names = " ".join(metric.__name__ for metric in OF_CONFIDENCE if metric is not metrics.top_label_nll)
    # In a process of its own: a value outside the tables would take this one down.
    done = subprocess.run([sys.executable, "-c", MINUS_ZERO, names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-500:]}"
    expected, found = json.loads(done.stdout)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@given(naive.scored())
def test_every_metric_of_anything_valid_is_a_number_without_a_warning(pair):
    z, c = pair
    for metric in OF_CONFIDENCE:
        if metric not in (metrics.smooth_ece, metrics.kde_ece):
            value = metric(z, c)
            assert not math.isnan(value)
            assert value >= 0
            assert isinstance(value, float)


@pytest.mark.parametrize("weight", [None, [0.7, 1e9, 0.0], [1.0, 1e9, 1.0]])
@pytest.mark.parametrize("outcome", [(0, 0, 0), (1, 0, 1), (1, 1, 1)])
@pytest.mark.parametrize(
    "scores",
    [
        [1e-300] * 3,
        [1e-300, 1e-12, 0.5],
        [1.0, 1e-300, 0.5],
        [5e-324, 1e-160, 1 - 2**-53],
        [1e-12, 0.0, 1.0],
        [0.0, 5e-324, 0.0],
    ],
)
def test_every_metric_of_scores_next_to_0_and_1_has_an_interval_that_contains_it(scores, outcome, weight):
    for n in (1, 3):
        samples = Predictions.from_scores(scores[:n], outcome[:n], None if weight is None else weight[:n])
        for row in metrics.measure(samples, metrics="all", bootstrap=20).rows:
            spread = row.interval
            if spread is not None and not math.isnan(row.value):
                assert spread.lower <= row.value <= spread.upper, row


@pytest.mark.filterwarnings("error")
def test_samples_without_weight_do_not_decide_how_a_change_is_judged():
    y, weight = np.array([0, 1] * 40), np.ones(80)
    old, new = (np.where(y, high, 1 - high) for high in (0.6, 0.8))
    old[0] = new[0] = 1.0  # an infinite loss
    weight[0] = 0
    sides = [Predictions.from_scores(z, y, weight) for z in (old, new)]
    few = [Predictions.from_scores(z[1:], y[1:], weight[1:]) for z in (old, new)]
    for paired in (True, False):
        found = metric_change("nll", *sides, paired=paired)[2]
        assert found.method == ("paired mean" if paired else "unpaired mean")
        assert (found.lower, found.upper) == pytest.approx(
            (lambda one: (one.lower, one.upper))(metric_change("nll", *few, paired=paired)[2])
        )


ROUNDED = {"smooth_ece", "kde_ece", "mmce", "ks_error", "kuiper_error", "auroc"}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("weigh", [False, True])
def test_the_number_of_threads_does_not_change_the_result(monkeypatch, weigh):
    rng = np.random.default_rng(3)
    n = 100_001  # rows of three are shared from 66,667 on, and three classes from 100,001 on
    p = rng.dirichlet(np.full(3, 0.4), n)
    y = np.where(rng.random(n) < 0.8, p.argmax(axis=1), rng.integers(0, 3, n))
    w = rng.gamma(1.0, size=n) if weigh else None
    predictions = Predictions.from_probabilities(p, y, w)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    usual = measure(predictions, bins=(15, 700), bootstrap=0, metrics="all")
    again = measure(predictions, bins=(15, 700), bootstrap=0, metrics="all")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone = measure(predictions, bins=(15, 700), bootstrap=0, metrics="all")
    for one, same, other in zip(usual, again, alone, strict=True):
        assert one.value == same.value, one.name
        if one.name in ROUNDED or (weigh and one.name.startswith("classwise")):
            assert other.value == pytest.approx(one.value, rel=1e-12, abs=1e-12), one.name
        else:
            assert other.value == one.value, one.name


def loaded_kernels():
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("certcal._kernels.")]
    return {kernel for each in modules for kernel in each.values() if hasattr(kernel, "py_func")}


def test_arrays_that_may_not_be_written_to_need_no_code_of_their_own(monkeypatch):
    rng = np.random.default_rng(6)
    z, w, x = rng.random(60) * 0.98 + 0.01, rng.random(60) + 0.01, rng.normal(size=(60, 2))
    c = (rng.random(60) < z).astype(np.uint8)
    arrays = z, c, w, np.stack((1 - z, z), axis=1), c.astype(np.int64), x

    def call_all():
        for weight in (None, w):
            for metric in (*OF_CONFIDENCE, metrics.auroc):
                metric(z, c, sample_weight=weight)
            for metric in (metrics.classwise_ece, metrics.classwise_equal_mass_ece, metrics.brier_score):
                metric(arrays[3], arrays[4], sample_weight=weight)
            metrics.nll(x, arrays[4], from_logits=True, sample_weight=weight)

    call_all()
    for kernel in loaded_kernels():
        monkeypatch.setattr(kernel, "_left", 0)  # compiled at once, however little there is to do
    before = {}
    for frozen in product([False, True], repeat=3):
        for array, alone in zip(arrays, frozen * 2, strict=True):
            array.flags.writeable = not alone
        call_all()
        times = {kernel: len(kernel.compiled.signatures) for kernel in loaded_kernels()}
        before = before or times
        assert times == before
    assert sum(before.values()) > 10


@pytest.mark.parametrize("factor", [1e-95, 1e95])
def test_weights_of_extreme_but_accepted_size_lose_nothing(factor):
    rng = np.random.default_rng(5)
    z, w = rng.random(200) * 0.98 + 0.01, rng.random(200) + 0.01
    c = (rng.random(200) < z).astype(np.uint8)
    for metric in (*OF_CONFIDENCE, metrics.auroc):
        expected = metric(z, c, sample_weight=w)
        assert metric(z, c, sample_weight=factor * w) == pytest.approx(expected, rel=1e-9), metric
    rows = np.stack((1 - z, z), axis=1)
    for metric in (metrics.classwise_ece, metrics.classwise_equal_mass_ece, metrics.brier_score, metrics.nll):
        assert metric(rows, c, sample_weight=factor * w) == pytest.approx(metric(rows, c, sample_weight=w), rel=1e-9)
    for metric in (metrics.ece, metrics.top_label_brier_score):
        for found in (metrics.with_interval, metrics.bootstrap):
            one = found(metric, z, c, replicates=50, sample_weight=w).interval
            other = found(metric, z, c, replicates=50, sample_weight=factor * w).interval
            assert (other.lower, other.upper) == pytest.approx((one.lower, one.upper), rel=1e-9)


def test_a_thousand_classes_with_rows_that_sum_to_one_up_to_a_millionth():
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.full(1000, 0.01), 200).astype(np.float32)
    p[:, 0] += np.where(np.arange(200) % 2, 1e-6, 0).astype(np.float32)
    y = rng.integers(0, 1000, 200)
    table = measure(Predictions.from_probabilities(p, y), bootstrap=0, metrics="all")
    assert table["brier_score"].value == pytest.approx(naive.brier_score(p, y), rel=1e-12)
    assert table["accuracy"].value == np.mean(p.argmax(axis=1) == y)
    assert table["ece"].value == pytest.approx(naive.ece(p.max(axis=1), p.argmax(axis=1) == y), abs=1e-12)


def test_scores_given_as_binary_are_never_replaced_by_the_larger_of_the_two():
    # max(p, 1 - p) would see a perfect classifier.
    assert metrics.ece([0.0, 0.0], [1, 1]) == 1
    assert metrics.smooth_ece([0.0, 0.0], [1, 1]) == pytest.approx(1, abs=1e-9)
    assert metrics.kde_ece([0.0, 0.0], [1, 1]) == pytest.approx(1, abs=1e-9)
