"""What the file of a study's table says about itself. Loaded when one is written or read: so is msgspec.

The promise: every later certcal reads the tables of every earlier one, with the same numbers. The version goes up when
an older certcal would misread a table; one with a version above its own is refused with the advice to upgrade, and is
never read in part. Version 1 is the only one so far.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from certcal._checks import InputError

KEY = "certcal.study"
VERSION = 1


class TableNotes(Struct):
    """The note in a file. Beside the version stand the settings of the study, by their names."""

    version: Annotated[int, Meta(ge=1)] = VERSION


def written(settings: Mapping[str, Any]) -> dict[str, str]:
    """The note about a table with these settings; the same text for the same settings."""
    return {KEY: json.dumps({"version": VERSION, **settings}, sort_keys=True)}


def settings_of(notes: Mapping[str, str]) -> dict[str, Any]:
    """What a file says about how it was measured; nothing when it does not, or not in our form."""
    text = notes.get(KEY, "{}")
    try:
        version = msgspec.json.decode(text, type=TableNotes).version
        settings = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return {}
    if version > VERSION:
        raise InputError(
            f"a newer certcal wrote this table (version {version}, and this one reads up to {VERSION}); upgrade certcal"
        )
    settings.pop("version", None)
    return settings
