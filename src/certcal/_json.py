"""Plain values for JSON."""

from __future__ import annotations

import json
import math
from typing import Any


def for_json(value: Any) -> Any:
    """Plain values that every JSON parser takes: null for what is undefined, the word for what is infinite."""
    if isinstance(value, dict):
        return {str(key): for_json(entry) for key, entry in value.items()}  # pyright: ignore
    if isinstance(value, list | tuple):
        return [for_json(entry) for entry in value]  # pyright: ignore
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def as_text(document: Any) -> str:
    r"""Indented JSON with a newline at its end."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
