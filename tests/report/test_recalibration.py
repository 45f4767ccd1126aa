"""Recalibration in a terminal and for machines: the library's numbers, in the safe direction, the chosen map marked."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from certcal import Predictions
from certcal.calibrators import CertifiedSamples, recalibrate
from certcal.calibrators._predictions import recalibrate_predictions
from certcal.report.recalibration import RecalibrationTable, prediction_sentence, recalibration_claims
from certcal.report.results import RecalibratedPredictions, RecalibratedResults

RNG = np.random.default_rng(21)
N = 300
Z = RNG.uniform(0.2, 1, N)
CORRECT = (RNG.random(N) < Z**1.5).astype(int)
RADII = (0.05, 0.1)
LOWER, UPPER = (np.clip(Z[:, None] + sign * np.array(RADII), 0, 1) for sign in (-1, 1))
CERTIFIED = np.stack([np.arange(N) % 9 > 0, np.arange(N) % 3 > 0], axis=1)


def samples(confidence=Z, radii=RADII, certified=CERTIFIED):
    return CertifiedSamples.from_intervals(LOWER, UPPER, CORRECT, confidence, certified=certified, radii=radii)


@pytest.fixture(scope="module")
def found():
    return recalibrate(samples(), tradeoffs=(0, 1))


def shown(found, width, encoding="utf-8"):
    console = Console(width=width, color_system=None, file=io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    with console.capture() as text:
        console.print(RecalibrationTable(found))
    return text.get()


def cells(text):
    """The words of each map's lines."""
    lines = [line for line in text.splitlines() if "λ" in line or "as it is" in line]
    return [line.replace("as it is", "asitis").replace("isotonic, λ = ", "λ").split() for line in lines]


def certified_texts(at):
    return [at.summary["brier_score"].worst.text, at.summary["calibration_error"].worst.text, at.summary.skill.text]


@pytest.mark.parametrize(("width", "tables"), [(80, 2), (100, 1)])
def test_each_map_has_a_line_with_the_certified_texts_of_every_radius(found, width, tables):
    text = shown(found, width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("map") == tables
    rows = cells(text)
    for index, line in enumerate(found.lines):
        words = [word for row in rows[index :: len(found.lines)] for word in row]
        clean = [f"{line.clean[key].value:.4f}" for key in ("brier_score", "ece", "auroc")]
        assert [word for word in words if "." in word and "λ" not in word] == clean + [
            each for at in line.at for each in certified_texts(at)
        ]


def test_bounds_and_gains_are_shown_where_there_is_room(found):
    text = shown(found, 140)
    for line in found.lines:
        for at in line.at:
            assert at.summary.population.text in text
            assert at.gain.text in text
    assert "ECE bound" not in shown(found, 100)


def test_only_the_map_that_was_asked_for_is_marked(found):
    marked = [line for line in shown(found, 120).splitlines() if line.startswith(">")]
    assert len(marked) == 1
    assert marked[0].startswith("> isotonic, λ = 0.5 ")


def test_a_plain_terminal_gets_plain_signs(found):
    text = shown(found, 80, encoding="ascii")
    assert "<=" in text
    assert "> isotonic, lambda = 0.5" in text
    assert text.replace("─", "-").isascii()


def test_without_clean_confidences_and_radii_the_table_says_certified():
    one = CertifiedSamples.from_intervals(LOWER[:, 0], UPPER[:, 0], CORRECT)
    made = recalibrate(replace(one, radii=("",)), tradeoff=1)
    text = shown(made, 80)
    assert "clean" not in text
    assert "certified" in text.splitlines()[0]
    claims = recalibration_claims(made)
    assert claims[0].startswith("Inside the given intervals, on 150 certified samples of 150 that the map was not")
    assert claims[-1].startswith("Inside the given intervals, the recalibrated confidences")
    assert not any("radius" in claim for claim in claims)


def test_the_claims_are_of_the_largest_radius_and_the_held_out_samples(found):
    claims = recalibration_claims(found)
    first, last = found.identity.at[-1], found.chosen.at[-1]
    n = last.summary.n_certified
    before, after = certified_texts(first), certified_texts(last)
    assert claims[0] == (
        f"At radius 0.1, on {n} certified samples of 150 that the map was not fitted to, isotonic, λ = 0.5 takes the "
        f"certified Brier score from at most {before[0]} to at most {after[0]}, and the worst calibration error from "
        f"at most {before[1]} to at most {after[1]}."
    )
    assert claims[1].endswith("These are estimates.")
    assert claims[2] == f"After the map, at radius 0.1, {last.summary.headline}"
    assert claims[3] == f"At radius 0.1, {last.summary.population.sentence}"
    assert f"({'as they were'}: {before[2]})" in claims[4]


def test_where_nothing_is_certified_that_is_the_claim():
    certified = CERTIFIED.copy()
    certified[:, 1] = False
    claims = recalibration_claims(recalibrate(samples(certified=certified)))
    none, clean = claims
    assert none == "At radius 0.1, none of 150 held-out samples is certified. The table has the smaller radii."
    assert clean.startswith("Without a perturbation, on all 150: Brier score from ")
    assert clean.endswith(" These are estimates.")


def test_json_has_every_map_and_no_nan(found):
    results = RecalibratedResults("x.csv", "two radii", found, ["One."], "Notes.", {"columns": {"lower": "lo"}})
    text = results.to_json()
    assert "NaN" not in text
    document = json.loads(text)
    assert document["map"] == found.calibrator.to_dict()
    assert (document["source"], document["columns"], document["claims"]) == ("x.csv", {"lower": "lo"}, ["One."])
    assert document["conventions"]["bins_are"] == "[a, b), the last one closed"
    assert [line["name"] for line in document["lines"]] == [line.name for line in found.lines]
    at = document["lines"][2]["at"][1]
    assert at["summary"]["brier_score"]["certified"]["text"] == certified_texts(found.lines[2].at[1])[0]
    assert at["gain"]["value"] == found.lines[2].at[1].gain.value


def test_csv_has_a_line_per_map_radius_and_claim(found):
    rows = list(csv.DictReader(io.StringIO(RecalibratedResults("x", "", found, [], "").to_csv())))
    chosen = [row for row in rows if row["chosen"] == "1"]
    assert {row["map"] for row in chosen} == {"isotonic, λ = 0.5"}
    (gain,) = [row for row in chosen if (row["radius"], row["claim"]) == ("0.1", "gain_over_constant")]
    bound = found.chosen.at[1].gain
    assert (float(gain["value"]), gain["text"], gain["sentence"]) == (bound.value, bound.text, bound.sentence)
    assert {row["claim"] for row in rows if row["radius"] == ""} == {"brier_score", "ece", "auroc"}
    assert len(rows) == len(found.lines) * (3 + 2 * (1 + len(list(found.chosen.at[0].summary.claims()))))


def test_predictions_are_told_before_and_after():
    made = recalibrate_predictions(Predictions.from_confidence(Z, CORRECT), method="platt")
    sentence = prediction_sentence(made)
    share = f"{made.before['accuracy'].value:.4f}"
    assert sentence.startswith(f"On 150 samples that the map was not fitted to, accuracy stays {share}, ECE goes from ")
    results = RecalibratedPredictions("x.csv", "", made, [sentence], "", {})
    rows = list(csv.DictReader(io.StringIO(results.to_csv())))
    (after,) = [row for row in rows if (row["map"], row["metric"]) == ("platt", "ece")]
    assert (float(after["value"]), after["bins"], after["n"]) == (made.after["ece"].value, "15", "150")
    assert json.loads(results.to_json())["after"]["n"] == 150
