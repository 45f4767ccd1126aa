"""Intervals for the population value of every metric: coverage, and what they are made of."""

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc

from certcal import Predictions, metrics
from certcal.binning import bin_table, equal_width_edges
from certcal.metrics import (
    METRICS,
    Evidence,
    accuracy,
    auroc,
    bootstrap,
    ece,
    lp_ece,
    mce,
    measure,
    nll,
    smooth_ece,
    top_label_brier_score,
    top_label_nll,
    with_interval,
)
from certcal.metrics._intervals import BinNoise, KernelNoise, deviation, quantile, rate_ends
from experiments.intervals import (
    MIXED,
    POPULATIONS,
    SCORED,
    Population,
    classwise_missed,
    gaussian_ends,
    intervals,
    missed,
    yardsticks,
)

Floats = NDArray[np.float64]
# Half of the failure probability of a level of 95 %.
TAIL = 0.025


def most(allowed: float, repeats: int) -> float:
    """The largest share of misses that so many samples show by chance where this one is allowed."""
    return allowed + 3 * math.sqrt(allowed * (1 - allowed) / repeats)


@pytest.mark.parametrize(
    ("title", "n"),
    [
        ("calibrated", 100),
        ("slightly miscalibrated", 100),
        ("badly miscalibrated", 500),
        ("gaps of both signs", 100),
        ("rare, calibrated", 100),
        ("rare, under-predicted", 500),
        ("scores near 1, overconfident", 100),
        ("scores near 0, never so rare", 100),
        ("rare, told apart", 100),
        ("rare, nearly told apart", 500),
        ("five grades, miscalibrated", 30),
    ],
)
def test_every_interval_covers_the_population_value(title: str, n: int) -> None:
    found = missed(intervals(POPULATIONS[title], n, 60))
    assert found.keys() == SCORED.keys()
    for name, (above, below, width) in found.items():
        assert above + below <= most(0.07, 60), name
        # A ratio to the few events that are expected may be anything.
        assert 0 < width < 1.2 or name == "observed_expected_ratio", name


# Where an interval is as narrow as it can be: shrinking it by a third loses the level.
TIGHT = [
    ("accuracy", "calibrated", 500, "both"),
    ("mean_confidence", "slightly miscalibrated", 2000, "both"),
    ("top_label_brier_score", "badly miscalibrated", 2000, "both"),
    ("top_label_nll", "badly overconfident, top label", 2000, "both"),
    ("auroc", "slightly miscalibrated", 1000, "both"),
    ("ece", "calibrated, one score", 1000, "lower"),
    ("ece", "slightly overconfident, top label", 4000, "lower"),
    ("ece", "scores near 1, overconfident", 2000, "upper"),
    ("equal_mass_ece", "calibrated, one score", 1000, "lower"),
    ("ks_error", "calibrated", 1000, "lower"),
    ("ks_error", "badly overconfident, top label", 1000, "upper"),
    ("kuiper_error", "calibrated", 1000, "lower"),
    ("kuiper_error", "badly overconfident, top label", 1000, "upper"),
    ("mmce", "calibrated, one score", 1000, "lower"),
    ("smooth_ece", "scores near 1, overconfident", 1000, "upper"),
]


@pytest.mark.parametrize(("name", "title", "n", "end"), TIGHT)
def test_an_interval_that_is_a_third_narrower_does_not_cover(name: str, title: str, n: int, end: str) -> None:
    found = list(intervals(POPULATIONS[title], n, 400, [name], seed=1))

    def share(shrink: float) -> float:
        above, below, _ = missed(found, shrink)[name]
        return {"lower": above, "upper": below, "both": above + below}[end]

    assert share(0.0) <= most(2 * TAIL if end == "both" else TAIL, 400) < share(1 / 3)


# Widths in units of an interval that is told every sign. When a bin that is not clear counted as calibrated for the
# lower end, and as clear for the upper, they were 1.70, 1.60, 1.48, 1.43, 1.28 and 1.53; and 1.46 of the last, which is
# the worst pattern: the two lower ends miss in almost 5 % together.
@pytest.mark.parametrize(
    ("title", "n", "widest"),
    [
        ("gaps of both signs", 1000, 1.35),
        ("small gaps of both signs", 5000, 1.4),
        ("rare, over-predicted", 5000, 1.3),
        ("slightly miscalibrated", 1000, 1.36),
        ("calibrated", 5000, 1.12),
        ("logistic, slope 0.65", 1000, 1.47),
        ("a fifth off by 0.2, the rest calibrated", 2000, 1.55),
    ],
)
def test_the_interval_of_the_ece_covers_and_is_narrow(title: str, n: int, widest: float) -> None:
    population = (POPULATIONS | MIXED)[title]
    above, below, width = missed(intervals(population, n, 600, ["ece"], seed=2))["ece"]
    assert above + below <= most(0.05, 600)
    assert below <= most(0.025, 600)
    assert width < widest * yardsticks(population, n)[1]


# Gaps in standard errors. Both ends together miss the most where all are clear, or a few and the others 0.
@pytest.mark.parametrize(
    "gaps",
    [
        [0.0] * 15,
        [1.5] * 15,
        [3.0, -3.0] * 7,
        [10.0] * 15,
        [10.0] * 8 + [0.0] * 7,
        [4.0] * 5 + [0.0] * 10,
        [6.0, 3.0],
        [2.5],
    ],
)
def test_no_pattern_of_gaps_is_missed_more_often_than_the_level_says(gaps: list[float]) -> None:
    drawn = np.array(gaps) + np.random.default_rng(9).normal(size=(2000, len(gaps)))
    low, high = np.array([gaussian_ends(each) for each in drawn]).T
    truth = sum(map(abs, gaps))
    assert np.mean(truth > high) <= most(0.025, 2000)
    assert np.mean((truth < low) | (truth > high)) <= most(0.05, 2000)


@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_the_classwise_interval_covers(temperature: float) -> None:
    assert sum(classwise_missed(300, 100, temperature)) <= most(0.07, 100)


def test_weighted_samples_are_covered() -> None:
    scores = np.linspace(0.05, 0.95, 400)
    population = Population(scores, scores**1.3, (1 + scores, np.full(400, 0.5)))
    for name, (above, below, _) in missed(intervals(population, 300, 100)).items():
        assert above + below <= most(0.07, 100), name


def test_three_hundred_calibrated_rows_have_an_interval_that_holds_the_estimate_and_the_truth() -> None:
    population = POPULATIONS["calibrated"]
    z, c, _ = population.draw(300, np.random.default_rng(22))
    found = with_interval(ece, z, c)
    assert found.interval is not None
    assert found.interval.lower == 0.0 < found.value < found.interval.upper < 0.15
    percentile = bootstrap(ece, z, c, replicates=500).interval
    assert percentile is not None
    assert percentile.lower > 0.03  # biased upward: the truth is 0


@pytest.mark.parametrize(
    ("z", "c"),
    [
        ([0.3], [1]),
        ([0.0, 1.0], [0, 1]),
        ([0.5] * 20, [1] * 20),
        ([0.0] * 5, [0] * 5),
        ([0.2, 0.2, 0.9], [0, 1, 1]),
    ],
)
def test_every_interval_contains_its_estimate_in_the_range_of_the_metric(z: list[float], c: list[int]) -> None:
    for weight in (None, [1.0] * (len(z) - 1) + [0.25]):
        table = measure(Predictions.from_confidence(z, c, sample_weight=weight), bins=4, bootstrap=10, metrics="all")
        for row in table:
            assert row.interval is not None
            if math.isnan(row.value):
                assert math.isnan(row.interval.lower), row
                continue
            assert row.interval.lower <= row.value <= row.interval.upper, row
            if row.name not in ("brier_within_bin", "top_label_nll"):
                assert row.interval.lower >= 0, row
                assert row.interval.upper <= 1, row


def test_a_log_loss_with_certain_scores_has_no_upper_end() -> None:
    spread = with_interval(top_label_nll, [1.0, 0.9, 0.8], [1, 1, 0]).interval
    assert spread is not None
    assert math.isfinite(spread.lower)
    assert spread.upper == math.inf
    infinite = with_interval(top_label_nll, [1.0, 0.9], [0, 1])
    assert infinite.interval is not None
    assert infinite.interval.lower == math.inf


@pytest.mark.parametrize("weight", [None, [2.5]])
def test_one_sample_says_nothing_of_a_mean_loss(weight: list[float] | None) -> None:
    for function, most in ((top_label_brier_score, 1.0), (top_label_nll, math.inf)):
        spread = with_interval(function, [0.3], [1], sample_weight=weight).interval
        assert spread is not None
        assert (spread.lower, spread.upper) == (0.0, most)
    two = with_interval(top_label_brier_score, [0.3, 0.3], [1, 1], sample_weight=[1.0, 1.0]).interval
    assert two is not None
    assert two.lower > 0 or two.upper < 1


def test_the_scale_of_weights_does_not_matter_and_weight_zero_is_not_there() -> None:
    rng = np.random.default_rng(3)
    z = rng.random(60)
    c = (rng.random(60) < z).astype(np.uint8)
    w = rng.random(60)
    w[:10] = 0
    for function in (ece, mce, lp_ece, smooth_ece, auroc, top_label_nll):
        some = with_interval(function, z, c, sample_weight=w).interval
        scaled = with_interval(function, z, c, sample_weight=7 * w).interval
        without = with_interval(function, z[10:], c[10:], sample_weight=w[10:]).interval
        assert some is not None
        assert scaled is not None
        assert without is not None
        assert (scaled.lower, scaled.upper) == pytest.approx((some.lower, some.upper), abs=1e-12)
        assert (without.lower, without.upper) == pytest.approx((some.lower, some.upper), abs=1e-12)


def test_logits_have_the_interval_of_their_probabilities() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(50, 4)), rng.integers(0, 4, 50)
    p = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    one, other = with_interval(nll, x, y, from_logits=True).interval, with_interval(nll, p, y).interval
    assert one is not None
    assert other is not None
    assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper))


def test_a_metric_of_ones_own_gets_percentiles() -> None:
    def share_above(confidence: object, correct: object, *, sample_weight: object = None) -> float:
        return float(np.average(np.asarray(confidence) > 0.5, weights=sample_weight))  # type: ignore[arg-type]

    z, c = np.linspace(0, 1, 50), np.arange(50) % 2
    found = with_interval(share_above, z, c, replicates=50)
    assert found.interval is not None
    assert found.interval.method == "percentile"
    row = measure(Predictions.from_confidence(z, c), metrics=share_above, bootstrap=50)["share_above"]
    assert row.interval == found.interval


def test_every_metric_has_an_interval_of_its_own() -> None:
    assert all(entry.interval is not None or entry.test for entry in METRICS.values())
    assert {entry.interval.name for entry in SCORED.values() if entry.interval} == {
        "Clopper-Pearson", "score", "DeLong", "norm", "joint", "MOVER"
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------ what they are made of


def test_a_deviation_solves_its_equation() -> None:
    for noise, reach, q in ((0.01, 0.002, 1.96), (0.0, 0.01, 2.5), (0.3, 0.0, 1.0)):
        x = deviation(noise, reach, q)
        assert x**2 == pytest.approx(q**2 * (noise + x * reach))


def test_rates_are_those_whose_tails_are_as_unlikely_as_asked() -> None:
    for hits, n in ((3, 20), (0, 7), (7, 7), (50, 100)):
        lower, upper = (float(end) for end in rate_ends(hits / n, n, TAIL))
        assert bdtrc(hits - 1, n, lower) == pytest.approx(TAIL) if hits else lower == 0
        assert bdtr(hits, n, upper) == pytest.approx(TAIL) if hits < n else upper == 1
    found = with_interval(accuracy, [1, 1, 0, 1, 1]).interval
    assert found is not None
    assert bdtr(4, 5, found.upper) == pytest.approx(TAIL)


def blank_noise(gaps: Floats, deviations: Floats) -> BinNoise:
    """Bins with these gaps and standard deviations, and samples enough for both to be normal."""
    enough = np.full(gaps.size, 100.0)
    return BinNoise(np.ones(gaps.size), gaps, deviations**2, deviations**2, deviations**2, enough, enough)


@pytest.mark.parametrize("deviations", [[1.0], [1.0, 1.0, 1.0], [3.0, 1.0, 0.5, 0.2]])
def test_the_quantile_of_the_noise_of_calibrated_bins_is_that_of_a_simulation(deviations: list[float]) -> None:
    scale = np.array(deviations)
    drawn = np.abs(np.random.default_rng(0).normal(size=(400_000, scale.size)))
    beyond = (scale * (drawn - 2 / math.sqrt(math.pi) * np.exp(-(drawn**2) / 2))).sum(axis=1)
    found = blank_noise(np.zeros(scale.size), scale).norm_quantile(quantile(TAIL))
    assert found == pytest.approx(np.quantile(beyond, 1 - TAIL), rel=0.035)


# Nodes and weights of the mean over a standard normal variable.
_NODES, _WEIGHTS = np.linspace(-10, 10, 20_001), NormalDist().pdf(0) * np.exp(-(np.linspace(-10, 10, 20_001) ** 2) / 2)


def lengthened(gap: float, deviation: float) -> tuple[float, float]:
    """Mean and variance of the size of a gap with noise."""
    drawn, share = np.abs(gap + deviation * _NODES), _WEIGHTS / _WEIGHTS.sum()
    mean = float(np.dot(share, drawn))
    return mean, float(np.dot(share, drawn**2)) - mean**2


@pytest.mark.parametrize("gap", [0.0, 0.3, 1.0, 2.0, 3.0, 5.0])
def test_what_is_taken_from_a_gap_is_what_noise_adds_or_more(gap: float) -> None:
    taken = blank_noise(gap + 2.0 * _NODES, np.full(_NODES.size, 2.0)).lengthening
    mean = float(np.dot(_WEIGHTS, taken)) / float(_WEIGHTS.sum())
    added = lengthened(gap, 2.0)[0] - gap
    assert added - 1e-6 <= mean <= 2.0 * math.sqrt(2 / math.pi)
    assert mean == pytest.approx(added, abs=1e-6) if gap == 0 else mean > added


@pytest.mark.parametrize("gaps", [[0.0, 0.0], [3.0, 1.0], [2.0, 2.0], [4.0, 0.0], [9.0, 8.0]])
def test_noise_adds_the_least_where_all_gaps_are_as_many_deviations(gaps: list[float]) -> None:
    deviations = np.array([3.0, 1.0])
    noise, total = blank_noise(np.zeros(2), deviations), sum(gaps)
    added, lacking = noise.least_lengthening(total)
    known = [lengthened(*each) for each in zip(gaps, deviations.tolist(), strict=True)]
    assert added <= sum(mean for mean, _ in known) - total + 1e-6
    even = [lengthened(total / 4 * each, each) for each in deviations.tolist()]
    assert added == pytest.approx(sum(mean for mean, _ in even) - total, abs=1e-6)
    assert 10 - lacking == pytest.approx(sum(variance for _, variance in even), abs=1e-5)


def test_bins_whose_sign_is_certain_add_their_noise_with_its_sign() -> None:
    z, c = np.repeat([0.1, 0.9], 500), np.repeat([1, 0], 500).astype(np.uint8)
    noise = BinNoise.of(Evidence((z, c)), bin_table(z, c, equal_width_edges(2)))
    assert noise.certain.all()
    assert noise.norm_quantile(1.96) == pytest.approx(1.96 * math.sqrt(noise.noise.sum()))


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.2])
def test_the_noise_of_kernel_sums_is_that_of_the_squared_kernel(sigma: float) -> None:
    z, c = np.array([0.01, 0.3, 0.31, 0.97]), np.array([1, 0, 1, 0], np.uint8)
    t = (np.arange(4000) + 0.5) / 4000
    images = [sign * z + 2 * k for k in range(-3, 4) for sign in (1, -1)]
    kernel = sum(np.exp(-0.5 * ((t[:, None] - each) / sigma) ** 2) for each in images) / (
        sigma * math.sqrt(2 * math.pi)
    )
    expected = np.sqrt((kernel**2 * (c - z) ** 2).sum(axis=1)).mean() / 4
    assert KernelNoise(Evidence((z, c))).expected(sigma) == pytest.approx(expected, rel=5e-3)


def test_the_variance_of_auroc_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(2)
    z = rng.integers(0, 20, 80) / 20
    c = (rng.random(80) < z).astype(np.uint8)
    good, bad = z[c == 1], z[c == 0]
    wins = (good[:, None] > bad) + 0.5 * (good[:, None] == bad)
    variance = wins.mean(axis=1).var(ddof=1) / good.size + wins.mean(axis=0).var(ddof=1) / bad.size
    found = with_interval(auroc, z, c)
    assert found.interval is not None
    reach = found.value / min(good.size, bad.size)
    assert found.value - found.interval.lower == pytest.approx(deviation(variance, reach, quantile(TAIL)))


def test_weights_that_are_equal_change_little() -> None:
    z, c, _ = POPULATIONS["slightly miscalibrated"].draw(400, np.random.default_rng(4))
    for name, entry in SCORED.items():
        settings = entry.settings(15 if entry.bins else None, "left")
        arrays = {"pair": (z, c), "confidence": (z,), "correct": (c,)}[entry.reads]
        plain = with_interval(entry.function, *arrays, **settings).interval
        weighted = with_interval(entry.function, *arrays, sample_weight=np.ones(400), **settings).interval
        assert plain is not None
        assert weighted is not None
        assert (weighted.lower, weighted.upper) == pytest.approx((plain.lower, plain.upper), abs=0.02), name


def test_weights_of_a_stratum_widen_the_interval() -> None:
    z, c, _ = POPULATIONS["badly miscalibrated"].draw(300, np.random.default_rng(6))
    heavy = np.where(np.arange(300) < 10, 30.0, 1.0)
    plain, weighted = with_interval(ece, z, c).interval, with_interval(ece, z, c, sample_weight=heavy).interval
    assert plain is not None
    assert weighted is not None
    assert weighted.upper - weighted.lower > 1.3 * (plain.upper - plain.lower)


def test_an_interval_of_a_higher_level_contains_that_of_a_lower() -> None:
    sample = replace(POPULATIONS["badly miscalibrated"]).draw(200, np.random.default_rng(8))
    for name, entry in SCORED.items():
        settings = entry.settings(15 if entry.bins else None, "left")
        arrays = {"pair": sample[:2], "confidence": sample[:1], "correct": sample[1:2]}[entry.reads]
        levels = (0.5, 0.9, 0.99)
        ends = [with_interval(entry.function, *arrays, level=level, **settings).interval for level in levels]
        assert ends == sorted(ends, key=lambda each: -each.lower if each else 0), name
        assert ends == sorted(ends, key=lambda each: each.upper if each else 0), name


def test_a_bin_without_samples_may_hold_the_largest_gap():
    z, c = np.r_[np.full(60, 0.25), np.full(60, 0.75)], np.tile([0, 1], 60)
    full = metrics.with_interval(metrics.mce, z, c, bins=2).interval
    assert full.upper < 0.5
    assert metrics.with_interval(metrics.mce, z, c, bins=4).interval.upper == 1
    # |gap|³ <= gap², so the cube root of the mean cube is at most the mean square to the power 1/3.
    cubes = metrics.with_interval(metrics.lp_ece, z, c, bins=4, p=3.0).interval
    squares = metrics.with_interval(metrics.lp_ece, z, c, bins=4, p=2.0).interval
    assert cubes.upper == pytest.approx(squares.upper ** (2 / 3))


@pytest.mark.parametrize("n", [30, 100])
def test_scores_that_are_sure_and_nearly_never_right_keep_the_noise_of_calibrated_ones(n: int) -> None:
    found = missed(intervals(POPULATIONS["sure, and nearly never right"], n, 400, ["ece"]))
    above, below, width = found["ece"]
    assert above <= most(0.05, 400)
    assert below <= most(0.05, 400)
    assert width < 0.3


def test_the_ends_of_usual_levels_contain_each_other_where_other_bins_are_clear_at_other_levels() -> None:
    sizes, right = [58, 30, 26, 50, 49], [51, 17, 11, 1, 7]
    z = np.repeat([0.15, 0.35, 0.55, 0.85, 0.95], sizes)
    c = np.concatenate([np.arange(n) < k for n, k in zip(sizes, right, strict=True)]).astype(np.uint8)
    rule = METRICS["ece"].interval
    assert rule is not None
    evidence = Evidence.of((z, c), None)
    value = ece(z, c, bins=10)
    found = [rule.interval(evidence, value, level, {"bins": 10}) for level in (0.9, 0.95, 0.99, 0.999)]
    assert [each.lower for each in found] == sorted((each.lower for each in found), reverse=True)
    assert [each.upper for each in found] == sorted(each.upper for each in found)


def test_intervals_of_low_levels_cover_as_often_as_they_say() -> None:
    population = Population(np.full(1000, 0.336), np.full(1000, 0.323))
    above, below, _ = missed(intervals(population, 1000, 1000, ["ece"], level=0.5))["ece"]
    assert above + below <= most(0.5, 1000)
