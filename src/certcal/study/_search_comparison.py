"""What several searches found, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.study._benchmark import Benchmark, Objective

# Columns of Table 1 of Tao et al. (2024).
SHOWN = ("accuracy", "ece", "hcs_1", "hcs_2", "hcs_3", "mmce", "ks_error")
ORACLE = "best"

OPTIMISM = (
    "The numbers that chose the architectures also judge them, so they are optimistic: the best of many numbers with "
    "noise is partly luck. Judge by another split or data set."
)


@dataclass(frozen=True)
class SearchRow:
    """What one method found for one objective.

    Attributes
    ----------
    objective, method
        Who searched for what; the method "best" is the best architecture that there is, which no search can beat.
    mean, spread
        Of each shown number over the repeats: mean and standard deviation (NaN for a single one).
    regret, regret_spread
        How far the objective of what was found is from the best in the table that was searched, never below 0.
    judged_regret
        The same by the judge's numbers and its own best; NaN without a judge.
    hits
        In how many repeats the best was found.
    architectures
        What was found, and how often, most often first.
    """

    objective: str
    method: str
    mean: dict[str, float]
    spread: dict[str, float]
    regret: float
    regret_spread: float
    judged_regret: float
    hits: int
    architectures: dict[str, int]


@dataclass(frozen=True, eq=False)
class SearchComparison:
    """Searches side by side, in the layout of Tao et al.'s (2024) Table 1.

    Attributes
    ----------
    rows
        One per objective and method, in the order in which they were asked for.
    oracle
        One per objective: the best architecture that there is.
    shown
        Names of the numbers of each row.
    notes
        What the reader should know.
    settings
        Data, split, budget, repeats, seed, and by what it was judged.
    """

    rows: tuple[SearchRow, ...]
    oracle: tuple[SearchRow, ...]
    shown: tuple[str, ...]
    notes: tuple[str, ...]
    settings: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; numbers that do not exist are NaN."""
        return {
            "settings": dict(self.settings),
            "shown": list(self.shown),
            "rows": [asdict(row) for row in self.rows],
            "best": [asdict(row) for row in self.oracle],
            "notes": list(self.notes),
        }


def summarise(
    benchmark: Benchmark,
    found: Mapping[tuple[Objective, str], Sequence[str]],
    settings: Mapping[str, Any],
    judge: Benchmark | None,
) -> SearchComparison:
    """Means, spreads and regrets of what was found."""
    judge = None if judge is benchmark else judge
    judging = judge or benchmark
    numbers = _numbers(judging, judge is not None)
    unjudged: set[str] = set()

    def row(objective: Objective, method: str, names: Sequence[str]) -> SearchRow:
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
    oracle = tuple(row(objective, ORACLE, [benchmark.best(objective)]) for objective in objectives)
    whole = {"data": benchmark.data, "split": benchmark.split, "architectures": len(benchmark), **settings}
    whole |= {"stage": benchmark.stage, "metric": benchmark.metric, "bins": benchmark.bins}
    whole["judge"] = None if judge is None else {"data": judge.data, "split": judge.split}
    notes = _notes(benchmark, int(settings["budget"]), judge, len(unjudged), set(numbers))
    return SearchComparison(rows, oracle, tuple(numbers), notes, whole)


def _numbers(benchmark: Benchmark, judging: bool) -> dict[str, NDArray[np.float64]]:
    """The numbers of Table 1, as far as the table has them."""
    found: dict[str, NDArray[np.float64]] = {}
    for name in SHOWN:
        try:
            found[name] = benchmark.values(name)
        except InputError:
            continue
    if not found:
        whose = "the judge's table" if judging else "the table"
        raise InputError(f"{whose} has none of the numbers to show ({', '.join(SHOWN)}); measure the models first")
    return found


def _notes(
    benchmark: Benchmark, budget: int, judge: Benchmark | None, unjudged: int, shown: set[str]
) -> tuple[str, ...]:
    notes = [OPTIMISM] if judge is None or _same_measurements(benchmark, judge) else []
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
    missing = [name for name in SHOWN if name not in shown]
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
