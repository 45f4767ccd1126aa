"""Methods beside each other, each at several noise levels: what average certified radius hides between them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, failure_probability
from certcal._base.text import capital
from certcal.lab.logs._budgets import DEFAULT_BUDGETS, check_settings, setting_tables
from certcal.lab.logs._calibration import CertifiedCalibration, certified_calibration
from certcal.lab.logs._chance import Chance, chance
from certcal.lab.logs._compare import (
    Compared,
    Comparison,
    RunFamily,
    common_setting,
    compared_runs,
    notes_of,
    notes_of_logs,
)
from certcal.lab.logs._graph import DominanceGraph, graph_of_best, graph_of_shares
from certcal.lab.logs._repeats import RepeatedRuns, pool_runs
from certcal.lab.logs._samples import UNPAIRED, check_same_samples, on_common_samples
from certcal.smoothing import Counts
from certcal.smoothing.robustness.accuracy import AccuracyCurve, best_accuracy
from certcal.smoothing.robustness.votes import VoteRecord, as_record, named

LEVEL = 0.05
_WHERE = ("draws", "alpha", "radius", "p", "other")
COLUMNS = ("family", "sigma", "quantity", "samples", *_WHERE, "value", "upper", "text")
# Where the curve P(p_A >= p) is written.
AT_P = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
_ONE_NETWORK = (
    "Every family has one network per sigma here: what another training of the same method would give is not in any of "
    "the statements."
)
_SOME_NETWORKS = (
    "Where a family has one network at a sigma, what another training of the same method would give is not in the "
    "statements."
)
_POOLED = (
    "Where a family has several runs at a sigma, all its values are means over them, and nothing is said of what is "
    "beyond chance: that is tested on single runs."
)
_FIRST_RUN = "Certified calibration is that of the first of them."
_OTHER_DRAWS = (
    "Where numbers of draws differ at one sigma, nothing is said of what is beyond chance: shares of fewer draws are "
    "more spread out, so that even equal networks differ in them."
)


@dataclass(frozen=True, eq=False, repr=False)
class FamilyComparison(Comparison):
    """Families of runs beside each other. Made by :func:`certcal.compare`."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found: of each graph, who is better, what the average radius adds, and what is beyond chance."""
        told = ((graph.statement, graph.contradiction, graph.beyond_chance) for graph in self.graphs)
        return tuple(capital(sentence) for group in told for sentence in group if sentence)

    def __repr__(self) -> str:
        return f"<FamilyComparison of {', '.join(self.names)} at sigma {', '.join(f'{s:g}' for s in self.sigmas)}>"

    def claims(self) -> Sequence[DominanceGraph]:
        """Every graph."""
        return self.graphs

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "sources": [
                {"family": family.name, "sigma": run.sigma, "run": run.name, "source": self.origin(run)}
                for family in self.families
                for run in family.runs
            ],
            "type": "comparison of families",
            "at": list(self.at),
            "families": [family.to_dict() for family in self.families],
            "best": self.best.to_dict(),
            "settings": [each.to_dict() for each in self.settings],
            "graphs": [graph.to_dict() for graph in self.graphs],
            "calibration": [each.to_dict() for each in self.calibration],
            "repeats": [each.to_dict() | {"sources": [self.origin(run) for run in each.runs]} for each in self.repeats],
            "sentences": list(self.sentences),
            "notes": list(self.notes),
        }

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per number, with all digits: what it is, of whom, and where."""
        rows = list(self._rows())
        return {name: [row.get(name) for row in rows] for name in COLUMNS}

    def _rows(self) -> Iterator[dict[str, Any]]:
        for family in self.families:
            for run in family.runs:
                yield from _run_rows(family.name, run)
        for family in self.families:
            for radius, value, text in zip(self.at, family.best.values, family.best.texts, strict=True):
                best = {"quantity": "best_certified_accuracy", "samples": "all"}
                yield {"family": family.name, **best, "radius": radius, "value": value, "text": text}
        for table in self.settings:
            for name, values in table.rows:
                for i, radius in enumerate(values.at.tolist()):
                    yield {
                        "family": name,
                        "sigma": table.sigma,
                        "quantity": "converted_certified_accuracy",
                        "samples": "all",
                        **table.setting.to_dict(),
                        "radius": radius,
                        "p": float(values.p[i]),
                        "value": float(values.lower[i]),
                        "upper": float(values.upper[i]),
                    }
        for one in self.calibration:
            yield from _calibration_rows(one)
        for several in self.repeats:
            yield from _repeat_rows(several)
        for graph in self.graphs:
            where = {} if graph.sigma is None else {"sigma": graph.sigma}
            for quantity, edges in (
                ("better_than", graph.edges),
                ("strictly_better_than", graph.strict_edges),
                ("better_than_beyond_chance", graph.firm_edges),
            ):
                for better, worse in edges:
                    yield {"family": better, **where, "quantity": quantity, "other": worse}


@names_wrong_types
def compare_families(
    sources: Mapping[str, Sequence[Any]],
    at: Any = None,
    *,
    alpha: float = 0.001,
    settings: Sequence[Any] = DEFAULT_BUDGETS,
    calibration_at: Sequence[float] | None = None,
    level: float = LEVEL,
    samples: str = "all",
) -> FamilyComparison:
    """Compare training methods, each by its runs at several noise levels, on the same samples.

    Parameters
    ----------
    sources
        Per method its counts of runs, imported logs or VoteRecords. Several at one σ are other seeds of one training:
        their values are means over them.
    at
        Radii. Default: from 0 to the largest certified one in even steps.
    alpha
        Level at which votes are certified. Logs keep their own.
    settings
        Pairs of draws and alpha at which certified accuracy is read off the distribution of p_A.
    calibration_at
        Radii at which confidences are certified. Default: ``at``, or 0 and multiples of the smallest σ; pass () for
        none.
    level
        Probability with which any statement of a graph on what is beyond chance may be wrong: shared equally among its
        pairs. Such statements are about shares of as many votes as the runs have, not about p_A. The graphs of
        different σ have it each.
    samples
        "common" to compare on the samples that all runs have, where "all" refuses runs over different ones; "unpaired"
        to compare them nevertheless, with nothing said about sampling error.

    Examples
    --------
    >>> plain = VoteRecord.of([90, 90, 80], 100, [1, 1, 1], sigma=1.0)
    >>> sharp = VoteRecord.of([100, 100, 30], 100, [1, 1, 1], sigma=1.0)
    >>> found = compare_families({"gaussian": [plain], "acr": [sharp]}, at=[0, 0.5, 1])
    >>> found.best.names
    (('gaussian',), ('gaussian', 'acr'), ('acr',))
    >>> print(found.graphs[0].contradiction)
    average certified radius ranks acr > gaussian, but the curves put 0 of 1 pair in that order and 1 in none: acr and
    gaussian.
    """
    level = failure_probability(level, "level")
    asked = check_settings(settings)
    members = _members(sources)
    given = [named(one.source, one.name) for one in members]
    known = [as_record(each) for each in given]
    if samples == "all":
        check_same_samples(known)
    cut, separate, left_out = on_common_samples(given, known, samples)
    together = _pool_repeats(members, cut)
    records = [as_record(each) for each in together.values()]
    runs = compared_runs(list(together.values()), records, at, alpha)
    counts = Counter((one.family, one.sigma) for one in members)
    held = [
        ComparedMember(family, replace(run, runs=counts[family, sigma]), record)
        for (family, sigma), run, record in zip(together, runs, records, strict=True)
    ]
    runs = [one.run for one in held]
    families = tuple(_family(name, held) for name in dict.fromkeys(one.family for one in members))
    best = best_accuracy([_best_of(family) for family in families])
    by_sigma = {sigma: [one for one in held if one.run.sigma == sigma] for sigma in sorted({r.sigma for r in runs})}
    by_name = {sigma: [(one.family, one.run) for one in some] for sigma, some in by_sigma.items()}
    return FamilyComparison(
        families,
        best,
        _graphs(families, by_sigma, None if samples == "unpaired" else level),
        (*([UNPAIRED] if samples == "unpaired" else left_out), *_notes(runs, members)),
        settings=setting_tables(by_name, asked),
        calibration=_certify_calibration(members, separate, at if calibration_at is None else calibration_at, alpha),
        repeats=_group_repeats(members, cut, separate, runs[0].curve.at, alpha),
    )


def _pool_repeats(members: Sequence[FamilyMember], sources: Sequence[Any]) -> dict[tuple[str, float], Any]:
    """One source per method and noise level; several are pooled."""
    several: dict[tuple[str, float], list[Any]] = {}
    for one, source in zip(members, sources, strict=True):
        several.setdefault((one.family, one.sigma), []).append(source)
    return {
        (family, sigma): own[0] if len(own) == 1 else pool_runs(own, f"{family} {sigma:g}")
        for (family, sigma), own in several.items()
    }


def _group_repeats(
    members: Sequence[FamilyMember], sources: Sequence[Any], records: Sequence[VoteRecord], at: Any, alpha: float
) -> tuple[RepeatedRuns, ...]:
    """Every run of a method that has several at a noise level."""
    places: dict[tuple[str, float], list[int]] = {}
    for place, one in enumerate(members):
        places.setdefault((one.family, one.sigma), []).append(place)
    return tuple(
        RepeatedRuns(family, sigma, compared_runs([sources[i] for i in own], [records[i] for i in own], at, alpha))
        for (family, sigma), own in places.items()
        if len(own) > 1
    )


class FamilyMember(NamedTuple):
    """A run or log of one method at one noise level."""

    family: str
    sigma: float
    source: Any
    number: int = 0

    @property
    def name(self) -> str:
        """Name of the run; with a number where there are several."""
        return f"{self.family} {self.sigma:g}" + (f" #{self.number}" if self.number else "")


class ComparedMember(NamedTuple):
    """One method at one noise level, after its runs were pooled."""

    family: str
    run: Compared
    record: VoteRecord


def _members(sources: Any) -> list[FamilyMember]:
    """All runs, family after family, by σ."""
    if not isinstance(sources, Mapping) or not sources:
        raise InputError("sources holds no families; pass a mapping from names of methods to lists of their runs")
    members: list[FamilyMember] = []
    for name, several in cast("Mapping[Any, Any]", sources).items():
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{name!r} is no name of a family; pass a text such as 'gaussian'")
        given = list(cast("Sequence[Any]", several)) if isinstance(several, Sequence) else [several]
        if not given:
            raise InputError(f"family {name!r} has no runs; pass at least one")
        own = sorted((FamilyMember(name, as_record(each).sigma, each) for each in given), key=lambda one: one.sigma)
        for _, group in groupby(own, key=lambda one: one.sigma):
            same = list(group)
            members += same if len(same) == 1 else [one._replace(number=i) for i, one in enumerate(same, 1)]
    return members


def _family(name: str, held: Sequence[ComparedMember]) -> RunFamily:
    runs = tuple(one.run for one in held if one.family == name)
    return RunFamily(name, runs, best_accuracy([run.curve for run in runs]))


def _best_of(family: RunFamily) -> AccuracyCurve:
    """A family's best over σ as a curve of its own, out of a number that all its runs divide."""
    whole = math.lcm(*(run.n for run in family.runs))
    shares = zip(*(run.curve.fractions for run in family.runs), strict=True)
    return AccuracyCurve(family.name, family.best.at, tuple(int(max(several) * whole) for several in shares), whole)


def _graphs(
    families: Sequence[RunFamily], by_sigma: Mapping[float, Sequence[ComparedMember]], level: float | None
) -> tuple[DominanceGraph, ...]:
    graphs: list[DominanceGraph] = []
    for several in by_sigma.values():
        if len(several) > 1:
            shares = [replace(one.run.distribution, name=one.family) for one in several]
            averages = {one.family: one.run.average.value for one in several}
            chances = _chances(several, level) if level is not None and _same_draws(several) else ()
            graphs.append(graph_of_shares(shares, averages, chances))
    if len(families) > 1 and (not graphs or any(len(family.runs) > 1 for family in families)):
        runs = [run for family in families for run in family.runs]
        shares = {family.name: [run.distribution for run in family.runs] for family in families}
        graphs.append(graph_of_best(shares, **common_setting(runs)))
    return tuple(graphs)


def _same_draws(several: Sequence[ComparedMember]) -> bool:
    """Whether all are single runs, and all shares out of the same number: those of fewer draws spread more."""
    return len({count for one in several for count in one.run.draws}) == 1 and all(one.run.runs == 1 for one in several)


def _chances(several: Sequence[ComparedMember], level: float) -> list[Chance]:
    """Every pair, each with its share of the level."""
    pairs = list(combinations(several, 2))
    values = {one.family: _values(one.record) for one in several}
    draws = several[0].run.draws[0]
    return [
        chance(a.family, b.family, values[a.family], values[b.family], level=level / len(pairs), draws=draws)
        for a, b in pairs
    ]


def _values(record: VoteRecord) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of votes in the order of the samples' numbers."""
    order = np.argsort(record.index, kind="stable")
    low, high = record.values()
    return low[order], high[order]


def _certify_calibration(
    members: Sequence[FamilyMember], records: Sequence[VoteRecord], radii: Sequence[float] | None, alpha: float
) -> tuple[CertifiedCalibration, ...]:
    """Certified calibration of each run (the first of repeated ones), on the samples of its record."""
    given: list[tuple[str, Any]] = []
    for one, record in zip(members, records, strict=True):
        if isinstance(one.source, Counts) and one.number <= 1:
            given.append((one.family, one.source.select(np.flatnonzero(np.isin(one.source.index, record.index)))))
    return certified_calibration(given, radii, alpha)


def _notes(runs: Sequence[Compared], members: Sequence[FamilyMember]) -> tuple[str, ...]:
    notes = [*notes_of_logs(runs), *notes_of(runs)]
    without = [one.name for one in members if not isinstance(one.source, Counts)]
    if 0 < len(without) < len(members):
        notes.append(f"Without histograms of confidences, nothing is certified of those of {', '.join(without)}.")
    repeated = [run.name for run in runs if run.runs > 1]
    if repeated:
        notes.append(
            f"{_POOLED} {_FIRST_RUN if any(isinstance(one.source, Counts) for one in members) else ''}".strip()
        )
    if len({one.family for one in members}) > 1:
        if len({count for run in runs for count in run.draws}) > 1:
            notes.append(_OTHER_DRAWS)
        if len(repeated) < len(runs):
            notes.append(_ONE_NETWORK if not repeated else _SOME_NETWORKS)
    return tuple(notes)


def _run_rows(name: str, run: Compared) -> Iterator[dict[str, Any]]:
    about = {"family": name, "sigma": run.sigma, "samples": "all", "draws": run.draws[0], "alpha": run.alpha}
    for radius, value, text in zip(run.curve.at, run.curve.values, run.curve.texts, strict=True):
        yield {**about, "quantity": "certified_accuracy", "radius": radius, "value": value, "text": text}
    printed = {"text": "as printed"} if run.average.as_printed else {}
    for radius, value in zip(run.curve.at, run.printed.values, strict=True) if run.average.as_printed else ():
        yield {**about, "quantity": "certified_accuracy_as_printed", "radius": radius, "value": value, **printed}
    yield {**about, "quantity": "average_certified_radius", "value": run.average.value, **printed}
    lower, upper = run.distribution.survival(AT_P)
    for p, low, high in zip(AT_P, lower.tolist(), upper.tolist(), strict=True):
        yield {**about, "quantity": "share_with_p_a_at_least", "p": p, "value": low, "upper": high}


def _repeat_rows(several: RepeatedRuns) -> Iterator[dict[str, Any]]:
    about = {"family": several.family, "sigma": several.sigma, "samples": "all"}
    deviation = several.average.deviation
    yield {**about, "quantity": "standard_deviation_of_average_certified_radius", "value": deviation}
    for radius, spread in zip(several.runs[0].curve.at, several.accuracies, strict=True):
        quantity = "standard_deviation_of_certified_accuracy"
        yield {**about, "quantity": quantity, "radius": radius, "value": spread.deviation}


def _calibration_rows(one: CertifiedCalibration) -> Iterator[dict[str, Any]]:
    about = {"family": one.family, "sigma": one.sigma, "alpha": one.alpha}
    for radius, summary in zip(one.radii, one.summaries, strict=True):
        here = {**about, "radius": radius}
        yield {**here, "quantity": "certified_samples", "samples": "all", "value": summary.n_certified}
        for metric in ("calibration_error", "brier_score"):
            ranges = summary[metric]
            for samples, worst in (("certified", ranges.worst), ("all", ranges.worst_all)):
                if worst is not None:
                    worded = {"quantity": f"certified_{metric}", "samples": samples, "text": worst.text}
                    yield {**here, **worded, "value": worst.value}
        skill = summary.skill
        if skill.value == skill.value:  # not undefined
            worded = {"quantity": "certified_skill", "samples": "certified", "text": skill.text}
            yield {**here, **worded, "value": skill.value}
