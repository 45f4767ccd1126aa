"""A run on disk, certified at radii."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from certcal._checks import InputError
from certcal.claims import short_text
from certcal.cli._certified_table import common_notes
from certcal.cli._progress import Waiting
from certcal.cli._rivals import prepare_rivals, run_methods
from certcal.data import NOISE_NAMES, IntervalOrigin, IntervalPart, intervals_as_parquet
from certcal.data._aligned import fingerprint_of
from certcal.report.certificates import terms_text, verdict_text
from certcal.report.results import CertifiedResults, Line, Method
from certcal.smoothing import CONFIDENCES, Certificates, Counts, Review, Reviewed, Run, open_run, review
from certcal.smoothing._manifest import Manifest
from certcal.smoothing._review import MOST_RADII, radius_text
from certcal.smoothing._usable import usable_counts

_NOISE = {
    "gaussian": "The noise was drawn in floating point and is taken as exactly Gaussian; for inputs on k/255, "
    "certcal sample --exact-noise needs no such assumption.",
    "exact": "The noise is discretised from integer thresholds, so the certificates hold in floating point: they "
    "are for the model applied to inputs rounded to k/255.",
}


@dataclass(frozen=True)
class Request:
    """What is asked of a run.

    Attributes
    ----------
    radii
        As texts, ascending; None for a grid in units of sigma.
    kinds
        Kinds of certificates.
    alpha, familywise
        Failure probability of each sample's certificate, or of all together.
    drawn_only
        Certify the samples that are drawn completely, even if the run is not.
    compare
        Run the published methods too.
    """

    radii: tuple[str, ...] | None
    kinds: tuple[str, ...]
    alpha: float
    familywise: bool
    drawn_only: bool
    compare: bool


def parse_radii(text: str) -> tuple[str, ...]:
    """Turn ``.5,.25,1`` into texts of numbers, each once, smallest first.

    Examples
    --------
    >>> parse_radii(".5,.25,1,0.50")
    ('0.25', '0.5', '1')
    """
    values: set[float] = set()
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise InputError(f"--radius: {part.strip()!r} is no radius; give numbers of at least 0, such as 0.25,0.5,1")
        values.add(value)
    if len(values) > MOST_RADII:
        raise InputError(f"--radius: {len(values)} radii are too many; give at most {MOST_RADII}")
    return tuple(radius_text(value) for value in sorted(values))


def certify_run(
    folder: Path, asked: Request, settings: Mapping[str, Any]
) -> tuple[CertifiedResults, list[Certificates]]:
    """Certify a run at each radius, by each kind of certificate.

    Parameters
    ----------
    folder
        Of the run.
    asked
        Radii and certificates.
    settings
        Bins, closed and delta.

    Returns
    -------
    tuple[CertifiedResults, list[Certificates]]
        What is printed, and the intervals behind it.
    """
    run = open_run(folder)
    methods: list[Method] = []
    with Waiting() as waiting:
        if asked.compare:
            waiting.stage("preparing the comparison")
            prepare_rivals()
        waiting.stage("reading")
        counts = usable_counts(
            run, drawn_only=asked.drawn_only, remedy="certify the samples that are drawn with --drawn-only"
        )

        def progress(finished: int, total: int) -> None:
            if finished:
                waiting.advance(1)
            else:
                waiting.stage("certifying", total)

        made = review(
            counts,
            None if asked.radii is None else [float(radius) for radius in asked.radii],
            confidence=asked.kinds,
            alpha=asked.alpha,
            familywise=asked.familywise,
            progress=progress,
            **settings,
        )
        for one in made.lines:
            if asked.compare and one.certificates.n_certified:
                methods += run_methods(_part(one), settings["bins"], settings["closed"], waiting)
    several = len(asked.kinds) > 1
    lines = [Line(one.radius, one.kind if several else None, one.summary, one.claim, one.width) for one in made.lines]
    found = [one.certificates for one in made.lines]
    results = CertifiedResults(
        source=str(folder),
        n=len(counts),
        about={"run": about_run(run, counts, found[0])},
        description=describe_run(run, counts, found[0], several=several),
        lines=lines,
        by="certificate" if several else None,
        methods=methods,
        conventions={
            **settings,
            "alpha": asked.alpha,
            "familywise": asked.familywise,
            "confidence": asked.kinds[0] if len(asked.kinds) == 1 else "all",
            "ledger": found[0].ledger.to_dict(),
        },
        claims=_claims(made.at()),
        notes=_notes(lines, found, asked, {**settings, "alpha": asked.alpha}),
        curves=len(made.radii) > 3 and not several,
        review=replace(made, manifest=run.manifest),
    )
    return results, found


def _part(one: Reviewed) -> IntervalPart:
    found = one.certificates
    return IntervalPart(one.radius, None, found.lower, found.upper, found.correct.astype(np.uint8), found.certified)


def _claims(one: Reviewed) -> list[str]:
    bound = one.summary.population or one.summary.population_all
    sentences = [
        one.claim.sentence,
        f"at radius {one.radius}, {bound.sentence}",
        f"its terms: {terms_text(bound)}.",
        verdict_text(one.summary.information, one.radius),
    ]
    return [sentence[:1].upper() + sentence[1:] for sentence in sentences]


def about_run(run: Run, counts: Counts, one: Certificates) -> dict[str, Any]:
    """What was drawn and what came of it, for machines."""
    m = run.manifest
    return {
        "sigma": counts.sigma,
        "noise": counts.noise,
        "draws": int(counts.draws.min()),
        "draws_that_chose": m.n0,
        "seed": m.seed,
        "model": m.model.description,
        "samples_of_the_run": m.samples,
        "abstained": one.n_abstained,
        "abstention_rate": one.n_abstained / one.n,
        "invalid_outputs": int(counts.invalid.sum()),
    }


def describe_run(run: Run, counts: Counts, one: Certificates, *, several: bool = False) -> str:
    """The same in a line for people; ``several`` kinds of certificates are not named."""
    n, away = len(counts), one.n_abstained
    whole = "" if n == run.manifest.samples else f" of {run.manifest.samples:,}"
    noise = NOISE_NAMES[counts.noise]
    level = f"alpha {short_text(one.alpha, 'upper')} {'in all' if one.familywise else 'each'}"
    kind = "certificates compared" if several else f"{one.confidence} certificates"
    return (
        f"{n:,}{whole} samples, {away:,} abstained ({away / n:.1%}); {noise}, sigma {counts.sigma:g}, "
        f"{int(counts.draws.min()):,} draws each; {kind}, {level}"
    )


def _notes(lines: Sequence[Line], found: Sequence[Certificates], asked: Request, settings: Mapping[str, Any]) -> str:
    one, alpha = found[0], short_text(asked.alpha, "upper")
    text = common_notes(lines, settings)
    many_tangents = "tangent" in asked.kinds and len(lines) > len(asked.kinds)
    if asked.familywise:
        where = " at each radius" if many_tangents else ""
        text += f" All {one.n:,} certificates hold together{where} except with probability {alpha} over the "
        text += "noise."
    else:
        failed = one.failures(asked.alpha).count
        text += (
            f" Each certificate may fail with probability {alpha} over the noise; more than {failed:,} of "
            f"{one.n:,} fail with probability at most {alpha}, and what {failed:,} can add to the ECE is in "
            "the claim. The other numbers on these samples hold where the certificates do; --familywise makes all hold."
        )
    if len(asked.kinds) > 1:
        text += (
            f" Choose a certificate before looking: that the best of these {len(asked.kinds)} fails has up to "
            f"{len(asked.kinds)} times the probability."
        )
    if many_tangents:
        text += " Tangent certificates of different radii fail each on their own; the others hold at all radii at once."
    return f"{text} {_NOISE[one.noise]}"


def kinds_of(confidence: str) -> tuple[str, ...]:
    """The kinds of certificates that a word stands for.

    Examples
    --------
    >>> kinds_of("tight"), len(kinds_of("all"))
    (('tight',), 5)
    """
    return CONFIDENCES if confidence == "all" else (confidence,)


def intervals_file(found: Sequence[Certificates], review: Review) -> bytes:
    """The intervals at each radius as a Parquet file that ``certcal certify`` reads, with what they rest on.

    Parameters
    ----------
    found
        Of all samples, per radius.
    review
        What they were made from: the confidences without a perturbation are estimated from its draws.
    """
    one, counts = found[0], review.counts

    def column(name: str) -> Any:
        return np.concatenate([getattr(one, name) for one in found])

    return intervals_as_parquet(
        {
            "radius": np.repeat([one.radius for one in found], [len(one) for one in found]),
            "sample": np.concatenate([np.arange(len(one)) for one in found]),
            **{name: column(name) for name in ("lower", "upper", "correct", "certified")},
            "alpha": np.repeat([one.ledger.spent for one in found], [len(one) for one in found]),
            "confidence": np.tile(counts.confidence_estimates().values, len(found)),
        },
        IntervalOrigin(
            one.confidence,
            one.noise,
            one.assumptions,
            samples=samples_of(review.manifest, counts),
            run=None if review.manifest is None else review.manifest.run,
        ),
    )


def samples_of(manifest: Manifest | None, counts: Counts) -> str | None:
    """The fingerprint of a run's samples; of a part of them another one, which also says which they are."""
    if manifest is None or len(counts) == manifest.samples:
        return None if manifest is None else manifest.data.inputs
    return fingerprint_of(np.frombuffer(manifest.data.inputs.encode(), np.uint8), counts.index)
