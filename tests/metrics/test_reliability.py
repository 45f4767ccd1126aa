"""Reliability: what a diagram shows, prepared once."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom

from certcal.bounds import isotonic_band
from certcal.metrics import ece, reliability
from tests import naive


@given(naive.weighted(), naive.own_edges(), st.sampled_from(["left", "right"]))
def test_bins_hold_the_means_of_their_samples(data, edges, closed):
    z, c, w = data
    found = reliability(z, c, edges=edges, closed=closed, sample_weight=w, band="none")
    groups = naive.groups(z, c, edges, closed, w)
    assert found.ece == pytest.approx(naive.ece_of(groups), rel=1e-12, abs=1e-12)
    for m, group in enumerate(groups):
        if group:
            assert found.table.accuracy[m] == pytest.approx(float(naive.accuracy_of(group)), rel=1e-12, abs=1e-12)
            mean = float(naive.confidence_of(group))
            assert found.table.mean_confidence[m] == pytest.approx(mean, rel=1e-12, abs=1e-12)
        else:
            assert np.isnan(found.table.accuracy[m])
            assert np.isnan(found.table.mean_confidence[m])


def test_the_error_beside_the_diagram_is_the_error_of_its_bins():
    rng = np.random.default_rng(0)
    z, c = rng.random(500), rng.random(500) < 0.5
    assert reliability(z, c, 12).ece == ece(z, c, 12)


# --------------------------------------------------------------------------------------------------------------- bands

DELTA = 0.1
BINS = 5
# The calibration function, the scores, and the number of samples.
REGIMES = {
    "calibrated": (lambda z: z, lambda rng, n: rng.random(n), 200),
    "over-predicted": (lambda z: z**3, lambda rng, n: rng.random(n), 200),
    "under-predicted": (np.sqrt, lambda rng, n: rng.random(n), 200),
    "falling": (lambda z: 1 - z, lambda rng, n: rng.random(n), 200),
    "rare": (lambda z: 0.03 * z, lambda rng, n: rng.random(n), 400),
    "nearly certain": (lambda z: 0.98 + 0.02 * z, lambda rng, n: rng.random(n), 400),
    "tied": (lambda z: z, lambda rng, n: rng.integers(0, 8, n) / 7, 100),
    "few": (lambda z: z, lambda rng, n: rng.random(n), 10),
    "crowded": (lambda z: z, lambda rng, n: 1 - rng.random(n) ** 10, 300),
    "all or nothing inside a bin": (lambda z: (z * 50 % 2 >= 1) * 1.0, lambda rng, n: rng.random(n), 100),
}


def misses(regime, band, *, weigh=False, repetitions=150, narrower=1.0):
    """How often the band misses the mean of the true probabilities in each bin, as a row per repetition."""
    eta, scores, n = REGIMES[regime]
    rng = np.random.default_rng(7)
    found = np.zeros((repetitions, BINS), bool)
    for row in found:
        z = scores(rng, n)
        c = rng.random(n) < eta(z)
        w = rng.gamma(1.0, size=n) if weigh else None
        made = reliability(z, c, BINS, band=band, level=1 - DELTA, sample_weight=w)
        true = reliability(z, c, BINS, band="none", sample_weight=w).table
        place = np.minimum((z * BINS).astype(int), BINS - 1)
        weight = np.ones(n) if w is None else w
        mean = np.bincount(place, weight * eta(z), BINS) / np.where(true.weight > 0, true.weight, 1)
        rate = true.accuracy
        lower, upper = rate - (rate - made.lower) * narrower, rate + (made.upper - rate) * narrower
        used = true.count > 0
        row[used] = (lower[used] > mean[used] + 1e-12) | (upper[used] < mean[used] - 1e-12)
    return found


def too_many(failed: int, of: int, delta: float = DELTA) -> bool:
    """Whether so many failures have a probability below 1e-4 when each has one of at most delta."""
    return bool(binom.sf(failed - 1, of, delta) < 1e-4)


@pytest.mark.parametrize("weigh", [False, True])
@pytest.mark.parametrize("regime", REGIMES)
def test_a_joint_band_holds_all_bins_at_once(regime, weigh):
    found = misses(regime, "joint", weigh=weigh)
    assert not too_many(int(found.any(axis=1).sum()), len(found))


@pytest.mark.parametrize("regime", REGIMES)
def test_a_band_per_bin_holds_each_bin(regime):
    found = misses(regime, "per-bin")
    assert not any(too_many(int(column.sum()), len(found)) for column in found.T)


def test_a_band_per_bin_is_no_joint_band_and_no_band_is_to_spare():
    found = misses("calibrated", "per-bin")
    assert too_many(int(found.any(axis=1).sum()), len(found))
    found = misses("calibrated", "joint", narrower=0.75)
    assert too_many(int(found.any(axis=1).sum()), len(found))
    found = misses("calibrated", "joint", weigh=True, narrower=0.4)
    assert too_many(int(found.any(axis=1).sum()), len(found))


def test_a_joint_band_fails_when_it_is_three_per_cent_narrower():
    """Of three bins of 60 samples each: the probability of missing is computed for every rate just outside a limit."""
    n, bins = 60, 3

    def missing(narrower):
        k = np.arange(n + 1)
        made = [reliability(np.repeat([0.1, 0.5, 0.9], n), np.tile(np.arange(n) < hits, bins), bins) for hits in k]
        lower, upper = np.array([each.lower[0] for each in made]), np.array([each.upper[0] for each in made])
        lower, upper = k / n - (k / n - lower) * narrower, k / n + (upper - k / n) * narrower
        p = np.concatenate((lower * (1 - 1e-9), upper + (1 - upper) * 1e-9))[:, None]
        each = (binom.pmf(k, n, p) * ((lower > p) | (upper < p))).sum(axis=1).max()
        return 1 - (1 - each) ** bins  # the bins are independent

    assert 0.045 < missing(1.0) <= 0.05
    assert missing(0.97) > 0.05


@pytest.mark.parametrize("weigh", [False, True])
def test_bands_are_ordered_hold_the_accuracy_and_are_empty_where_the_bin_is(weigh):
    rng = np.random.default_rng(1)
    z = rng.random(400) * 0.8
    c = rng.random(400) < z
    w = rng.gamma(2.0, size=400) if weigh else None
    joint, single = (reliability(z, c, 10, band=band, level=0.9, sample_weight=w) for band in ("joint", "per-bin"))
    used = joint.table.count > 0
    assert used.tolist() == [True] * 8 + [False] * 2
    assert (joint.lower[used] <= single.lower[used]).all()
    assert (single.lower[used] <= single.table.accuracy[used]).all()
    assert (single.table.accuracy[used] <= single.upper[used]).all()
    assert (single.upper[used] <= joint.upper[used]).all()
    assert np.isnan(joint.lower[~used]).all()
    assert np.isnan(joint.upper[~used]).all()
    assert joint.level == 0.9


def test_weights_of_one_are_no_weights():
    z, c = np.linspace(0, 1, 50), np.arange(50) % 2
    plain, weighed = reliability(z, c, 4), reliability(z, c, 4, sample_weight=np.ones(50))
    np.testing.assert_array_equal(plain.lower, weighed.lower)


@given(st.integers(0, 2**32), st.integers(1, 200))
@settings(max_examples=15)
def test_a_band_has_the_levels_of_independent_bins(seed, n):
    rng = np.random.default_rng(seed)
    z, c = rng.random(n), rng.integers(0, 2, n)
    found = reliability(z, c, 8, level=0.8)
    used = np.flatnonzero(found.table.count)
    alpha = 1 - 0.8 ** (1 / used.size)
    for m in used:
        k, size = int(found.table.correct_sum[m]), int(found.table.count[m])
        lower = 0.0 if k == 0 else alpha / 2 / size if k == 1 else beta.ppf(alpha / 2, k, size - k + 1)
        upper = (
            1.0 if k == size else 1 - alpha / 2 / size if k == size - 1 else beta.ppf(1 - alpha / 2, k + 1, size - k)
        )
        assert found.lower[m] == pytest.approx(lower, rel=1e-6)
        assert found.upper[m] == pytest.approx(upper, rel=1e-6)


def test_the_isotonic_band_is_that_of_the_bounds():
    rng = np.random.default_rng(0)
    z = rng.random(500)
    c = rng.random(500) < z**2
    found, band = reliability(z, c, 5, band="isotonic", level=0.9), isotonic_band(z, c, 0.1)
    lower, upper = band.at(found.table.mean_confidence)
    np.testing.assert_allclose(found.lower, lower, atol=1e-9)
    np.testing.assert_allclose(found.upper, upper, atol=1e-9)
    assert found.to_dict()["isotonic"]["regions"] == json.loads(json.dumps(band.to_dict()))["regions"]


def test_bins_beyond_sampling_error_are_found_on_their_side():
    z = np.repeat([0.1, 0.5, 0.9], 200)
    c = np.concatenate((np.arange(200) < 80, np.arange(200) < 100, np.arange(200) < 120))
    found = reliability(z, c, 3)
    assert found.beyond.tolist() == [1, 0, -1]
    assert reliability(z, c, 3, band="none").beyond.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"band": "both"}, "band is 'both'"),
        ({"level": 1.0}, "level"),
        ({"band": "isotonic", "level": 0.5}, "level is 0.5; an isotonic band needs one above 0.5"),
        ({"band": "isotonic", "sample_weight": [1.0, 2.0]}, "needs samples of equal weight"),
    ],
)
def test_a_band_that_cannot_be_had_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        reliability([0.1, 0.9], [0, 1], **options)


def test_a_prepared_diagram_becomes_json_with_nothing_for_empty_bins():
    found = reliability([0.1, 0.15, 0.9], [0, 1, 1], 4)
    back = json.loads(json.dumps(found.to_dict()))
    assert back["edges"] == [0, 0.25, 0.5, 0.75, 1]
    assert back["count"] == [2, 0, 0, 1]
    assert back["accuracy"] == [0.5, None, None, 1.0]
    assert back["lower"][1] is None
    assert (back["band"], back["beyond"]) == ("joint", [0, 0, 0, 0])
    assert back["closed"] == "left"
    assert back["ece"] == found.ece
    assert reliability([0.1], [0], band="none").to_dict()["lower"] is None


def test_a_prepared_diagram_cannot_be_changed():
    found = reliability([0.1], [0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.ece = 0.0


@pytest.mark.parametrize("band", ["joint", "per-bin"])
def test_the_band_of_weighted_bins_is_hoeffdings_at_its_share_of_the_level(band):
    rng = np.random.default_rng(0)
    z, w = rng.random(400), rng.uniform(0.5, 3, 400)
    c = rng.random(400) < z
    found = reliability(z, c, bins=4, sample_weight=w, band=band, level=0.9)
    alpha = 0.1 if band == "per-bin" else 1 - 0.9**0.25
    for m in range(4):
        inside = (z >= m / 4) & (z < (m + 1) / 4)
        rate = np.average(c[inside], weights=w[inside])
        width = np.sqrt(np.log(2 / alpha) / 2 * np.sum(w[inside] ** 2)) / w[inside].sum()
        assert found.lower[m] == pytest.approx(max(rate - width, 0), abs=1e-9)
        assert found.upper[m] == pytest.approx(min(rate + width, 1), abs=1e-9)
