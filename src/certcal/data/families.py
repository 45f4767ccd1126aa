"""Families of columns: one per class, numbered or named, or one column of lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from certcal._checks import InputError
from certcal.data._table import Column

_WORDS = {
    "probabilities": "probability|probabilities|proba|probs|prob|softmax",
    "logits": "logits|logit",
}
_LIST_NAMES = {
    "probabilities": (
        "probabilities",
        "probability",
        "probs",
        "prob",
        "proba",
        "softmax",
        "p",
        "y_prob",
        "y_proba",
        "predictions",
    ),
    "logits": ("logits", "logit"),
}


@dataclass(frozen=True)
class Family:
    """Columns that together hold one number per class.

    Attributes
    ----------
    columns
        The columns in class order, or the one column of lists.
    classes
        What each column's name says its class is called, or None for a column of lists.
    is_list
        Whether it is one column of lists.
    is_ordered
        Whether the order of the columns is the order of the classes 0, 1, …, because they are numbered from 0 or were
        given in order.

    Examples
    --------
    >>> Family(("prob_cat", "prob_dog"), ("cat", "dog")).description
    "'prob_cat' … 'prob_dog'"
    """

    columns: tuple[str, ...]
    classes: tuple[str, ...] | None = None
    is_list: bool = False
    is_ordered: bool = False

    @property
    def description(self) -> str:
        """First and last column, for people."""
        return repr(self.columns[0]) if self.is_list else f"{self.columns[0]!r} … {self.columns[-1]!r}"


def find_families(table: Sequence[Column]) -> dict[str, Family]:
    """Probability and logit columns found by name.

    Examples
    --------
    >>> find_families([Column("logit_0"), Column("logit_1"), Column("id")])["logits"].columns
    ('logit_0', 'logit_1')
    """
    found: dict[str, Family] = {}
    for kind, words in _WORDS.items():
        lists = [c.name for c in table if c.kind == "list" and c.name.strip().lower() in _LIST_NAMES[kind]]
        if len(lists) > 1:
            raise InputError(f"{' and '.join(map(repr, lists))} may each hold the {kind}; name one as {kind}")
        if lists:
            found[kind] = Family((lists[0],), is_list=True, is_ordered=True)
            continue
        family = _by_pattern(table, words, kind)
        if family is not None:
            found[kind] = family
    return found


def _by_pattern(table: Sequence[Column], words: str, kind: str) -> Family | None:
    numbered = rf"(?P<word>{words}{'|p' if kind == 'probabilities' else '|z'})[_.\- \[]?(?P<class>[0-9]{{1,6}})\]?"
    named = rf"(?P<word>{words})[_.\- ](?P<class>.+)"
    for pattern in (numbered, named):
        by_word: dict[str, list[tuple[str, str]]] = {}
        named_so = re.compile(pattern, re.IGNORECASE | re.DOTALL)
        for column in table:
            match = named_so.fullmatch(column.name.strip())
            if match and column.kind != "list" and (pattern is numbered or not match["class"].isdecimal()):
                by_word.setdefault(match["word"].lower(), []).append((match["class"], column.name))
        several = {word: members for word, members in by_word.items() if len(members) > 1}
        if len(several) > 1:
            first = [members[0][1] for members in several.values()]
            raise InputError(
                f"{' and '.join(repr(name) + ' …' for name in first)} may each be the {kind}; "
                f"name one as {kind} by its prefix, for example {first[0].rstrip('0123456789')!r}"
            )
        if several:
            (members,) = several.values()
            return _numbered(members) if pattern is numbered else _named(members)
    return None


def _numbered(members: list[tuple[str, str]]) -> Family:
    by_number: dict[int, str] = {}
    for number, name in members:
        if int(number) in by_number:
            raise InputError(
                f"{by_number[int(number)]!r} and {name!r} are both class {int(number)}; drop or rename one"
            )
        by_number[int(number)] = name
    numbers = sorted(by_number)
    first = numbers[0]
    for expected, number in enumerate(numbers, start=min(first, 1)):
        if number != expected:
            raise InputError(
                f"the columns {by_number[first]!r} … {by_number[numbers[-1]]!r} have no class {expected}; "
                "number them consecutively from 0 or 1, or give them in order, separated by commas"
            )
    return Family(tuple(by_number[n] for n in numbers), tuple(str(n) for n in numbers), is_ordered=first == 0)


def _named(members: list[tuple[str, str]]) -> Family:
    return Family(tuple(name for _, name in members), tuple(label for label, _ in members))


def given_family(table: Sequence[Column], given: Any, role: str, missing: Callable[[str, str], InputError]) -> Family:
    """The family that an option names: a column of lists, names in class order, a pattern with ``*``, or a prefix.

    Examples
    --------
    >>> columns = [Column("p_cat"), Column("p_dog"), Column("label")]
    >>> given_family(columns, "p_*", "probabilities", lambda role, name: InputError(name)).classes
    ('cat', 'dog')
    """
    kinds = {column.name: column.kind for column in table}
    words = [str(word) for word in ([given] if isinstance(given, str) else given)]
    if len(words) == 1 and words[0] not in kinds:
        text = words[0]
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if not parts:
            raise missing(role, text)
        if len(parts) == 1:
            return _matching(list(kinds), text if "*" in text else f"{text}*", role, missing(role, text))
        words = parts
    for word in words:
        if word not in kinds:
            raise missing(role, word)
    if len(words) == 1:
        if kinds[words[0]] not in ("list", "unknown"):
            raise InputError(
                f"{role} {words[0]}: this column holds one number per sample, not one per class; "
                "give all the columns separated by commas, or name a binary score as confidence"
            )
        return Family((words[0],), is_list=True, is_ordered=True)
    return Family(tuple(words), _without_common_prefix(words), is_ordered=True)


def _matching(names: list[str], pattern: str, role: str, missing: InputError) -> Family:
    """Columns that fit the pattern; what the star stands for is the name of the class."""
    before, _, after = pattern.partition("*")
    found = [name for name in names if fnmatchcase(name, pattern.replace("[", "[[]"))]
    members = [(name[len(before) : len(name) - len(after)].lstrip("_.- "), name) for name in found]
    if len(members) < 2 or "*" in after:
        raise missing
    numbered = all(re.fullmatch("[0-9]{1,6}", label) for label, _ in members)
    return _numbered(members) if numbered else _named(members)


def _without_common_prefix(names: Sequence[str]) -> tuple[str, ...]:
    """Class names from column names given in order: what is left after the part they share up to a separator."""
    shortest = min(map(len, names))
    common = next((i for i in range(shortest) if len({name[i] for name in names}) > 1), shortest)
    cut = max((names[0].rfind(mark, 0, common) + 1 for mark in "_.- "), default=0)
    return tuple(name[cut:] for name in names)
