"""Which model has the best certified calibration among those that are about as accurate? Several runs per method."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import numpy as np

from certcal._base.checks import InputError, shortened
from certcal._base.json import PlainValues
from certcal._base.progress import ProgressLike, as_reporter
from certcal._base.signature import Option, Range, Takes, several, verb
from certcal._base.text import counted
from certcal.lab.logs import check_same_samples, on_common_samples
from certcal.result import Result
from certcal.smoothing import Certificates, Counts, Run, certificates, open_run
from certcal.smoothing.robustness import VoteRecord
from certcal.verbs.certification import radius_text
from certcal.verdict import Candidate
from certcal.worst_case import brier_score, calibration_error

if TYPE_CHECKING:
    from certcal.lab.study import Matrix
    from certcal.worst_case import WorstCase

RunSource = str | os.PathLike[str] | Run | Counts
# What is correlated by rank, and its name in tables (Figure 19).
RANKED = {
    "certified_accuracy": "certified accuracy",
    "calibration_error": "calibration error",
    "brier_score": "Brier score",
    "average_certified_radius": "average certified radius",
}


@dataclass(frozen=True, eq=False)
class CertifiedModel(PlainValues, keys="method model=name radius n_certified **values"):
    """One model at one radius."""

    method: str
    name: str
    """The method that it competes for, and what tells it from others of the method."""
    radius: float
    """Of the perturbations."""
    accuracy: float
    """Share of samples that are certified and right."""
    error: WorstCase
    error_all: WorstCase
    brier: WorstCase
    """Exact worst cases of what is certified: the calibration error, that over all samples, and the Brier score."""
    average_certified_radius: float
    """Of the run, whatever the radius."""
    n_certified: int
    """Number of certified samples."""

    @property
    def values(self) -> dict[str, float]:
        """The numbers by their names in tables."""
        return {
            "certified_accuracy": self.accuracy,
            "calibration_error": self.error.value,
            "calibration_error_all": self.error_all.value,
            "brier_score": self.brier.value,
            "average_certified_radius": self.average_certified_radius,
        }


@dataclass(frozen=True, eq=False)
class ChosenAt(
    PlainValues,
    keys="radius highest_certified_accuracy=highest by_calibration_error=by_error by_brier_score=by_brier pareto",
):
    """The comparison at one radius."""

    radius: float
    highest: float
    """The radius, and the highest certified accuracy of any model there; 0 where no model certifies anything."""
    by_error: Mapping[str, CertifiedModel]
    by_brier: Mapping[str, CertifiedModel]
    """The best model of each method among those that are about as accurate: by the calibration error, and by the Brier
    score. A method without such a model is missing."""
    pareto: tuple[CertifiedModel, ...]
    """Models that no other beats in certified accuracy without having a larger calibration error (appendix I.2)."""


@dataclass(frozen=True, eq=False, repr=False)
class ModelChoice(Result, keys="conventions n notes methods chosen=at models"):
    """Certified accuracy and calibration of several models of several methods, and the best of each.

    What is said of each model holds where its certificates do; that a model was chosen among several by these very
    numbers makes its own number optimistic for other samples.
    """

    view: ClassVar[str] = "certcal.lab.choose_view"

    methods: tuple[str, ...]
    """Their names, in the order given."""
    models: tuple[CertifiedModel, ...]
    """Every model at every radius at which it certifies anything."""
    at: tuple[ChosenAt, ...]
    """The comparison at each radius."""
    constant: Mapping[tuple[str, str], tuple[int, tuple[float, ...]]]
    """Per method and model, the certified Brier score at each radius over the samples that are certified at all radii
    (Figure 16b), and how many they are; empty when there are none."""
    conventions: Mapping[str, Any]
    """Radii, share, bins, closed, alpha and kind of certificate."""
    n: int
    """Number of samples that every model is judged on."""
    notes: tuple[str, ...] = ()
    """Which samples were left out, if not all runs have the same."""
    paths: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<ModelChoice: {counted(len(self.constant), 'model')} of {counted(len(self.methods), 'method')}>"

    @property
    def sources(self) -> Sequence[str]:
        """The folders of the runs."""
        return self.paths

    @property
    def baseline(self) -> str:
        """The method that changes are relative to."""
        return str(self.conventions["baseline"])

    def claims(self) -> Sequence[Any]:
        """The worst cases of the chosen models, then of all others."""
        first = [one for each in self.at for one in (*each.by_error.values(), *each.by_brier.values())]
        found = [claim for one in (*first, *self.models) for claim in (one.error, one.brier)]
        return tuple({id(claim): claim for claim in found}.values())

    @property
    def headline(self) -> CertifiedModel:
        """The smallest certified calibration error at the largest radius at which anything is certified."""
        last = [each for each in self.at if each.by_error][-1]
        return min(last.by_error.values(), key=lambda one: one.error.value)

    def candidates(self) -> Sequence[Candidate]:
        """The worst cases of the chosen models, of each method at each radius; the headline's first."""
        chosen = [("calibration_error", one.error, one) for each in self.at for one in each.by_error.values()]
        chosen += [("brier_score", one.brier, one) for each in self.at for one in each.by_brier.values()]
        return [
            Candidate.certified(
                claim, key, {"radius": one.radius, "method": one.method, "model": one.name}, group=one.method
            )
            for key, claim, one in sorted(chosen, key=lambda each: each[1] is not self.headline.error)
        ]

    @cached_property
    def correlations(self) -> Mapping[float, Matrix]:
        """Spearman's rank correlations of the four numbers over all models, by radius (Figure 19)."""
        from certcal.lab.study import correlations

        found: dict[float, Matrix] = {}
        for each in self.at:
            rows = [[one.values[key] for key in RANKED] for one in self.models if one.radius == each.radius]
            if len(rows) > 2:
                found[each.radius] = correlations(
                    rows, list(RANKED.values()), method="spearman", title=f"radius {radius_text(each.radius)}"
                )
        return found

    def changes(self, radius: float) -> list[tuple[CertifiedModel, float, float]]:
        """Each model with what it changes against the best baseline: accuracy and calibration error (Figure 4)."""
        here = [one for one in self.models if one.radius == radius]
        base = [one for one in here if one.method == self.baseline]
        if not base:
            return []
        best = max(base, key=lambda one: (one.accuracy, -one.error.value))
        return [(one, one.accuracy - best.accuracy, one.error.value - best.error.value) for one in here]

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            **super().contents(),
            "constant_subset": [
                {"method": method, "model": name, "samples": n, "brier_score": list(values)}
                for (method, name), (n, values) in self.constant.items()
            ],
            "rank_correlations": [
                {"radius": radius, "names": list(RANKED), "values": np.asarray(matrix.values).tolist()}
                for radius, matrix in self.correlations.items()
            ],
        }

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per model and radius."""
        chosen = {id(one) for each in self.at for one in each.by_error.values()}
        efficient = {id(one) for each in self.at for one in each.pareto}
        rows = self.models
        return {
            "radius": [one.radius for one in rows],
            "method": [one.method for one in rows],
            "model": [one.name for one in rows],
            "certified": [one.n_certified for one in rows],
            **{key: [one.values[key] for one in rows] for key in rows[0].values},
            "chosen": [id(one) in chosen for one in rows],
            "pareto": [id(one) in efficient for one in rows],
        }


@verb()
def choose(
    models: Mapping[str, RunSource | Sequence[RunSource]],
    *,
    radii: Annotated[float | Iterable[float], Range(0), Option("--radius", "R")] = (0.05, 0.2, 0.5, 1.0),
    within: Annotated[float, Range(0, 1)] = 0.03,
    bins: Annotated[int, Range(1, 10_000)] = 15,
    closed: Literal["left", "right"] = "left",
    alpha: Annotated[float, Takes("failure")] = 0.001,
    confidence: Literal["tangent", "tight", "bernstein", "cdf", "standard"] = "tangent",
    samples: Literal["all", "common"] = "all",
    baseline: Annotated[str | None, Takes("text"), Option(metavar="METHOD")] = None,
    progress: ProgressLike = True,
) -> ModelChoice:
    """Find each method's model with the best certified calibration among those that are about as accurate.

    The rule of Emde et al. (2024), Tables 2 and 6 to 10: at each radius, models whose certified accuracy is within 3 %
    of the highest are compared, and each method is represented by the one of them with the smallest certified
    calibration error (or Brier score). The calibration error here is the exact worst case, not what ADMM finds.

    Runs on different samples are refused, since part of every difference would be theirs; ``samples="common"`` judges
    all on those that every run has.

    Parameters
    ----------
    models
        Runs by method: folders, opened runs or counts, one or several each.
    radii
        Radii at which models are compared.
    within
        How far below the highest certified accuracy a model may be to be compared, as a share of all samples.
    bins
        Number of bins of the calibration error.
    closed
        Closed end of each bin.
    alpha
        Failure probability of each sample's certificate.
    confidence
        Kind of certificate: tangent, tight, bernstein, cdf, standard.
    samples
        Which samples: all, which the runs must share, or the common ones of all runs.
    baseline
        Method that changes are relative to. Default: the first.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import certcal, numpy as np
    >>> from certcal.smoothing import Counts
    >>> def run(mean):
    ...     draws = np.random.default_rng(0).beta(20 * mean, 20 * (1 - mean), (20, 500))
    ...     return Counts.from_confidences(draws, np.linspace(0.01, 0.99, 99), votes=[480] * 20, sigma=0.5)
    >>> found = certcal.choose({"AT": run(0.8), "ACT": [run(0.85), run(0.9)]}, radii=[0.1])
    >>> found.at[0].by_error["ACT"].name, round(found.at[0].highest, 2)
    ('run 2', 1.0)
    """
    progress = as_reporter(progress)
    given, notes = _keep_common_samples(_read_runs(models), samples)
    base = next(iter(given)) if baseline is None else baseline
    if base not in given:
        raise InputError(f"{shortened(base)} is not one of {', '.join(given)}", argument="baseline")
    radii = tuple(sorted(set(several(radii))))
    if not radii:
        raise InputError("there is none", argument="radii", remedy="give at least one radius")
    progress.stage("certifying", len(radii) * sum(map(len, given.values())))
    found: list[CertifiedModel] = []
    constant: dict[tuple[str, str], tuple[int, tuple[float, ...]]] = {}
    for method, runs in given.items():
        for name, counts in runs.items():
            made = [certificates(counts, radius, alpha, confidence) for radius in radii]
            mean_radius = float(np.mean(np.where(made[0].correct, np.nan_to_num(made[0].radii), 0.0)))
            found += [_certify_model(method, name, one, mean_radius, bins, closed) for one in made if one.n_certified]
            constant[method, name] = _constant_subset_brier(made)
            progress.advance(len(radii))
    if not found:
        raise InputError("no model certifies any sample at these radii", argument="radii", remedy="give smaller ones")
    here = {radius: [one for one in found if one.radius == radius] for radius in radii}
    return ModelChoice(
        tuple(given),
        tuple(found),
        tuple(best_within(radius, tuple(given), cells, within) for radius, cells in here.items()),
        constant,
        {
            "radii": list(radii),
            "within": within,
            "bins": bins,
            "closed": closed,
            "alpha": alpha,
            "confidence": confidence,
            "samples": samples,
            "baseline": base,
        },
        len(next(iter(next(iter(given.values())).values()))),
        notes,
        tuple(os.fspath(cast("str", one)) for own in models.values() for one in _as_list(own) if _is_path(one)),
    )


def best_within(radius: float, methods: Sequence[str], models: Sequence[CertifiedModel], within: float) -> ChosenAt:
    """The paper's rule at one radius: of the models near the highest certified accuracy, each method's best."""
    highest = max((one.accuracy for one in models), default=0.0)
    close = [one for one in models if one.accuracy >= highest - within - 1e-12]

    def best(key: str) -> dict[str, CertifiedModel]:
        own = {method: [one for one in close if one.method == method] for method in methods}
        return {method: min(some, key=lambda one: one.values[key]) for method, some in own.items() if some}

    pareto = tuple(
        one
        for one in models
        if not any(
            other.accuracy >= one.accuracy
            and other.error.value <= one.error.value
            and (other.accuracy, -other.error.value) != (one.accuracy, -one.error.value)
            for other in models
        )
    )
    return ChosenAt(radius, highest, best("calibration_error"), best("brier_score"), pareto)


def _certify_model(
    method: str, name: str, one: Certificates, mean_radius: float, bins: int, closed: str
) -> CertifiedModel:
    arrays = (one.lower, one.upper, one.correct)
    error = calibration_error(*arrays, bins, closed=closed, certified=one.certified)
    brier = brier_score(*arrays, certified=one.certified)
    accuracy = float(np.mean(one.certified & one.correct))
    return CertifiedModel(
        method, name, one.radius, accuracy, error, error.all_samples or error, brier, mean_radius, one.n_certified
    )


def _constant_subset_brier(made: Sequence[Certificates]) -> tuple[int, tuple[float, ...]]:
    """Number of samples certified at every radius, and their certified Brier score at each."""
    keep = np.logical_and.reduce([one.certified for one in made])
    if not keep.any():
        return 0, ()
    scores = [brier_score(one.lower[keep], one.upper[keep], one.correct[keep]).value for one in made]
    return int(keep.sum()), tuple(scores)


def _is_path(each: Any) -> bool:
    return isinstance(each, str | os.PathLike)


def _as_list(runs: Any) -> list[Any]:
    return list(runs) if isinstance(runs, list | tuple) else [runs]  # pyright: ignore


def _read_runs(models: Any) -> dict[str, dict[str, Counts]]:
    if not isinstance(models, Mapping) or not models:
        raise InputError("models is no mapping from methods to runs; pass such as {'AT': ['run1', 'run2']}")
    found: dict[str, dict[str, Counts]] = {}
    for method, runs in cast("Mapping[Any, Any]", models).items():
        own = found.setdefault(str(method), {})
        for place, each in enumerate(_as_list(runs), 1):
            if _is_path(each):
                path = Path(cast("str", each))
                if not path.is_dir():
                    raise InputError(f"{path} is not the folder of a run", remedy="sample one first")
                own[os.fspath(cast("str", each))] = open_run(path).counts()
            elif isinstance(each, Run):
                own[str(each.path)] = each.counts()
            elif isinstance(each, Counts):
                own[f"run {place}"] = each
            else:
                raise InputError(f"models[{method!r}] holds {type(each).__name__}; pass folders of runs, or runs")
        if not own:
            raise InputError(f"models[{method!r}] is empty; pass at least one run")
    return found


def _keep_common_samples(
    given: Mapping[str, Mapping[str, Counts]], samples: str
) -> tuple[dict[str, dict[str, Counts]], tuple[str, ...]]:
    """Counts of samples that all runs have, and what was left out; runs on different ones are refused unless asked."""
    places = [(method, name) for method, runs in given.items() for name in runs]
    sources = [given[method][name] for method, name in places]
    records = [VoteRecord.from_counts(each, f"{m} ({name})") for each, (m, name) in zip(sources, places, strict=True)]
    if samples == "all":
        check_same_samples(records)
    cut, _, notes = on_common_samples(sources, records, samples)
    found: dict[str, dict[str, Counts]] = {method: {} for method in given}
    for (method, name), counts in zip(places, cut, strict=True):
        found[method][name] = counts
    return found, tuple(notes)
