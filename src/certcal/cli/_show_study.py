"""How the answers of a study look in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from certcal._text import counted, printable
from certcal.claims import short_text
from certcal.cli._show import Output
from certcal.report._old_terminal import frame
from certcal.report.numbers import between, brief
from certcal.report.results import StudiedResults, leading
from certcal.study import Finding

# Of each answer; the page and the JSON have the others.
MOST_FINDINGS = 6
_INDENT = 3
# Room for a value, an interval and a number of models, with the space between.
_NUMBERS = 40


def show_study(results: StudiedResults, *, page: bool = False) -> None:
    """Print every question with its answer, what to be careful about (once), and some of the numbers behind it.

    Parameters
    ----------
    results
        Of ``certcal study review``.
    page
        Whether a page was written, which then need not be advertised.
    """
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    console.print(Text(printable(results.source), style="bold"))
    console.print(Text(printable(results.description), style="dim"))
    for sentence in results.review.cautions:
        console.print(Text(printable(f"Caution: {sentence}"), style="dim"))
    said = set(results.review.cautions)
    hidden = 0
    for answer in results.review:
        console.print()
        console.print(Text(printable(f"{answer.number}  {answer.question}"), style="bold"))
        for paragraph in results.paragraphs(answer.answer):
            _say(console, paragraph)
        for sentence in answer.cautions:
            if sentence not in said:
                _say(console, f"Caution: {sentence}", "dim")
        said |= set(answer.cautions)
        if answer.findings:
            shown = leading(answer.findings, MOST_FINDINGS)
            hidden += len(answer.findings) - len(shown)
            console.print()
            made = _findings(shown, console.width - _INDENT)
            console.print(Padding(made, (0, 0, 0, _INDENT), expand=False))
    console.print()
    console.print(Text(printable(_closing(results, hidden, page=page)), style="dim"))


def _say(console: Output, text: str, style: str = "") -> None:
    """A paragraph below a question, further to the right."""
    for line in Text(printable(text), style=style).wrap(console, max(20, console.width - _INDENT)):
        line.rstrip()
        console.print(Text(" " * _INDENT).append_text(line))


def _findings(findings: Sequence[Finding], width: int) -> Table:
    table = frame()
    table.add_column("what was computed", max_width=max(24, width - _NUMBERS), overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("interval", justify="right", no_wrap=True)
    table.add_column("models", justify="right", no_wrap=True)
    for found in findings:
        name = Text(printable(found.name))
        if found.note:
            name.append(f" ({printable(found.note)})", style="dim")
        table.add_row(name, brief(found.value), between(found.low, found.high) or "-", f"{found.n:,}")
    return table


def _closing(results: StudiedResults, hidden: int, *, page: bool) -> str:
    settings = results.review.settings
    level, resamples, seed = (settings.get(key) for key in ("level", "resamples", "seed"))
    parts = ["Estimates from these models, not guarantees."]
    if resamples and level is not None:
        parts.append(
            f"Intervals: {short_text(level, 'lower')}, bootstrap over models, {resamples:,} resamples, seed {seed}."
        )
    if hidden:
        parts.append(f"{counted(hidden, 'further number')} not shown.")
    if not page:
        parts.append("-o study.html writes a page with all figures and matrices.")
    return " ".join(parts)
