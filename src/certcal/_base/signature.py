"""How a verb is written: its signature and its docstring are the source of checks, options, help and settings.

Write one ``def`` under :func:`verb`. Positional parameters are what the question is about; everything else is
keyword-only, with its type, range and default inline::

    @verb(roles=ROLES)
    def certify(
        source: Any,
        *,
        bins: Annotated[int, Range(1, 10_000)] = 15,
        radii: Annotated[float | Iterable[float] | None, Range(0), Option(metavar="R")] = None,
        closed: Literal["left", "right"] = "left",
        joint: bool = False,
    ) -> Certification:
        '''...numpydoc...'''
        asked = gather(Certifying, locals())  # a frozen dataclass of the values: cross-checks, no defaults, no help

What is checked follows from the annotation: ``int`` and ``float`` with a :class:`Range`, ``bool``, ``Literal`` words,
or the :class:`Takes` that is named. ``Iterable[...]`` takes several (a tuple arrives), ``None`` in the union None,
and a class beside ``Literal`` words takes an object of the user's own. A parameter without any of these is left alone
and is no option. Under "Parameters" of the docstring the first paragraph of an argument is its help in a shell
(the default is added), a second one is for Python only. A command says ``@verb_options(verb, "Heading")`` and calls
``verb(source, **options)``. A result keeps ``asked`` as ``settings``: ``verb(x, **vars(result.settings))`` is the same
again. Only keyword annotations are evaluated, when the verb is first called or its options are made.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import os
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin

import numpy as np

from certcal._base.arguments import evaluate, names_wrong_types
from certcal._base.checks import InputError, shortened
from certcal._base.progress import watching
from certcal._base.text import did_you_mean

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
Asked = TypeVar("Asked")

# What does not change an answer.
_NOT_ASKED = {"progress", "source"}

KindName = Literal[
    "positive", "noise", "share", "failure", "level", "size", "distance", "box", "edges", "name", "text", "file"
]


@dataclass(frozen=True)
class Spec:
    """What is known about one setting beside its name and default."""

    help: str
    """A phrase for people, such as "Number of bins"."""
    kind: str
    """"whole", "number", "positive", "noise" (also such as "0.1sd"), "share" (between 0 and 1), "failure" (a
    probability of failing), "level" (of an interval), "size" (bytes), "distance" (above 0; on the command line also
    k/255), "box" (two numbers, or "auto"), "edges" (of bins: a word, or numbers from 0 to 1), "flag", "word", "name" (a
    text without commas), "text" or "file".
    """
    many: bool = False
    """Whether several values may be given."""
    ordered: bool = False
    """Whether the order of several values matters, and the same may be among them twice."""
    least: float = -math.inf
    most: float = math.inf
    """Ends of a number's range."""
    choices: tuple[str, ...] = ()
    """Words that are allowed."""
    own: bool = False
    """Whether an object of the user's own is taken in place of a word."""
    zero: bool = False
    """Whether 0 is allowed beside the range."""
    optional: bool = False
    """Whether None is allowed."""
    metavar: str | None = None
    """What stands for the value in the help."""
    flag: str | None = None
    """The option's name, where it is not the setting's own."""


@dataclass(frozen=True)
class Range:
    """The numbers that a parameter takes: whole ones if it is annotated as ``int``; ``zero`` lets 0 in as well."""

    least: float = -math.inf
    most: float = math.inf
    zero: bool = False


SEED = Range(0, 2**63 - 1)


@dataclass(frozen=True)
class Takes:
    """What a parameter takes, where its type does not say it; the kinds are those of :class:`Spec`."""

    name: KindName
    most: float = math.inf
    zero: bool = False
    least: float = -math.inf


@dataclass(frozen=True)
class Option:
    """How a parameter is spelled in a shell, where that does not follow from its name; ``ordered`` keeps the order."""

    flag: str | None = None
    metavar: str | None = None
    ordered: bool = False


def several(value: Any) -> list[Any]:
    """One value or several; an array without dimensions is one, although it says that it can be gone through."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [value]
    try:
        return list(cast("Iterable[Any]", value))
    except TypeError:
        return [value]


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
        if name == "require" and name not in known:  # results are asked, not verbs
            raise InputError(f"unexpected argument {name!r}; ask the result, as in .verdict('ece <= 5%')")
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


def _number_text(number: float) -> str:
    """A whole number with all its digits, any other in a few."""
    return f"{number:.0f}" if abs(number) < 1e20 and number == int(number) else f"{number:g}"


def _range_error(number: float, kind: str, spec: Spec) -> _RefusedError:
    """Why a number is outside of its range."""
    least, most, given = (_number_text(end) for end in (spec.least, spec.most, number))
    reach = f"of at least {least}" if spec.most == math.inf else f"from {least} to {most}"
    return _RefusedError(f"{given} is {'neither 0 nor' if spec.zero else 'not'} a {kind} {reach}")


def _whole_value(value: Any, spec: Spec) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise _RefusedError(f"{shortened(value)} is not a whole number")
    if not (spec.least <= number <= spec.most or (spec.zero and number == 0)):
        raise _range_error(number, "whole number", spec)
    return number


def _number_value(value: Any, spec: Spec) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool | str) or not math.isfinite(number):
        numbers = isinstance(value, str) and re.fullmatch(r"[\d.]+(?:/[\d.]+)?", value)
        raise _RefusedError(f"{shortened(value)} is not a number{f'; write {value} without quotes' if numbers else ''}")
    if not (spec.least <= number <= spec.most or (spec.zero and number == 0)):
        raise _range_error(number, "number", spec)
    return number


def _positive(value: Any, spec: Spec) -> float:
    number = _number_value(value, Spec("", "number"))
    if not (number > 0 or (spec.zero and number == 0)):
        raise _RefusedError(f"{number:g} is not a number {'from' if spec.zero else 'above'} 0")
    if number > spec.most:
        raise _RefusedError(f"{number:g} is too large; give at most {spec.most:g}")
    return number


def _noise_value(value: Any, spec: Spec) -> float | str:
    """A standard deviation, in units of the inputs or in standard deviations of each feature."""
    if not isinstance(value, str):
        return _positive(value, spec)
    given = re.fullmatch(r"\s*([0-9.eE+-]{1,30})\s*sd\s*", value)
    try:
        return f"{_positive(float(given[1]), spec)!r}sd" if given else _positive(value, spec)
    except ValueError:
        return _positive(value, spec)


def _share(value: Any, spec: Spec) -> float:
    number = _number_value(value, Spec("", "number"))
    if not (0 < number < 1 or (spec.zero and number == 0)):
        allowed = "neither 0 nor" if spec.zero else "not"
        meant = f"; did you mean {number / 100:g}?" if 1 < number < 100 else ""
        raise _RefusedError(f"{number:g} is {allowed} between 0 and 1{meant}")
    return number


def _failure(value: Any, spec: Spec) -> float:
    from certcal._base.checks import LEAST_FAILURE, MOST_FAILURE, failure_hint

    number = _number_value(value, Spec("", "number"))
    if MOST_FAILURE <= number < 100:
        hint = failure_hint(number)
        raise _RefusedError(f"{number:g} is not a probability of failing below {MOST_FAILURE:g}; {hint}")
    number = _share(value, spec)
    if 0 < number < LEAST_FAILURE:
        raise _RefusedError(f"{number:g} is too small; give at least {LEAST_FAILURE:g}")
    return number


def _level_value(value: Any, spec: Spec) -> float:
    from certcal._base.checks import MOST_LEVEL

    number = _share(value, spec)
    if number > MOST_LEVEL:
        raise _RefusedError(f"{number!r} is too close to 1; give at most {MOST_LEVEL}")
    return number


def _flag(value: Any, spec: Spec) -> bool:
    if not isinstance(value, bool):
        raise _RefusedError(f"{shortened(value)} is not True or False")
    return value


def _text_value(value: Any, spec: Spec) -> Any:
    if not (spec.own or isinstance(value, str)):
        raise _RefusedError(f"{shortened(value)} is not a text")
    return value


def _file(value: Any, spec: Spec) -> Any:
    if spec.own or isinstance(value, str | os.PathLike):
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


def _box_value(value: Any, spec: Spec) -> Any:
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
    return tuple(_number_value(each, Spec("", "number")) for each in several(value))


_KINDS: dict[str, Callable[[Any, Spec], Any]] = {
    "whole": _whole_value,
    "number": _number_value,
    "positive": _positive,
    "noise": _noise_value,
    "share": _share,
    "failure": _failure,
    "level": _level_value,
    "size": _whole_value,
    "distance": _positive,
    "flag": _flag,
    "word": _word,
    "box": _box_value,
    "edges": _edges,
    "name": _text_value,
    "text": _text_value,
    "file": _file,
}


def verb(*, roles: Sequence[str] = ()) -> Callable[[Callable[Given, Returned]], Callable[Given, Returned]]:
    """Check the names and values that a verb is called with, by its own signature, and hand them on normalised.

    Parameters
    ----------
    roles
        Roles of columns, which are not keywords of this verb but may be taken for such.

    Examples
    --------
    >>> @verb()
    ... def halve(number: float, *, times: Annotated[int, Range(1, 9)] = 1) -> float:
    ...     return number / 2**times
    >>> halve(3.0, time=2)
    Traceback (most recent call last):
        ...
    certcal.InputError: unexpected argument 'time'; did you mean 'times'?
    >>> halve(3.0, times=0)
    Traceback (most recent call last):
        ...
    certcal.InputError: times: 0 is not a whole number from 1 to 9
    """

    def decorate(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
        own = inspect.signature(function).parameters.values()
        places = [each.name for each in own if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        keywords = [each.name for each in own if each.kind is each.KEYWORD_ONLY]
        needed = [each.name for each in own if each.default is each.empty and each.name in (*places, *keywords)]
        endless = any(each.kind is each.VAR_POSITIONAL for each in own)
        takes_others = any(each.kind is each.VAR_KEYWORD for each in own)
        sources = {each.name for each in own if each.name in places and each.default is each.empty}
        checked = cast("Callable[..., Returned]", names_wrong_types(function))

        @functools.wraps(function)
        def call(*args: Given.args, **given: Given.kwargs) -> Returned:
            if len(args) > len(places) and not endless:
                raise _too_many(function.__name__, places, len(args))
            if not takes_others:
                check_arguments((name for name in given if name not in places), keywords, roles)
            for name in needed:
                if name not in given and name not in places[: len(args)]:
                    required = [f"{each}=…" for each in needed if each in keywords]
                    remedy = f"call it as {function.__name__}({', '.join([*places, *required])})"
                    raise InputError(f"{function.__name__} was given no {name}", remedy=remedy)
            values = {**defaults_of(function), **_checked_values(function, given)}
            if "progress" not in keywords:
                return checked(*args, **values)
            with watching(values.get("progress", True)) as progress:
                found = checked(*args, **{**values, "progress": progress})
            return _remember_settings(
                found, function.__name__, {**dict(zip(places, args, strict=False)), **values}, sources
            )

        return call

    return decorate


def _remember_settings(returned: Returned, verb: str, values: Mapping[str, Any], sources: Container[str]) -> Returned:
    """A result that knows what was asked, as plain values; what are none, such as arrays, are named as not recorded."""
    if hasattr(returned, "asked"):
        said = {name: value for name, value in values.items() if name not in sources and name not in _NOT_ASKED}
        said = {name: getattr(value, "asked", value) for name, value in said.items()}
        plain = {name: value for name, value in said.items() if is_plain(value)}
        lost = [name for name in said if name not in plain]
        object.__setattr__(returned, "asked", {"verb": verb, **plain, **({"not_recorded": lost} if lost else {})})
    return returned


def is_plain(value: Any, depth: int = 3) -> bool:
    """Whether JSON can hold a value: numbers, texts, and lists and mappings of them.

    Examples
    --------
    >>> is_plain({"score": ["a", "b"]}), is_plain(print)
    (True, False)
    """
    if isinstance(value, dict | list | tuple) and depth:
        inner: Any = value.values() if isinstance(value, dict) else value  # pyright: ignore
        return all(is_plain(each, depth - 1) for each in inner)
    return value is None or isinstance(value, bool | int | float | str)


def gather(cls: type[Asked], values: Mapping[str, Any]) -> Asked:
    """What was asked: an object of a dataclass from the values of that name, such as ``locals()`` of a verb."""
    return cls(**{each.name: values[each.name] for each in fields(cast("Any", cls))})


def settings_of(verb: Callable[..., Any], cls: type[Asked], **given: Any) -> Asked:
    """What a verb is asked by such keywords, checked, and by its defaults for the others."""
    function = inspect.unwrap(verb)
    return gather(cls, {**defaults_of(function), **_checked_values(function, given)})


def defaults_of(verb: Callable[..., Any]) -> dict[str, Any]:
    """The defaults of a verb's checked parameters, as the verb receives them.

    Examples
    --------
    >>> @verb()
    ... def halve(number: float, *, times: Annotated[int | Iterable[int], Range(1, 9)] = 1) -> float: ...
    >>> defaults_of(halve)
    {'times': (1,)}
    """
    return dict(_read_signature(inspect.unwrap(verb))[1])


def specs_of(verb: Callable[..., Any], explained_by: Callable[..., Any] | None = None) -> dict[str, Spec]:
    """What the checked parameters of a verb take, with their help, in the order of the signature.

    Parameters
    ----------
    verb
        The verb.
    explained_by
        The function whose docstring explains the parameters; by default the verb itself.
    """
    function = inspect.unwrap(verb)
    told = explanations((explained_by or function).__doc__)
    return {name: replace(spec, help=told.get(name, "")) for name, spec in _read_signature(function)[0].items()}


def explanations(docstring: str | None) -> dict[str, str]:
    """The first paragraph about each argument under "Parameters" of a docstring, as one line.

    Examples
    --------
    >>> explanations(explanations.__doc__)
    {'docstring': 'In the form of numpydoc.'}

    Parameters
    ----------
    docstring
        In the form
        of numpydoc.

        This paragraph is for Python only.
    """
    match = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", inspect.cleandoc(docstring or ""), re.M | re.S)
    entries = re.findall(r"^(\S.*)\n((?:[ ].*\n?)+)", match[1] if match else "", re.M)
    return {
        name.strip(): " ".join(text.split()) for names, text in entries for name in names.partition(" : ")[0].split(",")
    }


@functools.cache
def _read_signature(function: Callable[..., Any]) -> tuple[dict[str, Spec], dict[str, Any]]:
    """What the checked parameters of a function take, and their defaults."""
    names = getattr(function, "__globals__", {})
    keywords = [each for each in inspect.signature(function).parameters.values() if each.kind is each.KEYWORD_ONLY]
    hints = {each.name: evaluate(each.annotation, names) for each in keywords}
    specs = {name: spec for name, spec in ((name, _spec_in(hint)) for name, hint in hints.items()) if spec is not None}
    given = {each.name: each.default for each in keywords if each.name in specs and each.default is not each.empty}
    return specs, {name: check_values(name, value, specs[name]) for name, value in given.items()}


def _checked_values(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    specs = _read_signature(function)[0]
    return {name: check_values(name, value, specs[name]) if name in specs else value for name, value in given.items()}


def check_values(name: str, value: Any, spec: Spec) -> Any:
    """A value that a parameter may have, or a tuple of those where it takes several."""
    if value is None and spec.optional:
        return None
    return (
        tuple(check_setting(name, one, spec) for one in several(value))
        if spec.many
        else check_setting(name, value, spec)
    )


def _spec_in(hint: Any) -> Spec | None:
    """What an annotation lets through; None where it says nothing that is checked beforehand."""
    marks: Sequence[Any] = ()
    if get_origin(hint) is Annotated:
        hint, *marks = get_args(hint)
    kinds = _alternatives(hint)
    inner = [each for kind in kinds if _holds_several(kind) for each in _alternatives(get_args(kind)[0])]
    ones = [each for each in (*kinds, *inner) if not _holds_several(each) and each is not NoneType]
    words = tuple(dict.fromkeys(word for each in ones if get_origin(each) is Literal for word in get_args(each)))
    ends = next((mark for mark in marks if isinstance(mark, Range | Takes)), None)
    if isinstance(ends, Takes):
        kind = ends.name
    elif ends is not None:
        kind = "number" if float in ones else "whole"
    elif words or ones == [bool]:
        kind = "word" if words else "flag"
    else:
        return None
    option = next((mark for mark in marks if isinstance(mark, Option)), Option())
    plain = {int, float, str, bool}
    return Spec(
        "",
        kind,
        many=bool(inner) and kind != "edges",
        ordered=option.ordered,
        least=-math.inf if ends is None else ends.least,
        most=math.inf if ends is None else ends.most,
        choices=words,
        own=any(get_origin(each) not in (Literal, os.PathLike) and each not in plain for each in ones),
        zero=ends is not None and ends.zero,
        optional=NoneType in kinds,
        metavar=option.metavar,
        flag=option.flag,
    )


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _holds_several(hint: Any) -> bool:
    return get_origin(hint) is Iterable


def _too_many(verb: str, places: Sequence[str], given: int) -> InputError:
    shown = ", ".join(places)
    remedy = f"name the others: {verb}({shown}, name=value)"
    if list(places) == ["model", "data"] and given == 3:
        remedy = f"inputs and labels are one argument: {verb}(model, (X, y))"
    if list(places) == ["page", "data"] and given == 3:
        remedy = f"outcomes and probabilities are one argument: {verb}(page, (y_true, y_prob))"
    return InputError(f"{verb} takes {shown} and was given {given} arguments by position", remedy=remedy)
