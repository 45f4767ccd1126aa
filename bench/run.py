"""Speed and memory against peers, as ratios that are measured in one run and must hold.

``make bench`` runs everything and fails if a target is missed. Seconds are printed but never judged: they belong to the
machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from cases import CASES
from judge import Results, verdicts
from race import Row, race
from tables import page, show, write_csv, write_page

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
QUICK = 100


def main() -> int:
    options = _options()
    environment, results = describe(options.quick), dict[str, list[Row]]()
    if options.read:
        saved = json.loads(Path(options.read).read_text(encoding="utf-8"))
        results = {name: [Row(**row) for row in rows] for name, rows in saved["results"].items()}
        environment = saved["environment"]
    if options.only or not options.read:
        results |= measure(options.only, QUICK if options.quick else 1)
    if options.only and options.read:  # these cases were not part of the run that the rest is from
        today = datetime.date.today().isoformat()
        environment["again"] = {**environment.get("again", {}), **dict.fromkeys(options.only, today)}
    found = verdicts(results)
    show(results, found)
    if options.json:
        saved = {"environment": environment, "results": {k: [r.to_dict() for r in v] for k, v in results.items()}}
        saved["targets"] = [verdict.to_dict() for verdict in found]
        Path(options.json).write_text(json.dumps(saved, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.write_docs:
        write_page(PAGE, "measured", page(results, found, environment))
        write_csv(PAGE.parent, results)
    missed = [verdict for verdict in found if not verdict.holds]
    if not missed:
        print(f"All {len(found)} targets hold.")
        return 0
    print(f"{len(missed)} of {len(found)} targets do not hold:")
    for verdict in missed:
        print(f"  {verdict.case}: {verdict.text}")
    if environment["quick"]:
        print("This was a quick run, whose sizes are too small to judge.")
        return 0
    return 1


def measure(only: list[str], shrink: int) -> Results:
    """Run the cases, one after the other."""

    def progress(title: str) -> None:
        print(f"measuring: {title} …", file=sys.stderr, flush=True)

    chosen = [case for case in CASES if not only or case.name in only]
    with tempfile.TemporaryDirectory(prefix="certcal-bench-") as scratch:
        return {case.name: race(case, Path(scratch), shrink, progress) for case in chosen}


def describe(quick: bool) -> dict[str, Any]:
    """Where and with what the run took place."""
    import numpy as np

    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {
        "date": datetime.date.today().isoformat(),
        "command": "make bench" + (" (quick)" if quick else ""),
        "quick": quick,
        "cpu": model,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [case.name for case in CASES]
    parser.add_argument("--only", nargs="+", choices=names, default=[], metavar="CASE", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} times fewer samples; nothing is judged")
    parser.add_argument("--json", metavar="FILE", help="save the results")
    parser.add_argument("--read", metavar="FILE", help="start from saved results; measures only what --only names")
    parser.add_argument("--write-docs", action="store_true", help="rewrite the tables of docs/benchmarks.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
