"""``certcal bound``: the bounds of the library, with their terms and assumptions, shown and written."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import certcal
from certcal import bounds
from certcal.claims import round_outward
from certcal.data import load_table
from certcal.report.numbers import minus
from tests.report.parsed import assert_sound, data_of


def flat(text):
    return " ".join(text.split())


def pair(path):
    predictions = load_table(path).predictions
    return predictions.confidence, predictions.correct


@pytest.fixture
def probabilities(tmp_path):
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1, 1, 1], 150)
    path = tmp_path / "classes.npz"
    np.savez(path, probabilities=p, labels=[rng.choice(3, p=row) for row in p])
    return path


def test_each_bound_is_shown_with_its_terms_and_its_assumptions(certcal_command, scores):
    ran = certcal_command("bound", scores)
    assert (ran.code, ran.err) == (0, "")
    z, c = pair(scores)
    for name, found in (
        ("bounded variation", bounds.bounded_variation(z, c)),
        ("binned", bounds.binned(z, c)),
        ("binned, from below", bounds.binned_lower(z, c)),
    ):
        relation = ("at most", "≤") if found.side == "upper" else ("at least", "≥")
        assert f"{found.name[1:]} is {relation[0]} {found.text}" in flat(ran.out)
        assert f"{relation[1]} {found.text}" in next(
            line for line in ran.out.splitlines() if line.startswith(f"{name} ")
        )
        for term, value in found.terms.items():
            assert f"{term} {minus(round_outward(value, found.side))}" in flat(ran.out)
        assert all(each in flat(ran.out) for each in found.assumptions)
    assert "the best of these 3 fails with up to 3 times that probability" in flat(ran.out)
    assert max(map(len, ran.out.splitlines())) <= 80
    full = flat(certcal_command("bound", scores, "--explain").out)
    assert bounds.binned(z, c).sentence in full


def test_a_level_is_printed_rounded_up(certcal_command, scores):
    ran = certcal_command("bound", scores, "--delta", "0.05000004")
    assert "Each bound fails with probability at most 0.0500001" in flat(ran.out)
    assert "Fails with probability at most 0.0500001 over the draw" in flat(ran.out)


def test_settings_reach_the_library(certcal_command, scores):
    options = ("--delta", 0.01, "--bins", 7, "--closed", "right", "--variation", 2, "--lipschitz", 3, "--seed", 5)
    document = json.loads(certcal_command("bound", scores, *options, "--json").out)
    z, c = pair(scores)
    expected = {
        "lipschitz": bounds.lipschitz(z, c, 3, 0.01),
        "bounded_variation": bounds.bounded_variation(z, c, 0.01, variation=2),
        "binned": bounds.binned(z, c, 7, 0.01, closed="right"),
        "binned_lower": bounds.binned_lower(z, c, 7, 0.01, closed="right", seed=5),
    }
    assert [{k: v for k, v in found.items() if k != "method"} for found in document["bounds"]] == [
        json.loads(json.dumps(found.to_dict())) for found in expected.values()
    ]
    assert [found["method"] for found in document["bounds"]] == list(expected)
    assert document["conventions"]["delta"] == 0.01
    assert document["columns"] == {"kind": "confidence", "confidence": "score", "correct": "outcome"}


def test_perturbed_scores_need_no_assumption_on_the_classifier(certcal_command, scores):
    ran = certcal_command("bound", scores, "--perturb", 0.2, "--seed", 3, "--json")
    z, c = pair(scores)
    noisy = bounds.perturb(z, 0.2, 3)
    found = {entry["method"]: entry["value"] for entry in json.loads(ran.out)["bounds"]}
    assert found["smooth"] == bounds.smooth(noisy, c, 0.2, seed=3).value
    assert found["lipschitz"] == bounds.lipschitz(noisy, c, 2.5).value
    shown = flat(certcal_command("bound", scores, "--perturb", 0.2).out)
    assert "for the classifier that answers with perturbed scores" in shown


def test_every_sentence_about_perturbed_scores_says_so_by_itself(certcal_command, scores):
    document = json.loads(certcal_command("bound", scores, "--perturb", 0.2, "--json").out)
    assert len(document["bounds"]) == 5
    for entry in document["bounds"]:
        assert "perturbed scores" in entry["name"]
        assert "perturbed scores" in entry["sentence"]
        (noise,) = [each for each in entry["assumptions"] if "perturbed once" in each]
        assert "by the sech kernel of bandwidth 0.2" in noise
    plain = json.loads(certcal_command("bound", scores, "--json").out)
    assert not any("perturbed" in entry["sentence"] + "".join(entry["assumptions"]) for entry in plain["bounds"])


def test_a_bandwidth_is_chosen_and_said_to_be_for_other_samples(certcal_command, scores):
    found = bounds.choose_bandwidth(*pair(scores), 0.01)
    ran = certcal_command("bound", scores, "--choose-bandwidth", "1%")
    assert (ran.code, ran.err) == (0, "")
    assert found.sentence[1:] in ran.out
    assert f"samples that had no part in this choice: certcal bound TABLE --perturb {found.bandwidth:g}" in ran.out
    document = json.loads(certcal_command("bound", scores, "--choose-bandwidth", 0.01, "--json").out)
    assert document["bandwidth"] == found.bandwidth
    assert "bounds" not in document


def test_classes_are_bounded_on_average(certcal_command, probabilities):
    document = json.loads(certcal_command("bound", probabilities, "--classwise", "--json").out)
    predictions = load_table(probabilities).predictions
    mean = bounds.classwise(bounds.binned, predictions.probabilities, predictions.labels, 0.05).mean
    (found,) = [entry for entry in document["bounds"] if entry["method"] == "classwise_binned"]
    assert found["value"] == mean.value
    assert "binned, mean over classes" in certcal_command("bound", probabilities, "--classwise").out


def test_files_hold_all_digits_and_every_term(certcal_command, scores, tmp_path):
    names = [tmp_path / f"bounds.{ending}" for ending in ("json", "csv", "svg")]
    ran = certcal_command("bound", scores, *(word for name in names for word in ("-o", name)))
    assert ran.err.splitlines() == [f"wrote {name}" for name in names]
    z, c = pair(scores)
    found = bounds.binned(z, c)
    rows = [row for row in csv.DictReader(io.StringIO(names[1].read_text())) if row["method"] == "binned"]
    assert float(rows[0]["value"]) == found.value
    assert {row["term"]: float(row["value"]) for row in rows[1:]} == dict(found.terms)
    assert json.loads(names[0].read_text())["bounds"][1]["value"] == found.value
    assert "<svg" in names[2].read_text()


def test_the_page_says_what_the_json_says(certcal_command, scores, tmp_path):
    page, numbers = tmp_path / "bounds.html", tmp_path / "bounds.json"
    ran = certcal_command("bound", scores, "--lipschitz", 2, "-o", page, "-o", numbers)
    assert (ran.code, ran.err) == (0, f"wrote {page}\nwrote {numbers}\n")
    root = assert_sound(page.read_text())
    inside = data_of(root)
    command = inside.pop("provenance")["command"]
    assert inside == json.loads(numbers.read_text())
    assert command[:2] == ["certcal", "bound"]
    first = inside["bounds"][0]
    assert first["text"] in root.one("section", id="headline").text
    for found in inside["bounds"]:
        assert found["sentence"] in root.text
        assert all(each in root.text for each in found["assumptions"])


def test_no_figure_of_the_page_has_two_terms_with_one_hatching(scores):
    charts = certcal.bound(scores, perturb=0.2).report().charts()
    assert len(charts) > 1
    assert sum(len(chart.panels[0].names) for chart in charts) == 4
    assert all(len({term for terms in chart.panels[0].terms for term in terms}) <= 8 for chart in charts)


def test_one_row_is_bounded_from_above_only(certcal_command, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("confidence,correct\n0.7,1\n")
    ran = certcal_command("bound", path)
    assert (ran.code, ran.err) == (0, "")
    assert "1 sample; confidence" in ran.out
    assert "from below" not in ran.out
    numbers = next(block for block in certcal.measure(path).report().sections if block.title == "Key numbers").blocks[0]
    assert {"–"} == {each.text for each in numbers.numbers if each.name == "AUROC"}


def test_a_picture_of_many_terms_leaves_out_those_that_could_not_be_told_apart(certcal_command, scores, tmp_path):
    assert certcal_command("bound", scores, "--perturb", 0.2, "-o", tmp_path / "terms.svg").code == 0
    assert (tmp_path / "terms.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--delta", "2"), "--delta: 2 is not between 0 and 1"),
        (("--perturb", "0"), "--perturb: 0 is not a number above 0"),
        (("--perturb", "1e9"), "bandwidth is 1e+09; pass a number from 1e-9 to 1000"),
        (("--perturb", "0.1", "--lipschitz", "2"), "--perturb: it cannot be combined with lipschitz"),
        (("--perturb", "0.1", "--classwise"), "--perturb: it cannot be combined with classwise"),
        (("--choose-bandwidth", "0.01", "--perturb", "0.1"), "--choose-bandwidth prints a bandwidth and nothing else"),
        (("--choose-bandwidth", "0.01", "-o", "x.json"), "leave --perturb and -o out"),
        (("--choose-bandwidth", "-1"), "between 0 and 1"),
        (("--classwise",), "--classwise: it needs a probability for each class"),
        (("--weight", "w"), "there is no option '--weight'"),
        (("--lipshitz", "2"), "did you mean '--lipschitz'?"),
        (("-o", "bounds.doc"), "choose one of the endings .html, .txt, .png, .svg, .pdf, .json, .csv"),
    ],
)
def test_bad_input_leaves_with_a_sentence(certcal_command, scores, options, text):
    ran = certcal_command("bound", scores, *options)
    assert (ran.code, ran.out) == (2, "")
    assert text in ran.err


def test_measuring_can_bound_too(certcal_command, scores):
    document = json.loads(certcal_command("measure", scores, "--metric", "ece", "--bounds", "--json").out)
    z, c = pair(scores)
    assert [entry["value"] for entry in document["bounds"]] == [
        bounds.bounded_variation(z, c).value,
        bounds.binned(z, c).value,
    ]
    assert "bounds" not in json.loads(certcal_command("measure", scores, "--metric", "ece", "--json").out)
    shown = flat(certcal_command("measure", scores, "--metric", "ece", "--bounds").out)
    assert f"alibration error is at most {bounds.bounded_variation(z, c).text}" in shown


@pytest.mark.parametrize("option", [("--weight", "score"), ("--memory", "1kB")])
def test_weighted_or_streamed_samples_have_no_bounds_and_it_is_said(certcal_command, scores, option):
    ran = certcal_command("measure", scores, "--metric", "ece", "--bounds", *option)
    assert ran.code == 2
    assert "--bounds: bounds need" in ran.err
