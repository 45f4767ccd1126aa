"""Tasks that worker processes can import: they must live in a module, not in a test function."""

from __future__ import annotations

import os
import signal
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certcal import InputError
from certcal.models.devices import DeviceMemoryWarning

BATCH = 50


@dataclass
class Squares:
    """The square of a piece, and which process computed it."""

    prepared: int = 0

    def prepare(self) -> None:
        self.prepared += 1

    def __call__(self, piece: int) -> tuple[int, int, int]:
        return piece**2, self.prepared, os.getpid()


@dataclass
class Shared:
    """Says which of several things the worker took."""

    number: int | None = None

    def on_next_device(self, number: int) -> Shared:
        return Shared(number)

    def prepare(self) -> None:
        pass

    def __call__(self, piece: int) -> int | None:
        return self.number


@dataclass
class Warns:
    """Warns of the same thing at every piece, in certcal's name."""

    def prepare(self) -> None:
        pass

    def __call__(self, piece: int) -> int:
        warnings.warn(f"batches of {BATCH}", DeviceMemoryWarning, stacklevel=2)
        return piece


@dataclass
class Environment:
    """What a worker sees of its surroundings."""

    def prepare(self) -> None:
        pass

    def __call__(self, piece: str) -> str | None:
        return os.environ.get(piece)


@dataclass
class Dies:
    """Kills its own process at one piece, the first ``times`` times (counted in a folder)."""

    at: int
    times: int
    folder: Path

    def prepare(self) -> None:
        pass

    def __call__(self, piece: int) -> int:
        if piece == self.at:
            deaths = len(list(self.folder.iterdir()))
            if deaths < self.times:
                (self.folder / str(deaths)).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return piece + 1


@dataclass
class Refuses:
    """Raises at one piece, or already when it is prepared."""

    error: Exception
    at: int = -1

    def prepare(self) -> None:
        if self.at < 0:
            raise self.error

    def __call__(self, piece: int) -> int:
        if piece == self.at:
            raise self.error
        return piece


class Stubborn(Exception):
    """An exception that cannot travel between processes."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)
        self.lock: Any = lambda: two


@dataclass
class Announces:
    """Writes its process id to a file, then works until it is ended."""

    folder: Path

    def prepare(self) -> None:
        (self.folder / str(os.getpid())).touch()

    def __call__(self, piece: int) -> int:
        while True:
            signal.pause()


SENTENCE = InputError("this piece cannot be done; leave it out")
