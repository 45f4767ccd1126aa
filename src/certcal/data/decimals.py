"""Which mark of a number is decimal where numbers are texts: 1.234 may be little more than one, or than a thousand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

OTHER = {".": ",", ",": "."}
NAMES = {".": "point", ",": "comma"}
# Digits in groups of three behind one mark, and perhaps decimals behind the other.
_GROUPED = re.compile(r"[-+]?[1-9][0-9]{0,2}([.,])[0-9]{3}((?:\1[0-9]{3})*)(?:(?!\1)[.,]([0-9]+))?")
_PLAIN = re.compile(r"[-+]?(?:[0-9]*([.,])[0-9]+|[0-9]+([.,]))(?:[eE][-+]?[0-9]{1,4})?")
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")


@dataclass
class Marks:
    """What the numbers of a column say of its decimal mark.

    Examples
    --------
    >>> marks = Marks()
    >>> marks.add(["546", "1.234", "12.5", "x"])
    >>> marks.decimal, marks.doubtful, marks.whole
    ({'.'}, {'.': '1.234'}, True)
    """

    decimal: set[str] = field(default_factory=set[str])  # marks that can be nothing else
    doubtful: dict[str, str] = field(default_factory=dict[str, str])  # by mark, the first text that it may group
    whole: bool = False  # whether there are numbers above 1 without a mark

    def add(self, texts: Iterable[str]) -> None:
        """Take further numbers into account; other texts say nothing."""
        for raw in texts:
            text = raw.strip()
            number = text.removesuffix("%").rstrip()
            if "." not in text and "," not in text:
                self.whole = self.whole or (_WHOLE.fullmatch(number) is not None and abs(int(number)) > 1)
            elif found := _GROUPED.fullmatch(number):
                mark, again, decimals = found.groups()
                if decimals or again:
                    self.decimal.add(OTHER[mark])
                elif number != text:  # percentages are below a thousand
                    self.decimal.add(mark)
                else:
                    self.doubtful.setdefault(mark, text)
            elif found := _PLAIN.fullmatch(number):
                self.decimal.add(found[1] or found[2])

    def copy(self) -> Marks:
        """The same, to be added to."""
        return Marks(set(self.decimal), dict(self.doubtful), self.whole)


def common_mark(columns: Mapping[str, Marks]) -> set[str]:
    """The marks that are surely decimal in some column of a table."""
    return set[str]().union(*(marks.decimal for marks in columns.values()))


def thousands_pattern(decimal: str) -> str:
    """A number in groups of three digits, where this mark is decimal."""
    mark, group = re.escape(decimal), re.escape(OTHER[decimal])
    return rf"^[-+]?[1-9][0-9]{{0,2}}({group}[0-9]{{3}})+({mark}[0-9]*)?$"
