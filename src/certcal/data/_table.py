"""What every table on disk offers, whatever its format."""

from __future__ import annotations

import os
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from certcal._checks import InputError

# Rows and numbers per piece when a table is read in pieces: large enough to be fast, small enough for any machine.
CHUNK_ROWS = 1 << 18
CHUNK_NUMBERS = 1 << 22

# No piece is refused for taking less than this, whatever the limit: the program itself takes as much.
LEAST_MEMORY = 1 << 28

# More columns than any table of class probabilities has; a header beyond this is damage or an attack.
MAX_COLUMNS = 100_000


Kind = Literal["number", "boolean", "text", "list", "other", "unknown"]


@dataclass(frozen=True)
class Column:
    """A column of a table: its name and what it holds.

    Examples
    --------
    >>> Column("label", "text")
    Column(name='label', kind='text')
    """

    name: str
    kind: Kind = "unknown"


@dataclass(frozen=True)
class Chunks:
    """Record batches of a table, from the beginning every time it is iterated.

    Examples
    --------
    >>> twice = Chunks(lambda: iter([1, 2]))
    >>> list(twice), list(twice)
    ([1, 2], [1, 2])
    """

    start: Callable[[], Iterator[Any]]

    def __iter__(self) -> Iterator[Any]:
        return self.start()


class Table(ABC):
    """A table on disk: its columns, and its rows as a whole or in pieces. Nothing is read before it is asked for.

    Open one with :func:`certcal.data.open_table`.
    """

    path: Path
    columns: tuple[Column, ...]
    rows: int | None
    metadata: Mapping[str, str] = MappingProxyType({})  # what the writer has said about the whole, if the format can
    memory: int | None = None  # bytes that one piece may take; None for all that this machine has
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
        """The named columns as one pyarrow table."""
        from certcal.data.arrow import pa

        return pa.Table.from_batches(list(self.chunks(columns, numbers=numbers)))

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


def schema_columns(path: Path, schema: Any) -> tuple[Column, ...]:
    """Columns of a pyarrow schema."""
    check_column_count(path, len(schema.names))
    return tuple(Column(name, column_kind(schema.field(i).type)) for i, name in enumerate(schema.names))


def check_column_count(path: Path, count: int) -> None:
    """Refuse headers no honest table has."""
    if count > MAX_COLUMNS:
        raise InputError(
            f"{path}: {count} columns are more than the {MAX_COLUMNS} that certcal reads; is this the right file?"
        )


def physical_memory() -> int | None:
    """Bytes of memory this machine has, or None where the system does not say.

    Examples
    --------
    >>> memory = physical_memory()
    >>> memory is None or memory > 0
    True
    """
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


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
    except (MemoryError, pa.ArrowMemoryError) as error:
        raise InputError(f"{path}: not enough memory to read this {what}; read fewer columns or rows") from error
    except OSError as error:
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
