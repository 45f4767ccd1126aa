"""Plans about populations of models: rank correlations of their measurements, questions of a review, and searches."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Struct, field

from certcal._base.checks import InputError
from certcal.lab.plans.jobs import Job, JobContext
from certcal.lab.plans.outcome import Number, OurTable, Outcome
from certcal.lab.plans.plan import OF_GROUP, Count, Floor, PaperPlan, Whole

_TABLE = "table.parquet"
_MOST_BYTES = 1 << 26


class SubsetPart(Struct, frozen=True, forbid_unknown_fields=True):
    """Some of the models: so many of the most or of the least accurate ones, or all."""

    name: str = "table"
    """Of the table of these models."""
    most: Whole = 0
    least: Whole = 0
    models: str = ""
    """Only models with such names: a pattern such as "*-focal"."""


class StudyPlan(PaperPlan, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields of a plan of this kind."""

    layout: Literal["matrix", "lines", "question", "search"] = "matrix"
    tables: dict[str, str] = field(default_factory=dict[str, str])
    """Files by data set: released tables, or tables of ``certcal study measure``."""
    notebook: str = ""
    """A notebook that prints the measurements, instead of tables."""
    columns: dict[str, str] = field(default_factory=dict[str, str])
    """Columns by the names under which they are printed."""
    across: bool = False
    """One matrix of all columns on all data sets, instead of one per data set."""
    against: str = ""
    """Correlations with this column alone, over subsets."""
    subsets: list[SubsetPart] = field(default_factory=list[SubsetPart])
    names: dict[str, str] = field(default_factory=dict[str, str])
    """Under which names objectives and methods of a search are printed."""
    question: Whole = 0
    """Of the review, counted from 1."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Other arguments of the review or search."""
    resamples: Annotated[Count, Floor(20)] = 200
    budget: Annotated[Count, Floor(3)] = 100
    repeats: Annotated[Count, Floor(2)] = 20


Settings = StudyPlan


def jobs(plan: StudyPlan) -> list[Job]:
    """The table of all data sets, and what is asked of it."""
    if plan.notebook:
        source = {"notebook": plan.notebook, "sha256": _sha256(plan, plan.notebook)}
        return [Job("study.correlate_printed", plan.name, {**source, "columns": plan.columns})]
    files = {data: [file, _sha256(plan, file)] for data, file in plan.tables.items()}
    table = Job("study.convert", f"table of {', '.join(files)}", {"files": files})
    return [
        Job(f"study.{work}", f"{plan.name}: {work}", {"table": table.fingerprint, **asked}, (table,))
        for work, asked in _wanted_parts(plan)
    ]


def _wanted_parts(plan: StudyPlan) -> Iterator[tuple[str, dict[str, Any]]]:
    if plan.layout == "search":
        yield "search", {"options": {**plan.options, "budget": plan.budget, "repeats": plan.repeats}}
    elif plan.layout == "question":
        yield "question", {"number": plan.question, "options": {**plan.options, "resamples": plan.resamples}}
    else:
        for subset in plan.subsets or [SubsetPart()]:
            part = {"most": subset.most, "least": subset.least, "models": subset.models}
            yield "correlate", {"columns": plan.columns, "across": plan.across, **part}


def _sha256(plan: StudyPlan, name: str) -> str:
    needed = "; ".join(plan.needs.values())
    if "data" not in plan.given:
        raise InputError(f"{plan.name} needs {needed}", argument="data", remedy="name its folder")
    path = Path(plan.given["data"], name)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file", argument="data", remedy=f"bring {needed}")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def convert(context: JobContext, *, files: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """One table of all data sets."""
    from certcal.lab import study

    tables: list[study.StudyTable] = []
    for data, (file, _) in files.items():
        path = Path(context.given["data"], file)
        one = study.StudyTable.read(path) if path.suffix == ".parquet" else study.convert(path, data=data).table
        tables.append(one.where(data=data))
    whole = study.stack(tables)
    whole.write(context.folder / _TABLE)
    return {"rows": len(whole)}


def _read(context: JobContext, table: str) -> Any:
    from certcal.lab.study import StudyTable

    return StudyTable.read(context.folder_of(table) / _TABLE)


def correlate(
    context: JobContext, *, table: str, columns: Mapping[str, str], across: bool, most: int, least: int, models: str
) -> dict[str, Any]:
    """Kendall's rank correlations of columns, of one data set each or of all together."""
    whole = _read(context, table)
    names = [name for name in columns.values() if name not in whole]
    if names:
        raise InputError(f"the tables have no column {names[0]!r}; check the plan's columns")
    if models:
        whole = whole.select(np.array([fnmatchcase(name, models) for name in whole["model"].tolist()]))
    sheets = {data: _by_accuracy(whole.where(data=data), most, least) for data in whole.datasets}
    if not across:
        return {"matrices": {data: _matrix(columns, one.numbers([*columns.values()])) for data, one in sheets.items()}}
    own: list[set[str]] = [set(one["model"].tolist()) for one in sheets.values()]
    common = sorted(own[0].intersection(*own[1:]))
    heads: list[str] = []
    values: list[Any] = []
    for data, one in sheets.items():
        place = {model: row for row, model in enumerate(one["model"].tolist())}
        heads += [f"{name}_{data}" for name in columns]
        values.append(one.numbers([*columns.values()])[[place[model] for model in common]])
    return {"matrices": {"all": _matrix(heads, np.concatenate(values, axis=1))}}


def _by_accuracy(table: Any, most: int, least: int) -> Any:
    order = np.argsort(table["accuracy"], kind="stable")
    return table if not (most or least) else table.select(order[-most:] if most else order[:least])


def _matrix(names: Any, values: Any) -> dict[str, Any]:
    from certcal.lab.study import kendall_matrix

    found = kendall_matrix(values)
    cells = [[None if np.isnan(each) else float(each) for each in row] for row in found]
    return {"names": [*names], "values": cells, "models": len(values)}


def correlate_printed(context: JobContext, *, notebook: str, sha256: str, columns: Mapping[str, str]) -> dict[str, Any]:
    """Rank correlations of the measurements that a notebook prints, data set by data set."""
    del sha256
    frames = printed_frames(Path(context.given["data"], notebook))
    return {
        "matrices": {
            data: _matrix(columns, np.array([frame[name] for name in columns.values()]).T)
            for data, frame in frames.items()
            if all(name in frame for name in columns.values())
        }
    }


def printed_frames(path: Path) -> dict[str, dict[str, list[float]]]:
    """Frames of numbers that the cells of a notebook print, by the line above each: columns by name."""
    content = path.read_bytes()[: _MOST_BYTES + 1]
    try:
        cells = json.loads(content)["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", []) if "text" in output]
        lines = [line for output in outputs for line in "".join(output["text"]).splitlines()]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: this is no notebook; give one with its outputs") from None
    frames: dict[str, dict[str, list[float]]] = {}
    title, head = "", list[str]()
    for line in lines:
        fields = line.split()
        numbers = [field for field in fields if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", field)]
        if len(fields) == 1 and not numbers:
            title, head = fields[0], []
        elif title and not head and fields and not numbers:
            head = fields
        elif head and len(numbers) == len(fields) == len(head) + 1:
            for name, field in zip(head, fields[1:], strict=True):
                frames.setdefault(title, {}).setdefault(name, []).append(float(field))
        else:
            title, head = "", []
    return frames


def question(context: JobContext, *, table: str, number: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """What a review answers to one of its questions."""
    from certcal.lab.study import review

    (found,) = review(_read(context, table), questions=number, **options).answers
    rows = [[each.name, each.value, each.low, each.high, each.n] for each in found.findings]
    return {"answer": found.answer, "findings": rows, "cautions": list(found.cautions)}


def search(context: JobContext, *, table: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What searches for each objective find."""
    from certcal.lab.study import search as verb

    found = verb(_read(context, table), **options)
    return {"rows": [[each.objective, each.method, each.mean] for each in found.rows]}


def outcome(plan: StudyPlan, found: Mapping[str, Any]) -> Outcome:
    """The tables and charts of a plan's layout."""
    results = [found[job.fingerprint] for job in jobs(plan) if job.fingerprint in found]
    names = [subset.name for subset in plan.subsets or [SubsetPart()]]
    if not results:
        return Outcome([])
    if plan.layout == "question":
        rows: dict[str, list[Number]] = {name: [*numbers] for name, *numbers in results[0]["findings"]}
        table = OurTable("table", ["value", "low", "high", "models"], rows, "finding")
        return Outcome([table], [], [results[0]["answer"], *results[0]["cautions"]])
    if plan.layout == "search":
        rows = {
            f"{plan.names.get(objective, objective)}{OF_GROUP}{plan.names.get(method, method)}": [
                100 * mean[key] for key in plan.columns.values()
            ]
            for objective, method, mean in results[0]["rows"]
        }
        return Outcome([OurTable("table", [*plan.columns], rows, "searched for, method")])
    if plan.layout == "lines":
        return _lines(plan, names, results)
    tables: list[OurTable] = []
    charts: list[Any] = []
    for name, result in zip(names, results, strict=True):
        for data, matrix in result["matrices"].items():
            rows = dict(zip(matrix["names"], matrix["values"], strict=True))
            alone = len(result["matrices"]) == 1 and not plan.notebook
            told = name if alone else data if len(names) == 1 else f"{name}, {data}"
            tables.append(OurTable(told, matrix["names"], rows))
            charts.append(_heatmap(f"{told}: {matrix['models']:,} models", matrix))
    return Outcome(tables, charts)


def _heatmap(title: str, matrix: Mapping[str, Any]) -> Any:
    from certcal.report.charts import Chart, Heatmap

    values = [[float("nan") if each is None else each for each in row] for row in matrix["values"]]
    return Chart(title, "Kendall's rank correlations.", [Heatmap(matrix["names"], values)])


def _lines(plan: StudyPlan, names: Sequence[str], results: Sequence[Any]) -> Outcome:
    """Correlations with one column, by subset."""
    data = next(iter(plan.tables))
    rows: dict[str, list[Number]] = {}
    for result in results:
        matrix = result["matrices"][data]
        own = matrix["values"][matrix["names"].index(plan.against)]
        for name, value in zip(matrix["names"], own, strict=True):
            if name != plan.against:
                rows.setdefault(name, []).append(value)
    return Outcome([OurTable("table", [*names][: len(results)], rows, f"correlation with {plan.against}")])
