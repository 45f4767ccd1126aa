"""How results and their parts print, and how their numbers are asked for by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import ItemsView, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, cast

from certcal._base.checks import InputError
from certcal._base.rounding import decimals, minus, round_outward
from certcal._base.text import did_you_mean, plain_name

_SHORT, _FEW = 60, 8


class UnknownNameError(InputError, KeyError):
    """A name under which there is no number."""

    __str__ = Exception.__str__


class Named:
    """Numbers by name, the same way everywhere: ``found["ece"]``, ``"ece" in found``, ``dict(found)``."""

    @abstractmethod
    def named(self) -> Mapping[str, Any]:
        """The numbers by name."""

    def keys(self) -> Sequence[str]:
        """Names of the numbers."""
        return tuple(self.named())

    def items(self) -> ItemsView[str, Any]:
        """Names and numbers."""
        return self.named().items()

    def get(self, name: str, default: Any = None) -> Any:
        """The number of a name, or the default."""
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        return self.get(cast("str", name)) is not None

    def meanings(self, text: str) -> Sequence[str]:
        """Plain names that a text may mean besides its own."""
        return ()

    def further_names(self) -> Iterable[tuple[Sequence[str], Any]]:
        """More numbers that names may mean, each with what it is called."""
        return ()

    def __getitem__(self, name: Any) -> Any:
        asked, *setting = cast("tuple[Any, ...]", name) if isinstance(name, tuple) else (name,)
        known = [_Number.of(key, each) for key, each in self.named().items()]
        known += [_Number(tuple(names), each, None) for names, each in self.further_names()]
        for meant in (plain_name(str(asked)), *self.meanings(str(asked))):
            found = [each for each in known if meant in map(plain_name, each.names)]
            found = [each for each in found if not setting or each.setting == setting[0]]
            several = [each.setting for each in found if each.one_of_several]
            if len(several) > 1:
                there = " or ".join(f"[{asked!r}, {each!r}]" for each in several)
                raise UnknownNameError(f"there are {len(several)} of {asked!r}", remedy=f"ask for one, as in {there}")
            if found:
                return found[0].value
        names = list(dict.fromkeys(each.names[0] for each in known))
        raise UnknownNameError(
            f"there is no {name!r}", remedy=did_you_mean(asked, names, f"there are {', '.join(names) or 'none'}")
        )


class _Number(NamedTuple):
    names: tuple[str, ...]
    value: Any
    setting: Any
    one_of_several: bool = False

    @classmethod
    def of(cls, key: Any, value: Any) -> _Number:
        """By its key: a name, or a name and a setting where there are several."""
        name, *rest = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
        own = getattr(value, "name", None)
        names = (str(name), *([own] if isinstance(own, str) else []))
        return cls(names, value, rest[0] if rest else getattr(value, "settings", {}).get("bins"), bool(rest))


def first_by_name(rows: Iterable[Any]) -> dict[str, Any]:
    """Rows by their names; of several of one name the first."""
    found: dict[str, Any] = {}
    for row in rows:
        found.setdefault(row.name, row)
    return found


class Told:
    """Prints its sentences, or its fields in words, and never how it was made."""

    def __str__(self) -> str:
        return in_lines(self)


def in_lines(value: Any) -> str:
    """What a value claims, else a line per field and number."""
    if said := _sentences(value):
        return "\n".join(said)
    if hasattr(value, "card") and not isinstance(value, Named):
        rows = [row for table in value.card().tables for row in table.rows]
    else:
        rows = [*_facts(value, nested=not isinstance(value, Named)), *_numbers(value)]
    return _align_columns([(name.replace("_", " "), *texts) for name, *texts in rows]) or repr(value)


def table_of(values: Iterable[Any]) -> str:
    """A line per value: its own facts and numbers below those of the others."""
    lines = [dict((*_facts(each, nested=False), *_numbers(each, brief=True))) for each in values]
    heads = list(dict.fromkeys(name for line in lines for name in line))
    return _align_columns([heads, *([line.get(head, "") for head in heads] for line in lines)])


def _sentences(value: Any) -> list[str]:
    for name in ("statement", "sentences", "sentence"):
        said = getattr(value, name, "")
        if said and not callable(said):
            return [said] if isinstance(said, str) else list(map(str, said))
    return []


def _facts(value: Any, nested: bool = True) -> list[tuple[str, str]]:
    names: Iterable[str] = getattr(value, "_fields", getattr(value, "__struct_fields__", ()))
    names = [each.name for each in fields(value)] if is_dataclass(value) else names
    found = [(name, _brief(getattr(value, name), nested)) for name in names if not name.startswith("_")]
    return [(name, text) for name, text in found if text]


def _numbers(value: Any, brief: bool = False) -> list[tuple[str, str]]:
    named: Mapping[Any, Any] = value.named() if isinstance(value, Named) else {}
    texts = {name if isinstance(name, str) else " ".join(map(str, name)): each for name, each in named.items()}
    return [(name, _number(each, brief)) for name, each in texts.items() if hasattr(each, "value")]


def _number(claim: Any, brief: bool) -> str:
    side = getattr(claim, "side", "") or getattr(claim, "extreme", "")
    text = minus(getattr(claim, "text", "") or decimals(claim))
    ends = getattr(claim, "interval", None)
    if brief or ends is None or ends.says_nothing:
        return text if brief or not side else f"at {'most' if side in ('upper', 'highest') else 'least'} {text}"
    lower, upper = (minus(round_outward(end, side)) for end, side in ((ends.lower, "lower"), (ends.upper, "upper")))
    return f"{text} ({lower} to {upper})"


def _brief(value: Any, nested: bool = True) -> str:
    """A value in a few words; nothing for what is not there."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return minus(f"{value:,}")
        case float():
            return minus(f"{value:.6g}")
        case str():
            return value
        case _ if not nested:
            return ""
        case Mapping():
            named = cast("Mapping[str, Any]", value)
            parts = [f"{name} {text}" for name, each in named.items() if (text := _brief(each))]
            return _join_few(parts) or (f"{len(named):,} in all" if named else "")
        case tuple() | list() if not hasattr(cast("Any", value), "_fields"):
            several = cast("Sequence[Any]", value)
            return _join_few([_brief(each) for each in several]) or (f"{len(several):,} in all" if several else "")
        case _ if hasattr(value, "shape") and hasattr(value, "size"):
            size = "×".join(f"{each:,}" for each in value.shape)
            if not value.size or getattr(value.dtype, "kind", "f") not in "biuf":
                return f"{size} values" if value.size else ""
            known = value[value == value]
            return f"{size} values from {known.min():.6g} to {known.max():.6g}" if known.size else f"{size} values"
        case _:
            own = _join_few([f"{name} {text}" for name, text in _facts(value)])
            return next(iter(_sentences(value)), "") or own or str(type(value).__name__)


def _join_few(parts: Sequence[str]) -> str:
    text = ", ".join(filter(None, parts))
    return text if len(parts) <= _FEW and len(text) <= _SHORT else ""


def _align_columns(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
