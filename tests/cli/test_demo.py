"""``certcal demo``: a first look that needs nothing and leaves nothing behind."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import certcal
from certcal import InputError
from certcal.cli import _demo_certified
from certcal.data import embedded, embedded_network
from certcal.smoothing import open_run


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A network that has learned for a moment, and few draws. The documentation runs the whole."""
    monkeypatch.setattr(_demo_certified, "EPOCHS", 3)
    monkeypatch.setattr(_demo_certified, "DRAWS", 200)


def test_the_demo_shows_numbers_and_says_what_they_mean(certcal_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = certcal_command("demo")
    assert (ran.code, ran.err) == (0, "")
    text = " ".join(ran.out.split())
    assert "It is overconfident." in text
    assert "What to try next" in text
    assert "certcal measure predictions.csv" in text
    assert "certcal demo --keep run" in text
    assert "certcal sample --help" in text
    assert max(map(len, ran.out.splitlines())) <= 80
    assert list(tmp_path.iterdir()) == []


def test_the_demo_is_the_measurement_of_the_embedded_data(certcal_command):
    document = json.loads(certcal_command("demo", "--json", "--metric", "ece").out)
    assert document["measurements"][0]["value"] == certcal.measure(embedded().predictions)["ece"].value


def test_the_demo_certifies_a_network_and_says_what_is_claimed(certcal_command, tmp_path):
    ran = certcal_command("demo", "--metric", "ece", "--keep", tmp_path / "run")
    assert (ran.code, ran.err) == (0, "")
    text = " ".join(ran.out.split())
    made = [open_run(tmp_path / "run").certificates(float(radius)) for radius in _demo_certified.RADII]
    for radius, each in zip(_demo_certified.RADII, made, strict=True):
        (line,) = [line for line in ran.out.splitlines() if line.split()[:1] == [radius]]
        assert each.summary().accuracy.text in line
        assert each.summary()["calibration_error"].worst_all.text in line
    assert any(each.claim(samples="certified" if each.n_certified else "all").sentence[1:] in text for each in made)
    assert "except with probability at most 0.001" in text
    assert f"certcal certify {tmp_path / 'run'}" in text
    assert "--keep run" not in text


def test_the_same_demo_twice_is_the_same_text(certcal_command):
    assert certcal_command("demo", "--metric", "ece").out == certcal_command("demo", "--metric", "ece").out


def test_the_certified_numbers_are_in_the_json(certcal_command):
    document = json.loads(certcal_command("demo", "--metric", "ece", "--json").out)
    certified = document["certified"]
    assert [result["radius"] for result in certified["results"]] == [0.1, 0.25, 0.5]
    assert certified["run"]["draws"] == 200
    assert certified["results"][0]["claim"]["type"] == "certificate"


def test_the_embedded_network_learns_and_is_the_same_every_time():
    first, second = (embedded_network(epochs=4) for _ in range(2))
    pixels = first.test.inputs.reshape(-1, 64)
    one, two = (each.classifier.predict_proba(pixels) for each in (first, second))
    assert one.tobytes() == two.tobytes()
    assert np.mean(one.argmax(axis=1) == first.test.labels) > 0.8
    with pytest.raises(InputError, match="sigma"):
        embedded_network(sigma=0)


def test_the_demo_writes_what_is_asked_for(certcal_command, tmp_path):
    path = tmp_path / "demo.svg"
    ran = certcal_command("demo", "-o", path)
    assert ran.code == 0
    assert path.read_bytes().startswith(b"<?xml")
    assert "-o demo.svg" not in ran.out


def test_the_embedded_data_is_visibly_miscalibrated_and_the_same_every_time():
    first, second = embedded(), embedded()
    assert first.predictions.confidence.tobytes() == second.predictions.confidence.tobytes()
    assert len(first.predictions) == 899
    table = certcal.measure(first.predictions)
    assert table["mean_confidence"].value - table["accuracy"].value > 0.1
    assert embedded(seed=1).predictions.confidence.tobytes() != first.predictions.confidence.tobytes()


def test_without_scikit_learn_the_remedy_is_named(certcal_command, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(InputError, match=r"pip install 'certcal\[sklearn\]'"):
        embedded()
    ran = certcal_command("demo")
    assert ran.code == 2
    assert ran.err == "certcal: error: the embedded data needs scikit-learn; run: pip install 'certcal[sklearn]'\n"
