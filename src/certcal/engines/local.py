"""Worker processes on this machine: who starts and asks them, and what runs in them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Generator, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from certcal._base.checks import InputError, whole_number
from certcal.engines._engine import EngineError, Piece, Result, Task, task_of_worker

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

MOST_WORKERS = 1024
READY, RESULT, FAILED = "ready", "result", "failed"  # what a worker answers
_ATTEMPTS = 2  # of a piece whose worker dies

# Several processes share the cores: each of them computes on one thread.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class LocalProcesses:
    """Work in several processes on this machine, each with one thread.

    Results come back as they are finished. A piece whose worker dies (out of memory, a crash in native code) is
    tried once more in a new worker. When the driver ends for whatever reason, so do the workers.

    Parameters
    ----------
    workers
        How many processes.

    Examples
    --------
    >>> LocalProcesses(0)
    Traceback (most recent call last):
        ...
    certcal.InputError: workers is 0; pass a whole number from 1 to 1024
    """

    remote = True
    shares_files = True

    def __init__(self, workers: int) -> None:
        self.workers = whole_number(
            workers, 1, MOST_WORKERS, "workers", f"pass a whole number from 1 to {MOST_WORKERS}"
        )

    def run(self, task: Task[Piece, Result], pieces: Iterable[Piece]) -> Generator[tuple[Piece, Result], Any, None]:
        """Each piece with its result, in the order in which they are finished."""
        from multiprocessing.connection import wait

        coming = enumerate(pieces)
        lost: Counter[int] = Counter()
        told: set[str] = set()
        crew: list[Worker] = []
        leaving: list[Worker] = []
        try:
            for number, piece in islice(coming, self.workers):
                crew.append(Worker(task, number, piece, len(crew)))
            while crew:
                for connection in wait([worker.connection for worker in crew]):
                    worker = next(each for each in crew if each.connection is connection)
                    number, piece = worker.number, worker.piece
                    answer = worker.answer()
                    if answer is None:
                        crew.remove(worker)
                        code = worker.stop(patience=5)
                        lost[number] += 1
                        if not worker.ready or lost[number] == _ATTEMPTS:
                            raise EngineError(_death(worker, code))
                        crew.append(Worker(task, number, piece, worker.place))
                        continue
                    kind, value = answer
                    if kind == READY:
                        worker.ready = True
                        worker.send(piece)
                    elif kind == RESULT:
                        following = next(coming, None)
                        if following is None:
                            crew.remove(worker)
                            leaving.append(worker)
                            worker.connection.close()  # it ends by itself while the others go on
                        else:
                            worker.number, worker.piece = following
                            worker.send(worker.piece)
                        yield piece, said_here(value, told)
                    else:
                        raise with_origin(*value)
        finally:
            for worker in crew:
                worker.stop()
            for worker in leaving:
                worker.stop(patience=5)


class Worker:
    """A process, its place among the workers, the connection to it, and the piece it has."""

    def __init__(self, task: Any, number: int, piece: Any, place: int) -> None:
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=work, args=(theirs,), daemon=True)
        self.place, self.number, self.piece, self.ready = place, number, piece, False
        with _one_thread():
            self.process.start()
        theirs.close()
        self.send(task_of_worker(task, place))

    def send(self, message: Any) -> None:
        """Hand something over. If the worker is dead, its next answer says so."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(message)

    def answer(self) -> tuple[str, Any] | None:
        """What the worker says, or None if it is dead."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def stop(self, patience: float = 0) -> int | None:
        """Give the process some seconds to end by itself, then end it; return its exit code."""
        self.connection.close()
        self.process.join(patience)
        if self.process.exitcode is None:
            self.process.terminate()
            self.process.join(5)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        return self.process.exitcode


@contextlib.contextmanager
def _one_thread() -> Generator[None, None, None]:
    """What a child started meanwhile inherits; libraries read these variables when they are loaded."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _death(worker: Worker, code: int | None) -> str:
    ending = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
    if not worker.ready:
        return (
            f"a worker process {ending} before it could begin; in a script, put the call under "
            "if __name__ == '__main__':, and see above for what the worker printed"
        )
    return (
        f"a worker process {ending} at {worker.piece}, and so did a second one; "
        "use fewer workers if memory is short, or workers=1 to see the failure itself"
    )


def with_origin(error: BaseException, text: str) -> BaseException:
    """An exception of a worker, with the worker's own traceback unless it is one sentence for the user."""
    if not isinstance(error, InputError):
        error.add_note(f"in a worker process:\n{text}")
    return error


def work(connection: Connection) -> None:
    """Serve one driver over a connection: first the task arrives, then pieces."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the driver decides what it means
    threading.Thread(target=_leave_with_the_driver, daemon=True).start()
    try:
        task: Any = connection.recv()
        task.prepare()
        connection.send((READY, None))
        while True:
            piece = connection.recv()
            connection.send((RESULT, run_piece(task, piece)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the driver has nothing more to ask
    except BaseException as error:
        _send_exception(connection, error)


def run_piece(task: Any, piece: Any) -> tuple[Any, list[Warning]]:
    """The result of a piece, and what certcal warned of meanwhile, which is for the driver to say."""
    with warnings.catch_warnings(record=True) as caught:
        result = task(piece)
    own = [each for each in caught if each.category.__module__.startswith("certcal.")]
    for each in caught:
        if each not in own:
            warnings.showwarning(each.message, each.category, each.filename, each.lineno)
    return result, [each.message for each in own if isinstance(each.message, Warning)]


def said_here(found: tuple[Any, list[Warning]], told: set[str]) -> Any:
    """A result, after its worker's warnings were said, each once for all workers."""
    result, said = found
    for each in said:
        if str(each) not in told:
            told.add(str(each))
            warnings.warn(each, stacklevel=2)
    return result


def _leave_with_the_driver() -> None:
    """End this process when its parent has ended, also in the middle of a piece."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _send_exception(connection: Connection, error: BaseException) -> None:
    """Send an exception home, with where it came from; one that cannot travel goes as its text."""
    text = "".join(traceback.format_exception(error))
    try:
        connection.send((FAILED, (error, text)))
    except (OSError, ValueError):
        return
    except Exception:
        connection.send((FAILED, (RuntimeError(f"{type(error).__name__}: {error}"), text)))
