"""Settings of a verb: a frozen dataclass that the library checks and that the command line turns into options."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, shortened
from certcal._base.text import did_you_mean

Made = TypeVar("Made", bound="Settings")
Returned = TypeVar("Returned")


@dataclass(frozen=True)
class Spec:
    """What is known about one setting beside its name and default.

    Attributes
    ----------
    help
        A phrase for people, such as "Number of bins".
    kind
        "whole", "number", "positive", "share" (between 0 and 1), "failure" (a probability of failing), "level" (of an
        interval), "size" (bytes), "distance" (above 0; on the command line also k/255), "box" (two numbers, or
        "auto"), "edges" (of bins: a word, or numbers from 0 to 1), "flag", "word", "name" (a text without commas),
        "text" or "file".
    many
        Whether several values may be given.
    ordered
        Whether the order of several values matters, and the same may be among them twice.
    least, most
        Ends of a number's range.
    choices
        Words that are allowed.
    own
        Whether an object of the user's own is taken in place of a word.
    zero
        Whether 0 is allowed beside the range.
    optional
        Whether None is allowed.
    metavar
        What stands for the value in the help.
    flag
        The option's name, where it is not the setting's own.
    """

    help: str
    kind: str
    many: bool = False
    ordered: bool = False
    least: float = -math.inf
    most: float = math.inf
    choices: tuple[str, ...] = ()
    own: bool = False
    zero: bool = False
    optional: bool = False
    metavar: str | None = None
    flag: str | None = None


def setting(default: Any, help: str, kind: str, **spec: Any) -> Any:
    """A field of :class:`Settings`: its default, a phrase about it, and which values it takes."""
    return field(default=default, metadata={"spec": Spec(help, kind, **spec)})


# The field ``device`` of every verb that calls a model.
DEVICE = "Where the model computes: auto (an accelerator if there is one), cpu, cuda, cuda:1, mps, … Default: auto."


def spec_of(cls: type[Settings], name: str) -> Spec:
    """What is known about one setting."""
    return next(each.metadata["spec"] for each in fields(cls) if each.name == name)


@dataclass(frozen=True)
class Settings:
    """Base of all settings: every value is checked once, and an error names the setting."""

    # Settings that belong together under a heading of the help, by heading.
    sections: ClassVar[dict[str, tuple[str, ...]]] = {}

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            spec: Spec = each.metadata["spec"]
            if value is None and (spec.optional or each.default is None):
                continue
            if spec.many:
                values = _several(value)
                value = tuple(check_setting(each.name, one, spec) for one in values)
            else:
                value = check_setting(each.name, value, spec)
            object.__setattr__(self, each.name, value)


def _several(value: Any) -> list[Any]:
    """One value or several; an array without dimensions is one, although it says that it can be gone through."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [value]
    try:
        return list(cast("Iterable[Any]", value))
    except TypeError:
        return [value]


def check_progress(progress: Any) -> None:
    """Refuse what cannot be told how far work is, before any work is done."""
    if not all(callable(getattr(progress, name, None)) for name in ("stage", "say", "advance")):
        raise InputError(
            f"{shortened(progress)} cannot be told how far the work is",
            argument="progress",
            remedy="leave it out, or pass an object with stage, say and advance",
        )


def check_arguments(given: Iterable[str], known: Sequence[str], roles: Sequence[str] = ()) -> None:
    """Refuse keywords that are none of the known ones with the nearest; ``roles`` are those of columns.

    Examples
    --------
    >>> check_arguments(["bin"], ["bins", "delta"])
    Traceback (most recent call last):
        ...
    certcal.InputError: unexpected argument 'bin'; did you mean 'bins'?
    """
    for name in given:
        if name not in known:
            is_role = name in roles
            others = f"name columns as in columns={{{name!r}: '…'}}" if is_role else f"there are {', '.join(known)}"
            near = [each for each in known if each != "source"] if is_role else known
            hint = did_you_mean(name, near, others, 0.7 if is_role else 0.6)
            raise InputError(f"unexpected argument {name!r}; {hint}")


def check_setting(name: str, value: Any, spec: Spec) -> Any:
    """A value that a setting may have, or an error that names the setting."""
    check = _KINDS[spec.kind]
    try:
        return check(value, spec)
    except _RefusedError as refused:
        raise InputError(str(refused), argument=name) from None


def counted_from_one(name: str, value: Any, most: int = 10**9) -> int | None:
    """A number of things that is no setting, such as a limit of samples: a whole number from 1, or None.

    Examples
    --------
    >>> counted_from_one("limit", 0)
    Traceback (most recent call last):
        ...
    certcal.InputError: limit: 0 is not a whole number from 1 to 1000000000
    """
    return None if value is None else check_setting(name, value, Spec("", "whole", least=1, most=most))


class _RefusedError(Exception):
    """Why a value is not taken; the setting's name is added where it is known."""


def _plain(number: float) -> str:
    """A whole number with all its digits, any other in a few."""
    return f"{number:.0f}" if abs(number) < 1e20 and number == int(number) else f"{number:g}"


def _refused(number: float, kind: str, spec: Spec) -> _RefusedError:
    """Why a number is outside of its range."""
    least, most, given = (_plain(end) for end in (spec.least, spec.most, number))
    reach = f"of at least {least}" if spec.most == math.inf else f"from {least} to {most}"
    return _RefusedError(f"{given} is {'neither 0 nor' if spec.zero else 'not'} a {kind} {reach}")


def _whole(value: Any, spec: Spec) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise _RefusedError(f"{shortened(value)} is not a whole number")
    if not (spec.least <= number <= spec.most or (spec.zero and number == 0)):
        raise _refused(number, "whole number", spec)
    return number


def _number(value: Any, spec: Spec) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool | str) or not math.isfinite(number):
        raise _RefusedError(f"{shortened(value)} is not a number")
    if not (spec.least <= number <= spec.most or (spec.zero and number == 0)):
        raise _refused(number, "number", spec)
    return number


def _positive(value: Any, spec: Spec) -> float:
    number = _number(value, Spec("", "number"))
    if not (number > 0 or (spec.zero and number == 0)):
        raise _RefusedError(f"{number:g} is not a number {'from' if spec.zero else 'above'} 0")
    if number > spec.most:
        raise _RefusedError(f"{number:g} is too large; give at most {spec.most:g}")
    return number


def _share(value: Any, spec: Spec) -> float:
    number = _number(value, Spec("", "number"))
    if not (0 < number < 1 or (spec.zero and number == 0)):
        allowed = "neither 0 nor" if spec.zero else "not"
        raise _RefusedError(f"{number:g} is {allowed} between 0 and 1")
    return number


def _failure(value: Any, spec: Spec) -> float:
    from certcal._base.checks import LEAST_FAILURE, MOST_FAILURE, failure_hint

    number = _number(value, Spec("", "number"))
    if MOST_FAILURE <= number < 100:
        hint = failure_hint(number)
        raise _RefusedError(f"{number:g} is not a probability of failing below {MOST_FAILURE:g}; {hint}")
    number = _share(value, spec)
    if 0 < number < LEAST_FAILURE:
        raise _RefusedError(f"{number:g} is too small; give at least {LEAST_FAILURE:g}")
    return number


def _level(value: Any, spec: Spec) -> float:
    from certcal._base.checks import MOST_LEVEL

    number = _share(value, spec)
    if number > MOST_LEVEL:
        raise _RefusedError(f"{number!r} is too close to 1; give at most {MOST_LEVEL}")
    return number


def _flag(value: Any, spec: Spec) -> bool:
    if not isinstance(value, bool):
        raise _RefusedError(f"{shortened(value)} is not True or False")
    return value


def _text(value: Any, spec: Spec) -> Any:
    if not (spec.own or isinstance(value, str)):
        raise _RefusedError(f"{shortened(value)} is not a text")
    return value


def _file(value: Any, spec: Spec) -> Any:
    if isinstance(value, str | os.PathLike):
        return cast("Any", value)
    raise _RefusedError(f"{shortened(value)} is not the name of a file")


def _word(value: Any, spec: Spec) -> Any:
    own = spec.own and not isinstance(value, str | list | np.ndarray)
    if own or (isinstance(value, str) and value in spec.choices):
        return cast("Any", value)
    if not isinstance(value, str):
        raise _RefusedError(f"{shortened(value)} is not one of {', '.join(spec.choices)}")
    hint = did_you_mean(value.lower(), spec.choices)
    raise _RefusedError(f"{shortened(value)} is not one of {', '.join(map(repr, spec.choices))}{hint and f'; {hint}'}")


def _box(value: Any, spec: Spec) -> Any:
    if isinstance(value, str) and value == "auto":
        return value
    try:
        low, high = map(float, value)
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not (low < high and math.isfinite(low) and math.isfinite(high)):
        raise _RefusedError(f"{shortened(value)} is no box; give the smallest and the largest value, such as 0 and 1")
    return low, high


def _edges(value: Any, spec: Spec) -> Any:
    if isinstance(value, str):
        return _word(value, spec)
    if not isinstance(value, Iterable):
        raise _RefusedError(f"{shortened(value)} is not one of {', '.join(spec.choices)}, and no list of numbers")
    return tuple(_number(each, Spec("", "number")) for each in _several(value))


_KINDS: dict[str, Callable[[Any, Spec], Any]] = {
    "whole": _whole,
    "number": _number,
    "positive": _positive,
    "share": _share,
    "failure": _failure,
    "level": _level,
    "size": _whole,
    "distance": _positive,
    "flag": _flag,
    "word": _word,
    "box": _box,
    "edges": _edges,
    "name": _text,
    "text": _text,
    "file": _file,
}


def _too_many(verb: str, places: Sequence[str], given: Sequence[Any]) -> InputError:
    """A verb was given more than it takes by position, such as outcomes and scores as two arrays."""
    shown = ", ".join(places)
    remedy = f"name the others: {verb}({shown}, name=value)"
    if places == ["data"] and all(hasattr(each, "__len__") and not isinstance(each, str | Mapping) for each in given):
        remedy = f'give one table: certcal.{verb}({{"score": p, "outcome": y}}), with scores p and outcomes y'
    return InputError(f"{verb} takes {shown} and was given {len(given)} arguments by position", remedy=remedy)


def takes(cls: type[Made], roles: Sequence[str] = ()) -> Callable[[Callable[..., Returned]], Callable[..., Returned]]:
    """Let a verb take the fields of its settings as keywords, or all of them at once as ``settings``."""

    def decorate(verb: Callable[..., Returned]) -> Callable[..., Returned]:
        signature = inspect.signature(verb)
        own = [each for each in signature.parameters.values() if each.name != "settings"]
        added = [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default) for each in fields(cls)
        ]
        names = {each.name for each in own}
        places = [each.name for each in own if each.kind is each.POSITIONAL_OR_KEYWORD]
        needed = {each.name for each in own if each.default is each.empty}
        checked = names_wrong_types(verb)
        endless = any(each.kind is each.VAR_POSITIONAL for each in own)

        @functools.wraps(verb)
        def call(*args: Any, settings: Made | None = None, **given: Any) -> Returned:
            if len(args) > len(places) and not endless:
                raise _too_many(verb.__name__, places, args)
            kept = {name: given.pop(name) for name in list(given) if name in names}
            if settings is not None and not isinstance(settings, cls):
                raise InputError(f"settings is {shortened(settings)}; pass a {cls.__name__}, or its fields as keywords")
            if "progress" in kept:
                check_progress(kept["progress"])
            if settings is not None and given:
                raise InputError(f"settings and {next(iter(given))} are both given; choose one")
            known = [*(each.name for each in own if each.kind is each.KEYWORD_ONLY), *(each.name for each in added)]
            check_arguments(given, known, roles)
            missing = [name for name in places[len(args) :] if name not in kept and name in needed]
            if missing:
                remedy = f"call it as {verb.__name__}({', '.join(places)})"
                raise InputError(f"{verb.__name__} was given no {missing[0]}", remedy=remedy)
            return checked(*args, settings=cls(**given) if settings is None else settings, **kept)

        shown = [*own, *added, inspect.Parameter("settings", inspect.Parameter.KEYWORD_ONLY, default=None)]
        call.__signature__ = signature.replace(parameters=sorted(shown, key=lambda each: each.kind))  # pyright: ignore
        return call

    return decorate
