"""From a table to Predictions, whole or in pieces, and to scores of which it need not be known what was true."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, shortened
from certcal._base.outcomes import TwoOutcomes
from certcal.data.formats import CHUNK_ROWS, OpenTable, check_memory, open_table, physical_memory
from certcal.data.layout import Layout, Overrides, resolve_columns
from certcal.data.pieces import Arrays, CellError, Groups, gather, in_file, natural_order, pieces
from certcal.data.roles import Resolver
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
        labels: Literal["needed", "optional"] = "needed",
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
            return LoadedTable(table.path, self.layout, _checked(arrays, self.layout, 0), names, codes)

    def _arrays(self, size: int | None, groups: Groups) -> Iterator[Arrays]:
        """Arrays of each piece, not yet checked for range."""
        from certcal.data.values import Codes

        layout, classes, two = self.layout, Codes(of_classes=True), _two(self.layout)

        def convert(batch: Any, first_row: int) -> Arrays:
            return _piece(batch, layout, first_row, classes, two)

        how: dict[str, Any] = {"numbers": layout.scores, "width": self.width, "size": size, "groups": groups}
        return pieces(self.table, layout.columns, convert, **how)


def _piece(batch: Any, layout: Layout, first_row: int, classes: Codes, two: TwoOutcomes | None) -> Arrays:
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
        piece["correct"] = values.outcomes(batch.column(layout.correct), layout.correct, first_row, two=two)
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


def _two(layout: Layout) -> TwoOutcomes | None:
    """What tells two outcomes of a binary score apart."""
    return TwoOutcomes(layout.positive) if layout.kind == "score" else None


def _checked(arrays: Arrays, layout: Layout, first_row: int) -> Predictions:
    """Predictions; errors name the column and the row of the file. Where truth is not known, nobody gets to see it."""
    make = {
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
        text = _in_the_file(str(error), layout, first_row)
        raise InputError(text, roles=("logits",) if text.endswith(_AS_LOGITS) else ()) from None


_AS_LOGITS = "for logits, name one column per class as logits"
_PLACE = re.compile(r"^(scores|confidence|probabilities|logits|labels|sample_weight)\[(\d+)(?:, (\d+))?\]")


def _in_the_file(text: str, layout: Layout, first_row: int) -> str:
    """An array's complaint in the words of the file: ``confidence[3]`` is a row of a column."""
    match = _PLACE.match(text)
    if match is None:
        return text
    role, row, family = match[1], first_row + int(match[2]) + 1, layout.family
    columns = {
        "scores": layout.confidence,
        "confidence": layout.confidence,
        "labels": layout.label,
        "sample_weight": layout.weight,
    }
    place = f"column {columns.get(role)!r}, row {row}"
    if role not in columns and family is not None:
        whole = match[3] is None or family.is_list
        place = (
            f"row {row} of {family.description}" if whole else f"column {family.columns[int(match[3])]!r}, row {row}"
        )
    said = text[match.end() :]
    said = re.sub(r" \(for logits use (Predictions\.)?from_logits\)$", f"; {_AS_LOGITS}", said)
    return place + re.sub(r" or use (Predictions\.)?from_logits for logits$", f" or, {_AS_LOGITS}", said)


@dataclass(frozen=True, eq=False)
class LoadedScores:
    """Scores read from a table without labels, with what was taken for what. Nothing can be measured on them.

    Attributes
    ----------
    path, layout
        The file, and which columns were used.
    kind, confidence, probabilities, logits, sample_weight
        As those of :class:`certcal.Predictions`.
    """

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


def other_columns(
    path: str | os.PathLike[str], used: Sequence[str], rows: NDArray[np.int64]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Some rows of the columns (pyarrow) that a table has beside those in use, to be written again.

    Parameters
    ----------
    path
        The file, or anything else that :func:`open_table` takes.
    used
        Names of the columns that are not asked for.
    rows
        Positions of the rows.

    Returns
    -------
    tuple
        Columns by name, and the names of those that cannot be kept: lists, what Arrow cannot hold, and names that stand
        there twice.

    Examples
    --------
    >>> table = {"p": [0.5, 0.25], "site": ["a", "b"], "pixels": [[1], [2]]}
    >>> kept, lost = other_columns(table, ["p"], np.array([1]))
    >>> kept["site"].to_pylist(), lost
    (['b'], ('pixels',))
    """
    table = open_table(path)
    others = {each.name: each.kind for each in table.columns if each.name not in used}
    plain = [name for name, kind in others.items() if kind != "list" and table.names.count(name) == 1]
    try:
        found = _whole(table, plain)
    except InputError:  # one of them cannot be read; the others can
        found: dict[str, Any] = {}
        for name in plain:
            with suppress(InputError):
                found |= _whole(table, [name])
    kept = {name: found[name].take(rows) for name in plain if name in found and len(found[name]) > rows.max()}
    kept = {name: _as_numbers(column) if others[name] == "unknown" else column for name, column in kept.items()}
    return kept, tuple(name for name in others if name not in kept)


def _as_numbers(column: Any) -> Any:
    """A column of a text file as numbers where these are written in the same way; else as it is: 007 stays a text."""
    from certcal.data.arrow import pa

    for kind in (pa.int64(), pa.float64()):
        try:
            numbers = column.cast(kind)
        except pa.ArrowInvalid:
            continue
        if numbers.cast(column.type).equals(column):
            return numbers
    return column


def sample_keys(source: Any, column: str, *, required: bool = True) -> list[str] | None:
    """What a column says for each row about which sample it is: each value once.

    Parameters
    ----------
    source
        The file, or anything else that :func:`open_table` takes.
    column
        Its name.
    required
        Refuse values that are missing or stand twice, instead of returning None.

    Examples
    --------
    >>> sample_keys({"id": [7, 8.0, "9"], "score": [0.1, 0.2, 0.3]}, "id")
    ['7', '8', '9']
    """
    from certcal.data.values import Codes

    table = open_table(source)
    with in_file(table.path):
        name = str(Resolver(table.columns, {"key": column}).column("key"))
        codes, seen = Codes(name, limit=2**62), 0
        try:
            for batch in table.chunks((name,), CHUNK_ROWS):
                found = codes.add(batch.column(0), seen)
                expected = np.arange(seen, seen + found.size)
                if not np.array_equal(found, expected):
                    row = int(np.flatnonzero(found != expected)[0])
                    twice = codes.names[int(found[row])]
                    raise CellError(name, seen + row + 1, f"has {twice!r} again", "a key says each value once")
                seen += found.size
        except CellError:
            if required:
                raise
            return None
    return codes.names


def _whole(table: OpenTable, names: list[str]) -> dict[str, Any]:
    """Columns that are no lists, each as one."""
    parts: dict[str, list[Any]] = {name: [] for name in names}
    for batch in table.chunks(names) if names else ():
        for name, column in parts.items():
            column.append(batch.column(name))
    joined = {name: _joined(column) for name, column in parts.items() if column}
    return {name: column for name, column in joined.items() if column is not None}


def _joined(parts: list[Any]) -> Any:
    """Parts of a column as one, whose texts can be picked from; as text where they are of several types."""
    from certcal.data.arrow import pa

    plain = [_decoded(part) if pa.types.is_dictionary(part.type) else _texts(part) for part in parts]
    types = {part.type for part in plain}
    if any(pa.types.is_nested(each) for each in types):
        return None
    return pa.chunked_array([part.cast(pa.large_string()) for part in plain] if len(types) > 1 else plain)


def _decoded(part: Any) -> Any:
    from certcal.data.arrow import pa

    return pa.DictionaryArray.from_arrays(part.indices, _texts(part.dictionary)).dictionary_decode()


def _texts(part: Any) -> Any:
    """Views of texts as texts; pyarrow cannot pick from views."""
    from certcal.data.arrow import pa

    return part.cast(pa.large_string()) if pa.types.is_string_view(part.type) else part
