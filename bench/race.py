"""Run a case: one process per library, taking turns, the best of several runs each."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cases import Case, Entry, make_data

HERE = Path(__file__).parent
ROUNDS = 9  # at most this many runs of each library
BUDGET = 15.0  # seconds after which a library takes no further turn
PATIENCE = 600.0  # seconds after which a single run is given up


@dataclass
class Row:
    """What one library did in one case."""

    library: str
    n: int
    version: str = ""
    seconds: float | None = None
    bytes: int | None = None
    input_bytes: int = 0
    value: float | None = None
    runs: int = 0
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Worker:
    """A library's process, and the row it fills."""

    def __init__(self, case: Case, entry: Entry, folder: Path, n: int) -> None:
        library, _, metric = entry.library.partition(": ")
        self.row, self.spent = Row(entry.library, n), 0.0
        command = [sys.executable, str(HERE / "worker.py"), metric or case.metric, library, str(folder), case.measures]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
        )

    def wait(self) -> None:
        """Until the library is imported, warmed up and has its data."""
        ready = self.listen()
        self.row.version, self.row.input_bytes = ready.get("version", ""), ready.get("input_bytes", 0)

    def listen(self) -> dict[str, Any]:
        """The next answer; a failure ends this worker's part."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            line = self.process.stdout.readline() if selector.select(PATIENCE) else b""
            late = not line and self.process.poll() is None
        if line:
            answer = json.loads(line)
        elif late:
            answer = {"error": f"no answer within {PATIENCE:.0f} s"}
        else:
            answer = {"error": f"the process ended with code {self.process.wait()}"}
        self.row.error = answer.get("error", "")
        return answer

    def turn(self) -> None:
        """One run, if the library has not failed and has time left."""
        if self.row.error or self.spent > BUDGET:
            return
        assert self.process.stdin is not None
        self.process.stdin.write(b"run\n")
        self.process.stdin.flush()
        answer = self.listen()
        if self.row.error:
            return
        self.row.value, self.row.runs = answer["value"], self.row.runs + 1
        if "bytes" in answer:
            self.row.bytes, self.spent = answer["bytes"], float("inf")
            return
        self.spent += answer["seconds"]
        self.row.seconds = min(answer["seconds"], self.row.seconds or float("inf"))

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def environment() -> dict[str, str]:
    """The environment of the workers: certcal from this checkout unless it is installed."""
    source = str(HERE.parent / "src")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", ""))))}


@contextmanager
def workers(case: Case, scratch: Path, shrink: int) -> Iterator[list[Worker]]:
    """All processes of a case, ready to run."""
    placed: list[tuple[Entry, Path, int]] = []
    for entry in case.entries():
        n = case.size(entry, shrink)
        placed.append((entry, scratch / f"{n}-{case.dtype}-{case.classes}", n))
        if not placed[-1][1].exists():
            make_data(placed[-1][1], n, case.dtype, case.classes)
    started = [Worker(case, *place) for place in placed]
    try:
        for worker in started:
            worker.wait()
        yield started
    finally:
        for worker in started:
            worker.stop()


def race(case: Case, scratch: Path, shrink: int, progress: Callable[[str], None]) -> list[Row]:
    """Rows of a case. Libraries take turns, so that a busy moment of the machine hits them alike."""
    progress(case.title)
    with workers(case, scratch, shrink) as started:
        for _ in range(ROUNDS):
            for worker in started:
                worker.turn()
        return [worker.row for worker in started]
