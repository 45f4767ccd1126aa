"""Noise on the scale of log-odds: its calibration function, what it costs, and the bounds for it."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit, logit

from certcal import InputError
from certcal._kernels.runs import least_of_runs
from certcal.bounds import choose_bandwidth as choose
from certcal.bounds import every_bound, lipschitz, perturb, smooth
from certcal.bounds._bets import running_sums
from certcal.bounds._lipschitz import _Patterns
from certcal.bounds._shared import NEAREST, log_odds, places, sort_pairs
from certcal.bounds.concentration import chernoff_upper
from tests.bounds import naive
from tests.bounds import naive_smooth as local

DELTA = 0.1


class Mixture(NamedTuple):
    """Scores before the noise, the probability of outcome 1 at each, their shares, and the bandwidth."""

    scores: tuple[float, ...]
    eta: tuple[float, ...]
    mass: tuple[float, ...]
    h: float

    def calibration(self, cells: int = 20_001) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log-odds, their density and η on a grid."""
        t0 = logit(np.clip(self.scores, NEAREST, 1 - NEAREST))
        t = np.linspace(t0.min() - 30 * self.h, t0.max() + 30 * self.h, cells)
        kernel = np.array(self.mass)[:, None] / np.cosh((t - t0[:, None]) / self.h) / (math.pi * self.h)
        density = kernel.sum(axis=0)
        return t, density, np.array(self.eta) @ kernel / density

    def error(self) -> float:
        t, density, eta = self.calibration()
        return float(np.trapezoid(density * np.abs(expit(t) - eta), t))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        which = rng.choice(len(self.mass), n, p=self.mass)
        y = rng.random(n) < np.array(self.eta)[which]
        return perturb(np.array(self.scores)[which], self.h, rng, scale="logit"), y.astype(np.uint8)


def spread(low: float, high: float, h: float, eta=expit, points: int = 40) -> Mixture:
    """Log-odds evenly spread, outcomes by a function of them."""
    t = np.linspace(low, high, points)
    return Mixture(tuple(expit(t)), tuple(eta(t)), (1 / points,) * points, h)


REGIMES = {
    "calibrated": spread(-4, 4, 0.3),
    "calibrated, rare": spread(-7, -2, 0.2),
    "rare, twice as often": spread(-7, -2, 0.2, lambda t: 2 * expit(t)),
    "rare, half as often": spread(-6, -2, 0.5, lambda t: expit(t) / 2),
    "nearly sure": spread(2, 7, 0.3, lambda t: expit(t) ** 2),
    "much noise": spread(-3, 3, 2.0),
    "little noise": spread(-3, 3, 0.02),
    "one score": Mixture((0.03,), (0.05,), (1.0,), 0.3),
    "scores of 0 and 1": Mixture((0.0, 1.0), (0.0, 1.0), (0.7, 0.3), 0.5),
    "scores of 0 and 1, the other way round": Mixture((0.0, 1.0), (1.0, 0.0), (0.5, 0.5), 3.0),
    "a jump": Mixture((0.01, 0.012), (0.0, 1.0), (0.9, 0.1), 0.1),
    "a comb": spread(-3, 3, 0.1, lambda t: (np.arange(t.size) % 2).astype(float)),
}


@pytest.mark.parametrize("regime", REGIMES)
def test_bounds_for_noise_on_the_logit_scale_hold(regime: str) -> None:
    mixture, n, repetitions = REGIMES[regime], 60, 80
    true, rng = mixture.error(), np.random.default_rng(7)
    draws = [mixture.draw(n, rng) for _ in range(repetitions)]
    h = mixture.h
    for values in (
        [smooth(s, y, h, DELTA, scale="logit").value for s, y in draws],
        [lipschitz(s, y, 0.5 / h, DELTA, scale="logit").value for s, y in draws],
    ):
        assert np.count_nonzero(np.array(values) < true - 1e-9) <= DELTA * repetitions
        assert np.mean(values) < 1 or true > 0.4 or h < 0.1


def test_the_calibration_function_changes_by_at_most_the_lemma_and_nearly_by_as_much() -> None:
    rng = np.random.default_rng(1)
    for h in (0.1, 1.0):
        for _ in range(20):
            mass = rng.dirichlet([1, 1, 1, 1])
            mixture = Mixture(tuple(rng.random(4)), tuple(rng.integers(0, 2, 4).astype(float)), tuple(mass), h)
            t, _, eta = mixture.calibration()
            assert np.abs(np.diff(eta) / np.diff(t)).max() <= 0.5 / h * (1 + 1e-9)
            assert np.abs(np.diff(eta, 2) / np.diff(t)[1:] ** 2).max() <= 0.5 / h**2 * (1 + 1e-4)
        far = expit(4 * h), expit(-4 * h)
        t, _, eta = Mixture(far, (1.0, 0.0), (0.5, 0.5), h).calibration()
        assert np.abs(np.diff(eta) / np.diff(t)).max() > 0.97 * 0.5 / h
        share = 1 / (2 + np.cosh(4.0))
        three = Mixture((far[0], 0.5, far[1]), (0.0, 1.0, 0.0), ((1 - share) / 2, share, (1 - share) / 2), h)
        t, _, eta = three.calibration()
        assert np.abs(np.diff(eta, 2) / np.diff(t)[1:] ** 2).max() > 0.9 * 0.5 / h**2


def test_noise_has_the_density_of_the_kernel_and_scores_at_the_ends_are_moved_first() -> None:
    n, h = 20_000, 0.4
    s = perturb(np.full(n, 0.02), h, 3, scale="logit")
    moved = (logit(s) - logit(0.02)) / h
    assert stats.kstest(moved, lambda x: 2 / np.pi * np.arctan(np.exp(x))).pvalue > 0.01
    assert np.array_equal(s, perturb(np.full(n, 0.02), h, 3, scale="logit"))
    ends = perturb(np.array([0.0, 1.0]), 1e-3, 3, scale="logit")
    np.testing.assert_allclose(logit(ends), [logit(NEAREST), -logit(NEAREST)], atol=0.02)
    wild = perturb(np.array([0.0, 0.5, 1.0] * 100), 1000.0, 3, scale="logit")
    assert np.all((wild >= 0) & (wild <= 1))


@pytest.mark.parametrize("rare", [False, True])
def test_every_term_of_the_smooth_bound_is_its_formula(rare: bool) -> None:
    rng = np.random.default_rng(5)
    h, n, delta, width = 0.3, 120, 0.02, 0.35
    t = np.sort(rng.normal(-3 if rare else 0, 1, n))
    scores, y = expit(t), (rng.random(n) < 0.5 * expit(t)).astype(np.uint8)
    bound = smooth(scores, y, h, delta, smoothing=width, scale="logit")
    slow = local.local_averages(t, y, t, width, 1 / (2 * h), 1 / (2 * h**2), tight=True)
    bias = slow.error - 0.5 * np.sqrt((slow.weights**2).sum(axis=1))
    gap = np.mean(np.abs(scores - slow.average))
    outcomes = naive.outcome_term(scores, y, slow.weights.mean(axis=0), delta / 2, 1)
    assert slow.error.max() < 1
    assert bound.terms["surrogate gap"] == pytest.approx(gap, rel=1e-9)
    assert bound.terms["bias"] == pytest.approx(bias.mean(), rel=1e-7)
    assert bound.terms["draw of the outcomes"] == pytest.approx(outcomes, rel=1e-5)
    assert bound.value == pytest.approx(chernoff_upper(gap + bias.mean() + outcomes, n, delta / 2), rel=1e-5)
    assert bound.settings["smoothing"] == pytest.approx(width)


@pytest.mark.parametrize("constant", [0.1, 0.3, 2.0])
def test_whatever_the_function_of_the_log_odds_is_one_of_the_patterns_covers_it(constant: float) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        t = np.sort(rng.normal(-1, 2, 400))
        eta = 0.3 + np.concatenate(([0.0], np.cumsum(np.repeat(rng.choice([-1, 1], 400), 9)[:399] * np.diff(t))))
        s, gap = expit(t), np.clip(expit(t[200]) + constant * (eta - eta[200]), 0, 1) - expit(t)
        patterns = _Patterns.of(sort_pairs(s, np.zeros(400, np.uint8)), constant, True)
        sums = running_sums(-np.add.reduceat(gap, patterns.table[2][:-1].astype(int)))
        rest = patterns.table, patterns.last, patterns.first
        assert -least_of_runs(np.stack((sums, -sums)), *rest, -1.0, True) >= np.abs(gap).sum() * (1 - 1e-9)


def test_how_much_a_gap_can_rise_and_fall_is_in_the_table_of_the_lipschitz_bound() -> None:
    t = np.array([-2.0, 0.0, 0.3, 3.0])
    s = expit(t)
    for constant in (0.2, 0.6):
        (rise, fall), *_ = _Patterns.of(sort_pairs(s, np.zeros(4, np.uint8)), constant, True).table
        np.testing.assert_allclose(fall, constant * (t + 2) + s - s[0], atol=1e-12)
        np.testing.assert_allclose(rise, constant * (t + 2) - (s - s[0] if constant > 0.25 else 0), atol=1e-12)
        assert np.all(fall > constant * (t + 2) + s - s[0])  # by what is not known of the log-odds


def test_the_part_without_a_deviation_is_attained_by_two_scores_and_the_steepest_line() -> None:
    n, steep, w = 1000, 0.8, 0.25
    t = np.repeat([-w, w], n // 2)
    y = np.concatenate((np.arange(500) < 350, np.arange(500) < 150)).astype(np.uint8)  # η is 1/2 ∓ 0.2
    seen = lipschitz(expit(t), y, steep, scale="logit").terms["largest error on the samples"]
    assert seen == pytest.approx(0.2 + expit(w) - 0.5, rel=1e-9)


def test_rounded_scores_near_one_are_paid_for() -> None:
    s = np.array([0.3, 1 - 2.0**-30, 1 - 2.0**-52, 1.0])
    found = places(s, "logit", 2.0)
    assert np.all((found.values >= 0) & (found.values <= 1))
    assert found.rounding >= 2 / 4  # two of four are not known at all
    assert places(s[:1], "logit", 2.0).rounding < 1e-13
    assert places(s, "probability", 2.0).rounding == 0
    np.testing.assert_allclose(log_odds(s[:2]), logit(s[:2]), rtol=1e-14)


def test_scores_without_log_odds_have_signs_of_their_own() -> None:
    # Of the scores 1 - 2^-52 and 1 one is always right and one never: no slope however small may connect them.
    s = np.repeat([0.0, 0.5, 1 - 2.0**-52, 1.0], 50)
    y = np.concatenate((np.ones(50), np.arange(50) % 2, np.ones(50), np.zeros(50)))
    found = lipschitz(s, y, 1e-3, scale="logit")
    assert found.terms["largest error on the samples"] == pytest.approx(0.5, abs=1e-6)


def test_the_expected_auroc_is_the_mean_over_pairs() -> None:
    rng = np.random.default_rng(8)
    n = 400
    s = expit(rng.normal(-3, 1, n))
    y = rng.random(n) < s
    found = choose(s, y, 0.01, scale="logit")
    apart = (logit(s[y])[:, None] - logit(s[~y])[None, :]) / found.bandwidth
    x = np.linspace(0, 40, 8001)
    cdf = 0.5 + integrate.cumulative_simpson(
        np.concatenate(([1.0], x[1:] / np.sinh(x[1:]))) * 2 / np.pi**2, x=x, initial=0
    )
    exact = np.where(apart > 0, np.interp(np.abs(apart), x, cdf), 1 - np.interp(np.abs(apart), x, cdf)).mean()
    assert found.perturbed_auroc == pytest.approx(exact, abs=2e-5)
    assert 0.0095 < found.fall <= 0.01
    assert found.fall_lower < found.fall < found.fall_upper
    assert found.scale == "logit"
    assert "on the logit scale" in found.sentence


def test_at_the_same_fall_of_auroc_the_bound_for_rare_outcomes_is_smaller_on_the_logit_scale() -> None:
    rng = np.random.default_rng(9)
    n = 20_000
    s = expit(rng.normal(-4, 1.1, n))
    y = rng.random(n) < s
    values = {}
    for scale in ("probability", "logit"):
        h = choose(s, y, 0.002, scale=scale).bandwidth
        values[scale] = smooth(perturb(s, h, 1, scale=scale), y, h, scale=scale).value
    assert values["logit"] < 0.9 * values["probability"]


def test_every_bound_says_on_which_scale_the_noise_is() -> None:
    rng = np.random.default_rng(10)
    s = rng.random(300)
    found = every_bound(s, rng.random(300) < s, bandwidth=0.3, scale="logit")
    assert list(found)[:2] == ["smooth", "lipschitz"]
    for bound in found.values():
        assert any("bandwidth 0.3 on the logit scale" in each for each in bound.assumptions)
    assert any("per unit of the log-odds" in each for each in found["lipschitz"].assumptions)


def test_what_is_no_scale_or_has_no_such_form_is_refused() -> None:
    with pytest.raises(InputError, match="scale"):
        perturb([0.5], 0.1, scale="odds")
    with pytest.raises(InputError, match="scale"):
        lipschitz([0.5], [1], 1.0, scale="odds")
    with pytest.raises(InputError, match=r"form is 'repaired', .* pass form='direct'"):
        smooth([0.5, 0.6], [1, 0], 0.1, form="repaired", scale="logit")
