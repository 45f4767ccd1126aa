"""``certcal sample --until-certified``: draws until a requirement is certified; the exit code says whether it is."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.smoothing.drawing import HERE, X
from tests.smoothing.models_for_tests import linear


@pytest.fixture
def until(certcal_command, tmp_path):
    """Ask about a small model, with more or other arguments."""
    inputs = (4 * X).astype(np.float32)
    np.savez(tmp_path / "data.npz", inputs=inputs, labels=linear(inputs).argmax(axis=1))
    named = ["--model", f"{HERE}:linear", "--outputs", "logits", "--data", tmp_path / "data.npz"]
    settings = ["--sigma", 0.5, "-n", 1000, "--n0", 20, "--seed", 7, "--batch", 200]

    def call(*more):
        return certcal_command("sample", *named, *settings, *more)

    return call


def test_a_requirement_that_holds_is_exit_code_0_and_says_what_a_fixed_design_takes(until, tmp_path):
    path = tmp_path / "found.json"
    ran = until("--until-certified", "ece <= 0.6", "--radius", 0.1, "-o", path)
    assert (ran.code, ran.err) == (0, f"wrote {path}\n")
    shown, document = " ".join(ran.out.split()), json.loads(path.read_text())
    assert "PASS ece: the certified upper bound at radius 0.1 is" in shown
    assert "A fixed design needs about" in shown
    assert max(map(len, ran.out.splitlines())) <= 80
    assert (document["schema"], document["outcome"]) == ("certcal/sampled-until/1", "holds")
    assert sum(document["draws"]) == document["total_draws"] <= 1000 * len(X)
    assert document["verdict"][0]["passed"]
    assert all(len(document["setting"][f"{what}_fingerprint"]) == 64 for what in ("model", "data"))


def test_one_that_cannot_hold_is_exit_code_1_with_a_proof_and_a_page(until, tmp_path):
    page = tmp_path / "found.html"
    ran = until("--until-certified", "ece <= 0.001", "--radius", 0.3, "--samples", "all", "--json", "-o", page)
    document = json.loads(ran.out)
    assert ran.code == 1
    assert document["outcome"] == "cannot"
    assert document["reach"] > 0.001
    assert "cannot be met" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--until-certified", "ece <= 0.2"], "say both"),
        (["--radius", 0.5, "-o", "run"], "say both"),
        (["--bins", 10, "-o", "run"], "--bins is for --until-certified"),
        (["--until-certified", "ece <= 0.2", "--radius", 0.5, "--decide-radius", 0.5], "two questions"),
        (["--until-certified", "ece <= 0.2", "--radius", 0.5, "--workers", 2], "--workers is for runs"),
        (["--until-certified", "accuracy >= 0.2", "--radius", 0.5], "no upper limit of the calibration error"),
        (["--until-certified", "ece ! 0.2", "--radius", 0.5], "relations are"),
        (["--until-certified", "ece <= 0.2", "--radius", 0.5, "-o", "found.parquet"], "endings"),
    ],
)
def test_what_does_not_fit_together_is_one_sentence_and_exit_code_2(until, arguments, said):
    ran = until(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in " ".join(ran.err.split())
