"""Failing certificates, simulated: a claim about these samples and a bound for the population pay enough for them.

A share of the samples has confidence ½, always, and a wrong prediction: certified, and nothing can go wrong. The others
are predicted correctly with a probability of exactly ½, with confidence 0: where chance makes their votes look like a
majority they are certified, and each of these certificates fails in the worst way: somewhere within the radius the
prediction is wrong with confidence 1. In one bin that moves the sum of gaps by 2.
"""

import numpy as np
import pytest
from scipy import stats

from certcal.smoothing import Certificates, Counts, certificates
from certcal.smoothing import _certificates as module
from certcal.smoothing._certificates import failing
from certcal.worst_case import calibration_error

ALPHA, DRAWS = 0.01, 2317  # where a majority that is none is certified with probability 0.99 alpha
GRID = np.array([1e-9, 0.5 + 1e-9])


@pytest.fixture(autouse=True)
def nearly_all_for_the_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then certificates fail about as often as alpha allows."""
    monkeypatch.setattr(module, "SHARES", {"prediction": 998, "lower": 1, "upper": 1})


def certified(good: int, tempting: int, rng: np.random.Generator) -> Certificates:
    total = good + tempting
    hard = np.arange(total) >= good
    votes = np.where(hard, rng.binomial(DRAWS, 0.5, total), DRAWS)
    histogram = np.where(hard[:, None], [[DRAWS, 0, 0]], [[0, DRAWS, 0]])
    counts = Counts(
        thresholds=GRID,
        sigma=1.0,
        index=np.arange(total),
        label=hard.astype(np.int64),
        predicted=np.ones(total, np.int64),
        draws=np.full(total, DRAWS),
        votes=votes,
        invalid=np.zeros(total, np.int64),
        histogram=histogram,
    )
    return certificates(counts, 0.0, ALPHA, predictions="each")


def test_certificates_fail_here_nearly_as_often_as_alpha_allows() -> None:
    failed = certified(10, 200_000, np.random.default_rng(0)).n_certified - 10
    assert stats.binom.cdf(failed, 200_000, ALPHA) < 0.999
    assert failed > 0.95 * ALPHA * 200_000


@pytest.mark.parametrize("samples", ["certified", "all"])
def test_a_claim_that_counts_failing_certificates_fails_as_rarely_as_it_says(samples: str) -> None:
    rng = np.random.default_rng(1)
    good, tempting, delta, times = 300, 2700, 0.2, 100
    wrong = dict.fromkeys(("claim", "a fifth less", "half the term", "no term"), 0)
    for _ in range(times):
        found = certified(good, tempting, rng)
        flipped = found.n_certified - good if samples == "certified" else tempting
        truth = (0.5 * good + flipped) / (good + flipped)
        claim = found.claim_of_intervals(bins=1, samples=samples, delta=delta)
        worst = calibration_error(found.lower, found.upper, found.correct, 1, certified=found.certified)
        known = (worst if samples == "certified" else worst.all_samples or worst).value
        assert known < claim.value < 1
        wrong["claim"] += claim.value < truth
        for share, name in ((0.8, "a fifth less"), (0.5, "half the term"), (0.0, "no term")):
            wrong[name] += known + share * (claim.value - known) < truth
    assert wrong["claim"] <= delta * times
    assert wrong["claim"] > 0  # so that this was close
    assert wrong["a fifth less"] > stats.binom.ppf(1 - 1e-6, times, delta)
    assert wrong["half the term"] > 0.95 * times
    assert wrong["no term"] == times


def test_the_number_of_failing_certificates_exceeds_its_quantile_as_rarely_as_it_says() -> None:
    rng = np.random.default_rng(2)
    for delta in (0.3, 0.05):
        count = failing(3000, ALPHA, delta)
        failed = np.array([certified(1, 2999, rng).n_certified - 1 for _ in range(200)])
        assert np.count_nonzero(failed > count) <= stats.binom.ppf(1 - 1e-6, 200, delta)
        assert np.count_nonzero(failed > 0.75 * count) > stats.binom.ppf(1 - 1e-6, 200, delta)


def test_a_bound_for_the_population_pays_for_failing_certificates_and_less_would_not_do() -> None:
    """Given that a sample is certified the share of failing ones is alpha divided by the share that is certified."""
    rng = np.random.default_rng(3)
    share, total, delta, times = 0.1, 50_000, 0.2, 20
    limit = certified(1, 1, rng).ledger.entries[0][1]
    tempted = float(stats.binom.sf(stats.binom.isf(limit, DRAWS, 0.5), DRAWS, 0.5))  # least count that is certified
    assert 0.95 * ALPHA < tempted <= ALPHA
    kept = share + (1 - share) * tempted
    truth = {"certified": (0.5 * share + (1 - share) * tempted) / kept, "all": 0.5 * share + 1 - share}
    wrong = {(which, how): 0 for which in truth for how in ("bound", "half the term", "not divided", "no term")}
    for _ in range(times):
        good = int(rng.binomial(total, share))
        summary = certified(good, total - good, rng).summary(bins=1, delta=delta)
        for which, bound in (("certified", summary.population), ("all", summary.population_all)):
            assert bound is not None
            term, real = bound.terms["certificate failures"], truth[which]
            assert bound.value < 1
            wrong[which, "bound"] += bound.value < real
            wrong[which, "half the term"] += bound.value - 0.5 * term < real
            wrong[which, "not divided"] += bound.value - term + 2 * ALPHA < real
            wrong[which, "no term"] += bound.value - term < real
    for which in truth:
        assert wrong[which, "bound"] <= delta * times
        assert wrong[which, "half the term"] > 0.9 * times
        assert wrong[which, "no term"] > 0.9 * times
    assert wrong["certified", "not divided"] > 0.9 * times
