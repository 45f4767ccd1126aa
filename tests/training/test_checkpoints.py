"""Interrupted in every way and continued by the same call: the result is the one that was never interrupted."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import certcal
from certcal import InputError
from certcal.lab.training import METHODS, Diverged, Judged, export_events, read_log, train
from certcal.lab.training.parts import smoothed_cross_entropy
from certcal.models.networks import load_weights
from tests.training.digits import (
    ROOT,
    Modern,
    Stopped,
    data,
    held_out,
    network,
    numbers,
    same_weights,
    small,
    stop_at,
)


def go(method, out=None, samples=300, **changes):
    given = network(method=method), data(samples, method), small(method)
    return train(*given, test=held_out(method=method), out=out, checkpoint_seconds=0.0, **changes)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_lowers_its_loss_and_resumes_to_the_same_bits(method, tmp_path):
    whole = go(method, samples=500)
    first, last = whole.history
    assert last["loss"] < first["loss"]
    assert last["test_accuracy"] > 0.3
    assert (last["samples"], last["step"]) == (500, 8)
    for step in (2, 5):  # in the first epoch, and in the second
        with pytest.raises(Stopped):
            go(method, tmp_path / "run", samples=500, progress=stop_at(step))
    finished = go(method, tmp_path / "run", samples=500)
    assert finished.resumed == 5
    assert same_weights(whole, finished)
    assert numbers(whole) == numbers(finished)
    assert read_log(tmp_path / "run") == finished.history


def test_dropout_batch_normalisation_and_adam_resume_to_the_same_bits(tmp_path):
    plan = small("gaussian", optimiser="adam", learning_rate=0.01, pieces=2)
    whole = train(Modern(), data(300), plan)
    with pytest.raises(Stopped):
        train(Modern(), data(300), plan, out=tmp_path / "run", checkpoint_seconds=0.0, progress=stop_at(5))
    assert same_weights(whole, train(Modern(), data(300), plan, out=tmp_path / "run"))


def far_below_zero(view):
    judged = smoothed_cross_entropy(view)
    return Judged(judged.loss - 100, judged.log_probabilities)


def test_a_loss_below_zero_resumes_in_the_middle_of_an_epoch(tmp_path):
    plan = small("gaussian", loss=far_below_zero)
    whole = train(network(), data(300), plan)
    with pytest.raises(Stopped):
        train(network(), data(300), plan, out=tmp_path / "run", checkpoint_seconds=0.0, progress=stop_at(2))
    finished = train(network(), data(300), plan, out=tmp_path / "run")
    assert finished.resumed == 1
    assert numbers(whole) == numbers(finished)


# Loads everything once, then trains in a fresh copy of itself for each line it reads.
SCRIPT = """
import os, sys
import numpy as np
import torch
from certcal.data import Inputs
from certcal.lab.training import train
from tests.training.digits import network, small

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

torch.set_num_threads(1)
data = Inputs.from_arrays(**np.load(sys.argv[1]))
train(network(), data, small("brier-act", epochs=1))
say("torch._dynamo" in sys.modules)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        say(os.getpid())
        tell = lambda progress: say(progress.epoch, progress.batch)
        out, plan = line.strip(), small("brier-act")
        train(network(), data, plan, out=out, checkpoint_seconds=0.0, progress=tell)
        os._exit(0)
    say("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_training_that_was_killed_resumes_to_the_same_bits(tmp_path):
    out, some, plan = tmp_path / "run", data(300), small("brier-act")
    np.savez(tmp_path / "data.npz", inputs=some.inputs, labels=some.labels)  # which is quicker to load than digits
    command, pipes = (
        [sys.executable, "-c", SCRIPT, str(tmp_path / "data.npz")],
        {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE},
    )
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "False\n"  # torch's compiler takes seconds to load, and nobody needs it
        for _ in range(4):
            process.stdin.write(f"{out}\n")
            process.stdin.flush()
            pid = int(process.stdout.readline())
            process.stdout.readline()
            os.kill(pid, signal.SIGKILL)  # while it writes a checkpoint, or in the next step
            while not (line := process.stdout.readline()).startswith("ended"):
                assert line
            assert line == f"ended {-signal.SIGKILL}\n"
    finished, whole = train(network(), some, plan, out=out), train(network(), some, plan)
    assert same_weights(whole, finished)
    assert numbers(whole) == numbers(finished)
    assert list(out.glob(".*.certcal-tmp")) == []
    assert len(list(out.glob("checkpoint-*"))) == 1


@pytest.fixture
def interrupts():
    """As at a terminal: processes that are started in the background may ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_ctrl_c_finishes_the_step_and_saves_it(tmp_path):
    whole, out = go("gaussian"), tmp_path / "run"

    def interrupt(progress):
        if (progress.epoch, progress.batch) == (1, 1):
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    plan = small("gaussian")
    with pytest.raises(KeyboardInterrupt):
        train(network(), data(300), plan, test=held_out(), out=out, progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    assert json.loads((out / "state.json").read_text())["step"] == 4
    finished = train(network(), data(300), plan, test=held_out(), out=out)
    assert finished.resumed == 4
    assert same_weights(whole, finished)


def test_what_is_finished_is_not_trained_again_and_files_of_yours_stay(tmp_path):
    first = go("gaussian", tmp_path / "run")
    (tmp_path / "run" / "checkpoint-best.safetensors").write_text("mine")
    again = go("gaussian", tmp_path / "run", progress=stop_at(1))
    assert again.resumed == first.history[-1]["step"]
    assert same_weights(first, again)
    assert again.history == first.history
    assert (tmp_path / "run" / "checkpoint-best.safetensors").read_text() == "mine"


def test_the_folder_holds_the_model_and_says_what_it_is(tmp_path):
    trained = go("gaussian", tmp_path / "run")
    folder = tmp_path / "run"
    assert trained.folder == folder
    assert trained.file == folder / "model.safetensors"
    kept = {"recipe.json", "state.json", "metrics.jsonl", "model.safetensors", "checkpoint-000006.safetensors", ".lock"}
    assert {entry.name for entry in folder.iterdir()} == kept
    assert same_weights(load_weights(trained.file), trained)
    batch = held_out().inputs[:5]
    with torch.no_grad():
        expected = trained.network(torch.tensor(batch)).numpy()
    assert np.allclose(certcal.models.load(trained.file)(batch), expected, atol=1e-6)
    about = json.loads((folder / "recipe.json").read_text())
    assert about["recipe"] == trained.recipe.to_dict()
    assert about["data"] == {"samples": 300, "sha256": data(300).fingerprint}
    assert about["network"]["class"] == "MLP"
    assert set(about["versions"]) == {"certcal", "torch", "numpy", "python", "device"}
    state = json.loads((folder / "state.json").read_text())
    assert state["random"] == {"seed": 0, "step": 6}


def test_a_module_of_ones_own_becomes_weights_that_its_name_is_loaded_with(tmp_path):
    trained = train(Modern(), data(300), small("standard", epochs=1), out=tmp_path / "run")
    assert trained.file == tmp_path / "run" / "weights.safetensors"
    batch = held_out().inputs[:5]
    with torch.no_grad():
        expected = trained.network(torch.tensor(batch)).numpy()
    loaded = certcal.models.load("tests.training.digits:Modern", weights=trained.file)
    assert np.allclose(loaded(batch), expected, atol=1e-5)
    assert loaded.outputs == "logits"
    tuned = small("gaussian", epochs=1, learning_rate=1e-9)
    again = train(Modern(), data(300), tuned, start=tmp_path / "run" / "weights.safetensors").network
    assert torch.allclose(again.layers[5].weight, trained.network.layers[5].weight, atol=1e-6)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    go("gaussian", folder)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of a finished run without its model."""
    for path in finished.iterdir():
        if path.name != "model.safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_another_training_in_the_same_folder_is_refused(folder):
    def refused(sentence, net=None, inputs=None, plan=None, test=None):
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}
        with pytest.raises(InputError, match=f"holds a training run with {sentence}.*choose another folder"):
            train(net or network(), inputs or data(300), plan or small("gaussian"), test=test or held_out(), out=folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"} == before

    refused(r"another recipe \(epochs was 2 and is now 5\)", plan=small("gaussian", epochs=5))
    refused(r"another recipe \(method was 'gaussian' and is now 'smoothadv'\)", plan=small("smoothadv"))
    refused("other training data", inputs=data(301))
    refused("other test data", test=held_out(99))
    refused("another network, or one with other first weights", net=network(seed=1))


def test_a_run_of_an_older_version_resumes(tmp_path):
    out, plan = tmp_path / "run", small("gaussian")
    whole = train(network(), data(300), plan, test=held_out())
    with pytest.raises(Stopped):
        go("gaussian", out, progress=stop_at(4))
    path = out / "recipe.json"
    record = json.loads(path.read_text())
    del record["recipe"]["own"]
    path.write_text(json.dumps(record))
    finished = train(network(), data(300), plan, test=held_out(), out=out)
    assert finished.resumed > 0
    assert same_weights(whole, finished)


def test_a_constant_that_was_another_one_is_named(tmp_path):
    train(network(), data(300), small("acr", epochs=2), out=tmp_path / "run")
    sentence = r"another recipe \(sphere_steps was 2 and is now 3\)"
    with pytest.raises(InputError, match=sentence):
        train(network(), data(300), small("acr", epochs=2, sphere_steps=3), out=tmp_path / "run")


def test_a_recipe_that_makes_no_sense_is_another_one(tmp_path):
    train(network(), data(300), small("gaussian"), out=tmp_path / "run")
    path = tmp_path / "run" / "recipe.json"
    record = json.loads(path.read_text())
    for broken in (7, {"method": "gaussian", "sigma": "loud"}, {"method": "future"}):
        path.write_text(json.dumps(record | {"recipe": broken}))
        with pytest.raises(InputError, match=r"holds a training run with another recipe \("):
            train(network(), data(300), small("gaussian"), out=tmp_path / "run")


def test_a_run_that_ended_before_its_first_checkpoint_leaves_its_folder_to_another(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(Diverged, match=r"no checkpoint had been written; try a lower learning rate.*float32$"):
        train(network(), data(), small("standard", learning_rate=1e30), out=out)
    (out / "metrics.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=r"another recipe \(learning_rate was 1e\+30"):
        train(network(), data(), small("standard"), out=out)
    (out / "metrics.jsonl").write_text("")
    assert len(train(network(), data(), small("standard"), out=out).history) == 2


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("all I have")
    with pytest.raises(InputError, match=r"holds other files \(thesis.tex\) and no recipe.json; choose an empty"):
        go("gaussian", tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InputError, match="this is a file; choose a folder"):
        go("gaussian", tmp_path / "thesis.tex")


def test_two_trainings_in_one_folder_do_not_mix(folder):
    from certcal._base.durable import only_writer

    with only_writer(folder), pytest.raises(InputError, match=r"another process .* is training in this folder; wait"):
        go("gaussian", folder)


def changed(path: Path, **values):
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | values))


DAMAGE = {
    "a checkpoint cut short": lambda at: _truncate(at / "checkpoint-000006.safetensors"),
    "a checkpoint that is gone": lambda at: (at / "checkpoint-000006.safetensors").unlink(),
    "a state that is no JSON": lambda at: (at / "state.json").write_text("{"),
    "a state that is a list": lambda at: (at / "state.json").write_text("[]"),
    "a state nested too deeply": lambda at: (at / "state.json").write_text("[" * 100_000),
    "a state that is empty": lambda at: (at / "state.json").write_text(""),
    "a state that names another file": lambda at: changed(at / "state.json", file="../recipe.json"),
    "a step that is no number": lambda at: changed(at / "state.json", step="six"),
    "a negative count": lambda at: changed(at / "state.json", batches=-1),
    "an epoch without its line": lambda at: changed(at / "state.json", epoch=1),
    "a history that is no list": lambda at: changed(at / "state.json", history=7),
    "a recipe that is no JSON": lambda at: (at / "recipe.json").write_bytes(b"\xff\xfe"),
}


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_one_sentence(damage, folder):
    DAMAGE[damage](folder)
    with pytest.raises(InputError) as caught:
        go("gaussian", folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_of_another_network_is_refused(folder):
    import hashlib

    from safetensors.torch import load, save

    path = folder / "checkpoint-000006.safetensors"
    tensors = load(path.read_bytes())
    for change in ({"weight/layers.0.weight": torch.zeros(2, 2)}, {"optimiser/99/x": torch.zeros(2)}):
        content = save(tensors | change)
        path.write_bytes(content)
        changed(folder / "state.json", sha256=hashlib.sha256(content).hexdigest())
        with pytest.raises(InputError, match=r"its tensor '[a-z0-9./]+' (does not fit|is unknown); train in a new"):
            go("gaussian", folder)


def test_the_log_is_cut_back_to_the_checkpoint(folder):
    lines = read_log(folder)
    with (folder / "metrics.jsonl").open("a") as stream:
        stream.write('{"epoch": 99}\n{"epoch": 1')
    assert read_log(folder) == [*lines, {"epoch": 99}]
    assert go("gaussian", folder).history == lines
    assert read_log(folder) == lines


def test_a_disk_that_is_full_is_one_sentence_and_leaves_no_halves(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    for name in ("state.json", "checkpoint-000006.safetensors"):
        (folder / name).unlink()
    (folder / "metrics.jsonl").write_text("")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"checkpoint-000001.safetensors: cannot be written \(No space"):
        go("gaussian", folder)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "metrics.jsonl", "recipe.json"]


# --- events for TensorBoard ------------------------------------------------------------------------------------------


def test_every_number_of_the_log_is_in_the_events(finished, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert export_events(finished, tmp_path / "events") == 2
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    names = set(read_log(finished)[0]) - {"epoch", "step", "samples"}
    assert set(events.Tags()["scalars"]) == names
    for name in names:
        found = [(event.step, event.value) for event in events.Scalars(name)]
        assert found == [(line["step"], pytest.approx(line[name], rel=1e-6)) for line in read_log(finished)]


def test_events_without_tensorboard_are_one_sentence(finished, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match="event files need tensorboard; install it with: pip install tensorboard"):
        export_events(finished, tmp_path / "events")


def test_events_are_not_written_over_other_files(finished, tmp_path):
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(InputError, match="is not an empty folder; choose a new one"):
        export_events(finished, tmp_path)
    with pytest.raises(InputError, match=r"metrics.jsonl: there is no such file"):
        export_events(tmp_path, tmp_path / "events")
