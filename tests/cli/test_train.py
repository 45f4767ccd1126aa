"""``certcal train``: a folder with a model, the same command goes on, and mistakes are one sentence."""

from __future__ import annotations

import io
import json
import shlex
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from certcal.cli import _training, train
from certcal.cli._parse import parse_epsilon
from certcal.cli._progress import APART_SECONDS, Waiting
from certcal.data import Inputs, Parts
from certcal.training import METHODS, Recipe, recipe

QUICK = ("--data", "digits", "--model", "mlp", "--limit", "300", "--batch", "100")


@pytest.fixture
def training(certcal_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return partial(certcal_command, "train", *QUICK)


def test_training_ends_with_a_model_and_the_commands_that_come_next(training, certcal_command, tmp_path):
    ran = training("--method", "gaussian", "--sigma", "0.25", "--epochs", "2", "-o", "out")
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.partition("What to try next")[0].splitlines())) <= 80
    assert {"model.safetensors", "metrics.jsonl", "recipe.json"} <= {path.name for path in (tmp_path / "out").iterdir()}
    attack, sample, certify = ran.out.partition("What to try next\n")[2].splitlines()
    assert certify == "certcal certify out-run"
    assert certcal_command(*shlex.split(attack)[1:], "--limit", 20, "--steps", 2, "--draws", 2).code == 0
    assert certcal_command(*shlex.split(sample)[1:], "--limit", 5, "-n", 100).code == 0
    assert certcal_command(*shlex.split(certify)[1:]).code == 0


def test_the_same_command_finds_its_work_done_and_another_is_refused(training):
    arguments = ("--method", "standard", "--epochs", "1", "-o", "out", "--json")
    first = json.loads(training(*arguments).out)
    again = json.loads(training(*arguments).out)
    assert again["history"] == first["history"]
    assert (first["resumed_at_step"], again["resumed_at_step"]) == (0, 3)
    assert "1 epoch, 3 steps; all done before" in training(*arguments[:-1]).out
    assert first["recipe"] == recipe("standard", epochs=1, batch=100, box=None, fine_tune=False).to_dict()
    other = training(*arguments, "--seed", "1")
    assert (other.code, other.out) == (2, "")
    assert "out" in other.err


def test_fine_tuning_begins_with_weights_and_has_the_schedule_for_it(training):
    assert training("--method", "gaussian", "--epochs", "1", "-o", "first").code == 0
    ran = training(
        *("--method", "exact-act", "--epsilon", "64/255", "--epochs", "5", "--from", "first/model.safetensors"),
        *("--set", "weight-decay=0.0005", "--set", "bins=5", "--sigma", "0.25", "-o", "second", "--json"),
    )
    assert (ran.code, ran.err) == (0, "")
    found = Recipe.from_dict(json.loads(ran.out)["recipe"])
    assert found == recipe(
        "exact-act", fine_tune=True, sigma=0.25, epsilon=64 / 255, epochs=5, batch=100, box=None, bins=5,
        weight_decay=0.0005,
    )  # fmt: skip
    assert found.learning_rate == 0.01


def test_the_folder_or_the_program_of_a_training_is_refused_with_the_name_of_its_weights(training, tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "weights.safetensors").write_bytes(b"")
    (tmp_path / "first" / "model.pt2").write_bytes(b"")
    for start, what in (("first", "a folder"), ("first/model.pt2", "a program, which cannot be trained further")):
        ran = training("--method", "gaussian", "--from", start, "-o", "second")
        assert ran.code == 2
        assert f"--from {start}: this is {what}; give first/weights.safetensors" in ran.err
    ran = training("--method", "exact-act", "--batch", "200", "--limit", "100", "-o", "second")
    assert "--batch is 200, but there are 100 samples to train on; give a smaller --batch" in ran.err
    assert not (tmp_path / "second").exists()


def test_nothing_is_written_into_data_that_is_read(training, tmp_path):
    (tmp_path / "images").mkdir()
    ran = training("--method", "standard", "--data", "images", "-o", "images/run")
    assert ran.code == 2
    assert "-o images/run: this is inside images, which is read; choose another folder" in ran.err
    assert list((tmp_path / "images").iterdir()) == []


def test_fewer_samples_have_as_many_classes_as_there_are_names():
    data = Inputs.from_arrays(np.zeros((4, 2)), [0, 1, 2, 0], ("a", "b", "c"))
    asked = SimpleNamespace(data="pictures", limit=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_training, "read_split", lambda source: Parts("x", "x", data, None))
        parts = _training._data(asked)
    assert (len(parts.train), _training._classes(parts)) == (2, 3)


def test_the_help_knows_every_method(certcal_command):
    assert list(train.METHODS) == list(METHODS)
    text = " ".join(certcal_command("train", "--help").out.split())
    for name, words in train.METHODS.items():
        assert f"{name} {words}" in text


def test_an_interrupt_says_that_the_same_command_resumes(training, tmp_path, monkeypatch):
    def interrupted(*_, out, **__):
        out = tmp_path / out
        out.mkdir()
        (out / "recipe.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr("certcal.training.train", interrupted)
    ran = training("--method", "standard", "-o", "out")
    assert (ran.code, ran.out) == (130, "")
    assert ran.err == "certcal: interrupted; what was learnt is kept in out, the same command resumes\n"


def test_a_log_says_now_and_then_where_training_is():
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    stream, clock = io.StringIO(), Clock()
    with Waiting(stream, counted="images", clock=clock) as waiting:
        told = _training._Told(waiting, 1000)
        for batch in range(1, 11):
            clock.now += APART_SECONDS
            told(SimpleNamespace(epoch=1, epochs=2, share=0.5 + batch / 20, loss=0.5, accuracy=0.75))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "epoch 2/2, loss 0.500, accuracy 75%: 1,200 of 2,000 images, about 4 min left"
    assert [line.partition(": ")[2].split()[0] for line in lines] == ["1,200", "1,400", "1,600", "1,800"]


def test_commands_that_come_next_are_quoted_for_the_shell():
    trained = SimpleNamespace(file="my folder/model.pt2", recipe=Recipe("smoothadv", sigma=0.5, epsilon=0.25))
    asked = SimpleNamespace(data="two words", output="my folder/")
    first, *_, last = _training.next_commands(trained, asked)
    assert shlex.split(first)[:6] == ["certcal", "attack", "--model", "my folder/model.pt2", "--data", "two words"]
    assert shlex.split(first)[6:] == ["--epsilon", "0.25", "--norm", "l2", "--sigma", "0.5"]
    assert shlex.split(last) == ["certcal", "certify", "my folder-run"]


@pytest.mark.parametrize("distance", [8 / 255, 0.1, 1 / 3, 1e-7, 12.0, 255.0, 51 / 255])
def test_a_distance_is_written_so_that_the_same_is_read(distance):
    assert parse_epsilon(None, None, _training.distance_text(distance)) == distance
    assert len(_training.distance_text(distance)) <= len(repr(distance))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--method", "gausian"), "did you mean 'gaussian'?"),
        ((), "--method METHOD is missing"),
        (("--method", "standard", "--model", "lenet"), "lenet takes square images of at least 12 pixels"),
        (("--method", "standard", "--sigma", "1"), "--sigma is not for standard training; leave it out, or take"),
        (("--method", "gaussian", "--attack-steps", "1"), "--attack-steps is not for gaussian training; leave it out"),
        (("--method", "standard", "--from", "."), "--from .: this is a folder; give a .safetensors file with the"),
        (("--method", "standard", "--data", "nowhere"), "nowhere"),
        (("--method", "standard", "--limit", "9999"), "--limit is 9999, but digits holds 898 samples to train on"),
        (("--method", "standard", "--limit", "50"), "--batch is 100, but there are 50 samples to train on; give a"),
        (("--method", "standard", "--workers", "2"), "a batch is in 1 piece; give --pieces 2 as well"),
        (("--method", "standard", "--set", "momentum"), "--set: 'momentum' is not NAME=VALUE, such as momentum=0.8"),
        (("--method", "standard", "--set", "momentun=1"), "did you mean 'momentum'?"),
        (("--method", "standard", "--set", "batch=3"), "--set batch=… has an option of its own; give --batch once"),
        (("--method", "at", "--sigma", "-1"), "--sigma: '-1' is not a number from 0, such as 0.5"),
        (("--method", "at", "--epsilon", "x"), "--epsilon: 'x' is not a distance above 0, such as 0.5 or 8/255"),
        (("--method", "standard", "--from", "no.safetensors"), "no.safetensors"),
        (("--method", "standard", "--events", "."), "--events .: this is not an empty folder; choose a new one"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(training, tmp_path, arguments, complaint):
    (tmp_path / "mine").write_text("something")
    ran = training("-o", "out", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err
    assert "Traceback" not in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
