"""Jobs of plans: what they are, their state on disk, and who does which.

A job is a function and its plain arguments. Its folder is named after both, so that another argument is another job,
nothing is overwritten, and plans that ask for the same share it. A job is done once ``done.json`` is there. Whoever
needs a job does it, waits for the process that is doing it, or finds it done: parts of an array and workers need not
know of each other.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from certcal._base.checks import InputError
from certcal._base.durable import FolderInUseError, only_writer
from certcal._base.files import write_bytes
from certcal._base.json import as_text, for_json
from certcal._base.progress import SILENT, Progress
from certcal._base.text import reason
from certcal.lab.plans import MODULES

DONE, FAILED = "done.json", "failed.json"
_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Passes:
    """How often a network looks at an input, and what it costs to know how long that takes."""

    network: Mapping[str, Any]
    """Name and other arguments of :func:`certcal.models.networks.by_name`."""
    shape: tuple[int, ...]
    classes: int
    forward: int = 0
    """Forward passes of one input without a gradient."""
    backward: int = 0
    """Forward and backward passes of one input."""
    stored: int = 0
    """Bytes that are kept, beside the weights of a network that is trained."""


@dataclass(frozen=True)
class Job:
    """A function of a module here, such as "networks.sample", with its arguments."""

    work: str
    name: str
    """For people; two jobs may have the same."""
    arguments: Mapping[str, Any]
    """Plain values. The result of another job is named by its fingerprint."""
    needs: tuple[Job, ...] = field(default=(), repr=False)
    """Jobs that come first."""
    passes: Passes | None = field(default=None, repr=False)

    @cached_property
    def fingerprint(self) -> str:
        """Of the function and its arguments.

        Examples
        --------
        >>> Job("networks.sample", "a", {"n": 1, "sigma": 0.5}).fingerprint == Job(
        ...     "networks.sample", "b", {"sigma": 0.5, "n": 1}
        ... ).fingerprint
        True
        """
        text = json.dumps([self.work, self.arguments], sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def table(self) -> str:
        """The table of scores and outcomes that it reads, if it does."""
        source: Any = self.arguments.get("source")
        return source.get("table", "") if isinstance(source, dict) else ""  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    @property
    def folder(self) -> str:
        """Name of its folder."""
        return f"{re.sub(r'[^A-Za-z0-9.]+', '-', self.name).strip('-')[:60]}-{self.fingerprint}"


class FailedJobError(InputError):
    """A job that another one needs has failed."""


@dataclass(frozen=True)
class JobContext:
    """What a job finds where it runs."""

    out: Path
    """Folder of all jobs."""
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    """Folders that were brought, see ``PaperPlan``."""
    device: str = "auto"
    begun: float = 0.0
    """When the command began: what failed before is tried again."""
    folder: Path = Path()
    """Of this job."""

    def place(self, job: Job) -> Path:
        """The folder of a job."""
        return place_of(job, self.out)

    def folder_of(self, fingerprint: str) -> Path:
        """The folder of a job that is done, by its fingerprint."""
        return next(self.out.glob(f"*-{fingerprint}"))

    def result_of(self, fingerprint: str) -> Any:
        """The result of a job that is done."""
        return json.loads((self.folder_of(fingerprint) / DONE).read_text("utf-8"))["result"]

    def source_of(self, data: str) -> str:
        """Where a data set is: the folder that was brought for it, else its own name."""
        return self.given.get(f"data {data}") or self.given.get("data") or data

    def table_file(self, *names: str) -> Path:
        """The file of the first of some tables, by its own name or in a folder of tables; all have to be there."""
        found: dict[str, Path] = {}
        for name in names:
            source = Path(self.source_of(name))
            inside = sorted(each for each in source.iterdir() if each.stem == name) if source.is_dir() else [source]
            if inside and inside[0].is_file():
                found[name] = inside[0]
        missing = [name for name in names if name not in found]
        if missing:
            reason = f"there is no table of scores and outcomes called {' or '.join(missing)}"
            remedy = f"bring their folder, or {missing[0]}=FILE, or choose others as the plan's tables"
            raise InputError(reason, argument="data", remedy=remedy)
        return found[names[0]]

    def check_given(self, jobs: Iterable[Job], needs: Mapping[str, str]) -> None:
        """Refuse folders that are not there, and data that jobs need and nobody brought, before any job begins."""
        from certcal.data.opening import NAMED, open_inputs

        folder = self.given.get("checkpoints", ".")
        if not Path(folder).is_dir():
            raise InputError(
                f"{folder}: there is no such folder", argument="checkpoints", remedy="check it, or leave it out"
            )
        waiting = list(jobs)
        tables = dict.fromkeys(name for job in waiting if (name := job.table))
        if tables:
            self.table_file(*tables)
        for data in sorted({str(job.arguments["data"]) for job in waiting if "data" in job.arguments}):
            source = self.source_of(data)
            if source in NAMED or Path(source).exists():
                open_inputs(source)  # which may not be installed, or hold no data
            if is_there(source):
                continue
            if source != data:
                raise InputError(f"{source}: there is no such file or folder", argument="data", remedy="check it")
            wanted = f"the plan needs {needs.get('data', data)}, and no folder of {data} was given"
            raise InputError(wanted, argument="data", remedy="name it")


def is_there(source: str) -> bool:
    """Whether data, checkpoints or logs are where they are said to be, as far as can be seen from here."""
    from certcal.data.opening import NAMED

    return source in NAMED or ":" in source or Path(source).exists()


def place_of(job: Job, out: Path) -> Path:
    """The folder of a job, whatever it was called by the plan that made it."""
    return min(out.glob(f"*-{job.fingerprint}"), default=out / job.folder)


def result_of(job: Job, out: Path) -> Any | None:
    """The result of a job, None unless it is done."""
    path = place_of(job, out) / DONE
    return json.loads(path.read_text("utf-8"))["result"] if path.is_file() else None


def all_jobs(jobs: Iterable[Job]) -> list[Job]:
    """Jobs with all that they need, each once; first those that need nothing, then those that need only these, ….

    Examples
    --------
    >>> first = Job("networks.train", "first", {})
    >>> [each.name for each in all_jobs([Job("networks.sample", "second", {}, (first,)), first])]
    ['first', 'second']
    """
    depth: dict[str, tuple[int, Job]] = {}

    def visit(job: Job) -> int:
        if job.fingerprint not in depth:
            depth[job.fingerprint] = 1 + max((visit(each) for each in job.needs), default=-1), job
        return depth[job.fingerprint][0]

    for job in jobs:
        visit(job)
    return [job for _, job in sorted(depth.values(), key=lambda each: each[0])]


def do(job: Job, context: JobContext) -> None:
    """Do a job and what it needs, unless they are done; wait for those that another process is at."""
    for each in job.needs:
        do(each, context)
    folder = context.place(job)
    while not (folder / DONE).is_file():
        failed = folder / FAILED
        if failed.is_file():
            said = json.loads(failed.read_text("utf-8"))
            if said["at"] >= context.begun:
                raise FailedJobError(f"{job.name}: {said['reason']}")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with only_writer(folder, "at this job"):
                if not (folder / DONE).is_file():
                    _work(job, replace(context, folder=folder))
        except FolderInUseError:
            time.sleep(_POLL_SECONDS)


def _work(job: Job, context: JobContext) -> None:
    module, _, name = job.work.partition(".")
    function: Callable[..., Any] = getattr(MODULES[module](), name)
    began = time.time()
    try:
        result = function(context, **job.arguments)
    except Exception as error:
        said = str(error) if isinstance(error, InputError) else reason(error)
        told = as_text({"job": job.name, "at": time.time(), "reason": said})
        write_bytes(context.folder / FAILED, told.encode(), force=True)
        raise FailedJobError(f"{job.name}: {said}") from error
    about = {"job": job.name, "work": job.work, "arguments": job.arguments, "certcal": version("certcal")}
    document = {**about, "seconds": time.time() - began, "result": result}
    write_bytes(context.folder / DONE, as_text(for_json(document)).encode())
    (context.folder / FAILED).unlink(missing_ok=True)


@dataclass(frozen=True)
class JobTask:
    """A job as an engine's piece of work: the answer is empty, or says why the job failed."""

    context: JobContext
    devices: Sequence[str] = ("auto",)

    def prepare(self) -> None:
        """Nothing is shared by jobs."""

    def placed(self, number: int) -> JobTask:
        """With the device of a worker."""
        return replace(self, context=replace(self.context, device=self.devices[number % len(self.devices)]))

    def __call__(self, job: Job) -> str:
        """Do a job."""
        try:
            do(job, self.context)
        except FailedJobError as error:
            return str(error)
        return ""


def run_jobs(
    jobs: Sequence[Job],
    context: JobContext,
    *,
    part: tuple[int, int] = (1, 1),
    engine: Any = None,
    devices: Sequence[str] = ("auto",),
    progress: Progress = SILENT,
) -> list[str]:
    """Do jobs, or every N-th of them beginning with the i-th; returns why some failed."""
    from certcal.engines import InProcess

    place, parts = part
    mine = [job for number, job in enumerate(jobs) if number % parts == place - 1]
    left = [job for job in mine if not (context.place(job) / DONE).is_file()]
    context.out.mkdir(parents=True, exist_ok=True)
    progress.stage("jobs", len(mine), len(mine) - len(left), "jobs")
    failures: list[str] = []
    chosen = InProcess() if engine is None else engine
    for _, failed in chosen.run(JobTask(replace(context, device=devices[0]), devices), _name_each(left, progress)):
        failures += [failed] if failed else []
        progress.advance(1)
    return list(dict.fromkeys(failures))


def _name_each(jobs: Iterable[Job], progress: Progress) -> Iterable[Job]:
    for job in jobs:
        progress.say(job.name)
        yield job
