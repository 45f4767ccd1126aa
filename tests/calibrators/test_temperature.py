import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax

from certcal import InputError
from certcal._kernels.map_losses import derivatives, exponentials, row_tops
from certcal.calibrators import TemperatureScaling, fit_temperature
from tests.calibrators import naive


def loss(logits, labels, weights, temperature):
    scaled = np.asarray(logits, float) / temperature
    each = logsumexp(scaled, axis=1) - scaled[np.arange(len(labels)), labels]
    return float(np.average(each, weights=weights))


def some_logits(seed=8, rows=400, classes=4):
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(rows, classes))
    return logits, np.where(rng.random(rows) < 0.6, logits.argmax(axis=1), rng.integers(0, classes, rows))


@settings(max_examples=15, deadline=None, derandomize=True)
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


def test_lower_precision_is_read_exactly():
    logits, labels = some_logits(1, 5000, 10)
    single, half = logits.astype(np.float32), logits.astype(np.float16)
    assert fit_temperature(single, labels) == pytest.approx(fit_temperature(single.astype(float), labels), rel=1e-12)
    assert fit_temperature(half, labels) == fit_temperature(half.astype(np.float32), labels)
    assert fit_temperature(single, labels) > 1.5


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


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(2, 70), st.floats(0.01, 100), st.floats(1e-3, 1e3))
def test_derivatives_are_those_of_the_definition(seed, rows, classes, sharpness, inverse):
    rng = np.random.default_rng(seed)
    logits, labels = sharpness * rng.normal(size=(rows, classes)), rng.integers(0, classes, rows)
    weights = rng.random(rows)
    tops = np.empty(rows)
    row_tops(logits, tops)
    assert tops.tolist() == logits.max(axis=1).tolist()
    found = derivatives(logits, labels, weights, tops, inverse)
    expected = naive.slope_and_moments(logits, labels, weights, inverse)
    spread = np.ptp(logits, axis=1).max()
    for order, (one, other) in enumerate(zip(found, expected, strict=True), start=1):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12 * weights.sum() * spread**order)


def test_exponentials_have_sixteen_digits():
    values = -np.concatenate([np.linspace(0, 708, 100_001), np.geomspace(1e-300, 708, 1001)])
    found = np.empty(values.size)
    exponentials(values, 1.0, found)
    assert np.abs(found / np.exp(values) - 1).max() <= 6e-16  # 4e-16 of its own, the rest of numpy's
    assert found[0] == 1


@pytest.mark.parametrize("wrong", [1, 3])
def test_many_rows_that_look_unlike_every_sixteenth_are_fitted_exactly(wrong):
    rng = np.random.default_rng(5)
    logits = 3 * rng.normal(size=(20_016, 2))
    labels = logits.argmax(axis=1)
    unlike = np.arange(20_016) % 16 >= 16 - wrong
    labels[unlike] = 1 - labels[unlike]
    assert fit_temperature(logits, labels) == pytest.approx(naive.temperature(logits, labels), rel=1e-11)
    assert fit_temperature(logits[::-1], labels[::-1]) == pytest.approx(fit_temperature(logits, labels), rel=1e-11)


def test_a_sixteenth_of_weight_zero_does_not_start_the_fit():
    rng = np.random.default_rng(6)
    logits, labels = rng.normal(size=(20_016, 2)), rng.integers(0, 2, 20_016)
    labels[:15_000] = logits[:15_000].argmax(axis=1)
    weights = (np.arange(20_016) % 16 != 0).astype(float)
    expected = naive.temperature(logits, labels, weights)
    assert fit_temperature(logits, labels, weights) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("margin", [0.5, 0.05, 0.02])
def test_a_minimum_far_out_on_a_flat_tail_is_found(margin):
    logits = np.zeros((100_000, 2))
    logits[:, 1] = margin
    labels = np.ones(100_000, int)
    labels[0] = 0  # the best 1/T is log(99999) / margin
    assert fit_temperature(logits, labels) == pytest.approx(margin / np.log(99_999), rel=1e-11)


@pytest.mark.parametrize("size", [1e4, 1e30, 1e300])
def test_huge_logits_give_a_temperature_within_the_range(size):
    logits = size * np.array([[1.0, 0.0, -1.0], [1.0, 0.0, -1.0]])
    assert fit_temperature(logits, [0, 0]) == 1e-3
    assert fit_temperature(logits, [0, 2]) == 1e3
    p = TemperatureScaling().fit(logits, [0, 2]).predict_proba(logits)
    assert p.sum(axis=1) == pytest.approx(1)
    assert p.argmax(axis=1).tolist() == [0, 0]


def test_rows_of_equal_logits_leave_the_temperature_at_one():
    assert fit_temperature(np.full((7, 3), 5.0), np.zeros(7, int)) == 1
    assert fit_temperature(np.zeros((30_000, 2)), np.ones(30_000, int)) == 1


def test_the_calibrator_divides_logits_by_the_fitted_temperature_and_changes_no_prediction():
    logits, labels = some_logits()
    fitted = TemperatureScaling().fit(logits, labels)
    assert fitted.temperature_ == fit_temperature(logits, labels)
    assert fitted.predict_proba(logits) == pytest.approx(softmax(logits / fitted.temperature_, axis=1), rel=1e-13)
    assert fitted.predict(logits).tolist() == logits.argmax(axis=1).tolist()
    assert softmax(fitted.transform(logits), axis=1) == pytest.approx(fitted.predict_proba(logits), rel=1e-12)


def test_two_logits_that_differ_in_the_last_digit_keep_their_order_in_predictions():
    fitted = TemperatureScaling().fit(*some_logits(classes=2))
    assert fitted.predict([[1.0, np.nextafter(1.0, 2.0)]]).tolist() == [1]


def test_probabilities_are_fitted_through_their_logarithms():
    logits, labels = some_logits()
    p = softmax(logits, axis=1)
    of_logits = TemperatureScaling().fit(logits, labels)
    of_probabilities = TemperatureScaling(inputs="probabilities").fit(p, labels)
    assert of_probabilities.temperature_ == pytest.approx(of_logits.temperature_, rel=1e-10)
    assert of_probabilities.predict_proba(p) == pytest.approx(of_logits.predict_proba(logits), rel=1e-10)


def test_a_probability_of_zero_counts_as_half_the_least_positive_one_of_the_fit():
    p = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])
    fitted = TemperatureScaling(inputs="probabilities").fit(p, [0, 1, 1, 1])
    clipped = np.log(np.maximum(p, 0.25))
    assert fitted.floor_ == 0.25
    assert fitted.temperature_ == fit_temperature(clipped, [0, 1, 1, 1])
    assert np.isfinite(fitted.predict_proba(p)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_bad_logit_among_many_is_named(bad):
    logits = np.zeros((100_000, 5), np.float32)
    logits[99_999, 3] = bad
    with pytest.raises(InputError, match=rf"logits\[99999, 3\] is {bad}"):
        fit_temperature(logits, np.zeros(100_000, int))


def test_a_label_without_a_column_is_refused():
    with pytest.raises(InputError, match=r"labels\[0\] is 2; .* from 0 to 1"):
        fit_temperature([[0.0, 1.0]], [2])
    with pytest.raises(InputError, match=r"labels\[0\] is inf; labels are whole numbers from 0 to 1"):
        fit_temperature([[0.0, 1.0], [1.0, 0.0]], [np.inf, 0])
