"""What runs in a worker process: prepare once, then a result for every piece, until the driver is gone."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

READY, RESULT, FAILED = "ready", "result", "failed"


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
            connection.send((RESULT, task(piece)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the driver has nothing more to ask
    except BaseException as error:
        _report(connection, error)


def _leave_with_the_driver() -> None:
    """End this process when its parent has ended, also in the middle of a piece."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _report(connection: Connection, error: BaseException) -> None:
    """Send an exception home, with where it came from; one that cannot travel goes as its text."""
    text = "".join(traceback.format_exception(error))
    try:
        connection.send((FAILED, (error, text)))
    except (OSError, ValueError):
        return
    except Exception:
        connection.send((FAILED, (RuntimeError(f"{type(error).__name__}: {error}"), text)))
