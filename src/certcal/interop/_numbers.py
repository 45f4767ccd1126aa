"""The numbers in what certcal has found, each under a name that says what kind of claim it is.

Works on the form for JSON, which every claim and every result has: a claim is recognised by its ``type`` there.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from certcal._base.checks import InputError
from certcal.claims import full_statement

KINDS = {
    "estimate": "estimate",
    "bound": "bound",
    "certificate": "certificate",
    "worst case": "worst_case",
    "certified value": "certified_value",
}
# Facts that tell apart what is otherwise named alike, in the order in which they stand in a name.
_PLACES = ("attack", "epsilon", "radius", "group")
_SIDES = {"upper": "_at_most", "lower": "_at_least", "highest": "_at_most", "lowest": "_at_least"}
# Keys that say less than the claim's own name.
_GENERIC = {"claim", "estimate", "bound", "certificate"}
_LONGEST = 240
_FOREIGN = re.compile(r"[^\w.\-]+")
_WORDS = {"Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True)
class Number:
    """One number of a claim."""

    name: str  # kind, place and name, such as ``bound/bounded_variation_at_most``
    value: float  # with all digits: what is claimed was moved outward when it was computed
    sentence: str = ""  # what is claimed; empty for the ends of an interval, which the sentence before tells


@dataclass(frozen=True)
class ClaimedNumbers:
    """What a document holds."""

    numbers: tuple[Number, ...]  # finite ones, in the order of the document, each name once
    # Those that are undefined or infinite: a tracking server would store them as other numbers.
    left_out: tuple[Number, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict[str, str])  # how the numbers were computed, as texts


def found_in(document: Any) -> ClaimedNumbers:
    """Every number that a document claims, under a name of its own."""
    by = cast("Mapping[str, Any]", document).get("by") if isinstance(document, Mapping) else None
    claims = list(_find_claims(document, (), (), str(by or "group")))
    every = list(_make_names_distinct(number for claim in claims for number in claim.numbers))
    finite = tuple(number for number in every if math.isfinite(number.value))
    rest = tuple(number for number in every if not math.isfinite(number.value))
    told = _conventions(document)
    of_claims = {} if "conventions" in told else _settings_texts(_claim_settings(claim.entry) for claim in claims)
    return ClaimedNumbers(finite, rest, of_claims | _settings_texts(told.values()))


def legal(text: str) -> str:
    """A piece of a name, with what tracking servers refuse replaced."""
    return _FOREIGN.sub("_", text)


def check_prefix(prefix: str) -> str:
    """A prefix that is refused here, and not by a server after half of the numbers."""
    pieces = prefix.removesuffix("/").split("/") if prefix else []
    if any(piece != legal(piece) or piece.strip(".") == "" for piece in pieces):
        raise InputError(f"prefix is {prefix!r}; use letters, digits, '_', '-', '.' and single '/' between them")
    return prefix


@dataclass(frozen=True)
class _ClaimEntry:
    """A claim in a document: where it is, and by which keys it goes there."""

    entry: Mapping[str, Any]
    places: tuple[str, ...]
    keys: tuple[str, ...]

    @property
    def numbers(self) -> Iterator[Number]:
        """The value, and the ends of its interval."""
        entry = self.entry
        if "type" not in entry:
            yield from self._numbers_under("estimate", str(entry["name"]), entry["low"], entry["high"])
            return
        told = [key for key in self.keys if key not in _GENERIC]
        own = str(entry.get("method") or entry.get("name") or "value")
        bins = entry.get("settings", {}).get("bins")
        name = "_".join(told or [own]) + ("" if bins is None else f"_bins_{bins}")
        spread = cast("Mapping[str, Any]", entry.get("interval") or {})
        yield from self._numbers_under(KINDS[entry["type"]], name, spread.get("lower"), spread.get("upper"))

    @property
    def _sentence(self) -> str:
        entry = self.entry
        if "sentence" in entry:
            settings: Mapping[str, Any] = entry.get("settings", {}) if "side" in entry else {}
            return full_statement(entry["sentence"], entry.get("assumptions", ()), settings)
        note = f" {entry['note']}" if entry.get("note") else ""
        return f"{entry['name']}, over {entry['n']} models; an estimate, not a guarantee.{note}"

    def _numbers_under(self, kind: str, name: str, lower: Any, upper: Any) -> Iterator[Number]:
        radius = self.entry.get("radius")
        at = () if radius is None or any(each.startswith("radius_") for each in self.places) else (f"radius_{radius}",)
        path = "/".join(map(legal, (kind, *self.places, *at, name)))
        side = _SIDES.get(str(self.entry.get("side") or self.entry.get("extreme")), "")
        yield Number(path + side, _as_float(self.entry["value"]), self._sentence)
        if lower is not None and upper is not None:
            yield Number(f"{path}_interval_lower", _as_float(lower))
            yield Number(f"{path}_interval_upper", _as_float(upper))


def _find_claims(node: Any, places: tuple[str, ...], keys: tuple[str, ...], by: str) -> Iterator[_ClaimEntry]:
    """Claims below a node; a list starts a new place, and what is in it goes by its own name."""
    if isinstance(node, list | tuple):
        for each in cast("Iterable[Any]", node):
            yield from _find_claims(each, (*places, *keys), (), by)
    if not isinstance(node, Mapping):
        return
    entry = cast("Mapping[str, Any]", node)
    # The second is a finding of a study: an estimate over models.
    if (entry.get("type") in KINDS and "value" in entry) or {"name", "value", "low", "high", "note"} <= entry.keys():
        yield _ClaimEntry(entry, places, keys)
        return
    for place in _PLACES:
        if isinstance(entry.get(place), str | int | float):
            places = (*places, f"{by if place == 'group' else place}_{entry[place]}")
    if "question" in entry and "number" in entry:
        places = (*places, f"question_{entry['number']}")
    for key, value in entry.items():
        named = isinstance(value, Mapping)  # what a list is called says nothing about what is in it
        yield from _find_claims(value, places, (*keys, str(key)) if named else keys, by)


def _as_float(value: Any) -> float:
    return math.nan if value is None else _WORDS.get(value, math.nan) if isinstance(value, str) else float(value)


def _make_names_distinct(numbers: Iterable[Number]) -> Iterator[Number]:
    """Change names that are too long or taken, so that no number hides another."""
    seen: set[str] = set()
    for number in numbers:
        name = number.name
        if len(name) > _LONGEST:
            name = f"{name[: _LONGEST - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        unique, count = name, 1
        while unique in seen:
            count += 1
            unique = f"{name}_{count}"
        seen.add(unique)
        yield replace(number, name=unique)


def _conventions(document: Any) -> dict[str, Mapping[str, Any]]:
    """What results say about all of their numbers."""
    if not isinstance(document, Mapping):
        return {}
    entry = cast("Mapping[str, Any]", document)
    if entry.get("type") in KINDS:
        return {}
    names = ("source", "table", "kind", "classes", "n", "by", "models", "failed")
    facts = {key: entry[key] for key in names if key in entry}
    facts |= {"rows": entry["rows"]} if isinstance(entry.get("rows"), int) else {}
    blocks = {key: entry[key] for key in ("conventions", "settings") if isinstance(entry.get(key), Mapping)}
    return {"facts": facts, **blocks}


def _claim_settings(claim: Mapping[str, Any]) -> dict[str, Any]:
    if "type" not in claim:
        return {}
    told = {key: claim[key] for key in ("n", "radius", "delta") if key in claim}
    ledger = claim.get("ledger")
    return {**claim.get("settings", {}), **told, **({"alpha": ledger["spent"]} if ledger else {})}


def _settings_texts(told: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Settings as texts, different values of one after the other."""
    settings: dict[str, list[str]] = {}
    for name, value in (pair for each in told for pair in each.items()):
        for each in cast("list[Any]", value if isinstance(value, list) else [value]):
            texts = settings.setdefault(legal(str(name)), [])
            if isinstance(each, str | int | float) and str(each) not in texts:
                texts.append(str(each))
    return {name: ", ".join(texts) for name, texts in settings.items() if texts}
