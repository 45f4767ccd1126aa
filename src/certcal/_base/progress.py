"""How work tells whoever waits for it how far it is."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, runtime_checkable

from certcal._base.checks import InputError, shortened


@runtime_checkable
class Progress(Protocol):
    """Where long work reports: a part of it begins, or so many steps of the part are done."""

    def stage(self, text: str, total: int | None = None, done: int = 0, unit: str = "") -> None:
        """Begin a part of ``total`` steps, some of which are done; ``unit`` is what the steps are, such as images."""
        ...

    def say(self, text: str) -> None:
        """Say of the current part what it is doing now."""
        ...

    def advance(self, steps: int) -> None:
        """Count steps of the current part."""
        ...


ProgressLike = Progress | bool | Callable[[str, int, int | None], object]
"""What ``progress=`` takes: True shows it where somebody waits, False does not; a function is called with the name of
the part, the steps that are done, and how many there are (or None)."""


class Silent:
    """Progress that nobody watches."""

    def stage(self, text: str, total: int | None = None, done: int = 0, unit: str = "") -> None:
        """Begin a part."""

    def say(self, text: str) -> None:
        """Say nothing."""

    def advance(self, steps: int) -> None:
        """Count nothing."""


SILENT = Silent()
# Somebody is shown progress already, or asked not to be.
IS_TAKEN = ContextVar("progress is taken", default=False)


class _Called:
    """Progress that a function is told of."""

    def __init__(self, tell: Callable[[str, int, int | None], object]) -> None:
        self._tell, self._text, self._done = tell, "working", 0
        self._total: int | None = None

    def stage(self, text: str, total: int | None = None, done: int = 0, unit: str = "") -> None:
        self._text, self._total, self._done = text, total, done
        self._tell(text, done, total)

    def say(self, text: str) -> None:
        self._tell(text, self._done, self._total)

    def advance(self, steps: int) -> None:
        self._done += steps
        self._tell(self._text, self._done, self._total)


@contextmanager
def watching(progress: ProgressLike) -> Generator[Progress]:
    """What a verb reports to, for as long as it works.

    Examples
    --------
    >>> with watching(lambda part, done, total: print(part, done, total)) as progress:
    ...     progress.stage("reading", 3)
    ...     progress.advance(2)
    reading 0 3
    reading 2 3
    """
    is_taken = IS_TAKEN.set(True)  # what a verb calls without saying where it reports stays silent
    try:
        if progress is True and is_taken.old_value is not True:
            from certcal._base.waiting import Waiting

            with Waiting() as waiting:
                yield waiting
        else:
            yield _reporter(progress)
    finally:
        IS_TAKEN.reset(is_taken)


def _reporter(progress: Any) -> Progress:
    if isinstance(progress, bool):
        return SILENT
    if isinstance(progress, Progress):
        return progress
    if callable(progress) and not isinstance(progress, type):
        return _Called(progress)
    raise InputError(
        f"{shortened(progress)} cannot be told how far the work is",
        argument="progress",
        remedy="pass True, False, a function of the part, the steps done and all steps, or an object with stage, say "
        "and advance",
    )


def as_reporter(progress: Any) -> Progress:
    """What :func:`watching` made of it, inside of a verb."""
    return progress
