"""How bounds look in a terminal."""

from __future__ import annotations

import sys

from rich.text import Text

from certcal._text import printable
from certcal.cli._show import Output
from certcal.report.bounds import BoundTerms, bound_name
from certcal.report.results import BoundedResults


def show_bounds(results: BoundedResults) -> None:
    """Print each bound with its terms, what each claims and assumes, and what holds for all."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    console.print(Text(printable(results.source), style="bold"))
    console.print(Text(printable(results.description), style="dim"))
    console.print()
    console.print(BoundTerms(results.bounds))
    console.print()
    console.print(Text("What is claimed", style="bold"))
    for method, bound in results.bounds.items():
        name = bound_name(method)
        console.print(Text(printable(f"{name[:1].upper()}{name[1:]}: {bound.sentence}")))
    console.print()
    console.print(Text(printable(results.notes), style="dim"))
