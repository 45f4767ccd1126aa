"""Tables and figures of a population."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _population_data import NAMES
from _population_study import FIRST, SECOND, Population
from _population_train import AGAIN, EARLY
from _running import markdown

from certcal.claims import round_outward
from certcal.lab.study import Finding, FindingTable, Lines, QuestionAnswer, StudySearch, StudyTable
from certcal.lab.study._resampling import Resampling

SHOWN = {"accuracy": "Acc", "ece": "ECE", "hcs_1": "HCS₁", "hcs_2": "HCS₂", "hcs_3": "HCS₃", "mmce": "MMCE"}
SHOWN |= {"ks_error": "KSCE"}
STAGES = {"test": "whole", EARLY: "early"}


def interval(found: Finding) -> str:
    """A number with its interval, whose ends are rounded outward."""
    unsigned = found.name.partition(": ")[2].startswith(("share", "median", "growth"))
    sign = "" if unsigned else "+"
    text = f"{found.value:{sign}.2f}"
    if np.isfinite(found.low):
        ends = (round_outward(found.low, "lower", 2), round_outward(found.high, "upper", 2))
        low, high = (end if end.startswith("-") else sign + end for end in ends)
        text += f" [{low}, {high}]"
    return text.replace("-", "−")


def sizes(population: Population) -> list[list[str]]:
    """Rows of the first table: who was trained, how well, how calibrated."""
    rows: list[list[str]] = []
    for stage, name in STAGES.items():
        for data in population.table.datasets:
            table = population.table.where(data=data, split=stage)
            failed = int(((population.table["data"] == data) & (population.table["split"] == stage)).sum()) - len(table)
            rows.append(
                [
                    population.space,
                    NAMES[data],
                    name,
                    f"{len(table)}" + (f" ({failed} failed)" if failed else ""),
                    _range(table["accuracy"]),
                    f"{100 * np.median(table['train_accuracy']):.1f}" if stage == "test" else "",
                    _range(table["pre_ece_15"]),
                    _range(table["post_ece_15"]),
                    f"{np.median(table['temperature']):.2f}",
                ]
            )
    return rows


SIZES = ("space", "data", "training", "networks", "accuracy", "on training images", "ECE before", "ECE after", "T")


def _range(values: Any) -> str:
    low, middle, high = 100 * np.quantile(values, [0.1, 0.5, 0.9])
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"


def findings(answer: QuestionAnswer, datasets: Sequence[str], *where: str) -> list[list[str]]:
    """The numbers of an answer as rows: a column per data set where they are of one each."""
    names: dict[str, dict[str, str]] = {}
    for found in answer.findings:
        data, colon, what = found.name.partition(": ")
        if not (colon and data in datasets):
            data, what = "", found.name
        names.setdefault(what, {})[data] = interval(found)
    return [[*where, what, *(found.get(data, "") for data in ("", *datasets))] for what, found in names.items()]


def rank_noise(populations: Iterable[Population]) -> str:
    """How far the order of the networks repeats itself, on other test images and with other random numbers."""
    how = Resampling()
    rows: list[list[str]] = []
    for population in populations:
        for data in population.table.datasets:
            row = [population.space, NAMES[data]]
            for table, first, second in ((population.halves, FIRST, SECOND), (population.table, "test", AGAIN)):
                for column in ("pre_ece_15", "post_ece_15", "accuracy"):
                    row.append(_repeats(table, data, column, first, second, how))
            rows.append(row)
    images = "other test images"
    return markdown(
        ["space", "data", *(f"{images}: {each}" for each in _COLUMNS), *(f"other seed: {each}" for each in _COLUMNS)],
        rows,
    )


_COLUMNS = ("ECE before", "ECE after", "accuracy")


def _repeats(table: StudyTable, data: str, column: str, first: str, second: str, how: Resampling) -> str:
    if second not in table.splits:
        return ""
    one, other = (table.where(data=data, split=split) for split in (first, second))
    known = dict(zip(one["model"].tolist(), one[column].tolist(), strict=True))
    pairs = [
        (known[model], value)
        for model, value in zip(other["model"].tolist(), other[column].tolist(), strict=True)
        if model in known
    ]
    if len(pairs) < 3:
        return ""
    x, y = np.array(pairs).T
    found = how.correlation("", np.ascontiguousarray(x), np.ascontiguousarray(y), tag=f"{column} {data} {second}")
    return f"{interval(found)} of {found.n}"


def searched(data: str, found: StudySearch) -> str:
    """Table 1's layout, in per cent: mean over the searches, standard deviation in brackets."""
    rows: list[list[str]] = []
    best = {row.objective: row for row in found.oracle}
    for row in found.rows:
        cells = [f"{100 * row.mean[name]:.2f} ({100 * row.spread[name]:.2f})" for name in found.shown]
        hits = f"{row.hits} of {found.settings['repeats']}"
        rows.append([row.objective, row.method, *cells, f"{100 * row.judged_regret:.2f}", hits])
        if row.method == list(dict.fromkeys(each.method for each in found.rows))[-1]:
            last = best[row.objective]
            cells = [f"{100 * last.mean[name]:.2f}" for name in found.shown]
            rows.append([row.objective, "the best there is", *cells, f"{100 * last.judged_regret:.2f}", ""])
    head = ["objective", "method", *(SHOWN[name] for name in found.shown), "regret", "best found"]
    settings = found.settings
    words = (
        f"{NAMES[data]}, {settings['architectures']} architectures, {settings['repeats']} searches of "
        f"{settings['budget']} evaluations each:"
    )
    notes = "".join(f"\n\n{note}" for note in found.notes)
    return f"{words}\n\n{markdown(head, rows)}{notes}"


def spent(populations: Sequence[Population]) -> str:
    """How long the trainings took."""
    seconds = [record["seconds"] for population in populations for record in population.records]
    return (
        f"{len(seconds)} trainings with all that is measured on the networks took {sum(seconds) / 3600:.1f} hours of "
        f"two processes, {np.median(seconds):.1f} s each in the middle (other work shared the two cores)."
    )


def page(populations: Sequence[Population], searches: dict[str, StudySearch]) -> str:
    """All tables."""
    parts = ["### The networks", markdown(SIZES, [row for each in populations for row in sizes(each)])]
    parts += [spent(populations), "### How far the order of the networks repeats itself", rank_noise(populations)]
    datasets = list(populations[0].reviewed.datasets)
    rows: list[list[str]] = []
    for population in populations:
        for answer in population.reviewed:
            if (population.space, answer.number) in FIGURES:
                rows += findings(answer, datasets, population.space, str(answer.number), "whole")
        rows += findings(population.early.answers[5], datasets, population.space, "6", "early")
    head = ["space", "question", "training", "finding", "between data sets", *(NAMES[data] for data in datasets)]
    parts += ["### Answers to the questions", "All findings:", markdown(head, rows)]
    if searches:
        parts.append("### Search, on one half of the test images, judged on the other")
        parts += [searched(data, found) for data, found in searches.items()]
    return "\n\n".join(part for part in parts if part)


# How many charts of each question are drawn.
FIGURES = {("topology", 1): 2, ("topology", 2): 1, ("topology", 3): 1, ("topology", 4): 1, ("topology", 5): 2}
FIGURES |= {("topology", 6): 2, ("topology", 7): 1, ("size", 1): 0, ("size", 4): 0, ("size", 5): 0, ("size", 6): 0}
FIGURES |= {("size", 7): 1}


def draw(population: Population, folder: Path, shown: str) -> None:
    """The charts of the questions, those of one data set where there is one for each."""
    import matplotlib as mpl

    from certcal.lab.study.review_view import chart as declared

    mpl.rcParams["svg.hashsalt"] = "certcal"
    folder.mkdir(parents=True, exist_ok=True)
    for answer in population.reviewed:
        most = FIGURES.get((population.space, answer.number), 0)
        charts = [
            chart
            for chart in answer.charts
            if not isinstance(chart, FindingTable) and (answer.number == 1 or chart.title.startswith(f"{shown}: "))
        ]
        for number, chart in enumerate(charts[:most], start=1):
            name = f"population-{population.space}-{answer.number}-{number}.svg"
            made = _without_metrics(chart) if isinstance(chart, Lines) else chart
            declared(made).figure().savefig(folder / name, metadata={"Date": None})


def _without_metrics(chart: Lines) -> Lines:
    """The lines of accuracies and areas; other metrics of calibration have their own matrix."""
    kept = [place for place, name in enumerate(chart.names) if name.startswith("auroc_") or "accuracy" in name]
    names = tuple(chart.names[place] for place in kept)
    return replace(chart, names=names, values=chart.values[kept], low=chart.low[kept], high=chart.high[kept])
