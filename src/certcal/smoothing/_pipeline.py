"""Noise ahead of the model: threads fill a ring of buffers, and count the last answers, while the model computes.

Only the caller's thread asks the model. What a buffer is filled with depends on its place in the sequence alone, and
counts are sums, so the result has the same bits for any number of threads, buffers and rows in a block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.threads import thread_count

Rows = NDArray[np.float32]

# Bytes that a thread fills in one go: small batches are filled and counted several at a time, large ones in parts. So
# handing over costs little, and what was filled is still in the cache when the model reads it.
BLOCK = 1 << 20
# Bytes of all buffers, unless two batches take more: one for the model, and one that is filled meanwhile.
MEMORY = 1 << 28


def free_cores(device: str) -> int:
    """Threads that fill buffers while the model computes: all cores for a model elsewhere, else those it leaves free.

    None are left on a single core: noise, model and counting then take turns.
    """
    return thread_count() - (device == "cpu")


def draw(
    total: int,
    batch: int,
    shape: tuple[int, ...],
    *,
    fill: Callable[[int, Rows], None],
    ask: Callable[[Rows, int], NDArray[Any]],
    count: Callable[[NDArray[Any], int, int], None],
    threads: int,
    spare: list[Rows],
    host_buffer: Callable[[tuple[int, ...]], Rows] | None = None,
) -> None:
    """Pass ``total`` rows through fill, ask and count.

    Parameters
    ----------
    total, batch, shape
        Rows in all; rows per call of the model, always that many; shape of a row.
    fill
        Called by the threads with a position and a flat view of the rows to fill from there on.
    ask
        Called by this thread with a full batch and its position; returns a row of outputs for each of its rows.
    count
        Called with outputs, the position of the first, and how many count; never twice at a time, in order.
    threads
        Threads beside this one; with 0 everything takes turns here.
    spare
        Buffers of earlier calls, to be used again: memory that is new costs as much as the noise in it.
    host_buffer
        Memory of a shape from which the model's device copies fastest; plain memory unless given.
    """
    threads = threads if total > batch else 0
    size = 4 * batch * int(np.prod(shape))
    batches = max(1, min(BLOCK // size, total // batch // 4)) if threads else 1
    rows, block = batches * batch, batches * size
    parts = max(1, min(threads, block // BLOCK))
    buffers = max(2, min(threads + 2, MEMORY // block)) if threads else 1
    coming = iter(range(0, total, rows))
    own: list[Rows] = []
    ring: deque[tuple[int, Rows, list[Future[None] | _InlinePool]]] = deque()
    pool = ThreadPoolExecutor(threads, "certcal-noise") if threads else _InlinePool()

    def new_buffer() -> Rows:
        buffer = (
            spare.pop()
            if spare and spare[-1].shape == (rows, *shape)
            else (host_buffer or _pageable_rows)((rows, *shape))
        )
        own.append(buffer)
        return buffer

    def prepare(buffer: Rows | None = None) -> None:
        first = next(coming, None)
        if first is not None:
            made = buffer if buffer is not None else new_buffer()
            flat, given = made.reshape(rows, -1), min(rows, total - first)
            ends = [given * part // parts for part in range(parts + 1)]
            ring.append((first, made, [pool.submit(fill, first + a, flat[a:b]) for a, b in pairwise(ends)]))

    try:
        for _ in range(buffers):
            prepare()
        counted: Future[None] | _InlinePool | None = None
        while ring:
            first, buffer, filling = ring.popleft()
            for part in filling:
                part.result()
            given = min(rows, total - first)
            full = -(-given // batch) * batch
            buffer[given:full] = buffer[given - 1]
            answers = [ask(buffer[k : k + batch], first + k) for k in range(0, full, batch)]
            if counted is not None:
                counted.result()
            counted = pool.submit(count, answers[0] if batches == 1 else np.concatenate(answers), first, given)
            prepare(buffer)
        if counted is not None:
            counted.result()
    finally:
        pool.shutdown(cancel_futures=True)
        spare[:] = own


def _pageable_rows(shape: tuple[int, ...]) -> Rows:
    return np.empty(shape, np.float32)


class _InlinePool:
    """A pool of no threads: what is submitted is done at once."""

    def submit(self, function: Callable[..., None], *arguments: Any) -> _InlinePool:
        function(*arguments)
        return self

    def result(self) -> None:
        pass

    def shutdown(self, *, cancel_futures: bool) -> None:
        pass
