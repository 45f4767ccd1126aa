"""Parts of the work, for several processes that write into one folder: which is whose, and which are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from certcal._base.checks import InputError

MOST_PARTS = 100_000
PATIENCE = 60.0  # seconds that parts wait for each other while one of them begins or ends a folder
_PART = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})")


_LOCKS = re.compile(r"\.lock-[1-9][0-9]{0,5}-of-[1-9][0-9]{0,5}")


class PartsMissingError(InputError):
    """A part is done, and others are not: there is no result yet. The text says which."""


class Part(NamedTuple):
    """One of several parts, counted from 1."""

    number: int
    of: int

    @property
    def lock(self) -> str:
        """The name of its lock in the folder."""
        return f".lock-{self.number}-of-{self.of}"


def part_of(text: Any) -> Part | None:
    """The part that a text such as "3/16" names; None for None.

    Examples
    --------
    >>> part_of("3/16")
    Part(number=3, of=16)
    >>> part_of("17/16")
    Traceback (most recent call last):
        ...
    certcal.InputError: part: '17/16' is no part; give one such as 3/16, from 1/16 to 16/16
    """
    if text is None or isinstance(text, Part):
        return text
    match = _PART.fullmatch(text) if isinstance(text, str) else None
    part = Part(int(match[1]), int(match[2])) if match else None
    if part is None or not part.number <= part.of <= MOST_PARTS:
        remedy = (
            "the split of the data is split"
            if text in ("train", "test")
            else "give one such as 3/16, from 1/16 to 16/16"
        )
        raise InputError(f"{text!r} is no part", argument="part", remedy=remedy)
    return part


def shares(first: int, last: int, parts: int) -> list[range]:
    """The numbers from ``first`` to ``last`` - 1 in so many parts of nearly equal size; some are empty if they are few.

    Examples
    --------
    >>> shares(0, 10, 3)
    [range(0, 3), range(3, 6), range(6, 10)]
    """
    ends = [first + (last - first) * part // parts for part in range(parts + 1)]
    return [range(a, b) for a, b in pairwise(ends)]


def missing_text(missing: Iterable[int], of: int) -> str:
    """Which parts are missing, in words.

    Examples
    --------
    >>> missing_text([3], 16), missing_text([3, 5, 6, 7, 8, 12], 16)
    ('part 3 of 16 is missing', 'parts 3, 5 to 8 and 12 of 16 are missing')
    """
    runs: list[list[int]] = []
    for number in sorted(set(missing)):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    said = [text for run in runs for text in (map(str, run) if len(run) < 3 else [f"{run[0]} to {run[-1]}"])]
    listed = " and ".join(filter(None, (", ".join(said[:-1]), said[-1])))
    return f"part {listed} of {of} is missing" if listed.isdecimal() else f"parts {listed} of {of} are missing"


def missing_parts(place: object, missing: Iterable[int], of: int, *, done: int | None = None) -> PartsMissingError:
    """The error that says which parts are missing, and what to do; ``done`` is the part that is there.

    Examples
    --------
    >>> missing_parts("found", [2, 3], 3, done=1)
    PartsMissingError('found: part 1 of 3 is done, and parts 2 and 3 of 3 are missing; give the same command for part
    2/3, and so on')
    """
    numbers = sorted(set(missing))
    said = "" if done is None else f"part {done} of {of} is done, and "
    first = f"part {numbers[0]}/{of}{', and so on' if len(numbers) > 1 else ''}"
    return PartsMissingError(f"{place}: {said}{missing_text(numbers, of)}", remedy=f"give the same command for {first}")


def part_locks(folder: Path) -> list[str]:
    """Names of the locks of parts that are in a folder, whether somebody holds them or not."""
    return sorted(path.name for path in folder.iterdir() if _LOCKS.fullmatch(path.name))
