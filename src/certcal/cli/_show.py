"""How results look in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from rich.console import Console
from rich.text import Text

from certcal._text import printable
from certcal.claims import short_text
from certcal.report._old_terminal import ReliabilityDiagram, comparison, metrics_table
from certcal.report.numbers import INTERVALS
from certcal.report.results import BRACKETS, MeasuredResults


class Output(Console):
    """Standard output. A reader that goes away is the caller's business, not a reason to exit here."""

    def on_broken_pipe(self) -> NoReturn:
        """Pass the error on."""
        raise BrokenPipeError


def show(
    results: MeasuredResults,
    *,
    diagram: bool = True,
    explain: bool = False,
    closing: Sequence[tuple[str, str]] = (),
) -> None:
    """Print the tables, the diagram, the conventions and closing paragraphs under their headings."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    console.print(Text(printable(results.source), style="bold"))
    console.print(Text(printable(results.description), style="dim"))
    console.print()
    whole = results.whole
    if results.parts:
        named = [("all", whole.rows), *((part.name, part.rows) for part in results.parts)]
        console.print(comparison(named, console.width, results.by or "group"))
    else:
        console.print(metrics_table(whole.rows))
    console.print()
    if diagram:
        console.print(ReliabilityDiagram(whole.reliability))
        console.print()
    if results.bounds:
        from certcal.report.bounds import bound_sentences

        for sentence in bound_sentences(results.bounds):
            console.print(Text(sentence))
        console.print()
    if explain:
        for row in whole.rows:
            console.print(Text(row.sentence), style="dim")
        console.print()
    console.print(Text(_conventions(results), style="dim"))
    for heading, paragraph in closing:
        console.print()
        console.print(Text(heading, style="bold"))
        console.print(Text(paragraph))


def _conventions(results: MeasuredResults) -> str:
    text = f"Bins are {BRACKETS[str(results.conventions['closed'])]}. Estimates from these samples, not guarantees."
    if results.conventions.get("bootstrap"):
        without = results.conventions.get("without_interval", ())
        if any(row.interval is not None for row in results.whole.rows):
            text += (
                f" Intervals: {short_text(results.conventions['level'], 'lower')} {results.conventions['method']} "
                f"bootstrap, {results.conventions['bootstrap']:,} resamples, seed {results.conventions['seed']}. "
                f"{INTERVALS}"
            )
        if without:
            text += f"\nWithout an interval, for which all rows must fit in memory: {', '.join(without)}."
    return text
