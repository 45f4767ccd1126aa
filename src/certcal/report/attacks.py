"""What attacks have reached, for a terminal: a table of them, and small reliability diagrams side by side."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from certcal.report._old_terminal import append_bar, bar_marks, frame
from certcal.report.numbers import number
from certcal.report.results import AttackedResults, AttackLine, Part, estimate_of

UNATTACKED = "unattacked"
# What stands in a line of every table of attacks, in this order, with its heading.
METRICS = {"equal_mass_ece": "AdaECE", "ece": "ECE", "mean_confidence": "confidence", "accuracy": "accuracy"}
_NARROWEST, _MOST_BINS, _USUAL = 20, 25, 80


def attack_table(results: AttackedResults, width: int = _USUAL) -> Table:
    """A line without an attack, then a line per attack under the distance that it may go.

    Parameters
    ----------
    results
        Of ``certcal attack``.
    width
        Of the terminal; a narrow one is spared what an attack does to the confidence, which its name says.
    """
    table = frame()
    wide = width >= _USUAL
    table.add_column("attack", no_wrap=True)
    if wide:
        table.add_column("confidence in")
    for heading in METRICS.values():
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_row(UNATTACKED, *([""] if wide else []), *_numbers(results.clean), end_section=True)
    for epsilon, lines in results.by_epsilon.items():
        table.add_row(Text(f"ε = {epsilon} ({results.norm_text})", style="bold"))
        for line in lines:
            table.add_row(f"  {line.name}", *([line.aim] if wide else []), *_numbers(line.part))
        table.add_section()
    return table


def _numbers(part: Part) -> list[str]:
    return [number(estimate_of(part, name).value) for name in METRICS]


class SmallDiagrams:
    """Reliability diagrams side by side: without an attack, then under attacks, as many as there is room for.

    Every line is a bin. A bar is as long as the accuracy of its samples, a mark stands at their mean confidence; bins
    that are empty in every diagram are left out.

    Parameters
    ----------
    clean
        Without an attack.
    lines
        Attacks, the one to be shown first at first.
    """

    def __init__(self, clean: Part, lines: Sequence[AttackLine]) -> None:
        self.clean, self.lines = clean, lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        edges = self.clean.reliability.table.edges
        if len(edges) - 1 > _MOST_BINS:
            yield Text(f"Diagrams of more than {_MOST_BINS} bins are for pages and pictures.", style="dim")
            return
        plain = options.ascii_only
        marks = bar_marks(ascii_only=plain)
        dash = "-" if plain else "–"
        head = 13
        fitting = max(1, (options.max_width - head + 2) // (_NARROWEST + 2))
        named = [(UNATTACKED, "", self.clean)]
        named += [(line.name, f"ε = {line.epsilon_text}", line.part) for line in self.lines]
        named = named[:fitting]
        room = min(32, (options.max_width - head + 2) // len(named) - 2)
        tables = [part.reliability.table for _, _, part in named]
        for title in (
            [name for name, _, _ in named],
            [f"{number(estimate_of(part, 'ece').value)} ECE {within}".rstrip() for _, within, part in named],
        ):
            cells = "  ".join(f"{text[:room]:<{room}}" for text in title)
            yield Text(f"{'confidence' if title[0] == UNATTACKED else '':<{head}}{cells}".rstrip(), style="bold")
        for m in range(len(edges) - 1):
            if not any(table.count[m] for table in tables):
                continue
            line = Text(f"{f'{edges[m]:.2f} {dash} {edges[m + 1]:.2f}':<{head}}", no_wrap=True, overflow="crop")
            for place, table in enumerate(tables):
                if place:
                    line.append("  ")
                if table.count[m]:
                    append_bar(line, float(table.accuracy[m]), float(table.mean_confidence[m]), room, marks)
                else:
                    line.append(" " * room)
            line.rstrip()
            yield line
        said = f"{marks.bar * 3} accuracy, {marks.mark} mean confidence, {marks.short} overconfident, "
        yield Text(f"{said}{marks.beyond} underconfident", style="dim")
