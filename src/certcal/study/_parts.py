"""Rows of a study that are finished: in memory by columns, and on disk as soon as there are some."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal._durable import LOCK, make_folder, only_writer, remove_leftovers, remove_lock
from certcal.study._entries import Key
from certcal.study._table import KEYS, OK, ORIGIN, STATE, StudyTable
from certcal.study._work import Origin, Row

# What a process that is killed can lose.
FLUSH_ROWS = 256
FLUSH_SECONDS = 2.0

_SETTINGS, _ROWS = re.compile(r"[0-9a-f]{12}"), re.compile(r"rows-\d{6,}\.parquet")  # names that this module gives
_TEXTS = (*KEYS, *STATE, "source", "source_changed")


class Parts:
    """Finished rows, found by model, data set and split.

    Parameters
    ----------
    folder
        Where they are kept until the table is written; None for nowhere.
    settings
        Of the study.
    """

    def __init__(self, folder: Path | None, settings: Mapping[str, Any]) -> None:
        self._folder, self._settings = folder, settings
        self._tables: list[StudyTable] = []
        self._places: dict[Key, tuple[int, int]] = {}
        self._waiting: list[Row] = []
        self._flushed = time.monotonic()
        self._number = 0

    def read(self) -> None:
        """Take in what is on disk. A file that is damaged counts for nothing: its rows are measured again."""
        if self._folder is None or not self._folder.is_dir():
            return
        for path in sorted(self._folder.glob("rows-*.parquet")):
            number = path.stem.removeprefix("rows-")
            self._number = max(self._number, int(number) if number.isdecimal() else 0)
            try:
                table = StudyTable.read(path)
            except InputError:
                continue
            if table.settings == self._settings and all(name in table for name in ORIGIN):
                self.take(table)

    def take(self, table: StudyTable) -> None:
        """Count the rows of a table as finished, except those that failed."""
        rows = np.flatnonzero(table["status"] == OK).tolist()
        keys = [table[name].tolist() for name in KEYS]
        for row in rows:
            self._places[keys[0][row], keys[1][row], keys[2][row]] = (len(self._tables), row)
        self._tables.append(table)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._places)

    def origin(self, key: Key) -> Origin | None:
        """What the finished row of a key was measured from, if there is one."""
        if key not in self._places:
            return None
        number, row = self._places[key]
        source, size, changed = (self._tables[number][name][row] for name in ORIGIN)
        return Origin(source, float(size), changed)

    def add(self, key: Key, origin: Origin, row: Row) -> None:
        """A row that is finished, or has failed."""
        source = dict(zip(ORIGIN, (origin.source, origin.size, origin.changed), strict=True))
        self._waiting.append({**dict(zip(KEYS, key, strict=True)), **row, **source})
        if len(self._waiting) >= FLUSH_ROWS or time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Bring the rows that were added to the disk."""
        rows, self._waiting = self._waiting, []
        if rows:
            names = dict.fromkeys(name for row in rows for name in row)
            table = StudyTable.of({name: [row.get(name) for row in rows] for name in names}, self._settings)
            if self._folder is not None:
                make_folder(self._folder)
                self._number += 1
                table.write(self._folder / f"rows-{self._number:06d}.parquet")
            for row, key in enumerate(zip(*(table[name].tolist() for name in KEYS), strict=True)):
                self._places[key] = (len(self._tables), row)
            self._tables.append(table)
        self._flushed = time.monotonic()

    def gather(self, keys: Sequence[Key], names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Columns of the rows of these keys, in their order."""
        found: dict[str, NDArray[Any]] = {
            name: np.full(len(keys), "", object) if name in _TEXTS else np.full(len(keys), np.nan) for name in names
        }
        places = np.array([self._places[key] for key in keys], np.int64).reshape(-1, 2)
        for number, table in enumerate(self._tables):
            into = np.flatnonzero(places[:, 0] == number)
            for name in names:
                if name in table:
                    found[name][into] = table[name][places[into, 1]]
        return found


def parts_folder(out: Path, settings: Mapping[str, Any]) -> Path:
    """Where the finished rows of a table are kept: apart for other settings, so that none are mistaken or lost."""
    name = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
    return beside(out) / name


def beside(out: Path) -> Path:
    """The folder beside a table that holds what is finished of it."""
    return out.with_name(f"{out.name}.parts")


def unfinished(out: str | os.PathLike[str]) -> Path | None:
    """The folder beside a table that keeps what an interrupted :func:`measure` has finished; None when there is none.

    Examples
    --------
    >>> unfinished("nowhere/study.parquet") is None
    True
    """
    place = beside(Path(out))
    return place if place.is_dir() else None


@contextlib.contextmanager
def sole_writer(out: Path) -> Generator[None, None, None]:
    """Be the only one who measures into a table. The finished rows beside it go when this ends without an error."""
    folder = beside(out)
    make_folder(folder)
    with only_writer(folder, "measuring into this table"):
        if not (folder / LOCK).exists():
            raise InputError(f"{out}: another process finished it just now; give the same command again")
        remove_leftovers(folder)
        yield
        _remove_parts(folder)


def _remove_parts(folder: Path) -> None:
    """Remove what this module wrote, and the folder if nothing else is in it."""
    with contextlib.suppress(OSError):
        for place in [place for place in folder.iterdir() if _SETTINGS.fullmatch(place.name) and place.is_dir()]:
            for part in [path for path in place.iterdir() if _ROWS.fullmatch(path.name)]:
                part.unlink()
            with contextlib.suppress(OSError):  # somebody's file is in it
                place.rmdir()
        remove_lock(folder)
        folder.rmdir()
