"""What libraries do on edge cases, asked of the libraries themselves; rewrites the tables of docs/peers.md.

Usage: ``edge_cases.py [--quick] [--write-docs]``. Each library runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from cases import OURS
from peers import PEERS
from race import environment
from rules import TENTHS, Fingerprint, explain, fingerprint, pair
from tables import markdown, power, write_page
from worker import version_of

PAGE = Path(__file__).parent.parent / "docs" / "peers.md"
LIBRARIES = (
    OURS,
    "calibstats",
    "calzone-tool",
    "MAPIE",
    "netcal",
    "probcal",
    "probmetrics",
    "pycalib",
    "relplot",
    "scikit-learn",
    "torchmetrics",
)
MANY = 40_000_000
TIED = ([0.2, 0.2, 0.2, 0.2, 0.9, 1.0], [0, 1, 0, 0, 1, 1], 3)
EQUAL = ([0.3] * 6, [0, 1, 0, 0, 1, 1], 3)


def ask(metric: str, library: str, p: Any, y: Any, bins: int = 10) -> float:
    """One value from a library; the number of bins is what its own argument is given."""
    given = bins - 1 if library == "MAPIE" else bins  # the benchmark asks MAPIE for one more
    data = SimpleNamespace(confidence=np.asarray(p), correct=np.asarray(y, np.uint8), bins=given)
    value = PEERS[metric, library](data)()
    assert value is not None
    return float(value)


def outcome(call: Callable[[], float]) -> str:
    """A value, or the exception in its own words."""
    try:
        return f"{call():.4f}"
    except Exception as problem:
        text = " ".join(str(problem).split())
        return f"{type(problem).__name__}: {text[:90]}{'…' if len(text) > 90 else ''}"


def observe(library: str, quick: bool) -> dict[str, Any]:
    """Everything that is seen of one library."""
    seen: dict[str, Any] = {"version": version_of(library)}
    if ("ece", library) in PEERS:
        seen |= _binning(library, quick)
    if ("equal_mass_ece", library) in PEERS:
        seen["ties"] = [outcome(lambda c=c: ask("equal_mass_ece", library, c[0], c[1], c[2])) for c in (TIED, EQUAL)]
    if ("ks_error", library) in PEERS:
        orders = ([1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1])
        seen["ks"] = [outcome(lambda y=y: ask("ks_error", library, np.full(4, 0.5), y)) for y in orders]
    return seen


def _binning(library: str, quick: bool) -> dict[str, Any]:
    def ece(p: Any, y: Any) -> float:
        return ask("ece", library, p, y)

    y = np.arange(11) % 2
    seen: dict[str, Any] = {
        "float64": outcome(lambda: ece(np.array(TENTHS), y)),
        "float32": outcome(lambda: ece(np.array(TENTHS, np.float32), y)),
        "fingerprint": asdict(fingerprint(ece)),
        "one": pair(ece, 0.95, 1.0, "float64"),
        "zero": pair(ece, 0.0, 0.05, "float64"),
        "nan": outcome(lambda: ece(np.array([0.2, float("nan"), 0.6, 0.8]), [0, 1, 0, 1])),
    }
    ordinary = np.array([0.2, 0.4, 0.6, 0.8, 1.0], np.float32)
    above = np.array([0.2, 0.4, 0.6, 0.8, 1 + 1.2e-7], np.float32)
    seen["above"] = [outcome(lambda p=p: ece(p, [0, 1, 0, 1, 1])) for p in (ordinary, above)]
    if not quick and library in {OURS, "relplot", "torchmetrics", "probcal", "calibstats"}:
        correct = np.arange(MANY) % 5 < 3
        seen["many"] = [outcome(lambda: ece(np.full(MANY, 0.8, np.float32), correct))]
    return seen


def collect(quick: bool) -> dict[str, dict[str, Any]]:
    """Ask every library; one that is missing or fails is reported and left out."""
    found: dict[str, dict[str, Any]] = {}
    for library in LIBRARIES:
        print(f"asking: {library} …", file=sys.stderr, flush=True)
        command = [sys.executable, __file__, "--library", library, *(["--quick"] if quick else [])]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
        if done.returncode:
            print(f"{library}: {(done.stderr.strip().splitlines() or ['no answer'])[-1]}", file=sys.stderr)
        else:
            found[library] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def tables(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Markdown tables by the name of their place in the page."""
    named = {f"{library} {seen['version']}": seen for library, seen in found.items()}
    binned = {name: seen for name, seen in named.items() if "fingerprint" in seen}
    fates = {"together": "in the last bin", "apart": "a bin of its own", "dropped": "not counted"}
    words = {"together": "in the first bin", "apart": "a bin of its own", "dropped": "not counted"}

    def rules(seen: dict[str, Any]) -> str:
        return " or ".join(explain(Fingerprint(**seen["fingerprint"]))) or "none of the rules listed"

    def rows(key: str) -> list[list[str]]:
        return [[name, *seen[key]] for name, seen in named.items() if key in seen]

    edges = [[n, fates[s["one"]], words[s["zero"]], s["nan"], s["above"][0], s["above"][1]] for n, s in binned.items()]
    return {
        "tenths": markdown(
            ["library", "float64", "float32", "rule with the same bins"],
            [[name, seen["float64"], seen["float32"], rules(seen)] for name, seen in binned.items()],
        ),
        "ends": markdown(["library", "1.0", "0.0", "a NaN among them", "with 1.0", "with 1 + 1.2e-7"], edges),
        "ties": markdown(["library", "0.2 four times, 0.9, 1.0", "0.3 six times"], rows("ties")),
        "ks": markdown(["library", "outcomes 1 1 0 0", "0 1 0 1", "0 0 1 1"], rows("ks")),
        "many": markdown(["library", "value"], rows("many")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"leave out the one with {power(MANY)} samples")
    parser.add_argument("--write-docs", action="store_true", help="rewrite the tables of docs/peers.md")
    parser.add_argument("--library", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.library:
        warnings.simplefilter("ignore")
        if options.library == OURS:
            import ours  # noqa: F401  (registers certcal)
        print(json.dumps(observe(options.library, options.quick)))
        return
    for name, table in tables(collect(options.quick)).items():
        print(f"\n{name}\n{table}")
        if options.write_docs and not (name == "many" and options.quick):
            write_page(PAGE, name, table)


if __name__ == "__main__":
    main()
