"""Certificates of some samples of a run, and of confidences after a map."""

from dataclasses import fields, replace

import numpy as np
import pytest

from certcal.smoothing import Certificates, Counts, certificates
from certcal.worst_case import calibration_error


def counts_of(rows: np.ndarray | slice = slice(None)) -> Counts:
    """Fifty samples of a run, or some of them as a run of their own."""
    rng = np.random.default_rng(5)
    x = rng.beta(rng.uniform(0.5, 30, 50)[:, None], 1.0, (50, 500))
    correct = rng.integers(0, 2, 50)
    return Counts.from_confidences(
        x[rows], np.linspace(0.02, 0.98, 49), votes=(x > 0.5).sum(axis=1)[rows], sigma=0.5, correct=correct[rows]
    )


def same(one: Certificates, other: Certificates) -> bool:
    return all(np.array_equal(getattr(one, f.name), getattr(other, f.name), equal_nan=f.name == "radii")
               for f in fields(Certificates) if f.name not in ("counts", "kind"))  # fmt: skip


def test_certificates_of_some_samples_are_those_of_a_run_of_them_alone() -> None:
    rows = np.array([3, 4, 10, 30, 31, 49])
    those = replace(counts_of(rows), index=rows)  # coins are those of a sample's place in the data
    some, alone = (certificates(each, 0.1, predictions="each") for each in (counts_of(), those))
    some = some.select(rows)
    assert same(some, alone)
    assert 0 < some.n_certified < 6
    assert some.claim().to_dict() == alone.claim().to_dict()
    assert some.failures().n == some.n_certified


def test_some_samples_of_familywise_certificates_keep_the_alpha_of_all() -> None:
    whole = certificates(counts_of(), 0.1, familywise=True)
    some = whole.select(np.arange(20))
    assert some.ledger.spent == whole.ledger.spent
    assert some.claim().ledger.spent == pytest.approx(whole.alpha)
    np.testing.assert_array_equal(some.lower, whole.lower[:20])


@pytest.mark.parametrize("familywise", [False, True])
def test_recalibrated_certificates_claim_the_error_of_the_mapped_intervals(familywise: bool) -> None:
    whole = certificates(counts_of(), 0.1, alpha=0.01, familywise=familywise)
    low, high = (np.where(whole.certified, 0.3 + end / 2, other) for end, other in ((whole.lower, 0), (whole.upper, 1)))
    mapped = whole.recalibrated(low, high, "a line")
    claim, before = mapped.claim(bins=10), whole.claim_of_intervals(bins=10)
    worst = calibration_error(low, high, whole.correct, certified=whole.certified, bins=10)
    assert claim.value == worst.with_failing(0 if familywise else whole.failures(0.01).count)
    assert claim.value != before.value
    assert claim.ledger == before.ledger
    assert claim.assumptions == before.assumptions
    assert (claim.radius, claim.n) == (before.radius, before.n)
    np.testing.assert_array_equal(mapped.certified, whole.certified)


def test_a_claim_after_a_map_says_that_there_was_one() -> None:
    whole = certificates(counts_of(), 0.1)
    mapped = whole.recalibrated(whole.lower, whole.upper, "CertifiedIsotonic(tradeoff=0.5)").claim()
    assert mapped.name == "calibration error of the recalibrated smoothed classifier"
    assert mapped.settings["recalibration"] == "CertifiedIsotonic(tradeoff=0.5)"
    assert mapped.settings["confidence"] == "a map of the mean probability of the predicted class under the noise"
    assert whole.claim().settings["confidence"] == "mean probability of the predicted class under the noise"
