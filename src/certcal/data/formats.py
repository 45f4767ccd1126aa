"""Tables of any format: what each offers, and which format a file has."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

from certcal._base.checks import InputError
from certcal._base.files import nearest, path_of
from certcal._base.memory import is_out_of_memory

if TYPE_CHECKING:
    from certcal.data.decimals import Marks
    from certcal.data.reading import Reading

# Rows and numbers per piece when a table is read in pieces: large enough to be fast, small enough for any machine.
CHUNK_ROWS = 1 << 18
CHUNK_NUMBERS = 1 << 22

# No piece is refused for taking less than this, whatever the limit: the program itself takes as much.
LEAST_MEMORY = 1 << 28

# More columns than any table of class probabilities has; a header beyond this is damage or an attack.
MAX_COLUMNS = 100_000


Kind = Literal["number", "boolean", "text", "list", "other", "unknown", "index"]


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: its name and what it holds.

    Examples
    --------
    >>> TableColumn("label", "text")
    TableColumn(name='label', kind='text')
    """

    name: str
    kind: Kind = "unknown"

    @property
    def has_telling_name(self) -> bool:
        """Whether its name may say what it holds: not where it is a list, or the index of a frame."""
        return self.kind not in ("list", "index")


@dataclass(frozen=True)
class Chunks:
    """Record batches of a table, from the beginning every time it is iterated."""

    start: Callable[[], Iterator[Any]]

    def __iter__(self) -> Iterator[Any]:
        return self.start()


class OpenTable(ABC):
    """A table on disk: its columns, and its rows as a whole or in pieces. Nothing is read before it is asked for.

    Open one with :func:`certcal.data.open_table`.
    """

    path: Path  # as people know it
    file: Path  # where it is read: the same, but for what came through standard input
    columns: tuple[TableColumn, ...]
    rows: int | None
    metadata: Mapping[str, str] = MappingProxyType({})  # what the writer has said about the whole, if the format can
    memory: int | None = None  # bytes that one piece may take; None for all that this machine has
    decimal: str | None = None  # "," where a comma between digits can be nothing else
    marks: Mapping[str, Marks] = MappingProxyType({})  # what the first numbers of a column say of its decimal mark
    notes: tuple[str, ...] = ()  # what was recognised when it was opened
    encode_text: bool = False  # whether text may come as dictionaries, in which a value that returns takes no room

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in the order of the file."""
        return tuple(column.name for column in self.columns)

    def chunks(self, columns: Sequence[str], size: int = CHUNK_ROWS, *, numbers: Iterable[str] = ()) -> Chunks:
        """Record batches (pyarrow) of at most ``size`` rows, re-iterable.

        Parameters
        ----------
        columns
            Names of the columns to read.
        size
            Largest number of rows per batch.
        numbers
            Columns to parse as float64 in formats without types (CSV); the other columns of such formats are text.
        """
        there = Counter(self.names)
        for name in columns:
            times = there[name]
            if times == 0:
                raise InputError(f"{self.path}: there is no column {name!r}; the columns are {', '.join(there)}")
            if times > 1:
                raise InputError(f"{self.path}: {times} columns are called {name!r}; rename them apart")
        if size < 1:
            raise InputError(f"size is {size}; pass at least 1 row per chunk")
        wanted, parsed = tuple(dict.fromkeys(columns)), frozenset(numbers)
        return Chunks(lambda: self._batches(wanted, size, parsed))

    def read(self, columns: Sequence[str], *, numbers: Iterable[str] = ()) -> Any:
        """The named columns as one pyarrow table; of a column without a type, numbers of two kinds become one."""
        from certcal.data.arrow import pa

        parts = [pa.Table.from_batches([batch]) for batch in self.chunks(columns, numbers=numbers)]
        try:
            return pa.concat_tables(parts, promote_options="permissive")
        except pa.ArrowException:
            raise InputError(self._mixed_kinds(parts)) from None

    def _mixed_kinds(self, parts: list[Any]) -> str:
        """The sentence for a column that does not hold one kind of values."""
        row = 1
        for part in parts:
            for place, name in enumerate(part.column_names):
                first, here = parts[0].schema.field(place).type, part.schema.field(place).type
                if column_kind(first) != column_kind(here) and "other" not in (column_kind(first), column_kind(here)):
                    what = f"holds {column_kind(first)} values first and {column_kind(here)} values from row {row} on"
                    return f"{self.path}: column {name!r} {what}; write one kind, or null where there is none"
            row += part.num_rows
        return f"{self.path}: a column does not hold one kind of values; write one kind"

    def read_as(self, how: Reading) -> OpenTable:
        """The same table, read as asked; only text files and spreadsheets can be read in several ways."""
        kinds = {"encoding": "text files", "skip": "text files and Excel", "sheet": "Excel files"}
        for name, kind in kinds.items():
            if getattr(how, name) is not None:
                reason = f"it is for {kind}"
                raise InputError(f"{reason}, and {self.path} is none", argument=name, remedy="leave it out")
        return self

    @abstractmethod
    def _batches(self, columns: tuple[str, ...], size: int, numbers: frozenset[str]) -> Iterator[Any]:
        """Record batches of checked columns."""


def column_kind(kind: Any) -> Kind:
    """What a pyarrow type holds."""
    from certcal.data.arrow import pa

    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list"
    return "other"


def schema_columns(path: Path, schema: Any) -> tuple[TableColumn, ...]:
    """Columns of a pyarrow schema."""
    check_column_count(path, len(schema.names))
    return tuple(TableColumn(name, column_kind(schema.field(i).type)) for i, name in enumerate(schema.names))


def check_column_count(path: Path, count: int) -> None:
    """Refuse headers no honest table has."""
    if count > MAX_COLUMNS:
        raise InputError(
            f"{path}: {count} columns are more than the {MAX_COLUMNS} that certcal reads; is this the right file?"
        )


def physical_memory() -> int | None:
    """Bytes of memory this machine has, or None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def schema_notes(schema: Any) -> dict[str, str]:
    """What a writer has said about the whole table, as texts by name."""
    notes: Mapping[bytes, bytes] = schema.metadata or {}
    return {key.decode(errors="replace"): text.decode(errors="replace") for key, text in notes.items()}


def check_memory(path: Path, needed: int, advice: str, *, limit: int | None = None) -> None:
    """Refuse what cannot fit into this machine's memory, or into less, before trying."""
    memory = physical_memory()
    if memory is not None and needed > memory:
        raise InputError(
            f"{path}: reading it needs {needed / 2**30:.1f} GiB and this machine has {memory / 2**30:.1f} GiB; {advice}"
        )
    if limit is not None and needed > max(limit, LEAST_MEMORY):
        raise InputError(
            f"{path}: reading a piece of it needs {needed / 1e6:.0f} MB, more than the "
            f"{max(limit, LEAST_MEMORY) / 1e6:.0f} MB that it may take; {advice}, or allow more memory"
        )


@contextmanager
def reading(path: Path, what: str) -> Generator[None, None, None]:
    """Turn every way a file can be bad into one sentence."""
    from certcal.data.arrow import pa

    try:
        yield
    except InputError:
        raise
    except MemoryError as error:  # NumPy's and Arrow's are kinds of it
        raise InputError(f"{path}: not enough memory to read this {what}; read fewer columns or rows") from error
    except OSError as error:
        if is_out_of_memory(error):
            raise InputError(f"{path}: not enough memory to read this {what}; read fewer columns or rows") from error
        if error.errno is not None:
            raise InputError(f"{path}: {error.strerror or error}; check the path and its permissions") from error
        raise InputError(damaged(path, what, error)) from error
    except (pa.ArrowException, ValueError, EOFError, OverflowError, zlib.error) as error:
        raise InputError(damaged(path, what, error)) from error


def damaged(path: Path, what: str, error: Exception) -> str:
    """The sentence for a file that is not what it says it is."""
    detail = str(error).strip().splitlines()[0][:160].rstrip(".") if str(error).strip() else type(error).__name__
    if "invalid UTF8" in detail:
        return f"{path}: this {what} is not UTF-8 text; save it as UTF-8 (in a spreadsheet: CSV UTF-8)"
    if "straddling object" in detail:
        return f"{path}: a line of this {what} is longer than any row is; repair or drop it"
    return f"{path}: this {what} cannot be read ({detail}); it may be damaged or cut short, so copy or write it again"


_PACKED = ("", ".gz", ".zst", ".bz2")
_TEXT = (".txt", *(f"{ending}{packed}" for ending in (".csv", ".tsv") for packed in _PACKED))
_LINES = tuple(f"{ending}{packed}" for ending in (".jsonl", ".ndjson") for packed in _PACKED)
_PARQUET = (".parquet", ".pq")
_ARROW = (".feather", ".arrow")
# Of files of predictions in a folder; JSON lines may be the manifest beside them.
ENDINGS = (*_TEXT, *_PARQUET, *_ARROW, ".npz", ".xlsx")
FORMATS = (
    "Parquet (.parquet), CSV (.csv, .tsv, also .gz), Excel (.xlsx), JSON lines (.jsonl), npz (.npz) or Arrow "
    "(.feather, .arrow)"
)
STANDARD_INPUT = "-"
_STANDARD_INPUT_NAME = Path("standard input")
# How files begin that can be told by it, and the ending that they would have.
_BEGINNINGS = {
    b"PAR1": ".parquet",
    b"ARRO": ".arrow",
    b"PK\x03\x04": ".npz",
    b"\x1f\x8b": ".csv.gz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
    b"BZh": ".csv.bz2",
    b"{": ".jsonl",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_MARK_BYTES = 64  # bytes by which a file is told; a mark may come after a byte order mark and line breaks


def open_table(path: str | os.PathLike[str] | Any, how: Reading | None = None) -> OpenTable:
    r"""Open a table: Parquet, CSV, TSV, Excel, what numpy.savetxt writes, JSON lines, npz, Arrow, or one in memory.

    A file is treated as hostile: nothing is unpickled, sizes are checked before memory is asked for, and whatever is
    wrong with it is reported as an :class:`certcal.InputError` of one sentence. Formats are told by content where that
    is certain and by the name otherwise.

    Parameters
    ----------
    path
        The file, ``"-"`` for standard input, or a table in memory: pandas, polars, pyarrow, whatever offers Arrow's C
        stream protocol, a mapping of columns. One that is open already is returned.
    how
        How text is read, where that does not show.

    Returns
    -------
    Table
        With ``columns``, ``rows`` (None when only reading would tell), ``chunks(columns, size)`` and
        ``read(columns)``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "scores.csv"
    >>> _ = path.write_text("confidence,correct\n0.9,1\n0.6,0\n")
    >>> table = open_table(path)
    >>> table.names
    ('confidence', 'correct')
    >>> [batch.num_rows for batch in table.chunks(["confidence"], size=1)]
    [1, 1]
    >>> folder.cleanup()
    """
    from certcal.data.reading import Reading

    how = how or Reading()
    if isinstance(path, OpenTable):
        return path.read_as(how)
    if not isinstance(path, str | os.PathLike):
        from certcal.data.frames import MemoryTable, collected, is_table

        if is_table(path := collected(path)):
            return MemoryTable(path).read_as(how)
        raise InputError(
            f"a table is a file or columns by name (pandas, polars, pyarrow, a mapping), not {type(path).__name__}",
            remedy="name the columns, or make Predictions of arrays",
        )
    given = os.fspath(cast("str", path))
    file = local_file(given)
    shown = _STANDARD_INPUT_NAME if given == STANDARD_INPUT else file
    head, tail = file_ends(file, shown)
    name = file.name.lower()
    if head == b"PAR1" or name.endswith(_PARQUET):
        _refuse_unless(
            head == b"PAR1", shown, "this is not a Parquet file (it does not begin with PAR1); check how it was written"
        )
        _refuse_unless(
            tail == b"PAR1", shown, "this Parquet file is cut short (its footer is missing); copy or write it again"
        )
        from certcal.data.parquet import ParquetTable

        return ParquetTable(file, shown).read_as(how)
    if name.endswith(".npz"):
        _refuse_unless(
            head[:2] == b"PK", shown, "this is not an npz archive (it is no zip file); save it with numpy.savez"
        )
        from certcal.data.npz import NpzTable

        return NpzTable(file, shown).read_as(how)
    if head == b"ARRO" or name.endswith(_ARROW):
        _refuse_unless(
            head == b"ARRO", shown, "this is not an Arrow file (it does not begin with ARROW1); write Feather version 2"
        )
        from certcal.data.arrow import FeatherTable

        return FeatherTable(file, shown).read_as(how)
    if name.endswith(".xlsx"):
        from certcal.data.excel import ExcelTable

        return ExcelTable(file, shown, how)
    one = "a .npy file holds one array without a name; save all of them with numpy.savez as .npz"
    _refuse_unless(not name.endswith(".npy"), shown, one)
    known, unknown = name.endswith((*_TEXT, *_LINES)), file.suffix or "without an ending"
    _refuse_unless(known, shown, f"files called {unknown} are not read; use {FORMATS}")
    _refuse_unless(head != b"PK\x03\x04", shown, "this is a zip or Excel file, not text; name it .xlsx if it is one")
    from certcal.data.text import JsonLinesTable, TextTable

    return TextTable(file, shown, how) if name.endswith(_TEXT) else JsonLinesTable(file, shown).read_as(how)


def _refuse_unless(holds: bool, shown: Path, problem: str) -> None:
    if not holds:
        raise InputError(f"{shown}: {problem}")


def local_file(path: str | os.PathLike[str]) -> Path:
    """Where a file can be read, again and again: what comes through standard input is kept while the program runs."""
    if str(path) != STANDARD_INPUT:
        return Path(path)
    stream: Any = sys.stdin  # None where it was closed
    if stream is None or stream.closed:
        raise InputError(f"{_STANDARD_INPUT_NAME}: it is closed; give a file")
    return _save_standard_input(stream.buffer)


@lru_cache(maxsize=1)
def _save_standard_input(stream: BinaryIO) -> Path:
    folder = Path(mkdtemp(prefix="certcal-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "input"
    with file.open("wb") as copy:
        shutil.copyfileobj(stream, copy, 1 << 20)
    with file.open("rb") as copy:
        ending = _ending_by_content(copy.read(_MARK_BYTES))
    if ending.startswith(".csv."):  # compressed: what is inside says which text it is
        from certcal.data.arrow import pa

        packed = ending.removeprefix(".csv")
        with (
            reading(_STANDARD_INPUT_NAME, "text table"),
            pa.input_stream(str(file), compression=_COMPRESSIONS[packed]) as inside,
        ):
            ending = _ending_by_content(inside.read(_MARK_BYTES)) + packed
    return file.rename(file.with_name(f"input{ending}"))


def _ending_by_content(head: bytes) -> str:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((ending for mark, ending in _BEGINNINGS.items() if text.startswith(mark)), ".csv")


def file_ends(file: Path, shown: Path | None = None) -> tuple[bytes, bytes]:
    """First and last four bytes, after making sure that there is a readable file."""
    try:
        if file.is_dir():
            raise InputError(f"{file}: this is a folder; give one file, {FORMATS}")
        if file.exists() and not file.is_file():
            raise InputError(f"{file}: this is not a regular file; give - for standard input, or {FORMATS}")
        with file.open("rb") as stream:
            head = stream.read(4)
            stream.seek(-min(4, len(head)), os.SEEK_END)
            tail = stream.read(4)
    except FileNotFoundError:
        raise InputError(f"{file}: there is no such file; {nearest(file)}") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{file}: cannot be read ({reason}); check the path and its permissions") from error
    if not head:
        raise InputError(f"{shown or file}: the file is empty; it needs column names and at least one row")
    return head, tail


def existing(source: str | os.PathLike[str], what: str) -> Path:
    """The path of what is looked for, such as "run or table"; an error with the nearest name if it is not there."""
    path = path_of(source, what)
    if str(source) == STANDARD_INPUT:
        return path
    try:
        there = path.exists()
    except (OSError, ValueError):  # a name that is too long, or no name at all
        there = False
    if not there:
        raise InputError(f"{source}: there is no such {what}; {nearest(path)}")
    return path
