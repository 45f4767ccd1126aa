"""Fields of a JSON object from outside: each is taken with its type and range, and none is left over."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, cast

from certcal._checks import InputError

MOST_TEXT = 4_000


class Fields:
    """Fields of a JSON object, each taken with its type and range, none left over."""

    def __init__(self, path: Path, place: str, fields: Any) -> None:
        self.path, self.place = path, place
        if not isinstance(fields, dict):
            raise InputError(f"{path}: {place or 'the file'} is not a JSON object; restore it or draw anew")
        self.fields = cast("dict[str, Any]", fields)
        self.used: set[str] = set()

    def wrong(self, name: str, what: str) -> InputError:
        """The error of a field that is not as it must be."""
        return InputError(
            f"{self.path}: {self.place}{name} is {what}; the file was damaged or edited: restore it, or draw "
            "into a new folder"
        )

    def take(self, name: str) -> Any:
        """A field, whatever it holds."""
        if name not in self.fields:
            raise self.wrong(name, "missing")
        self.used.add(name)
        return self.fields[name]

    def part(self, name: str) -> Fields:
        """An object in the object."""
        return Fields(self.path, f"{name}.", self.take(name))

    def whole(self, name: str, least: int, most: int) -> int:
        """A whole number in a range."""
        value = self.take(name)
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(name, f"not a whole number from {least} to {most}")
        return value

    def number(self, name: str, least: float) -> float:
        """A finite number above a least one."""
        value = self.take(name)
        if type(value) not in (int, float) or not least < value < math.inf:
            raise self.wrong(name, f"not a finite number above {least:g}")
        return float(value)

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self.take(name)
        if type(value) is not bool:
            raise self.wrong(name, "neither true nor false")
        return value

    def text(self, name: str) -> str:
        """A short text."""
        value = self.take(name)
        if not isinstance(value, str) or len(value) > MOST_TEXT:
            raise self.wrong(name, f"not a text of at most {MOST_TEXT} characters")
        return value

    def optional_text(self, name: str) -> str | None:
        """A short text or null."""
        return self.text(name) if self.take(name) is not None else None

    def match(self, name: str, pattern: re.Pattern[str]) -> str:
        """A text of a given form."""
        value = self.text(name)
        if not pattern.fullmatch(value):
            raise self.wrong(name, "not a hexadecimal number")
        return value

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of the allowed words."""
        value = self.text(name)
        if value not in allowed:
            raise self.wrong(name, f"none of {', '.join(allowed)}")
        return value

    def items(self, name: str, least: int, most: int) -> list[Any]:
        """A list of a number of entries in a range."""
        value = self.take(name)
        entries = cast("list[Any]", value) if isinstance(value, list) else []
        if not least <= len(entries) <= most:
            raise self.wrong(name, f"not a list of {least} to {most} entries")
        return entries

    def shape(self, name: str) -> tuple[int, ...]:
        """Positive whole numbers."""
        value = self.take(name)
        entries: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [None]
        if len(entries) > 32 or any(type(entry) is not int or not 1 <= entry <= 2**31 for entry in entries):
            raise self.wrong(name, "not the shape of an input")
        return tuple(entries)

    def texts(self, name: str) -> dict[str, str]:
        """An object of short texts."""
        value = self.take(name)
        pairs: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {"": None}
        if len(pairs) > 100 or any(not isinstance(entry, str) or len(entry) > MOST_TEXT for entry in pairs.values()):
            raise self.wrong(name, "not a table of short texts")
        return pairs

    def nothing_left(self) -> None:
        """Raise if there is a field that nobody asked for."""
        for name in self.fields:
            if name not in self.used:
                raise self.wrong(name[:100], "not a field that this version knows")
