"""``certcal compare``: robustness of runs and logs, shown, printed as JSON and written to files."""

import csv
import io
import json

import numpy as np
import pytest

from certcal.models import wrap
from certcal.smoothing import sample
from certcal.smoothing.robustness import VoteRecord, vote_radii
from tests.cli.conftest import flat

N = 1000


def write(path, votes, sigma, alpha=0.001):
    rows = ["idx\tlabel\tpredict\tradius\tcorrect\ttime"]
    for index, radius in enumerate(vote_radii(votes, N, sigma, alpha)):
        wrong = index % 5 == 4
        if np.isnan(radius):
            rows.append(f"{index}\t3\t-1\t0.0\t0\t0:01")
        else:
            rows.append(f"{index}\t3\t{1 if wrong else 3}\t{radius:.3}\t{0 if wrong else 1}\t0:01")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def logs(tmp_path):
    rng = np.random.default_rng(3)
    votes = [np.append(rng.integers(low, N + 1, 98), [N, N - 1]) for low in (700, 300)]
    return write(tmp_path / "small.tsv", votes[0], 0.25), write(tmp_path / "large.tsv", votes[1], 1.0)


def test_standard_input_is_compared_with_something_else_only(certcal_command):
    ran = certcal_command("compare", "-", "-")
    assert (ran.code, ran.out) == (2, "")
    assert "standard input is given twice and can be read once" in ran.err


def test_what_is_said_to_be_certified_is_sure_in_every_output(certcal_command, tmp_path):
    """Of four radii that print as 0.5, none counts at 0.5: two are below it, and a log does not say which."""
    radii = vote_radii(np.arange(10_001), 10_000, 0.5, 0.001)
    first = int(np.argmax(radii >= 0.5))
    rows = [f"{i}\t3\t3\t{radii[k]:.3}\t1\t0:01" for i, k in enumerate([first - 2, first - 1, first, first + 1, 9000])]
    log = tmp_path / "log.tsv"
    log.write_text("\n".join(["idx\tlabel\tpredict\tradius\tcorrect\ttime", *rows]) + "\n")
    setting = ("--sigma", 0.5, "-n", 10_000, "--alpha", 0.001, "--radius", 0.5)
    files = [tmp_path / f"c.{ending}" for ending in ("csv", "json", "html")]
    ran = certcal_command("compare", log, *setting, *(part for file in files for part in ("-o", file)))
    assert (ran.code, [line.split() for line in ran.out.splitlines() if line.startswith("0.5 ")]) == (
        0,
        [["0.5", "100.00", "(≥", "20.00)"]],
    )
    assert "after ≥ what they certify, where that is less" in flat(ran.out)
    assert "the average certified radius is by the radii as printed" in flat(ran.out)
    rows = {row["quantity"]: row for row in csv.DictReader(io.StringIO(files[0].read_text()))}
    row, printed = rows["certified_accuracy"], rows["certified_accuracy_as_printed"]
    assert (row["source"], row["certified"], row["text"]) == (str(log), "1", "0.2000")
    assert (printed["certified"], printed["value"]) == ("5", "1.0")
    assert rows["average_certified_radius"]["text"] == "as printed"
    run = json.loads(files[1].read_text())["runs"][0]
    assert (run["certified_accuracy"]["certified"], run["certified_as_printed"]) == ([1], [5])
    assert run["average_certified_radius"]["as_printed"] is True
    assert "1 of these 5 samples (20.00 %)" in files[2].read_text()
    assert "0.2000" not in files[2].read_text().partition("application/json")[0]  # one unit for one quantity
    families = certcal_command("compare", f"x={log}", *setting)
    assert next(line for line in families.out.splitlines() if line.startswith("0.5 ")).split()[1:] == [
        "100.00",
        "(≥",
        "20.00)",
    ]


def test_one_log_is_shown_without_a_verdict(certcal_command, logs):
    ran = certcal_command("compare", logs[0], "--sigma", 0.25, "-n", N)
    assert ran.code == 0
    assert "Dominance" not in ran.out


def test_a_claim_that_the_radii_contradict_is_said(certcal_command, logs):
    ran = certcal_command("compare", logs[0], "--sigma", 0.25, "-n", N, "--alpha", 0.05)
    assert ran.code == 0
    assert "not certified at alpha = 0.05 as claimed" in flat(ran.out)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "SOURCE is missing"),
        (("none.tsv", "--sigma", 1, "-n", 10), "there is no such run or log"),
        (("LOG",), "-n: "),
        (("LOG", "-n", 1000), "--sigma: "),
        (("LOG", "--sigma", 1), "a log does not say how it was certified"),
        (("LOG", "LOG", "LOG", "--sigma", 1, "--sigma", 1, "-n", 1000), "--sigma: 2 values are given for 3 logs"),
        (("LOG", "--sigma", 0.25, "-n", 1000, "--radius", "-1"), "--radius: -1 is not a number of at least 0"),
        (("LOG", "--sigma", 0.25, "-n", 1000, "--radius", "nan"), "--radius: 'nan' is not a number"),
        (("LOG", "--sigma", 0.25, "-n", 1000, "--radius", "x"), "--radius: 'x' is not a number"),
        (("LOG", "--sigma", 0, "-n", 1000), "--sigma"),
        (("LOG", "--sigma", 0.25, "-n", 1000, "-o", "curves.doc"), "choose one of the endings .html"),
    ],
)
def test_bad_input_leaves_with_a_sentence(certcal_command, logs, arguments, text):
    ran = certcal_command("compare", *(logs[0] if argument == "LOG" else argument for argument in arguments))
    assert ran.code == 2
    assert text in flat(ran.err)
    assert "Traceback" not in ran.err


class Sign:
    outputs = "probabilities"
    description = "sign"

    def __call__(self, batch):
        right = (batch[:, 0] > 0).astype(np.float64)
        return np.stack([1 - right, right], axis=1)


def test_runs_and_logs_are_compared_together(certcal_command, logs, tmp_path):
    points = np.linspace(0.1, 1.5, 100, dtype=np.float32)[:, None]
    run = sample(wrap(Sign(), outputs="probabilities"), points, np.full(100, 1), sigma=0.5, n=N, out=tmp_path / "run")
    ran = certcal_command("compare", tmp_path / "run", logs[1], "--sigma", 1, "-n", N, "--radius", 0.5, "--json")
    assert (ran.code, ran.err) == (0, "")
    document = json.loads(ran.out)
    own = VoteRecord.from_counts(run.counts())
    certified = int(np.count_nonzero(own.correct & (own.radii(0.001) >= 0.5)))
    assert [run["sigma"] for run in document["runs"]] == [0.5, 1.0]
    assert document["runs"][0]["certified_accuracy"]["certified"] == [certified]
    assert "different samples" in document["notes"][0]


@pytest.mark.parametrize("option", [("--sigma", 0.25), ("-n", 500)])
def test_options_for_logs_are_refused_where_there_are_only_runs(certcal_command, tmp_path, option):
    sample(wrap(Sign(), outputs="probabilities"), [[0.5]], [1], sigma=0.5, n=100, out=tmp_path / "run")
    ran = certcal_command("compare", tmp_path / "run", tmp_path / "run", *option)
    assert ran.code == 2
    assert f"{option[0]}: it is for logs, and runs know their own; leave it out" in ran.err
