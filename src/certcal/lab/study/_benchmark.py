"""A table of measured architectures that searches look values up in, instead of training."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal.lab.study._battery import BINNED, UNBINNED
from certcal.lab.study._spaces import Cell, SizeSpace, Space, TopologySpace
from certcal.lab.study._table import MeasuredColumn, Stage, StudyTable
from certcal.metrics import harmonic_score

Floats = NDArray[np.float64]
SPACES = ("topology", "size", "table")
# Metrics that are no share of anything.
_SCORES = ("nll", "brier_score")
_HCS = re.compile(r"hcs(?:_(\d+(?:\.\d+)?))?")
_SIZE = re.compile(r"\d+(?::\d+){4}")


@dataclass(frozen=True)
class SearchObjective:
    """What a search looks for: a number of each architecture, and whether more of it is better.

    Examples
    --------
    >>> SearchObjective.parse("hcs"), SearchObjective.parse("min:params")
    (SearchObjective(name='hcs_1', higher=True), SearchObjective(name='params', higher=False))
    """

    name: str
    higher: bool

    @classmethod
    def of(cls, given: str | SearchObjective) -> SearchObjective:
        """An objective as given, or parsed from its name."""
        return cls.parse(given) if isinstance(given, str) else given

    @classmethod
    def parse(cls, text: str) -> SearchObjective:
        """An objective from its name: accuracy, ece, hcs_2, post_mmce, auroc_svhn, or max:COLUMN and min:COLUMN."""
        way, colon, column = text.partition(":")
        if colon and way in ("max", "min") and column:
            return cls(column, way == "max")
        if match := _HCS.fullmatch(text):
            beta = float(match[1] or 1)
            if not beta > 0:
                raise InputError(f"objective {text!r} has beta {beta:g}; use one above 0, such as hcs_1")
            return cls(f"hcs_{beta:g}", True)
        if text == "accuracy" or text.startswith("auroc_"):
            return cls(text, True)
        if text in (*BINNED, *UNBINNED) or MeasuredColumn.parse(text) is not None:
            return cls(text, False)
        raise InputError(
            f"objective {text!r} is not accuracy, hcs_1 or a measurement; for a column of the table say which way is "
            f"better, max:{text} or min:{text}"
        )


class Benchmark:
    """Architectures of a space with their measurements on one data set.

    Only architectures that the table has can be evaluated, so a sample of a space will do: neighbours that were not
    measured are not available. A cell that is missing is looked up under one that NAS-Bench-201 counts as the same
    (:attr:`certcal.lab.study.Cell.published`) if the table has such a one.

    Parameters
    ----------
    table
        Table of a study; rows that failed are not used.
    space
        "topology" (NATS-Bench's cells), "size" (five widths, from those that occur in the table), "table" (no
        structure: only random search) or a space of your own. Rows of other models are left out. "auto" is the space
        whose architectures the table has, and "table" if it has neither.
    data, split
        Which rows; may be left out when the table has only one.
    stage, metric, bins
        The calibration error of the harmonic calibration score: before ("pre") or after ("post") temperature scaling,
        which metric, how many bins. Objectives such as "ece" have the same stage and number of bins.
    column
        The column that holds the architectures.

    Examples
    --------
    >>> table = StudyTable.of(
    ...     {
    ...         "model": ["2:2:2:2:2", "2:2:2:2:4", "2:2:2:4:4"],
    ...         "accuracy": [0.8, 0.9, 0.7],
    ...         "pre_ece_15": [0.1, 0.15, 0.1],
    ...     }
    ... )
    >>> benchmark = Benchmark(table, space="size")
    >>> len(benchmark), benchmark.best("hcs_1"), [benchmark.names[i] for i in benchmark.neighbours(1)]
    (3, '2:2:2:2:4', ['2:2:2:4:4', '2:2:2:2:2'])
    """

    def __init__(
        self,
        table: StudyTable,
        *,
        space: str | Space = "auto",
        data: str | None = None,
        split: str | None = None,
        stage: Stage = "pre",
        metric: str = "ece",
        bins: int = 15,
        column: str = "model",
    ) -> None:
        if not isinstance(table, StudyTable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"table is {table!r}; pass a StudyTable, such as StudyTable.read(path)")
        if stage not in ("pre", "post"):
            raise InputError(f"stage is {stage!r}; use 'pre' or 'post'")
        if metric not in (*BINNED, *UNBINNED):
            raise InputError(f"metric is {metric!r}; use one of {', '.join((*BINNED, *UNBINNED))}")
        self.data = _choose_only("data", data, table.datasets)
        rows = table.where(data=self.data)
        self.split = _choose_only("split", split, rows.splits)
        rows = rows.where(split=self.split)
        if rows[column].dtype != object:
            raise InputError(f"column {column!r} holds numbers; name the column that holds the architectures")
        names: list[str] = rows[column].tolist()
        self.stage: Stage = stage
        self.metric, self.bins = metric, bins
        self.space = _find_space(space, names)
        inside = [row for row, name in enumerate(names) if self.space is None or name in self.space]
        if not inside:
            example = next(iter(self.space)) if self.space is not None else ""
            raise InputError(
                f"the table has no architecture of the space on {self.data!r} ({self.split!r})"
                + (f"; one is written as {example}" if example else "; measure some models")
            )
        self.table = rows.select(np.array(inside))
        self.left_out = len(names) - len(inside)
        self.names = tuple(names[row] for row in inside)
        self._places = {name: place for place, name in enumerate(self.names)}
        if len(self._places) < len(self.names):
            twice = next(name for place, name in enumerate(self.names) if self._places[name] != place)
            raise InputError(
                f"architecture {twice!r} has several rows on {self.data!r} ({self.split!r}); keep one of them, or "
                "average them first"
            )
        self._same: dict[str, int] = {}
        if isinstance(self.space, TopologySpace):
            for place, name in enumerate(self.names):
                self._same.setdefault(Cell.parse(name).published, place)
        self._neighbours: dict[int, tuple[int, ...]] = {}
        self._values: dict[str, Floats] = {}

    def __len__(self) -> int:
        return len(self.names)

    def find(self, name: str) -> int | None:
        """The place of an architecture among :attr:`names`, or of one that is the same; None if there is neither."""
        place = self._places.get(name)
        if place is None and self._same and name in TopologySpace():
            return self._same.get(Cell.parse(name).published)
        return place

    def structure(self) -> Space:
        """The space, if the benchmark has one."""
        if self.space is None:
            raise InputError("a table without a structure has no neighbours; use random search, or name the space")
        return self.space

    def neighbours(self, place: int) -> tuple[int, ...]:
        """Places of the architectures in the table that differ in one choice.

        One that stands for several neighbours, being the same as they are, is there several times.
        """
        if place not in self._neighbours:
            found = (self.find(name) for name in self.structure().neighbours(self.names[place]))
            self._neighbours[place] = tuple(other for other in found if other is not None and other != place)
        return self._neighbours[place]

    def column_of(self, metric: str) -> str:
        """The column of a metric, at the benchmark's stage and number of bins."""
        return str(MeasuredColumn(self.stage, metric, self.bins if metric in BINNED else None))

    def values(self, objective: str | SearchObjective) -> Floats:
        """The objective of every architecture, in the order of :attr:`names`; NaN where it was not measured."""
        name = SearchObjective.of(objective).name
        if name not in self._values:
            self._values[name] = self._compute_values(name)
        return self._values[name]

    def _compute_values(self, name: str) -> Floats:
        match = _HCS.fullmatch(name)
        if match and name not in self.table:
            beta = float(match[1] or 1)
            if self.metric in _SCORES:
                raise InputError(f"{name} needs a calibration error from 0 to 1, and {self.metric} is none; use ece")
            pairs = self.table.numbers(["accuracy", self.column_of(self.metric)])
            return np.array([harmonic_score(accuracy, error, beta) for accuracy, error in pairs.tolist()])
        return self.table.numbers([self.column_of(name) if name in (*BINNED, *UNBINNED) else name])[:, 0]

    def goodness(self, objective: str | SearchObjective) -> Floats:
        """The objective with the sign that makes more better; minus infinity where it was not measured."""
        wanted = SearchObjective.of(objective)
        values = self.values(wanted)
        if not np.isfinite(values).any():
            raise InputError(f"objective {wanted.name!r} was measured for no architecture; choose another")
        return np.where(np.isfinite(values), values if wanted.higher else -values, -np.inf)

    def best(self, objective: str | SearchObjective) -> str:
        """The best architecture that there is in the table; the first of several."""
        return self.names[int(np.argmax(self.goodness(objective)))]


def _choose_only(what: str, value: str | None, known: list[str]) -> str:
    if value is not None:
        return value
    if len(known) != 1:
        if not known:
            raise InputError("no row of the table was measured; measure some models first")
        things = "data sets" if what == "data" else "splits"
        listed = ", ".join(map(repr, known))
        raise InputError(f"the table has {len(known)} {things} ({listed}); choose one", argument=what)
    return known[0]


def _find_space(space: Any, names: list[str]) -> Space | None:
    if not isinstance(space, str):
        return space
    if space == "auto":
        cells = any(name in TopologySpace() for name in names)
        sizes = any(_SIZE.fullmatch(name) for name in names)
        if cells and sizes:
            raise InputError("the table has architectures of both spaces; choose space='topology' or 'size'")
        space = "topology" if cells else "size" if sizes else "table"
    if space == "topology":
        return TopologySpace()
    if space == "size":
        widths = {int(width) for name in names if _SIZE.fullmatch(name) for width in name.split(":")}
        if not widths - {0}:
            raise InputError("the table has no architecture of the size space; one is written as 8:16:24:32:40")
        return SizeSpace(sorted(widths - {0}))
    if space == "table":
        return None
    known = ", ".join(map(repr, ("auto", *SPACES)))
    raise InputError(f"{space!r} is not one of {known}, nor a space of your own", argument="space")
