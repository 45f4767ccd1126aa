"""From a table to Predictions, whole or in pieces, and to scores of which it need not be known what was true."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, shortened
from certcal._base.outcomes import TwoOutcomes
from certcal.data.formats import OpenTable, check_memory, open_table, physical_memory
from certcal.data.layout import Labels, Overrides, resolve_columns
from certcal.data.pieces import Arrays, Groups, gather, in_file, natural_order, pieces
from certcal.data.schema import Layout, Resolver
from certcal.predictions import Predictions

if TYPE_CHECKING:
    from certcal.data.values import Batch, Codes


@dataclass(frozen=True, eq=False)
class LoadedTable:
    """Predictions read from a file, with what was taken for what."""

    path: Path
    layout: Layout
    predictions: Predictions
    group_names: tuple[str, ...] = ()  # distinct values of the group column, in natural order
    group_codes: NDArray[np.int64] | None = None  # the place of each sample's among them

    def groups(self) -> Iterator[tuple[str, Predictions]]:
        """Each group's name and predictions."""
        if self.group_codes is not None:
            for code, name in enumerate(self.group_names):
                yield name, self.predictions.select(self.group_codes == code)


def split_by(predictions: Predictions, by: Any) -> list[tuple[str, Predictions]]:
    """Each group's name and predictions, from the group of each sample; names in natural order.

    Examples
    --------
    >>> groups = split_by(Predictions.from_confidence([0.9, 0.6, 0.8], [1, 0, 1]), ["b", "a", "b"])
    >>> [(name, len(part)) for name, part in groups]
    [('a', 1), ('b', 2)]
    """
    if isinstance(by, str):
        reason = "predictions have no columns"
        raise InputError(reason, argument="by", remedy="give the group of each sample, or pass a table")
    try:
        labels = np.asarray(list(by)).astype(str)
    except (TypeError, ValueError):
        raise InputError(f"{shortened(by)} is no group per sample; give one each", argument="by") from None
    if labels.size != len(predictions):
        raise InputError(f"it has {labels.size} entries for {len(predictions)} samples; give one each", argument="by")
    names, codes = np.unique(labels, return_inverse=True)
    return [(str(names[place]), predictions.select(codes == place)) for place in natural_order(names.tolist())]


def read_predictions(path: str | os.PathLike[str], **overrides: Unpack[Overrides]) -> Predictions:
    """Read predictions from a file of any format that :func:`open_table` knows.

    Parameters
    ----------
    path
        The file, or anything else that :func:`open_table` takes.
    **overrides
        Columns by role where their names do not say it; see :func:`resolve_columns`.

    Examples
    --------
    >>> read_predictions({"id": [7, 8], "how_sure": [0.9, 0.6], "is_correct": ["yes", "no"]}, confidence="how_sure")
    Predictions(n=2, kind='confidence', accuracy=0.5)
    """
    return load_table(path, overrides).predictions


def load_table(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    by: str | None = None,
    advance: Callable[[int], None] = lambda rows: None,
) -> LoadedTable:
    """Read predictions with the layout found and, when ``by`` names a column, the group of each.

    Parameters
    ----------
    path
        The file, or anything else that :func:`open_table` takes.
    overrides
        Columns by role.
    by
        A column of groups.
    advance
        Called with the number of rows of each piece read.

    Examples
    --------
    >>> loaded = load_table({"conf": [0.9, 0.6, 0.7], "correct": [1, 0, 1], "site": ["a", "b", "a"]}, by="site")
    >>> [(name, len(group)) for name, group in loaded.groups()]
    [('a', 2), ('b', 1)]
    """
    return PredictionStream(path, overrides, by=by).load(advance)


class PredictionStream:
    """Predictions of a table in pieces, from the beginning every time it is iterated; memory is bounded by the piece.

    Parameters
    ----------
    path, overrides
        The file, and columns by role.
    size
        Largest number of rows per piece; by default what is fast.
    by
        A column of groups.
    memory
        Bytes that a piece, or the whole when it is loaded, may take: a file that expands beyond is refused. By default
        all that this machine has; less than 256 MiB counts as that much for a piece.
    labels
        Whether a column must say what was true.

    Examples
    --------
    >>> stream = PredictionStream({"conf": [0.9, 0.6, 0.7], "correct": [1, 0, 1]}, size=2)
    >>> [len(piece) for piece in stream], [len(piece) for piece in stream]
    ([2, 1], [2, 1])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        overrides: Mapping[str, Any] | None = None,
        *,
        size: int | None = None,
        by: str | None = None,
        memory: int | None = None,
        labels: Labels = "needed",
    ) -> None:
        self.table: OpenTable = open_table(path)
        self.table.memory = memory
        self.table.encode_text = True
        self.by = by
        with in_file(self.table.path):
            self.layout = resolve_columns(self.table.columns, overrides, labels=labels)
            if by is not None:
                Resolver(self.table.columns, {"by": by}).column("by")
        self.width = self._width()
        self.size = size

    @property
    def rows(self) -> int | None:
        """Number of rows, when the format says so."""
        return self.table.rows

    def _width(self) -> int:
        family = self.layout.family
        if family is None or not family.is_list:
            return len(self.layout.numbers)
        for batch in self.table.chunks(family.columns, 1):
            first = batch.column(0)[0].as_py()
            return max(1, len(first)) if isinstance(first, list) else 1  # pyright: ignore[reportUnknownArgumentType]
        return 1

    def bytes_in_memory(self) -> int:
        """About how much memory the whole table takes as Predictions; for text that is not known before reading it."""
        if self.rows is not None:
            return self.rows * (8 * self.width + 17)
        size = self.table.file.stat().st_size
        plain = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson")
        return size if self.table.file.suffix in plain else 10 * size

    def __iter__(self) -> Iterator[Predictions]:
        for found, _ in self._pieces(Groups(None)):
            yield found

    def in_groups(self, names: list[str]) -> Iterator[tuple[Predictions, NDArray[np.int64]]]:
        """The pieces, each with its samples' groups as positions in ``names``, to which new groups are added."""
        groups = Groups(self.by)
        for found, codes in self._pieces(groups):
            names[:] = groups.codes.names
            yield found, codes

    def _pieces(self, groups: Groups) -> Iterator[tuple[Predictions, Any]]:
        first_row = 0
        for piece in self._arrays(self.size, groups):
            codes = piece.pop("group", None)
            with in_file(self.table.path):
                found = _make_predictions(piece, self.layout, first_row)
            yield found, codes
            first_row += len(found)

    def load(self, advance: Callable[[int], None] = lambda rows: None, most: int | None = None) -> LoadedTable:
        """The whole table in memory, of at most so many bytes; ``advance`` is called with the rows of each piece."""
        table = self.table
        if table.rows is not None:
            check_memory(
                table.path, self.bytes_in_memory() // 2, "read it in pieces (PredictionStream, or memory of measure)"
            )
        # An npz archive is in memory as a whole anyway: one piece, no copy.
        size = max(table.rows or 1, 1) if table.file.name.lower().endswith(".npz") else self.size
        groups = Groups(self.by)
        with in_file(table.path):
            if most is None and (memory := physical_memory() if table.memory is None else table.memory) is not None:
                most = memory // 2
            arrays = gather(self._arrays(size, groups), table.rows, advance, most)
            names, codes = groups.in_order(arrays.pop("group", None))
            return LoadedTable(table.path, self.layout, _make_predictions(arrays, self.layout, 0), names, codes)

    def _arrays(self, size: int | None, groups: Groups) -> Iterator[Arrays]:
        """Arrays of each piece, not yet checked for range."""
        from certcal.data.values import Codes

        layout, classes = self.layout, Codes(of_classes=True)
        two = TwoOutcomes(layout.positive) if layout.kind == "score" else None

        def convert(batch: Batch) -> Arrays:
            return _convert(batch, layout, classes, two)

        return pieces(self.table, layout, convert, width=self.width, size=size, groups=groups)


def _convert(batch: Batch, layout: Layout, classes: Codes, two: TwoOutcomes | None) -> Arrays:
    """Scores and weights with what was true, if a column says it: "correct", or "labels" of scores per class."""
    from certcal.data.values import equal_classes

    family, label, prediction = layout.family, layout.get("label"), layout.get("prediction")
    piece: Arrays = {
        "scores": batch[_score_column(layout)].numbers() if family is None else batch.family(family),
    }
    correct = layout.get("outcome") or layout.get("correct")
    if correct is not None:
        piece["correct"] = batch[correct].outcomes(two=two)
    elif label is not None and prediction is not None:
        piece["correct"] = equal_classes(classes, batch[label], batch[prediction])
    elif label is not None and family is not None:
        piece["labels"] = batch[label].class_numbers(family.classes, is_ordered=family.is_ordered)
    if (weight := layout.get("weight")) is not None:
        piece["sample_weight"] = batch[weight].numbers()
    return piece


def _score_column(layout: Layout) -> str:
    return str(layout.roles[layout.kind])


def _make_predictions(arrays: Arrays, layout: Layout, first_row: int) -> Predictions:
    """Predictions; errors name the column and the row of the file. Where truth is not known, nobody gets to see it."""
    make: Callable[..., Predictions] = {
        "score": Predictions.from_scores,
        "confidence": Predictions.from_confidence,
        "probabilities": Predictions.from_probabilities,
        "logits": Predictions.from_logits,
    }[layout.kind]
    truth = arrays.get("correct" if layout.family is None else "labels")
    if truth is None:
        truth = np.zeros(arrays["scores"].shape[0], np.int64)
    try:
        return make(arrays["scores"], truth, arrays.get("sample_weight"))
    except InputError as error:
        text = _located(str(error), layout, first_row)
        raise InputError(text, roles=("logits",) if text.endswith(_NAME_LOGITS) else ()) from None


_NAME_LOGITS = "for logits, name one column per class as logits"
_PLACE = re.compile(r"^(scores|confidence|probabilities|logits|labels|sample_weight)\[(\d+)(?:, (\d+))?\]")


def _located(text: str, layout: Layout, first_row: int) -> str:
    """An array's complaint in the words of the file: ``confidence[3]`` is a row of a column."""
    match = _PLACE.match(text)
    if match is None:
        return text
    role, row, family = match[1], first_row + int(match[2]) + 1, layout.family
    of = {"labels": "label", "sample_weight": "weight"}.get(role, layout.kind)
    place = f"column {layout.get(of)!r}, row {row}"
    if of == layout.kind and family is not None:
        whole = match[3] is None or family.is_list
        place = (
            f"row {row} of {family.description}" if whole else f"column {family.columns[int(match[3])]!r}, row {row}"
        )
    said = text[match.end() :]
    said = re.sub(r" \(for logits use (Predictions\.)?from_logits\)$", f"; {_NAME_LOGITS}", said)
    return place + re.sub(r" or use (Predictions\.)?from_logits for logits$", f" or, {_NAME_LOGITS}", said)


@dataclass(frozen=True, eq=False)
class LoadedScores:
    """Scores read from a table without labels, as :class:`certcal.Predictions` has them; nothing can be measured."""

    path: Path
    layout: Layout
    kind: Literal["score", "confidence", "probabilities", "logits"]
    confidence: NDArray[Any]
    probabilities: NDArray[Any] | None
    logits: NDArray[Any] | None
    sample_weight: NDArray[np.float64] | None

    def __len__(self) -> int:
        return self.confidence.size


def load_scores(path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> LoadedTable | LoadedScores:
    """Read predictions, or scores alone where no column says what was true.

    Scores are checked as those of predictions are, and refused with the column and the row.

    Parameters
    ----------
    path
        The file, or anything else that :func:`open_table` takes.
    overrides
        Columns by role; one that is named for what was true must be there.

    Examples
    --------
    >>> load_scores({"id": ["a", "b"], "prob_0": [0.9, 0.4], "prob_1": [0.1, 0.6]}).confidence.tolist()
    [0.9, 0.6]
    """
    stream = PredictionStream(path, overrides, labels="optional")
    found = stream.load()
    if found.layout.is_labelled:
        return found
    names = ("kind", "confidence", "probabilities", "logits", "sample_weight")
    scores = {name: getattr(found.predictions, name) for name in names}
    return LoadedScores(found.path, found.layout, **scores)
