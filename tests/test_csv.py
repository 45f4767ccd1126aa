"""CSV that is opened in a spreadsheet: no cell of it is a formula, and numbers stay numbers."""

import csv
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certcal
from certcal._base.csv import CsvWriter, plain_cell
from certcal.data.columns import columns_as_bytes

SOURCE = Path(certcal.__file__).parent
EVIL = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "  =1",
    "\uff1d1",
    "\t=1",
    "\r=1",
    "\n=1",
    "a\x1b[31mred\x07",
    "\x9b31m",
]
NUMBERS = ["-0.5", "+1", "-1e-05", "-.5", "3.", "-inf", "1e300"]


def harmless(cell):
    first = cell.lstrip(" \u00a0\u3000")[:1]
    return not any(c < " " or "\x7f" <= c <= "\x9f" for c in cell) and first not in set("=+-@\uff1d\uff0b\uff0d\uff20")


@pytest.mark.parametrize("text", EVIL)
def test_a_text_that_a_spreadsheet_would_run_or_a_terminal_obey_is_made_plain(text):
    assert not harmless(text)
    assert harmless(plain_cell(text))
    buffer = io.StringIO(newline="")
    CsvWriter(buffer).writerow([text, -0.5, "-0.5"])
    assert next(csv.reader(io.StringIO(buffer.getvalue(), newline=""))) == [plain_cell(text), "-0.5", "-0.5"]


@pytest.mark.parametrize("text", [*NUMBERS, "a = b", "x-ray", "'quoted'", "naïve café", "", "👩\u200d🔬"])
def test_numbers_and_other_texts_stay_as_they_are(text):
    assert plain_cell(text) == text


@given(st.one_of(st.floats(), st.integers()))
def test_every_number_survives_as_a_text_too(value):
    assert plain_cell(value) is value
    assert plain_cell(repr(value)) == repr(value)


@given(st.text(st.characters(codec="utf-8")))
def test_no_text_at_all_begins_a_formula_unless_it_is_a_number(text):
    made = plain_cell(text)
    assert harmless(made) or isinstance(float(made), float)
    assert plain_cell(made) == made


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()],
    ids=str,
)
def test_columns_of_text_are_plain_in_csv_and_whole_in_parquet(kind):
    column = pa.chunked_array([pa.array([*EVIL, None]).cast(kind)])
    numbers = -np.arange(len(column) * 1.0)
    found = pa.csv.read_csv(io.BytesIO(columns_as_bytes({"=name": column, "x": numbers}, ".csv")))
    assert found.column_names == ["'=name", "x"]
    assert found["'=name"].to_pylist()[:-1] == [plain_cell(text) for text in EVIL]
    np.testing.assert_array_equal(found["x"], numbers)
    whole = pa.parquet.read_table(io.BytesIO(columns_as_bytes({"=name": column}, ".parquet")))
    assert whole["=name"].cast(pa.large_string()).to_pylist() == [*EVIL, None]


def test_bytes_that_are_no_text_are_written_as_numbers():
    column = pa.chunked_array([pa.array([b"\xff=1"])])
    assert columns_as_bytes({"id": column}, ".csv") == b'"id"\n"\\xff=1"\n'


def test_nothing_else_writes_csv():
    writers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if any(word in path.read_text("utf-8") for word in ("csv.writer(", "csv.DictWriter(", "write_csv("))
    }
    assert writers == {"_base/csv.py", "data/columns.py"}
