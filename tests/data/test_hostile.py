"""Every file is hostile: whatever is wrong with it is one clear sentence, never another exception."""

import gzip
import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError
from certcal.data import PredictionStream, load_table, read_predictions
from certcal.data import npz as npz_files
from certcal.data import text as text_files
from certcal.data.pieces import DoesNotFit

Make = Callable[[Path], Path]
CASES: dict[str, tuple[Make, str]] = {}


def case(name: str, message: str) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        CASES[name] = (make, message)
        return make

    return register


def text(name: str, filename: str, content: bytes | str, message: str) -> None:
    def make(folder: Path) -> Path:
        path = folder / filename
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    CASES[name] = (make, message)


def parquet(name: str, columns: dict[str, object], message: str) -> None:
    def make(folder: Path) -> Path:
        path = folder / "table.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    CASES[name] = (make, message)


def npz(name: str, arrays: dict[str, object], message: str) -> None:
    def make(folder: Path) -> Path:
        path = folder / "arrays.npz"
        np.savez(path, **arrays)
        return path

    CASES[name] = (make, message)


ROWS = "conf,correct\n" + "0.5,1\n" * 3

# What is no table at all.
CASES["missing file"] = (lambda folder: folder / "nothing.csv", r"there is no such file; check the path$")
CASES["a folder"] = (lambda folder: folder, r"this is a folder; give one file")
CASES["a null byte in the path"] = (lambda folder: folder / "a\0b.csv", r"cannot be read .*null byte")
CASES["a name that is too long"] = (
    lambda folder: folder / ("x" * 5000 + ".csv"),
    r"cannot be read \(File name too long\)",
)
text("an empty file", "empty.csv", "", r"the file is empty")
text("only blank lines", "blank.csv", "\n\n  \n", r"the file is empty")
text("an unknown ending", "table.xls", "a", r"files called \.xls are not read; use Parquet")
text("text called Excel", "table.xlsx", ROWS, r"this Excel file cannot be read \(File is not a zip file\)")
text("one array", "array.npy", b"\x93NUMPY", r"a \.npy file holds one array without a name; save all .* numpy\.savez")
text("intervals", "t.csv", "lo,hi,correct\n0,1,1\n", r"only ends of intervals \('lo', 'hi'\); use certify for those")
text("no ending", "table", "hello", r"files called without an ending are not read")
text("a spreadsheet called csv", "sheet.csv", b"PK\x03\x04rest", r"zip or Excel file, not text; name it \.xlsx")
text("text called Parquet", "table.parquet", ROWS, r"not a Parquet file \(it does not begin with PAR1\)")
text("text called npz", "table.npz", ROWS, r"not an npz archive \(it is no zip file\)")
text("text called Feather", "table.feather", ROWS, r"not an Arrow file")


@case("a nearly right name", r"did you mean '.*scores\.csv'\?")
def _(folder: Path) -> Path:
    (folder / "scores.csv").write_text(ROWS)
    return folder / "score.csv"


@case("a named pipe", r"this is not a regular file")
def _(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.csv")
    return folder / "pipe.csv"


# Text tables.
text("a header without rows", "head.csv", "conf,correct\n", r"the table has no rows")
text("a short row", "short.csv", ROWS + "0.7\n", r"line 5 has 1 fields where the header has 2; repair")
text("a long row", "long.csv", ROWS + "0.7,1,0\n", r"line 5 has 3 fields where the header has 2")
text("a ragged row after a blank line", "gap.csv", "conf,correct\n\n0.5,1\n0.7\n", r"line 4 has 1 fields")
text(
    "a ragged row after a quoted newline",
    "quoted.csv",
    'conf,note,correct\n0.5,"a\nb",1\n0.7,1\n',
    r"line 4 has 2 fields where the header has 3",
)
text("a ragged row far down", "far.csv", "conf,correct\n" + "0.5,1\n" * 900_000 + "0.7\n", r"line 900002 has 1 fields")
text("an unclosed quote", "quote.csv", 'conf,correct\n0.5,"1\n', r"odd number of double quotes")
text(
    "an unclosed quote that swallows rows of a column nobody asked for",
    "swallowed.csv",
    'conf,correct,note\n0.5,1,"a\n0.5,1,b\n0.5,1,c\n',
    r"odd number of double quotes, so a quoted field may have swallowed rows; close or double it",
)
text("a word for a number", "word.csv", ROWS + "high,1\n", r"column 'conf', row 4 \(line 5\) is 'high', not a number")
text("a decimal comma", "comma.csv", 'conf,correct\n"0,5",1\n', r"'0,5', not a number; .*; add decimal=','")
text("a missing number", "hole.csv", ROWS + ",1\n", r"column 'conf', row 4 is empty; fill it or drop the row")
text("a NaN in text", "nan.csv", ROWS + "nan,1\n", r"column 'conf', row 4 is empty")
text("an infinity in text", "inf.csv", ROWS + "inf,1\n", r"column 'conf', row 4 is inf")
text("a missing outcome", "hole.csv", ROWS + "0.5,\n", r"column 'correct', row 4 is empty")
text("a confidence above one", "high.csv", ROWS + "1.5,1\n", r"column 'conf', row 4 is 1\.5, outside \[0, 1\].*logits")
text("an outcome of two", "two.csv", ROWS + "0.5,2\n", r"column 'correct', row 4 is '2', neither 0/1 nor true/false")
text("an outcome in words", "cat.csv", "score,label\n0.5,cat\n", r"column 'label', row 1 is 'cat'.*as positive")
text("no header", "bare.csv", "0.93,1\n0.2,0\n", r"does the file have a header line\?")
text("unknown columns", "other.csv", "a,b\n1,2\n", r"no column of confidences.*'a', 'b'")
text(
    "two columns of one name",
    "twins.csv",
    "conf,conf,correct\n1,1,1\n",
    r"may each be the confidence|are called 'conf'",
)
text("UTF-16 without a mark", "wide.csv", ROWS.encode("utf-16-le"), r"this is not text but a binary file")
text("bytes that are no text", "bytes.csv", b"conf,correct\n\x00\x01\x02", r"this is not text but a binary file")
LATIN = r"is not UTF-8 text: line \d+ holds the byte 0x.. \(.*café.*Windows-1252\); save it as UTF-8 .*, or say what"
FAR = b"conf,pred,label\n" + b"0.5,x,x\n" * 9000
text("Latin-1 far down", "latin.csv", FAR + b"0.5,caf\xe9,x\n", LATIN + r".*; add encoding='cp1252'$")
text("neither UTF-8 nor Windows-1252", "b.csv", b"conf,pred,label\n0.5,\x81\xe9,x\n", r"is not UTF-8 text: line 2")
text("Latin-1 in JSON lines", "latin.jsonl", b'{"conf": 0.5, "correct": 1}\n{"conf": 0.5, "caf\xe9": 1}\n', LATIN)
text("damaged compression", "table.csv.gz", b"\x1f\x8b\x08\x00rubbish", r"this text table cannot be read")
text("cut compression", "table.csv.gz", gzip.compress(ROWS.encode() * 5000)[:-20], r"table\.csv\.gz: ")
text(
    "no number in a class column", "odd.csv", "prob_0,prob_1,label\n0.5,0.5,zebra\n", r"row 1 is 'zebra', which is none"
)
text("a label that is too large", "big.csv", "prob_0,prob_1,label\n0.5,0.5,7\n", r"column 'label', row 1 is 7.*0 to 1")
text(
    "rows that do not sum to one",
    "sum.csv",
    "prob_0,prob_1,label\n0.5,0.5,0\n0.9,0.9,1\n",
    r"row 2 of 'prob_0' … 'prob_1' sums to 1\.8",
)
text(
    "logits called probabilities",
    "sum.csv",
    "prob_0,prob_1,label\n-3,4,0\n",
    r"column 'prob_0', row 1 is -3, outside.*logits",
)
text(
    "an enormous header", "wide.csv", ",".join(f"c{i}" for i in range(100_002)) + "\n", r"100002 columns are more than"
)

# What looks like numpy.savetxt's.
text("a comment of one long name", "t.csv", "#" + "a" * 200_000 + "\n1\n", r"the header has a name longer than any is")
text("a comment and nothing else", "t.txt", "# confidence correct\n", r"the table has no rows|cannot be read")
text(
    "runs of spaces", "t.txt", f"# conf correct\n0.5{' ' * 3_000_000}1\n{' ' * 3_000_000}2 1\n", r"row 2 is 2, outside"
)
text("a quote among spaces", "t.txt", '# conf correct\n0.5 "1\n0.5 1\n', r"column 'correct', row 1 is ")

# JSON lines.
ROW = '{"conf": 0.5, "correct": 1}\n'
text("a line that is no JSON", "t.jsonl", ROW + "{'conf': 0.5}\n", r"line 2 is no JSON object; write one per line")
text("a line that is no object", "t.jsonl", ROW + "\n[1, 2]\n", r"line 3 is no JSON object")
text("lines nested too deeply", "t.jsonl", ROW + "[" * 100_000, r"line 2 is no JSON object")
text("objects nested too deeply", "t.jsonl", '{"conf": ' * 100_000, r"line 1 is no JSON object")
text("a number of too many digits", "t.jsonl", '{"conf": ' + "9" * 5000 + "}", r"line 1 is no JSON object")
text("JSON without an end", "t.jsonl", ROW + '{"conf": "' + "a" * 2**22, r"line 2 is longer than any row is; repair or")
text("JSON that is not UTF-8", "t.jsonl", ROW.encode("utf-16"), r"is not UTF-8 text: line 1 holds the byte 0xFF")
text(
    "an enormous object",
    "t.jsonl",
    "{" + ", ".join(f'"c{i}": 1' for i in range(100_002)) + "}\n",
    r"100002 columns are more than",
)
text("blank JSON", "t.jsonl", "\n \n", r"no column of confidences was found")
text("cut JSON", "t.jsonl.gz", gzip.compress(ROW.encode() * 5000)[:-20], r"t\.jsonl\.gz: (this file of JSON|line )")
text("a missing field", "t.jsonl", ROW + '{"conf": 0.5}\n', r"column 'correct', row 2 is empty")
text(
    "a word in JSON", "t.jsonl", ROW + '{"conf": "high", "correct": 1}', r"column 'conf', row 2 is 'high', not a number"
)
text(
    "an object for a number",
    "t.jsonl",
    '{"conf": {"a": 1}, "correct": 1}',
    r"column 'conf' holds struct.*, not numbers",
)
text("lists among numbers", "t.jsonl", ROW + '{"conf": [1], "correct": 1}', r"file of JSON lines cannot be read")
text("a huge number", "t.jsonl", '{"conf": 1e999, "correct": 1}', r"column 'conf', row 1 is inf")
text("half a character", "t.jsonl", '{"conf": 0.5, "correct": "\\ud800"}', r"t\.jsonl: ")
text(
    "lists of different lengths in JSON",
    "t.jsonl",
    '{"probs": [0.5, 0.5], "y": 0}\n{"probs": [1], "y": 0}\n',
    r"column 'probs', row 2 has 1 entries where row 1 has 2",
)

# Parquet.
CSV_COLUMNS = {"conf": [0.5, 0.6], "correct": [1, 0]}
parquet(
    "text for numbers", {"conf": ["0.5", "high"], "correct": [1, 0]}, r"column 'conf', row 2 is 'high', not a number"
)
parquet("missing values", {"conf": [0.5, None], "correct": [1, 0]}, r"column 'conf', row 2 is empty")
parquet("only missing values", {"conf": [None, None], "correct": [1, 0]}, r"column 'conf', row 1 is empty")
parquet("NaN", {"conf": [0.5, float("nan")], "correct": [1, 0]}, r"column 'conf', row 2 is nan")
parquet("true/false for confidence", {"conf": [True, False], "correct": [1, 0]}, r"true/false.*swapped")
parquet("dates for numbers", {"conf": pa.array([1, 2], pa.date32()), "correct": [1, 0]}, r"column 'conf' holds date32")
parquet(
    "an outcome of two in Parquet", {"conf": [0.5], "correct": [2]}, r"column 'correct', row 1 is 2, neither 0 nor 1"
)
parquet("no rows", {"conf": pa.array([], pa.float64()), "correct": pa.array([], pa.int8())}, r"the table has no rows")
parquet("no columns", {}, r"no column of confidences")
parquet(
    "lists of different lengths",
    {"probs": [[0.5, 0.5], [1.0]], "label": [0, 0]},
    r"row 2 has 1 entries where row 1 has 2",
)
parquet("a missing list", {"probs": [[0.5, 0.5], None], "label": [0, 0]}, r"column 'probs', row 2 is empty")
parquet(
    "a hole in a list",
    {"probs": [[0.5, 0.5], [0.5, None]], "label": [0, 0]},
    r"column 'probs', row 2 has an empty entry",
)
parquet("empty lists", {"probs": pa.array([[], []], pa.list_(pa.float64())), "label": [0, 0]}, r"shape \(2, 0\)")
parquet("lists of words", {"probs": [["a", "b"]], "label": [0]}, r"column 'probs', row 1 is 'a', not a number")
parquet(
    "words for classes of lists",
    {"probs": [[0.5, 0.5]], "label": ["cat"]},
    r"'cat', not a class number; use whole numbers",
)
parquet("a negative weight", {**CSV_COLUMNS, "sample_weight": [1.0, -2.0]}, r"column 'sample_weight', row 2 is -2")
parquet("no weight at all", {**CSV_COLUMNS, "sample_weight": [0.0, 0.0]}, r"sample_weight is zero for every sample")
parquet(
    "half a label",
    {"prob_0": [0.5], "prob_1": [0.5], "label": [0.5]},
    r"column 'label', row 1 is 0\.5; labels are whole",
)
parquet(
    "a missing label",
    {"prob_0": [0.5], "prob_1": [0.5], "label": pa.array([None], pa.int8())},
    r"'label', row 1 is empty",
)


@case("a cut Parquet file", r"this Parquet file is cut short \(its footer is missing\)")
def _(folder: Path) -> Path:
    path = folder / "cut.parquet"
    pq.write_table(pa.table(CSV_COLUMNS), path)
    path.write_bytes(path.read_bytes()[:-10])
    return path


@case("a Parquet file with a damaged footer", r"this Parquet file cannot be read")
def _(folder: Path) -> Path:
    path = folder / "footer.parquet"
    pq.write_table(pa.table(CSV_COLUMNS), path)
    content = bytearray(path.read_bytes())
    content[-60:-8] = b"\xff" * 52
    path.write_bytes(bytes(content))
    return path


@case("a Parquet file that is only its mark", r"this Parquet file cannot be read")
def _(folder: Path) -> Path:
    path = folder / "mark.parquet"
    path.write_bytes(b"PAR1PAR1")
    return path


@case("a Parquet file with damaged pages", r"pages\.parquet: ")
def _(folder: Path) -> Path:
    path = folder / "pages.parquet"
    rng = np.random.default_rng(0)
    pq.write_table(pa.table({"conf": rng.random(5000), "correct": rng.integers(0, 2, 5000)}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[100:3000] = b"\x55" * 2900
    path.write_bytes(bytes(content))
    return path


@case("a cut Arrow file", r"this Arrow file cannot be read")
def _(folder: Path) -> Path:
    path = folder / "cut.feather"
    pyarrow.feather.write_feather(pa.table(CSV_COLUMNS), path)
    path.write_bytes(path.read_bytes()[:-30])
    return path


# npz.
npz(
    "arrays of different lengths",
    {"probs": np.full((3, 2), 0.5), "labels": [0, 1]},
    r"probs has 3, labels has 2|labels has 2",
)
npz("no known arrays", {"a": [1.0], "b": [2.0]}, r"no column of confidences.*'a', 'b'")
npz("only scalars", {"conf": 0.5, "correct": 1}, r"array 'conf' has shape \(\)")
npz("a cube", {"conf": np.zeros((2, 2, 2)), "correct": [0, 1]}, r"array 'conf' has shape \(2, 2, 2\)")
npz("complex numbers", {"conf": [1j], "correct": [0]}, r"array 'conf' has shape \(1,\) and type complex128")
npz("one-hot labels", {"probs": [[0.5, 0.5]], "labels": [[0, 1]]}, r"no column of true classes|not classes")
npz("an empty array", {"conf": np.zeros(0), "correct": np.zeros(0)}, r"the table has no rows")
npz("no classes", {"probabilities": np.zeros((4, 0)), "labels": np.zeros(4)}, r"arrays\.npz: ")


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("pickle-was-loaded",)


@case("Python objects", r"array 'correct' holds Python objects, which certcal never unpickles")
def _(folder: Path) -> Path:
    path = folder / "objects.npz"
    np.savez(path, conf=[0.5], correct=np.array([_Bomb()], object), allow_pickle=True)
    return path


@case("a pickle inside a zip", r"this npz archive cannot be read")
def _(folder: Path) -> Path:
    path = folder / "pickle.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conf.npy", pickle.dumps([0.5]))
    return path


def npy(name: str, header: str, message: str, body: bytes = bytes(8)) -> None:
    """An array of which the header is written by hand."""

    def make(folder: Path) -> Path:
        path = folder / "made.npz"
        with zipfile.ZipFile(path, "w") as archive:
            content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header.encode() + b"\n" + body
            archive.writestr("conf.npy", content)
            archive.writestr("correct.npy", content)
        return path

    CASES[name] = (make, message)


DAMAGED = r"this npz archive cannot be read \(the header of an array is damaged\)"
npy("a header without its end", "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)", DAMAGED)
npy("a header that opens a text", "'''{'descr': '<f8'", DAMAGED)
npy("a header with a list as a key", "{[]: 1}", DAMAGED)
npy("a header with an indented line", "{}\n  x\n y", DAMAGED)
npy("a header nested too deeply", "-" * 9000 + "1", DAMAGED)
npy("a shape of truth", "{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}", r"an array has shape \(True,\)")
npy("a negative shape", "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", r"an array has shape \(-1,\)")
npy(
    "a character beyond Unicode",
    "{'descr': '>U2', 'fortran_order': False, 'shape': (1,)}",
    r"array 'conf' holds text with characters beyond Unicode",
    struct.pack(">II", 0x41, 0x110000),
)


@case("an archive without arrays", r"the archive holds no arrays")
def _(folder: Path) -> Path:
    path = folder / "readme.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    return path


@case("a cut archive", r"this npz archive cannot be read")
def _(folder: Path) -> Path:
    path = folder / "cut.npz"
    np.savez(path, conf=np.full(1000, 0.5), correct=np.ones(1000))
    path.write_bytes(path.read_bytes()[:-100])
    return path


@case("an archive whose content does not fit its checksum", r"this npz archive cannot be read")
def _(folder: Path) -> Path:
    path = folder / "flipped.npz"
    np.savez(path, conf=np.full(1000, 0.5), correct=np.ones(1000))
    content = bytearray(path.read_bytes())
    content[2000] ^= 0xFF
    path.write_bytes(bytes(content))
    return path


@case("a text that is not UTF-8 in Parquet", r"text\.parquet: a text in the table is not UTF-8; write the file again")
def _(folder: Path) -> Path:
    path = folder / "text.parquet"
    table = pa.table({"conf": [0.5], "label": ["zzzz"], "prediction": ["zzzz"]})
    pq.write_table(table, path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"zzzz", b"zz\xffz"))
    return path


@case("a Feather file of two minds", r"cannot be read \(its columns are not those of its footer\)")
def _(folder: Path) -> Path:
    path = folder / "two.feather"
    pyarrow.feather.write_feather(pa.table({"conf": [0.5], "correct": [1]}), path)
    path.write_bytes(path.read_bytes().replace(b"correct", b"carrect", 1))
    return path


@case("entries without a size", r"array 'conf' has shape \(500000000,\) and type <U0; save numbers or text")
def _(folder: Path) -> Path:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<U0", "fortran_order": False, "shape": (500_000_000,)})
    path = folder / "nothing.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conf.npy", header.getvalue())
        archive.writestr("correct.npy", header.getvalue())
    return path


@case("a header that promises more than there is", r"promise\.npz: reading it needs .* GiB")
def _(folder: Path) -> Path:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    path = folder / "promise.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conf.npy", header.getvalue() + b"\0" * 80)
        archive.writestr("correct.npy", header.getvalue() + b"\0" * 80)
    return path


@case("a directory that promises more than there is", r"'conf' has 4294967294 bytes where its header says 208; copy")
def _(folder: Path) -> Path:
    path = folder / "huge.npz"
    np.savez(path, conf=np.full(10, 0.5), correct=np.ones(10))
    content = bytearray(path.read_bytes())
    place = content.rfind(b"PK\x01\x02", 0, content.rfind(b"PK\x01\x02"))  # the first entry of the directory
    content[place + 24 : place + 28] = struct.pack("<I", 0xFFFFFFFE)
    place = content.rfind(b"PK\x01\x02")
    content[place + 24 : place + 28] = struct.pack("<I", 0xFFFFFFFE)
    path.write_bytes(bytes(content))
    return path


@pytest.fixture
def little_memory(monkeypatch):
    """A machine of one gibibyte, so that a file need not be larger than this one's memory."""
    monkeypatch.setattr("certcal.data.formats.physical_memory", lambda: 2**30)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", CASES)
def test_a_bad_file_is_one_clear_sentence(tmp_path, name):
    make, message = CASES[name]
    path = make(tmp_path)
    with pytest.raises(InputError, match=message) as caught:
        read_predictions(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.startswith(str(path))
    assert not (tmp_path / "pickle-was-loaded").exists()
    assert not Path("pickle-was-loaded").exists()


def test_a_file_without_permission_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "secret.csv"
    path.write_text(ROWS)

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\); check the path and its permissions"):
        read_predictions(path)


@pytest.mark.usefixtures("little_memory")
def test_a_parquet_file_larger_than_memory_is_refused_whole_and_read_in_pieces(tmp_path):
    path = tmp_path / "long.parquet"
    zeros = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1_000_000, np.int8)), pa.array([0.5]))
    with pq.ParquetWriter(path, pa.schema({"conf": zeros.type, "correct": pa.bool_()})) as writer:
        part = pa.table({"conf": zeros, "correct": pa.array(np.ones(1_000_000, bool))})
        for _ in range(90):
            writer.write_table(part)
    assert path.stat().st_size < 5_000_000
    with pytest.raises(InputError, match=r"needs 1\.0 GiB and this machine has 1\.0 GiB; read it in pieces"):
        read_predictions(path)
    first = next(iter(PredictionStream(path)))
    assert first.confidence[0] == 0.5


def equal_rows(n: int) -> dict[str, object]:
    return {"conf": np.full(n, 0.5), "correct": np.ones(n)}


@pytest.mark.parametrize("codec", ["zstd", "lz4", "uncompressed"])
def test_a_feather_file_is_asked_what_it_expands_to_before_it_is_read(tmp_path, monkeypatch, codec):
    monkeypatch.setattr("certcal.data.formats.LEAST_MEMORY", 0)
    path = tmp_path / "equal.feather"
    pyarrow.feather.write_feather(pa.table(equal_rows(200_000)), path, compression=codec, chunksize=100_000)
    stream = PredictionStream(path, memory=2_000_000)
    assert stream.rows == 200_000
    assert stream.bytes_in_memory() > 2_000_000
    assert [len(piece) for piece in stream] == [100_000, 100_000]
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match=r"a piece of it needs 2 MB, more than the 1 MB .*; write it in smaller batch"):
        next(iter(PredictionStream(path, memory=1_000_000)))
    assert pa.total_allocated_bytes() == before


def test_a_parquet_column_that_is_one_large_page_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("certcal.data.formats.LEAST_MEMORY", 0)
    path = tmp_path / "equal.parquet"
    whole: dict[str, Any] = {"data_page_size": 2**31 - 1, "row_group_size": 200_000, "use_dictionary": False}
    pq.write_table(pa.table(equal_rows(200_000)), path, compression="zstd", **whole)
    assert len(next(iter(PredictionStream(path, memory=4_000_000)))) == 200_000
    with pytest.raises(InputError, match=r"a piece of it needs 3 MB, more than the 1 MB .*; write smaller row groups"):
        next(iter(PredictionStream(path, memory=1_000_000)))


def test_a_long_text_that_is_often_repeated_is_not_repeated_in_memory(tmp_path):
    path = tmp_path / "long.parquet"
    names = pa.DictionaryArray.from_arrays(np.zeros(2000, np.int8), [100_000 * "a"])
    pq.write_table(pa.table({"conf": np.full(2000, 0.5), "label": names.cast(pa.string()), "prediction": names}), path)
    stream = PredictionStream(path)
    batches = list(stream.table.chunks(["label", "prediction"]))
    assert sum(column.dictionary.nbytes for batch in batches for column in batch.columns) < 1_000_000
    assert stream.load().predictions.correct.all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_npz_archive_is_read_in_pieces_unless_its_rows_are_scattered(tmp_path, monkeypatch, order):
    monkeypatch.setattr("certcal.data.formats.LEAST_MEMORY", 0)
    path = tmp_path / "arrays.npz"
    rows = np.asarray(np.full((100_000, 2), 0.5), order=order)
    np.savez_compressed(path, probabilities=rows, labels=np.zeros(100_000, np.int8))
    if order == "F":
        with pytest.raises(InputError, match=r"arrays\.npz: reading a piece of it needs 2 MB, more than the 1 MB"):
            PredictionStream(path, size=1000, memory=1_000_000)
        return
    filled, rows_at_once = npz_files._read_rows, set()
    monkeypatch.setattr(npz_files, "_read_member", None)  # which reads all of an array
    monkeypatch.setattr(npz_files, "_read_rows", lambda *of: (rows_at_once.add(of[1][0]), filled(*of))[1])
    assert sum(len(piece) for piece in PredictionStream(path, size=1000, memory=1_000_000)) == 100_000
    assert max(rows_at_once) == 1000


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.zst"])
def test_text_that_expands_beyond_the_memory_is_not_loaded(tmp_path, ending):
    path = tmp_path / f"equal{ending}"
    with pa.output_stream(path, compression="detect") as stream:
        stream.write(b"conf,correct\n" + 100_000 * b".5,1\n")
    stream = PredictionStream(path, memory=1_500_000)
    with pytest.raises(DoesNotFit, match=r"takes more than 1 MB; read it in pieces"):
        stream.load()
    assert sum(len(piece) for piece in stream) == 100_000


def test_a_line_without_an_end_is_not_read_to_its_end(tmp_path, monkeypatch):
    def noted(text):
        for line in lines(text):
            lengths.append(len(line))
            yield line

    lines, lengths = text_files._lines, []
    monkeypatch.setattr(text_files, "_lines", noted)
    path = tmp_path / "line.csv.gz"
    with gzip.open(path, "wb", 1) as stream:
        stream.write(b"conf,correct\n")
        for _ in range(40):
            stream.write(b"a" * 2**20)
    with pytest.raises(
        InputError, match=r"line\.csv\.gz: a line of this text table is longer than any row is; repair or drop it$"
    ):
        read_predictions(path)
    assert lengths == [len("conf,correct\n")]


def test_rows_are_counted_across_pieces(tmp_path):
    path = tmp_path / "late.parquet"
    conf = np.full(1000, 0.5)
    conf[777] = 2
    pq.write_table(pa.table({"conf": conf, "correct": np.ones(1000, int)}), path)
    with pytest.raises(InputError, match=r"column 'conf', row 778 is 2, outside"):
        list(PredictionStream(path, size=100))
    with pytest.raises(InputError, match=r"column 'conf', row 778 is 2, outside"):
        read_predictions(path)


def test_too_many_groups_and_missing_group_columns_are_refused(tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text("conf,correct,id\n" + "".join(f"0.5,1,a{i}\n" for i in range(1001)))
    with pytest.raises(InputError, match=r"column 'id' has more than 1000 distinct values; choose another column"):
        load_table(path, by="id")
    with pytest.raises(InputError, match=r"by: there is no column 'ids'; did you mean 'id'\?"):
        load_table(path, by="ids")
    with pytest.raises(InputError, match=r"^by: there is no column 'site'; the columns are 'conf', 'correct', 'id'"):
        load_table(path, by="site")


@settings(max_examples=75)
@given(
    st.binary(max_size=400),
    st.sampled_from([".csv", ".tsv", ".npz", ".parquet", ".feather", ".csv.gz", ".jsonl", ".txt"]),
)
def test_random_bytes_never_raise_anything_else(tmp_path_factory, content, ending):
    path = tmp_path_factory.mktemp("bytes") / f"random{ending}"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_predictions(path)


@settings(max_examples=75)
@given(st.data())
def test_a_flipped_byte_gives_predictions_or_one_sentence(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("flips")
    ending = data.draw(st.sampled_from([".npz", ".parquet", ".feather", ".jsonl"]))
    path = folder / f"table{ending}"
    columns = {"conf": np.linspace(0, 1, 50), "pred": ["a", "b"] * 25, "label": ["a"] * 50}
    if ending == ".npz":
        np.savez(path, **columns)
    elif ending == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in pa.table(columns).to_pylist()))
    elif ending == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        pyarrow.feather.write_feather(pa.table(columns), path)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(content))
    try:
        found = len(read_predictions(path))
    except InputError as error:
        found = str(error)
    assert found
