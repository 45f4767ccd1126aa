"""Charts of a data set, declared by their columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from certcal.lab.study._battery import BINNED
from certcal.lab.study._findings import Box, BoxPlots, Lines, Matrix, ScatterPlot, brackets
from certcal.lab.study._population import LABELS, Population, Sheet
from certcal.lab.study._ranks import correlations
from certcal.lab.study._resampling import LEAST
from certcal.lab.study._table import Stage
from certcal.lab.study.questions._form import SheetChart

# Points that are drawn at most, columns of boxes, and places of a line.
_POINTS, _BOXED, _PLACES = 2000, 4, 64
STAGES: tuple[tuple[Stage, str], ...] = (("pre", "before"), ("post", "after"))


@dataclass(frozen=True)
class Scatter(SheetChart):
    """Two columns as points, of all models and of the smallest part (figure 5 of the benchmark study)."""

    x: str = "accuracy"
    y: str = "metric"
    colour: str = "robustness"
    """The first of these columns that there is."""

    def of(self, population: Population, sheet: Sheet, tops: Sequence[int]) -> Iterable[ScatterPlot]:
        return [self._scatter_plot(population, sheet, top) for top in sorted({tops[0], tops[-1]}, reverse=True)]

    def _scatter_plot(self, population: Population, sheet: Sheet, top: int) -> ScatterPlot:
        (x,), (y,) = population.columns(self.x), population.columns(self.y)
        both = np.flatnonzero(~np.isnan(sheet.numbers([y, x, "accuracy"])).any(axis=1))
        n = min(top, both.size)
        rows, note = both[:n], ""
        if n > _POINTS:
            rows = both[np.arange(_POINTS) * n // _POINTS]
            note = f"{_POINTS:,} of {n:,} models are drawn, evenly spaced by accuracy"
        colour = next((name for name in population.columns(self.colour) if name in sheet), "")
        return ScatterPlot(
            f"{sheet.name}: {population.models_text(n, both.size)}",
            x,
            f"{population.label} before temperature scaling" if self.y == "metric" else y,
            sheet[x][rows],
            sheet[y][rows],
            tuple(sheet.raw("model")[rows].tolist()),
            sheet[colour][rows] if colour else None,
            colour,
            note,
        )


@dataclass(frozen=True)
class StageMatrix(SheetChart):
    """The metric before and after temperature scaling, at every number of bins (figures 4b, 12, 20 and 38 to 40)."""

    def of(self, population: Population, sheet: Sheet, tops: Sequence[int]) -> Iterable[Matrix]:
        metric, title = population.metric, f"{sheet.name}: {population.label} before and after temperature scaling"
        if metric not in BINNED:
            values = sheet.numbers([population.column, population.scaled])
            return [correlations(values, ["pre", "post"], title=title)]
        pairs: list[tuple[Stage, int]] = [(stage, bins) for stage, _ in STAGES for bins in sheet.bins(metric, stage)]
        values = sheet.numbers([sheet.column_of(metric, bins, stage) for stage, bins in pairs])
        names = [f"{stage} {bins}" for stage, bins in pairs]
        return [correlations(values, names, title=f"{title}, by number of bins")]


@dataclass(frozen=True)
class BinBoxes(SheetChart):
    """The metric at every number of bins (figures 6 and 24 to 27)."""

    def of(self, population: Population, sheet: Sheet, tops: Sequence[int]) -> Iterable[BoxPlots]:
        metric = population.binned
        for stage, words in STAGES:
            named = [(str(bins), sheet.column_of(metric, bins, stage)) for bins in sheet.bins(metric, stage)]
            boxes = tuple(Box.of(name, sheet[column]) for name, column in named)
            if max((box.n for box in boxes), default=0) >= LEAST:
                title = f"{sheet.name}: {LABELS[metric]} {words} temperature scaling"
                yield BoxPlots(title, "bins", LABELS[metric], boxes)


@dataclass(frozen=True)
class BracketBoxes(SheetChart):
    """A column in brackets of others (figures 8, 28 and 29)."""

    by: str = "sizes"
    y: str = "metric"

    def of(self, population: Population, sheet: Sheet, tops: Sequence[int]) -> Iterable[BoxPlots]:
        (column,) = population.columns(self.y)
        label = population.label if self.y == "metric" else column
        for name in population.columns(self.by)[:_BOXED]:
            boxes = tuple(Box.of(words, sheet[column][which]) for words, which in brackets(sheet[name]))
            yield BoxPlots(f"{sheet.name}: {label} by {name}", name, label, boxes)


@dataclass(frozen=True)
class StageLines(SheetChart):
    """The median of the metric before and after temperature scaling over the values of a column (figure 9)."""

    always: ClassVar[bool] = True
    by: str = "width"

    def of(self, population: Population, sheet: Sheet, tops: Sequence[int]) -> Iterable[Lines]:
        if self.by not in population.sizes or population.scaled not in sheet:
            return []
        across, before, after = sheet.complete(self.by, population.column, population.scaled)
        places = np.unique(across)
        if not 2 <= places.size <= _PLACES:
            return []
        groups = [across == place for place in places]
        values = np.array([[float(np.median(stage[group])) for group in groups] for stage in (before, after)])
        most = max(int(group.sum()) for group in groups)
        return [
            Lines(
                f"{sheet.name}: {population.label} by {self.by}, before and after temperature scaling",
                self.by,
                population.label if most == 1 else f"median {population.label}",
                tuple(places.tolist()),
                ("before temperature scaling", "after temperature scaling"),
                values,
                np.full_like(values, np.nan),
                np.full_like(values, np.nan),
                f"One model per {self.by}" if most == 1 else f"Medians over models of one {self.by}, at most {most:,}",
            )
        ]
