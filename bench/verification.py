"""Cost of verifying boosted trees, in units of one predict_proba of the library on the same rows.

Prints a table and asserts ratios measured in this run: 10,000 samples × 30 features × 500 trees of depth 6. Then how
time and memory grow from 10⁵ to 10⁶ samples, of 10 features and 100 trees of depth 4.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import lightgbm
import numpy as np
import xgboost
from ratios import Row, at_most, conclude
from sklearn.ensemble import HistGradientBoostingClassifier

import certcal
from certcal.models import wrap
from certcal.verification import InputBox, verifier_of

SAMPLES, FEATURES, TREES, DEPTH = 10_000, 30, 500, 6
EPSILON = "0.05sd"
LIMIT = 50.0


def seconds(work: object, times: int = 3) -> float:
    """The shortest of a few runs."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()  # type: ignore[operator]
        found.append(time.perf_counter() - begun)
    return min(found)


def growth(rows: int) -> list[Row]:
    """Processor seconds of ten times the samples, and the memory they take beyond their features."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 10))
    y = (rng.random(rows) < 1 / (1 + np.exp(-x[:, 0] - x[:, 1]))).astype(int)
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=4, learning_rate=0.1, n_jobs=1).fit(x[:5000], y[:5000])
    certcal.verify(model, (x[:200], y[:200]), 0.02, effort=0)  # compiles
    spent: list[float] = []
    for some in (rows // 10, rows):
        before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        certcal.verify(model, (x[:some], y[:some]), 0.02, effort=0)
        spent.append(time.process_time() - begun)
        taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / x[:some].nbytes
        print(f"{some:,} samples: {spent[-1]:.1f} s of the processor, {taken:.1f} times their features more in memory")
    return [
        at_most(f"seconds of {rows:,} samples / of a tenth of them", spent[1] / spent[0], 15),
        at_most(f"memory of {rows:,} samples / of their features", taken, 10),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--rows", type=int, default=1_000_000, help="samples of which a tenth is compared with all")
    parser.add_argument("--trees", type=int, default=TREES)
    parser.add_argument("--write-docs", action="store_true", help="write the ratios into docs/benchmarks.md")
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(asked.samples, FEATURES))
    y = (x[:, :5].sum(axis=1) + np.abs(x[:, 5]) + rng.normal(size=asked.samples) > 0.8).astype(int)
    models = {
        "XGBoost": xgboost.XGBClassifier(n_estimators=asked.trees, max_depth=DEPTH, learning_rate=0.05, n_jobs=1),
        "LightGBM": lightgbm.LGBMClassifier(
            n_estimators=asked.trees, max_depth=DEPTH, num_leaves=63, learning_rate=0.05, n_jobs=1, verbose=-1
        ),
        "scikit-learn": HistGradientBoostingClassifier(
            max_iter=asked.trees, max_depth=DEPTH, max_leaf_nodes=63, learning_rate=0.05, early_stopping=False
        ),
    }
    rows: list[Row] = []
    print(f"{asked.samples:,} samples x {FEATURES} features, {asked.trees} trees of depth {DEPTH}, {EPSILON}")
    print(f"{'':14}{'predict_proba':>14}{'first bounds':>14}{'ratio':>8}{'budget 10':>12}{'mean width':>12}")
    for name, model in models.items():
        model.fit(x, y)
        verifier = verifier_of(wrap(model))
        region = InputBox(EPSILON).on(x).region(0, len(x))
        predicted = verifier.predict(x[:100]).argmax(axis=1)  # also compiles
        predicted = model.predict_proba(x).argmax(axis=1)
        once = seconds(lambda model=model: model.predict_proba(x))
        first = seconds(lambda v=verifier, r=region, p=predicted: v.verify(r, p, budget=0, attack=False), 2)
        some = InputBox(EPSILON).on(x).region(0, len(x) // 10)
        begun = time.perf_counter()
        found = verifier.verify(some, predicted[: len(some)], budget=10, attack=True)
        tight = 10 * (time.perf_counter() - begun)
        width = float((found.upper - found.lower).mean())
        print(f"{name:14}{once:>13.3f}s{first:>13.3f}s{first / once:>8.1f}{tight:>11.1f}s{width:>12.4f}")
        rows.append(at_most(f"first bounds of {name} / predict_proba", first / once, LIMIT))
    rows += growth(asked.rows)
    return conclude(rows, "verification", asked.write_docs)


if __name__ == "__main__":
    sys.exit(main())
