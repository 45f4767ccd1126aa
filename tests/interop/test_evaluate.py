"""The metric of Hugging Face's evaluate, with the real library and no network."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

import certcal
from certcal import InputError

RNG = np.random.default_rng(3)
P = RNG.dirichlet([1, 1, 1], 60)
Y = RNG.integers(0, 3, 60)


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """The module, imported where evaluate keeps its files in a folder of the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hugging")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield importlib.import_module("certcal.interop.evaluate")


@pytest.fixture
def make(module, tmp_path):
    return lambda inputs: module.Calibration(inputs, cache_dir=str(tmp_path))


def rows(predictions, **options):
    return {row.name: row.value for row in certcal.measure(predictions, **options).rows}


def test_batches_give_what_measure_gives_of_all(make):
    expected = rows(certcal.Predictions.from_probabilities(P, Y))
    calibration = make("probabilities")
    for start in range(0, 60, 25):
        calibration.add_batch(predictions=P[start : start + 25], references=Y[start : start + 25])
    assert calibration.compute() == expected
    assert calibration.compute(predictions=P, references=Y) == expected


@pytest.mark.parametrize("inputs", ["logits", "confidence"])
def test_what_predictions_are_is_declared_and_options_arrive(make, inputs):
    given, references = (np.log(P), Y) if inputs == "logits" else (P.max(axis=1), (P.argmax(axis=1) == Y).astype(int))
    read = {"logits": certcal.Predictions.from_logits, "confidence": certcal.Predictions.from_confidence}[inputs]
    options = {"bins": 7, "closed": "right", "metrics": ["ece", "smooth_ece"]}
    found = make(inputs).compute(predictions=given, references=references, **options)
    assert found == rows(read(given, references), **options)


def test_it_combines_with_other_metrics_and_loads_from_its_file(module, make, tmp_path):
    import evaluate

    combined = evaluate.combine([make("probabilities"), make("probabilities")])
    assert (
        combined.compute(predictions=P, references=Y)["calibration_0_ece"]
        == rows(certcal.Predictions.from_probabilities(P, Y))["ece"]
    )
    loaded = evaluate.load(module.__file__, "probabilities", cache_dir=str(tmp_path))
    assert loaded.compute(predictions=P, references=Y) == make("probabilities").compute(predictions=P, references=Y)


def test_mistakes_are_refused(make):
    with pytest.raises(InputError, match=r"config_name is 'scores'"):
        make("scores")
    with pytest.raises(InputError, match=r"probabilities\[0\] sums to"):
        make("probabilities").compute(predictions=P / 2, references=Y)
    with pytest.raises(InputError, match="bins"):
        make("probabilities").compute(predictions=P, references=Y, bins=0)
    with pytest.raises(TypeError, match="bin"):
        make("probabilities").compute(predictions=P, references=Y, bin=5)


def test_without_evaluate_the_import_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "evaluate", None)
    monkeypatch.delitem(sys.modules, "certcal.interop.evaluate", raising=False)
    with pytest.raises(ImportError, match=r"needs evaluate; install it with: pip install 'certcal\[evaluate\]'"):
        importlib.import_module("certcal.interop.evaluate")
