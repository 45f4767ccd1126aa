"""Plans about populations of models: rank correlations of their measurements, questions of a review, and searches."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from math import nan
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Struct, field

from certcal._base.checks import InputError
from certcal._base.json import plain
from certcal._base.text import capital
from certcal.lab.plans.jobs import Job, JobContext
from certcal.lab.plans.outcome import Done, Number, OurTable, Outcome, line_charts, table_of
from certcal.lab.plans.plan import OF_GROUP, Count, Floor, PaperPlan, Whole

_TABLE = "table.parquet"
_MOST_BYTES = 1 << 26
# Fields of a review's charts that are arrays.
_ARRAYS = ("x", "y", "colour", "values", "low", "high")


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


def planned(plan: StudyPlan) -> list[tuple[Any, Job]]:
    """What is asked of the table of all data sets, by the name of the subset."""
    if plan.notebook:
        source = {"notebook": plan.notebook, "sha256": _sha256(plan, plan.notebook), "columns": plan.columns}
        return [("", Job("study.correlate_printed", plan.name, source))]
    files = {data: [file, _sha256(plan, file)] for data, file in plan.tables.items()}
    table = Job("study.convert", f"table of {', '.join(files)}", {"files": files})
    asked: list[tuple[str, dict[str, Any]]]
    work = plan.layout if plan.layout in ("search", "question") else "correlate"
    if work == "search":
        asked = [("", {"options": {**plan.options, "budget": plan.budget, "repeats": plan.repeats}})]
    elif work == "question":
        asked = [("", {"number": plan.question, "options": {**plan.options, "resamples": plan.resamples}})]
    else:
        shared = {"columns": plan.columns, "across": plan.across}
        asked = [
            (each.name, {**shared, "most": each.most, "least": each.least, "models": each.models})
            for each in plan.subsets or [SubsetPart()]
        ]
    return [
        (name, Job(f"study.{work}", f"{plan.name}: {work}", {"table": table.fingerprint, **options}, (table,)))
        for name, options in asked
    ]


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
    from certcal.lab.study import FindingTable, review

    (found,) = review(_read(context, table), questions=number, **options).answers
    rows = [[each.name, each.value, each.low, each.high, each.n] for each in found.findings]
    charts = [[type(each).__name__, plain(vars(each))] for each in found.charts if not isinstance(each, FindingTable)]
    return {"answer": found.answer, "findings": rows, "cautions": list(found.cautions), "charts": charts}


def search(context: JobContext, *, table: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What searches for each objective find."""
    from certcal.lab.study import search as verb

    found = verb(_read(context, table), **options)
    return {"rows": [[each.objective, each.method, each.mean] for each in found.rows]}


def outcome(plan: StudyPlan, done: Done) -> Outcome:
    """The tables and charts of a plan's layout."""
    if plan.layout == "question":
        return _answer(done)
    if plan.layout == "lines":
        return _lines(plan, done)
    if plan.layout == "search":
        rows = {
            f"{plan.names.get(objective, objective)}{OF_GROUP}{plan.names.get(method, method)}": [
                100 * mean[key] for key in plan.columns.values()
            ]
            for _, result in done
            for objective, method, mean in result["rows"]
        }
        return Outcome([OurTable("table", [*plan.columns], rows, "searched for, method")])
    tables: list[OurTable] = []
    charts: list[Any] = []
    for name, result in done:
        for data, matrix in result["matrices"].items():
            rows = dict(zip(matrix["names"], matrix["values"], strict=True))
            alone = len(result["matrices"]) == 1 and not plan.notebook
            told = name if alone else data if len(plan.subsets) < 2 else f"{name}, {data}"
            tables.append(OurTable(told, matrix["names"], rows))
            charts.append(_heatmap(f"{told}: {matrix['models']:,} models", matrix))
    return Outcome(tables, charts)


def _heatmap(title: str, matrix: Mapping[str, Any]) -> Any:
    from certcal.report.charts import Chart, Heatmap

    values = [[nan if each is None else each for each in row] for row in matrix["values"]]
    return Chart(title, "Kendall's rank correlations.", [Heatmap(matrix["names"], values)])


def _answer(done: Done) -> Outcome:
    """What the review answers, with its charts."""
    if not done:
        return Outcome([])
    result = done[0][1]
    rows: dict[str, list[Number]] = {name: [*numbers] for name, *numbers in result["findings"]}
    table = OurTable("table", ["value", "low", "high", "models"], rows, "finding")
    charts = [_review_chart(kind, fields) for kind, fields in result["charts"]]
    return Outcome([table], charts, [result["answer"], *result["cautions"]])


def _review_chart(kind: str, fields: dict[str, Any]) -> Any:
    """A chart of a review out of its plain values, in which what is undefined is None."""
    from certcal.lab import study
    from certcal.lab.study.review_view import chart

    numbers = {key: np.array(value, float) for key, value in fields.items() if value and key in _ARRAYS}
    boxes = [{key: nan if entry is None else entry for key, entry in box.items()} for box in fields.get("boxes", ())]
    made = {"boxes": [SimpleNamespace(**box) for box in boxes]} if boxes else {}
    return chart(getattr(study, kind)(**{**fields, **numbers, **made}))


def _lines(plan: StudyPlan, done: Done) -> Outcome:
    """Correlations with one column, by number of models."""
    data, cells = next(iter(plan.tables)), dict[Any, Number]()
    for subset, result in done:
        matrix = result["matrices"][data]
        own = zip(matrix["names"], matrix["values"][matrix["names"].index(plan.against)], strict=True)
        cells |= {(name, subset): value for name, value in own if name != plan.against}
    title = f"correlation with {plan.against}"
    table = table_of("table", cells, [each.name for each in plan.subsets], title)
    drawn = {row: ([float(each) for each in table.columns], values) for row, values in table.rows.items()}
    return Outcome([table], line_charts(capital(title), drawn, "models", title, low=None))
