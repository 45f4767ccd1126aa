"""CSV, TSV, what numpy.savetxt writes, and JSON lines, streamed.

A bad row is reported with its line, a bad value with its column, row and text.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from certcal._base.checks import InputError
from certcal._base.text import counted
from certcal.data.arrow import pa
from certcal.data.decimals import Marks, common_mark
from certcal.data.formats import Kind, OpenTable, TableColumn, check_column_count, reading
from certcal.data.frames import as_text
from certcal.data.reading import DRESSED, CellReader, Reading, header_row

arrow_csv: Any = import_module("pyarrow.csv")

_BLOCK_BYTES = 1 << 22
_HEAD_BYTES = 1 << 16
_DELIMITERS = (",", ";", "\t", "|")
_SPACE = " "
MISSING = frozenset({"N/A", "NA", "NULL", "null", "n/a", "#N/A", "#NA", "<NA>", "None"})
# What stands for an empty cell: what pyarrow takes for one, and the point of Stata and SAS.
_NULLS = [*arrow_csv.ConvertOptions().null_values, "."]
# So many tell how numbers are written; of JSON lines, which columns there are and what they hold.
_FIRST_LINES = 1000


class TextTable(OpenTable):
    """A text table with a header row; commas, semicolons, tabs, bars or spaces between columns, perhaps compressed.

    The header may be a comment, as numpy.savetxt writes it: the last line that begins with # before numbers.
    """

    def __init__(self, file: Path, path: Path, how: Reading) -> None:
        self.file, self.path, self.how = file, path, how
        if how.sheet is not None:
            raise InputError(f"it is for Excel files, and {path} is none", argument="sheet", remedy="leave it out")
        self.rows = None
        head = self._head()
        lines, mark = self._decode(head).splitlines(), ""
        titles = how.skip or 0
        if titles >= len(lines):
            raise InputError(f"it is {titles}, and {path} has fewer lines", argument="skip", remedy="give less")
        if found := re.fullmatch(r'"?sep=(.)"?', lines[titles].strip()):  # as Excel takes it
            mark, titles = found[1], titles + 1
        lines = lines[titles:]
        comments = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
        names = re.sub(r"#+\s*", "", lines[comments - 1], count=1).strip() if comments else ""
        # A first column that is called # is no comment.
        self._skipped = comments if names and not names.startswith(_DELIMITERS) else 0
        if not self._skipped and how.skip is None and not mark:
            titles += (above := _titles(lines))
            lines = lines[above:]
        rest = [line for line in lines[self._skipped :] if line.strip()]
        # Above a line of names, a comment is a comment.
        fields = re.split(r"[,;\t| ]+", rest[0].strip()) if self._skipped and rest else []
        named = any(field and _is_number(field) for field in fields)
        header, first, *_ = [*([names] if named else []), *rest, "", ""]
        self._skipped += titles
        self.delimiter = mark or ("\t" if ".tsv" in file.suffixes else _delimiter(header, first))
        self.decimal = None if self.delimiter == "," else ","
        above = f"{counted(titles, 'line')} above the column names skipped"
        self.notes = (*self.notes, *([above] if titles else ()))
        plain = _SPACE.join(header.split()) if self.delimiter == _SPACE else header
        try:
            names_read = next(csv.reader([plain], delimiter=self.delimiter))
        except csv.Error:
            raise InputError(f"{path}: the header has a name longer than any is; check which file it is") from None
        self._header = names_read if named else None
        if not named and _has_row_names(rest, self.delimiter):  # as R writes them
            self._header = [next(name for name in ("row", "row name", "") if name not in names_read), *names_read]
            self._skipped += 1 + next(place for place, line in enumerate(lines) if line.strip())
            self.notes = (*self.notes, "the first column, which has no name, taken for the names of rows")
        # Not through Python unless it must be: pyarrow reads ahead, and a thread of its own that waits for Python while
        # the program ends would take the program down with it.
        python = self.delimiter == _SPACE or self.encoding != "utf-8"
        plain_bytes = self._text_stream() if python else pa.input_stream(str(file), compression="detect")
        with self._with_place(), plain_bytes as stream:
            found = list(self._open(stream).schema.names)
        check_column_count(path, len(found))
        self.columns = tuple(TableColumn(name) for name in found)
        first = rest[not named : len(rest) - (len(head) >= _HEAD_BYTES)]  # the last line may be cut off
        cells = zip(*(_fields(line, self.delimiter) for line in first[:_FIRST_LINES]), strict=False)
        self._dressed = self._look_at(dict(zip(found, cells, strict=False)))

    def _look_at(self, cells: dict[str, tuple[str, ...]]) -> frozenset[str]:
        """Note the decimal marks of the first rows, and find the columns that are texts before they are numbers."""
        self.marks = {name: Marks() for name in cells}
        for name, texts in cells.items():
            self.marks[name].add(texts)
        common = common_mark(self.marks)
        # Where no column has decimal points for sure, whole numbers may have a mark of thousands further down. Between
        # commas that takes more: points are decimal there, unless another column has decimal commas.
        suspect = any if self.delimiter != "," or common else all
        doubted = {
            name
            for name, own in self.marks.items()
            if common != {"."} and not own.decimal and suspect((own.doubtful, own.whole))
        }
        dressed = {
            name
            for name, texts in cells.items()
            if any(not _is_number(text) and DRESSED.fullmatch(text.strip()) for text in texts)
        }
        return frozenset(dressed | doubted)

    def read_as(self, how: Reading) -> OpenTable:
        """The file, read in another encoding or from another line on."""
        return self if how == self.how else TextTable(self.file, self.path, how)

    def _text_stream(self) -> _CountedQuotes:
        return _CountedQuotes(self.file, self.delimiter == _SPACE, self.encoding)

    def _decode(self, head: bytes) -> str:
        """The beginning of the file as text; what is not UTF-8 is Windows-1252 if it can be."""
        self.encoding = codecs.lookup(self.how.encoding or "utf-8").name
        if self.how.encoding is None:
            if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
                self.encoding = "utf-16"
            elif not _decodes(head, "utf-8") and _decodes(head, "cp1252"):
                self.encoding = "cp1252"
            named = {"cp1252": "Windows-1252 (a guess: it is not UTF-8)", "utf-16": "UTF-16"}
            self.notes = (f"read as {named[self.encoding]}",) if self.encoding in named else ()
        if b"\x00" in head and not self.encoding.startswith(("utf-16", "utf-32")):
            raise InputError(f"{self.path}: this is not text but a binary file; save it as CSV or Parquet")
        return codecs.getincrementaldecoder(self.encoding)("replace").decode(head).removeprefix("\ufeff")

    def _head(self) -> bytes:
        with reading(self.path, "text table"), pa.input_stream(str(self.file), compression="detect") as stream:
            head: bytes = stream.read(_HEAD_BYTES)
            head += stream.read(_BLOCK_BYTES) if head.startswith(b"#") else b""
        if not head.strip():
            raise InputError(f"{self.path}: the file is empty; it needs a header line and at least one row")
        return head

    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        plain = numbers - self._dressed if self.how.decimal is None and not self.how.percent else frozenset[str]()
        types = {name: pa.float64() if name in plain else pa.string() for name in columns}
        with self._with_place(types), self._text_stream() as stream:
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
            pa.PythonFile(stream, mode="r") if isinstance(stream, _CountedQuotes) else stream,
            read_options=arrow_csv.ReadOptions(
                block_size=_BLOCK_BYTES, skip_rows=self._skipped, column_names=self._header
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=None if types is None else list(types),
                column_types=types,
                strings_can_be_null=True,
                null_values=_NULLS,
            ),
        )

    @contextmanager
    def _with_place(self, types: dict[str, Any] | None = None) -> Generator[None, None, None]:
        with reading(self.path, "text table"):
            try:
                yield
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                try:
                    found = self._find_fault(types or {}) or _first_line_not_utf8(self.path, self.file, "text table")
                except (csv.Error, OSError, StopIteration, UnicodeError, pa.ArrowException):
                    found = None
                if found is None:
                    raise
                raise found from error

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Line number and fields of each row, the header first, slowly: only used to say where a file is wrong."""
        with pa.input_stream(str(self.file), compression="detect") as stream:
            encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
            lines = _lines(io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline=""))
            for _ in range(self._skipped):
                next(lines)
            if self._header is not None:
                yield self._skipped, self._header
            if self.delimiter == _SPACE:
                lines = (f"{_SPACE.join(line.split())}\n" for line in lines)
            reader = csv.reader(lines, delimiter=self.delimiter)
            line = 1
            for fields in reader:
                if fields:
                    yield self._skipped + line, fields
                line = reader.line_num + 1

    def _find_fault(self, types: dict[str, Any]) -> InputError | None:
        records = self._records()
        _, header = next(records)
        places = {name: place for place, name in reversed(list(enumerate(header)))}
        numeric = {places[name]: name for name, kind in types.items() if kind == pa.float64() and name in places}
        for row, (line, fields) in enumerate(records, start=1):
            if len(fields) != len(header):
                more = self.delimiter == "," and len(fields) > len(header)
                return InputError(
                    f"{self.path}: line {line} has {len(fields)} fields where the header has {len(header)}; "
                    "repair or drop the line (is a quote or a delimiter missing?)"
                    + ("; decimal commas need another delimiter: export with semicolons or tabs" if more else "")
                )
            for place, name in numeric.items():
                if not _is_number(fields[place]):
                    what = f"column {name!r}, row {row} (line {line}) is {fields[place][:80]!r}, not a number"
                    remedy, _, add = CellReader(self.how, marks=self.marks).remedy(fields[place], name)
                    if fields[place].strip().endswith("%"):
                        remedy, add = "if it is a percentage, say so", {"percent": True}
                    return InputError(f"{self.path}: {what}", remedy=remedy, add=add)
        return None


class _CountedQuotes:
    """The decompressed bytes of a file, with the double quotes among them counted on the way.

    pyarrow takes the end of the file for the end of a quoted field, so a forgotten quote would silently lose rows.
    Where spaces separate columns, several count as one, and none at the ends of lines. Other encodings become UTF-8.
    """

    def __init__(self, path: Path, spaced: bool = False, encoding: str = "utf-8") -> None:
        self.quotes = 0
        self.closed = False
        self._decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)()
        self._spaced, self._held, self._ready, self._begun = spaced, b"", b"", False
        self._stream = pa.input_stream(str(path), compression="detect")

    def __enter__(self) -> _CountedQuotes:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def read(self, size: int) -> bytes:
        if not self._spaced:
            return self._count_quotes(size)
        while len(self._ready) < size and (content := self._count_quotes(size)):
            content = self._held + content
            end = len(content.rstrip(b" \t\r\n"))  # what is beyond waits for what follows, as one line break or space
            self._held = b"\n" if b"\n" in content[end:] else b" " if content[end:] else b""
            narrow = re.sub(rb"[ \t]+", b" ", content[:end])
            narrow, self._begun = narrow if self._begun else narrow.lstrip(), self._begun or bool(narrow.strip())
            self._ready += narrow.replace(b" \r\n", b"\r\n").replace(b" \n", b"\n").replace(b"\n ", b"\n")
        found, self._ready = self._ready[:size], self._ready[size:]
        return found

    def _count_quotes(self, size: int) -> bytes:
        content: bytes = self._stream.read(size)
        while self._decoder is not None:
            text = self._decoder.decode(content, final=not content).encode()
            if text or not content:  # nothing is the end
                content = text
                break
            content = self._stream.read(size)
        self.quotes += content.count(b'"')
        return content

    def close(self) -> None:
        self.closed = True
        self._stream.close()


class JsonLinesTable(OpenTable):
    """A JSON object on each line, perhaps compressed. The first thousand lines tell which columns there are."""

    def __init__(self, file: Path, path: Path) -> None:
        self.file, self.path = file, path
        self.rows = None
        kinds: dict[str, Kind] = {}
        for number, _, row in self._parse_lines():
            for name, value in row.items():
                if kinds.setdefault(name, "unknown") == "unknown" and value is not None:
                    kinds[name] = json_kind(value)
            check_column_count(path, len(kinds))
            if number >= _FIRST_LINES:
                break
        self.columns = tuple(TableColumn(name, kind) for name, kind in kinds.items())

    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        values: dict[str, list[Any]] = {name: [] for name in columns}
        count = length = 0
        for _, characters, row in self._parse_lines():
            for name, column in values.items():
                column.append(row.get(name))
            count, length = count + 1, length + characters
            if count == size or length > _BLOCK_BYTES:
                yield self._batch(values)
                count = length = 0
        if count:
            yield self._batch(values)

    def _batch(self, values: dict[str, list[Any]]) -> Any:
        with reading(self.path, "file of JSON lines"):
            batch = pa.RecordBatch.from_arrays([json_column(column) for column in values.values()], list(values))
        for column in values.values():
            column.clear()
        return batch

    def _parse_lines(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Number, length and object of each line that is not blank."""
        with reading(self.path, "file of JSON lines"), pa.input_stream(str(self.file), compression="detect") as stream:
            number = 0
            try:
                for line in _lines(io.TextIOWrapper(stream, encoding="utf-8-sig")):
                    number += 1
                    if line.strip():
                        row: Any = json.loads(line, object_pairs_hook=_unique_fields)
                        if not isinstance(row, dict):
                            raise ValueError
                        yield number, len(line), cast("dict[str, Any]", row)
            except (InputError, pa.ArrowException):
                raise
            except UnicodeDecodeError:
                where = _first_line_not_utf8(self.path, self.file, "file of JSON lines")
                raise where or InputError(f"{self.path}: this is not UTF-8 text") from None
            except csv.Error:
                what = "is longer than any row is; repair or drop it"
                raise InputError(f"{self.path}: line {number + 1} {what}") from None
            except KeyError:
                what = "has a field twice; repair or drop it"
                raise InputError(f"{self.path}: line {number} {what}") from None
            except (ValueError, RecursionError):
                what = "is no JSON object; write one per line"
                raise InputError(f"{self.path}: line {number} {what}") from None


def _first_line_not_utf8(path: Path, file: Path, what: str) -> InputError | None:
    with pa.input_stream(str(file), compression="detect") as stream:
        for number, line in enumerate(_lines(io.TextIOWrapper(stream, encoding="latin-1", newline="\n")), start=1):
            try:
                line.encode("latin-1").decode("utf-8")
            except UnicodeDecodeError as error:
                at = error.start
                near = line[max(0, at - 10) : at + 10].strip()
                return InputError(
                    f"{path}: this {what} is not UTF-8 text: line {number} holds the byte 0x{ord(line[at]):02X} "
                    f"({near!r}, if it is Windows-1252)",
                    remedy="save it as UTF-8 (in a spreadsheet: CSV UTF-8), or say what it is",
                    add={"encoding": "cp1252"} if "text" in what else {},
                )
    return None


def _unique_fields(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of an object; of two with one name the parser would silently take the last."""
    found = dict(fields)
    if len(found) < len(fields):
        raise KeyError
    return found


def json_kind(value: Any) -> Kind:
    """What a value of Python is."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "list" if isinstance(value, list) else "other"


def json_column(values: list[Any]) -> Any:
    """A column of JSON values; of mixed ones as text, which is cast by the same rule."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        if any(isinstance(value, list | dict) for value in values):
            raise
        return as_text(values)


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
        return text.strip() in MISSING
    return "_" not in text


def _delimiter(header: str, first: str) -> str:
    """The mark that divides the header and the first row into as many fields, else the first one in the header.

    A space if it separates as many names as values. Of two that fit, the one that makes more fields, and a comma last.
    """
    names = header.split()
    values = first.split() or names
    spaced = "," if len(names) != len(values) or len(names) < 2 else _SPACE
    there = [mark for mark in _DELIMITERS if mark in header]
    counts = {mark: [len(_fields(line, mark)) for line in (header, first)] for mark in there}
    fitting = [mark for mark in there if counts[mark][0] == counts[mark][1]]
    return max(fitting, key=lambda mark: (counts[mark][0], mark != ","), default=(*there, spaced)[0])


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        fields = line.split() if delimiter == _SPACE else [*next(csv.reader([line], delimiter=delimiter), ())]
    except csv.Error:  # longer than any is
        fields = line.split(delimiter)
    while len(fields) > 1 and not fields[-1].strip() and line.rstrip().endswith(delimiter * 2):
        fields.pop()  # as spreadsheets fill up a title
    return fields


def _titles(lines: list[str]) -> int:
    """How many lines stand above the one with the names of the columns."""
    there = [place for place, line in enumerate(lines[:50]) if line.strip(" \t,;|")]
    rows = (
        [
            _fields(lines[one], _delimiter(lines[one], lines[after]))
            for one, after in zip(there, [*there[1:], there[-1]], strict=True)
        ]
        if there
        else []
    )
    header = header_row(rows)
    return there[header] if header else 0


def _has_row_names(lines: list[str], delimiter: str) -> bool:
    """Whether the rows below a header begin with one quoted field more than it has."""
    if len(lines) < 2 or delimiter == _SPACE:
        return False
    names, *rows = (len(_fields(line, delimiter)) for line in lines[:3])
    return all(line.startswith('"') for line in lines[1:3]) and all(count == names + 1 for count in rows)


def _decodes(head: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)  # of which a character may be cut off
    except UnicodeDecodeError:
        return False
    return True
