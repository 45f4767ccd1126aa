"""A table made of published results, for people and for machines."""

from __future__ import annotations

import itertools
import sys

from rich.text import Text

from certcal import __version__
from certcal._json import as_text, for_json
from certcal._text import counted, printable
from certcal.cli._show import Output
from certcal.study import StudyTable

_MOST_SHOWN = 10


def converted_json(table: StudyTable, path: str) -> str:
    """What was read, as JSON."""
    names = ("model", "data", "split", "reason")
    failures = [dict(zip(names, failure, strict=True)) for failure in table.failures]
    content = {
        "certcal": __version__,
        "type": "study_convert",
        "table": path,
        "settings": dict(table.settings),
        "rows": len(table),
        "models": len(table.models),
        "datasets": table.datasets,
        "splits": table.splits,
        "measurements": [str(name) for name in table.measurements],
        "given": table.given,
        "failures": failures,
    }
    return as_text(for_json(content))


def show_converted(table: StudyTable, path: str) -> None:
    """Print how much was read, what was taken for what, and what failed."""
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    console.print(Text(printable(path), style="bold"))
    rows = f"{counted(len(table.models), 'model')}, {counted(len(table), 'row')}"
    lines = [
        rows,
        f"data: {_listed(table.datasets)}; split: {_listed(table.splits)}",
        f"measurements: {_listed([str(name) for name in table.measurements])}",
        f"other columns: {_listed([name for name in ('accuracy',) if name in table] + table.given)}",
    ]
    scale = table.settings.get("scale")
    if scale:
        lines.append(f"accuracies were read as {scale['accuracy']}, calibration errors as {scale['errors']}")
    for line in lines:
        console.print(Text(printable(line)))
    failures = list(itertools.islice(table.failures, _MOST_SHOWN + 1))
    if failures:
        console.print()
        console.print(Text("Failed", style="bold"))
        for _, _, _, reason in failures[:_MOST_SHOWN]:
            console.print(Text(printable(reason)))
        if len(failures) > _MOST_SHOWN:
            console.print(Text("and more; the table's column 'reason' has them all"))


def _listed(names: list[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - _MOST_SHOWN:,} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(names[:_MOST_SHOWN]) + more
