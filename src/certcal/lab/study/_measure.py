"""Measure many models into one table: durably, in parallel, with memory for a few of them at a time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._base import checks as _checks
from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError
from certcal._base.durable import LOCK, make_folder, only_writer, remove_leftovers, remove_lock, write_durably
from certcal._base.files import path_of
from certcal._base.progress import Progress, ProgressLike, as_reporter
from certcal._base.signature import SEED, Option, Range, Takes, verb
from certcal._base.text import counted
from certcal.engines import Engine, InProcess, LocalProcesses, held
from certcal.lab.study._battery import BINNED, UNBINNED
from certcal.lab.study._entries import Entry, EntrySource, Key, open_source
from certcal.lab.study._overview import StudyOverview, overview
from certcal.lab.study._table import AUROC, KEYS, OK, ORIGIN, SIZES, STATE, SUMMARY, TEXTS, MeasuredColumn, StudyTable
from certcal.lab.study._work import EntryWork, MeasurementTask, Origin, Row, rows
from certcal.metrics import STUDY_BINS

# What a process that is killed can lose.
FLUSH_ROWS = 256
FLUSH_SECONDS = 2.0

_SETTINGS, _PART = re.compile(r"[0-9a-f]{12}"), re.compile(r"rows-\d{6,}\.parquet")  # names that this module gives
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
    place = engine if engine is not None else InProcess() if workers == 1 else LocalProcesses(workers)
    progress.stage("looking at the files")
    if out is None:
        finished = FinishedRows(None, task.settings)
        table = _measure_entries(open_source(source, layout), finished, task, place, progress)
        return overview(table, notes=list(_differences(table)))
    path = _check_table_path(out, source)
    _read_existing_table(path, task.settings, force=force)
    opened = open_source(source, layout)
    with _sole_writer(path):
        before = _read_existing_table(path, task.settings, force=force)
        finished = FinishedRows(path, task.settings)
        if before is not None:
            finished.take(before)
        finished.read()
        table = _measure_entries(opened, finished, task, place, progress)
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


def _measure_entries(
    source: EntrySource, finished: FinishedRows, task: MeasurementTask, engine: Engine, progress: Progress
) -> StudyTable:
    """Every entry of the source, those that are not finished yet measured now."""
    entries: list[tuple[Key, Mapping[str, Any]]] = []
    others: dict[str, None] = {}
    waiting: set[int] = set()

    def missing() -> Iterator[EntryWork]:
        for number, entry in enumerate(source):
            work = EntryWork.of(number, entry)
            entries.append((entry.key, entry.given))
            others.update(dict.fromkeys(entry.out_of_distribution))
            if not work.origin.changed or finished.origin(entry.key) != work.origin:
                waiting.add(number)
                yield work

    pieces = missing() if source.total is None else iter(list(missing()))
    busy = bool(waiting) or source.total is None  # without work no engine need be started
    done = len(entries) - len(waiting)
    progress.stage("measuring", source.total, done, "files")
    try:
        with held(engine) if busy else nullcontext(), closing(rows(engine, task, pieces)) as results:
            for work, row in results:
                waiting.remove(work.number)
                finished.add(work.key, work.origin, row)
                before, done = done, len(entries) - len(waiting)
                progress.advance(done - before)
    finally:
        finished.flush()
    keys = [key for key, _ in entries]
    own = dict(zip(KEYS, zip(*keys, strict=True), strict=True))
    given = {name: [some.get(name) for _, some in entries] for name in dict.fromkeys(n for _, s in entries for n in s)}
    names = [*SIZES, *SUMMARY]
    for stage in ("pre", "post"):
        names += [str(MeasuredColumn(stage, metric, count)) for metric in BINNED for count in task.bins]
        names += [str(MeasuredColumn(stage, metric)) for metric in UNBINNED]
    measured = finished.gather(keys, [*names, *(f"{AUROC}{name}" for name in others), *ORIGIN, *STATE])
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


class FinishedRows:
    """Rows that are finished, found by model, data set and split: in memory by columns, and on disk as they come.

    They are kept in a folder beside the table, apart for other settings, so that none are mistaken or lost.
    """

    def __init__(self, out: Path | None, settings: Mapping[str, Any]) -> None:
        name = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
        self._folder, self._settings = None if out is None else _rows_folder(out) / name, settings
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
            with suppress(InputError):
                table = StudyTable.read(path)
                if table.settings == self._settings and all(name in table for name in ORIGIN):
                    self.take(table)

    def take(self, table: StudyTable) -> None:
        """Count the rows of a table as finished, except those that failed."""
        good = (table["status"] == OK).tolist()
        self._places |= {key: (len(self._tables), row) for row, key in enumerate(table.row_keys) if good[row]}
        self._tables.append(table)

    def origin(self, key: Key) -> Origin | None:
        """Origin of the finished row of a key, if there is one."""
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
            self._places |= {key: (len(self._tables), row) for row, key in enumerate(table.row_keys)}
            self._tables.append(table)
        self._flushed = time.monotonic()

    def gather(self, keys: Sequence[Key], names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Columns of the rows of these keys, in their order."""
        found: dict[str, NDArray[Any]] = {
            name: np.full(len(keys), "", object) if name in TEXTS else np.full(len(keys), np.nan) for name in names
        }
        places = np.array([self._places[key] for key in keys], np.int64).reshape(-1, 2)
        for number, table in enumerate(self._tables):
            into = np.flatnonzero(places[:, 0] == number)
            for name in names:
                if name in table:
                    found[name][into] = table[name][places[into, 1]]
        return found


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
def _sole_writer(out: Path) -> Generator[None, None, None]:
    """Be the only one who measures into a table. The finished rows beside it go when this ends without an error."""
    folder = _rows_folder(out)
    make_folder(folder)
    with only_writer(folder, "measuring into this table"):
        if not (folder / LOCK).exists():
            raise InputError(f"{out}: another process finished it just now; give the same command again")
        remove_leftovers(folder)
        yield
        # What this module wrote goes, and the folder if nothing else is in it.
        with suppress(OSError):
            for place in [place for place in folder.iterdir() if _SETTINGS.fullmatch(place.name) and place.is_dir()]:
                for part in [path for path in place.iterdir() if _PART.fullmatch(path.name)]:
                    part.unlink()
                with suppress(OSError):  # somebody's file is in it
                    place.rmdir()
            remove_lock(folder)
            folder.rmdir()
