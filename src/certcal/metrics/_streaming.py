"""Metrics of data that arrives in pieces, from a state whose size does not depend on how much arrives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, bin_counts, choice, class_pair, score_pair, to_numpy, whole_number
from certcal.binning import CLOSED, BinSums, BinTable, ExactSum, equal_width_edges
from certcal.claims import Estimate
from certcal.metrics import binned, scores
from certcal.metrics._measure import Measurements
from certcal.metrics._reliability import Reliability
from certcal.metrics.classwise import ClasswiseSums, classwise_of
from certcal.metrics.cosine import MomentGrid

if TYPE_CHECKING:
    from certcal.predictions import Predictions

Floats = NDArray[np.float64]


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
    ) -> None:
        self.counts = bin_counts(bins)
        if classes is not None:
            classes = whole_number(classes, 2, 10_000_000, "classes", "pass a whole number of classes, at least 2")
        self.closed = choice(closed, CLOSED, "closed")
        self.classes = classes
        self.kind = "confidence"
        self._weightless = False
        self._bins = {count: BinSums(equal_width_edges(count), self.closed) for count in self.counts}
        self._grid = MomentGrid() if kernels else None
        self._sums = {name: ExactSum() for name in ("top_label_brier_score", "top_label_nll", "brier_score", "nll")}
        self._classwise = (
            {}
            if classes is None
            else {count: ClasswiseSums(classes, equal_width_edges(count), self.closed) for count in self.counts}
        )

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
            return
        self.update_predictions(Predictions.from_probabilities(probabilities, labels, sample_weight))

    def update_predictions(self, predictions: Predictions) -> None:
        """Add predictions that are already checked."""
        p, y, w = predictions.probabilities, predictions.labels, predictions.sample_weight
        if (p is None) != (self.classes is None) or (p is not None and p.shape[1] != self.classes):
            raise InputError(
                f"predictions have {predictions.classes} classes; this accumulator was made for {self.classes}"
            )
        self._add(predictions.confidence, predictions.correct, w)
        if p is None or y is None:
            return
        self.kind = predictions.kind
        for state in self._classwise.values():
            state.add(p, y, w)
        self._sums["brier_score"].add(_times(scores.brier(p, y), w))
        x = predictions.logits
        self._sums["nll"].add(_times(scores.log_losses(p, y) if x is None else scores.logit_losses(x, y), w))

    def _add(self, z: NDArray[Any], c: NDArray[np.uint8], w: Floats | None) -> None:
        for state in self._bins.values():
            state.add(z, c, w)
        if self._grid is not None:
            self._grid.update(z, c, w)
        self._sums["top_label_brier_score"].add(_times(scores.top_label_brier(z, c), w))
        self._sums["top_label_nll"].add(_times(scores.top_label_log_losses(z, c), w))

    def merge(self, other: StreamingCalibration) -> None:
        """Add all that another accumulator with the same settings has seen."""
        if (self.counts, self.closed, self.classes, self._grid is None) != (
            other.counts,
            other.closed,
            other.classes,
            other._grid is None,
        ):
            raise InputError("other was made with different bins, closed, classes or kernels; use the same settings")
        for count, state in self._bins.items():
            state.merge(other._bins[count])
        for count, state in self._classwise.items():
            state.merge(other._classwise[count])
        for name, total in self._sums.items():
            total.merge(other._sums[name])
        if self._grid is not None and other._grid is not None:
            self._grid.merge(other._grid)
        self.kind = other.kind if self.kind == "confidence" else self.kind

    def reset(self) -> None:
        """Forget everything."""
        self.__init__(self.counts, closed=self.closed, classes=self.classes, kernels=self._grid is not None)

    def result(self) -> Measurements:
        """The metrics of everything seen so far."""
        from certcal.metrics.kde import kde_ece_of
        from certcal.metrics.smooth import smooth_ece_of

        tables = {count: state.table() for count, state in self._bins.items()}
        first = tables[self.counts[0]]
        n, total = int(first.count.sum()), first.total
        if n == 0 or total == 0:
            reason = "sample_weight was 0 in all that was added" if self._weightless else "nothing was added yet"
            raise InputError(f"{reason}; call update with at least one sample that counts")
        found: list[tuple[str, float, dict[str, Any]]] = [
            ("accuracy", float(first.correct_sum.sum() / total), {}),
            ("mean_confidence", float(first.confidence_sum.sum() / total), {}),
        ]
        score = self._sums["top_label_brier_score"].value / total
        for count, table in tables.items():
            found += binned_values(table, score, {"bins": count, "closed": self.closed})
            if self.classes is not None:
                value = classwise_of(self._classwise[count].gaps(), total)
                found.append(("classwise_ece", value, {"bins": count, "closed": self.closed}))
        if self._grid is not None:
            for name, (value, error) in (
                ("smooth_ece", smooth_ece_of(self._grid)),
                ("kde_ece", kde_ece_of(self._grid)),
            ):
                # The usual case is exact to 1e-9 like the functions of arrays; anything worse is said.
                found.append((name, value, {} if error < 1e-9 else {"error_at_most": error}))
        names = ("top_label_brier_score", "top_label_nll")
        for name in names if self.classes is None else (*names, "brier_score", "nll"):
            found.append((name, self._sums[name].value / total, {}))
        return Measurements(tuple(Estimate(name, value, n, more) for name, value, more in found), n, self.kind)

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
        return Reliability(table, binned.ece_of(table), None, None, 0.95)


def _weightless(sample_weight: Any) -> bool:
    """Whether there are weights and all are 0: such a piece counts for nothing, but is no mistake."""
    if sample_weight is None:
        return False
    weights = to_numpy(sample_weight, "sample_weight")
    return weights.size > 0 and not weights.any()


def _times(values: Floats, w: Floats | None) -> Floats:
    return values if w is None else np.where(w > 0, values, 0.0) * w


def binned_values(table: BinTable, score: float, settings: dict[str, Any]) -> list[tuple[str, float, dict[str, Any]]]:
    """Name, value and settings of every row that is a function of bin sums and the top-label Brier score."""
    error = binned.ece_of(table)
    share = float(table.correct_sum.sum() / table.total)
    parts = scores.decompose(table, score)
    return [
        ("ece", error, settings),
        ("mce", binned.mce_of(table), settings),
        ("lp_ece", binned.lp_ece_of(table, 2.0), {**settings, "p": 2.0}),
        ("debiased_ece", binned.debiased_ece_of(table), settings),
        ("harmonic_calibration_score", scores.harmonic_score(share, error), {**settings, "beta": 1.0}),
        ("brier_reliability", parts.reliability, settings),
        ("brier_resolution", parts.resolution, settings),
        ("brier_uncertainty", parts.uncertainty, settings),
        ("brier_within_bin", parts.within_bin, settings),
    ]
