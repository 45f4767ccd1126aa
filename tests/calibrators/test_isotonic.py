from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from certcal import InputError
from certcal.calibrators import CertifiedIsotonic, IsotonicCalibration


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 80), st.sampled_from([3, 1000]), st.booleans())
def test_it_is_the_regression_of_scikit_learn(seed, n, places, weighted):
    rng = np.random.default_rng([seed, 3])
    z, c = rng.integers(0, places + 1, n) / places, rng.integers(0, 2, n)
    w = rng.random(n) + 0.01 if weighted else None
    other = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(z, c, sample_weight=w)
    values = rng.random(50)
    assert IsotonicCalibration().fit(z, c, w).transform(values) == pytest.approx(other.predict(values), abs=1e-12)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 80), st.sampled_from([3, 1000]))
def test_it_is_certified_isotonic_regression_without_an_attack(seed, n, places):
    rng = np.random.default_rng([seed, 4])
    z, c = rng.integers(0, places + 1, n) / places, rng.integers(0, 2, n)
    certified = CertifiedIsotonic(tradeoff=0).fit(np.zeros(n), np.ones(n), c, z)
    values = np.concatenate([rng.random(50), z])
    assert IsotonicCalibration().fit(z, c).transform(values) == pytest.approx(certified.transform(values), abs=1e-12)


def test_single_precision_confidences_that_are_close_are_not_taken_as_equal():
    z = np.array([0.5, 0.5 + 2**-23], np.float32)
    assert IsotonicCalibration().fit(z, [0, 1]).transform(z).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("outcome", [0, 1])
def test_one_class_gives_a_constant(outcome):
    assert IsotonicCalibration().fit([0.2, 0.9], [outcome] * 2).transform([0.0, 1.0]).tolist() == [outcome] * 2


def test_a_missing_library_is_said_in_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.isotonic", None)
    with pytest.raises(InputError, match=r"needs scikit-learn; run: pip install 'certcal\[sklearn\]'"):
        IsotonicCalibration().fit([0.5], [1])
