"""What a value says of a binary outcome: words for 1 and 0, or one of two values that was named as positive."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, as_array, correctness

_TRUE = frozenset({"1", "true", "t", "yes", "y", "correct", "right"})
_FALSE = frozenset({"0", "false", "f", "no", "n", "incorrect", "wrong"})
# Numbers as programs write them, numpy.savetxt among them. Without a point it may be a name: "007", "1e5".
WRITTEN = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
# What is a 1 or a 0 in usage only: offered, and never taken without a word.
_EVENTS = frozenset({"bad", "default", "defaulted", "event", "positive", "churn", "churned", "fraud", "ja", "oui"})
_NO_EVENTS = frozenset(
    {"good", "paid", "non-default", "no default", "performing", "non-event", "no event", "negative", "nein", "non"}
)
_SHOWN, _LONGEST, _COMPARED = 5, 80, 1000


def outcome(value: Any) -> int | None:
    """What a value says of an outcome, by the rule; None where it says something else.

    Examples
    --------
    >>> [outcome(value) for value in (True, 1.0, "1.000000000000000000e+00", " Yes", "0", 2, "cat")]
    [1, 1, 1, 1, 0, None, None]
    """
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE or word in _FALSE:
            return int(word in _TRUE)
        try:
            value = math.nan if "_" in word else float(word)
        except ValueError:
            return None
    return int(value) if value in (0, 1) else None


def class_name(value: Any) -> str:
    """A class as text, by the rule.

    Examples
    --------
    >>> class_name(3), class_name(3.0), class_name("3.0"), class_name(" cat "), class_name(True)
    ('3', '3', '3', 'cat', 'true')
    >>> class_name("1.200000000000000000e+01"), class_name("1.5e+00"), class_name("1e5"), class_name("007")
    ('12', '1.5e+00', '1e5', '007')
    """
    text = str(value).strip()
    if isinstance(value, bool):
        return text.lower()
    if isinstance(value, float) or WRITTEN.fullmatch(text):
        number = float(text)
        if number.is_integer() and abs(number) < 2**53:
            return str(int(number))
    return text


def first_missing(values: Sequence[Any]) -> int | None:
    """Where the first value is missing: None, not a number, or what pandas has for it.

    Examples
    --------
    >>> first_missing(["a", float("nan"), None]), first_missing(["a"])
    (1, None)
    """
    found = (place for place, each in enumerate(values) if each is None or type(each).__name__ == "NAType")
    nans = (place for place, each in enumerate(values) if type(each).__name__ != "NAType" and each != each)
    return min((place for place in (next(found, None), next(nans, None)) if place is not None), default=None)


class TwoOutcomes:
    """Which of two values counts as 1, the same across pieces of a column.

    Parameters
    ----------
    positive
        The value that counts as 1, in any case; None where 0/1, true/false or yes/no say it.
    negative
        The values that count as 0, where there are others beside them, of which nothing is said.

    Examples
    --------
    >>> TwoOutcomes("default").codes(["paid", "Default"]), TwoOutcomes().codes(["yes", "no", 0.0])
    ([0, 1], [1, 0, 0])
    >>> TwoOutcomes("default", ["paid"]).codes(["paid", "Default", "pending"])
    [0, 1, None]
    """

    def __init__(self, positive: Any = None, negative: Sequence[Any] = ()) -> None:
        self.positive = positive
        self._negative = {class_name(value).casefold() for value in negative}
        self._name = None if positive is None else class_name(positive).casefold()
        self._seen: dict[str, str] = {}  # as they were spelled first

    def codes(self, values: Sequence[Any]) -> list[int | None]:
        """What each value says; None for one that says nothing, about which :meth:`refusal` knows more."""
        names = [class_name(value) for value in values]
        if self._negative:
            ones = [
                outcome(value) == 1 if self._name is None else name.casefold() == self._name
                for value, name in zip(values, names, strict=True)
            ]
            return [
                1 if one else 0 if name.casefold() in self._negative else None
                for one, name in zip(ones, names, strict=True)
            ]
        if self._name is None:
            return [outcome(value) for value in values]
        for name in names:
            self._seen.setdefault(name.casefold(), name)
        if len(self._seen.keys() | {self._name}) > 2:
            return [None if name.casefold() != self._name else 1 for name in names]
        return [int(name.casefold() == self._name) for name in names]

    def offer(self, values: Sequence[Any], counts: Sequence[int] = ()) -> dict[str, str]:
        """Arguments that would read such values: which of them counts as 1 by its name, or of two by being rarer.

        Examples
        --------
        >>> TwoOutcomes().offer(["good", "bad", "pending"]), TwoOutcomes().offer(["a", "b"], [7, 2])
        ({'positive': 'bad', 'negative': 'good'}, {'positive': 'b'})
        """
        names = [class_name(value) for value in values[:_COMPARED]]
        zeros = [name for name in names if outcome(name) == 0 or name.casefold() in _NO_EVENTS]
        if self._name is None:
            ones = [name for name in names if outcome(name) == 1 or name.casefold() in _EVENTS]
        else:
            ones = [name for name in names if name.casefold() == self._name]
        if len(names) == 2 and self._name is None:
            said = [name for name in ones if not name.isdecimal()]  # 1 and 2 say nothing
            rare = [name for _, name in sorted(zip(counts, names, strict=False))][:1]
            one = said if len(said) == 1 else rare
            return {"positive": one[0]} if one else {}
        if len(ones) != 1 or not zeros or any("," in name for name in zeros):
            return {}
        return {"positive": ones[0], "negative": ",".join(zeros)}

    def refusal(self, values: Sequence[Any]) -> tuple[str, str, tuple[str, ...]]:
        """What is wrong with such values, what to do, and which role is to be named."""
        found = dict.fromkeys([*self._seen.values(), *map(class_name, values[:_COMPARED])])
        names = [name[:_LONGEST] for name in found]
        count = max(len(names), len(values))
        shown = " and ".join(map(repr, names)) if count < 3 else ", ".join(map(repr, names[:_SHOWN]))
        shown += "" if count <= _SHOWN else f" and {count - _SHOWN} more"
        if self._name is None and count < 3:
            which = shown.replace(" and ", " or ") if count == 2 else f"such as {shown}"
            remedy = f"name the value that counts as 1, {which}, as positive"
            return "neither 0/1 nor true/false", remedy, ("positive",)
        if self._name is None or self._name in self._seen:
            reason = f"and an outcome has two values, not {count} ({shown})"
            remedy = "name the value that counts as 1 as {positive} and those that count as 0 as {negative}, and rows "
            return reason, f"{remedy}with others are left out", ("positive", "negative")
        near = get_close_matches(str(self.positive), names, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"name one of {shown} as positive"
        return f"and none is {self.positive!r}", remedy, ("positive",)


def outcome_array(value: Any, positive: Any = None) -> NDArray[np.uint8]:
    """Outcomes of an array as bytes; text is taken for what it says.

    Examples
    --------
    >>> outcome_array(["paid", "default"], "default").tolist(), outcome_array(["no", "yes"]).tolist()
    ([0, 1], [0, 1])
    """
    remedy = "pass outcomes as 0/1 or true/false, or say which value counts as 1 (positive)"
    raw = as_array(value, "outcomes")
    if positive is None and raw.dtype.kind in "biuf":
        return correctness(raw, "outcomes", remedy)
    raw = raw.reshape(-1)
    if not raw.size:
        raise InputError("outcomes is empty; pass at least one sample")
    entries: list[Any] = raw.tolist()
    missing = first_missing(entries)
    if missing is not None:
        raise InputError(f"outcomes[{missing}] is missing; drop the sample")
    values = list(dict.fromkeys(entries))
    two = TwoOutcomes(positive)
    found = dict(zip(values, two.codes(values), strict=True))
    bad = next((place for place, entry in enumerate(entries) if found[entry] is None), None)
    if bad is not None:
        reason, remedy, roles = two.refusal(values)
        if "negative" in roles:  # which is for tables
            remedy = "pass true where it is the one that counts as 1"
        raise InputError(f"outcomes[{bad}] is {entries[bad]!r}, {reason}; {remedy}")
    return np.array([found[entry] for entry in entries], np.uint8)
