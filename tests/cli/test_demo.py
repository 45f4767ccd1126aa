"""``certcal demo``: a first look that needs nothing and leaves nothing behind but its page."""

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
from certcal.cli import cli, demo
from certcal.cli.errors import run
from certcal.data import Inputs, embedded, embedded_network
from certcal.smoothing import open_run, pooled_claim

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
        patch.setattr("certcal.data.embedded_network", some_images)
        patch.setattr(demo, "EPOCHS", 3)
        patch.setattr(demo, "DRAWS", 400)
        yield


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


class Told(NamedTuple):
    """A demo that has run, in a folder of its own."""

    folder: Path
    out: str
    document: dict[str, Any]

    @property
    def words(self):
        return " ".join(self.out.split())


@pytest.fixture(scope="module")
def told(quick, tmp_path_factory):
    folder, out, err = tmp_path_factory.mktemp("demo"), io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        assert run(cli, COMMAND[1:]) == 0
    # On a slow machine lines about how far it is stand before.
    assert err.getvalue().endswith("wrote certcal-demo.html\nwrote numbers.json\n")
    return Told(folder, out.getvalue(), json.loads((folder / "numbers.json").read_text()))


def numbers_of(page):
    """The JSON inside a page."""
    return json.loads(DATA.search(page.read_text("utf-8"))[1])


def test_the_demo_measures_one_model_attacks_certifies_and_recalibrates_another(told):
    measured = certcal.measure(embedded().predictions)
    assert all(each.text in told.words for each in measured.answer)
    asked = ("How calibrated are", "How far can an attack", "How wrong can", "Which confidences survive an attack")
    places = [told.out.index(question) for question in asked]
    assert places == sorted(places)
    assert max(map(len, told.out.splitlines())) <= 80
    assert {path.name for path in told.folder.iterdir()} == {"run", "certcal-demo.html", "numbers.json"}


def test_next_steps_name_the_run_that_was_kept(told):
    for said in ("Next steps", "certcal measure predictions.csv", "certcal sample --help", "certcal certify run"):
        assert said in told.words
    assert "--keep run" not in told.words


def test_the_attack_keeps_every_label_and_raises_the_error(told):
    found = re.search(r"noise is ([\d.]+)% \(ECE [\d.]+%\); .* makes it at least ([\d.]+)% ", told.words)
    assert float(found[1]) < float(found[2])
    assert "No predicted label changed (verified)" in told.words


def test_the_attack_on_certified_images_stands_beside_the_certificate_and_does_not_exceed_it(told):
    said = re.search(
        r"attack reached an ECE of ([\d.]+)%; by the certificate, no attack exceeds ([\d.]+)%\.", told.words
    )
    assert float(said[2]) == pytest.approx(100 * float(told.document["headline"]["text"]))
    assert 0 < float(said[1]) <= float(said[2])


def test_what_is_claimed_of_the_network_is_what_its_run_says(told):
    for result in told.document["results"]:
        assert result["claim"]["text"] == pooled_claim(open_run(told.folder / "run").counts(), result["radius"]).text
    assert told.document["headline"]["text"] in told.words
    assert "99.9% sure, over the noise" in told.words


def test_the_page_has_the_numbers_the_command_and_the_images(told):
    page = told.folder / "certcal-demo.html"
    inside = numbers_of(page)
    assert inside["provenance"]["command"] == COMMAND
    assert inside == told.document
    assert page.read_text("utf-8").count("data:image/png;base64,") == 12


def test_as_json_only_the_certified_network_is_printed_and_nothing_left_behind(certcal_command, tmp_path, told):
    document = json.loads(certcal_command("demo", "--json").out)
    assert (document["schema"], document["run"]["draws"]) == ("certcal/certification/2", 400)
    assert document["results"] == told.document["results"]
    assert list(tmp_path.iterdir()) == []


def test_without_torch_a_line_says_what_would_be_shown(certcal_command, monkeypatch):
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == "torch" else name)
    ran = certcal_command("demo", "--no-page")
    assert (ran.code, ran.err) == (0, "")
    assert "With torch (pip install 'certcal[torch]') an attack on this network is shown here" in ran.out
    assert "How far can an attack" not in ran.out
    assert "certcal demo --keep run" in ran.out


def test_no_page_replaces_another_unless_told_to(certcal_command, tmp_path):
    first, second, drawn = (tmp_path / name for name in ("certcal-demo.html", "certcal-demo-2.html", "demo.svg"))
    first.write_text("mine")
    ran = certcal_command("demo", "--no-diagram")
    assert (ran.code, ran.err) == (0, "wrote certcal-demo-2.html\n")
    assert first.read_text() == "mine"
    assert numbers_of(second)["n"] == IMAGES
    assert certcal_command("demo", "--force", "-o", drawn).code == 0
    assert numbers_of(first)["n"] == IMAGES
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


def test_a_page_that_is_asked_for_and_refused_is_a_contradiction(certcal_command, tmp_path):
    ran = certcal_command("demo", "--no-page", "-o", "x.html")
    complaint = "--no-page and -o x.html contradict each other; leave one of them out"
    assert (ran.code, ran.out, ran.err) == (2, "", f"certcal: error: {complaint}\n")
    assert list(tmp_path.iterdir()) == []


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
