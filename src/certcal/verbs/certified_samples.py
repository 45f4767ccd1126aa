"""What maps are fitted to and applied to: a run, a table of intervals, predictions, or any of these in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from certcal._base.assumptions import IN_DEVIATIONS, LOGITS
from certcal._base.checks import InputError
from certcal._base.progress import Progress
from certcal._base.rounding import sure_text, times_text
from certcal._base.text import counted
from certcal._base.told import Told
from certcal.claims import short_text
from certcal.data import IntervalOrigin, OpenTable, open_table, read_intervals
from certcal.data.columns import NOISE_NAMES
from certcal.data.layout import is_study, table_kind
from certcal.data.pieces import fingerprint_of
from certcal.data.schema import OPTIONS, SAMPLE_OPTIONS, by_role
from certcal.predictions import Predictions

if TYPE_CHECKING:
    from certcal.calibrators import CertifiedSamples
    from certcal.smoothing import Certificates, Counts, Manifest

ALPHA_OF_RUNS = 0.001
UNKNOWN = ""  # the radius of a table without a column of radii
KINDS = {
    "predictions": "a table of predictions",
    "intervals": "a table of intervals",
    "run": "a run",
    "samples": "certified already",
}
_COLUMNS = {
    "predictions": OPTIONS,
    "intervals": SAMPLE_OPTIONS,
    "run": (),
    "samples": (),
}
ROLES = tuple(dict.fromkeys(role for roles in _COLUMNS.values() for role in roles))
_FOR = {
    **dict.fromkeys(("radii", "alpha"), ("run", "intervals")),
    **dict.fromkeys(("radius_weight", "tradeoff", "tradeoffs", "delta"), ("run", "intervals", "samples")),
    **dict.fromkeys(("familywise", "drawn_only", "kind"), ("run",)),
    **dict.fromkeys(("map_bins", "common_map", "real_scores"), ("predictions",)),
}


@dataclass(frozen=True)
class CertifyingSettings(Told):
    """At which radii samples are certified, and how."""

    radii: tuple[float, ...] | None
    alpha: float | None
    familywise: bool
    drawn_only: bool
    kind: Any

    def __post_init__(self) -> None:
        if self.radii is not None and len(set(self.radii)) < len(self.radii):
            raise InputError("the same radius is given twice", argument="radii", remedy="give each once")


@dataclass(frozen=True, eq=False)
class SampleSource:
    """Samples and where they come from."""

    kind: str
    """"run", "intervals", "predictions" or "samples"."""
    name: str
    """Name of the file or folder, or of what is in memory."""
    data: Any
    """What was given: a path, or an open run, table or samples."""

    @property
    def words(self) -> str:
        """The kind of source, in words."""
        return KINDS[self.kind]


@dataclass(frozen=True, eq=False)
class CertifiedSource:
    """Certified samples of a run or of a table of intervals."""

    samples: CertifiedSamples
    """At the radii that were asked for."""
    description: str
    about: Mapping[str, Any]
    """In a line for people, and for machines."""
    note: str
    """With which probability the intervals may fail, in a sentence."""
    origin: IntervalOrigin | None = None
    """What the intervals rest on; None when it is not known."""
    names: tuple[str, ...] | None = None
    """What the samples are called, or None."""
    run: str | None = None
    """Name of the run whose first samples these are, or None."""


def source_of(
    data: Any, columns: Mapping[str, Any] | None, settings: CertifyingSettings, defaults: Mapping[str, Any]
) -> SampleSource:
    """What is given, told by folders, columns and types, never by values; settings for something else are refused."""
    from certcal.calibrators import CertifiedSamples
    from certcal.smoothing import Counts, Run
    from certcal.verbs.verify import Verification

    data = data.table() if isinstance(data, Verification) else data
    path = Path(cast("Any", data)) if isinstance(data, str | os.PathLike) else None
    given = by_role(columns, ROLES)
    if isinstance(data, Predictions):
        source = SampleSource("predictions", "predictions", data)
    elif isinstance(data, CertifiedSamples):
        source = SampleSource("samples", data.source, data)
    elif isinstance(data, Run):
        source = SampleSource("run", str(data.path), data)
    elif isinstance(data, Counts):
        source = SampleSource("run", "counts", data)
    elif path is not None and path.is_dir():
        source = SampleSource("run", str(path), path)
    else:
        table = open_table(cast("Any", data))
        source = SampleSource(_kind(table, given), str(table.path), table)
    for role in given:
        if role not in _COLUMNS[source.kind]:
            whose = [KINDS[kind] for kind, roles in _COLUMNS.items() if role in roles]
            _refuse_argument(role, whose, source)
    for name, value in vars(settings).items():
        kinds = _FOR.get(name, (source.kind,))
        if source.kind not in kinds and value != defaults[name]:
            _refuse_argument(name, [KINDS[kind] for kind in kinds if kind != "samples"], source)
    return source


def _refuse_argument(argument: str, whose: Sequence[str], source: SampleSource) -> None:
    reason = f"it is for {' or '.join(whose)}, and {source.name} is {source.words}"
    raise InputError(reason, argument=argument, remedy="leave it out")


def _kind(table: OpenTable, given: Mapping[str, Any]) -> str:
    kind, scores = table_kind(table.names), {"probabilities", "logits"} & set(given)
    if kind == "intervals" and not scores:
        return "intervals"
    if kind == "log":
        raise InputError(f"{table.path}: a log of certified radii holds no confidences; give a run or a table of them")
    if not scores and {"lower", "upper", "certified"} & set(given):
        return "intervals"
    if is_study(table.names) and not {"confidence", *scores} & set(given):
        raise InputError(f"{table.path}: the table of a study holds no confidences; give a run or a table of them")
    return "predictions"


def load_certified(
    source: SampleSource, columns: Mapping[str, Any] | None, settings: CertifyingSettings, progress: Progress
) -> CertifiedSource:
    """Samples of a run, a table of intervals or memory, certified; ``columns`` are those of a table of intervals."""
    if source.kind == "samples":
        samples: CertifiedSamples = source.data
        return CertifiedSource(samples, counted(len(samples), "sample"), {}, _note(samples.alpha))
    progress.stage("reading")
    return (
        _of_run(source, settings, progress) if source.kind == "run" else _read_interval_table(source, columns, settings)
    )


def _of_run(source: SampleSource, settings: CertifyingSettings, progress: Progress) -> CertifiedSource:
    from certcal.calibrators import CertifiedSamples
    from certcal.smoothing import Counts, Run, open_run, usable_counts

    alpha = alpha_of_run(settings.alpha)
    run = None if isinstance(source.data, Counts) else source.data
    run = run if run is None or isinstance(run, Run) else open_run(run)
    counts: Counts = source.data if run is None else usable_counts(run, drawn_only=settings.drawn_only)
    progress.stage("certifying")
    made = CertifiedSamples.from_counts(
        counts,
        settings.radii or [float(f"{counts.sigma / 2:.6g}")],
        alpha=alpha,
        confidence=settings.kind,
        familywise=settings.familywise,
    )
    manifest = None if run is None else run.manifest
    made = replace(made, source=source.name, fingerprint=samples_of(manifest, counts))
    one = made.certificates[0]
    if settings.familywise:
        note = f"All {len(made):,} certificates hold together: {sure_text(alpha)}, over the noise."
    else:
        note = (
            f"Each certificate fails {times_text(alpha)}, over the noise. The claim counts those that do; the other "
            "numbers on these samples hold where the certificates do."
        )
    origin = IntervalOrigin(one.confidence, one.noise, one.assumptions)
    name = None if manifest is None else manifest.run
    about = {"run": about_run(manifest, counts, one)}
    return CertifiedSource(made, describe_run(manifest, counts, one), about, note, origin, run=name)


def _read_interval_table(
    source: SampleSource, columns: Mapping[str, Any] | None, settings: CertifyingSettings
) -> CertifiedSource:
    from certcal.calibrators import CertifiedSamples

    table = read_intervals(source.data, columns, alpha=settings.alpha is None, samples=True)
    alpha = (table.alpha or 0.0) if settings.alpha is None else settings.alpha
    chosen = chosen_radii(source.name, table.radii, None if settings.radii is None else sorted(settings.radii))
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
        source=source.name,
        fingerprint=rows.fingerprint,
    )
    made = made if rows.radii else replace(made, radii=(UNKNOWN,))
    note = _note((alpha,))
    note += "" if table.origin is None else f" The intervals are {table.origin.sentence}."
    origin = {} if table.origin is None else {"certificates": table.origin.to_dict()}
    about = {"columns": table.layout.to_dict(), **origin}
    whence = "" if table.origin is None else f"; {table.origin.description}"
    description = f"{counted(len(made), 'sample')}; {table.layout.description}{whence}"
    return CertifiedSource(made, description, about, note, table.origin, rows.names, rows.run)


def _note(alpha: Sequence[float]) -> str:
    if not any(alpha):
        return "The intervals are taken as certain; if each may fail with some probability, say which: alpha."
    return f"Each interval fails {times_text(max(alpha))}; numbers on these samples hold where the intervals do."


def chosen_radii(name: str, there: Sequence[str], asked: Sequence[float] | None) -> list[int]:
    """Places of the radii that were asked for."""
    if asked is None:
        return list(range(max(1, len(there))))
    if not there:
        raise InputError(f"{name} has no column of radii", argument="radii", remedy="leave it out, or name the column")
    known = {float(radius): place for place, radius in enumerate(there)}
    for radius in asked:
        if radius not in known:
            raise InputError(f"{name} has no rows at radius {radius:g}; there are {', '.join(there)}", argument="radii")
    return [known[radius] for radius in asked]


def alpha_of_run(asked: float | None) -> float:
    """What each certificate from noise may fail with: what was asked, which cannot be 0, or the usual."""
    if asked == 0:
        reason = "it is 0, and certificates from noise may fail"
        raise InputError(reason, argument="alpha", remedy="give a probability such as 0.001")
    return ALPHA_OF_RUNS if asked is None else asked


def about_run(manifest: Manifest | None, counts: Counts, one: Certificates) -> dict[str, Any]:
    """What was drawn and what came of it, for machines."""
    m = manifest
    drawn = {"sigma": counts.sigma, "noise": counts.noise, "draws": int(counts.draws.min())}
    if m is not None:
        drawn |= {"draws_that_chose": m.n0, "seed": m.seed}
        drawn |= {"model": m.model.description, "samples_of_the_run": m.samples}
        drawn |= {} if m.data.range is None else {"input_range": list(m.data.range)}
    return {
        **drawn,
        "abstained": one.n_abstained,
        "abstention_rate": one.n_abstained / one.n,
        "invalid_outputs": int(counts.invalid.sum()),
    }


def describe_run(manifest: Manifest | None, counts: Counts, one: Certificates, *, several: bool = False) -> str:
    """A run in a line for people; ``several`` kinds of certificates are not named."""
    n, away = len(counts), one.n_abstained
    whole = "" if manifest is None or n == manifest.samples else f" of {manifest.samples:,}"
    noise = NOISE_NAMES[counts.noise]
    level = f"alpha {short_text(one.alpha, 'upper')} {'in all' if one.familywise else 'each'}"
    if one.accounting == "published":
        level += f" (as papers count: {short_text(one.alpha / 3, 'upper')} for each of three bounds)"
    kind = "certificates compared" if several else f"{one.confidence} certificates"
    model = "" if manifest is None else manifest.model.description
    assumed = "".join(f"; assumed: {each}" for each in (LOGITS, IN_DEVIATIONS) if each in model)
    return (
        f"{n:,}{whole} samples, {away:,} abstained ({away / n:.1%}); {noise}, sigma {counts.sigma:g}, "
        f"{int(counts.draws.min()):,} draws each; {kind}, {level}{assumed}"
    )


def samples_of(manifest: Manifest | None, counts: Counts) -> str | None:
    """The fingerprint of a run's samples; of a part of them another one, which also says which they are."""
    if manifest is None or len(counts) == manifest.samples:
        return None if manifest is None else manifest.data.inputs
    return fingerprint_of(np.frombuffer(manifest.data.inputs.encode(), np.uint8), counts.index)
