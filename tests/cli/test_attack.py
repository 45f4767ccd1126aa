"""``certcal attack``: confidences moved, every prediction kept, all of it said and kept."""

import errno
import json
import os

import numpy as np
import pytest
import torch
from torch.nn import functional

import certcal
from certcal.attacks import perturb_each
from certcal.data import read_inputs
from certcal.models import load
from certcal.models.networks import MLP, save_weights
from tests.cli.conftest import with_defaults

EPSILON = 16 / 255


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Pictures of two kinds, and a network that has learnt a little about them."""
    folder = tmp_path_factory.mktemp("attack")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    pixels = (40 + 60 * np.eye(3)[labels].repeat(4, axis=1) + rng.normal(0, 40, (90, 12))).clip(0, 255)
    images = pixels.astype(np.uint8).reshape(90, 1, 3, 4)
    np.savez(folder / "both.npz", train_inputs=images[:40], train_labels=labels[:40], test_inputs=images[40:],
             test_labels=labels[40:])  # fmt: skip
    np.savez(folder / "all.npz", inputs=images, labels=labels)
    network = MLP(12, hidden=(16,), classes=3)
    optimiser = torch.optim.Adam(network.parameters(), 0.02)
    inputs, classes = torch.from_numpy(images / np.float32(255)), torch.from_numpy(labels)
    for _ in range(60):
        optimiser.zero_grad()
        functional.cross_entropy(network(inputs), classes).backward()
        optimiser.step()
    save_weights(network.eval(), folder / "net.safetensors")
    return folder


@pytest.fixture
def attack(certcal_command, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    usual = ("--model", place / "net.safetensors", "--data", place / "all.npz", "--steps", 8)
    return lambda *words: certcal_command("attack", *with_defaults(words, usual))


@pytest.fixture
def never(monkeypatch):
    """Attacking would be noticed."""
    monkeypatch.setattr("certcal.attacks.perturb_each", None)


def test_the_table_names_four_attacks_and_the_accuracy_stays(attack):
    ran = attack("--epsilon", "16/255")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines if "-ACE  " in line and ("up " in line or "down " in line)]
    assert [" ".join(row[:2]) for row in rows] == ["(−1, y)-ACE", "(+1, y)-ACE", "(−1, ŷ)-ACE", "(+1, ŷ)-ACE"]
    (clean,) = [line.split() for line in lines if line.startswith("unattacked ") and "." in line]
    assert {row[-1] for row in rows} == {clean[-1]}
    assert max(float(row[-4]) for row in rows) > 2 * float(clean[-4])
    assert ran.out.count("mean confidence") == 2  # without an attack and under the strongest
    assert attack("--epsilon", "16/255", "--no-diagram").out.count("mean confidence") == 0


def test_a_box_beyond_single_precision_has_no_end_there(attack):
    ran = attack("--epsilon", "16/255", "--box", "0,1e308", "--limit", 5, "--steps", 1)
    assert (ran.code, ran.err) == (0, "")


def test_the_json_is_what_the_library_finds(attack, place):
    document = json.loads(attack("--epsilon", "16/255,0.1", "--norm", "l2", "--json").out)
    samples = read_inputs(place / "all.npz")
    found = certcal.attack(load(place / "net.safetensors"), samples, epsilon=[EPSILON, 0.1], norm="l2", steps=8)
    assert [each["epsilon"] for each in document["attacks"]] == [EPSILON] * 4 + [0.1] * 4
    for each, row in zip(document["attacks"], found, strict=True):
        values = {line["name"]: line["value"] for line in each["measurements"]}
        assert values == {line.name: line.value for line in row.measured.rows}
        assert each["labels_changed"] == 0
        assert each["name"] == row.name
    assert document["conventions"]["box"] == [0.0, 1.0]


def test_saved_predictions_measure_as_the_table_says_and_saved_inputs_are_within_epsilon(
    attack, certcal_command, place
):
    arguments = ("--epsilon", "16/255", "--attacks", "plus-true,one-step", "--save", "kept", "--save-inputs")
    ran = attack(*arguments, "--json")
    assert ran.code == 0
    assert "wrote kept/plus-true-16-255.parquet" in ran.err
    document = json.loads(ran.out)
    files = {"clean": document["clean"]} | {f"{each['attack']}-16-255": each for each in document["attacks"]}
    for name, each in files.items():
        again = json.loads(certcal_command("measure", f"kept/{name}.parquet", "--metric", "ece", "--json").out)
        assert again["measurements"][0]["value"] == next(
            line["value"] for line in each["measurements"] if line["name"] == "ece"
        )
    clean, moved = read_inputs(place / "all.npz"), read_inputs("kept/plus-true-16-255")
    change = np.abs(moved.inputs.astype(np.float64) - clean.inputs)
    assert 0 < change.max() <= EPSILON
    model = load(place / "net.safetensors")
    assert (model(moved.inputs).argmax(1) == model(clean.inputs).argmax(1)).all()


def test_saved_files_are_not_overwritten_and_that_is_said_before_anything_is_attacked(attack, tmp_path, never):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "plus-true-16-255.parquet").write_text("mine")
    ran = attack("--epsilon", "16/255", "--save", "kept")
    assert ran.code == 2
    assert "kept/plus-true-16-255.parquet exists and is not overwritten" in ran.err
    assert (tmp_path / "kept" / "plus-true-16-255.parquet").read_text() == "mine"


@pytest.mark.parametrize("option", ["--save", "-o"])
def test_nothing_is_written_into_data_that_is_read(attack, tmp_path, never, option):
    (tmp_path / "images").mkdir()
    ran = attack("--epsilon", "0.5", "--data", "images", option, "images/found.json")
    assert ran.code == 2
    assert f"{option} images/found.json: this is inside images, which is read; choose another folder" in ran.err
    assert list((tmp_path / "images").iterdir()) == []


def test_the_smoothed_classifier_is_attacked_with_noise_that_stays(attack):
    arguments = ("--epsilon", "0.2", "--norm", "l2", "--sigma", "0.1", "--draws", "4", "--seed", "3")
    document, again = (json.loads(attack(*arguments, "--json").out) for _ in range(2))
    assert document["provenance"].pop("created") <= again["provenance"].pop("created")
    assert document == again
    assert (document["conventions"]["sigma"], document["conventions"]["draws"]) == (0.1, 4)
    assert "smoothed, σ = 0.1, 4 draws" in attack(*arguments, "--attacks", "plus-true").out


def test_of_data_in_two_parts_the_one_to_test_on_is_attacked_unless_told_otherwise(certcal_command, place):
    def samples(*more):
        ran = certcal_command(
            *("attack", "--model", place / "net.safetensors", "--data", place / "both.npz", "--epsilon", "0.01"),
            *("--attacks", "one-step", "--json", *more),
        )
        document = json.loads(ran.out)
        return document["n"], document["split"]

    assert samples() == (50, "test")
    assert samples("--split", "train") == (40, "train")
    assert samples("--limit", "7") == (7, "test")


def test_training_data_and_a_single_sample_are_called_what_they_are(attack, place):
    ran = attack("--data", place / "both.npz", "--split", "train", "--epsilon", "8 / 255", "--limit", "1")
    assert ran.code == 0
    assert "1 training sample of shape" in ran.out
    assert "On this sample the AdaECE is" in " ".join(ran.out.split())
    assert "ε = 8/255 (ℓ∞)" in ran.out


def test_the_folder_of_a_training_is_refused_with_the_name_of_its_model(attack, tmp_path, never):
    (tmp_path / "trained").mkdir()
    for name, remedy in (
        ("weights", "the network as module:name, with the weights trained/weights.safetensors"),
        ("model", "the model in it, trained/model.safetensors"),
    ):
        (tmp_path / "trained" / f"{name}.safetensors").write_bytes(b"")
        ran = attack("--epsilon", "0.5", "--model", "trained")
        assert ran.code == 2
        assert f"--model: trained: this is a folder; give {remedy}" in ran.err


def test_numbers_that_cannot_be_saved_are_printed_all_the_same_and_no_file_is_there(attack, monkeypatch, tmp_path):
    real, flushed = os.fsync, []

    def full(descriptor):
        flushed.append(descriptor)
        if len(flushed) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    files = ("-o", "x.json", "-o", "x.html", "-o", "x.csv")
    ran = attack("--epsilon", "16/255", "--attacks", "one-step", "--json", *files)
    assert ran.code == 2
    assert "x.csv: cannot be written (No space left on device); none of the 3 files was written" in ran.err
    assert json.loads(ran.out)["attacks"][0]["attack"] == "one-step"
    assert list(tmp_path.iterdir()) == []


def test_a_part_says_which_others_are_missing_and_the_last_has_the_result(attack):
    arguments = ("--epsilon", "16/255", "--attacks", "one-step", "--save", "found", "--batch", "45")
    first = attack(*arguments, "--part", "2/2")
    assert (first.code, first.out) == (0, "")
    assert "part 2 of 2 is done, and part 1 of 2 is missing; give the same command for part 1/2" in first.err
    last = attack(*arguments, "--part", "1/2")
    assert last.code == 0
    assert "wrote found/one-step-16-255.parquet" in last.err
    assert attack(*arguments, "--part", "1/2", "--steps", "7").code == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--epsilon", "0"), "--epsilon: '0' is not a distance above 0, such as 0.5 or 8/255"),
        (("--epsilon", "8/0"), "--epsilon: '8/0' is not a distance above 0, such as 0.5 or 8/255"),
        ((), "--epsilon E[,E...] is missing"),
        (("--epsilon", "0.5", "--attacks", "plus-tru"), "--attacks: there is no 'plus-tru'; did you mean 'plus-true'?"),
        (("--epsilon", "0.5", "--box", "1,0"), "--box: '1,0' is no box; give the smallest and the largest value"),
        (("--epsilon", "0.5", "--save-inputs"), "say with --save where it goes"),
        (("--epsilon", "0.5", "--draws", "3"), "--draws: it is for the smoothed classifier; give sigma as well"),
        (("--epsilon", "0.5", "--limit", "999"), "--limit: it is 999, but "),
        (("--epsilon", "0.5", "--data", "nowhere.npz"), "nowhere.npz"),
        (("--epsilon", "0.5", "--box", "0.5,1"), ", outside of 0.5 to 1; give the smallest and the largest "),
        (("--epsilon", "0.5", "--model", "operator:neg", "--outputs", "logits"), "gives no gradients"),
        (("--epsilon", "0.5", "--model", "operator:neg"), "--outputs: it is needed for "),
        (("--epsilon", "0.5", "-o", "x.doc"), "choose one of the endings .html, .txt, .png, .svg, .pdf, .json, .csv"),
        (("--epsilon", "0.5", "--split", "train"), " has no training and test parts; leave it out"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(attack, tmp_path, arguments, complaint):
    ran = attack(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err
    assert "Traceback" not in ran.err
    assert list(tmp_path.iterdir()) == []


def test_without_torch_the_command_says_how_to_get_it(attack, monkeypatch):
    monkeypatch.setattr("certcal.cli.sources.find_spec", lambda name: None)
    ran = attack("--epsilon", "0.5")
    assert ran.code == 2
    assert "attacks need torch; run: pip install 'certcal[torch]'" in ran.err


def test_threads_are_handed_on_and_are_one_by_default(attack, monkeypatch):
    seen = []

    def note(*arguments, threads, **options):
        seen.append(threads)
        return perturb_each(*arguments, threads=threads, **options)

    monkeypatch.setattr("certcal.attacks.perturb_each", note)
    for more in ((), ("--threads", 2)):
        assert attack("--epsilon", "0.1", "--attacks", "one-step", *more).code == 0
    assert seen == [1, 2]
    assert attack("--epsilon", "0.1", "--threads", 0).code == 2
