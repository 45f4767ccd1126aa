"""Bounds on the root mean square of the binned calibration error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from certcal import InputError
from certcal.bounds import binned, binned_rms, binned_rms_lower
from certcal.bounds._binned_rms import grid_of_gaps, rms_bets
from tests.bounds import naive

DELTA, BINS = 0.1, 5


class Regime(NamedTuple):
    """Scores, all equally likely, and what accuracy is at each."""

    scores: np.ndarray
    eta: Callable[[np.ndarray], np.ndarray]

    def truth(self) -> float:
        """√Σ p_m g_m²."""
        bins = np.minimum((self.scores * BINS).astype(int), BINS - 1)
        count = np.bincount(bins, minlength=BINS)
        gap = np.bincount(bins, self.eta(self.scores) - self.scores, minlength=BINS)
        return math.sqrt(float((gap[count > 0] ** 2 / count[count > 0]).sum()) / self.scores.size)


EVEN = (np.arange(1000) + 0.5) / 1000
RARE = EVEN**4 / 5
TIED = np.arange(8) / 7
REGIMES = {
    "calibrated": Regime(EVEN, lambda z: z),
    "calibrated, rare": Regime(RARE, lambda z: z),
    "calibrated, tied": Regime(TIED, lambda z: z),
    "square": Regime(EVEN, lambda z: z**2),
    "slightly off": Regime(EVEN, lambda z: z + 0.05 * np.sin(2 * np.pi * z)),
    "rare, three times as often": Regime(RARE, lambda z: 3 * z),
    "oscillating within bins": Regime(EVEN, lambda z: z + 0.3 * np.minimum(z, 1 - z) * np.sin(60 * np.pi * z)),
    "always wrong": Regime(EVEN, lambda z: 0 * z),
    "the other way round": Regime(TIED, lambda z: 1 - z),
    "one bad bin": Regime(EVEN, lambda z: np.where(z > 0.8, 0.0, z)),
    "one rare bad bin": Regime(np.concatenate((EVEN[:200], [0.95] * 4)), lambda z: np.where(z > 0.8, 0.0, z)),
    "one score": Regime(np.array([0.5]), lambda z: z + 0.3),
}


@pytest.mark.parametrize("name", REGIMES)
@pytest.mark.parametrize("n", [20, 150])
def test_both_bounds_hold(name: str, n: int) -> None:
    regime, rng, repetitions = REGIMES[name], np.random.default_rng(n), 80
    true = regime.truth()
    z = rng.choice(regime.scores, (repetitions, n))
    c = (rng.random(z.shape) < regime.eta(z)).astype(np.uint8)
    upper = np.array([binned_rms(*draw, BINS, DELTA).value for draw in zip(z, c, strict=True)])
    lower = np.array([binned_rms_lower(*draw, BINS, DELTA).value for draw in zip(z, c, strict=True)])
    assert np.count_nonzero(upper < true - 1e-9) <= DELTA * repetitions
    assert np.count_nonzero(lower > true + 1e-9) <= DELTA * repetitions
    assert n < 100 or true > 0.5 or upper.mean() < true + 0.25


@pytest.mark.parametrize("sign", [1, -1])
def test_five_per_cent_less_of_the_deviation_fails_where_a_bet_is_the_best_one(sign: int) -> None:
    # All confidences are 1/2 and accuracy is 0.8 or 0.2: a sample is a number of hits, and its probability exact.
    n, log_delta, accuracy = 63_000, math.log(1e-40), 0.5 + 0.3 * sign
    z = np.full(n, 0.5)

    def log_rate(part: float) -> float:
        low, high = 0, n // 3  # by how many hits the sample is nearer to a half than expected
        while high - low > 1:
            middle = (low + high) // 2
            hits = round(n * accuracy) - sign * middle
            bound = binned_rms(z, np.arange(n) < hits, 1, 1e-40)
            value = bound.terms["error on the samples"] + part * bound.terms["deviation"]
            low, high = (middle, high) if value >= 0.3 else (low, middle)
        hits = round(n * accuracy) - sign * high
        return float(stats.binom.logcdf(hits, n, accuracy) if sign > 0 else stats.binom.logsf(hits - 1, n, accuracy))

    assert log_rate(1.0) <= log_delta
    assert log_rate(0.95) > log_delta


def test_the_value_is_where_the_least_capital_reaches_one_over_delta() -> None:
    rng = np.random.default_rng(3)
    n, bins, delta = 90, 4, 0.05
    z = rng.integers(0, 65, n) / 64  # the ends of the cells, where nothing is lost
    c = (rng.random(n) < z**2).astype(np.uint8)
    gaps, off = grid_of_gaps(n)
    bets = rms_bets(delta, n)
    bound = binned_rms(z, c, bins, delta)
    m = bound.value**2 * (1 - 0.03**2) - off**2
    owner = np.minimum((z * bins).astype(int), bins - 1)
    capital = [naive.least_capital_of_gaps(c - z, owner, gaps, bets, m * factor) for factor in (0.999, 1.001)]
    assert capital[0] < math.log(1 / delta) < capital[1]
    anywhere = binned_rms(np.clip(z + 0.003, 0, 1), c, bins, delta)  # within cells
    owner = np.minimum((np.clip(z + 0.003, 0, 1) * bins).astype(int), bins - 1)
    at = anywhere.value**2 * (1 - 0.03**2) - off**2
    x = c - np.clip(z + 0.003, 0, 1)
    assert naive.least_capital_of_gaps(x, owner, gaps, bets, at) >= math.log(1 / delta)


@pytest.mark.parametrize("n", [1, 10, 1000, 10**6])
def test_every_gap_has_a_neighbour_on_the_grid(n: int) -> None:
    gaps, off = grid_of_gaps(n)
    wanted = np.linspace(-1, 1, 20_001)
    apart = np.abs(wanted[:, None] - gaps).min(axis=1)
    assert np.all(apart**2 <= off**2 + (0.03 * wanted) ** 2 + 1e-15)
    assert gaps.min() == -1
    assert gaps.max() == 1
    bets = rms_bets(0.05, n)
    assert bets[0] == 0.9
    assert np.all(np.diff(bets) < 0)


def test_the_root_mean_square_is_never_below_the_mean_and_many_bins_are_taken_in_parts() -> None:
    rng = np.random.default_rng(4)
    z = rng.random(3000)
    c = rng.random(3000) < z
    assert binned_rms(z, c).value > binned(z, c).value
    assert 0 < binned_rms(z, c, 900).value <= 1
    square = binned_rms(z, rng.random(3000) < z**2)
    assert square.terms["error on the samples"] == pytest.approx(math.sqrt(1 / 30), abs=0.03)
    assert square.value == pytest.approx(math.fsum(square.terms.values()))


def test_gaps_are_not_chosen_on_the_half_that_is_tested() -> None:
    # A calibrated population in many bins; gaps of the same samples that test them would claim an error.
    rng = np.random.default_rng(5)
    n, claimed = 900, 0
    for _ in range(100):
        z = rng.random(n)
        claimed += binned_rms_lower(z, rng.random(n) < z, 60, 0.2).value > 0
    assert claimed <= 0.2 * 100
    z = rng.random(20_000)
    found = binned_rms_lower(z, rng.random(z.size) < z**2)
    assert 0.15 < found.value < math.sqrt(1 / 30)
    assert any("order" in each for each in found.assumptions)


def test_unusable_input_is_named() -> None:
    with pytest.raises(InputError, match=r"delta is 0\.95; .*did you mean 0\.05"):
        binned_rms([0.5], [1], delta=0.95)
    with pytest.raises(InputError, match="confidence has 1 entry; pass at least 2 samples"):
        binned_rms_lower([0.5], [1])
    with pytest.raises(InputError, match="closed"):
        binned_rms([0.5], [1], closed="both")
    assert 0.9 < binned_rms([0.5], [1]).value <= 1
    assert binned_rms([0.2, 0.6], [0, 1], edges=[0, 0.3, 1]).settings["edges"] == "given"
