"""The workflow on docs/reports.md is valid and its commands run; its tests pass, or fail as they should."""

import shlex

import numpy as np
import pytest
import yaml

from certcal.cli import cli
from certcal.cli.errors import run
from tests.test_docs import ROOT, blocks

PAGE = blocks((ROOT / "docs" / "reports.md").read_text("utf-8"))


def predictions(path, power):
    rng = np.random.default_rng(3)
    score = rng.beta(2, 4, 6_000)
    outcome, segment = rng.random(6_000) < score**power, rng.choice(["new", "returning"], 6_000)
    rows = [f"{s},{int(y)},{g}" for s, y, g in zip(score, outcome, segment, strict=True)]
    path.write_text("\n".join(["score,outcome,segment", *rows]) + "\n")


@pytest.mark.parametrize(("power", "code"), [(1.0, 0), (2.0, 1)])
def test_the_workflow_passes_for_calibrated_predictions_only(tmp_path, monkeypatch, capsys, power, code):
    (workflow,) = [yaml.safe_load(block.text) for block in PAGE if block.kind == "yaml"]
    steps = workflow["jobs"]["calibration"]["steps"]
    monkeypatch.chdir(tmp_path)
    predictions(tmp_path / "predictions.csv", power)
    lines = [step["run"] for step in steps if step.get("run", "").startswith("certcal ")]
    assert [run(cli, shlex.split(line)[1:]) for line in lines] == [code]
    assert ("1 not met" in capsys.readouterr().out) == bool(code)
    (kept,) = [step["with"]["path"] for step in steps if "upload-artifact" in step.get("uses", "")]
    assert (tmp_path / kept).exists()


@pytest.mark.parametrize(("power", "fails"), [(1.0, []), (2.0, ["test_the_model_is_calibrated"])])
def test_the_tests_pass_for_calibrated_predictions_only(tmp_path, monkeypatch, power, fails):
    (tests,) = [block.text for block in PAGE if "def test_" in block.text]
    monkeypatch.chdir(tmp_path)
    predictions(tmp_path / "predictions.csv", power)
    names, failed = {}, []
    exec(tests, names)
    for name in [name for name in names if name.startswith("test_")]:
        try:
            names[name]()
        except AssertionError:
            failed.append(name)
    assert failed[: len(fails)] == fails
    assert bool(failed) == bool(fails)
    verdict = names["certcal"].bound("predictions.csv").verdict("ece <= 0.05")
    assert verdict.outcome == ("not met" if fails else "met")
