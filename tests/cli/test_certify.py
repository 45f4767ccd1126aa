"""``certcal certify``: the claims of the library, shown, printed as JSON and written to files."""

import csv
import importlib.util
import io
import json
from functools import partial

import numpy as np
import pytest

from certcal._base.rounding import claim_text
from certcal.data import read_intervals
from certcal.lab import baselines
from certcal.lab.baselines import _compare
from certcal.report.numbers import minus
from certcal.worst_case import calibration_error, certify
from tests.cli.conftest import flat

RNG = np.random.default_rng(9)
N = 80
Z = RNG.beta(6, 2, N)
CORRECT = (RNG.random(N) < Z).astype(int)
MARGIN = RNG.random(N)
SITE = np.array(["north", "south"])[RNG.integers(0, 2, N)]


def rows(radius):
    lower, upper = np.clip(Z - radius, 0, 1), np.clip(Z + radius, 0, 1)
    for index in range(N):
        certified = int(MARGIN[index] > radius)
        yield f"{radius},{lower[index]},{upper[index]},{CORRECT[index]},{certified},{SITE[index]}"


HEADER = "radius,lower,upper,correct,certified,site\n"


@pytest.fixture
def radii(tmp_path):
    path = tmp_path / "radii.csv"
    path.write_text(HEADER + "\n".join(row for radius in (0.0625, 0.25, 2) for row in rows(radius)) + "\n")
    return path


@pytest.fixture
def intervals(tmp_path):
    """One radius, without saying so."""
    path = tmp_path / "intervals.csv"
    lines = [row.split(",", 1)[1] for row in (HEADER.strip(), *rows(0.125))]
    path.write_text("\n".join(lines) + "\n")
    return path


def expected(path, index=0, **options):
    part = [part for part in read_intervals(path).parts() if part.group is None][index]
    return certify(part.lower, part.upper, part.correct, certified=part.certified, **options)


def test_the_block_shows_the_claims_of_the_library(certcal_command, intervals):
    ran = certcal_command("certify", intervals)
    assert (ran.code, ran.err) == (0, "")
    summary = expected(intervals)
    for _, _, claim in summary.claims():
        assert minus(claim.text) in ran.out
    shown = flat(ran.out)
    kept = f"the {summary.n_certified} certified samples"
    assert f"The calibration error is at most {claim_text(summary['calibration_error'].worst)} on {kept}." in shown
    assert (
        f"calibration error in the population is at most {claim_text(summary.population)} over certified samples"
        in shown
    )
    assert summary.information.verdict in shown
    assert f"80 rows, {summary.n_certified} certified" in ran.out
    assert "[a, b), the last one closed" in ran.out
    full = flat(certcal_command("certify", intervals, "--explain").out)
    assert all(claim.sentence[1:] in full for _, _, claim in summary.claims())
    assert max(len(line) for line in ran.out.splitlines() if not line.startswith("  certcal ")) <= 80


def test_columns_can_be_named(certcal_command, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("a,b,won,ok,mine,truth\n.25,.5,1,1,x,x\n.5,.75,0,1,y,x\n")
    ends = ("--lower", "a", "--upper", "b")
    ran = certcal_command("certify", path, *ends, "--correct", "won", "--certified", "ok")
    assert ran.code == 0
    assert "lower 'a', upper 'b', correct 'won', certified 'ok'" in flat(ran.out)
    ran = certcal_command("certify", path, *ends, "--prediction", "mine", "--label", "truth")
    assert "correct where 'mine' equals 'truth'" in flat(ran.out)


def test_the_table_itself_and_intervals_are_refused_as_outputs_and_pictures_are_drawn(
    certcal_command, intervals, tmp_path
):
    assert "choose another name" in certcal_command("certify", intervals, "-o", intervals, "--force").err
    ran = certcal_command("certify", intervals, "-o", "certified.parquet")
    assert ran.code == 2
    assert "choose one of the endings .html, .txt, .png, .svg, .pdf, .json, .csv" in ran.err
    assert certcal_command("certify", intervals, "-o", tmp_path / "worst.svg").code == 0
    assert b"<svg" in (tmp_path / "worst.svg").read_bytes()


@pytest.fixture
def quick(monkeypatch):
    """The published methods with few steps."""
    methods = dict(_compare.METHODS)
    methods["ADMM"] = (False, partial(baselines.admm, steps=20))
    methods["dECE ascent"] = (False, partial(baselines.dece_ascent, steps=5))
    monkeypatch.setattr(_compare, "METHODS", methods)


def test_compare_puts_the_baselines_and_their_times_next_to_the_exact_value(certcal_command, radii, quick, tmp_path):
    path = tmp_path / "compared.csv"
    document = json.loads(certcal_command("certify", radii, "--compare", "--by", "site", "--json", "-o", path).out)
    compared = {(r["radius"], r["group"]): r["comparison"] for r in document["results"] if "comparison" in r}
    assert list(compared) == [(0.0625, None), (0.25, None)]  # nothing is certified at 2
    for methods, result in zip(compared.values(), (document["results"][0], document["results"][3]), strict=True):
        exact, *others = methods
        assert exact["value"] == pytest.approx(result["calibration_error"]["certified"]["value"], abs=1e-12)
        assert [method["method"] for method in others] == ["ADMM", "dECE ascent", "Brier confidences"]
        assert all(method["value"] <= exact["value"] for method in others)
        assert all(float(method["text"]) <= method["value"] and method["side"] == "lower" for method in others)
        assert float(exact["text"]) >= exact["value"]
        assert all(method["seconds"] > 0 and method["sentence"] for method in methods)
    rows_of = [row for row in csv.DictReader(io.StringIO(path.read_text())) if row["seconds"]]
    assert [row["claim"] for row in rows_of] == ["exact", "ADMM", "dECE ascent", "Brier confidences"] * 2


def test_compare_says_that_only_the_exact_value_is_a_certificate(certcal_command, intervals, quick):
    out = certcal_command("certify", intervals, "--compare").out
    part = next(iter(read_intervals(intervals).parts()))
    worst = calibration_error(part.lower, part.upper, part.correct, certified=part.certified)
    assert f"exact at most {worst.text}" in flat(out)
    assert "ADMM at least" in flat(out)
    assert "Only the exact value is a certificate" in flat(out)
    assert max(len(line) for line in out.splitlines() if not line.startswith("  certcal ")) <= 80


def test_compare_without_torch_is_one_sentence(certcal_command, intervals, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else find(name, *rest))
    ran = certcal_command("certify", intervals, "--compare")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert "--compare: admm needs torch; install it with: pip install 'certcal[torch]'; or leave it out" in ran.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lower,upper,correct\n.1,.2,1\n.9,.4,1\n", "column 'lower', row 2 is 0.9, above 0.4 in column 'upper'"),
        ("lower,upper,correct\n.1,1.5,1\n", "column 'upper', row 1 is 1.5, outside [0, 1]"),
        ("lower,upper,correct\nnan,.5,1\n", "column 'lower', row 1 is empty; fill it or drop the row"),
        ("lowr,upper,correct\n.1,.5,1\n", "did you mean 'lowr'?"),
        ("lower,upper\n.1,.5\n", "no column says which predictions are correct; name it as correct"),
        ("lower,upper,correct\n", "the table has no rows"),
    ],
)
def test_bad_tables_are_one_sentence_and_exit_code_2(certcal_command, tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    ran = certcal_command("certify", path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"certcal: error: {path}: ")
    assert ran.err.count("\n") == 1
    assert message in ran.err


@pytest.mark.parametrize(
    "options",
    [("--delta", "0"), ("--delta", "1"), ("--delta", "nan"), ("--alpha", "1"), ("--alpha", "-0.1"), ("--bins", "0")],
)
def test_settings_out_of_range_are_refused(certcal_command, intervals, options):
    ran = certcal_command("certify", intervals, *options)
    assert (ran.code, ran.out) == (2, "")
    assert options[0].strip("-") in ran.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--bins", "5,10"), "--bins: '5,10' is not a whole number from 1 to 10000"),
        (("--bins", "10001"), "--bins: 10001 is not a whole number from 1 to 10000"),
        (("--delta", "small"), "--delta: 'small' is not a number between 0 and 1, such as 0.05"),
        (("--alpha", "1"), "--alpha: 1 is not a probability of failing below 0.5; pass a smaller one, such as 0.05"),
        (("--radius", "0.5"), "has no column of radii; leave it out, or name the column"),
    ],
)
def test_settings_that_cannot_be_read_say_what_can(certcal_command, intervals, options, message):
    ran = certcal_command("certify", intervals, *options)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[0].endswith(message)


def test_probabilities_may_be_given_in_per_cent(certcal_command, intervals):
    document = json.loads(certcal_command("certify", intervals, "--delta", "1%", "--alpha", "0.1%", "--json").out)
    assert (document["conventions"]["delta"], document["conventions"]["alpha"]) == (0.01, 0.001)


def test_the_commands_send_each_others_tables_to_each_other(certcal_command, intervals, scores):
    ran = certcal_command("certify", scores)
    assert (ran.code, ran.out) == (2, "")
    assert "only confidences ('score'); use measure for those" in ran.err
    ran = certcal_command("measure", intervals)
    assert (ran.code, ran.out) == (2, "")
    assert "only ends of intervals ('lower', 'upper'); use certify for those" in ran.err
    assert ran.err.count("\n") == 1


def test_a_missing_file_suggests_its_neighbour(certcal_command, intervals):
    ran = certcal_command("certify", intervals.with_name("interval.csv"))
    assert ran.code == 2
    assert "did you mean" in ran.err


def test_intervals_are_grouped_by_several_columns_and_crossings_as_predictions_are(certcal_command, radii):
    ran = certcal_command("certify", radii, "--by", "site", "--by", "site*correct", "--json")
    document = json.loads(ran.out)
    assert [each["by"] for each in document["groupings"]] == ["site", "site*correct"]
    alone = json.loads(certcal_command("certify", radii, "--by", "site", "--json").out)
    names = dict.fromkeys(each["group"] for each in alone["results"] if each["group"])
    assert names
    for name in names:  # the same samples, and bounds that share delta with more groups
        one, other = (
            next(each for each in found["results"] if each["group"] == called)
            for found, called in ((alone, name), (document, f"site={name}"))
        )
        assert other["calibration_error"] == one["calibration_error"]
        assert other["population_bound"]["all"]["value"] > one["population_bound"]["all"]["value"]
    ran = certcal_command("certify", radii, "--by", "clinik")
    assert (ran.code, ran.out) == (2, "")
    assert "--by: there is no column 'clinik'" in ran.err
