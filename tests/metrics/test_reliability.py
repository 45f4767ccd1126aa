"""Reliability: what a diagram shows, prepared once."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from certcal.metrics import ece, reliability
from tests import naive


@settings(max_examples=60)
@given(naive.weighted(), naive.own_edges(), st.sampled_from(["left", "right"]))
def test_bins_hold_the_means_of_their_samples(data, edges, closed):
    z, c, w = data
    found = reliability(z, c, edges=edges, closed=closed, sample_weight=w)
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
    assert found.lower is None
    assert found.upper is None


def test_the_error_beside_the_diagram_is_the_error_of_its_bins():
    rng = np.random.default_rng(0)
    z, c = rng.random(500), rng.random(500) < 0.5
    assert reliability(z, c, 12).ece == ece(z, c, 12)


@pytest.mark.parametrize("weigh", [False, True])
def test_bands_are_ordered_hold_the_accuracy_and_are_empty_where_the_bin_is(weigh):
    rng = np.random.default_rng(1)
    z = rng.random(400) * 0.8
    c = rng.random(400) < z
    w = rng.gamma(2.0, size=400) if weigh else None
    found = reliability(z, c, 10, replicates=200, level=0.9, sample_weight=w)
    used = found.table.count > 0
    assert used.tolist() == [True] * 8 + [False] * 2
    assert (found.lower[used] <= found.table.accuracy[used]).all()
    assert (found.table.accuracy[used] <= found.upper[used]).all()
    assert np.isnan(found.lower[~used]).all()
    assert np.isnan(found.upper[~used]).all()
    assert found.level == 0.9


def test_the_band_of_one_bin_has_binomial_quantiles():
    n, right = 2000, 1400
    z, c = np.full(n, 0.7), np.arange(n) < right
    found = reliability(z, c, 1, replicates=4000, level=0.9, seed=3)
    low, high = binom(n, 0.7).ppf([0.05, 0.95]) / n
    assert found.lower[0] == pytest.approx(low, abs=0.0015)
    assert found.upper[0] == pytest.approx(high, abs=0.0015)


def test_the_same_seed_gives_the_same_bands_and_another_seed_others():
    rng = np.random.default_rng(2)
    z, c = rng.random(200), rng.random(200) < 0.5
    one, same, other = (reliability(z, c, 5, replicates=50, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.lower, same.lower)
    np.testing.assert_array_equal(one.upper, same.upper)
    assert (one.lower != other.lower).any()


def test_few_replicates_and_many_nearly_empty_bins_still_have_bands():
    z = (np.arange(400) + 0.5) / 400
    c = np.arange(400) % 2
    for seed in range(40):
        found = reliability(z, c, 400, replicates=10, seed=seed)
        known = ~np.isnan(found.lower)
        assert (found.lower[known] <= found.upper[known]).all()


def test_a_prepared_diagram_becomes_json_with_nothing_for_empty_bins():
    found = reliability([0.1, 0.15, 0.9], [0, 1, 1], 4, replicates=20)
    back = json.loads(json.dumps(found.to_dict()))
    assert back["edges"] == [0, 0.25, 0.5, 0.75, 1]
    assert back["count"] == [2, 0, 0, 1]
    assert back["accuracy"] == [0.5, None, None, 1.0]
    assert back["lower"][1] is None
    assert back["closed"] == "left"
    assert back["ece"] == found.ece
    assert reliability([0.1], [0]).to_dict()["lower"] is None


def test_a_prepared_diagram_cannot_be_changed():
    found = reliability([0.1], [0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.ece = 0.0
