"""Studies of many models: rank correlations of a table of 117,702 rows, and what the measurements of one model cost.

Asserts ratios measured in this run. Peers are timed on a few pairs of columns; all pairs would take them many minutes.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from memory import peak_extra
from ratios import Row, at_least, at_most, conclude

from certcal import Predictions
from certcal.lab.study import StudyTable, battery, kendall_matrix, review, spearman_matrix
from certcal.lab.study._battery import BINNED, UNBINNED
from certcal.metrics import STUDY_BINS, classwise_ece

# The benchmark study: 6,466 topologies and 32,768 sizes on each of three data sets, 102 measurements each.
MODELS = {"topology": 6_466, "size": 32_768}
DATASETS = ("cifar10", "cifar100", "imagenet16")
PAIRS = 6  # of columns, for the peers
ROUNDS = 3
SAMPLES, CLASSES = 10_000, 100
TURNS = 15

# Targets: times of a peer per pair in ours; memory of an analysis in tables; battery in the work it cannot avoid.
FASTER = 5
TABLES = 4
UNAVOIDABLE = 2


def study_table() -> StudyTable:
    """Errors that follow a common quality of each model, at every number of bins, and two columns of AUROC."""
    rng = np.random.default_rng(0)
    models = [f"{space}-{k}" for space, count in MODELS.items() for k in range(count)]
    n = len(models)
    quality = rng.normal(size=n)
    parts: list[dict[str, Any]] = []
    for data in DATASETS:
        here = quality + 0.5 * rng.normal(size=n)
        columns: dict[str, Any] = {"model": models, "data": [data] * n, "accuracy": 0.7 + 0.05 * here}
        for stage in ("pre", "post"):
            for metric in (*BINNED, *UNBINNED):
                kind = here + rng.normal(size=n)
                for bins in STUDY_BINS if metric in BINNED else (None,):
                    error = np.exp(0.3 * (kind + 0.3 * rng.normal(size=n)) - 3)
                    columns[f"{stage}_{metric}" + (f"_{bins}" if bins else "")] = error
        for name in ("svhn", "noise"):
            columns[f"auroc_{name}"] = 1 / (1 + np.exp(-here - rng.normal(size=n)))
        parts.append(columns)
    return StudyTable.of(
        {
            name: np.concatenate([part[name] for part in parts])
            if isinstance(parts[0][name], np.ndarray)
            else [value for part in parts for value in part[name]]
            for name in parts[0]
        }
    )


def memory_of(call: Callable[[], Any]) -> tuple[float, int, Any]:
    """Seconds, peak memory beyond what is in use, and the result; memory that was freed before does not help."""
    ctypes.CDLL(None).malloc_trim(0)
    taken, (extra, result) = timed(lambda: peak_extra(call))
    return taken, extra, result


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def measured_columns(table: StudyTable) -> list[str]:
    return [str(each) for each in table.measurements] + [name for name in table.columns if name.startswith("auroc_")]


def correlations(folder: Path) -> list[Row]:
    """Write, read, and correlate every pair of columns, per data set and over all; then some pairs with the peers."""
    table = study_table()
    file = folder / "study.parquet"
    writing, _ = timed(lambda: table.write(file))
    reading, table = timed(lambda: StudyTable.read(file))
    names = measured_columns(table)
    values = table.numbers(names)
    m = values.shape[1]
    kendall_matrix(values[:500])  # compiles
    spearman_matrix(values[:500])
    print(
        f"table: {len(values):,} × {m}, {file.stat().st_size / 1e6:.0f} MB; "
        f"written {writing:.2f} s, read {reading:.2f} s"
    )
    parts = {data: table["data"] == data for data in DATASETS}
    for data, rows in parts.items():
        taken, _ = timed(lambda rows=rows: kendall_matrix(values[rows]))
        print(f"Kendall, {data}, {int(rows.sum()):,} rows, {m * (m - 1) // 2:,} pairs: {taken:.2f} s")
    few = np.flatnonzero(parts[DATASETS[0]])[: MODELS["topology"]]
    taken, _ = timed(lambda: kendall_matrix(values[few]))
    print(f"Kendall, {few.size:,} rows: {taken:.3f} s")
    own, extra, matrix = memory_of(lambda: kendall_matrix(values))
    print(
        f"Kendall, all rows: {own:.2f} s, {extra / 1e6:.0f} MB beside the {values.nbytes / 1e6:.0f} MB of the columns"
    )
    ranks, more, _ = memory_of(lambda: spearman_matrix(values))
    print(f"Spearman, all rows: {ranks:.2f} s, {more / 1e6:.0f} MB")
    rows = _against_peers(values, matrix)
    rows.append(at_most("Kendall of 117,702 × 102: memory / the columns", extra / values.nbytes, 1))
    whole, beside, _ = memory_of(lambda: review(table))
    print(f"review of the table (200 resamples): {whole:.1f} s, {beside / 1e6:.0f} MB")
    rows.append(at_most("review of the table: memory / the columns", beside / values.nbytes, TABLES))
    return rows


def _against_peers(values: Any, matrix: Any) -> list[Row]:
    """Per pair: our matrix of as many columns as the peers get, their loops over the same pairs."""
    import pandas as pd
    from scipy.stats import kendalltau

    columns = next(k for k in range(2, 100) if k * (k - 1) // 2 >= PAIRS)
    pairs = [(i, j) for i in range(columns) for j in range(i)]
    chosen = np.linspace(0, values.shape[1] - 1, columns).astype(int)
    some = np.ascontiguousarray(values[:, chosen])
    frame = pd.DataFrame(some)
    calls: dict[str, Callable[[], Any]] = {
        "certcal": lambda: kendall_matrix(some),
        "scipy": lambda: [kendalltau(some[:, i], some[:, j]).statistic for i, j in pairs],
        "pandas": lambda: frame.corr(method="kendall").to_numpy(),
    }
    best, found = dict.fromkeys(calls, float("inf")), dict[str, Any]()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            taken, found[name] = timed(call)
            best[name] = min(best[name], taken)
    for name, taken in best.items():
        print(f"  {name:<8} {1000 * taken / len(pairs):8.2f} ms per pair of {len(values):,} rows ({len(pairs)} pairs)")
    apart = max(
        max(abs(found["scipy"][k] - found["certcal"][i, j]) for k, (i, j) in enumerate(pairs)),
        float(np.abs(found["pandas"] - found["certcal"]).max()),
        float(np.abs(matrix[np.ix_(chosen, chosen)] - found["certcal"]).max()),
    )
    name = "Kendall, 117,702 rows"
    return [
        at_least(f"{name}: scipy / ours, per pair", best["scipy"] / best["certcal"], FASTER),
        at_least(f"{name}: pandas / ours, per pair", best["pandas"] / best["certcal"], FASTER),
        at_most(f"{name}: largest difference from scipy and pandas", apart, 1e-12),
    ]


def measurements(dtype: type) -> list[Row]:
    """The battery of one model, and what it cannot do without; they take turns."""
    rng = np.random.default_rng(0)
    logits = (3 * rng.standard_normal((SAMPLES, CLASSES))).astype(dtype)
    chance = rng.integers(0, CLASSES, SAMPLES)
    predictions = Predictions.from_logits(logits, np.where(rng.random(SAMPLES) < 0.6, logits.argmax(axis=1), chance))
    p, y = predictions.probabilities, predictions.labels
    assert p is not None
    calls: dict[str, Callable[[], Any]] = {
        "battery": lambda: battery(predictions),
        "classwise": lambda: classwise_ece(p, y, 500),
        "sorts": lambda: (np.sort(np.ascontiguousarray(p.T), axis=1), np.sort(predictions.confidence)),
    }
    best = dict.fromkeys(calls, float("inf"))
    for turn in range(TURNS + 1):
        for name, call in calls.items():
            taken = timed(call)[0]
            best[name] = min(best[name], taken) if turn else best[name]  # the first turn compiles
    kind = np.dtype(dtype).name
    print(f"n = {SAMPLES:,}, K = {CLASSES}, {kind}: " + ", ".join(f"{k} {1000 * v:.1f} ms" for k, v in best.items()))
    once = best["classwise"] + best["sorts"]
    print(f"  battery / (one classwise ECE and the sorts of one stage): {best['battery'] / once:.2f}, not judged")
    name = f"battery, {kind}"
    return [
        at_most(f"{name} / (classwise ECE and sorts, before and after)", best["battery"] / (2 * once), UNAVOIDABLE),
        at_most(
            f"{name} / (one classwise ECE, sorts before and after)",
            best["battery"] / (once + best["sorts"]),
            UNAVOIDABLE,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write-docs", action="store_true", help="also rewrite the table of the documentation")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = correlations(Path(folder))
    rows += [row for dtype in (np.float32, np.float64) for row in measurements(dtype)]
    return conclude(rows, "study", options.write_docs)


if __name__ == "__main__":
    sys.exit(main())
