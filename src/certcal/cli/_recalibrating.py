"""The work of ``certcal recalibrate fit``: samples in, a map and what it does to others out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal._text import counted
from certcal.calibrators._predictions import (
    BINNED,
    CONFIDENCE_METHODS,
    SCORE_METHODS,
    default_method,
    fit_predictions,
    recalibrate_predictions,
)
from certcal.cli._certified_samples import UNKNOWN, Source, load_certified
from certcal.cli._outputs import write_outputs
from certcal.cli._progress import Waiting
from certcal.cli._recalibrated_sources import class_names, columns_of, prediction_fingerprint
from certcal.cli._reporting import KINDS
from certcal.data import load_table
from certcal.data._layout import OPTIONS
from certcal.predictions import Predictions
from certcal.report.recalibration import at_radius, prediction_sentence, recalibration_claims
from certcal.report.results import BRACKETS, RecalibratedPredictions, RecalibratedResults

if TYPE_CHECKING:
    from certcal.calibrators import Calibrator, FittedOn, Recalibration

_LONGEST_NAME = 500
MOST_WEIGHT = 1e100  # beyond it sums of weights are not finite
CERTIFIED_METHODS = ("isotonic", "temperature", "beta")


@dataclass(frozen=True, eq=False)
class Fitted:
    """A map with what was found.

    Attributes
    ----------
    calibrator
        Fitted.
    fitted_on
        Which samples it was fitted to.
    results
        What it does to the others; None when it was fitted to all.
    """

    calibrator: Calibrator
    fitted_on: FittedOn
    results: RecalibratedResults | RecalibratedPredictions | None


def fitted(kind: str, path: Path, options: Mapping[str, Any]) -> Fitted:
    """Fit a map to one part of the samples, and judge it on the other.

    Parameters
    ----------
    kind, path
        Of the source.
    options
        Those of the command.
    """
    return _from_predictions(path, options) if kind == "predictions" else _from_certified(kind, path, options)


def _from_certified(kind: str, path: Path, options: Mapping[str, Any]) -> Fitted:
    from certcal.calibrators import recalibrate
    from certcal.calibrators._recalibrate import TRADEOFFS

    method = options["method"] or "isotonic"
    if method not in CERTIFIED_METHODS:
        raise InputError(
            f"--method {method} is for a table of predictions, and {path} is {KINDS[kind]}; choose one of "
            f"{', '.join(CERTIFIED_METHODS)}"
        )
    radii, weights = _in_order(options["radii"], options["radius_weights"])
    with Waiting() as waiting:
        source = load_certified(kind, path, {**options, "radii": radii, "columns": columns_of(options)}, waiting)
        _check_weights(source, weights)
        tradeoff = _tradeoff(source, options["tradeoff"], options["tradeoffs"])
        _check_certified(source, tradeoff)
        used = _fitted_on(kind, path, source.samples.fingerprint, len(source.samples), options)
        used = replace(used, run=source.run)
        if options["fit_on_all"]:
            waiting.stage("fitting")
            return Fitted(_on_all(source, method, tradeoff, weights), used, None)
        waiting.stage("fitting and judging")
        found = recalibrate(
            source.samples,
            method=method,
            tradeoff=tradeoff,
            tradeoffs=TRADEOFFS if options["tradeoffs"] is None else options["tradeoffs"],
            radius_weight=weights,
            **{name: options[name] for name in ("fraction", "seed", "bins", "closed", "delta")},
        )
    results = RecalibratedResults(
        str(path), source.description, found, recalibration_claims(found), _notes(found, source), source.about
    )
    return Fitted(found.calibrator, used, results)


def _from_predictions(path: Path, options: Mapping[str, Any]) -> Fitted:
    settings = {name: options[name] for name in ("fraction", "seed", "bins", "closed")}
    with Waiting() as waiting:
        waiting.stage("reading")
        loaded = load_table(path, {role: options[role] for role in OPTIONS})
        predictions, method, bins = loaded.predictions, options["method"], options["map_bins"]
        _check_method(path, method or default_method(predictions), bins, predictions)
        used = _fitted_on("predictions", path, prediction_fingerprint(predictions), len(predictions), options)
        used = replace(used, classes=class_names(loaded.layout))
        waiting.stage("fitting")
        if options["fit_on_all"]:
            return Fitted(fit_predictions(predictions, method, map_bins=bins), used, None)
        found = recalibrate_predictions(predictions, method=method, map_bins=bins, **settings)
    description = f"{len(predictions):,} samples; {loaded.layout.description}"
    notes = [
        *found.notes,
        f"The split is drawn with seed {options['seed']}. Bins are {BRACKETS[options['closed']]}. Estimates from the "
        "held-out samples, not guarantees.",
    ]
    about = {"columns": loaded.layout.to_dict()}
    results = RecalibratedPredictions(
        str(path), description, found, [prediction_sentence(found)], " ".join(notes), about
    )
    return Fitted(found.calibrator, used, results)


def _check_method(path: Path, method: str, map_bins: int | None, predictions: Predictions) -> None:
    if map_bins is not None and method not in BINNED:
        raise InputError(f"--map-bins is for --method {' or '.join(BINNED)}, and the method is {method}; leave it out")
    if method in SCORE_METHODS and predictions.probabilities is None:
        raise InputError(
            f"--method {method} needs logits or probabilities of all classes, and {path} has only confidences; choose "
            f"one of {', '.join(CONFIDENCE_METHODS)}"
        )


def written(found: Fitted, paths: Sequence[Path], *, force: bool, sources: Sequence[Path]) -> None:
    """Write the map, the page and the numbers, as :func:`certcal.cli._outputs.check_outputs` allowed.

    Parameters
    ----------
    found
        The map and what it does.
    paths
        Files.
    force
        Whether existing files may be replaced.
    sources
        What was read.
    """
    from certcal.calibrators import save

    for path in paths:
        if path.suffix.lower() == ".json":
            save(found.calibrator, path, fitted_on=found.fitted_on, force=force)
        elif found.results is not None:
            write_outputs(found.results, [path], force=force, sources=sources)


def _fitted_on(kind: str, path: Path, fingerprint: str | None, n: int, options: Mapping[str, Any]) -> FittedOn:
    """Which samples a map was fitted to, for its file."""
    from certcal.calibrators import FittedOn

    known = fingerprint is not None and re.fullmatch("[0-9a-f]{64}", fingerprint) is not None
    name = re.sub(r"[/\\\x00-\x1f]", "_", path.resolve().name)[:_LONGEST_NAME] or kind
    split = (1.0, 0) if options["fit_on_all"] else (options["fraction"], options["seed"])
    return FittedOn(name, kind, fingerprint if known else None, n, *split)


def _in_order(
    radii: Sequence[str] | None, weights: Sequence[float] | None
) -> tuple[tuple[str, ...] | None, tuple[float, ...] | None]:
    """Radii ascending, each with its weight."""
    given = None if weights is None else tuple(weights)
    if radii is None:
        return None, given
    order = sorted(range(len(radii)), key=lambda place: float(radii[place]))
    texts = tuple(radii[place] for place in order)
    if given is None or len(given) != len(texts):
        return texts, given
    return texts, tuple(given[place] for place in order)


def _check_weights(source: Source, weights: Sequence[float] | None) -> None:
    radii = source.samples.radii
    if weights is not None and len(weights) != len(radii):
        raise InputError(
            f"--radius-weight: {counted(len(weights), 'weight')} for {len(radii)} radii ({', '.join(radii)}); give one "
            "for each"
        )
    if weights is not None and max(weights) > MOST_WEIGHT:
        raise InputError(f"--radius-weight: {max(weights):g} is too large; give ordinary numbers, such as 1,2")
    if weights is not None and not any(weights):
        raise InputError("--radius-weight: all weights are 0; give at least one above 0")


def _tradeoff(source: Source, given: float | None, others: Sequence[float] | None) -> float:
    """What was asked for; without clean confidences only the worst case can be fitted to."""
    known = source.samples.confidence is not None
    for option, level in (("tradeoff", given), *(("tradeoffs", each) for each in others or ())):
        if level is not None and level < 1 and not known:
            raise InputError(
                f"--{option} {level:g} also fits to confidences without a perturbation, and {source.samples.source} "
                f"has no column of them; name it with --confidence, or give --{option} 1"
            )
    return (0.5 if known else 1.0) if given is None else given


def _check_certified(source: Source, tradeoff: float) -> None:
    if tradeoff > 0 and not source.samples.certified.any():
        radii = source.samples.radii
        remedy = "other intervals" if UNKNOWN in radii else "a smaller --radius"
        raise InputError(
            f"{source.samples.source}: no sample is certified {at_radius(', '.join(radii))}, so there is no worst case "
            f"to fit to; give {remedy}, or --tradeoff 0"
        )


def _on_all(source: Source, method: str, tradeoff: float, weights: Sequence[float] | None) -> Calibrator:
    from certcal import calibrators

    names = {"isotonic": "CertifiedIsotonic", "temperature": "CertifiedTemperature", "beta": "CertifiedBeta"}
    return getattr(calibrators, names[method])(tradeoff).fit_samples(source.samples, weights)


def _notes(found: Recalibration, source: Source) -> str:
    settings = found.settings
    parts = [
        *found.notes,
        f"The split is drawn with seed {settings['seed']}.",
        f"Clean numbers are estimates without a perturbation. ECE has {settings['bins']} bins, "
        f"{BRACKETS[str(settings['closed'])]}. Certified numbers are over the certified held-out samples, and rounded "
        "in the safe direction.",
    ]
    if len(found.radii) > 1:
        shares = ", ".join(f"{share:.3g}" for share in found.radius_weight)
        parts.append(f"The radii weigh {shares} in the fit.")
    return " ".join([*parts, source.note])
