"""How a run is cut into pieces of work, each of which becomes one shard.

The cut depends on nothing but the manifest, so that an interrupted run is continued with the same pieces and ends
with the same shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Stage = Literal["selection", "counting"]

MOST_UNITS = 2_000_000


class Size(NamedTuple):
    """How far a run goes: the first ``samples`` samples, with draws 0 to ``n`` - 1 of each."""

    samples: int
    n: int


@dataclass(frozen=True)
class Unit:
    """Draws ``start`` to ``stop`` - 1 of samples ``first`` to ``last`` - 1, in one of the two stages."""

    stage: Stage
    first: int
    last: int
    start: int
    stop: int

    @property
    def passes(self) -> int:
        """Forward passes of the model."""
        return (self.last - self.first) * (self.stop - self.start)

    @property
    def name(self) -> str:
        """The shard's place below the run's folder."""
        return f"{self.stage}/samples-{self.first}-{self.last}-draws-{self.start}-{self.stop}.parquet"

    def __str__(self) -> str:
        return f"samples {self.first} to {self.last - 1} (draws {self.start} to {self.stop - 1}, {self.stage})"


def plan(sizes: Sequence[Size], n0: int, pilot: int, unit: int) -> list[Unit]:
    """Every unit of a run that grew through the given sizes: selection first, then counting."""
    stages: tuple[Stage, Stage] = ("selection", "counting")
    return [
        piece
        for stage in stages
        for rectangle in _rectangles(sizes, n0, pilot)
        if rectangle.stage == stage
        for piece in _cut(rectangle, unit)
    ]


def number_of_units(sizes: Sequence[Size], n0: int, pilot: int, unit: int) -> int:
    """How many units a plan has, without making it."""
    total = 0
    for rectangle in _rectangles(sizes, n0, pilot):
        width, height = _cell(rectangle, unit)
        total += -(-(rectangle.last - rectangle.first) // width) * -(-(rectangle.stop - rectangle.start) // height)
    return total


def default_unit(samples: int, n0: int, n: int, batch: int) -> int:
    """Forward passes per unit: a whole number of batches, some twenty thousand to two hundred thousand passes.

    Small runs have some 64 units, so that progress shows and little is lost with a kill; from a thousand million
    passes on units grow, so that there are never more than some thousands of shards.
    """
    total = samples * (n0 + n)
    passes = max(min(max(total // 64, 20_000), 200_000), total // 4096)
    return max(1, -(-passes // batch)) * batch


def _rectangles(sizes: Sequence[Size], n0: int, pilot: int) -> Iterator[Unit]:
    """What each step of growth added: the new samples from their first draw, and new draws of the old ones."""
    before = Size(0, 0)
    for size in sizes:
        if size.samples > before.samples:
            yield Unit("selection", before.samples, size.samples, 0, n0)
        if before.samples and size.n > before.n:
            yield Unit("counting", 0, before.samples, before.n, size.n)
        if size.samples > before.samples:
            yield Unit("counting", before.samples, size.samples, 0, pilot)
            if size.n > pilot:
                yield Unit("counting", before.samples, size.samples, pilot, size.n)
        before = size


def _cell(rectangle: Unit, unit: int) -> tuple[int, int]:
    """How many samples and draws go into a unit. The draws that choose a class stay together."""
    draws = rectangle.stop - rectangle.start
    if draws > unit and rectangle.stage == "counting":
        return 1, unit
    return max(1, unit // draws), draws


def _cut(rectangle: Unit, unit: int) -> Iterator[Unit]:
    width, height = _cell(rectangle, unit)
    for first in range(rectangle.first, rectangle.last, width):
        last = min(first + width, rectangle.last)
        for start in range(rectangle.start, rectangle.stop, height):
            yield Unit(rectangle.stage, first, last, start, min(start + height, rectangle.stop))
