"""Speed of the exact worst case: against ADMM and the plain calibration error, in bins and in samples.

Prints tables and asserts ratios measured in this run. `--quick` leaves out what takes minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from certcal import metrics, worst_case
from certcal.binning import equal_width_edges
from certcal.worst_case._intervals import check_intervals


def intervals(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Intervals like those of a smoothed classifier: mostly confident, of all widths."""
    rng = np.random.default_rng(seed)
    centre, width = rng.beta(8, 1, n), rng.beta(2, 5, n)
    return np.clip(centre - width, 0, 1), np.clip(centre + width, 0, 1), rng.random(n) < centre


def best(call: Callable[[], object], times: int = 5) -> float:
    call()
    seconds: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def against_admm() -> list[tuple[str, float, float, bool]]:
    from certcal.worst_case.baselines import AdmmSettings, admm

    data = intervals(7_000)
    exact = worst_case.calibration_error(*data)
    seconds = best(lambda: worst_case.calibration_error(*data))
    start = time.perf_counter()
    value = admm(*data, steps=3000, settings=AdmmSettings(initial="clean")).value
    admm_seconds = time.perf_counter() - start
    print(
        f"N=7000, M=15   exact {exact.value:.4f} in {seconds * 1e3:.2f} ms   ADMM {value:.4f} in {admm_seconds:.1f} s"
    )
    return [
        ("ADMM time / exact time", admm_seconds / seconds, 1000.0, admm_seconds / seconds >= 1000),
        ("exact value / ADMM value", exact.value / value, 1.0, exact.value >= value),
    ]


def against_ece() -> list[tuple[str, float, float, bool]]:
    lower, upper, correct = intervals(10_000_000)
    plain = best(lambda: metrics.ece(lower, correct))
    ours = best(lambda: worst_case.calibration_error(lower, upper, correct))
    print(f"N=10^7, M=15   worst case {ours * 1e3:.0f} ms   plain ECE {plain * 1e3:.0f} ms")
    return [("worst case time / ECE time", ours / plain, 3.0, ours / plain <= 3)]


def in_bins() -> list[tuple[str, float, float, bool]]:
    data = intervals(100_000)
    few, many = (best(lambda m=m: worst_case.calibration_error(*data, bins=m)) for m in (15, 2000))
    print(f"N=10^5         M=15 {few * 1e3:.2f} ms   M=2000 {many * 1e3:.1f} ms")
    return [("M=2000 time / M=15 time", many / few, 20.0, many / few <= 20)]


def in_samples(largest: int) -> list[tuple[str, float, float, bool]]:
    """Growth in N; beyond 10^7 by merging tables of pieces."""
    piece = check_intervals(*intervals(10_000_000))
    per_sample: list[float] = []
    n = 1_000
    while n <= largest:

        def run(n: int = n) -> None:
            program = worst_case.SignProgram(equal_width_edges(15), "left")
            for _ in range(max(1, n // len(piece))):
                part = worst_case.SignProgram(equal_width_edges(15), "left")
                size = min(n, len(piece))
                part.add(type(piece)(piece.lower[:size], piece.upper[:size], piece.correct[:size], None))
                program.merge(part)
            program.solve()

        per_sample.append(best(run, 3) / n)
        print(f"N={n:<11,} {per_sample[-1] * 1e9:.2f} ns per sample")
        n *= 10
    growth = per_sample[-1] / per_sample[2]  # below 10^5 the fixed cost of a call dominates
    return [("time per sample at the largest N / at N=10^5", growth, 2.0, growth <= 2)]


def write_docs() -> None:
    """Regenerate the table of docs/worst-case.md: what each method finds, and in what time."""
    from certcal.worst_case.baselines import AdmmSettings, admm, brier_confidences, dece_ascent

    data = intervals(2_000)
    exact = worst_case.calibration_error(*data).value
    methods: dict[str, Callable[[], float]] = {
        "exact": lambda: worst_case.calibration_error(*data).value,
        "ADMM, 3000 steps, from the middle of the intervals": lambda: (
            admm(*data, settings=AdmmSettings(initial="clean")).value
        ),
        "ADMM, 3000 steps, from the Brier confidences": lambda: (
            admm(*data, settings=AdmmSettings(initial="brier")).value
        ),
        "gradient ascent on dECE": lambda: dece_ascent(*data).value,
        "Brier confidences": lambda: brier_confidences(*data).value,
    }
    lines = ["| method | value | share of the worst case | time |", "|---|---|---|---|"]
    methods["exact"]()
    for name, method in methods.items():
        start = time.perf_counter()
        value = method()
        seconds = time.perf_counter() - start
        shown = f"{seconds * 1e3:.2f} ms" if seconds < 0.1 else f"{seconds:.1f} s"
        lines.append(f"| {name} | {value:.4f} | {value / exact:.1%} | {shown} |")
    page = Path(__file__).parent.parent / "docs" / "worst-case.md"
    begin, end = "<!-- table: begin -->", "<!-- table: end -->"
    text = page.read_text(encoding="utf-8")
    before, after = text.split(begin)[0], text.split(end)[1]
    page.write_text(f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write-docs", action="store_true", help="only regenerate the table of docs/worst-case.md")
    options = parser.parse_args()
    quick = options.quick
    if options.write_docs:
        write_docs()
        return 0
    rows = in_bins() + in_samples(10_000_000 if quick else 100_000_000) + against_ece()
    if not quick:
        rows += against_admm()
    print()
    for name, value, target, good in rows:
        print(f"{'ok  ' if good else 'MISS'}  {name:<46} {value:>10.2f}   target {target:g}")
    return 0 if all(good for *_, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
