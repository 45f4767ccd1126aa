"""``module:name`` wherever a built-in name goes: metrics, kinds, attacks, bounds, calibrators and parts of training."""

import json
import sys

import numpy as np
import pytest

MODULE = """
import numpy as np
import torch
from certcal.attacks import Found
from certcal.bounds import binned
from certcal.lab.training import Judged

def gap(confidence, correct, sample_weight=None):
    return float(abs(np.average(confidence - correct, weights=sample_weight)))

def wide(counts, radius, alpha):
    return np.zeros(len(counts)), np.ones(len(counts))

def own_bound(scores, outcomes, delta):
    return binned(scores, outcomes, delta=delta)

class Fade:
    name = "fade"

    def run(self, model, inputs, labels, epsilon):
        return model.ball(epsilon).seal(inputs, inputs - epsilon)

def softened(view):
    logarithms = view.target.log_probabilities(view.found.inputs)
    nll = torch.nn.functional.cross_entropy(logarithms, view.labels, label_smoothing=0.1)
    return Judged(nll, logarithms)

class Corner:
    def __call__(self, target, inputs, labels, ball, keep="best"):
        return Found(ball.seal(inputs, inputs + ball.epsilon))

class Needy:
    def __init__(self, more):
        pass

def broken(*args, **options):
    raise ValueError("out of ideas")

def text(scores, outcomes, delta):
    return "0.1"

number = 3
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_objects_of_mine.py").write_text(MODULE)
    (tmp_path / "raises_on_import.py").write_text("1 / 0\n")
    yield "own_objects_of_mine"
    sys.modules.pop("own_objects_of_mine", None)


def test_a_metric_of_ones_own_is_measured_and_required(certcal_command, scores, own):
    document = json.loads(certcal_command("measure", scores, "--metric", f"{own}:gap", "--json").out)
    (row,) = (each for each in document["measurements"] if each["name"] == "gap")
    rows = np.loadtxt(scores, delimiter=",", skiprows=1, usecols=(0, 1))
    assert row["value"] == pytest.approx(abs(rows[:, 0].mean() - rows[:, 1].mean()))


def test_a_bound_of_ones_own_is_planned_for(certcal_command, own):
    mine = certcal_command("plan", 0.3, "--method", f"{own}:own_bound", "--json")
    built_in = certcal_command("plan", 0.3, "--json")
    assert json.loads(mine.out)["n"] == json.loads(built_in.out)["n"]


def test_an_attack_and_a_kind_of_certificate_of_ones_own_are_used(certcal_command, own, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", inputs=rng.random((8, 1, 8, 8), np.float32), labels=np.arange(8) % 10)
    (tmp_path / "network.py").write_text(
        "from certcal.models.networks import MLP\ndef make():\n    return MLP(64, hidden=(4,), classes=10)\n"
    )
    model = ("--model", "network:make", "--outputs", "logits", "--data", "d.npz")
    ran = certcal_command("attack", *model, "--epsilon", "0.05", "--attacks", f"{own}:Fade", "--json")
    assert [each["attack"] for each in json.loads(ran.out)["attacks"]] == ["fade"]
    assert certcal_command("sample", *model, "--sigma", "0.1", "-n", 50, "--n0", 10, "-o", "run").code == 0
    ran = certcal_command("certify", "run", "--radius", "0.01", "--kind", f"{own}:wide", "--json")
    assert json.loads(ran.out)["conventions"]["confidence"] == "wide"
    sys.modules.pop("network", None)


def test_an_objective_and_an_adversary_of_ones_own_train(certcal_command, own, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", inputs=rng.random((8, 1, 8, 8), np.float32), labels=np.arange(8) % 10)
    given = ("--model", "mlp", "--data", "d.npz", "--epsilon", "0.1", "--batch", 8, "--epochs", 1, "-o", "out")
    mine = ("--set", f"loss={own}:softened", "--set", f"adversary={own}:Corner")
    ran = certcal_command("train", "--method", "at", *given, *mine)
    assert ran.code == 0, ran.err
    written = json.loads((tmp_path / "out" / "recipe.json").read_text())["recipe"]
    assert (written["loss"]["class"], written["adversary"]["class"]) == (f"{own}.softened", f"{own}.Corner")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("measure", "{scores}", "--metric", "{own}:number"), "can be neither called nor run"),
        (("measure", "{scores}", "--metric", "{own}:gapp"), "has no 'gapp'"),
        (("measure", "{scores}", "--metric", "nowhere_at_all:x"), "there is no module 'nowhere_at_all'"),
        (("measure", "{scores}", "--metric", "raises_on_import:x"), "importing raises_on_import failed"),
        (("measure", "{scores}", "--metric", "{own}:broken"), "out of ideas"),
        (("plan", "0.3", "--method", "{own}:broken"), "method broken failed: out of ideas"),
        (("plan", "0.3", "--method", "{own}:text"), "method text returned a str; it must return a Bound"),
        (("recalibrate", "fit", "{scores}", "--method", "{own}:Needy"), "Needy() failed"),
        (("recalibrate", "fit", "{scores}", "--method", "{own}:number"), "--method: {own}:number can be neither"),
        (("train", "--method", "at", "--data", "digits", "-o", "out", "--set", "loss={own}:los"), "has no 'los'"),
        (("recalibrate", "fit", "{scores}", "--method", "a:b:c"), "'a:b:c' is not one of"),
    ],
)
def test_what_is_none_is_refused_in_a_sentence(certcal_command, scores, own, words, said):
    ran = certcal_command(*(word.format(scores=scores, own=own) for word in words))
    assert (ran.code, ran.out) == (2, "")
    assert said.format(own=own) in ran.err
    assert "this is a bug" not in ran.err


def test_dead_ends_lead_on(certcal_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "forest_of_mine.py").write_text(
        "import numpy as np\nfrom sklearn.ensemble import RandomForestClassifier\n"
        "X = np.random.default_rng(0).random((40, 3)).astype(np.float32)\n"
        "model = RandomForestClassifier(2, random_state=0).fit(X, X[:, 0] > 0.5)\n"
        "model.classes_ = np.array([0, 1])\n"
    )
    np.savez(tmp_path / "d.npz", inputs=np.random.default_rng(1).random((5, 3), np.float32), labels=[0, 1, 0, 1, 0])
    for model in ("rf.joblib", "trained"):
        (tmp_path / model).mkdir() if model == "trained" else (tmp_path / model).write_bytes(b"x")
    (tmp_path / "trained" / "model.safetensors").write_bytes(b"x")
    data = ("--data", "d.npz", "--epsilon", "0.01")
    assert (
        "bound the scores of trees with verify"
        in certcal_command("attack", "--model", "forest_of_mine:model", *data).err
    )
    assert "name it, as 'mine:model'" in certcal_command("attack", "--model", "rf.joblib", *data).err
    assert "its model is trained/model.safetensors" in certcal_command("report", "trained").err
    sys.modules.pop("forest_of_mine", None)
