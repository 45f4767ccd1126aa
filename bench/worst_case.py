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

DOCS = Path(__file__).parent.parent / "docs"
# What is measured, the ratio, the limit as text, and whether it holds.
Row = tuple[str, float, str, bool]


def intervals(n: int, seed: int = 0, widest: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Intervals like those of a smoothed classifier: mostly confident, of all widths up to a limit."""
    rng = np.random.default_rng(seed)
    centre, width = rng.beta(8, 1, n), widest * rng.beta(2, 5, n)
    return np.clip(centre - width, 0, 1), np.clip(centre + width, 0, 1), rng.random(n) < centre


def race(calls: list[Callable[[], object]], rounds: int = 15) -> list[float]:
    """Best time of each; they take turns, so that a busy moment of the machine hits them alike."""
    best = [float("inf")] * len(calls)
    for call in calls:
        call()
    for _ in range(rounds):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def timed(call: Callable[[], float]) -> tuple[float, float]:
    start = time.perf_counter()
    value = call()
    return value, time.perf_counter() - start


def in_words(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds < 0.1 else f"{seconds:.1f} s"


def on_one_thread() -> None:
    """Let torch compute on one thread, as the exact program does at these sizes; its values then repeat, too."""
    import torch

    torch.set_num_threads(1)


def against_admm() -> list[Row]:
    from certcal.lab.baselines import AdmmSettings, admm

    on_one_thread()
    data = intervals(7_000)
    exact = worst_case.calibration_error(*data)
    (seconds,) = race([lambda: worst_case.calibration_error(*data)])
    value, admm_seconds = timed(lambda: admm(*data, steps=3000, settings=AdmmSettings(initial="clean")).value)
    print(
        f"N=7000, M=15   exact {exact.value:.4f} in {in_words(seconds)}   ADMM {value:.4f} in {in_words(admm_seconds)}"
    )
    return [
        (
            "time of one ADMM run of 3,000 steps / time of the exact value, N = 7,000",
            admm_seconds / seconds,
            "≥ 1000",
            admm_seconds / seconds >= 1000,
        ),
        ("exact value / value of that run", exact.value / value, "≥ 1", exact.value >= value),
    ]


def against_ece() -> list[Row]:
    lower, upper, correct = intervals(10_000_000)
    # Both use all cores, so only rounds in which the machine is otherwise idle count; many make that likely.
    calls = [lambda: metrics.ece(lower, correct), lambda: worst_case.calibration_error(lower, upper, correct)]
    plain, ours = race(calls, rounds=60)
    print(f"N=10^7, M=15   worst case {in_words(ours)}   plain ECE {in_words(plain)}")
    return [("time of the worst case / time of the plain ECE, N = 10⁷", ours / plain, "≤ 3", ours / plain <= 3)]


def in_bins() -> list[Row]:
    data = intervals(100_000)
    few, many = race([lambda m=m: worst_case.calibration_error(*data, bins=m) for m in (15, 2000)])
    print(f"N=10^5         M=15 {in_words(few)}   M=2000 {in_words(many)}")
    return [("time with 2,000 bins / time with 15, N = 10⁵", many / few, "≤ 20", many / few <= 20)]


def in_samples(largest: int) -> list[Row]:
    """Growth in N, through a program that keeps sums only; beyond 10^7 piece after piece."""
    piece = intervals(10_000_000)
    per_sample: list[float] = []
    n = 1_000
    while n <= largest:

        def run(n: int = n) -> None:
            program = worst_case.SignProgram()
            for _ in range(max(1, n // piece[0].size)):
                program.add(*(column[:n] for column in piece))
            program.result()

        per_sample.append(race([run], 3)[0] / n)
        print(f"N={n:<11,} {per_sample[-1] * 1e9:.2f} ns per sample")
        n *= 10
    growth = per_sample[-1] / per_sample[2]  # below 10^5 the fixed cost of a call dominates
    power = round(np.log10(largest))
    return [(f"time per sample at N = 10^{power} / at 10⁵, streamed".replace("^8", "⁸"), growth, "≤ 2", growth <= 2)]


def methods_table() -> list[str]:
    """What each method finds, and in what time."""
    from certcal.lab.baselines import AdmmSettings, admm, admm_grid, brier_confidences, dece_ascent

    on_one_thread()
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
        "ADMM, the largest of the 16 runs of the grid": lambda: admm_grid(*data).value,
        "gradient ascent on dECE": lambda: dece_ascent(*data).value,
        "Brier confidences": lambda: brier_confidences(*data).value,
    }
    lines = ["| method | value | share of the worst case | time |", "|---|---|---|---|"]
    for name, method in methods.items():
        value, seconds = timed(method)
        lines.append(f"| {name} | {value:.4f} | {value / exact:.1%} | {in_words(seconds)} |")
    return lines


def widths_table() -> list[str]:
    """The share of the worst case that each method finds as intervals become wider."""
    from certcal.lab.baselines import admm, admm_grid, brier_confidences, dece_ascent

    on_one_thread()
    names = ("half-width up to", "worst case", "sign changes", "ADMM", "ADMM, 16 runs", "dECE", "Brier confidences")
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for widest in (0.1, 0.3, 1.0):
        data = intervals(600, widest=widest)
        exact = worst_case.calibration_error(*data)
        assert exact.signs is not None
        changes = int(np.count_nonzero(np.diff(exact.signs)))
        found = [method(*data).value / exact.value for method in (admm, admm_grid, dece_ascent, brier_confidences)]
        shares = " | ".join(f"{share:.0%}" for share in found)
        lines.append(f"| {widest:g} | {exact.value:.4f} | {changes} of 14 | {shares} |")
    return lines


def targets_table(rows: list[Row]) -> list[str]:
    """Every ratio, its limit, and whether it holds."""
    lines = ["|what|limit|measured|", "|---|---|---|"]
    for name, value, limit, good in rows:
        measured = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
        lines.append(f"|{name}|{limit}|{measured}{'' if good else ', MISSED'}|")
    return lines


def write(page: str, name: str, lines: list[str]) -> None:
    """Replace what stands between the marks of a name on a page."""
    path = DOCS / page
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    path.write_text(before + begin + "\n" + "\n".join(lines) + "\n" + end + rest.split(end)[1], encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write-docs", action="store_true", help="also rewrite the tables of the documentation")
    options = parser.parse_args()
    rows = in_bins() + in_samples(10_000_000 if options.quick else 100_000_000) + against_ece()
    if not options.quick:
        rows += against_admm()
    print()
    for name, value, limit, good in rows:
        print(f"{'ok  ' if good else 'MISS'}  {name:<75} {value:>10.2f}   target {limit}")
    if options.write_docs:
        write("benchmarks.md", "worst case targets", targets_table(rows))
        write("worst-case.md", "table", methods_table())
        write("worst-case.md", "widths", widths_table())
    return 0 if all(good for *_, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
