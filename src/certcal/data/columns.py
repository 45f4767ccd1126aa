"""Columns as they are: taken from a table or written to a file, and intervals with what is known of their origin."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError
from certcal._base.csv import plain_cell
from certcal._base.told import Told
from certcal.data.formats import OpenTable, open_table
from certcal.data.pieces import CellError, in_file
from certcal.data.schema import Resolver

NOISE_NAMES = {"gaussian": "Gaussian noise", "exact": "exact noise"}
METADATA = "certcal.certificates"
_LONGEST = 4000  # characters; what is longer was not written here
# Independent rows agree less often.
_BY_CHANCE = 1e-6


@dataclass(frozen=True)
class IntervalOrigin(Told):
    """Where intervals come from, in words that change no number.

    Examples
    --------
    >>> origin = IntervalOrigin("tight", "exact", ("inputs lie on k/255",))
    >>> IntervalOrigin.parse(origin.text) == origin, IntervalOrigin.parse("nonsense")
    (True, None)
    """

    confidence: str  # kind of certificate, such as "tight"
    noise: str  # "gaussian" or "exact"
    assumptions: tuple[str, ...] = ()  # what the intervals rest on, one clause each
    recalibration: str | None = None  # the map that the confidences went through, and what it was fitted to
    samples: str | None = None  # fingerprint of the samples of a run, if these are all that were taken from it
    run: str | None = None  # name of the run whose first samples these are, numbered from 0

    @property
    def description(self) -> str:
        """In a few words."""
        return self._sentence("")

    @property
    def sentence(self) -> str:
        """The description, with what is assumed."""
        return self._sentence(f", which hold if {' and '.join(self.assumptions)}" if self.assumptions else "")

    def _sentence(self, assumed: str) -> str:
        made = f"{self.confidence} certificates, {NOISE_NAMES.get(self.noise, self.noise)}{assumed}"
        changed = "" if self.recalibration is None else f"recalibrated by {self.recalibration}"
        return "; ".join(part for part in (made if self.confidence else "", changed) if part)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: what is known."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def text(self) -> str:
        """As it is written into a file."""
        return json.dumps(self.to_dict())

    @staticmethod
    def parse(text: str | None) -> IntervalOrigin | None:
        """What a file says of its origin; None when it says nothing that is understood."""
        if text is None or len(text) > _LONGEST:
            return None
        import msgspec

        try:
            return msgspec.json.decode(text, type=IntervalOrigin)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            return None


def intervals_as_parquet(columns: Mapping[str, NDArray[Any]], origin: IntervalOrigin | None = None) -> bytes:
    """A Parquet file of columns of equal length, to be written in one piece.

    Parameters
    ----------
    columns
        Such as radius, lower, upper, correct, certified and alpha.
    origin
        Kept in the file's metadata.

    Examples
    --------
    >>> import numpy as np
    >>> intervals_as_parquet({"lower": np.array([0.25]), "upper": np.array([0.5])})[:4]
    b'PAR1'
    """
    return columns_as_bytes(columns, ".parquet", {} if origin is None else {METADATA: origin.text})


def columns_as_bytes(columns: Mapping[str, Any], ending: str, metadata: Mapping[str, str] | None = None) -> bytes:
    """The content of a Parquet or CSV file of columns of equal length: numbers, texts, matrices, or columns of pyarrow.

    In CSV, texts that a spreadsheet would run or that control a terminal are made plain; Parquet keeps them.
    """
    from certcal.data.arrow import pa

    table = columns_as_table(columns, metadata)
    stream = io.BytesIO()
    if ending == ".parquet":
        from certcal.data.parquet import parquet

        parquet.write_table(table, stream)
    elif ending == ".csv":
        names = [_csv_heading(name) for name in table.column_names]
        plain = pa.table([_csv_column(column) for column in table.columns], names=names)
        import_module("pyarrow.csv").write_csv(plain, stream)
    else:
        raise InputError(f"files called {ending} are not written; choose .parquet or .csv")
    return stream.getvalue()


def columns_as_table(columns: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> Any:
    """A pyarrow Table of columns."""
    from certcal.data.arrow import from_numpy, pa

    def column(values: NDArray[Any] | Sequence[str]) -> Any:
        if isinstance(values, pa.ChunkedArray):
            return values
        return from_numpy(np.ascontiguousarray(values)) if isinstance(values, np.ndarray) else pa.array(list(values))

    table = pa.table({name: column(values) for name, values in columns.items()})
    return table.replace_schema_metadata(dict(metadata)) if metadata else table


def _csv_column(column: Any) -> Any:
    from certcal.data.arrow import pa

    one = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    kinds += (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    if not any(of_kind(one.type) for of_kind in kinds):
        return column
    raw: list[bytes | None] = one.cast(pa.large_binary()).to_pylist()  # what is not UTF-8 is written as its bytes
    texts = [None if text is None else text.decode("utf-8", "backslashreplace") for text in raw]
    return pa.array([plain_cell(text) for text in texts], pa.large_string())


def _csv_heading(name: str) -> str:
    """A name for CSV; a class in it as labels have it, or else they would not be found among the columns again."""
    return f"prob_{plain_cell(name[5:])}" if name.startswith("prob_") else plain_cell(name)


def other_columns(
    path: str | os.PathLike[str], used: Sequence[str], rows: NDArray[np.int64]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Some rows of the columns (pyarrow) that a table has beside those in use, and the names of those that are lost.

    Lost are lists, what Arrow cannot hold, and names that stand there twice.
    """
    table = open_table(path)
    others = {each.name: each.kind for each in table.columns if each.name not in used}
    plain = [name for name, kind in others.items() if kind != "list" and table.names.count(name) == 1]
    try:
        found = _read_whole(table, plain)
    except InputError:  # one of them cannot be read; the others can
        found: dict[str, Any] = {}
        for name in plain:
            with suppress(InputError):
                found |= _read_whole(table, [name])
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
    """Which sample each row is of, as a column says, each value once; None where it does not, unless it is required."""
    from certcal.data.values import Batch, Codes

    table = open_table(source)
    with in_file(table.path):
        name = Resolver(table.columns, {"key": column}).column("key")
        codes, seen = Codes(limit=2**62), 0
        try:
            for rows in table.chunks((name,)):
                cells = Batch(rows, seen)[name]
                found = codes.add(cells)
                again = found != np.arange(seen, seen + found.size)
                if again.any():
                    twice = codes.names[int(found[np.argmax(again)])]
                    cells.refuse(again, f"has {twice!r} again", "a key says each value once")
                seen += found.size
        except CellError:
            if required:
                raise
            return None
    return codes.names


def agree_beyond_chance(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two columns are the same, as independent rows would be less often than once in a million."""
    if one.size != other.size or not np.array_equal(one, other):
        return False
    shares = np.unique(one, return_counts=True)[1] / one.size
    return -one.size * math.log(float(np.dot(shares, shares))) > -math.log(_BY_CHANCE)


def _read_whole(table: OpenTable, names: list[str]) -> dict[str, Any]:
    from certcal.data.arrow import pa

    parts: dict[str, list[Any]] = {name: [] for name in names}
    for batch in table.chunks(names) if names else ():
        for name, column in parts.items():
            column.append(_takeable(batch.column(name)))
    whole: dict[str, Any] = {}
    for name, column in parts.items():
        types = {part.type for part in column}
        if types and not any(pa.types.is_nested(each) for each in types):
            texts = [part.cast(pa.large_string()) for part in column] if len(types) > 1 else column
            whole[name] = pa.chunked_array(texts)
    return whole


def _takeable(part: Any) -> Any:
    """The column without dictionaries and views of texts, of which pyarrow cannot take rows."""
    from certcal.data.arrow import pa

    if pa.types.is_dictionary(part.type):
        return pa.DictionaryArray.from_arrays(part.indices, _takeable(part.dictionary)).dictionary_decode()
    return part.cast(pa.large_string()) if pa.types.is_string_view(part.type) else part
