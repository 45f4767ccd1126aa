"""Certificates from counts: what they say, how they agree with slow twins, and what they refuse."""

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from certcal import InputError, worst_case
from certcal.smoothing import CONFIDENCES, KINDS, Counts, certificates, default_thresholds
from certcal.smoothing import _bands as bands
from certcal.smoothing._bands import HistogramRows, LowerLimits, lower_limits
from certcal.smoothing._certificates import certified_radii, failing
from tests.smoothing import naive_certificates as naive
from tests.smoothing import naive_robustness

GRID = np.linspace(0.1, 0.9, 9)


def counts_of(draws: Any, grid: Any = GRID, sigma: float = 1.0, votes: Any = None, **more: Any) -> Counts:
    x = np.atleast_2d(draws)
    return Counts.from_confidences(
        x, grid, votes=np.count_nonzero(x > 0.5, axis=1) if votes is None else votes, sigma=sigma, **more
    )


def beta_draws(a: float, b: float, n: int, rows: int = 1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).beta(a, b, (rows, n))


# --------------------------------------------------------------------------------------------------------- slow twins


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("r", [0.0, 0.4, 1.3])
def test_intervals_agree_with_those_written_down_slowly(confidence: str, r: float) -> None:
    n, alpha = 120, 0.05
    draws = np.concatenate([beta_draws(a, b, n, 2, seed) for seed, (a, b) in enumerate([(9, 1), (3, 1), (40, 2)])])
    seed = 2**63 + 11
    found = certificates(counts_of(draws, sigma=0.5, seed=seed), 0.5 * r, alpha, confidence)
    assert found.n_certified >= 2
    close = 2e-3 if confidence == "tangent" else 1e-8  # a bet need not be the best one to the last digit
    for i in np.flatnonzero(found.certified):
        key = naive.coin_key(seed, int(i))
        lower = naive.lower_end(confidence, draws[i], GRID, r, 0.375 * alpha, key)
        flipped = np.nextafter(1 - draws[i], 0)  # 1 - X is counted from the threshold on where X was below it
        upper = 1 - naive.lower_end(confidence, flipped, (1 - GRID)[::-1], r, 0.375 * alpha, key)
        assert found.lower[i] == pytest.approx(lower, abs=close)
        assert found.upper[i] == pytest.approx(upper, abs=close)
        if confidence != "tangent":
            assert found.lower[i] <= lower + 1e-13
            assert found.upper[i] >= upper - 1e-13


def test_radii_are_those_of_clopper_pearson_rounded_down() -> None:
    n, level = 1000, 1e-4
    votes = np.array([0, 400, 600, 900, 1000])
    counts = counts_of(np.full((5, n), 0.9), sigma=0.25, votes=votes)
    radii = certified_radii(counts, level)
    exact = 0.25 * stats.norm.ppf([naive.limit(k, n, level) for k in votes])
    assert np.isnan(radii).tolist() == [True, True, False, False, False]
    assert np.all(radii[2:] <= exact[2:])
    assert radii[2:] == pytest.approx(exact[2:], abs=1e-9)


def test_the_mean_width_is_that_of_the_certified_and_abstentions_are_counted() -> None:
    counts = counts_of(np.full((3, 1000), 0.9), sigma=0.25, votes=np.array([1000, 990, 500]))
    found = certificates(counts, 0.1)
    assert (found.n_certified, found.n_abstained) == (2, 1)
    assert found.mean_width == np.mean(found.upper[:2] - found.lower[:2]) < 1
    assert certificates(counts, 10.0).mean_width is None


def test_the_largest_radius_of_a_hundred_thousand_draws_is_3_8_standard_deviations() -> None:
    n = 100_000
    one = np.ones(1, np.int64)
    counts = Counts(np.array([0.5]), 1.0, one, one, one, n * one, n * one, 0 * one, np.array([[0, n]]))
    assert round(float(certified_radii(counts, 0.001)[0]), 2) == 3.81


# ---------------------------------------------------------------------------------------------------------- rounding


@pytest.mark.parametrize("confidence", ["cdf", "tight"])
@pytest.mark.parametrize(("radius", "sigma"), [(0.0, 1.0), (0.25, 0.5), (0.1, 0.3), (0.3, 0.12)])
def test_no_end_of_a_million_draws_is_inside_that_of_fifty_digits(confidence: str, radius: float, sigma: float) -> None:
    """Rounded to nearest, without what ``SLACK`` gives away, some ends would be; R/σ is not rounded here."""
    n, rows, rng = 1_000_000, 6, np.random.default_rng(1)
    histogram = rng.multinomial(n, rng.dirichlet([0.3] * 9 + [3.0], rows))
    one = np.ones(rows, np.int64)
    counts = Counts(GRID, sigma, one, one, one, n * one, n * one, 0 * one, histogram)
    found = certificates(counts, radius, 0.001, confidence)
    spent = dict(found.ledger.entries)
    assert found.certified.all()
    with mpmath.workdps(50):
        grid, r = [mpmath.mpf(t) for t in GRID.tolist()], mpmath.mpf(radius) / mpmath.mpf(sigma)

        def survival(k: int, level: float) -> mpmath.mpf:
            if confidence == "cdf":
                return max(mpmath.mpf(k) / n - mpmath.sqrt(-mpmath.log(mpmath.mpf(level)) / (2 * n)), mpmath.mpf(0))
            # These limits are on the safe side by themselves: see the tests of Clopper and Pearson's.
            return mpmath.mpf(float(lower_limits(n, math.nextafter(level / GRID.size, 0.0)).values[k]))

        for row in range(rows):
            below = naive.exact_end(histogram[row], grid, lambda k: survival(k, spent["lower"]), r)
            above = naive.exact_end(
                histogram[row, ::-1], [1 - t for t in grid[::-1]], lambda k: survival(k, spent["upper"]), r
            )
            assert below - 1e-11 < mpmath.mpf(float(found.lower[row])) <= below
            assert 1 - above <= mpmath.mpf(float(found.upper[row])) < 1 - above + 1e-11


@pytest.mark.parametrize("r", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("offset", [2.0**-45, 2.0**-30 - 2.0**-45], ids=["just above a unit", "just below one"])
def test_standard_is_hoeffdings_interval_of_the_exact_mean_rounded_outward(offset: float, r: float) -> None:
    """Where a confidence lies between two units, rounding it the wrong way would put an end inside the interval."""
    n, x = 2_000, 0.75 + offset  # in the middle of a cell
    counts = Counts.from_confidences(np.full((1, n), x), GRID, votes=[n], sigma=1.0)
    found = certificates(counts, r, 0.001, "standard")
    spent = dict(found.ledger.entries)
    with mpmath.workdps(50):

        def end(mean: mpmath.mpf, level: float) -> mpmath.mpf:
            limit = mean - mpmath.sqrt(-mpmath.log(mpmath.mpf(level)) / (2 * n))
            return mpmath.ncdf(naive.probit(limit) - r) if limit > 0 else mpmath.mpf(0)

        below, above = end(mpmath.mpf(x), spent["lower"]), 1 - end(1 - mpmath.mpf(x), spent["upper"])
        assert below - 1e-8 < mpmath.mpf(float(found.lower[0])) <= below
        assert above <= mpmath.mpf(float(found.upper[0])) < above + 1e-8
    old = certificates(dataclasses.replace(counts, sums=None), r, 0.001, "standard")
    assert old.upper[0] - old.lower[0] > found.upper[0] - found.lower[0] + 0.03  # by the cells of a coarse grid
    for kind in ("tangent", "tight", "bernstein", "cdf"):  # these read the histogram
        with_sums, without = (
            certificates(each, r, 0.001, kind) for each in (counts, dataclasses.replace(counts, sums=None))
        )
        assert np.array_equal(with_sums.lower, without.lower)
        assert np.array_equal(with_sums.upper, without.upper)


@pytest.mark.parametrize("r", [0.0, 0.5, 6.0])
def test_no_limit_of_an_end_from_above_is_below_that_of_fifty_digits(r: float) -> None:
    n, rows, rng = 100_000, 8, np.random.default_rng(2)
    histogram = rng.multinomial(n, rng.dirichlet([0.3] * 9 + [3.0], rows))
    counts = Counts(
        GRID, 1.0, *([np.zeros(rows, np.int64)] * 3), *([np.full(rows, n)] * 2), np.zeros(rows, np.int64), histogram
    )
    level = 1e-4
    found = bands.tight_above(HistogramRows(histogram, counts.keys, bands.Side.of(GRID, False), r, level))
    limits = lower_limits(n, math.nextafter(level / GRID.size, 0.0)).values
    with mpmath.workdps(50):
        grid = [mpmath.mpf(t) for t in GRID.tolist()]
        for row in range(rows):
            exact = naive.exact_end(histogram[row], grid, lambda k: 1 - mpmath.mpf(float(limits[n - k])), mpmath.mpf(r))
            assert exact <= mpmath.mpf(float(found[row])) < exact + 1e-11


def test_the_number_of_failing_certificates_and_the_variance_have_room_for_their_rounding() -> None:
    for n in range(5, 45):
        level = 0.37 / n
        for k in range(3):
            exact = naive_robustness.tail(k + 1, n, Fraction(level))
            for delta in (math.nextafter(float(exact), 0), float(exact), float(exact) * (1 + 1e-6)):
                assert naive_robustness.tail(failing(n, level, delta) + 1, n, Fraction(level)) <= Fraction(delta)
            assert failing(n, level, delta) == k
    rng = np.random.default_rng(0)
    histogram = rng.multinomial(1000, rng.dirichlet([0.02] * 10, 40))
    mean, variance = bands.Side.of(GRID, False).means(histogram)
    edges = [Fraction(0), *np.cumsum([Fraction(w) for w in np.diff(GRID, prepend=0.0).tolist()])]
    for row, cells in enumerate(histogram.tolist()):
        first, second = (sum(count * edge**power for count, edge in zip(cells, edges, strict=True)) for power in (1, 2))
        exact = second / 1000 - (first / 1000) ** 2
        assert exact <= Fraction(float(variance[row])) <= exact + Fraction(1, 10**13)
        assert float(first / 1000) == pytest.approx(mean[row])


@pytest.mark.parametrize("sigma", [0.12, 0.25, 0.3, 1.0])
def test_no_certified_radius_is_above_that_of_fifty_digits(sigma: float) -> None:
    votes = np.array([600, 700, 900, 990, 999, 1000])
    radii = certified_radii(counts_of(np.full((votes.size, 1000), 0.9), sigma=sigma, votes=votes), 0.001)
    limits = lower_limits(1000, 0.001).values[votes]
    with mpmath.workdps(50):
        for radius, limit in zip(radii.tolist(), limits.tolist(), strict=True):
            exact = mpmath.mpf(sigma) * naive.probit(mpmath.mpf(limit))
            assert exact * (1 - mpmath.mpf(1e-11)) < mpmath.mpf(radius) <= exact


# ------------------------------------------------------------------------------------------------------- how tight


def confident_counts(n: int, grid: np.ndarray | None = None) -> Counts:
    """Beta(50, 0.3): confidences near 1, with a thin tail."""
    return counts_of(beta_draws(50, 0.3, n), default_thresholds() if grid is None else grid, votes=[n])


def logit_grid() -> np.ndarray:
    """255 thresholds evenly spaced in the logit, out to a millionth."""
    return 1 / (1 + np.exp(-np.linspace(-1, 1, 255) * np.log(1e6 - 1)))


def test_the_example_of_confidences_near_one_has_its_known_bounds() -> None:
    counts = confident_counts(100_000, logit_grid())
    side = bands.Side.of(counts.thresholds, False)
    rows = HistogramRows(counts.histogram, counts.keys, side, 2.0, 0.001 / 2)
    published = [kind(rows)[0] for kind in (bands.standard, bands.cdf)]
    assert [round(float(bound), 2) for bound in published] == [0.60, 0.67]  # with all of alpha for the confidence
    assert round(float(bands.tight(rows)[0]), 2) == 0.90
    lower = {kind: float(certificates(counts, 2.0, 0.001, kind).lower[0]) for kind in CONFIDENCES}
    survival = stats.beta.sf(t := np.linspace(0, 1, 200_001), 50, 0.3)
    limit = np.trapezoid(stats.norm.cdf(stats.norm.ppf(survival) - 2), t)
    assert round(limit, 2) == 0.95
    assert lower["standard"] < lower["bernstein"] < lower["tight"] < lower["tangent"] < limit


@pytest.mark.parametrize(("a", "b"), [(50, 0.3), (5, 2), (0.5, 0.5)])
@pytest.mark.parametrize("kind", ["tight", "tangent"])
def test_the_default_grid_gives_narrower_intervals_than_one_even_in_the_logit(kind: str, a: float, b: float) -> None:
    draws = beta_draws(a, b, 10_000, 3)
    for r in (0.5, 1.0, 2.0):
        default, logit = (
            float(np.mean(found.upper - found.lower))
            for grid in (default_thresholds(), logit_grid())
            for found in [certificates(counts_of(draws, grid, votes=np.full(3, 10_000)), r, 0.001, kind)]
        )
        assert default < logit


@pytest.mark.parametrize(("a", "b"), [(50, 0.3), (5, 2), (20, 1), (0.5, 0.5), (3, 0.3)])
@pytest.mark.parametrize("n", [10_000, 100_000])
def test_tangents_are_narrower_than_the_band_for_few_and_many_draws(a: float, b: float, n: int) -> None:
    counts = counts_of(beta_draws(a, b, n, 3), default_thresholds(), votes=np.full(3, n))
    for r in (0.5, 1.0, 2.0, 3.0):
        widths = {
            kind: float(np.mean(found.upper - found.lower))
            for kind in ("tight", "tangent")
            for found in [certificates(counts, r, 0.001, kind)]
        }
        assert widths["tangent"] < widths["tight"]


def test_the_interval_at_radius_zero_is_one_of_the_mean() -> None:
    draws = beta_draws(9, 1, 5000, 4)
    grid = np.linspace(0.001, 0.999, 999)
    for kind in CONFIDENCES:
        found = certificates(counts_of(draws, grid), 0.0, 0.01, kind)
        mean = draws.mean(axis=1)
        assert np.all((found.lower < mean) & (mean < found.upper))
        # About three standard errors either way and one step of the grid, except where a band is integrated.
        width = {"tight": 0.035, "cdf": 0.06, "standard": 0.05, "bernstein": 0.025, "tangent": 0.015}[kind]
        assert np.all(found.upper - found.lower < width)


# ------------------------------------------------------------------------------------------------------- monotone


def random_counts(seed: int, n: int) -> Counts:
    rng = np.random.default_rng(seed)
    shape = np.exp(rng.uniform(-1.5, 4, (8, 2)))
    return counts_of(rng.beta(shape[:, :1], shape[:, 1:], (8, n)), votes=np.full(8, n))


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n=st.sampled_from([20, 300, 3000]), low=st.floats(0, 2), more=st.floats(1e-3, 1))
def test_intervals_grow_with_the_radius(seed: int, n: int, low: float, more: float) -> None:
    counts = random_counts(seed, n)
    for kind in CONFIDENCES:
        near, far = (certificates(counts, r, 0.05, kind) for r in (low, low + more))
        both = far.certified
        assert np.all(near.certified | ~far.certified)
        # For "tangent" this is not a theorem (each radius has bets of its own); it has not been seen to fail.
        room = 1e-6 if kind == "tangent" else 0.0
        assert np.all(near.lower[both] >= far.lower[both] - room)
        assert np.all(near.upper[both] <= far.upper[both] + room)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6), n=st.sampled_from([20, 300, 3000]), low=st.floats(1e-8, 0.12), factor=st.floats(1.05, 4)
)
def test_intervals_shrink_with_alpha(seed: int, n: int, low: float, factor: float) -> None:
    counts = random_counts(seed, n)
    for kind in CONFIDENCES:
        wide, narrow = (certificates(counts, 0.7, alpha, kind) for alpha in (low, low * factor))
        assert np.all((wide.radii <= narrow.radii) | wide.abstained)
        both = wide.certified
        # Tangents and bets depend on alpha, so for "tangent" this is no theorem, and not so with a handful of draws.
        room = (0.02 if n == 20 else 1e-6) if kind == "tangent" else 0.0
        assert np.all(narrow.lower[both] >= wide.lower[both] - room)
        assert np.all(narrow.upper[both] <= wide.upper[both] + room)


def test_a_dense_sweep_of_radii_gives_falling_tangent_bounds() -> None:
    counts = dataclasses.replace(random_counts(3, 3000), votes=np.full(8, 3000))
    lower = np.array([certificates(counts, r, 0.01, "tangent").lower for r in np.linspace(0, 2.5, 126)])
    assert np.all(np.diff(lower, axis=0) <= 1e-6)
    assert np.all(lower[0] > lower[-1])


# ------------------------------------------------------------------------------------------------ several radii at once


def test_radii_that_hold_together_share_alpha_where_each_has_an_event() -> None:
    counts = counts_of(beta_draws(9, 1, 400, 5))
    alone, together = (certificates(counts, 0.5, 0.01, together=radii) for radii in (1, 4))
    # The ends have a quarter of their share, the prediction all of its own; what is claimed is spent once.
    np.testing.assert_array_equal(together.radii, alone.radii)
    lower, upper = KINDS["tangent"](counts, 0.5, 0.75 * 0.01 / 4)
    np.testing.assert_allclose(together.lower, lower, atol=1e-12)
    np.testing.assert_allclose(together.upper, upper, atol=1e-12)
    assert np.all(together.lower < alone.lower)
    assert together.ledger == alone.ledger
    assert together.failures() == alone.failures()
    assert together.claim().settings["radii that hold together"] == 4
    assert "radii that hold together" not in alone.claim().settings
    for kind in ("tight", "cdf"):  # one event for all radii: nothing to share
        np.testing.assert_array_equal(*(certificates(counts, 0.5, 0.01, kind, together=k).lower for k in (1, 4)))
    with pytest.raises(InputError, match="together is 0; pass a number of radii"):
        certificates(counts, 0.5, together=0)


def test_certificates_of_a_curve_fail_at_any_of_its_radii_as_rarely_as_alpha_says() -> None:
    rng, grid, radii = np.random.default_rng(11), np.linspace(0.1, 0.9, 9), (0.0, 0.3, 0.6, 1.0)
    truth = naive.HalfSpaces.random(rng, naive.ROWS, grid)
    counts, wrong = truth.counts(300, grid, rng), np.zeros(naive.ROWS, np.bool_)
    for r in radii:
        found, (low, high) = certificates(counts, r, 0.2, together=len(radii)), truth.worst(r)
        wrong |= found.certified & ((found.lower > low) | (found.upper < high))
    assert np.count_nonzero(wrong) <= naive.allowed(0.2)


# ------------------------------------------------------------------------------------------------------ what is said


def test_samples_that_are_not_certified_may_have_any_confidence() -> None:
    draws = np.stack([np.full(1000, 0.95), np.full(1000, 0.6), np.full(1000, 0.2)])
    found = certificates(counts_of(draws, votes=[1000, 800, 480], sigma=0.5, correct=[1, 0, 1]), 0.75)
    assert found.certified.tolist() == [True, False, False]
    assert found.abstained.tolist() == [False, False, True]
    assert found.lower.tolist()[1:] == [0, 0]
    assert found.upper.tolist()[1:] == [1, 1]
    assert 0 < found.radii[1] < 0.75 < found.radii[0]
    assert np.isnan(found.radii[2])
    assert found.correct.tolist() == [True, False, True]
    assert (found.n, found.n_certified) == (3, 1)


def test_a_radius_is_certified_up_to_and_including_itself() -> None:
    counts = counts_of(np.full((1, 500), 0.95))
    radius = float(certificates(counts, 0.1).radii[0])
    assert certificates(counts, radius).certified.all()
    assert not certificates(counts, math.nextafter(radius, 9)).certified.any()


def test_the_ledger_adds_up_to_alpha_and_familywise_to_alpha_for_all_samples() -> None:
    counts = counts_of(beta_draws(9, 1, 500, 7))
    alone, together = certificates(counts, 0.3, 0.01), certificates(counts, 0.3, 0.01, familywise=True)
    each = certificates(counts, 0.3, 0.01, predictions="each")
    assert [name for name, _ in alone.ledger.entries] == ["prediction", "lower", "upper"]
    assert 0.0099999 < alone.ledger.spent <= 0.01
    assert 0.0099999 < 7 * together.ledger.spent <= 0.01
    assert np.all(together.lower <= alone.lower)
    # Of each class probability a limit from below and one from above, for all samples at once.
    level = 0.0025 / 14
    limit = stats.beta.ppf(level, counts.votes, 501 - counts.votes)
    np.testing.assert_allclose(alone.radii, counts.sigma * stats.norm.ppf(limit), rtol=1e-6)
    assert np.all(alone.radii < each.radii)
    assert np.all(together.radii <= each.radii)
    assert each.ledger == alone.ledger
    with pytest.raises(InputError, match="predictions"):
        certificates(counts, 0.3, predictions="some")


def test_samples_with_other_numbers_of_draws_keep_their_certificates() -> None:
    grid = GRID
    few, many = counts_of(beta_draws(9, 1, 200, 3), grid), counts_of(beta_draws(9, 1, 900, 2, seed=1), grid)
    names = ("index", "label", "predicted", "draws", "votes", "invalid", "histogram", "sums")
    order = [3, 0, 4, 1, 2]
    mixed = dataclasses.replace(
        few, **{name: np.concatenate([getattr(few, name), getattr(many, name)])[order] for name in names}
    )
    for kind in CONFIDENCES:
        parts = [certificates(each, 0.4, 0.01, kind, predictions="each") for each in (few, many)]
        whole = certificates(mixed, 0.4, 0.01, kind, predictions="each")
        for name in ("lower", "upper", "radii", "certified"):
            expected = np.concatenate([getattr(part, name) for part in parts])[order]
            assert np.array_equal(getattr(whole, name), expected, equal_nan=name == "radii")


def test_draws_without_a_valid_output_have_confidence_zero_in_the_certificate() -> None:
    good = beta_draws(50, 1, 1000)
    bad = good.copy()
    bad[0, ::50] = 0.0
    both = certificates(counts_of(np.concatenate([good, bad])), 0.5)
    assert both.lower[1] < both.lower[0]
    assert both.radii[1] < both.radii[0]


@pytest.mark.parametrize(
    ("n", "level", "delta"), [(1000, 0.001, 1e-6), (10, 0.2, 0.05), (500, 1e-5, 0.01), (1, 0.3, 0.1)]
)
def test_the_number_of_failing_certificates_is_a_binomial_quantile(n: int, level: float, delta: float) -> None:
    count = failing(n, level, delta)
    assert stats.binom.sf(count, n, level) <= delta
    assert count == 0 or stats.binom.sf(count - 1, n, level) > delta


def test_the_summary_pays_for_certificates_that_fail() -> None:
    counts = counts_of(beta_draws(9, 1, 2000, 200), correct=np.arange(200) % 10 > 0)
    found = certificates(counts, 0.5, 0.01)
    summary = found.summary(bins=10, delta=0.1)
    alone = worst_case.certify(found.lower, found.upper, found.correct, certified=found.certified, bins=10, delta=0.1)
    assert summary["calibration_error"].worst.value == alone["calibration_error"].worst.value  # pyright: ignore
    assert summary.population_all.terms["certificate failures"] == 2 * found.ledger.spent
    assert summary.population_all.value > alone.population_all.value


def test_a_claim_about_this_data_set_counts_failing_certificates_or_shares_alpha() -> None:
    counts = counts_of(beta_draws(9, 1, 2000, 200), correct=np.arange(200) % 10 > 0)
    alone, together = certificates(counts, 0.5, 0.01), certificates(counts, 0.5, 0.01, familywise=True)
    claim, family = alone.claim_of_intervals(delta=0.001), together.claim()
    worst = alone.summary()["calibration_error"].worst
    assert worst is not None
    failed = alone.failures(0.001)
    assert failed.count >= 5
    assert failed.n == alone.n_certified
    assert claim.value == worst.with_failing(failed.count)
    assert worst.value < claim.value < worst.value + 2 * failed.count / failed.n
    assert claim.ledger.spent == 0.001
    assert family.ledger.spent <= 0.01
    assert family.value < claim.value
    assert claim.settings["failing certificates"] == failed.count
    assert claim.settings["alpha per sample"] == 0.01
    assert "alpha per sample" not in family.settings
    assert "alpha per sample=0.01, failing certificates=" in claim.statement
    assert "under every perturbation of norm up to 0.5, 99.9% sure" in claim.sentence
    assert claim.n == alone.n_certified
    assert alone.claim_of_intervals(samples="all").n == 200


def test_a_claim_without_certified_samples_is_about_all_of_them_or_refused() -> None:
    found = certificates(counts_of(np.full((4, 50), 0.9)), 3.0)
    assert found.n_certified == 0
    assert found.claim().value == found.claim(samples="all").value == 1.0
    assert found.claim().settings["samples"] == "all"
    with pytest.raises(InputError, match="no sample is certified at radius 3"):
        found.claim(samples="certified")


def test_a_claim_names_the_noise_and_what_it_rests_on() -> None:
    counts = counts_of(np.full((4, 500), 0.9))
    gaussian = certificates(counts, 0.1).claim()
    exact = certificates(dataclasses.replace(counts, noise="exact"), 0.1).claim()
    assert "exactly Gaussian (rounding to float32 is neglected)" in gaussian.statement
    assert (
        "what is certified is the model applied to inputs rounded to k/255, around the rounded input" in exact.statement
    )
    for claim in (gaussian, exact):
        assert len(claim.assumptions) == 4
        assert claim.assumptions[1:] == (
            "the model's output for an input does not depend on the other inputs in its batch",
            "the seed and the number of draws were fixed before any result was looked at",
            "the random split of the draws, fixed by the seed, has nothing to do with them",
        )
        assert all(each in claim.statement for each in claim.assumptions)


def test_a_claim_says_whose_confidence_it_is_about_and_how_it_is_bounded() -> None:
    claim = certificates(counts_of(np.full((4, 500), 0.9)), 0.1, confidence="tangent").claim()
    assert claim.sentence.startswith(
        f"calibration error of the smoothed classifier is at most {claim.text} on these 4 "
    )
    assert (
        " Settings: confidence=mean probability of the predicted class under the noise, intervals=tangent, bins=15, "
        "closed=left, samples=certified, "
    ) in claim.statement


@pytest.mark.parametrize(
    ("earlier", "text"),
    [
        ([(4, 100)], "the run was extended from n=100 without looking at its results"),
        ([(4, 100), (4, 200)], "the run was extended from n=100, then n=200 without looking at its results"),
        ([(2, 500)], "the run was extended from 2 samples with n=500 without looking at its results"),
        (
            [(4, n) for n in range(10, 100, 10)],
            "the run was extended from n=10, then 7 other sizes, then n=90 without looking at its results",
        ),
    ],
)
def test_a_claim_of_an_extended_run_says_so(earlier: list[tuple[int, int]], text: str) -> None:
    counts = counts_of(np.full((4, 500), 0.9))
    longer = dataclasses.replace(counts, earlier=earlier)
    assert longer.earlier == tuple(earlier)
    claim = certificates(longer, 0.1).claim()
    assert claim.assumptions == (*certificates(counts, 0.1).claim().assumptions, text)
    assert f"; {text}. Settings: confidence=" in claim.statement


def test_tables_hold_limits_for_the_counts_that_were_asked_for() -> None:
    table = LowerLimits(1000, 0.01)
    table.fill(np.array([[3, 1000], [3, 0]]))
    assert np.flatnonzero(~np.isnan(table.values)).tolist() == [0, 3, 1000]
    before = table.values.copy()
    table.fill(np.array([500]))
    assert np.array_equal(table.values[[0, 3, 1000]], before[[0, 3, 1000]])
    assert table.shifted(0.0) is table.values
    assert table.shifted(1.0)[1000] == pytest.approx(stats.norm.cdf(stats.norm.ppf(0.01 ** (1 / 1000)) - 1), abs=1e-9)


# ---------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"radius": -1}, "radius is -1; pass a finite number of at least 0"),
        ({"radius": math.nan}, "radius is nan; pass a finite number"),
        ({"radius": math.inf}, "radius is inf; pass a finite number"),
        ({"radius": "far"}, "radius is 'far'; pass a number"),
        ({"alpha": 0}, "alpha is 0; pass a probability between 0 and 0.5"),
        ({"alpha": 1.5}, "alpha is 1.5; it is the probability of failing, below 0.5"),
        ({"confidence": "best"}, "confidence is 'best'; pass one of 'tangent', 'tight'"),
        ({"counts": 3}, "counts is int; pass what a run's counts"),
    ],
)
def test_requests_that_make_no_sense_are_refused_in_a_sentence(arguments: dict[str, Any], text: str) -> None:
    given_ = {"counts": counts_of(np.full((1, 10), 0.9)), "radius": 0.5, **arguments}
    with pytest.raises(InputError, match=text):
        certificates(**given_)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"thresholds": GRID[::-1]}, "thresholds"),
        ({"sigma": 0.0}, "sigma is 0.0; pass a positive"),
        ({"noise": "uniform"}, "noise is 'uniform'"),
        ({"votes": np.array([11])}, r"votes\[0\] is outside 0 to its draws"),
        ({"votes": np.array([1, 2])}, "lengths differ"),
        ({"votes": np.array([0.5])}, "votes is float64"),
        ({"draws": np.array([0])}, r"draws\[0\] has no draws"),
        ({"draws": np.array([11])}, r"histogram\[0\] does not add up to its draws"),
        ({"histogram": np.array([[-1, 5, 0, 0, 0, 0, 0, 0, 0, 0]])}, r"histogram\[0\] has a negative count"),
        ({"earlier": [3]}, "earlier has an entry 3; pass pairs"),
        ({"earlier": [(1, 2, 3)]}, r"earlier has an entry \(1, 2, 3\); pass pairs"),
        ({"earlier": [(1, 0)]}, r"earlier is 0; pass pairs \(samples, draws\) of whole numbers"),
        ({"histogram": np.ones((1, 4), np.int64)}, "histogram has 4 cells; 9 thresholds make 10"),
    ],
)
def test_counts_that_do_not_fit_together_are_refused_in_a_sentence(change: dict[str, Any], text: str) -> None:
    counts = counts_of(np.full((1, 10), 0.95))
    with pytest.raises(InputError, match=text):
        dataclasses.replace(counts, **change)


@pytest.mark.parametrize("call", [lambda: counts_of([0.5, 1.5]), lambda: counts_of([0.5, math.nan])])
def test_confidences_outside_the_unit_interval_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InputError, match="confidences must be in"):
        call()


def test_requests_about_failures_are_checked() -> None:
    found = certificates(counts_of(np.full((1, 10), 0.95)), 0.0, 0.3)
    with pytest.raises(InputError, match="samples is 'some'"):
        found.failures(samples="some")
    with pytest.raises(InputError, match="delta is 2"):
        found.failures(2)


def test_a_kind_of_ones_own_goes_where_a_built_in_goes() -> None:
    counts = counts_of(np.random.default_rng(3).beta(30, 1, (6, 2000)), votes=[2000, 1990, 1000, 2000, 1950, 2000])
    asked: list[tuple[int, float, float]] = []

    def mine(part: Counts, radius: float, alpha: float) -> Any:
        asked.append((len(part), radius, alpha))
        return KINDS["standard"](part, radius, alpha)

    own, built_in = certificates(counts, 0.3, 0.01, mine), certificates(counts, 0.3, 0.01, "standard")
    assert asked == [(5, 0.3, 0.0075)]  # the sample that abstains is not asked for; the votes keep a quarter of alpha
    assert (own.confidence, own.ledger) == ("mine", built_in.ledger)
    np.testing.assert_array_equal(own.lower, built_in.lower)
    np.testing.assert_array_equal(own.upper, built_in.upper)
    assert own.claim().value == built_in.claim().value


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (lambda n: (np.full(n, -0.1), np.ones(n)), r"bad gives sample 0 -0.1 to 1, which is no interval inside"),
        (lambda n: (np.zeros(n), np.array([1.0, 1.5])), r"bad gives sample 3 0 to 1.5, which is no interval inside"),
        (lambda n: (np.array([0, np.nan]), np.ones(n)), r"bad gives sample 3 nan to 1, which is no interval inside"),
        (lambda n: (np.array([0.1, 0.9]), np.full(n, 0.5)), r"sample 3 0.9 to 0.5, which has its lower end above"),
        (lambda n: (np.zeros(n + 1), np.ones(n)), r"the lower ends of bad have shape \(3,\) for 2 samples"),
        (lambda n: np.zeros(n), "bad returned ndarray; return lower and upper ends"),
    ],
)
def test_what_a_kind_returns_is_checked_and_the_sample_named(ends: Any, message: str) -> None:
    counts = counts_of(np.full((4, 500), 0.9), votes=[500, 250, 240, 500])

    def bad(part: Counts, radius: float, alpha: float) -> Any:
        return ends(len(part))

    with pytest.raises(InputError, match=message):
        certificates(counts, 0.1, confidence=bad)
