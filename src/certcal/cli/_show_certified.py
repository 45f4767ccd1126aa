"""How certified values look in a terminal."""

from __future__ import annotations

import sys

from rich.text import Text

from certcal.cli._certified import CertifiedResults
from certcal.cli._results import BRACKETS
from certcal.cli._show import Output
from certcal.report._text import printable
from certcal.report.certificates import CertifiedLines, Line, MethodsTable, summary_table, terms_text


def show_certified(results: CertifiedResults) -> None:
    """Print the table, the comparison, the sentences of the headline claim, and the conventions."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    console.print(Text(printable(results.source), style="bold"))
    console.print(Text(printable(_description(results)), style="dim"))
    console.print()
    whole = [line for line in results.lines if line.group is None]
    if len(results.lines) == 1:
        console.print(summary_table(results.lines[0].summary))
    else:
        console.print(CertifiedLines(results.lines, results.layout.group))
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
    for sentence in _claims(whole[-1], with_terms=len(results.lines) > 1):
        console.print(Text(printable(sentence)))
    console.print()
    console.print(Text(_conventions(results), style="dim"))


def _description(results: CertifiedResults) -> str:
    count = f"{results.n:,} {'row' if results.n == 1 else 'rows'}"
    if len(results.lines) == 1:
        summary, radius = results.lines[0].summary, results.lines[0].radius
        count += "" if radius is None else f" at radius {radius}"
        count += ", all certified" if summary.n_certified == summary.n else f", {summary.n_certified:,} certified"
    return f"{count}; {results.layout.description}"


def _claims(line: Line, *, with_terms: bool) -> list[str]:
    """The headline claim of a line, and that about the population; its terms where no table shows them."""
    bound = line.summary.population or line.summary.population_all
    start = "" if line.radius is None else f"At radius {line.radius}, "
    terms = [f"Its terms: {terms_text(bound)}."] if with_terms else []
    return [f"{start}{line.summary.headline}", f"{start}{bound.sentence}", *terms]


def _conventions(results: CertifiedResults) -> str:
    settings = results.conventions
    text = f"Bins are {BRACKETS[str(settings['closed'])]}. Numbers are rounded in the safe direction."
    if len(results.lines) > 1:
        text += f" ECE has {settings['bins']} bins; its bound is for the population, each except with probability "
        text += f"{settings['delta']:g}."
    if any(line.summary.n_certified < line.summary.n for line in results.lines):
        text += " Over all samples, those that are not certified may have any confidence and be right or wrong."
    if settings["alpha"] == 0:
        text += " The intervals are taken as certain; if each may fail with some probability, give it with --alpha."
    else:
        text += " Numbers on these samples hold where their intervals do; each may fail with probability alpha."
        text += " Rows that the verifier abstained on belong in the table, with certified = 0."
    return text
