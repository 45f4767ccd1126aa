"""``certcal certify RUN``: certificates of a run, at radii, in one claim each."""

import csv
import io
import json

import numpy as np
import pytest

from certcal._base.rounding import claim_text
from certcal.data import read_intervals
from certcal.smoothing import CONFIDENCES, certificates, open_run, pooled_claim
from tests.cli.conftest import flat
from tests.smoothing.drawing import X, draw, model

N = 24
HELD = "calibration_error_where_every_certificate_holds"
LABELS = np.where(np.arange(N) % 6 == 0, 0, np.argmax(np.asarray(model()(X)), axis=1))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certify") / "run"
    return draw(folder, labels=LABELS, n=2000, unit=20_000).path


@pytest.fixture
def unfinished(tmp_path):
    """A run of which the last ten samples lack some draws, and one shard is damaged."""
    made = draw(tmp_path / "unfinished", labels=LABELS, n=2000, unit=4000)
    late = [unit for unit in made.manifest.units() if unit.stage == "counting" and unit.first >= 14]
    for unit in late[:-1]:
        (made.path / unit.name).unlink()
    (made.path / late[-1].name).write_bytes(b"nonsense")
    return made.path


def test_each_radius_has_a_line_with_what_the_library_certifies(certcal_command, run):
    ran = certcal_command("certify", run, "--radius", ".5,0.25")
    assert (ran.code, ran.err) == (0, "")
    for radius in (0.25, 0.5):
        (line,) = [row for row in ran.out.splitlines() if row.split()[:1] == [str(radius)] and "█" not in row]
        summary = open_run(run).certificates(radius).summary()
        error = summary["calibration_error"]
        claims = [summary.accuracy, pooled_claim(open_run(run).counts(), radius), error.worst, error.worst_all]
        texts = [claim.text for claim in (*claims, summary.population, summary["brier_score"].worst)]
        assert [text for text in line.split() if text in texts] == texts
    assert max(len(line) for line in ran.out.splitlines() if not line.startswith("  certcal ")) <= 80


def test_the_headline_is_the_claim_with_its_probability_and_assumptions(certcal_command, run):
    claim = pooled_claim(open_run(run).counts(), 0.125, 0.01)
    out = flat(certcal_command("certify", run, "--radius", ".125", "--alpha", "0.01").out)
    assert (
        f"At radius 0.125, the calibration error of the smoothed classifier is at most {claim_text(claim)} on the"
        in out
    )
    assert "99% sure, over the noise." in out
    assert "noise draws are independent and exactly Gaussian" in out
    assert claim.sentence[1:] in flat(
        certcal_command("certify", run, "--radius", ".125", "--alpha", "0.01", "--explain").out
    )
    assert "The claim averages the noise of the samples and fails at most 1 time in 100." in out
    published = flat(certcal_command("certify", run, "--radius", ".125", "--alpha", "0.01", "--kind", "cdf").out)
    failed = open_run(run).certificates(0.125, alpha=0.01).failures(0.01)
    assert failed.count > 0
    assert f"more than {failed.count} of {N} fail happens as rarely" in published


@pytest.mark.parametrize("how", [(), ("--familywise",)])
def test_levels_are_printed_rounded_up(certcal_command, run, how):
    shown = flat(certcal_command("certify", run, "--radius", ".125", "--alpha", "0.00100000049", *how).out)
    assert "99.89% sure, over the noise" in shown
    assert "alpha 0.00100001 " in shown
    assert "0.001 " not in shown


def test_familywise_certificates_hold_together_and_pay_nothing_for_failures(certcal_command, run):
    ran = certcal_command("certify", run, "--radius", ".125", "--familywise", "--json")
    document = json.loads(ran.out)
    claim = document["results"][0]["claim"]
    made = open_run(run).certificates(0.125, familywise=True)
    assert claim["value"] == made.claim().value
    assert "failing certificates" not in claim["settings"]
    assert document["conventions"]["familywise"] is True
    assert document["conventions"]["ledger"]["spent"] <= 0.001 / N
    shown = flat(certcal_command("certify", run, "--radius", ".125", "--familywise").out)
    assert f"All {N} certificates hold together: 99.9% sure" in shown


def test_without_radii_there_is_a_curve_up_to_the_largest_certified_radius(certcal_command, run):
    document = json.loads(certcal_command("certify", run, "--json").out)
    radii = [result["radius"] for result in document["results"]]
    largest = np.nanmax(open_run(run).certificates(0.0).radii)
    assert radii == [0.125 * step for step in range(len(radii))]
    assert radii[-1] <= largest < radii[-1] + 0.125
    accuracies = [result["certified_accuracy"]["value"] for result in document["results"]]
    assert accuracies == sorted(accuracies, reverse=True)
    assert accuracies[0] > 0.5
    shown = certcal_command("certify", run).out
    bars = [line for line in shown.splitlines() if "█" in line and line.split()[0] in ("0", "0.125", "0.25")]
    assert len(bars) == 3
    assert [line.count("█") for line in bars] == sorted((line.count("█") for line in bars), reverse=True)
    assert max(len(line) for line in shown.splitlines() if not line.startswith("  certcal ")) <= 80


@pytest.mark.parametrize("kind", ["tight", "all"])
def test_the_headline_is_at_a_radius_that_the_draws_did_not_choose(certcal_command, run, kind):
    """Population bounds have an event for each radius: one that the draws chose would fail more often than it says."""
    counts = open_run(run).counts()
    first = "tangent" if kind == "all" else kind
    for options, radius in ((("--radius", ".1,1.2"), 1.2), ((), 0.25)):
        shown = flat(certcal_command("certify", run, "--kind", kind, *options).out)
        at, claim = certificates(counts, radius, confidence=first), pooled_claim(counts, radius, confidence=first)
        assert (
            f"At radius {radius}, the calibration error of the smoothed classifier is at most {claim_text(claim)} on "
            f"{'all' if claim.settings['samples'] == 'all' else 'the'} {claim.n}" in shown
        )
        population = claim_text(at.summary().population)
        assert f"At radius {radius}, the calibration error in the population is at most {population}" in shown
        assert "population bound is 95% sure on its own: choose a line before looking" in shown


def test_half_of_sigma_is_among_the_radii_even_where_nothing_is_certified(certcal_command, tmp_path):
    made = draw(tmp_path / "few", n=10)
    document = json.loads(certcal_command("certify", made.path, "--alpha", "1e-9", "--json").out)
    assert [(each["radius"], each["n_certified"]) for each in document["results"]] == [(0, 0), (0.125, 0), (0.25, 0)]
    shown = flat(certcal_command("certify", made.path, "--alpha", "1e-9").out)
    assert "At radius 0.25, the calibration error of the smoothed classifier is at most 100.00%" in shown


def test_tangent_certificates_hold_together_at_each_radius_only(certcal_command, run):
    def said(kind, radii, *more):
        return flat(certcal_command("certify", run, "--radius", radii, "--familywise", "--kind", kind, *more).out)

    together = f"All {N} certificates hold together"
    assert f"{together} at each radius: 99.9% sure" in said("tangent", ".1,.2")
    assert f"{together} at each radius: 99.9% sure" in said("all", ".1,.2")
    assert f"{together}: 99.9% sure" in said("tight", ".1,.2")
    assert f"{together}: 99.9% sure" in said("tangent", ".1")
    assert f"{together}: 99.9% sure" in said("tangent", ".1,.2", "--together")


def test_all_kinds_of_certificates_stand_side_by_side(certcal_command, run):
    document = json.loads(certcal_command("certify", run, "--radius", ".25", "--kind", "all", "--json").out)
    assert [result["group"] for result in document["results"]] == list(CONFIDENCES)
    counts = open_run(run).counts()
    for result in document["results"]:
        made = certificates(counts, 0.25, confidence=result["group"])
        assert result["mean_width"] == np.mean((made.upper - made.lower)[made.certified])
        assert result[HELD]["certified"]["value"] == made.summary()["calibration_error"].worst.value
    shown = certcal_command("certify", run, "--radius", ".25", "--kind", "all").out
    for kind, result in zip(CONFIDENCES, document["results"], strict=True):
        (line,) = [line for line in shown.splitlines() if f" {kind} " in line and "0." in line]
        assert result["claim"]["text"] in line
        assert f"{np.ceil(1e4 * result['mean_width']) / 1e4:.4f}" in line
    assert "Choose a certificate before looking" in flat(shown)
    assert max(len(line) for line in shown.splitlines() if not line.startswith("  certcal ")) <= 80


def test_settings_reach_the_certificates(certcal_command, run):
    options = ("--bins", 7, "--closed", "right", "--delta", "0.1", "--alpha", "0.02", "--kind", "cdf")
    document = json.loads(certcal_command("certify", run, "--radius", "0.2", *options, "--json").out)
    made = open_run(run).certificates(0.2, alpha=0.02, confidence="cdf")
    summary = made.summary(bins=7, closed="right", delta=0.1)
    (result,) = document["results"]
    assert result[HELD]["certified"]["value"] == summary["calibration_error"].worst.value
    assert result["population_bound"]["all"]["value"] == summary.population_all.value
    assert result["claim"]["value"] == made.claim(bins=7, closed="right").value
    assert document["conventions"]["confidence"] == "cdf"


def test_abstention_and_noise_are_said(certcal_command, run, tmp_path):
    away = int(np.count_nonzero(open_run(run).certificates(0.0).abstained))
    assert away > 0
    ran = certcal_command("certify", run, "--radius", "0.2")
    assert f"{N} samples, {away} abstained ({away / N:.1%}); Gaussian noise, sigma 0.5, 2,000 draws" in flat(ran.out)
    assert "drawn in floating point and is taken as exactly Gaussian" in flat(ran.out)
    document = json.loads(certcal_command("certify", run, "--radius", "0.2", "--json").out)
    assert document["run"]["abstained"] == away
    assert document["run"]["abstention_rate"] == away / N
    pixels = (np.round(255 / (1 + np.exp(-X))) / 255).astype(np.float32)
    exact = draw(tmp_path / "exact", inputs=pixels, noise="exact").path
    shown = flat(certcal_command("certify", exact, "--radius", "0.1").out)
    assert "exact noise" in shown
    assert "noise draws are independent and exactly discretised Gaussian" in shown
    assert "what is certified is the model applied to inputs rounded to k/255" in shown
    assert "hold in floating point" in shown


def test_intervals_are_written_and_certify_to_the_same_values(certcal_command, run, tmp_path):
    path = tmp_path / "intervals.parquet"
    ran = certcal_command("certify", run, "--radius", ".125,.25", "-o", path, "-o", tmp_path / "numbers.csv", "--json")
    assert ran.err == f"wrote {path}\nwrote {tmp_path / 'numbers.csv'}\n"
    first = json.loads(ran.out)["results"]
    table = read_intervals(path)
    parts = list(table.parts())
    assert [part.radius for part in parts] == ["0.125", "0.25"]
    np.testing.assert_array_equal(parts[1].lower, open_run(run).certificates(0.25).lower)
    aligned = read_intervals(path, samples=True).by_sample()
    np.testing.assert_array_equal(aligned.upper[:, 1], open_run(run).certificates(0.25).upper)
    np.testing.assert_array_equal(aligned.confidence, open_run(run).counts().confidence_estimates().values)
    assert aligned.fingerprint == open_run(run).manifest.data.inputs
    again = json.loads(certcal_command("certify", path, "--alpha", "0.001", "--json").out)["results"]
    for one, two in zip(first, again, strict=True):
        for key in ("certified_accuracy", "ks_error", "brier_score"):
            assert one[key] == two[key]
        assert one[HELD] == two["calibration_error"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "numbers.csv").read_text())))
    claimed = [float(row["value"]) for row in rows if row["claim"] == "calibration_error"]
    assert claimed == [result["claim"]["value"] for result in first]


@pytest.mark.parametrize("options", [(), ("--familywise",), ("--alpha", "0.01", "--kind", "cdf")])
def test_written_intervals_say_what_they_rest_on_and_may_fail_as_they_did(certcal_command, run, tmp_path, options):
    path = tmp_path / "intervals.parquet"
    first = json.loads(certcal_command("certify", run, "--radius", ".125,.25", *options, "-o", path, "--json").out)
    again = json.loads(certcal_command("certify", path, "--json").out)
    for one, two in zip(first["results"], again["results"], strict=True):
        assert one["settings"]["alpha"] == two["settings"]["alpha"] > 0
        assert one["population_bound"] == two["population_bound"]
    claim, kind = first["results"][0]["claim"], first["conventions"]["confidence"]
    assert again["certificates"] == {
        "confidence": kind,
        "noise": "gaussian",
        "assumptions": claim["assumptions"],
        "samples": open_run(run).manifest.data.inputs,
        "run": open_run(run).manifest.run,
    }
    shown = flat(certcal_command("certify", path).out)
    assert "the largest in column 'alpha'" in shown
    assert f"The intervals are {kind} certificates, Gaussian noise, which hold if noise draws are independent" in shown


def test_an_alpha_that_is_given_replaces_that_of_the_written_intervals(certcal_command, run, tmp_path):
    path = tmp_path / "intervals.parquet"
    certcal_command("certify", run, "--radius", ".25", "-o", path)
    document = json.loads(certcal_command("certify", path, "--alpha", "0.01", "--json").out)
    assert document["conventions"]["alpha"] == 0.01
    assert "alpha" not in document["columns"]
    certain = json.loads(certcal_command("certify", path, "--alpha", "0", "--json").out)
    assert certain["conventions"]["alpha"] == 0


def test_an_incomplete_run_is_one_sentence_that_says_what_to_do(certcal_command, unfinished):
    ran = certcal_command("certify", unfinished, "--radius", ".25")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert "the run is not complete" in ran.err
    assert "1 of its shards are damaged" in ran.err
    assert f"error: {unfinished}: the run is not complete" in ran.err
    assert "or add --drawn-only to use what is drawn\n" in ran.err


def test_what_is_drawn_can_be_certified_when_that_is_said(certcal_command, unfinished, run):
    ran = certcal_command("certify", unfinished, "--radius", ".25", "--drawn-only")
    assert ran.code == 0
    assert "14 of 24 samples" in ran.out
    document = json.loads(certcal_command("certify", unfinished, "--radius", ".25", "--drawn-only", "--json").out)
    made = pooled_claim(open_run(run).counts(samples=14), 0.25)
    assert document["results"][0]["claim"]["value"] == made.value
    assert document["run"]["samples_of_the_run"] == N


def test_a_run_that_is_being_extended_is_certified_at_its_former_size(certcal_command, tmp_path):
    made = draw(tmp_path / "grown", labels=LABELS, n=400)
    grown = draw(tmp_path / "grown", labels=LABELS, n=900)
    for unit in grown.manifest.units():
        if unit.start >= 400:
            (grown.path / unit.name).unlink()
    ran = certcal_command("certify", grown.path, "--radius", ".1", "--drawn-only", "--json")
    document = json.loads(ran.out)
    assert document["run"]["draws"] == 400
    assert document["n"] == N
    assert document["results"][0]["claim"]["value"] == pooled_claim(made.counts(), 0.1).value


def test_when_no_sample_is_complete_there_is_nothing_to_certify(certcal_command, tmp_path):
    made = draw(tmp_path / "begun")
    for unit in made.manifest.units():
        if unit.stage == "counting":
            (made.path / unit.name).unlink()
    ran = certcal_command("certify", made.path, "--drawn-only")
    assert (ran.code, ran.out) == (2, "")
    assert "no sample is drawn completely" in ran.err


def test_a_radius_beyond_all_certificates_says_so_and_claims_nothing_wrong(certcal_command, run):
    ran = certcal_command("certify", run, "--radius", "9")
    assert ran.code == 0
    assert "undefined" in ran.out
    document = json.loads(certcal_command("certify", run, "--radius", "0.125,9", "--json").out)
    assert document["results"][1]["n_certified"] == 0
    assert document["results"][1]["claim"]["value"] == 1
    assert document["results"][1]["mean_width"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--radius", "eps"), "--radius: 'eps' is not a number, such as 0.5"),
        (("--radius", "0.5,-1"), "--radius: -1 is not a number of at least 0"),
        (("--radius", "inf"), "--radius: 'inf' is not a number"),
        (("--alpha", "0"), "--alpha: it is 0, and certificates from noise may fail"),
        (("--lower", "lb"), "--lower: it is for tables of intervals"),
        (("--by", "site"), "--by: it is for tables of intervals"),
        (("--radius-column", "eps"), "it is for tables of intervals"),
        (("--kind", "loose"), "--kind: there is no 'loose'"),
        (("--kind", "all", "-o", "i.parquet"), "-o i.parquet needs one kind of certificate"),
        (("--kind", "all", "--compare"), "--compare: it needs one kind of certificate"),
        (("-o", "curve.doc"), ".svg, .pdf, .json, .csv, .md, .tex, .parquet"),
        (("--data", "missing.npz"), "missing.npz"),
    ],
)
def test_what_cannot_be_asked_of_a_run_is_one_sentence(certcal_command, run, options, message):
    ran = certcal_command("certify", run, *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_what_can_only_be_asked_of_a_run_is_refused_for_a_table(certcal_command, tmp_path):
    path = tmp_path / "intervals.csv"
    path.write_text("lower,upper,correct\n.2,.4,1\n")
    for option in (("--kind", "cdf"), ("--familywise",), ("--drawn-only",)):
        ran = certcal_command("certify", path, *option)
        assert (ran.code, ran.out) == (2, "")
        assert f"{option[0]}: it is for runs, and {path} is a table; leave it out" in ran.err


def test_radii_of_a_table_are_chosen_and_its_column_of_them_named(certcal_command, tmp_path):
    path = tmp_path / "intervals.csv"
    path.write_text("lower,upper,correct,eps\n.2,.4,1,0.25\n.1,.5,1,0.5\n")
    options = ("--radius-column", "eps", "--radius")
    document = json.loads(certcal_command("certify", path, *options, "0.50", "--json").out)
    assert [each["radius"] for each in document["results"]] == [0.5]
    ran = certcal_command("certify", path, *options, "1")
    assert (ran.code, ran.out) == (2, "")
    assert f"--radius: {path} has no rows at radius 1; there are 0.25, 0.5" in ran.err


def test_nothing_is_written_into_the_run_or_over_a_file(certcal_command, run, tmp_path):
    assert "inside the run" in certcal_command("certify", run, "-o", run / "numbers.json").err
    path = tmp_path / "mine.parquet"
    path.write_text("mine")
    ran = certcal_command("certify", run, "--radius", ".1", "-o", path)
    assert ran.code == 2
    assert path.read_text() == "mine"


def test_the_population_bound_prints_the_alpha_it_pays_for_in_few_digits(certcal_command, run):
    options = ("--radius", ".25", "--familywise", "--alpha", "0.0007")
    bound = json.loads(certcal_command("certify", run, *options, "--json").out)["results"][0]["population_bound"]["all"]
    assert bound["settings"]["alpha"] == 2.91667e-05 > 0.0007 / N
    assert bound["terms"]["certificate failures"] == 2 * 2.91667e-05
    assert "alpha=2.91667e-05," in certcal_command("certify", run, *options, "--explain").out


def test_a_path_that_is_neither_run_nor_table_is_named(certcal_command, run):
    ran = certcal_command("certify", f"{run}s")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"certcal: error: {run}s: there is no such run or table; did you mean '{run}'?\n"


def test_a_folder_that_is_no_run_is_named(certcal_command, tmp_path):
    ran = certcal_command("certify", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "there is no run here" in ran.err
