"""Progress for people who wait: a bar or a line after two seconds, a rare plain line in a log."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, TextIO

from certcal._base.progress import SILENT, Progress
from certcal._base.text import duration

PATIENCE_SECONDS = 2.0
# In a log a line for each tenth of the work, but none within the first of the last one, and some sign of life.
APART_SECONDS, LIFE_SECONDS = 30.0, 600.0
# In a notebook, the least time between two versions of the line.
REDRAW_SECONDS = 0.5
_TENTHS = 10
# Terminals on which a bar could not be erased.
_DUMB = ("dumb", "unknown")


class Waiting:
    """Shows what is being done once it has taken a while.

    On a terminal that is a bar and in a notebook a line, erased at the end. Where standard error is a file, a pipe or
    a terminal that cannot erase, it is plain lines and few: work that is done within half a minute says nothing.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        patience: float = PATIENCE_SECONDS,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream, self._patience, self._clock = stream, patience, clock
        self._shown: _Bar | _NotebookLine | None = None

    def __enter__(self) -> Progress:
        if self._stream is None and (display := _notebook_display()) is not None:
            self._shown = _NotebookLine(display, self._patience, self._clock)
            return self._shown
        stream: TextIO | None = sys.stderr if self._stream is None else self._stream
        if stream is None:  # a window without a console
            return SILENT
        if not _is_terminal(stream) or os.environ.get("TERM", "").lower() in _DUMB:
            return _Log(stream, self._clock)
        self._shown = _Bar(stream, self._patience, self._clock)
        return self._shown

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown is not None:
            self._shown.close()


class _Bar:
    """A bar that appears when patience ends, and is gone when the work is done."""

    def __init__(self, stream: TextIO, patience: float, clock: Callable[[], float]) -> None:
        from rich import progress
        from rich.console import Console

        self._bar = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(16),
            progress.TimeElapsedColumn(),
            progress.TextColumn("{task.fields[rate]}", markup=False),
            progress.TimeRemainingColumn(compact=True),
            console=Console(file=stream),
            transient=True,
            speed_estimate_period=300,  # steps may come in large pieces, seconds apart
        )
        self._task = self._bar.add_task("working", total=None, rate="")
        self._unit, self._clock = "", clock
        self._begun, self._steps = clock(), 0
        self._lock, self._done = threading.Lock(), False
        self._timer = threading.Timer(patience, self._show)
        self._timer.daemon = True
        self._timer.start()

    def _show(self) -> None:
        with self._lock:
            if not self._done:
                with suppress(OSError, ValueError):
                    self._bar.start()

    def close(self) -> None:
        self._timer.cancel()
        with self._lock, suppress(OSError, ValueError):  # the terminal is gone; what was computed is not
            self._done = True
            self._bar.stop()

    def stage(self, text: str, total: int | None = None, done: int = 0, unit: str = "") -> None:
        self._begun, self._steps, self._unit = self._clock(), 0, unit
        with suppress(OSError, ValueError):
            self._bar.reset(self._task, description=text, total=total, completed=done, rate="")

    def say(self, text: str) -> None:
        self._bar.update(self._task, description=text)

    def advance(self, steps: int) -> None:
        self._steps += steps
        speed = self._steps / max(self._clock() - self._begun, 1e-9)
        rate = f"{speed:,.0f} {self._unit}/s, left" if self._unit else "left"
        self._bar.update(self._task, advance=steps, rate=rate)


class _Counter:
    """How far the current part of the work is, in words."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = self._begun = clock()
        self._text, self._unit = "working", ""
        self._total: int | None = None
        self._finished = self._steps = 0

    def say(self, text: str) -> None:
        self._text = text

    def stage(self, text: str, total: int | None = None, done: int = 0, unit: str = "") -> None:
        self._text, self._total, self._finished, self._steps = text, total, done, 0
        self._unit = f" {unit}" if unit else ""
        self._begun = self._clock()

    def advance(self, steps: int) -> None:
        self._finished += steps
        self._steps += steps

    def _line(self) -> str:
        if not self._total:
            return f"{self._text} …"
        left = (self._total - self._finished) * (self._clock() - self._begun) / max(self._steps, 1)
        known = f", about {duration(left)} left" if self._steps else ""
        return f"{self._text}: {self._finished:,} of {self._total:,}{self._unit}{known}"


class _Log(_Counter):
    """Plain lines about the parts of the work whose size is known."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._stream = stream
        self._tenth: int = 0

    def stage(self, text: str, total: int | None = None, done: int = 0, unit: str = "") -> None:
        super().stage(text, total, done, unit)
        self._tenth = _TENTHS * done // total if total else 0

    def advance(self, steps: int) -> None:
        super().advance(steps)
        if not self._total or self._finished >= self._total:
            return
        now = self._clock()
        tenth = _TENTHS * self._finished // self._total
        passed = now - self._last
        if passed < APART_SECONDS or (tenth == self._tenth and passed < LIFE_SECONDS):
            return
        self._last, self._tenth = now, tenth
        try:
            self._stream.write(f"{self._line()}\n")
            self._stream.flush()
        except (AttributeError, OSError, ValueError):  # the log is full or gone; the work goes on
            self._total = None


class _NotebookLine(_Counter):
    """One line below a cell that is written anew, and is gone when the work is done."""

    def __init__(self, display: Callable[..., Any], patience: float, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._display, self._handle = display, None
        self._last += patience - REDRAW_SECONDS

    def stage(self, text: str, total: int | None = None, done: int = 0, unit: str = "") -> None:
        super().stage(text, total, done, unit)
        self._draw()

    def say(self, text: str) -> None:
        super().say(text)
        self._draw()

    def advance(self, steps: int) -> None:
        super().advance(steps)
        self._draw()

    def _draw(self) -> None:
        if self._clock() - self._last < REDRAW_SECONDS:
            return
        self._last = self._clock()
        shown = {"text/plain": self._line()}
        if self._handle is None:
            self._handle: Any = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/html": "", "text/plain": ""}, raw=True)


def _is_terminal(stream: Any) -> bool:
    """Whether a stream, which may be closed or somebody's own object, is a terminal."""
    try:
        return bool(stream.isatty())
    except (AttributeError, OSError, ValueError):
        return False


def _notebook_display() -> Callable[..., Any] | None:
    """What shows something below a cell, if this is a notebook."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return sys.modules["IPython"].display.display
