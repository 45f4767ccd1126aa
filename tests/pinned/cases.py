"""The command lines and the calls whose numbers are pinned."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ALL = ("json", "csv", "html")


@dataclass(frozen=True)
class Case:
    """A command line.

    It runs once with ``--json`` and the files of ``writes`` (as ``x.ENDING``), and once for the terminal. ``{out}`` is
    a folder of its own; words that are names of inputs have them made.
    """

    name: str
    line: str
    writes: tuple[str, ...] = ALL
    code: int = 0
    rtol: float = 1e-9

    def words(self, out: str) -> list[str]:
        return [word.replace("{out}", out) for word in shlex.split(self.line)]


TORCH = 1e-5
PAGE = "-o {out}/page.html"
CASES = (
    # Tables of every kind.
    Case("measure-confidences", "measure confidences.csv --metric all"),
    Case("measure-labels", "measure labels.csv --no-diagram --metric all"),
    Case("measure-scores", "measure scores.csv --no-diagram --metric all"),
    Case("measure-probabilities", "measure probabilities.csv --no-diagram --metric all"),
    Case("measure-logits", "measure logits.npz --no-diagram --metric all"),
    Case(
        "measure-columns",
        "measure confidences.csv --confidence confidence --correct correct --explain --no-diagram --metric all",
    ),
    Case(
        "measure-groups", "measure confidences.csv --by site --metric ece --metric top_label_brier_score --metric auroc"
    ),
    Case("measure-weights", "measure confidences.csv --weight kg --no-diagram --metric all"),
    Case("measure-pieces", "measure confidences.csv --memory 1kB --no-diagram --metric all"),
    Case("measure-pieces-groups", "measure confidences.csv --memory 1kB --by site --metric ece --no-diagram"),
    Case("measure-bins", "measure logits.npz --bins 5,10 --bins 20 --metric ece --metric mce --no-diagram"),
    Case("measure-closed-right", "measure scores.csv --closed right --bins 10 --no-diagram --metric all"),
    Case("measure-metrics", "measure logits.npz --metric ece --metric auroc --metric smooth_ece"),
    Case("measure-default", "measure scores.csv --no-diagram"),
    Case("measure-bounds", "measure scores.csv --metric ece --bounds --no-diagram"),
    # Bounds.
    Case("bound", "bound confidences.csv"),
    Case("bound-settings", "bound scores.csv --delta 0.01 --variation 2 --bins 10 --closed right"),
    Case("bound-lipschitz", "bound scores.csv --lipschitz 2"),
    Case("bound-perturb", "bound scores.csv --perturb 0.1 --seed 3"),
    Case("bound-logit", "bound scores.csv --perturb 0.3 --scale logit --seed 3"),
    Case("bound-groups", "bound confidences.csv --by site"),
    Case("bound-weights", "bound confidences.csv --weight kg --largest-weight 100"),
    Case("bound-joint", "bound scores.csv --joint"),
    Case("weighted-bounds", "measure confidences.csv --weight kg --bounds --metric ece"),
    Case("plan", "plan 0.3 scores.csv --error 0.1"),
    Case("bound-bandwidth", "bound scores.csv --choose-bandwidth 0.01", ()),
    Case("bound-classwise", "bound probabilities.csv --classwise"),
    # Intervals.
    Case("certify-intervals", "certify one-radius.csv"),
    Case("certify-radii", "certify radii.csv"),
    Case("certify-groups", "certify radii.csv --radius-column radius --by site", ("json", "csv")),
    Case("certify-failing", "certify failing.csv"),
    Case("certify-alpha", "certify one-radius.csv --alpha 0.01 --delta 0.1 --bins 5 --closed right"),
    # Searches, which on another machine stop a little elsewhere.
    Case("certify-rivals", "certify one-radius.csv --bins 5 --compare", ("json",), rtol=1e-4),
    # Runs.
    Case("certify-run", "certify run --radius 0,0.1,0.3 -o {out}/intervals.parquet"),
    *(
        Case(f"certify-run-{kind}", f"certify run --radius 0.1 --kind {kind}", ("json", "csv"))
        for kind in ("tangent", "bernstein", "cdf", "standard")
    ),
    Case("certify-run-all-kinds", "certify run --radius 0.1 --kind all"),
    Case("certify-run-familywise", "certify run --radius 0.1,0.2 --familywise --alpha 0.01"),
    Case("certify-run-nothing", "certify run --radius 40"),
    # Pages.
    Case("report-table", f"report confidences.csv --metric all {PAGE}", ("json", "csv")),
    Case("report-groups", f"report confidences.csv --by site --no-intervals --metric all {PAGE}", ()),
    Case("report-pieces", f"report scores.csv --memory 1kB --metric all {PAGE}", ()),
    Case("report-intervals", f"report radii.csv {PAGE}", ("csv",)),
    Case("report-run", f"report run --radius 0.1,0.2 --data points.npz {PAGE}", ("csv",)),
    Case("report-runs", f"report run run-small {PAGE}", ("json", "csv")),
    Case("report-families", f"report linear=run other=other {PAGE}", ("csv",)),
    Case("compare-scores", "compare two-scores.csv --score old,new --outcome won --metric all --bounds --no-diagram"),
    # Robustness.
    Case("compare-runs", "compare run run-small --radius 0,0.25,0.5"),
    Case("compare-logs", "compare a.tsv b.tsv --sigma 0.25 --sigma 1 -n 1000 --radius 0,0.5"),
    Case("compare-run-and-log", "compare run a.tsv --sigma 0.25 -n 1000 --alpha 0.001", ("csv",)),
    Case(
        "compare-families",
        "compare linear=run linear=run-small other=other --radius 0.25 --budget 100,0.01",
        ("json", "html"),
    ),
    # Attacks.
    Case(
        "attack",
        "attack --model net.safetensors --data pictures.npz --steps 8 --epsilon 16/255 --no-diagram",
        rtol=TORCH,
    ),
    Case(
        "attack-smoothed",
        "attack --model net.safetensors --data pictures.npz --steps 4 --epsilon 0.2 --norm l2 --sigma 0.1 --draws 4 "
        "--seed 3 --attacks plus-true,one-step --save {out}/kept --no-diagram",
        ("json", "csv"),
        rtol=TORCH,
    ),
    # Maps.
    Case("recalibrate-logits", "recalibrate fit logits.npz", ("json", "csv")),
    Case("recalibrate-scores", "recalibrate fit scores.csv --method histogram --map-bins 5", ("json", "csv")),
    Case("recalibrate-vector", "recalibrate fit probabilities.csv --method vector --seed 1", ("json", "csv")),
    Case("recalibrate-intervals", "recalibrate fit radii.csv --tradeoffs 1", ("json", "html")),
    Case("recalibrate-run", "recalibrate fit run --radius 0.1 --tradeoffs 0,1"),
    Case("recalibrate-all", "recalibrate fit radii.csv --fit-on-all --tradeoff 1", ("json",)),
    Case("apply-to-logits", "recalibrate apply map-logits.json logits.npz --all -o {out}/after.csv", ()),
    Case("apply-to-scores", "recalibrate apply map-scores.json scores.csv --all -o {out}/after.parquet", ()),
    Case("apply-to-intervals", "recalibrate apply map-radii.json radii.csv -o {out}/after.csv", ()),
    Case("apply-to-run", "recalibrate apply map-run.json run --radius 0.1 -o {out}/after.parquet", ()),
    # Studies.
    Case("study-measure", "study measure zoo --bins 5,15 -o {out}/study.parquet", ()),
    Case("study-review", "study review study.parquet --resamples 20 --robustness fgsm --size params --top 10"),
    Case(
        "study-search",
        "study search space.parquet --evaluations 15 --repeats 3 --objective accuracy,hcs_2 --seed 4",
        ("json", "csv"),
    ),
    Case("study-convert", "study convert published.csv --dataset cifar10 -o {out}/tss.parquet", ()),
    Case(
        "study-convert-nats",
        "study convert by-index.csv --architectures architectures.json -o {out}/nats.parquet",
        (),
    ),
    # Runs as such.
    Case(
        "sample",
        "sample --model tests.smoothing.models_for_tests:linear --outputs logits --data points.npz --sigma 0.5 -n 400 "
        "--n0 20 --seed 7 --batch 32 -o {out}/run",
        (),
    ),
    Case(
        "decide",
        "decide --model tests.smoothing.models_for_tests:linear --outputs logits --data points.npz --sigma 0.5 -n 2000 "
        "--n0 20 --seed 7 --batch 32 --radius 0.25 --alpha 0.01",
        ("parquet",),
    ),
    Case("runs-show", "runs show run", ()),
    Case(
        "train",
        "train --method gaussian --data pictures.npz --model mlp --sigma 0.25 --epochs 2 --batch 16 -o {out}/run",
        (),
        rtol=TORCH,
    ),
    # Names that would like to be formulas, escapes or markup.
    Case("hostile-measure", "measure hostile.csv --by '<b>=1+1</b>' --metric ece --metric top_label_brier_score"),
    Case("hostile-certify", "certify hostile-intervals.csv --by group --bins 5", ("csv", "html")),
    Case("hostile-report", f"report hostile.csv --by '<b>=1+1</b>' --no-intervals --metric all {PAGE}", ("csv",)),
)

# Exit code 2, nothing on standard output, nothing written.
OUTPUTS = "-o {out}/x.json -o {out}/x.csv -o {out}/x.html"
REFUSED = {
    "no-such-table": f"measure missing.csv {OUTPUTS}",
    "empty-table": f"measure empty.csv {OUTPUTS}",
    "header-alone": f"measure header.csv {OUTPUTS}",
    "words-for-numbers": f"measure words.csv {OUTPUTS}",
    "huge-number": f"measure huge.csv {OUTPUTS}",
    "large-number": f"measure large.csv {OUTPUTS}",
    "nan": f"measure nan.csv {OUTPUTS}",
    "no-known-column": f"measure strange.csv {OUTPUTS}",
    "bytes": f"measure bytes.csv {OUTPUTS}",
    "broken-parquet": f"measure broken.parquet {OUTPUTS}",
    "broken-npz": f"measure broken.npz {OUTPUTS}",
    "no-such-metric": f"measure scores.csv --metric eec {OUTPUTS}",
    "no-bins": f"measure scores.csv --bins 0 {OUTPUTS}",
    "many-bins": f"measure scores.csv --bins 99999999999999999999 {OUTPUTS}",
    "ending": "measure scores.csv -o {out}/x.doc",
    "empty-bound": f"bound empty.csv {OUTPUTS}",
    "pieces-auroc": f"measure scores.csv --memory 1kB --metric auroc {OUTPUTS}",
    "bound-of-two-kinds": f"bound scores.csv --lipschitz 2 --perturb 0.1 {OUTPUTS}",
    "bound-delta": f"bound scores.csv --delta 1e400 {OUTPUTS}",
    "certify-missing": f"certify missing {OUTPUTS}",
    "certify-empty": f"certify empty.csv {OUTPUTS}",
    "crossed-intervals": f"certify crossed.csv {OUTPUTS}",
    "huge-intervals": f"certify huge-intervals.csv {OUTPUTS}",
    "broken-run": f"certify broken-run {OUTPUTS}",
    "certify-radius": f"certify run --radius 1e400 {OUTPUTS}",
    "report-missing": f"report missing.csv {OUTPUTS}",
    "report-empty": f"report empty.csv {OUTPUTS}",
    "report-broken-run": f"report broken-run {OUTPUTS}",
    "compare-broken-log": f"compare broken.tsv a.tsv --sigma 0.5 -n 1000 {OUTPUTS}",
    "compare-without-sigma": f"compare a.tsv b.tsv {OUTPUTS}",
    "attack-without-data": "attack --model net.safetensors --data missing.npz --epsilon 0.1 --save {out}/kept",
    "fit-empty": "recalibrate fit empty.csv -o {out}/map.json",
    "apply-broken-map": "recalibrate apply broken-map.json scores.csv -o {out}/after.csv",
    "review-broken": f"study review broken.parquet {OUTPUTS}",
    "search-missing": "study search missing.parquet -o {out}/x.csv",
    "convert-broken": "study convert strange.csv -o {out}/x.parquet",
    "sample-without-data": "sample --model tests.smoothing.models_for_tests:linear --outputs logits "
    "--data missing.npz --sigma 0.5 -o {out}/run",
    "runs-show-broken": "runs show broken-run",
    "study-measure-missing": "study measure missing -o {out}/study.parquet",
}


# --- calls from Python: numbers, and a result that a notebook shows --------------------------------------------------


def _measured(folder: Path) -> tuple[Any, Any]:
    import certcal
    from certcal.data import read_predictions

    found = certcal.measure(read_predictions(folder / "scores.csv"), bins=[10, 15], metrics="all")
    return [[line.value, line.n] for line in found], found


def _certified(folder: Path) -> tuple[Any, Any]:
    from certcal.data import read_intervals
    from certcal.worst_case import calibration_error, certify

    (part,) = read_intervals(folder / "one-radius.csv").parts()
    summary = certify(part.lower, part.upper, part.correct, certified=part.certified, bins=10)
    direct = calibration_error(part.lower, part.upper, part.correct, bins=10)
    assert summary.population is not None
    values = {
        "accuracy": summary.accuracy.value,
        "all": {name: found.worst_all.value for name, found in summary.ranges.items()},
        "population": [summary.population.value, summary.population_all.value],
        "calibration_error": direct.value,
    }
    return values, summary


def _bounded(folder: Path) -> tuple[Any, Any]:
    from certcal.bounds import bounded_variation
    from certcal.data import read_predictions

    known = read_predictions(folder / "scores.csv")
    found = bounded_variation(known.confidence, known.correct, 0.01)
    return [found.value, found.n], found


def _compared(folder: Path) -> tuple[Any, Any]:
    from certcal.lab.logs import compare
    from certcal.smoothing import open_run

    found = compare([open_run(folder / name).counts() for name in ("run", "run-small")], at=[0.0, 0.25])
    return [[run.average.value, list(run.curve.texts)] for run in found.runs], found


CALLS: Mapping[str, tuple[tuple[str, ...], Callable[[Path], tuple[Any, Any]]]] = {
    "python-measure": (("scores.csv",), _measured),
    "python-certify": (("one-radius.csv",), _certified),
    "python-bound": (("scores.csv",), _bounded),
    "python-compare": (("run", "run-small"), _compared),
}
