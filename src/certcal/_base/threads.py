"""Blocks of an array on as many threads as there are cores.

Kernels release the interpreter lock, so plain threads are enough. Callers combine block results in
block order, so a result never depends on how the threads were scheduled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, TypeVar

Result = TypeVar("Result")

# Below this many elements starting a thread costs more than it saves.
SMALL = 200_000

_ALONE: ContextVar[bool] = ContextVar("certcal.one_thread", default=False)


def thread_count() -> int:
    """Cores this process may use, or fewer when ``OMP_NUM_THREADS`` says so."""
    if _ALONE.get():
        return 1
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(available, int(asked))) if asked.isdigit() else available


def map_blocks(function: Callable[[int, int], Result], n: int, small: int = SMALL) -> list[Result]:
    """Call ``function(start, stop)`` on consecutive blocks of ``range(n)``, one per thread."""
    workers = 1 if n <= small else min(thread_count(), -(-n // small))
    if workers == 1:
        return [function(0, n)]
    from concurrent.futures import ThreadPoolExecutor

    bounds = [n * k // workers for k in range(workers + 1)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, bounds[:-1], bounds[1:]))


@contextmanager
def one_thread() -> Generator[None, None, None]:
    """Let what is called inside stay on this thread: sums over blocks then have the same bits on every machine."""
    before = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(before)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let matrix products inside use one thread each: small ones are faster so, and their bits are always the same."""
    threads: Any = import_module("threadpoolctl")  # of the extra sklearn
    return threads.threadpool_limits(limits=1, user_api="blas")
