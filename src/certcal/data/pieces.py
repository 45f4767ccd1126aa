"""What reading any table has in common: pieces with their row numbers, groups, and putting the pieces together."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal.data.formats import CHUNK_NUMBERS, CHUNK_ROWS, OpenTable

if TYPE_CHECKING:
    from certcal.data.grouping import Groupings
    from certcal.data.reading import CellReader
    from certcal.data.schema import Layout
    from certcal.data.values import Batch

Arrays = dict[str, NDArray[Any]]

# Groups: more distinct values than this is an identifier, not a group.
MAX_GROUPS = 1000
MISSING_GROUP = "(missing)"


class DoesNotFit(InputError):
    """A table takes more memory than it may: it can only be read in pieces."""


class CellError(InputError):
    """A value of a table that cannot be used: where it is, what is wrong, what to do."""

    def __init__(
        self,
        column: str,
        row: int | None,
        reason: str,
        remedy: str,
        roles: Sequence[str] = (),
        add: Mapping[str, Any] | None = None,
    ) -> None:
        self.column, self.row = column, row
        place = f"column {column!r}{'' if row is None else f', row {row}'}"
        super().__init__(f"{place} {reason}", remedy=remedy, roles=roles, add=add)

    def __reduce__(self) -> Any:
        return InputError, (str(self),)


@contextmanager
def in_file(path: Path) -> Generator[None, None, None]:
    """Begin every complaint with the file it is about, once, unless an argument is wrong and not the file."""
    try:
        yield
    except InputError as error:
        if error.argument is None and not error.reason.startswith(f"{path}: "):
            error.reason = f"{path}: {error.reason}"
            error.args = (error.said(None),)
        raise


def pieces(
    table: OpenTable,
    layout: Layout,
    convert: Callable[[Batch], Arrays],
    *,
    width: int = 1,
    size: int | None = None,
    groups: Groupings | None = None,
    reader: CellReader | None = None,
    keep: Callable[[Batch], NDArray[np.bool_] | None] = lambda batch: None,
) -> Iterator[Arrays]:
    """Arrays of every record batch that has rows, as ``convert`` makes them.

    A batch has ``size`` rows; by default as many as are fast where each has ``width`` numbers. Rows count that ``keep``
    says.
    """
    from certcal.data.arrow import from_numpy
    from certcal.data.values import Batch

    most = max(1, min(CHUNK_ROWS, CHUNK_NUMBERS // width)) if size is None else size
    wanted = (*layout.columns, *(() if groups is None else groups.columns))
    first_row = 0
    with in_file(table.path):
        for rows in table.chunks(wanted, most, numbers=layout.numbers):
            if rows.num_rows:
                batch = Batch(rows, first_row, reader)
                kept = keep(batch)
                if kept is not None:
                    batch = Batch(rows.filter(from_numpy(kept)), first_row, reader, np.flatnonzero(kept))
                if batch.rows.num_rows:
                    yield convert(batch) | ({} if groups is None else groups.add(batch))
                first_row += rows.num_rows


def gather(
    parts: Iterable[Arrays],
    rows: int | None,
    advance: Callable[[int], None] = lambda rows: None,
    most: int | None = None,
) -> Arrays:
    """Pieces put together, with at most one copy of the whole in memory when the number of rows is known."""
    growing: dict[str, _GrowingArray] = {}
    taken = 0
    for part in parts:
        taken += sum(array.nbytes for array in part.values())
        if most is not None and taken > most:
            raise DoesNotFit(f"the table takes more than {most / 1e6:.0f} MB; read it in pieces (PredictionStream)")
        for name, array in part.items():
            growing.setdefault(name, _GrowingArray(rows)).append(array)
        advance(next(iter(part.values())).shape[0])
    if not growing:
        raise InputError("the table has no rows; it needs at least one")
    return {name: growing.pop(name).finish() for name in list(growing)}


class _GrowingArray:
    def __init__(self, rows: int | None) -> None:
        self.rows = rows
        self.parts: list[NDArray[Any]] = []
        self.whole: NDArray[Any] | None = None
        self.filled = 0

    def append(self, part: NDArray[Any]) -> None:
        if self.rows is None or part.shape[0] == self.rows:
            self.parts.append(part)
            return
        if self.whole is None:
            self.whole = np.empty((self.rows, *part.shape[1:]), part.dtype)
        if part.shape[1:] != self.whole.shape[1:]:
            raise InputError(
                f"row {self.filled + 1} has {part.shape[1]} entries where row 1 has {self.whole.shape[1]}; "
                "every row needs one number per class"
            )
        if self.filled + part.shape[0] > self.rows:
            raise InputError(f"there are more than the {self.rows} rows that it says it has; write the file again")
        self.whole[self.filled : self.filled + part.shape[0]] = part
        self.filled += part.shape[0]

    def finish(self) -> NDArray[Any]:
        if self.whole is not None:
            return self.whole[: self.filled]
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)


def natural_order(names: list[str]) -> list[int]:
    """Positions that sort names with their numbers as numbers."""

    def key(index: int) -> list[tuple[int, int, str]]:
        parts = re.split(r"([0-9]{1,18})", names[index])
        return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]

    return sorted(range(len(names)), key=key)


def fingerprint_of(*arrays: NDArray[Any] | None) -> str:
    """SHA-256 of numbers with their types and shapes, as hexadecimal digits; None counts too."""
    total = hashlib.sha256()
    for array in arrays:
        if array is None:
            total.update(b"none\n")
            continue
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        total.update(f"{plain.dtype.str} {plain.shape}\n".encode())
        total.update(plain.reshape(-1).view(np.uint8).data)
    return total.hexdigest()
