"""What a study measures: a folder of prediction files, a manifest that lists them, or entries made in Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, cast

from certcal._checks import InputError
from certcal.predictions import Predictions
from certcal.study._table import KEYS, is_own

Key = tuple[str, str, str]
DATA, SPLIT = "data", "test"


@dataclass(frozen=True, eq=False)
class Entry:
    """A model's predictions on one data set, and what is known about the model.

    Attributes
    ----------
    model
        Its name.
    predictions
        With logits or probabilities; or the file that holds them. None for a model that has none, whose row then
        says so.
    data, split
        On what the predictions were made. A model has one entry for each.
    given
        Columns of your own: sizes, operations, robustness. Numbers or texts.
    out_of_distribution
        Files of predictions on other data sets, or confidences there, by name; each gives the AUROC of telling the
        two apart. Labels are not needed.
    reason
        Why there are no predictions.
    folder
        What the names of files are relative to; the current folder when empty.

    Examples
    --------
    >>> entry = Entry("resnet", "predictions/resnet.npz", data="cifar10", given={"depth": 18})
    >>> entry.key
    ('resnet', 'cifar10', 'test')
    >>> Entry("resnet", "resnet.npz", given={"accuracy": 0.9})
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: given has 'accuracy', which is the name of a column that is measured; call it otherwise,
    such as 'given_accuracy'
    """

    model: str
    predictions: Predictions | str | os.PathLike[str] | None
    data: str = DATA
    split: str = SPLIT
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    out_of_distribution: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reason: str = ""
    folder: str | os.PathLike[str] = ""

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
        refuse_own(self.given, "given has ")
        for name, value in self.given.items():
            if value is not None and not isinstance(value, str | Real):
                raise InputError(f"given[{name!r}] is {value!r}; pass a number or a text")
        for name in self.out_of_distribution:
            if not name:
                raise InputError("out_of_distribution has a data set without a name; name it")

    @property
    def key(self) -> Key:
        """What tells a row of the table from the others."""
        return self.model, self.data, self.split

    @property
    def file(self) -> Path | None:
        """The file of the predictions, if they are in one."""
        return self.path(self.predictions)

    def path(self, place: Any) -> Path | None:
        """Where a file is, or None for what is no file."""
        return Path(self.folder, cast("str", place)) if isinstance(place, str | os.PathLike) else None


def refuse_own(names: Iterable[str], begin: str) -> None:
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
class Source:
    """Entries, from the first to the last, each checked against those before it.

    Attributes
    ----------
    entries
        As they come.
    place
        What an entry is called in a sentence, by its number from 0.
    total
        How many there are; None when only the end will tell.
    """

    entries: Iterable[Entry]
    place: Callable[[int], str]
    total: int | None

    def __iter__(self) -> Iterator[Entry]:
        seen: dict[Key, int] = {}
        for number, entry in enumerate(self.entries):
            if not isinstance(entry, Entry):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(f"{self.place(number)} is a {type(entry).__name__}; pass a certcal.study.Entry")
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


def open_source(source: Any, layout: str = "data/model") -> Source:
    """Entries of a folder, of a manifest, or as they are."""
    if isinstance(source, str | os.PathLike):
        path = Path(cast("str", source))
        if path.is_dir():
            from certcal.study._folder import entries_in_folder

            found = entries_in_folder(path, layout)
            return _listed(Source(found, lambda number: str(found[number].file), len(found)))
        from certcal.study._listing import entries_in_manifest

        rows = entries_in_manifest(path)
        return _listed(Source(rows, lambda number: f"{path}: row {number + 1}", len(rows)))
    if not isinstance(source, Iterable):
        raise InputError(f"source is {source!r}; pass a folder, a manifest or entries")
    entries = cast("Iterable[Entry]", source)
    return Source(entries, lambda number: f"source[{number}]", len(entries) if isinstance(entries, Sequence) else None)


def _listed(source: Source) -> Source:
    """The same, after a look at all entries."""
    return Source(list(source), source.place, source.total)


def readable(name: str) -> str:
    r"""A name as text that can be stored: what is not Unicode in it appears as its escape."""
    return name.encode(errors="backslashreplace").decode()
