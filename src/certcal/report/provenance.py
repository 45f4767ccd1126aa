"""Where a page comes from: what was run, on what, with which versions and seeds."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import certcal
from certcal._base.json import plain

_RELEVANT = ("numpy", "scipy", "numba", "pyarrow")
# Modules that stand behind some numbers, where they are loaded; their packages may have other names (xgboost-cpu).
_WHERE_USED = ("torch", "onnxruntime", "xgboost", "lightgbm", "sklearn", "ray", "safetensors")


@dataclass(frozen=True)
class Provenance:
    """Everything that somebody needs to make the same page again."""

    command: tuple[str, ...] | None = None  # the command as it was given, word by word; None when there was none
    created: str = ""  # when, as a text in ISO 8601
    # Of Python and of the packages behind the numbers.
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    seeds: Mapping[str, int] = field(default_factory=dict[str, int])  # seeds by what they were for
    inputs: tuple[tuple[str, int, str], ...] = ()  # name, size in bytes and SHA-256 of each file that was read
    notes: tuple[str, ...] = ()  # anything else, in sentences
    # SHA-256 of what the model and the data are in memory, wherever they came from.
    fingerprints: Mapping[str, str] = field(default_factory=dict[str, str])
    asked: Mapping[str, Any] = field(
        default_factory=dict[str, Any]
    )  # the verb, and its arguments that are plain values

    @classmethod
    def here(
        cls,
        command: Iterable[str] | None = None,
        *,
        seeds: Mapping[str, int] | None = None,
        inputs: Iterable[tuple[str, int, str]] = (),
        fingerprints: Mapping[str, str] | None = None,
        asked: Mapping[str, Any] | None = None,
        notes: Iterable[str] = (),
    ) -> Provenance:
        """Provenance of what this process computes now: date and versions are filled in."""
        found = {"certcal": certcal.__version__, "python": platform.python_version()}
        for name in _RELEVANT:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in _WHERE_USED}
        found |= {name: str(told) for name, told in loaded.items() if told is not None}
        now = datetime.now(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")
        return cls(
            command=None if command is None else tuple(command),
            created=now,
            versions=found,
            seeds=dict(seeds or {}),
            inputs=tuple(inputs),
            fingerprints=dict(fingerprints or {}),
            asked=dict(asked or {}),
            notes=tuple(notes),
        )

    @property
    def command_line(self) -> str | None:
        """The command as it can be pasted into a shell."""
        return None if self.command is None else shlex.join(self.command)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        inputs = [{"name": name, "bytes": size, "sha256": digest} for name, size, digest in self.inputs]
        return {**plain(vars(self)), "inputs": inputs}
