"""Reproduce a table or figure of a paper: run its plan, and put what comes out beside what is printed."""

from __future__ import annotations

import os
import re
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from certcal._base.checks import InputError
from certcal._base.files import write_together
from certcal._base.parts import part_of
from certcal._base.progress import ProgressLike, as_reporter
from certcal._base.signature import Option, Range, Takes, verb
from certcal._base.text import counted, did_you_mean, duration
from certcal.lab.plans import MODULES
from certcal.lab.plans.cost import WorkCost, check_networks, cost_columns, cost_of
from certcal.lab.plans.jobs import Job, JobContext, all_jobs, is_there, result_of, run_jobs
from certcal.lab.plans.outcome import MISSING, ComparedTable, Outcome, RowOrder, signed_text
from certcal.lab.plans.plan import HERE, OF_GROUP, PaperPlan, open_plan, plan_names
from certcal.report.document import Column, Figures, Heading, Table
from certcal.report.tables import as_markdown
from certcal.result import Result

if TYPE_CHECKING:
    from certcal.engines import Engine
    from certcal.report.charts import Chart

_NOT_THE_PAPERS = "The setting is not the paper's ({why}): compare orders, not differences."
_NOTHING_PRINTED = "Nothing is printed as a number that this could be compared with."


@dataclass(frozen=True, eq=False, repr=False)
class PlanList(Result):
    """The tables and figures that there are plans for."""

    question: ClassVar[str] = "Which tables and figures can be reproduced?"
    stated = "fact"
    forms: ClassVar[Sequence[str]] = (".html", ".txt", ".json", ".csv", ".md", ".tex")

    plans: tuple[PaperPlan, ...]
    """The plans, by paper."""

    def __repr__(self) -> str:
        return f"<PlanList: {counted(len(self.plans), 'plan')}>"

    def top(self) -> Sequence[str]:
        """How many there are, and how to run one."""
        return [f"There are {len(self.plans)} plans. A name runs one; a dry run says what it takes."]

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per plan."""
        return {
            "plan": [plan.name for plan in self.plans],
            "in the paper": [plan.place for plan in self.plans],
            "needs": ["; ".join(plan.needs.values()) or "nothing" for plan in self.plans],
            "the paper's cost": [plan.cost or "seconds" for plan in self.plans],
        }

    def contents(self) -> dict[str, Any]:
        """Every plan with all its fields."""
        return {"plans": [plan.to_plain() for plan in self.plans]}

    def parts(self) -> Mapping[str, Any]:
        """The list."""
        papers: dict[str, list[list[str]]] = {}
        for plan in self.plans:
            words = [plan.name, plan.place.partition(";")[0], _brief_needs(plan), plan.cost.partition(" (")[0]]
            papers.setdefault(plan.paper, []).append([each or "seconds" for each in words])
        heads = [Column("plan"), Column("in the paper", priority=1), Column("needs"), Column("the paper's cost")]
        titles = {paper: tomllib.loads((HERE / paper / "paper.toml").read_text("utf-8"))["title"] for paper in papers}
        return {"Plans": [Table(heads, rows, titles[paper]) for paper, rows in papers.items()]}


def _brief_needs(plan: PaperPlan) -> str:
    """What a plan needs in a few words: names of files and repositories are in what a dry run says."""
    words = {"checkpoints": "checkpoints", "logs": "or logs"}
    found = [words.get(name) or re.split("[,:;]", text)[0] for name, text in plan.needs.items()]
    return ", ".join(found).replace(", or", " or") or "nothing"


def list_plans() -> PlanList:
    """All plans that come with the library.

    Examples
    --------
    >>> from certcal.lab.reproduce import list_plans
    >>> "cc-table7" in [plan.name for plan in list_plans().plans]
    True
    """
    return PlanList(tuple(open_plan(name) for name in plan_names()))


@dataclass(frozen=True, eq=False, repr=False)
class Reproduction(Result):
    """A table or figure of a paper, as printed and as it came out here."""

    stated = "fact"

    plan: Any
    """The plan that was run, with its scale and changes."""
    tables: tuple[ComparedTable, ...]
    charts: tuple[Chart, ...]
    notes: tuple[str, ...]
    """Tables beside the printed ones, figures, and what is to be said about them."""
    cost: tuple[WorkCost, ...]
    """Jobs and passes by kind of work."""
    done: int
    failures: tuple[str, ...] = ()
    """How many jobs are done, and why others failed."""
    ran: bool = True
    """False for a dry run."""

    def __repr__(self) -> str:
        return f"<Reproduction of {self.plan.name}: {self.done:,} of {counted(self.jobs, 'job')} done>"

    @property
    def question(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the page answers."""
        what = self.plan.place.partition(",")[0]
        if not self.ran:
            return f"What does {what} take?"
        printed = self.plan.as_printed and any(table.paper is not None for table in self.tables)
        return f"Does {what} come out as printed?" if printed else f"How does {what} come out here?"

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return sum(each.jobs for each in self.cost)

    @property
    def source(self) -> str:
        """The plan."""
        return self.plan.name

    @property
    def description(self) -> str:
        """What it is in the paper."""
        return f"{self.plan.place}: {self.plan.title}"

    def top(self) -> Sequence[str]:
        """How far it got, and whether numbers can be compared."""
        plan, done = self.plan, f"{self.done:,} of {counted(self.jobs, 'job')} done."
        if not self.ran:
            hours, needs = [each.hours for each in self.cost if each.hours is not None], "; ".join(plan.needs.values())
            took = [f"What is left takes {duration(3600 * sum(hours))} of this device."] if hours else []
            return [done, *took, *([f"It needs {needs}."] if needs else [])]
        said = [] if self.done == self.jobs else [done]
        if all(table.paper is None for table in self.tables):
            return [*said, _NOTHING_PRINTED]
        if not plan.as_printed:
            order = sum((each for table in self.tables for each in table.orders().values()), RowOrder())
            said += [f"The {order.sentence}"] if order else []
            return [*said, _NOT_THE_PAPERS.format(why=self._other_setting())]
        compared = [(table, cell) for table in self.tables for cell in table.compared()]
        if not compared:
            return [*said, _NOTHING_PRINTED]
        agreed = sum(table.agrees(cell) for table, cell in compared)
        if agreed == len(compared):
            return [*said, "Every number comes out as printed."]
        table, cell = max(compared, key=lambda each: abs(each[1].difference or 0.0))
        counts = f"{agreed:,} of {len(compared):,} entries come out as printed"
        if not cell.difference:
            return [*said, f"{counts}."]
        largest = signed_text(cell.difference, table.digits_of(cell.column)[1])
        where = f"{cell.row.replace(OF_GROUP, ', ')}; {cell.column}"
        return [*said, f"{counts}; the largest difference is {largest} ({where})."]

    def _other_setting(self) -> str:
        """What is not as in the paper: the scale, and what was changed."""
        plan = self.plan
        plain = {name: value for name, value in plan.changes.items() if not isinstance(value, list | dict)}
        told = [f"{name} = {plain[name]}" if name in plain else name for name in plan.changes]
        why = [f"scale {plan.scale:g}"] if plan.scale != 1 else []
        return "; ".join([*why, ", ".join(told)] if told else why) or plan.differs

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One line per cell of the tables."""
        cells = [(table.ours.name, cell) for table in self.tables for cell in table.cells()]
        return {
            "table": [name for name, _ in cells],
            **{name: [getattr(cell, name) for _, cell in cells] for name in ("row", "column", "paper", "ours")},
            "difference": [cell.difference for _, cell in cells],
        }

    def contents(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "plan": self.plan.to_plain(),
            "as_printed": self.plan.as_printed,
            "tables": [
                {"name": table.ours.name, "cells": [cell._asdict() for cell in table.cells()]} for table in self.tables
            ],
            "pattern": [sentence for table in self.tables for sentence in table.pattern()],
            "notes": list(self.notes),
            "jobs": {"all": self.jobs, "done": self.done, "failures": list(self.failures)},
            "cost": cost_columns(self.cost),
        }

    def parts(self) -> Mapping[str, Any]:
        """Tables, figures, the comparison of patterns, and jobs."""
        pattern = [sentence for table in self.tables for sentence in table.pattern()]
        shown = [document_table(table, self.plan.place) for table in self.tables] if self.ran else []
        return {
            "Paper and here": shown or None,
            "Figures": Figures(self.charts) if self.charts else None,
            "Agreement" if self.plan.as_printed else "Order and pattern": pattern or None,
            "Failed": [*self.failures] or None,
            "Jobs": cost_columns(self.cost) if self.cost else None,
        }

    def appendix(self) -> Mapping[str, Any]:
        """The plan."""
        plan = self.plan
        facts = {"plan": plan.name, "scale": f"{plan.scale:g}", "needs": "; ".join(plan.needs.values()) or "nothing"}
        facts |= {"in the paper it took": plan.cost or MISSING, "differs from the paper": plan.differs or MISSING}
        facts |= {f"changed: {name}": str(value) for name, value in plan.changes.items()}
        return {"Plan": facts}

    def to_bytes(self, form: str, **options: Any) -> bytes:
        """The content of a file; Markdown has a section of a page of results."""
        return markdown(self).encode() if form == ".md" else super().to_bytes(form, **options)

    def write(self, folder: str | os.PathLike[str], **options: Any) -> list[Path]:
        """Write page, Markdown, LaTeX, numbers and, if there are charts, figures into a folder, over older ones.

        Parameters
        ----------
        folder
            Where to.
        options
            Of the page, as for :meth:`save`.
        """
        from importlib.util import find_spec

        drawn = (".svg",) if self.charts and find_spec("matplotlib") else ()
        tables = (".md", ".tex", ".csv") if self.tables else (".md",)
        place = Path(folder)
        files = {place / f"{self.plan.name}{form}": form for form in (".html", *tables, ".json", *drawn)}
        write_together({path: self.to_bytes(form, **options) for path, form in files.items()}, force=True)
        return list(files)


def document_table(table: ComparedTable, caption: str) -> Table:
    """A table as a block of a report."""
    rows: list[Any] = []
    for group, own in table.groups().items():
        rows += [Heading(group)] if group else []
        names = [row.partition(OF_GROUP)[2] or row for row in own]
        rows += [
            [name, *(table.text(row, column) for column in table.columns())]
            for name, row in zip(names, own, strict=True)
        ]
    heads = [Column(table.ours.corner), *(Column(each, "estimate") for each in table.columns())]
    named = caption if table.ours.name == "table" else f"{caption}, {table.ours.name}"
    return Table(heads, rows, f"{named}: {_legend(table)}", fit="split")


def _legend(table: ComparedTable) -> str:
    if table.paper is None:
        return "here"
    return "paper / here / difference" if table.as_printed else "paper / here"


def markdown(found: Reproduction) -> str:
    """A section of a page of results: what was run, and the tables."""
    plan = found.plan
    lines = [f"## {plan.place}", "", f"{plan.title} (`{plan.name}`). {' '.join(found.top())}", ""]
    for table in found.tables:
        lines += [as_markdown([document_table(table, plan.place)]), *table.pattern(), ""]
    lines += [f"![{chart.title}]({plan.name}.svg)" for chart in found.charts[:1]]
    lines += [*found.notes, *(f"Failed: {each}" for each in found.failures)]
    return "\n".join(lines).rstrip() + "\n"


@verb()
def reproduce(
    plan: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    scale: Annotated[float, Range(0, 1), Option("--shrink", "X")] = 1.0,
    changes: Mapping[str, Any] | None = None,
    data: str | Mapping[str, str] | None = None,
    checkpoints: Annotated[str | None, Takes("file"), Option(metavar="FOLDER")] = None,
    logs: Annotated[str | None, Takes("file"), Option(metavar="FOLDER")] = None,
    device: Annotated[str, Takes("text"), Option(metavar="D[,D...]")] = "auto",
    part: Annotated[str | None, Takes("text"), Option(metavar="I/N")] = None,
    dry_run: bool = False,
    probe: Annotated[float, Range(0, 3600), Option(metavar="SECONDS")] = 10.0,
    workers: int = 1,
    engine: Engine | None = None,
    progress: ProgressLike = True,
) -> Reproduction:
    """Run the plan of a table or figure, and compare what comes out with what is printed.

    Jobs (train, sample, certify, …) are kept in ``out/jobs`` with their state: the same call resumes, and plans that
    need the same job share it. A job that fails does not stop the others; the next call tries it again.

    Parameters
    ----------
    plan
        Name of a plan, see :func:`certcal.lab.reproduce.list_plans`, or a TOML file.
    out
        Folder for jobs; needed unless this is a dry run.
    scale
        Shrink samples, epochs, draws and grids to this share, down to what a plan declares.
    changes
        Other values for fields of the plan by their dotted names, as in ``{"network.name": "resnet20"}``.
    data
        Where the data are, or a folder for each data set by name.
    checkpoints
        Folder of published checkpoints; without it networks are trained.
    logs
        Folder of published logs.
    device
        Where to compute: auto, cpu, cuda, …; several with commas have a job each.
    part
        Do the I-th of N parts of the jobs, for job arrays. All parts write into one folder.
    dry_run
        Only say how many jobs and passes there are, and how long they would take.
    probe
        Seconds for which a dry run tries each network to know its speed; 0 for none.
    workers, engine
        Processes on this machine, or where jobs run instead, with workers that see ``out`` and the data; see
        :mod:`certcal.engines`.
    progress
        Whether to show how far the work is; or a function or an object that is told.

    Examples
    --------
    >>> import certcal
    >>> found = certcal.reproduce("cc-table7", dry_run=True, probe=0)
    >>> found.jobs, found.plan.published["table"].rows["ACCE | AT"][0]
    (693, 11.44)
    """
    progress = as_reporter(progress)
    given = {name: value for name, value in (("checkpoints", checkpoints), ("logs", logs)) if value is not None}
    if isinstance(data, Mapping):
        given |= {f"data {name}": str(folder) for name, folder in data.items()}
    elif data is not None:
        given["data"] = os.fspath(data)
    opened = open_plan(plan, changes, scale, given)
    kind = MODULES[opened.kind]()
    progress.stage("planning")
    planned: list[tuple[Any, Job]] = kind.planned(opened) if hasattr(kind, "planned") else []
    jobs = all_jobs(job for _, job in planned)
    _check_data_names(opened.name, data, jobs)
    check_networks(jobs)
    shares = part_of(part) or (1, 1)
    devices = [each.strip() for each in device.split(",")]
    if out is None and not dry_run:
        raise InputError("there is no folder for the jobs", argument="out", remedy="give one, or make it a dry run")
    place = Path("." if out is None else out) / "jobs"
    failures: list[str] = []
    if not dry_run:
        context = JobContext(place, given, devices[0], time.time())
        context.check_given((job for job in jobs if result_of(job, place) is None), opened.needs)
        failures = run_jobs(
            jobs, context, part=shares, engine=_engine(engine, workers, devices), devices=devices, progress=progress
        )
    results = {job.fingerprint: value for job in jobs if (value := result_of(job, place)) is not None}
    if dry_run:
        progress.stage("trying the networks")
    cost = cost_of(jobs, devices[0], probe, results) if dry_run else cost_of(jobs, devices[0], 0.0)
    gone = [each for each in dict.fromkeys(given.values()) if not is_there(each)]
    absent = [f"{each}: there is no such file or folder yet." for each in gone]
    finished = [(label, results[job.fingerprint]) for label, job in planned if job.fingerprint in results]
    made: Outcome = Outcome([], notes=absent) if dry_run else kind.outcome(opened, finished)
    tables = [ComparedTable(each, opened.published.get(each.name), opened.as_printed) for each in made.tables]
    return Reproduction(
        opened,
        tuple(tables),
        tuple(made.charts),
        tuple(made.notes),
        tuple(cost),
        len(results),
        tuple(failures),
        not dry_run,
    )


def _check_data_names(plan: str, data: str | Mapping[str, str] | None, jobs: Sequence[Job]) -> None:
    """Refuse folders of data that no job reads."""
    known = {name for job in jobs if (name := job.table or str(job.arguments.get("data", "")))}
    for name in data if isinstance(data, Mapping) else ():
        if name not in known:
            hint = did_you_mean(name, known, f"it has {', '.join(sorted(known)) or 'none'}")
            raise InputError(f"{plan} has no data called {name}", argument="data", remedy=hint)


def _engine(engine: Any, workers: int, devices: Sequence[str]) -> Any:
    from certcal.engines import LocalProcesses

    count = max(workers, len(devices))
    return engine if engine is not None or count == 1 else LocalProcesses(count)
