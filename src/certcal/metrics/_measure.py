"""All metrics of a set of predictions as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from certcal._checks import InputError, bin_counts, choice
from certcal._html import table
from certcal._rounding import percent_text
from certcal.binning import CLOSED, BinTable, equal_width_edges, mass_edges, sums
from certcal.claims import Estimate
from certcal.metrics import _cumulative as cumulative
from certcal.metrics import binned, classwise, scores
from certcal.metrics._sorted import MOST_SORTED, classwise_errors, score_tables

if TYPE_CHECKING:
    from certcal.predictions import Predictions

Row = tuple[str, dict[str, Any], Callable[[], float], tuple[Any, ...]]


class Metric(Protocol):
    """A metric of one's own: a function of confidences and 0/1 outcomes that returns a float.

    Its name in tables is its ``__name__``. With ``bootstrap`` it is called with the weights of each resample.
    """

    def __call__(self, confidence: Any, correct: Any, *, sample_weight: Any = None) -> float:
        """The value of the metric."""
        ...


# Every built-in row, in the order of the table.
NAMES = (
    *("accuracy", "mean_confidence", "ece", "equal_mass_ece", "mce", "lp_ece", "debiased_ece"),
    *("harmonic_calibration_score", "brier_reliability", "brier_resolution", "brier_uncertainty", "brier_within_bin"),
    *("classwise_ece", "classwise_equal_mass_ece", "sweep_ece", "ks_error", "kuiper_error", "smooth_ece", "kde_ece"),
    *("mmce", "top_label_brier_score", "top_label_nll", "auroc", "brier_score", "nll"),
)
# The bin counts of the benchmark study (Tao et al. 2024, section 3).
STUDY_BINS = (5, 10, 15, 20, 25, 50, 100, 200, 500)


@dataclass(frozen=True, eq=False)
class Measurements:
    """Estimates of one set of predictions, in a fixed order.

    ``table["ece"]`` is the row of that name; when several bin counts were asked for, ``table["ece", 10]``.

    Attributes
    ----------
    rows
        One :class:`~certcal.claims.Estimate` per metric and setting.
    n
        Number of samples.
    kind
        What the predictions were: "probabilities", "logits" or "confidence".

    Examples
    --------
    >>> from certcal import Predictions, measure
    >>> table = measure(Predictions.from_confidence([0.75, 0.75], [1, 0]), bins=10)
    >>> table["ece"].value, table["accuracy"].value
    (0.25, 0.5)
    """

    rows: tuple[Estimate, ...]
    n: int
    kind: str

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: str | tuple[str, int]) -> Estimate:
        name, bins = key if isinstance(key, tuple) else (key, None)
        found = [row for row in self.rows if row.name == name and bins in (None, row.settings.get("bins"))]
        if len(found) == 1:
            return found[0]
        if found:
            counts = ", ".join(str(row.settings.get("bins")) for row in found)
            raise KeyError(
                f"{name!r} was measured with bins {counts}; ask for one, as in table[{name!r}, {counts.split(',')[0]}]"
            )
        names = ", ".join(dict.fromkeys(row.name for row in self.rows))
        raise KeyError(f"no row {key!r}; there are {names}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"n": self.n, "kind": self.kind, "rows": [row.to_dict() for row in self.rows]}

    def __repr__(self) -> str:
        lines = [f"Measurements(n={self.n}, kind={self.kind!r})"]
        for row in self.rows:
            bins = row.settings.get("bins", "")
            spread = "" if row.interval is None else f"  [{row.interval.lower:.5f}, {row.interval.upper:.5f}]"
            lines.append(f"  {row.name:<28} {bins!s:>5}  {row.value:.5f}{spread}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        spread = [row.interval for row in self.rows if row.interval is not None]
        header = ["metric", "bins", "value"]
        if spread:
            header.append(f"{percent_text(spread[0].level)} {spread[0].method} bootstrap interval")
        rows = [
            (
                row.name,
                str(row.settings.get("bins", "")),
                f"{row.value:.5f}",
                f"{row.interval.lower:.5f} to {row.interval.upper:.5f}" if row.interval is not None else None,
            )[: len(header)]
            for row in self.rows
        ]
        caption = f"Estimates from {self.n:,} samples ({self.kind}), not guarantees"
        return table(header, rows, caption, numeric=(1, 2, 3))


def measure(
    predictions: Predictions,
    *,
    bins: int | Sequence[int] = 15,
    closed: str = "left",
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    bootstrap: int = 0,
    method: str = "percentile",
    level: float = 0.95,
    seed: int = 0,
) -> Measurements:
    """Every metric that the predictions allow.

    Parameters
    ----------
    predictions
        What was predicted and what was true.
    bins
        Number of bins, or several numbers: the binned metrics then have one row for each.
    closed
        Which side of a bin belongs to it, "left" or "right".
    metrics
        Names of the rows wanted, or metrics of your own; all built-in ones when None.
    bootstrap
        Number of bootstrap replicates for an interval on every row; 0 for none.
    method, level, seed
        As for :func:`certcal.metrics.bootstrap`.

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
        raise InputError("predictions are not Predictions; make them with Predictions.from_confidence or its siblings")
    counts = bin_counts(bins)
    side = choice(closed, CLOSED, "closed")
    rows = list(_rows(predictions, counts, side))
    if metrics is not None:
        rows = _chosen(metrics, rows, predictions)
    found: list[Estimate] = []
    for name, settings, compute, recipe in rows:
        value = compute()
        interval = None
        if bootstrap:
            from certcal.metrics._bootstrap import bootstrap as resampled

            function, arrays, options = recipe
            interval = resampled(
                function,
                *arrays,
                level=level,
                method=method,
                replicates=bootstrap,
                seed=seed,
                sample_weight=predictions.sample_weight,
                **options,
            ).interval
        found.append(Estimate(name, value, len(predictions), settings, interval))
    return Measurements(tuple(found), len(predictions), predictions.kind)


def check_names(metrics: Iterable[Any]) -> None:
    """Refuse names that no metric has, with the nearest that one has.

    Examples
    --------
    >>> check_names(["smoth_ece"])
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: metrics: there is no 'smoth_ece'; did you mean 'smooth_ece'?
    """
    for name in metrics:
        if not callable(name) and name not in NAMES:
            near = get_close_matches(str(name), NAMES, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(NAMES)}"
            raise InputError(f"there is no {name!r}", argument="metrics", remedy=remedy)


def _chosen(metrics: Any, rows: list[Row], predictions: Predictions) -> list[Row]:
    """The rows of the names that are wanted, in the order of the table, and then metrics of one's own."""
    wanted: list[Any] = [metrics] if isinstance(metrics, str) or callable(metrics) else list(metrics)
    check_names(wanted)
    known = list(dict.fromkeys(row[0] for row in rows))
    for name in wanted:
        if not callable(name) and name not in known:
            reason = f"these predictions have no {name}"
            raise InputError(reason, argument="metrics", remedy=f"there are {', '.join(known)}")
    named = [row for row in rows if row[0] in wanted]
    return [*named, *(_own(cast("Metric", each), predictions) for each in wanted if callable(each))]


def _own(metric: Metric, predictions: Predictions) -> Row:
    name = getattr(metric, "__name__", type(metric).__name__)
    pair = (predictions.confidence, predictions.correct)

    def value() -> float:
        try:
            return float(metric(*pair, sample_weight=predictions.sample_weight))
        except (TypeError, ValueError) as error:
            reason = f"{name} did not return a number ({error})"
            remedy = "it is called as metric(confidence, correct, sample_weight=None)"
            raise InputError(reason, argument="metrics", remedy=remedy) from error

    return name, {}, value, (metric, pair, {})


def _rows(predictions: Predictions, counts: tuple[int, ...], closed: str) -> Iterator[Row]:
    """Name, settings, value and bootstrap recipe of every row, in the order of the table."""
    from certcal.metrics._mmce import mmce
    from certcal.metrics._sweep import sweep_ece
    from certcal.metrics._windows import KernelSums
    from certcal.metrics.kde import density_error, kde_ece
    from certcal.metrics.smooth import smooth_ece, smoothed_error

    z, c, w = predictions.confidence, predictions.correct, predictions.sample_weight
    pair = (z, c)

    def plain(name: str, function: Callable[..., float], arrays: tuple[Any, ...], **options: Any) -> Row:
        return name, options, lambda: function(*arrays, sample_weight=w, **options), (function, arrays, options)

    yield plain("accuracy", scores.accuracy, (c,))
    yield plain("mean_confidence", scores.mean_confidence, (z,))
    shared = _Shared(predictions, counts, closed)
    for count in counts:
        yield from _binned_rows(shared, count)
    yield plain("sweep_ece", sweep_ece, pair)
    yield plain("ks_error", cumulative.ks_error, pair)
    yield plain("kuiper_error", cumulative.kuiper_error, pair)
    kernel_sums = cache(lambda: KernelSums(z, c, w))  # the moments behind two rows
    yield "smooth_ece", {}, lambda: smoothed_error(kernel_sums()), (smooth_ece, pair, {})
    yield "kde_ece", {}, lambda: density_error(kernel_sums()), (kde_ece, pair, {})
    yield plain("mmce", mmce, pair)
    yield plain("top_label_brier_score", scores.top_label_brier_score, pair)
    yield plain("top_label_nll", scores.top_label_nll, pair)
    yield plain("auroc", scores.auroc, pair)
    p, y, x = predictions.probabilities, predictions.labels, predictions.logits
    if p is not None and y is not None:
        # The functions would check again what was checked when the predictions were made.
        whole: tuple[Any, ...] = (p, y)
        yield "brier_score", {}, lambda: scores.weighted_mean(scores.brier(p, y), w), (scores.brier_score, whole, {})
        if x is not None:
            exact: tuple[Any, ...] = (scores.nll, (x, y), {"from_logits": True})
            yield "nll", {}, lambda: scores.weighted_mean(scores.logit_losses(x, y), w), exact
        else:
            options: dict[str, Any] = {}
            yield "nll", {}, lambda: scores.weighted_mean(scores.log_losses(p, y), w), (scores.nll, whole, options)


class _Shared:
    """What the rows of all bin counts are computed from, when one of them is asked for."""

    def __init__(self, predictions: Predictions, counts: tuple[int, ...], closed: str) -> None:
        self.predictions, self.counts, self.closed = predictions, counts, closed
        # One sort serves all bin counts; beyond some size, or with weights, passes over the samples serve one each.
        self.sort = predictions.sample_weight is None and len(predictions) <= MOST_SORTED
        several = predictions.sample_weight is None and len(counts) > 1
        self.sort_classes = self.sort or several
        self.table = cache(self._table)
        self.by_mass = cache(self._by_mass)
        self.brier = cache(self._brier)
        self._tables = cache(lambda: score_tables(predictions.confidence, predictions.correct, counts, closed))
        self._errors = cache(self._sorted_classes)

    def _table(self, count: int) -> BinTable:
        if self.sort:
            return self._tables()[count][0]
        p = self.predictions
        return sums(p.confidence, p.correct, p.sample_weight, equal_width_edges(count), self.closed)

    def _by_mass(self, count: int) -> BinTable:
        if self.sort:
            return self._tables()[count][1]
        p = self.predictions
        edges = mass_edges(p.confidence, p.sample_weight, count, self.closed)
        return sums(p.confidence, p.correct, p.sample_weight, edges, self.closed)

    def _brier(self) -> float:
        p = self.predictions
        return scores.weighted_mean(scores.top_label_brier(p.confidence, p.correct), p.sample_weight)

    def _classes(self) -> tuple[Any, Any]:
        p = self.predictions
        assert p.probabilities is not None
        assert p.labels is not None
        return p.probabilities, p.labels

    def _sorted_classes(self) -> dict[int, tuple[float, float]]:
        return classwise_errors(*self._classes(), self.counts, self.closed)

    def classwise(self, count: int) -> float:
        """The classwise error with bins of equal width."""
        if self.sort_classes and len(self.counts) > 1:
            return self._errors()[count][0]
        p, y = self._classes()
        w = self.predictions.sample_weight
        total = float(y.size) if w is None else float(w.sum())
        return classwise.classwise_of(classwise.gap_sums(p, y, w, equal_width_edges(count), self.closed), total)

    def classwise_mass(self, count: int) -> float:
        """The classwise error with bins of equal mass."""
        if self.sort_classes:
            return self._errors()[count][1]
        return classwise.classwise_mass(*self._classes(), self.predictions.sample_weight, count, self.closed)


def _binned_rows(shared: _Shared, count: int) -> Iterator[Row]:
    """The rows of one bin count."""
    predictions = shared.predictions
    z, c = predictions.confidence, predictions.correct
    settings: dict[str, Any] = {"bins": count, "closed": shared.closed}
    table = partial(shared.table, count)

    def row(name: str, function: Any, value: Callable[[], float], **more: Any) -> Row:
        options = {**settings, **more}
        return name, options, value, (function, (z, c), options)

    def share() -> float:
        return float(table().correct_sum.sum() / table().total)

    yield row("ece", binned.ece, lambda: binned.ece_of(table()))
    yield row("equal_mass_ece", binned.equal_mass_ece, lambda: binned.ece_of(shared.by_mass(count)))
    yield row("mce", binned.mce, lambda: binned.mce_of(table()))
    yield row("lp_ece", binned.lp_ece, lambda: binned.lp_ece_of(table(), 2.0), p=2.0)
    yield row("debiased_ece", binned.debiased_ece, lambda: binned.debiased_ece_of(table()))
    yield row(
        "harmonic_calibration_score",
        scores.harmonic_calibration_score,
        lambda: scores.harmonic_score(share(), binned.ece_of(table()), 1.0),
        beta=1.0,
    )
    parts = cache(lambda: scores.decompose(table(), shared.brier()))
    for name, function in scores.BRIER_PARTS.items():
        yield row(f"brier_{name}", function, lambda name=name: float(getattr(parts(), name)))
    p, y = predictions.probabilities, predictions.labels
    if p is not None and y is not None:
        options = dict(settings)
        yield "classwise_ece", options, lambda: shared.classwise(count), (classwise.classwise_ece, (p, y), options)
        yield (
            "classwise_equal_mass_ece",
            options,
            lambda: shared.classwise_mass(count),
            (classwise.classwise_equal_mass_ece, (p, y), options),
        )
