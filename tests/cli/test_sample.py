"""``certcal sample`` and ``certcal runs show``: drawing from the command line, and looking at what was drawn."""

import json
import os
import shlex
import subprocess
import sys
import warnings

import numpy as np
import pytest
from PIL import Image

from certcal._base.checks import LogitsWarning
from certcal.smoothing import open_run
from certcal.smoothing._manifest import checksum
from tests.cli.conftest import with_defaults
from tests.smoothing.drawing import HERE, ROOT, X, Y, assert_same_counts, draw

SETTINGS = ["--sigma", "0.5", "-n", "400", "--n0", "20", "--seed", "7", "--batch", "32"]


@pytest.fixture
def data(tmp_path):
    np.savez(tmp_path / "data.npz", inputs=X, labels=Y)
    return tmp_path / "data.npz"


@pytest.fixture
def sampled(certcal_command, data, tmp_path):
    """Draw a small run into a folder of that name, with more or other arguments."""

    def call(name, *more, model="linear"):
        named = ["--model", f"{HERE}:{model}", "--outputs", "logits", "--data", data]
        return certcal_command("sample", *with_defaults(more, [*named, *SETTINGS, "-o", tmp_path / name]))

    return call


def test_the_command_draws_what_the_function_draws(sampled, tmp_path):
    ran = sampled("run")
    assert (ran.code, ran.err) == (0, "")
    assert_same_counts(open_run(tmp_path / "run"), draw(tmp_path / "same"))


def test_a_softmax_that_is_called_logits_gets_a_warning_and_a_line_wherever_the_run_is_shown(
    sampled, certcal_command, tmp_path
):
    with warnings.catch_warnings():
        warnings.simplefilter("default", LogitsWarning)  # as in an ordinary process
        ran = sampled("run", model="probabilities")
    assert ran.code == 0
    assert f"certcal: all outputs of {HERE}:probabilities (Python callable) that were tried lie in [0, 1]" in ran.err
    assert "another softmax is taken; if they are, declare outputs as probabilities" in " ".join(ran.err.split())
    for command in (["runs", "show", tmp_path / "run"], ["certify", tmp_path / "run", "--radius", "0.1"]):
        shown = json.loads(certcal_command(*command, "--json").out)
        said = "assumed: what is read as logits are logits, although every row lies in"
        assert said in json.dumps(shown)
        assert said in " ".join(certcal_command(*command).out.split())
    assert sampled("fine", "--outputs", "probabilities", model="probabilities").err == ""


def test_what_was_drawn_is_shown(sampled, tmp_path):
    out = " ".join(sampled("run").out.split())
    for words in (
        "24 samples of shape 4, 3 classes",
        "noise Gaussian, sigma 0.5, seed 7",
        "noise samples per input 20 for class selection, 400 for estimation",
        f"{HERE}:linear (Python callable), logits, fingerprint",
        "data.npz",
        "All 10,080 of 10,080 noise samples are there",
        "of samples, at alpha 0.001",
        "invalid outputs 0",
    ):
        assert words in out
    correct = np.mean(open_run(tmp_path / "run").counts().predicted == Y)
    assert f"correct {correct:.1%} of samples" in out


def test_answers_that_are_no_predictions_are_reported_with_what_may_be_behind_them(sampled, tmp_path):
    out = " ".join(sampled("gaps", model="not_a_number").out.split())
    invalid = int(open_run(tmp_path / "gaps").counts().invalid.sum())
    share = invalid / (400 * len(Y))
    assert 0 < share < 1
    assert (
        f"invalid outputs {invalid:,}, {share:.1%} of the noise samples, counted against the class: NaN or infinite"
        in out
    )
    out = " ".join(sampled("sums", "--outputs", "probabilities", model="too_sure").out.split())
    assert (
        "of the noise samples, counted against the class: NaN, below 0, or not adding up to 1; are they logits?" in out
    )


def test_a_model_whose_every_answer_is_invalid_is_refused_before_anything_is_drawn(sampled, tmp_path):
    ran = sampled("mistaken", "--outputs", "probabilities")
    assert (ran.code, ran.out) == (2, "")
    assert "all 8 outputs that were tried are invalid" in ran.err
    assert "declare outputs as logits if that is what they are" in ran.err
    assert not (tmp_path / "mistaken").exists()


def test_the_overview_counts_what_the_votes_say(sampled, tmp_path):
    from scipy.stats import binom

    seen = json.loads(sampled("run", "--json").out)["overview"]
    counts = open_run(tmp_path / "run").counts()
    assert seen["correct"] == np.mean(counts.predicted == Y)
    assert seen["abstained"] == np.mean(binom.sf(counts.votes - 1, 400, 0.5) > 0.001 / 4 / (2 * len(Y)))
    assert seen["invalid"] == 0


def test_the_same_command_says_that_it_is_finished(sampled):
    first, again = sampled("run"), sampled("run")
    assert again.code == 0
    assert again.out == first.out


def test_more_draws_and_more_samples_are_added(sampled, tmp_path):
    assert sampled("run", "--limit", 10).code == 0
    assert sampled("run", "-n", 900).code == 0
    manifest = open_run(tmp_path / "run").manifest
    assert [tuple(size) for size in manifest.sizes] == [(10, 400), (24, 900)]
    assert open_run(tmp_path / "run").state().complete


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--sigma", "0.25"], "the run was drawn with sigma = 0.5, and 0.25 is asked for"),
        (["--limit", "3"], "the run is for 24 samples, and 3 are given"),
        (["--noise", "exact"], "the run was drawn with noise = gaussian, and exact is asked for"),
        (["--limit", "25"], "--limit: it is 25, but "),
        (["--sigma", "0"], "--sigma: 0 is not a number above 0"),
        (["-n", "many"], "many"),
        (["--model", "nothing.onnx"], "nothing.onnx: there is no such file"),
        (["--data", "nothing.npz"], "nothing.npz: there is no such file"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_exit_code_two(sampled, more, sentence):
    sampled("run")
    ran = sampled("run", *more)
    assert ran.code == 2
    assert ran.out == ""
    assert sentence in ran.err
    assert "Traceback" not in ran.err


def test_a_run_does_not_go_into_a_folder_of_data_that_is_read(sampled, tmp_path):
    (tmp_path / "images").mkdir()
    ran = sampled("images/run", "--data", tmp_path / "images")
    assert ran.code == 2
    assert "images/run: this is inside" in ran.err
    assert list((tmp_path / "images").iterdir()) == []


def test_exact_noise_is_said(certcal_command, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 4)).astype(np.uint8)
    np.savez(tmp_path / "pixels.npz", inputs=pixels, labels=Y[:5])
    named = ["--model", f"{HERE}:linear", "--outputs", "logits", "--data", tmp_path / "pixels.npz", "--noise", "exact"]
    ran = certcal_command("sample", *named, *SETTINGS, "-o", tmp_path / "run")
    assert ran.code == 0
    assert "exact, for inputs on k/255, sigma 0.5" in " ".join(ran.out.split())


def test_an_interrupt_before_the_first_draw_promises_nothing(data, tmp_path, certcal_command, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("certcal.smoothing.sample", interrupt)
    named = ["--model", f"{HERE}:linear", "--outputs", "logits", "--data", data]
    ran = certcal_command("sample", *named, *SETTINGS, "-o", tmp_path / "run")
    assert (ran.code, ran.err) == (130, "certcal: interrupted; nothing was drawn\n")


def test_an_interrupt_says_how_to_resume_and_the_command_shown_does_it(data, tmp_path, certcal_command, monkeypatch):
    calls = tmp_path / "calls"
    calls.write_text("60")
    environment = {**os.environ, "CERTCAL_TEST_CALLS": str(calls), "PYTHONPATH": str(ROOT)}
    named = ["--model", f"{HERE}:interrupted", "--outputs", "logits", "--data", str(data)]
    command = with_defaults(["-n", "30000", "--limit", "9", "-o", str(tmp_path / "run")], [*named, *SETTINGS])
    ran = subprocess.run(
        [sys.executable, "-m", "certcal", "sample", *command], capture_output=True, text=True, env=environment
    )
    assert ran.returncode == 130
    assert (
        ran.stderr == f"certcal: interrupted; what was drawn is kept in {tmp_path / 'run'}, the same command resumes\n"
    )
    shown = certcal_command("runs", "show", tmp_path / "run")
    assert shown.code == 0
    resume = shown.out.splitlines()[-1].strip()
    assert resume.startswith("certcal sample --model=")
    calls.write_text("1000000")
    monkeypatch.setenv("CERTCAL_TEST_CALLS", str(calls))
    again = certcal_command(*shlex.split(resume)[1:])
    assert (again.code, again.err) == (0, "")
    assert open_run(tmp_path / "run").state().complete


def test_a_damaged_shard_is_shown_with_the_command_that_draws_it_again(sampled, certcal_command, tmp_path):
    sampled("run")
    run = open_run(tmp_path / "run")
    unit = run.manifest.units()[-1]
    (run.path / unit.name).write_bytes(b"")
    ran = certcal_command("runs", "show", run.path)
    assert ran.code == 0
    assert f"Damaged: {unit.name}: it cannot be read" in " ".join(ran.out.split())
    assert "What is missing is sampled by" in ran.out
    seen = json.loads(certcal_command("runs", "show", run.path, "--json").out)
    assert seen["complete"] is False
    assert seen["damaged_shards"][0]["shard"] == unit.name
    assert seen["resume"].startswith("certcal sample --model=")
    assert "set aside" in sampled("run").out
    assert json.loads(certcal_command("runs", "show", run.path, "--json").out)["complete"] is True


def test_a_run_of_objects_is_resumed_from_python(certcal_command, tmp_path):
    from certcal.models import wrap
    from tests.smoothing.models_for_tests import linear

    run = draw(tmp_path / "run", model=wrap(linear, outputs="logits"))
    (run.path / run.manifest.units()[0].name).unlink()
    ran = certcal_command("runs", "show", run.path)
    assert "certcal.sample, called again with the same model and data" in ran.out
    assert json.loads(certcal_command("runs", "show", run.path, "--json").out)["resume"] is None


def test_a_manifest_cannot_smuggle_a_command_into_the_one_that_is_shown(sampled, certcal_command, tmp_path):
    sampled("run")
    path = tmp_path / "run" / "manifest.json"
    fields = json.loads(path.read_text())
    fields["data"]["source"] = "x; rm -rf ~ \x1b[31m"
    fields["model"]["source"] = "--json"
    del fields["checksum"]
    path.write_text(json.dumps(fields | {"checksum": checksum(fields)}))
    for shard in (tmp_path / "run").glob("*/*.parquet"):
        shard.unlink()
    words = shlex.split(json.loads(certcal_command("runs", "show", tmp_path / "run", "--json").out)["resume"])
    assert words[2:3] == ["--model=--json"]
    assert "--data=x; rm -rf ~ \x1b[31m" in words
    assert "\x1b" not in certcal_command("runs", "show", tmp_path / "run").out


@pytest.mark.parametrize("command", [["runs", "show", "nowhere"], ["runs", "show", "nowhere", "--json"]])
def test_a_folder_without_a_run_is_a_sentence(certcal_command, command):
    ran = certcal_command(*command)
    assert ran.code == 2
    assert ran.err == "certcal: error: nowhere: there is no such run; check the path\n"


def test_an_unknown_command_about_runs_is_answered_with_those_there_are(certcal_command):
    ran = certcal_command("runs", "shwo")
    assert ran.code == 2
    assert "did you mean 'show'?" in ran.err


def test_every_and_a_data_set_by_name_are_options_and_the_command_that_resumes_has_them(certcal_command, tmp_path):
    named = ["--model", f"{HERE}:linear", "--outputs", "logits", "--data", "tests.smoothing.test_lazy_inputs:Dataset"]
    command = ["sample", *named, *SETTINGS, "--every", "5", "--limit", "4", "-o", tmp_path / "run"]
    assert certcal_command(*command).code == 0
    run = open_run(tmp_path / "run")
    assert run.counts().index.tolist() == [0, 5, 10, 15]
    assert_same_counts(run, draw(tmp_path / "same", inputs=X[:20:5], labels=Y[:20:5], unit=None))
    next((tmp_path / "run" / "counting").iterdir()).unlink()
    resume = json.loads(certcal_command("runs", "show", tmp_path / "run", "--json").out)["resume"]
    assert "--every 5 --limit 4" in resume
    assert certcal_command(*shlex.split(resume)[1:]).code == 0
    assert run.state().complete


def test_images_of_several_sizes_say_which_options_help(certcal_command, tmp_path):
    for name, size in (("a", (9, 8)), ("b", (8, 12))):
        (tmp_path / "photos" / name).mkdir(parents=True)
        Image.new("RGB", size).save(tmp_path / "photos" / name / "0.png")
    command = [
        "sample",
        "--model",
        f"{HERE}:first_two",
        "--outputs",
        "logits",
        "--data",
        tmp_path / "photos",
        *SETTINGS,
    ]
    refused = certcal_command(*command, "-o", tmp_path / "run")
    assert refused.code == 2
    assert "make all images alike, or set --resize and --crop, such as 256 and 224\n" in refused.err
    assert "--crop: it is 9" in certcal_command(*command, "--resize", 8, "--crop", 9, "-o", tmp_path / "run").err
    assert not (tmp_path / "run").exists()
    assert certcal_command(*command, "--resize", 8, "--crop", 6, "-o", tmp_path / "run").code == 0
    assert open_run(tmp_path / "run").manifest.data.shape == (3, 6, 6)
    shown = certcal_command("certify", tmp_path / "run", "--data", tmp_path / "photos", "-o", tmp_path / "page.html")
    assert (shown.code, (tmp_path / "page.html").exists()) == (0, True)
