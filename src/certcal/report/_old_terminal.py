"""Tables and the reliability diagram for a terminal, as rich renderables.

Everything reads without colour, in 80 columns, and in plain ASCII where the terminal cannot show more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from certcal._text import printable
from certcal.claims import Estimate, short_text
from certcal.report.names import HEADLINES, SHORT, in_sections, label
from certcal.report.numbers import bins_text, interval, number

if TYPE_CHECKING:
    from certcal.metrics import Reliability

Groups = Sequence[tuple[str, Sequence[Estimate]]]

_NAME_WIDTH = 35


def metrics_table(rows: Sequence[Estimate]) -> Table:
    """Metrics under headings: name, bins, value and, when there is one, the bootstrap interval.

    Parameters
    ----------
    rows
        Estimates, for example of ``certcal.measure``.

    Examples
    --------
    >>> from rich.console import Console
    >>> rows = [Estimate("ece", 0.0398, 100, {"bins": 15}), Estimate("accuracy", 0.93, 100)]
    >>> console = Console(width=60, color_system=None)
    >>> with console.capture() as shown:
    ...     console.print(metrics_table(rows))
    >>> [" ".join(line.split()) for line in shown.get().splitlines() if "0." in line]
    ['accuracy 0.9300', 'ECE 15 0.0398']
    """
    spreads = [row.interval for row in rows if row.interval is not None]
    table = frame()
    table.add_column("metric", min_width=_NAME_WIDTH)
    table.add_column("bins", justify="right")
    table.add_column("value", justify="right")
    if spreads:
        table.add_column(f"{short_text(spreads[0].level, 'lower')} interval,\nbootstrap", justify="right", no_wrap=True)
    for title, members in in_sections(rows):
        table.add_row(Text(title, style="bold"))
        for row, name in zip(members, _once(label(row.name) for row in members), strict=True):
            cells = [f"  {name}" if name else "", bins_text(row), number(row.value)]
            table.add_row(*cells, *([interval(row)] if spreads else []))
        table.add_section()
    return table


def comparison(groups: Groups, width: int, by: str = "group") -> RenderableType:
    """Groups beside each other if they fit, otherwise below each other with the metrics that do.

    Parameters
    ----------
    groups
        Name and estimates of each group. The first is the whole, and its rows are shown.
    width
        Columns of the terminal.
    by
        What the groups are, a column name.

    Examples
    --------
    >>> from rich.console import Console
    >>> groups = [("all", [Estimate("ece", 0.04, 9)]), ("site 1", [Estimate("ece", 0.05, 4)])]
    >>> console = Console(width=70, color_system=None)
    >>> with console.capture() as shown:
    ...     console.print(comparison(groups, 70))
    >>> [" ".join(line.split()) for line in shown.get().splitlines() if "0." in line]
    ['ECE 0.0400 0.0500']
    """
    if _NAME_WIDTH + 8 + sum(_group_width(name, rows) + 3 for name, rows in groups) <= width:
        return _side_by_side(groups)
    return Group(metrics_table(groups[0][1]), "", _one_per_line(groups, width, printable(by)))


def _one_per_line(groups: Groups, width: int, by: str) -> Table:
    """A line per group with as many of the main metrics as fit."""
    named = max(min(24, cell_len(printable(name))) for name in (by, *(group for group, _ in groups)))
    telling = [row for name in HEADLINES for row in groups[0][1] if row.name == name]
    shown: list[tuple[tuple[str, str], str]] = []
    room = width - named - 3 - 10
    for row in telling or groups[0][1]:
        title = f"{SHORT.get(row.name, label(row.name))} {bins_text(row)}".strip()
        room -= max(9, cell_len(title)) + 3
        if room < 0:
            break
        shown.append((_key(row), title))
    table = frame()
    table.add_column(Text(by), width=named, no_wrap=True)
    table.add_column("samples", justify="right")
    for _, title in shown:
        table.add_column(title, justify="right", no_wrap=True)
    for index, (group, rows) in enumerate(groups):
        values = {_key(row): number(row.value) for row in rows}
        cells = [values.get(key, "") for key, _ in shown]
        table.add_row(Text(printable(group)), f"{rows[0].n:,}" if rows else "", *cells, end_section=index == 0)
    return table


def _group_width(name: str, rows: Sequence[Estimate]) -> int:
    return max(min(20, cell_len(printable(name))), *(len(interval(row)) or 9 for row in rows), 9)


def _side_by_side(groups: Groups) -> Table:
    by_key = [{_key(row): row for row in rows} for _, rows in groups]
    table = frame()
    table.add_column("metric", min_width=_NAME_WIDTH)
    table.add_column("bins", justify="right")
    for name, rows in groups:
        table.add_column(Text(printable(name)), justify="right", width=_group_width(name, rows), no_wrap=True)
    samples = [f"{rows[0].n:,}" if rows else "" for _, rows in groups]
    table.add_row(Text("Samples", style="bold"), "", *samples, end_section=True)
    for title, members in in_sections(groups[0][1]):
        table.add_row(Text(title, style="bold"))
        for row, name in zip(members, _once(label(row.name) for row in members), strict=True):
            found = [rows.get(_key(row)) for rows in by_key]
            values = [number(other.value) if other is not None else "" for other in found]
            table.add_row(f"  {name}" if name else "", bins_text(row), *values)
            spreads = [interval(other) if other is not None else "" for other in found]
            if any(spreads):
                table.add_row("", "", *(Text(spread, style="dim") for spread in spreads))
        table.add_section()
    return table


def frame() -> Table:
    """Make the empty table that all tables of the terminal share."""
    from rich import box

    return Table(box=box.SIMPLE, pad_edge=False, header_style="bold", show_edge=False, padding=(0, 1))


def _key(row: Estimate) -> tuple[str, str]:
    return row.name, repr(sorted(row.settings.items(), key=lambda item: item[0]))


def _once(names: Iterable[str]) -> list[str]:
    """Names with repetitions left out, for rows that differ only in their bins."""
    result: list[str] = []
    previous = ""
    for name in names:
        result.append("" if name == previous else name)
        previous = name
    return result


class ReliabilityDiagram:
    """One line per bin: a bar as long as the accuracy, a mark at the mean confidence, and the gap between them.

    Where the model is overconfident the bar stops short of the mark and the gap is light; where it is underconfident
    the bar runs past the mark in a darker shade. The gap is also written out, with its direction in words.

    Examples
    --------
    >>> import certcal
    >>> from rich.console import Console
    >>> prepared = certcal.metrics.reliability([0.95, 0.9, 0.3], [1, 0, 1], bins=2)
    >>> console = Console(width=76, color_system=None)
    >>> with console.capture() as shown:
    ...     console.print(ReliabilityDiagram(prepared))
    >>> [" ".join(line.split()[-3:]) for line in shown.get().splitlines()[1:3]]
    ['+0.700 under 1', '−0.425 over 2']
    """

    def __init__(self, reliability: Reliability) -> None:
        self.reliability = reliability

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        plain = options.ascii_only
        table = self.reliability.table
        digits = 2 if len(table.count) <= 100 else 3
        counts = [f"{int(count):,}" for count in table.count]
        tail = max(len("samples"), *map(len, counts))
        head = 2 * digits + 9
        room = max(10, min(60, options.max_width - head - 18 - tail))
        marks = bar_marks(ascii_only=plain)
        dash = "-" if plain else "–"
        yield Text(
            f"{'confidence':<{head}}{'accuracy ' + marks.bar * 3 + '   mean confidence ' + marks.mark:<{room}}"
            f"  {'gap':<14}{'samples':>{tail}}",
            style="bold",
            no_wrap=True,
            overflow="crop",
        )
        few = len(counts) <= 25
        hidden = 0
        for m, count in enumerate(table.count):
            if count == 0 and not few:
                hidden += 1
                continue
            name = f"{table.edges[m]:.{digits}f} {dash} {table.edges[m + 1]:.{digits}f}"
            line = Text(f"{name:<{head}}", no_wrap=True, overflow="crop")
            if count == 0:
                line.append(f"{'':<{room + 16}}{0:>{tail}}", style="dim")
            else:
                accuracy, confidence = float(table.accuracy[m]), float(table.mean_confidence[m])
                append_bar(line, accuracy, confidence, room, marks)
                line.append(f"  {_gap_in_words(accuracy - confidence, marks):<14}{counts[m]:>{tail}}")
            yield line
        yield Text(f"{'':<{head}}{_scale(room)}", style="dim", no_wrap=True, overflow="crop")
        if hidden:
            yield Text(f"{hidden} empty bins are not shown", style="dim")


class Marks:
    """What a bar is made of: its body, what it lacks, what it has too much, and the mark of the mean confidence."""

    def __init__(self, bar: str, short: str, beyond: str, mark: str, minus: str) -> None:
        self.bar, self.short, self.beyond, self.mark, self.minus = bar, short, beyond, mark, minus


_UNICODE = Marks("█", "░", "▓", "┃", "−")
_ASCII = Marks("#", ".", "+", "|", "-")


def bar_marks(*, ascii_only: bool) -> Marks:
    """Marks that the terminal can show."""
    return _ASCII if ascii_only else _UNICODE


def append_bar(line: Text, accuracy: float, confidence: float, room: int, marks: Marks) -> None:
    """Bar, gap and mark as exactly ``room`` cells."""
    mark = min(room - 1, int(confidence * room))
    end = round(accuracy * room)
    for cell in range(room):
        if cell == mark:
            line.append(marks.mark, style="bold")
        elif cell < min(end, mark):
            line.append(marks.bar, style="blue")
        elif cell < mark:
            line.append(marks.short, style="red")
        elif cell < end:
            line.append(marks.beyond, style="yellow")
        else:
            line.append(" ")


def _gap_in_words(gap: float, marks: Marks) -> str:
    text = f"{abs(gap):.3f}"
    if float(text) == 0:
        return f" {text}"
    return f"{marks.minus}{text} over" if gap < 0 else f"+{text} under"


def _scale(room: int) -> str:
    """Ticks at fifths of the bar."""
    cells = [" "] * (room + 2)
    for fifth in range(6):
        text = "1" if fifth == 5 else f"{fifth / 5:g}"
        start = max(0, round(fifth / 5 * room) - (len(text) if fifth == 5 else len(text) // 2))
        cells[start : start + len(text)] = text
    return "".join(cells).rstrip()
