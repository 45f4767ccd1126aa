"""Options of commands, made from the settings of the verbs: one name, one default and one phrase each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from certcal._base.checks import InputError
from certcal._base.signature import Spec, check_setting, defaults_of, specs_of
from certcal.cli.app import SectionedOption, nearest
from certcal.data.schema import OPTIONS, ROLES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_METAVARS = {
    "box": "LOW,HIGH",
    "distance": "E",
    "whole": "N",
    "number": "X",
    "positive": "X",
    "noise": "S",
    "share": "P",
    "failure": "P",
    "level": "P",
    "size": "SIZE",
}
_EXAMPLES = {"share": "0.95", "level": "0.95", "failure": "0.05", "positive": "0.5", "noise": "0.5", "number": "0.5"}
_DISTANCE = re.compile(r"([0-9.]{1,20})\s*/\s*([0-9.]{1,20})")


class NamedChoice(click.Choice[str]):
    """One of some words, or "module:name" where objects of one's own are taken; else the nearest word is named."""

    def __init__(self, choices: Iterable[str], spec: Spec | None = None, *, case_sensitive: bool = True) -> None:
        super().__init__(list(choices), case_sensitive)
        self.spec = spec

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The word, or the object."""
        if self.spec is None or not self.spec.own or value in self.choices:
            return super().convert(value, param, ctx)
        try:
            return _parse_value(value, self.spec) if OBJECT.fullmatch(value) else super().convert(value, param, ctx)
        except UnreadableError as error:
            self.fail(str(error), param, ctx)

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """What is wrong, and what was probably meant."""
        listed = ", ".join(map(repr, self.choices))
        return f"{value!r} is not one of {listed}{nearest(str(value).lower(), self.choices)}"


# What a shell would have to quote is not offered.
_PLAIN = re.compile(r"[\w.+-]+")


def complete_columns(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Columns of the table that the command line names, when it can be read."""
    # While an option still lacks its value, the arguments before it are not assigned to their names yet.
    named: Iterable[Any] = (ctx.params.get(name) for name in ("table", "source", "sources"))
    given = next((value for value in (*named, *ctx.args[:1]) if value), None)
    if given is None:
        return []
    from certcal._base.checks import InputError
    from certcal.data import open_table

    try:
        names = open_table(given if isinstance(given, str) else given[0]).names
    except (InputError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)]


def complete_metrics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of metrics.

    Examples
    --------
    >>> complete_metrics(click.Context(click.Command("measure")), click.Option(["--metric"]), "smooth")
    ['smooth_ece']
    """
    from certcal._base.text import plain_name
    from certcal.metrics.registry import ALL, row_names

    return [name for name in (*row_names(), ALL) if name.startswith(plain_name(incomplete))]


def option(section: str, *names: str, **settings: Any) -> Callable[[Decorated], Decorated]:
    """An option under a heading of the help."""
    return click.option(*names, cls=SectionedOption, section=section, show_default=False, **settings)


def options(*decorators: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Several options, in the order in which the help shows them."""

    def decorate(command: Decorated) -> Decorated:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def verb_options(
    verb: Callable[..., Any],
    section: str,
    *,
    only: Collection[str] | None = None,
    skip: Collection[str] = (),
    explained_by: Callable[..., Any] | None = None,
) -> Callable[[Decorated], Decorated]:
    """An option for each checked parameter of a verb, or for some of them, under a heading of the help."""
    specs = specs_of(verb, explained_by)
    columns = () if only is not None else OPTIONS  # which have options of their own
    chosen = [name for name in specs if name not in (*skip, *columns) and (only is None or name in only)]
    given = defaults_of(verb)
    return options(*(_option(section, name, specs[name], given.get(name), name not in given) for name in chosen))


def _option(section: str, name: str, spec: Spec, default: Any, required: bool = False) -> Callable[[Any], Any]:
    flag = spec.flag or f"--{name.replace('_', '-')}"
    if spec.kind == "flag":
        return option(section, flag, name, is_flag=True, default=default, help=spec.help)
    shown = ", ".join(map(str, default)) if isinstance(default, tuple) else default  # pyright: ignore
    said = f" Default: {shown:g}." if isinstance(shown, float) else f" Default: {shown}."
    text = spec.help if shown in (None, "", "auto") or "Default:" in spec.help else f"{spec.help}{said}"
    metavar = spec.metavar or _METAVARS.get(spec.kind)
    if spec.many and metavar and spec.kind != "text":
        metavar = f"{metavar}[,{metavar}...]"
    return option(
        section,
        flag,
        name,
        type=_type(spec),
        multiple=spec.many,
        callback=join_values(spec, default) if spec.many else None,
        **({"required": True} if required else {"default": default}),  # None would count as given
        metavar=metavar if spec.kind != "word" else spec.metavar,
        help=text,
        shell_complete=complete_metrics if name == "metrics" else complete_columns if spec.kind == "name" else None,
    )


def _type(spec: Spec) -> click.ParamType[Any]:
    if spec.kind == "file":
        return click.Path()
    return NamedChoice(spec.choices, spec) if spec.kind == "word" and not spec.many else Typed(spec)


def checked_option(section: str, flag: str, spec: Spec, **more: Any) -> Callable[[Any], Any]:
    """An option of one value that belongs to no settings, and is checked as a setting would be."""

    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        try:
            return None if value is None else check_setting(flag, value, spec)
        except InputError as error:
            raise click.BadParameter(error.reason, ctx, param) from None

    metavar = spec.metavar or _METAVARS.get(spec.kind)
    return option(section, flag, type=Typed(spec), callback=check, metavar=metavar, help=spec.help, **more)


def join_values(spec: Spec, default: Any = ()) -> Callable[..., tuple[Any, ...] | None]:
    """Values that were given with commas or one by one: each once, numbers smallest first, unless they are ordered."""

    def join(ctx: click.Context, param: click.Parameter, values: Iterable[Any]) -> tuple[Any, ...] | None:
        flat = [one for value in values for one in (value if isinstance(value, tuple) else (value,))]  # pyright: ignore
        if spec.ordered or not flat:
            return tuple(flat) or default  # pyright: ignore
        unique: list[Any] = list(dict.fromkeys(flat))  # pyright: ignore
        return tuple(sorted(unique) if spec.kind in ("whole", "number", "positive", "distance") else unique)

    return join


class Typed(click.ParamType[Any]):
    """Turns a text into the value that a setting takes; ranges are checked where the settings are made."""

    name = "value"

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A value, or several of them with commas where that is allowed."""
        if not isinstance(value, str):
            return value
        several = self.spec.many and self.spec.kind != "text"
        try:
            found = [_parse_value(part, self.spec) for part in (value.split(",") if several else [value])]
        except UnreadableError as error:
            self.fail(str(error), param, ctx)
        return tuple(found) if several else found[0]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Words for the tab key."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in self.spec.choices if word.startswith(incomplete)]


OBJECT = re.compile(r"[\w.]+:[\w.]+")


def own_object(name: str) -> Any:
    """The object of "module:name" in place of a built-in name; a class is made without arguments."""
    from certcal.models import find_named

    try:
        found: Any = find_named(name)
    except InputError as error:
        raise UnreadableError(str(error)) from None
    if not isinstance(found, type):
        if not (callable(found) or hasattr(found, "run") or hasattr(found, "fit")):
            raise UnreadableError(f"{name} can be neither called nor run; name a function, class or object")
        return found
    try:
        return found()
    except Exception as error:  # whatever somebody else's class raises
        said = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableError(f"{name}() failed: {said}; name an object that is made already") from None


class UnreadableError(Exception):
    """What is wrong with the text of an option."""


def _parse_value(value: str, spec: Spec) -> Any:
    text, word = value.strip(), value.strip().lower()
    match spec.kind:
        case "text" | "word" if spec.own and OBJECT.fullmatch(text):
            return own_object(text)
        case "text" | "file":
            return value
        case "name":
            if not text:
                raise UnreadableError("a name is empty; put commas between names")
            return text
        case "word":
            if word not in spec.choices:
                hint = nearest(word, spec.choices, f"there are {', '.join(spec.choices)}")
                raise UnreadableError(f"there is no {text!r}{hint}")
            return word
        case "whole":
            if not re.fullmatch(r"[-+]?[0-9]{1,30}", text):
                ends = math.isfinite(spec.least + spec.most)
                reach = f" from {spec.least:.0f} to {spec.most:.0f}" if ends else ""
                raise UnreadableError(f"{text!r} is not a whole number{reach}")
            return int(text)
        case "noise" if word.endswith("sd"):
            return text
        case "size":
            size = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([kmgt]?)(i?)b?", word)
            if size is None or (size[3] and not size[2]):
                raise UnreadableError(f"{value!r} is not a size such as 500MB or 2GB")
            return int(float(size[1]) * (1024 if size[3] else 1000) ** " kmgt".index(size[2] or " "))
        case "distance":
            parts = _DISTANCE.fullmatch(text)
            distance = _float(parts[1]) / (_float(parts[2]) or math.nan) if parts else _float(text)
            if not 0 < distance < math.inf:
                raise UnreadableError(f"{text!r} is not a distance above 0, such as 0.5 or 8/255")
            return distance
        case "box":
            if word in ("none", "auto"):
                return None if word == "none" else word
            low, high = map(_float, text.split(",")) if text.count(",") == 1 else (math.nan, math.nan)
            if not -math.inf < low < high < math.inf:
                raise UnreadableError(
                    f"{text!r} is no box; give the smallest and the largest value, such as 0,1, or none"
                )
            return low, high
        case "edges":
            if word in spec.choices:
                return word
            numbers = tuple(_float(part) for part in text.split(","))
            if not all(map(math.isfinite, numbers)):
                words = ", ".join(spec.choices)
                raise UnreadableError(f"{text!r} is none of {words}; give one, or numbers such as 0,0.5,0.9,1")
            return numbers
        case kind:
            share = kind in ("share", "failure", "level")
            number = _float(text[:-1]) / 100 if share and text.endswith("%") else _float(text)
            if not math.isfinite(number):
                what = "a number between 0 and 1" if share else "a number"
                raise UnreadableError(f"{text!r} is not {what}, such as {_EXAMPLES[kind]}")
            return number


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


OUTPUT = "Output"
COLUMNS = "Columns (by default found by their names)"
_PREDICTED = tuple(role for role in OPTIONS if role != "weight")


_ROLE_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "probabilities": {"metavar": "COLUMNS", "shell_complete": complete_columns},
    "logits": {"metavar": "COLUMNS", "shell_complete": complete_columns},
    "positive": {"metavar": "VALUE"},
    "negative": {"metavar": "VALUE[,VALUE...]"},
    "decimal": {"metavar": "MARK"},
    "percent": {"is_flag": True, "default": None},
    "encoding": {"metavar": "NAME"},
    "missing": {"type": NamedChoice(["drop"])},
    "skip": {"metavar": "N", "type": click.IntRange(0)},
    "sheet": {"metavar": "NAME"},
}


def column_options(
    *roles: str, by: str | None = None, texts: Mapping[str, str] | None = None, several: Collection[str] = ("by",)
) -> Callable[[Decorated], Decorated]:
    """Options that name columns of a table; of some roles several."""
    phrases = {role: (texts or {}).get(role, ROLES[role.removesuffix("_column")].help) for role in roles}
    if by is not None:
        phrases["by"] = f"Also {by.lower()} each group of this column, or of a crossing (product*channel); repeatable."
    return options(
        *(
            option(
                COLUMNS,
                f"--{role.replace('_', '-')}",
                help=text,
                **_ROLE_OPTIONS.get(role, {"metavar": "COLUMN", "shell_complete": complete_columns}),
                **({"multiple": True, "callback": _one_or_several} if role in several else {}),
            )
            for role, text in phrases.items()
        )
    )


def _one_or_several(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Any:
    return values if len(values) > 1 else next(iter(values), None)


_INPUTS = ("label", "split", "limit", "every", "resize", "crop")
MODEL_AND_DATA = ("weights", "outputs", *_INPUTS)


def model_options(verb: Callable[..., Any], section: str, *, required: bool = True) -> Callable[[Decorated], Decorated]:
    """A model, and the inputs that it is tried on; how these are chosen only where both are required."""
    return options(
        option(
            section,
            "--model",
            required=required,
            metavar="MODEL",
            type=click.Path(),
            help="File (.onnx .safetensors; trees: .json .ubj .txt), module:name, or with --weights a network such as "
            "resnet110-cifar.",
        ),
        verb_options(verb, section, only=("weights",)),
        verb_options(verb, section, only=("outputs",)),
        option(section, "--data", required=required, metavar="DATA", type=click.Path(), help=DATA),
        verb_options(verb, section, only=_INPUTS if required else ()),
    )


DATA = (
    "digits, fashion-mnist, a folder (idx, CIFAR, SVHN, inputs.npy, one folder of images per class), npz, a table with "
    "labels, or module:name of a data set."
)
prediction_column_options = column_options(*_PREDICTED, "weight", by="Measure")
compare_column_options = column_options(
    *_PREDICTED,
    "weight",
    by="Compare",
    several=("by", "score"),
    texts={"score": f"{ROLES['score'].help.rstrip('.')}; two, OLD,NEW or one each, compare two columns of one table."},
)
bound_column_options = column_options(*_PREDICTED, "weight", by="Bound")


def pop_columns(given: dict[str, Any], roles: Iterable[str]) -> dict[str, Any]:
    """Columns by role out of a command's values, from which they are taken away."""
    return {role: given.pop(role) for role in roles if role in given}
