"""A run on disk, certified at radii."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from certcal._checks import InputError
from certcal.cli._certified_table import common_notes
from certcal.cli._progress import Waiting
from certcal.cli._rivals import prepare_rivals, run_methods
from certcal.data import IntervalPart
from certcal.data._interval_files import NOISE, Origin, intervals_as_parquet
from certcal.report.certificates import terms_text
from certcal.report.results import CertifiedResults, Line, Method
from certcal.smoothing import CONFIDENCES, Certificates, Counts, Run, certificates, open_run

MOST_RADII = 1000
STEPS_PER_SIGMA = 4
HEADLINE_STEP = 2  # half of sigma

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
    return tuple(_text(value) for value in sorted(values))


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
    lines: list[Line] = []
    found: list[Certificates] = []
    methods: list[Method] = []
    with Waiting() as waiting:
        if asked.compare:
            waiting.stage("preparing the comparison")
            prepare_rivals()
        waiting.stage("reading")
        counts = _counts(run, drawn_only=asked.drawn_only)
        radii = _grid(counts, asked) if asked.radii is None else asked.radii
        waiting.stage("certifying", len(radii) * len(asked.kinds))
        for radius in radii:
            for kind in asked.kinds:
                one = certificates(counts, float(radius), asked.alpha, kind, asked.familywise)
                found.append(one)
                lines.append(_line(one, radius, kind if len(asked.kinds) > 1 else None, asked.alpha, settings))
                waiting.advance(1)
                if asked.compare and one.n_certified:
                    methods += run_methods(_part(one, radius), settings["bins"], settings["closed"], waiting)
    chosen = _headline(lines, asked)
    results = CertifiedResults(
        source=str(folder),
        n=len(counts),
        about={"run": _about(run, counts, found[0])},
        description=_description(run, counts, found[0], asked),
        lines=lines,
        by="certificate" if len(asked.kinds) > 1 else None,
        methods=methods,
        conventions={
            **settings,
            "alpha": asked.alpha,
            "familywise": asked.familywise,
            "confidence": asked.kinds[0] if len(asked.kinds) == 1 else "all",
            "ledger": found[0].ledger.to_dict(),
        },
        claims=_claims(lines[chosen]),
        notes=_notes(lines, found, asked, {**settings, "alpha": asked.alpha}),
        curves=len(radii) > 3 and len(asked.kinds) == 1,
    )
    return results, found


def _text(value: float) -> str:
    """The shortest text of a number."""
    return repr(value).removesuffix(".0")


def _grid(counts: Counts, asked: Request) -> tuple[str, ...]:
    """Quarters of sigma, from 0 to the largest radius that is certified for any sample, and half of sigma at least."""
    reached = certificates(counts, 0.0, asked.alpha, "standard", asked.familywise).radii
    largest = float(np.nan_to_num(reached).max()) / counts.sigma  # NaN where a sample abstained
    steps = range(max(math.floor(largest * STEPS_PER_SIGMA), HEADLINE_STEP) + 1)
    return tuple(_text(float(f"{step * counts.sigma / STEPS_PER_SIGMA:.6g}")) for step in steps)


def _counts(run: Run, *, drawn_only: bool) -> Counts:
    try:
        return run.counts()
    except InputError:
        state = run.state()
        if state.complete:
            raise
    if drawn_only:
        size = _drawn(run, state.missing)
        if size is not None:
            return run.counts(*size)
        raise InputError(f"{run.path}: no sample is drawn completely; give the same sample command again to go on")
    damaged = f", and {len(state.damaged)} of its shards are damaged" if state.damaged else ""
    raise InputError(
        f"{run.path}: the run is not complete, {state.finished:,} of {state.total:,} draws are there{damaged}; give "
        "the same sample command again to draw the rest, or certify the samples that are drawn with --drawn-only"
    )


def _drawn(run: Run, missing: Sequence[Any]) -> tuple[int, int] | None:
    """How many of the first samples have all their draws, and how many draws that is: the most draws that any have."""
    sizes = run.manifest.sizes
    for n in sorted({size.n for size in sizes}, reverse=True):
        most = max(size.samples for size in sizes if size.n == n)
        first = min((unit.first for unit in missing if unit.stage == "selection" or unit.start < n), default=most)
        if first:
            return min(first, most), n
    return None


def _line(one: Certificates, radius: str, group: str | None, alpha: float, settings: Mapping[str, Any]) -> Line:
    samples = "certified" if one.n_certified else "all"
    claim = one.claim(bins=settings["bins"], closed=settings["closed"], samples=samples, delta=alpha)
    return Line(radius, group, one.summary(**settings), claim, one.mean_width)


def _part(one: Certificates, radius: str) -> IntervalPart:
    return IntervalPart(radius, None, one.lower, one.upper, one.correct.astype(np.uint8), one.certified)


def _headline(lines: Sequence[Line], asked: Request) -> int:
    """The largest radius that was asked for, or half of sigma.

    A radius that the results chose would not do: the population's bound has an event for each radius, and so do
    tangent certificates.
    """
    if asked.radii is None:
        return HEADLINE_STEP * len(asked.kinds)
    return len(lines) - len(asked.kinds)


def _claims(line: Line) -> list[str]:
    bound = line.summary.population or line.summary.population_all
    sentences = [] if line.claim is None else [line.claim.sentence]
    sentences += [f"at radius {line.radius}, {bound.sentence}", f"its terms: {terms_text(bound)}."]
    return [sentence[:1].upper() + sentence[1:] for sentence in sentences]


def _about(run: Run, counts: Counts, one: Certificates) -> dict[str, Any]:
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


def _description(run: Run, counts: Counts, one: Certificates, asked: Request) -> str:
    n, away = len(counts), one.n_abstained
    whole = "" if n == run.manifest.samples else f" of {run.manifest.samples:,}"
    noise = NOISE[counts.noise]
    level = f"alpha {asked.alpha:g} {'in all' if asked.familywise else 'each'}"
    kind = f"{asked.kinds[0]} certificates" if len(asked.kinds) == 1 else "certificates compared"
    return (
        f"{n:,}{whole} samples, {away:,} abstained ({away / n:.1%}); {noise}, sigma {counts.sigma:g}, "
        f"{int(counts.draws.min()):,} draws each; {kind}, {level}"
    )


def _notes(lines: Sequence[Line], found: Sequence[Certificates], asked: Request, settings: Mapping[str, Any]) -> str:
    one = found[0]
    text = common_notes(lines, settings)
    many_tangents = "tangent" in asked.kinds and len(lines) > len(asked.kinds)
    if asked.familywise:
        where = " at each radius" if many_tangents else ""
        text += f" All {one.n:,} certificates hold together{where} except with probability {asked.alpha:g} over the "
        text += "noise."
    else:
        failed = one.failures(asked.alpha).count
        text += (
            f" Each certificate may fail with probability {asked.alpha:g} over the noise; more than {failed:,} of "
            f"{one.n:,} fail with probability at most {asked.alpha:g}, and what {failed:,} can add to the ECE is in "
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


def intervals_file(found: Sequence[Certificates]) -> bytes:
    """The intervals at each radius as a Parquet file that ``certcal certify`` reads, with what they rest on."""
    one = found[0]

    def column(name: str) -> Any:
        return np.concatenate([getattr(one, name) for one in found])

    return intervals_as_parquet(
        {
            "radius": np.repeat([one.radius for one in found], [len(one) for one in found]),
            "sample": np.concatenate([np.arange(len(one)) for one in found]),
            **{name: column(name) for name in ("lower", "upper", "correct", "certified")},
            "alpha": np.repeat([one.ledger.spent for one in found], [len(one) for one in found]),
        },
        Origin(one.confidence, one.noise, one.assumptions),
    )
