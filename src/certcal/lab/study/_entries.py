"""What a study measures: a folder of prediction files, a manifest that lists them, or entries made in Python."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, cast

from certcal._base.checks import InputError
from certcal._base.durable import open_regular
from certcal._base.files import nearest
from certcal.data.formats import ENDINGS
from certcal.lab.study._table import KEYS, is_own
from certcal.predictions import Predictions

Key = tuple[str, str, str]
DATA, SPLIT = "data", "test"
# Columns of a manifest: files of predictions on other data begin so, and these must be there.
_OTHERS = "ood:"
_LAYOUTS = ("model", "data/model", "data/split/model")
_NEEDED = {"predictions": "the path of each file, from the manifest's folder", "model": "the name of each model"}


@dataclass(frozen=True, eq=False)
class Entry:
    """A model's predictions on one data set, and what is known about the model.

    Examples
    --------
    >>> entry = Entry("resnet", "predictions/resnet.npz", data="cifar10", given={"depth": 18})
    >>> entry.key
    ('resnet', 'cifar10', 'test')
    >>> Entry("resnet", "resnet.npz", given={"accuracy": 0.9})
    Traceback (most recent call last):
        ...
    certcal.InputError: given has 'accuracy', which is the name of a column that is measured; call it otherwise,
    such as 'given_accuracy'
    """

    model: str
    """Its name."""
    predictions: Predictions | str | os.PathLike[str] | None
    """With logits or probabilities; or the file that holds them. None for a model that has none, whose row then says
    so."""
    data: str = DATA
    split: str = SPLIT
    """On what the predictions were made. A model has one entry for each."""
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Columns of your own: sizes, operations, robustness. Numbers or texts."""
    out_of_distribution: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Files of predictions on other data sets, or confidences there, by name; each gives the AUROC of telling the two
    apart. Labels are not needed."""
    reason: str = ""
    """Why there are no predictions."""
    folder: str | os.PathLike[str] = ""
    """What the names of files are relative to; the current folder when empty."""

    def __post_init__(self) -> None:
        for name, value in zip(KEYS, self.key, strict=True):
            if not isinstance(value, str) or not value:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(f"{name} is {value!r}; pass a name")
        if not isinstance(self.predictions, Predictions | str | os.PathLike | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = type(self.predictions).__name__
            raise InputError(
                f"predictions ({kind}) are neither Predictions nor the name of a file; pass one of the two"
            )
        for name, value in (("given", self.given), ("out_of_distribution", self.out_of_distribution)):
            if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(f"{name} is {value!r}; pass a mapping from names to values")
        _refuse_own(self.given, "given has ")
        for name, value in self.given.items():
            if value is not None and not isinstance(value, str | Real):
                raise InputError(f"given[{name!r}] is {value!r}; pass a number or a text")
        for name in self.out_of_distribution:
            if not name:
                raise InputError("out_of_distribution has a data set without a name; name it")

    @property
    def key(self) -> Key:
        """Model, data set and split: the key of a row."""
        return self.model, self.data, self.split

    @property
    def file(self) -> Path | None:
        """The file of the predictions, if they are in one."""
        return self.path(self.predictions)

    def path(self, place: Any) -> Path | None:
        """Path of a file, or None for predictions in memory."""
        return Path(self.folder, cast("str", place)) if isinstance(place, str | os.PathLike) else None


def _refuse_own(names: Iterable[str], begin: str) -> None:
    """Refuse columns whose names belong to what is measured, or that have none."""
    for name in names:
        if not name:
            raise InputError(f"{begin}a column without a name; name it")
        if is_own(name) or name == "predictions":
            raise InputError(
                f"{begin}{name!r}, which is the name of a column that is measured; call it otherwise, "
                f"such as 'given_{name}'"
            )


@dataclass(frozen=True, eq=False)
class EntrySource:
    """Entries, from the first to the last, each checked against those before it."""

    entries: Iterable[Entry]
    place: Callable[[int], str]  # what an entry is called in a sentence, by its number from 0
    total: int | None  # None when only the end will tell

    def __iter__(self) -> Iterator[Entry]:
        seen: dict[Key, int] = {}
        for number, entry in enumerate(self.entries):
            if not isinstance(entry, Entry):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(f"{self.place(number)} is a {type(entry).__name__}; pass a certcal.lab.study.Entry")
            first = seen.setdefault(entry.key, number)
            if first != number:
                model, data, split = entry.key
                raise InputError(
                    f"{self.place(number)} is model {model!r} on {data!r} ({split}) again, as {self.place(first)} is; "
                    "keep one of them, or tell them apart by split"
                )
            yield entry
        if not seen:
            raise InputError("there are no entries to measure; pass at least one")


def open_source(source: Any, layout: str = "data/model") -> EntrySource:
    """Entries of a folder or of a manifest, all of them looked at; or as they are."""
    if isinstance(source, str | os.PathLike):
        path = Path(cast("str", source))
        if path.is_dir():
            found = _entries_in_folder(path, layout)
            opened = EntrySource(found, lambda number: str(found[number].file), len(found))
        else:
            found = entries_in_manifest(path)
            opened = EntrySource(found, lambda number: f"{path}: row {number + 1}", len(found))
        list(opened)
        return opened
    if not isinstance(source, Iterable):
        raise InputError(f"source is {source!r}; pass a folder, a manifest or entries")
    entries = cast("Iterable[Entry]", source)
    total = len(entries) if isinstance(entries, Sequence) else None
    return EntrySource(entries, lambda number: f"source[{number}]", total)


def escape_undecodable(name: str) -> str:
    r"""A name as text that can be stored: what is not Unicode in it appears as its escape."""
    return name.encode(errors="backslashreplace").decode()


def _entries_in_folder(folder: Path, layout: str) -> list[Entry]:
    """The prediction files of a folder, in the order of their names.

    Hidden files and files of other kinds are left alone. A prediction file where the layout has none is refused,
    rather than silently not measured.
    """
    parts = _parse_layout(layout)
    found: list[Entry] = []
    for path in sorted(_prediction_files(folder, len(parts) + 1), key=lambda path: path.parts):
        if len(path.parts) != len(parts):
            there = next((each for each in _LAYOUTS if each.count("/") + 1 == len(path.parts)), "")
            example = f" (such as {there})" if there else ""
            raise InputError(
                f"{folder / path}: the layout {layout} has no file here; move it, give the layout that the folder has"
                f"{example}, or, if it is a manifest, give it instead of the folder"
            )
        ending = max((each for each in ENDINGS if path.name.lower().endswith(each)), key=len)
        names = [*path.parts[:-1], path.name[: -len(ending)] or path.name]
        key = {"data": DATA, "split": SPLIT} | dict(zip(parts, map(escape_undecodable, names), strict=True))
        found.append(Entry(key["model"], path, key["data"], key["split"], folder=folder))
    if not found:
        raise InputError(
            f"{folder}: there are no prediction files in it (.npz, .parquet, .csv, .feather), as layout {layout} "
            "would have them; check the folder, or give its layout"
        )
    return found


def _parse_layout(layout: str) -> list[str]:
    parts = str(layout).split("/")
    if "model" not in parts or len(set(parts)) < len(parts) or not set(parts) <= set(KEYS):
        raise InputError(
            f"layout is {layout!r}; pass 'model' and perhaps 'data' and 'split', each once, with slashes between them, "
            "such as data/model"
        )
    return parts


def _prediction_files(folder: Path, deepest: int) -> Iterator[Path]:
    """Paths below the folder, down to some depth: links may go in circles."""

    def refuse(error: OSError) -> None:
        raise InputError(
            f"{error.filename}: cannot be read ({error.strerror}); check the folder and its permissions"
        ) from error

    for place, folders, files in os.walk(folder, onerror=refuse, followlinks=True):
        inside = Path(place).relative_to(folder)
        depth = len(inside.parts) + 1
        folders[:] = [] if depth == deepest else [name for name in folders if not name.startswith(".")]
        yield from (inside / name for name in files if name.lower().endswith(ENDINGS) and not name.startswith("."))


def entries_in_manifest(file: Path) -> list[Entry]:
    r"""The rows of a manifest (CSV, Parquet, Arrow or JSON lines).

    Columns: ``predictions`` and ``model``; if wanted ``data``, ``split``, ``ood:NAME`` (files of predictions on other
    data) and ``reason`` (why there are no predictions, where that cell is empty). All others are columns of the
    user's own; in text files those of which every entry is a number are numbers.
    """
    if file.suffix.lower() == ".json":
        raise InputError(f"{file}: a manifest in JSON has one object per line; write it so, and call it .jsonl")
    columns = _read_json_lines(file) if file.suffix.lower() in (".jsonl", ".ndjson") else _read_manifest_columns(file)
    for name, meaning in _NEEDED.items():
        if name not in columns:
            listed = ", ".join(map(repr, list(columns)[:20]))
            alone = "" if _NEEDED.keys() & columns.keys() else "; if these are predictions, give the folder instead"
            raise InputError(f"{file}: there is no column {name!r} ({meaning}); the columns are {listed}{alone}")
    others = [name for name in columns if name.startswith(_OTHERS)]
    given = [name for name in columns if _is_given(name)]
    _refuse_own(given, f"{file}: there is a column ")
    found: list[Entry] = []
    for row in range(len(columns["model"])):
        cells = {name: values[row] for name, values in columns.items()}
        try:
            found.append(
                Entry(
                    _cell_text(cells["model"]),
                    _cell_text(cells["predictions"]) or None,
                    _cell_text(cells.get("data")) or DATA,
                    _cell_text(cells.get("split")) or SPLIT,
                    {name: cells[name] for name in given},
                    {name.removeprefix(_OTHERS): _cell_text(cells[name]) for name in others if _cell_text(cells[name])},
                    _cell_text(cells.get("reason")),
                    file.parent,
                )
            )
        except InputError as error:
            raise InputError(f"{file}: row {row + 1}: {error}") from None
    return found


def _is_given(name: str) -> bool:
    return name not in (*_NEEDED, "data", "split", "reason") and not name.startswith(_OTHERS)


def _cell_text(value: Any) -> str:
    return "" if value is None or value != value else escape_undecodable(str(value))


def _read_manifest_columns(file: Path) -> dict[str, list[Any]]:
    from certcal.data import open_table

    table = open_table(file)
    batches = list(table.chunks(table.names))
    columns: dict[str, list[Any]] = {}
    for place, column in enumerate(table.columns):
        values: list[Any] = [value for batch in batches for value in batch.column(place).to_pylist()]
        columns[column.name] = (
            numbers_or_texts(values) if column.kind == "unknown" and _is_given(column.name) else values
        )
    if not any(columns.values()):
        raise InputError(f"{file}: the manifest has no rows; list at least one file")
    return columns


def numbers_or_texts(values: list[str | None]) -> list[Any]:
    """Numbers, if every text is one; else the texts."""
    try:
        numbers = [None if value is None or not value.strip() else float(value) for value in values]
    except ValueError:
        return list(values)
    return list(values) if any("_" in (value or "") for value in values) else numbers


def _read_json_lines(file: Path) -> dict[str, list[Any]]:
    """Columns of a file with a JSON object on each line; what a line does not say is None."""
    rows: list[dict[str, Any]] = []
    try:
        with io.TextIOWrapper(open_regular(file), encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    rows.append(_parse_json_object(file, number, line))
    except OSError as error:
        hint = nearest(file) if isinstance(error, FileNotFoundError) else "check the path and its permissions"
        raise InputError(f"{file}: cannot be read ({error.strerror or error}); {hint}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: this is not UTF-8 text; write one JSON object per line") from None
    if not rows:
        raise InputError(f"{file}: the manifest has no rows; list at least one file")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _parse_json_object(file: Path, number: int, line: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(line)
    except UnicodeDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: line {number} is no JSON ({error}); write one object per line") from None
    if not isinstance(found, dict):
        raise InputError(f'{file}: line {number} is no JSON object; write one per line, such as {{"model": …}}')
    return cast("dict[str, Any]", found)
