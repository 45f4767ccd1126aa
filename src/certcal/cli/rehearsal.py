"""What a command can claim of any table: the same work on made-up rows, so that requirements can be refused first."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from certcal._base.checks import InputError
from certcal._base.signature import defaults_of
from certcal.data.schema import OPTIONS
from certcal.result import Result
from certcal.verdict import Requirement, plain

_ROWS = 60


def refuse_unanswerable(
    require: Sequence[Requirement],
    verb: Callable[..., Result],
    options: Mapping[str, Any],
    *,
    tables: int = 1,
) -> None:
    """Refuse requirements that no table could answer with these options; what only this one lacks is told with it.

    Parameters
    ----------
    require
        The requirements.
    verb
        The function behind the command.
    options
        What the command was given, by name.
    tables
        How many tables it takes.
    """
    metrics = options.get("metrics") or ()
    if not require or any(map(callable, metrics)):  # functions of one's own are not for made-up rows
        return
    names = defaults_of(verb).keys() - {*OPTIONS, "memory"}  # what is about the table at hand
    given = {name: options[name] for name in names if name in options}
    by = options.get("by") or ()
    if by:
        given["by"] = "group"
    if options.get("weight"):
        given["weight"] = "weight"
    asked = [_without_groups(each, (by,) if isinstance(by, str) else by) for each in require]
    refused: InputError | None = None
    for table in _made_up():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = verb(*[table] * tables, **given, progress=False)
            except InputError:  # which is said again of the table itself, or is about another kind of task
                continue
        try:
            found.verdict(*asked)
        except InputError as error:
            refused = refused or error
        else:
            return
    if refused is not None:
        raise refused


def _made_up() -> Iterator[dict[str, Any]]:
    """A table of each kind of task."""
    import numpy as np

    score, third = np.linspace(0.02, 0.98, _ROWS), np.arange(_ROWS) % 3
    shared = {"id": np.arange(_ROWS), "group": ["one", "two"] * (_ROWS // 2), "weight": 1 + third / 2}
    yield {"score": score, "outcome": third // 2, **shared}
    yield {"confidence": score, "correct": third // 2, **shared}
    yield {"p_0": score / 2, "p_1": score / 2, "p_2": 1 - score, "label": third, **shared}


def _without_groups(asked: Requirement, by: Iterable[str]) -> Requirement:
    """A requirement without the group that it names, which only the table knows."""
    columns = {plain(part) for each in by for part in (each, *re.split(r"[*,:]", each))}
    return replace(asked, settings={name: value for name, value in asked.settings.items() if name not in columns})
