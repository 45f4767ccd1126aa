"""The largest resident memory of a call, as the operating system saw it (Linux)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"


def field(name: str) -> int:
    """A field of the process's status, in bytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{STATUS} has no {name}")


def peak_extra(call: Callable[[], Any]) -> tuple[int, Any]:
    """Peak resident memory during a call beyond what was resident before it, and the call's result.

    Everything is counted, whoever allocated it: numpy, torch, compiled code, threads.
    """
    CLEAR.write_text(RESET_PEAK)
    before = field("VmRSS")
    result = call()
    return max(0, field("VmHWM") - before), result
