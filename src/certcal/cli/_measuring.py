"""The work that ``measure`` and ``demo`` share: options in, results out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal.cli._parse import nearest
from certcal.predictions import Predictions
from certcal.report.names import NAMES
from certcal.report.results import BRACKETS, Part

if TYPE_CHECKING:
    from certcal.metrics import Survey

# A diagram with more lines than this is not read.
_MOST_LINES = 40
# Where nobody says how many resamples, this many for tables up to this size, a matter of seconds.
RESAMPLES, MOST_RESAMPLED = 200, 1_000_000


@dataclass(frozen=True)
class Settings:
    """How to measure; a bootstrap of None becomes one when the number of samples is known."""

    bins: tuple[int, ...]
    closed: str
    bootstrap: int | None
    method: str
    level: float
    seed: int

    @property
    def diagram_bins(self) -> int:
        """The number of bins nearest to 15 that can be drawn, or 15."""
        return min(
            (count for count in self.bins if count <= _MOST_LINES), key=lambda count: abs(count - 15), default=15
        )

    def of(self, n: int | None) -> Settings:
        """The same with a number of resamples; ``n`` is None when the number of samples is not known.

        Examples
        --------
        >>> asked = Settings((15,), "left", None, "percentile", 0.95, 0)
        >>> [asked.of(n).bootstrap for n in (5000, 10**8, None)]
        [200, 0, 0]
        """
        if self.bootstrap is not None:
            return self
        return replace(self, bootstrap=RESAMPLES if n is not None and n <= MOST_RESAMPLED else 0)

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
            }
        return described


def measured(
    name: str, predictions: Predictions, settings: Settings, metrics: Sequence[str], *, intervals: bool = True
) -> Part:
    """Measure predictions and prepare their diagram; without intervals only the diagram is resampled."""
    import certcal
    from certcal.metrics import reliability

    table = certcal.measure(
        predictions,
        bins=settings.bins,
        closed=settings.closed,
        metrics=metrics or None,
        bootstrap=(settings.bootstrap or 0) if intervals else 0,
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
        replicates=settings.bootstrap or 0,
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
            hint = nearest(metric, NAMES, f"there are {', '.join(NAMES)}")
            raise InputError(f"--metric: there is no {metric!r}{hint}")


def measured_in_pieces(
    pieces: Callable[[], Iterable[Any]],
    names: Sequence[str],
    settings: Settings,
    metrics: Sequence[str],
    memory: int | None = None,
) -> tuple[Part, list[Part]]:
    """Measure predictions that do not fit in memory and their groups, whose names are known when the pieces are."""
    from certcal.data._pieces import natural_order
    from certcal.metrics import survey_stream

    found = survey_stream(
        pieces,
        bins=settings.bins,
        closed=settings.closed,
        diagram=settings.diagram_bins,
        bootstrap=settings.bootstrap or 0,
        method=settings.method,
        level=settings.level,
        seed=settings.seed,
        memory=memory,
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
