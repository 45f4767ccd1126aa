"""Cost of ties, as ratings and grades have them: every default metric on rounded scores and on the same in full.

Prints a table and asserts ratios measured in this run. The classes have probabilities that are rounded as well.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from ratios import Row, at_most, conclude

from certcal import Predictions
from certcal.metrics import METRICS, measure

# Rows and decimals of the scores; rows and classes of the probabilities, which have two decimals.
SCORES = ((100_000, 1), (10_000_000, 2))
CLASSES = (100_000, 10)
REPEATS = 3
# A metric of tied scores takes at most so many times what it takes without ties, or a sort of the scores if that is
# more: among equal scores an edge or an extreme is found by sorting more of them than without ties.
TIMES = 4


def seconds(call: Callable[[], Any]) -> float:
    """Least of a few times; those that take long are not repeated."""
    taken: list[float] = []
    while len(taken) < REPEATS and sum(taken) < 10:
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def scores(n: int, decimals: int) -> tuple[Predictions, Predictions]:
    """Calibrated scores as they are, and rounded."""
    rng = np.random.default_rng(n)
    full = rng.random(n)
    tied = full.round(decimals)
    outcome = (rng.random(n) < tied).astype(np.uint8)
    return Predictions.from_scores(full, outcome), Predictions.from_scores(tied, outcome)


def classes(n: int, count: int) -> tuple[Predictions, Predictions]:
    """Calibrated probabilities as they are, and rounded; the last class has the rest."""
    rng = np.random.default_rng(n)
    full = rng.dirichlet(np.ones(count), n)
    tied = np.floor(full * 100) / 100
    tied[:, -1] = np.maximum(0, (100 - (tied[:, :-1] * 100).round().sum(axis=1)) / 100)
    labels = (rng.random(n)[:, None] > tied.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return Predictions.from_probabilities(full, labels), Predictions.from_probabilities(tied, labels)


def slowest(title: str, full: Predictions, tied: Predictions, wanted: Callable[[Any], bool]) -> Row:
    """The metric that ties slow down most; all are printed."""
    ratios = dict(compared(title, full, tied, wanted))
    name = max(ratios, key=ratios.__getitem__)
    return at_most(f"{title}, {len(ratios)} metrics, slowest `{name}`: ties / none", ratios[name], TIMES)


def compared(
    title: str, full: Predictions, tied: Predictions, wanted: Callable[[Any], bool]
) -> Iterator[tuple[str, float]]:
    sort = seconds(lambda: np.sort(full.confidence))
    task = full.task
    for entry in METRICS.values():
        if task not in entry.tasks or not wanted(entry) or entry.arguments(full) is None:
            continue
        name = entry.text("name", task)
        measure(tied, metrics=[name])  # compiles
        without, ties = (seconds(partial(measure, each, metrics=[name])) for each in (full, tied))
        print(f"{title:<28} {name:<28} without {without:8.4f} s   with ties {ties:8.4f} s", flush=True)
        yield name, ties / max(without, sort)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write-docs", action="store_true", help="rewrite the table of docs/benchmarks.md")
    options = parser.parse_args()
    rows: list[Row] = []
    for n, decimals in SCORES:
        word = "one decimal" if decimals == 1 else f"{decimals} decimals"
        rows.append(slowest(f"{n:.0e} scores, {word}".replace("e+0", "e"), *scores(n, decimals), lambda entry: True))
    n, count = CLASSES
    rows.append(slowest(f"{n:.0e} × {count} classes".replace("e+0", "e"), *classes(n, count), _of_classes))
    return conclude(rows, "ties", options.write_docs)


def _of_classes(entry: Any) -> bool:
    """Metrics that only predictions of classes have."""
    return entry.reads in ("classes", "logits")


if __name__ == "__main__":
    sys.exit(main())
