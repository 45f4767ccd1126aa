"""Which search finds what: the words and the layout of a StudySearch."""

from __future__ import annotations

from collections.abc import Sequence

from certcal.lab.study import SearchRow, StudySearch
from certcal.report.charts import Chart, Line, Mark, Panel, covering, named_axis, whiskers
from certcal.report.document import Block, Cell, Claim, Column, Heading, Listing, Report, Section, Table
from certcal.report.numbers import number

_HEADS = {
    **{"accuracy": "Acc", "ece": "ECE", "hcs_1": "HCS1", "hcs_2": "HCS2", "hcs_3": "HCS3"},
    **{"mmce": "MMCE", "ks_error": "KSCE"},
}


def view(found: StudySearch) -> Report:
    """The report of searches."""
    settings = found.settings
    judge = settings["judge"]
    first = sorted((row for row in found.rows if row.objective == found.rows[0].objective), key=lambda row: row.regret)
    regrets = [f"{first[0].method} has the smallest mean regret, {_with_spread(first[0])}"]
    regrets += [f"{row.method}, has {_with_spread(row)}" for row in first[1:2]]
    searches = f"{settings['repeats']:,} search{'es' if settings['repeats'] > 1 else ''}"
    claim = Claim(
        "Estimate",
        f"Searching for {first[0].objective}, {'; the next, '.join(regrets)}.",
        probability=f"Means and standard deviations over {searches}; estimates, not guarantees about others.",
        meaning="Regret is how far the objective of what was found is from the best in the table.",
    )
    by = f" Measured on {judge['data']} ({judge['split']})." if judge else ""
    blocks: list[Block] = [_numbers(found, f"In per cent: mean and standard deviation over the searches.{by}")]
    drawn = charts(found)
    return Report(
        "Which search finds the best architecture?",
        [claim],
        [
            Section("Architectures found", blocks, brief=True),
            Section("Distance from the best", _regrets(found, judged=judge is not None), brief=True),
            Section("Regret by method", drawn, pictured=True),
        ],
        [Section("Claims in full", [Listing([row.sentence for row in found.claims()], 1000)])],
        found.source,
        f"{settings['architectures']:,} architectures on {settings['data']} ({settings['split']}); {searches} of "
        f"{settings['budget']:,} evaluations each, seed {settings['seed']}",
        found.notes,
        picture=drawn,
    )


def charts(found: StudySearch) -> Sequence[Chart]:
    """Mean regret of each method, objective by objective."""
    objectives = [row.objective for row in found.oracle]
    methods = list(dict.fromkeys(row.method for row in found.rows))
    marks: list[Mark] = []
    for place, method in enumerate(methods):
        rows = [row for row in found.rows if row.method == method]
        xs = [objectives.index(row.objective) + (place + 1) / (len(methods) + 1) for row in rows]
        ends = [(max(0.0, row.regret - row.regret_spread), row.regret + row.regret_spread) for row in rows]
        marks.append(whiskers(xs, [low for low, _ in ends], [high for _, high in ends]))
        marks += [Line([x], [row.regret], place, method) for x, row in zip(xs, rows, strict=True)]
    heights = [value for row in found.rows for value in (row.regret, row.regret + row.regret_spread)]
    panel = Panel(named_axis(objectives, "objective"), covering(heights, "regret"), marks)
    said = "Points are means over the searches, whiskers one standard deviation."
    return [Chart("Regret by method", "Mean distance from the best of each method and objective.", [panel], said)]


def _numbers(found: StudySearch, note: str) -> Table:
    columns = [Column("method"), *(Column(_HEADS[name], "percent") for name in found.shown)]
    rows: list[Sequence[Cell] | Heading] = []
    for best in found.oracle:
        rows.append(Heading(f"objective: {best.objective}"))
        for row in (*(each for each in found.rows if each.objective == best.objective), best):
            rows.append([row.method, *(_mean(row, name) for name in found.shown)])
            if any(row.spread[name] == row.spread[name] for name in found.shown):
                rows.append(["", *(_spread(row, name) for name in found.shown)])
    return Table(columns, rows, note=note, most=10_000)


def _with_spread(row: SearchRow) -> str:
    return number(row.regret) + ("" if row.regret_spread != row.regret_spread else f" ± {number(row.regret_spread)}")


def _mean(row: SearchRow, name: str) -> str:
    value = 100 * row.mean[name]
    return "none" if value != value else f"{value:.2f}"


def _spread(row: SearchRow, name: str) -> str:
    value = 100 * row.spread[name]
    return "" if value != value else f"±{value:.2f}"


def _regrets(found: StudySearch, *, judged: bool) -> Table:
    columns = [Column("objective"), Column("method"), Column("regret", "estimate"), Column("spread", "estimate")]
    columns += [Column("best found"), *([Column("regret by the judge", "estimate")] if judged else [])]
    rows = [
        [
            row.objective,
            row.method,
            row.regret,
            "" if row.regret_spread != row.regret_spread else row.regret_spread,
            f"{row.hits:,} of {found.settings['repeats']:,}",
            *([row.judged_regret] if judged else []),
        ]
        for row in found.rows
    ]
    return Table(columns, rows, most=10_000)
