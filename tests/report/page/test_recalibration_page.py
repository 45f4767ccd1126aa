"""The page of a recalibration: the numbers of the held-out samples, and pictures that go through them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from certcal.calibrators import CertifiedSamples, recalibrate
from certcal.calibrators._drawn import constant_point
from certcal.calibrators._verdict import verdict
from certcal.report.numbers import number
from certcal.report.page import Provenance, _recalibration_maps, _skeleton, page
from certcal.report.page._axes import covering
from certcal.report.page._svg import WIDTH
from tests.report.page.parsed import Node, assert_sound, classes, data_of, parsed
from tests.report.page.test_skeleton import HOSTILE
from tests.report.recalibrated import interval_samples, recalibrated_results, results_of, run_samples


@pytest.fixture(scope="module")
def results():
    return recalibrated_results()


@pytest.fixture(scope="module")
def root(results):
    return parsed(page(results).html)


@pytest.fixture(scope="module")
def of_run():
    return results_of(recalibrate(run_samples(), tradeoff=1))


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def rows(table: Node) -> list[list[str]]:
    return [[plain(cell.text) for cell in row.children if isinstance(cell, Node)] for row in table.all("tr")]


def captioned(root: Node, start: str) -> Node:
    (found,) = [each for each in root.all("table") if each.one("caption").text.startswith(start)]
    return found


def places(root: Node, chart: str, kind: str) -> np.ndarray:
    """Where the marks of one class of a chart are: starts of their paths, or all points of a line."""
    (picture,) = [
        each for each in root.all("svg") if f"{chart}-title" in (each.attributes.get("aria-labelledby") or "")
    ]
    (path,) = [each for each in picture.all("path") if each.attributes["class"] == kind]
    pattern = r"M(-?[\d.]+) (-?[\d.]+)" if kind.startswith("dot") else r"[ML](-?[\d.]+) (-?[\d.]+)"
    return np.array([[float(x), float(y)] for x, y in re.findall(pattern, path.attributes["d"] or "")])


def test_the_page_is_sound_and_holds_the_whole_json(results, of_run):
    for each in (results, of_run):
        made = page(each, Provenance(("certcal", "recalibrate")))
        inside = data_of(assert_sound(made.html))
        assert inside.pop("provenance")["command"] == ["certcal", "recalibrate"]
        assert inside == each.to_dict()


def test_the_style_sheet_knows_every_class_of_the_page(root):
    style = root.one("style").text
    assert {name for name in classes(root) if f".{name}" not in style} == set()


def test_the_headline_has_both_worst_cases_before_and_after_at_the_largest_radius_and_the_verdict(results, root):
    found = results.found
    card = root.one("section", id="headline")
    before, after = (line.at[-1].summary for line in (found.identity, found.chosen))
    worst = [(each["brier_score"].worst.text, each["calibration_error"].worst.text) for each in (before, after)]
    assert rows(card.one("table")) == [
        ["at most", "as it is", "recalibrated"],
        ["Brier score", worst[0][0], worst[1][0]],
        ["calibration error", worst[0][1], worst[1][1]],
    ]
    assert card.of_class("value")[0].one("strong").text == worst[1][1]
    assert "At radius 0.5, recalibrated, the calibration error is" in card.text
    assert after["calibration_error"].worst.sentence in card.text
    assert verdict(found) in card.text


def test_the_headline_of_a_run_is_the_certificate_with_those_that_fail(of_run):
    card = parsed(page(of_run).html).one("section", id="headline")
    before, after = (line.at[-1].claim for line in (of_run.found.identity, of_run.found.chosen))
    assert card.of_class("value")[0].one("strong").text == after.text
    assert after.sentence in card.text
    assert rows(card.one("table"))[-1] == ["the same, with certificates that fail", before.text, after.text]


def test_the_key_numbers_say_before_and_after(results, root):
    found = results.found
    section = root.one("section", id="numbers")
    before, after = found.identity, found.chosen
    texts = {each.one("dt").text: each.one("dd").text for each in section.one("dl").all("div")}
    assert texts["held-out samples"] == f"{found.n_held_out}fitted to {found.n_fit} others"
    for name, key in (("clean Brier score", "brier_score"), ("clean ECE", "ece"), ("clean AUROC", "auroc")):
        values = [number(line.clean[key].value) for line in (after, before)]
        assert texts[name] == f"{values[0]}estimateas it is: {values[1]}"
    skill = [line.at[-1].summary.skill.text for line in (after, before)]
    assert texts["certified skill"] == f"{skill[0]}at leastas it is: {skill[1]}"


def test_tables_have_every_number_of_every_map_with_the_chosen_one_marked(results, root):
    found = results.found
    section = root.one("section", id="maps")
    names = ["as it is", *(f"λ = {line.tradeoff:g}" for line in found.lines[1:])]
    clean = rows(captioned(section, "Without a perturbation"))
    expected = [[number(line.clean[key].value) for key in ("brier_score", "ece", "auroc")] for line in found.lines]
    assert clean[1:] == [[name, *texts] for name, texts in zip(names, expected, strict=True)]
    table = captioned(section, "In the worst case")
    written = iter(rows(table)[1:])
    for place, radius in enumerate(found.radii):
        assert next(written) == [f"Within radius {radius}, weight 0.5"]
        for name, line in zip(names, found.lines, strict=True):
            at = line.at[place]
            worst = [at.summary[key].worst.text for key in ("brier_score", "calibration_error")]
            texts = [at.summary.population.text, at.summary.skill.text, at.gain.text]
            assert next(written) == [name, *worst, *texts]
    assert next(written, None) is None
    marked = [row for row in section.all("tr") if row.attributes.get("aria-current")]
    assert [plain(row.all("th")[0].text) for row in marked] == ["λ = 0.5"] * 3


def test_one_radius_has_one_table_and_claims_a_column_of_their_own():
    found = recalibrate(run_samples(radii=(0.25,)), tradeoff=0.5, tradeoffs=(1,))
    section = parsed(page(results_of(found)).html).one("section", id="maps")
    header, *lines = rows(section.one("table"))
    assert header[1:] == [
        *("clean Brier", "clean ECE", "AUROC", "Brier ≤", "ECE ≤"),
        *("ECE, claimed ≤", "ECE, population ≤", "skill ≥", "gain, population ≥"),
    ]
    assert [line[6] for line in lines] == [line.at[0].claim.text for line in found.lines]


def test_the_bins_before_and_after_add_up_to_the_worst_cases_at_each_radius(results, root):
    found = results.found
    for place, radius in enumerate(found.radii):
        for words, line in (("before", found.identity), ("after", found.chosen)):
            table = captioned(root, f"Bins: Reliability diagram of the worst case {words} the map, radius {radius}")
            bins = rows(table)[1:]
            count = np.array([int(row[1]) for row in bins])
            gap = np.array([abs(float(row[4].replace("−", "-"))) for row in bins])
            worst = line.at[place].summary["calibration_error"].worst
            assert count.sum() == worst.n
            assert (count * gap).sum() / count.sum() == pytest.approx(worst.value, abs=6e-5)


def test_the_line_of_the_map_goes_through_its_values(results, root):
    found = results.found
    drawn = places(root, "map", "line blue")
    height = round((WIDTH - 68) * 0.86)
    x, y = (drawn[:, 0] - 54) / (WIDTH - 68), (14 + height - drawn[:, 1]) / height
    assert x[0] == 0
    assert x[-1] == 1
    curve = found.calibrator.curve_
    corners = np.unique(np.concatenate([[0.0, 1.0], curve.x]))
    # Coordinates are written to a tenth of a unit.
    np.testing.assert_allclose(x, corners, atol=0.06 / height)
    np.testing.assert_allclose(y, found.calibrator.transform(corners), atol=0.06 / height)
    assert len(places(root, "map", "dot blue")) % 2 == 0


def test_a_map_given_by_a_formula_has_no_flat_parts_and_a_table_of_some_of_its_values():
    found = recalibrate(interval_samples(60, (0.5,)), method="temperature", tradeoff=0, tradeoffs=(1,))
    root = assert_sound(page(results_of(found)).html)
    section = root.one("section", id="map")
    assert "No part of it is flat." in section.text
    assert "no monotone map is better" not in section.text
    written = np.array([[float(text) for text in row] for row in rows(captioned(section, "The map at some"))[1:]])
    assert len(written) == 21
    np.testing.assert_allclose(found.calibrator.transform(written[:, 0]), written[:, 1], atol=5.1e-5)


def test_the_front_has_the_line_of_the_fit_and_the_points_of_the_held_out_samples(results, root):
    found = results.found
    constant = constant_point(found)
    drawn = [*(point.fitted for point in found.front[1:]), *(point.held_out for point in found.front)]
    scores = np.array([*drawn, constant.held_out])
    axes = [covering(column.tolist(), "", low=None) for column in scores.T]

    def placed(pairs):
        x, y = ([axis.at(value) for value in column] for axis, column in zip(axes, np.array(pairs).T, strict=True))
        return np.stack([64 + (WIDTH - 88) * np.array(x), 12 + 290 * (1 - np.array(y))], axis=1)

    maps = found.front[1:]
    line = placed([point.fitted for point in maps])
    np.testing.assert_allclose(places(root, "front", "line blue"), line, atol=0.06)
    # Paths of squares, diamonds and triangles start at a corner.
    squares = placed([point.held_out for point in maps]) - 3
    np.testing.assert_allclose(places(root, "front", "dot orange"), squares, atol=0.06)
    diamond = placed([found.front[0].held_out]) - [0, 4.2]
    np.testing.assert_allclose(places(root, "front", "dot ink"), diamond, atol=0.06)
    triangle = placed([constant.held_out]) - [0, 4]
    np.testing.assert_allclose(places(root, "front", "dot green"), triangle, atol=0.06)
    labels = {text.text for text in root.one("section", id="map").all("text")}
    assert {"0.5", "as it is", "constant"} <= labels
    assert "samples of the fit" in root.one("section", id="map").text
    assert "held-out samples, with their λ" in root.one("section", id="map").text


def test_the_numbers_of_the_front_are_in_a_table(results, root):
    table = rows(captioned(root, "Brier scores of each map"))
    assert [row[0] for row in table[1:]] == [*(point.name for point in results.found.front), "one constant confidence"]
    for row, point in zip(table[1:], results.found.front, strict=False):
        assert [row[1], row[3]] == [number(point.fitted[0]), number(point.held_out[0])]
        assert 0 <= float(row[2]) - point.fitted[1] <= 1e-4
        assert 0 <= float(row[4]) - point.held_out[1] <= 1e-4


def test_the_page_says_how_the_samples_were_split(of_run):
    facts = parsed(page(of_run).html).one("section", id="samples").text
    assert "40 samples, a share of 0.5" in facts
    assert "seed 0" in facts
    assert "no sample is in both parts" in facts
    assert "ab" * 32 in facts
    assert "Notes for all numbers." in facts


def test_without_clean_confidences_the_page_has_no_front_and_says_why():
    found = recalibrate(interval_samples(clean=False), tradeoff=1)
    root = assert_sound(page(results_of(found)).html)
    assert "There is no front to draw" in root.one("section", id="map").text
    assert "clean" not in root.one("section", id="numbers").text
    assert all("clean" not in table.one("thead").text for table in root.one("section", id="maps").all("table"))


def test_intervals_without_a_radius_are_spoken_of_as_the_given_ones():
    samples = replace(interval_samples(60, (0.5,)), radii=("",))
    root = assert_sound(page(results_of(recalibrate(samples))).html)
    text = "".join(root.one("section", id=key).text for key in ("headline", "numbers", "worst", "maps", "computed"))
    assert "radius" not in text
    assert "inside the given intervals" in root.one("section", id="numbers").text
    assert "Recalibrated, the calibration error is" in root.one("section", id="headline").text


def test_where_nothing_is_certified_the_page_says_so():
    samples = interval_samples(40, (0.5,))
    nothing = CertifiedSamples.from_intervals(
        samples.lower, samples.upper, samples.correct, samples.confidence, certified=np.zeros((40, 1)), radii=(0.5,)
    )
    root = assert_sound(page(results_of(recalibrate(nothing, tradeoff=0))).html)
    assert "No held-out sample is certified" in root.one("section", id="worst").text
    assert "no sample is certified, so no information" in root.one("section", id="headline").text
    assert "all held-out samples: none is certified" in root.one("section", id="headline").text


@pytest.mark.parametrize("correct", [[1] * 8, [0] * 8, [0, 1] * 4])
def test_intervals_from_0_to_1_and_one_outcome_give_a_page(correct):
    samples = CertifiedSamples.from_intervals(np.zeros(8), np.ones(8), correct, np.full(8, 0.5))
    root = assert_sound(page(results_of(recalibrate(samples, tradeoff=1, tradeoffs=(1,)))).html)
    assert "Every confidence becomes" in root.one("section", id="map").text
    ticks = [text.text for text in root.one("section", id="map").all("text")]
    assert max(map(len, ticks)) < 40


def test_so_many_maps_that_nobody_reads_them_are_in_the_json_only(results, monkeypatch):
    monkeypatch.setattr(_recalibration_maps, "MOST_MAPS", 4)
    section = parsed(page(results).html).one("section", id="maps")
    lines = rows(captioned(section, "Without a perturbation"))[1:]
    assert len(lines) == 4
    assert {"as it is", "λ = 0.5", "λ = 1"} <= {line[0] for line in lines}
    assert "2 further maps are in the JSON only" in section.text


def test_what_is_too_large_for_the_page_is_left_out_and_said(results, monkeypatch):
    whole = len(_skeleton.embedded(results.to_dict()))
    monkeypatch.setattr(_skeleton, "_MOST_DATA", whole - 1)
    root = assert_sound(page(results).html)
    assert "The signs of the bins are too many" in root.one("section", id="provenance").text
    inside = root.one("script", id="data").text
    assert '"signs"' not in inside
    assert len(data_of(root)["lines"]) == len(results.found.lines)
    monkeypatch.setattr(_skeleton, "_MOST_DATA", len(inside) - 1)
    root = assert_sound(page(results).html)
    assert "maps of other trade-offs are too many" in root.one("section", id="provenance").text
    assert [line["tradeoff"] for line in data_of(root)["lines"]] == [None, 0.5]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_text(results, name):
    hostile = replace(results, source=name, description=name, notes=name, claims=[name])
    root = assert_sound(page(hostile, title=name).html)
    assert root.all("img") == []
    assert data_of(root)["source"] == name
