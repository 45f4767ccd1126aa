"""A progress bar for people who wait: after two seconds, on a terminal, and never in a log."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TextIO

PATIENCE_SECONDS = 2.0


class Waiting:
    """Shows what is being done once it has taken a while; does nothing when standard error is not a terminal.

    Parameters
    ----------
    stream
        Where the bar appears.
    patience
        Seconds before it does.
    counted
        What the steps are called, to show how many are done per second and how long the rest will take.

    Examples
    --------
    >>> with Waiting() as waiting:
    ...     waiting.stage("reading", 100)
    ...     waiting.advance(100)
    """

    def __init__(
        self, stream: TextIO | None = None, patience: float = PATIENCE_SECONDS, *, counted: str | None = None
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._patience = patience
        self._lock = threading.Lock()
        self._done = False
        self._counted = counted
        self._begun, self._steps = time.monotonic(), 0
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Waiting:
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                SpinnerColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            rate = [TextColumn("{task.fields[rate]}", markup=False), TimeRemainingColumn(compact=True)]
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeElapsedColumn(),
                *(rate if self._counted else []),
                console=Console(file=self._stream),
                transient=True,
                speed_estimate_period=300,  # steps may come in large pieces, seconds apart
            )
            self._task = self._bar.add_task("working", total=None, rate="")
            self._timer = threading.Timer(self._patience, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is None:
            return
        self._timer.cancel()
        with self._lock:
            self._done = True
            self._bar.stop()

    def _show(self) -> None:
        with self._lock:
            if not self._done:
                self._bar.start()

    def stage(self, text: str, total: int | None = None, done: int = 0) -> None:
        """Begin a part of the work, of ``total`` steps when that is known, some of which are done."""
        if self._timer is not None:
            self._begun, self._steps = time.monotonic(), 0
            self._bar.reset(self._task, description=text, total=total, completed=done, rate="")

    def advance(self, steps: int) -> None:
        """Count steps of the current part."""
        if self._timer is not None:
            self._steps += steps
            speed = self._steps / max(time.monotonic() - self._begun, 1e-9)
            self._bar.update(self._task, advance=steps, rate=f"{speed:,.0f} {self._counted}/s, left")
