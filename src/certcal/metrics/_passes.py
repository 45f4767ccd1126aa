"""Metrics of a table that does not fit in memory, and of its groups, from three passes over its pieces.

The first pass fills the accumulators and counts, the second looks again where the answers of metrics that depend on
the order of the samples lie, and the third sums the equal-mass bins, whose edges are known by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, bin_count, bin_counts, choice
from certcal._select import Quantiles
from certcal.binning import CLOSED, BinSums, equal_width_edges
from certcal.claims import Estimate, Interval
from certcal.metrics._bootstrap import check_request
from certcal.metrics._cells import Key, cell_atoms, cell_edges, cell_intervals, in_bins
from certcal.metrics._cumulative import Extremes
from certcal.metrics._measure import Measurements
from certcal.metrics._reliability import Reliability, with_band
from certcal.metrics._streaming import StreamingCalibration
from certcal.metrics.binned import ece_of

if TYPE_CHECKING:
    from certcal.predictions import Predictions

Pieces = Callable[[], Iterable["Predictions"]]
GroupedPieces = Callable[[], Iterable["Predictions | tuple[Predictions, NDArray[np.int64]]"]]

# Each group has an accumulator of its own, of about two megabytes.
MOST_GROUPS = 100
# Limits of memory below this count as this: the program itself takes as much.
LEAST_MEMORY = 1 << 28
# Bytes, measured and rounded up: of an accumulator, of one of its bins, and of a class in a bin; the same with weights,
# whose sums are exact and long; and of a confidence that is kept until all are known.
_PART, _BIN, _CLASS_BIN = 2_500_000, 700, 50
_WEIGHED_BIN, _WEIGHED_CLASS_BIN = 10_000, 5_000
_KEPT = 100
# A group may begin with a short piece; its buckets are this fine nevertheless.
BITS = 9


@dataclass(frozen=True)
class Request:
    """What is asked of a table: bins, side, the bins of the diagram, and intervals."""

    counts: tuple[int, ...]
    closed: str
    diagram: int
    replicates: int
    method: str
    level: float
    seed: int


@dataclass(frozen=True, eq=False)
class Survey:
    """What three passes over a table found.

    Attributes
    ----------
    measurements
        The metrics.
    reliability
        What the reliability diagram shows.
    groups
        The same for each group that has weight, by its number.
    """

    measurements: Measurements
    reliability: Reliability
    groups: Mapping[int, Survey] = field(default_factory=dict[int, "Survey"])


def measure_stream(
    chunks: Pieces,
    *,
    bins: int | Iterable[int] = 15,
    closed: str = "left",
    bootstrap: int = 0,
    method: str = "percentile",
    level: float = 0.95,
    seed: int = 0,
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
    bootstrap, method, level, seed
        Intervals as for :func:`certcal.measure`, for the rows that are functions of bin sums: confidences are
        counted in cells of width 1/2048 or less, and how often each cell occurs is drawn. Rows that depend on the
        order of the samples or on whole rows of probabilities have no interval, and with weights no row has one.

    Examples
    --------
    >>> from certcal import Predictions
    >>> pieces = [Predictions.from_confidence([0.25], [0]), Predictions.from_confidence([0.75], [0])]
    >>> measure_stream(lambda: pieces, bins=10)["ks_error"].value
    0.5
    """
    return survey_stream(
        chunks, bins=bins, closed=closed, bootstrap=bootstrap, method=method, level=level, seed=seed
    ).measurements


def reliability_stream(
    chunks: Pieces, bins: int = 15, *, closed: str = "left", replicates: int = 0, level: float = 0.95, seed: int = 0
) -> Reliability:
    """Prepare the reliability diagram of a table that does not fit in memory, in one pass.

    Parameters
    ----------
    chunks
        Gives an iterable of :class:`~certcal.Predictions`.
    bins, closed, replicates, level, seed
        As for :func:`reliability`. The band comes from counts in cells, as in :func:`measure_stream`; with weights
        there is none.

    Examples
    --------
    >>> from certcal import Predictions
    >>> pieces = [Predictions.from_confidence([0.2], [0]), Predictions.from_confidence([0.9], [1])]
    >>> reliability_stream(lambda: pieces, bins=2).table.accuracy.tolist()
    [0.0, 1.0]
    """
    count, side = bin_count(bins), choice(closed, CLOSED, "closed")
    if replicates:
        check_request(level, "percentile", replicates, seed)
    drawn = Diagram(Request((count,), side, count, replicates, "percentile", level, seed))
    for part in chunks():
        drawn.add(part)
    return drawn.result()


def survey_stream(
    chunks: GroupedPieces,
    *,
    bins: int | Iterable[int] = 15,
    closed: str = "left",
    diagram: int = 15,
    bootstrap: int = 0,
    method: str = "percentile",
    level: float = 0.95,
    seed: int = 0,
    memory: int | None = None,
) -> Survey:
    """:func:`measure_stream` and :func:`reliability_stream` of a table and of its groups, in the same passes.

    Parameters
    ----------
    chunks
        Gives an iterable of :class:`~certcal.Predictions`, or of pairs of these and the number of each sample's group.
        At most 100 groups: each has an accumulator of about two megabytes.
    bins, closed, bootstrap, method, level, seed
        As for :func:`measure_stream`.
    diagram
        Number of bins of the reliability diagram.
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
    request = Request(
        bin_counts(bins),
        choice(closed, CLOSED, "closed"),
        bin_count(diagram, "diagram"),
        bootstrap,
        method,
        level,
        seed,
    )
    if bootstrap:
        check_request(level, method, bootstrap, seed)
    whole, groups = Part(request), dict[int, Part]()
    steps: tuple[Callable[[Part, Predictions], None], ...] = (Part.first, Part.second, Part.third)
    for step in steps:
        for piece in chunks():
            predictions, codes = piece if isinstance(piece, tuple) else (piece, None)
            step(whole, predictions)
            for code, some in _split(predictions, codes):
                if code not in groups and len(groups) == MOST_GROUPS:
                    raise InputError(
                        f"there are more than {MOST_GROUPS} groups, the most for a table that is read in pieces; "
                        "choose another column, or read the table into memory"
                    )
                part = groups.setdefault(code, Part(request))
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


def check_bins(counts: tuple[int, ...], classes: int | None, memory: int, *, weighted: bool, parts: int = 1) -> None:
    """Refuse so many bins that their sums alone take more than the memory.

    Examples
    --------
    >>> check_bins((1_000_000,), None, 10**8, weighted=False)
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: sums in 1000000 bins take about 0.7 GB, and memory is 0.3 GB; ask for fewer bins or
    groups, or allow more memory
    """
    per_bin, per_class = (_WEIGHED_BIN, _WEIGHED_CLASS_BIN) if weighted else (_BIN, _CLASS_BIN)
    needed = parts * (_PART + sum(counts) * (per_bin + per_class * (classes or 0)))
    if needed > max(memory, LEAST_MEMORY):
        raise InputError(
            f"sums in {max(counts)} bins take about {needed / 1e9:.1f} GB, and memory is "
            f"{max(memory, LEAST_MEMORY) / 1e9:.1f} GB; ask for fewer bins or groups, or allow more memory"
        )


def _check_kept(parts: list[Part], memory: int) -> None:
    first = parts[0]
    weighted, classes = first.weighted, None if first.stream is None else first.stream.classes
    check_bins(first.request.counts, classes, memory, weighted=weighted, parts=len(parts))
    kept = sum(part.extremes.kept + part.quantiles.kept for part in parts)
    if kept * _KEPT > max(memory, LEAST_MEMORY):
        raise InputError(
            f"{kept} distinct confidences lie so close together that equal-mass bins and KS need them all, and memory "
            f"is {max(memory, LEAST_MEMORY) / 1e9:.1f} GB; allow more, or round the confidences"
        )


def _split(predictions: Predictions, codes: NDArray[np.int64] | None) -> Iterator[tuple[int, Predictions | None]]:
    """The samples of each group, None for those of no weight."""
    if codes is None:
        return
    order = np.argsort(codes, kind="stable")
    present, starts = np.unique(codes[order], return_index=True)
    for code, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        w = predictions.sample_weight
        yield code, predictions.select(rows) if w is None or w[rows].any() else None


class Diagram:
    """The bin sums of a reliability diagram and, for its band and other intervals, of small cells."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.bins = BinSums(equal_width_edges(request.diagram), request.closed)
        counts = {*request.counts, request.diagram}
        self.cells = BinSums(cell_edges(counts), request.closed) if request.replicates else None

    def add(self, part: Predictions) -> None:
        """Add a piece."""
        self.bins.add(part.confidence, part.correct, part.sample_weight)
        if part.sample_weight is not None:
            self.cells = None
        if self.cells is not None:
            self.cells.add(part.confidence, part.correct)

    def result(self) -> Reliability:
        """The diagram."""
        asked, table = self.request, self.bins.table()
        if not table.total > 0:
            raise InputError("the table has no rows; pass at least one sample")
        if self.cells is None:
            return Reliability(table, ece_of(table), None, None, asked.level)
        atoms = in_bins(cell_atoms(self.cells), self.cells.edges, asked.diagram)
        return with_band(table, atoms, asked.replicates, asked.level, asked.seed)


class Part:
    """All that is known of a table or a group while its pieces pass by."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.stream: StreamingCalibration | None = None
        self.diagram = Diagram(request)
        self.extremes = Extremes(spread=True, least_bits=BITS)
        self.quantiles = Quantiles(request.counts, request.closed, least_bits=BITS)
        self.masses: dict[int, BinSums] = {}
        self.passes = 0
        self.weighted = False

    def first(self, part: Predictions) -> None:
        """Fill the accumulators, count for the others."""
        if self.stream is None:
            self.stream = StreamingCalibration(self.request.counts, closed=self.request.closed, classes=part.classes)
        self.weighted |= part.sample_weight is not None
        self.stream.update_predictions(part)
        self.diagram.add(part)
        self.extremes.count(part.confidence, part.correct, part.sample_weight)
        self.quantiles.count(part.confidence, part.sample_weight)

    def second(self, part: Predictions) -> None:
        """Look again where the answers lie."""
        self.extremes.look(part.confidence, part.correct, part.sample_weight)
        self.quantiles.look(part.confidence, part.sample_weight)

    def third(self, part: Predictions) -> None:
        """Sum the equal-mass bins."""
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
        """Everything, in the order of ``measure``."""
        assert self.stream is not None
        found = self.stream.result()
        low, high = self.extremes.result()
        rows: list[Estimate] = []
        for row in found:
            if row.name == "smooth_ece":
                rows.append(Estimate("ks_error", max(high, -low), found.n))
                rows.append(Estimate("kuiper_error", high - low, found.n))
            rows.append(row)
            if row.name == "ece":
                value = ece_of(self.masses[int(row.settings["bins"])].table())
                rows.append(Estimate("equal_mass_ece", value, found.n, row.settings))
        intervals = self._intervals(rows)
        rows = [replace(row, interval=intervals.get(_key(row))) for row in rows]
        return Survey(Measurements(tuple(rows), found.n, found.kind), self.diagram.result())

    def _intervals(self, rows: list[Estimate]) -> dict[Key, Interval]:
        asked, cells = self.request, self.diagram.cells
        if cells is None:
            return {}
        values = {_key(row): row.value for row in rows}
        return cell_intervals(cells, asked.counts, values, asked.level, asked.method, asked.replicates, asked.seed)


def _key(row: Estimate) -> Key:
    bins: Any = row.settings.get("bins")
    return row.name, bins
