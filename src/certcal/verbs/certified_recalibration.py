"""Can a map repair certified confidences in the worst case? Maps fitted to some samples, and judged on the others."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from certcal._base.assumptions import own_map
from certcal._base.checks import InputError
from certcal._base.progress import Progress
from certcal._base.rounding import minus, sure_text
from certcal._base.text import counted
from certcal.calibrators import (
    CERTIFIED_METHODS,
    TRADEOFFS,
    CertifiedSamples,
    FrontPoint,
    IntervalCalibrator,
    JudgedMap,
    certified_path,
    front_of,
    judge,
    radius_shares,
)
from certcal.claims import ORDER, in_full
from certcal.verbs.certified_samples import UNKNOWN, SampleSource, load_certified
from certcal.verbs.recalibrate import (
    IDENTITY,
    RecalibrateSettings,
    Recalibration,
    fitted_to_all,
    samples_of_fit,
    split_notes,
)
from certcal.verdict import Candidate

CONSTANT = "one constant confidence"
_WORST = ("calibration_error", "brier_score")


def within(radius: str) -> str:
    """Where a worst case is taken, in words; tables may have intervals without a radius."""
    return f"within radius {radius}" if radius else "inside the given intervals"


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedRecalibration(Recalibration):
    """What maps do to certified confidences of samples that they were not fitted to.

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
    """At which the maps are fitted and judged, and the share of each."""
    tradeoff: float | None
    """λ of the map that was asked for; None for a calibrator that has none."""
    lines: tuple[JudgedMap, ...]
    """The identity first, then every map."""
    front: tuple[FrontPoint, ...]
    """Clean against certified Brier scores of the maps in ``lines``."""
    before: CertifiedSamples
    after: CertifiedSamples
    """Held-out samples as they are, and after the map that was asked for."""

    @property
    def identity(self) -> JudgedMap:
        """The confidences as they are."""
        return self.lines[0]

    @property
    def chosen(self) -> JudgedMap:
        """The map that was asked for."""
        return next(line for line in self.lines if line.calibrator is self.map)

    @property
    def constant(self) -> FrontPoint | None:
        """Scores on the held-out samples of one constant confidence, the accuracy of the fit's certified samples.

        It is the constant with the least certified Brier score on the samples of the fit, with the weights of the
        radii. None when nothing was certified there. Its scores on the samples of the fit are not kept.
        """
        fitted = [
            (weight, at.gain.settings["constant"])
            for weight, at in zip(self.radius_weight, self.identity.at, strict=True)
            if at.gain is not None and weight > 0
        ]
        if not fitted:
            return None
        weights, constants = zip(*fitted, strict=True)
        certified = self.before.certified
        error = (self.before.correct - np.average(constants, weights=weights)) ** 2
        shares = [weight * kept.any() for weight, kept in zip(self.radius_weight, certified.T, strict=True)]
        worst = [error[kept].mean() if kept.any() else 0.0 for kept in certified.T]
        clean = None if self.before.confidence is None else float(error.mean())
        return FrontPoint(CONSTANT, None, (None, None), (clean, float(np.average(worst, weights=shares))))

    def claims(self) -> Sequence[Any]:
        """Claims about the requested map at the largest radius, the calibration error first."""
        last = self.chosen.at[-1]
        worst = [ranges.worst or ranges.worst_all for ranges in map(last.summary.__getitem__, _WORST)]
        bound = last.summary.population or last.summary.population_all
        found = [last.claim, *worst, bound, last.gain, *self.chosen.clean.values()]
        return tuple(claim for claim in found if claim is not None)

    def top(self) -> Sequence[Any]:
        """The worst case after the map at the largest radius, and whether the map says more than a constant there."""
        last = self.chosen.at[-1]
        over = f"{within(last.radius)} on {counted(last.summary.n_certified, 'certified held-out sample')}"
        if not last.summary.n_certified:
            over = f"{within(last.radius)} on all {counted(self.n_held_out, 'held-out sample')}: none is certified"
        return [(self.claims()[0], "After the map, the calibration error", over), *self._skill()]

    def _skill(self) -> list[str]:
        skill = self.chosen.at[-1].summary.skill
        if math.isnan(skill.value):
            return []
        said = "is" if skill.value > 0 else "is not"
        beats = f"it {said} certified to say more than one constant for all samples"
        return [f"Its certified skill is at least {minus(skill.text)}: {beats}."]

    def candidates(self) -> Sequence[Candidate]:
        """What is claimed of the map that was asked for, at each radius; the headline's claim first."""
        first = self.claims()[0]
        lines = sorted(
            _rows_of_claims(self.chosen), key=lambda line: (line[3] is not first, not line[1].startswith("claimed"))
        )
        return [
            Candidate.certified(claim, key, {"samples": samples, **({"radius": radius} if radius else {})})
            for radius, key, samples, claim in lines
        ]

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per map, radius and claim, with all digits; estimates without a perturbation have no radius."""
        names = ("map", "tradeoff", "chosen", "radius", "claim", "samples", "n", "value", "text", "sentence")
        lines: list[tuple[Any, ...]] = []
        for line in self.lines:
            start = (line.name, line.tradeoff, int(line is self.chosen))
            for radius, key, samples, claim in _rows_of_claims(line):
                value = float(claim.value)
                lines.append(
                    (*start, radius, key, samples, claim.n, value, getattr(claim, "text", value), in_full(claim))
                )
        return dict(zip(names, zip(*lines, strict=True), strict=True))

    def _judgement_document(self) -> dict[str, Any]:
        return {
            "radii": list(self.radii),
            "radius_weight": list(self.radius_weight),
            "tradeoff": self.tradeoff,
            "lines": [line.to_dict() for line in self.lines],
            "front": [point.to_dict() for point in self.front],
        }


def _rows_of_claims(line: JudgedMap) -> Iterator[tuple[str, str, str, Any]]:
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


def recalibrate_certified(
    given: SampleSource, columns: Mapping[str, Any] | None, settings: RecalibrateSettings, progress: Progress
) -> Recalibration:
    """Fit maps to one part of certified samples and judge them on the other: :func:`certcal.recalibrate` of them."""
    loaded = load_certified(given, columns, settings, progress)
    samples, weights, method = loaded.samples, _weights_by_radius(loaded.samples, settings), settings.method
    levels: list[float | None]
    levels, wanted = _tradeoffs_to_fit(samples, settings)
    name = "isotonic" if method is None else method if isinstance(method, str) else type(method).__name__
    common: dict[str, Any] = {
        "source": given.name,
        "about": loaded.about,
        "description": loaded.description,
        "method": name,
        "fitted_on": samples_of_fit(given, samples.fingerprint, len(samples), settings, run=loaded.run),
        "conventions": {each: getattr(settings, each) for each in ("bins", "closed", "delta", "fraction", "seed")},
    }
    progress.stage("fitting" if settings.fit_on_all else "fitting and judging")
    if settings.fit_on_all:
        return fitted_to_all(_fit_maps(samples, method, [wanted], weights)[0], common)
    assert settings.fraction is not None
    fit, rest = samples.split(settings.fraction, settings.seed)
    shares = radius_shares(fit, weights)
    if not any(shares) and wanted == 0:
        levels = [wanted]
    constant = tuple(float(fit.correct[kept].mean()) if kept.any() else None for kept in fit.certified.T)
    judging: dict[str, Any] = {each: getattr(settings, each) for each in ("bins", "closed", "delta")}
    maps = _fit_maps(fit, method, levels, weights)
    lines = [judge(rest, None, constant, name=IDENTITY, assumptions=(ORDER,), **judging)]
    built_in = type(maps[0]).__module__.startswith("certcal.")  # those are proved to hold what they map
    judging["assumptions"] = (ORDER,) if built_in else (ORDER, own_map(name))
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


def _tradeoffs_to_fit(samples: CertifiedSamples, settings: RecalibrateSettings) -> tuple[list[Any], float | None]:
    """Trade-offs to fit at, ascending, and the one that is wanted; without clean confidences there is only 1."""
    known, method = samples.confidence is not None, settings.method
    asked = {"tradeoff": (settings.tradeoff,), "tradeoffs": settings.tradeoffs or (None,)}
    given = [(name, level) for name, levels in asked.items() for level in levels if level is not None]
    if not (method is None or isinstance(method, str)):
        for name, _ in given:
            reason = f"it is for the methods {', '.join(CERTIFIED_METHODS)}, and the method is a calibrator"
            raise InputError(reason, argument=name, remedy="leave it out")
        own = getattr(method, "tradeoff", None)
        return [own], own
    if method is not None and method not in CERTIFIED_METHODS:
        remedy = f"choose one of {', '.join(CERTIFIED_METHODS)}"
        raise InputError(f"{method} is for a table of predictions", argument="method", remedy=remedy)
    for name, level in given:
        if level < 1 and not known:
            reason = f"{level:g} also fits to confidences without a perturbation, and those of {samples.source} are not"
            raise InputError(f"{reason} known", argument=name, remedy="name their column, or give 1")
    wanted = (0.5 if known else 1.0) if settings.tradeoff is None else settings.tradeoff
    if wanted > 0 and not samples.certified.any():
        unknown = UNKNOWN in samples.radii
        where = "" if unknown else f" at radius {', '.join(samples.radii)}"
        raise InputError(
            f"{samples.source}: no sample is certified{where}, so there is no worst case to fit to; give "
            f"{'other intervals' if unknown else 'a smaller radius'}, or a trade-off of 0"
        )
    others = TRADEOFFS if settings.tradeoffs is None else settings.tradeoffs
    return sorted({wanted, *(level for level in others if known or level == 1)}), wanted


def _fit_maps(
    samples: CertifiedSamples, method: Any, levels: Sequence[Any], weights: Sequence[float] | None
) -> Sequence[Any]:
    """Maps by name at each trade-off, or a copy of a user's own, fitted."""
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


def _weights_by_radius(samples: CertifiedSamples, settings: RecalibrateSettings) -> tuple[float, ...] | None:
    """Weights of the radii, which are ascending whatever the order in which they were given."""
    given, radii = settings.radius_weight, samples.radii
    if given is None:
        return None
    if len(given) != len(radii):
        reason = f"{counted(len(given), 'weight')} for {len(radii)} radii ({', '.join(radii)})"
        raise InputError(reason, argument="radius_weight", remedy="give one for each")
    order = np.argsort(settings.radii) if settings.radii is not None else range(len(given))
    return tuple(given[place] for place in order)


def _certified_notes(fit: CertifiedSamples, rest: CertifiedSamples, looks: int, delta: float) -> list[str]:
    notes = split_notes(fit, rest)
    if looks > 1:
        said = (
            f"Each bound on the population is {sure_text(delta)} on its own. To report the best of the "
            f"{looks} (maps times radii) as if it had been chosen before, divide delta by {looks} first."
        )
        notes.insert(1, said)
    wide = fit.certified & (fit.lower <= 0) & (fit.upper >= 1)
    if fit.certified.any() and (wide == fit.certified).all():
        notes.append("Every certified interval of the fit is [0, 1]: no map beats a constant in the worst case.")
    return notes
