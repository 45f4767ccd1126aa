"""From a table to Predictions, whole or in pieces, and to scores of which it need not be known what was true."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.data.formats import OpenTable, check_memory, open_table, physical_memory
from certcal.data.layout import Layout, Overrides, resolve_columns
from certcal.data.pieces import Arrays, Groups, gather, in_file, pieces
from certcal.data.roles import IDENTIFIER, Resolver, plain_name
from certcal.predictions import Predictions

if TYPE_CHECKING:
    from certcal.data.values import Codes


@dataclass(frozen=True, eq=False)
class LoadedTable:
    """Predictions read from a file, with what was taken for what.

    Attributes
    ----------
    path, layout
        The file, and which columns were used.
    predictions
        All of them.
    group_names, group_codes
        Distinct values of the group column in natural order, and the place of each sample's; empty and None without.
    """

    path: Path
    layout: Layout
    predictions: Predictions
    group_names: tuple[str, ...] = ()
    group_codes: NDArray[np.int64] | None = None

    def groups(self) -> Iterator[tuple[str, Predictions]]:
        """Each group's name and predictions."""
        if self.group_codes is not None:
            for code, name in enumerate(self.group_names):
                yield name, self.predictions.select(self.group_codes == code)


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
    ) -> None:
        self.table: OpenTable = open_table(path)
        self.table.memory = memory
        self.table.encode_text = True
        self.by = by
        with in_file(self.table.path):
            self.layout = resolve_columns(self.table.columns, overrides)
            if by is not None:
                Resolver(self.table.columns, {"by": by}).column("by")
        self.width = self._width()
        self.size = size

    @property
    def rows(self) -> int | None:
        """Number of rows, when the format says so."""
        return self.table.rows

    def _width(self) -> int:
        """Numbers per row."""
        family = self.layout.family
        if family is None or not family.is_list:
            return len(self.layout.scores)
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
                found = _checked(piece, self.layout, first_row)
            yield found, codes
            first_row += len(found)

    def load(self, advance: Callable[[int], None] = lambda rows: None) -> LoadedTable:
        """The whole table in memory; ``advance`` is called with the number of rows of each piece read."""
        table = self.table
        if table.rows is not None:
            check_memory(
                table.path, self.bytes_in_memory() // 2, "read it in pieces (PredictionStream, or memory of measure)"
            )
        # An npz archive is in memory as a whole anyway: one piece, no copy.
        size = max(table.rows or 1, 1) if table.file.name.lower().endswith(".npz") else self.size
        groups = Groups(self.by)
        with in_file(table.path):
            most = physical_memory() if table.memory is None else table.memory
            arrays = gather(self._arrays(size, groups), table.rows, advance, None if most is None else most // 2)
            names, codes = groups.in_order(arrays.pop("group", None))
            return LoadedTable(table.path, self.layout, _checked(arrays, self.layout, 0), names, codes)

    def _arrays(self, size: int | None, groups: Groups) -> Iterator[Arrays]:
        """Arrays of each piece, not yet checked for range."""
        from certcal.data.values import Codes

        layout, classes = self.layout, Codes(of_classes=True)

        def convert(batch: Any, first_row: int) -> Arrays:
            return _piece(batch, layout, first_row, classes)

        how: dict[str, Any] = {"numbers": layout.scores, "width": self.width, "size": size, "groups": groups}
        return pieces(self.table, layout.columns, convert, **how)


def _piece(batch: Any, layout: Layout, first_row: int, classes: Codes) -> Arrays:
    """Arrays of one record batch, not yet checked for range; without what was true where no column says it."""
    from certcal.data import values

    piece: Arrays = {}
    family = layout.family
    if family is None:
        assert layout.confidence is not None
        piece["scores"] = values.numbers(batch.column(layout.confidence), layout.confidence, first_row)
    elif family.is_list:
        piece["scores"] = values.list_matrix(batch.column(family.columns[0]), family.columns[0], first_row)
    else:
        piece["scores"] = values.matrix([batch.column(c) for c in family.columns], family.columns, first_row)
    if layout.correct is not None:
        piece["correct"] = values.outcomes(batch.column(layout.correct), layout.correct, first_row)
    elif layout.label is None:
        pass  # it is not known what was true
    elif family is None:
        assert layout.prediction is not None
        truth, prediction = ((name, batch.column(name)) for name in (layout.label, layout.prediction))
        piece["correct"] = values.equal_classes(classes, truth, prediction, first_row)
    else:
        piece["labels"] = values.class_numbers(
            batch.column(layout.label), layout.label, first_row, family.classes, is_ordered=family.is_ordered
        )
    if layout.weight is not None:
        piece["sample_weight"] = values.numbers(batch.column(layout.weight), layout.weight, first_row)
    return piece


def _checked(arrays: Arrays, layout: Layout, first_row: int) -> Predictions:
    """Predictions; errors name the column and the row of the file. Where truth is not known, nobody gets to see it."""
    make = {
        "confidence": Predictions.from_confidence,
        "probabilities": Predictions.from_probabilities,
        "logits": Predictions.from_logits,
    }[layout.kind]
    truth = arrays.get("correct" if layout.kind == "confidence" else "labels")
    if truth is None:
        truth = np.zeros(arrays["scores"].shape[0], np.int64)
    try:
        return make(arrays["scores"], truth, arrays.get("sample_weight"))
    except InputError as error:
        raise InputError(_in_the_file(str(error), layout, first_row)) from None


_PLACE = re.compile(r"^(confidence|probabilities|logits|labels|sample_weight)\[(\d+)(?:, (\d+))?\]")


def _in_the_file(text: str, layout: Layout, first_row: int) -> str:
    """An array's complaint in the words of the file: ``confidence[3]`` is a row of a column."""
    match = _PLACE.match(text)
    if match is None:
        return text
    role, row, family = match[1], first_row + int(match[2]) + 1, layout.family
    columns = {"confidence": layout.confidence, "labels": layout.label, "sample_weight": layout.weight}
    place = f"column {columns.get(role)!r}, row {row}"
    if role not in columns and family is not None:
        whole = match[3] is None or family.is_list
        place = (
            f"row {row} of {family.description}" if whole else f"column {family.columns[int(match[3])]!r}, row {row}"
        )
    return place + re.sub(r"(Predictions\.)?from_logits", "the role logits", text[match.end() :])


@dataclass(frozen=True, eq=False)
class LoadedScores:
    """Scores read from a table without labels, with what was taken for what. Nothing can be measured on them.

    Attributes
    ----------
    path, layout
        The file, and which columns were used.
    kind, confidence, probabilities, logits, sample_weight
        As those of :class:`certcal.Predictions`.
    identifiers
        Columns (pyarrow) that say which sample a row is, by name.
    """

    path: Path
    layout: Layout
    kind: Literal["probabilities", "logits", "confidence"]
    confidence: NDArray[Any]
    probabilities: NDArray[Any] | None
    logits: NDArray[Any] | None
    sample_weight: NDArray[np.float64] | None
    identifiers: Mapping[str, Any] = field(default_factory=dict[str, Any])

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
    >>> found = load_scores({"id": ["a", "b"], "prob_0": [0.9, 0.4], "prob_1": [0.1, 0.6]})
    >>> found.confidence.tolist(), found.identifiers["id"].to_pylist()
    ([0.9, 0.6], ['a', 'b'])
    """
    table = open_table(path)
    with in_file(table.path):
        layout = resolve_columns(table.columns, overrides, labels="optional")
        if layout.is_labelled:
            return load_table(path, overrides)
        arrays, identifiers = _read(table, layout)
        checked = _checked(arrays, layout, 0)
    scores = {name: getattr(checked, name) for name in ("kind", "confidence", "probabilities", "logits")}
    return LoadedScores(table.path, layout, **scores, sample_weight=checked.sample_weight, identifiers=identifiers)


def _read(table: OpenTable, layout: Layout) -> tuple[Arrays, dict[str, Any]]:
    from certcal.data.arrow import pa
    from certcal.data.values import Codes

    kinds = ("number", "boolean", "text", "unknown")
    kept = [
        each.name
        for each in table.columns
        if plain_name(each.name) in IDENTIFIER and each.kind in kinds and each.name not in layout.columns
    ]
    if table.rows is not None:
        check_memory(table.path, 8 * table.rows * len(layout.scores), "apply the map to a part of the table")
    found: dict[str, list[Any]] = {name: [] for name in kept}

    def convert(batch: Any, first_row: int) -> Arrays:
        for name, parts in found.items():
            column = batch.column(name)
            parts.append(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)
        return _piece(batch, layout, first_row, Codes())

    columns, scores = (*layout.columns, *kept), layout.scores
    arrays = gather(pieces(table, columns, convert, numbers=scores, width=len(scores)), table.rows)
    return arrays, {name: _joined(parts) for name, parts in found.items()}


def _joined(parts: list[Any]) -> Any:
    """Parts of a column as one; as text where they are of several types."""
    from certcal.data.arrow import pa

    alike = len({part.type for part in parts}) == 1
    return pa.chunked_array(parts if alike else [part.cast(pa.string()) for part in parts])
