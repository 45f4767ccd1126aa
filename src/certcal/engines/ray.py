"""Workers on a Ray cluster, which needs the extra ``certcal[ray]``."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from contextlib import ExitStack
from itertools import chain
from typing import Any, Self

from certcal._checks import InputError, whole_number
from certcal.engines._engine import Piece, Result, Task
from certcal.engines._ray_connection import connected
from certcal.engines._ray_crew import Crew
from certcal.engines.local import MOST_WORKERS


class RayCluster:
    """Work on a Ray cluster: one that is there, or one on this machine for as long as it is needed.

    The task is sent to every node once, pieces as workers become free. A piece whose worker or node is lost is done
    again elsewhere; one that is lost ``attempts`` times ends in an :class:`EngineError` that names it. Where a cluster
    has less room than asked for, the workers that found a place do the work; when none finds one, that is said.

    Used with ``with``, the cluster is joined, or started, once for everything that runs inside.

    Parameters
    ----------
    address
        Of the cluster: ``"host:port"``, from a machine that is part of it, or ``"auto"`` for what ``RAY_ADDRESS`` says
        or the one that was started on this machine. None: the cluster that this process has joined with ``ray.init``,
        or else one of its own, which only this process can reach and which ends with the work.
    workers
        How many at most. Default: as many as the cluster has room for.
    gpus
        Of each worker, may be a fraction. With 0 a worker sees none.
    threads
        Of each worker, and the CPUs it takes.
    shared_files
        Whether every node sees the files of this machine under the same paths. If not, files are sent.
    attempts
        Of a piece whose worker is lost.
    patience
        Seconds without a single worker after which the work is given up.

    Examples
    --------
    >>> RayCluster(gpus=-1)
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: gpus is -1; pass how many GPUs each worker needs, 0 or more
    """

    remote = True

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        gpus: float = 0.0,
        threads: int = 1,
        shared_files: bool = False,
        attempts: int = 3,
        patience: float = 60.0,
    ) -> None:
        most = f"pass a whole number from 1 to {MOST_WORKERS}"
        if not (math.isfinite(gpus) and gpus >= 0):
            raise InputError(f"gpus is {gpus}; pass how many GPUs each worker needs, 0 or more")
        self.address, self.gpus, self.shares_files, self.patience = address, gpus, shared_files, patience
        self.workers = None if workers is None else whole_number(workers, 1, MOST_WORKERS, "workers", most)
        self.threads = whole_number(threads, 1, MOST_WORKERS, "threads", most)
        self.attempts = whole_number(attempts, 1, 1000, "attempts", "pass a whole number from 1 to 1000")
        self._ray: Any = None
        self._inside, self._leaving = 0, ExitStack()

    def __enter__(self) -> Self:
        if not self._inside:
            cpus = None if self.workers is None else self.workers * self.threads
            self._ray = self._leaving.enter_context(connected(self.address, cpus))
        self._inside += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._inside -= 1
        if not self._inside:
            self._leaving.close()

    def run(self, task: Task[Piece, Result], pieces: Iterable[Piece]) -> Generator[tuple[Piece, Result], Any, None]:
        """Each piece with its result, in the order in which they arrive."""
        coming = iter(pieces)
        for first in coming:  # without any piece no cluster is needed
            with self:
                crew = Crew(self._ray, task, self.threads, self.gpus, self.attempts, self.patience)
                yield from crew.results(chain([first], coming), self.workers)
