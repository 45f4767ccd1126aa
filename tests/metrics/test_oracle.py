"""Real predictions with known answers: a VGG network on the CIFAR-10 test set.

The file is not part of the project. Where it is absent a small stand-in takes its place, whose answers come from the
naive twins; the assertions are the same.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certcal import Predictions, measure, metrics
from tests import naive

FILE = Path(__file__).parents[3] / "shared" / "data" / "cifar10_vgg_probabilities.npz"


@dataclass(frozen=True)
class Oracle:
    probabilities: Any
    labels: Any
    known: dict[Any, float]
    digits: float  # how far a known answer may be off: half a unit of its last digit


def from_file() -> Oracle:
    with np.load(FILE) as archive:
        probabilities, labels = archive["probabilities"], archive["labels"]
    known = {
        "accuracy": 0.9359,
        "mean_confidence": 0.97557,
        ("ece", 10): 0.039907,
        ("ece", 15): 0.039780,
        ("ece", 20): 0.040016,
        ("equal_mass_ece", 15): 0.03972,
        "top_label_brier_score": 0.049823,
        "brier_score": 0.105446,
    }
    return Oracle(probabilities, labels, known, 5e-7)


def from_twins() -> Oracle:
    rng = np.random.default_rng(0)
    logits = 4 * rng.normal(size=(400, 10))
    exact = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    probabilities = exact.astype(np.float32)
    labels = np.where(rng.random(400) < 0.9, probabilities.argmax(axis=1), rng.integers(0, 10, 400))
    z, c = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    known: dict[Any, float] = {
        "accuracy": naive.accuracy(c),
        "mean_confidence": naive.mean(z.astype(np.float64).tolist()),
        ("equal_mass_ece", 15): naive.equal_mass_ece(z, c, 15),
        "top_label_brier_score": naive.top_label_brier_score(z, c),
        "brier_score": naive.brier_score(probabilities, labels),
    }
    for bins in (10, 15, 20):
        known["ece", bins] = naive.ece(z, c, bins)
    return Oracle(probabilities, labels, known, 1e-12)


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return from_file() if FILE.exists() else from_twins()


@pytest.fixture(scope="module")
def predictions(oracle: Oracle) -> Predictions:
    return Predictions.from_probabilities(oracle.probabilities, oracle.labels)


def test_the_known_answers_are_found(oracle, predictions):
    table = measure(predictions, bins=(10, 15, 20), metrics="all")
    for key, expected in oracle.known.items():
        last_digit = 10 if key in ("mean_confidence", ("equal_mass_ece", 15)) else 1  # these two have five digits
        assert table[key].value == pytest.approx(expected, abs=last_digit * oracle.digits), key


def test_the_functions_of_arrays_give_the_known_answers_too(oracle, predictions):
    z, c = predictions.confidence, predictions.correct
    assert z.dtype == np.float32
    for bins in (10, 15, 20):
        assert metrics.ece(z, c, bins) == pytest.approx(oracle.known["ece", bins], abs=oracle.digits)
    assert metrics.brier_score(oracle.probabilities, oracle.labels) == pytest.approx(
        oracle.known["brier_score"], abs=oracle.digits
    )


def test_real_predictions_agree_with_the_naive_twins(predictions):
    some = predictions.select(slice(0, 2000))
    z, c = some.confidence, some.correct
    near = {"rel": 1e-12, "abs": 1e-12}
    for bins in (10, 15, 100):
        for closed in ("left", "right"):
            assert metrics.ece(z, c, bins, closed=closed) == pytest.approx(naive.ece(z, c, bins, None, closed), **near)
            expected = naive.equal_mass_ece(z, c, bins, closed)
            assert metrics.equal_mass_ece(z, c, bins, closed=closed) == pytest.approx(expected, **near)
    assert metrics.ks_error(z, c) == pytest.approx(naive.ks_error(z, c), **near)
    assert metrics.kuiper_error(z, c) == pytest.approx(naive.kuiper_error(z, c), **near)
    assert metrics.top_label_nll(z, c) == pytest.approx(naive.top_label_nll(z, c), **near)
    assert metrics.nll(some.probabilities, some.labels) == pytest.approx(
        naive.nll(some.probabilities, some.labels), **near
    )
    classwise = naive.classwise(some.probabilities, some.labels, lambda z, c: naive.ece(z, c, 15))
    assert metrics.classwise_ece(some.probabilities, some.labels) == pytest.approx(classwise, **near)


def test_rows_that_do_not_quite_sum_to_one_are_taken_as_they_are(oracle):
    off = np.abs(oracle.probabilities.astype(np.float64).sum(axis=1) - 1).max()
    assert 0 < off < 1e-6
    assert metrics.classwise_ece(oracle.probabilities, oracle.labels) > 0


def test_double_precision_gives_the_same_errors_up_to_where_single_precision_values_lie(oracle, predictions):
    # No confidence of this data lies on an edge, so the type of the edges makes no difference.
    z, c = predictions.confidence, predictions.correct
    for bins in (10, 15, 20):
        assert metrics.ece(z.astype(np.float64), c, bins) == pytest.approx(oracle.known["ece", bins], abs=1e-6)


def test_the_stand_in_is_held_to_the_same_answers():
    stand_in = from_twins()
    table = measure(
        Predictions.from_probabilities(stand_in.probabilities, stand_in.labels), bins=(10, 15, 20), metrics="all"
    )
    for key, expected in stand_in.known.items():
        assert table[key].value == pytest.approx(expected, rel=1e-12), key
