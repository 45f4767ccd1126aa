"""Reading predictions from every format, whole and in pieces."""

import gzip
import io
import json
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from certcal import InputError
from certcal.data import (
    OpenTable,
    PredictionStream,
    load_table,
    open_table,
    read_inputs,
    read_intervals,
    read_predictions,
)
from certcal.data.text import _CountedQuotes

RNG = np.random.default_rng(5)
N = 1000
PROBABILITIES = RNG.dirichlet(np.ones(4), N).astype(np.float32)
LABELS = RNG.integers(0, 4, N)
CONFIDENCE = RNG.random(N)
CORRECT = RNG.integers(0, 2, N)
TOP = PROBABILITIES.max(axis=1)
RIGHT = (PROBABILITIES.argmax(axis=1) == LABELS).astype(np.uint8)


def wide_table():
    columns = {f"prob_{k}": PROBABILITIES[:, k] for k in range(4)}
    return pa.table(columns | {"label": LABELS})


def write(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=300)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path, chunksize=170)
    elif path.suffix == ".tsv":
        pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(delimiter="\t"))
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        np.savez(path, **{name: table[name].to_numpy() for name in table.column_names})
    return path


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv", ".tsv", ".npz"])
def test_every_format_gives_the_same_predictions(tmp_path, ending):
    predictions = read_predictions(write(wide_table(), tmp_path / f"table{ending}"))
    assert predictions.kind == "probabilities"
    assert predictions.classes == 4
    np.testing.assert_array_equal(np.float32(predictions.confidence), TOP)
    np.testing.assert_array_equal(predictions.correct, RIGHT)
    np.testing.assert_array_equal(predictions.labels, LABELS)


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".npz"])
def test_typed_formats_keep_single_precision(tmp_path, ending):
    assert read_predictions(write(wide_table(), tmp_path / f"table{ending}")).confidence.dtype == np.float32


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv", ".npz"])
@pytest.mark.parametrize("size", [1, 7, 300, 5000])
def test_pieces_put_together_are_the_whole_and_can_be_read_again(tmp_path, ending, size):
    path = write(wide_table(), tmp_path / f"table{ending}")
    stream = PredictionStream(path, size=size)
    whole = read_predictions(path)
    for _ in range(2):
        pieces = list(stream)
        assert all(len(piece) <= size for piece in pieces)
        np.testing.assert_array_equal(np.concatenate([piece.confidence for piece in pieces]), whole.confidence)
        np.testing.assert_array_equal(np.concatenate([piece.correct for piece in pieces]), whole.correct)


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv", ".npz"])
def test_a_table_tells_its_columns_and_reads_some_of_them(tmp_path, ending):
    table = open_table(write(wide_table(), tmp_path / f"table{ending}"))
    assert table.names == ("prob_0", "prob_1", "prob_2", "prob_3", "label")
    assert table.rows in (N, None)
    part = table.read(["label", "prob_2"], numbers=["prob_2"])
    assert part.column_names == ["label", "prob_2"]
    assert part.num_rows == N
    with pytest.raises(InputError, match=r"there is no column 'prob_9'"):
        table.chunks(["prob_9"])
    with pytest.raises(InputError, match=r"size is 0"):
        table.chunks(["label"], 0)


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 4), pa.large_list(pa.float64())])
def test_a_column_of_lists_is_a_matrix(tmp_path, kind):
    path = tmp_path / "lists.parquet"
    pq.write_table(pa.table({"probabilities": pa.array(list(PROBABILITIES), kind), "label": LABELS}), path)
    np.testing.assert_array_equal(np.float32(read_predictions(path).confidence), TOP)


@pytest.mark.parametrize("comments", ["# ", "#", ""])
@pytest.mark.parametrize("delimiter", [" ", ",", "\t", ";"])
@pytest.mark.parametrize("ending", [".txt", ".csv.gz"])
def test_what_numpy_writes_as_text_is_read(tmp_path, comments, delimiter, ending):
    def saved(names, *columns, **options):
        path, header = tmp_path / f"saved{ending}", names.replace(" ", delimiter)
        np.savetxt(path, np.column_stack(columns), delimiter=delimiter, header=header, comments=comments, **options)
        return path

    predictions = read_predictions(saved("confidence y_true", CONFIDENCE, CORRECT))
    np.testing.assert_array_equal(predictions.confidence, CONFIDENCE)
    np.testing.assert_array_equal(predictions.correct, CORRECT)
    names = " ".join(f"p_{k}" for k in range(PROBABILITIES.shape[1])) + " label"
    np.testing.assert_array_equal(read_predictions(saved(names, PROBABILITIES, LABELS)).correct, RIGHT)
    path = saved("confidence prediction label", CONFIDENCE, 10 + CORRECT, np.full(N, 11))
    np.testing.assert_array_equal(read_predictions(path).correct, CORRECT)
    path = saved("lower upper correct", CONFIDENCE, CONFIDENCE, CORRECT)
    np.testing.assert_array_equal(read_intervals(path).correct, CORRECT)
    inputs = read_inputs(saved("height width target", CONFIDENCE, CONFIDENCE, LABELS, fmt="%12.6f"))
    np.testing.assert_array_equal(inputs.labels, LABELS)
    np.testing.assert_allclose(inputs.inputs[:, 1], CONFIDENCE, atol=1e-6)


def test_a_comment_may_have_several_lines_of_which_the_last_has_the_names(tmp_path):
    path = tmp_path / "saved.txt"
    np.savetxt(path, [[0.5, 1], [0.25, 0]], header="made by us\nconfidence correct")
    assert read_predictions(path).confidence.tolist() == [0.5, 0.25]
    names = [f"a_column_of_number_{k}" for k in range(5000)]
    np.savetxt(path, np.eye(5000)[:2], header=" ".join(names), fmt="%d")
    assert open_table(path).names == tuple(names)
    path.write_text("#,confidence,correct\n1,0.5,1\n")  # a column of row numbers
    assert open_table(path).names == ("#", "confidence", "correct")
    path.write_text("my confidence\n0.5\n")
    assert open_table(path).names == ("my confidence",)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0.5 1\n0.25  0 \n0.5\n", r"line 5 has 1 fields where the header has 2"),
        ("  0.5 1\nhigh 1\n", r"column 'confidence', row 2 \(line 4\) is 'high', not a number"),
        ("0.5 7\n", r"column 'correct', row 1 is '7', neither 0/1 nor true/false"),
    ],
)
def test_what_is_wrong_below_a_comment_is_placed(tmp_path, rows, message):
    path = tmp_path / "saved.txt"
    path.write_text(f"# made by us\n# confidence correct\n{rows}")
    with pytest.raises(InputError, match=message):
        read_predictions(path)


def test_spaces_between_columns_may_end_anywhere_in_what_is_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("certcal.data.text._BLOCK_BYTES", 256)
    path = tmp_path / "spaced.txt"
    gaps = [" " * count for count in np.random.default_rng(2).integers(1, 99, N)]
    path.write_text("# confidence  correct\n" + "".join(f"{gap}0.5{gap}1{gap}\n" for gap in gaps) + "   ")
    predictions = read_predictions(path)
    assert (len(predictions), set(predictions.confidence.tolist())) == (N, {0.5})


@pytest.mark.parametrize("name", ["table.jsonl", "table.ndjson", "table.jsonl.gz"])
def test_json_lines_are_read_whatever_the_order_and_the_types(tmp_path, name):
    rows = [{"conf": 0.5, "pred": "a", "label": "a"}, {"label": 1, "conf": 1, "pred": True}]
    content = "\n\n".join(map(json.dumps, [*rows, {"conf": 0.25, "pred": 2, "label": "2.0"}])).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    predictions = read_predictions(path)
    assert (predictions.confidence.tolist(), predictions.correct.tolist()) == ([0.5, 1, 0.25], [1, 0, 1])
    kinds = [(column.name, column.kind) for column in open_table(path).columns]
    assert kinds == [("conf", "number"), ("pred", "text"), ("label", "text")]


def test_a_field_that_is_empty_at_first_is_known_by_what_follows(tmp_path):
    path = tmp_path / "late.jsonl"
    path.write_text('{"probs": [0.5, 0.5], "y": null}\n{"probs": null, "y": 0}\n{"probs": [1, 0], "y": "a", "z": [1]}')
    kinds = {column.name: column.kind for column in open_table(path).columns}
    assert kinds == {"probs": "list", "y": "number", "z": "list"}
    assert open_table(path).read(["y"])["y"].to_pylist() == [None, "0", "a"]


def test_json_lines_of_lists_are_a_matrix_and_come_in_pieces(tmp_path, monkeypatch):
    path = tmp_path / "lists.jsonl"
    rows = zip(PROBABILITIES.tolist(), LABELS.tolist(), strict=True)
    path.write_text("".join(json.dumps({"probs": row, "y": label}) + "\n" for row, label in rows))
    predictions = read_predictions(path)
    np.testing.assert_array_equal(predictions.probabilities, PROBABILITIES.astype(float))
    np.testing.assert_array_equal(predictions.correct, RIGHT)
    assert [len(piece) for piece in PredictionStream(path, size=300)] == [300, 300, 300, 100]
    monkeypatch.setattr("certcal.data.text._BLOCK_BYTES", 4096)
    assert max(len(piece) for piece in PredictionStream(path)) < 100


def test_a_field_that_changes_its_kind_after_many_lines_is_said_with_the_row(tmp_path, monkeypatch):
    monkeypatch.setattr("certcal.data.text._BLOCK_BYTES", 4096)
    path = tmp_path / "changes.jsonl"
    rows = [{"conf": 0.5, "n": place, "y": None if place < 300 else place / 2} for place in range(600)]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"conf": 0.5, "n": "many", "y": 1}]))
    found = open_table(path).read(["conf", "y"])
    assert found["y"].to_pylist()[298:302] == [None, None, 150.0, 150.5]
    what = r"column 'n' holds number values first and text values from row \d+ on; write one kind, or null"
    with pytest.raises(InputError, match=rf"changes\.jsonl: {what} where there is none$"):
        open_table(path).read(["n"])


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv", ".csv.gz", ".npz", ".jsonl", ".jsonl.gz", ".zst"])
def test_standard_input_is_read_like_a_file_and_as_often(tmp_path, monkeypatch, ending):
    path = tmp_path / f"table{ending}"
    if ending.startswith((".jsonl", ".zst")):
        content = ("\n" + "".join(json.dumps(row) + "\n" for row in wide_table().to_pylist())).encode()
        packed = {".jsonl.gz": gzip.compress, ".zst": pa.Codec("zstd").compress}.get(ending, bytes)(content)
        path.write_bytes(packed)
    elif ending == ".csv.gz":
        path.write_bytes(gzip.compress(write(wide_table(), tmp_path / "table.csv").read_bytes()))
    else:
        write(wide_table(), path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    stream = PredictionStream("-")
    assert str(stream.table.path) == "standard input"
    for _ in range(2):
        np.testing.assert_array_equal(np.concatenate([piece.correct for piece in stream]), RIGHT)
    np.testing.assert_array_equal(read_predictions("-").correct, RIGHT)
    if ending != ".npz":  # which would have to hold inputs
        np.testing.assert_array_equal(read_inputs("-").labels, LABELS)


def test_a_pipe_is_refused_with_the_name_of_standard_input(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match=r"pipe: this is not a regular file; give - for standard input, or Parquet"):
        read_predictions(pipe)


def test_a_closed_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match=r"^standard input: it is closed; give a file$"):
        read_predictions("-")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "the file is empty"), (b"PAR1", "cannot be read"), (b"x\n1", "no c"), (b"\x1f\x8bxy", "cannot be read")],
)
def test_errors_about_standard_input_name_it(monkeypatch, content, message):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(InputError, match=f"^standard input: .*{message}"):
        read_predictions("-")


def test_npz_arrays_are_found_by_name_and_others_ignored(tmp_path):
    path = tmp_path / "arrays.npz"
    np.savez(path, probs=PROBABILITIES, y_true=LABELS.reshape(-1, 1), temperature=1.5, images=np.zeros((2, 3, 3)))
    predictions = read_predictions(path)
    np.testing.assert_array_equal(predictions.correct, RIGHT)
    np.savez(tmp_path / "logits.npz", logits=np.log(PROBABILITIES), labels=LABELS)
    assert read_predictions(tmp_path / "logits.npz").kind == "logits"
    np.savez_compressed(tmp_path / "scores.npz", confidence=CONFIDENCE, correct=CORRECT.astype(bool))
    np.testing.assert_array_equal(read_predictions(tmp_path / "scores.npz").confidence, CONFIDENCE)


def test_npz_with_swapped_bytes_long_doubles_and_text_is_read(tmp_path):
    path = tmp_path / "odd.npz"
    names = np.array(["a", "b"])
    np.savez(path, conf=CONFIDENCE.astype(">f8"), label=names[CORRECT], pred=names[np.zeros(N, int)])
    predictions = read_predictions(path)
    np.testing.assert_array_equal(predictions.confidence, CONFIDENCE)
    np.testing.assert_array_equal(predictions.correct, CORRECT == 0)
    np.savez(path, conf=CONFIDENCE.astype(np.longdouble), correct=CORRECT)
    np.testing.assert_array_equal(read_predictions(path).confidence, CONFIDENCE)


def test_an_npz_matrix_is_not_copied_on_its_way(tmp_path):
    path = tmp_path / "arrays.npz"
    np.savez(path, probabilities=PROBABILITIES, labels=LABELS)
    predictions = read_predictions(path)
    assert not predictions.probabilities.flags.owndata


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["1", "0", "1"], [1, 0, 1]),
        (["true", "False", "TRUE"], [1, 0, 1]),
        (["yes", "no", "yes"], [1, 0, 1]),
        (["1.0", "0.0", "1.0"], [1, 0, 1]),
    ],
)
def test_correctness_may_be_written_in_words(tmp_path, words, expected):
    path = tmp_path / "words.csv"
    path.write_text("confidence,correct\n" + "".join(f"0.5,{word}\n" for word in words))
    assert read_predictions(path).correct.tolist() == expected


def test_class_names_in_columns_are_matched_with_text_labels(tmp_path):
    path = tmp_path / "named.csv"
    path.write_text("prob_cat,prob_dog,label\n0.9,0.1,cat\n0.8,0.2,Dog\n0.3,0.7,dog\n")
    predictions = read_predictions(path)
    assert predictions.labels.tolist() == [0, 1, 1]
    assert predictions.correct.tolist() == [1, 0, 1]


def test_classes_numbered_from_one_are_matched_by_their_number(tmp_path):
    path = tmp_path / "from_one.csv"
    path.write_text("prob_1,prob_2,label\n0.9,0.1,1\n0.8,0.2,2\n")
    assert read_predictions(path).labels.tolist() == [0, 1]


def test_numbers_as_labels_of_named_columns_need_the_order_to_be_given(tmp_path):
    path = tmp_path / "named.csv"
    path.write_text("prob_dog,prob_cat,label\n0.9,0.1,0\n0.2,0.8,1\n")
    with pytest.raises(
        InputError, match=r"column 'label', row 1 is '0', which is none of the classes .*in class order"
    ):
        read_predictions(path)
    assert read_predictions(path, probabilities="prob_dog,prob_cat").correct.tolist() == [1, 1]
    assert read_predictions(path, probabilities=["prob_cat", "prob_dog"]).correct.tolist() == [0, 0]


def test_predictions_equal_labels_whatever_their_types(tmp_path):
    path = tmp_path / "types.parquet"
    table = pa.table({"conf": [0.5, 0.6, 0.7], "pred": [1, 2, 3], "label": ["1", "3", "3.0"]})
    pq.write_table(table, path)
    assert read_predictions(path).correct.tolist() == [1, 0, 1]
    pq.write_table(table.set_column(2, "label", pa.array([1.0, 2.0, 4.0])), path)
    assert read_predictions(path).correct.tolist() == [1, 1, 0]


def test_dictionary_decimal_and_half_columns_are_read(tmp_path):
    path = tmp_path / "types.parquet"
    half = pa.array(np.array([0.5, 0.25, 1.0], np.float16))
    table = pa.table({"conf": half, "pred": pa.array(["a", "b", "a"]).dictionary_encode(), "label": ["a", "a", "a"]})
    pq.write_table(table, path)
    predictions = read_predictions(path)
    assert predictions.confidence.dtype == np.float16
    assert predictions.correct.tolist() == [1, 0, 1]
    decimal = pa.array([0.5, 0.25, 1.0]).cast(pa.decimal128(5, 3))
    pq.write_table(pa.table({"conf": decimal, "correct": [True, False, True]}), path)
    assert read_predictions(path).confidence.tolist() == [0.5, 0.25, 1.0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.csv", "conf,correct\n0.5,1\n"),
        ("semicolon.csv", "conf;correct\n0.5;1\n"),
        ("tab.csv", "conf\tcorrect\n0.5\t1\n"),
        ("bar.txt", "conf|correct\n0.5|1\n"),
        ("tabs.tsv", "conf\tcorrect\n0.5\t1\n"),
        ("bom.csv", "\ufeffconf,correct\n0.5,1\n"),
        ("windows.csv", "conf,correct\r\n0.5,1\r\n"),
        ("quoted.csv", '"conf","note","correct"\n"0.5","two\nlines, and a comma","1"\n'),
        ("spaces.csv", "conf,correct\n 0.5,1\n"),
        ("no_newline.csv", "conf,correct\n0.5,1"),
        ("blank_lines.csv", "conf,correct\n\n0.5,1\n\n"),
    ],
)
def test_text_tables_as_people_write_them(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text.encode())
    predictions = read_predictions(path)
    assert predictions.confidence.tolist() == [0.5]
    assert predictions.correct.tolist() == [1]


def test_compressed_text_is_read(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"conf,correct\n0.5,1\n"))
    assert read_predictions(path).confidence.tolist() == [0.5]


def test_decimals_in_text_are_the_floats_python_would_read(tmp_path):
    path = tmp_path / "decimals.csv"
    texts = [repr(float(value)) for value in CONFIDENCE] + ["0.1", "1e-3", "1", "0", ".5", "1."]
    path.write_text("conf,correct\n" + "".join(f"{text},1\n" for text in texts))
    np.testing.assert_array_equal(read_predictions(path).confidence, [float(text) for text in texts])


def test_weights_are_read_when_named_so_or_given(tmp_path):
    path = tmp_path / "weights.csv"
    path.write_text("conf,correct,weight\n0.5,1,2\n0.5,0,1\n")
    assert read_predictions(path).sample_weight is None
    assert read_predictions(path, weight="weight").sample_weight.tolist() == [2.0, 1.0]


def test_groups_come_in_natural_order_with_missing_values_as_their_own(tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text("conf,correct,site\n0.1,0,site 10\n0.2,0,site 9\n0.3,1,\n0.4,1,site 9\n")
    loaded = load_table(path, by="site")
    found = {name: group.confidence.tolist() for name, group, *_ in loaded.groups}
    assert list(found) == ["(missing)", "site 9", "site 10"]
    assert found == {"(missing)": [0.3], "site 9": [0.2, 0.4], "site 10": [0.1]}
    assert load_table(path).groups == ()


def test_groups_keep_their_numbers_across_pieces(tmp_path):
    path = tmp_path / "groups.parquet"
    site = np.array(["b", "a", "c"])[np.arange(N) // 400]
    pq.write_table(pa.table({"conf": CONFIDENCE, "correct": CORRECT, "site": site}), path, row_group_size=100)
    loaded = load_table(path, by="site")
    for name, group, *_ in loaded.groups:
        np.testing.assert_array_equal(group.confidence, CONFIDENCE[site == name])


def test_reading_tells_how_far_it_is(tmp_path):
    seen = []
    load_table(write(wide_table(), tmp_path / "table.csv"), advance=seen.append)
    assert sum(seen) == N


def test_later_rows_of_another_type_than_the_first_are_still_read(tmp_path):
    path = tmp_path / "late.csv"
    rows = ["1,1"] * 700_000 + ["0.5,0"]
    path.write_text("conf,correct\n" + "\n".join(rows))
    predictions = read_predictions(path)
    assert predictions.confidence[-1] == 0.5
    assert len(predictions) == 700_001


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_each_of_many_columns_is_looked_for_once(tmp_path, monkeypatch, ending):
    names = [f"prob_c{index}" for index in range(3000)]
    columns = {name: [float(index == 0), float(index == 7)] for index, name in enumerate(names)}
    table = pa.table({**columns, "label": ["c0", "C7"]})
    path = tmp_path / f"wide{ending}"
    pq.write_table(table, path) if ending == ".parquet" else pyarrow.csv.write_csv(table, path)
    asked = []
    listed = OpenTable.names.fget
    monkeypatch.setattr(OpenTable, "names", property(lambda table: asked.append(1) or listed(table)))
    assert read_predictions(path).correct.tolist() == [1, 1]
    assert len(asked) < 10  # a list of all names for each of them made 20,000 columns take minutes


@pytest.mark.parametrize(
    "text",
    [
        "# model 7, run 3\nscore,outcome\n0.9,1\n0.2,0\n",
        "# predictions of a model\nscore,outcome\n0.9,1\n0.2,0\n",
        "   score   outcome\n   0.9         1\n   0.2         0\n",
    ],
)
def test_a_comment_above_names_is_a_comment_and_names_may_be_aligned_to_the_right(tmp_path, text):
    (tmp_path / "table.csv").write_text(text)
    found = read_predictions(tmp_path / "table.csv")
    assert (found.confidence.tolist(), found.correct.tolist()) == ([0.9, 0.2], [1, 0])


def test_blanks_in_a_table_of_spaces_are_never_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("certcal.data.text._BLOCK_BYTES", 1 << 12)
    content = b"score outcome\n0.5 1\n" + b" " * (1 << 20) + b"\n" * (1 << 16) + b"0.6 0\n"
    (tmp_path / "blank.csv.gz").write_bytes(gzip.compress(content))
    with _CountedQuotes(tmp_path / "blank.csv.gz", spaced=True) as stream:
        held = 0
        while stream.read(1 << 12):
            held = max(held, len(stream._held))
    assert held <= 1
    assert read_predictions(tmp_path / "blank.csv.gz").confidence.tolist() == [0.5, 0.6]


def test_a_field_that_stands_twice_in_a_line_is_refused(tmp_path):
    path = tmp_path / "twice.jsonl"
    path.write_text('{"score": 0.5, "outcome": 1}\n{"score": 0.5, "score": 0.9, "outcome": 1}\n')
    with pytest.raises(InputError, match=r"twice.jsonl: line 2 has a field twice; repair or drop it"):
        read_predictions(path)
