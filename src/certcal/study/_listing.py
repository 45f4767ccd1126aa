"""A manifest: a table that lists prediction files, one row each, with columns of the user's own."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, cast

from certcal._checks import InputError
from certcal._durable import open_regular
from certcal._files import nearest
from certcal.study._entries import DATA, SPLIT, Entry, readable, refuse_own

OTHERS = "ood:"
_LINES = (".jsonl", ".ndjson")
_NEEDED = {
    "predictions": "the path of each file, from the manifest's folder",
    "model": "the name of each model",
}


def entries_in_manifest(file: Path) -> list[Entry]:
    r"""The rows of a manifest (CSV, Parquet, Arrow or JSON lines).

    Columns: ``predictions`` and ``model``; if wanted ``data``, ``split``, ``ood:NAME`` (files of predictions on other
    data) and ``reason`` (why there are no predictions, where that cell is empty). All others are columns of the
    user's own; in text files those of which every entry is a number are numbers.
    """
    if file.suffix.lower() == ".json":
        raise InputError(f"{file}: a manifest in JSON has one object per line; write it so, and call it .jsonl")
    columns = _lines(file) if file.name.lower().endswith(_LINES) else _table(file)
    for name, meaning in _NEEDED.items():
        if name not in columns:
            listed = ", ".join(map(repr, list(columns)[:20]))
            alone = "" if _NEEDED.keys() & columns.keys() else "; if these are predictions, give the folder instead"
            raise InputError(f"{file}: there is no column {name!r} ({meaning}); the columns are {listed}{alone}")
    others = [name for name in columns if name.startswith(OTHERS)]
    given = [name for name in columns if _is_given(name)]
    refuse_own(given, f"{file}: there is a column ")
    found: list[Entry] = []
    for row in range(len(columns["model"])):
        cells = {name: values[row] for name, values in columns.items()}
        try:
            found.append(
                Entry(
                    _text(cells["model"]),
                    _text(cells["predictions"]) or None,
                    _text(cells.get("data")) or DATA,
                    _text(cells.get("split")) or SPLIT,
                    {name: cells[name] for name in given},
                    {name.removeprefix(OTHERS): _text(cells[name]) for name in others if _text(cells[name])},
                    _text(cells.get("reason")),
                    file.parent,
                )
            )
        except InputError as error:
            raise InputError(f"{file}: row {row + 1}: {error}") from None
    return found


def _is_given(name: str) -> bool:
    return name not in (*_NEEDED, "data", "split", "reason") and not name.startswith(OTHERS)


def _text(value: Any) -> str:
    return "" if value is None or value != value else readable(str(value))


def _table(file: Path) -> dict[str, list[Any]]:
    from certcal.data import open_table

    table = open_table(file)
    batches = list(table.chunks(table.names))
    columns: dict[str, list[Any]] = {}
    for place, column in enumerate(table.columns):
        values: list[Any] = [value for batch in batches for value in batch.column(place).to_pylist()]
        columns[column.name] = _numbers(values) if column.kind == "unknown" and _is_given(column.name) else values
    if not any(columns.values()):
        raise InputError(f"{file}: the manifest has no rows; list at least one file")
    return columns


def _numbers(values: list[str | None]) -> list[Any]:
    """Numbers, if every text is one; else the texts."""
    try:
        numbers = [None if value is None or not value.strip() else float(value) for value in values]
    except ValueError:
        return list(values)
    return list(values) if any("_" in (value or "") for value in values) else numbers


def _lines(file: Path) -> dict[str, list[Any]]:
    """Columns of a file with a JSON object on each line; what a line does not say is None."""
    rows: list[dict[str, Any]] = []
    try:
        with io.TextIOWrapper(open_regular(file), encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    rows.append(_object(file, number, line))
    except OSError as error:
        hint = nearest(file) if isinstance(error, FileNotFoundError) else "check the path and its permissions"
        raise InputError(f"{file}: cannot be read ({error.strerror or error}); {hint}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: this is not UTF-8 text; write one JSON object per line") from None
    if not rows:
        raise InputError(f"{file}: the manifest has no rows; list at least one file")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _object(file: Path, number: int, line: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(line)
    except UnicodeDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: line {number} is no JSON ({error}); write one object per line") from None
    if not isinstance(found, dict):
        raise InputError(f'{file}: line {number} is no JSON object; write one per line, such as {{"model": …}}')
    return cast("dict[str, Any]", found)
