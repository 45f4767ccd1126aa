import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal.lab.study import Entry
from certcal.lab.study._entries import open_source


def files(folder, *names):
    for name in names:
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def keys(source, layout="data/model"):
    return [entry.key for entry in open_source(source, layout)]


def manifest(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("data/model", ("b", "a", "test")),
        ("model/data", ("a", "b", "test")),
        ("split/model", ("b", "data", "a")),
    ],
)
def test_the_layout_says_what_the_parts_of_a_path_are(tmp_path, layout, expected):
    files(tmp_path, "a/b.npz")
    assert keys(tmp_path, layout) == [expected]


def test_layouts_may_have_one_or_three_parts(tmp_path):
    files(tmp_path / "flat", "a.npz", "b.csv")
    assert keys(tmp_path / "flat", "model") == [("a", "data", "test"), ("b", "data", "test")]
    files(tmp_path / "deep", "cifar/early/a.npz", "cifar/late/a.npz")
    assert keys(tmp_path / "deep", "data/split/model") == [("a", "cifar", "early"), ("a", "cifar", "late")]


@pytest.mark.parametrize("layout", ["", "data", "model/model", "data/file/model", "/model"])
def test_other_layouts_are_refused(tmp_path, layout):
    files(tmp_path, "a/b.npz")
    with pytest.raises(InputError, match="pass 'model' and perhaps 'data' and 'split'"):
        keys(tmp_path, layout)


def test_files_come_in_the_order_of_their_names_without_their_endings(tmp_path):
    files(tmp_path, "d/n.b.parquet", "d/a.csv.gz", "d/C.NPZ", "c/z.feather")
    assert keys(tmp_path) == [("z", "c", "test"), ("C", "d", "test"), ("a", "d", "test"), ("n.b", "d", "test")]


def test_hidden_files_and_files_of_other_kinds_are_left_alone(tmp_path):
    files(tmp_path, "d/a.npz", "d/.b.npz", ".cache/c.npz", "d/notes.md", "d/weights.pt", "README.txt.md")
    assert keys(tmp_path) == [("a", "d", "test")]


@pytest.mark.parametrize("name", ["models.csv", "d/e/deep.npz"])
def test_a_prediction_file_in_the_wrong_place_is_refused_rather_than_not_measured(tmp_path, name):
    files(tmp_path, "d/a.npz", name)
    with pytest.raises(InputError, match=f"{name}: the layout data/model has no file here"):
        keys(tmp_path)


@pytest.mark.parametrize(
    ("name", "layout", "example"),
    [
        ("a.npz", "data/model", "model"),
        ("d/a.npz", "model", "data/model"),
        ("d/s/a.npz", "data/model", "data/split/model"),
    ],
)
def test_a_layout_that_would_fit_is_named(tmp_path, name, layout, example):
    files(tmp_path, name)
    with pytest.raises(InputError, match=rf"\(such as {example}\)"):
        open_source(tmp_path, layout)
    assert len(list(open_source(tmp_path, example))) == 1


def test_predictions_in_place_of_a_manifest_are_recognised(tmp_path):
    np.savez(tmp_path / "net.npz", logits=np.zeros((3, 2)), labels=[0, 1, 0])
    with pytest.raises(InputError, match=r"no column 'predictions'.*if these are predictions, give the folder instead"):
        open_source(tmp_path / "net.npz")
    with pytest.raises(InputError, match=r"the columns are 'model', 'file'$"):
        open_source(manifest(tmp_path / "models.csv", "model,file\na,a.npz\n"))


def test_a_manifest_in_one_piece_of_json_is_told_to_be_lines(tmp_path):
    with pytest.raises(InputError, match=r"models.json: a manifest in JSON has one object per line"):
        open_source(manifest(tmp_path / "models.json", '[{"model": "a", "predictions": "a.npz"}]'))


def test_a_manifest_from_a_spreadsheet_is_read_and_one_that_is_no_text_is_told_how_to_be_saved(tmp_path):
    path = tmp_path / "models.csv"
    path.write_bytes("model,predictions\ncafé,a.npz\n".encode("cp1252"))
    np.savez(tmp_path / "a.npz", confidence=[0.5], correct=[1])
    assert [entry.model for entry in open_source(path)] == ["café"]
    path.write_bytes(b"model,predictions\n\x81\xe9,a.npz\n")
    with pytest.raises(InputError, match=r"models.csv: this text table is not UTF-8 text: line 2 .*; save it as UTF-8"):
        open_source(path)


def test_an_empty_folder_is_refused(tmp_path):
    files(tmp_path, "d/notes.md")
    with pytest.raises(InputError, match="there are no prediction files in it"):
        keys(tmp_path)


def test_the_same_model_in_two_formats_is_refused(tmp_path):
    files(tmp_path, "d/a.npz", "d/a.csv")
    with pytest.raises(InputError, match=r"d/a.npz is model 'a' on 'd' \(test\) again, as .*d/a.csv is"):
        keys(tmp_path)


def test_links_are_followed_but_not_in_circles(tmp_path):
    files(tmp_path / "elsewhere", "a.npz")
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "d").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "zoo" / "again").symlink_to(tmp_path / "zoo")
    with pytest.raises(InputError, match=r"again/d/a.npz: the layout data/model has no file here"):
        keys(tmp_path / "zoo")
    (tmp_path / "zoo" / "again").unlink()
    assert keys(tmp_path / "zoo") == [("a", "d", "test")]


def test_names_that_are_not_unicode_are_escaped_and_their_files_still_found(tmp_path):
    (tmp_path / "d").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path / "d") + b"/net\xff.npz")).touch()
    (entry,) = open_source(tmp_path)
    assert entry.model == "net\\udcff"
    assert entry.file.is_file()


def test_a_manifest_lists_files_with_columns_of_its_own(tmp_path):
    text = "model,predictions,data,split,depth,kind,ood:svhn\n007,p/a.npz,cifar,late,18,x,o.npz\n8,/b.npz,,,,,\n"
    first, second = open_source(manifest(tmp_path / "models.csv", text))
    assert first.key == ("007", "cifar", "late"), "a name is a text, also one of digits"
    assert first.file == tmp_path / "p" / "a.npz"
    assert first.given == {"depth": 18.0, "kind": "x"}
    assert first.out_of_distribution == {"svhn": "o.npz"}
    assert second.key == ("8", "data", "test")
    assert second.file == Path("/b.npz")
    assert second.given == {"depth": None, "kind": None}
    assert second.out_of_distribution == {}


def test_texts_that_are_not_all_numbers_stay_texts(tmp_path):
    text = "model,predictions,a,b,c\nx,x.npz,1,1_000,1e3\ny,y.npz,z,2,nan\n"
    first, _ = open_source(manifest(tmp_path / "models.csv", text))
    assert first.given == {"a": "1", "b": "1_000", "c": 1000.0}


def test_manifests_in_json_lines_and_parquet_say_the_same(tmp_path):
    rows = [
        {"model": "a", "predictions": "a.npz", "depth": 18, "kind": "x"},
        {"model": "b", "predictions": "b.npz", "depth": None, "kind": "7"},
    ]
    lines = manifest(tmp_path / "models.jsonl", "".join(f"{json.dumps(row)}\n\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "models.parquet")
    for path in (lines, tmp_path / "models.parquet"):
        found = list(open_source(path))
        assert [(entry.key, entry.given) for entry in found] == [
            (("a", "data", "test"), {"depth": 18, "kind": "x"}),
            (("b", "data", "test"), {"depth": None, "kind": "7"}),
        ]


def test_a_model_without_predictions_may_say_why(tmp_path):
    text = "model,predictions,reason\na,,training diverged\nb,,\n"
    first, second = open_source(manifest(tmp_path / "models.csv", text))
    assert (first.predictions, first.reason) == (None, "training diverged")
    assert (second.predictions, second.reason) == (None, "")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("model,path\na,a.npz\n", "there is no column 'predictions' .* the columns are 'model', 'path'"),
        ("name,predictions\na,a.npz\n", "there is no column 'model'"),
        ("model,predictions\n", "no rows"),
        ("", "the file is empty"),
        ("model,predictions\na,a.npz\nb,b.npz\na,c.npz\n", "row 3 is model 'a' on 'data' .* again, as .* row 1 is"),
        ("model,predictions\na,a.npz\n,b.npz\n", "row 2: model is ''; pass a name"),
        ("model,predictions,accuracy\na,a.npz,1\n", "column 'accuracy', which .* such as 'given_accuracy'"),
        ("model,predictions,pre_ece_15\na,a.npz,1\n", "column 'pre_ece_15', which"),
        ("model,predictions,auroc_x\na,a.npz,1\n", "column 'auroc_x', which"),
        ("model,predictions,\na,a.npz,1\n", "a column without a name"),
        ("model,predictions,ood:\na,a.npz,o.npz\n", "row 1: out_of_distribution has a data set without a name"),
        ("model,predictions\na,a.npz,1\n", "line 2 has 3 fields"),
        ("model,predictions,x,x\na,a.npz,1,2\n", "2 columns are called 'x'"),
    ],
)
def test_manifests_that_cannot_be_used_are_refused_with_the_place(tmp_path, text, sentence):
    path = manifest(tmp_path / "models.csv", text)
    with pytest.raises(InputError, match=sentence) as caught:
        open_source(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"model": "a", "predictions": "a.npz"}\n{"model"\n', "line 2 is no JSON"),
        ("[1]\n", "line 1 is no JSON object"),
        ("[" * 100_000, "line 1 is no JSON"),
        ("\n\n", "no rows"),
        ('{"model": "a", "predictions": "a.npz", "x": [1]}', r"row 1: given\['x'\] is \[1\]; pass a number or a text"),
        ('{"model": "\udcff"}', "not UTF-8"),
    ],
)
def test_json_lines_that_cannot_be_used_are_refused_with_the_place(tmp_path, text, sentence):
    path = tmp_path / "models.jsonl"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=sentence):
        open_source(path)


def test_a_manifest_that_is_not_there_is_answered_with_the_nearest(tmp_path):
    files(tmp_path, "models.csv", "models.jsonl")
    with pytest.raises(InputError, match=r"model.csv: there is no such file; did you mean .*models.csv"):
        open_source(tmp_path / "model.csv")
    with pytest.raises(InputError, match=r"did you mean .*models.jsonl"):
        open_source(tmp_path / "model.jsonl")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"model": ""}, "model is ''; pass a name"),
        ({"model": 3}, "model is 3; pass a name"),
        ({"data": None}, "data is None; pass a name"),
        ({"predictions": [[1.0]]}, r"predictions \(list\) are neither Predictions nor the name of a file"),
        ({"given": {"model": "x"}}, "given has 'model', which is the name of a column that is measured"),
        ({"given": {"x": object}}, r"given\['x'\] is .*; pass a number or a text"),
    ],
)
def test_entries_are_checked_when_they_are_made(fields, sentence):
    with pytest.raises(InputError, match=sentence):
        Entry(**({"model": "a", "predictions": "a.npz"} | fields))


def test_entries_are_taken_one_after_the_other_and_checked_against_those_before():
    taken = []

    def entries():
        for name in ("a", "b", "a"):
            taken.append(name)
            yield Entry(name, "x.npz", given={"x": np.float32(1)})

    source = open_source(entries())
    assert source.total is None
    found = iter(source)
    assert next(found).model == "a"
    assert taken == ["a"]
    next(found)
    with pytest.raises(InputError, match=r"source\[2\] is model 'a' .* again, as source\[0\] is"):
        next(found)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [([], "there are no entries"), (["a.npz"], r"source\[0\] is a str"), (7, "source is 7; pass a folder")],
)
def test_what_is_no_source_is_refused(source, sentence):
    with pytest.raises(InputError, match=sentence):
        list(open_source(source))


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=6)


@settings(max_examples=15)
@given(st.lists(CELLS, min_size=1, max_size=5, unique=True), st.lists(st.floats(allow_nan=False), min_size=5))
def test_any_names_and_numbers_survive_a_manifest(tmp_path_factory, models, sizes):
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    rows = [{"model": m, "predictions": f"{m}.npz", "s": s} for m, s in zip(models, sizes, strict=False)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found = list(open_source(path))
    assert [(entry.model, entry.predictions, entry.given) for entry in found] == [
        (row["model"], row["predictions"], {"s": row["s"]}) for row in rows
    ]
