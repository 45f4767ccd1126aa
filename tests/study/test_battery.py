import numpy as np
import pytest

import certcal
from certcal import InputError, Predictions
from certcal.lab.study import battery


def overconfident(n=2000, classes=5, seed=0):
    rng = np.random.default_rng(seed)
    logits = 6 * rng.normal(size=(n, classes))
    calibrated = Predictions.from_logits(logits / 3, np.zeros(n)).probabilities
    labels = (calibrated.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=classes - 1)
    return Predictions.from_logits(logits, labels)


def test_battery_has_the_102_measurements_of_the_study():
    predictions = overconfident()
    rng = np.random.default_rng(1)
    result = battery(predictions, out_of_distribution={"svhn": rng.random(300), "noise": rng.random(200)})
    row = result.to_row()
    measured = [name for name in row if name not in ("accuracy", "temperature")]
    assert len(measured) == 102
    assert sum(name.split("_")[-1].isdigit() for name in measured) == 90
    assert all(np.isfinite(value) for value in row.values())


def test_battery_rows_are_the_measurements_of_measure():
    predictions = overconfident()
    result = battery(predictions, seed=3)
    order = np.random.default_rng(3).permutation(len(predictions))
    test = predictions.select(np.sort(order[400:]))
    direct = certcal.measure(test, bins=[15], metrics="all")
    for name in ("ece", "mce", "classwise_ece", "classwise_equal_mass_ece", "equal_mass_ece"):
        assert result.before[name, 15].value == direct[name].value
    assert result.before["nll"].value == direct["nll"].value


def test_temperature_scaling_lowers_the_error_of_an_overconfident_model_and_keeps_its_accuracy():
    result = battery(overconfident())
    assert 2 < result.temperature < 4
    assert result.after["ece", 15].value < 0.5 * result.before["ece", 15].value
    assert result.after["nll"].value < result.before["nll"].value
    assert result.after["accuracy"].value == result.before["accuracy"].value


def test_same_seed_gives_the_same_row_and_another_seed_another_split():
    predictions = overconfident()
    assert battery(predictions, seed=1).to_row() == battery(predictions, seed=1).to_row()
    assert battery(predictions, seed=1).temperature != battery(predictions, seed=2).temperature


def test_probabilities_have_the_temperature_and_the_measurements_of_the_logits_they_came_from():
    logits = overconfident()
    result = battery(Predictions.from_probabilities(logits.probabilities, logits.labels))
    expected = battery(logits)
    assert result.temperature == pytest.approx(expected.temperature, rel=1e-9)
    for one, other in zip(result, expected, strict=True):
        assert (one.name, one.settings) == (other.name, other.settings)
        assert one.value == pytest.approx(other.value, rel=1e-6), one.name


def test_probabilities_in_float32_have_nearly_the_temperature_of_their_logits():
    logits = overconfident()
    half = battery(Predictions.from_probabilities(logits.probabilities.astype(np.float32), logits.labels))
    assert half.temperature == pytest.approx(battery(logits).temperature, rel=1e-6)
    assert half.after["accuracy"].value == half.before["accuracy"].value


def test_a_probability_of_zero_is_scaled_as_the_smallest_normal_number_of_float32():
    p, y = overconfident().probabilities.copy(), overconfident().labels
    p[:, 0] = np.where(p[:, 0] < 1e-6, 0, p[:, 0])
    p /= p.sum(axis=1, keepdims=True)
    assert ((p[:, 0] == 0) & (y == 0)).any()
    result = battery(Predictions.from_probabilities(p, y))
    logits = np.log(np.maximum(p, np.finfo(np.float32).tiny))
    expected = battery(Predictions.from_logits(logits, y))
    assert result.temperature == expected.temperature
    assert result.after["nll"].value == expected.after["nll"].value
    assert np.isfinite(result.after["nll"].value)
    assert result.before["nll"].value == np.inf  # of what was given, nothing is clipped


def test_battery_is_the_same_on_one_thread_and_on_several(monkeypatch):
    several = battery(overconfident(400)).to_row()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert battery(overconfident(400)).to_row() == several


def test_after_scaling_the_measurements_are_those_of_the_scaled_logits():
    predictions = overconfident()
    result = battery(predictions)
    order = np.random.default_rng(0).permutation(len(predictions))
    test = predictions.select(np.sort(order[400:]))
    after = Predictions.from_logits(test.logits / result.temperature, test.labels)
    scaled = certcal.measure(after, bins=[15], metrics="all")
    for name in ("ece", "mce", "classwise_ece", "classwise_equal_mass_ece", "equal_mass_ece"):
        assert result.after[name, 15].value == scaled[name].value
    for name in ("ks_error", "kde_ece", "mmce", "nll", "brier_score"):
        assert result.after[name].value == scaled[name].value


@pytest.mark.parametrize(
    ("predictions", "options", "message"),
    [
        (Predictions.from_confidence([0.5], [1]), {}, "no logits"),
        (overconfident(10), {"validation": 1.5}, "validation is 1.5"),
        (overconfident(2), {}, "too few to split"),
    ],
)
def test_bad_requests_are_refused_in_one_sentence(predictions, options, message):
    with pytest.raises(InputError, match=message):
        battery(predictions, **options)
