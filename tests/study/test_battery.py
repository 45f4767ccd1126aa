from __future__ import annotations

import numpy as np
import pytest

import certcal
from certcal import InputError, Predictions
from certcal.study import battery


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
    direct = certcal.measure(test, bins=[15])
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
