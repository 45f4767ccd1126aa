from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal.calibrators import BetaCalibration, PlattScaling
from tests.calibrators import naive_maps as naive


def drawn(seed, n=300, a=0.5, b=1.5, c=0.2, weighted=False):
    rng = np.random.default_rng([seed, 2])
    z = rng.beta(2, 1, n)
    t = a * np.log(z) - b * np.log(1 - z) + c
    return z, rng.random(n) < 1 / (1 + np.exp(-t)), rng.random(n) * 3 if weighted else None


@settings(max_examples=12)
@given(
    st.integers(0, 10_000),
    st.sampled_from([(0.5, 1.5, 0.2), (2.0, -0.5, 0.0), (-0.5, 1.0, -1.0), (-1.0, -1.0, 0.5)]),
    st.booleans(),
    st.sampled_from(["abm", "am", "ab"]),
)
def test_no_other_parameters_of_the_family_have_a_smaller_loss(seed, truth, weighted, family):
    z, c, w = drawn(seed, 100, *truth, weighted=weighted)
    fitted = BetaCalibration(parameters=family).fit(z, c, w)
    y = c.astype(float)
    assert min(fitted.a_, fitted.b_) >= 0
    loss = naive.log_loss(z, y, w, fitted.a_, fitted.b_, fitted.c_)
    assert loss <= naive.least_loss(z, y, w, family) + 1e-12


def test_parameters_that_made_the_outcomes_are_found():
    z, c, _ = drawn(0, 200_000)
    fitted = BetaCalibration().fit(z, c)
    assert [fitted.a_, fitted.b_, fitted.c_] == pytest.approx([0.5, 1.5, 0.2], abs=0.05)


def test_one_slope_is_platt_scaling_of_the_outcomes():
    z, c, _ = drawn(1)
    one, other = BetaCalibration(parameters="am").fit(z, c), PlattScaling(targets="outcomes").fit(z, c)
    assert (one.a_, one.b_, one.c_) == (other.slope_, other.slope_, other.intercept_)


def test_two_slopes_keep_the_middle():
    z, c, _ = drawn(2)
    assert BetaCalibration(parameters="ab").fit(z, c).transform([0.5]) == pytest.approx([0.5], abs=1e-15)


@pytest.mark.parametrize("family", ["abm", "am", "ab"])
@pytest.mark.parametrize(
    ("z", "c"),
    [
        ([0.5], [1]),
        ([0.7] * 5, [0, 1, 0, 1, 1]),
        ([0.0, 1.0, 0.0, 1.0], [1, 0, 0, 1]),
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]),
        ([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0]),
        ([0.6, 0.9], [0, 0]),
    ],
)
def test_small_and_one_sided_samples_give_finite_maps_that_keep_the_order(family, z, c):
    fitted = BetaCalibration(parameters=family).fit(z, c)
    assert np.isfinite([fitted.a_, fitted.b_, fitted.c_]).all()
    mapped = fitted.transform(np.linspace(0, 1, 101))
    assert ((mapped >= 0) & (mapped <= 1)).all()
    assert (np.diff(mapped) >= -1e-15).all()


def test_unknown_parameters_are_refused():
    with pytest.raises(InputError, match="parameters is 'abc'; pass one of 'abm', 'am', 'ab'"):
        BetaCalibration(parameters="abc").fit([0.5], [1])
