"""The work of ``certcal recalibrate apply``: a map and samples in, a table out."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import certcal
from certcal._checks import InputError
from certcal._text import counted
from certcal.calibrators._described import described
from certcal.cli._certified_samples import UNKNOWN, Source, load_certified
from certcal.cli._progress import Waiting
from certcal.cli._recalibrated_sources import class_names, columns_of, prediction_fingerprint
from certcal.cli._reporting import KINDS
from certcal.data import IntervalOrigin, Layout, LoadedScores, LoadedTable, load_scores
from certcal.data._columns import columns_as_bytes
from certcal.data._interval_files import METADATA
from certcal.data._layout import OPTIONS
from certcal.predictions import Predictions
from certcal.report.results import as_text

if TYPE_CHECKING:
    from certcal.calibrators import CertifiedSamples, ConfidenceMap, FittedOn, Saved

ENDINGS = (".parquet", ".csv")
_LONGEST = 2000  # characters that a file keeps of the maps that its confidences went through

_CSV = "CSV does not record which map this was; Parquet does."

Columns = Mapping[str, Any]  # arrays, texts, or columns of pyarrow


@dataclass(frozen=True, eq=False)
class Applied:
    """A table to write, and what is to be said of it.

    Attributes
    ----------
    source, description
        What the map was applied to.
    mapping
        The map, in words.
    columns
        Of the table.
    metadata
        What a Parquet file keeps besides.
    written, left_out
        Numbers of samples.
    sentences
        What was done.
    reader
        The command that reads the table; None where nothing can be measured.
    """

    source: str
    description: str
    mapping: str
    columns: Columns
    metadata: Mapping[str, str]
    written: int
    left_out: int
    sentences: tuple[str, ...]
    reader: str | None

    def content(self, ending: str) -> bytes:
        """The file."""
        return columns_as_bytes(self.columns, ending, self.metadata)

    def to_json(self) -> str:
        """What was done, for machines."""
        return as_text(
            {
                "certcal": certcal.__version__,
                "source": self.source,
                "map": self.mapping,
                "written": self.written,
                "left_out": self.left_out,
                "columns": list(self.columns),
                "notes": list(self.sentences),
            }
        )


def applied(
    mapping: Path, kind: str, path: Path, options: Mapping[str, Any], *, everything: bool, endings: Sequence[str]
) -> Applied:
    """Apply the map of a file to samples that it was not fitted to.

    Parameters
    ----------
    mapping
        The file of the map.
    kind, path
        Of the source.
    options
        Those of the command.
    everything
        Also samples that it was fitted to.
    endings
        Of the files to write.
    """
    done = _applied(mapping, kind, path, options, everything=everything)
    return replace(done, sentences=(*done.sentences, _CSV)) if ".csv" in endings else done


def _applied(mapping: Path, kind: str, path: Path, options: Mapping[str, Any], *, everything: bool) -> Applied:
    from certcal.calibrators import ConfidenceMap, load

    saved = load(mapping)
    if kind == "predictions":
        return _predictions(mapping, saved, path, options, everything=everything)
    name = type(saved.calibrator).__name__
    if not isinstance(saved.calibrator, ConfidenceMap):
        raise InputError(
            f"{mapping}: {name} is a map of the scores of all classes, and {path} is {KINDS[kind]}, with one "
            "confidence per sample; fit a map to it with certcal recalibrate fit"
        )
    with Waiting() as waiting:
        radii = None if options["radii"] is None else tuple(sorted(options["radii"], key=float))
        source = load_certified(kind, path, {**options, "radii": radii, "columns": columns_of(options)}, waiting)
        waiting.stage("applying")
        return _certified(mapping, saved, saved.calibrator, source, everything=everything)


def _certified(mapping: Path, saved: Saved, calibrator: ConfidenceMap, source: Source, *, everything: bool) -> Applied:
    samples = source.samples
    known = (samples.fingerprint, len(samples), source.run)
    rows = _Rows.of(mapping, saved.fitted_on, known, samples.source, everything=everything)
    after = samples.select(rows.positions).mapped(calibrator)
    said = f"{described(calibrator)}, {rows.fitted_to}"
    origin = source.origin or IntervalOrigin("", "")
    before = "" if origin.recalibration is None else f"{origin.recalibration}; then "
    origin = IntervalOrigin(origin.confidence, origin.noise, origin.assumptions, (before + said)[-_LONGEST:])
    names = None if source.names is None else [source.names[int(row)] for row in rows.positions]
    done = f"{described(calibrator)} was applied to {counted(len(after), 'sample')}{_at(after.radii)}."
    return Applied(
        samples.source,
        source.description,
        described(calibrator),
        _interval_columns(after, rows.positions, names),
        {METADATA: origin.text},
        len(after),
        rows.left_out,
        (done, rows.sentence),
        "certify",
    )


def _at(radii: Sequence[str]) -> str:
    return "" if UNKNOWN in radii else f" at {'radius' if len(radii) == 1 else 'radii'} {', '.join(radii)}"


def _interval_columns(samples: CertifiedSamples, rows: NDArray[np.int64], names: Sequence[str] | None) -> Columns:
    """A row per radius and sample, those of a radius together."""
    n, count = samples.lower.shape
    columns: dict[str, Any] = {}
    if UNKNOWN not in samples.radii:
        columns["radius"] = np.repeat([float(radius) for radius in samples.radii], n)
    columns["sample"] = np.tile(rows, count) if names is None else _named(names) * count
    for name in ("lower", "upper", "certified"):
        columns[name] = getattr(samples, name).T.reshape(-1)
    columns["correct"] = np.tile(samples.correct.astype(np.bool_), count)
    if any(samples.alpha):
        columns["alpha"] = np.repeat(np.array(samples.alpha), n)
    if samples.confidence is not None:
        columns["confidence"] = np.tile(samples.confidence, count)
    return columns


def _named(names: Sequence[str]) -> list[Any]:
    """Names of samples as numbers, if all of them are."""
    return [int(name) for name in names] if all(name.isdecimal() and len(name) < 19 for name in names) else list(names)


def _predictions(mapping: Path, saved: Saved, path: Path, options: Mapping[str, Any], *, everything: bool) -> Applied:
    from certcal.calibrators._predictions import recalibrated

    calibrator = saved.calibrator
    with Waiting() as waiting:
        waiting.stage("reading")
        loaded = load_scores(path, {role: options[role] for role in OPTIONS})
        _check_classes(mapping, saved, path, loaded.layout)
        if isinstance(loaded, LoadedScores):
            waiting.stage("applying")
            return _unlabelled(mapping, saved, path, loaded)
        before = loaded.predictions
        found, n = prediction_fingerprint(before), len(before)
        rows = _Rows.of(mapping, saved.fitted_on, (found, n, None), str(path), everything=everything)
        waiting.stage("applying")
        with _fitting(mapping, path):
            after = recalibrated(calibrator, before.select(rows.positions))
    done = f"{described(calibrator)} was applied to {counted(len(after), 'sample')}."
    return Applied(
        str(path),
        f"{counted(n, 'sample')}; {loaded.layout.description}",
        described(calibrator),
        _prediction_columns(loaded, after, rows.positions),
        {"certcal.recalibration": f"{described(calibrator)}, {rows.fitted_to}"},
        len(after),
        rows.left_out,
        (done, rows.sentence),
        "measure",
    )


def _unlabelled(mapping: Path, saved: Saved, path: Path, loaded: LoadedScores) -> Applied:
    """Scores alone. Fingerprints are of labels too, so samples of the fit cannot be told apart here."""
    from certcal.calibrators._predictions import mapped

    calibrator, n = saved.calibrator, len(loaded)
    with _fitting(mapping, path):
        after = mapped(calibrator, loaded)
    rows = _Rows.of(mapping, saved.fitted_on, (None, n, None), str(path), everything=True)
    columns: dict[str, Any] = dict(loaded.identifiers) or {"row": rows.positions}
    columns |= {"confidence": after} if after.ndim == 1 else _probability_columns(loaded.layout, after)
    if loaded.sample_weight is not None:
        columns["sample_weight"] = loaded.sample_weight
    option = "--correct" if loaded.kind == "confidence" else "--label"
    nothing = f"No column says what was true, so nothing can be measured; if one does, name it with {option}."
    return Applied(
        str(path),
        f"{counted(n, 'sample')}; {loaded.layout.description}",
        described(calibrator),
        columns,
        {"certcal.recalibration": f"{described(calibrator)}, {rows.fitted_to}"},
        n,
        0,
        (f"{described(calibrator)} was applied to {counted(n, 'sample')}.", nothing, rows.sentence),
        None,
    )


@contextmanager
def _fitting(mapping: Path, path: Path) -> Generator[None, None, None]:
    """Say of which map and table it is that they do not fit."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{mapping} does not fit {path}: {error}") from None


def _check_classes(mapping: Path, saved: Saved, path: Path, layout: Layout) -> None:
    """Refuse scores whose columns are other classes, or the same in another order."""
    from certcal.calibrators import ConfidenceMap

    fitted, given = None if saved.fitted_on is None else saved.fitted_on.classes, class_names(layout)
    if isinstance(saved.calibrator, ConfidenceMap) or fitted is None or given is None or fitted == tuple(given):
        return
    place = next(
        (k for k, (a, b) in enumerate(zip(fitted, given, strict=False)) if a != b), min(len(fitted), len(given))
    )
    there = [repr(names[place]) if place < len(names) else "none" for names in (fitted, given)]
    raise InputError(
        f"{mapping} does not fit {path}: the map's class number {place} is {there[0]}, and that of the columns is "
        f"{there[1]}; give the columns in the map's order with --probabilities or --logits"
    )


def _probability_columns(layout: Layout, probabilities: NDArray[Any]) -> dict[str, Any]:
    names = class_names(layout) or [str(k) for k in range(probabilities.shape[1])]
    return {f"prob_{name}": column for name, column in zip(names, probabilities.T, strict=True)}


def _prediction_columns(loaded: LoadedTable, after: Predictions, rows: NDArray[np.int64]) -> Columns:
    columns: dict[str, Any] = {"sample": rows}
    if after.probabilities is None or after.labels is None:
        columns |= {"confidence": after.confidence, "correct": after.correct.astype(np.bool_)}
    else:
        names = class_names(loaded.layout)
        columns["label"] = after.labels if names is None else [names[int(label)] for label in after.labels]
        columns |= _probability_columns(loaded.layout, after.probabilities)
    if after.sample_weight is not None:
        columns["sample_weight"] = after.sample_weight
    return columns


@dataclass(frozen=True, eq=False)
class _Rows:
    """Which samples are written, in words too."""

    positions: NDArray[np.int64]
    left_out: int
    fitted_to: str
    sentence: str

    @staticmethod
    def of(
        mapping: Path,
        fitted_on: FittedOn | None,
        known: tuple[str | None, int, str | None],
        source: str,
        *,
        everything: bool,
    ) -> _Rows:
        """Decide by the samples' fingerprint, their number, and the name of the run they are the first of."""
        fingerprint, n, run = known
        every = np.arange(n, dtype=np.int64)
        if fitted_on is None:
            unknown = f"{mapping} does not say what it was fitted to, so all are kept; make sure that it was not these."
            return _Rows(every, 0, "fitted to samples that are not known", unknown)
        fit = fitted_on.among(fingerprint, n, run)
        if fit is None:
            some, told = f"fitted to samples of {fitted_on.source}", fitted_on.fingerprint and fingerprint
            why = "These have another fingerprint" if told else "Whether these are among them cannot be told"
            sentence = f"The map was {some}. {why}, so all are kept; make sure that it was fitted to none of them."
            return _Rows(every, 0, some, sentence)
        rest = np.setdiff1d(every, fit, assume_unique=True)
        if everything:
            some = f"fitted to {fit.size:,} of these {n:,} samples" if n > 1 else "fitted to this sample"
            sentence = f"The map was {some}: what they say of it flatters it."
            return _Rows(every, 0, f"{some}, so that no bound on the population holds", sentence)
        if not rest.size:
            raise InputError(
                f"{mapping} was fitted to all {n:,} samples of {source}, so none is left to judge it on; give others, "
                "or --all to write them all the same"
            )
        sentence = f"{counted(fit.size, 'sample')} that it was fitted to {'is' if fit.size == 1 else 'are'} left out."
        return _Rows(rest, fit.size, f"fitted to {counted(fit.size, 'other sample')} of {fitted_on.source}", sentence)
