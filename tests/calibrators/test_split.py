"""The split of samples into those of the fit and the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import InputError
from certcal.calibrators import CertifiedSamples
from certcal.calibrators._split import split_positions


@given(st.integers(2, 200), st.floats(0.05, 0.95), st.integers(0, 2**63 - 1))
def test_both_parts_are_ascending_disjoint_complete_and_never_empty_or_it_is_said(n, fraction, seed):
    size = int(np.floor(n * fraction + 0.5))
    if size in (0, n):
        with pytest.raises(InputError, match=f"{n} samples cannot be split into parts of {size} and {n - size}"):
            split_positions(n, fraction, seed)
        return
    fit, rest = split_positions(n, fraction, seed)
    assert (fit.size, rest.size) == (size, n - size)
    assert sorted([*fit, *rest]) == list(range(n))
    assert (np.diff(fit) > 0).all()
    assert (np.diff(rest) > 0).all()


def test_the_same_split_serves_predictions_and_certified_samples():
    samples = CertifiedSamples.from_intervals(np.zeros(50), np.ones(50), np.ones(50))
    for one, two in zip(samples.split(0.3, seed=4), split_positions(50, 0.3, seed=4), strict=True):
        np.testing.assert_array_equal(one.index, two)


def test_seeds_give_other_splits_and_positions_that_stay_what_they_are():
    assert split_positions(10, 0.5, 1)[0].tolist() != split_positions(10, 0.5, 2)[0].tolist()
    assert split_positions(10, 0.3, 1)[0].tolist() == [3, 6, 7]  # files of maps rely on it


@pytest.mark.parametrize(("fraction", "seed", "what"), [(0, 0, "fraction"), (1, 0, "fraction"), (0.5, -1, "seed")])
def test_what_is_no_split_is_refused(fraction, seed, what):
    with pytest.raises(InputError, match=what):
        split_positions(10, fraction, seed)
