import base64
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal.lab.study import MeasuredColumn, StudyTable, overview
from certcal.lab.study._battery import BINNED, UNBINNED
from certcal.metrics import STUDY_BINS


def table(**more):
    columns = {
        "model": ["a", "b", "a", "b"],
        "data": ["easy", "easy", "hard", "hard"],
        "accuracy": [0.9, 0.8, 0.7, None],
        "pre_ece_15": [0.1, 0.2, 0.3, None],
        "depth": [3, 5, 3, 5],
        "kind": ["x", "y", "x", "y"],
        "status": ["ok", "ok", "ok", "failed"],
        "reason": ["", "", "", "it is broken"],
    }
    return StudyTable.of(columns | more)


def test_keys_come_first_states_last_and_what_is_missing_is_filled_in():
    found = StudyTable.of({"depth": [1], "model": ["a"]})
    assert list(found.columns) == ["model", "data", "split", "depth", "status", "reason"]
    assert [found[name][0] for name in ("data", "split", "status", "reason")] == ["data", "test", "ok", ""]


def test_a_column_is_text_if_any_entry_is_and_numbers_otherwise():
    found = StudyTable.of({"model": [1, 2, 3], "mixed": ["x", 2, None], "number": [True, None, 2], "gap": [None] * 3})
    assert found["model"].tolist() == ["1", "2", "3"]
    assert found["mixed"].tolist() == ["x", "2", ""]
    np.testing.assert_array_equal(found["number"], [1, np.nan, 2])
    assert np.isnan(found["gap"]).all()


def test_times_in_nanoseconds_keep_all_their_digits(tmp_path):
    StudyTable.of({"model": ["a"], "source_changed": [1_700_000_000_123_456_789]}).write(tmp_path / "t.parquet")
    assert StudyTable.read(tmp_path / "t.parquet")["source_changed"].tolist() == ["1700000000123456789"]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"data": ["a"]}, "columns has no 'model'; name the models"),
        ({"model": ["a"], "depth": [1, 2]}, r"columns\['depth'\] has 2 entries and 'model' has 1"),
        ({"model": ["a"], "depth": [[1]]}, r"columns\['depth'\] holds neither numbers nor text only"),
        ({"model": ["a", "b", "a"]}, r"row 2 is the second one of model 'a' on 'data' \('test'\)"),
    ],
)
def test_columns_that_make_no_table_are_refused(columns, sentence):
    with pytest.raises(InputError, match=sentence):
        StudyTable.of(columns)


@given(st.sampled_from(["pre", "post"]), st.sampled_from(BINNED), st.integers(1, 10**6))
def test_names_of_binned_measurements_say_what_they_are(stage, metric, bins):
    assert MeasuredColumn.parse(f"{stage}_{metric}_{bins}") == MeasuredColumn(stage, metric, bins)
    assert str(MeasuredColumn(stage, metric, bins)) == f"{stage}_{metric}_{bins}"


@pytest.mark.parametrize("metric", UNBINNED)
def test_names_of_other_measurements_say_what_they_are(metric):
    assert MeasuredColumn.parse(f"post_{metric}") == MeasuredColumn("post", metric)


@pytest.mark.parametrize("name", ["accuracy", "ece_15", "pre_ece", "pre_ece_x", "pre_", "mid_ece_15", "pre_nll_15", ""])
def test_other_names_are_no_measurements(name):
    assert MeasuredColumn.parse(name) is None


def test_columns_are_told_apart_by_their_names():
    found = table(auroc_svhn=[0.5] * 4, n=[10] * 4)
    assert [str(each) for each in found.measurements] == ["pre_ece_15"]
    assert found.given == ["depth", "kind"]
    assert (found.models, found.datasets, found.splits) == (["a", "b"], ["easy", "hard"], ["test"])


def test_an_unknown_column_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="no column 'pre_ece_51'; did you mean 'pre_ece_15'"):
        table()["pre_ece_51"]
    with pytest.raises(InputError, match=r"it has depth, kind, model, data.*, and 1 measurement, pre_ece_15$"):
        table()["zzz"]


def test_rows_that_failed_are_left_out_and_listed():
    found = table()
    assert list(found.failures) == [("b", "hard", "test", "it is broken")]
    assert found.where(data="hard")["model"].tolist() == ["a"]
    assert len(found.where()) == 3
    with pytest.raises(InputError, match="data is 'soft'; the table has 'easy', 'hard'"):
        found.where(data="soft")


def test_a_column_across_data_sets_has_gaps_where_there_is_no_row():
    models, datasets, values = table().across("pre_ece_15")
    assert (models, datasets) == (["a", "b"], ["easy", "hard"])
    np.testing.assert_array_equal(values, [[0.1, 0.3], [0.2, np.nan]])


def test_splits_are_not_mixed_silently():
    found = table(split=["early", "test", "test", "test"])
    with pytest.raises(InputError, match="split is not given, and the table has 'early', 'test'"):
        found.across("pre_ece_15")
    assert found.across("pre_ece_15", split="early")[2].tolist() == [[0.1]]


def test_numbers_stand_side_by_side_and_text_is_refused():
    found = table()
    np.testing.assert_array_equal(found.numbers(["depth", "pre_ece_15"])[:2], [[3, 0.1], [5, 0.2]])
    assert found.numbers([]).shape == (4, 0)
    with pytest.raises(InputError, match="column 'kind' holds text"):
        found.numbers(["kind"])


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)


@settings(max_examples=15)
@given(
    st.lists(st.tuples(TEXTS, st.floats(width=64), TEXTS), min_size=1, max_size=6, unique_by=lambda row: row[0]),
    st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=2),
)
def test_what_is_written_is_read_again(tmp_path_factory, rows, notes):
    path = tmp_path_factory.getbasetemp() / "round.parquet"
    models, numbers, texts = zip(*rows, strict=True)
    notes.pop("version", None)
    written = StudyTable.of({"model": models, "x": np.array(numbers), "t": texts}, notes)
    written.write(path)
    found = StudyTable.read(path)
    assert list(found.columns) == list(written.columns)
    assert found.settings == notes
    for name in found.columns:
        np.testing.assert_array_equal(found[name], written[name], strict=True)
    assert found.to_parquet() == path.read_bytes(), "the same table has the same bytes"


def test_some_columns_can_be_read_alone(tmp_path):
    table().write(tmp_path / "t.parquet")
    found = StudyTable.read(tmp_path / "t.parquet", ["depth"])
    assert list(found.columns) == ["model", "data", "split", "depth", "status", "reason"]


def test_tables_of_other_writers_are_read(tmp_path):
    columns = {
        "model": pa.array(["a", "b"]).dictionary_encode(),
        "whole": pa.array([1, None], pa.int32()),
        "single": pa.array([0.5, None], pa.float32()),
        "flag": pa.array([True, False]),
    }
    pq.write_table(pa.table(columns).replace_schema_metadata({"certcal.study": "no JSON"}), tmp_path / "t.parquet")
    found = StudyTable.read(tmp_path / "t.parquet")
    assert found["model"].tolist() == ["a", "b"]
    np.testing.assert_array_equal(found["whole"], [1, np.nan])
    np.testing.assert_array_equal(found["single"], [0.5, np.nan])
    np.testing.assert_array_equal(found["flag"], [1, 0])
    assert found.settings == {}


# A table of version 1, as it was first written: gzip of the file, in base 64.
VERSION_1 = (
    "H4sIAAAAAAACA5VVz28SQRSe3S4bbDBB09nsJhxIYzc1wRawVGtqmlnaUirUFpWWGtPsryDtFpBdCtWaeNBbT578Azx58C8wxqNH45/jwThvlqVU"
    "NjFOYH68+d73vffmBbZJJYMFPIXlEl3QdYQmb3AIIR0mAyN8HUspehPHIhYTi2iWM2ROv3aN3l5J8nQWOG6CZ4CpEuYZQzQh0AtL9/QQfwHsMpsv"
    "swgojMWzXS+MBewym8dYEE7hNKARQ8tRxMaPlWD3bUVCsyFWxiQ99pkCYwCjfDEcD4ITpwDVOgoJjW8dyfQbklwUxwJ/IQasId5IRuOeylkOyaJr"
    "PrePdRxDODbDy5HjlmU7M6iUACKwsJqOGiJu22l4gWWSWibbHfvANu2DTM6HiK6ne1131Evs2Lrbag5MkqAkFEdFCRxTckiMKwNhzEuCdCa95dRl"
    "NTraF4pfeR6Si9NlmTKIiorgMUdpWLSM5S0nnXPqF04958YbZJwuHkrn5zrC951XP/DjrfIvvkllRkTKaKEY5ydO+sypHyeW/6ublARGTGz5ZljM"
    "g+Izgb70hlN/C+pP4XIPjccbDc1/8GqMy5E89VdE/Rm5aKhxGjSkkd6LkqBGpa808ZR81bQ7nqk7c67XtU7l+6+mjUbTnb6XfJpLJTO5Z6nktGvb"
    "FjXcptsT3WnQl2q0mtSQnsuCye64/jnzGskxUqk83L3n9678JjIPY6muEUJ2iD8eELJAtDpZJ6RO8nVm07RL9z1Y14b3G8E5YGHnIqwaWwGklRkR"
    "TKtp2N0pHm+2jWa58bChGVuPevXy46pVypOGma06+/niYnG17Bbzm9nabr+9X1hP67tL3eJhq17OL5wCzjqunppZ58RoAHZ9iVGDfmHLMZuVw9pu"
    "r2vermT2N47gquCHT8MsAyhfg9MecyLD+B9s03pA+DtPdi6cgtQJ1IXmu+nU9rZODLovAD6zSqe7QLG+NgQN6sEGSGkvLZqDtUfLsAb4pQUoPStJ"
    "n4GOhvUZ1pkQk2rtZauH+9W7/S0/jALUk0oM8iF5UvqX/hOmbxb6bYsxA36+FuhrlWGQo/rMH+peY7qrRcCvMTKmvzF4550Lp0C/F6bvGdmKY5Ch"
    "C7tHcrKtd150be+W2W7f0judVi85aNlkdnEuPZdRHPrD99cHvYsgtE3/K/8AbbC2VDAHAAA="
)


def test_the_tables_of_earlier_versions_are_read(tmp_path):
    (tmp_path / "t.parquet").write_bytes(gzip.decompress(base64.b64decode(VERSION_1)))
    found = StudyTable.read(tmp_path / "t.parquet")
    assert found.settings == {"bins": [5, 15], "seed": 3, "validation": 0.2}
    assert [found[name].tolist() for name in ("model", "pre_ece_15")] == [["a", "b"], [0.125, 0.25]]


@pytest.mark.parametrize(("version", "read"), [(1, True), (2, False), (10**30, False)])
def test_a_table_of_a_newer_version_is_refused_with_advice(tmp_path, version, read):
    note = json.dumps({"version": version, "seed": 3})
    pq.write_table(pa.table({"model": ["a"]}).replace_schema_metadata({"certcal.study": note}), tmp_path / "t.parquet")
    if read:
        assert StudyTable.read(tmp_path / "t.parquet").settings == {"seed": 3}
    else:
        with pytest.raises(InputError, match=r"t.parquet: a newer certcal wrote this table .*; upgrade certcal"):
            StudyTable.read(tmp_path / "t.parquet")


def test_files_that_are_no_table_of_a_study_are_refused_in_a_sentence(tmp_path):
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    (tmp_path / "t.csv").write_text("model,x\na,1\n")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    pq.write_table(pa.table({"model": pa.array([], pa.string())}), tmp_path / "empty.parquet")
    pq.write_table(pa.table({"model": ["a", "a"]}), tmp_path / "twice.parquet")
    for name, sentence in {
        "none.parquet": "there is no such file",
        "cut.parquet": "cannot be read",
        "t.csv": "not the table of a study",
        "other.parquet": "not the table of a study",
        "empty.parquet": "has no rows",
        "twice.parquet": "twice.parquet: row 1 is the second one of model 'a'",
    }.items():
        with pytest.raises(InputError, match=sentence):
            StudyTable.read(tmp_path / name)


def test_text_that_is_not_unicode_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="column 'model' holds"):
        StudyTable.of({"model": ["net\udcff"]}).write(tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_table_shows_what_is_in_it():
    assert repr(table()) == "StudyTable(rows=4, models=2, datasets=2, measurements=1, failed=1)"
    shown = table()._repr_html_()
    assert "<td>4</td>" in shown
    assert "data sets" in shown
    lines = [line.split() for line in str(table()).splitlines()]
    assert [(words[0], words[-1]) for words in lines] == [
        *(("rows", "4"), ("models", "2"), ("data", "2"), ("measurements", "1"), ("failed", "1"))
    ]


def test_the_overview_has_the_medians_of_what_did_not_fail():
    easy, hard = overview(table()).medians
    assert (easy.data, easy.models, easy.failed, easy.bins) == ("easy", 2, 0, 15)
    assert easy.accuracy == pytest.approx(0.85)
    assert easy.before == pytest.approx(0.15)
    assert np.isnan(easy.after)
    assert (hard.models, hard.failed, hard.accuracy) == (2, 1, 0.7)


def test_the_overview_takes_the_number_of_bins_nearest_to_fifteen():
    columns = {f"pre_ece_{bins}": [bins / 1000] for bins in STUDY_BINS if bins != 15}
    (line,) = overview(StudyTable.of({"model": ["a"], **columns})).medians
    assert (line.bins, line.before) == (10, 0.01)


def test_a_table_without_measurements_has_an_overview():
    (line,) = overview(StudyTable.of({"model": ["a"]})).medians
    assert line.bins is None
    assert np.isnan([line.accuracy, line.before, line.after]).all()


def test_an_unknown_column_is_answered_with_a_short_list_that_begins_with_the_users_own():
    names = {f"pre_ece_{bins}": [0.1] for bins in range(1, 60)}
    with pytest.raises(InputError) as caught:
        StudyTable.of({"model": ["a"], "width": [3], **names})["fgsm"]
    assert "no column 'fgsm'; it has width, model, data, split" in str(caught.value)
    assert str(caught.value).endswith("and 59 measurements such as pre_ece_1")
