"""Plain values for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from operator import attrgetter
from pathlib import PurePath
from typing import Any, ClassVar, cast

from certcal._base.told import Told


def for_json(value: Any) -> Any:
    """Plain values that every JSON parser takes: null for what is undefined, the word for what is infinite."""
    if isinstance(value, dict):
        return {str(key): for_json(entry) for key, entry in value.items()}  # pyright: ignore
    if isinstance(value, list | tuple):
        return [for_json(entry) for entry in value]  # pyright: ignore
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def plain(value: Any) -> Any:
    """A value, with all that is inside it, as what JSON knows."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in cast("Mapping[str, Any]", value).items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, tuple | list):
        return [plain(entry) for entry in cast("tuple[Any, ...]", value)]
    return value.tolist() if hasattr(value, "tolist") else value


class PlainValues(Told):
    """Gives a dataclass its ``to_dict``: what JSON says of it follows from how the class is declared.

    Keywords of the class: ``kind`` is written first, as "type". ``keys`` names fields and properties in their order,
    "key=attribute" where the document has another name, with a "?" for what is left out while it is None or empty, and
    "**name" for a mapping or a record whose keys stand there; by default all fields but those of ``without``. ``more``
    follows them.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Group(PlainValues, kind="group", keys="n measurements=rows bounds?"):
    ...     rows: tuple[float, ...]
    ...     n: int
    ...     bounds: tuple[float, ...] = ()
    >>> Group((0.5,), 9).to_dict()
    {'type': 'group', 'n': 9, 'measurements': [0.5]}
    """

    _declared: ClassVar[tuple[str, str, str, str]] = ("", "", "", "")

    def __init_subclass__(cls, kind: str = "", keys: str = "", more: str = "", without: str = "") -> None:
        super().__init_subclass__()
        if kind or keys or more or without:
            cls._declared = kind, keys, more, without

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        kind, keys, more, without = self._declared
        every = (each.name for each in fields(cast("Any", self)))
        names = keys.split() or [name for name in every if name not in without.split()]
        document: dict[str, Any] = {"type": kind} if kind else {}
        for name in (*names, *more.split()):
            key, _, path = name.removesuffix("?").removeprefix("**").partition("=")
            value = plain(attrgetter(path or key)(self))
            if name.startswith("**"):
                document |= value
            elif not name.endswith("?") or value not in (None, [], {}):
                document[key] = value
        return document


def as_text(document: Any) -> str:
    r"""Indented JSON with a newline at its end."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
