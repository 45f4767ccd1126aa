"""What experiments with several processes and a page of results share."""

from __future__ import annotations

import csv
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "docs" / "results"
_BEGIN, _END = "<!-- tables: begin -->", "<!-- tables: end -->"
_LONGEST = 200  # words of a table, from which on it has a file of its own
_TABLE = re.compile(r"^(?P<above>\S.*)\n\n(?P<table>(?:\|.*\n)+)", re.MULTILINE)
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
        ["git", "rev-parse", "--short=7", "HEAD"], cwd=RESULTS, capture_output=True, text=True, check=True
    )
    used = [f"certcal {version('certcal')} at commit {commit.stdout.strip()}"]
    return ", ".join((*used, *(f"{each} {version(each)}" for each in packages)))


def write_results(name: str, command: str, tables: str, *packages: str) -> None:
    """Put tables between the markers of a page, under the command and the versions they were made with.

    A long table becomes a CSV file beside the page, named after the words above it.
    """
    page = RESULTS / f"{name}.md"
    tables = _TABLE.sub(lambda found: _link_if_long(name, found), f"{tables.rstrip()}\n").rstrip()
    stamp = f"`{command}`, {made_with(*packages)}, Python {platform.python_version()}, {os.cpu_count()} cores"
    text = page.read_text("utf-8")
    before, after = text.split(_BEGIN)[0], text.split(_END)[1]
    page.write_text(f"{before}{_BEGIN}\n{stamp}\n\n{tables}\n{_END}{after}", encoding="utf-8")


def _link_if_long(name: str, found: re.Match[str]) -> str:
    lines = found["table"].replace("**", "").splitlines()
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    if len(found["table"].split()) < _LONGEST:
        return found[0]
    headings = re.findall(r"^#+ (.*)$", found.string[: found.end("above")], re.MULTILINE)
    title = found["above"] if found["above"].endswith(":") else headings[-1]
    words = [name, *re.findall(r"[a-z]+|\d[\d.]*", title.lower().partition("(")[0])[:6]]
    file = RESULTS / f"{'-'.join(words)}.csv"
    with file.open("w", encoding="utf-8", newline="") as handle:
        csv.writer(handle, lineterminator="\n").writerows((head, *rows))
    return f"{found['above']}\n\n[{len(rows)} rows]({file.name})\n"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts."""
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    lines.insert(1, f"|{'---|' * len(head)}")
    return "\n".join(lines)
