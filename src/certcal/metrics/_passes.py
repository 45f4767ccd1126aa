"""Metrics of a table that does not fit in memory, and of its groups, from three passes over its pieces.

The first pass fills the accumulators and counts, the second looks again where the answers of metrics that depend on
the order of the samples lie, and the third sums the equal-mass bins, whose edges are known by then.

Intervals come from how many samples are in each *cell*: a small interval of confidences, inside one bin of every bin
count, with one outcome. Inside a cell confidences are replaced by their mean. Metrics that depend on whole rows have
no such form, and neither have weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, bin_count, bin_counts, choice, function, shortened
from certcal._base.select import Quantiles
from certcal.binning import CLOSED, BinSums, BinTable, equal_width_edges
from certcal.claims import Interval
from certcal.metrics._intervals import Evidence
from certcal.metrics._measure import Measurements, check_threshold
from certcal.metrics._reliability import Reliability, check_band, with_band
from certcal.metrics._streaming import Key, StreamingCalibration
from certcal.metrics.cumulative import Extremes
from certcal.metrics.registry import MeanOf, OfBins, OfExtremes, table_rows

if TYPE_CHECKING:
    from certcal.predictions import Predictions

Floats = NDArray[np.float64]
Pieces = Callable[[], Iterable["Predictions"]]
GroupedPieces = Callable[[], Iterable["Predictions | tuple[Predictions, NDArray[np.int64]]"]]

_PIECES = "pass a function that gives the pieces anew at every call"
# Each group has an accumulator of its own, of about two megabytes.
MOST_GROUPS = 100
# Limits of memory below this count as this: the program itself takes as much.
LEAST_MEMORY = 1 << 28
# Bytes, measured and rounded up: of an accumulator, of one of its bins, and of a class in a bin; the same with weights,
# whose sums are exact and long; and of a confidence that is kept until all are known.
_PART, _BIN, _CLASS_BIN = 2_500_000, 700, 50
_WEIGHED_BIN, _WEIGHED_CLASS_BIN = 10_000, 5_000
_KEPT = 100
# Cells are at most one of this many wide.
CELLS = 2048
# A group may begin with a short piece; its buckets are this fine nevertheless.
BITS = 9


@dataclass(frozen=True)
class StreamRequest:
    """What is asked of a table: bins, side, the bins and the band of the diagram, and intervals."""

    counts: tuple[int, ...]
    closed: str
    diagram: int
    band: str
    level: float
    intervals: bool = False
    threshold: float | None = None


@dataclass(frozen=True, eq=False)
class Survey:
    """What three passes over a table found."""

    measurements: Measurements
    """The metrics."""
    reliability: Reliability
    """What the reliability diagram shows."""
    groups: Mapping[int, Survey] = field(default_factory=dict[int, "Survey"])
    """The survey of each group that has weight, by the group's number."""


@names_wrong_types
def measure_stream(
    chunks: Pieces,
    *,
    bins: int | Iterable[int] = 15,
    closed: str = "left",
    intervals: bool = False,
    level: float = 0.95,
) -> Measurements:
    """Metrics of a table that does not fit in memory.

    ``chunks`` is called three times and must give the same pieces each time: metrics that depend on the order of all
    samples (KS, Kuiper, equal-mass bins) count first and then look again only where the answer lies. Their values
    are those of the functions of arrays. ``sweep_ece``, ``mmce``, ``auroc`` and ``classwise_equal_mass_ece`` need all
    samples at once and are left out.

    Parameters
    ----------
    chunks
        Gives an iterable of :class:`~certcal.Predictions` each time it is called.
    bins, closed
        As for :func:`certcal.measure`.
    intervals, level
        Whether rows get the intervals of :func:`certcal.metrics.with_interval`, from counts of the confidences in cells
        of width 1/2048 or less. Rows that depend on whole rows of probabilities and the log loss have none; with
        weights no row has one.

    Examples
    --------
    >>> from certcal import Predictions
    >>> pieces = [Predictions.from_confidence([0.25], [0]), Predictions.from_confidence([0.75], [0])]
    >>> measure_stream(lambda: pieces, bins=10)["ks_error"].value
    0.5
    """
    return survey_stream(chunks, bins=bins, closed=closed, intervals=intervals, level=level).measurements


@names_wrong_types
def survey_stream(
    chunks: GroupedPieces,
    *,
    bins: int | Iterable[int] = 15,
    closed: str = "left",
    diagram: int = 15,
    band: str = "joint",
    intervals: bool = False,
    level: float = 0.95,
    threshold: float | None = None,
    memory: int | None = None,
) -> Survey:
    """:func:`measure_stream` and the reliability diagram of a table and of its groups, in the same passes.

    Parameters
    ----------
    chunks
        Gives an iterable of :class:`~certcal.Predictions`, or of pairs of these and the number of each sample's group,
        perhaps a row of numbers for each of several groupings. At most 100 groups: each has an accumulator of about two
        megabytes.
    bins, closed, intervals, level
        As for :func:`measure_stream`.
    threshold
        As for :func:`certcal.metrics.measure`.
    diagram, band
        Number of bins of the reliability diagram, and its band.
    memory
        Bytes that may be kept between pieces, or None for any number: what needs more is refused. Less than 256 MiB
        counts as that much.

    Examples
    --------
    >>> import numpy as np
    >>> from certcal import Predictions
    >>> piece = Predictions.from_confidence([0.25, 0.75, 0.5], [0, 1, 1])
    >>> found = survey_stream(lambda: [(piece, np.array([0, 0, 1]))], bins=2, diagram=2)
    >>> found.measurements["ece"].value, found.groups[1].measurements["ece"].value
    (0.3333333333333333, 0.5)
    """
    request = StreamRequest(
        bin_counts(bins),
        choice(closed, CLOSED, "closed"),
        bin_count(diagram, "diagram"),
        band,
        level,
        intervals,
        threshold,
    )
    _check_streamed(band, level)
    whole, groups = StreamedPart(request), dict[int, StreamedPart]()
    steps: tuple[Callable[[StreamedPart, Predictions], None], ...] = (
        StreamedPart.accumulate,
        StreamedPart.look_again,
        StreamedPart.sum_equal_mass,
    )
    for step in steps:
        for predictions, codes in _pieces(chunks):
            step(whole, predictions)
            for code, some in _split(predictions, codes):
                if code not in groups and len(groups) == MOST_GROUPS:
                    raise InputError(
                        f"there are more than {MOST_GROUPS} groups, the most for a table that is read in pieces; "
                        "choose another column, or read the table into memory"
                    )
                part = groups.setdefault(code, StreamedPart(request))
                if some is not None:
                    step(part, some)
            if memory is not None:
                _check_kept([whole, *groups.values()], memory)
        if whole.stream is None:
            raise InputError("the table has no rows; pass at least one sample")
        for part in (whole, *groups.values()):
            part.settle()
    found = {code: part.result() for code, part in sorted(groups.items()) if part.stream is not None}
    return replace(whole.result(), groups=found)


def _pieces(chunks: GroupedPieces) -> Iterator[tuple[Predictions, NDArray[np.int64] | None]]:
    from certcal.predictions import Predictions

    given: Any = function(chunks, "chunks", _PIECES)()
    pieces: Iterable[Any] = given if hasattr(given, "__iter__") else [given]
    for piece in pieces:
        predictions, codes = cast("Any", piece) if isinstance(piece, tuple) else (piece, None)
        if not isinstance(predictions, Predictions):
            raise InputError(f"chunks gives {shortened(predictions)}; pass a function that gives Predictions")
        yield predictions, codes


def check_bins(counts: tuple[int, ...], classes: int | None, memory: int, *, weighted: bool, parts: int = 1) -> None:
    """Refuse so many bins that their sums alone take more than the memory.

    Examples
    --------
    >>> check_bins((1_000_000,), None, 10**8, weighted=False)
    Traceback (most recent call last):
        ...
    certcal.InputError: sums in 1000000 bins take about 0.7 GB, and memory is 0.3 GB; ask for fewer bins or
    groups, or allow more memory
    """
    per_bin, per_class = (_WEIGHED_BIN, _WEIGHED_CLASS_BIN) if weighted else (_BIN, _CLASS_BIN)
    needed = parts * (_PART + sum(counts) * (per_bin + per_class * (classes or 0)))
    if needed > max(memory, LEAST_MEMORY):
        raise InputError(
            f"sums in {max(counts)} bins take about {needed / 1e9:.1f} GB, and memory is "
            f"{max(memory, LEAST_MEMORY) / 1e9:.1f} GB; ask for fewer bins or groups, or allow more memory"
        )


def _check_kept(parts: list[StreamedPart], memory: int) -> None:
    first = parts[0]
    weighted, classes = first.weighted, None if first.stream is None else first.stream.classes
    check_bins(first.request.counts, classes, memory, weighted=weighted, parts=len(parts))
    kept = sum(part.extremes.kept + part.quantiles.kept for part in parts)
    if kept * _KEPT > max(memory, LEAST_MEMORY):
        raise InputError(
            f"{kept} distinct confidences lie so close together that equal-mass bins and KS need them all, and memory "
            f"is {max(memory, LEAST_MEMORY) / 1e9:.1f} GB; allow more, or round the confidences"
        )


def _check_streamed(band: str, level: float) -> None:
    check_band(band, level)
    if band == "isotonic":
        reason = "the isotonic band needs all samples at once, and this table is read in pieces"
        raise InputError(reason, argument="band", remedy="allow more memory, or choose another band")


def _split(predictions: Predictions, codes: NDArray[np.int64] | None) -> Iterator[tuple[int, Predictions | None]]:
    """The samples of each group, None for those of no weight."""
    if codes is None:
        return
    for own in np.atleast_2d(codes):
        order = np.argsort(own, kind="stable")
        present, starts = np.unique(own[order], return_index=True)
        for code, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
            w = predictions.sample_weight
            yield code, predictions.select(rows) if w is None or w[rows].any() else None


class StreamedPart:
    def __init__(self, request: StreamRequest) -> None:
        self.request = request
        self.stream: StreamingCalibration | None = None
        self.bins = BinSums(equal_width_edges(request.diagram), request.closed)
        edges = cell_edges({*request.counts, request.diagram})
        self.cells = BinSums(edges, request.closed) if request.intervals else None
        self.extremes = Extremes(spread=True, least_bits=BITS)
        self.quantiles = Quantiles(request.counts, request.closed, least_bits=BITS)
        self.masses: dict[int, BinSums] = {}
        self.passes = 0
        self.weighted = False

    def accumulate(self, part: Predictions) -> None:
        """Fill the accumulators, count for the others."""
        if self.stream is None:
            self.stream = StreamingCalibration(
                self.request.counts,
                closed=self.request.closed,
                classes=part.classes,
                scores=part.task == "binary",
                threshold=self.request.threshold,
            )
        self.stream.update_predictions(part)
        self.bins.add(part.confidence, part.correct, part.sample_weight)
        if part.sample_weight is not None:
            self.weighted, self.cells = True, None
        elif self.cells is not None:
            self.cells.add(part.confidence, part.correct)
        self.extremes.count(part.confidence, part.correct, part.sample_weight)
        self.quantiles.count(part.confidence, part.sample_weight)

    def look_again(self, part: Predictions) -> None:
        """Look again where the answers lie."""
        self.extremes.look(part.confidence, part.correct, part.sample_weight)
        self.quantiles.look(part.confidence, part.sample_weight)

    def sum_equal_mass(self, part: Predictions) -> None:
        for state in self.masses.values():
            state.add(part.confidence, part.correct, part.sample_weight)

    def settle(self) -> None:
        """After a pass: what the next one looks for."""
        self.passes += 1
        if self.stream is None:
            return
        if self.passes == 1:
            self.extremes.settle()
            self.quantiles.settle()
        elif self.passes == 2:
            for count in self.request.counts:
                edges = np.concatenate(([0.0], self.quantiles.edges(count), [1.0]))
                self.masses[count] = BinSums(edges, self.request.closed)

    def result(self) -> Survey:
        assert self.stream is not None
        low, high = self.extremes.result()
        further: dict[Key, float] = {}
        task = self.stream.task
        for entry, count in table_rows(self.request.counts, task):
            match entry.form:
                case OfExtremes(of, _):
                    further[entry.name, None] = of(low, high)
                case OfBins(of, False, True) if count is not None:
                    further[entry.name, count] = of(self.masses[count].table(), **entry.options)
                case _:
                    pass
        found = self.stream.with_rows(further)
        if self.cells is not None:
            bins = [row.settings.get("bins") for row in found]
            keys: list[Key] = [(row.name, count) for row, count in zip(found, bins, strict=True)]  # pyright: ignore
            values = {key: row.value for key, row in zip(keys, found, strict=True)}
            intervals = self._intervals(self.cells, values, task)
            rows = [replace(row, interval=intervals.get(key)) for key, row in zip(keys, found, strict=True)]
            found = replace(found, rows=tuple(rows))
        asked, diagram = self.request, self.bins.table()
        if not diagram.total > 0:
            raise InputError("the table has no rows; pass at least one sample")
        return Survey(found, with_band(diagram, asked.band, asked.level))

    def _intervals(self, cells: BinSums, values: Mapping[Key, float], task: str) -> dict[Key, Interval]:
        """Intervals of all rows that cells tell enough of."""
        asked, (z, c, cell, often) = self.request, cell_points(cells)

        @cache
        def table(count: int, mass: bool) -> BinTable:
            if mass:
                return self.masses[count].table()
            edges = equal_width_edges(count)
            first = np.searchsorted(cells.edges, edges)  # the cell that begins each bin
            where = np.searchsorted(first, cell, side="right") - 1
            weighed = (np.bincount(where, each, count) for each in (often, often * z, often * c))
            number, sums, hits = (each.astype(np.float64) for each in weighed)
            return BinTable(edges, cells.closed, number.astype(np.int64), number, number, sums, hits)

        arrays = {"pair": (z, c), "confidence": (z,), "correct": (c,)}
        evidence = {reads: Evidence(each, often, counts=True, tables=table) for reads, each in arrays.items()}
        found: dict[Key, Interval] = {}
        for entry, count in table_rows(asked.counts, task):
            key = entry.text("name", task), count
            told = entry.form.of_cells if isinstance(entry.form, MeanOf) else entry.reads == "pair"
            if key in values and entry.interval is not None and told:
                settings = entry.settings(count, asked.closed, check_threshold(asked.threshold, task))
                found[key] = entry.interval.interval(evidence[entry.reads], values[key], asked.level, settings)
        return found


# ----------------------------------------------------------------------------------------------------------- the cells


def cell_edges(counts: Iterable[int]) -> Floats:
    return np.unique(np.concatenate([equal_width_edges(count) for count in (CELLS, *counts)]))


def cell_points(state: BinSums) -> tuple[Floats, NDArray[np.uint8], NDArray[np.int64], Floats]:
    """Mean confidence, outcome, cell and number of the samples of each cell, in the order of (outcome, confidence)."""
    from certcal._kernels.bins import SCALE_BITS

    count = state.whole[:, :, 0].T.astype(np.float64)
    sums = np.ldexp(state.whole[:, :, 1] * 2.0**32 + state.whole[:, :, 2], -SCALE_BITS).T
    outcome, cell = np.nonzero(count)
    often = count[outcome, cell]
    return np.clip(sums[outcome, cell] / often, 0.0, 1.0), outcome.astype(np.uint8), cell, often
