"""Work on the samples of a data set, piece by piece: in memory, or in a folder that several processes may fill.

A piece is a run of samples whose results are one file, written when they are all there. The same call resumes: it does
what is missing. Samples may be divided into parts, each for a process of its own; which pieces are whose follows from
what the folder says, so nothing is done twice and nothing has to be put together.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.durable import make_folder, only_writer, open_regular, remove_leftovers, write_durably
from certcal._base.parts import MOST_PARTS, PATIENCE, Part, missing_parts, shares
from certcal.data.npz import array_names, read_arrays, read_header

ABOUT = "work.json"
FORMAT = "certcal work"
_MOST_BYTES = 8_000_000

Arrays = dict[str, NDArray[Any]]


class _About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    samples: int
    rows: int
    parts: int
    settings: dict[str, Any]


class Work:
    """Pieces of at most ``rows`` samples: those of this process, and the results of all.

    A folder that was begun keeps its own pieces, and is refused with other settings. ``held`` keeps the locks;
    ``prepare`` is called before the folder says that it was begun, and never again once it does.
    """

    def __init__(
        self,
        samples: int,
        rows: int,
        folder: Path | None = None,
        settings: Mapping[str, Any] | None = None,
        part: Part | None = None,
        held: ExitStack | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self._memory: dict[tuple[int, int], Arrays] = {}
        self.folder, self._part = folder, part
        plain = json.loads(json.dumps({} if settings is None else dict(settings)))
        self._about = _About(FORMAT, samples, rows, 1 if part is None else part.of, plain)
        if folder is None or held is None:
            return
        make_folder(folder)
        with only_writer(folder, "writing into it", patience=PATIENCE):
            there = _read_about(folder)
            if there is None:
                if prepare is not None:
                    prepare()
                write_durably(folder / ABOUT, json.dumps(msgspec.to_builtins(self._about), indent=1).encode())
            else:
                self._about = _resume(folder, there, self._about, part)
            for number in range(1, self.parts + 1) if part is None else (part.number,):
                lock = Part(number, self.parts).lock
                held.enter_context(only_writer(folder, "working on the same part", lock=lock))
            remove_leftovers(folder, {self._name(*piece) for piece in self._own_pieces()} | {ABOUT})

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return self._about.parts

    def pieces(self) -> list[list[tuple[int, int]]]:
        """The first sample of each piece and that after its last, part by part."""
        samples, rows = self._about.samples, self._about.rows
        all_of_them = [(first, min(first + rows, samples)) for first in range(0, samples, rows)]
        return [[all_of_them[k] for k in share] for share in shares(0, len(all_of_them), self.parts)]

    def missing(self) -> Iterator[tuple[int, int]]:
        """Pieces of this process that have no results yet, or damaged ones."""
        return (piece for piece in self._own_pieces() if self._read(piece) is None)

    def write(self, first: int, last: int, results: Arrays) -> None:
        """Keep the results of a piece."""
        if self.folder is None:
            self._memory[first, last] = results
            return
        stream = io.BytesIO()
        np.savez(stream, **cast("Any", results))
        write_durably(self.folder / self._name(first, last), stream.getvalue())

    def joined(self) -> Arrays:
        """The results of all samples, or an error that says which parts are missing."""
        arrays: list[Arrays] = []
        missing: list[int] = []
        for number, pieces in enumerate(self.pieces(), 1):
            own = [self._read(piece) for piece in pieces]
            arrays += [each for each in own if each is not None]
            missing += [number] if any(each is None for each in own) else []
        if missing:
            done = None if self._part is None else self._part.number
            raise missing_parts(self.folder, missing, self.parts, done=done)
        return {name: np.concatenate([each[name] for each in arrays]) for name in arrays[0]}

    def _own_pieces(self) -> list[tuple[int, int]]:
        of_parts = self.pieces()
        return of_parts[self._part.number - 1] if self._part else [piece for pieces in of_parts for piece in pieces]

    def _name(self, first: int, last: int) -> str:
        return f"samples-{first}-{last}.npz"

    def _read(self, piece: tuple[int, int]) -> Arrays | None:
        if self.folder is None:
            return self._memory.get(piece)
        path = self.folder / self._name(*piece)
        if not path.exists():
            return None
        try:
            found = read_arrays(path, tuple(array_names(path)), "results are missing")
        except InputError:
            return None  # damaged: done again
        return found if all(len(each) == piece[1] - piece[0] for each in found.values()) else None


def _read_about(folder: Path) -> _About | None:
    path = folder / ABOUT
    if not path.exists():
        return None
    with open_regular(path) as stream:
        content = stream.read(_MOST_BYTES)
    try:
        about = msgspec.json.decode(content, type=_About)
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: cannot be read ({error}); remove the folder, or choose another") from None
    if about.format != FORMAT or min(about.samples, about.rows) < 1 or not 1 <= about.parts <= MOST_PARTS:
        raise InputError(f"{path}: this says nothing about work of certcal's; choose another folder")
    return about


def _resume(folder: Path, there: _About, asked: _About, part: Part | None) -> _About:
    """What a folder was begun with, if that is what is asked for."""
    remedy = "give the same, or choose another folder"
    if part is not None and part.of != there.parts:
        reason = f"{folder} was begun in {there.parts} parts, and {part.number}/{part.of} is asked for"
        raise InputError(reason, argument="part", remedy=remedy)
    before, now = ({**about.settings, "samples": about.samples} for about in (there, asked))
    for name in {**before, **now}:
        if before.get(name) != now.get(name):
            reason = f"{folder}: it was begun with {name} = {before.get(name)}, and {now.get(name)} is asked for"
            raise InputError(reason, remedy=remedy)
    return there


def allocate_array(path: Path, shape: tuple[int, ...]) -> None:
    """Make a .npy file of float32 zeros that takes no room yet."""
    make_folder(path.parent)
    header = io.BytesIO()
    np.lib.format.write_array_header_2_0(header, {"descr": "<f4", "fortran_order": False, "shape": shape})
    write_durably(path, header.getvalue())
    os.truncate(path, len(header.getvalue()) + 4 * math.prod(shape))


def write_rows(path: Path, first: int, rows: NDArray[np.float32]) -> None:
    """Put rows into their place in such a file, where no other process writes; they are on the disk afterwards."""
    content = np.ascontiguousarray(rows, "<f4")
    try:
        with path.open("r+b") as stream:
            read_header(stream)
            stream.seek(first * content[0].nbytes, os.SEEK_CUR)
            stream.write(content.tobytes())
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error}); make room, and give it again"
        ) from None
