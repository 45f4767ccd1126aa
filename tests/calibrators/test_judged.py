"""A map judged on samples that it was not fitted to, and the bound on what it gains over a constant."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from certcal.bounds import clopper_pearson
from certcal.calibrators import CertifiedIsotonic, CertifiedSamples, gain_over, judge
from certcal.metrics import auroc, ece, top_label_brier_score
from certcal.worst_case import certify
from tests.calibrators import naive_certified as naive


def made(n=200, seed=0, width=0.1, certified=None, **options):
    rng = np.random.default_rng(seed)
    z = rng.uniform(0.3, 1, n)
    correct = rng.random(n) < z**2
    lower, upper = np.maximum(z - width, 0), np.minimum(z + width, 1)
    return CertifiedSamples.from_intervals(lower, upper, correct, z, certified=certified, **options)


def gains_of(samples, constant):
    """Of each certified sample, by the definition."""
    found = []
    for c, low, high, kept in zip(
        samples.correct.tolist(), samples.lower[:, 0], samples.upper[:, 0], samples.certified[:, 0], strict=True
    ):
        if kept:
            found.append((c - constant) ** 2 - max((c - low) ** 2, (c - high) ** 2))
    return np.array(found)


# ------------------------------------------------------------------------------------------------------- the gain


@pytest.mark.parametrize("constant", [0.0, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize(("n", "delta"), [(1, 0.3), (5, 0.2), (200, 0.05), (200, 1e-6)])
def test_the_bound_is_where_the_capital_of_the_bets_reaches_one_over_delta(n, delta, constant):
    """Exactly there: a bound two per cent nearer to the mean would be claimed with less than that capital."""
    samples = made(n, seed=n)
    gains = gains_of(samples, constant)
    bound = gain_over(samples, 0, constant, delta)
    assert bound.value == pytest.approx(naive.least_gain(gains, constant, delta), abs=1e-9)
    assert naive.log_capital(gains, constant, bound.value) >= math.log(1 / delta)
    nearer = bound.value + 0.02 * (gains.mean() - bound.value)
    assert naive.log_capital(gains, constant, nearer) < math.log(1 / delta)
    assert bound.terms["mean gain"] == pytest.approx(gains.mean())
    assert bound.value <= gains.mean()
    assert (bound.side, bound.delta, bound.n) == ("lower", delta, n)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.98])
def test_the_capital_is_fair_and_the_bound_fails_no_more_often_than_delta(share):
    """All results of nine draws of the gain that varies most: best and worst possible, with these probabilities."""
    n, constant, delta = 9, 0.5, 0.2
    truth = share * 0.25 - (1 - share) * 0.75
    chances = binom.pmf(np.arange(n + 1), n, share)
    capital, failed = 0.0, 0.0
    for k, chance in enumerate(chances):
        ends = np.where(np.arange(n) < k, 1.0, 0.0)  # correct samples with a confidence of 1, or of 0
        samples = CertifiedSamples.from_intervals(ends, ends, np.ones(n, int))
        gains = gains_of(samples, constant)
        capital += chance * math.exp(naive.log_capital(gains, constant, truth))
        failed += chance * (gain_over(samples, 0, constant, delta).value > truth)
    assert capital == pytest.approx(1, abs=1e-9)
    assert failed <= delta


@pytest.mark.parametrize(("n", "spent"), [(1, 0.75), (2, 0.6)])
@pytest.mark.parametrize("delta", [0.2, 1e-6])
def test_a_few_fair_draws_of_the_best_gain_fail_with_more_than_half_of_delta(n, spent, delta):
    """At the share of best gains that n of them just refute; everything on one bet is then nearly the best bet."""
    best = CertifiedSamples.from_intervals(np.ones(n), np.ones(n), np.ones(n, int))
    value = gain_over(best, 0, 0.5, delta).value
    share = (value + 0.75) * (1 - 1e-9)  # of gains 1/4, the others being -3/4: its expectation is just below the value
    assert spent * delta < share**n <= delta
    failed = 0.0
    for k in range(n + 1):
        ends = np.where(np.arange(n) < k, 1.0, 0.0)
        found = gain_over(CertifiedSamples.from_intervals(ends, ends, np.ones(n, int)), 0, 0.5, delta).value
        failed += binom.pmf(k, n, share) * (found > share - 0.75)
    assert spent * delta < failed <= delta


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.integers(0, 1))
def test_no_gain_leaves_the_range_that_the_bets_assume(constant, low, high, c):
    samples = CertifiedSamples.from_intervals([min(low, high)], [max(low, high)], [c])
    least = min(constant**2, (1 - constant) ** 2) - 1
    most = max(constant**2, (1 - constant) ** 2)
    (gain,) = gains_of(samples, constant)
    assert least - 1e-12 <= gain <= most + 1e-12
    assert least - 1e-9 <= gain_over(samples, 0, constant, 0.05).value <= gain + 1e-12


def test_failing_certificates_cost_their_share_of_the_certified_samples_and_half_of_delta():
    kept = np.arange(200) % 4 > 0
    samples = made(certified=kept, alpha=0.01)
    bound = gain_over(samples, 0, 0.6, 0.05)
    share = clopper_pearson(150, 200, 0.025, side="lower").lower
    lost = (1 + 0.6**2 - 0.4**2) * 0.01 / share  # a gain that is off by the whole range of gains
    expected = naive.least_gain(gains_of(samples, 0.6), 0.6, 0.025) - lost
    assert bound.value == pytest.approx(expected, abs=1e-9)
    assert bound.terms["certificate failures"] == pytest.approx(-lost)
    assert bound.n == 150
    assert "they were not used to train, choose or recalibrate the classifier" in bound.assumptions
    assert bound.value < gain_over(made(certified=kept), 0, 0.6, 0.05).value


@pytest.mark.parametrize("constant", [0.1, 0.5, 0.9])
def test_what_failing_certificates_may_cost_is_not_more_than_the_bound_pays(constant):
    """One in a hundred says "correct, and sure of it" (or the opposite) of a sample that an attack turns round."""
    n, alpha = 200_000, 0.01
    right = float(constant < 0.5)  # the outcome that costs the constant most
    samples = CertifiedSamples.from_intervals(np.full(n, right), np.full(n, right), np.full(n, int(right)), alpha=alpha)
    said, turned = (right - constant) ** 2, (1 - right - constant) ** 2 - 1
    truth = (1 - alpha) * said + alpha * turned
    bound = gain_over(samples, 0, constant, 0.05)
    assert bound.value <= truth
    assert bound.value - 0.02 * bound.terms["certificate failures"] > truth  # two per cent less would not do


def test_without_a_certified_sample_or_a_constant_there_is_no_bound():
    assert gain_over(made(certified=np.zeros(200, bool)), 0, 0.6, 0.05) is None
    assert gain_over(made(), 0, None, 0.05) is None


def test_the_bound_is_never_below_the_least_that_a_gain_can_be():
    samples = CertifiedSamples.from_intervals([0.0] * 3, [1.0] * 3, [1] * 3, alpha=0.4)
    assert gain_over(samples, 0, 0.5, 0.05).value == -1


# ----------------------------------------------------------------------------------------------------------- judgement


def test_a_map_is_judged_by_its_mapped_confidences_and_intervals():
    fit, rest = made(400).split(0.5, 0)
    g = CertifiedIsotonic(0.5).fit_samples(fit)
    found = judge(rest, g, (0.6,), name="it", method="isotonic", tradeoff=0.5, bins=10, closed="right", delta=0.1)
    z = g.transform(rest.confidence)
    assert found.clean["brier_score"].value == top_label_brier_score(z, rest.correct)
    assert found.clean["ece"].value == ece(z, rest.correct, bins=10, closed="right")
    assert found.clean["auroc"].value == auroc(z, rest.correct)
    low, high = g.intervals(rest.lower[:, 0], rest.upper[:, 0])
    expected = certify(low, high, rest.correct, bins=10, closed="right", delta=0.1, certified=np.ones(200, bool))
    assert found.at[0].summary.to_dict() == expected.to_dict()
    assert found.at[0].gain.value == gain_over(rest.mapped(g), 0, 0.6, 0.1).value
    assert found.at[0].claim is None
    assert (found.name, found.method, found.tradeoff, found.calibrator) == ("it", "isotonic", 0.5, g)


def test_the_identity_is_judged_by_the_samples_as_they_are():
    samples = made()
    found = judge(samples, None, (0.6,), name="before recalibration")
    assert found.clean["brier_score"].value == top_label_brier_score(samples.confidence, samples.correct)
    assert found.at[0].summary["brier_score"].worst.value == pytest.approx(
        naive.certified_brier(
            lambda z: z,
            naive.Problem(
                [[(low, high)] for low, high in zip(samples.lower[:, 0], samples.upper[:, 0], strict=True)],
                samples.correct.tolist(),
                samples.confidence.tolist(),
                [1.0],
            ),
        )
    )


def test_a_constant_map_has_an_auroc_of_one_half():
    samples = made()
    g = CertifiedIsotonic(1).fit(np.zeros(200), np.ones(200), samples.correct)
    assert judge(samples, g, (0.6,), name="constant").clean["auroc"].value == 0.5


def test_samples_without_known_confidences_have_no_clean_estimates():
    samples = CertifiedSamples.from_intervals([0.1, 0.5], [0.4, 0.9], [0, 1])
    found = judge(samples, None, (0.5,), name="before recalibration")
    assert dict(found.clean) == {}
    assert found.at[0].summary.n == 2
