"""A table of a study, for people and for machines."""

from __future__ import annotations

import itertools
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from certcal import __version__
from certcal._json import as_text, for_json
from certcal._text import counted, printable
from certcal.cli._show import Output
from certcal.report._old_terminal import frame
from certcal.study import StudyTable
from certcal.study._overview import Overview, overview

_MOST_FAILURES = 10


def to_json(table: StudyTable, path: str, notes: Sequence[str]) -> str:
    """What was measured, as JSON."""
    names = ("model", "data", "split", "reason")
    failures = [dict(zip(names, failure, strict=True)) for failure in table.failures]
    content = {
        "certcal": __version__,
        "type": "study_measure",
        "table": path,
        "settings": dict(table.settings),
        "rows": len(table),
        "failed": len(failures),
        "models": len(table.models),
        "measurements": len(table.measurements),
        "given": table.given,
        "datasets": [line.to_dict() for line in overview(table)],
        "failures": failures,
        "notes": list(notes),
    }
    return as_text(for_json(content))


def show_measured(table: StudyTable, path: str) -> None:
    """Print what was measured, each data set in a line, what failed and why, and what to do next."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    failed = sum(1 for _ in table.failures)
    console.print(Text(printable(path), style="bold"))
    console.print(Text(printable(_description(table, failed)), style="dim"))
    console.print()
    lines = overview(table)
    console.print(_medians(lines))
    console.print()
    if failed:
        console.print(Text(f"Failed: {counted(failed, 'row')}", style="bold"))
        for model, data, split, reason in itertools.islice(table.failures, _MOST_FAILURES):
            console.print(Text(printable(f"{model} on {data} ({split}): {reason}")))
        if failed > _MOST_FAILURES:
            console.print(Text(f"and {failed - _MOST_FAILURES:,} more; the table's column 'reason' has them all"))
        console.print(Text("The same command tries these again and keeps the others.", style="dim"))
        console.print()
    if failed < len(table):
        page = Path(path).with_suffix(".html")
        console.print(Text("What they say about calibration and its metrics:", style="bold"))
        console.print(
            Text(printable(shlex.join(["certcal", "study", "review", path, "-o", str(page)]))), soft_wrap=True
        )


def _description(table: StudyTable, failed: int) -> str:
    settings = table.settings
    sets = counted(len(table.datasets), "data set")
    text = f"{counted(len(table.models), 'model')}, {sets}, {counted(len(table) - failed, 'row')} measured"
    share = f"{settings['validation']:.4g} of the samples"
    return f"{text}; temperature fitted on {share}, the rest measured, seed {settings['seed']}"


def _medians(lines: Sequence[Overview]) -> object:
    table = frame()
    several = len({line.split for line in lines}) > 1
    bins = lines[0].bins
    table.add_column("data set")
    if several:
        table.add_column("split")
    for name in ("models", "failed", "accuracy", f"ECE ({bins} bins)", "after scaling"):
        table.add_column(name, justify="right")
    for line in lines:
        names = [printable(line.data), *([printable(line.split)] if several else [])]
        counts = [f"{line.models:,}", f"{line.failed:,}"]
        medians = ["" if value != value else f"{value:.4f}" for value in (line.accuracy, line.before, line.after)]
        table.add_row(*map(Text, names), *counts, *medians)
    table.caption = "Medians over models. Estimates from these samples, not guarantees."
    table.caption_justify = "left"
    return table
