"""How a comparison of robustness looks in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from certcal._text import printable
from certcal.claims import short_text
from certcal.cli._show import Output
from certcal.report._old_terminal import frame
from certcal.report.results import ComparedResults
from certcal.smoothing.robustness import WARNING, Compared, Comparison

QUANTILES = ((0.1, "10 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (0.9, "90 %"))


def show_compared(results: ComparedResults) -> None:
    """Print the legend, the tables, the verdict of each pair and what limits the comparison."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    found = results.comparison
    for source, run in zip(results.sources, found.runs, strict=True):
        console.print(Text(f"{run.name}  {printable(source)}", style="bold"))
        console.print(Text(f"   {_setting(run)}", style="dim"))
    console.print()
    console.print(Text("Certified accuracy", style="bold"))
    console.print(_accuracies(found))
    console.print()
    console.print(Text("Distribution of p_A (share of votes for the label, 0 where wrong)", style="bold"))
    console.print(_distributions(found.runs))
    console.print()
    if found.dominance:
        console.print(Text("Better whatever the setting?", style="bold"))
        for pair in found.dominance:
            console.print(Text(_capital(pair.sentence)))
        console.print()
    console.print(Text(f"* The average certified radius is shown because others print it; {WARNING}."))
    notes = [*(f"{run.name}: {note}" for run in found.runs for note in run.notes), *found.notes]
    if notes:
        console.print()
        for note in notes:
            console.print(Text(printable(note), style="dim"))


def _setting(run: Compared) -> str:
    low, high = run.draws
    draws = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    level = short_text(run.alpha, "upper")
    return f"{run.n:,} samples, {run.n_abstained:,} abstained; sigma {run.sigma:g}, {draws} draws, alpha {level}"


def _accuracies(found: Comparison) -> Table:
    table = _columns("radius", found.runs)
    several = len(found.runs) > 1
    if several:
        table.add_column("best", justify="right")
        table.add_column("of")
    for i, radius in enumerate(found.best.at):
        best = [found.best.texts[i], _who(found.best.names[i], len(found.runs))] if several else []
        last = i == len(found.best.at) - 1
        table.add_row(short_text(radius, "lower"), *(run.curve.texts[i] for run in found.runs), *best, end_section=last)
    averages = [run.average for run in found.runs]
    table.add_row("average radius*", *(f"{average.value:.4f}" for average in averages))
    table.add_row("  from a tenth of all", *(_percent(average.top_tenth) for average in averages))
    trivial = [average.trivial for average in averages]
    table.add_row("  of always one class", *("" if value is None else f"{value:.4f}" for value in trivial))
    return table


def _who(names: Sequence[str], count: int) -> str:
    return "all" if len(names) == count else ", ".join(names)


def _distributions(runs: Sequence[Compared]) -> Table:
    table = _columns("quantile", runs)
    for quantile, text in QUANTILES:
        table.add_row(text, *(f"{float(run.distribution.quantile(quantile)):.4f}" for run in runs))
    table.add_section()
    for p in (0.5, 0.9, 0.99):
        shares = [run.distribution.survival(p) for run in runs]
        cells = [_bracket(float(low), float(high)) for low, high in shares]
        table.add_row(f"share with p_A >= {p:g}", *cells)
    return table


def _percent(share: float) -> str:
    return "undefined" if share != share else f"{100 * share:.1f} %"


def _bracket(low: float, high: float) -> str:
    texts = [f"{value:.4f}" for value in (low, high)]
    return texts[0] if texts[0] == texts[1] else " - ".join(texts)


def _columns(first: str, runs: Sequence[Compared]) -> Table:
    table = frame()
    table.add_column(first, min_width=20)
    for run in runs:
        table.add_column(run.name, justify="right")
    return table


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
