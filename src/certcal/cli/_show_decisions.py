"""How sequential decisions look in a terminal, and how they are written."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from rich.text import Text

from certcal._files import write_bytes
from certcal._text import printable
from certcal.claims import short_text
from certcal.cli._show import Output
from certcal.report._old_terminal import frame
from certcal.smoothing import Decisions

_ROWS = (("above", "R > {low}"), ("below", "R < {high}"), ("undecided", "UNDECIDED"))


def show_decisions(decisions: Decisions, source: str) -> None:
    """Print how many samples got which verdict, with how many draws, and what is claimed.

    Parameters
    ----------
    decisions
        Of :func:`certcal.smoothing.decide`.
    source
        What was decided about, for the first line.
    """
    console = Output(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=False)
    setting = decisions.setting
    console.print(Text(printable(source), style="bold"))
    radius, level = short_text(setting.radius, "lower"), short_text(setting.alpha, "upper")
    about = f"{len(decisions):,} samples; is the certified radius R above {radius}? sigma {setting.sigma:g}"
    console.print(Text(f"{about}, alpha {level}", style="dim"))
    console.print()
    table = frame()
    for name in ("verdict", "samples", "correct", "median draws", "draws"):
        table.add_column(name, justify="left" if name == "verdict" else "right")
    for verdict, text in _ROWS:
        chosen = decisions.verdict == verdict
        draws = decisions.draws[chosen]
        median = f"{int(np.median(draws)):,}" if draws.size else ""
        right = int(np.count_nonzero(decisions.correct & chosen))
        table.add_row(
            text.format(low=radius, high=short_text(setting.radius, "upper")),
            f"{draws.size:,}",
            f"{right:,}",
            median,
            f"{int(draws.sum()):,}",
        )
    console.print(table)
    console.print()
    console.print(Text("What is claimed", style="bold"))
    console.print(Text(decisions.sentence[:1].upper() + decisions.sentence[1:]))
    used, most = int(decisions.draws.sum()), setting.budget * len(decisions)
    console.print()
    console.print(
        Text(f"{used:,} draws, {most / used:.1f} times fewer than {setting.budget:,} for each sample.", style="dim")
    )


def write_decisions(decisions: Decisions, path: Path, *, force: bool) -> None:
    """Write decisions in one piece, as JSON or Parquet by the file's ending."""
    write_bytes(path, decisions.to_bytes(path.suffix.lower()), force=force)
