"""Methods beside each other, each at one or several noise levels: what average certified radius hides between them.

A run or log without a name of its method is a family of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, groupby
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, failure_probability
from certcal.claims import short_text
from certcal.lab.logs._accuracies import AccuracyDifference, accuracy_differences
from certcal.lab.logs._budgets import DEFAULT_BUDGETS, check_budgets, setting_tables
from certcal.lab.logs._calibration import CertifiedCalibration, certified_calibration
from certcal.lab.logs._chance import Chance, chance
from certcal.lab.logs._comparison import Compared, Comparison, RunFamily
from certcal.lab.logs._dominance import dominance_table
from certcal.lab.logs._graph import DominanceGraph, graph_of_best, graph_of_shares
from certcal.lab.logs._repeats import RepeatedRuns, pool_runs
from certcal.lab.logs._samples import UNPAIRED, check_same_samples, find_different_samples, on_common_samples
from certcal.smoothing import Counts
from certcal.smoothing.robustness.accuracy import (
    AccuracyCurve,
    AccuracySteps,
    average_certified_radius,
    best_accuracy,
    certified_accuracy,
    check_at,
    trivial_average_radius,
)
from certcal.smoothing.robustness.distribution import PaDistribution
from certcal.smoothing.robustness.votes import VoteRecord, as_record, named

LEVEL = 0.05
_MOST_RADII = 12
_ONE_NETWORK = (
    "Where there is one network per method and sigma, what another training of the same method would give is not in "
    "the statements."
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


@names_wrong_types
def compare(
    sources: Iterable[Any] | Mapping[str, Any],
    at: Any = None,
    *,
    alpha: float = 0.001,
    budgets: Sequence[Any] = DEFAULT_BUDGETS,
    calibration_at: Sequence[float] | None = None,
    level: float = LEVEL,
    samples: str = "all",
    names: Sequence[str] | None = None,
) -> Comparison:
    """Compare runs and logs, or training methods by their runs at several noise levels.

    Parameters
    ----------
    sources
        Counts of runs, imported logs or VoteRecords, whose names must differ; or per method those of its runs, all
        over the same samples. Several of a method at one σ are other seeds of one training: their values are means
        over them.
    at
        Radii. Default: from 0 to the largest certified one in even steps.
    alpha
        Level at which votes are certified. Logs keep their own.
    budgets
        Pairs of draws and alpha at which certified accuracy is read off the distribution of p_A.
    calibration_at
        Radii at which confidences are certified. Default: ``at``, or 0 and multiples of the smallest σ; pass () for
        none.
    level
        Probability with which any statement of a graph on what is beyond chance may be wrong: shared equally among its
        pairs. Such statements are about shares of as many votes as the runs have, not about p_A. The graphs of
        different σ have it each, and so have all differences at the radii.
    samples
        "common" to compare on the samples that all runs have, where "all" refuses methods over different ones;
        "unpaired" to compare them nevertheless, as independent samples.
    names
        What those runs are called that have neither a method nor a name of their own.

    Examples
    --------
    >>> plain = VoteRecord.of([90, 90, 80], 100, [1, 1, 1], sigma=1.0)
    >>> sharp = VoteRecord.of([100, 100, 30], 100, [1, 1, 1], sigma=1.0)
    >>> found = compare({"gaussian": [plain], "acr": [sharp]}, at=[0, 0.5, 1])
    >>> found.best.names
    (('gaussian',), ('gaussian', 'acr'), ('acr',))
    >>> print(found.graphs[0].contradiction)
    average certified radius ranks acr > gaussian, but the curves put 0 of 1 pair in that order and 1 in none: acr and
    gaussian.
    """
    level = failure_probability(level, "level")
    asked = check_budgets(budgets)
    of_methods = isinstance(sources, Mapping)
    members = _members_of_methods(cast("Any", sources)) if of_methods else _single_members(sources, names)
    given = [named(one.source, one.name) for one in members]
    known = [as_record(each) for each in given]
    if of_methods and samples == "all":
        check_same_samples(known)
    cut, separate, left_out = on_common_samples(given, known, samples)
    different = find_different_samples(separate)
    several: dict[tuple[str, float], list[int]] = {}
    for place, one in enumerate(members):
        several.setdefault((one.family, one.sigma), []).append(place)
    together = [
        cut[own[0]] if len(own) == 1 else pool_runs([cut[i] for i in own], f"{family} {sigma:g}")
        for (family, sigma), own in several.items()
    ]
    records = [as_record(each) for each in together]
    compared = zip(several.items(), _compared_runs(together, records, at, alpha), records, strict=True)
    held = [ComparedMember(family, replace(run, runs=len(own)), record) for ((family, _), own), run, record in compared]
    runs = [one.run for one in held]
    of_family = {one.family: tuple(each.run for each in held if each.family == one.family) for one in members}
    families = tuple(RunFamily(name, own, best_accuracy([run.curve for run in own])) for name, own in of_family.items())
    by_sigma = {
        sigma: [(one.family, one.run) for one in held if one.run.sigma == sigma]
        for sigma in sorted({run.sigma for run in runs})
    }
    repeats = tuple(
        RepeatedRuns(*key, _compared_runs([cut[i] for i in own], [separate[i] for i in own], runs[0].curve.at, alpha))
        for key, own in several.items()
        if len(own) > 1
    )
    if samples == "unpaired":
        left_out, different = [UNPAIRED], None
    elif different is not None:
        left_out = [f"{different[0]} ({different[1]}), and part of a difference may be theirs."]
    return Comparison(
        families,
        best_accuracy([_best_of(family) for family in families]),
        _graphs(families, held, level if samples != "unpaired" and different is None else None),
        (*left_out, *_notes(runs, members)),
        budgets=setting_tables(by_sigma, asked),
        differences=_differences(held, level, paired=samples != "unpaired") if different is None else (),
        calibration=_certify_calibration(members, separate, at if calibration_at is None else calibration_at, alpha),
        repeats=repeats,
    )


class FamilyMember(NamedTuple):
    """A run or log of one method at one noise level; numbered where there are several."""

    family: str
    name: str
    sigma: float
    source: Any
    number: int = 0


class ComparedMember(NamedTuple):
    """One method at one noise level, after its runs were pooled."""

    family: str
    run: Compared
    record: VoteRecord


def _single_members(sources: Iterable[Any], names: Sequence[str] | None) -> list[FamilyMember]:
    """Each run a family of its own."""
    several = list(sources)
    if not several:
        raise InputError("sources is empty; pass at least one run or log")
    called = [""] * len(several) if names is None else list(names)
    if len(called) != len(several):
        raise InputError(f"names has {len(called)} entries for {len(several)} sources; pass one for each")
    members: list[FamilyMember] = []
    for i, (source, other) in enumerate(zip(several, called, strict=True), 1):
        record = as_record(source, getattr(source, "name", "") or other)
        name = record.name or other or f"run {i}"
        if name in [one.name for one in members]:
            raise InputError(f"two runs are called {name!r}; give them different names")
        members.append(FamilyMember(name, name, record.sigma, source))
    return members


def _members_of_methods(sources: Mapping[Any, Any]) -> list[FamilyMember]:
    """All runs, method after method, by σ."""
    if not sources:
        raise InputError("sources holds no families; pass a mapping from names of methods to lists of their runs")
    members: list[FamilyMember] = []
    for family, several in sources.items():
        if not isinstance(family, str) or not family.strip():
            raise InputError(f"{family!r} is no name of a family; pass a text such as 'gaussian'")
        given = list(cast("Sequence[Any]", several)) if isinstance(several, Sequence) else [several]
        if not given:
            raise InputError(f"family {family!r} has no runs; pass at least one")
        own = sorted(((as_record(each).sigma, each) for each in given), key=lambda pair: pair[0])
        for sigma, group in groupby(own, key=lambda pair: pair[0]):
            same, name = [source for _, source in group], f"{family} {sigma:g}"
            if len(same) == 1:
                members.append(FamilyMember(family, name, sigma, same[0]))
            else:
                members += [FamilyMember(family, f"{name} #{i}", sigma, each, i) for i, each in enumerate(same, 1)]
    return members


def _best_of(family: RunFamily) -> AccuracyCurve:
    """A family's best over σ as a curve of its own, out of a number that all its runs divide."""
    whole = math.lcm(*(run.n for run in family.runs))
    shares = zip(*(run.curve.fractions for run in family.runs), strict=True)
    return AccuracyCurve(family.name, family.best.at, tuple(int(max(several) * whole) for several in shares), whole)


def _graphs(
    families: Sequence[RunFamily], held: Sequence[ComparedMember], level: float | None
) -> tuple[DominanceGraph, ...]:
    if len(families) < 2:
        return ()
    runs = [one.run for one in held]
    if len(held) == len(families):
        return (_graph_of_runs(held, _chances(held, level)),)
    graphs: list[DominanceGraph] = []
    for sigma in sorted({run.sigma for run in runs}):
        several = [one for one in held if one.run.sigma == sigma]
        if len(several) > 1:
            graphs.append(_graph_of_runs(several, _chances(several, level)))
    shares = {family.name: [run.distribution for run in family.runs] for family in families}
    return (*graphs, graph_of_best(shares, **_common_setting(runs)))


def _graph_of_runs(several: Sequence[ComparedMember], chances: Sequence[Chance]) -> DominanceGraph:
    """One run of each method: over p where σ is the same, else over radii."""
    shares = [replace(one.run.distribution, name=one.family) for one in several]
    if len({one.run.sigma for one in several}) == 1:
        return graph_of_shares(shares, {one.family: one.run.average.value for one in several}, chances)
    pairs = dominance_table(shares, **_common_setting([one.run for one in several]))
    return DominanceGraph(None, tuple(one.family for one in several), pairs, {}, tuple(chances))


def _common_setting(runs: Sequence[Compared]) -> dict[str, Any]:
    """The setting at which runs of different σ are compared: the fewest draws, the largest alpha."""
    return {"n": min(run.draws[0] for run in runs), "alpha": max(run.alpha for run in runs)}


def _chances(several: Sequence[ComparedMember], level: float | None) -> list[Chance]:
    """Every pair of one σ, each with its share of the level; none without a level, where samples are not paired.

    None unless all are single runs with shares out of the same number: those of fewer draws spread more.
    """
    same_draws = len({count for one in several for count in one.run.draws}) == 1
    if level is None or not same_draws or any(one.run.runs > 1 for one in several):
        return []
    pairs = [(a, b) for a, b in combinations(several, 2) if a.run.sigma == b.run.sigma]
    values = {one.family: _values(one.record) for one in several}
    draws = several[0].run.draws[0]
    return [
        chance(a.family, b.family, values[a.family], values[b.family], level=level / len(pairs), draws=draws)
        for a, b in pairs
    ]


def _differences(held: Sequence[ComparedMember], level: float, *, paired: bool) -> tuple[AccuracyDifference, ...]:
    """Certified accuracies of every pair of single runs: of one σ or, where no method has several, of any two."""
    alone = len({one.family for one in held}) == len(held)
    members = [(one.family, one.run.sigma, _certified_at_radii(one)) for one in held]
    single = [place for place, one in enumerate(held) if one.run.runs == 1]
    pairs = [(i, j) for i, j in combinations(single, 2) if alone or held[i].run.sigma == held[j].run.sigma]
    return accuracy_differences(members, held[0].run.curve.at, level, pairs=pairs, paired=paired)


def _certified_at_radii(one: ComparedMember) -> NDArray[np.bool_]:
    """Which samples are certified at which radius, in the order of the samples' numbers."""
    order = np.argsort(one.record.index, kind="stable")
    radii, correct = one.record.radii(one.run.alpha)[order], one.record.correct[order]
    return correct & (radii >= np.asarray(one.run.curve.at)[:, None])


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
    notes = [*_notes_of_logs(runs), *_cautions(runs)]
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
            notes.append(_ONE_NETWORK)
    return tuple(notes)


def _compared_runs(
    several: Sequence[Any], records: Sequence[VoteRecord], at: Any, alpha: float
) -> tuple[Compared, ...]:
    """Each run on its own, all at the same radii."""
    alpha = failure_probability(alpha, "alpha")
    # Radii as a run certifies or a log prints them, and their level.
    printed = [
        (each.radii, each.alpha) if hasattr(each, "record") else (record.radii(alpha), alpha)
        for each, record in zip(several, records, strict=True)
    ]
    where = _default_radii([radii for radii, _ in printed]) if at is None else check_at(at)
    return tuple(
        _compared_run(each, record, radii, level, where)
        for each, record, (radii, level) in zip(several, records, printed, strict=True)
    )


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


def _cautions(runs: Sequence[Compared]) -> tuple[str, ...]:
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


def _notes_of_logs(runs: Sequence[Compared]) -> list[str]:
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
