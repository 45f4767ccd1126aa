"""Measure many models into one table: durably, in parallel, with memory for a few of them at a time."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from certcal._base import checks as _checks
from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError
from certcal._base.durable import (
    LOCK,
    FolderInUseError,
    make_folder,
    only_writer,
    remove_leftovers,
    remove_lock,
    write_durably,
)
from certcal._base.files import path_of
from certcal._base.parts import PATIENCE, Part, missing_parts, part_locks, part_of
from certcal._base.progress import Progress, ProgressLike, as_reporter
from certcal._base.signature import SEED, Option, Range, Takes, verb
from certcal._base.text import counted
from certcal.engines import Engine, InProcess, LocalProcesses, hold
from certcal.lab.study._battery import BINNED, UNBINNED
from certcal.lab.study._entries import Entry, EntrySource, Key, open_source
from certcal.lab.study._overview import StudyOverview, overview
from certcal.lab.study._table import AUROC, KEYS, OK, ORIGIN, SIZES, STATE, SUMMARY, TEXTS, MeasuredColumn, StudyTable
from certcal.lab.study._work import EntryWork, MeasurementTask, Origin, Row, rows
from certcal.metrics import STUDY_BINS

# What a process that is killed can lose.
FLUSH_ROWS = 256
FLUSH_SECONDS = 2.0

# Names that this module gives: folders of rows with the same settings, perhaps of one part, and the files in them.
_SETTINGS, _ROWS = re.compile(r"[0-9a-f]{12}(-\d+-of-\d+)?"), re.compile(r"rows-\d{6,}\.parquet")
_ROLES = ("probabilities", "logits", "label", "weight")


@verb()
def measure(
    source: str | os.PathLike[str] | Iterable[Entry],
    *,
    out: str | os.PathLike[str] | None = None,
    columns: Mapping[str, str] | None = None,
    workers: int = 1,
    engine: Engine | None = None,
    force: bool = False,
    layout: Annotated[str, Takes("text"), Option(metavar="PARTS")] = "data/model",
    bins: Annotated[int | Iterable[int], Range(1, 10_000_000)] = STUDY_BINS,
    validation: Annotated[float, Takes("share")] = 0.2,
    seed: Annotated[int, SEED] = 0,
    kde: Annotated[Literal["gaussian", "triweight"], Option(metavar="KERNEL")] = "gaussian",
    part: Annotated[str | None, Takes("text"), Option(metavar="I/N")] = None,
    progress: ProgressLike = True,
) -> StudyOverview:
    """Measure many models before and after temperature scaling: one row per model, data set and split.

    Each entry is measured by :func:`battery`. One that cannot be measured is a row that has failed, with its reason;
    the others go on. The table does not depend on the number of workers, their order, or interruptions.

    With ``out``, finished rows are kept in a folder beside it while this works. Called again, it measures what is
    missing: new entries, files that have changed, rows that had failed. Entries that are no longer in the source leave
    the table. Other settings than those of the table are refused.

    Parameters
    ----------
    source
        A folder of prediction files; a manifest (CSV, Parquet, Arrow, JSON lines) with the columns ``predictions``
        and ``model``, perhaps ``data``, ``split``, ``ood:NAME`` and columns of your own; or entries, of which an
        iterator is taken one after the other.
    out
        The table's file (.parquet). None to keep it in memory.
    columns
        Columns of the prediction files by role, where their names do not say it; see
        :func:`certcal.data.resolve_columns`.
    workers
        Processes on this machine.
    engine
        Where the work runs instead; see :mod:`certcal.engines`.
    force
        Measure everything anew. A table that was there is replaced when the new one is complete, not before.
    layout
        Parts of a file's path in a folder: data, model, split.
    bins
        Numbers of bins.
    validation
        Fraction of the samples used to fit the temperature.
    seed
        Random seed of the split.
    kde
        Kernel of the KDE-ECE; triweight, with its own bandwidth, is the benchmark study's.
    part
        Measure the I-th of N parts of the entries, such as 3/16, for job arrays; the last part writes the table.

        Until all are there, :class:`certcal.data.PartsMissingError` says which are missing.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Returns
    -------
    StudyOverview
        With the table, and notes that are good to know, such as how many rows have left it.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal import Predictions
    >>> logits = np.random.default_rng(0).normal(size=(200, 3))
    >>> mine = Predictions.from_logits(2 * logits, logits.argmax(axis=1))
    >>> broken = Predictions.from_confidence([0.5], [1])
    >>> found = measure([Entry("mine", mine, given={"depth": 3}), Entry("broken", broken)], bins=[15])
    >>> found.table
    StudyTable(rows=2, models=2, datasets=1, measurements=20, failed=1)
    >>> found.table["pre_ece_15"][0] > 0, found.table["depth"].tolist()
    (np.True_, [3.0, nan])
    """
    progress = as_reporter(progress)
    task = MeasurementTask(
        tuple(sorted(_checks.bin_counts(bins))),
        validation,
        seed,
        {role: name for role, name in (columns or {}).items() if name},
        kde,
    )
    for role in task.columns:
        if role not in _ROLES:
            raise InputError(f"columns has the role {role!r}; the roles are {', '.join(_ROLES)}")
    if engine is not None and not callable(getattr(engine, "run", None)):
        raise InputError(f"engine is {engine!r}; pass an engine of certcal.engines, such as RayCluster()")
    own_part = part_of(part)
    if own_part is not None and out is None:
        raise InputError("there is no table", argument="part", remedy="say with {out} where it is", roles=("out",))
    if own_part is not None and own_part.of == 1:
        own_part = None
    place = engine if engine is not None else InProcess() if workers == 1 else LocalProcesses(workers)
    progress.stage("looking at the files")
    if out is None:
        finished = FinishedRows(None, task.settings)
        table = _table_of(
            _measure_entries(open_source(source, layout), finished, task, place, progress), finished, task
        )
        return overview(table, notes=list(_differences(table)))
    path = _check_table_path(out, source)
    _read_existing_table(path, task.settings, force=force)
    opened = open_source(source, layout)
    with _writing(path, own_part) as finishing:
        before = _read_existing_table(path, task.settings, force=force)
        finished = FinishedRows(path, task.settings, own_part)
        finished.read(before)
        seen = _measure_entries(opened, finished, task, place, progress, own_part)
        with finishing():
            if own_part is not None:
                before = _read_existing_table(path, task.settings, force=force)
                finished = FinishedRows(path, task.settings, own_part)
                finished.read(before, failed=True)
                _check_complete(path, seen.entries, finished, own_part)
            table = _table_of(seen, finished, task)
            content = table.to_parquet()
            if not path.exists() or path.read_bytes() != content:
                write_durably(path, content)
    losses = () if before is None else _losses(table, before)
    return overview(table, source=str(out), notes=[*losses, *_differences(table)])


def _check_table_path(out: str | os.PathLike[str], source: Any) -> Path:
    """The table's file, where it can be written without harm."""
    path = path_of(out, "out")
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise InputError(f"{path}: the table is a Parquet file; choose a name that ends in .parquet")
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; choose a file")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder does not exist; create it first")
    if isinstance(source, str | os.PathLike):
        read = Path(source)  # pyright: ignore[reportUnknownArgumentType]
        if read.is_dir() and path.resolve().is_relative_to(read.resolve()):
            raise InputError(f"{path}: this is inside {read}, which is read; choose another folder")
        if path.resolve() == read.resolve():
            raise InputError(f"{path}: this is the manifest that is read; choose another name")
    return path


def _read_existing_table(path: Path, settings: Mapping[str, Any], *, force: bool) -> StudyTable | None:
    """The table that is there already, None without one, or an error when it was not made like this one."""
    if force or not path.exists():
        return None
    table = StudyTable.read(path)
    if not {"bins", "validation", "seed"} <= table.settings.keys() or not all(name in table for name in ORIGIN):
        raise InputError(f"{path}: certcal study measure did not write this table; choose another name")
    for name in {**table.settings, **settings}:
        then, now = table.settings.get(name), settings.get(name)
        if then != now:
            raise InputError(
                f"{path} was measured with {name} = {_setting_text(then)}, and {_setting_text(now)} is asked for; "
                "choose another name, or force to measure everything anew"
            )
    return table


def _setting_text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "none" if value is None else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


class SeenEntry(NamedTuple):
    """What is kept of an entry of the source: its key, the user's own columns, and what its row must be of."""

    key: Key
    given: Mapping[str, Any]
    origin: Origin


class SeenSource(NamedTuple):
    """The entries in order, and the names of other data sets that they have."""

    entries: list[SeenEntry]
    others: list[str]


def _measure_entries(
    source: EntrySource,
    finished: FinishedRows,
    task: MeasurementTask,
    engine: Engine,
    progress: Progress,
    part: Part | None = None,
) -> SeenSource:
    """Look at every entry of the source, and measure those that are not finished yet, or those of a part."""
    entries: list[SeenEntry] = []
    others: dict[str, None] = {}
    waiting: set[int] = set()
    own = 0

    def missing() -> Iterator[EntryWork]:
        nonlocal own
        for number, entry in enumerate(source):
            work = EntryWork.of(number, entry)
            entries.append(SeenEntry(entry.key, entry.given, work.origin))
            others.update(dict.fromkeys(entry.out_of_distribution))
            if part is not None and number % part.of != part.number - 1:
                continue
            own += 1
            if not (work.origin.changed and finished.holds(entries[-1])):
                waiting.add(number)
                yield work

    pieces = missing() if source.total is None else iter(list(missing()))
    busy = bool(waiting) or source.total is None  # without work no engine need be started
    done = own - len(waiting)
    progress.stage("measuring", None if source.total is None else own, done, "files")
    try:
        with hold(engine) if busy else nullcontext(), closing(rows(engine, task, pieces)) as results:
            for work, row in results:
                waiting.remove(work.number)
                finished.add(work.key, work.origin, row)
                before, done = done, own - len(waiting)
                progress.advance(done - before)
    finally:
        finished.flush()
    return SeenSource(entries, list(others))


def _check_complete(path: Path, entries: Sequence[SeenEntry], finished: FinishedRows, part: Part) -> None:
    """Say which parts are missing, unless every entry has a row of what it is now, even one that failed."""
    missing = {number % part.of + 1 for number, entry in enumerate(entries) if not finished.holds(entry)}
    if missing:
        raise missing_parts(path, missing, part.of, done=part.number)


def _table_of(seen: SeenSource, finished: FinishedRows, task: MeasurementTask) -> StudyTable:
    keys = [entry.key for entry in seen.entries]
    own = dict(zip(KEYS, zip(*keys, strict=True), strict=True))
    given = {
        name: [entry.given.get(name) for entry in seen.entries]
        for name in dict.fromkeys(name for entry in seen.entries for name in entry.given)
    }
    names = [*SIZES, *SUMMARY]
    for stage in ("pre", "post"):
        names += [str(MeasuredColumn(stage, metric, count)) for metric in BINNED for count in task.bins]
        names += [str(MeasuredColumn(stage, metric)) for metric in UNBINNED]
    measured = finished.gather(seen.entries, [*names, *(f"{AUROC}{name}" for name in seen.others), *ORIGIN, *STATE])
    return StudyTable.of({**own, **given, **measured}, task.settings)


def _losses(table: StudyTable, before: StudyTable) -> Iterator[str]:
    """Rows and columns that the existing table has and the new one lacks."""
    gone = len({*before.row_keys} - {*table.row_keys})
    if gone:
        yield f"{counted(gone, 'row')} left the table: the source no longer has them"
    columns = [name for name in before.given if name not in table]
    if columns:
        yield f"columns that left the table, because the source does not give them: {', '.join(columns)}"


def _differences(table: StudyTable) -> Iterator[str]:
    """Cautions on models that cannot have been measured on the same data, although it has one name."""
    good = table.where()
    pairs = list(zip(good["data"].tolist(), good["split"].tolist(), strict=True))
    for things, counts in (("classes", good["classes"]), ("samples", good["n"] + good["n_validation"])):
        found: dict[tuple[str, str], set[int]] = {}
        for pair, count in zip(pairs, counts.tolist(), strict=True):
            found.setdefault(pair, set()).add(int(count))
        several = [(pair, sorted(some)) for pair, some in found.items() if len(some) > 1]
        if several:
            (data, split), some = several[0]
            more = f" (and on {len(several) - 1:,} more)" if len(several) > 1 else ""
            yield (
                f"models on {data!r} ({split}) have from {some[0]:,} to {some[-1]:,} {things}{more}, and are "
                "compared as if they had the same data"
            )


_Identity: TypeAlias = "tuple[Key, str, float | None, str]"


class FinishedRows:
    """Rows that are finished, found by model, data set and split: in memory by columns, and on disk as they come.

    They are kept in a folder beside the table, apart for other settings and for each part, so that none are mistaken
    or lost. All parts' rows are read; only those of this part are written.
    """

    def __init__(self, out: Path | None, settings: Mapping[str, Any], part: Part | None = None) -> None:
        self._settings, self._place, self._folder = settings, None, None
        if out is not None:
            self._name = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
            self._place = _rows_folder(out)
            self._folder = self._place / (self._name if part is None else f"{self._name}-{part.number}-of-{part.of}")
        self._tables: list[StudyTable] = []
        self._places: dict[_Identity, tuple[int, int]] = {}
        self._waiting: list[Row] = []
        self._flushed = time.monotonic()
        self._number = 0

    def read(self, before: StudyTable | None = None, *, failed: bool = False) -> None:
        """Take in the rows of a table, then what is on disk. Rows that failed count only if asked for.

        A file that is damaged counts for nothing: its rows are measured again.
        """
        if before is not None:
            self._take(before, failed)
        folders = [] if self._place is None else sorted(self._place.glob(f"{self._name}*"))
        for path in [path for folder in folders for path in sorted(folder.glob("rows-*.parquet"))]:
            if path.parent == self._folder and _ROWS.fullmatch(path.name):
                self._number = max(self._number, int(path.stem.removeprefix("rows-")))
            with suppress(InputError):
                table = StudyTable.read(path)
                if table.settings == self._settings and all(name in table for name in ORIGIN):
                    self._take(table, failed)

    def _take(self, table: StudyTable, failed: bool = True) -> None:
        """Take in the rows of a table; one that failed never replaces one of the same content that did not."""
        number, names = len(self._tables), ("status", *ORIGIN)
        self._tables.append(table)
        columns = zip(*(table[name].tolist() for name in names), strict=True)
        for row, (key, (status, *origin)) in enumerate(zip(table.row_keys, columns, strict=True)):
            found = _identity(key, Origin(*origin))
            if status == OK or (failed and found not in self._places):
                self._places[found] = number, row

    def holds(self, entry: SeenEntry) -> bool:
        """Whether there is a row of an entry as it is now."""
        return _identity(entry.key, entry.origin) in self._places

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
            self._take(table)
        self._flushed = time.monotonic()

    def gather(self, entries: Sequence[SeenEntry], names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Columns of the rows of these entries, in their order."""
        found: dict[str, NDArray[Any]] = {
            name: np.full(len(entries), "", object) if name in TEXTS else np.full(len(entries), np.nan)
            for name in names
        }
        places = np.array([self._places[_identity(each.key, each.origin)] for each in entries], np.int64).reshape(-1, 2)
        for number, table in enumerate(self._tables):
            into = np.flatnonzero(places[:, 0] == number)
            for name in names:
                if name in table:
                    found[name][into] = table[name][places[into, 1]]
        return found


def _identity(key: Key, origin: Origin) -> _Identity:
    """What a row is found by: its key, and what it was measured from; the size of what is not there is not a number."""
    size = None if math.isnan(origin.size) else origin.size
    return key, origin.source, size, origin.changed


def _rows_folder(out: Path) -> Path:
    """The folder beside a table that holds what is finished of it."""
    if not out.name:
        raise InputError(f"out is {str(out)!r}; pass the name of a file")
    return out.with_name(f"{out.name}.parts")


@names_wrong_types
def unfinished(out: str | os.PathLike[str]) -> Path | None:
    """The folder beside a table that keeps what an interrupted :func:`measure` has finished; None when there is none.

    Examples
    --------
    >>> unfinished("nowhere/study.parquet") is None
    True
    """
    place = _rows_folder(path_of(out, "out"))
    return place if place.is_dir() else None


@contextmanager
def _writing(out: Path, part: Part | None) -> Generator[Callable[[], AbstractContextManager[None]], None, None]:
    """Be the only one who measures into a table, or a part of it; what it gives is held while the table is written."""
    folder = _rows_folder(out)
    make_folder(folder)

    def locked() -> AbstractContextManager[None]:
        return only_writer(folder, "measuring into this table", patience=0.0 if part is None else PATIENCE)

    @contextmanager
    def finishing() -> Generator[None, None, None]:
        with nullcontext() if part is None else locked(), ExitStack() as others:
            yield
            with suppress(FolderInUseError):  # where another part is at work, what is there stays until that one ends
                for lock in part_locks(folder):
                    if part is not None and lock != part.lock:  # all others: without a part they are held already
                        others.enter_context(only_writer(folder, lock=lock))
                _remove_rows(folder)

    with ExitStack() as held:
        with ExitStack() as beginning:
            (held if part is None else beginning).enter_context(locked())
            doing = "measuring a part of this table" if part is None else "measuring the same part"
            for lock in part_locks(folder) if part is None else [part.lock]:
                held.enter_context(only_writer(folder, doing, lock=lock))
            if part is None:
                remove_leftovers(folder)
            else:
                _remove_leftovers_of(folder, part)
        yield finishing


def _remove_leftovers_of(folder: Path, part: Part) -> None:
    for place in folder.glob(f"*-{part.number}-of-{part.of}"):
        if _SETTINGS.fullmatch(place.name):
            remove_leftovers(place)


def _remove_rows(folder: Path) -> None:
    """Remove what this module wrote, and the folder if nothing else is in it. Only under all locks."""
    with suppress(OSError):
        for place in [place for place in folder.iterdir() if _SETTINGS.fullmatch(place.name) and place.is_dir()]:
            for rows in [path for path in place.iterdir() if _ROWS.fullmatch(path.name)]:
                rows.unlink()
            with suppress(OSError):  # somebody's file is in it
                place.rmdir()
        for lock in [*part_locks(folder), LOCK]:
            remove_lock(folder, lock)
        folder.rmdir()
