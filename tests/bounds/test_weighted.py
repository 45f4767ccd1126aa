"""Bounds on the binned calibration error of a weighted population, and both sides at one level."""

import math
from bisect import bisect_left

import numpy as np
import pytest
from scipy import stats

from certcal import InputError
from certcal.binning import assign, equal_width_edges
from certcal.bounds import binned, binned_interval, binned_lower
from certcal.bounds._bets import SMALL_DEVIATIONS, place_bets
from certcal.lab.study import SYNTHETIC
from certcal.metrics import ece
from tests.bounds import naive

DELTA = 0.1


@pytest.mark.parametrize("weights", ["few", "many"])
@pytest.mark.parametrize(("n", "room"), [(50, 1e-9), (400, 1e-9), (20_000, 2e-4)])
def test_the_value_is_where_the_least_capital_reaches_one_over_delta(n: int, room: float, weights: str) -> None:
    """Of many samples the corners of cells stand for them, which makes the value a little larger, never smaller."""
    rng = np.random.default_rng(n)
    z = rng.random(n)
    c = (rng.random(n) < z**1.5).astype(float)
    w = rng.choice([0.0, 1.0, 2.5], n) if weights == "few" else rng.exponential(1, n)
    found = binned(z, c, 7, 0.02, sample_weight=w, largest_weight=20.0)
    assert found.terms["error on the samples"] == pytest.approx(ece(z, c, 7, sample_weight=w), abs=1e-12)
    bins, bets = assign(z, equal_width_edges(7)), place_bets(0.02, n, SMALL_DEVIATIONS)
    none, room = np.zeros(n), room + 0.01 * room * found.terms["deviation"]
    if found.value < 1:
        assert naive.capital_against(w / 20, c - z, none, bins, bets, found.value) >= math.log(50)
        assert naive.capital_against(w / 20, c - z, none, bins, bets, found.value - 10 * room) < math.log(50)


def test_the_scale_of_the_weights_does_not_matter_and_what_stands_for_their_limit_is_said() -> None:
    rng = np.random.default_rng(1)
    z, w = rng.random(500), rng.random(500)
    c = rng.random(500) < z
    for bound in (binned, binned_lower):
        one, other = (bound(z, c, sample_weight=w * scale, largest_weight=2.0 * scale) for scale in (1.0, 8.0))
        assert one.value == other.value
        assert one.name == "binned calibration error of the weighted population"
        assert "no weight in the population exceeds 2" in one.assumptions
        assert one.settings["largest weight"] == 2.0
        assert one.settings["effective samples"] == round(w.sum() ** 2 / (w**2).sum())
    seen = binned(z, c, sample_weight=w)
    assert f"no weight in the population exceeds {w.max():g}, the largest seen" in seen.assumptions
    assert seen.value < binned(z, c, sample_weight=w, largest_weight=5.0).value


def test_samples_of_weight_zero_say_nothing_and_equal_weights_little() -> None:
    rng = np.random.default_rng(2)
    z = rng.random(4000)
    c = rng.random(4000) < z**2
    plain = binned(z, c)
    equal = binned(z, c, sample_weight=np.full(4000, 3.0))
    assert equal.value == pytest.approx(plain.value, abs=0.2 * plain.terms["deviation"])
    half = binned(z, c, sample_weight=(np.arange(4000) < 2000) * 1.0)
    assert half.terms["error on the samples"] == pytest.approx(ece(z[:2000], c[:2000]), abs=1e-12)
    assert half.terms["deviation"] == pytest.approx(binned(z[:2000], c[:2000]).terms["deviation"], rel=0.2)


def test_at_a_small_level_a_part_of_the_deviation_fails_too_often() -> None:
    """A coin whose samples count half: the gain is that of half the stake, and the number of heads is binomial."""
    n, delta, p = 4000, 1e-12, 0.75
    given = {"sample_weight": np.full(n, 0.5), "largest_weight": 1.0}

    def log_rate(part: float) -> float:
        def claimed(k: int) -> float:
            seen = k / n - 0.5
            return seen + part * (binned(np.full(n, 0.5), np.arange(n) < k, 1, delta, **given).value - seen)

        least = bisect_left(range(n), True, lo=n // 2, key=lambda k: claimed(k) >= p - 0.5)
        return float(stats.binom.logcdf(least - 1, n, p))

    assert log_rate(1.0) <= math.log(delta)
    assert log_rate(0.85) > math.log(delta)


def two(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(z.size) < 0.2, 4.0, 1.0)


def rising(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return 2 * z


def rare(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(z.size) < 0.03, 4.0, 0.1)


WEIGHTS = {"two groups": two, "by the confidence": rising, "a few heavy ones": rare}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", SYNTHETIC)
def test_both_sides_hold_for_known_weighted_populations(name: str, weights: str) -> None:
    each, bins, n, repetitions = SYNTHETIC[name], 5, 150, 60
    z = (np.arange(100_000) + 0.5) / 100_000
    mean = 2 * z if weights == "by the confidence" else np.ones(z.size)  # of the weight, given the confidence
    true = float(np.abs((mean * (each.eta(z) - z)).reshape(bins, -1).mean(axis=1)).mean() / mean.mean())
    rng = np.random.default_rng(3)
    upper, lower, outside = [], [], 0
    for _ in range(repetitions):
        s, y = each.draw(n, rng)
        w = WEIGHTS[weights](s, rng)
        given = {"sample_weight": w, "largest_weight": 4.0}
        upper.append(binned(s, y, bins, DELTA, **given).value)
        lower.append(binned_lower(s, y, bins, DELTA, **given).value)
        both = binned_interval(s, y, bins, DELTA, **given)
        outside += not both.lower.value <= true <= both.upper.value
    assert np.mean(np.array(upper) < true) <= DELTA
    assert np.mean(np.array(lower) > true) <= DELTA
    assert outside <= DELTA * repetitions


def test_weights_that_depend_on_the_outcome_are_of_the_weighted_population() -> None:
    """Cases are three times as likely in the sample as in the population: weights undo that, and nothing else does."""
    rng = np.random.default_rng(5)
    z = rng.random(200_000)
    y = rng.random(z.size) < z
    kept = y | (rng.random(z.size) < 1 / 3)
    z, y = z[kept], y[kept]
    w = np.where(y, 1.0, 3.0)
    assert binned_lower(z, y).value > 0.1
    assert binned_lower(z, y, sample_weight=w, largest_weight=3.0).value == 0
    assert binned(z, y, sample_weight=w, largest_weight=3.0).value < 0.015


def test_both_sides_are_the_bounds_at_half_the_level() -> None:
    rng = np.random.default_rng(6)
    z = rng.random(2000)
    c = rng.random(2000) < z**2
    found = binned_interval(z, c, 10, 0.02, closed="right", seed=3)
    assert found.lower == binned_lower(z, c, 10, 0.01, closed="right", seed=3)
    assert found.upper == binned(z, c, 10, 0.01, closed="right")
    assert found.delta == 0.02
    assert found.settings == {"bins": 10, "closed": "right", "seed": 3}
    assert found.text == f"{found.lower.text} to {found.upper.text}"
    assert found.sentence == (
        f"binned calibration error of the population is between {found.lower.text} and {found.upper.text}: "
        "98% sure, for samples drawn like these 2,000."
    )
    assert found.to_dict()["assumptions"] == list(found.lower.assumptions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_weight": [1.0, 3.0], "largest_weight": 2.0}, r"sample_weight\[1\] is 3, above largest_weight = 2"),
        ({"sample_weight": [1.0, 3.0], "largest_weight": -2.0}, "largest_weight is -2"),
        ({"largest_weight": 2.0}, "largest_weight is given without sample_weight"),
    ],
)
def test_unusable_weights_are_named(options: dict[str, object], message: str) -> None:
    for bound in (binned, binned_lower, binned_interval):
        with pytest.raises(InputError, match=message):
            bound([0.5, 0.2], [1, 0], **options)
