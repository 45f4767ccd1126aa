"""CSV and TSV, streamed. A bad row is reported with its line, a bad value with its column, row and text."""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from certcal._checks import InputError
from certcal.data.arrow import pa
from certcal.data.formats import Column, Table, check_column_count, reading

arrow_csv: Any = import_module("pyarrow.csv")

_BLOCK_BYTES = 1 << 22
_HEAD_BYTES = 1 << 16
_DELIMITERS = (",", ";", "\t", "|")


class TextTable(Table):
    """A text table with a header row; commas, semicolons, tabs or bars between columns, UTF-8, perhaps compressed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = None
        self.delimiter = _delimiter(path)
        with self._located(), _CountedQuotes(path) as stream:
            names = list(self._open(stream).schema.names)
        check_column_count(path, len(names))
        self.columns = tuple(Column(name) for name in names)

    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        types = {name: pa.float64() if name in numbers else pa.string() for name in columns}
        with self._located(types), _CountedQuotes(self.path) as stream:
            for batch in self._open(stream, types):
                for start in range(0, batch.num_rows, size):
                    yield batch.slice(start, size)
        if stream.quotes % 2:
            raise InputError(
                f"{self.path}: the file has an odd number of double quotes, so a quoted field may have swallowed rows; "
                "close or double it"
            )

    def _open(self, stream: Any, types: dict[str, Any] | None = None) -> Any:
        return arrow_csv.open_csv(
            pa.PythonFile(stream, mode="r"),
            read_options=arrow_csv.ReadOptions(block_size=_BLOCK_BYTES),
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=None if types is None else list(types),
                column_types=types,
                strings_can_be_null=True,
            ),
        )

    @contextmanager
    def _located(self, types: dict[str, Any] | None = None) -> Generator[None, None, None]:
        """Turn pyarrow's complaint into a sentence with the place."""
        with reading(self.path, "text table"):
            try:
                yield
            except pa.ArrowInvalid as error:
                try:
                    sentence = self._fault(types or {})
                except (csv.Error, OSError, StopIteration, pa.ArrowException):
                    sentence = None
                if sentence is None:
                    raise
                raise InputError(sentence) from error

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Line number and fields of each row after the header, slowly: only used to say where a file is wrong."""
        with pa.input_stream(str(self.path), compression="detect") as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
            reader = csv.reader(_lines(text), delimiter=self.delimiter)
            line = 1
            for fields in reader:
                if fields:
                    yield line, fields
                line = reader.line_num + 1

    def _fault(self, types: dict[str, Any]) -> str | None:
        """The first ragged row or unreadable number, as a sentence."""
        records = self._records()
        _, header = next(records)
        places = {name: place for place, name in reversed(list(enumerate(header)))}
        numeric = {places[name]: name for name, kind in types.items() if kind == pa.float64() and name in places}
        for row, (line, fields) in enumerate(records, start=1):
            if len(fields) != len(header):
                return (
                    f"{self.path}: line {line} has {len(fields)} fields where the header has {len(header)}; "
                    "repair or drop the line (is a quote or a delimiter missing?)"
                )
            for place, name in numeric.items():
                if not _is_number(fields[place]):
                    return (
                        f"{self.path}: column {name!r}, row {row} (line {line}) is {fields[place][:80]!r}, "
                        "not a number; repair or drop the row, or name another column"
                    )
        return None


class _CountedQuotes:
    """The decompressed bytes of a file, with the double quotes among them counted on the way.

    pyarrow takes the end of the file for the end of a quoted field, so a forgotten quote would silently lose rows.
    """

    def __init__(self, path: Path) -> None:
        self.quotes = 0
        self.closed = False
        self._stream = pa.input_stream(str(path), compression="detect")

    def __enter__(self) -> _CountedQuotes:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def read(self, size: int = -1) -> bytes:
        """Bytes of the file."""
        content: bytes = self._stream.read(None if size < 0 else size)
        self.quotes += content.count(b'"')
        return content

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self._stream.close()


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    """The lines of a text, none of which may be longer than what is read at once."""
    while line := text.readline(_BLOCK_BYTES):
        if len(line) == _BLOCK_BYTES:
            raise csv.Error("a line is too long")
        yield line


def _is_number(text: str) -> bool:
    if text.strip() == "":
        return True  # missing: reported with the other missing values
    try:
        float(text)
    except ValueError:
        return text.strip() in {"N/A", "NA", "NULL", "null", "n/a", "#N/A", "#NA", "<NA>", "None"}
    return "_" not in text


def _delimiter(path: Path) -> str:
    """Tab for .tsv; else the first of comma, semicolon, tab and bar that occurs in the header line."""
    with reading(path, "text table"), pa.input_stream(str(path), compression="detect") as stream:
        head: bytes = stream.read(_HEAD_BYTES)
    if not head.strip():
        raise InputError(f"{path}: the file is empty; it needs a header line and at least one row")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in head:
        raise InputError(
            f"{path}: this is not UTF-8 text (it may be UTF-16 or a binary file); save it as UTF-8 CSV or Parquet"
        )
    if ".tsv" in path.suffixes:
        return "\t"
    line = head.splitlines()[0].decode("utf-8", errors="replace")
    return next((mark for mark in _DELIMITERS if mark in line), ",")
