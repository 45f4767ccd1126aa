import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError, Predictions, study
from certcal._base.durable import only_writer
from certcal._base.threads import thread_count
from certcal.data import PartsMissingError
from certcal.engines import EngineError, LocalProcesses
from certcal.lab.study import Entry, StudyTable, battery
from certcal.lab.study import _measure as parts
from tests.study.zoo import SMALL, Counted, Deadly, FarAway, Poison, Recorder, arrays, predictions, save, touch, zoo

ROOT = Path(__file__).parents[2]


@pytest.fixture
def source(tmp_path):
    return zoo(tmp_path / "zoo")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "study.parquet"


def measure(*given, **settings):
    return study.measure(*given, **settings).table


def row_of(table, number):
    return {name: values[number] for name, values in table.columns.items()}


def left_behind(out):
    return sorted(path.name for path in out.parent.iterdir() if path.name not in ("zoo", "models.csv"))


# What is measured


def test_a_row_is_what_the_battery_measures(source):
    table = measure(source, **SMALL)
    assert table["model"].tolist() == ["net0", "net1", "net2"] * 2
    assert table["data"].tolist() == ["easy"] * 3 + ["hard"] * 3
    expected = battery(predictions(11), **SMALL).to_row()
    found = row_of(table, 4)
    assert {name: found[name] for name in expected} == expected
    assert (found["n"], found["n_validation"], found["classes"]) == (48, 12, 3)
    assert (found["status"], found["reason"], found["source"]) == ("ok", "", "hard/net1.npz")
    assert found["source_bytes"] == (source / "hard" / "net1.npz").stat().st_size
    assert found["source_changed"] == "12000000000"


def test_columns_stand_in_a_fixed_order(source):
    table = measure(source, **SMALL)
    names = list(table.columns)
    assert names[:8] == ["model", "data", "split", "n", "n_validation", "classes", "accuracy", "temperature"]
    assert names[8:11] == ["pre_ece_5", "pre_ece_15", "pre_equal_mass_ece_5"]
    assert names[-5:] == ["source", "source_bytes", "source_changed", "status", "reason"]
    assert len(table.measurements) == 2 * (5 * 2 + 5)


def test_formats_make_no_difference(tmp_path):
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    logits, labels = arrays(3)
    save(tmp_path / "npz.npz", 3)
    columns = pa.table({**{f"logit_{k}": logits[:, k] for k in range(3)}, "label": labels})
    pyarrow.parquet.write_table(columns, tmp_path / "parquet.parquet")
    pyarrow.feather.write_feather(columns, tmp_path / "feather.feather")
    lines = [",".join([*(str(float(x)) for x in row), str(y)]) for row, y in zip(logits, labels, strict=True)]
    (tmp_path / "csv.csv").write_text("logit_0,logit_1,logit_2,label\n" + "\n".join(lines) + "\n")
    table = measure(tmp_path, layout="model", **SMALL)
    assert table["status"].tolist() == ["ok"] * 4
    for name in ("pre_ece_15", "post_classwise_ece_5", "temperature"):
        np.testing.assert_allclose(table[name], table[name][0], rtol=1e-6)


def test_columns_of_the_files_may_be_named(tmp_path):
    logits, labels = arrays(3)
    np.savez(tmp_path / "a.npz", z=logits, truth=labels)
    assert measure(tmp_path, layout="model", **SMALL)["status"].tolist() == ["failed"]
    table = measure(tmp_path, layout="model", columns={"logits": "z", "label": "truth", "weight": None}, **SMALL)
    assert table["status"].tolist() == ["ok"]
    assert table.settings["columns"] == {"logits": "z", "label": "truth"}


def test_probabilities_are_measured_too():
    given = predictions(3)
    probabilities = Predictions.from_probabilities(given.probabilities.astype(np.float64), given.labels)
    table = measure([Entry("a", probabilities), Entry("b", given)], **SMALL)
    assert table["status"].tolist() == ["ok", "ok"]
    np.testing.assert_allclose(table["pre_ece_15"][0], table["pre_ece_15"][1], rtol=1e-5)
    np.testing.assert_allclose(table["temperature"][0], table["temperature"][1], rtol=1e-3)


def test_out_of_distribution_sets_give_one_column_each(tmp_path):
    save(tmp_path / "a.npz", 1)
    save(tmp_path / "b.npz", 2)
    np.savez(tmp_path / "far.npz", logits=np.zeros((20, 3)))
    (tmp_path / "models.csv").write_text("model,predictions,ood:far\na,a.npz,far.npz\nb,b.npz,\n")
    table = measure(tmp_path / "models.csv", **SMALL)
    expected = battery(predictions(1), out_of_distribution={"far": np.full(20, 1 / 3)}, **SMALL).to_row()["auroc_far"]
    assert table["auroc_far"][0] == pytest.approx(expected)
    assert np.isnan(table["auroc_far"][1])
    same = measure([Entry("a", predictions(1), out_of_distribution={"far": [1 / 3] * 20})], **SMALL)
    assert same["auroc_far"][0] == pytest.approx(expected)


def test_columns_of_the_users_own_stand_beside_the_model():
    entries = [Entry("a", predictions(1), given={"depth": 3, "kind": "x"}), Entry("b", predictions(2), given={"z": 1})]
    table = measure(entries, **SMALL)
    assert table.given == ["depth", "kind", "z"]
    np.testing.assert_array_equal(table["depth"], [3, np.nan])
    assert table["kind"].tolist() == ["x", ""]


def test_every_entry_is_measured_on_one_thread(monkeypatch):
    seen = []
    monkeypatch.setattr("certcal.lab.study._battery.battery", lambda *_, **__: seen.append(thread_count()))
    measure([Entry("a", predictions(1))], **SMALL)
    assert seen == [1]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"bins": 0}, "bins: 0 is not"),
        ({"bins": []}, "bins is empty"),
        ({"validation": 1}, "validation: 1 is not between 0 and 1"),
        ({"seed": -1}, "seed: -1 is not"),
        ({"workers": 0}, "workers is 0"),
        ({"columns": {"labels": "y"}}, "columns has the role 'labels'; the roles are probabilities, logits, label"),
        ({"engine": "ray"}, "engine is 'ray'; pass an engine of certcal.engines"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_anything_is_read(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        measure("/nowhere", **settings)


def test_a_binary_score_is_measured_as_a_model_with_two_classes(tmp_path):
    rng = np.random.default_rng(3)
    score = rng.random(60)
    outcome = (rng.random(60) < score).astype(int)
    np.savez(tmp_path / "classes.npz", probabilities=np.stack((1 - score, score), axis=1), labels=outcome)
    rows = "".join(f"{s},{y}\n" for s, y in zip(score.tolist(), outcome, strict=True))
    (tmp_path / "scores.csv").write_text("score,outcome\n" + rows)
    (tmp_path / "models.csv").write_text("model,predictions\nclasses,classes.npz\nscores,scores.csv\n")
    table = measure(tmp_path / "models.csv", **SMALL)
    one, other = (
        {name: value for name, value in row_of(table, number).items() if name != "model" and "source" not in name}
        for number in (0, 1)
    )
    assert (one["status"], one["classes"]) == ("ok", 2)
    assert one == other


# What goes wrong


def test_what_cannot_be_measured_is_a_row_with_its_reason(tmp_path):
    save(tmp_path / "good.npz", 1)
    (tmp_path / "cut.npz").write_bytes(b"PK")
    (tmp_path / "sure.csv").write_text("confidence,correct\n0.5,1\n")
    save(tmp_path / "short.npz", 1, n=2)
    text = (
        "good,good.npz,\ncut,cut.npz,\nsure,sure.csv,\nshort,short.npz,\nlost,lost.npz,\nnever,,it diverged\nnone,,\n"
    )
    (tmp_path / "models.csv").write_text("model,predictions,reason\n" + text)
    table = measure(tmp_path / "models.csv", **SMALL)
    reasons = dict(zip(table["model"], table["reason"], strict=True))
    assert reasons["good"] == ""
    assert reasons["cut"].startswith("cut.npz: this npz archive cannot be read")
    assert reasons["sure"] == (
        "sure.csv: there are only confidences; temperature scaling needs logits or probabilities of every class"
    )
    assert "too few to split" in reasons["short"]
    assert reasons["lost"].startswith("lost.npz: there is no such file")
    assert reasons["never"] == "it diverged"
    assert reasons["none"] == "there are no predictions of this model"
    assert table["status"].tolist() == ["ok"] + ["failed"] * 6
    assert np.isnan(table["pre_ece_15"][1:]).all()
    assert str(tmp_path) not in "".join(table["reason"])


def test_a_file_without_classes_is_not_told_to_give_confidences(tmp_path):
    np.savez(tmp_path / "one.npz", logits=np.zeros((30, 1)), labels=np.zeros(30, int))
    np.savez(tmp_path / "bare.npz", logits=np.zeros((30, 2)))
    entries = [Entry(name, tmp_path / f"{name}.npz") for name in ("one", "bare")]
    one, bare = measure(entries, **SMALL)["reason"]
    assert "there are no logits or probabilities of two classes or more" in one
    assert "--confidence" not in one
    assert one.endswith("the columns are 'logits', 'labels'")
    assert "no column of true classes; name it as label" in bare


def test_if_everything_fails_there_is_still_a_table(out, tmp_path):
    (tmp_path / "models.csv").write_text("model,predictions,size\na,lost.npz,7\n")
    measure(tmp_path / "models.csv", out=out)
    table = StudyTable.read(out)
    assert (table["status"].tolist(), table["size"].tolist()) == (["failed"], [7.0])
    assert len(table.measurements) == 100


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ZeroDivisionError("a\nbug"), "ZeroDivisionError: a bug"),
        (MemoryError(), "there is not enough memory to measure it; use fewer workers"),
    ],
)
def test_an_unexpected_failure_is_a_row_too(monkeypatch, error, reason):
    def fail(given, **_):
        raise error

    monkeypatch.setattr("certcal.lab.study._battery.battery", fail)
    table = measure([Entry("a", predictions(1))], **SMALL)
    assert table["reason"].tolist() == [reason]


def test_a_source_that_fails_in_the_middle_loses_nothing(out):
    def entries():
        yield Entry("a", predictions(1))
        raise RuntimeError("the iterator broke")

    with pytest.raises(RuntimeError, match="the iterator broke"):
        measure(entries(), out=out, **SMALL)
    engine = Recorder()
    measure([Entry("a", predictions(1)), Entry("b", predictions(2))], out=out, engine=engine, **SMALL)
    assert [key[0] for key in engine.done] == ["b"]


# Where it runs


def test_worker_processes_write_the_same_bytes(source, tmp_path):
    (source / "hard" / "net9.npz").write_bytes(b"PK")
    measure(source, out=tmp_path / "one.parquet", **SMALL)
    measure(source, out=tmp_path / "two.parquet", workers=2, **SMALL)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_workers_that_do_not_see_the_files_get_their_content(source, tmp_path):
    (source / "hard" / "net9.npz").write_bytes(b"PK")
    np.savez(tmp_path / "far.npz", logits=np.zeros((20, 3)))
    rows = [f"{path.stem},{path},{path.parent.name},{tmp_path}/far.npz" for path in sorted(source.glob("*/*.npz"))]
    (tmp_path / "models.csv").write_text("\n".join(["model,predictions,data,ood:far", *rows, "lost,lost.npz,,"]) + "\n")
    here = measure(tmp_path / "models.csv", **SMALL)
    away = measure(tmp_path / "models.csv", engine=FarAway(), **SMALL)
    assert here.to_parquet() == away.to_parquet()
    assert here["status"].tolist() == ["ok"] * 6 + ["failed"] * 2


def test_an_iterator_is_taken_one_entry_at_a_time():
    taken = []

    def entries():
        for number in range(4):
            taken.append(number)
            yield Entry(f"m{number}", predictions(number))

    seen = []
    measure(entries(), progress=Counted(lambda done, total: seen.append((done, total, len(taken)))), **SMALL)
    assert seen == [(0, None, 0), (1, None, 1), (2, None, 2), (3, None, 3), (4, None, 4)]


def test_progress_counts_what_is_there_already(source, out):
    measure(source, out=out, **SMALL)
    save(source / "hard" / "new.npz", 7)
    seen = []
    measure(source, out=out, progress=Counted(lambda *numbers: seen.append(numbers)), **SMALL)
    assert seen == [(6, 7), (7, 7)]


@pytest.mark.parametrize("group", [1, 2, 5])
def test_a_model_that_ends_its_workers_is_a_failed_row_and_the_others_go_on(source, group):
    table = measure(source, engine=Deadly("net1", group=group), **SMALL)
    assert table["status"].tolist() == ["ok", "failed", "ok"] * 2
    assert table["reason"][1] == "a worker process ended at model 'net1' on 'easy' (test), and so did a second one"
    alone = measure(source, **SMALL)
    np.testing.assert_array_equal(table["pre_ece_15"][[0, 2, 3, 5]], alone["pre_ece_15"][[0, 2, 3, 5]])


def test_an_engine_that_can_do_nothing_is_an_error_not_a_table_of_failures(source, out):
    with pytest.raises(EngineError, match="no worker could begin"):
        measure(source, out=out, engine=Deadly(broken=True), **SMALL)
    assert not out.exists()


def test_real_workers_that_die_of_one_entry_cost_one_row():
    sure = Predictions.from_confidence([0.5], [1])
    entries = [Entry("deadly", sure, out_of_distribution={"x": Poison()}), Entry("other", sure)]
    table = measure(entries, engine=LocalProcesses(1), **SMALL)
    assert "a worker process ended with exit code 1 at model 'deadly' on 'data' (test)" in table["reason"][0]
    assert table["reason"][1].startswith("model 'other' on 'data' (test): there are only confidences")


# Interruptions


def test_what_was_finished_before_an_interruption_is_not_measured_again(source, out, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        measure(source, out=out, engine=Recorder(stop_after=4), **SMALL)
    assert not out.exists()
    engine = Recorder()
    measure(source, out=out, engine=engine, **SMALL)
    assert [key[:2] for key in engine.done] == [("net1", "hard"), ("net2", "hard")]
    measure(source, out=tmp_path / "whole.parquet", **SMALL)
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert left_behind(out) == ["study.parquet", "whole.parquet"]


@settings(max_examples=8)
@given(st.lists(st.integers(0, 3), max_size=5), st.integers(0, 2**32 - 1))
def test_the_table_depends_neither_on_order_nor_on_interruptions(tmp_path_factory, stops, seed):
    folder = tmp_path_factory.mktemp("any")
    entries = [Entry(f"m{number}", predictions(number, n=20)) for number in range(5)]
    entries.append(Entry("bad", Predictions.from_confidence([0.5], [1])))
    chance = random.Random(seed)
    for stop in stops:
        order = {number: chance.random() for number in range(6)}
        try:
            measure(entries, out=folder / "s.parquet", bins=[5], engine=Recorder(stop, order.__getitem__))
        except KeyboardInterrupt:
            continue
    measure(entries, out=folder / "s.parquet", bins=[5])
    assert (folder / "s.parquet").read_bytes() == measure(entries, bins=[5]).to_parquet()
    assert [path.name for path in folder.iterdir()] == ["s.parquet"]


KILLED = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from certcal.lab.study import _measure as parts, measure
from tests.study.zoo import SMALL, Counted
parts.FLUSH_ROWS = 1

def main():
    measure(sys.argv[1], out=sys.argv[2], progress=Counted(lambda *n: os.write(1, f"{{n}}\\n".encode())), **SMALL)

if __name__ == "__main__":
    main()
"""


def test_a_process_that_is_killed_loses_nothing_that_was_finished(tmp_path, out):
    source = zoo(tmp_path / "zoo", models=20, datasets=("easy",))
    command = [sys.executable, "-c", KILLED, str(source), str(out)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(4):
            assert process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()
    engine = Recorder()
    measure(source, out=out, engine=engine, **SMALL)
    assert 0 < len(engine.done) <= 17
    assert out.read_bytes() == measure(source, **SMALL).to_parquet()
    assert left_behind(out) == ["study.parquet"]


def test_rows_reach_the_disk_in_groups_and_after_some_seconds(source, out, monkeypatch):
    written = []
    write = StudyTable.write
    monkeypatch.setattr(StudyTable, "write", lambda self, path: (written.append(len(self)), write(self, path)))
    monkeypatch.setattr(parts, "FLUSH_ROWS", 4)
    measure(source, out=out, **SMALL)
    assert written == [4, 2]
    monkeypatch.setattr(parts, "FLUSH_SECONDS", 0.0)
    measure(source, out=out, force=True, **SMALL)
    assert written[2:] == [1] * 6


def test_a_damaged_file_of_finished_rows_costs_its_rows_only(source, out, monkeypatch):
    monkeypatch.setattr(parts, "FLUSH_ROWS", 1)
    with pytest.raises(KeyboardInterrupt):
        measure(source, out=out, engine=Recorder(stop_after=3), **SMALL)
    shards = sorted(out.parent.glob("study.parquet.parts/*/rows-*.parquet"))
    assert len(shards) == 3
    shards[1].write_bytes(shards[1].read_bytes()[:-9])
    engine = Recorder()
    measure(source, out=out, engine=engine, **SMALL)
    assert [key[0] for key in engine.done] == ["net1", "net0", "net1", "net2"]
    assert out.read_bytes() == measure(source, **SMALL).to_parquet()


def test_files_of_yours_beside_a_table_are_left_alone(source, out):
    beside = parts._rows_folder(out)
    mine = [beside / "notes.txt", beside / ".lock", beside / "0123456789ab" / "thesis.tex", beside / "rows-1.parquet"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("all of it")
    measure(source, out=out, **SMALL)
    assert [path.read_text() for path in mine] == ["all of it"] * 4
    assert sorted(path for path in beside.rglob("*") if path.is_file()) == sorted(mine)


def test_two_processes_do_not_measure_into_one_table(source, out):
    parts._rows_folder(out).mkdir()
    with only_writer(parts._rows_folder(out)), pytest.raises(InputError, match="is measuring into this table"):
        measure(source, out=out, **SMALL)


# Parts, for several processes


def test_parts_in_any_order_make_the_table_that_one_process_makes(source, out):
    (source / "hard" / "net9.npz").write_bytes(b"PK")
    whole = measure(source, **SMALL).to_parquet()
    for part, missing in (
        ("3/3", "part 3 of 3 is done, and parts 1 and 2 of 3 are missing"),
        ("1/3", "part 2 of 3 is"),
    ):
        with pytest.raises(PartsMissingError, match=missing):
            measure(source, out=out, part=part, **SMALL)
        assert not out.exists()
    engine = Recorder()
    table = measure(source, out=out, part="2/3", engine=engine, **SMALL)
    assert [key[:2] for key in engine.done] == [("net1", "easy"), ("net1", "hard")]
    assert table["status"].tolist() == ["ok"] * 6 + ["failed"]
    assert out.read_bytes() == whole
    assert left_behind(out) == ["study.parquet"]
    engine = Recorder()
    measure(source, out=out, part="1/3", engine=engine, **SMALL)
    assert [key[0] for key in engine.done] == ["net9"], "a row that failed is tried again by its part, and by no other"
    assert out.read_bytes() == whole


def test_a_part_counts_its_own_rows_resumes_and_a_command_without_one_measures_the_rest(source, out):
    seen = []
    with pytest.raises(KeyboardInterrupt):
        measure(source, out=out, part="2/2", engine=Recorder(stop_after=2), **SMALL)
    with pytest.raises(PartsMissingError, match=r"part 1 of 2 is missing; give the same command for part 1/2$"):
        measure(source, out=out, part="2/2", progress=Counted(lambda *numbers: seen.append(numbers)), **SMALL)
    assert seen == [(2, 3), (3, 3)]
    engine = Recorder()
    measure(source, out=out, engine=engine, **SMALL)
    assert [key[:2] for key in engine.done] == [("net0", "easy"), ("net2", "easy"), ("net1", "hard")]
    assert out.read_bytes() == measure(source, **SMALL).to_parquet()
    assert left_behind(out) == ["study.parquet"]


def test_a_part_that_is_out_of_date_is_missing(source, out):
    """Whatever was finished of a file that has changed since, or was broken then, its part must measure it again."""
    good = (source / "easy" / "net0.npz").read_bytes()
    (source / "easy" / "net0.npz").write_bytes(b"PK")
    with pytest.raises(PartsMissingError):
        measure(source, out=out, part="1/2", **SMALL)
    (source / "easy" / "net0.npz").write_bytes(good)
    with pytest.raises(PartsMissingError, match="part 1 of 2 is missing"):
        measure(source, out=out, part="2/2", **SMALL)
    assert measure(source, out=out, part="1/2", **SMALL)["status"].tolist() == ["ok"] * 6


def test_another_number_of_parts_measures_only_what_is_missing(source, out):
    with pytest.raises(PartsMissingError):
        measure(source, out=out, part="1/2", **SMALL)
    engine = Recorder()
    with pytest.raises(PartsMissingError, match="parts 2 and 3 of 3 are missing"):
        measure(source, out=out, part="1/3", engine=engine, **SMALL)
    assert [key[:2] for key in engine.done] == [("net0", "hard")]


def test_a_part_is_measured_by_one_process_and_not_beside_one_that_measures_all(source, out):
    refused = []

    def second(done, total):
        for part, sentence in (("1/2", "is measuring the same part"), (None, "is measuring a part of this table")):
            with pytest.raises(InputError, match=sentence):
                measure(source, out=out, part=part, **SMALL)
            refused.append(part)

    with pytest.raises(PartsMissingError):
        measure(source, out=out, part="1/2", progress=Counted(second), **SMALL)
    assert refused


def test_the_last_part_leaves_the_rows_of_one_that_is_still_at_work(source, out):
    """Of another number of parts here; that one then finds everything, writes the same and leaves nothing behind."""
    with pytest.raises(PartsMissingError):
        measure(source, out=out, part="1/2", **SMALL)
    written = []

    def second(done, total):
        if not written:
            measure(source, out=out, part="2/2", **SMALL)
            written.append(out.read_bytes())

    measure(source, out=out, part="1/3", progress=Counted(second), **SMALL)
    assert written == [out.read_bytes()] == [measure(source, **SMALL).to_parquet()]
    assert left_behind(out) == ["study.parquet"]


@pytest.mark.parametrize(
    ("part", "sentence"),
    [("3/2", "part: '3/2' is no part; give one such as 3/16"), ("train", "the split of the data is split")],
)
def test_a_wrong_part_is_refused(source, out, part, sentence):
    with pytest.raises(InputError, match=sentence):
        measure(source, out=out, part=part, **SMALL)
    with pytest.raises(InputError, match="part: there is no table; say with out where it is"):
        measure(source, part="1/2", **SMALL)
    assert left_behind(out) == []


# Four parts begin one table at the same time, in copies of one process; the third is killed after two of its rows.
IN_PARTS = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from certcal.data import PartsMissingError
from certcal.lab.study import _measure as parts, measure
from tests.study.zoo import SMALL, Counted
parts.FLUSH_ROWS = 1
measure(sys.argv[1], progress=False, **SMALL)

def told(done, total):
    if part == 3 and done == 2:
        os.kill(os.getpid(), signal.SIGKILL)

children = []
for part in range(1, 5):
    children.append(os.fork())
    if children[-1] == 0:
        try:
            measure(sys.argv[1], out=sys.argv[2], part=f"{{part}}/4", progress=Counted(told), **SMALL)
        except PartsMissingError:
            os._exit(0)
        os._exit(1)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""


def test_a_part_that_is_killed_loses_nothing_while_the_others_go_on(tmp_path, out):
    source = zoo(tmp_path / "zoo", models=8)
    command = [sys.executable, "-c", IN_PARTS, str(source), str(out)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stdout == f"[0, 0, {-signal.SIGKILL}, 0]\n", ran.stderr
    engine = Recorder()
    measure(source, out=out, part="3/4", engine=engine, **SMALL)
    assert [key[:2] for key in engine.done] in (
        [("net2", "hard"), ("net6", "hard")],
        [("net6", "easy"), ("net2", "hard"), ("net6", "hard")],
    )
    assert out.read_bytes() == measure(source, **SMALL).to_parquet()
    assert left_behind(out) == ["study.parquet"]


# The same command again


def again(source, out, **more):
    """What the same command measures, and what it says."""
    engine = Recorder()
    found = study.measure(source, out=out, engine=engine, **{**SMALL, **more})
    assert out.read_bytes() == found.table.to_parquet()
    return [key[:2] for key in engine.done], list(found.notes)


def test_a_finished_table_is_left_alone(source, out):
    measure(source, out=out, **SMALL)
    touch(out, 1)
    assert again(source, out) == ([], [])
    assert out.stat().st_mtime == 1


def test_new_files_are_added_and_changed_ones_measured_again(source, out):
    measure(source, out=out, **SMALL)
    save(source / "easy" / "a.npz", 7)
    save(source / "hard" / "net1.npz", 8)
    touch(source / "hard" / "net2.npz", 12345)
    assert again(source, out)[0] == [("a", "easy"), ("net1", "hard"), ("net2", "hard")]
    assert StudyTable.read(out)["model"].tolist() == ["a", "net0", "net1", "net2", "net0", "net1", "net2"]


def test_rows_that_failed_are_tried_again(source, out):
    good = (source / "easy" / "net1.npz").read_bytes()
    (source / "easy" / "net1.npz").write_bytes(b"PK")
    measure(source, out=out, **SMALL)
    assert again(source, out)[0] == [("net1", "easy")]
    (source / "easy" / "net1.npz").write_bytes(good)
    assert again(source, out)[0] == [("net1", "easy")]
    assert again(source, out)[0] == []


def test_a_file_that_breaks_later_does_not_keep_its_old_row(source, out):
    measure(source, out=out, **SMALL)
    (source / "easy" / "net1.npz").write_bytes(b"PK")
    again(source, out)
    table = StudyTable.read(out)
    assert table["status"].tolist() == ["ok", "failed", "ok", "ok", "ok", "ok"]
    assert np.isnan(table["pre_ece_15"][1])


def test_entries_that_are_gone_leave_the_table_and_it_is_said(source, out):
    measure(source, out=out, **SMALL)
    (source / "easy" / "net1.npz").unlink()
    assert again(source, out) == ([], ["1 row left the table: the source no longer has them"])
    assert len(StudyTable.read(out)) == 5


def test_columns_of_the_users_own_change_without_measuring(source, out, tmp_path):
    manifest = tmp_path / "models.csv"
    manifest.write_text("model,predictions,size,kind\na,zoo/easy/net0.npz,1,x\nb,zoo/easy/net1.npz,2,y\n")
    measure(manifest, out=out, **SMALL)
    manifest.write_text("model,predictions,size\nb,zoo/easy/net1.npz,20\na,zoo/easy/net0.npz,10\n")
    done, told = again(manifest, out)
    assert (done, told) == ([], ["columns that left the table, because the source does not give them: kind"])
    table = StudyTable.read(out)
    assert (table["model"].tolist(), table["size"].tolist()) == (["b", "a"], [20.0, 10.0])


def test_other_out_of_distribution_files_are_measured_again(tmp_path, out):
    save(tmp_path / "a.npz", 1)
    np.savez(tmp_path / "far.npz", logits=np.zeros((20, 3)))
    np.savez(tmp_path / "near.npz", logits=np.eye(3))
    manifest = tmp_path / "models.csv"
    manifest.write_text("model,predictions,ood:x\na,a.npz,far.npz\n")
    measure(manifest, out=out, **SMALL)
    assert again(manifest, out)[0] == []
    touch(tmp_path / "far.npz", 5)
    assert again(manifest, out)[0] == [("a", "data")]
    manifest.write_text("model,predictions,ood:x\na,a.npz,near.npz\n")
    assert again(manifest, out)[0] == [("a", "data")]
    manifest.write_text("model,predictions\na,a.npz\n")
    assert again(manifest, out)[0] == [("a", "data")]
    assert "auroc_x" not in StudyTable.read(out)


def test_predictions_in_memory_are_recognised_by_their_content(out):
    entries = [Entry("a", predictions(1)), Entry("b", predictions(2))]
    measure(entries, out=out, **SMALL)
    assert again(iter(entries), out)[0] == []
    assert again([Entry("a", predictions(1)), Entry("b", predictions(3))], out)[0] == [("b", "data")]
    same = Predictions.from_probabilities(predictions(1).probabilities, predictions(1).labels)
    assert again([Entry("a", same), Entry("b", predictions(3))], out)[0] == [("a", "data")]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"bins": [5]}, "was measured with bins = 5, 15, and 5 is asked for"),
        ({"validation": 0.5}, "was measured with validation = 0.2, and 0.5 is asked for"),
        ({"seed": 1}, "was measured with seed = 0, and 1 is asked for"),
        ({"columns": {"label": "labels"}}, "was measured with columns = none, and"),
    ],
)
def test_other_settings_are_refused_and_nothing_is_touched(source, out, change, sentence):
    measure(source, out=out, **SMALL)
    before = out.read_bytes()
    with pytest.raises(InputError, match=sentence):
        measure(source, out=out, **{**SMALL, **change})
    assert out.read_bytes() == before
    assert left_behind(out) == ["study.parquet"]


def test_the_order_of_bins_is_no_other_setting(source, out):
    measure(source, out=out, bins=[5, 15])
    assert again(source, out, bins=[15, 5, 5]) == ([], [])


def test_force_measures_everything_and_replaces_the_table_at_the_end(source, out):
    measure(source, out=out, **SMALL)
    before = out.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        measure(source, out=out, force=True, bins=[7], engine=Recorder(stop_after=2))
    assert out.read_bytes() == before
    engine = Recorder()
    measure(source, out=out, force=True, bins=[7], engine=engine)
    assert len(engine.done) == 4, "what the interrupted one had finished is kept"
    assert StudyTable.read(out).settings["bins"] == [7]
    assert left_behind(out) == ["study.parquet"]
    assert len(again(source, out, force=True, bins=[7])[0]) == 6


def test_files_that_are_not_ours_are_not_replaced(source, out, tmp_path):
    StudyTable.of({"model": ["a"]}).write(out)
    with pytest.raises(InputError, match="certcal study measure did not write this table"):
        measure(source, out=out)
    out.write_bytes(b"PAR1 no table PAR1")
    with pytest.raises(InputError, match="cannot be read"):
        measure(source, out=out)
    assert out.read_bytes() == b"PAR1 no table PAR1"
    for name, sentence in {
        "study.csv": "choose a name that ends in .parquet",
        "zoo/study.parquet": "this is inside",
        "nowhere/study.parquet": "the folder does not exist",
    }.items():
        with pytest.raises(InputError, match=sentence):
            measure(source, out=tmp_path / name)
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(InputError, match="this is a folder"):
        measure(source, out=tmp_path / "folder.parquet")
    out.write_bytes(b"")
    with pytest.raises(InputError, match="this is the manifest that is read"):
        measure(out, out=out)
