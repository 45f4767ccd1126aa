"""How searches of a table look in a terminal."""

from __future__ import annotations

import sys

from rich.table import Table
from rich.text import Text

from certcal._text import printable
from certcal.cli._show import Output
from certcal.report._old_terminal import frame
from certcal.report.numbers import number
from certcal.report.results import SearchedResults
from certcal.study.search import SearchComparison, SearchRow

_HEADERS = {
    **{"accuracy": "Acc", "ece": "ECE", "hcs_1": "HCS1", "hcs_2": "HCS2", "hcs_3": "HCS3"},
    **{"mmce": "MMCE", "ks_error": "KSCE"},
}


def show_searched(results: SearchedResults) -> None:
    """Print what was found in per cent, how far it is from the best that exists, and what the reader should know."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    found = results.comparison
    settings = found.settings
    judge = settings["judge"]
    console.print(Text(printable(results.source), style="bold"))
    searched = (
        f"{settings['architectures']:,} architectures on {settings['data']} ({settings['split']}); "
        f"{settings['repeats']:,} searches of {settings['budget']:,} evaluations each, seed {settings['seed']}"
    )
    console.print(Text(printable(searched), style="dim"))
    console.print()
    by = f", as measured on {judge['data']} ({judge['split']})" if judge else ""
    console.print(Text(printable(f"What was found{by}, in per cent: mean and spread over the searches"), style="bold"))
    console.print(_numbers(found))
    console.print()
    console.print(Text("How far from the best that exists", style="bold"))
    console.print(_regrets(found, judged=judge is not None))
    console.print()
    for note in found.notes:
        console.print(Text(printable(note), style="dim"))


def _numbers(found: SearchComparison) -> Table:
    table = frame()
    table.add_column("objective")
    table.add_column("method")
    for name in found.shown:
        table.add_column(_HEADERS[name], justify="right", no_wrap=True)
    for best in found.oracle:
        rows = [row for row in found.rows if row.objective == best.objective]
        for place, row in enumerate((*rows, best)):
            cells = [_cell(row, name) for name in found.shown]
            shown = printable(row.objective) if place == 0 else ""
            table.add_row(shown, row.method, *cells, end_section=place == len(rows))
    return table


def _cell(row: SearchRow, name: str) -> str:
    value, spread = 100 * row.mean[name], 100 * row.spread[name]
    text = "none" if value != value else f"{value:.2f}"
    return text if spread != spread else f"{text}\n±{spread:.2f}"


def _regrets(found: SearchComparison, *, judged: bool) -> Table:
    table = frame()
    for name in ("objective", "method"):
        table.add_column(name)
    for name in ("regret", "spread", "best found", *(["regret by the judge"] if judged else [])):
        table.add_column(name, justify="right")
    for row in found.rows:
        spread = "" if row.regret_spread != row.regret_spread else number(row.regret_spread)
        hits = f"{row.hits:,} of {found.settings['repeats']:,}"
        rest = [number(row.judged_regret)] if judged else []
        table.add_row(printable(row.objective), row.method, number(row.regret), spread, hits, *rest)
    return table
