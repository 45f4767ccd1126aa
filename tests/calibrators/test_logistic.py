"""Platt scaling and beta calibration: the least log loss of their families, finite whatever the samples are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal.calibrators import BetaCalibration, PlattScaling
from tests.calibrators import naive_maps as naive


def drawn(seed, n=150, a=0.6, b=0.6, c=-0.3, weighted=False):
    """Samples whose log-odds of being correct are a ln z - b ln(1 - z) + c."""
    rng = np.random.default_rng([seed, 1])
    z = rng.beta(2, 1, n)
    t = a * np.log(z) - b * np.log(1 - z) + c
    return z, rng.random(n) < 1 / (1 + np.exp(-t)), rng.random(n) * 3 if weighted else None


@settings(max_examples=10)
@given(
    st.integers(0, 10_000), st.floats(-1, 3), st.floats(-2, 2), st.booleans(), st.sampled_from(["platt", "outcomes"])
)
def test_no_other_slope_and_intercept_have_a_smaller_loss(seed, slope, shift, weighted, targets):
    z, c, w = drawn(seed, 150, slope, slope, shift, weighted=weighted)
    y = naive.platt_targets(c, w) if targets == "platt" else c.astype(float)
    fitted = PlattScaling(targets=targets).fit(z, c, w)
    loss = naive.log_loss(z, y, w, fitted.slope_, fitted.slope_, fitted.intercept_)
    assert fitted.slope_ >= 0
    assert loss <= naive.least_loss(z, y, w, "am") + 1e-12


def test_it_agrees_with_the_sigmoid_of_scikit_learn():
    from sklearn.calibration import _SigmoidCalibration

    z, c, _ = drawn(0, n=2000)
    other = _SigmoidCalibration().fit(np.log(z / (1 - z)), c)
    fitted = PlattScaling().fit(z, c)
    assert fitted.slope_ == pytest.approx(-other.a_, abs=1e-5)
    assert fitted.intercept_ == pytest.approx(-other.b_, abs=1e-5)


def test_the_map_is_constant_where_large_confidences_are_the_wrong_ones():
    z, c, _ = drawn(1)
    fitted = PlattScaling(targets="outcomes").fit(z, ~c)
    assert fitted.slope_ == 0
    assert fitted.transform([0.0, 0.3, 1.0]) == pytest.approx([(~c).mean()] * 3, abs=1e-7)


def test_targets_of_platt_draw_one_class_back_from_certainty():
    z = [0.6, 0.7, 0.8]
    assert PlattScaling().fit(z, [1, 1, 1]).transform(z) == pytest.approx([4 / 5] * 3, abs=1e-5)
    assert PlattScaling().fit(z, [0, 0, 0]).transform(z) == pytest.approx([1 / 5] * 3, abs=1e-5)


@pytest.mark.parametrize(("outcome", "low", "high"), [(1, 1 - 1e-5, 1), (0, 0, 1e-5)])
def test_without_them_one_class_is_nearly_certain_and_finite(outcome, low, high):
    fitted = PlattScaling(targets="outcomes").fit([0.6, 0.7, 0.8], [outcome] * 3)
    assert np.isfinite([fitted.slope_, fitted.intercept_]).all()
    mapped = fitted.transform([0.6, 0.8])
    assert ((low <= mapped) & (mapped <= high)).all()


def test_separated_outcomes_give_a_steep_finite_curve():
    fitted = PlattScaling(targets="outcomes").fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert 1 < fitted.slope_ < 100
    assert fitted.transform([0.2]) < 0.01
    assert fitted.transform([0.8]) > 0.99


def test_equal_confidences_become_the_share_of_correct_ones():
    mapped = PlattScaling(targets="outcomes").fit([0.7] * 4, [0, 1, 0, 0]).transform([0.7])
    assert mapped == pytest.approx([0.25], abs=1e-7)


def test_confidences_of_zero_and_one_are_mapped_inside():
    fitted = PlattScaling().fit(np.array([0, 1, 0.5, 1, 0], np.float32), [0, 1, 1, 0, 1])
    mapped = fitted.transform([0.0, 0.5, 1.0])
    assert ((mapped > 0) & (mapped < 1)).all()
    assert (np.diff(mapped) >= 0).all()


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
    z, c, _ = drawn(0, 200_000, 0.5, 1.5, 0.2)
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


def test_unknown_words_are_refused():
    with pytest.raises(InputError, match="targets is 'smooth'; pass one of 'platt', 'outcomes'"):
        PlattScaling(targets="smooth").fit([0.5], [1])
    with pytest.raises(InputError, match="parameters is 'abc'; pass one of 'abm', 'am', 'ab'"):
        BetaCalibration(parameters="abc").fit([0.5], [1])
