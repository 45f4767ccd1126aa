"""Measure many models into one table: durably, in parallel, with memory for a few of them at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from certcal import _checks
from certcal._checks import InputError
from certcal._durable import write_durably
from certcal._progress import SILENT, Progress
from certcal._settings import Settings, setting, takes
from certcal.engines import Engine, InProcess, LocalProcesses, held
from certcal.metrics import STUDY_BINS
from certcal.study._battery import BINNED, UNBINNED
from certcal.study._entries import Entry, Key, Source, open_source
from certcal.study._parts import Parts, parts_folder, sole_writer
from certcal.study._running import rows
from certcal.study._table import AUROC, OK, ORIGIN, SIZES, STATE, SUMMARY, MeasuredColumn, StudyTable
from certcal.study._work import Measuring, Work

_ROLES = ("probabilities", "logits", "label", "weight")


@dataclass(frozen=True)
class StudyMeasureSettings(Settings):
    """How many models are measured.

    Examples
    --------
    >>> StudyMeasureSettings(bins=[15, 5]).bins, StudyMeasureSettings().validation
    ((15, 5), 0.2)
    """

    layout: str = setting(
        "data/model", "Parts of a file's path in a folder: data, model, split.", "text", metavar="PARTS"
    )
    bins: tuple[int, ...] = setting(STUDY_BINS, "Numbers of bins.", "whole", many=True, least=1, most=10_000_000)
    validation: float = setting(0.2, "Fraction of the samples used to fit the temperature.", "share")
    seed: int = setting(0, "Random seed of the split.", "whole", least=0, most=2**63 - 1)


@takes(StudyMeasureSettings)
def measure(
    source: str | os.PathLike[str] | Iterable[Entry],
    *,
    out: str | os.PathLike[str] | None = None,
    columns: Mapping[str, str] | None = None,
    workers: int = 1,
    engine: Engine | None = None,
    force: bool = False,
    progress: Progress = SILENT,
    tell: Callable[[str], None] | None = None,
    settings: StudyMeasureSettings,
) -> StudyTable:
    """Measure many models before and after temperature scaling: one row per model, data set and split.

    Each entry is measured by :func:`battery`. One that cannot be measured is a row that has failed, with its reason;
    the others go on. The table does not depend on the number of workers, their order, or interruptions.

    With ``out``, finished rows are kept in a folder beside it while this works. Called again, it measures what is
    missing: new entries, files that have changed, rows that had failed. Entries that are no longer in the source leave
    the table. Other settings than those of the table are refused.

    Keywords beside those below are the fields of :class:`StudyMeasureSettings`: layout, bins, validation, seed.

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
    progress
        Where to report how far the work is.
    tell
        Called with sentences that are good to know, such as how many rows have left the table.
    settings
        All settings at once.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal import Predictions
    >>> logits = np.random.default_rng(0).normal(size=(200, 3))
    >>> mine = Predictions.from_logits(2 * logits, logits.argmax(axis=1))
    >>> broken = Predictions.from_confidence([0.5], [1])
    >>> table = measure([Entry("mine", mine, given={"depth": 3}), Entry("broken", broken)], bins=[15])
    >>> table
    StudyTable(rows=2, models=2, datasets=1, measurements=20, failed=1)
    >>> table["pre_ece_15"][0] > 0, table["depth"].tolist()
    (np.True_, [3.0, nan])
    """
    task = Measuring(
        tuple(sorted(_checks.bin_counts(settings.bins))),
        settings.validation,
        settings.seed,
        {role: name for role, name in (columns or {}).items() if name},
    )
    for role in task.columns:
        if role not in _ROLES:
            raise InputError(f"columns has the role {role!r}; the roles are {', '.join(_ROLES)}")
    if engine is not None and not callable(getattr(engine, "run", None)):
        raise InputError(f"engine is {engine!r}; pass an engine of certcal.engines, such as RayCluster()")
    place = engine if engine is not None else InProcess() if workers == 1 else LocalProcesses(workers)
    study = _Study(task, place, progress, tell or (lambda sentence: None))
    layout = settings.layout
    progress.stage("looking at the files")
    if out is None:
        table = study.table(open_source(source, layout), Parts(None, study.settings))
        study.tell_of_differences(table)
        return table
    path = _place(out, source)
    study.refuse_others(path, force=force)
    opened = open_source(source, layout)
    with sole_writer(path):
        before = study.refuse_others(path, force=force)
        parts = Parts(parts_folder(path, study.settings), study.settings)
        if before is not None:
            parts.take(before)
        parts.read()
        table = study.table(opened, parts)
        study.tell_of_losses(table, before)
        study.tell_of_differences(table)
        content = table.to_parquet()
        if not path.exists() or path.read_bytes() != content:
            write_durably(path, content)
    return table


def _place(out: str | os.PathLike[str], source: Any) -> Path:
    """The table's file, where it can be written without harm."""
    path = Path(out)
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


class _Study:
    """Settings, and where the work is done."""

    def __init__(self, task: Measuring, engine: Engine, progress: Progress, tell: Callable[[str], None]) -> None:
        self.task, self.engine, self.progress, self.tell = task, engine, progress, tell
        self.settings: dict[str, Any] = {"bins": [*task.bins], "validation": task.validation, "seed": task.seed}
        if task.columns:
            self.settings["columns"] = dict(task.columns)

    @property
    def measured(self) -> list[str]:
        """Columns that every table has, in order."""
        names = [*SIZES, *SUMMARY]
        for stage in ("pre", "post"):
            names += [str(MeasuredColumn(stage, metric, count)) for metric in BINNED for count in self.task.bins]
            names += [str(MeasuredColumn(stage, metric)) for metric in UNBINNED]
        return names

    def refuse_others(self, path: Path, *, force: bool) -> StudyTable | None:
        """The table that is there already, None without one, or an error when it was not made like this one."""
        if force or not path.exists():
            return None
        table = StudyTable.read(path)
        if not {"bins", "validation", "seed"} <= table.settings.keys() or not all(name in table for name in ORIGIN):
            raise InputError(f"{path}: certcal study measure did not write this table; choose another name")
        for name in {**table.settings, **self.settings}:
            then, now = table.settings.get(name), self.settings.get(name)
            if then != now:
                raise InputError(
                    f"{path} was measured with {name} = {_shown(then)}, and {_shown(now)} is asked for; "
                    "choose another name, or force to measure everything anew"
                )
        return table

    def table(self, source: Source, parts: Parts) -> StudyTable:
        """Every entry of the source, those that are not finished yet measured now."""
        keys: list[Key] = []
        given: list[Mapping[str, Any]] = []
        others: dict[str, None] = {}

        def missing() -> Iterator[Work]:
            for number, entry in enumerate(source):
                work = Work.of(number, entry)
                keys.append(entry.key)
                given.append(entry.given)
                others.update(dict.fromkeys(entry.out_of_distribution))
                if not work.origin.changed or parts.origin(entry.key) != work.origin:
                    waiting.add(number)
                    yield work

        waiting: set[int] = set()
        pieces = missing() if source.total is None else iter(list(missing()))
        busy = bool(waiting) or source.total is None  # without work no engine need be started
        finished = len(keys) - len(waiting)
        self.progress.stage("measuring", source.total, finished)
        try:
            with held(self.engine) if busy else nullcontext(), closing(rows(self.engine, self.task, pieces)) as results:
                for work, row in results:
                    waiting.remove(work.number)
                    parts.add(work.key, work.origin, row)
                    before, finished = finished, len(keys) - len(waiting)
                    self.progress.advance(finished - before)
        finally:
            parts.flush()
        measured = parts.gather(keys, [*self.measured, *(f"{AUROC}{name}" for name in others), *ORIGIN, *STATE])
        names = dict.fromkeys(name for some in given for name in some)
        own = {name: [key[place] for key in keys] for place, name in enumerate(("model", "data", "split"))}
        return StudyTable.of(
            {**own, **{name: [some.get(name) for some in given] for name in names}, **measured}, self.settings
        )

    def tell_of_losses(self, table: StudyTable, before: StudyTable | None) -> None:
        """Say what was in the table and is no longer."""
        if before is None:
            return
        now = set(zip(*(table[name].tolist() for name in ("model", "data", "split")), strict=True))
        then = zip(*(before[name].tolist() for name in ("model", "data", "split")), strict=True)
        gone = sum(key not in now for key in then)
        if gone:
            self.tell(f"{gone:,} {'row' if gone == 1 else 'rows'} left the table: the source no longer has them")
        columns = [name for name in before.given if name not in table]
        if columns:
            self.tell(f"columns that left the table, because the source does not give them: {', '.join(columns)}")

    def tell_of_differences(self, table: StudyTable) -> None:
        """Say where models cannot have been measured on the same data, although it has one name."""
        good = table["status"] == OK
        pairs = list(zip(table["data"].tolist(), table["split"].tolist(), strict=True))
        samples = table["n"] + table["n_validation"]
        for things, counts in (("classes", table["classes"]), ("samples", samples)):
            found: dict[tuple[str, str], set[int]] = {}
            for row in np.flatnonzero(good).tolist():
                found.setdefault(pairs[row], set()).add(int(counts[row]))
            several = {pair: sorted(some) for pair, some in found.items() if len(some) > 1}
            if several:
                (data, split), some = next(iter(several.items()))
                more = f" (and on {len(several) - 1:,} more)" if len(several) > 1 else ""
                self.tell(
                    f"models on {data!r} ({split}) have from {some[0]:,} to {some[-1]:,} {things}{more}, and are "
                    "compared as if they had the same data"
                )


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "none" if value is None else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
