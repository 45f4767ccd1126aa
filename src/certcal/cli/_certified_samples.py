"""Certified samples of a run or of a table of intervals, for maps to be fitted to or applied to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from certcal._checks import InputError
from certcal.calibrators import CertifiedSamples
from certcal.claims import short_text
from certcal.cli._parameters import KINDS
from certcal.cli._parse import nearest
from certcal.cli._progress import Waiting
from certcal.data import IntervalOrigin, IntervalTable, read_intervals
from certcal.smoothing import open_run
from certcal.smoothing._usable import usable_counts
from certcal.verbs.certify import about_run, describe_run, radius_text, samples_of

ALPHA_OF_RUNS = 0.001
UNKNOWN = ""  # the radius of a table without a column of radii


@dataclass(frozen=True, eq=False)
class Source:
    """Certified samples and where they come from.

    Attributes
    ----------
    kind
        "run" or "intervals".
    samples
        At the radii that were asked for.
    description, about
        In a line for people, and for machines.
    note
        With which probability the intervals may fail, in a sentence.
    origin
        What the intervals rest on; None when it is not known.
    names
        What the samples are called, or None.
    run
        Name of the run whose first samples these are, or None.
    """

    kind: str
    samples: CertifiedSamples
    description: str
    about: Mapping[str, Any]
    note: str
    origin: IntervalOrigin | None
    names: tuple[str, ...] | None = None
    run: str | None = None


def load_certified(kind: str, path: Path, options: Mapping[str, Any], waiting: Waiting) -> Source:
    """Read a run or a table of intervals.

    Parameters
    ----------
    kind
        "run" or "intervals".
    path
        The folder or file.
    options
        Radii as texts (None for the default), alpha, confidence, familywise, drawn_only and columns by role.
    waiting
        Where progress shows.
    """
    return _run(path, options, waiting) if kind == "run" else _table(path, options, waiting)


def _run(folder: Path, options: Mapping[str, Any], waiting: Waiting) -> Source:
    alpha = ALPHA_OF_RUNS if options["alpha"] is None else options["alpha"]
    if alpha == 0:
        raise InputError("--alpha is 0, and certificates from noise may fail; give a probability such as 0.001")
    kinds, word = KINDS[:-1], options["confidence"] or "tight"
    if word not in kinds:
        raise InputError(
            f"--confidence: {word!r} is not one of {', '.join(map(repr, kinds))}, the kinds of intervals of a "
            f"run{nearest(word, kinds)}"
        )
    run = open_run(folder)
    waiting.stage("reading")
    counts = usable_counts(run, drawn_only=options["drawn_only"], remedy="use the samples drawn with --drawn-only")
    waiting.stage("certifying")
    radii = options["radii"] or (radius_text(float(f"{counts.sigma / 2:.6g}")),)
    made = CertifiedSamples.from_counts(
        counts, [float(radius) for radius in radii], alpha=alpha, confidence=word, familywise=options["familywise"]
    )
    made = replace(made, source=str(folder), fingerprint=samples_of(run.manifest, counts))
    one, level = made.certificates[0], short_text(alpha, "upper")
    if options["familywise"]:
        note = f"All {len(made):,} certificates hold together except with probability {level} over the noise."
    else:
        note = (
            f"Each certificate may fail with probability {level} over the noise. The claim counts those that do; the "
            "other numbers on these samples hold where the certificates do."
        )
    origin = IntervalOrigin(one.confidence, one.noise, one.assumptions)
    about = {"run": about_run(run.manifest, counts, one)}
    return Source("run", made, describe_run(run.manifest, counts, one), about, note, origin, run=run.manifest.run)


def _table(path: Path, options: Mapping[str, Any], waiting: Waiting) -> Source:
    waiting.stage("reading")
    table = read_intervals(path, options["columns"], alpha=options["alpha"] is None, samples=True)
    alpha = (table.alpha or 0.0) if options["alpha"] is None else options["alpha"]
    chosen = _chosen(path, table.radii, options["radii"])
    if len(chosen) == 1 and table.sample_codes is None:  # rows of one radius are of different samples
        table, chosen = table.at_radius(chosen[0]), [0]
    rows = table.by_sample()
    made = CertifiedSamples.from_intervals(
        rows.lower[:, chosen],
        rows.upper[:, chosen],
        rows.correct,
        rows.confidence,
        certified=rows.certified[:, chosen],
        radii=[rows.radii[k] for k in chosen] if rows.radii else None,
        alpha=alpha,
        source=str(path),
        fingerprint=rows.fingerprint,
    )
    made = made if rows.radii else replace(made, radii=(UNKNOWN,))
    if alpha == 0:
        note = "The intervals are taken as certain; if each may fail with some probability, give it with --alpha."
    else:
        level = f"{float(short_text(alpha, 'upper')):g}"
        note = f"Each interval may fail with probability {level}; numbers on these samples hold where the intervals do."
    note += "" if table.origin is None else f" The intervals are {table.origin.sentence}."
    origin = {} if table.origin is None else {"certificates": table.origin.to_dict()}
    about = {"columns": table.layout.to_dict(), **origin}
    return Source("intervals", made, _description(table, len(made)), about, note, table.origin, rows.names, rows.run)


def _description(table: IntervalTable, n: int) -> str:
    made = "" if table.origin is None else f"; {table.origin.description}"
    return f"{n:,} {'sample' if n == 1 else 'samples'}; {table.layout.description}{made}"


def _chosen(path: Path, there: Sequence[str], asked: Sequence[str] | None) -> list[int]:
    """Places of the radii that were asked for."""
    if asked is None:
        return list(range(max(1, len(there))))
    if not there:
        raise InputError(f"--radius: {path} has no column of radii; leave it out, or name one with --radius-column")
    known = {float(radius): place for place, radius in enumerate(there)}
    for radius in asked:
        if float(radius) not in known:
            raise InputError(f"--radius: {path} has no rows at radius {radius}; there are {', '.join(there)}")
    return [known[float(radius)] for radius in asked]
