"""What experiments with several processes and a page of results share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

# glibc gives large blocks back to the system after every batch and asks for them again: a quarter of the time.
_MEMORY = {"MMAP_THRESHOLD": "2000000000", "TRIM_THRESHOLD": "4000000000", "TOP_PAD": "100000000"}


def processes(workers: int) -> ProcessPoolExecutor:
    """A pool of fresh processes, which keep the memory they were given."""
    for name, value in _MEMORY.items():
        os.environ.setdefault(f"MALLOC_{name}_", value)
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def made_with(*packages: str) -> str:
    """The versions that made some numbers: certcal's with its commit, which a version under way does not tell."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short=7", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    used = [f"certcal {version('certcal')} at commit {commit.stdout.strip()}"]
    return ", ".join((*used, *(f"{each} {version(each)}" for each in packages)))


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts."""
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    lines.insert(1, f"|{'---|' * len(head)}")
    return "\n".join(lines)
