"""Three searches of a tabular benchmark: random search, local search and regularised evolution.

An evaluation is a look into the table. The budget counts distinct architectures: asking for one again costs nothing, as
a benchmark would remember it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, whole_number
from certcal.lab.study._benchmark import Benchmark, SearchObjective

POPULATION, SAMPLE = 10, 3


@dataclass(frozen=True, eq=False)
class SearchRun:
    """The best architecture that a search evaluated, and all that it did."""

    method: str
    objective: SearchObjective
    best: str  # the first of several
    value: float
    evaluated: tuple[str, ...]  # in order, each once
    values: NDArray[np.float64]


class _Evaluations:
    """Architectures looked up so far, in order; full when the budget is spent or nothing is left."""

    def __init__(
        self, benchmark: Benchmark, objective: str | SearchObjective, budget: int, seed: int | Sequence[int], tag: int
    ) -> None:
        parts = [seed] if isinstance(seed, int) else list(seed)
        if any(part < 0 for part in parts):
            raise InputError(f"seed is {seed}; pass a number of at least 0")
        self.rng = np.random.default_rng([*parts, tag])
        budget = whole_number(budget, 1, 2**62, "budget", "allow at least 1 evaluation")
        self.benchmark, self.objective = benchmark, SearchObjective.of(objective)
        self.goodness = benchmark.goodness(self.objective)
        self.order: dict[int, None] = {}
        self._measured: list[bool] = np.isfinite(self.goodness).tolist()
        measured: list[int] = self.rng.permutation(np.flatnonzero(np.isfinite(self.goodness))).tolist()
        self._most = min(budget, len(measured))
        # The next of a random order that is not known yet is uniform among those that are not.
        self._unevaluated = (place for place in measured if place not in self.order)

    @property
    def full(self) -> bool:
        return len(self.order) >= self._most

    def evaluate(self, place: int) -> float:
        self.order[place] = None
        return float(self.goodness[place])

    def draw_unevaluated(self) -> int:
        """An architecture that has not been evaluated, at random; only while the budget is not spent."""
        return next(self._unevaluated)

    def neighbours(self, place: int) -> list[int]:
        """Neighbours for which the objective was measured."""
        return [other for other in self.benchmark.neighbours(place) if self._measured[other]]

    def result(self, method: str) -> SearchRun:
        places = list(self.order)
        best = places[int(np.argmax(self.goodness[places]))]
        values, names = self.benchmark.values(self.objective), self.benchmark.names
        evaluated = tuple(names[place] for place in places)
        return SearchRun(method, self.objective, names[best], float(values[best]), evaluated, values[places])


def random_search(
    benchmark: Benchmark, objective: str | SearchObjective, budget: int, seed: int | Sequence[int] = 0
) -> SearchRun:
    """Evaluate architectures at random, each once (Li and Talwalkar 2020)."""
    done = _Evaluations(benchmark, objective, budget, seed, 1)
    while not done.full:
        done.evaluate(done.draw_unevaluated())
    return done.result("random")


def local_search(
    benchmark: Benchmark, objective: str | SearchObjective, budget: int, seed: int | Sequence[int] = 0
) -> SearchRun:
    """Climb to the best neighbour until there is no better one, then start again elsewhere (White et al. 2021).

    From a random architecture all neighbours are evaluated and the best of them is taken; at a local optimum the
    search begins anew at an architecture that has not been evaluated, until the budget is spent. Of a sample of a space
    only the neighbours in the table can be taken: where there are none, every start is a local optimum, and what is
    left is random search.
    """
    benchmark.structure()
    done = _Evaluations(benchmark, objective, budget, seed, 2)
    while not done.full:
        here = done.draw_unevaluated()
        value = done.evaluate(here)
        climbing = True
        while climbing and not done.full:
            around = done.rng.permutation(list(dict.fromkeys(done.neighbours(here)))).astype(int).tolist()
            climbing = False
            for place in around:
                if done.full and place not in done.order:
                    continue
                found = done.evaluate(place)
                if found > value:
                    here, value, climbing = place, found, True
    return done.result("local")


def regularised_evolution(
    benchmark: Benchmark,
    objective: str | SearchObjective,
    budget: int,
    seed: int | Sequence[int] = 0,
    *,
    population: int = POPULATION,
    sample: int = SAMPLE,
) -> SearchRun:
    """Ageing evolution: the best of a few parents has a child with one choice changed, and the oldest dies.

    The method is that of Real et al. (2019), who used a population of 100 and samples of 25 for searches of 20,000
    models; the defaults, 10 and 3, are those with which NATS-Bench (Dong et al. 2021) published it for budgets of some
    hundred. A child is drawn uniformly among the neighbours in the table (all neighbours, drawn again until one is
    there). A parent without any, and a population whose children were all known for a whole generation, get an
    architecture at random that has not been evaluated.
    """
    for name, value in (("population", population), ("sample", sample)):
        whole_number(value, 1, 2**31, name, "pass a whole number of at least 1")
    benchmark.structure()
    done = _Evaluations(benchmark, objective, budget, seed, 3)
    living: deque[tuple[float, int]] = deque()
    while len(living) < population and not done.full:
        first = done.draw_unevaluated()
        living.append((done.evaluate(first), first))
    known_in_a_row = 0
    while not done.full:
        rivals = [living[i] for i in done.rng.integers(0, len(living), sample).tolist()]
        _, parent = max(rivals, key=lambda one: one[0])
        children = done.neighbours(parent)
        if children and known_in_a_row < population:
            child = children[int(done.rng.integers(0, len(children)))]
        else:
            child = done.draw_unevaluated()
        known_in_a_row = known_in_a_row + 1 if child in done.order else 0
        living.append((done.evaluate(child), child))
        living.popleft()
    return done.result("evolution")


METHODS: dict[str, Callable[..., SearchRun]] = {
    "evolution": regularised_evolution,
    "local": local_search,
    "random": random_search,
}
