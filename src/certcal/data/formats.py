"""Which format a file has, decided by its content where that is certain and by its name otherwise."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

from certcal._checks import InputError
from certcal._files import nearest
from certcal.data._memory import MemoryTable, is_table
from certcal.data._table import Table

_TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst", ".csv.bz2", ".tsv.bz2")
_PARQUET = (".parquet", ".pq")
_ARROW = (".feather", ".arrow")
ENDINGS = (*_TEXT, *_PARQUET, *_ARROW, ".npz")
FORMATS = "Parquet (.parquet), CSV (.csv, .tsv, also .gz), npz (.npz) or Arrow (.feather, .arrow)"


def open_table(path: str | os.PathLike[str] | Any) -> Table:
    r"""Open a table: Parquet, CSV or TSV, npz, Feather or Arrow, or one in memory (pandas, polars, pyarrow, a mapping).

    The file is treated as hostile: nothing is unpickled, sizes are checked before memory is asked for, and whatever
    is wrong with it is reported as an :class:`certcal.InputError` of one sentence.

    Parameters
    ----------
    path
        The file, or a table in memory.

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
    if is_table(path):
        return MemoryTable(path)
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"a table is a file or columns by name (pandas, polars, pyarrow, a mapping), not {type(path).__name__}; "
            "name the columns, or make Predictions of arrays"
        )
    file = Path(cast("str", path))
    head, tail = file_ends(file)
    name = file.name.lower()
    if head == b"PAR1" or name.endswith(_PARQUET):
        if head != b"PAR1":
            raise InputError(
                f"{file}: this is not a Parquet file (it does not begin with PAR1); check how it was written"
            )
        if tail != b"PAR1":
            raise InputError(f"{file}: this Parquet file is cut short (its footer is missing); copy or write it again")
        from certcal.data.parquet import ParquetTable

        return ParquetTable(file)
    if name.endswith(".npz"):
        if head[:2] != b"PK":
            raise InputError(f"{file}: this is not an npz archive (it is no zip file); save it with numpy.savez")
        from certcal.data._npz import NpzTable

        return NpzTable(file)
    if head == b"ARRO" or name.endswith(_ARROW):
        if head != b"ARRO":
            raise InputError(
                f"{file}: this is not an Arrow file (it does not begin with ARROW1); write Feather version 2"
            )
        from certcal.data._feather import FeatherTable

        return FeatherTable(file)
    if name.endswith(_TEXT):
        if head == b"PK\x03\x04":
            raise InputError(f"{file}: this is a zip or Excel file, not text; export it as CSV")
        from certcal.data._text import TextTable

        return TextTable(file)
    if name.endswith(".npy"):
        raise InputError(
            f"{file}: a .npy file holds one array without a name; save all of them with numpy.savez as .npz"
        )
    raise InputError(f"{file}: files called {file.suffix or 'without an ending'} are not read; use {FORMATS}")


def file_ends(file: Path) -> tuple[bytes, bytes]:
    """First and last four bytes, after making sure that there is a readable file."""
    try:
        if file.is_dir():
            raise InputError(f"{file}: this is a folder; give one file, {FORMATS}")
        if file.exists() and not file.is_file():
            raise InputError(f"{file}: this is not a regular file; give {FORMATS}")
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
        raise InputError(f"{file}: the file is empty; it needs column names and at least one row")
    return head, tail


def existing(source: str | os.PathLike[str], what: str) -> Path:
    """The path of something that is there; otherwise an error with the nearest name beside it.

    Parameters
    ----------
    source
        The path as it was given.
    what
        What is looked for, such as "run or table".

    Examples
    --------
    >>> existing("/nowhere/at/all", "run or table")
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: /nowhere/at/all: there is no such run or table; check the path
    """
    path = Path(source)
    try:
        there = path.exists()
    except (OSError, ValueError):  # a name that is too long, or no name at all
        there = False
    if not there:
        raise InputError(f"{source}: there is no such {what}; {nearest(path)}")
    return path
