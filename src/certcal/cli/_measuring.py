"""The work that ``measure`` and ``demo`` share: options in, results out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from certcal._checks import InputError
from certcal.cli._results import BRACKETS, Part
from certcal.predictions import Predictions
from certcal.report._names import NAMES

# A diagram with more lines than this is not read.
_MOST_LINES = 40


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    bins: tuple[int, ...]
    closed: str
    bootstrap: int
    method: str
    level: float
    seed: int

    @property
    def diagram_bins(self) -> int:
        """The number of bins nearest to 15 that can be drawn, or 15."""
        return min(
            (count for count in self.bins if count <= _MOST_LINES), key=lambda count: abs(count - 15), default=15
        )

    @property
    def conventions(self) -> dict[str, Any]:
        """How the numbers were computed, for machines."""
        described: dict[str, Any] = {"bins": list(self.bins), "closed": self.closed, "bins_are": BRACKETS[self.closed]}
        if self.bootstrap:
            described |= {
                "bootstrap": self.bootstrap,
                "method": self.method,
                "level": self.level,
                "seed": self.seed,
                "asymptotic": True,
            }
        return described


def measured(name: str, predictions: Predictions, settings: Settings, metrics: Sequence[str]) -> Part:
    """Measure predictions and prepare their diagram."""
    import certcal
    from certcal.metrics import reliability

    table = certcal.measure(
        predictions,
        bins=settings.bins,
        closed=settings.closed,
        metrics=metrics or None,
        bootstrap=settings.bootstrap,
        method=settings.method,
        level=settings.level,
        seed=settings.seed,
    )
    prepared = reliability(
        predictions.confidence,
        predictions.correct,
        bins=settings.diagram_bins,
        closed=settings.closed,
        sample_weight=predictions.sample_weight,
        replicates=settings.bootstrap,
        level=settings.level,
        seed=settings.seed,
    )
    return Part(name, len(predictions), table.rows, prepared)


def check_metrics(metrics: Sequence[str]) -> None:
    """Refuse names that no metric has, with the nearest that one has.

    Examples
    --------
    >>> check_metrics(["smoth_ece"])
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: --metric: there is no 'smoth_ece'; did you mean 'smooth_ece'?
    """
    for metric in metrics:
        if metric not in NAMES:
            near = get_close_matches(metric, NAMES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(NAMES)}"
            raise InputError(f"--metric: there is no {metric!r}; {hint}")


def measured_in_pieces(pieces: Callable[[], Iterable[Predictions]], settings: Settings, metrics: Sequence[str]) -> Part:
    """Measure predictions that do not fit in memory and prepare their diagram."""
    from certcal.binning import BinSums, equal_width_edges
    from certcal.metrics import Reliability, measure_stream
    from certcal.metrics._binned import ece_of

    table = measure_stream(pieces, bins=settings.bins, closed=settings.closed)
    missing = [metric for metric in metrics if metric not in {row.name for row in table.rows}]
    if missing:
        raise InputError(
            f"--metric: {missing[0]} needs all samples at once, and this table is read in pieces; give more --memory"
        )
    sums = BinSums(equal_width_edges(settings.diagram_bins), settings.closed)
    for piece in pieces():
        sums.add(piece.confidence, piece.correct, piece.sample_weight)
    drawn = sums.table()
    rows = [row for row in table.rows if not metrics or row.name in metrics]
    return Part("all", table.n, rows, Reliability(drawn, ece_of(drawn), None, None, settings.level))
