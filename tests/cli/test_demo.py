"""``certcal demo``: a first look that needs nothing and leaves nothing behind."""

from __future__ import annotations

import json
import sys

import pytest

import certcal
from certcal import InputError
from certcal.data import embedded


def test_the_demo_shows_numbers_and_says_what_they_mean(certcal_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = certcal_command("demo")
    assert (ran.code, ran.err) == (0, "")
    text = " ".join(ran.out.split())
    assert "It is overconfident." in text
    assert "What to try next" in text
    assert "certcal measure predictions.csv" in text
    assert max(map(len, ran.out.splitlines())) <= 80
    assert list(tmp_path.iterdir()) == []


def test_the_demo_is_the_measurement_of_the_embedded_data(certcal_command):
    document = json.loads(certcal_command("demo", "--json", "--metric", "ece").out)
    assert document["measurements"][0]["value"] == certcal.measure(embedded().predictions)["ece"].value


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
