"""What do other samples look like after a map? A table of intervals or predictions, without the samples of the fit."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.progress import Progress, ProgressLike, as_reporter
from certcal._base.signature import Option, Range, Takes, defaults_of, gather, verb
from certcal._base.text import counted, plain_name
from certcal.calibrators import (
    CertifiedSamples,
    GroupedMap,
    IntervalCalibrator,
    MapInput,
    RealScores,
    Saved,
    ScoreCalibrator,
    VennAbers,
    describe,
    load,
    takes_real_scores,
)
from certcal.data import IntervalOrigin, Layout
from certcal.data.columns import METADATA, columns_as_bytes, columns_as_table, other_columns
from certcal.data.frames import is_table
from certcal.data.predictions import LoadedScores, load_scores
from certcal.data.schema import IDENTIFIER, READING
from certcal.predictions import Predictions, task_of
from certcal.result import Result
from certcal.smoothing import CertificateName
from certcal.verbs.certified_samples import (
    ROLES,
    UNKNOWN,
    CertifiedSource,
    CertifyingSettings,
    SampleSource,
    load_certified,
    source_of,
)
from certcal.verbs.recalibrate import Recalibration, class_names, prediction_fingerprint

if TYPE_CHECKING:
    from certcal.smoothing import CertificateKind

ENDINGS = (".parquet", ".csv")
_LONGEST = 2000  # characters that a file keeps of the maps that its confidences went through
_RECALIBRATION = "certcal.recalibration"


@dataclass(frozen=True)
class ApplySettings(CertifyingSettings):
    """How samples are certified before the map is applied, and which of them are kept."""

    everything: bool


@dataclass(frozen=True, eq=False, repr=False)
class MappedTable(Result):
    """Samples after a map, as a table that :func:`certcal.measure` or certification reads."""

    view: ClassVar[str] = "certcal.report.views.mapped_table"
    forms: ClassVar[Sequence[str]] = ENDINGS

    source: str
    description: str
    """What the map was applied to."""
    map: str
    """The map, in words."""
    table: Mapping[str, Any]
    """Columns by name."""
    metadata: Mapping[str, str]
    """What a Parquet file keeps besides."""
    written: int
    left_out: int
    """Numbers of samples."""
    notes: tuple[str, ...]
    """What was done, one sentence each."""
    reader: str | None
    """The verb that reads the table, "certify" or "measure"; None where nothing can be measured."""
    after: Predictions | CertifiedSamples | None
    """The samples: :class:`~certcal.Predictions` or :class:`~certcal.calibrators.CertifiedSamples`; None without
    labels."""
    roles: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Columns that must be named for the reader, by role, as they had to be for the map."""

    def __repr__(self) -> str:
        return f"<MappedTable of {self.source}: {counted(self.written, 'sample')} after {self.map}>"

    def contents(self) -> dict[str, Any]:
        """What was done, as plain values for JSON."""
        names = ("source", "map", "written", "left_out")
        facts = {name: getattr(self, name) for name in names}
        return {**facts, "columns": list(self.table), "notes": list(self.notes)}

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """The table."""
        return {name: values.to_pylist() for name, values in zip(self.table, self.to_arrow().columns, strict=True)}

    def to_arrow(self) -> Any:
        """The table as a pyarrow Table that also says which map it went through."""
        return columns_as_table(self.table, self.metadata)

    def to_csv(self) -> str:
        """The table as CSV; it cannot say which map it went through."""
        return columns_as_bytes(self.table, ".csv").decode()

    def to_bytes(self, form: str, **options: Any) -> bytes:
        """The content of a file of the table, .parquet or .csv."""
        return columns_as_bytes(self.table, form, self.metadata)


@verb(roles=ROLES)
def apply_map(
    map: Any,
    data: Any,
    *,
    columns: Mapping[str, Any] | None = None,
    radii: Annotated[float | Iterable[float] | None, Range(0), Option("--radius", metavar="R", ordered=True)] = None,
    alpha: Annotated[float | None, Takes("failure", zero=True)] = None,
    familywise: bool = False,
    drawn_only: bool = False,
    kind: Annotated[CertificateName | CertificateKind, Option(metavar="KIND")] = "tangent",
    everything: Annotated[bool, Option("--all")] = False,
    progress: ProgressLike = True,
) -> MappedTable:
    """Apply a map to a run, to intervals or to predictions, without the samples of its fit if they are known.

    A table of scores keeps its columns, in their order, and gets one more: "pd" stays, "pd_calibrated" is new. In a
    table of all classes probabilities after the map take the place of the scores. Where no column is called id or
    sample, one with the number of the row is added, from 0. Predictions need no labels: without them all rows are kept,
    in their order, and which of them the map was fitted to is unknown.

    Parameters
    ----------
    map
        A file that :meth:`certcal.Recalibration.save` wrote, a :class:`certcal.Recalibration`, or a fitted calibrator.
    data, columns
        As for :func:`certcal.recalibrate`.
    radii
        Radii to certify at. Default: half of sigma for a run, all radii of a table.
    alpha
        Failure probability of each sample's interval. Default: 0.001 for a run; for a table its column alpha, or 0.
        Samples on which the verifier abstained must stay in the table, with certified = 0.
    familywise
        Treat alpha as the family-wise error rate: the probability that any certificate fails.
    drawn_only
        Use the finished samples of an incomplete run.
    kind
        Kind of certificate of a run.
    everything
        Also write the samples that the map was fitted to.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import certcal
    >>> from certcal.calibrators import PlattScaling
    >>> fitted = PlattScaling().fit([0.6, 0.7, 0.8, 0.9], [0, 1, 0, 1])
    >>> done = certcal.apply_map(fitted, {"confidence": [0.5, 0.9]})
    >>> list(done.table), done.written
    (['row', 'confidence', 'confidence_calibrated'], 2)
    """
    progress = as_reporter(progress)
    asked = gather(ApplySettings, locals())
    if hasattr(data, "__array__") and not is_table(data):
        reason, remedy = "scores have no names here", "pass {'score': scores}, or write .map.transform(scores)"
        raise InputError(reason, argument="data", remedy=remedy)
    saved, name = open_map(map)
    given = source_of(data, columns, asked, defaults_of(apply_map))
    if given.kind == "predictions":
        return _map_predictions(name, saved, given, columns, progress, everything=everything)
    calibrator: Any = saved.calibrator
    if not isinstance(calibrator, IntervalCalibrator) or isinstance(calibrator, ScoreCalibrator):
        raise InputError(
            f"{name}: certificates cannot pass through a {type(calibrator).__name__}, which is not a map of one "
            f"confidence, and {given.name} is {given.words}; fit a map to it"
        )
    source = load_certified(given, columns, asked, progress)
    progress.stage("applying")
    return _map_certified_samples(name, saved, source, everything=everything)


def open_map(given: Any) -> tuple[Saved, str]:
    """A fitted calibrator with what it was fitted to, and how to speak of it."""
    if isinstance(given, str | os.PathLike):
        path = Path(cast("Any", given))
        return load(path), str(path)
    if isinstance(given, Recalibration):
        return Saved(given.map, given.fitted_on), "the map"
    return given if isinstance(given, Saved) else Saved(given, None), "the map"


def _map_certified_samples(name: str, saved: Saved, source: CertifiedSource, *, everything: bool) -> MappedTable:
    samples = source.samples
    kept = _WrittenSamples.of(
        name, saved, (samples.fingerprint, len(samples), source.run), samples.source, everything=everything
    )
    after = samples.select(kept.positions).mapped(saved.calibrator)  # pyright: ignore[reportArgumentType]
    origin = source.origin or IntervalOrigin("", "")
    before = "" if origin.recalibration is None else f"{origin.recalibration}; then "
    origin = IntervalOrigin(
        origin.confidence, origin.noise, origin.assumptions, (before + kept.recalibration)[-_LONGEST:]
    )
    names = None if source.names is None else [source.names[int(row)] for row in kept.positions]
    radii = after.radii
    at = "" if UNKNOWN in radii else f" at {'radius' if len(radii) == 1 else 'radii'} {', '.join(radii)}"
    columns = _interval_columns(after, kept.positions, names)
    return kept.table(samples.source, source.description, columns, {METADATA: origin.text}, (), "certify", after, at)


def _interval_columns(
    samples: CertifiedSamples, rows: NDArray[np.int64], names: Sequence[str] | None
) -> dict[str, Any]:
    """A row per radius and sample, those of a radius together."""
    n, count = samples.lower.shape
    columns: dict[str, Any] = {}
    if UNKNOWN not in samples.radii:
        columns["radius"] = np.repeat([float(radius) for radius in samples.radii], n)
    columns["sample"] = np.tile(rows, count) if names is None else _names_or_numbers(names) * count
    for name in ("lower", "upper", "certified"):
        columns[name] = getattr(samples, name).T.reshape(-1)
    columns["correct"] = np.tile(samples.correct.astype(np.bool_), count)
    if any(samples.alpha):
        columns["alpha"] = np.repeat(np.array(samples.alpha), n)
    if samples.confidence is not None:
        columns["confidence"] = np.tile(samples.confidence, count)
    return columns


def _names_or_numbers(names: Sequence[str]) -> list[Any]:
    """Names of samples as numbers, if all of them are."""
    return [int(name) for name in names] if all(name.isdecimal() and len(name) < 19 for name in names) else list(names)


def _map_predictions(
    name: str,
    saved: Saved,
    given: SampleSource,
    columns: Mapping[str, Any] | None,
    progress: Progress,
    *,
    everything: bool,
) -> MappedTable:
    """Predictions after the map. Fingerprints are of labels too: without them samples of the fit cannot be told."""
    progress.stage("reading")
    calibrator: Any = saved.calibrator
    rules = calibrator.rules if isinstance(calibrator, GroupedMap) else None
    real = takes_real_scores(calibrator)
    if isinstance(given.data, Predictions) and (real or rules is not None):
        needs = "real scores" if rules is None else f"the columns {', '.join(map(repr, calibrator.group_columns))}"
        raise InputError(f"{name} needs {needs}, and predictions hold none", remedy="give a table")
    loaded = None if isinstance(given.data, Predictions) else load_scores(given.data, columns, real=real, rules=rules)
    layout = None if loaded is None else loaded.layout
    _check_classes(name, saved, given.name, layout)
    _check_task(name, saved, given.name, given.data.task if layout is None else task_of(layout.kind))
    progress.stage("applying")
    notes: tuple[str, ...] = ()
    if isinstance(loaded, LoadedScores):
        n, after = len(loaded), None
        kept = _WrittenSamples.of(name, saved, (None, n, None), given.name, everything=True)
        with _errors_name_map_and_table(name, given.name):
            given_rows = MapInput(loaded, loaded.real, loaded.codes)
            scores = given_rows.apply(calibrator)
        row = "row"
        made = {"confidence": scores} if scores.ndim == 1 else _probability_columns(layout, scores)
        weight, role = loaded.sample_weight, {"score": "outcome", "confidence": "correct"}.get(loaded.kind, "label")
        notes = (
            f"No column says what was true, so nothing can be measured; if one does, name it as the column {role!r}.",
        )
    else:
        before: Predictions = given.data if loaded is None else loaded.predictions
        n = len(before)
        whole = MapInput(before) if loaded is None else MapInput(before, loaded.real, loaded.codes)
        known = (prediction_fingerprint(before, whole.real), n, None)
        kept = _WrittenSamples.of(name, saved, known, given.name, everything=everything)
        with _errors_name_map_and_table(name, given.name):
            given_rows = whole.select(kept.positions)
            after = given_rows.after(given_rows.apply(calibrator))
        scores = after.confidence
        row, made, weight = "sample", _prediction_columns(layout, after), after.sample_weight
    codes = None if loaded is None else loaded.codes
    if codes is not None and (unknown := int((codes[:, kept.positions] < 0).any(axis=0).sum())):
        said = f"{counted(unknown, 'sample')} {'is' if unknown == 1 else 'are'} in groups that the map does not know"
        notes += (f"{said} (of {', '.join(map(repr, calibrator.group_columns))}), and get the common map.",)
    made |= _two_probabilities(calibrator, given_rows, next(iter(made)))
    if weight is not None:
        made["sample_weight"] = weight
    rows = kept.positions if loaded is None or loaded.rows is None else loaded.rows[kept.positions]
    own, named = _own_column(layout), {}
    if own is not None:
        made, lost = other_columns(cast("Any", given.data), [], rows)
        new = f"{own[1]}_calibrated"
        while new in made:
            new += "_again"
        made = _with_row_numbers(made, row, rows) | {new: scores} | _two_probabilities(calibrator, given_rows, own[1])
        # Columns that had to be named have to be named again; numbers are written in one way, however they were read.
        named = {role: value for role, value in (columns or {}).items() if value and role not in READING}
        named[own[0]] = new
    else:
        made, lost = _add_other_columns(made, given.data, layout, row, rows)
    if lost:
        notes += (f"Columns of lists, and those with a name that stands twice, are left out: {', '.join(lost)}.",)
    description = counted(n, "sample") + ("" if layout is None else f"; {layout.description}")
    metadata = {_RECALIBRATION: kept.recalibration}
    reader = None if after is None else "measure"
    return replace(kept.table(given.name, description, made, metadata, notes, reader, after), roles=named)


@contextmanager
def _errors_name_map_and_table(name: str, source: str) -> Generator[None, None, None]:
    """Say of which map and table it is that they do not fit."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name} does not fit {source}: {error}") from None


def _check_task(name: str, saved: Saved, source: str, task: str) -> None:
    """Refuse a map of binary scores for confidences of the predicted class, and the other way round."""
    fitted = None if saved.fitted_on is None else saved.fitted_on.task
    if fitted is None or (fitted == "binary") == (task == "binary"):
        return
    words = "binary scores", "confidences of the predicted class"
    there = words if fitted == "binary" else words[::-1]
    remedy = "name the column of the score and that of the outcome" if fitted == "binary" else "fit a map to scores"
    raise InputError(f"{name} was fitted to {there[0]}, and {source} has {there[1]}", remedy=remedy)


def _check_classes(name: str, saved: Saved, source: str, layout: Layout | None) -> None:
    """Refuse scores whose columns are other classes, or the same in another order."""
    fitted = None if saved.fitted_on is None else saved.fitted_on.classes
    given = None if layout is None else class_names(layout)
    if not isinstance(saved.calibrator, ScoreCalibrator) or fitted is None or given is None or fitted == tuple(given):
        return
    pairs = zip(fitted, given, strict=False)
    place = next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(fitted), len(given)))
    there = [repr(names[place]) if place < len(names) else "none" for names in (fitted, given)]
    raise InputError(
        f"{name} does not fit {source}: the map's class number {place} is {there[0]}, and that of the columns is "
        f"{there[1]}; name the columns of probabilities or logits in the map's order"
    )


def _probability_columns(layout: Layout | None, probabilities: NDArray[Any]) -> dict[str, Any]:
    names = (None if layout is None else class_names(layout)) or [str(k) for k in range(probabilities.shape[1])]
    return {f"prob_{name}": column for name, column in zip(names, probabilities.T, strict=True)}


def _two_probabilities(calibrator: Any, given: MapInput, name: str) -> dict[str, Any]:
    """Both probabilities of a Venn-Abers map: the interval that its one number lies in."""
    one = calibrator.map_ if isinstance(calibrator, RealScores) else calibrator
    if not isinstance(one, VennAbers):
        return {}
    scores = given.predictions.confidence if given.real is None else calibrator.squashed(given.real)
    return dict(zip((f"{name}_p0", f"{name}_p1"), one.probabilities(scores), strict=True))


def _add_other_columns(
    made: dict[str, Any], data: Any, layout: Layout | None, row: str, rows: NDArray[np.int64]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What says which row it is, or else its number; the new columns; then all others of the table."""
    if layout is None:
        return {row: rows, **made}, ()
    truth = layout.get("label")
    others, lost = other_columns(data, [*layout.numbers, *([] if truth is None else [truth])], rows)
    first = [name for name in others if plain_name(name) in IDENTIFIER]
    kept = {name: others.pop(name) for name in first} | made if first else {row: rows, **made}
    for name, column in others.items():
        free = name
        while free in kept:
            free += "_before"
        kept[free] = column
    return kept, lost


def _with_row_numbers(columns: dict[str, Any], row: str, rows: NDArray[np.int64]) -> dict[str, Any]:
    """Columns, after the number of the row where none of them says which sample it is."""
    return columns if any(plain_name(name) in IDENTIFIER for name in columns) else {row: rows, **columns}


def _own_column(layout: Layout | None) -> tuple[str, str] | None:
    """Role and name of a table's one column of scores or confidences."""
    found = () if layout is None else ((role, layout.get(role)) for role in ("score", "confidence"))
    return next(((role, name) for role, name in found if name is not None), None)


def _prediction_columns(layout: Layout | None, after: Predictions) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if after.probabilities is None or after.labels is None:
        number, truth = ("score", "outcome") if after.kind == "score" else ("confidence", "correct")
        columns |= {number: after.confidence, truth: after.correct.astype(np.bool_)}
    else:
        names = None if layout is None else class_names(layout)
        columns["label"] = after.labels if names is None else [names[int(label)] for label in after.labels]
        columns |= _probability_columns(layout, after.probabilities)
    return columns


@dataclass(frozen=True, eq=False)
class _WrittenSamples:
    """Which samples are written, in words too."""

    map: str
    positions: NDArray[np.int64]
    left_out: int
    fitted_to: str
    sentence: str

    @property
    def recalibration(self) -> str:
        return f"{self.map}, {self.fitted_to}"

    def table(
        self,
        source: str,
        description: str,
        columns: Mapping[str, Any],
        metadata: Mapping[str, str],
        notes: tuple[str, ...],
        reader: str | None,
        after: Predictions | CertifiedSamples | None,
        at: str = "",
    ) -> MappedTable:
        n = self.positions.size
        said = (f"{self.map} was applied to {counted(n, 'sample')}{at}.", *notes, self.sentence)
        return MappedTable(source, description, self.map, columns, metadata, n, self.left_out, said, reader, after)

    @staticmethod
    def of(
        name: str, saved: Saved, known: tuple[str | None, int, str | None], source: str, *, everything: bool
    ) -> _WrittenSamples:
        """Decide by the samples' fingerprint, their number, and the name of the run they are the first of."""
        (fingerprint, n, run), fitted_on, words = known, saved.fitted_on, describe(saved.calibrator)
        every = np.arange(n, dtype=np.int64)
        if fitted_on is None:
            unknown = f"{name} does not say what it was fitted to, so all are kept; make sure that it was not these."
            return _WrittenSamples(
                words, every, 0, "fitted to samples that are not known", unknown[:1].upper() + unknown[1:]
            )
        fit = fitted_on.among(fingerprint, n, run)
        if fit is None:
            some, told = f"fitted to samples of {fitted_on.source}", fitted_on.fingerprint and fingerprint
            why = "These have another fingerprint" if told else "Whether these are among them is unknown"
            sentence = f"The map was {some}. {why}, so all are kept; make sure that it was fitted to none of them."
            return _WrittenSamples(words, every, 0, some, sentence)
        rest = np.setdiff1d(every, fit, assume_unique=True)
        if everything:
            some = f"fitted to {fit.size:,} of these {n:,} samples" if n > 1 else "fitted to this sample"
            sentence = f"The map was {some}: numbers on them are too optimistic."
            return _WrittenSamples(words, every, 0, f"{some}, so that no bound on the population holds", sentence)
        if not rest.size:
            raise InputError(
                f"{name} was fitted to all {n:,} samples of {source}, so none is left to judge it on",
                argument="everything",
                remedy="give other samples, or ask for all of them",
            )
        some = f"fitted to {counted(fit.size, 'other sample')} of {fitted_on.source}"
        sentence = f"{counted(fit.size, 'sample')} that it was fitted to {'is' if fit.size == 1 else 'are'} left out."
        return _WrittenSamples(words, rest, fit.size, some, sentence)
