"""Metrics of data that arrives in pieces, from a state whose size does not depend on how much arrives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, bin_counts, choice, class_pair, score_pair, to_numpy, whole_number
from certcal.binning import CLOSED, BinSums, BinTable, ExactSum, equal_width_edges
from certcal.claims import Estimate
from certcal.metrics._measure import Measurements, check_threshold
from certcal.metrics._reliability import Reliability, with_band
from certcal.metrics.classwise import ClasswiseSums, classwise_of
from certcal.metrics.cosine import MomentGrid
from certcal.metrics.registry import METRICS, MeanOf, MetricEntry, OfBins, OfClasses, OfKernelSums, table_rows

if TYPE_CHECKING:
    from certcal.predictions import Predictions

Floats = NDArray[np.float64]
Key = tuple[str, int | None]  # the name of a row, and its number of bins


class StreamingCalibration:
    """An accumulator: ``update`` with pieces, ``merge`` with others, ``result`` at any time.

    Without weights the result is the same bits however the data was cut, ordered or merged; with weights that holds
    for the binned metrics and the scores, and the kernel metrics agree to rounding.
    The state is a few numbers per bin and class, and one megabyte for the two kernel metrics.

    Parameters
    ----------
    bins
        Number of equal-width bins, or several numbers.
    closed
        Which side of a bin belongs to it, "left" or "right".
    classes
        Number of classes when probabilities will be given; None for confidences.
    kernels
        Whether to keep the state of ``smooth_ece`` and ``kde_ece``.
    scores
        Whether what comes are binary scores with outcomes, not confidences with correctness.
    threshold
        As for :func:`certcal.metrics.measure`.

    Examples
    --------
    >>> stream = StreamingCalibration(bins=10)
    >>> stream.update([0.75], [1])
    >>> stream.update([0.25, 0.5], [0, 1])
    >>> round(stream.result()["ece"].value, 12)
    0.333333333333
    """

    def __init__(
        self,
        bins: int | Iterable[int] = 15,
        *,
        closed: str = "left",
        classes: int | None = None,
        kernels: bool = True,
        scores: bool = False,
        threshold: float | None = None,
    ) -> None:
        self.counts = bin_counts(bins)
        if classes is not None:
            classes = whole_number(classes, 2, 10_000_000, "classes", "pass a whole number of classes, at least 2")
        self.closed = choice(closed, CLOSED, "closed")
        self.classes = classes
        self.kind = "score" if scores else "confidence"
        self.task = "multiclass" if classes is not None else "binary" if scores else "top-label"
        self.given = check_threshold(threshold, self.task)
        self._weightless = False
        self._bins = {count: BinSums(equal_width_edges(count), self.closed) for count in self.counts}
        self._grid = MomentGrid() if kernels else None
        self._means = {
            name: ExactSum()
            for name, entry in METRICS.items()
            if isinstance(entry.form, MeanOf) and entry.form.of_bins is None and self.task in entry.tasks
            if classes is not None or entry.reads not in ("classes", "logits")
        }
        self._classwise = {
            count: ClasswiseSums(classes or 0, equal_width_edges(count), self.closed)
            for count in (self.counts if classes is not None else ())
        }

    def update(self, confidence: Any, correct: Any, sample_weight: Any = None) -> None:
        """Add confidences and whether they were right; nothing is added when one of them is refused."""
        if self.classes is not None:
            raise InputError("this accumulator was made for probabilities (classes=…); use update_probabilities")
        if _weightless(sample_weight):
            score_pair(confidence, correct)
            self._weightless = True
        else:
            self._add(*score_pair(confidence, correct, sample_weight))

    def update_probabilities(self, probabilities: Any, labels: Any, sample_weight: Any = None) -> None:
        """Add rows of class probabilities and true classes; nothing is added when one of them is refused.

        Examples
        --------
        >>> stream = StreamingCalibration(classes=2)
        >>> stream.update_probabilities([[0.75, 0.25]], [0])
        >>> stream.result()["brier_score"].value
        0.125
        """
        from certcal.predictions import Predictions

        if _weightless(sample_weight):
            class_pair(probabilities, labels)
            self._weightless = True
        else:
            self.update_predictions(Predictions.from_probabilities(probabilities, labels, sample_weight))

    def update_predictions(self, predictions: Predictions) -> None:
        """Add predictions that are already checked."""
        z, c, w = predictions.confidence, predictions.correct, predictions.sample_weight
        p, y = predictions.probabilities, predictions.labels
        if predictions.task != self.task and p is None and self.classes is None:
            raise InputError(
                f"predictions are of kind {predictions.kind!r}; this accumulator was made for {self.kind!r} (scores=…)"
            )
        if (p is None) != (self.classes is None) or (p is not None and p.shape[1] != self.classes):
            raise InputError(
                f"predictions have {predictions.classes} classes; this accumulator was made for {self.classes}"
            )
        self._add(z, c, w)
        if p is None or y is None:
            return
        self.kind = predictions.kind
        for state in self._classwise.values():
            state.add(p, y, w)
        for name, total in self._means.items():
            entry = METRICS[name]
            if entry.reads in ("classes", "logits"):
                arrays, options = entry.arguments(predictions) or ((), {})
                _add_losses(entry, total, arrays, options, w)

    def _add(self, z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None) -> None:
        for state in self._bins.values():
            state.add(z, c, w)
        if self._grid is not None:
            self._grid.update(z, c, w)
        of = {"pair": (z, c), "confidence": (z,), "correct": (c,)}
        for name, total in self._means.items():
            entry = METRICS[name]
            if entry.reads in of:
                _add_losses(entry, total, of[entry.reads], entry.settings(None, self.closed, self.given), w)

    def merge(self, other: StreamingCalibration) -> None:
        """Add all that another accumulator with the same settings has seen."""
        if self._settings() != other._settings():
            raise InputError(
                "other was made with different bins, closed, classes, kernels, scores or threshold; use the same "
                "settings"
            )
        for count, state in self._bins.items():
            state.merge(other._bins[count])
        for count, state in self._classwise.items():
            state.merge(other._classwise[count])
        for name, total in self._means.items():
            total.merge(other._means[name])
        if self._grid is not None and other._grid is not None:
            self._grid.merge(other._grid)
        self.kind = other.kind if self.kind == "confidence" else self.kind

    def _settings(self) -> dict[str, Any]:
        return {
            "bins": self.counts,
            "closed": self.closed,
            "classes": self.classes,
            "kernels": self._grid is not None,
            "scores": self.task == "binary",
            **self.given,
        }

    def reset(self) -> None:
        """Forget everything."""
        self.__init__(**self._settings())

    def result(self) -> Measurements:
        """The metrics of everything seen so far."""
        return self.with_rows({})

    def with_rows(self, further: Mapping[Key, float]) -> Measurements:
        """The metrics of everything seen so far, and values of others by name and number of bins."""
        tables = {count: state.table() for count, state in self._bins.items()}
        first = tables[self.counts[0]]
        n, total = int(first.count.sum()), first.total
        if n == 0 or total == 0:
            reason = "sample_weight was 0 in all that was added" if self._weightless else "nothing was added yet"
            raise InputError(f"{reason}; call update with at least one sample that counts")
        rows: list[Estimate] = []
        for entry, count in table_rows(self.counts, self.task):
            value, error = further.get((entry.name, count)), 0.0
            if value is None:
                value, error = self._value(entry, count, tables) or (None, 0.0)
            if value is not None:
                # The usual case is exact to 1e-9 like the functions of arrays; anything worse is said.
                more = {} if error < 1e-9 else {"error_at_most": error}
                settings = {**entry.settings(count, self.closed, self.given), **more}
                rows.append(Estimate(entry.text("name", self.task), value, n, settings))
        return Measurements(tuple(rows), n, self.kind)

    def _value(
        self, entry: MetricEntry, count: int | None, tables: Mapping[int, BinTable]
    ) -> tuple[float, float] | None:
        """The value of a row and a bound on its error; None when it needs more than this state."""
        first = tables[self.counts[0]]
        match entry.form:
            case OfBins(of, scored, False) if count is not None:
                score = (self._means["top_label_brier_score"].value / first.total,) if scored else ()
                return of(tables[count], *score, **entry.options), 0.0
            case MeanOf(_, of_bins) if of_bins is not None:
                return of_bins(first), 0.0
            case MeanOf() if entry.name in self._means:
                return self._means[entry.name].value / first.total, 0.0
            case OfClasses(False) if count in self._classwise:
                return classwise_of(self._classwise[count].gaps(), first.total), 0.0
            case OfKernelSums(_, of_grid) if self._grid is not None:
                return of_grid(self._grid)
            case _:
                return None

    def reliability(self, bins: int | None = None) -> Reliability:
        """The reliability diagram of everything seen so far, with the first (or another) of the bin counts.

        Examples
        --------
        >>> stream = StreamingCalibration(bins=2)
        >>> stream.update([0.25, 0.75], [0, 1])
        >>> stream.reliability().table.accuracy.tolist()
        [0.0, 1.0]
        """
        count = self.counts[0] if bins is None else bins
        if count not in self._bins:
            counts = ", ".join(map(str, self.counts))
            raise InputError(f"bins is {count!r}; this accumulator was made with {counts}, so ask for one of these")
        table = self._bins[count].table()
        if not table.total > 0:
            raise InputError("nothing was added yet; call update with at least one sample that counts")
        return with_band(table, "joint", 0.95)


def _weightless(sample_weight: Any) -> bool:
    """Whether there are weights and all are 0: such a piece counts for nothing, but is no mistake."""
    if sample_weight is None:
        return False
    weights = to_numpy(sample_weight, "sample_weight")
    return weights.size > 0 and not weights.any()


def _add_losses(
    entry: MetricEntry, total: ExactSum, arrays: tuple[Any, ...], options: dict[str, Any], w: Floats | None
) -> None:
    assert isinstance(entry.form, MeanOf)  # no others have a sum
    values = entry.form.losses(*arrays, **options)
    total.add(values if w is None else np.where(w > 0, values, 0.0) * w)
