"""Bands for the calibration function: what they compute, how often they hold, and where the diagonal leaves them."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from certcal.bounds import CalibrationBand, clopper_pearson, isotonic_band, perturb, surrogate
from tests.bounds import naive_bands, naive_smooth

DELTA = 0.1

RISING = {
    "calibrated": lambda s: s,
    "over-predicted": lambda s: s**3,
    "under-predicted": lambda s: np.sqrt(s),
    "rare": lambda s: 0.03 * s**2,
    "nearly certain": lambda s: 0.97 + 0.03 * s,
    "constant": lambda s: np.full(np.shape(s), 0.5),
    "a jump": lambda s: np.where(s < 0.5, 0.1, 0.9),
    "never": lambda s: np.zeros(np.shape(s)),
}
SCORES = {
    "even": lambda rng, n: rng.random(n),
    "tied": lambda rng, n: rng.integers(0, 8, n) / 7,
    "crowded": lambda rng, n: 1 - rng.random(n) ** 12,
    "few": lambda rng, n: rng.random(n // 10),
}

KINDS = ["even", "tied", "crowded"]


def draws(scores, eta, repetitions, n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(repetitions):
        s = SCORES[scores](rng, n)
        yield s, (rng.random(s.size) < eta(s)).astype(np.uint8)


def too_many(failed: int, of: int, delta: float = DELTA) -> bool:
    """Whether so many failures have a probability below 1e-4 when each has one of at most delta."""
    return bool(stats.binom.sf(failed - 1, of, delta) < 1e-4)


# ------------------------------------------------------------------------------------------------- Clopper and Pearson


@given(st.lists(st.integers(0, 20).map(lambda i: i / 20), min_size=1, max_size=9), st.sampled_from([0.05, 0.2, 0.5]))
def test_limits_for_draws_that_differ_hold_their_mean(p, alpha):
    n, mean = len(p), sum(p) / len(p)
    limits = clopper_pearson(np.arange(n + 1), n, alpha, identical=False)
    chances = naive_bands.poisson_binomial(p)
    low = sum(float(chances[k]) for k in range(n + 1) if limits.lower[k] > mean + 1e-12)
    high = sum(float(chances[k]) for k in range(n + 1) if limits.upper[k] < mean - 1e-12)
    assert low <= alpha / 2 + 1e-12
    assert high <= alpha / 2 + 1e-12


@pytest.mark.parametrize(("n", "alpha"), [(2, 0.2), (20, 0.2), (5, 0.05)])
def test_one_success_of_draws_that_differ_needs_a_lower_limit(n, alpha):
    """All of the probability may sit on one draw: then limits for equal draws fail too often, and ours just hold."""
    equal, ours = (clopper_pearson(1, n, alpha, "lower", identical=each).lower for each in (True, False))
    for limit, fails in ((equal, True), (ours, False), (ours * 1.03, True)):
        p = [limit * n * (1 - 1e-9)] + [0.0] * (n - 1)  # a mean just below the limit
        assert (float(1 - naive_bands.poisson_binomial(p)[0]) > alpha) == fails


# ------------------------------------------------------------------------------------------------------- isotonic band


@given(
    st.integers(0, 2**32),
    st.integers(1, 60),
    st.sampled_from(KINDS),
    st.sampled_from(list(RISING)),
)
def test_the_isotonic_band_is_the_best_of_all_its_intervals(seed, n, kind, eta):
    ((s, y),) = draws(kind, RISING[eta], 1, n, seed)
    band = isotonic_band(s, y, DELTA)
    points = np.unique(np.concatenate((s, [0.0, 0.3, 0.5, 1.0], (s[:-1] + s[1:]) / 2)))
    lower, upper = naive_bands.isotonic_band(s.tolist(), y.tolist(), DELTA, points)
    found = band.at(points)
    np.testing.assert_allclose(found[0], lower, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found[1], upper, rtol=1e-6, atol=1e-9)


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(1, 300), st.sampled_from(KINDS))
def test_an_isotonic_band_seen_from_the_other_class_is_its_mirror_image(seed, n, kind):
    ((s, y),) = draws(kind, RISING["calibrated"], 1, n, seed)
    s = np.round(s * 1024) / 1024  # so that 1 - s is exact
    here, there = isotonic_band(s, y), isotonic_band(1 - s, 1 - y)
    points = np.unique(s)
    lower, upper = here.at(points)
    mirrored = there.at(1 - points)
    np.testing.assert_allclose(lower, 1 - mirrored[1], atol=1e-9)
    np.testing.assert_allclose(upper, 1 - mirrored[0], atol=1e-9)


@pytest.mark.parametrize("eta", RISING)
@pytest.mark.parametrize("kind", SCORES)
def test_the_isotonic_band_holds_every_rising_function(kind, eta):
    failed, grid = 0, np.linspace(0, 1, 201)
    for s, y in draws(kind, RISING[eta], 40, 150):
        points = np.concatenate((s, grid))
        lower, upper = isotonic_band(s, y, DELTA).at(points)
        true = RISING[eta](points)
        failed += bool((lower > true).any() or (true > upper).any())
    assert not too_many(failed, 40)


def test_without_a_share_for_every_interval_the_band_would_fail(monkeypatch):
    """What every interval gets is not to spare: at the level of a single one the band misses η in most samples."""
    from certcal.bounds import _isotonic_band as module

    limits = module.binomial_limits
    monkeypatch.setattr(module, "binomial_limits", lambda k, n, alpha, side: limits(k, n, DELTA / 2, side))
    monkeypatch.setattr("scipy.special.betainc", lambda *arguments: np.zeros(arguments[0].shape))
    failed = 0
    for s, y in draws("even", RISING["constant"], 60, 150):
        lower, upper = isotonic_band(s, y, DELTA).at(s)
        failed += bool((lower > 0.5).any() or (upper < 0.5).any())
    assert too_many(failed, 60)


def tails(n, lower, upper):
    """The largest probability, over all p, that limits by the number of successes miss p: seen just outside a limit."""
    places = np.concatenate((lower * (1 - 1e-9), upper + (1 - upper) * 1e-9))
    k = np.arange(n + 1)
    missed = (lower > places[:, None]) | (upper < places[:, None])
    return float((stats.binom.pmf(k, n, places[:, None]) * missed).sum(axis=1).max())


@pytest.mark.parametrize("band", [isotonic_band, lambda s, y, delta: surrogate(s, y, None, delta, constant=1e-9)])
def test_a_band_from_one_interval_fails_when_it_is_three_per_cent_narrower(band):
    """All samples have one score, or η is a constant: nothing is lost by several intervals, and little is to spare."""
    n = 60
    found = [band([0.5] * n, np.arange(n) < k, DELTA).at([0.5]) for k in range(n + 1)]
    lower, upper = np.array([each[0][0] for each in found]), np.array([each[1][0] for each in found])
    middle = np.arange(n + 1) / n
    assert 0.9 * DELTA < tails(n, lower, upper) <= DELTA
    assert tails(n, middle - (middle - lower) * 0.97, middle + (upper - middle) * 0.97) > DELTA


def test_the_isotonic_band_is_narrower_than_the_published_one():
    for eta in ("calibrated", "rare", "a jump"):
        ((s, y),) = draws("even", RISING[eta], 1, 60, 3)
        points = np.sort(s)
        lower, upper = naive_bands.isotonic_band(s.tolist(), y.tolist(), DELTA, points, all_pairs=True)
        ours = isotonic_band(s, y, DELTA).at(points)
        assert (ours[1] - ours[0]).mean() < (upper - lower).mean()


@pytest.mark.parametrize("kind", ["even", "tied", "crowded"])
def test_many_samples_in_buckets_give_nearly_the_band_of_sorted_ones(kind, monkeypatch):
    ((s, y),) = draws(kind, RISING["over-predicted"], 1, 20_000)
    fast = isotonic_band(s, y)
    monkeypatch.setattr("certcal.bounds._isotonic_band.SORTED", 1 << 20)
    exact = isotonic_band(s, y)
    for one, two in zip(fast.at(s), exact.at(s), strict=True):
        assert np.abs(one - two).mean() < 4e-3
    assert 500 < fast.settings["blocks"] <= 2050 or kind == "tied"


def test_the_order_of_the_samples_changes_nothing():
    ((s, y),) = draws("even", RISING["calibrated"], 1, 30_000)
    one, two = isotonic_band(s, y), isotonic_band(s[np.argsort(y)], np.sort(y))
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.lower, two.lower)


def test_a_falling_rate_is_seen_and_nothing_is_said_of_it():
    s = np.repeat([0.2, 0.8], 200)
    band = isotonic_band(s, s < 0.5)
    assert band.contradicts
    assert band.regions == ()
    assert "contradicts itself" in band.sentence


# ----------------------------------------------------------------------------------------------------------- surrogate


@settings(max_examples=8)
@given(st.integers(0, 2**32), st.integers(1, 200), st.sampled_from([0.5, 2**-3, 2**-5]), st.booleans())
def test_the_surrogate_is_what_its_windows_say(seed, n, h, lipschitz):
    ((s, y),) = draws("even", RISING["over-predicted"], 1, n, seed)
    first, second = (0.5 / h, np.inf) if lipschitz else (0.5 / h, 0.5 / h**2)
    band = surrogate(s, y, None if lipschitz else h, DELTA, constant=first if lipschitz else None)
    places, lower, upper = naive_bands.surrogate(s, y, first, second, DELTA)
    np.testing.assert_array_equal(band.scores, places)
    np.testing.assert_allclose(band.lower, lower, atol=1e-5)
    np.testing.assert_allclose(band.upper, upper, atol=1e-5)


@pytest.mark.parametrize("h", [0.25, 2**-4])
@pytest.mark.parametrize("eta", [*RISING, "falling"])
def test_the_surrogate_band_holds_the_calibration_function_of_perturbed_scores(eta, h):
    original = np.linspace(0, 1, 41)
    probability = 1 - original if eta == "falling" else RISING[eta](original)
    grid, _, true = naive_smooth.perturbed_calibration(original, probability, np.full(41, 1 / 41), h, 2000)
    rng, failed = np.random.default_rng(5), 0
    for seed in range(30):
        place = rng.integers(0, 41, 400)
        y = rng.random(400) < probability[place]
        band = surrogate(perturb(original[place], h, seed), y, h, DELTA)
        lower, upper = band.at(grid)
        failed += bool((lower > true + 1e-6).any() or (upper < true - 1e-6).any())
    assert not too_many(failed, 30)


@pytest.mark.parametrize("wave", [1, 4])
def test_the_surrogate_band_holds_a_function_with_the_largest_slope(wave):
    """A triangular wave uses its slope up everywhere."""

    def eta(s):
        return 0.5 + (np.abs((s * wave) % 1 - 0.5) - 0.25) / wave * 0.9

    failed, grid = 0, np.linspace(0, 1, 1001)
    for s, y in draws("even", eta, 30, 400):
        lower, upper = surrogate(s, y, None, DELTA, constant=0.9).at(grid)
        failed += bool((lower > eta(grid)).any() or (upper < eta(grid)).any())
    assert not too_many(failed, 30)


def test_the_surrogate_band_fails_without_its_bias():
    """Half the largest slope is not enough for a function that has it."""
    failed, grid = 0, np.linspace(0, 1, 513)
    for s, y in draws("even", RISING["calibrated"], 20, 20_000):
        lower, upper = surrogate(s, y, None, DELTA, constant=0.5).at(grid)
        failed += bool((lower > grid).any() or (upper < grid).any())
    assert too_many(failed, 20)


def test_a_place_without_samples_has_the_whole_interval_or_what_its_neighbours_leave():
    band = surrogate([0.5] * 1000, [0, 1] * 500, None, constant=1.0)
    assert band.lower[0] == 0
    assert band.upper[0] == 1
    assert band.at([0.5])[0][0] > 0.4
    assert np.isnan(surrogate([0.5], [1], None, constant=1e4).estimate[0])


# ----------------------------------------------------------------------------------------------- regions, JSON, errors


def test_regions_are_where_the_diagonal_leaves_the_band():
    for band in (
        isotonic_band(*next(draws("even", RISING["over-predicted"], 1, 5000))),
        isotonic_band(*next(draws("tied", RISING["under-predicted"], 1, 5000))),
        surrogate(*next(draws("even", RISING["over-predicted"], 1, 50_000)), None, constant=3.0),
    ):
        grid = np.linspace(*band.span, 5001)
        lower, upper = band.at(grid)
        outside = {"lower": grid < lower, "upper": grid > upper}
        assert band.regions
        for side, wrong in outside.items():
            mine = [region for region in band.regions if region.side == side]
            inside = [(grid > region.start + 1e-9) & (grid < region.end - 1e-9) for region in mine]
            assert all(wrong[each].all() for each in inside)
            assert wrong.sum() <= sum(each.sum() for each in inside) + 2 * len(mine) + 1
        for region in band.regions:
            lower, upper = band.at([region.score])
            assert region.rate == pytest.approx((lower if region.side == "lower" else upper)[0], abs=1e-9)


def test_a_calibrated_model_has_no_regions_as_often_as_said():
    found = [isotonic_band(s, y, DELTA).regions for s, y in draws("even", RISING["calibrated"], 60, 300)]
    assert not too_many(sum(map(bool, found)), 60)


def test_a_band_becomes_json_and_a_table():
    band = surrogate([0.5, 0.6], [1, 0], 0.25)
    assert isinstance(band, CalibrationBand)
    back = json.loads(band.to_json())
    assert back["kind"] == "perturbed"
    assert len(back["scores"]) == len(back["lower"]) == len(back["upper"]) == len(back["estimate"])
    assert list(band.columns()) == ["score", "estimate", "lower", "upper"]
    assert "holds the calibration function" in band.claims()[0].sentence


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: isotonic_band([0.5], [1], 0.95), "delta is 0.95; it is the probability of failing"),
        (lambda: isotonic_band([1.5], [1]), r"scores\[0\] is 1.5"),
        (lambda: surrogate([0.5], [1]), "bandwidth and constant: pass one of them"),
        (lambda: surrogate([0.5], [1], 0.1, constant=1.0), "bandwidth and constant: pass one of them"),
        (lambda: surrogate([0.5], [1], constant=1.0, perturb=True), "perturb needs a bandwidth"),
        (lambda: surrogate([0.5, 0.5], [1], 0.1), "outcomes"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_surrogate_whose_windows_hold_no_sample_says_nothing():
    band = surrogate([0.30001], [1], constant=1e6)
    assert (band.lower.max(), band.upper.min()) == (0.0, 1.0)
