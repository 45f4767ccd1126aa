"""Plain values for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast


def for_json(value: Any) -> Any:
    """Plain values that every JSON parser takes: null for what is undefined, the word for what is infinite."""
    if isinstance(value, dict):
        return {str(key): for_json(entry) for key, entry in value.items()}  # pyright: ignore
    if isinstance(value, list | tuple):
        return [for_json(entry) for entry in value]  # pyright: ignore
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def plain(value: Any) -> Any:
    """A value, with all that is inside it, as what JSON knows."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, tuple | list):
        return [plain(entry) for entry in cast("tuple[Any, ...]", value)]
    return value.tolist() if hasattr(value, "tolist") else value


def document_of(record: Any, kind: str, *more: str, without: str = "") -> dict[str, Any]:
    """What a record is called and its fields, then more of its properties, as plain values."""
    names = [each.name for each in fields(record) if each.name != without]
    return {"type": kind, **{name: plain(getattr(record, name)) for name in (*names, *more)}}


def as_text(document: Any) -> str:
    r"""Indented JSON with a newline at its end."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
