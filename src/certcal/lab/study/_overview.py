"""A table of a study at a glance: each data set in one line, and what failed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError
from certcal._base.json import plain
from certcal._base.text import counted
from certcal.lab.study._table import OK, MeasuredColumn, StudyTable
from certcal.result import Result

_USUAL = 15
_TABLE = (".parquet", ".pq")


@dataclass(frozen=True)
class DatasetMedians:
    """The models of a data set and split, by the middle one of each measurement."""

    data: str
    split: str
    """On what they were measured."""
    models: int
    failed: int
    """How many there are, and how many of them failed."""
    bins: int | None
    """Number of bins of the ECE: the measured one nearest to 15; None when there is none."""
    accuracy: float
    before: float
    after: float
    """Medians of accuracy and of ECE before and after temperature scaling; NaN where there are none."""


@dataclass(frozen=True, eq=False, repr=False)
class StudyOverview(Result):
    """What a table of a study holds: medians per data set, and the rows that failed.

    Examples
    --------
    >>> overview(StudyTable.of({"model": ["a", "b"], "accuracy": [0.8, 0.9], "pre_ece_15": [0.1, 0.2]}))
    <StudyOverview of table: 2 models, 1 data set, 2 rows measured>
    """

    view: ClassVar[str] = "certcal.lab.study.overview_view"
    forms: ClassVar[Sequence[str]] = (*Result.forms, *_TABLE)

    table: StudyTable
    """The table."""
    medians: Sequence[DatasetMedians]
    """One entry per data set and split, in the order of the table."""
    source: str = "table"
    """Name of its file."""
    notes: Sequence[str] = field(default=())
    """Sentences that are good to know, such as how many rows have left the table."""

    @property
    def failures(self) -> list[tuple[str, str, str, str]]:
        """Model, data set, split and reason of every row that failed."""
        return list(self.table.failures)

    @property
    def description(self) -> str:
        """What was measured, in a line for people."""
        table = self.table
        sets, rows = counted(len(table.datasets), "data set"), counted(len(table) - len(self.failures), "row")
        return f"{counted(len(table.models), 'model')}, {sets}, {rows} measured"

    def __repr__(self) -> str:
        return f"<StudyOverview of {self.source}: {self.description}>"

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON; of published results the names of what they hold."""
        table, names = self.table, ("model", "data", "split", "reason")
        measured = {"bins", "validation", "seed"} <= table.settings.keys()
        head = {"type": "study_measure" if measured else "study_convert"}
        head |= {"table": self.source, "settings": dict(table.settings), "rows": len(table)}
        failures = [dict(zip(names, each, strict=True)) for each in self.failures]
        if measured:
            return {
                **head,
                "failed": len(failures),
                "models": len(table.models),
                "measurements": len(table.measurements),
                "given": table.given,
                "datasets": plain(self.medians),
                "failures": failures,
                "notes": list(self.notes),
            }
        return {
            **head,
            "models": len(table.models),
            "datasets": table.datasets,
            "splits": table.splits,
            "measurements": [str(name) for name in table.measurements],
            "given": table.given,
            "failures": failures,
        }

    def to_bytes(self, form: str, **options: Any) -> bytes:
        """The content of a file; of .parquet the table itself."""
        return self.table.to_parquet() if form in _TABLE else super().to_bytes(form, **options)

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per data set and split."""
        return {each.name: [getattr(line, each.name) for line in self.medians] for each in fields(DatasetMedians)}


@names_wrong_types
def overview(
    table: StudyTable | str | os.PathLike[str], *, source: str | None = None, notes: Sequence[str] = ()
) -> StudyOverview:
    """What a table of a study holds, at a glance.

    Parameters
    ----------
    table
        Of :func:`certcal.lab.study.measure` or :func:`certcal.lab.study.convert`, or the name of its file.
    source
        What it is called; by default the file's name.
    notes
        Sentences to show with it.

    Examples
    --------
    >>> columns = {"model": ["a", "b"], "accuracy": [0.8, 0.9], "pre_ece_15": [0.1, 0.2]}
    >>> [(line.data, line.models, round(line.accuracy, 2)) for line in overview(StudyTable.of(columns)).medians]
    [('data', 2, 0.85)]
    """
    whole, name = open_study_table(table)
    return StudyOverview(whole, _medians(whole), name if source is None else source, tuple(notes))


def open_study_table(source: StudyTable | StudyOverview | str | os.PathLike[str]) -> tuple[StudyTable, str]:
    """A table, read if it is the name of a file, and what it is called."""
    if isinstance(source, StudyTable):
        return source, "table"
    if isinstance(source, StudyOverview):
        return source.table, source.source
    if not isinstance(source, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"table is {source!r}; pass a StudyTable or the name of its file")
    return StudyTable.read(source), str(source)


def _medians(table: StudyTable) -> list[DatasetMedians]:
    counts = {found.bins for found in table.measurements if found.metric == "ece" and found.bins is not None}
    bins = min(counts, key=lambda count: (abs(count - _USUAL), count), default=None)
    good = table["status"] == OK
    pairs = dict.fromkeys(zip(table["data"].tolist(), table["split"].tolist(), strict=True))
    found: list[DatasetMedians] = []
    for data, split in pairs:
        rows = (table["data"] == data) & (table["split"] == split)

        def median(name: str, chosen: Any = rows & good) -> float:
            values = table[name][chosen] if name in table else np.empty(0)
            values = values[~np.isnan(values)]
            return float(np.median(values)) if values.size else float("nan")

        numbers = [
            median(name) for name in ("accuracy", *(str(MeasuredColumn(s, "ece", bins)) for s in ("pre", "post")))
        ]
        models, failed = int(rows.sum()), int((rows & ~good).sum())
        found.append(DatasetMedians(data, split, models, failed, bins, *numbers))
    return found
