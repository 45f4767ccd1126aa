"""The language of requirements: ``[every] [estimate] NAME[(SETTING=VALUE, …)] RELATION NUMBER``.

* Relations are <=, <, >= and >; a number may be in percent. ``0.9 <= NAME <= 1.1`` asks for both sides.
* It is judged on the claim: an upper requirement on an upper bound, certificate or worst case, else on the upper end of
  the estimate's interval; a lower one on the lower. With ``estimate`` it is judged on the estimate alone.
* ``every`` asks it of each group instead of the whole; settings choose one of several numbers of a name.
* Of a setting that it leaves open, such as the number of bins or the radius, every value must meet it that was asked
  for: the worst decides. Values that nobody asked for are refused until the requirement says which.
* Where a result has an ECE of these samples and one of the population, ``ece`` is the headline's; ``samples ece`` and
  ``population ece`` say which.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation

from certcal._base.checks import InputError

_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
_SIGNS = {"≤": "<=", "≥": ">="}
_MIRRORED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}
# A relation, which an equals sign between brackets is not.
_RELATION = re.compile(r"\s*([<>=≤≥!]+)\s*(?![^()]*\))")
_FIRST = re.compile(r"(.*?)(\S*\s*%?)")
_NAME = re.compile(r"(.*?)\s*(?:\(([^()]*=[^()]*)\))?")
# How tables print a setting that is part of a label, and a term of a sum.
_PRINTED_SETTING = re.compile(r"(.*\S)\s+at\s+(threshold)\s+(\S+)")
_TERM = re.compile(r"(?<!\S)=\s+(?=[^\W\d])")
EXAMPLE = "write NAME, a relation and a number, as in 'ece <= 5%' or '0.9 <= calibration slope <= 1.1'"


@dataclass(frozen=True)
class Requirement:
    """What a number must be.

    Examples
    --------
    >>> asked = Requirement.parse("every ECE(bins=10) <= 5%")
    >>> asked.name, dict(asked.settings), asked.relation, asked.limit, asked.every
    ('ece', {'bins': '10'}, '<=', 0.05, True)
    >>> [(side.relation, side.limit) for side in Requirement.parse("0.9 <= calibration slope <= 1.1").sides]
    [('>=', 0.9), ('<=', 1.1)]
    """

    text: str
    words: str
    relation: str
    number: str
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    estimate: bool = False
    every: bool = False
    percent: bool = False
    """Whether the number was written in percent."""
    other: Requirement | None = None
    """The other side of a range."""

    @classmethod
    def parse(cls, text: str | Requirement) -> Requirement:
        """Read a requirement, or say how it is written."""
        if isinstance(text, Requirement):
            return text
        parts = _RELATION.split(_TERM.sub("", text.strip())) if isinstance(text, str) else []  # pyright: ignore[reportUnnecessaryIsInstance]
        if len(parts) not in (3, 5):
            raise InputError(f"{text!r} is no requirement", argument="require", remedy=EXAMPLE)
        parts[1::2] = [_SIGNS.get(relation, relation) for relation in parts[1::2]]
        wrong = next((relation for relation in parts[1::2] if relation not in _RELATIONS), None)
        if wrong is not None:
            reason = f"{text!r} has {wrong!r}, and the relations are {', '.join(_RELATIONS)}"
            raise InputError(reason, argument="require", remedy=EXAMPLE)
        *start, subject, relation, number = parts
        if start:  # "every" and "estimate" stand before the first number
            modes, start[0] = _FIRST.fullmatch(start[0]).groups()  # pyright: ignore[reportOptionalMemberAccess]
            subject = modes + subject
        names, settings = _parse_name(text, subject)
        modes = {"estimate": False, "every": False}
        while len(names) > 1 and names[0].casefold() in modes:
            modes[names.pop(0).casefold()] = True
        if not names:
            raise InputError(f"{text!r} names no number", argument="require", remedy=EXAMPLE)

        def side(relation: str, number: str, other: Requirement | None = None) -> Requirement:
            percent = number.endswith("%")
            limit = _parse_number(text, number.removesuffix("%").rstrip(), percent=percent)
            return cls(text.strip(), " ".join(names), relation, limit, settings, **modes, percent=percent, other=other)

        last = side(relation, number)
        if not start:
            return last
        first = side(_MIRRORED[start[1]], start[0], last)
        low, high = (first, last) if first.side == "lower" else (last, first)
        if low.side == high.side or low.limit > high.limit:
            reason = f"{text!r} is no range from a lower to an upper limit"
            raise InputError(reason, argument="require", remedy="write it as in '0.9 <= calibration slope <= 1.1'")
        return first

    @property
    def name(self) -> str:
        """In small letters, with underscores."""
        return plain(self.words)

    @property
    def limit(self) -> float:
        """What the number is compared with."""
        return float(self.number)

    @property
    def side(self) -> str:
        """Which end of a claim decides."""
        return "upper" if self.relation[0] == "<" else "lower"

    @property
    def sides(self) -> tuple[Requirement, ...]:
        """A requirement for each side of a range, itself where there is one side."""
        return (self,) if self.other is None else (replace(self, other=None), self.other)

    def met_by(self, value: float) -> bool:
        """Whether a number is as required; never so when it is undefined."""
        return _RELATIONS[self.relation](value, self.limit)


# One requirement, or several.
Requirements = str | Requirement | Iterable[str | Requirement]


def plain(name: str) -> str:
    """A name in small letters, with underscores.

    Examples
    --------
    >>> plain("KS error"), plain("Worst-case ECE"), plain("O/E")
    ('ks_error', 'worst_case_ece', 'o_e')
    """
    return re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_")


def read_requirements(require: Requirements | Iterable[Requirements]) -> tuple[Requirement, ...]:
    """One requirement or several, read; those of a list among them as well."""
    if isinstance(require, str | Requirement) or not isinstance(require, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        return (Requirement.parse(require),)
    return tuple(one for each in require for one in read_requirements(each))


def _parse_name(text: str, subject: str) -> tuple[list[str], dict[str, str]]:
    found = _NAME.fullmatch(subject)
    words, inside = (subject, "") if found is None else found.groups("")
    settings: dict[str, str] = {}
    if printed := _PRINTED_SETTING.fullmatch(words):
        words, name, value = printed.groups()
        settings[name] = value
    for part in filter(None, map(str.strip, inside.split(","))):
        name, equals, value = part.partition("=")
        if not (equals and name.strip() and value.strip()):
            reason = f"{text!r} has {part!r} between its brackets"
            raise InputError(reason, argument="require", remedy="write SETTING=VALUE, as in 'ece(bins=10) <= 5%'")
        settings[plain(name)] = value.strip()
    return words.split(), settings


def _parse_number(text: str, number: str, *, percent: bool) -> str:
    try:
        value = Decimal(number).scaleb(-2 if percent else 0)
        finite = value.is_finite() and math.isfinite(float(value))
    except InvalidOperation:
        finite = False
    if not finite:
        if re.fullmatch(r"[+-]?\d+,\d+", number):
            remedy = f"write {number.replace(',', '.')}{'%' if percent else ''} with a point"
            raise InputError(f"{text!r} has a decimal comma", argument="require", remedy=remedy)
        raise InputError(f"{text!r} has {number!r}, no finite number", argument="require", remedy=EXAMPLE)
    return f"{value:f}" if percent else number  # pyright: ignore[reportPossiblyUnboundVariable]
