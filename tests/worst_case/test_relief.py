"""The worst case with relief: every sign pattern tried, sample by sample."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from certcal.binning import equal_width_edges
from certcal.worst_case import calibration_error
from certcal.worst_case.steering import relieved_error


def bin_of(z, edges):
    return min(int(np.searchsorted(edges, z, side="right")) - 1, len(edges) - 2)


def best_of(low, high, correct, signs, edges):
    """The most that s(c - z) can be, over the ends of every stretch of the interval inside a bin."""
    reached = range(bin_of(low, edges), bin_of(high, edges) + 1)
    ends = [(signs[m], z) for m in reached for z in (max(low, edges[m]), min(high, edges[m + 1]))]
    return max(sign * (correct - z) for sign, z in ends)


@pytest.mark.parametrize("seed", range(30))
def test_the_value_is_the_largest_over_all_sign_patterns(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    low, high = np.sort(rng.random((2, n)).round(2), axis=0)
    correct, certified = rng.integers(0, 2, n), rng.random(n) < 0.7
    certified[0] = True
    relief = np.where(certified, rng.uniform(-0.05, 0.3, n), 0.0)
    edges, alone, everyone = equal_width_edges(m), -np.inf, -np.inf
    for signs in product((1, -1), repeat=m):
        total = 0.0
        for i in np.flatnonzero(certified):
            end = low[i] if correct[i] else high[i]
            own = bin_of(end, edges)
            total += best_of(low[i], high[i], correct[i], signs, edges)
            total -= relief[i] if signs[own] == (1 if correct[i] else -1) else 0.0
        free = max(best_of(0.0, 1.0, c, signs, edges) for c in (0, 1))
        alone, everyone = max(alone, total), max(everyone, total + free * (~certified).sum())
    found = relieved_error(low, high, correct, certified, relief, m)
    assert found.certified == pytest.approx(max(alone, 0) / certified.sum(), abs=1e-9)
    assert found.everyone == pytest.approx(max(everyone, 0) / n, abs=1e-9)


def test_without_relief_it_is_the_worst_case():
    rng = np.random.default_rng(0)
    low, high = np.sort(rng.random((2, 300)), axis=0)
    correct, certified = rng.integers(0, 2, 300), rng.random(300) < 0.7
    worst = calibration_error(low, high, correct, certified=certified)
    found = relieved_error(low, high, correct, certified, np.zeros(300))
    assert found.certified == pytest.approx(worst.value, abs=1e-12)
    assert found.everyone == pytest.approx(worst.all_samples.value, abs=1e-12)
