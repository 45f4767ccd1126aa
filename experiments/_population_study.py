"""From the logits of a population to its table, its review and its searches."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _population_train import AGAIN, EARLY, Job, record_of

from certcal import Predictions
from certcal.engines import Engine
from certcal.lab.study import Benchmark, Entry, StudyReview, StudySearch, StudyTable, measure, review
from certcal.lab.study import search as search_table

ROBUST = ("noise_accuracy", "blur_accuracy", "fgsm_accuracy", "pgd_accuracy")
EDGES = tuple(f"edge_{1 + edge}" for edge in range(6))
WIDTHS = tuple(f"width_{1 + layer}" for layer in range(5))
SIZES = {"topology": ("params", "multiply_adds"), "size": ("kernels", "params", *WIDTHS)}
OBJECTIVES = ("accuracy", "ece", "hcs_1", "hcs_2", "hcs_3")
FIRST, SECOND = "first half", "second half"


@dataclass(frozen=True, eq=False)
class Population:
    """What is known about the networks of one space."""

    space: str
    table: StudyTable
    halves: StudyTable
    reviewed: StudyReview
    early: StudyReview
    records: list[dict[str, Any]]


def finished(jobs: Sequence[Job], out: Path) -> list[Job]:
    """The trainings of architectures of which every training was done or has failed."""
    waiting = {(job.space, job.number, job.repeat) for job in jobs if record_of(job, out) is None}
    return [job for job in jobs if (job.space, job.number, job.repeat) not in waiting]


def list_models(jobs: Sequence[Job], out: Path, manifest: Path) -> None:
    """Write the manifest of a study: a row per network and stage, with what is known about it."""
    rows = [row for job in jobs for row in _rows(job, out)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    with manifest.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _rows(job: Job, out: Path) -> Iterator[dict[str, Any]]:
    record = record_of(job, out)
    assert record is not None
    good = record["status"] == "ok"
    known: dict[str, Any] = {"model": job.model, "data": job.data, "reason": record["reason"]}
    if job.space == "topology":
        known |= dict(zip(EDGES, job.operations, strict=True))
    else:
        known |= dict(zip(WIDTHS, job.widths, strict=True)) | {"kernels": sum(job.widths)}
    known |= {name: record[name] for name in ("params", "multiply_adds") if name in record}
    whole = {name: record.get(name, "") for name in ("train_accuracy", *ROBUST)}
    whole |= {f"ood:{name}": f"ood-{name}/{job.name}.npz" if good else "" for name in ("noisy", "other")}
    if job.repeat:
        yield {**known, "split": AGAIN, "predictions": f"test/{job.name}.npz" if good else ""}
        return
    for stage in ("test", EARLY):
        file = f"{stage}/{job.name}.npz" if good else ""
        yield {**known, "split": stage, "predictions": file, **(whole if stage == "test" else {})}


def half_by_half(jobs: Sequence[Job], out: Path) -> Iterator[Entry]:
    """Every network twice, on one half of the test images and on the other."""
    for job in jobs:
        record = record_of(job, out)
        if job.repeat or record is None or record["status"] != "ok":
            continue
        with np.load(out / "test" / f"{job.name}.npz") as file:
            whole = Predictions.from_logits(file["logits"], file["labels"])
        order = np.random.default_rng([0, 2]).permutation(len(whole))  # the same halves for every network
        middle = len(whole) // 2
        for split, rows in ((FIRST, order[:middle]), (SECOND, order[middle:])):
            yield Entry(job.model, whole.select(np.sort(rows)), job.data, split)


def study(space: str, jobs: Sequence[Job], out: Path, engine: Engine, resamples: int) -> Population:
    """Measure and review the networks of a space."""
    own = [job for job in jobs if job.space == space]
    manifest = out / f"{space}.csv"
    list_models(own, out, manifest)
    table = measure(manifest, out=out / f"{space}.parquet", engine=engine).table
    halves = measure(half_by_half(own, out), out=out / f"{space}-halves.parquet", engine=engine, bins=[15]).table
    settings: dict[str, Any] = {"sizes": SIZES[space], "robustness": ROBUST, "resamples": resamples}
    if space == "topology":
        settings["architecture"] = EDGES
    reviewed = review(table, split="test", **settings)
    records = [record for job in own if (record := record_of(job, out)) is not None]
    return Population(space, table, halves, reviewed, review(table, split=EARLY, **settings), records)


def search(population: Population, data: str, budget: int, repeats: int) -> StudySearch:
    """Table 1's searches: on one half of the test images, judged on the other."""
    table = population.halves
    where = Benchmark(table, space=population.space, data=data, split=FIRST)
    judge = Benchmark(table, space=population.space, data=data, split=SECOND)
    return search_table(where, objectives=OBJECTIVES, budget=budget, repeats=repeats, judge=judge)
