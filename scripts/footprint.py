"""What an installation costs: disk space per library, import times, and the first commands on a fresh machine.

    .venv/bin/python scripts/footprint.py

Times are of the processor (user and system), the least of three; kernels find an empty cache each time.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

SMALL, LARGE = 285, 100_000


def required(name: str, found: dict[str, float]) -> dict[str, float]:
    """Megabytes on disk of a distribution and of all that it needs, extras left out."""
    if name in found:
        return found
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return found
    files = [Path(str(installed.locate_file(file))) for file in installed.files or ()]
    found[name] = sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file()) / 1e6
    for line in installed.requires or ():
        needed, _, condition = line.partition(";")
        if "extra" not in condition and "platform" not in condition:
            required(re.split(r"[^\w.-]", needed.strip())[0], found)
    return found


def processor_seconds(command: list[str], cold: bool = False) -> float:
    """Processor time of a command; cold: as if no kernel had ever been compiled."""
    least = float("inf")
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"} | ({"NUMBA_CACHE_DIR": folder} if cold else {})
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, capture_output=True, env=environment)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least


def write_table(path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    score = rng.random(n) ** 0.3
    rows = np.column_stack((score, rng.random(n) < score**1.5))
    np.savetxt(path, rows, "%.6f,%d", header="score,outcome", comments="")


def main() -> None:
    python = [sys.executable, "-c"]
    command = [sys.executable, "-m", "certcal"]
    print("| installed | MB |\n|---|---:|")
    sizes = required("certcal", {})
    source = Path(__file__).parent.parent / "src" / "certcal"
    sizes["certcal"] = sum(file.stat().st_size for file in source.rglob("*.py")) / 1e6
    for name, size in sorted(sizes.items(), key=lambda pair: -pair[1]):
        print(f"| {name} | {size:.1f} |")
    print(f"| **all** | **{sum(sizes.values()):.0f}** |\n")
    print("| processor time | seconds |\n|---|---:|")
    rows = {
        "`python -c pass`": ([*python, "pass"], False),
        "`import certcal`": ([*python, "import certcal"], False),
        "`certcal --help`": ([*command, "--help"], False),
    }
    with tempfile.TemporaryDirectory() as folder:
        for n in (SMALL, LARGE):
            table, page = Path(folder) / f"{n}.csv", str(Path(folder) / "page.html")
            write_table(table, n)
            rows[f"first `certcal measure`, {n:,} rows"] = ([*command, "measure", str(table)], True)
            if n == SMALL:
                rows[f"first `certcal bound`, {n:,} rows"] = ([*command, "bound", str(table)], True)
                report = [*command, "report", str(table), "--force", "-o", page]
                rows[f"first `certcal report`, {n:,} rows"] = (report, True)
            else:
                rows[f"later `certcal measure`, {n:,} rows"] = ([*command, "measure", str(table)], False)
        for name, (line, cold) in rows.items():
            print(f"| {name} | {processor_seconds(line, cold):.2f} |", flush=True)


if __name__ == "__main__":
    main()
