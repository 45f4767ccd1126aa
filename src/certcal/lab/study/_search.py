"""Searching a tabular benchmark for an accurate or a calibrated architecture (Tao et al. 2024, appendix F)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.progress import ProgressLike, as_reporter
from certcal._base.signature import SEED, Option, Range, Takes, verb
from certcal._base.text import counted
from certcal._base.told import Told
from certcal.lab.study._benchmark import Benchmark, SearchObjective
from certcal.lab.study._overview import StudyOverview, open_study_table
from certcal.lab.study._search_methods import METHODS
from certcal.lab.study._spaces import Space
from certcal.lab.study._table import StudyTable
from certcal.result import Result

# Columns of Table 1 of Tao et al. (2024).
_SHOWN = ("accuracy", "ece", "hcs_1", "hcs_2", "hcs_3", "mmce", "ks_error")
_ORACLE = "best"

_OPTIMISM = (
    "The numbers that chose the architectures also judge them, so they are optimistic: the best of many numbers with "
    "noise is partly luck. Judge by another split or data set."
)


@dataclass(frozen=True)
class SearchRow(Told):
    """What one method found for one objective."""

    objective: str
    method: str
    """Who searched for what; the method "best" is the best architecture that there is, which no search can beat."""
    mean: dict[str, float]
    spread: dict[str, float]
    """Mean and standard deviation of each shown number over the repeats (NaN for a single one)."""
    regret: float
    regret_spread: float
    """How far the objective of what was found is from the best in the table that was searched, never below 0."""
    judged_regret: float
    """Regret by the judge's numbers and its own best; NaN without a judge."""
    hits: int
    """In how many repeats the best was found."""
    architectures: dict[str, int]
    """What was found, and how often, most often first."""

    @property
    def sentence(self) -> str:
        """What is claimed: an estimate over searches."""
        searches = counted(sum(self.architectures.values()), "search").replace("searchs", "searches")
        ends = f"searching for {self.objective}, {self.method} ends {self.regret:.4f} from the best on average"
        return f"{ends} over {searches}; an estimate, not a guarantee."


@dataclass(frozen=True, eq=False, repr=False)
class StudySearch(Result, kind="study_search", keys="source settings rows best=oracle notes"):
    """Searches side by side, in the layout of Tao et al.'s (2024) Table 1.

    Examples
    --------
    >>> table = StudyTable.of({"model": ["a", "b"], "accuracy": [0.5, 0.75]})
    >>> found = search(table, objectives="accuracy", budget=2, repeats=2)
    >>> found
    <StudySearch of table: 2 architectures, 1 objective, 1 method>
    >>> print(found.to_csv(), end="")
    objective,method,accuracy,accuracy_spread,regret,regret_spread,judged_regret,hits,most_often_found
    accuracy,random,0.75,0.0,0.0,0.0,,2,b
    accuracy,best,0.75,,0.0,,,1,b
    """

    view: ClassVar[str] = "certcal.lab.study.search_view"

    rows: tuple[SearchRow, ...]
    """One per objective and method, in the order in which they were asked for."""
    oracle: tuple[SearchRow, ...]
    """One per objective: the best architecture that there is."""
    shown: tuple[str, ...]
    """Names of the numbers of each row."""
    notes: tuple[str, ...]
    """What the reader should know."""
    settings: Mapping[str, Any]
    """Data, split, budget, repeats, seed, and by what it was judged."""
    source: str = "table"
    """Name of the file, or what was searched."""

    def __repr__(self) -> str:
        sizes = [counted(self.settings["architectures"], "architecture"), counted(len(self.oracle), "objective")]
        sizes.append(counted(len({row.method for row in self.rows}), "method"))
        return f"<StudySearch of {self.source}: {', '.join(sizes)}>"

    @property
    def seeds(self) -> Mapping[str, int]:
        """The seed of all searches."""
        return {"searches": self.settings["seed"]}

    def claims(self) -> Sequence[SearchRow]:
        """What each method found for each objective: estimates over searches, each with its sentence."""
        return self.rows

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per objective and method with all digits, the best that exists at the end."""
        lines = (*self.rows, *self.oracle)
        found: dict[str, list[Any]] = {name: [getattr(row, name) for row in lines] for name in ("objective", "method")}
        for name in self.shown:
            found[name] = [row.mean[name] for row in lines]
            found[f"{name}_spread"] = [row.spread[name] for row in lines]
        ends = ("regret", "regret_spread", "judged_regret", "hits")
        found |= {name: [getattr(row, name) for row in lines] for name in ends}
        return {**found, "most_often_found": [next(iter(row.architectures)) for row in lines]}


@verb()
def search(
    table: Benchmark | StudyTable | StudyOverview | str | os.PathLike[str],
    *,
    judge: Benchmark | StudyTable | StudyOverview | str | os.PathLike[str] | None = None,
    data: Annotated[str | None, Takes("text"), Option("--dataset", "NAME")] = None,
    split: Annotated[str | None, Takes("text"), Option(metavar="NAME")] = None,
    space: Annotated[str | Space, Takes("text"), Option(metavar="SPACE")] = "auto",
    column: Annotated[str, Takes("text"), Option(metavar="COLUMN")] = "model",
    objectives: Annotated[str | Iterable[str], Takes("name"), Option("--objective", "NAME")] = (
        *("accuracy", "hcs_1", "hcs_2", "hcs_3"),
    ),
    methods: Annotated[
        Literal["evolution", "local", "random"] | Iterable[Literal["evolution", "local", "random"]] | None,
        Option("--method", "NAME[,NAME...]"),
    ] = None,
    budget: Annotated[int, Range(1, 10**6), Option("--evaluations", "N")] = 100,
    repeats: Annotated[int, Range(1, 10**6)] = 20,
    seed: Annotated[int, SEED] = 0,
    stage: Literal["pre", "post"] = "pre",
    metric: Annotated[
        Literal["ece", "equal_mass_ece", "classwise_ece", "classwise_equal_mass_ece", "mce", "ks_error"]
        | Literal["kde_ece", "mmce", "nll", "brier_score"],
        Option(metavar="NAME"),
    ] = "ece",
    bins: Annotated[int, Range(1, 10_000_000)] = 15,
    judge_data: Annotated[str | None, Takes("text"), Option("--judge-dataset", "NAME")] = None,
    judge_split: Annotated[str | None, Takes("text"), Option(metavar="NAME")] = None,
    source: str | None = None,
    progress: ProgressLike = True,
) -> StudySearch:
    """Search for each objective by each method several times; what is found, in the layout of Tao et al.'s Table 1.

    What is found on the measurements that chose it looks better than it is: the best of many numbers with noise is
    partly luck. Other measurements of the same architectures (another split, other test images, another seed of
    training) can be the judge; then their numbers are shown.

    Searches for one objective by one method differ in their random numbers only.

    Parameters
    ----------
    table
        A table, or the name of its file; or a :class:`Benchmark`, which brings its own data, split, space, column,
        stage, metric and bins.
    judge
        Another one whose measurements of the found architectures are shown instead; by default the same table where
        ``judge_data`` or ``judge_split`` is given.
    data
        Data set. Default: the only one.
    split
        Split. Default: the only one.
    space
        Search space: topology (NATS-Bench's cells), size (widths such as 8:8:16:16:24), table (no structure, random
        search only), or auto to tell by the names.

        Or a :class:`Space` of your own.
    column
        Column of the architectures.
    objectives
        Objectives: accuracy, ece, hcs_B for any B, a measurement, max:COLUMN or min:COLUMN.
    methods
        Search methods: evolution, local or random. Default: all that the space allows.
    budget
        Number of architectures that each search evaluates.
    repeats
        Number of searches for each objective and method.
    seed
        Random seed of the searches.
    stage
        Before or after temperature scaling.
    metric
        Calibration metric of the harmonic calibration score.
    bins
        Number of bins of the calibration error.
    judge_data
        Data set of the evaluation.
    judge_split
        Split of the evaluation.
    source
        What is searched, in a few words; by default the file's name.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> table = StudyTable.of({"model": ["a", "b", "c"], "accuracy": [0.5, 0.9, 0.7], "pre_ece_15": [0.02, 0.2, 0.1]})
    >>> found = search(table, objectives=["accuracy", "ece"], budget=3, repeats=2)
    >>> [(row.objective, row.method, row.mean["accuracy"], row.regret) for row in found.rows]
    [('accuracy', 'random', 0.9, 0.0), ('ece', 'random', 0.5, 0.0)]
    """
    progress = as_reporter(progress)
    progress.stage("reading")
    asked: dict[str, Any] = {"space": space, "column": column, "stage": stage, "metric": metric, "bins": bins}
    benchmark, name = _benchmark(table, {**asked, "data": data, "split": split})
    judging = None
    if judge is not None or (judge_data, judge_split) != (None, None):
        place = {"data": judge_data or benchmark.data, "split": judge_split or benchmark.split}
        other = table if judge is None else judge
        if isinstance(other, Benchmark) and other is benchmark:
            raise InputError("a Benchmark has one data set and split; pass another one as the judge", argument="judge")
        judging, _ = _benchmark(other, {**asked, "space": benchmark.space or "table", **place})
    chosen = tuple(methods or (METHODS if benchmark.space is not None else ("random",)))
    if benchmark.space is None and any(method != "random" for method in chosen):
        named = next(method for method in chosen if method != "random")
        reason = f"{named!r} needs neighbours, which a table without a structure has not"
        raise InputError(reason, argument="methods", remedy="use random, or name the space")
    wanted = [SearchObjective.of(each) for each in objectives]
    if not wanted:
        raise InputError("there are 0 objectives; pass some", argument="objectives")
    pairs = [(objective, method) for objective in dict.fromkeys(wanted) for method in dict.fromkeys(chosen)]
    progress.stage("searching", len(pairs))
    bests: dict[tuple[SearchObjective, str], list[str]] = {}
    for objective, method in pairs:
        seeds = ((seed, repeat) for repeat in range(repeats))
        bests[objective, method] = [METHODS[method](benchmark, objective, budget, each).best for each in seeds]
        progress.advance(1)
    told = {"budget": budget, "repeats": repeats, "seed": seed}
    return _summarise(benchmark, bests, told, judging, name if source is None else source)


def _benchmark(table: Any, asked: Mapping[str, Any]) -> tuple[Benchmark, str]:
    """A benchmark and what it is called; one that was given is taken as it is."""
    if isinstance(table, Benchmark):
        return table, "benchmark"
    whole, name = open_study_table(table)
    return Benchmark(whole, **asked), name


def _summarise(
    benchmark: Benchmark,
    found: Mapping[tuple[SearchObjective, str], Sequence[str]],
    settings: Mapping[str, Any],
    judge: Benchmark | None,
    source: str,
) -> StudySearch:
    judge = None if judge is benchmark else judge
    judging = judge or benchmark
    numbers = _numbers(judging, judge is not None)
    unjudged: set[str] = set()

    def row(objective: SearchObjective, method: str, names: Sequence[str]) -> SearchRow:
        goodness = benchmark.goodness(objective)
        regrets = np.array([float(goodness.max() - goodness[_place(benchmark, name)]) for name in names])
        places = [judging.find(name) for name in names]
        unjudged.update(name for name, place in zip(names, places, strict=True) if place is None)
        kept = [place for place in places if place is not None]
        theirs = judging.goodness(objective)
        judged = [float(theirs.max() - theirs[place]) for place in kept if np.isfinite(theirs[place])]
        counts = {name: list(names).count(name) for name in dict.fromkeys(names)}
        return SearchRow(
            objective.name,
            method,
            {name: _mean(values[kept]) for name, values in numbers.items()},
            {name: _spread(values[kept]) for name, values in numbers.items()},
            float(regrets.mean()),
            _spread(regrets),
            _mean(np.array(judged)) if judge is not None else float("nan"),
            int(np.count_nonzero(regrets == 0)),
            dict(sorted(counts.items(), key=lambda pair: -pair[1])),
        )

    rows = tuple(row(objective, method, names) for (objective, method), names in found.items())
    objectives = dict.fromkeys(objective for objective, _ in found)
    oracle = tuple(row(objective, _ORACLE, [benchmark.best(objective)]) for objective in objectives)
    whole = {"data": benchmark.data, "split": benchmark.split, "architectures": len(benchmark), **settings}
    whole |= {"stage": benchmark.stage, "metric": benchmark.metric, "bins": benchmark.bins}
    whole["judge"] = None if judge is None else {"data": judge.data, "split": judge.split}
    notes = _notes(benchmark, int(settings["budget"]), judge, len(unjudged), set(numbers))
    return StudySearch(rows, oracle, tuple(numbers), notes, whole, source)


def _numbers(benchmark: Benchmark, judging: bool) -> dict[str, NDArray[np.float64]]:
    """The numbers of Table 1, as far as the table has them."""
    found: dict[str, NDArray[np.float64]] = {}
    for name in _SHOWN:
        try:
            found[name] = benchmark.values(name)
        except InputError:
            continue
    if not found:
        whose = "the judge's table" if judging else "the table"
        raise InputError(f"{whose} has none of the numbers to show ({', '.join(_SHOWN)}); measure the models first")
    return found


def _notes(
    benchmark: Benchmark, budget: int, judge: Benchmark | None, unjudged: int, shown: set[str]
) -> tuple[str, ...]:
    notes = [_OPTIMISM] if judge is None or _same_measurements(benchmark, judge) else []
    if unjudged:
        notes.append(f"{unjudged} of the found architectures are not in the judge's table; the means leave them out.")
    if budget >= len(benchmark):
        notes.append(f"The budget covers all {len(benchmark):,} architectures, so every method finds the best.")
    if benchmark.space is not None:
        some = benchmark.names[:: 1 + len(benchmark) // 200]
        around = [benchmark.space.neighbours(name) for name in some]
        there = np.mean([sum(benchmark.find(name) is not None for name in names) for names in around])
        possible = np.mean([len(names) for names in around])
        if there < 0.9 * possible:
            notes.append(
                f"Of the {possible:g} neighbours of an architecture {there:.1f} are in the table on average; "
                "local search and evolution can take no other steps."
            )
    if benchmark.left_out:
        notes.append(f"{benchmark.left_out:,} rows are not of this space and were left out.")
    missing = [name for name in _SHOWN if name not in shown]
    if missing:
        notes.append(f"The table does not have {', '.join(missing)}.")
    return tuple(notes)


def _same_measurements(benchmark: Benchmark, judge: Benchmark) -> bool:
    """Whether a judge has the very numbers that are searched: the accuracies, or else a measurement, of all shared."""
    known = set(judge.names)
    names = [name for name in benchmark.names if name in known]
    columns = [str(found) for found in benchmark.table.measurements]
    column = next((name for name in ("accuracy", *columns) if name in benchmark.table and name in judge.table), None)
    if column is None or not names:
        return False
    mine, theirs = (
        each.table.numbers([column])[[_place(each, name) for name in names], 0] for each in (benchmark, judge)
    )
    return np.array_equal(mine, theirs, equal_nan=True)


def _place(benchmark: Benchmark, name: str) -> int:
    place = benchmark.find(name)
    assert place is not None
    return place


def _mean(values: NDArray[np.float64]) -> float:
    return float(np.mean(values)) if values.size else float("nan")


def _spread(values: NDArray[np.float64]) -> float:
    return float(np.std(values, ddof=1)) if values.size > 1 else float("nan")
