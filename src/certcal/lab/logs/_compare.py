"""Several runs or logs beside each other: everything that is printed or plotted, prepared.

What is compared are families, the runs of one method at several noise levels; runs without a family are families of one
member each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, failure_probability
from certcal._base.json import PlainValues
from certcal.claims import short_text
from certcal.lab.logs._budgets import SettingTable
from certcal.lab.logs._calibration import CertifiedCalibration, certified_calibration
from certcal.lab.logs._dominance import Dominance, dominance_table
from certcal.lab.logs._graph import DominanceGraph
from certcal.lab.logs._repeats import RepeatedRuns
from certcal.lab.logs._samples import find_different_samples, on_common_samples
from certcal.result import Result
from certcal.smoothing.robustness.accuracy import (
    AccuracyCurve,
    AccuracySteps,
    AverageCertifiedRadius,
    BestCurve,
    average_certified_radius,
    best_accuracy,
    certified_accuracy,
    check_at,
    trivial_average_radius,
)
from certcal.smoothing.robustness.distribution import PaDistribution
from certcal.smoothing.robustness.votes import VoteRecord, as_record

_MOST_RADII = 12


@dataclass(frozen=True, eq=False)
class Compared(
    PlainValues,
    keys="name sigma draws alpha n n_abstained certified_accuracy=curve certified_as_printed=printed.certified "
    "average_certified_radius=average distribution notes runs",
):
    """One run or log in a comparison."""

    name: str
    """Of the run."""
    sigma: float
    draws: tuple[int, int]
    alpha: float
    """How it was certified; ``draws`` is the smallest and largest number per sample."""
    n: int
    n_abstained: int
    """Samples, and those without a certificate."""
    curve: AccuracyCurve
    """Certified accuracy; of a log by the fewest votes that its printed radii allow, so at least this."""
    printed: AccuracyCurve
    """The same by a log's radii as printed: above ``curve`` where they were rounded up. Of a run, ``curve``."""
    steps: AccuracySteps
    """``curve`` at every radius."""
    average: AverageCertifiedRadius
    """Average certified radius, with its warning; of a log by its radii as printed."""
    distribution: PaDistribution
    """Of p_A."""
    notes: tuple[str, ...] = ()
    """What a reader should know about a log."""
    runs: int = 1
    """How many runs these are, taken together: then all shares are means over them."""

    @property
    def percents(self) -> tuple[str, ...]:
        """Certified accuracy in per cent as tables have it: 22.96 (≥ 22.31) where a log's rounding leaves it open."""
        lines = zip(self.printed.certified, self.curve.certified, self.curve.percents, strict=True)
        return tuple(
            least if count == sure else f"{100 * count / self.n:.2f} (≥ {least})" for count, sure, least in lines
        )


@dataclass(frozen=True, eq=False)
class RunFamily(PlainValues):
    """One method at several noise levels."""

    name: str
    """Of the method."""
    runs: tuple[Compared, ...]
    """Smallest σ first; a run's name is that of the method and σ."""
    best: BestCurve
    """Highest certified accuracy over σ at each radius."""

    @property
    def sigmas(self) -> tuple[float, ...]:
        """Noise levels, smallest first."""
        return tuple(run.sigma for run in self.runs)

    @property
    def steps(self) -> AccuracySteps:
        """``best`` at every radius."""
        return AccuracySteps.highest(run.steps for run in self.runs)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Runs and logs beside each other. Made by :func:`certcal.compare`.

    Examples
    --------
    >>> easy = VoteRecord.of([100, 20], 100, [1, 1], sigma=1.0, label=[0, 1], name="trivial")
    >>> even = VoteRecord.of([90, 90], 100, [1, 1], sigma=1.0, label=[0, 1], name="even")
    >>> both = compare([easy, even], at=[0.5, 1.0])
    >>> [run.curve.texts for run in both.runs], both.best.names, both.dominance[0].verdict
    ([('0.5000', '0.5000'), ('1.0000', '0.0000')], (('even',), ('trivial',)), 'neither')
    """

    view: ClassVar[str] = "certcal.lab.logs.view"

    families: tuple[RunFamily, ...]
    """In the order given; of one run each unless they were named."""
    best: BestCurve
    """Whose certified accuracy is highest at each radius."""
    graphs: tuple[DominanceGraph, ...]
    """Who is better than whom. Of runs without families one graph of all; of families one per σ that at least two have,
    and by the best over σ at each radius if any has several, or if no two have the same."""
    notes: tuple[str, ...] = ()
    """What limits the comparison."""
    settings: tuple[SettingTable, ...] = ()
    """Of families: certified accuracy at other budgets and levels, one table per setting and σ."""
    calibration: tuple[CertifiedCalibration, ...] = ()
    """What is certified of confidences: of runs, since a log has none."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """File or folder of each run by the run's name, for those that were read from one."""
    repeats: tuple[RepeatedRuns, ...] = ()
    """Of families: where a method has several runs at a noise level, each of them."""

    def __repr__(self) -> str:
        radii = f"{len(self.at):,} {'radius' if len(self.at) == 1 else 'radii'}"
        return f"<Comparison of {', '.join(self.names)} at {radii}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the families."""
        return tuple(family.name for family in self.families)

    @property
    def at(self) -> tuple[float, ...]:
        """Radii."""
        return self.best.at

    @property
    def runs(self) -> tuple[Compared, ...]:
        """All runs, family after family."""
        return tuple(run for family in self.families for run in family.runs)

    @property
    def sigmas(self) -> tuple[float, ...]:
        """All noise levels, smallest first."""
        return tuple(sorted({run.sigma for run in self.runs}))

    def at_sigma(self, sigma: float) -> tuple[tuple[str, Compared], ...]:
        """Names of the families with a run at a noise level, and the runs.

        Parameters
        ----------
        sigma
            One of ``sigmas``.
        """
        return tuple((family.name, run) for family in self.families for run in family.runs if run.sigma == sigma)

    def origin(self, run: Compared) -> str:
        """File or folder of a run; empty when it was in memory.

        Parameters
        ----------
        run
            One of ``runs``.
        """
        return self.origins.get(run.name, "")

    @property
    def sources(self) -> Sequence[str]:
        """Files and folders that were read."""
        return tuple(dict.fromkeys(filter(None, map(self.origin, self.runs))))

    @property
    def dominance(self) -> tuple[Dominance, ...]:
        """Every verdict on a pair."""
        return tuple(pair for graph in self.graphs for pair in graph.pairs)

    def claims(self) -> Sequence[Any]:
        """Every verdict."""
        return self.dominance

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "runs": [{"source": self.origin(run)} | run.to_dict() for run in self.runs],
            "type": "comparison",
            "at": list(self.at),
            "best": self.best.to_dict(),
            "dominance": [pair.to_dict() for pair in self.dominance],
            "calibration": [each.to_dict() for each in self.calibration],
            "notes": list(self.notes),
        }

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per run and radius, with all digits."""
        rows = [
            {
                "run": run.name,
                "source": self.origin(run),
                "sigma": run.sigma,
                "alpha": run.alpha,
                "radius": radius,
                "certified": run.curve.certified[i],
                "n": run.curve.n,
                "value": run.curve.values[i],
                "text": run.curve.texts[i],
                "certified_as_printed": run.printed.certified[i],
                **self._calibration_at(run.name, radius),
            }
            for run in self.runs
            for i, radius in enumerate(self.at)
        ]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _calibration_at(self, name: str, radius: float) -> dict[str, Any]:
        """Columns of a run's certified calibration at a radius; none where no run has any."""
        if not self.calibration:
            return {}
        found = {
            where: summary
            for each in self.calibration
            if each.family == name
            for where, summary in zip(each.radii, each.summaries, strict=True)
        }.get(radius)
        return {
            f"certified_{key}{rest}": None if found is None else getattr(getattr(found[key], of), "value", None)
            for key in ("calibration_error", "brier_score")
            for rest, of in (("", "worst"), ("_all", "worst_all"))
        }


@names_wrong_types
def compare(
    sources: Iterable[Any],
    at: Any = None,
    *,
    alpha: float = 0.001,
    samples: str = "all",
    names: Sequence[str] | None = None,
) -> Comparison:
    """Certified accuracy, its best over σ, average radius, distribution of p_A, calibration and dominance of runs.

    Parameters
    ----------
    sources
        Counts of runs, imported logs or VoteRecords; names must differ.
    at
        Radii. Default: from 0 to the largest certified one in even steps; for calibration, 0 and multiples of σ.
    alpha
        Level at which votes are certified. Logs keep their own.
    samples
        "common" to compare on the samples that all runs have.
    names
        What those are called that have no name of their own.
    """
    several, records, cut = on_common_samples(*_vote_records(sources, names), samples)
    runs = compared_runs(several, records, at, alpha)
    families = tuple(RunFamily(run.name, (run,), best_accuracy([run.curve])) for run in runs)
    graphs: tuple[DominanceGraph, ...] = ()
    if len(runs) > 1:
        pairs = dominance_table([run.distribution for run in runs], **common_setting(runs))
        one = len({run.sigma for run in runs}) == 1
        averages = {run.name: run.average.value for run in runs} if one else {}
        graphs = (DominanceGraph(runs[0].sigma if one else None, tuple(run.name for run in runs), pairs, averages),)
    best = best_accuracy([run.curve for run in runs])
    calibration = certified_calibration([(run.name, each) for run, each in zip(runs, several, strict=True)], at, alpha)
    notes = (*cut, *_sample_notes(records), *notes_of(runs))
    return Comparison(families, best, graphs, notes, calibration=calibration)


def _vote_records(sources: Iterable[Any], names: Sequence[str] | None) -> tuple[list[Any], list[VoteRecord]]:
    """Sources, and what is known of the votes of each under its own name."""
    several = list(sources)
    if not several:
        raise InputError("sources is empty; pass at least one run or log")
    called = [] if names is None else list(names)
    if len(called) not in (0, len(several)):
        raise InputError(f"names has {len(called)} entries for {len(several)} sources; pass one for each")
    given = [getattr(each, "name", "") or (called[i] if called else "") for i, each in enumerate(several)]
    records = [as_record(each, name) for each, name in zip(several, given, strict=True)]
    records = [
        record if record.name else replace(record, name=name or f"run {i}")
        for i, (record, name) in enumerate(zip(records, given, strict=True), 1)
    ]
    names = [record.name for record in records]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two runs are called {name!r}; give them different names")
    return several, records


def compared_runs(several: Sequence[Any], records: Sequence[VoteRecord], at: Any, alpha: float) -> tuple[Compared, ...]:
    """Each run on its own, all at the same radii."""
    alpha = failure_probability(alpha, "alpha")
    printed = [_printed_radii(each, record, alpha) for each, record in zip(several, records, strict=True)]
    where = _default_radii([radii for radii, _ in printed]) if at is None else check_at(at)
    return tuple(
        _compared_run(each, record, radii, level, where)
        for each, record, (radii, level) in zip(several, records, printed, strict=True)
    )


def common_setting(runs: Sequence[Compared]) -> dict[str, Any]:
    """The setting at which runs of different σ are compared: the fewest draws, the largest alpha."""
    return {"n": min(run.draws[0] for run in runs), "alpha": max(run.alpha for run in runs)}


def _printed_radii(source: Any, record: VoteRecord, alpha: float) -> tuple[NDArray[np.float64], float]:
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


def _compared_run(
    source: Any, record: VoteRecord, radii: NDArray[np.float64], alpha: float, at: NDArray[np.float64]
) -> Compared:
    draws, sure = (int(record.draws.min()), int(record.draws.max())), record.radii(alpha)
    trivial = trivial_average_radius(record.label, sigma=record.sigma, n=draws[1], alpha=alpha)
    return Compared(
        name=record.name,
        sigma=record.sigma,
        draws=draws,
        alpha=alpha,
        n=len(record),
        n_abstained=int(np.isnan(radii).sum()),
        curve=certified_accuracy(sure, record.correct, at, name=record.name),
        printed=certified_accuracy(radii, record.correct, at, name=record.name),
        steps=AccuracySteps.of(sure, record.correct),
        average=average_certified_radius(
            radii, record.correct, trivial=trivial, name=record.name, as_printed=hasattr(source, "record")
        ),
        distribution=PaDistribution.of(record),
        notes=tuple(getattr(source, "notes", ())),
    )


def _sample_notes(records: Sequence[VoteRecord]) -> tuple[str, ...]:
    found = find_different_samples(records)
    return () if found is None else (f"{found[0]} ({found[1]}), and part of a difference may be theirs.",)


def notes_of(runs: Sequence[Compared]) -> tuple[str, ...]:
    """Cautions on a comparison as a whole."""
    notes: list[str] = []
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
            "Of logs, the average certified radius is by the radii as printed, and so is certified accuracy as "
            "published tables have it; charts, verdicts and the best are by the fewest votes that the printed radii "
            "allow, as is what stands after ≥."
        )
    return tuple(notes)


@names_wrong_types
def notes_of_logs(runs: Sequence[Compared]) -> list[str]:
    """Cautions on single logs; one that holds for several is said once."""
    whose: dict[str, list[str]] = {}
    for run in runs:
        for note in run.notes:
            whose.setdefault(note, []).append(run.name)
    several = len(runs) > 1
    return [
        f"{f'All {len(runs)} logs' if len(names) == len(runs) and several else ', '.join(names)}: {note}"
        for note, names in whose.items()
    ]
