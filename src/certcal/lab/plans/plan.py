"""What a plan is: fields, how a plan extends another, and how it shrinks."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast, get_type_hints

import msgspec
from msgspec import Meta, Struct, structs

from certcal._base.checks import InputError
from certcal._base.text import did_you_mean
from certcal._base.told import Told
from certcal.lab.plans import MODULES

HERE = Path(__file__).parent
# Of the rows of a published table: between a group and what is in it.
OF_GROUP = " | "
_AT = re.compile(r" - at `\$\.?(.*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_NO_WORD = re.compile(r"Invalid enum value '(.*)'")


Count = Annotated[int, Meta(ge=1)]
Whole = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Radius = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Level = Annotated[float, Meta(gt=0, lt=1)]


@dataclass(frozen=True)
class Floor:
    """Below which a number, or the length of a list, does not shrink with the scale."""

    least: int


class PublishedTable(Told, Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers as a paper prints them; a text where it prints none, such as "–" or a range."""

    columns: list[str | float]
    rows: dict[str, list[float | str]]
    highest: list[str] = []
    """Groups of rows, or first words of columns, in which the largest number is the best; elsewhere the smallest is."""
    corner: str = ""
    """What the columns are."""
    digits: int | list[int] | None = None
    """Decimals that are printed, in all columns or in each, where they are not those of our table."""


class PaperPlan(Told, Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What all plans have."""

    kind: str
    paper: str
    """Folder of the paper, such as cc."""
    title: str
    place: str = ""
    """Where it is printed: the number of the table or figure, and the section."""
    layout: str = ""
    """Which of the kind's tables and charts."""
    needs: dict[str, str] = {}
    """What has to be brought, such as data or checkpoints, in words."""
    cost: str = ""
    """What the paper says that it took."""
    differs: str = ""
    """What is not as in the paper even at full scale."""
    here: str = ""
    """What was run for the documentation."""
    published: dict[str, PublishedTable] = {}
    name: str = ""
    scale: float = 1.0
    changes: dict[str, Any] = {}
    given: dict[str, str] = {}
    """Name, scale, changed fields, and the folders that were brought by what they are ("data", "data cifar-10",
    "checkpoints", "logs"); filled in when a plan is opened."""

    @property
    def as_printed(self) -> bool:
        """Whether data, networks, recipes and scale are those of the plan, so that numbers can be compared."""
        return self.scale == 1 and not self.changes

    def to_plain(self) -> dict[str, Any]:
        """All fields as plain values."""
        return msgspec.to_builtins(self)


@cache
def plan_files() -> Mapping[str, Path]:
    """Plans that come with the library, and parts of plans, by name; those of a paper in the order of their numbers."""
    files = [path for path in HERE.glob("*/*.toml") if path.stem != "paper"]
    files.sort(key=lambda path: (path.parent.name, [(len(each), each) for each in re.split(r"(\d+)", path.stem)]))
    return {f"{path.parent.name}-{path.stem.lstrip('_')}": path for path in files}


def plan_names() -> list[str]:
    """Names of the plans that come with the library.

    Examples
    --------
    >>> "cc-table7" in plan_names(), "cc-act" in plan_names()
    (True, False)
    """
    return [name for name, path in plan_files().items() if not path.stem.startswith("_")]


def open_plan(
    source: str | os.PathLike[str],
    changes: Mapping[str, Any] | None = None,
    scale: float = 1.0,
    given: Mapping[str, str] | None = None,
) -> Any:
    """A plan by name or from a file, with other fields and smaller if asked.

    Parameters
    ----------
    source
        One of :func:`plan_names`, or a TOML file.
    changes
        Other values of fields by their dotted names, such as ``{"network.name": "mlp"}``.
    scale
        By how much numbers with a floor shrink.
    given
        Folders of data, checkpoints and logs.

    Returns
    -------
    PaperPlan
        Of its kind's own class.

    Examples
    --------
    >>> plan = open_plan("cc-table7", {"network.name": "resnet20"}, scale=0.01)
    >>> plan.sample.n, plan.as_printed
    (1000, False)
    """
    name, values = _read(source)
    for field, value in (changes or {}).items():
        _set(values, field, value)
    kind = values.get("kind")
    if kind not in MODULES or not hasattr(MODULES[str(kind)](), "Settings"):
        known = [each for each, module in MODULES.items() if hasattr(module(), "Settings")]
        hint = did_you_mean(kind, known, f"there are {', '.join(known)}")
        raise InputError(f"{name}: kind is {kind!r}, which is none; {hint}")
    values.update(
        name=name, place=values.get("place") or name, scale=scale, changes=dict(changes or {}), given=dict(given or {})
    )
    plan = _convert(name, values, MODULES[str(kind)]().Settings)
    for title, table in plan.published.items():
        for row, cells in table.rows.items():
            if len(cells) != len(table.columns):
                reason = f"has {len(cells)} cells, and there are {len(table.columns)} columns; add what is missing"
                raise InputError(f"{name}: published.{title}.rows.{row} {reason}")
    return plan if scale == 1 else _shrink(plan, scale)


def _read(source: str | os.PathLike[str], above: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
    """Name and fields of a plan, with those of the plan that it extends."""
    files, text = plan_files(), os.fspath(source)
    path = files.get(text, Path(text))
    name = text if text in files else path.stem
    own = name if text in files else str(path.resolve())
    if own in above:
        raise InputError(f"{path}: base is {text!r}, which extends this plan; name another one")
    if text not in files and not (path.suffix == ".toml" and path.is_file()):
        hint = did_you_mean(text, plan_names(), "call it without a name for a list, or give a .toml file")
        raise InputError(f"there is no plan {text!r}; {hint}")
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: cannot be read as TOML ({error}); correct it") from None
    base = values.pop("base", None)
    if base is None:
        return name, values
    if not isinstance(base, str):
        raise InputError(f"{path}: base is {base!r}; give the name of a plan, or a .toml file")
    beside = path.parent / base if base.endswith(".toml") else base
    below = _read(beside, (*above, own))[1]
    for own in ("published", "place", "here"):
        below.pop(own, None)
    return name, _merge(below, values)


def _merge(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Fields over others: tables field by field, everything else as a whole."""
    for name, value in above.items():
        both: tuple[Any, Any] = below.get(name), value
        below[name] = _merge(*both) if all(isinstance(each, dict) for each in both) else value
    return below


def _set(values: dict[str, Any], field: str, value: Any) -> None:
    *path, last = field.split(".")
    place: Any = values
    try:
        for step in path:
            place = place.setdefault(step, {}) if isinstance(place, dict) else place[int(step)]  # pyright: ignore
        place[last if isinstance(place, dict) else int(last)] = value
    except (ValueError, IndexError, TypeError, AttributeError):
        raise InputError(f"the plan has no field {field}; lists are numbered from 0, as in baselines.0.sigma") from None


def _convert(name: str, values: dict[str, Any], kind: type[PaperPlan]) -> Any:
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        text = str(error)
    at = _AT.search(text)
    place, reason = (at[1] if at else ""), _AT.sub("", text)
    place = re.sub(r"\[(\d*|\.\.\.)\]", lambda found: f".{found[1]}" if found[1].isdigit() else "", place)
    unknown, no_word = _UNKNOWN.fullmatch(reason), _NO_WORD.fullmatch(reason)
    if no_word is not None:
        words = _words_in(_type_at(kind, place))
        hint = did_you_mean(no_word[1], words, f"give one of {', '.join(filter(None, words))}")
        raise InputError(f"{name}: {place} is {no_word[1]!r}; {hint}")
    if reason.startswith("Expected `object`"):
        fields = ", ".join(f"{place}.{each}" for each in _fields_at(kind, place))
        raise InputError(f"{name}: {place} is a part of the plan with fields of its own; give {fields}")
    if unknown is None:
        reason = reason[:1].lower() + reason[1:].replace("`", "")
        raise InputError(f"{name}: {f'{place}: ' if place else ''}{reason}; correct the plan")
    fields = _fields_at(kind, place)
    where = f"{place}.{unknown[1]}" if place else unknown[1]
    hint = did_you_mean(unknown[1], fields, f"there are {', '.join(fields)}")
    raise InputError(f"{name}: {where} is no field of a plan of kind {values['kind']}; {hint}")


def _type_at(kind: Any, place: str) -> Any:
    """The type of a field inside a plan, by its dotted name."""
    found = kind
    for step in filter(None, place.split(".")):
        found = found if step.isdigit() else get_type_hints(_struct_in(found))[step]
    return found


def _fields_at(kind: Any, place: str) -> list[str]:
    """Names of the fields of a table inside a plan."""
    filled_in = () if place else ("name", "scale", "changes", "given")
    return [each for each in _struct_in(_type_at(kind, place)).__struct_fields__ if each not in filled_in]


def _struct_in(hint: Any) -> Any:
    """The structure that a type is, or holds."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return hint
    inside: tuple[Any, ...] = getattr(cast("Any", hint), "__args__", ())
    return next((found for each in inside if (found := _struct_in(each))), None)


def _words_in(hint: Any) -> list[str]:
    """The words of the literals that a type is, or holds."""
    inside: tuple[Any, ...] = getattr(hint, "__args__", ())
    return [word for each in inside for word in ([each] if isinstance(each, str) else _words_in(each))]


def _shrink(value: Any, scale: float) -> Any:
    if isinstance(value, list):
        return [_shrink(each, scale) for each in cast("list[Any]", value)]
    if not isinstance(value, Struct):
        return value
    hints = get_type_hints(type(value), include_extras=True)
    changed: dict[str, Any] = {}
    for name in value.__struct_fields__:
        entry = getattr(value, name)
        floor = next((each for each in getattr(hints[name], "__metadata__", ()) if isinstance(each, Floor)), None)
        if floor is not None and entry is not None:
            entry = _smaller(entry, floor.least, scale)
        changed[name] = _shrink(entry, scale)
    return structs.replace(value, **changed)


def _smaller(value: int | Sequence[Any], least: int, scale: float) -> Any:
    if isinstance(value, int):
        return min(value, max(least, round(value * scale)))
    return list(value[: min(len(value), max(least, math.ceil(len(value) * scale)))])
