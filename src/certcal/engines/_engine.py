"""What an engine is, what it asks of a task, and the one that is none: one piece after the other, here."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from certcal._base.checks import InputError

Piece = TypeVar("Piece")
Result = TypeVar("Result")
PieceIn = TypeVar("PieceIn", contravariant=True)
ResultOut = TypeVar("ResultOut", covariant=True)


class EngineError(InputError):
    """Work that an engine could not get done. The text says which piece, why, and what to do."""


class Task(Protocol[PieceIn, ResultOut]):
    """Work that can be done anywhere: a pure function of the piece, after one preparation per worker.

    For an engine whose ``remote`` is true, the task, its pieces and its results are sent between processes; arrays in
    them may arrive read-only.

    A task may have a method ``on_next_device(number)``: the task for the worker of that number, 0, 1, …, on this
    machine, so that workers share what there are several of.
    """

    def prepare(self) -> None:
        """Load what every piece needs. Called once in each worker, before its first piece."""
        ...

    def __call__(self, piece: PieceIn, /) -> ResultOut:
        """The result of a piece; the same wherever and whenever it is computed."""
        ...


def task_of_worker(task: Any, number: int) -> Any:
    """The task for one of several workers on this machine."""
    return task.on_next_device(number) if hasattr(task, "on_next_device") else task


class Engine(Protocol):
    """Something that runs tasks.

    Attributes
    ----------
    remote
        Whether pieces are worked on in other processes, so that the task must be able to travel.
    shares_files
        Whether workers see the files of this machine under the same paths. If not, a task brings what it reads.
    """

    @property
    def remote(self) -> bool:
        """Whether pieces are worked on in other processes."""
        ...

    @property
    def shares_files(self) -> bool:
        """Whether workers see the files of this machine."""
        ...

    def run(self, task: Task[Piece, Result], pieces: Iterable[Piece]) -> Generator[tuple[Piece, Result], Any, None]:
        """Each piece with its result, once, in any order.

        Pieces are taken from the iterable as workers become free. Closing the generator stops all work and leaves
        no process behind. An exception of the task is raised here.
        """
        ...


def hold(engine: Engine) -> AbstractContextManager[Any]:
    """Keep what an engine needs for the length of a block, if it can be kept: one cluster for several runs."""
    return engine if isinstance(engine, AbstractContextManager) else nullcontext()


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
