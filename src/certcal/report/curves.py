"""Certified values over the radius, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from certcal.report.certificates import Line


class RadiusCurves:
    """One line per radius: a bar as long as the certified accuracy, and a mark at the worst calibration error.

    Parameters
    ----------
    lines
        One per radius.

    Examples
    --------
    >>> from certcal.worst_case import certify
    >>> lines = [Line(str(radius), None, certify([0.5 - radius], [0.5 + radius], [1])) for radius in (0, 0.25)]
    >>> console = Console(width=40, color_system=None)
    >>> with console.capture() as shown:
    ...     console.print(RadiusCurves(lines))
    >>> [line.count("█") for line in shown.get().splitlines()[1:3]]
    [31, 31]
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bar, mark = ("#", "|") if options.ascii_only else ("█", "┃")
        head = max(len("radius"), *(len(line.radius or "") for line in self.lines))
        room = max(10, min(60, options.max_width - head - 2))
        legend = f"certified accuracy {bar * 3}   worst ECE of the certified {mark}"
        yield Text(f"{'radius':>{head}}  {legend}", style="bold", no_wrap=True, overflow="crop")
        for line in self.lines:
            end = int(line.summary.accuracy.value * room)
            worst = line.summary["calibration_error"].worst
            at = None if worst is None else min(room - 1, int(worst.value * room))
            shown = Text(f"{line.radius or '':>{head}}  ", no_wrap=True, overflow="crop")
            for cell in range(room):
                if cell == at:
                    shown.append(mark, style="bold")
                else:
                    shown.append(bar if cell < end else " ", style="blue" if cell < end else "")
            yield shown
        yield Text(f"{'':>{head}}  {'0':<{room - 1}}1", style="dim", no_wrap=True, overflow="crop")
