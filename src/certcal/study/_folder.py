"""A folder of prediction files, whose names say which model and data set they are of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from certcal._checks import InputError
from certcal.data.formats import ENDINGS
from certcal.study._entries import DATA, SPLIT, Entry, readable
from certcal.study._table import KEYS


def entries_in_folder(folder: Path, layout: str) -> list[Entry]:
    """The prediction files of a folder, in the order of their names.

    Hidden files and files of other kinds are left alone. A prediction file where the layout has none is refused,
    rather than silently not measured.

    Parameters
    ----------
    folder
        The folder.
    layout
        What the parts of a file's path are: "data/model" for ``cifar10/resnet.npz``; also "model/data", "model",
        "data/split/model" and so on.

    Examples
    --------
    >>> import tempfile
    >>> place = tempfile.TemporaryDirectory()
    >>> (Path(place.name) / "cifar10").mkdir()
    >>> (Path(place.name) / "cifar10" / "resnet.csv.gz").touch()
    >>> [entry.key for entry in entries_in_folder(Path(place.name), "data/model")]
    [('resnet', 'cifar10', 'test')]
    >>> place.cleanup()
    """
    parts = parsed_layout(layout)
    found: list[Entry] = []
    for path in sorted(_prediction_files(folder, len(parts) + 1), key=lambda path: path.parts):
        if len(path.parts) != len(parts):
            raise InputError(
                f"{folder / path}: the layout {layout} has no file here; move it, give the layout that the folder has"
                f"{_example(len(path.parts))}, or, if it is a manifest, give it instead of the folder"
            )
        names = [*path.parts[:-1], _without_ending(path.name)]
        key = {"data": DATA, "split": SPLIT} | dict(zip(parts, map(readable, names), strict=True))
        found.append(Entry(key["model"], path, key["data"], key["split"], folder=folder))
    if not found:
        raise InputError(
            f"{folder}: there are no prediction files in it (.npz, .parquet, .csv, .feather), as layout {layout} "
            "would have them; check the folder, or give its layout"
        )
    return found


def parsed_layout(layout: str) -> list[str]:
    """The parts of a layout.

    Examples
    --------
    >>> parsed_layout("data/split/model")
    ['data', 'split', 'model']
    >>> parsed_layout("data/file")
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: layout is 'data/file'; pass 'model' and perhaps 'data' and 'split', each once, with
    slashes between them, such as data/model
    """
    parts = str(layout).split("/")
    if "model" not in parts or len(set(parts)) < len(parts) or not set(parts) <= set(KEYS):
        raise InputError(
            f"layout is {layout!r}; pass 'model' and perhaps 'data' and 'split', each once, with slashes between them, "
            "such as data/model"
        )
    return parts


def _example(depth: int) -> str:
    """A layout that has files at some depth, if there is one."""
    layouts = ("model", "data/model", "data/split/model")
    return f" (such as {layouts[depth - 1]})" if depth <= len(layouts) else ""


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


def _without_ending(name: str) -> str:
    return name[: -max(len(ending) for ending in ENDINGS if name.lower().endswith(ending))] or name
