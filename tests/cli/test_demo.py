"""``certcal demo``: a first look that needs nothing and leaves nothing behind but its page."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import certcal
from certcal import InputError
from certcal.claims import round_outward
from certcal.data import Inputs, embedded, embedded_network, image_files
from certcal.report.views.demo import RADII
from certcal.smoothing import CONFIDENCES, open_run
from certcal.verbs import demo as story
from tests.data.idx_files import write_clothes

IMAGES = 150
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """A network that has learned for a moment, few images and draws, and an empty folder."""

    def some_images(**settings):
        made = embedded_network(**settings)
        return replace(made, test=Inputs.from_arrays(made.test.inputs[:IMAGES], made.test.labels[:IMAGES]))

    monkeypatch.setattr(story, "embedded_network", some_images)
    monkeypatch.setattr(story, "EPOCHS", {"digits": 3, "fashion-mnist": 2})
    monkeypatch.setattr(story, "DRAWS", {"digits": 400, "fashion-mnist": 400})
    monkeypatch.chdir(tmp_path)


def numbers_of(page):
    """The JSON inside a page."""
    return json.loads(DATA.search(page.read_text("utf-8"))[1])


def test_the_demo_shows_numbers_and_says_what_they_mean(certcal_command, tmp_path):
    ran = certcal_command("demo", "--no-page")
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
    assert (document["schema"], document["certified"]["schema"]) == ("certcal/demo/1", "certcal/certification/1")
    assert document["measurements"][0]["value"] == certcal.measure(embedded().predictions)["ece"].value


def test_the_demo_certifies_a_network_and_says_what_is_claimed(certcal_command, tmp_path):
    ran = certcal_command("demo", "--metric", "ece", "--keep", tmp_path / "run")
    assert (ran.code, ran.err) == (0, "wrote certcal-demo.html\n")
    text = " ".join(ran.out.split())
    made = [open_run(tmp_path / "run").certificates(radius) for radius in RADII]
    for radius, each in zip(RADII, made, strict=True):
        (line,) = [line for line in ran.out.splitlines() if line.split()[:1] == [f"{radius:g}"]]
        assert each.summary().accuracy.text in line
        assert each.summary()["calibration_error"].worst_all.text in line
    assert any(each.claim(samples="certified" if each.n_certified else "all").text in text for each in made)
    assert "Fails with probability at most 0.001 over the noise" in text
    assert f"certcal certify {tmp_path / 'run'}" in text
    assert "--keep run" not in text
    for kind in CONFIDENCES:
        (line,) = [line for line in ran.out.splitlines() if line.split()[:1] == [kind]]
        each = open_run(tmp_path / "run").certificates(RADII[0], confidence=kind)
        assert line.split()[1] == round_outward(each.mean_width, "upper")
        assert line.split()[2] == each.summary()["calibration_error"].worst.text


def test_the_demo_attacks_what_it_certifies_and_the_certificate_is_never_exceeded(certcal_command, tmp_path):
    ran = certcal_command("demo", "--metric", "ece", "-o", "story.html", "-o", "numbers.json")
    assert ran.code == 0
    document = json.loads((tmp_path / "numbers.json").read_text())
    attack = document["attacked"]
    (line,) = [each for each in document["certified"]["results"] if each["radius"] == attack["epsilon"]]
    assert attack["labels_changed"] == 0
    assert attack["ece_before"] < attack["ece_after"]
    assert attack["ece_of_certified_after"] <= line["calibration_error"]["certified"]["value"] <= line["claim"]["value"]
    shown = " ".join(ran.out.split())
    moved = f"the ECE went from {attack['ece_before']:.3f} to {attack['ece_after']:.3f}"
    assert f"no predicted label changed and the accuracy stays {attack['accuracy']:.1%}, but {moved}" in shown
    assert f"the certificate says that nothing reaches more than {line['claim']['text']}" in shown
    assert moved in (tmp_path / "story.html").read_text("utf-8")
    maps = document["recalibrated"]["lines"]
    assert document["recalibrated"]["n_fit"] + document["recalibrated"]["n_held_out"] == IMAGES
    first, last = (each["at"][0]["summary"]["brier_score"]["certified"]["text"] for each in maps)
    assert f"exceeds from {first} to {last}, and the ECE from" in shown


def test_without_torch_a_line_says_what_would_be_shown(certcal_command, monkeypatch):
    monkeypatch.setattr("certcal.verbs.demo.find_spec", lambda name: None)
    ran = certcal_command("demo", "--no-page", "--metric", "ece")
    assert (ran.code, ran.err) == (0, "")
    assert "With torch (pip install 'certcal[torch]') an attack on this network is shown here" in " ".join(
        ran.out.split()
    )
    assert "nothing reaches more than" not in ran.out


def test_the_story_shows_few_metrics_and_explains_all(certcal_command):
    story, whole = (certcal_command("demo", "--no-page", *more).out for more in ((), ("--explain",)))
    assert ("SmoothECE" in story, "SmoothECE" in whole) == (True, True)
    assert ("Kuiper" in story, "Kuiper" in whole) == (False, True)
    assert ("kuiper_error" in story, "kuiper_error" in whole) == (False, True)


def test_the_page_is_written_last_and_the_story_says_where_it_is(certcal_command, tmp_path):
    ran = certcal_command("demo", "--keep", "run", "--metric", "ece")
    assert (ran.code, ran.err) == (0, "wrote certcal-demo.html\n")
    assert {path.name for path in tmp_path.iterdir()} == {"run", "certcal-demo.html"}
    page = tmp_path / "certcal-demo.html"
    inside = numbers_of(page)
    for result in inside["certified"]["results"]:
        found = open_run("run").certificates(result["radius"])
        assert result["claim"]["text"] == found.claim(samples="certified" if found.n_certified else "all").text
    shown = {f"{result['radius']:g}": result["claim"]["text"] for result in inside["certified"]["results"]}
    for radius in RADII:
        (line,) = [line for line in ran.out.splitlines() if line.split()[:1] == [f"{radius:g}"]]
        assert shown[f"{radius:g}"] in line.split()
    assert inside["provenance"]["command"] == ["certcal", "demo", "--keep", "run", "--metric", "ece"]
    assert page.read_text("utf-8").count("data:image/png;base64,") == 12


def test_no_page_replaces_another_unless_told_to(certcal_command, tmp_path):
    first, second = tmp_path / "certcal-demo.html", tmp_path / "certcal-demo-2.html"
    first.write_text("mine")
    ran = certcal_command("demo", "--metric", "ece", "--no-diagram")
    assert ran.code == 0
    assert ran.err == "wrote certcal-demo-2.html\n"
    assert first.read_text() == "mine"
    assert numbers_of(second)["certified"]["n"] == IMAGES
    assert certcal_command("demo", "--metric", "ece", "--force").code == 0
    assert numbers_of(first)["certified"]["n"] == IMAGES
    assert len(list(tmp_path.iterdir())) == 2


def test_the_page_gets_the_name_that_is_given(certcal_command, tmp_path):
    ran = certcal_command("demo", "-o", "story.html", "-o", "numbers.json")
    assert (ran.code, ran.err) == (0, "wrote story.html\nwrote numbers.json\n")
    assert {path.name for path in tmp_path.iterdir()} == {"story.html", "numbers.json"}
    document = json.loads((tmp_path / "numbers.json").read_text())
    inside = numbers_of(tmp_path / "story.html")
    del inside["provenance"]
    assert inside == document
    again = certcal_command("demo", "-o", "story.html")
    assert again.code == 2
    assert "story.html exists and is not overwritten" in again.err


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


def test_the_same_demo_twice_is_the_same_text(certcal_command):
    arguments = ("demo", "--metric", "ece", "--no-page")
    assert certcal_command(*arguments).out == certcal_command(*arguments).out


def test_the_certified_numbers_are_in_the_json(certcal_command, tmp_path):
    document = json.loads(certcal_command("demo", "--metric", "ece", "--json").out)
    certified = document["certified"]
    assert [result["radius"] for result in certified["results"]] == [step / 16 for step in range(9)]
    assert certified["run"]["draws"] == 400
    assert certified["results"][0]["claim"]["type"] == "certificate"
    assert [entry["certificate"] for entry in document["compared"]] == list(CONFIDENCES)
    same = [result for result in certified["results"] if result["radius"] == document["compared"][0]["radius"]]
    assert document["compared"][0]["mean_width"] == same[0]["mean_width"]
    assert list(tmp_path.iterdir()) == []


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
    ran = certcal_command("demo", "-o", path, "--no-page")
    assert ran.code == 0
    assert path.read_bytes().startswith(b"<?xml")
    assert list(tmp_path.iterdir()) == [path]


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
