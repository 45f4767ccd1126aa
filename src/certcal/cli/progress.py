"""Progress for people who wait: a bar on a terminal after two seconds, a rare plain line in a log."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

import click

from certcal._base.progress import SILENT, Progress
from certcal._base.text import duration

PATIENCE_SECONDS = 2.0
# In a log a line for each tenth of the work, but none within the first of the last one, and some sign of life.
APART_SECONDS, LIFE_SECONDS = 30.0, 600.0
_TENTHS = 10
# Terminals on which a bar could not be erased.
_DUMB = ("dumb", "unknown")
_QUIET = "certcal.quiet"


def be_quiet(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Remember for the rest of the command that nobody wants to hear of progress."""
    if value:
        ctx.meta[_QUIET] = True


def is_quiet() -> bool:
    """Whether the command that is running was told to be.

    Examples
    --------
    >>> is_quiet()
    False
    """
    ctx = click.get_current_context(silent=True)
    return ctx is not None and _QUIET in ctx.meta


def tell(sentence: str) -> None:
    """Say something on standard error that is good to know, unless told to be quiet."""
    from certcal._base.text import printable

    if not is_quiet():
        click.echo(printable(sentence), err=True)  # names of files may hold anything


class Waiting:
    """Shows what is being done once it has taken a while.

    On a terminal that is a bar, erased at the end. Where standard error is a file, a pipe or a terminal that cannot
    erase, it is plain lines and few: work that is done within half a minute says nothing.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        patience: float = PATIENCE_SECONDS,
        *,
        counted: str | None = None,
        wordy: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._patience, self._counted, self._wordy, self._clock = patience, counted, wordy, clock
        self._bar: _Bar | None = None

    def __enter__(self) -> Progress:
        if is_quiet():
            return SILENT
        if not self._stream.isatty() or os.environ.get("TERM", "").lower() in _DUMB:
            return _Log(self._stream, self._counted, self._clock)
        self._bar = _Bar(self._stream, self._patience, self._counted, self._wordy, self._clock)
        return self._bar

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


class _Bar:
    """A bar that appears when patience ends, and is gone when the work is done."""

    def __init__(
        self, stream: TextIO, patience: float, counted: str | None, wordy: bool, clock: Callable[[], float]
    ) -> None:
        from rich import progress
        from rich.console import Console

        rate = [progress.TextColumn("{task.fields[rate]}", markup=False), progress.TimeRemainingColumn(compact=True)]
        self._bar = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(8 if wordy else 40),
            *([] if wordy else [progress.TimeElapsedColumn()]),
            *(rate if counted else []),
            console=Console(file=stream),
            transient=True,
            speed_estimate_period=300,  # steps may come in large pieces, seconds apart
        )
        self._task = self._bar.add_task("working", total=None, rate="")
        self._counted, self._clock = counted, clock
        self._begun, self._steps = clock(), 0
        self._lock, self._done = threading.Lock(), False
        self._timer = threading.Timer(patience, self._show)
        self._timer.daemon = True
        self._timer.start()

    def _show(self) -> None:
        with self._lock:
            if not self._done:
                self._bar.start()

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._done = True
            self._bar.stop()

    def stage(self, text: str, total: int | None = None, done: int = 0) -> None:
        self._begun, self._steps = self._clock(), 0
        self._bar.reset(self._task, description=text, total=total, completed=done, rate="")

    def say(self, text: str) -> None:
        self._bar.update(self._task, description=text)

    def advance(self, steps: int) -> None:
        self._steps += steps
        speed = self._steps / max(self._clock() - self._begun, 1e-9)
        self._bar.update(self._task, advance=steps, rate=f"{speed:,.0f} {self._counted}/s, left")


class _Log:
    """Plain lines about the parts of the work whose size is known."""

    def __init__(self, stream: TextIO, counted: str | None, clock: Callable[[], float]) -> None:
        self._stream, self._clock = stream, clock
        self._what = f" {counted}" if counted else ""
        self._last = self._begun = clock()
        self._text = "working"
        self._total: int | None = None
        self._finished: int = 0
        self._steps: int = 0
        self._tenth: int = 0

    def say(self, text: str) -> None:
        self._text = text

    def stage(self, text: str, total: int | None = None, done: int = 0) -> None:
        self._text, self._total, self._finished, self._steps = text, total, done, 0
        self._begun = self._clock()
        self._tenth = _TENTHS * done // total if total else 0

    def advance(self, steps: int) -> None:
        self._finished += steps
        self._steps += steps
        if not self._total or self._finished >= self._total:
            return
        now = self._clock()
        tenth = _TENTHS * self._finished // self._total
        passed = now - self._last
        if passed < APART_SECONDS or (tenth == self._tenth and passed < LIFE_SECONDS):
            return
        self._last, self._tenth = now, tenth
        left = (self._total - self._finished) * (now - self._begun) / max(self._steps, 1)
        line = f"{self._text}: {self._finished:,} of {self._total:,}{self._what}, about {duration(left)} left"
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except (OSError, ValueError):  # the log is full or gone; the work goes on
            self._total = None
