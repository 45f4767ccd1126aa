"""``--require``: met, not met or not shown in a shell, by the exit code and a line that says why."""

import json
import re

import pytest

import certcal


@pytest.fixture
def here(tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_requirement_is_judged_on_the_interval_which_is_made_for_it(certcal_command, scores):
    ran = certcal_command("measure", scores, "--metric", "ece", "--require", "ECE <= 0.9", "--json")
    document = json.loads(ran.out)
    (one,) = document["verdict"]
    assert ran.code == 0
    assert (one["passed"], one["judged_on"], one["limit"]) == (True, "interval", 0.9)
    assert one["value"] == document["measurements"][0]["interval"]["upper"]
    assert ran.err == f"{one['sentence']}\n"
    assert document["measurements"][0]["value"] < one["value"]


def test_what_a_requirement_is_about_is_measured_beside_the_default(certcal_command, scores, here):
    ran = certcal_command("measure", scores, "--require", "kde-ece <= 0.9", "--json")
    names = [row["name"] for row in json.loads(ran.out)["measurements"]]
    assert (ran.code, len(names)) == (0, 13)
    assert {"ece", "kde_ece"} < set(names)
    ran = certcal_command("compare", scores, scores, "--metric", "ece", "--require", "old kde_ece <= 0.9", "--json")
    assert (ran.code, {row["name"] for row in json.loads(ran.out)["rows"]}) == (0, {"ece", "kde_ece"})


def test_one_that_is_not_met_is_exit_code_1_and_all_files_are_written(certcal_command, scores, here):
    asked = ("--require", "ece <= 0.0001", "--require", "estimate accuracy >= 0.1")
    ran = certcal_command("measure", scores, *asked, "-o", "a.html", "-o", "a.json", "-o", "a.txt")
    assert ran.code == 1
    assert "2 requirements: 1 not met, 1 met.\n" in ran.out
    assert re.search(r"not met +ece <= 0.0001 +calibration error", ran.out)
    assert ran.err.splitlines() == ["wrote a.html", "wrote a.json", "wrote a.txt"]
    sentences = [each["sentence"] for each in json.loads((here / "a.json").read_text())["verdict"]]
    assert [each.partition(":")[0] for each in sentences] == ["not met", "met"]
    found = sentences[0].partition(" is ")[2].partition(" (")[0]
    assert f"calibration error in 15 bins {found}</bdi><small>" in (here / "a.html").read_text().replace("\u00a0", " ")
    assert found in " ".join((here / "a.txt").read_text().split())


@pytest.mark.parametrize(("limit", "code"), [("0.9", 0), ("0.001", 1)])
def test_a_bound_decides_where_there_is_one(certcal_command, scores, limit, code):
    ran = certcal_command("bound", scores, "--require", f"ece <= {limit}", "--json")
    assert ran.code == code
    assert json.loads(ran.out)["verdict"][0]["judged_on"] == "bound"


def test_a_page_of_what_fails_is_written_and_each_group_can_be_asked(certcal_command, scores, here):
    ran = certcal_command("report", scores, "--by", "site", "--require", "every ece <= 0.001")
    assert ran.code == 1
    assert re.search(r"for south \(worst of 2 groups, 1 not met, 1 not shown\)", " ".join(ran.out.split()))
    page = (here / "scores.html").read_text()
    groups = page[page.index("Requirements by group") :]
    assert all(f"every ece &lt;= 0.001</bdi></td><td><bdi>{site}<" in groups for site in ("north", "south"))


def test_a_requirement_that_cannot_be_judged_is_said_first_and_loses_no_numbers(certcal_command, scores, here):
    ran = certcal_command("measure", scores, "--by", "site", "--require", "ece(site=nord) <= 9%", "-o", "a.json")
    assert ran.code == 2
    said = "--require: ece has no site=nord; did you mean 'north'? The numbers follow, without a verdict."
    assert ran.err == f"certcal: error: {said}\nwrote a.json\n"
    assert "ECE" in ran.out
    assert "verdict" not in json.loads((here / "a.json").read_text())


@pytest.mark.parametrize(
    ("command", "require", "said"),
    [
        ("measure", "every ece <= 5%", "asks every group, and there are none; .* \\(--by\\)"),
        ("measure", "ece(bins=10) <= 5%", "ece has no bins=10; there is bins=15"),
        ("measure", "ece(site=north) <= 5%", "there is bins or closed, and groups with --by"),
        ("measure", "difference ece <= 5%", "there is no 'difference ece' here"),
        ("measure", "population ece <= 5%", "there is no 'population ece' here"),
        ("measure", "Spiegelhalter’s z <= 2", "judge the estimate with 'estimate Spiegelhalter’s z <= 2'"),
        ("measure", "certified accuracy >= 1%", "there is no 'certified accuracy' here"),
        ("report", "every ece <= 5%", "asks every group"),
        ("bound", "calibration slope >= 0.5", "there is no 'calibration slope' here"),
        ("bound", "every ece <= 5%", "asks every group"),
        ("compare", "every ece <= 5%", "asks every group"),
        ("compare", "population ece <= 5%", "there is no 'population ece' here"),
    ],
)
def test_what_no_table_can_answer_is_refused_before_the_work(certcal_command, scores, here, command, require, said):
    sources = (scores, scores) if command == "compare" else (scores,)
    ran = certcal_command(command, *sources, "--require", require, "-o", "a.html")
    assert (ran.code, ran.out) == (2, "")
    assert re.match(f"certcal: error: --require: .*{said}", ran.err)
    assert len(ran.err.splitlines()) == 1
    assert not (here / "a.html").exists()


def test_printed_names_work_behind_a_prefix_and_of_groups(certcal_command, scores):
    asked = ("difference log loss <= 1", "old O/E <= 9", "difference ECE, equal-mass bins <= 1", "every ece <= 1")
    given = [word for each in (*asked, "ece(site=north) <= 1") for word in ("--require", each)]
    ran = certcal_command("compare", scores, scores, "--by", "site", *given, "--json")
    assert ran.code == 0, ran.err
    assert {each["passed"] for each in json.loads(ran.out)["verdict"]} == {True}


@pytest.mark.parametrize("command", ["measure", "bound", "report"])
def test_a_name_that_no_number_has_is_refused_before_the_work(certcal_command, scores, here, command):
    ran = certcal_command(command, scores, "--require", "eec <= 1", "-o", "a.html")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "certcal: error: --require: there is no number called 'eec'; did you mean 'ece'?\n"
    assert not (here / "a.html").exists()


def test_numbers_are_called_as_they_are_printed(certcal_command, scores, here):
    metrics = ("--metric", "all", "--bounds")
    document = json.loads(certcal_command("measure", scores, *metrics, "--json").out)
    rows = {row["name"]: row for row in document["measurements"]}
    for words, name in {
        "ECE": "ece",
        "KS calibration error": "ks_error",
        "Calibration slope": "calibration_slope",
        "O/E": "observed_expected_ratio",
        "observed / expected": "observed_expected_ratio",
        "log loss": "nll",
        "ECE, equal-mass bins": "equal_mass_ece",
        "AUROC (score ranks outcomes)": "auroc",
    }.items():
        asked = ("--require", f"estimate {words} <= 900%", "--json")
        (one,) = json.loads(certcal_command("measure", scores, *metrics, *asked).out)["verdict"]
        assert one["value"] == rows[name]["value"], words
    (bound, _) = (each["value"] for each in document["bounds"])
    asked = ("--require", "calibration error <= 100%", "--json")
    assert json.loads(certcal_command("measure", scores, *metrics, *asked).out)["verdict"][0]["value"] == bound


def test_an_estimate_decides_only_when_it_is_asked_to(certcal_command, scores):
    ran = certcal_command("measure", scores, "--no-intervals", "--require", "ece <= 1")
    assert ran.code == 2
    assert ran.err.endswith(
        "--require: ece is an estimate without an interval or a bound; ask for intervals or bounds, or judge the "
        "estimate with 'estimate ece <= 1'\n"
    )
    assert certcal_command("measure", scores, "--require", "estimate ece <= 1").code == 0


def test_the_help_says_what_exit_codes_mean(certcal_command):
    assert "0 done, 1 a requirement is not met or not shown, 2 bad input" in certcal_command("measure", "--help").out
    assert "0 done, 2 bad input" in certcal_command("demo", "--help").out
    assert "0 done, 1 some rows failed" in certcal_command("study", "measure", "--help").out
    # A long list of choices does not push the texts of all others to the right.
    assert "\n  --bins N                  Number of bins" in certcal_command("attack", "--help-all").out


def test_each_group_is_bounded_beside_the_whole_and_every_group_can_be_required(certcal_command, scores):
    asked = ("measure", scores, "--by", "site", "--bounds", "--delta", "0.06")
    document = json.loads(certcal_command(*asked, "--json").out)
    twin = certcal.bound(scores, by="site", delta=0.06)
    for group, other in zip(document["groups"], twin.groups, strict=True):
        expected = [other.bounds[method] for method in ("bounded_variation", "binned")]
        assert [each["value"] for each in group["bounds"]] == [each.value for each in expected]
        assert {each["delta"] for each in group["bounds"]} == {expected[0].delta}
    assert certcal_command(*asked, "--require", "every binned <= 0.99").code == 0
    failed = certcal_command(*asked, "--require", "every binned <= 0.001")
    assert failed.code == 1
    assert "Bounds per group" in failed.out
    assert "groups together (94% sure)" in " ".join(failed.out.split())


def test_every_group_is_asked_for_where_there_are_groups_only(certcal_command, scores):
    ran = certcal_command("measure", scores, "--no-intervals", "--require", "every ece <= 1")
    assert ran.code == 2
    assert "leave 'every' out, or say which groups there are (--by)" in ran.err
