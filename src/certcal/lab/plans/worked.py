"""Plans that need no experiment: a worked example, and what all experiments of a paper take together."""

from __future__ import annotations

from typing import Literal

import numpy as np
from msgspec import Struct, field

from certcal.lab.plans import MODULES
from certcal.lab.plans.jobs import Job, all_jobs
from certcal.lab.plans.outcome import MISSING, Done, Number, OurTable, Outcome
from certcal.lab.plans.plan import Count, PaperPlan, Share, Whole, open_plan


class ExamplePart(Struct, frozen=True, forbid_unknown_fields=True):
    """Intervals of confidences, their correctness, one choice of confidences in each bin, and the number of bins."""

    lower: list[Share]
    upper: list[Share]
    correct: list[Whole]
    confidence: list[list[Share]]
    bins: Count


class BudgetPart(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of a list of costs: which work of which plans, on which networks."""

    row: str
    plans: list[str]
    work: Literal["train", "sample", "certify", "attack", "search"]
    networks: Literal["all", "baselines", "fine-tuned"] = "all"


class WorkedPlan(PaperPlan, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields of a plan of this kind: one of the two."""

    example: ExamplePart | None = None
    budget: list[BudgetPart] = field(default_factory=list[BudgetPart])


Settings = WorkedPlan


def outcome(plan: WorkedPlan, done: Done) -> Outcome:
    """The tables of the example, or of the costs."""
    del done
    return _example(plan.example) if plan.example is not None else _budget(plan)


def _example(given: ExamplePart) -> Outcome:
    """The variables of the mixed-integer program, as defined in section 3.3, and its largest value."""
    from certcal.worst_case import calibration_error

    edges = np.arange(given.bins + 1) / given.bins
    lower, upper, correct = np.array(given.lower), np.array(given.upper), np.array(given.correct)
    low = np.maximum(lower[:, None], edges[:-1])
    high = np.minimum(upper[:, None], edges[1:])
    blocked = low >= high
    gap = np.abs(correct[:, None] - np.where(blocked, 0.0, np.array(given.confidence)))
    values = {"l": low, "u": high, "k": blocked, "l'": np.where(blocked, 0.0, low), "u'": np.where(blocked, 0.0, high)}
    values["E"] = gap
    rows: dict[str, list[Number]] = {name: [float(x) for x in each.reshape(-1)] for name, each in values.items()}
    columns = [f"n={n + 1}, m={m + 1}" for n in range(len(lower)) for m in range(given.bins)]
    worst = calibration_error(lower, upper, correct, given.bins).value
    note = "Gaps E have no sign here, as in the paper; those of sample 2, which is wrong, are negative."
    tables = [OurTable("table", columns, rows, "variable", 4)]
    tables.append(OurTable("worst case", ["calibration error"], {"largest": [worst]}, "", 4))
    return Outcome(tables, [], [note])


def _budget(plan: WorkedPlan) -> Outcome:
    """Jobs and passes through networks of each entry; jobs that several plans share count once."""
    rows: dict[str, list[Number]] = {}
    for entry in plan.budget:
        own: dict[str, Job] = {}
        for name in entry.plans:
            opened = open_plan(name, given={"checkpoints": "published"})
            for job in all_jobs(job for _, job in MODULES[opened.kind]().planned(opened)):
                tuned = " from " in job.name
                fits = {"all": True, "baselines": not tuned, "fine-tuned": tuned}[entry.networks]
                if job.work.endswith(f".{entry.work}") and fits:
                    own[job.fingerprint] = job
        passes = [job.passes for job in own.values() if job.passes is not None]
        forward, backward = (sum(getattr(each, way) for each in passes) / 1e9 for way in ("forward", "backward"))
        rows[entry.row] = [MISSING, float(len(own)), forward, backward]
    columns = ["GPU hours", "jobs", "forward passes, 10^9", "backward passes, 10^9"]
    note = "Hours are those of the paper's GPUs (A40 and older); jobs and passes are those of the plans at full scale."
    return Outcome([OurTable("table", columns, rows, "work", 1)], [], [note])
