"""The page of a table of intervals: every certified value as the JSON has it, at each radius and for each group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from certcal.report.page import page
from certcal.report.page._curves import BETWEEN
from certcal.report.page._intervals_page import NAMES
from certcal.report.results import CertifiedResults, Line, Method
from tests.report.page.test_skeleton import HOSTILE
from tests.report.page.test_table_page import lines, section

from certcal.report.explained import CERTIFIED
from certcal.worst_case import certify
from tests.report.parsed import Node, assert_sound, classes, data_of, parsed

CONVENTIONS = {"bins": 6, "closed": "left", "delta": 0.05, "alpha": 0.001}


def line(radius: str | None, group: str | None = None, n: int = 60, bins: int = 6, *, share: float = 0.8) -> Line:
    rng = np.random.default_rng(len(group or ""))
    size = 0.1 if radius is None else float(radius) / 2
    confidence = rng.beta(5, 2, n)
    correct = (rng.random(n) < confidence).astype(int)
    certified = (rng.random(n) < share).astype(int)
    low, high = np.clip(confidence - size, 0, 1), np.clip(confidence + size, 0, 1)
    return Line(radius, group, certify(low, high, correct, certified=certified, bins=bins, alpha=0.001))


def results_of(*of: Line, by: str | None = None, source: str = "intervals.csv", **more: Any) -> CertifiedResults:
    options: dict[str, Any] = {"methods": (), "conventions": CONVENTIONS, "claims": (), "notes": "Notes."} | more
    return CertifiedResults(source, len(of) * 60, {"columns": {}}, "a description", of, by, **options)


@pytest.fixture(scope="module")
def radii() -> CertifiedResults:
    lines_of = [line(radius, group) for radius in ("0", "0.25", "0.5") for group in (None, "day", "night")]
    return results_of(*lines_of, by="shift")


def frames(root: Node, tag: str) -> list[Node]:
    return [each for each in root.all(tag) if each.attributes.get("data-of") == "radius"]


def test_the_json_inside_the_page_is_the_results_and_the_page_is_sound(radii: CertifiedResults) -> None:
    for results in (radii, results_of(line(None)), results_of(line("0.5"))):
        assert data_of(assert_sound(page(results).html)) == results.to_dict()


def test_lines_between_radii_and_the_bound_for_the_population_say_what_they_are(radii: CertifiedResults) -> None:
    root = parsed(page(radii).html)
    assert section(root, "radii").text.count(BETWEEN) == 2
    assert "over certified samples" in section(root, "numbers").text
    assert "except with probability 0.05" in section(root, "numbers").text


def test_the_headline_is_the_last_radius_with_the_bound_of_the_population(radii: CertifiedResults) -> None:
    card = section(parsed(page(radii).html), "headline")
    last = [entry for entry in radii.to_dict()["results"] if entry["group"] is None][-1]
    claim, bound = last["calibration_error"]["certified"], last["population_bound"]["certified"]
    assert card.one("strong").text == claim["text"]
    assert "At radius 0.5, the calibration error is" in card.text
    assert claim["sentence"] in card.text
    assert bound["sentence"] in card.text
    assert [each.text for each in card.of_class("badge")] == ["Worst case", "Bound"]


def test_every_certified_value_stands_in_the_table_as_the_json_has_it(radii: CertifiedResults) -> None:
    part = section(parsed(page(radii).html), "values")
    head = [each.text.replace("\u00a0", " ") for each in part.one("thead").all("th")]
    for row, entry in zip(lines(part), radii.to_dict()["results"], strict=True):
        cells = dict(zip(head, row, strict=True))
        assert float(cells["radius"]) == entry["radius"]
        assert cells["shift"] == (entry["group"] or "all samples")
        assert cells["certified accuracy ≥"] == entry["certified_accuracy"]["text"]
        assert cells["skill ≥"] == entry["certified_skill"]["text"]
        keys = {"Brier": "brier_score", "log loss": "nll", "ECE": "calibration_error", "MCE": "mce", "KS": "ks_error"}
        for name, key in keys.items():
            assert cells[f"{name} ≤"] == entry[key]["certified"]["text"]
        assert cells["ECE, all ≤"] == entry["calibration_error"]["all"]["text"]
        assert cells["ECE, population ≤"] == entry["population_bound"]["certified"]["text"]


def test_the_slider_has_a_frame_per_radius_with_the_number_of_the_json(radii: CertifiedResults) -> None:
    root = parsed(page(radii).html)
    entries = [entry for entry in radii.to_dict()["results"] if entry["group"] is None]
    said = section(root, "worst").one("output").all("span")
    for text, entry in zip(said, entries, strict=True):
        assert f"calibration error at most {entry['calibration_error']['certified']['text']};" in text.text
    pictures = section(root, "worst").all("svg", role="img")
    assert len(pictures) == 3
    seen = [each for each in frames(section(root, "worst"), "div") if "hidden" not in each.attributes]
    assert {each.attributes["data-frame"] for each in seen} == {"2"}
    marked = [each for each in root.all("tr") if "data-row-of" in each.attributes]
    assert [each.all("th")[0].text for each in marked] == ["0", "0.25", "0.5"]


def test_the_signs_above_the_bins_are_those_of_the_worst_case(radii: CertifiedResults) -> None:
    pictures = section(parsed(page(radii).html), "worst").all("svg", role="img")
    entries = [entry for entry in radii.to_dict()["results"] if entry["group"] is None]
    for picture, entry in zip(pictures, entries, strict=True):
        signs = "".join(each.text for each in picture.of_class("sign"))
        assert signs == "".join("+" if sign > 0 else "−" for sign in entry["calibration_error"]["certified"]["signs"])


def test_the_terms_of_the_population_bound_are_rounded_up(radii: CertifiedResults) -> None:
    part = section(parsed(page(radii).html), "population")
    last = [entry for entry in radii.to_dict()["results"] if entry["group"] is None][-1]
    for row, bound in zip(lines(part), last["population_bound"].values(), strict=True):
        assert row[-1] == bound["text"]
        for text, value in zip(row[1:-1], bound["terms"].values(), strict=True):
            assert value <= float(text) <= value + 1.0001e-4


def test_every_claim_of_the_headline_radius_says_how_it_was_computed(radii: CertifiedResults) -> None:
    parts = [each.text for each in section(parsed(page(radii).html), "computed").all("details")]
    last = [each for each in radii.lines if each.group is None][-1]
    claims = list(last.summary.claims())
    assert len(parts) == len(claims)
    for text, (key, _, claim) in zip(parts, claims, strict=True):
        assert NAMES[key] in text
        assert claim.sentence in text
        assert CERTIFIED[key] in text
        assert claim.text in text


def test_a_table_in_which_every_sample_is_certified_has_each_claim_once() -> None:
    root = assert_sound(page(results_of(line(None, share=1.0))).html)
    assert len(section(root, "computed").all("details")) == 12
    head = [each.text for each in section(root, "values").one("thead").all("th")]
    assert head[0] == "samples"
    assert not any("all" in text for text in head)
    assert root.all("input") == []
    assert root.all("section", id="radii") == []


def test_the_verdict_stands_above_the_brier_score_taken_apart(radii: CertifiedResults) -> None:
    part = section(parsed(page(radii).html), "information")
    last = [entry for entry in radii.to_dict()["results"] if entry["group"] is None][-1]
    assert last["information"]["verdict"].startswith("At radius 0.5, ")
    assert last["information"]["verdict"] in part.text
    assert [row[1:] for row in lines(part)] == [
        ["at most", last["certified_uncertainty"]["text"]],
        ["at least", last["certified_resolution"]["text"]],
        ["at most", last["certified_miscalibration"]["text"]],
        ["at most", last["brier_score"]["certified"]["text"]],
        ["at least", last["certified_skill"]["text"]],
        ["at least", last["certified_best_skill"]["text"]],
    ]
    without = results_of(line(None))
    assert "Inside the given intervals, " in section(parsed(page(without).html), "information").text


def test_a_radius_without_a_certified_sample_is_an_honest_empty_state() -> None:
    nothing = results_of(line("0.5", share=0.0))
    root = assert_sound(page(nothing).html)
    assert "At radius 0.5, no sample is certified" in section(root, "information").text
    assert "No sample is certified, so there is no worst case to draw." in section(root, "worst").text
    assert section(root, "headline").one("strong").text == "1.0000"
    partly = assert_sound(page(results_of(line("0.25"), line("0.5", share=0.0))).html)
    pictures = section(partly, "worst").all("svg", role="img")
    assert [("no sample" in each.text) for each in pictures] == [False, True]
    assert "–" in lines(section(partly, "values"))[1]


def test_more_radii_than_frames_are_thinned_on_the_slider_and_complete_in_the_table() -> None:
    results = results_of(*(line(f"{place / 100:g}", n=8) for place in range(45)))
    root = assert_sound(page(results).html)
    assert len(section(root, "worst").all("svg", role="img")) <= 41
    assert "of 45 radii; the table of all values has all" in section(root, "worst").text
    assert len(lines(section(root, "values"))) == 45


def test_the_signs_of_the_bins_give_way_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    base = line("0.5", bins=2000)
    results = results_of(*(Line(f"{place / 4:g}", None, base.summary) for place in range(5)))
    monkeypatch.setattr("certcal.report.page._skeleton._MOST_DATA", 50_000)
    root = assert_sound(page(results).html)
    assert "signs" not in data_of(root)["results"][0]["calibration_error"]["certified"]
    worst = base.summary["mce"].worst
    assert worst is not None
    assert data_of(root)["results"][3]["mce"]["certified"]["text"] == worst.text
    assert "signs of the bins are too many" in section(root, "provenance").text
    assert len(section(root, "worst").all("svg", role="img")) == 5


def test_methods_that_were_compared_stand_with_their_side() -> None:
    methods = (Method(None, "exact", 0.3, "0.3012", 0.1, True), Method(None, "ADMM", 0.29, "0.2900", 1.0, False))
    root = parsed(page(results_of(line(None), methods=methods)).html)
    assert lines(section(root, "methods")) == [["", "exact", "at most", "0.3012"], ["", "ADMM", "at least", "0.2900"]]


def test_the_style_sheet_knows_every_class_of_the_page(radii: CertifiedResults) -> None:
    root = parsed(page(radii).html)
    style = root.one("style").text
    assert {name for name in classes(root) if f".{name}" not in style} == set()


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_text(name: str) -> None:
    methods = (Method("0.5", name, 0.3, "0.3012", 0.1, True),)
    base = line("0.5", n=8)
    results = results_of(
        base, Line("0.5", name, base.summary), by=name, source=name, notes=name, methods=methods
    )  # fmt: skip
    root = assert_sound(page(results, title=name).html)
    assert root.all("img") == []
    assert data_of(root) == results.to_dict()
