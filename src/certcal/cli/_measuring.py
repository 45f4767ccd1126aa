"""The work that ``measure`` and ``demo`` share: options in, results out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal.predictions import Predictions
from certcal.report._names import NAMES
from certcal.report.results import BRACKETS, Part

if TYPE_CHECKING:
    from certcal.metrics import Survey

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


def measured_in_pieces(
    pieces: Callable[[], Iterable[Any]], names: Sequence[str], settings: Settings, metrics: Sequence[str]
) -> tuple[Part, list[Part]]:
    """Measure predictions that do not fit in memory and their groups, whose names are known when the pieces are."""
    from certcal.data._pieces import natural_order
    from certcal.metrics import survey_stream

    found = survey_stream(
        pieces,
        bins=settings.bins,
        closed=settings.closed,
        diagram=settings.diagram_bins,
        bootstrap=settings.bootstrap,
        method=settings.method,
        level=settings.level,
        seed=settings.seed,
    )
    missing = [metric for metric in metrics if metric not in {row.name for row in found.measurements.rows}]
    if missing:
        raise InputError(
            f"--metric: {missing[0]} needs all samples at once, and this table is read in pieces; give more --memory"
        )
    for code, name in enumerate(names):
        if code not in found.groups:
            raise InputError(f"--by: the group {name!r} has only samples of weight 0; at least one must be positive")

    def part(name: str, survey: Survey) -> Part:
        rows = [row for row in survey.measurements.rows if not metrics or row.name in metrics]
        return Part(name, survey.measurements.n, rows, survey.reliability)

    return part("all", found), [part(names[code], found.groups[code]) for code in natural_order(list(names))]
