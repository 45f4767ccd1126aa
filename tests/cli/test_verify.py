"""``certcal verify``: options make the box, intervals are written, mistakes are one sentence."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost


@pytest.fixture(scope="module")
def files(tmp_path_factory: Any) -> Path:
    folder, rng = tmp_path_factory.mktemp("verify"), np.random.default_rng(3)
    x = np.column_stack([rng.normal(2000, 500, 300), rng.integers(18, 70, 300), rng.integers(0, 3, 300)]).round(1)
    y = (x[:, 0] + rng.normal(0, 300, 300) > 2000).astype(int)
    model = xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(x, y)
    model.save_model(folder / "model.json")
    rows = [f"{','.join(map(str, row))},{label}" for row, label in zip(x.tolist(), y, strict=True)]
    (folder / "loans.csv").write_text("\n".join(["income,age,region,label", *rows]) + "\n")
    return folder


def test_the_command_writes_intervals_that_certify_reads(files: Path, tmp_path: Path, certcal_command: Any) -> None:
    told = ["--model", files / "model.json", "--data", files / "loans.csv"]
    box = ["--change", "income=+5%", "--change", "age=1", "--integer", "age", "--limits", "age=18:"]
    done = certcal_command("verify", *told, *box, "--at-once", 1, "-o", tmp_path / "intervals.parquet", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["box"]["at_most"] == 1
    assert found["results"][0]["n"] == 300
    origin = found["provenance"]
    assert "xgboost" in origin["versions"]
    assert [Path(each["name"]).name for each in origin["inputs"]] == ["model.json", "loans.csv"]
    conditions = ["age stays a whole number", "age stays at least 18"]
    assert found["assumptions"][1:] == conditions
    again = certcal_command("certify", tmp_path / "intervals.parquet")
    assert again.code == 0
    said = " ".join(again.out.split())
    assert f"age ±1, income +5 %; at most 1 feature at a time; {'; '.join(conditions)}" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--change", "incom=5"], "--change: there is no feature 'incom'; did you mean 'income'"),
        (["--label", "nothing"], "nothing"),
        (["--norm", "l2"], "l2"),
        (["--change", "region=0|1"], "not among its values"),
        (["--split", "test"], "--split"),
        (["--at-once", "0"], "--at-once: 0 is not a whole number from 1"),
        (["--limits", "age=80:18"], "--limits: age: the smallest value, 80, is above the largest, 18; give the smalle"),
        (["--fixed", "agee"], "--fixed: there is no feature 'agee'; did you mean 'age'"),
    ],
)
def test_mistakes_end_with_one_sentence(options: list[str], said: str, files: Path, certcal_command: Any) -> None:
    done = certcal_command("verify", "--model", files / "model.json", "--data", files / "loans.csv", *options)
    assert done.code == 2
    assert re.search(said, done.err), done.err
    assert "Traceback" not in done.err


def test_a_file_of_trees_that_was_cut_is_a_sentence(files: Path, tmp_path: Path, certcal_command: Any) -> None:
    whole = (files / "model.json").read_bytes()
    (tmp_path / "model.json").write_bytes(whole[: len(whole) // 2])
    done = certcal_command("verify", "--model", tmp_path / "model.json", "--data", files / "loans.csv")
    assert done.code == 2
    assert "this is not what xgboost saves, or it is damaged" in " ".join(done.err.split())
