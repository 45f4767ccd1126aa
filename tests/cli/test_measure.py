"""``certcal measure``: the numbers of the library, shown, printed as JSON and written to files."""

import json
import re
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import certcal
from certcal.data import PredictionStream, read_predictions
from certcal.lab.study import FindingTable
from certcal.lab.study.review_view import table as review_table
from certcal.metrics import Measurements
from certcal.report.document import text_of
from certcal.report.names import label
from certcal.report.numbers import INTERVALS, number
from certcal.verbs.measure import _PEAK


def test_the_table_shows_the_numbers_of_the_library(certcal_command, scores):
    ran = certcal_command("measure", scores)
    assert (ran.code, ran.err) == (0, "")
    assert [row.name for row in certcal.measure(scores).rows if number(row.value) not in ran.out] == []
    commands = [line for line in ran.out.splitlines() if line.startswith("  certcal ")]  # whole, to be copied
    assert max(len(line) for line in ran.out.splitlines() if line not in commands) <= 80
    assert len(commands) == 1


def test_every_row_has_an_interval_that_holds_its_value_unless_told_otherwise(certcal_command, scores):
    document = json.loads(certcal_command("measure", scores, "--json", "--by", "site").out)
    for part in (document, *document["groups"]):
        for row in part["measurements"]:
            if row["name"].startswith("spiegelhalter"):  # a test, not a number of the population
                assert row["interval"] is None
                continue
            assert row["interval"]["lower"] <= row["value"] <= row["interval"]["upper"]
            assert ", 95% interval " in row["sentence"]
    shown = " ".join(certcal_command("measure", scores).out.split())
    assert f"Intervals: 95%, each on its own; those of the answer hold together. {INTERVALS}" in shown
    assert "95% interval" in shown
    without = json.loads(certcal_command("measure", scores, "--json", "--no-intervals").out)
    assert all(row["interval"] is None for row in without["measurements"])
    assert "95% interval" not in certcal_command("measure", scores, "--no-intervals", "--no-diagram").out


@pytest.mark.parametrize(
    ("n", "heavy", "said"),
    [
        (60, None, ["from 30 samples on, 95% intervals covered in at least 93% of tables"]),
        (20, None, ["For 20 samples no simulation shows how often they cover"]),
        # (58 + 2 · 50)² / (58 + 2 · 50²)
        (
            60,
            50,
            ["For 5 samples no", "the 60 samples are worth 5 of equal weight (Kish).", "is missing here.", "Warning:"],
        ),
        (
            300,
            1,
            [
                "In our simulations",
                "the 300 samples are worth 300 of equal weight (Kish).",
                "is missing here.",
            ],
        ),
    ],
)
def test_what_is_said_of_intervals_is_about_so_many_samples_and_such_weights(certcal_command, tmp_path, n, heavy, said):
    table, page = tmp_path / "s.csv", tmp_path / "s.html"
    weights = ["w", *(f"{1 if heavy is None or i > 1 else heavy}" for i in range(n))]
    rows = ["score,outcome", *(f"{(i % 10 + 0.5) / 10},{i % 3 % 2}" for i in range(n))]
    lines = rows if heavy is None else [f"{row},{w}" for row, w in zip(rows, weights, strict=True)]
    table.write_text("\n".join(lines) + "\n")
    weight = () if heavy is None else ("--weight", "w")
    shown = " ".join(certcal_command("measure", table, *weight, "--no-diagram", "-o", page).out.split())
    found = certcal.measure(table, columns={"weight": "w"} if weight else None)
    assert len(found.interval_notes) == len(said)
    for note, text in zip(found.interval_notes, said, strict=True):
        assert text in note
        assert note in shown
        assert note in page.read_text()
    assert found.to_dict()["conventions"]["interval_notes"] == list(found.interval_notes)
    assert certcal.measure(table, bootstrap=0).interval_notes == ()


def test_explain_prints_the_sentence_of_every_number(certcal_command, scores):
    ran = certcal_command("measure", scores, "--explain", "--metric", "ece", "--no-diagram")
    (row,) = certcal.measure(read_predictions(scores), metrics=["ece"]).rows
    assert row.sentence in " ".join(ran.out.split())


def test_no_diagram_leaves_it_out(certcal_command, scores):
    assert " ┃ " in certcal_command("measure", scores).out
    assert " ┃ " not in certcal_command("measure", scores, "--no-diagram").out


def test_columns_can_be_named(certcal_command, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("how_sure,won,kg\n0.9,1,2\n0.4,0,1\n")
    ran = certcal_command("measure", path, "--confidence", "how_sure", "--correct", "won", "--weight", "kg")
    assert ran.code == 0
    assert "confidence 'how_sure', correct 'won', weight 'kg'" in ran.out
    path.write_text("a_cat,a_dog,truth_is\n0.9,0.1,cat\n0.4,0.6,cat\n")
    ran = certcal_command("measure", path, "--probabilities", "a_*", "--label", "truth_is")
    assert ran.code == 0
    assert "2 samples, 2 classes; probabilities 'a_cat' … 'a_dog', label 'truth_is'" in ran.out


@pytest.mark.parametrize("options", [(), ("--by", "site")])
def test_pictures_are_written(certcal_command, scores, tmp_path, options):
    marks = {tmp_path / "a.png": b"\x89PNG", tmp_path / "b.svg": b"<?xml", tmp_path / "c.pdf": b"%PDF"}
    ran = certcal_command("measure", scores, *(word for path in marks for word in ("-o", path)), *options)
    assert ran.code == 0
    assert ran.err == "".join(f"wrote {path}\n" for path in marks)
    assert [path for path, mark in marks.items() if not path.read_bytes().startswith(mark)] == []


def test_undefined_and_infinite_numbers_are_valid_json(certcal_command, tmp_path):
    path = tmp_path / "sure.csv"
    path.write_text("conf,correct\n1,0\n1,0\n")
    text = certcal_command("measure", path, "--json").out
    values = {row["name"]: row["value"] for row in json.loads(text)["measurements"]}
    assert "NaN" not in text
    assert values["top_label_nll"] == "Infinity"
    assert values["auroc"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["measure"], r"TABLE is missing"),
        (["measure", "nothing.csv"], r"nothing.csv: there is no such file"),
        (["measure", "{scores}", "--bins", "0"], r"--bins: 0 is not a whole number from 1 to"),
        (["measure", "{scores}", "--bins", "5,x"], r"'x' is not a whole number"),
        (["measure", "{scores}", "--bins", "99999999"], r"99999999 is not a whole number"),
        (["measure", "{scores}", "--level", "95"], r"--level: 95 is not between 0 and 1"),
        (["measure", "{scores}", "--memory", "lots"], r"'lots' is not a size such as 500MB"),
        (["measure", "{scores}", "--closed", "both"], r"'both' is not one of 'left', 'right'"),
        (["measure", "{scores}", "--metric", "eec"], r"--metric: there is no 'eec'; did you mean 'ece'\?"),
        (["measure", "{scores}", "--metric", "top_label_nll"], r"top_label_nll"),
        (["measure", "{scores}", "--confidence", "scor"], r"there is no column 'scor'; did you mean 'score'\?"),
        (["measure", "{scores}", "--by", "sight"], r"--by: there is no column 'sight'; did you mean 'site'\?"),
        (
            ["measure", "{scores}", "-o", "a.gif"],
            r"-o a.gif: choose one of the endings .html, .txt, .png, .svg, .pdf, .json, .csv",
        ),
        (["measure", "{scores}", "-o", "no/where.png"], r"the folder does not exist"),
        (["measure", "{scores}", "-o", "x.json", "-o", "x.json"], r"-o names the same file twice"),
        (["measure", "{scores}", "--colour"], r"there is no option '--colour'"),
        (["mesure", "{scores}"], r"there is no command 'mesure'; did you mean 'measure'\?"),
        (["fly"], r"there is no command 'fly'; the commands are measure, bound, plan,( [a-z]+,)* demo, completion"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(
    certcal_command, scores, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    ran = certcal_command(*(argument.format(scores=scores) for argument in arguments))
    assert ran.code == 2
    assert ran.out == ""
    first, *rest = ran.err.splitlines()
    assert first.startswith("certcal: error: ")
    assert len(rest) <= 1
    assert "Traceback" not in ran.err
    assert re.search(message, first)
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_measured_at_once_takes_no_more_than_the_memory_given():
    rng, n = np.random.default_rng(2), 300_000
    table = {"score": rng.random(n), "outcome": rng.integers(0, 2, n)}
    size = PredictionStream(table).bytes_in_memory()
    memory = 2 * _PEAK * size  # of small limits half is the program's
    assert certcal.measure(table, memory=memory - 10).conventions["streamed"]
    certcal.measure(table, memory=memory)  # what is loaded and compiled once
    tracemalloc.start()
    try:
        found = certcal.measure(table, memory=memory)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not found.conventions.get("streamed")
    assert 2 * size < peak <= memory / 2


@pytest.mark.parametrize("wide", [False, True])
def test_a_table_larger_than_the_memory_given_is_read_in_pieces_with_the_same_values(certcal_command, tmp_path, wide):
    rng = np.random.default_rng(0)
    path = tmp_path / "long.parquet"
    if wide:
        p = rng.dirichlet(np.ones(3), 5000)
        table = {"probabilities": list(p), "label": rng.integers(0, 3, 5000)}
    else:
        z = rng.random(5000)
        table = {"conf": z, "correct": rng.random(5000) < z}
    pq.write_table(pa.table(table), path, row_group_size=700)
    pieces = json.loads(certcal_command("measure", path, "--memory", "1kB", "--metric", "all", "--json").out)
    whole = json.loads(certcal_command("measure", path, "--metric", "all", "--json").out)
    assert pieces["conventions"]["streamed"] is True
    assert whole["conventions"]["streamed"] is False
    assert pieces["reliability"] == whole["reliability"]
    values = {(row["name"], repr(row["settings"])): row["value"] for row in whole["measurements"]}
    found = {(row["name"], repr(row["settings"])): row["value"] for row in pieces["measurements"]}
    assert len(found) > 10
    for key, value in found.items():
        assert value == pytest.approx(values[key], rel=1e-9, abs=1e-9), key
    assert "read in pieces" in " ".join(certcal_command("measure", path, "--memory", "1kB").out.split())


def test_what_cannot_be_done_in_pieces_is_refused(certcal_command, scores):
    ran = certcal_command("measure", scores, "--memory", "1kB", "--metric", "auroc")
    assert ran.code == 2
    assert "auroc needs all samples at once, and this table is read in pieces; allow more memory" in ran.err


def test_groups_of_a_table_read_in_pieces_have_the_values_they_have_in_memory(certcal_command, scores):
    pieces = json.loads(certcal_command("measure", scores, "--memory", "1kB", "--by", "site", "--json").out)
    whole = json.loads(certcal_command("measure", scores, "--by", "site", "--json").out)
    assert pieces["conventions"]["streamed"] is True
    assert [group["group"] for group in pieces["groups"]] == ["north", "south"]
    for found, expected in zip([pieces, *pieces["groups"]], [whole, *whole["groups"]], strict=True):
        assert found["n"] == expected["n"]
        assert found["reliability"] == expected["reliability"]
        values = {(row["name"], repr(row["settings"])): row["value"] for row in expected["measurements"]}
        for row in found["measurements"]:
            assert row["value"] == pytest.approx(values[row["name"], repr(row["settings"])], rel=1e-9, abs=1e-9)
    shown = certcal_command("measure", scores, "--memory", "1kB", "--by", "site", "--no-diagram").out
    assert "north" in shown
    assert "read in pieces" in " ".join(shown.split())


def test_groups_of_a_table_read_in_pieces_come_in_natural_order(certcal_command, tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("conf,correct,site\n" + "".join(f"0.{k},1,site {k}\n" for k in (10, 9, 100, 9)))
    document = json.loads(certcal_command("measure", path, "--memory", "1", "--by", "site", "--json").out)
    assert document["conventions"]["streamed"] is True
    assert [(group["group"], group["n"]) for group in document["groups"]] == [
        ("site 9", 2),
        ("site 10", 1),
        ("site 100", 1),
    ]


def test_too_many_groups_for_a_table_read_in_pieces_are_refused(certcal_command, tmp_path):
    path = tmp_path / "users.csv"
    path.write_text("conf,correct,user\n" + "".join(f"0.5,1,a{k}\n" for k in range(101)))
    ran = certcal_command("measure", path, "--memory", "1", "--by", "user")
    assert ran.code == 2
    assert "there are more than 100 groups" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert certcal_command("measure", path, "--by", "user", "--metric", "ece").code == 0


@pytest.mark.parametrize("weight", ["0", "1e-160", "1e-320"])
def test_a_group_of_almost_no_weight_is_left_out_and_named(certcal_command, tmp_path, weight):
    path = tmp_path / "heavy.csv"
    path.write_text(f"conf,correct,kg,site\n0.5,1,1,a\n0.6,1,1,c\n0.7,0,{weight},b\n")
    for options in (("--memory", "1"), ()):
        ran = certcal_command("measure", path, "--weight", "kg", "--by", "site", *options)
        assert ran.code == 0
        assert "Left out, since all samples have weight 0 or almost 0: b." in " ".join(ran.out.split())
    document = json.loads(certcal_command("measure", path, "--weight", "kg", "--by", "site", "--json").out)
    assert document["groupings"] == [{"by": "site", "columns": ["site"], "left_out": ["b"], "time": False}]
    assert [group["group"] for group in document["groups"]] == ["a", "c"]


def test_several_columns_and_crossings_are_asked_for_one_by_one(certcal_command, scores):
    head, *lines = scores.read_text().splitlines()
    halves = [f"{line},{place % 2}" for place, line in enumerate(lines)]
    scores.write_text("\n".join([f"{head},half", *halves]))
    ran = certcal_command("measure", scores, "--by", "site", "--by", "site*half", "--json")
    document = json.loads(ran.out)
    assert document["by"] == "site, site*half"
    names = [group["group"] for group in document["groups"]]
    assert names == [
        "site=north",
        "site=south",
        *(f"site*half={site}*{k}" for site in ("north", "south") for k in (0, 1)),
    ]
    met = certcal_command("measure", scores, "--by", "site*half", "--require", "every estimate ece <= 1")
    assert met.code == 0
    assert re.search(r"(north|south).{1,3}[01] \(worst of 4 groups\)", " ".join(met.out.split()))


def test_intervals_of_a_table_read_in_pieces_are_those_of_the_library_and_what_has_none_is_said(
    certcal_command, scores
):
    document = json.loads(certcal_command("measure", scores, "--memory", "1kB", "--metric", "all", "--json").out)
    expected = certcal.metrics.measure_stream(lambda: certcal.data.PredictionStream(scores), intervals=True)
    for row, twin in zip(document["measurements"], expected, strict=True):
        assert row["interval"] == (None if twin.interval is None else twin.interval.to_dict())
    assert document["conventions"]["without_interval"] == ["nll"]
    assert document["reliability"]["lower"] is not None
    shown = " ".join(certcal_command("measure", scores, "--memory", "1kB").out.split())
    assert f"all rows must fit in memory: {label('nll', 'binary')}." in shown


def test_with_weights_a_table_read_in_pieces_has_no_intervals_and_says_so(certcal_command, scores):
    options = ("--memory", "1kB", "--weight", "score", "--metric", "ece", "--no-diagram")
    shown = " ".join(certcal_command("measure", scores, *options).out.split())
    assert "Without an interval, for which all rows must fit in memory: ECE." in shown
    assert "resamples" not in shown


def test_hostile_names_do_not_reach_the_terminal_raw(certcal_command, tmp_path):
    path = tmp_path / "evil\x1b[31m.csv"
    path.write_text("conf,correct,\x1b[2Jsite\n0.5,1,\x1b]0;title\x07\n0.6,0,[bold]x[/bold]\n")
    ran = certcal_command("measure", path, "--by", "\x1b[2Jsite")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert "[bold]x[/bold]" in ran.out
    ran = certcal_command("measure", path, "--by", "\x1b[2Jsit")
    assert ran.code == 2
    assert "\x1b" not in ran.err


def test_the_band_of_the_diagram_can_be_chosen(certcal_command, scores):
    ran = certcal_command("measure", scores, "--bins", 5, "--band", "isotonic", "--level", 0.9, "--json")
    drawn = json.loads(ran.out)["reliability"]
    assert (drawn["band"], drawn["level"], drawn["isotonic"]["kind"]) == ("isotonic", 0.9, "isotonic")
    pieces = certcal_command("measure", scores, "--band", "isotonic", "--memory", "1kB")
    assert pieces.code == 2
    said = " ".join(pieces.err.split())
    assert "--band: the isotonic band needs all samples at once, and this table is read in pieces" in said
    assert certcal_command("measure", scores, "--band", "wide").code == 2


def test_metrics_may_be_named_as_they_are_shown_and_a_tiny_p_value_is_not_printed_as_zero(certcal_command, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("score,outcome\n" + "0.05,1\n0.95,0\n" * 50)
    names = ("log loss", "KS", "p-value of Spiegelhalter’s z")
    asked = [word for name in names for word in ("--metric", name)]
    shown = certcal_command("measure", path, *asked, "--no-diagram").out
    assert "p-value of Spiegelhalter’s z" in shown
    assert "< 0.0001" in shown
    assert "0.0000" not in shown
    found = certcal.measure(path)
    assert found["log loss"] == found["nll"]
    assert found.row_of("KS calibration error") == found["ks_error"]


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("score,label\n0.5,1\n1.5,0\n", "outside [0, 1]; pass probabilities"),
        (
            "score,label\n-.5,1\n1.5,0\n",
            "other margins by certcal recalibrate fit {table} --score=score --outcome=label --real-scores -o map.json",
        ),
        ("score,label\n2.5,1\n8.5,0\n", "if these are percentages, say so; run: certcal measure {table} --percent"),
        (
            "score,label\n612,1\n640,0\n",
            "by certcal recalibrate fit {table} --score=score --outcome=label --real-scores -o map.json",
        ),
        ("conf,correct\n2.5,1\n8.5,0\n", "if these are percentages, say so; run: certcal measure {table} --percent"),
        ("p_0,p_1,label\n5,8,1\n1,2,0\n", "; for logits, name one column per class as logits (--logits)"),
        ("p_0,p_1,label\n0.5,0.5,1\n1.5,0,0\n", "; for logits, name one column per class as logits (--logits)"),
        ("p_0,p_1,label\n0.5,0.5,1\n0.5,0,0\n", " or, for logits, name one column per class as logits (--logits)"),
    ],
)
def test_numbers_that_are_no_probabilities_say_what_to_do_with_logits(certcal_command, tmp_path, text, remedy):
    (tmp_path / "table.csv").write_text(text)
    ran = certcal_command("measure", tmp_path / "table.csv")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f"{remedy}\n".format(table=tmp_path / "table.csv"))


def test_a_p_value_is_printed_rounded_up_everywhere():
    p = certcal.claims.Estimate("spiegelhalter_p", 0.050141, 200)
    assert (text_of(p), p.sentence.split(" on ")[0]) == ("0.0502", "spiegelhalter_p is 0.05015")
    table = Measurements((p,), 200, "score")
    assert "0.05015" in repr(table)
    study = FindingTable("designs", ("design", "share", "p (Holm)"), (("wide", 0.0501, 0.0501), ("deep", 1.0, 1e-9)))
    assert review_table(study).texts() == [["wide", "0.050", "0.0501"], ["deep", "1.000", "< 0.0001"]]
