"""Scores of a table of which it need not be known what was true."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certcal._checks import InputError
from certcal.data._layout import Layout, resolve_columns
from certcal.data._pieces import Arrays, Groups, gather, in_file, pieces
from certcal.data._read import LoadedTable, in_the_file, load_table, piece_of
from certcal.data._roles import IDENTIFIER
from certcal.data._table import CHUNK_NUMBERS, CHUNK_ROWS, Table, check_memory
from certcal.data.formats import open_table
from certcal.predictions import Predictions


@dataclass(frozen=True, eq=False)
class LoadedScores:
    """Scores read from a table without labels, with what was taken for what. Nothing can be measured on them.

    Attributes
    ----------
    path
        The file.
    layout
        Which columns were used.
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
    r"""Read predictions, or scores alone where no column says what was true.

    Scores are checked as those of predictions are, and refused with the column and the row.

    Parameters
    ----------
    path
        The file.
    overrides
        Columns by role; one that is named for what was true must be there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "scores.csv"
    >>> _ = path.write_text("id,prob_0,prob_1\na,0.9,0.1\nb,0.4,0.6\n")
    >>> found = load_scores(path)
    >>> found.confidence.tolist(), found.identifiers["id"].to_pylist()
    ([0.9, 0.6], ['a', 'b'])
    >>> folder.cleanup()
    """
    table = open_table(path)
    with in_file(table.path):
        layout = resolve_columns(table.columns, overrides, labels="optional")
        if layout.is_labelled:
            return load_table(path, overrides)
        arrays, identifiers = _read(table, layout)
        checked = _checked(arrays, layout)
    return LoadedScores(
        table.path,
        layout,
        checked.kind,
        checked.confidence,
        checked.probabilities,
        checked.logits,
        checked.sample_weight,
        identifiers,
    )


def _read(table: Table, layout: Layout) -> tuple[Arrays, dict[str, Any]]:
    from certcal.data._values import Codes
    from certcal.data.arrow import pa

    kinds = ("number", "boolean", "text", "unknown")
    kept = [
        each.name
        for each in table.columns
        if each.name.strip().lower() in IDENTIFIER and each.kind in kinds and each.name not in layout.columns
    ]
    if table.rows is not None:
        check_memory(table.path, 8 * table.rows * len(layout.scores), "apply the map to a part of the table")
    size = max(1, min(CHUNK_ROWS, CHUNK_NUMBERS // len(layout.scores)))
    batches = table.chunks((*layout.columns, *kept), size, numbers=layout.scores)
    found: dict[str, list[Any]] = {name: [] for name in kept}

    def convert(batch: Any, first_row: int) -> Arrays:
        for name, parts in found.items():
            column = batch.column(name)
            parts.append(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)
        return piece_of(batch, layout, first_row, Codes(""))

    arrays = gather(pieces(batches, convert, Groups(None)), table.rows)
    return arrays, {name: pa.chunked_array(parts) for name, parts in found.items()}


def _checked(arrays: Arrays, layout: Layout) -> Predictions:
    """The checks of predictions. Labels stand in that nobody gets to see: what is read of these are the scores."""
    scores, weight = arrays["scores"], arrays.get("sample_weight")
    nothing = np.zeros(scores.shape[0], np.int64)
    try:
        if layout.kind == "confidence":
            return Predictions.from_confidence(scores, nothing, weight)
        if layout.kind == "probabilities":
            return Predictions.from_probabilities(scores, nothing, weight)
        return Predictions.from_logits(scores, nothing, weight)
    except InputError as error:
        raise InputError(in_the_file(str(error), layout, 0)) from None
