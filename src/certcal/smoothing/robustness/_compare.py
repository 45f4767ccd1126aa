"""Several runs or logs beside each other: everything that is printed or plotted, prepared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError, failure_probability
from certcal.claims import short_text
from certcal.result import Result
from certcal.smoothing.robustness._accuracy import (
    AccuracyCurve,
    BestCurve,
    best_accuracy,
    certified_accuracy,
    check_at,
)
from certcal.smoothing.robustness._average import (
    AverageCertifiedRadius,
    average_certified_radius,
    trivial_average_radius,
)
from certcal.smoothing.robustness._distribution import PaDistribution
from certcal.smoothing.robustness._dominance import Dominance, dominance_table
from certcal.smoothing.robustness._votes import VoteRecord, as_record

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_MOST_RADII = 12


@dataclass(frozen=True, eq=False)
class Compared:
    """One run or log in a comparison.

    Attributes
    ----------
    name
        Of the run.
    sigma, draws, alpha
        How it was certified; ``draws`` is the smallest and largest number per sample.
    n, n_abstained
        Samples, and those without a certificate.
    curve
        Certified accuracy; of a log by the fewest votes that its printed radii allow, so at least this.
    printed
        The same by a log's radii as printed: above ``curve`` where they were rounded up. Of a run, ``curve``.
    average
        Average certified radius, with its warning; of a log by its radii as printed.
    distribution
        Of p_A.
    notes
        What a reader should know about a log.
    """

    name: str
    sigma: float
    draws: tuple[int, int]
    alpha: float
    n: int
    n_abstained: int
    curve: AccuracyCurve
    printed: AccuracyCurve
    average: AverageCertifiedRadius
    distribution: PaDistribution
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "sigma": self.sigma,
            "draws": list(self.draws),
            "alpha": self.alpha,
            "n": self.n,
            "n_abstained": self.n_abstained,
            "certified_accuracy": self.curve.to_dict(),
            "certified_as_printed": list(self.printed.certified),
            "average_certified_radius": self.average.to_dict(),
            "distribution": self.distribution.to_dict(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Runs and logs beside each other. Made by :func:`certcal.compare`.

    Attributes
    ----------
    runs
        In the order given.
    best
        Highest certified accuracy at each radius.
    dominance
        One verdict per pair.
    notes
        What limits the comparison.
    origins
        File or folder of each run; empty for runs that were in memory.

    Examples
    --------
    >>> easy = VoteRecord.of([100, 20], 100, [1, 1], sigma=1.0, label=[0, 1], name="trivial")
    >>> even = VoteRecord.of([90, 90], 100, [1, 1], sigma=1.0, label=[0, 1], name="even")
    >>> both = compare([easy, even], at=[0.5, 1.0])
    >>> [run.curve.texts for run in both.runs], both.best.names, both.dominance[0].verdict
    ([('0.5000', '0.5000'), ('1.0000', '0.0000')], (('even',), ('trivial',)), 'neither')
    """

    view: ClassVar[str] = "certcal.report.views.comparison"

    runs: tuple[Compared, ...]
    best: BestCurve
    dominance: tuple[Dominance, ...]
    notes: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(run.name for run in self.runs)} at {counted_radii(self.best.at)}>"

    @property
    def sources(self) -> Sequence[str]:
        """Files and folders that were read."""
        return tuple(filter(None, self.origins))

    def origin(self, place: int) -> str:
        """File or folder of a run by its place; empty when it was in memory."""
        return self.origins[place] if self.origins else ""

    def claims(self) -> Sequence[Dominance]:
        """Every verdict."""
        return self.dominance

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "runs": [{"source": self.origin(i)} | run.to_dict() for i, run in enumerate(self.runs)],
            "type": "comparison",
            "at": list(self.best.at),
            "best": self.best.to_dict(),
            "dominance": [pair.to_dict() for pair in self.dominance],
            "notes": list(self.notes),
        }

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per run and radius, with all digits."""
        lines = [(place, run, i) for place, run in enumerate(self.runs) for i in range(len(run.curve.at))]
        return {
            "run": [run.name for _, run, _ in lines],
            "source": [self.origin(place) for place, _, _ in lines],
            "sigma": [run.sigma for _, run, _ in lines],
            "alpha": [run.alpha for _, run, _ in lines],
            "radius": [run.curve.at[i] for _, run, i in lines],
            "certified": [run.curve.certified[i] for _, run, i in lines],
            "n": [run.curve.n for _, run, _ in lines],
            "value": [run.curve.values[i] for _, run, i in lines],
            "text": [run.curve.texts[i] for _, run, i in lines],
            "certified_as_printed": [run.printed.certified[i] for _, run, i in lines],
        }


def counted_radii(at: Sequence[float]) -> str:
    """So many radii."""
    return f"{len(at):,} {'radius' if len(at) == 1 else 'radii'}"


def compare(sources: Any, at: Any = None, *, alpha: float = 0.001) -> Comparison:
    """Certified accuracy, its best over σ, average radius, distribution of p_A and dominance of several runs.

    Parameters
    ----------
    sources
        Counts of runs, imported logs or VoteRecords; names must differ.
    at
        Radii. Default: from 0 to the largest certified one in even steps.
    alpha
        Level at which votes are certified. Logs keep their own.
    """
    runs, records = compared_runs(sources, at, alpha)
    pairs: tuple[Dominance, ...] = ()
    if len(runs) > 1:
        pairs = dominance_table([run.distribution for run in runs], **common_setting(runs))
    return Comparison(runs, best_accuracy([run.curve for run in runs]), pairs, notes_of(runs, records))


def compared_runs(sources: Any, at: Any, alpha: float) -> tuple[tuple[Compared, ...], list[VoteRecord]]:
    """Each run on its own, all at the same radii, and what is known of its votes."""
    alpha = failure_probability(alpha, "alpha")
    several = list(sources)
    if not several:
        raise InputError("sources is empty; pass at least one run or log")
    records = [as_record(each) for each in several]
    records = [record if record.name else replace(record, name=f"run {i}") for i, record in enumerate(records, 1)]
    names = [record.name for record in records]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two runs are called {name!r}; give them different names")
    printed = [_printed(each, record, alpha) for each, record in zip(several, records, strict=True)]
    where = _default_radii([radii for radii, _ in printed]) if at is None else check_at(at)
    runs = tuple(
        _compared(each, record, radii, level, where)
        for each, record, (radii, level) in zip(several, records, printed, strict=True)
    )
    return runs, records


def common_setting(runs: Sequence[Compared]) -> dict[str, Any]:
    """The setting at which runs of different σ are compared: the fewest draws, the largest alpha."""
    return {"n": min(run.draws[0] for run in runs), "alpha": max(run.alpha for run in runs)}


def _printed(source: Any, record: VoteRecord, alpha: float) -> tuple[NDArray[np.float64], float]:
    """Radii as a run certifies or a log prints them, and their level."""
    if hasattr(source, "record"):
        return source.radii, source.alpha
    return record.radii(alpha), alpha


def _default_radii(radii: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Steps of 1/4, or as coarse a multiple as keeps the table short, up to the largest radius."""
    largest = max((float(np.nanmax(each)) for each in radii if not np.isnan(each).all()), default=0.0)
    step = 0.25 if largest >= 0.25 else max(largest, 1e-3) / 4
    while largest / step >= _MOST_RADII:
        step *= 2
    return step * np.arange(int(largest / step) + 1, dtype=np.float64)


def _compared(
    source: Any, record: VoteRecord, radii: NDArray[np.float64], alpha: float, at: NDArray[np.float64]
) -> Compared:
    draws = int(record.draws.min()), int(record.draws.max())
    trivial = trivial_average_radius(record.label, sigma=record.sigma, n=draws[1], alpha=alpha)
    return Compared(
        name=record.name,
        sigma=record.sigma,
        draws=draws,
        alpha=alpha,
        n=len(record),
        n_abstained=int(np.isnan(radii).sum()),
        curve=certified_accuracy(record.radii(alpha), record.correct, at, name=record.name),
        printed=certified_accuracy(radii, record.correct, at, name=record.name),
        average=average_certified_radius(
            radii, record.correct, trivial=trivial, name=record.name, as_printed=hasattr(source, "record")
        ),
        distribution=PaDistribution.of(record),
        notes=tuple(getattr(source, "notes", ())),
    )


def notes_of(runs: Sequence[Compared], records: Sequence[VoteRecord]) -> tuple[str, ...]:
    notes: list[str] = []
    first = records[0]
    for other in records[1:]:
        if not (np.array_equal(other.index, first.index) and np.array_equal(other.label, first.label)):
            notes.append(
                f"{first.name} and {other.name} are about different samples, so part of a difference may be theirs."
            )
    if len({(run.draws, run.alpha) for run in runs}) > 1:
        notes.append(
            "The runs differ in draws or alpha, which changes certified radii; the distribution of p_A depends on "
            "draws alone, in that shares of fewer are coarser and more spread out."
        )
    if len(runs) > 1:
        total = short_text(min(1.0, math.fsum(run.alpha for run in runs)), "upper")
        notes.append(
            f"Each run's radius of a sample may fail with probability alpha; the best of {len(runs)} runs, chosen "
            f"after looking, with up to {total}. All of alpha goes to the prediction here, a quarter of it in "
            "certificates that also bound confidences."
        )
    if any(run.average.as_printed for run in runs):
        notes.append(
            "Of logs, certified accuracy is by the fewest votes that the printed radii allow, and the average "
            "certified radius by the radii as printed."
        )
    for run in runs:
        more = max(a - b for a, b in zip(run.printed.certified, run.curve.certified, strict=True))
        if more > 0:
            notes.append(
                f"{run.name}: by the radii as printed, rounded to nearest, up to {more} more of {run.n} samples would "
                "count at a radius."
            )
    return tuple(notes)
