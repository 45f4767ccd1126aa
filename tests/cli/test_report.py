"""``certcal report``: the right page for each kind of source, where it goes, and what is said about it."""

import hashlib
import json
import re
import shlex
import subprocess
from pathlib import Path

import click
import numpy as np
import pytest

from certcal._base.files import size_and_digest
from certcal._base.rounding import claim_text
from certcal.bounds import bounded_variation
from certcal.data import load_table
from certcal.smoothing import open_run, pooled_claim
from tests.cli.conftest import flat
from tests.smoothing.drawing import X, draw, model

N = 24
LABELS = np.where(np.arange(N) % 6 == 0, 0, np.argmax(np.asarray(model()(X)), axis=1))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "run"
    return draw(folder, labels=LABELS, n=2000, unit=20_000).path


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder of its own, where pages go that nobody named."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def intervals(tmp_path):
    path = tmp_path / "intervals.csv"
    path.write_text("lower,upper,correct\n" + "".join(f"0.{i}1,0.{i}9,{i % 2}\n" for i in range(1, 10)))
    return path


def numbers(page):
    """The numbers that a page keeps for machines."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(found)


def test_a_table_of_predictions_becomes_a_page_named_after_it(certcal_command, scores, here):
    ran = certcal_command("report", scores, "--no-intervals")
    assert (ran.code, ran.err) == (0, "wrote scores.html\n")
    assert [path.name for path in here.iterdir()] == ["scores.html"]
    shown = flat(ran.out)
    assert "taken as a table of predictions: 400 samples; score 'score', outcome 'outcome'" in shown
    predictions = load_table(scores).predictions
    bound = bounded_variation(predictions.confidence, predictions.correct)
    assert f"alibration error is at most {claim_text(bound)}" in shown
    assert "estimates from these samples, not guarantees" in shown
    assert numbers(here / "scores.html")["bounds"][0]["value"] == bound.value


def test_an_existing_page_is_never_replaced_without_force(certcal_command, scores, here):
    (here / "scores.html").write_text("precious")
    ran = certcal_command("report", scores, "--no-intervals")
    assert ran.code == 2
    assert "scores.html exists and is not overwritten" in ran.err
    assert (here / "scores.html").read_text() == "precious"
    assert certcal_command("report", scores, "--no-intervals", "--force").code == 0
    assert (here / "scores.html").read_text().startswith("<!DOCTYPE html>")


def test_the_page_keeps_the_json_that_is_printed_and_how_it_came_about(certcal_command, scores, here):
    arguments = ["report", str(scores), "--by", "site", "--json"]
    ran = certcal_command(*arguments, "-o", "a page.html", "-o", "numbers.json")
    assert ran.code == 0
    assert ran.err == "wrote a page.html\nwrote numbers.json\n"
    kept = numbers(here / "a page.html")
    origin = kept["provenance"]
    assert kept == json.loads(ran.out) == json.loads((here / "numbers.json").read_text())
    assert origin["command"] == ["certcal", *arguments, "-o", "a page.html", "-o", "numbers.json"]
    assert origin["seeds"] == {}
    content = scores.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert origin["inputs"] == [{"name": str(scores), "bytes": len(content), "sha256": digest}]
    assert shlex.quote("a page.html").replace("'", "&#x27;") in (here / "a page.html").read_text()


def test_numbers_and_texts_come_with_the_page(certcal_command, scores, here):
    asked = ("--title", "Triage", "--require", "ece <= 90%", "-o", "numbers.csv", "-o", "said.txt", "--quiet")
    assert certcal_command("report", scores, "--no-intervals", *asked).err == ""
    assert sorted(path.name for path in here.iterdir()) == ["numbers.csv", "said.txt", "scores.html"]
    said = (here / "said.txt").read_text("utf-8")
    assert said.startswith("Triage\n")
    assert all(words in said for words in ("(limit 90%), 95% sure", "Reproducibility", "--title Triage"))


def test_groups_have_intervals_whenever_the_whole_has(certcal_command, scores, here):
    document = json.loads(certcal_command("report", scores, "--by", "site", "--metric", "all", "--json").out)
    for part in (document, *document["groups"]):
        without = {row["name"] for row in part["measurements"] if row["interval"] is None}
        assert without == {"spiegelhalter_z", "spiegelhalter_p"}  # a test, not a number of the population


def test_what_a_page_cannot_have_is_said(certcal_command, scores, here):
    ran = certcal_command("report", scores, "--no-intervals", "--memory", "1kB")
    assert ran.code == 0
    assert "No bounds on the true calibration error: the table is read in pieces." in flat(ran.out)
    assert "bounds" not in numbers(here / "scores.html")


def test_weighted_samples_have_the_bound_on_their_binned_error(certcal_command, scores, here):
    assert certcal_command("report", scores, "--no-intervals", "--weight", "score").code == 0
    (bound,) = numbers(here / "scores.html")["bounds"]
    assert bound["name"] == "binned calibration error of the weighted population"


def test_a_table_of_intervals_is_told_by_its_columns(certcal_command, intervals, here):
    ran = certcal_command("report", intervals)
    assert (ran.code, ran.err) == (0, "wrote intervals.html\n")
    assert "taken as a table of intervals: 9 rows" in ran.out
    assert numbers(here / "intervals.html")["results"][0]["n"] == 9


def test_a_column_of_confidences_can_be_preferred_to_intervals(certcal_command, tmp_path, here):
    path = tmp_path / "both.csv"
    path.write_text("lower,upper,conf,correct\n0.1,0.9,0.5,1\n0.2,0.8,0.6,0\n")
    assert "taken as a table of intervals" in certcal_command("report", path).out
    ran = certcal_command("report", path, "--confidence", "conf", "--no-intervals", "--force")
    assert "taken as a table of predictions" in ran.out


def test_a_run_becomes_a_page_with_its_claim(certcal_command, run, tmp_path, here):
    np.savez(tmp_path / "data.npz", inputs=np.asarray(X), labels=LABELS)
    ran = certcal_command("report", run, "--radius", ".125,.25", "--data", tmp_path / "data.npz")
    assert (ran.code, ran.err) == (0, "wrote run.html\n")
    made = pooled_claim(open_run(run).counts(), 0.25)
    assert f"the calibration error of the smoothed classifier is at most {claim_text(made)}" in flat(ran.out)
    kept = numbers(here / "run.html")
    assert kept["results"][1]["claim"]["value"] == made.value
    assert kept["provenance"]["seeds"] == {"noise of the run": open_run(run).manifest.seed}
    (folder, data) = kept["provenance"]["inputs"]
    (note,) = kept["provenance"]["notes"]
    recipe = note.partition("Inside its folder: ")[2]
    told = subprocess.run(["bash", "-c", recipe], cwd=run, capture_output=True, text=True, check=True).stdout
    assert told.split()[0] == folder["sha256"]
    assert folder["bytes"] == sum(file.stat().st_size for file in run.rglob("*[nt]") if file.is_file())
    assert data["name"].endswith("data.npz")


def test_links_inside_a_run_are_not_followed_when_its_files_are_listed(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    before = size_and_digest(folder)
    (tmp_path / "elsewhere").write_text("not of the run")
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    (folder / "memory").symlink_to("/proc/self/mem")  # cannot be read from its start
    assert size_and_digest(folder) == before


def test_images_that_are_not_those_of_the_run_are_refused(certcal_command, run, tmp_path, here):
    np.savez(tmp_path / "data.npz", inputs=np.asarray(X) + 1, labels=LABELS)
    ran = certcal_command("report", run, "--data", tmp_path / "data.npz")
    assert ran.code == 2
    assert f"--data: {tmp_path / 'data.npz'}: inputs are not the data that the run was drawn from" in ran.err
    assert list(here.iterdir()) == []


def test_several_runs_become_a_comparison(certcal_command, run, here):
    ran = certcal_command("report", run, run, "--radius", "0,0.25")
    assert (ran.code, ran.err) == (0, "wrote comparison.html\n")
    assert [entry["name"] for entry in numbers(here / "comparison.html")["runs"]] == ["A", "B"]
    assert len(numbers(here / "comparison.html")["provenance"]["inputs"]) == 1


def test_named_runs_become_a_comparison_of_families(certcal_command, run, here):
    ran = certcal_command("report", f"plain={run}", f"other={run}", "--radius", "0,0.25")
    assert (ran.code, ran.err) == (0, "wrote comparison.html\n")
    found = numbers(here / "comparison.html")
    assert [family["name"] for family in found["families"]] == ["plain", "other"]
    assert found["at"] == [0, 0.25]
    assert [Path(name) for name, _, _ in map(dict.values, found["provenance"]["inputs"])] == [run]
    assert found["sentences"]
    before = (here / "comparison.html").read_text()
    again = certcal_command("compare", f"plain={run}", f"other={run}", "--radius", "0,0.25", "-o", "page.html")
    assert again.code == 0
    pages = [re.sub("<time.*?</time>", "", each) for each in (before, (here / "page.html").read_text())]
    first, second = (re.findall("<main.*?Reproducibility", each, re.DOTALL) for each in pages)
    assert first == second


@pytest.mark.parametrize(
    ("sources", "options", "text"),
    [
        (("plain={run}", "{run}"), (), "has no name, and plain="),
        (("plain=nothing", "other={run}"), (), "nothing: there is no such table, run or log; check the path"),
        (("plain={scores}", "other={run}"), (), "this is a table of predictions, and runs and logs are compared here"),
        (("plain={run}", "plain={run}"), (), "is given twice; give each run once"),
        (
            ("plain={run}", "other={run}"),
            ("--familywise",),
            "--familywise is for a run or a table of intervals, and these are runs, logs",
        ),
        (("plain={run}", "other={run}"), ("--alpha", "0"), "--alpha: 0 is not between 0 and 1"),
    ],
)
def test_mistakes_with_families_are_one_sentence(certcal_command, run, scores, here, sources, options, text):
    ran = certcal_command("report", *(each.format(run=run, scores=scores) for each in sources), *options)
    assert ran.code == 2
    assert text in flat(ran.err)
    assert len(ran.err.strip().splitlines()) == 1
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "options", "text"),
    [
        (
            "scores",
            ("--radius", "0.5"),
            "--radius is for a run or a table of intervals or runs, logs or tables to compare",
        ),
        ("scores", ("--familywise",), "--familywise is for a run or a table of intervals, and"),
        ("scores", ("--sigma", "1"), "--sigma is for runs, logs or tables to compare"),
        ("run", ("--dataset", "digits"), "--dataset is for a table of a study, and"),
        ("scores", ("--data", "test.npz"), "--data is for predictions made here, and"),
        ("run", ("--weight", "w"), "--weight is for a table of predictions or runs, logs or tables to compare, and"),
        ("run", ("--by", "site"), "--by: it is for tables of intervals, and"),
        ("run", ("--kind", "tigth"), "--kind: there is no 'tigth'"),
        ("run", ("--kind", "tigth"), "did you mean 'tight'?"),
        ("run", ("--confidence", "tight"), "--confidence is for a table of predictions or runs, logs or tables to"),
        ("run", ("--alpha", "0"), "--alpha: it is 0, and certificates from noise may fail"),
        ("run", ("--bins", "5,10"), "--bins: '5,10' is not a whole number"),
        ("run", ("--bins", "10001"), "--bins: 10001 is not a whole number from 1 to 10000"),
        ("run", ("--radius", "wide"), "--radius: 'wide' is not a number"),
        ("run", ("-o", "page.gif"), "choose one of the endings .html,"),
        ("intervals", ("--radius", "0.5"), "has no column of radii; leave it out"),
        ("intervals", ("--no-intervals",), "intervals.csv is a table of intervals; leave it out"),
        ("scores", ("--closed", "lefft"), "--closed: 'lefft' is not one of 'left', 'right'; did you mean 'left'?"),
        ("nothing.csv", (), "there is no such table, run or log; check the path"),
    ],
)
def test_bad_input_leaves_with_a_sentence_and_no_page(
    certcal_command, scores, run, intervals, here, source, options, text
):
    path = {"scores": scores, "run": run, "intervals": intervals}.get(source, source)
    ran = certcal_command("report", path, *options)
    assert ran.code == 2
    assert text in ran.err
    assert list(here.iterdir()) == []


def test_a_table_beside_a_run_is_refused_and_beside_a_table_compared(certcal_command, scores, run, here):
    for sources in ((scores, run), (run, scores)):
        ran = certcal_command("report", *sources)
        assert ran.code == 2
        assert f"{scores} is a table of predictions and {run} is a run; compare two of one kind" in ran.err
    assert list(here.iterdir()) == []
    assert certcal_command("report", scores, scores, "--metric", "ece").code == 0
    assert "What changed?" in (here / "comparison.html").read_text()


def test_nothing_is_written_into_a_run(certcal_command, run, here):
    ran = certcal_command("report", run, "-o", run / "page.html")
    assert ran.code == 2
    assert "this is inside the run; choose another folder" in ran.err


def test_hostile_names_are_text_on_the_page_and_in_the_terminal(certcal_command, tmp_path, here):
    path = tmp_path / "<img src=x onerror=alert(1)>\x1b[31m.csv"
    path.write_text("conf,correct,site\n0.5,1,<script>alert(2)</script>\n0.6,0,&amp;\n0.7,1,&amp;\n")
    ran = certcal_command("report", path, "--by", "site", "--no-intervals", "--title", "</title><b>", "-o", "x.html")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    page = (here / "x.html").read_text()
    for harm in ("<img src", "<script>alert", "</title><b>", "\x1b"):
        assert harm not in page
    assert "&lt;/title&gt;&lt;b&gt;" in page
    named = certcal_command("report", path, "--no-intervals")
    assert named.code == 0
    assert named.err.startswith("wrote <img src=x onerror=alert(1)>\\x1b[31m.html")
    assert "\x1b" not in named.err


@pytest.mark.parametrize(("code", "said"), [(0, ""), (1, "no browser could be started; open scores.html in one\n")])
def test_the_page_is_opened_when_asked(certcal_command, scores, here, monkeypatch, code, said):
    opened = []
    monkeypatch.setattr(click, "launch", lambda url: opened.append(url) or code)
    ran = certcal_command("report", scores, "--no-intervals", "--open")
    assert ran.code == 0
    assert opened == [(here / "scores.html").as_uri()]
    assert ran.err == f"wrote scores.html\n{said}"
