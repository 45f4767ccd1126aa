"""Settings of a verb: a frozen dataclass that the library checks and that the command line turns into options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from certcal._base.arguments import names_wrong_types
from certcal._base.checks import InputError, shortened
from certcal._base.signature import Spec as Spec
from certcal._base.signature import check_arguments as check_arguments
from certcal._base.signature import check_progress as check_progress
from certcal._base.signature import check_setting as check_setting
from certcal._base.signature import counted_from_one as counted_from_one
from certcal._base.signature import several

Made = TypeVar("Made", bound="Settings")
Returned = TypeVar("Returned")


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
                values = several(value)
                value = tuple(check_setting(each.name, one, spec) for one in values)
            else:
                value = check_setting(each.name, value, spec)
            object.__setattr__(self, each.name, value)


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
