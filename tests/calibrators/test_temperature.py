from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from certcal import InputError
from certcal.calibrators import fit_temperature


def loss(logits, labels, weights, temperature):
    scaled = np.asarray(logits, float) / temperature
    each = logsumexp(scaled, axis=1) - scaled[np.arange(len(labels)), labels]
    return float(np.average(each, weights=weights))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(2, 12), st.floats(0.05, 20), st.booleans())
def test_no_other_temperature_has_a_smaller_loss(seed, classes, sharpness, weighted):
    rng = np.random.default_rng(seed)
    logits = sharpness * rng.normal(size=(200, classes))
    labels = np.where(rng.random(200) < 0.6, logits.argmax(axis=1), rng.integers(0, classes, 200))
    weights = rng.random(200) + 0.1 if weighted else None
    fitted = fit_temperature(logits, labels, weights)
    best = minimize_scalar(
        lambda t: loss(logits, labels, weights, np.exp(t)), bounds=(np.log(1e-3), np.log(1e3)), method="bounded"
    )
    assert loss(logits, labels, weights, fitted) <= best.fun + 1e-12


def test_float32_logits_are_fitted_as_well_as_float64_ones():
    rng = np.random.default_rng(1)
    logits = (5 * rng.normal(size=(5000, 10))).astype(np.float32)
    labels = np.where(rng.random(5000) < 0.7, logits.argmax(axis=1), rng.integers(0, 10, 5000))
    assert fit_temperature(logits, labels) == pytest.approx(
        fit_temperature(logits.astype(np.float64), labels), rel=1e-12
    )
    assert fit_temperature(logits, labels) > 1.5


def test_a_calibrated_model_keeps_its_temperature():
    rng = np.random.default_rng(2)
    logits = 2 * rng.normal(size=(200_000, 4))
    p = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    labels = (p.cumsum(axis=1) < rng.random((200_000, 1))).sum(axis=1)
    assert fit_temperature(logits, labels) == pytest.approx(1.0, abs=0.02)


def test_temperature_is_the_end_of_the_range_when_the_loss_has_no_minimum():
    logits = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert fit_temperature(logits, [1, 0]) == 1e-3
    assert fit_temperature(logits, [0, 1]) == 1e3


def test_whole_number_weights_count_like_repeated_rows():
    rng = np.random.default_rng(3)
    logits, labels, times = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), rng.integers(1, 5, 60)
    labels[:40] = logits[:40].argmax(axis=1)
    repeated = fit_temperature(np.repeat(logits, times, axis=0), np.repeat(labels, times))
    assert fit_temperature(logits, labels, times) == pytest.approx(repeated, rel=1e-10)


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        ([[0.0, np.nan]], [0], r"logits\[0, 1\] is nan"),
        ([[0.0, 1.0]], [2], r"labels\[0\] is 2; .* from 0 to 1"),
        ([[0.0, 1.0]], [0, 1], "lengths differ"),
        ([0.0, 1.0], [0, 1], "one row per sample"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(logits, labels, message):
    with pytest.raises(InputError, match=message):
        fit_temperature(logits, labels)
