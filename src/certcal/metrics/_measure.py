"""All metrics of a set of predictions as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, bin_counts, choice, kernel_float, real
from certcal._base.json import PlainValues
from certcal._base.notebook import Card, CardTable, NotebookCard
from certcal._base.rounding import decimals, percent_text
from certcal._base.select import SLACK
from certcal._base.threads import map_blocks
from certcal.binning import CLOSED, BinTable, equal_width_edges, mass_edges, sums
from certcal.claims import Estimate
from certcal.metrics import classwise, scores
from certcal.metrics._intervals import Evidence
from certcal.metrics.registry import (
    DEFAULT,
    MeanOf,
    MetricEntry,
    OfBins,
    OfClasses,
    OfExtremes,
    OfKernelSums,
    OfPart,
    OfSamples,
    check_names,
    named_rows,
    table_rows,
)
from certcal.predictions import task_of
from certcal.result import NamedAsPrinted

if TYPE_CHECKING:
    from certcal.predictions import Predictions

Floats = NDArray[np.float64]
Row = tuple[MetricEntry, int | None]


class Metric(Protocol):
    """A metric of one's own: a function of confidences (or scores) and 0/1 outcomes that returns a float.

    Its name in tables is its ``__name__``. With ``bootstrap`` it is called with the weights of each resample.
    """

    def __call__(self, confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
        """The value of the metric."""
        ...


# The bin counts of the benchmark study (Tao et al. 2024, section 3).
STUDY_BINS = (5, 10, 15, 20, 25, 50, 100, 200, 500)


@dataclass(frozen=True, eq=False)
class Measurements(NamedAsPrinted, PlainValues, NotebookCard, keys="n kind rows"):
    """Estimates of one set of predictions, in a fixed order.

    ``table["ece"]`` is the row of that name, in any case; when several bin counts were asked for, ``table["ece", 10]``.

    Examples
    --------
    >>> from certcal import Predictions, measure
    >>> table = measure(Predictions.from_confidence([0.75, 0.75], [1, 0]), bins=10)
    >>> table["ece"].value, table["accuracy"].value
    (0.25, 0.5)
    """

    rows: tuple[Estimate, ...]
    """One :class:`~certcal.claims.Estimate` per metric and setting."""
    n: int
    """Number of samples."""
    kind: str
    """What the predictions were: "score", "confidence", "probabilities" or "logits"."""

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def task(self) -> str:
        """What the predictions are about: "binary", "top-label" or "multiclass"."""
        return task_of(self.kind)

    def named(self) -> Mapping[Any, Estimate]:
        """The rows by metric, or by metric and bins where there are several."""
        names = [row.name for row in self.rows]
        return {
            row.name if names.count(row.name) == 1 else (row.name, row.settings.get("bins")): row for row in self.rows
        }

    def __getitem__(self, key: str | tuple[str, int]) -> Estimate:
        return super().__getitem__(key)

    def __repr__(self) -> str:
        lines = [f"Measurements(n={self.n}, kind={self.kind!r})"]
        for row in self.rows:
            bins = row.settings.get("bins", "")
            spread = "" if row.interval is None else f"  [{', '.join(row.interval.ends(5))}]"
            lines.append(f"  {row.name:<28} {bins!s:>5}  {decimals(row, 5)}{spread}")
        return "\n".join(lines)

    def card(self) -> Card:
        """What a notebook shows."""
        spread = [row.interval for row in self.rows if row.interval is not None]
        header = ["metric", "bins", "value"]
        if spread:
            header.append(f"{percent_text(spread[0].level)} interval")
        rows = [
            (
                row.name,
                str(row.settings.get("bins", "")),
                decimals(row, 5),
                " to ".join(row.interval.ends(5)) if row.interval is not None else "",
            )[: len(header)]
            for row in self.rows
        ]
        caption = f"Estimates from {self.n:,} samples ({self.kind}), not guarantees"
        return Card(tables=(CardTable(rows, header, caption),))


@names_wrong_types
def measure(
    predictions: Predictions,
    *,
    bins: int | Sequence[int] = 15,
    closed: str = "left",
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    bootstrap: int = 0,
    level: float = 0.95,
    seed: int = 0,
    threshold: float | None = None,
) -> Measurements:
    """Metrics of predictions: a dozen, those that are named, or every one that the predictions allow.

    Parameters
    ----------
    predictions
        What was predicted and what was true.
    bins
        Number of bins, or several numbers: the binned metrics then have one row for each.
    closed
        Which side of a bin belongs to it, "left" or "right".
    metrics
        Names of the rows wanted, "default" or "all", or metrics of your own; the default when None.
    bootstrap
        0 for no intervals. Otherwise every row has that of :func:`certcal.metrics.with_interval`; those of metrics of
        your own come from so many resamples.
    level, seed
        Confidence level, and random seed of the resamples.
    threshold
        From which binary score on outcome 1 is predicted, for the accuracy; 0.5 when None.

    Returns
    -------
    Measurements
        The rows, each an :class:`~certcal.claims.Estimate`.

    Examples
    --------
    >>> import certcal
    >>> table = certcal.measure(certcal.Predictions.from_confidence([0.9, 0.6], [1, 0]), bins=(5, 10))
    >>> round(table["ece", 5].value, 12)
    0.35
    """
    if not hasattr(predictions, "confidence"):
        raise InputError("predictions are not Predictions; make them with Predictions.from_scores or its siblings")
    from certcal.metrics._bootstrap import bootstrap as resampled
    from certcal.metrics._bootstrap import check_request

    counts, side = bin_counts(bins), choice(closed, CLOSED, "closed")
    if bootstrap:
        check_request(level, bootstrap, seed)
    given = check_threshold(threshold, predictions.task)
    shared = _SharedValues(predictions, counts, side)
    found: list[Estimate] = []
    for entry, count in _chosen_rows(metrics, predictions, counts, threshold is not None):
        settings, (arrays, options) = entry.settings(count, side, given), entry.arguments(predictions) or ((), {})
        value = shared.value(entry, count, arrays, options, settings)
        interval = None
        if bootstrap and entry.test:
            pass
        elif bootstrap and entry.interval is not None:
            interval = entry.interval.interval(shared.evidence(entry, arrays, options), value, level, settings)
        elif bootstrap:
            interval = resampled(
                entry.function,
                *arrays,
                level=level,
                replicates=bootstrap,
                seed=seed,
                sample_weight=predictions.sample_weight,
                **settings,
                **options,
            ).interval
        found.append(Estimate(entry.text("name", predictions.task), value, len(predictions), settings, interval))
    return Measurements(tuple(found), len(predictions), predictions.kind)


def check_threshold(threshold: float | None, task: str) -> dict[str, float]:
    """A threshold that was given, as options of rows; only binary scores have one."""
    if threshold is not None and task != "binary":
        reason = "it is for binary scores, and these are predictions of classes"
        raise InputError(reason, argument="threshold", remedy="leave it out, or name the columns as score and outcome")
    return {} if threshold is None else {"threshold": real(threshold, "threshold", "pass a number from 0 to 1")}


def _chosen_rows(metrics: Any, predictions: Predictions, counts: tuple[int, ...], at_threshold: bool) -> list[Row]:
    task = predictions.task
    rows = [(entry, count) for entry, count in table_rows(counts, task) if entry.arguments(predictions) is not None]
    given = check_names([metrics] if isinstance(metrics, str) or callable(metrics) else metrics or ())
    wanted = named_rows(given or (DEFAULT, *(["accuracy"] if at_threshold else [])), task)
    known = list(dict.fromkeys(entry.text("name", task) for entry, _ in rows))
    for name in wanted:
        if not callable(name) and name not in known:
            reason = f"these predictions have no {name}"
            raise InputError(reason, argument="metrics", remedy=f"there are {', '.join(known)}")
    named = [row for row in rows if row[0].text("name", task) in wanted]
    return [*named, *((_entry_of(each), None) for each in wanted if callable(each))]


def _entry_of(metric: Callable[..., Any]) -> MetricEntry:
    name = getattr(metric, "__name__", type(metric).__name__)

    def value(confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
        try:
            return float(metric(confidence, correct, sample_weight=sample_weight))
        except (TypeError, ValueError) as error:
            reason = f"{name} did not return a number ({error})"
            remedy = "it is called as metric(confidence, correct, sample_weight=None)"
            raise InputError(reason, argument="metrics", remedy=remedy) from error

    value.__name__ = name
    return MetricEntry(value, name, "")


class _SharedValues:
    """What several rows are computed from, made when one of them asks for it."""

    def __init__(self, predictions: Predictions, counts: tuple[int, ...], closed: str) -> None:
        self.z, self.c, self.w = predictions.confidence, predictions.correct, predictions.sample_weight
        self.counts, self.closed = counts, closed
        # One sort serves all bin counts; beyond some size, or with weights, passes over the samples serve one each.
        self.sort = self.w is None and len(predictions) <= MOST_SORTED
        self.sort_classes = self.sort or (self.w is None and len(counts) > 1)
        self.table = cache(self._table)
        self.tables = cache(lambda: score_tables(self.z, self.c, counts, closed))
        self.brier = cache(lambda: scores.weighted_mean(scores.top_label_brier(self.z, self.c), self.w))
        self.part = cache(self._part)
        self.errors: dict[int, tuple[float, float]] = {}
        self._evidence: dict[str, Evidence] = {}

    def evidence(self, entry: MetricEntry, arrays: tuple[Any, ...], options: dict[str, Any]) -> Evidence:
        """What the intervals of all metrics that read the same arrays are computed from."""
        if entry.reads not in self._evidence:
            shared = {"tables": self.table, "parts": self.part} if entry.reads == "pair" else {}
            self._evidence[entry.reads] = Evidence.of(arrays, self.w, options=options, **shared)
        return self._evidence[entry.reads]

    def value(
        self,
        entry: MetricEntry,
        count: int | None,
        arrays: tuple[Any, ...],
        options: dict[str, Any],
        settings: dict[str, Any],
    ) -> float:
        """The metric of arrays that were checked when the predictions were made."""
        match entry.form:
            case OfBins(of, scored, mass) if count is not None:
                return of(self.table(count, mass), *((self.brier(),) if scored else ()), **entry.options)
            case OfClasses(mass) if count is not None:
                return self._classwise(arrays[0], arrays[1], count, mass)
            case OfKernelSums(of):
                from certcal.metrics.cosine import KernelSums

                return of(self.part(KernelSums))
            case OfPart(make, of):
                return of(self.part(make))
            case MeanOf(losses):
                return scores.weighted_mean(losses(*arrays, **options, **settings), self.w)
            case OfSamples(of) | OfExtremes(_, of) if of is not None:
                return of(*arrays, self.w)
            case _:
                return entry.function(*arrays, sample_weight=self.w, **settings, **options)

    def _table(self, count: int, mass: bool) -> BinTable:
        if self.sort:
            return self.tables()[count][mass]
        edges = mass_edges(self.z, self.w, count, self.closed) if mass else equal_width_edges(count)
        return sums(self.z, self.c, self.w, edges, self.closed)

    def _part(self, make: Callable[..., Any]) -> Any:
        return make(self.z, self.c, self.w)

    def _classwise(self, p: NDArray[Any], y: NDArray[np.int64], count: int, mass: bool) -> float:
        if self.sort_classes and (mass or len(self.counts) > 1):
            self.errors = self.errors or classwise_errors(p, y, self.counts, self.closed)
            return self.errors[count][mass]
        if mass:
            return classwise.classwise_mass(p, y, self.w, count, self.closed)
        total = float(y.size) if self.w is None else float(self.w.sum())
        return classwise.classwise_of(classwise.gap_sums(p, y, self.w, equal_width_edges(count), self.closed), total)


# ------------------------------------------------------------------------------------- several bin counts from one sort
# Once a column is sorted, a bin is a range of it, and its sums are differences of running sums: what
# certcal.binning.sums gives, to the last bit. One more bin count then costs as much as its bins, whatever the number of
# samples.

# With more samples than this a pass for every bin count is as fast as a sort, and needs no memory for it.
MOST_SORTED = 1 << 17
# Columns sorted at a time: one alone would fetch a whole cache line for every entry.
_COLUMNS = 8
# Columns whose bins are summed at a time.
_SUMMED = 128


@dataclass(frozen=True, eq=False)
class _BinPlan:
    """Bins of all counts, one after the other: the inner edge or the place in the sorted column where each starts."""

    edges: Floats  # inner edges of the equal-width bins of all counts, without repetitions
    which: NDArray[np.int64]
    picks: NDArray[np.int64]
    right: bool
    last: NDArray[np.bool_]

    @classmethod
    def of(cls, counts: tuple[int, ...], closed: str, dtype: np.dtype[Any], n: int) -> _BinPlan:
        right = closed == "right"
        inner: list[NDArray[Any]] = []
        picks: list[NDArray[np.int64]] = []
        places = np.arange(1.0, n + 1)
        for count in counts:
            edges = equal_width_edges(count)[1:-1].astype(dtype)
            inner.append(np.nextafter(edges, dtype.type(2)) if right else edges)
            # As in _base.select: the first value up to and including which the share is exceeded, or its mirror.
            thresholds = np.arange(1, count) / count * n + (-SLACK if right else SLACK) * n
            found = np.searchsorted(places, thresholds, "left" if right else "right")
            picks.append(np.concatenate(([-1], np.minimum(found, n - 1))))
        edges, places_of = np.unique(np.concatenate(inner).astype(np.float64), return_inverse=True)
        parts = np.split(places_of, np.cumsum([each.size for each in inner])[:-1])
        which = np.concatenate([np.concatenate(([-1], part)) for part in parts])
        last = np.zeros(which.size, np.bool_)
        last[np.cumsum(counts) - 1] = True
        return cls(edges, which, np.concatenate(picks), right, last)


def _sorted_columns(values: NDArray[Any], columns: Any, places: Any) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Every row of values sorted, and flags for those at the given rows and places; the values are overwritten.

    Floats from 0 to 1 are ordered like their bits, of which the first two are zero: the flag fits in below.
    """
    from certcal._kernels.sorted_bins import take_flags

    values += values.dtype.type(0)  # no negative zeros
    keys = values.view(np.int64 if values.dtype == np.float64 else np.int32)
    keys <<= 1
    keys[columns, places] |= 1
    keys.sort(axis=1)
    flags = np.empty(keys.shape, np.uint8)
    take_flags(keys, flags)
    return values, flags


def score_tables(
    z: NDArray[Any], c: NDArray[np.uint8], counts: tuple[int, ...], closed: str
) -> dict[int, tuple[BinTable, BinTable]]:
    from certcal._kernels import sorted_bins as kernels

    plan = _BinPlan.of(counts, closed, z.dtype, z.size)
    ordered, flags = _sorted_columns(np.array(kernel_float(z))[None], 0, np.flatnonzero(c))
    values = ordered[0]
    found = np.empty((2, plan.which.size, 2), np.int64)
    totals = np.empty((2, plan.which.size))
    kernels.score_sums(values, flags[0], plan.edges, plan.which, plan.picks, plan.right, plan.last, found, totals)
    tables: dict[int, tuple[BinTable, BinTable]] = {}
    stop = 0
    for count in counts:
        start, stop = stop, stop + count
        by_mass = np.concatenate(([0.0], values[plan.picks[start + 1 : stop]], [1.0])).astype(np.float64)
        pair: list[BinTable] = []
        for kind, edges in enumerate((equal_width_edges(count), by_mass)):
            here, weight = found[kind, start:stop, 0].copy(), found[kind, start:stop, 0].astype(np.float64)
            correct = found[kind, start:stop, 1].astype(np.float64)
            pair.append(BinTable(edges, closed, here, weight, weight.copy(), totals[kind, start:stop].copy(), correct))
        tables[count] = pair[0], pair[1]
    return tables


def classwise_errors(
    p: NDArray[Any], y: NDArray[np.int64], counts: tuple[int, ...], closed: str
) -> dict[int, tuple[float, float]]:
    from certcal._kernels import sorted_bins as kernels

    n, classes = p.shape
    plan = _BinPlan.of(counts, closed, p.dtype, n)
    bounds = np.cumsum((0, *counts))
    errors = np.empty((2, len(counts), classes))
    matrix = kernel_float(p)

    def some(start: int, stop: int) -> None:
        gaps = np.empty((2, min(_SUMMED, stop - start), plan.which.size))
        for begin in range(start, stop, _SUMMED):
            end = min(begin + _SUMMED, stop)
            for first in range(begin, end, _COLUMNS):
                last = min(first + _COLUMNS, end)
                columns = np.minimum(np.ascontiguousarray(matrix[:, first:last].T), 1)
                labelled = np.flatnonzero((y >= first) & (y < last))
                values, flags = _sorted_columns(columns, y[labelled] - first, labelled)
                width, mass = gaps[:, first - begin : last - begin]
                kernels.column_gaps(
                    values, flags, plan.edges, plan.which, plan.picks, plan.right, plan.last, width, mass
                )
            for k in range(len(counts)):
                part = np.abs(gaps[:, : end - begin, bounds[k] : bounds[k + 1]])
                errors[:, k, begin:end] = part.sum(axis=2)

    map_blocks(some, classes, small=1 + 200_000 // n)
    # In the order of certcal.metrics.classwise: one divides the mean of all classes, the other the sum of each.
    width, mass = errors[0].mean(axis=1) / n, (errors[1] / n).mean(axis=1)
    return {count: (float(width[k]), float(mass[k])) for k, count in enumerate(counts)}
