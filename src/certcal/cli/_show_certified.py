"""How certified values look in a terminal."""

from __future__ import annotations

import sys

from rich.text import Text

from certcal._text import printable
from certcal.cli._show import Output
from certcal.report.certificates import CertifiedLines, MethodsTable, summary_table
from certcal.report.results import CertifiedResults


def show_certified(results: CertifiedResults) -> None:
    """Print the table, the curves, the comparison, the sentences of the headline claim, and the conventions."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    console.print(Text(printable(results.source), style="bold"))
    console.print(Text(printable(results.description), style="dim"))
    console.print()
    if len(results.lines) == 1:
        console.print(summary_table(results.lines[0].summary))
    else:
        console.print(CertifiedLines(results.lines, results.by))
    console.print()
    if results.curves:
        from certcal.report.curves import RadiusCurves

        console.print(RadiusCurves(results.lines))
        console.print()
    if results.methods:
        console.print(MethodsTable(results.methods))
        console.print()
        console.print(
            Text(
                "Only the exact value is a certificate. Each other one is reached by some confidences inside the "
                "intervals, so the worst case may be larger than it says."
            )
        )
        console.print()
    console.print(Text("What is claimed", style="bold"))
    for sentence in results.claims:
        console.print(Text(printable(sentence)))
    console.print()
    console.print(Text(printable(results.notes), style="dim"))
