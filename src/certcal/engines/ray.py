"""Workers on a Ray cluster, which needs the extra ``certcal[ray]``: who has what, who is free, who is lost."""

from __future__ import annotations

import math
import time
import traceback
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, suppress
from importlib import import_module
from itertools import chain, islice
from typing import Any, Self

from certcal._base.checks import InputError, whole_number
from certcal.engines._engine import EngineError, Piece, Result, Task
from certcal.engines._ray_connection import connect
from certcal.engines.local import FAILED, MOST_WORKERS, READY, RESULT, THREADS, run_piece, said_here, with_origin

_QUICK = 1.0  # seconds; after a piece that took less, the next one already waits at its worker
_AHEAD = 2
# Of a worker that was promised none. The second variable is for versions of Ray that would warn about the first.
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


class RayCluster:
    """Work on a Ray cluster: one that is there, or one on this machine for as long as it is needed.

    The task is sent to every node once, pieces as workers become free. A piece whose worker or node is lost is done
    again elsewhere; one that is lost ``attempts`` times ends in an :class:`EngineError` that names it. Where a cluster
    has less room than asked for, the workers that found a place do the work; when none finds one, that is said.

    Used with ``with``, the cluster is joined, or started, once for everything that runs inside.

    Parameters
    ----------
    address
        Address of the cluster: ``"host:port"``, from a machine that is part of it, or ``"auto"`` for what
        ``RAY_ADDRESS`` says or the one that was started on this machine. None: the cluster that this process has joined
        with ``ray.init``, or else one of its own, which only this process can reach and which ends with the work.
    workers
        How many at most. Default: as many as the cluster has room for.
    gpus
        GPUs of each worker; may be a fraction. With 0 a worker sees none.
    threads
        Threads of each worker, and the CPUs it takes.
    shared_files
        Whether every node sees the files of this machine under the same paths. If not, files are sent.
    attempts
        Attempts at a piece whose worker is lost.
    patience
        Seconds without a single worker after which the work is given up.

    Examples
    --------
    >>> RayCluster(gpus=-1)
    Traceback (most recent call last):
        ...
    certcal.InputError: gpus is -1; pass how many GPUs each worker needs, 0 or more
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
            self._ray = self._leaving.enter_context(connect(self.address, cpus))
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
                crew = _Crew(self._ray, task, self.threads, self.gpus, self.attempts, self.patience)
                yield from crew.results(chain([first], coming), self.workers)


class _Actor:
    """What runs on the cluster: prepare once, then a result for every piece. Failures are answers, too."""

    def prepare(self, task: Any) -> tuple[str, Any]:
        """Take over the task."""
        try:
            self.task = task
            task.prepare()
        except Exception as error:
            return FAILED, _travelling(error)
        return READY, None

    def work(self, piece: Any) -> tuple[str, Any]:
        """The result of a piece with what was warned of, and the seconds it took."""
        begun = time.perf_counter()
        try:
            result = run_piece(self.task, piece)
        except Exception as error:
            return FAILED, _travelling(error)
        return RESULT, (result, time.perf_counter() - begun)


class _Slot:
    """A worker seen from here: the pieces it has, and how often one in its place was lost before it could begin."""

    def __init__(self, actor: Any, failures: int) -> None:
        self.actor, self.failures, self.ready, self.ahead = actor, failures, False, 1
        self.jobs: dict[Any, tuple[int, Any]] = {}


class _Crew:
    """Workers for one task, on a cluster that was joined."""

    def __init__(self, ray: Any, task: Any, threads: int, gpus: float, attempts: int, patience: float) -> None:
        self.ray, self.threads, self.gpus, self.attempts, self.patience = ray, threads, gpus, attempts, patience
        self.errors: Any = import_module("ray.exceptions")
        self.task = ray.put(task)
        self.slots: list[_Slot] = []
        self.asked: dict[Any, _Slot] = {}
        self.again: deque[tuple[int, Any]] = deque()  # pieces taken that no worker has
        self.lost: Counter[int] = Counter()
        self.told: set[str] = set()
        # Libraries read these variables when they are loaded, which is after Ray has set them.
        environment = dict.fromkeys(THREADS, str(threads)) | ({} if gpus else _NO_GPU)
        self.actor = ray.remote(_Actor).options(
            num_cpus=threads, num_gpus=gpus, max_restarts=0, runtime_env={"env_vars": environment}
        )

    def results(self, pieces: Iterable[Any], workers: int | None) -> Iterator[tuple[Any, Any]]:
        """Every piece once, with its result."""
        self.coming = enumerate(pieces)
        self.again.extend(islice(self.coming, workers or self._room()))
        try:
            for _ in range(len(self.again)):
                self._start()
            while self.again or any(slot.jobs for slot in self.slots):
                for request in self._collect():
                    yield from self._outcomes_of(request)
        finally:
            for slot in self.slots:
                self._end(slot)

    def _room(self) -> int:
        """How many workers the cluster has room for, busy or not."""
        there: dict[str, float] = self.ray.cluster_resources()
        rooms = [there.get("CPU", 0) / self.threads] + ([there.get("GPU", 0) / self.gpus] if self.gpus else [])
        return max(1, min(MOST_WORKERS, *map(int, rooms)))

    def _start(self, failures: int = 0) -> None:
        slot = _Slot(self.actor.remote(), failures)
        self.slots.append(slot)
        self.asked[slot.actor.prepare.remote(self.task)] = slot

    def _end(self, slot: _Slot) -> None:
        with suppress(Exception):  # of a cluster that is gone
            self.ray.kill(slot.actor)

    def _supply(self, slot: _Slot) -> None:
        while slot.ready and len(slot.jobs) < slot.ahead:
            job = self.again.popleft() if self.again else next(self.coming, None)
            if job is None:
                return
            request = slot.actor.work.remote(job[1])
            slot.jobs[request], self.asked[request] = job, slot

    def _collect(self) -> list[Any]:
        requests = list(self.asked)
        patience = None if any(slot.ready for slot in self.slots) else self.patience
        if not self.ray.wait(requests, num_returns=1, timeout=patience)[0]:
            raise EngineError(self._no_room())
        return self.ray.wait(requests, num_returns=len(requests), timeout=0)[0]

    def _outcomes_of(self, request: Any) -> Iterator[tuple[Any, Any]]:
        slot = self.asked.pop(request, None)
        if slot is None:
            return  # from a worker that was given up meanwhile
        try:
            kind, value = self.ray.get(request)
        except self.errors.RayTaskError as error:
            raise EngineError(
                "a worker on the cluster cannot read what it is sent, or its result cannot be sent "
                f"({_last_line(error)}); install the same packages on every node"
            ) from error
        except self.errors.RayError as error:
            return self._replace(slot, error)
        if kind == FAILED:
            raise with_origin(*value)
        if kind == READY:
            slot.ready, slot.failures = True, 0
            return self._supply(slot)
        _, piece = slot.jobs.pop(request)
        result, seconds = value
        slot.ahead = _AHEAD if seconds < _QUICK else 1
        self._supply(slot)
        yield piece, said_here(result, self.told)

    def _replace(self, slot: _Slot, error: Exception) -> None:
        """Give a worker up, and what it had to others."""
        self._end(slot)
        self.slots.remove(slot)
        self.asked = {request: other for request, other in self.asked.items() if other is not slot}
        jobs = list(slot.jobs.values())
        if jobs:
            number, piece = jobs[0]  # the others waited behind it
            self.lost[number] += 1
            if self.lost[number] == self.attempts:
                raise EngineError(
                    f"a worker on the cluster was lost at {piece}, {self.attempts} times in all "
                    f"({type(error).__name__}); use fewer workers if memory is short, or workers=1 without a cluster "
                    "to see the failure itself"
                ) from error
        failures = 0 if slot.ready else slot.failures + 1
        if failures == self.attempts:
            raise EngineError(
                f"a worker on the cluster was lost before it could begin, {self.attempts} times in a row "
                f"({_last_line(error)}); check that every node has certcal and what the work needs"
            ) from error
        self.again.extendleft(reversed(jobs))
        self._start(failures)
        for other in self.slots:
            self._supply(other)

    def _no_room(self) -> str:
        there, free = self.ray.cluster_resources(), self.ray.available_resources()
        kinds = [("CPU", self.threads), *([("GPU", self.gpus)] if self.gpus else [])]
        needs = " and ".join(f"{need:g} {kind}" for kind, need in kinds)
        shown = " and ".join(f"{free.get(kind, 0):g} of {there.get(kind, 0):g} {kind}s free" for kind, _ in kinds)
        return (
            f"no worker began within {self.patience:g} seconds: each needs {needs}, and the cluster has {shown}; "
            "wait for other work to end, add nodes, or ask for less per worker"
        )


def _travelling(error: Exception) -> tuple[Exception, str]:
    """An exception and where it came from; one that would not arrive goes as its text."""
    pickling: Any = import_module("ray.cloudpickle")
    text = "".join(traceback.format_exception(error))
    try:
        pickling.loads(pickling.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}"), text
    return error, text


def _last_line(error: Exception) -> str:
    """What a message of Ray comes to, which begins with where it happened."""
    return str(error).strip().splitlines()[-1].strip()[:200]
