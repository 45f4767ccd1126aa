"""``certcal study review``: answers shown, printed as JSON and written to files; ``certcal report`` writes the page."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from certcal.lab.study import StudyTable
from tests.cli.conftest import flat

MODELS = 40
FAST = ("--resamples", 20)


def table() -> StudyTable:
    rng = np.random.default_rng(5)
    skill, error = rng.random(MODELS), rng.uniform(0.01, 0.1, MODELS)
    columns = {
        "model": [f"net {k}" for k in range(MODELS)] * 2,
        "data": ["digits"] * MODELS + ["fashion"] * MODELS,
        "accuracy": np.tile(0.5 + 0.4 * skill, 2) + rng.normal(0, 0.01, 2 * MODELS),
        "params": np.tile(np.arange(MODELS) * 100.0, 2),
        "fgsm": np.tile(0.3 * skill, 2) + rng.normal(0, 0.02, 2 * MODELS),
        "edge": ["skip", "conv"] * MODELS,
        "status": ["failed", *["ok"] * (2 * MODELS - 1)],
        "reason": ["no labels", *[""] * (2 * MODELS - 1)],
    }
    for stage, size in (("pre", 1.0), ("post", 0.4)):
        for bins in (5, 15, 100):
            noise = rng.normal(0, 0.004, 2 * MODELS)
            columns[f"{stage}_ece_{bins}"] = np.abs(size * np.tile(error, 2) * (1 + bins / 100) + noise)
        for metric in ("ks_error", "mmce"):
            columns[f"{stage}_{metric}"] = np.abs(size * np.tile(error, 2) + rng.normal(0, 0.004, 2 * MODELS))
    return StudyTable.of(columns)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.parquet"
    table().write(path)
    return path


def test_options_reach_the_review(certcal_command, study):
    options = ("--metric", "ks_error", "--bins", 5, "--split", "test", "--top", "20,10", "--top", 30, "--beta", 2)
    more = ("--level", "0.9", "--seed", 3, "--size", "params,accuracy", "--architecture", "edge")
    ran = certcal_command("study", "review", study, *FAST, *options, *more, "--json")
    assert ran.code == 0
    settings = json.loads(ran.out)["settings"]
    expected = {"metric": "ks_error", "bins": 5, "tops": [10, 20, 30], "hcs_beta": 2.0, "level": 0.9, "seed": 3}
    assert expected.items() <= settings.items()
    assert (settings["sizes"], settings["architecture"]) == (["params", "accuracy"], ["edge"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "TABLE is missing"),
        (("none.parquet",), "there is no such file"),
        (("FOLDER",), "this is a folder; measure its predictions first, with certcal study measure"),
        (("CSV",), "this is not the table of a study"),
        (("TABLE", "--metric", "sharpness"), "sharpness"),
        (("TABLE", "--bins", "7"), "7"),
        (("TABLE", "--bins", "5,15"), "--bins: '5,15' is not a whole number"),
        (("TABLE", "--split", "train"), "--split: there is no 'train'"),
        (("TABLE", "--size", "depth"), "depth"),
        (("TABLE", "--robustness", "fgsm,,pgd"), "a name is empty"),
        (("TABLE", "--robustness", "none"), "--robustness: the table has no column 'none'"),
        (("TABLE", "--top", "1"), "--top: 1 is not"),
        (("TABLE", "--resamples", "5"), "--resamples: 5 is not"),
        (("TABLE", "--level", "95"), "--level"),
        (("TABLE", "--beta", "0"), "--beta"),
        (("TABLE", "-o", "study.png"), "choose one of the endings .html, .txt, .json, .csv"),
    ],
)
def test_bad_input_leaves_with_a_sentence(certcal_command, study, tmp_path, arguments, text):
    plain = tmp_path / "study.csv"
    plain.write_text("model,pre_ece_15\na,0.1\n")
    given = {"TABLE": study, "FOLDER": tmp_path, "CSV": plain}
    ran = certcal_command("study", "review", *(given.get(argument, argument) for argument in arguments))
    assert ran.code == 2
    assert text in flat(ran.err)
    assert "Traceback" not in ran.err
    assert ran.out == ""


def test_hostile_names_do_not_reach_the_terminal(certcal_command, tmp_path):
    path, page = tmp_path / "nasty.parquet", tmp_path / "page.html"
    data = np.array(["\x1b[31m<b>red</b>", "fashion"], object).repeat(MODELS)
    StudyTable.of({**table().columns, "data": data}).write(path)
    ran = certcal_command("study", "review", path, *FAST, "-o", page)
    assert ran.code == 0
    assert "\\x1b[31m<b>red</b>" in ran.out
    assert "\x1b" not in ran.out + page.read_text()
    assert "<b>red" not in page.read_text()


@pytest.mark.parametrize("width", [60, 120])
def test_no_line_is_wider_than_the_terminal(certcal_command, study, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    ran = certcal_command("study", "review", study, *FAST)
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= width


def test_report_knows_the_table_of_a_study(certcal_command, study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = certcal_command("report", study, "--resamples", 20)
    assert (ran.code, ran.err) == (0, "wrote study.html\n")
    assert "taken as a table of a study: 40 models on 2 data sets" in flat(ran.out)
    assert "7 questions of the benchmark study" in flat(ran.out)
    assert 'id="section-1-data-sets"' in (tmp_path / "study.html").read_text()
    for options, text in (
        (("--resamples", 10), "--resamples: 10 is not"),
        (("--bins", "5,15"), "--bins: '5,15' is not a whole number"),
        (("--radius", "0.5"), "--radius is for"),
        (("--weight", "params"), "--weight is for a table of predictions"),
    ):
        refused = certcal_command("report", study, "-o", tmp_path / "other.html", *options)
        assert refused.code == 2
        assert text in refused.err


def test_recalibrate_refuses_the_table_of_a_study(certcal_command, study):
    ran = certcal_command("recalibrate", "fit", study)
    assert ran.code == 2
    assert "the table of a study holds no confidences" in ran.err


def test_report_hands_on_options_whose_names_other_commands_use_otherwise(certcal_command, study, tmp_path):
    options = ("--dataset", "fashion", "--metric", "ks_error", *FAST, "--json")
    ran = certcal_command("report", study, *options, "-o", tmp_path / "page.html")
    assert ran.code == 0
    document = json.loads(ran.out)
    assert document["datasets"] == ["fashion"]
    assert document["settings"]["metric"] == "ks_error"


@pytest.mark.parametrize("command", [("study", "review"), ("report",)])
def test_a_table_without_calibration_errors_says_that_there_are_none(certcal_command, tmp_path, command):
    columns = {"model": ["a", "b"], "accuracy": [0.9, 0.8]}
    StudyTable.of(columns).write(tmp_path / "accuracies.parquet")
    ran = certcal_command(*command, tmp_path / "accuracies.parquet")
    assert (ran.code, ran.out) == (2, "")
    assert "it has no calibration errors before temperature scaling at all: measure the models first" in flat(ran.err)


@pytest.mark.parametrize("column", ["accuracy", "pre_ece_15", "n", "auroc_far"])
def test_text_in_a_column_of_numbers_is_one_sentence(certcal_command, tmp_path, column):
    path = tmp_path / "text.parquet"
    texts = {"model": ["a", "b"], "accuracy": [0.5, 0.6], "pre_ece_15": [0.1, 0.2]} | {column: [None, "high"]}
    parquet.write_table(pa.table(texts), path)
    ran = certcal_command("study", "review", path)
    assert (ran.code, ran.out) == (2, "")
    wrong = f"column {column!r} holds text in row 1 ('high'); it must hold numbers: repair or drop it"
    assert ran.err == f"certcal: error: {path}: {wrong}\n"
