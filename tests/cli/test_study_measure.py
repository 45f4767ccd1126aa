"""``certcal study measure``: many models into one table from the command line."""

import json
import shlex

import pytest

from certcal.lab.study import StudyTable, measure
from tests.cli.conftest import with_defaults
from tests.study.zoo import save, zoo

BINS = ["--bins", "5,15"]


@pytest.fixture
def measured(certcal_command, tmp_path):
    """Measure a small zoo into study.parquet, with more or other arguments."""
    zoo(tmp_path / "zoo")

    def call(*more, source="zoo"):
        options = with_defaults(more, ["-o", tmp_path / "study.parquet"])
        return certcal_command("study", "measure", tmp_path / source, *BINS, *options)

    return call


def test_the_command_writes_what_the_function_measures(measured, tmp_path):
    ran = measured()
    assert (ran.code, ran.err) == (0, "")
    assert (tmp_path / "study.parquet").read_bytes() == measure(tmp_path / "zoo", bins=[5, 15]).table.to_parquet()


def test_what_was_measured_is_shown_in_a_line_per_data_set(measured, tmp_path):
    out = measured().out
    table = StudyTable.read(tmp_path / "study.parquet")
    assert "3 models, 2 data sets, 6 rows measured" in out
    assert "ECE with 15 bins" in out
    hard = sorted(table.where(data="hard")["accuracy"])[1]
    line = next(line for line in out.splitlines() if line.startswith("hard"))
    assert line.split()[1:4] == ["3", "0", f"{hard:.4f}"]
    assert max(map(len, out.splitlines()[2:-1])) <= 80


def test_the_next_command_is_shown_ready_to_copy(measured, tmp_path):
    words = shlex.split(measured().out.strip().splitlines()[-1])
    assert words[:4] == ["Next:", "certcal", "study", "review"]
    assert words[4:] == [str(tmp_path / "study.parquet"), "-o", str(tmp_path / "study.html")]


def test_rows_that_failed_are_shown_with_their_reasons_and_the_exit_code_is_one(measured, tmp_path):
    for number in range(12):
        (tmp_path / "zoo" / "easy" / f"x{number:02}.npz").write_bytes(b"no zip")
    ran = measured()
    assert ran.code == 1
    assert "Failed rows: 12" in ran.out
    assert "x00 on easy (test): easy/x00.npz: this is not an npz archive" in " ".join(ran.out.split())
    assert "x09 on easy" in ran.out
    assert "x10 on easy" not in ran.out
    assert "and 2 more" in ran.out
    assert len(StudyTable.read(tmp_path / "study.parquet")) == 18


def test_if_everything_failed_the_exit_code_is_one_and_no_next_command_is_shown(measured, tmp_path):
    (tmp_path / "models.csv").write_text("model,predictions\na,lost.npz\n")
    ran = measured(source="models.csv")
    assert ran.code == 1
    assert "study review" not in ran.out


def test_json_says_everything_for_machines(measured, tmp_path):
    (tmp_path / "zoo" / "easy" / "bad.npz").write_bytes(b"no zip")
    ran = measured("--json", "--seed", 3)
    seen = json.loads(ran.out)
    assert ran.code == 1
    assert (seen["rows"], seen["failed"], seen["models"], seen["measurements"]) == (7, 1, 4, 30)
    assert seen["settings"] == {"bins": [5, 15], "validation": 0.2, "seed": 3}
    assert seen["failures"][0]["model"] == "bad"
    assert seen["failures"][0]["reason"].startswith("easy/bad.npz: this is not an npz archive")
    assert [line["data"] for line in seen["datasets"]] == ["easy", "hard"]
    assert seen["table"] == str(tmp_path / "study.parquet")


def test_the_same_command_adds_what_is_new_and_says_what_left(measured, tmp_path):
    measured()
    save(tmp_path / "zoo" / "hard" / "new.npz", 5)
    (tmp_path / "zoo" / "easy" / "net0.npz").unlink()
    ran = measured()
    assert ran.code == 0
    assert ran.err == "1 row left the table: the source no longer has them\n"
    assert len(StudyTable.read(tmp_path / "study.parquet")) == 6
    (tmp_path / "zoo" / "easy" / "net1.npz").unlink()
    assert measured("--quiet").err == ""


def test_other_settings_are_refused_unless_forced(measured, tmp_path):
    measured()
    ran = measured("--validation", "0.5")
    assert (ran.code, ran.out) == (2, "")
    assert "was measured with validation = 0.2, and 0.5 is asked for" in ran.err
    assert measured("--validation", "50%", "--force").code == 0
    assert StudyTable.read(tmp_path / "study.parquet").settings["validation"] == 0.5


def test_a_part_says_which_others_are_missing_and_the_last_writes_the_table(measured, tmp_path):
    first = measured("--part", "2/2")
    assert (first.code, first.out) == (0, "")
    assert "part 2 of 2 is done, and part 1 of 2 is missing; give the same command for part 1/2" in first.err
    assert not (tmp_path / "study.parquet").exists()
    last = measured("--part", "1/2")
    assert (last.code, last.err) == (0, "")
    assert (tmp_path / "study.parquet").read_bytes() == measure(tmp_path / "zoo", bins=[5, 15]).table.to_parquet()
    assert measured("--part", "2/2").out == last.out


def test_layouts_and_columns_are_passed_on(measured, tmp_path):
    measured("--layout", "model/data", "--label", "labels", "--logits", "logits")
    table = StudyTable.read(tmp_path / "study.parquet")
    assert table.models == ["easy", "hard"]
    assert table.settings["columns"] == {"label": "labels", "logits": "logits"}


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--bins", "0"], "--bins: 0 is not"),
        (["--validation", "2"], "--validation: 2 is not between 0 and 1"),
        (["--layout", "files"], "layout is 'files'; pass 'model'"),
        (["--address", "auto"], "--address is for --engine ray"),
        (["-o", "study.csv"], "study.csv: the table is a Parquet file"),
        (["-o", "nowhere/study.parquet"], "the folder does not exist"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_exit_code_two(measured, more, sentence):
    ran = measured(*more)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err
    assert "Traceback" not in ran.err


def test_a_source_that_is_not_there_is_answered_with_the_nearest(measured):
    ran = measured(source="zoos")
    assert ran.code == 2
    assert "zoos: there is no such folder or manifest; did you mean" in ran.err


def test_the_table_is_asked_for(certcal_command, tmp_path):
    ran = certcal_command("study", "measure", tmp_path)
    assert ran.code == 2
    assert "--output TABLE is missing" in ran.err


def test_an_interrupt_says_what_is_kept(measured, tmp_path, monkeypatch):
    from certcal.lab.study._work import MeasurementTask

    once, call = [], MeasurementTask.__call__

    def interrupted(self, work):
        if len(once) == 2:
            raise KeyboardInterrupt
        once.append(work)
        return call(self, work)

    monkeypatch.setattr(MeasurementTask, "__call__", interrupted)
    ran = measured()
    kept = f"what was measured is kept in {tmp_path / 'study.parquet.parts'}, the same command resumes"
    assert (ran.code, ran.out, ran.err) == (130, "", f"certcal: interrupted; {kept}\n")
    monkeypatch.setattr(MeasurementTask, "__call__", call)
    assert measured().code == 0
    assert not (tmp_path / "study.parquet.parts").exists()


def test_an_interrupt_before_anything_was_measured_promises_nothing(measured, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("certcal.lab.study.measure", interrupt)
    ran = measured()
    assert (ran.code, ran.err) == (130, "certcal: interrupted; nothing was measured\n")


def test_names_cannot_move_the_cursor(measured, tmp_path):
    (tmp_path / "models.csv").write_text('model,predictions,data\n"\x1b[31mred",x.npz,"\x1b[2Jgone"\n')
    ran = measured(source="models.csv")
    assert ran.code == 1
    assert "\x1b" not in ran.out
    assert "\\x1b[31mred on \\x1b[2Jgone" in ran.out


def test_splits_are_told_apart_when_there_are_several(measured, tmp_path):
    rows = ["a,zoo/easy/net0.npz,early", "a,zoo/easy/net1.npz,late"]
    (tmp_path / "models.csv").write_text("\n".join(["model,predictions,split", *rows]) + "\n")
    out = measured(source="models.csv").out
    lines = [line.split() for line in out.splitlines()]
    assert [line[-6] for line in lines if len(line) >= 6 and line[-5:-3] == ["1", "0"]] == ["early", "late"]


def test_an_interrupt_is_told(measured, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("certcal.lab.study.measure", interrupt)
    assert measured().err.splitlines() == ["certcal: interrupted; nothing was measured"]


def test_models_of_different_data_under_one_name_are_told(measured, tmp_path):
    save(tmp_path / "zoo" / "easy" / "wide.npz", 9, n=50, classes=5)
    ran = measured("--json")
    found = json.loads(ran.out)
    assert (ran.code, found["type"]) == (0, "study_measure")
    assert found["notes"] == [
        "models on 'easy' (test) have from 3 to 5 classes, and are compared as if they had the same data",
        "models on 'easy' (test) have from 50 to 60 samples, and are compared as if they had the same data",
    ]
    assert ran.err.splitlines() == found["notes"]
