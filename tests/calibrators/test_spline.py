"""Quadratic and spline maps: the least penalised log loss among smooth curves that never fall; resolution of votes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit

from certcal import InputError
from certcal.calibrators import (
    BetaCalibration,
    Calibrator,
    IsotonicCalibration,
    PlattScaling,
    QuadraticScaling,
    SplineScaling,
    Unchanged,
    UnchangedScores,
)
from certcal.metrics import top_label_nll as nll
from tests.calibrators import naive_maps as naive

BOTH = pytest.mark.parametrize("kind", [QuadraticScaling, SplineScaling])


def drawn(seed, n=400, bend=0.15):
    rng = np.random.default_rng([seed, 39])
    x = rng.normal(0, 2, n)
    return expit(x), rng.random(n) < expit(0.3 + 0.8 * x + bend * x**2)


@BOTH
def test_the_map_is_the_sigmoid_of_a_curve_with_straight_slopes_between_knots(kind):
    fitted = kind().fit(*drawn(0))
    x = np.linspace(-9, 9, 41)
    inner = naive.spline(np.clip(x, *fitted.knots_[[0, -1]]), fitted.knots_, fitted.slopes_, fitted.level_)
    straight = fitted.slopes_[0] * np.minimum(x - fitted.knots_[0], 0) + fitted.slopes_[-1] * np.maximum(
        x - fitted.knots_[-1], 0
    )
    np.testing.assert_allclose(fitted.transform(expit(x)), expit(inner + straight), atol=1e-7)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from([-0.4, 0.0, 0.15, 0.6]))
def test_no_other_quadratic_that_does_not_fall_has_a_smaller_loss(seed, bend):
    z, y = drawn(seed, 150, bend)
    fitted, x = QuadraticScaling().fit(z, y), logit(z)
    low, high = fitted.knots_

    def loss(theta):
        part = np.clip((x - low) / (high - low), 0, 1)
        t = theta[2] + (high - low) * (theta[0] * (part - part**2 / 2) + theta[1] * part**2 / 2)
        t += theta[0] * np.minimum(x - low, 0) + theta[1] * np.maximum(x - high, 0)
        return np.logaddexp(0, np.where(y, -t, t)).mean()

    other = minimize(loss, [1, 1, low], bounds=[(0, 50), (0, 50), (-80, 80)], options={"ftol": 1e-15, "gtol": 1e-10})
    assert fitted.slopes_.min() >= 0
    assert loss([*fitted.slopes_, fitted.level_]) <= other.fun + 1e-9


@BOTH
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), bend=st.sampled_from([-0.5, 0.0, 0.5]), levels=st.sampled_from([2, 5, 1000]))
def test_curves_never_fall_and_make_no_log_loss_infinite(kind, seed, bend, levels):
    z, y = drawn(seed, 60, bend)
    z = np.round(z * levels) / levels
    fitted = kind().fit(z, y)
    made = fitted.transform(np.linspace(0, 1, 2001))
    assert np.diff(made).min() >= -1e-15
    assert 0 < made.min() <= made.max() < 1


def test_a_spline_follows_a_step_that_no_line_of_the_log_odds_can():
    rng = np.random.default_rng(0)
    z = rng.random(6000)
    y = rng.random(z.size) < np.where(z < 0.5, 0.2, 0.7)
    fit, rest = slice(4000), slice(4000, None)
    losses = {
        type(m).__name__: nll(m.fit(z[fit], y[fit]).transform(z[rest]), y[rest])
        for m in (PlattScaling(), BetaCalibration(), SplineScaling())
    }
    assert losses["SplineScaling"] < min(losses["PlattScaling"], losses["BetaCalibration"]) - 0.005
    noise = rng.random(4000) < z[fit]  # nothing to follow: slopes are all but the same
    assert np.abs(SplineScaling().fit(z[fit], noise).transform(z) - z).mean() < 0.02


@pytest.mark.parametrize("trees", [3, 10, 40])
def test_votes_of_a_forest_are_pulled_in_by_half_a_vote_and_the_file_says_so(trees):
    rng = np.random.default_rng(trees)
    p = rng.beta(0.4, 0.4, 600)
    z, y = rng.binomial(trees, p) / trees, rng.random(600) < p
    pulled = np.clip(z, 1 / (2 * trees), 1 - 1 / (2 * trees))
    for kind in (PlattScaling, BetaCalibration, QuadraticScaling, SplineScaling, Unchanged):
        fitted = kind().fit(z, y)
        assert fitted.nearest_ == pytest.approx(1 / (2 * trees))
        document = fitted.to_dict()
        assert document["fitted"]["nearest"] == fitted.nearest_
        again = Calibrator.from_dict(document)
        assert np.array_equal(again.transform([0, 0.2, 1]), fitted.transform([0, 0.2, 1]))
        np.testing.assert_allclose(fitted.transform(z), kind().fit(pulled, y).transform(pulled), atol=1e-12)
    assert np.array_equal(Unchanged().fit(z, y).transform(z), np.clip(z, fitted.nearest_, 1 - fitted.nearest_))


def test_scores_without_zeros_and_ones_are_not_pulled_in():
    z = [0.01, 0.3, 0.999999]
    assert Unchanged().fit(z, [0, 1, 1]).transform(z).tolist() == z
    assert "nearest" not in PlattScaling().fit(z, [0, 1, 1]).to_dict()["fitted"]
    assert Unchanged().fit([0, 1, 1], [0, 1, 0]).transform([0, 1]).tolist() == [0.25, 0.75]


def test_classes_without_a_vote_get_half_of_the_least_share():
    p = np.array([[1, 0, 0], [0.5, 0.25, 0.25], [0.75, 0.25, 0]])
    fitted = UnchangedScores("probabilities").fit(p, [0, 1, 2])
    wanted = np.maximum(p, 0.125)
    np.testing.assert_allclose(fitted.predict_proba(p), wanted / wanted.sum(axis=1, keepdims=True))
    assert Calibrator.from_dict(fitted.to_dict()).floor_ == fitted.floor_ == 0.125


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from([0.3, 1.0, 5.0]))
def test_smoothed_isotonic_regression_adds_mean_samples_to_each_flat_part(seed, added):
    z, y = drawn(seed, 80)
    plain, smooth = IsotonicCalibration().fit(z, y), IsotonicCalibration(smoothing=added).fit(z, y)
    mean = (y.sum() + 0.5) / (y.size + 1)
    parts = plain.transform(z)
    counts = {value: (np.sum(parts == value), y[parts == value].sum()) for value in np.unique(parts)}
    wanted = np.array([(right + added * mean) / (n + added) for n, right in counts.values()])
    weight = np.array([n + added for n, _ in counts.values()])
    ends = range(wanted.size)
    pooled = [
        max(
            min(np.average(wanted[a : b + 1], weights=weight[a : b + 1]) for b in range(k, wanted.size))
            for a in range(k + 1)
        )
        for k in ends
    ]
    np.testing.assert_allclose(smooth.transform(z), np.array(pooled)[np.searchsorted(list(counts), parts)], atol=1e-12)
    assert np.isfinite(nll(smooth.transform([0.0, 1.0]), [1, 0]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"knots": [1.0, 0.0]}, "knots is damaged; expected at least two ascending log-odds"),
        ({"slopes": [-1.0, 0.0]}, "slopes is damaged; expected numbers from 0"),
        ({"slopes": [1.0]}, "slopes is damaged; expected 2 finite numbers"),
        ({"nearest": 0.7}, "nearest is 0.7; expected a number from"),
        ({"level": None}, "level is None"),
    ],
)
def test_damaged_curves_are_refused(changes, message):
    document = QuadraticScaling().fit(*drawn(1)).to_dict()
    document["fitted"] |= changes
    with pytest.raises(InputError, match=message):
        Calibrator.from_dict(document)
