"""Our default map against those of other libraries, on real tasks: log loss, Brier score, mean ranks, time.

Every map is fitted to the same scores of the same calibration rows and judged on the same test rows. The goals are
ranks of this run: the best mean rank in log loss, and on no task worse than no map (paired over the test rows, one
side, Holm over all tasks, 5 %). The exit code says whether they hold.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from recalibration_tasks import FOLDS, TASKS, Scores, every_task
from tables import markdown, write_page

Floats = NDArray[np.float64]
Fitted = Callable[[Floats], Floats]
Fit = Callable[[Floats, NDArray[np.int64], bool], Fitted]

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
OURS, NONE = "certcal (auto)", "no map"
LEAST = float(np.finfo(np.float64).eps)  # a probability of 0 counts as this, as in scikit-learn's log_loss
LEVEL = 0.05
SAME = 1e-5  # of two mean log losses
FEWEST = 12  # data sets, for a verdict


def probabilities(scores: Floats, logits: bool) -> Floats:
    if not logits:
        return scores
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def two(second: Floats) -> Floats:
    return np.stack([1 - second, second], axis=1)


def fit_none(x: Floats, y: NDArray[np.int64], logits: bool) -> Fitted:
    return lambda scores: probabilities(scores, logits)


def fit_ours(x: Floats, y: NDArray[np.int64], logits: bool) -> Fitted:
    from certcal import Predictions
    from certcal.calibrators import fit_predictions, mapped

    def predictions(scores: Floats, truth: NDArray[np.int64]) -> Predictions:
        if scores.shape[1] == 2:
            return Predictions.from_scores(probabilities(scores, logits)[:, 1], truth)
        return (Predictions.from_logits if logits else Predictions.from_probabilities)(scores, truth)

    found = fit_predictions(predictions(x, y))

    def answer(scores: Floats) -> Floats:
        after = mapped(found, predictions(scores, np.zeros(len(scores), np.int64)))
        return two(after) if after.ndim == 1 else after

    return answer


def fit_scikit_learn(method: str) -> Fit:
    def fit(x: Floats, y: NDArray[np.int64], logits: bool) -> Fitted:
        from sklearn.base import BaseEstimator, ClassifierMixin
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        classes = x.shape[1]

        class Model(ClassifierMixin, BaseEstimator):
            def fit(self, scores: Floats, truth: Any) -> Model:
                return self

            def predict(self, scores: Floats) -> Any:
                return scores.argmax(axis=1)

        class Logits(Model):  # says the scores that it is given, in the way in which the model said them
            def decision_function(self, scores: Floats) -> Floats:
                return scores[:, 1] - scores[:, 0] if classes == 2 else scores

        class Probabilities(Model):
            def predict_proba(self, scores: Floats) -> Floats:
                return scores

        given: Any = Logits() if logits else Probabilities()
        given.classes_ = np.arange(classes)
        rows = np.arange(y.size)
        found = CalibratedClassifierCV(FrozenEstimator(given), method=method, cv=[(rows, rows)], ensemble=False)
        found.fit(x, y)

        def answer(scores: Floats) -> Floats:
            after = np.zeros(scores.shape)
            after[:, found.classes_] = found.predict_proba(scores)
            return after

        return answer

    return fit


def fit_probcal(x: Floats, y: NDArray[np.int64], logits: bool) -> Fitted:
    from probcal.selection import CalibratorSelector

    found = CalibratorSelector(cv=min(5, int(np.bincount(y, minlength=2).min())))
    found.fit(probabilities(x, logits)[:, 1], y)
    return lambda scores: two(np.asarray(found.predict_proba(probabilities(scores, logits)[:, 1])).reshape(-1))


def fit_probmetrics(method: str) -> Fit:
    def fit(x: Floats, y: NDArray[np.int64], logits: bool) -> Fitted:
        from probmetrics.calibrators import get_calibrator

        found = get_calibrator(method)
        found.fit(probabilities(x, logits), y)
        return lambda scores: np.asarray(found.predict_proba(probabilities(scores, logits)), np.float64)

    return fit


def fit_netcal(name: str) -> Fit:
    def fit(x: Floats, y: NDArray[np.int64], logits: bool) -> Fitted:
        from netcal import scaling

        found = getattr(scaling, name)()

        def given(scores: Floats) -> Floats:
            p = probabilities(scores, logits)
            return p[:, 1] if p.shape[1] == 2 else p

        found.fit(given(x), y)

        def answer(scores: Floats) -> Floats:
            after = np.asarray(found.transform(given(scores)), np.float64)
            return two(after.reshape(-1)) if x.shape[1] == 2 else after

        return answer

    return fit


@dataclass(frozen=True)
class Method:
    name: str
    fit: Fit
    kinds: str = "both"
    """Which tasks: of two classes, of several, or both."""


METHODS = (
    Method(NONE, fit_none),
    Method(OURS, fit_ours),
    Method("scikit-learn, sigmoid", fit_scikit_learn("sigmoid")),
    Method("scikit-learn, isotonic", fit_scikit_learn("isotonic")),
    Method("scikit-learn, temperature", fit_scikit_learn("temperature")),
    Method("probcal, selector", fit_probcal, "two"),
    Method("probmetrics, quadratic", fit_probmetrics("quadratic-scaling"), "two"),
    Method("probmetrics, SVS", fit_probmetrics("svs"), "several"),
    Method("probmetrics, SMS", fit_probmetrics("sms"), "several"),
    Method("netcal, beta", fit_netcal("BetaCalibration"), "two"),
    Method("netcal, temperature", fit_netcal("TemperatureScaling")),
)
CROSS_FITTED = tuple(method for method in METHODS if method.name.startswith("scikit-learn"))


@dataclass(frozen=True)
class Outcome:
    """One map on one task."""

    task: str
    model: str
    size: int
    cross_fitted: bool
    classes: int
    method: str
    log_loss: float
    brier: float
    seconds: float
    p_worse: float
    """Of the paired test that the map is no worse than none."""
    error: str = ""


def losses(p: Floats, y: NDArray[np.int64]) -> Floats:
    return -np.log(np.clip(p[np.arange(y.size), y], LEAST, 1))


def brier(p: Floats, y: NDArray[np.int64]) -> float:
    hot = np.zeros(p.shape)
    hot[np.arange(y.size), y] = 1
    return float(((p - hot) ** 2).sum(axis=1).mean()) / (2 if p.shape[1] == 2 else 1)


def worse(difference: Floats) -> float:
    from scipy.special import ndtr

    if difference.mean() < SAME:
        return 1.0
    spread = float(difference.std(ddof=1)) / np.sqrt(difference.size)
    return float(ndtr(-difference.mean() / spread)) if spread > 0 else 0.0


def judge(scores: Scores, size: int, cross_fitted: bool, method: Method, answer: Callable[[], Floats]) -> Outcome:
    """Run a map, time it, and compare its losses with those of the scores as they are, row by row."""
    start, error = time.perf_counter(), ""
    before = probabilities(scores.test, scores.logits)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            after = answer()
            if after.shape != before.shape or not np.isfinite(after).all():
                raise ValueError("probabilities are not finite")
        except Exception as failure:  # a library's own: it ranks last on this task
            after, error = before, f"{type(failure).__name__}: {failure}"
    taken = time.perf_counter() - start
    each = losses(after, scores.test_truth)
    return Outcome(
        *(scores.task, scores.model, size, cross_fitted, before.shape[1], method.name),
        float(each.mean()) if not error else float("inf"),
        brier(after, scores.test_truth) if not error else float("inf"),
        taken,
        worse(each - losses(before, scores.test_truth)),
        error,
    )


def run(scores: Scores, only: tuple[str, ...]) -> list[Outcome]:
    """Every method on every size; or only some of them, where the others are known from a file."""
    found: list[Outcome] = []
    kind = "two" if scores.test.shape[1] == 2 else "several"
    methods = [method for method in METHODS if method.kinds in ("both", kind) and (not only or method.name in only)]
    for size in scores.sizes:
        x, y = scores.calibration[:size], scores.truth[:size]
        for method in methods:

            def prefit(method: Method = method, x: Floats = x, y: NDArray[np.int64] = y) -> Floats:
                return method.fit(x, y, scores.logits)(scores.test)

            found.append(judge(scores, size, False, method, prefit))
    out, truth, fold, inner = scores.out_of_fold, scores.train_truth, scores.fold, scores.test_by_fold
    if out is None or truth is None or fold is None or inner is None:
        return found
    for method in (each for each in (*METHODS[:2], *CROSS_FITTED) if not only or each.name in only):

        def one_map(method: Method = method) -> Floats:
            return method.fit(out, truth, scores.logits)(scores.test)

        def ensemble(method: Method = method) -> Floats:
            fitted = (method.fit(out[fold == k], truth[fold == k], scores.logits) for k in range(FOLDS))
            return np.mean([each(said) for each, said in zip(fitted, inner, strict=True)], axis=0)

        answer = ensemble if method in CROSS_FITTED else one_map
        found.append(judge(scores, truth.size, True, method, answer))
    return found


def ranks(outcomes: list[Outcome], measure: str) -> dict[str, float]:
    """Mean rank of every method, over the tasks; equal ones share theirs."""
    from scipy.stats import rankdata

    cells: dict[Any, list[Outcome]] = {}
    for each in outcomes:
        cells.setdefault((each.task, each.model, each.size), []).append(each)
    found: dict[str, list[float]] = {}
    for cell in cells.values():
        for each, rank in zip(cell, rankdata([round(getattr(e, measure), 6) for e in cell]), strict=True):
            found.setdefault(each.method, []).append(float(rank))
    return {name: float(np.mean(values)) for name, values in found.items()}


def worse_than_none(outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes of a method that are worse than no map, at 5 % over all of them (Holm)."""
    ordered = sorted(outcomes, key=lambda each: each.p_worse)
    shown: list[Outcome] = []
    for k, each in enumerate(ordered):
        if each.p_worse > LEVEL / (len(ordered) - k):
            break
        shown.append(each)
    return shown


HEADER = ["map", "mean rank, log loss", "mean rank, Brier", "log loss", "Brier", "worse than no map", "failed", "time"]


def table(outcomes: list[Outcome]) -> list[list[str]]:
    by_loss, by_brier = ranks(outcomes, "log_loss"), ranks(outcomes, "brier")
    rows: list[list[str]] = []
    for name in sorted(by_loss, key=lambda name: by_loss[name]):
        mine = [each for each in outcomes if each.method == name]
        good = [each for each in mine if not each.error]
        rows.append(
            [
                name,
                f"{by_loss[name]:.2f}",
                f"{by_brier[name]:.2f}",
                f"{np.mean([each.log_loss for each in good]):.4f}" if good else "",
                f"{np.mean([each.brier for each in good]):.4f}" if good else "",
                f"{len(worse_than_none(good))} of {len(mine)}" if name != NONE else "",
                str(len(mine) - len(good)),
                f"{1000 * np.median([each.seconds for each in mine]):.0f} ms" if name != NONE else "",
            ]
        )
    return rows


SECTIONS = {
    "two classes, given scores": lambda each: each.classes == 2 and not each.cross_fitted,
    "several classes, given scores": lambda each: each.classes > 2 and not each.cross_fitted,
    "two classes, cross-fitted": lambda each: each.classes == 2 and each.cross_fitted,
    "several classes, cross-fitted": lambda each: each.classes > 2 and each.cross_fitted,
}


def report(outcomes: list[Outcome], missing: list[str]) -> tuple[str, list[str]]:
    """Tables as Markdown, and the goals that are missed."""
    parts: list[str] = []
    missed: list[str] = []
    for title, belongs in SECTIONS.items():
        part = [each for each in outcomes if belongs(each)]
        if not part:
            continue
        tasks = {(each.task, each.model, each.size) for each in part}
        data = {each.task for each in part}
        parts.append(f"**{title.capitalize()}**: {len(tasks)} tasks on {len(data)} data sets.")
        rows = table(part)
        parts.append(markdown(HEADER, rows))
        if rows[0][0] != OURS:
            missed.append(f"{title}: {rows[0][0]} has the best mean rank in log loss")
        for each in worse_than_none([each for each in part if each.method == OURS]):
            missed.append(f"{title}: worse than no map on {each.task}, {each.model}, {each.size} rows")
    data = {each.task for each in outcomes}
    rest = [name for name in TASKS if name not in data]
    if rest:
        parts.append(f"Not measured: {', '.join(rest)}.")
    if len(data) < FEWEST:
        parts.append(f"{len(data)} data sets are too few to judge by: the goals ask for {FEWEST}.")
        missed = []
    return "\n\n".join([*parts, *(f"Data are missing: {each}." for each in missing)]), missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(os.environ.get("CERTCAL_BENCH_DATA", Path.home() / ".cache" / "certcal-bench"))
    parser.add_argument(
        "--data", type=Path, default=here, help="folder of the archives; recalibration_tasks.py says how"
    )
    parser.add_argument("--cache", type=Path, help="folder for scores of base models; default: beside the data")
    parser.add_argument("--vgg", type=Path, help="npz of a network on CIFAR-10; default: among the data")
    parser.add_argument("--only", nargs="+", default=[], metavar="TASK")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the outcomes")
    parser.add_argument(
        "--read", type=Path, metavar="FILE", help="start from outcomes; measures only what --only names"
    )
    parser.add_argument("--ours", action="store_true", help="measure certcal and no map alone")
    parser.add_argument("--forests", action="store_true", help="measure forests of 40 trees alone, eight seeds each")
    parser.add_argument("--losses", action="store_true", help="list the tasks on which a peer's log loss is lower")
    parser.add_argument("--write-docs", action="store_true", help="rewrite the table of docs/benchmarks.md")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    if options.forests:
        text = forests(options.data)
        print(text)
        if options.write_docs:
            write_page(PAGE, "forests", text)
        return 0
    missing: list[str] = []
    outcomes: list[Outcome] = []
    cache = options.cache or options.data / "scores"
    methods = (NONE, OURS) if options.ours else ()
    if options.read:
        known = [Outcome(**each) for each in json.loads(options.read.read_text("utf-8"))]
        outcomes = [each for each in known if each.task not in options.only or (methods and each.method not in methods)]
    vgg = options.vgg or options.data / "cifar10_vgg_probabilities.npz"
    chosen = every_task(options.data, cache, vgg, tuple(options.only), missing)
    for scores in chosen if options.only or not options.read else ():
        outcomes += run(scores, methods)
        print(f"measured: {scores.task}, {scores.model}", file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=0) + "\n", "utf-8")
    text, missed = report(outcomes, missing)
    print(text)
    for error in sorted({f"{each.method}: {each.error}" for each in outcomes if each.error}):
        print(f"failed: {error[:150]}")
    if options.losses:
        _list_losses(outcomes)
    if options.write_docs:
        write_page(PAGE, "recalibration", text)
    for each in missed:
        print(f"MISS  {each}")
    return 1 if missed else 0


def forests(folder: Path) -> str:
    """Forests of 40 trees joined with a map, by scikit-learn and by certcal: means over eight seeds."""
    from recalibration_tasks import numeric
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier

    from certcal.interop.sklearn import CalibratedModel

    def credit(seed: int) -> tuple[Any, Any, int]:
        x, words = numeric(folder, "credit", "default")
        order = np.random.default_rng(seed).permutation(words.size)
        return x[order], np.unique(words, return_inverse=True)[1][order], 10_000

    def noise(seed: int) -> tuple[Any, Any, int]:
        return *make_classification(12_000, 20, n_informative=8, flip_y=0.15, random_state=seed), 4_000

    makers: dict[str, Callable[[Any], Any]] = {
        "certcal (auto)": CalibratedModel,
        "scikit-learn, sigmoid": lambda forest: CalibratedClassifierCV(forest, method="sigmoid"),
        "scikit-learn, isotonic": lambda forest: CalibratedClassifierCV(forest, method="isotonic"),
        "no map": lambda forest: forest,
    }
    rows: list[list[str]] = []
    for task, load in {"credit default": credit, "15 % of labels changed": noise}.items():
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in makers}
        for seed in range(8):
            x, y, n = load(seed)
            for name, make in makers.items():
                p = make(RandomForestClassifier(40, random_state=seed)).fit(x[:n], y[:n]).predict_proba(x[n:])
                found[name].append((brier(p, y[n:]), float(losses(p, y[n:]).mean())))
        ours = np.array(found[OURS])
        for name, values in found.items():
            means, better = np.mean(values, axis=0), (ours < np.array(values)).sum(axis=0)
            wins = [""] * 2 if name == OURS else [f"{count} of 8" for count in better]
            rows.append([task, name, *(f"{mean:.4f}" for mean in means), *wins])
    heads = ("Brier", "log loss", "certcal better, Brier", "certcal better, log loss")
    return markdown(["data", "map", *heads], rows)


def _list_losses(outcomes: list[Outcome]) -> None:
    """Where the best peer's log loss is lower than ours, by how much, the largest first."""
    ours = {(each.task, each.model, each.size, each.cross_fitted): each for each in outcomes if each.method == OURS}
    best: dict[Any, Outcome] = {}
    for each in outcomes:
        key = (each.task, each.model, each.size, each.cross_fitted)
        if each.method != OURS and each.log_loss < best.get(key, ours[key]).log_loss:
            best[key] = each
    for key, each in sorted(best.items(), key=lambda item: item[1].log_loss - ours[item[0]].log_loss):
        print(f"{each.log_loss - ours[key].log_loss:+.4f}  {each.method:<28} {key}")


if __name__ == "__main__":
    sys.exit(main())
