"""The bootstrap of a metric of one's own: the ordinary bootstrap's distribution, and what it does not promise."""

import functools
import json
import math

import numpy as np
import pytest

from certcal import Estimate, InputError, metrics
from certcal.metrics import bootstrap
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


def assert_same_quantiles(metric, arrays, drawn, **options):
    """Every end of an interval lies where the ordinary replicates have that quantile, up to Monte-Carlo error."""
    ordinary, count = np.sort(drawn), drawn.size
    interval = bootstrap(metric, *arrays, level=0.8, replicates=count, seed=1, **options).interval
    for end, share in ((interval.lower, 0.1), (interval.upper, 0.9)):
        # Positions of a quantile in two independent samples differ by five standard deviations at most.
        room = 5 * math.sqrt(share * (1 - share) * 2 / count)
        low, high = between(ordinary, share, room)
        assert low - 1e-12 <= end <= high + 1e-12, (metric, share)


def between(ordered, share, room):
    """Quantiles on both sides of a share; beyond the ends nothing is known."""
    low = np.quantile(ordered, share - room, method="nearest") if share > room else -math.inf
    high = np.quantile(ordered, share + room, method="nearest") if share + room < 1 else math.inf
    return low, high


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (metrics.ece, {"bins": 5, "closed": "right"}),
        (metrics.equal_mass_ece, {"bins": 5}),
        (metrics.top_label_brier_score, {}),
        (metrics.auroc, {}),
    ],
)
@pytest.mark.parametrize("tenths", [False, True])
def test_replicates_are_distributed_like_the_ordinary_bootstrap(metric, options, tenths):
    z, c = data(150, dtype=np.float32)
    if tenths:
        z = (np.clip(np.round(z * 10), 1, 9) / 10).astype(np.float32)
    drawn = naive.replicates(functools.partial(metric, **options), (z, c), 300, seed=2)
    assert_same_quantiles(metric, (z, c), drawn, **options)


@pytest.mark.parametrize("metric", [metrics.brier_score, metrics.classwise_ece])
def test_replicates_of_rows_are_distributed_like_the_ordinary_bootstrap(metric):
    p, y = rows(150)
    assert_same_quantiles(metric, (p, y), naive.replicates(metric, (p, y), 300, seed=2))


def test_replicates_of_one_array_are_distributed_like_the_ordinary_bootstrap():
    z = data(150)[0]
    assert_same_quantiles(mean_confidence, (z,), naive.replicates(np.mean, (z,), 600, seed=2))
    drawn = np.random.default_rng(0).binomial(400, 0.75, 1000) / 400
    assert_same_quantiles(metrics.accuracy, (np.arange(400) < 300,), drawn)


@pytest.mark.parametrize("metric", [metrics.ece, metrics.top_label_brier_score, metrics.auroc])
def test_samples_are_resampled_together_with_their_weights(metric):
    z, c = data(150)
    w = np.random.default_rng(5).gamma(1.0, size=150)
    drawn = naive.replicates(lambda z, c, w: metric(z, c, sample_weight=w), (z, c, w), 300, seed=2)
    assert_same_quantiles(metric, (z, c), drawn, sample_weight=w)


@pytest.mark.parametrize("metric", [metrics.accuracy, metrics.top_label_brier_score])
def test_intervals_of_averages_cover_the_truth_about_as_often_as_they_say(metric):
    simulations, covered = 200, 0
    # z uniform on [0.5, 1] and perfectly calibrated: accuracy is E z = 3/4, the Brier score E z(1 - z) = 1/6.
    truth = 0.75 if metric is metrics.accuracy else 1 / 6
    for seed in range(simulations):
        rng = np.random.default_rng(seed)
        z = 0.5 + 0.5 * rng.random(100)
        c = (rng.random(100) < z).astype(np.uint8)
        arrays = (c,) if metric is metrics.accuracy else (z, c)
        interval = bootstrap(metric, *arrays, level=0.9, replicates=100, seed=seed).interval
        covered += interval.lower <= truth <= interval.upper
    # Three standard deviations of a binomial share, and a little for n = 100.
    assert abs(covered / simulations - 0.9) < 3 * math.sqrt(0.09 / simulations) + 0.02


def test_at_a_calibrated_model_intervals_of_calibration_errors_miss_zero_and_those_of_means_do_not():
    inside = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = rng.random(1000)
        c = rng.random(1000) < z  # so that every calibration error is 0 in the population
        for metric in (metrics.ece, metrics.mce):
            assert bootstrap(metric, z, c, replicates=50).interval.lower > 0
        spread = bootstrap(metrics.top_label_brier_score, z, c, replicates=50).interval
        inside += spread.lower <= 1 / 6 <= spread.upper  # the mean of z (1 - z)
    assert inside >= 17


@pytest.mark.parametrize("weigh", [False, True])
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(weigh):
    z, c = data(100)
    w = np.random.default_rng(0).random(100) if weigh else None
    options = {"replicates": 30, "sample_weight": w}
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
def test_your_own_metric_sees_confidences_of_the_type_you_gave(dtype):
    # In float32 and float16 seven tenths is below 0.7: as float64 it would fall into another bin.
    seen = set()

    def watched(confidence, correct, sample_weight=None):
        seen.add(confidence.dtype)
        return metrics.ece(confidence, correct, 10, sample_weight=sample_weight)

    bootstrap(watched, (np.arange(1, 12) / 11).astype(dtype), np.arange(11) % 2, replicates=10)
    assert seen == {np.dtype(dtype)}


def test_your_own_metric_of_rows_is_resampled_by_rows():
    def first_column(probabilities, labels, sample_weight=None):
        return float(np.average(np.asarray(probabilities)[:, 0], weights=sample_weight))

    p, y = rows(200)
    found = bootstrap(first_column, p, y, replicates=300)
    spread = p[:, 0].std() / math.sqrt(200)
    assert found.interval.lower == pytest.approx(found.value - 1.96 * spread, abs=0.5 * spread)
    assert found.interval.upper == pytest.approx(found.value + 1.96 * spread, abs=0.5 * spread)


# --------------------------------------------------------------------------------------------------- decided edge cases


@pytest.mark.parametrize("n", [10, 600])
def test_one_infinite_loss_makes_the_upper_end_infinite(n):
    z, c = np.full(n, 0.5), np.ones(n, np.uint8)
    z[0], c[0] = 1.0, 0
    found = bootstrap(metrics.top_label_nll, z, c, replicates=100)
    assert found.value == math.inf
    assert found.interval.upper == math.inf
    assert found.interval.lower == pytest.approx(math.log(2)) or found.interval.lower == math.inf


def test_an_infinite_loss_of_weight_zero_does_not_count():
    z, c, w = [1.0, 0.5, 0.25], [0, 1, 1], [0.0, 1.0, 1.0]
    found = bootstrap(metrics.top_label_nll, z, c, sample_weight=w, replicates=50)
    assert found.value == pytest.approx(1.5 * math.log(2))
    assert math.log(2) <= found.interval.lower <= found.interval.upper <= 2 * math.log(2) + 1e-12


def test_replicates_without_a_value_are_left_out():
    # One wrong sample of six: a third of the replicates has none, and no area.
    z, c = [0.9, 0.8, 0.7, 0.6, 0.55, 0.65], [1, 1, 1, 1, 1, 0]
    found = bootstrap(metrics.auroc, z, c, replicates=300).interval
    assert 0 <= found.lower < found.upper <= 1


def test_an_undefined_value_has_an_undefined_interval():
    found = bootstrap(metrics.auroc, [0.5, 0.6], [1, 1], replicates=10)
    assert math.isnan(found.value)
    assert math.isnan(found.interval.lower)
    assert math.isnan(found.interval.upper)


@pytest.mark.parametrize("metric", [metrics.ece, metrics.top_label_brier_score, metrics.equal_mass_ece])
def test_a_single_sample_never_varies(metric):
    found = bootstrap(metric, [0.25], [1], replicates=20)
    assert found.interval.lower == found.interval.upper == pytest.approx(found.value)


def test_weights_mostly_zero_leave_empty_replicates_out():
    w = [1, 0, 0]
    found = bootstrap(metrics.ece, [0.25, 0.5, 0.75], [1, 1, 1], sample_weight=w, replicates=200)
    assert found.interval.lower == found.interval.upper == 0.75


def test_ends_are_order_statistics():
    drawn = iter([0.0, *np.random.default_rng(0).permutation(np.arange(1.0, 1001.0))])
    found = bootstrap(lambda z, sample_weight=None: next(drawn), [0.5], replicates=1000, level=0.9).interval
    assert (found.lower, found.upper) == (50.0, 950.0)
    drawn = iter([5.0, *np.arange(10.0)])
    wide = bootstrap(lambda z, sample_weight=None: next(drawn), [0.5], replicates=10, level=0.999).interval
    assert (wide.lower, wide.upper) == (0.0, 9.0)


def test_a_higher_level_gives_a_wider_interval():
    z, c = data(200)
    ends = [bootstrap(metrics.ece, z, c, level=level, replicates=200).interval for level in (0.5, 0.9, 0.99)]
    assert ends[0].lower >= ends[1].lower >= ends[2].lower
    assert ends[0].upper <= ends[1].upper <= ends[2].upper


BAD = {
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
