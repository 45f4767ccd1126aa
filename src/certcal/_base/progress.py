"""How work tells whoever waits for it how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Where long work reports: a part of it begins, or so many steps of the part are done."""

    def stage(self, text: str, total: int | None = None, done: int = 0) -> None:
        """Begin a part of ``total`` steps, some of which are done."""
        ...

    def say(self, text: str) -> None:
        """Say of the current part what it is doing now."""
        ...

    def advance(self, steps: int) -> None:
        """Count steps of the current part."""
        ...


class Silent:
    """Progress that nobody watches."""

    def stage(self, text: str, total: int | None = None, done: int = 0) -> None:
        """Begin a part."""

    def say(self, text: str) -> None:
        """Say nothing."""

    def advance(self, steps: int) -> None:
        """Count nothing."""


SILENT = Silent()
