"""The work on the entries of a study: read predictions, measure them, or say why that cannot be done; on an engine."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from certcal._base import checks as _checks
from certcal._base.checks import InputError
from certcal._base.threads import one_thread
from certcal.engines import Engine, EngineError
from certcal.lab.study._entries import Entry, Key, escape_undecodable
from certcal.lab.study._table import FAILED, OK
from certcal.predictions import Predictions

Row = dict[str, "float | str"]
_MOST_NAMED = 20


@dataclass(frozen=True)
class Origin:
    """What was measured: the file's name, its size, and when it was changed, or a digest of what was in memory."""

    source: str
    size: float
    changed: str


@dataclass(frozen=True)
class File:
    """A file to read, with its content where the reader may not see the file itself."""

    shown: str
    path: Path
    content: bytes | None = None

    @contextmanager
    def open_path(self) -> Generator[Path, None, None]:
        """A path at which the file can be read; what is wrong with it is said under the name that the user knows."""
        place = self.path
        try:
            if self.content is None:
                yield place
            else:
                with TemporaryDirectory(prefix="certcal-") as folder:
                    place = Path(folder, self.path.name)
                    place.write_bytes(self.content)
                    yield place
        except InputError as error:
            raise InputError(self._replace_path(str(error), place)) from None

    def _replace_path(self, text: str, place: Path) -> str:
        """A sentence about a path, about the name that the user knows; also of files beside it."""
        text = text.replace(str(place), self.shown)
        beside = self.shown.removesuffix(escape_undecodable(place.name))
        return text.replace(f"{place.parent}{os.sep}", beside) if beside != self.shown and place.parent.name else text


@dataclass(frozen=True, eq=False)
class EntryWork:
    """One entry, ready to travel."""

    number: int
    key: Key
    origin: Origin
    predictions: Predictions | File | None
    others: Mapping[str, Any]
    problem: str = ""

    def __str__(self) -> str:
        model, data, split = self.key
        return f"model {model!r} on {data!r} ({split})"

    @classmethod
    def of(cls, number: int, entry: Entry) -> EntryWork:
        """The work on an entry. Files are looked at now and read later, so that a change in between is noticed."""
        others = {name: _locate_predictions(entry, value) for name, value in entry.out_of_distribution.items()}
        problem = (entry.reason or "there are no predictions of this model") if entry.predictions is None else ""
        own = _locate_predictions(entry, entry.predictions)
        return cls(number, entry.key, _origin(own, others), own, others, problem)

    def with_contents(self) -> EntryWork:
        """Read the files into memory, for workers that do not see them."""
        try:
            own = _with_content(self.predictions)
            return replace(self, predictions=own, others={name: _with_content(v) for name, v in self.others.items()})
        except InputError as error:
            return replace(self, predictions=None, others={}, problem=str(error))


def _locate_predictions(entry: Entry, value: Any) -> Any:
    path = entry.path(value)
    return value if path is None else File(escape_undecodable(str(value)), path.absolute())  # workers may be elsewhere


def _with_content(value: Any) -> Any:
    if not isinstance(value, File):
        return value
    from certcal.data.formats import file_ends

    with value.open_path() as path:
        file_ends(path)  # says what is wrong with a file that is not there
        try:
            return replace(value, content=path.read_bytes())
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error}); check its permissions") from error


def _origin(own: Any, others: Mapping[str, Any]) -> Origin:
    size, changed = _state(own)
    for name, other in others.items():
        more, when = _state(other)
        size += more
        changed += f" {name} {other.shown if isinstance(other, File) else ''} {when}" if changed else ""
    return Origin(own.shown if isinstance(own, File) else "", size, changed)


def _state(value: Any) -> tuple[float, str]:
    """Size, and what changes with the content: the time of the last change, or a digest."""
    if value is None:
        return math.nan, ""
    if isinstance(value, File):
        try:
            found = value.path.stat()
        except (OSError, ValueError):
            return math.nan, ""
        return float(found.st_size), str(found.st_mtime_ns)
    arrays: list[Any] = [value]
    if isinstance(value, Predictions):
        scores = value.logits if value.logits is not None else value.probabilities
        arrays = [value.kind, value.confidence if scores is None else scores, value.labels, value.sample_weight]
    digest, size = hashlib.blake2b(digest_size=16), 0
    for array in map(np.asarray, arrays):
        digest.update(f"{array.dtype} {array.shape}\n".encode())
        digest.update(str(array).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes())
        size += array.nbytes
    return float(size), f"blake2b:{digest.hexdigest()}"


def _failed_row(reason: str) -> Row:
    return {"status": FAILED, "reason": escape_undecodable(" ".join(reason.split()))}


@dataclass(frozen=True)
class MeasurementTask:
    """The task of a study: the row of an entry, whatever happens.

    Every entry is measured on one thread: sums have the same bits wherever it is done.
    """

    bins: tuple[int, ...]
    validation: float
    seed: int
    columns: Mapping[str, str]
    kde: str = "gaussian"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the measurement, as the table stores them."""
        found: dict[str, Any] = {"bins": [*self.bins], "validation": self.validation, "seed": self.seed}
        found |= {} if self.kde == "gaussian" else {"kde": self.kde}
        return {**found, "columns": dict(self.columns)} if self.columns else found

    def prepare(self) -> None:
        """Do nothing: imports happen with the first piece."""

    def __call__(self, work: EntryWork, /) -> Row:
        """The row of an entry; one that failed says why."""
        try:
            with one_thread():
                return self._row(work)
        except InputError as error:
            return _failed_row(str(error))
        except MemoryError:
            return _failed_row("there is not enough memory to measure it; use fewer workers")
        except Exception as error:  # one broken file must not end the study
            return _failed_row(f"{type(error).__name__}: {error}")

    def _row(self, work: EntryWork) -> Row:
        from certcal.lab.study._battery import battery

        if work.problem:
            return _failed_row(work.problem)
        predictions, others = (
            self._read_predictions(work.predictions),
            {name: _scores(v) for name, v in work.others.items()},
        )
        if predictions.task == "binary":  # the same model as one with two classes, whose temperature can be fitted
            p = predictions.confidence
            classes, weight = np.stack((1 - p, p), axis=1), predictions.sample_weight
            predictions = Predictions.from_probabilities(classes, predictions.correct, weight)
        if predictions.classes is None:
            raise InputError(
                f"{work.origin.source or work}: there are only confidences; temperature scaling needs logits or "
                "probabilities of every class"
            )
        found = battery(
            predictions,
            bins=self.bins,
            validation=self.validation,
            seed=self.seed,
            kde=self.kde,
            out_of_distribution=others,
        )
        tested = found.before.n
        sizes = {"n": tested, "n_validation": len(predictions) - tested, "classes": predictions.classes}
        return {**sizes, **found.to_row(), "status": OK, "reason": ""}

    def _read_predictions(self, predictions: Any) -> Predictions:
        if not isinstance(predictions, File):
            return predictions
        from certcal.data import load_table

        with predictions.open_path() as path:
            try:
                return load_table(path, self.columns).predictions
            except InputError:
                self._refuse_without_classes(path)
                raise

    def _refuse_without_classes(self, path: Path) -> None:
        """Say so if a file has nothing that could be logits or probabilities: other advice would lead astray."""
        from certcal.data import open_table
        from certcal.data.schema import find_families

        if self.columns.keys() & {"logits", "probabilities"}:
            return
        columns = open_table(path).columns
        if not find_families(columns):
            listed = ", ".join(repr(column.name) for column in columns[:_MOST_NAMED])
            raise InputError(
                f"{path}: there are no logits or probabilities of two classes or more; name their columns "
                f"(logits or probabilities) if they are called otherwise; the columns are {listed}"
            )


def _scores(value: Any) -> Any:
    """Confidences on other data, which need no labels."""
    if not isinstance(value, File):
        return _checks.confidences(value, "out_of_distribution")
    from certcal.data.predictions import LoadedScores, load_scores

    with value.open_path() as path:
        found = load_scores(path)
    return found.confidence if isinstance(found, LoadedScores) else found.predictions.confidence


def rows(
    engine: Engine, task: MeasurementTask, pieces: Iterator[EntryWork]
) -> Generator[tuple[EntryWork, Row], None, None]:
    """Each piece with its row, in any order.

    A piece that ends every worker that takes it (out of memory, a crash in native code) is a row that failed. Which
    one it was of those under way is found by trying them again in ever smaller groups. An engine that can do nothing
    at all raises its error here.
    """
    flying: dict[int, EntryWork] = {}

    def taken() -> Iterator[EntryWork]:
        for piece in pieces:
            flying[piece.number] = piece
            yield piece

    while True:
        try:
            for number, row in _run_pieces(engine, task, taken()):
                yield flying.pop(number), row
            return
        except EngineError:
            if not flying or not _engine_works(engine, task):
                raise
        lost = [*flying.values()]
        flying.clear()
        yield from _in_smaller_groups(engine, task, lost)


def _run_pieces(engine: Engine, task: MeasurementTask, pieces: Iterable[EntryWork]) -> Iterator[tuple[int, Row]]:
    sent = pieces if engine.shares_files else (piece.with_contents() for piece in pieces)
    with closing(engine.run(task, sent)) as results:
        for piece, row in results:
            yield piece.number, row


def _engine_works(engine: Engine, task: MeasurementTask) -> bool:
    nothing = EntryWork(-1, ("", "", ""), Origin("", 0.0, ""), None, {}, "there is nothing to do")
    try:
        return len(list(_run_pieces(engine, task, [nothing]))) == 1
    except EngineError:
        return False


def _in_smaller_groups(
    engine: Engine, task: MeasurementTask, works: list[EntryWork]
) -> Iterator[tuple[EntryWork, Row]]:
    rest = {work.number: work for work in works}
    try:
        for number, row in _run_pieces(engine, task, works):
            yield rest.pop(number), row
        return
    except EngineError as error:
        if len(works) == 1:
            yield works[0], _failed_row(str(error))
            return
    left = [*rest.values()]
    middle = (len(left) + 1) // 2
    for half in (left[:middle], left[middle:]):
        if half:
            yield from _in_smaller_groups(engine, task, half)
