"""How attacks look in a terminal."""

from __future__ import annotations

import sys

from rich.text import Text

from certcal._text import printable
from certcal.cli._show import Output
from certcal.report.attacks import SmallDiagrams, attack_table
from certcal.report.results import AttackedResults


def show_attacked(results: AttackedResults, *, diagram: bool = True) -> None:
    """Print the table, the diagrams without and under the strongest attack, and what was found."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    console.print(Text(printable(results.source), style="bold"))
    console.print(Text(printable(results.description), style="dim"))
    console.print()
    console.print(attack_table(results, console.width))
    console.print()
    if diagram:
        strongest = results.strongest
        same = [line for line in results.by_epsilon[strongest.epsilon_text] if line is not strongest]
        console.print(SmallDiagrams(results.clean, [strongest, *same]))
        console.print()
    console.print(Text("What was found", style="bold"))
    console.print(Text(printable(" ".join(results.claims))))
    console.print()
    console.print(Text(printable(results.notes), style="dim"))
