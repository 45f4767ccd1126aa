"""How wrong can the scores of boosted trees be when applicants move: certificate, attack and what lies between.

Trees of scikit-learn, XGBoost and LightGBM, 100 and 1,000 of them, are fitted to half of the 30,000 customers of the
credit data and verified on others: first within multiples of every feature's standard deviation, then within what
customers can change. Both ends of the bracket are on the page: what an attack reached and what is certified.

    python experiments/verified_trees.py --credit credit.csv.gz

Nothing is downloaded; experiments/credit_default.py says where credit.csv.gz is from.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from _running import made_with, markdown
from sklearn.ensemble import HistGradientBoostingClassifier

import certcal
from certcal.metrics import ece
from certcal.verification import InputBox
from certcal.worst_case import calibration_error

EPSILONS = (0.01, 0.02, 0.05, 0.1)
SAMPLES, EFFORT, DEPTH = 500, 30, 4
# What a customer can do about next month's score: pay a little more or less, and let the bill run up or down.
BILLS = [f"{month}_bill" for month in ("apr", "may", "jun", "jul", "aug", "sep")]
PAYMENTS = [name.replace("bill", "pay") for name in BILLS]
CODES = ("limit", "sex", "edu", "married", "age", *(name.replace("bill", "delay") for name in BILLS))
MONEY = InputBox("1sd", fixed=CODES)
CUSTOMER = InputBox({**dict.fromkeys(BILLS, "5%"), **dict.fromkeys(PAYMENTS, "5%")})


def model(library: str, trees: int) -> Any:
    rate = 0.1 if trees == 100 else 0.02
    if library == "XGBoost":
        return xgboost.XGBClassifier(n_estimators=trees, max_depth=DEPTH, learning_rate=rate, n_jobs=1)
    if library == "LightGBM":
        return lightgbm.LGBMClassifier(
            n_estimators=trees, num_leaves=16, max_depth=DEPTH, learning_rate=rate, n_jobs=1, verbose=-1
        )
    return HistGradientBoostingClassifier(
        max_iter=trees, max_depth=DEPTH, max_leaf_nodes=16, learning_rate=rate, early_stopping=False, random_state=0
    )


def read(path: Path) -> tuple[list[str], Any, Any]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    table = np.array(rows, np.float64)
    return header[:-1], table[:, :-1], table[:, -1].astype(np.int64)


def line(v: certcal.Verification, seconds: float) -> list[list[str]]:
    several = []
    for one in v:
        values = (one.reached.value, one.worst.value, one.population.value, one.width, one.reached_width)
        several.append(
            [f"{one.epsilon:g}", *(f"{value:.4f}" for value in values), f"{one.exact:.1%}", f"{seconds:.0f}"]
        )
    return several


def worst(samples: Any) -> float:
    """The worst calibration error of certified samples inside their intervals."""
    return calibration_error(samples.lower[:, 0], samples.upper[:, 0], samples.correct).value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--credit", type=Path, required=True, help="credit.csv.gz")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="customers that are verified")
    parser.add_argument("--effort", type=int, default=EFFORT)
    parser.add_argument("--trees", type=int, nargs="*", default=[100, 1000])
    asked = parser.parse_args()
    names, x, y = read(asked.credit)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:15_000], order[15_000 : 15_000 + asked.samples]
    data = certcal.data.Features(x[test], y[test], tuple(names))
    head = ["ε", "ECE reached ≥", "ECE certified ≤", "population ≤", "width", "width reached", "exact", "seconds"]
    page, made = [], []
    for library in ("scikit-learn", "XGBoost", "LightGBM"):
        for trees in asked.trees:
            fitted = model(library, trees).fit(x[train], y[train])
            clean = ece(fitted.predict_proba(x[test])[:, 1], y[test])
            begun = time.perf_counter()
            v = certcal.verify(fitted, data, MONEY, epsilon=EPSILONS, effort=asked.effort)
            spent = time.perf_counter() - begun
            rows = line(v, spent)
            page += [[f"{library}, {trees:,}", *row] for row in rows]
            begun = time.perf_counter()
            one = certcal.verify(fitted, data, CUSTOMER, effort=asked.effort)
            r = certcal.recalibrate(one)
            found = [f"{worst(samples):.4f}" for samples in (r.before, r.after)]
            made.append(
                [f"{library}, {trees:,}", f"{clean:.4f}", *line(one, time.perf_counter() - begun)[0][1:-1], *found]
            )
            print(library, trees, f"{spent:.0f} s", rows, made[-1], r.claims()[0].sentence, sep="\n  ", flush=True)
    customer = markdown(["model, trees", "ECE", *head[1:-1], "held out ≤", "recalibrated ≤"], made)
    text = "\n".join(["## What customers can change", "", customer, "", "## By ε", "", "By standard deviations:", ""])
    text += f"\n{markdown(['model, trees', *head], page)}"
    print(made_with("xgboost-cpu", "lightgbm", "scikit-learn", "numpy"), text, sep="\n\n")


if __name__ == "__main__":
    main()
