"""A page of every kind of answer, some by the command line, some with names that would like to be markup."""

import contextlib
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import certcal
from certcal.cli import cli
from certcal.cli.errors import run
from certcal.data import read_predictions
from certcal.models import wrap
from certcal.models.networks import MLP
from certcal.smoothing import Run, sample
from tests.pinned.inputs import ensure
from tests.report.attacked import attack_result
from tests.report.compared_families import rich
from tests.report.gallery import gallery
from tests.report.recalibrated import run_samples
from tests.report.studied import review

# Would set a mark if any of it became markup or script; a file's name has no slash.
FILE_NAME = "<img src=x onerror=window.hacked=1>\"'&"
HOSTILE = f"</script><script>window.hacked=1</script></title>{FILE_NAME}<svg onload=window.hacked=1>"
# Pages whose slider chooses among several radii.
WITH_SLIDER = ("intervals", "run")
# By ``certcal report``, with the same numbers as JSON beside them.
COMMANDS = (
    "table",
    "groups",
    "intervals",
    "one-interval-table",
    "run",
    "comparison",
    "one-run",
    "nothing-certified",
    "four-samples",
)
HOSTILE_COMMANDS = ("hostile-table", "hostile-intervals", "hostile-run", "hostile-comparison")
# By results in Python: of every other verb, most with a hostile source.
RESULTS = (
    "bounds",
    "attack",
    "families",
    "recalibration",
    "recalibrated-predictions",
    "study",
    "search",
    "training",
    "verification",
    "sizes-of-a-box",
    "decisions",
)
# Without charts.
BRIEF = ("changes", "run-summary", "reproduction")
GALLERIES = ("gallery", "hostile-gallery")
PAGES = (*COMMANDS, *HOSTILE_COMMANDS, *RESULTS, *BRIEF, *GALLERIES)
# One of each kind, with most in it, and one with nothing.
RICH = ("groups", "intervals", "run", "comparison", "nothing-certified", *RESULTS, "gallery")
SIDE = 8


def make(folder: Path) -> dict[str, Path]:
    """Write all pages into a folder.

    Parameters
    ----------
    folder
        An existing one.

    Returns
    -------
    dict
        Files by the names of the pages.
    """
    folder = folder.resolve()
    made = {name: folder / f"{name}.html" for name in PAGES}
    table, intervals, tiny = folder / "predictions.csv", folder / "intervals.csv", folder / "four samples.csv"
    predictions_table(table, "hospital", ("north", "south", "a hospital with a name that is long"))
    intervals_table(intervals, ("0", "0.125", "0.25", "0.5", "1"), ("adults", "children"))
    tiny.write_text("confidence,correct\n0.9,1\n0.8,1\n0.6,0\n0.3,0\n")
    data = folder / "digits.npz"
    images, labels = digits()
    np.savez(data, inputs=images, labels=labels)
    small, large = draw(folder / "small-noise", 0.25), draw(folder / "large-noise", 0.5)

    report(made["table"], table, "--no-intervals", "--require", "ece <= 50%", "--about", "model=a small one")
    report(made["groups"], table, "--by", "hospital")
    report(made["intervals"], intervals, "--by", "group")
    bare = folder / "bare.csv"
    bare.write_text("lower,upper,correct\n" + "".join(f"0.{i}1,0.{i}9,{i % 2}\n" for i in range(1, 10)))
    report(made["one-interval-table"], bare)
    report(made["run"], small.path, "--data", data)
    report(made["comparison"], small.path, large.path)
    report(made["one-run"], small.path, "--radius", "0.125")
    report(made["nothing-certified"], small.path, "--radius", "40,50")
    report(made["four-samples"], tiny, "--no-intervals")
    _make_hostile(folder, made)
    gallery().save(made["gallery"])
    gallery(HOSTILE).save(made["hostile-gallery"])
    for name, found in _results(folder, table, small).items():
        found.save(made[name])
    return made


def _results(folder: Path, table: Path, drawn: Run) -> dict[str, certcal.Result]:
    known = read_predictions(table)
    half = np.arange(len(known)) < len(known) // 2
    old, new = certcal.measure(known.select(half), source=HOSTILE), certcal.measure(known.select(~half), source="new")
    space = folder / "space.parquet"
    ensure(folder, space.name)
    images, labels = digits()
    scaled = (images / 255).astype(np.float32)
    return {
        "bounds": certcal.bound(known, lipschitz=2.0, source=HOSTILE),
        "changes": certcal.compare(old, new),
        "attack": attack_result(source=HOSTILE),
        "families": rich(),
        "recalibration": certcal.recalibrate(run_samples(200), source=HOSTILE),
        "recalibrated-predictions": certcal.recalibrate(known, source=HOSTILE),
        "study": review(source=HOSTILE),
        "search": certcal.lab.study.search(
            folder / "space.parquet", budget=15, repeats=3, objectives=("accuracy", "hcs_2")
        ),
        "training": certcal.train(
            MLP(SIDE * SIDE, (8,), classes=3), (scaled, labels), "gaussian", sigma=0.25, epochs=3, batch=10
        ),
        "verification": certcal.verify(*trees(), epsilon=0.1, source=HOSTILE),
        "sizes-of-a-box": certcal.verify(*trees(), epsilon=[0.05, 0.1, 0.2]),
        "run-summary": certcal.summarize(drawn),
        "reproduction": certcal.reproduce("acr-theorem1", out=folder),
        "decisions": certcal.decide(model(), (images, labels), radius=0.1, sigma=0.25, n=200, n0=20, seed=3),
    }


def trees() -> tuple[Any, Any]:
    """A decision tree, and samples to verify it on."""
    features = np.random.default_rng(11).normal(size=(200, 3))
    outcomes = (features[:, 0] + features[:, 1] > 0).astype(int)
    return DecisionTreeClassifier(max_depth=4, min_samples_leaf=5).fit(features[:120], outcomes[:120]), (
        features[120:],
        outcomes[120:],
    )


def _make_hostile(folder: Path, made: dict[str, Path]) -> None:
    table, intervals = folder / f"{FILE_NAME} 1.csv", folder / f"{FILE_NAME} 2.csv"
    groups = (HOSTILE, "javascript:window.hacked=1", "{{7*7}}${7*7}\u202e")
    predictions_table(table, HOSTILE, groups)
    intervals_table(intervals, ("0", "0.5"), groups[:2])
    report(made["hostile-table"], table, "--by", HOSTILE, "--no-intervals", "--title", HOSTILE)
    report(made["hostile-intervals"], intervals, "--by", "group", "--title", HOSTILE)
    nasty = draw(folder / f"{FILE_NAME} run", 0.25, n=200, data_source=HOSTILE)
    report(made["hostile-run"], nasty.path, "--radius", "0,0.125", "--title", HOSTILE)
    report(made["hostile-comparison"], nasty.path, folder / "large-noise", "--title", HOSTILE)


def report(page: Path, *arguments: object) -> None:
    """``certcal report``, in this process.

    Parameters
    ----------
    page
        The file to write; the numbers go beside it, as JSON.
    arguments
        Of the command line.
    """
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        outputs = ["-o", str(page), "-o", str(page.with_suffix(".json"))]
        code = run(cli, ["report", *map(str, arguments), *outputs])
    if code != 0:
        raise AssertionError(said.getvalue())


def predictions_table(path: Path, by: str, groups: Iterable[str], rows: int = 900) -> None:
    """Write scores that are a little overconfident, with a column of groups.

    Parameters
    ----------
    path
        A file of comma-separated values.
    by, groups
        Name of the column, and its values.
    rows
        How many.
    """
    rng = np.random.default_rng(8)
    confidence = np.clip(rng.beta(4, 1.4, rows), 0, 1).round(4)
    correct = (rng.random(rows) < confidence**1.5).astype(int)
    named = list(groups)
    lines = [
        f'{score},{outcome},"{_quoted(named[place])}"'
        for score, outcome, place in zip(confidence, correct, rng.integers(0, len(named), rows), strict=True)
    ]
    path.write_text(f'confidence,correct,"{_quoted(by)}"\n' + "\n".join(lines) + "\n")


def intervals_table(path: Path, radii: Iterable[str], groups: Iterable[str], rows: int = 120) -> None:
    """Write certified intervals that widen with the radius while fewer rows are certified.

    Parameters
    ----------
    path
        A file of comma-separated values.
    radii, groups
        Values of the columns.
    rows
        How many per radius.
    """
    rng = np.random.default_rng(9)
    confidence = rng.beta(5, 1.2, rows)
    correct = (rng.random(rows) < confidence).astype(int)
    named = list(groups)
    lines = ["lower,upper,correct,certified,radius,group"]
    for radius in radii:
        width = float(radius) * 0.35 + 0.02
        for i in range(rows):
            low, high = max(0.0, confidence[i] - width), min(1.0, confidence[i] + width)
            certified = int(confidence[i] > 0.4 + float(radius) / 4)
            group = _quoted(named[i % len(named)])
            lines.append(f'{low:.4f},{high:.4f},{correct[i]},{certified},{radius},"{group}"')
    path.write_text("\n".join(lines) + "\n")


def _quoted(text: str) -> str:
    return text.replace('"', '""')


def digits() -> tuple[Any, Any]:
    """Forty images of shapes in three classes, drawn here: a cross, a ring and a bar."""
    rng = np.random.default_rng(10)
    shapes = _shapes()
    labels = np.arange(40) % 3
    contrast = rng.uniform(20, 160, (40, 1, 1))
    images = np.clip(shapes[labels] * contrast + rng.normal(0, 30, (40, SIDE, SIDE)) + 60, 0, 255).astype(np.uint8)
    # A few carry the wrong label, so that something is wrong with confidence.
    labels[::7] = (labels[::7] + 1) % 3
    return images, labels


def _shapes() -> Any:
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    cross = (np.abs(x) < 1) | (np.abs(y) < 1)
    ring = np.abs(np.hypot(x, y) - 2.5) < 0.8
    bar = np.abs(x - y) < 1.2
    return np.stack([cross, ring, bar]).astype(np.float64)


def model() -> Any:
    """A model that compares images with the three shapes."""
    shapes = _shapes().reshape(3, -1)
    shapes = (shapes - shapes.mean(1, keepdims=True)) / np.linalg.norm(shapes, axis=1, keepdims=True)
    return wrap(lambda batch: 2.2 * np.asarray(batch).reshape(len(batch), -1) @ shapes.T, "logits")


def draw(folder: Path, sigma: float, *, n: int = 1000, data_source: str | None = None) -> Run:
    """Sample the model.

    Parameters
    ----------
    folder
        Of the run.
    sigma, n
        Noise and draws.
    data_source
        What the run says its data is.
    """
    images, labels = digits()
    settings: Any = {"sigma": sigma, "n": n, "n0": 50, "seed": 1, "data_source": data_source}
    return sample(model(), images, labels, out=folder, **settings)
