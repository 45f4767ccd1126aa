"""Whose fault a failure is: an argument of another type than its annotation says is named in a sentence."""

from __future__ import annotations

import builtins
import functools
import inspect
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin

import numpy as np

from certcal._base.checks import InputError, flag, shortened

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

# What code raises that is given something else than it expects.
_RAISED = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)


def names_wrong_types(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Let a public function answer an argument of a wrong type with a sentence, at no cost to a call that is right.

    Values are checked where they are used; only flags are checked here, since any value passes for true or false. What
    goes wrong in spite of that is looked at: if an argument is not what its annotation says, an :class:`InputError`
    names it; otherwise the exception stays as it is.

    Examples
    --------
    >>> @names_wrong_types
    ... def double(number: float, *, negative: bool = False) -> float:
    ...     return -2 * number if negative else number / 0.5
    >>> double("a")
    Traceback (most recent call last):
        ...
    certcal.InputError: number is 'a'; pass a number
    """
    flags = [name for name, annotation in function.__annotations__.items() if annotation == "bool" and name != "return"]

    @functools.wraps(function)
    def call(*args: Given.args, **given: Given.kwargs) -> Returned:
        for name in flags:
            flag(given.get(name, False), name)
        try:
            return function(*args, **given)
        except InputError:
            raise
        except _RAISED as error:
            refuse_wrong_types(function, args, given, error)
            raise

    return call


def refuse_wrong_types(
    function: Callable[..., Any], args: Iterable[Any], given: Mapping[str, Any], error: Exception
) -> None:
    """Raise if one of the arguments, with which a function has failed, is not what its annotation says."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **given).arguments
    except TypeError:  # too few or too many: Python's own sentence names them
        return
    for name, value in bound.items():
        about = signature.parameters[name]
        hint = evaluate(about.annotation, getattr(inspect.unwrap(function), "__globals__", {}))
        variadic = about.kind in (about.VAR_POSITIONAL, about.VAR_KEYWORD)
        if hint is not about.empty and not variadic and not _fits(value, hint):
            raise InputError(f"{name} is {shortened(value)}; pass {_describe_type(hint)}") from error


class _Names(dict[str, Any]):
    """Names of a module; one that is imported for type checkers only is kept as a name."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, None) or cast("Any", TypeVar)(name)


def evaluate(annotation: Any, names: Mapping[str, Any]) -> Any:
    """The type that an annotation names; a name that is imported for type checkers only stands for itself."""
    try:
        return eval(annotation, {}, _Names(names)) if isinstance(annotation, str) else annotation
    except TypeError:  # a name of which nothing is known, with something in brackets
        return Any


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says; in doubt it is."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _fits(value, inner[0])
    if hint is Any:
        return True
    if isinstance(hint, TypeVar):  # a class, which plain values are not, or a protocol, which any object may follow
        return callable(value) or type(value).__module__ not in ("builtins", "numpy")
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if hint is None or hint is NoneType:
        return value is None
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if hint in (int, float):
        return _converts(value, operator.index if hint is int else float)
    if inner and isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(each, inner[1]) for key, each in cast("Mapping[Any, Any]", value).items()
        )
    if inner and isinstance(origin, type) and issubclass(origin, Iterable) and origin is not np.ndarray:
        return _iterates(value) and (not hasattr(value, "__len__") or all(_fits(each, inner[0]) for each in value))
    try:
        return isinstance(value, origin or hint)
    except TypeError:  # a protocol that is none at run time
        public = [name for name in dir(hint) if not name.startswith("_")]
        return all(hasattr(value, name) for name in public or ["__call__"])


def _converts(value: Any, convert: Callable[[Any], Any]) -> bool:
    try:
        convert(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(value, str | bytes)


def _iterates(value: Any) -> bool:
    """Whether a value holds several: an array without dimensions does not, although it says so; nor does a text."""
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    return several and getattr(cast("Any", value), "ndim", 1) != 0


_SAID: dict[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    None: "None",
    NoneType: "None",
    os.PathLike: "the name of a file or folder",
    np.ndarray: "an array",
}


def _describe_type(hint: Any) -> str:
    """What an annotation asks for, in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _describe_type(inner[0])
    if origin in (Union, UnionType):
        said = [_describe_type(each) for each in inner]
        if _SAID[os.PathLike] in said:
            said = [each for each in said if each != _SAID[str]]
        return " or ".join(dict.fromkeys(said))
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if hint in _SAID or origin in _SAID:
        return _SAID.get(hint) or _SAID[origin]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a dictionary of {_describe_type(inner[1])} by name"
    if origin is Callable:
        return "a function"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return f"a list, each of which is {_describe_type(inner[0])}"
    name = str(getattr(hint, "__name__", hint))
    return f"a{'n' if name[0] in 'AEIOU' else ''} {name}"
