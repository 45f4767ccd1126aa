"""``certcal train``: a folder with a model, the same command goes on, and mistakes are one sentence."""

import json
import re
import shlex
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from certcal._base.signature import Spec
from certcal._base.text import distance_text
from certcal.cli.options import Typed
from certcal.cli.train import next_commands
from certcal.data import read_split
from certcal.lab.training import METHODS, Recipe, SelectionWarning, recipe
from certcal.models.networks import by_name
from certcal.smoothing import open_run
from tests.accelerator import accelerator
from tests.cli.conftest import with_defaults

QUICK = ("--data", "digits", "--model", "mlp", "--limit", "300", "--batch", "100")


@pytest.fixture
def training(certcal_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: certcal_command("train", *with_defaults(words, QUICK))


def test_training_ends_with_a_model_and_the_commands_that_come_next(training, certcal_command, tmp_path):
    ran = training("--method", "gaussian", "--sigma", "0.25", "--epochs", "2", "-o", "out")
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.partition("Next steps")[0].splitlines())) <= 80
    assert {"model.safetensors", "metrics.jsonl", "recipe.json"} <= {path.name for path in (tmp_path / "out").iterdir()}
    attack, sample, certify = ran.out.partition("Next steps\n")[2].splitlines()
    assert certify == "certcal certify out-run"
    assert certcal_command(*shlex.split(attack)[1:], "--limit", 20, "--steps", 2, "--draws", 2).code == 0
    assert certcal_command(*shlex.split(sample)[1:], "--limit", 5, "-n", 100).code == 0
    assert certcal_command(*shlex.split(certify)[1:]).code == 0


def test_a_network_of_ones_own_is_trained_attacked_and_sampled(training, certcal_command, tmp_path):
    maker = "import math\nfrom torch.nn import Flatten, Linear, Sequential\n\n\ndef net(sample_shape, classes):\n"
    maker += "    return Sequential(Flatten(), Linear(math.prod(sample_shape), classes))\n"
    (tmp_path / "certcal_test_own_net.py").write_text(maker)
    named = ("--model", "certcal_test_own_net:net")
    ran = training(*named, "--method", "gaussian", "--sigma", "0.25", "--epochs", "1", "-o", "out")
    assert ran.code == 0
    attack, sample, certify = ran.out.partition("Next steps\n")[2].splitlines()
    assert shlex.split(attack)[2:6] == [*named, "--weights", "out/weights.safetensors"]
    assert certcal_command(*shlex.split(attack)[1:], "--limit", 20, "--steps", 2, "--draws", 2).code == 0
    assert certcal_command(*shlex.split(sample)[1:], "--limit", 5, "-n", 100).code == 0
    assert certcal_command(*shlex.split(certify)[1:]).code == 0
    run = open_run(tmp_path / "out-run")
    (run.path / run.manifest.units()[0].name).unlink()
    resume = json.loads(certcal_command("runs", "show", run.path, "--json").out)["resume"]
    assert f"--weights={tmp_path / 'out' / 'weights.safetensors'}" in shlex.split(resume)
    assert certcal_command(*shlex.split(resume)[1:]).code == 0
    tuned = training(
        *named, "--method", "gaussian", "--epochs", "1", "--start", "out/weights.safetensors", "-o", "more"
    )
    assert tuned.code == 0


def test_training_runs_on_the_accelerator_with_augmentation(training, tmp_path):
    with accelerator(doubles=False) as state:
        options = ("--method", "gaussian", "--epochs", "1", "--augment", "crop", "--device", "pretend", "--json")
        ran = training(*options, "-o", "out")
        assert state.operations
    found = json.loads(ran.out)
    assert (ran.code, found["recipe"]["augment"]) == (0, "crop")
    assert json.loads((tmp_path / "out" / "recipe.json").read_text())["versions"]["device"].startswith("pretend")


def test_of_several_processes_only_the_first_says_something(training, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    ran = training("--method", "standard", "--epochs", "1", "-o", "out")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


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
        *("--method", "exact-act", "--epsilon", "64/255", "--epochs", "5", "--start", "first/model.safetensors"),
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
    for start, what in (("first", "a folder"), ("first/model.pt2", "a .pt2 file, which is not loaded")):
        ran = training("--method", "gaussian", "--start", start, "-o", "second")
        assert ran.code == 2
        assert f"--start: {start} is {what}; give first/weights.safetensors" in ran.err
    ran = training("--method", "exact-act", "--batch", "200", "--limit", "100", "-o", "second")
    assert "--batch: it is 200, but there are 100 samples to train on; give a smaller one" in ran.err
    assert not (tmp_path / "second").exists()


def test_nothing_is_written_into_data_that_is_read(training, tmp_path):
    (tmp_path / "images").mkdir()
    ran = training("--method", "standard", "--data", "images", "-o", "images/run")
    assert ran.code == 2
    assert "-o images/run: this is inside images, which is read; choose another folder" in ran.err
    assert list((tmp_path / "images").iterdir()) == []


def test_the_help_knows_every_method(certcal_command):
    text = " ".join(certcal_command("train", "--help").out.split())
    for each in METHODS.values():
        assert f"{each.name} {each.help}" in text


@pytest.fixture
def easy_first(training):
    own = ("--set", "begin=1", "--set", "discard_below=0.7", "--set", "weigh-every=0", "--set", "discard_draws=10")
    return partial(training, "--method", "acr", "--sigma", "0.3", "--epochs", "2", "-o", "out", *own)


def test_a_method_that_discards_says_how_much_and_which_classes_are_lost(easy_first):
    ran = easy_first()
    assert ran.code == 0
    facts = ran.out.partition("Result\n")[2].partition("\n\n")[0]
    shown = dict(line.split(maxsplit=1) for line in facts.splitlines())
    kept, discarded = (float(share) for share in re.findall(r"([\d.]+)%", shown["kept"]))
    assert kept + discarded == pytest.approx(100)
    (line,) = ran.err.splitlines()
    lost = shown["lost"].strip().removeprefix("every sample of classes ")
    assert line.startswith(f"certcal: classes {lost} have no sample left from epoch 1 on, and the network will forget")
    again = easy_first("--json")
    assert again.err == ""
    last = json.loads(again.out)["history"][-1]
    assert round(100 * last["kept"], 1) == kept
    assert ", ".join(map(str, last["lost_classes"])) == lost


def test_what_training_warns_of_is_said_even_if_interrupted_but_not_to_the_quiet(easy_first, monkeypatch):
    def warned(*arguments, **options):
        warnings.warn("class 3 has no sample left", SelectionWarning, stacklevel=1)
        raise KeyboardInterrupt

    monkeypatch.setattr("certcal.lab.training.train", warned)
    interrupted = "certcal: interrupted; nothing was learnt\n"
    ran = easy_first()
    assert (ran.code, ran.err) == (130, f"certcal: class 3 has no sample left\n{interrupted}")
    ran = easy_first("-q")
    assert (ran.code, ran.err) == (130, interrupted)


def test_warnings_of_others_stay_what_they_are(easy_first, monkeypatch):
    def warned(*arguments, **options):
        warnings.warn("the disk is old", RuntimeWarning, stacklevel=1)
        raise KeyboardInterrupt

    monkeypatch.setattr("certcal.lab.training.train", warned)
    with pytest.warns(RuntimeWarning, match="the disk is old"):
        assert easy_first().code == 130


def test_a_preset_has_the_published_constants_and_set_changes_them(training):
    ran = training(
        *(
            "--method",
            "catrs",
            "--preset",
            "jeong-2023-catrs:cifar-10",
            "--sigma",
            "0.25",
            "--epochs",
            "1",
            "-o",
            "out",
        ),
        *("--set", "target-sigma=0.1", "--json"),
    )
    assert ran.code == 0
    made = recipe(
        *("cat-rs",), preset="jeong-2023-catrs:cifar-10", sigma=0.25, epochs=1, batch=100, box=None, target_sigma=0.1
    )
    assert json.loads(ran.out)["recipe"] == made.to_dict()


def test_true_and_false_are_values_only_of_constants_that_are_either(training):
    arguments = ("--method", "smoothmix", "--sigma", "0.1", "--epochs", "1", "-o", "out")
    ran = training(*arguments, "--set", "one_step=True", "--json")
    assert json.loads(ran.out)["recipe"]["own"]["one_step"] is True
    ran = training(*arguments, "--set", "momentum=true")
    assert ran.code == 2
    assert "momentum is 'true'; pass a finite number" in ran.err


def test_an_interrupt_says_that_the_same_command_resumes(training, tmp_path, monkeypatch):
    def interrupted(*_, out, **__):
        out = tmp_path / out
        out.mkdir()
        (out / "recipe.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr("certcal.lab.training.train", interrupted)
    ran = training("--method", "standard", "-o", "out")
    assert (ran.code, ran.out) == (130, "")
    assert ran.err == "certcal: interrupted; what was learnt is kept in out, the same command resumes\n"


def test_commands_that_come_next_are_quoted_for_the_shell():
    trained = SimpleNamespace(
        file="my folder/model.safetensors",
        recipe=Recipe("smoothadv", sigma=0.5, epsilon=0.25),
        data="two words",
        tested=9,
    )
    first, *_, last = next_commands(trained, "my folder/")
    assert shlex.split(first)[:6] == [
        "certcal",
        "attack",
        "--model",
        "my folder/model.safetensors",
        "--data",
        "two words",
    ]
    assert shlex.split(first)[6:] == ["--epsilon", "0.25", "--norm", "l2", "--sigma", "0.5"]
    assert shlex.split(last) == ["certcal", "certify", "my folder-run"]


def test_data_without_a_test_part_are_not_what_to_certify_next(training, tmp_path):
    train = read_split("digits").train
    np.savez(tmp_path / "all.npz", inputs=train.inputs[:200], labels=train.labels[:200])
    options = ("--method", "gaussian", "--sigma", "0.25", "--epochs", "1", "--limit", 100, "-o", "out")
    ran = training("--data", "all.npz", *options)
    assert ran.code == 0
    head, *commands = ran.out[ran.out.index("Next steps") :].splitlines()
    assert head == "Next steps, with inputs that it was not trained on as TEST"
    assert "all.npz" not in " ".join(commands)
    assert [shlex.split(command)[1:6:4] for command in commands[:2]] == [["attack", "TEST"], ["sample", "TEST"]]


def test_a_training_begins_with_a_checkpoint_of_torch_if_that_fits(training, tmp_path):
    network = by_name("mlp", (1, 8, 8), 10, seed=4)
    torch.save({"epoch": 2, "model": {f"module.{key}": each for key, each in network.state_dict().items()}}, "x.pth")
    ran = training("--model", "mlp", "--method", "standard", "--epochs", "1", "--start", "x.pth", "-o", "out")
    assert (ran.code, ran.err.count("Error")) == (0, 0)
    torch.save({"weight": torch.zeros(2)}, "x.pth")
    ran = training("--model", "mlp", "--method", "standard", "--epochs", "1", "--start", "x.pth", "-o", "other")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "x.pth: its weights do not fit MLP: 'layers.0.bias' is missing there and (256,) in the network" in ran.err


@pytest.mark.parametrize("distance", [8 / 255, 0.1, 1 / 3, 1e-7, 12.0, 255.0, 51 / 255])
def test_a_distance_is_written_so_that_the_same_is_read(distance):
    assert Typed(Spec("", "distance")).convert(distance_text(distance), None, None) == distance
    assert len(distance_text(distance)) <= len(repr(distance))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--method", "gausian"), "did you mean 'gaussian'?"),
        ((), "--method METHOD is missing"),
        (("--method", "standard", "--model", "lenet"), "lenet takes square images of at least 12 pixels"),
        (("--method", "standard", "--sigma", "1"), "--sigma: it is not for standard training; leave it out, or take"),
        (
            ("--method", "gaussian", "--attack-steps", "1"),
            "--attack-steps: it is not for gaussian training; leave it out",
        ),
        (("--method", "macer", "--epsilon", "1"), "--epsilon: it is not for macer training; leave it out"),
        (("--method", "acr", "--attack-steps", "3"), "--attack-steps: it is not for acr training; leave it out"),
        (("--method", "smoothmix", "--norm", "l2"), "--norm: it is not for smoothmix training; leave it out"),
        (("--method", "macer", "--set", "margin=3", "--set", "margin=4"), "margin is given twice; give it once"),
        (("--method", "macer", "--set", "discard_below=0.3"), "--set: 'discard_below' is a constant of acr only"),
        (
            ("--method", "macer", "--set", "marging=3"),
            "--set: 'marging' is no part of a recipe; did you mean 'margin'?",
        ),
        (("--method", "macer", "--set", "zzz=3"), "sharpness"),
        (("--method", "macer", "--set", "weight=-3"), "--set: weight is -3"),
        (("--method", "macer", "--set", "own=3"), "give the method's own constants by their names, such as weight=…"),
        (("--method", "gaussian", "--set", "own=3"), "by their names, of which gaussian has none"),
        (("--method", "standard", "--preset", "mnist"), "preset is 'mnist', which is unknown: standard has none"),
        (("--method", "macer", "--preset", "mars"), "macer has 'zhai-2020-macer:cifar-10', 'jeong-2020-consistency:mn"),
        (
            ("--method", "macer", "--preset", "mnist"),
            "a data set; name the paper too: pass 'jeong-2020-consistency:mni",
        ),
        (("--method", "macer", "--preset", "zhai-2020-macer", "--sigma", "0.3"), "has constants for 0.25, 0.5, 1"),
        (("--method", "brier-act", "--preset", "emde-2024:svhn"), "is for fine-tuning; pass the weights to begin with"),
        (("--method", "macer", "--set", "preset=mnist"), "--set preset=… has an option of its own; give --preset once"),
        (("--method", "acr", "--set", "discard_below=1"), "discard_below is 1"),
        (("--method", "standard", "--start", "."), "--start: . is a folder; give a .safetensors file with the"),
        (("--method", "standard", "--data", "nowhere"), "nowhere"),
        (("--method", "standard", "--limit", "9999"), "--limit: it is 9999, but digits holds 898 samples to train on"),
        (("--method", "standard", "--limit", "50"), "--batch: it is 100, but there are 50 samples to train on; give a"),
        (("--method", "standard", "--device", "cuda:9"), "--device: there is no 'cuda:9' here, only cpu"),
        (("--method", "standard", "--augment", "mirror"), "'mirror' is not one of 'none', 'flip', 'crop', 'crop+flip'"),
        (("--method", "standard", "--set", "momentum"), "--set: 'momentum' is not NAME=VALUE, such as momentum=0.8"),
        (("--method", "standard", "--set", "momentun=1"), "did you mean 'momentum'?"),
        (("--method", "standard", "--set", "batch=3"), "--set batch=… has an option of its own; give --batch once"),
        (("--method", "at", "--sigma", "-1"), "--sigma: -1 is not a number from 0"),
        (("--method", "at", "--epsilon", "x"), "--epsilon: 'x' is not a distance above 0, such as 0.5 or 8/255"),
        (("--method", "standard", "--start", "no.safetensors"), "no.safetensors"),
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
