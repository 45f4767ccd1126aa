"""Can a map repair the confidences, also in the worst case? Fit one to some samples, and judge it on the others."""

from __future__ import annotations

import copy
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import certcal
from certcal._assumptions import own_map
from certcal._checks import InputError
from certcal._progress import SILENT, Progress
from certcal._settings import Settings, setting, takes
from certcal._text import counted
from certcal.calibrators import (
    CERTIFIED_METHODS,
    PREDICTION_METHODS,
    TRADEOFFS,
    Calibrator,
    CertifiedSamples,
    FittedOn,
    FrontPoint,
    IntervalCalibrator,
    Judged,
    certified_path,
    default_method,
    described,
    fit_predictions,
    front_of,
    judge,
    radius_shares,
    recalibrated,
    save,
    split_positions,
)
from certcal.claims import ORDER, Frozen, in_full, short_text
from certcal.data import fingerprint_of, load_table
from certcal.metrics import Measurements, measure, top_label_brier_score
from certcal.predictions import Predictions
from certcal.result import Result
from certcal.verbs.certified_samples import ROLES, UNKNOWN, CertifyingSettings, Source, load_certified, source_of
from certcal.verbs.measure import BRACKETS

if TYPE_CHECKING:
    from certcal.data import Layout
    from certcal.verbs.apply_map import MappedTable

IDENTITY = "as it is"
CONSTANT = "one constant confidence"
_FEW = 10
_LONGEST_NAME = 500
_MOST_WEIGHT = 1e100  # beyond it sums of weights are not finite


@dataclass(frozen=True)
class FittingSettings(Settings):
    """How a map is fitted and judged."""

    method: Any = setting(  # noqa: RUF009
        None,
        "Calibrator: isotonic, temperature or beta for certified samples; for predictions also platt, histogram, "
        "equal-mass, vector or matrix. Default: isotonic for certified samples, temperature for logits and "
        "probabilities, platt for confidences.",
        "word",
        choices=tuple(sorted({*PREDICTION_METHODS, *CERTIFIED_METHODS})),
        own=True,
        metavar="METHOD",
    )
    tradeoff: float | None = setting(
        None,
        "Weight of the worst case in the fit, from 0 (clean confidences only) to 1. Default: 0.5; 1 where the clean "
        "confidences are not known.",
        "number",
        least=0,
        most=1,
        metavar="L",
    )
    tradeoffs: tuple[float, ...] | None = setting(
        None,
        "Trade-offs to compare with. Default: 0,0.25,0.5,0.75,1.",
        "number",
        many=True,
        least=0,
        most=1,
        metavar="L",
    )
    fraction: float = setting(0.5, "Fraction of the samples used for fitting.", "share")
    seed: int = setting(0, "Random seed of the split.", "whole", least=0, most=2**63 - 1)
    fit_on_all: bool = setting(False, "Fit to all samples; nothing can then be claimed about the map.", "flag")
    map_bins: int | None = setting(
        None, "Number of bins of the map, for histogram and equal-mass.", "whole", least=1, most=1_000_000
    )
    bins: int = setting(15, "Number of bins of the calibration error.", "whole", least=1, most=10_000)
    closed: str = setting("left", "Closed end of each bin.", "word", choices=("left", "right"))
    radius_weight: tuple[float, ...] | None = setting(
        None,
        "Weights of the radii in the fit, in their order. Default: equal.",
        "number",
        many=True,
        ordered=True,
        least=0,
        most=_MOST_WEIGHT,
        metavar="W",
    )
    delta: float = setting(0.05, "Failure probability of each population bound.", "failure")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius_weight is not None and not any(self.radius_weight):
            raise InputError("all weights are 0", argument="radius_weight", remedy="give at least one above 0")


@dataclass(frozen=True)
class RecalibrateSettings(FittingSettings, CertifyingSettings):
    """How samples are certified, and how a map is fitted to them and judged.

    Examples
    --------
    >>> RecalibrateSettings(tradeoff=1).tradeoff, RecalibrateSettings(radii=0.5).radii
    (1.0, (0.5,))
    """


@dataclass(frozen=True, eq=False, repr=False)
class Recalibration(Result):
    """A map that was fitted to samples. What it does to others is in the two kinds of this result.

    Attributes
    ----------
    source
        Name of the file or folder, or what is in memory.
    about
        Further facts for machines: columns, or the run.
    description
        The same in a line for people.
    method
        Name of the calibrator.
    map
        The calibrator, fitted.
    fitted_on
        Which samples it was fitted to.
    n_fit, n_held_out
        Numbers of samples: fitted to, and judged on. No sample is in both.
    conventions
        Bins, closed, fraction, seed and, for certified samples, delta.
    notes
        What a reader should know, one sentence each.
    """

    view: ClassVar[str] = "certcal.report.views.recalibrated_predictions"

    source: str
    about: Mapping[str, Any]
    description: str
    method: str
    map: Any
    fitted_on: FittedOn
    n_fit: int
    n_held_out: int
    conventions: Mapping[str, Any]
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "conventions", Frozen(self.conventions))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.source}: {described(self.map)}, fitted to {self.n_fit:,}, judged on "
            f"{self.n_held_out:,}>"
        )

    @property
    def seeds(self) -> Mapping[str, int]:
        """Of the split, and of the noise of a run."""
        noise = {"noise of the run": self.about["run"].get("seed")} if "run" in self.about else {}
        split = {"split of the samples": self.conventions["seed"]} if self.n_held_out else {}
        return {name: seed for name, seed in (split | noise).items() if seed is not None}

    @property
    def sources(self) -> Sequence[str]:
        """The file or folder."""
        return (self.source,)

    def claims(self) -> Sequence[Any]:
        """Nothing: no sample was held out."""
        return ()

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Nothing: no sample was held out."""
        return {}

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON, without the samples."""
        return {
            "certcal": certcal.__version__,
            "source": self.source,
            "method": self.method,
            "n_fit": self.n_fit,
            "n_held_out": self.n_held_out,
            **self._judged(),
            "map": self.map.to_dict() if isinstance(self.map, Calibrator) else {"type": described(self.map)},
            **self.about,
            "conventions": {**self.conventions, "bins_are": BRACKETS[self.conventions["closed"]]},
            "claims": [in_full(claim) for claim in self.claims()],
            "notes": list(self.notes),
        }

    def _judged(self) -> dict[str, Any]:
        return {}

    def save(self, path: str | os.PathLike[str], *, force: bool = False, **options: Any) -> Path:
        """Write the map (.json), which :func:`certcal.calibrators.load` reads, or the answer in any other form.

        Parameters
        ----------
        path
            Where to; its ending decides the form. The numbers as JSON are :meth:`to_json`.
        force
            Replace an existing file.
        options
            Of :meth:`report`, for a page.
        """
        target = Path(path)
        if target.suffix.lower() != ".json":
            return super().save(target, force=force, **options)
        save(self.map, target, fitted_on=self.fitted_on, force=force)
        return target

    def apply(self, data: Any, **options: Any) -> MappedTable:
        """The map applied to other samples, or to those of the same source that it was not fitted to.

        Parameters
        ----------
        data
            As for :func:`certcal.recalibrate`; predictions need no labels.
        options
            Of :func:`certcal.apply_map`.
        """
        from certcal.verbs.apply_map import apply_map

        return apply_map(self, data, **options)


@dataclass(frozen=True, eq=False, repr=False)
class PredictionRecalibration(Recalibration):
    """What a map does to predictions that it was not fitted to; estimates, nothing is claimed about an attack.

    Attributes
    ----------
    before, after
        Measurements of the held-out samples, as they are and after the map.

    Examples
    --------
    >>> import certcal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.uniform(0, 1, 4000)
    >>> r = certcal.recalibrate({"confidence": z, "correct": rng.random(4000) < z**2})
    >>> r.method, r.n_fit, r.after["ece"].value < r.before["ece"].value / 2
    ('platt', 2000, True)
    """

    before: Measurements
    after: Measurements

    def claims(self) -> Sequence[Any]:
        """The ECE after the map, then the other estimates after it, then those before."""
        rows = sorted(self.after.rows, key=lambda row: row.name != "ece")
        return (*rows, *self.before.rows)

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per metric before and after the map, with all digits."""
        lines = [(IDENTITY, row) for row in self.before.rows] + [(self.method, row) for row in self.after.rows]
        return {
            "map": [name for name, _ in lines],
            "metric": [row.name for _, row in lines],
            "bins": [row.settings.get("bins") for _, row in lines],
            "value": [float(row.value) for _, row in lines],
            "n": [row.n for _, row in lines],
        }

    def _judged(self) -> dict[str, Any]:
        both = {"before": self.before.to_dict(), "after": self.after.to_dict()}
        return {"calibrator": described(self.map), **both}


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedRecalibration(Recalibration):
    """What maps do to certified confidences of samples that they were not fitted to.

    Attributes
    ----------
    radii, radius_weight
        At which the maps are fitted and judged, and the share of each.
    tradeoff
        λ of the map that was asked for; None for a calibrator that has none.
    lines
        The identity first, then every map.
    front
        The same maps' clean against certified Brier scores.
    before, after
        Held-out samples as they are, and after the map that was asked for.

    Examples
    --------
    >>> import certcal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.uniform(0.3, 1, 2000)
    >>> correct = rng.random(2000) < z**2
    >>> samples = CertifiedSamples.from_intervals(np.maximum(z - 0.1, 0), np.minimum(z + 0.1, 1), correct, z)
    >>> r = certcal.recalibrate(samples)
    >>> worst = [line.at[0].summary["brier_score"].worst.value for line in (r.identity, r.chosen)]
    >>> worst[1] < worst[0]
    True
    """

    view: ClassVar[str] = "certcal.report.views.recalibration"

    radii: tuple[str, ...]
    radius_weight: tuple[float, ...]
    tradeoff: float | None
    lines: tuple[Judged, ...]
    front: tuple[FrontPoint, ...]
    before: CertifiedSamples
    after: CertifiedSamples

    @property
    def identity(self) -> Judged:
        """The confidences as they are."""
        return self.lines[0]

    @property
    def chosen(self) -> Judged:
        """The map that was asked for."""
        return next(line for line in self.lines if line.calibrator is self.map)

    @property
    def constant(self) -> FrontPoint | None:
        """Scores on the held-out samples of one constant confidence, the accuracy of the fit's certified samples.

        It is the constant with the least certified Brier score on the samples of the fit, with the weights of the
        radii. None when nothing was certified there. Its scores on the samples of the fit are not kept.
        """
        parts = [
            (weight, float(at.gain.settings["constant"]))
            for weight, at in zip(self.radius_weight, self.identity.at, strict=True)
            if at.gain is not None and weight > 0
        ]
        if not parts:
            return None
        confidence = float(np.average([value for _, value in parts], weights=[weight for weight, _ in parts]))
        correct, certified = self.before.correct, self.before.certified

        def score(outcomes: Any) -> float:
            return top_label_brier_score(np.full(outcomes.size, confidence), outcomes)

        weights = [w if certified[:, k].any() else 0.0 for k, w in enumerate(self.radius_weight)]
        worst = [score(correct[certified[:, k]]) for k, weight in enumerate(weights) if weight > 0]
        clean = None if self.before.confidence is None else score(correct)
        held_out = float(np.average(worst, weights=[weight for weight in weights if weight > 0]))
        return FrontPoint(CONSTANT, None, (None, None), (clean, held_out))

    def claims(self) -> Sequence[Any]:
        """Of the map that was asked for, at the largest radius: the calibration error first."""
        last = self.chosen.at[-1]
        worst = [ranges.worst or ranges.worst_all for ranges in map(last.summary.__getitem__, _WORST)]
        bound = last.summary.population or last.summary.population_all
        found = [last.claim, *worst, bound, last.gain, *self.chosen.clean.values()]
        return tuple(claim for claim in found if claim is not None)

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per map, radius and claim, with all digits; estimates without a perturbation have no radius."""
        names = ("map", "tradeoff", "chosen", "radius", "claim", "samples", "n", "value", "text", "sentence")
        lines: list[tuple[Any, ...]] = []
        for line in self.lines:
            start = (line.name, line.tradeoff, int(line is self.chosen))
            for radius, key, samples, claim in _claims(line):
                value = float(claim.value)
                lines.append(
                    (*start, radius, key, samples, claim.n, value, getattr(claim, "text", value), in_full(claim))
                )
        return dict(zip(names, zip(*lines, strict=True), strict=True))

    def _judged(self) -> dict[str, Any]:
        return {
            "radii": list(self.radii),
            "radius_weight": list(self.radius_weight),
            "tradeoff": self.tradeoff,
            "lines": [line.to_dict() for line in self.lines],
            "front": [point.to_dict() for point in self.front],
        }


_WORST = ("calibration_error", "brier_score")


def _claims(line: Judged) -> Iterator[tuple[str, str, str, Any]]:
    """Radius, key, samples and claim."""
    for key, estimate in line.clean.items():
        yield "", key, "all", estimate
    for one in line.at:
        for key, samples, claim in one.summary.claims():
            yield one.radius, key, samples, claim
        if one.claim is not None:
            yield one.radius, "claimed_calibration_error", str(one.claim.settings["samples"]), one.claim
        if one.gain is not None:
            yield one.radius, "gain_over_constant", "certified", one.gain


@takes(RecalibrateSettings, ROLES)
def recalibrate(
    data: Any,
    *,
    columns: Mapping[str, Any] | None = None,
    source: str | None = None,
    progress: Progress = SILENT,
    settings: RecalibrateSettings,
) -> Recalibration:
    """Fit a map to one part of the samples, and judge it on the others.

    Certified samples (a run, a table of intervals): a map that never turns the order of two confidences round keeps
    certificates, so it can be fitted to be best in the worst case, without a perturbation, or in between. The result is
    a :class:`CertifiedRecalibration`. What is claimed is with :func:`certcal.worst_case.certify` and
    :func:`certcal.calibrators.gain_over`: the maps are fitted to other samples than those they are judged on, so given
    the map, the held-out samples are fresh draws, and bounds on the population hold. Each map and radius has bounds of
    its own, each of which may fail with probability delta. Choose the trade-off before looking; for the best of k that
    were looked at, pass delta / k.

    Predictions: temperature scaling and the like, with estimates before and after: :class:`PredictionRecalibration`.

    Keywords beside those below are the fields of :class:`RecalibrateSettings`: method, tradeoff, tradeoffs, fraction,
    seed, fit_on_all, map_bins, bins, closed, radius_weight, delta; and for what is certified first, radii, alpha,
    familywise, drawn_only, confidence.

    Parameters
    ----------
    data
        A run (its folder, or open), a table of intervals or of predictions (a file, or in memory),
        :class:`~certcal.calibrators.CertifiedSamples` or :class:`~certcal.Predictions`.
    columns
        Columns of a table by role where their names do not say it.
    source
        What is recalibrated, in a few words; by default the name of the file or folder.
    progress
        Where to report how far the work is.
    settings
        All settings at once. ``method`` may be a calibrator of one's own, of which a copy is fitted: see
        :class:`~certcal.calibrators.ConfidenceCalibrator`, :class:`~certcal.calibrators.ScoreCalibrator` and
        :class:`~certcal.calibrators.IntervalCalibrator`.

    Examples
    --------
    >>> import certcal
    >>> table = {"confidence": [0.6, 0.7, 0.8, 0.9] * 50, "correct": [0, 1, 1, 1] * 50}
    >>> r = certcal.recalibrate(table, method="isotonic")
    >>> r
    <PredictionRecalibration of table: IsotonicCalibration(), fitted to 100, judged on 100>
    >>> r.apply(table).written
    100
    """
    given = source_of(data, columns, settings)
    if given.kind == "predictions":
        found = _of_predictions(given, columns, settings, progress)
    else:
        found = _of_certified(given, columns, settings, progress)
    return found if source is None else replace(found, source=source)


def _of_predictions(
    given: Source, columns: Mapping[str, Any] | None, settings: RecalibrateSettings, progress: Progress
) -> Recalibration:
    progress.stage("reading")
    loaded = None if isinstance(given.data, Predictions) else load_table(given.data, columns)
    predictions: Predictions = given.data if loaded is None else loaded.predictions
    used = _fitted_on(given, prediction_fingerprint(predictions), len(predictions), settings)
    method = default_method(predictions) if settings.method is None else settings.method
    common: dict[str, Any] = {
        "source": given.name,
        "about": {"kind": predictions.kind},
        "description": counted(len(predictions), "sample"),
        "method": method if isinstance(method, str) else type(method).__name__,
        "fitted_on": used,
        "conventions": {each: getattr(settings, each) for each in ("bins", "closed", "fraction", "seed")},
    }
    if loaded is not None:
        common["fitted_on"] = replace(used, classes=class_names(loaded.layout))
        common["description"] += f"; {loaded.layout.description}"
        common["about"] = {"columns": loaded.layout.to_dict()}
    progress.stage("fitting")
    if settings.fit_on_all:
        return _on_all(fit_predictions(predictions, method, map_bins=settings.map_bins), common)
    parts = split_positions(len(predictions), settings.fraction, settings.seed)
    fit, rest = (predictions.select(rows) for rows in parts)
    fitted = fit_predictions(fit, method, map_bins=settings.map_bins)
    progress.stage("measuring")
    both = (rest, recalibrated(fitted, rest))
    proper = ("nll", "brier_score") if both[1].probabilities is not None else ()
    metrics = (*proper, "top_label_nll", "top_label_brier_score", "ece", "accuracy", "auroc")
    before, after = (measure(each, bins=settings.bins, closed=settings.closed, metrics=metrics) for each in both)
    return PredictionRecalibration(
        **common,
        map=fitted,
        n_fit=len(fit),
        n_held_out=len(rest),
        notes=(*_prediction_notes(fit, rest), *_infinite(after)),
        before=before,
        after=after,
    )


def _of_certified(
    given: Source, columns: Mapping[str, Any] | None, settings: RecalibrateSettings, progress: Progress
) -> Recalibration:
    loaded = load_certified(given, columns, settings, progress)
    samples, weights, method = loaded.samples, _weights(loaded.samples, settings), settings.method
    levels: list[float | None]
    levels, wanted = _levels(samples, settings)
    name = "isotonic" if method is None else method if isinstance(method, str) else type(method).__name__
    common: dict[str, Any] = {
        "source": given.name,
        "about": loaded.about,
        "description": loaded.description,
        "method": name,
        "fitted_on": replace(_fitted_on(given, samples.fingerprint, len(samples), settings), run=loaded.run),
        "conventions": {each: getattr(settings, each) for each in ("bins", "closed", "delta", "fraction", "seed")},
    }
    progress.stage("fitting" if settings.fit_on_all else "fitting and judging")
    if settings.fit_on_all:
        return _on_all(_maps(samples, method, [wanted], weights)[0], common)
    fit, rest = samples.split(settings.fraction, settings.seed)
    shares = radius_shares(fit, weights)
    if not any(shares) and wanted == 0:
        levels = [wanted]
    constant = tuple(float(fit.correct[kept].mean()) if kept.any() else None for kept in fit.certified.T)
    judging: dict[str, Any] = {each: getattr(settings, each) for each in ("bins", "closed", "delta")}
    judging["assumptions"] = (ORDER,)
    maps: list[Any] = list(_maps(fit, method, levels, weights))
    lines = [judge(rest, None, constant, name=IDENTITY, **judging)]
    if not type(maps[0]).__module__.startswith("certcal."):  # those here are proved to hold what they map
        judging["assumptions"] = (ORDER, own_map(name))
    for level, each in zip(levels, maps, strict=True):
        words = name if level is None else f"{name}, λ = {level:g}"
        lines.append(judge(rest, each, constant, name=words, method=name, tradeoff=level, **judging))
    chosen = maps[levels.index(wanted)]
    return CertifiedRecalibration(
        **common,
        map=chosen,
        n_fit=len(fit),
        n_held_out=len(rest),
        notes=(*_certified_notes(fit, rest, len(levels) * len(samples.radii), settings.delta), loaded.note),
        radii=samples.radii,
        radius_weight=shares,
        tradeoff=wanted,
        lines=tuple(lines),
        front=front_of(fit, rest, lines, weights),
        before=rest,
        after=rest.mapped(chosen),
    )


def _on_all(fitted: Any, common: dict[str, Any]) -> Recalibration:
    n = common["fitted_on"].n
    note = (
        f"{described(fitted)} was fitted to all {counted(n, 'sample')}. Nothing was held out, so nothing is claimed "
        "about it and no numbers are shown: on the samples of the fit they would flatter the map. Judge it on other "
        "samples."
    )
    return Recalibration(**common, map=fitted, n_fit=n, n_held_out=0, notes=(note,))


def _levels(samples: CertifiedSamples, settings: RecalibrateSettings) -> tuple[list[Any], float | None]:
    """Trade-offs to fit at, ascending, and the one that is wanted; without clean confidences there is only 1."""
    known, method = samples.confidence is not None, settings.method
    if not (method is None or isinstance(method, str)):
        for each in ("tradeoff", "tradeoffs"):
            if getattr(settings, each) is not None:
                reason = f"it is for the methods {', '.join(CERTIFIED_METHODS)}, and the method is a calibrator"
                raise InputError(reason, argument=each, remedy="leave it out")
        own = getattr(method, "tradeoff", None)
        return [own], own
    if method is not None and method not in CERTIFIED_METHODS:
        remedy = f"choose one of {', '.join(CERTIFIED_METHODS)}"
        raise InputError(f"{method} is for a table of predictions", argument="method", remedy=remedy)
    for each, several in (("tradeoff", (settings.tradeoff,)), ("tradeoffs", settings.tradeoffs or ())):
        for level in several:
            if level is not None and level < 1 and not known:
                raise InputError(
                    f"{level:g} also fits to confidences without a perturbation, and those of {samples.source} are not "
                    "known",
                    argument=each,
                    remedy="name their column, or give 1",
                )
    wanted = (0.5 if known else 1.0) if settings.tradeoff is None else settings.tradeoff
    if wanted > 0 and not samples.certified.any():
        where = "" if UNKNOWN in samples.radii else f" at radius {', '.join(samples.radii)}"
        remedy = "other intervals" if UNKNOWN in samples.radii else "a smaller radius"
        raise InputError(
            f"{samples.source}: no sample is certified{where}, so there is no worst case to fit to; give {remedy}, or "
            "a trade-off of 0"
        )
    others = TRADEOFFS if settings.tradeoffs is None else settings.tradeoffs
    return sorted({wanted, *(level for level in others if known or level == 1)}), wanted


def _maps(
    samples: CertifiedSamples, method: Any, levels: Sequence[Any], weights: Sequence[float] | None
) -> Sequence[Any]:
    """Maps by name at each trade-off, or a copy of somebody's own, fitted."""
    if method is None or isinstance(method, str):
        return certified_path(samples, levels, method=method or "isotonic", radius_weight=weights)
    made, name = copy.deepcopy(method), type(method).__name__
    if not isinstance(made, IntervalCalibrator):
        raise InputError(
            f"{name} has no predict and intervals(lower, upper), and certificates go through both",
            argument="method",
            remedy=f"add them, or choose one of {', '.join(CERTIFIED_METHODS)}",
        )
    own: Any = made
    if hasattr(own, "fit_samples"):
        own.fit_samples(samples, weights)
    elif samples.confidence is None:
        reason = f"{name} is fitted to confidences without a perturbation, and those of {samples.source} are not known"
        raise InputError(reason, argument="method", remedy="name their column, or give the calibrator fit_samples")
    else:
        own.fit(samples.confidence, samples.correct)
    return [own]


def _weights(samples: CertifiedSamples, settings: RecalibrateSettings) -> tuple[float, ...] | None:
    """Weights of the radii, which are ascending whatever the order in which they were given."""
    given, radii = settings.radius_weight, samples.radii
    if given is None:
        return None
    if len(given) != len(radii):
        reason = f"{counted(len(given), 'weight')} for {len(radii)} radii ({', '.join(radii)})"
        raise InputError(reason, argument="radius_weight", remedy="give one for each")
    order = np.argsort(settings.radii) if settings.radii is not None else range(len(given))
    return tuple(given[place] for place in order)


def _fitted_on(given: Source, fingerprint: str | None, n: int, settings: RecalibrateSettings) -> FittedOn:
    """Which samples a map is fitted to, for its file."""
    known = fingerprint is not None and re.fullmatch("[0-9a-f]{64}", fingerprint) is not None
    kind = "intervals" if given.kind == "samples" else given.kind
    name = re.sub(r"[/\\\x00-\x1f]", "_", Path(given.name).resolve().name)[:_LONGEST_NAME] or kind
    split = (1.0, 0) if settings.fit_on_all else (settings.fraction, settings.seed)
    return FittedOn(name, kind, fingerprint if known else None, n, *split)


def class_names(layout: Layout) -> tuple[str, ...] | None:
    """What the columns call the classes, unless they are numbered from 0 or given in order."""
    return None if layout.family is None or layout.family.is_ordered else layout.family.classes


def prediction_fingerprint(predictions: Predictions) -> str:
    """What tells predictions from others.

    Examples
    --------
    >>> len(prediction_fingerprint(Predictions.from_confidence([0.5], [1])))
    64
    """
    scores = predictions.logits if predictions.kind == "logits" else predictions.probabilities
    if scores is None:
        return fingerprint_of(predictions.confidence, predictions.correct)
    return fingerprint_of(scores, predictions.labels)


def _prediction_notes(fit: Predictions, rest: Predictions) -> list[str]:
    fitted, others = counted(len(fit), "sample"), counted(len(rest), "other")
    notes = [f"The map was fitted to {fitted} and measured on {others}; no sample is in both parts."]
    right = int(np.count_nonzero(fit.correct))
    if right in (0, len(fit)):
        notes.append(f"All samples of the fit are {'correct' if right else 'wrong'}: little can be learned from them.")
    return notes + _few(len(fit))


def _few(n: int) -> list[str]:
    few = "1 sample is" if n == 1 else f"{n} samples are"
    return [f"{few} very few to fit a map to: expect it to be far from the best one."] if n < _FEW else []


def _infinite(after: Measurements) -> list[str]:
    if all(math.isfinite(row.value) for row in after.rows if row.name in ("nll", "top_label_nll")):
        return []
    return ["The log loss is infinite where a map makes a confidence 0 or 1 and the sample says otherwise."]


def _certified_notes(fit: CertifiedSamples, rest: CertifiedSamples, looks: int, delta: float) -> list[str]:
    fitted, others = counted(len(fit), "sample"), counted(len(rest), "other")
    notes = [f"Maps were fitted to {fitted} and judged on {others}; no sample is in both parts."]
    if looks > 1:
        level = short_text(delta, "upper")
        notes.append(
            f"Each bound on the population may fail with probability {level} of its own. To report the best of the "
            f"{looks} (maps times radii) as if it had been chosen before, divide delta by {looks} first."
        )
    notes += _few(len(fit))
    right = int(fit.correct.sum())
    if right in (0, len(fit)):
        what = "correct" if right else "wrong"
        notes.append(f"All samples of the fit are {what}: they do not tell which confidences to trust.")
    wide = fit.certified & (fit.lower <= 0) & (fit.upper >= 1)
    if fit.certified.any() and (wide == fit.certified).all():
        notes.append("Every certified interval of the fit is [0, 1]: no map beats a constant in the worst case.")
    return notes


__all__ = [
    "CertifiedRecalibration",
    "PredictionRecalibration",
    "RecalibrateSettings",
    "Recalibration",
    "recalibrate",
]
