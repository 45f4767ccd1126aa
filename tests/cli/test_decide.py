"""``certcal decide``: one question, answered with few draws."""

import json

import numpy as np
import pytest

from certcal.smoothing import decide, read_decisions
from tests.cli.conftest import with_defaults
from tests.smoothing.drawing import HERE, X, Y, model

QUESTION = {"sigma": 0.5, "radius": 0.25, "budget": 2000, "n0": 20, "seed": 7, "batch": 32}


@pytest.fixture
def deciding(certcal_command, tmp_path):
    """Ask about a small model, with more or other arguments."""
    np.savez(tmp_path / "data.npz", inputs=X, labels=Y)
    named = ["--model", f"{HERE}:linear", "--outputs", "logits", "--data", tmp_path / "data.npz"]
    settings = ["--sigma", 0.5, "-n", 2000, "--n0", 20, "--seed", 7, "--batch", 32]

    def call(*more):
        return certcal_command("decide", *with_defaults(more, [*named, *settings]))

    return call


def test_the_command_decides_what_the_function_decides(deciding, tmp_path):
    path = tmp_path / "decisions.parquet"
    ran = deciding("--radius", 0.25, "--alpha", "0.01", "-o", path)
    assert (ran.code, ran.err) == (0, f"wrote {path}\n")
    expected, written = decide(model(), X, Y, alpha=0.01, **QUESTION), read_decisions(path)
    np.testing.assert_array_equal(written.decision, expected.decision)
    np.testing.assert_array_equal(written.draws, expected.draws)
    assert set(expected.decision) == {"above", "below", "undecided"}
    right = int(np.count_nonzero(expected.certified & expected.correct))
    shown = " ".join(ran.out.split())
    assert f"{right} of {len(expected)} samples are classified correctly" in shown
    for verdict, name in (("above", "R > 0.25"), ("below", "R ≤ 0.25"), ("undecided", "UNDECIDED")):
        chosen = expected.decision == verdict
        assert f"{name} {chosen.sum()} {(chosen & expected.correct).sum()} " in shown
    assert all(each in shown for each in expected.assumptions)
    assert max(map(len, ran.out.splitlines())) <= 80


def test_parts_decide_what_one_process_decides_and_say_which_are_missing(deciding, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ("--radius", 0.25, "--alpha", "0.01", "-o", "decided")
    first = deciding(*asked, "--part", "2/2")
    assert (first.code, first.out) == (0, "")
    assert "decided: part 2 of 2 is done, and part 1 of 2 is missing; give the same command for part 1/2" in first.err
    assert deciding(*asked, "--part", "1/3").code == 2
    other = deciding("--radius", 0.5, "--alpha", "0.01", "-o", "decided", "--part", "1/2")
    assert "it was begun with radius = 0.25, and 0.5 is asked for; give the same, or choose another folder" in other.err
    last = deciding(*asked, "--part", "1/2")
    assert last.code == 0
    expected, written = decide(model(), X, Y, alpha=0.01, **QUESTION), read_decisions("decided")
    for name in ("index", "label", "predicted", "decision", "draws", "votes", "invalid"):
        np.testing.assert_array_equal(getattr(written, name), getattr(expected, name))
    assert deciding(*asked, "--part", "2/2").out == last.out  # from what is there


def test_it_needs_fewer_draws_than_a_run(deciding):
    document = json.loads(deciding("--radius", 0.25, "--json").out)
    assert sum(document["draws"]) < 0.5 * 2000 * len(X)
    assert document["setting"]["alpha"] == 0.001


def test_limit_and_exact_noise_are_heeded(deciding, tmp_path):
    assert len(json.loads(deciding("--radius", 0.25, "--limit", 3, "--json").out)["verdict"]) == 3
    ran = deciding("--radius", 0.25, "--noise", "exact")
    assert (ran.code, ran.out) == (2, "")
    assert "k/255" in ran.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--radius", "-1"), "-1 is not a number of at least 0"),
        (("--radius", "wide"), "'wide' is not a number"),
        (("--radius", "0.5", "--alpha", "2"), "2 is not a probability of failing below 0.5; did you mean 0.02?"),
        (("--radius", "0.5", "--workers", "2"), "there is no option '--workers'"),
        (("--radius", "0.5", "-o", "run"), "choose one of the endings .html, .txt, .json, .csv, .parquet"),
        ((), "--radius R is missing"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(deciding, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = deciding(*options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert not (tmp_path / "run").exists()
