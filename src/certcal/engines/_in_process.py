"""The engine that is no engine: one piece after the other, here."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from certcal.engines._engine import Piece, Result, Task


class InProcess:
    """Work in this process, piece by piece.

    Examples
    --------
    >>> class Squares:
    ...     def prepare(self):
    ...         pass
    ...
    ...     def __call__(self, piece):
    ...         return piece**2
    >>> list(InProcess().run(Squares(), [2, 3]))
    [(2, 4), (3, 9)]
    """

    remote = False
    shares_files = True

    def run(self, task: Task[Piece, Result], pieces: Iterable[Piece]) -> Generator[tuple[Piece, Result], Any, None]:
        """Each piece with its result, in the order given."""
        task.prepare()
        for piece in pieces:
            yield piece, task(piece)
