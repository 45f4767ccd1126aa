"""``certcal demo``: a first look that needs nothing and leaves nothing behind but its page."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import certcal
from certcal import InputError
from certcal.claims import round_outward
from certcal.cli import cli
from certcal.cli.errors import run
from certcal.data import Inputs, embedded, embedded_network, image_files
from certcal.report.views.demo import RADII
from certcal.smoothing import CONFIDENCES, open_run, pooled_claim
from certcal.verbs import demo as story
from tests.data.idx_files import write_clothes

IMAGES = 150
COMMAND = ["certcal", "demo", "--keep", "run", "-o", "certcal-demo.html", "-o", "numbers.json"]
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


@pytest.fixture(scope="module", autouse=True)
def quick():
    """A network that has learned for a moment, few images and draws."""

    def some_images(**settings):
        made = embedded_network(**settings)
        return replace(made, test=Inputs.from_arrays(made.test.inputs[:IMAGES], made.test.labels[:IMAGES]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "embedded_network", some_images)
        patch.setattr(story, "EPOCHS", {"digits": 3, "fashion-mnist": 2})
        patch.setattr(story, "DRAWS", {"digits": 400, "fashion-mnist": 400})
        yield


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


class Told(NamedTuple):
    """A demo that has run, in a folder of its own."""

    folder: Path
    out: str
    document: dict[str, Any]

    def row(self, name):
        """The cells of the only line of a table that begins with a name and a number."""
        (line,) = [line for line in self.out.splitlines() if re.match(rf"\s*{re.escape(name)}\s+[\d.]+\s", line)]
        return line.split()


@pytest.fixture(scope="module")
def told(quick, tmp_path_factory):
    folder, out, err = tmp_path_factory.mktemp("demo"), io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        assert run(cli, COMMAND[1:]) == 0
    assert err.getvalue() == "wrote certcal-demo.html\nwrote numbers.json\n"
    return Told(folder, out.getvalue(), json.loads((folder / "numbers.json").read_text()))


def numbers_of(page):
    """The JSON inside a page."""
    return json.loads(DATA.search(page.read_text("utf-8"))[1])


def test_the_demo_shows_few_metrics_and_says_what_they_mean(told):
    text = " ".join(told.out.split())
    for said in ("it is overconfident.", "Next steps", "certcal measure predictions.csv", "certcal sample --help"):
        assert said in text
    assert ("SmoothECE" in text, "Kuiper" in text, "kuiper_error" in text) == (True, False, False)
    assert ("certcal certify run" in text, "--keep run" in text) == (True, False)
    assert max(map(len, told.out.splitlines())) <= 80
    assert {path.name for path in told.folder.iterdir()} == {"run", "certcal-demo.html", "numbers.json"}


def test_the_demo_certifies_a_network_and_says_what_is_claimed(told):
    made = [open_run(told.folder / "run").certificates(radius) for radius in RADII]
    for radius, each in zip(RADII, made, strict=True):
        line = told.row(f"{radius:g}")
        assert each.summary().accuracy.text in line
        assert each.summary()["calibration_error"].worst_all.text in line
    text = " ".join(told.out.split())
    claims = [pooled_claim(open_run(told.folder / "run").counts(), radius) for radius in RADII]
    assert any(each.text in text for each in claims)
    assert "Fails with probability at most 0.001 over the noise" in text
    for kind in CONFIDENCES:
        each = open_run(told.folder / "run").certificates(RADII[0], confidence=kind)
        assert told.row(kind)[1:3] == [round_outward(each.mean_width, "upper"), each.claim().text]


def test_the_demo_attacks_what_it_certifies_and_the_certificate_is_never_exceeded(told):
    attack = told.document["attacked"]
    (line,) = [each for each in told.document["certified"]["results"] if each["radius"] == attack["epsilon"]]
    assert attack["labels_changed"] == 0
    assert attack["ece_before"] < attack["ece_after"]
    assert attack["ece_of_certified_after"] <= line["claim"]["value"]
    shown = " ".join(told.out.split())
    moved = f"the ECE went from {attack['ece_before']:.3f} to {attack['ece_after']:.3f}"
    assert f"no predicted label changed and accuracy stayed at {attack['accuracy']:.1%}, but {moved}" in shown
    assert f"by the certificate, no attack exceeds {line['claim']['text']}" in shown
    assert moved in (told.folder / "certcal-demo.html").read_text("utf-8")
    maps = told.document["recalibrated"]["lines"]
    assert told.document["recalibrated"]["n_fit"] + told.document["recalibrated"]["n_held_out"] == IMAGES
    first, last = (each["at"][0]["summary"]["brier_score"]["certified"]["text"] for each in maps)
    assert f"exceeds goes from {first} to {last}, and the ECE from" in shown


def test_the_page_has_the_numbers_the_command_and_the_images(told):
    page = told.folder / "certcal-demo.html"
    inside = numbers_of(page)
    assert inside["provenance"]["command"] == COMMAND
    assert inside == told.document
    results = inside["certified"]["results"]
    for result in results:
        found = pooled_claim(open_run(told.folder / "run").counts(), result["radius"])
        assert result["claim"]["text"] == found.text
    of_certified = [result for result in results if result["claim"]["settings"]["samples"] == "certified"]
    shown = {f"{result['radius']:g}": result["claim"]["text"] for result in of_certified}
    assert len(shown) > 1
    assert all(text in told.row(radius) for radius, text in shown.items() if float(radius) in RADII)
    assert page.read_text("utf-8").count("data:image/png;base64,") == 12


def test_the_same_demo_as_json_has_the_same_numbers_and_leaves_nothing_behind(certcal_command, tmp_path, told):
    document = json.loads(certcal_command("demo", "--json", "--metric", "ece").out)
    assert (document["schema"], document["certified"]["schema"]) == ("certcal/demo/1", "certcal/certification/2")
    assert document["measurements"][0]["value"] == certcal.measure(embedded().predictions)["ece"].value
    certified = document["certified"]
    assert certified == told.document["certified"]
    assert [result["radius"] for result in certified["results"]] == [step / 16 for step in range(8)]
    assert certified["run"]["draws"] == 400
    assert certified["results"][0]["claim"]["type"] == "certificate"
    assert [entry["certificate"] for entry in document["compared"]] == list(CONFIDENCES)
    same = [result for result in certified["results"] if result["radius"] == document["compared"][0]["radius"]]
    assert document["compared"][0]["mean_width"] == same[0]["mean_width"]
    assert list(tmp_path.iterdir()) == []


def test_without_torch_a_line_says_what_would_be_shown_and_all_metrics_are_explained(certcal_command, monkeypatch):
    monkeypatch.setattr("certcal.verbs.demo.find_spec", lambda name: None)
    ran = certcal_command("demo", "--no-page", "--explain")
    assert (ran.code, ran.err) == (0, "")
    text = " ".join(ran.out.split())
    assert "With torch (pip install 'certcal[torch]') an attack on this network is shown here" in text
    assert "no attack exceeds" not in ran.out
    assert "certcal demo --keep run" in text
    assert all(name in text for name in ("SmoothECE", "Kuiper", "kuiper_error"))


def test_no_page_replaces_another_unless_told_to(certcal_command, tmp_path):
    first, second, drawn = (tmp_path / name for name in ("certcal-demo.html", "certcal-demo-2.html", "demo.svg"))
    first.write_text("mine")
    ran = certcal_command("demo", "--metric", "ece", "--no-diagram")
    assert (ran.code, ran.err) == (0, "wrote certcal-demo-2.html\n")
    assert first.read_text() == "mine"
    assert numbers_of(second)["certified"]["n"] == IMAGES
    assert certcal_command("demo", "--force", "-o", drawn).code == 0
    assert numbers_of(first)["certified"]["n"] == IMAGES
    assert drawn.read_bytes().startswith(b"<?xml")
    assert len(list(tmp_path.iterdir())) == 3
    again = certcal_command("demo", "-o", second)
    assert again.code == 2
    assert "certcal-demo-2.html exists and is not overwritten" in again.err


def test_where_no_page_can_be_written_the_demo_does_not_begin(certcal_command, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    ran = certcal_command("demo")
    assert (ran.code, ran.out) == (2, "")
    assert "say with -o where the page goes, or give --no-page" in ran.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--no-page", "-o", "x.html"), "--no-page and -o x.html contradict each other; leave one of them out"),
        (("--data-folder", "here"), "--data-folder: it is for fashion-mnist; digits need none; leave it out"),
        (("--bins", "1000000"), "--bins: 1000000 is not a whole number from 1 to 10000"),
        (
            ("--data", "fashion-mnist", "--data-folder", "nowhere"),
            "--data: nowhere: this folder does not exist; give one with the idx files of Fashion-MNIST",
        ),
        (
            ("--data", "fashion-mnist"),
            "--data: Fashion-MNIST is not installed; run: apt-get install dataset-fashion-mnist, or give "
            "a folder with its four idx files",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(certcal_command, tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.setattr(image_files, "INSTALLED", tmp_path / "nothing")
    ran = certcal_command("demo", *arguments)
    assert (ran.code, ran.out, ran.err) == (2, "", f"certcal: error: {complaint}\n")
    assert list(tmp_path.iterdir()) == []


def test_the_story_can_be_told_of_fashion_mnist(certcal_command, tmp_path):
    write_clothes(tmp_path / "clothes")
    ran = certcal_command("demo", "--data", "fashion-mnist", "--data-folder", "clothes", "-o", "x.html")
    assert (ran.code, ran.err) == (0, "wrote x.html\n")
    text = " ".join(ran.out.split())
    assert "Fashion-MNIST: a network of one hidden layer, trained on 300 images" in text
    assert "certcal demo --data fashion-mnist --keep run" in text
    assert max(map(len, ran.out.splitlines())) <= 80
    inside = numbers_of(tmp_path / "x.html")
    assert (inside["certified"]["source"], inside["n"]) == ("demo: fashion-mnist", 40)
    assert "data:image/png;base64," in (tmp_path / "x.html").read_text("utf-8")


def test_the_embedded_network_learns_and_is_the_same_every_time():
    first, second = (embedded_network(epochs=4) for _ in range(2))
    pixels = first.test.inputs.reshape(-1, 64)
    one, two = (each.classifier.predict_proba(pixels) for each in (first, second))
    assert one.tobytes() == two.tobytes()
    assert np.mean(one.argmax(axis=1) == first.test.labels) > 0.8
    with pytest.raises(InputError, match="sigma"):
        embedded_network(sigma=0)


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
