"""The page of a study: every answer with its numbers, and charts that show what the review holds."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from certcal.report.page._study_matrix import cell_text, matrix_figure, shade

from certcal.report.numbers import between, brief
from certcal.report.page import Provenance, _study_charts, _study_page, page
from certcal.report.page._axes import covering
from certcal.report.page._svg import WIDTH, Frame
from certcal.report.results import StudiedResults
from certcal.study import Boxes, Finding, Lines, Points, StudyReview, Table
from tests.report.page.parsed import Node, assert_sound, classes, data_of, parsed
from tests.report.page.test_skeleton import HOSTILE
from tests.report.studied import boxes, lines, matrix, measurement_names, points, ranking, review, studied_results


@pytest.fixture(scope="module")
def results():
    return studied_results()


@pytest.fixture(scope="module")
def root(results):
    return parsed(page(results).html)


def rows(table: Node) -> list[list[str]]:
    return [[cell.text for cell in row.children if isinstance(cell, Node)] for row in table.all("tr")]


def drawn(chart) -> Node:
    return parsed(_study_charts.chart_figure("key", chart))


def starts(node: Node, kind: str) -> np.ndarray:
    """Where the paths of one class start."""
    found = [each.attributes["d"] for each in node.all("path") if (each.attributes["class"] or "").startswith(kind)]
    return np.array([[float(x), float(y)] for path in found for x, y in re.findall(r"M([\d.]+) ([\d.]+)", path)])


def test_the_page_is_sound_and_holds_the_whole_json(results):
    made = page(results, Provenance(("certcal", "study", "review")))
    inside = data_of(assert_sound(made.html))
    assert inside.pop("provenance")["command"] == ["certcal", "study", "review"]
    assert inside == results.to_dict()


def test_the_style_sheet_knows_every_class_of_the_page(root):
    style = root.one("style").text
    assert {name for name in classes(root) if f".{name}" not in style} == set()


def test_every_question_has_a_section_with_answer_cautions_numbers_and_the_published_finding(results, root):
    for answer in results.review:
        section = root.one("section", id=f"question-{answer.number}")
        text = section.text
        for said in (answer.question, answer.answer, answer.published, *answer.cautions):
            assert said in text
        tables = [each for each in section.all("table") if each.attributes.get("class") == "findings"]
        assert len(tables) == (1 if answer.findings else 0)
        for table in tables:
            for cells, found in zip(rows(table)[1:], answer.findings, strict=True):
                assert cells == [
                    found.name + found.note, brief(found.value), between(found.low, found.high), f"{found.n:,}"
                ]  # fmt: skip


def test_the_headline_has_a_number_per_question_and_says_what_is_not_answered(results, root):
    card = root.one("section", id="headline")
    table = rows(card.one("table"))[1:]
    assert [cells[0] for cells in table] == [
        "1 Data sets", "3 Metrics", "4 Temperature scaling", "5 Accuracy", "6 Bins", "7 Architecture",
    ]  # fmt: skip
    first = results.review.answers[0].findings[0]
    assert table[0][1:] == [first.name, brief(first.value), between(first.low, first.high)]
    assert "Not answered for these models: 2 Robustness" in card.text
    assert "Of the 7 questions of the benchmark study, 6 can be answered with 300 models" in card.text
    assert "Two rows failed." in card.text
    assert {"300", "3", "2"} <= {each.text for each in card.one("dl").all("strong")}


def test_an_answer_with_many_numbers_shows_those_of_all_models_first_and_keeps_the_rest(monkeypatch):
    found = review()
    part, whole = Finding("a part", 0.1, 0.0, 0.2, 9), Finding("all models", 0.3, 0.2, 0.4, 90)
    many = replace(found.answers[0], findings=(part, part, whole))
    monkeypatch.setattr(_study_page, "MOST_FINDINGS", 1)
    root = parsed(page(StudiedResults("s", replace(found, answers=(many, *found.answers[1:])))).html)
    section = root.one("section", id="question-1")
    first, everything = (each for each in section.all("table") if each.attributes.get("class") == "findings")
    assert [cells[0] for cells in rows(first)[1:]] == ["all models"]
    assert [cells[0] for cells in rows(everything)[1:]] == ["a part", "a part", "all models"]
    assert section.one("details").one("summary").text == "All 3 numbers"
    assert rows(root.one("section", id="headline").one("table"))[1][1] == "all models"


def test_sentences_about_a_data_set_are_a_paragraph_of_their_own():
    found = review()
    text = "Hardly. On digits, it is 0.1 (all). On digits it rises. On fashion, it is 0.2."
    results = StudiedResults("s", found)
    assert results.paragraphs(text) == [
        "Hardly.",
        "On digits, it is 0.1 (all). On digits it rises.",
        "On fashion, it is 0.2.",
    ]
    assert results.paragraphs("One.\nTwo.") == ["One.", "Two."]
    assert StudiedResults("s", replace(found, datasets=())).paragraphs("One. Two.") == ["One. Two."]


# ------------------------------------------------------------------------------------------------------------- matrices


def test_a_small_matrix_is_a_table_with_signs_and_colours():
    found = matrix(["digits", "fashion", "svhn", "constant"], note="")
    node = parsed(matrix_figure("key", found))
    table = node.one("table")
    cells = [row.all("td") for row in table.one("tbody").all("tr")]
    for row in range(4):
        for column in range(4):
            value = found.values[row, column]
            assert cells[row][column].text == cell_text(value)
            assert cells[row][column].attributes["class"] == f"cell {shade(value)}"
    assert "An empty cell is undefined" in node.text
    assert [each.text for each in table.one("thead").all("th")] == list(found.names)


def test_a_large_matrix_is_a_picture_whose_strokes_cover_every_cell_once():
    found = matrix(measurement_names())
    node = parsed(matrix_figure("key", found))
    cover = np.full(found.values.shape, "", dtype=object)
    dashes = set()
    for path in node.one("svg", role="img").all("path"):
        kind = (path.attributes["class"] or "").removeprefix("cell ")
        if kind == "dash":
            dashes = {(int(y), int(x)) for x, y in re.findall(r"M(\d+)\.3 (\d+)h\.4", path.attributes["d"] or "")}
        elif kind.startswith(("plus", "minus", "undefined")):
            for x, y, length in re.findall(r"M(\d+) (\d+)h(\d+)", path.attributes["d"] or ""):
                part = cover[int(y), int(x) : int(x) + int(length)]
                assert part.size == int(length)
                assert set(part) == {""}
                part[:] = kind
    assert cover.tolist() == [[shade(value) for value in line] for line in found.values.tolist()]
    assert dashes == {place for place, kind in np.ndenumerate(cover) if kind.startswith("minus")}
    assert len(dashes) > 100


def test_the_numbers_of_a_large_matrix_are_in_a_table_each_pair_once():
    found = matrix(measurement_names())
    table = parsed(matrix_figure("key", found)).one("table", id="key-numbers")
    cells = rows(table)[1:]
    assert [row[0] for row in cells] == list(found.names)
    for place, row in enumerate(cells):
        assert row[1:] == [cell_text(value) for value in found.values[place, : place + 1].tolist()]


def test_labels_of_a_large_matrix_name_the_groups_of_columns():
    node = parsed(matrix_figure("key", matrix(measurement_names())))
    texts = [each.text for each in node.one("svg", role="img").all("text")]
    assert texts.count("pre_equal_mass_ece") == 2
    assert "auroc_svhn" in texts
    assert not any(text.endswith(("_15", "_500")) for text in texts)


@pytest.mark.parametrize("count", [0, 161])
def test_a_matrix_that_cannot_be_drawn_says_so(count):
    node = parsed(matrix_figure("key", matrix([f"column {k}" for k in range(count)])))
    assert node.all("svg") == []
    assert ("too many to draw" if count else "no columns") in node.text


def test_a_full_study_stays_small_and_says_what_its_json_leaves_out(results):
    charts = [matrix(measurement_names(), f"{k}", seed=k) for k in range(6)]
    found = replace(results.review, charts=(*charts, points(2000), points(2000), ranking()))
    made = page(StudiedResults("s", found)).html
    assert len(made) < 1_500_000
    assert "leave out the cells of large matrices and the single models of scatter plots" in made
    inside = json.loads(re.findall(r'id="data">(.*?)</script>', made)[0])
    assert "values" not in inside["charts"][0]
    assert inside["answers"][0]["charts"][0]["values"][0][0] == 1.0
    assert "x" not in inside["charts"][6]
    assert inside["charts"][6]["title"] == "Accuracy and ECE"


# --------------------------------------------------------------------------------------------------------- other charts


def test_boxes_are_drawn_between_their_quartiles():
    found = boxes(4)
    node = drawn(found)
    axis = covering([box.high for box in found.boxes], "")
    frame = Frame(replace(axis, low=0.0, high=4.0), axis, left=66, width=WIDTH - 84)
    path = next(each.attributes["d"] for each in node.all("path") if each.attributes["class"] == "box")
    corners = re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)", path or "")
    for place, (box, corner) in enumerate(zip(found.boxes, corners, strict=True)):
        expected = [frame.across(place + 0.2), frame.up(box.first), frame.across(place + 0.8), frame.up(box.third)]
        np.testing.assert_allclose([float(each) for each in corner], expected, atol=0.06)
    table = rows(node.one("table"))[1:]
    assert table[1] == [found.boxes[1].name, "300", *map(brief, (0.01, 0.03, 0.05, 0.07, 0.1))]


def test_boxes_without_numbers_say_so_and_too_many_are_not_all_drawn():
    nothing = replace(boxes(1).boxes[0], low=math.nan, first=math.nan, median=math.nan, third=math.nan, high=math.nan)
    assert "nothing to draw" in drawn(Boxes("t", "a", "b", (nothing,))).text
    many = drawn(boxes(70))
    assert "The first 60 of 70 are drawn" in many.text
    assert len(rows(many.one("table"))) == 71


def test_models_are_points_at_their_numbers_with_their_names():
    found = points(30)
    node = drawn(found)
    marks = [each for each in node.one("svg", role="img").all("path") if each.all("title")]
    assert len(marks) == 29
    frame = Frame(
        covering(found.x, "", low=None), covering(found.y, "", low=None), left=66, width=WIDTH - 84, height=270
    )
    expected = sorted((frame.across(x), frame.up(y)) for x, y in zip(found.x, found.y, strict=True) if y == y)
    at = sorted(tuple(starts(Node("", {}, [mark]), "point")[0]) for mark in marks)
    np.testing.assert_allclose(at, expected, atol=0.06)
    titles = {mark.one("title").text for mark in marks}
    assert f"{found.names[3]}: {brief(found.x[3])}, {brief(found.y[3])}, parameters {brief(found.colour[3])}" in titles
    assert len(node.one("ul").all("li")) == 6


def test_many_models_are_few_paths_without_names_and_a_single_value_has_an_axis():
    found = points(1000)
    node = drawn(found)
    assert node.one("svg", role="img").all("title") == [node.one("title")]
    assert len(starts(node.one("svg", role="img"), "point")) == 999
    same = Points("t", "a", "b", np.full(3, 1.0), np.full(3, 0.5), ("x", "y", "z"))
    (x, y), *_ = starts(drawn(same), "point")
    assert 54 < x < WIDTH - 14
    assert 12 < y < 282
    nothing = Points("t", "a", "b", np.array([math.nan]), np.array([1.0]), ("x",))
    assert "nothing to draw" in drawn(nothing).text


def test_lines_go_through_their_values_in_pictures_of_at_most_six():
    found = lines(8)
    node = drawn(found)
    pictures = node.all("svg", role="img")
    assert len(pictures) == 2
    ends = np.concatenate([found.low, found.high]).ravel()
    axis = covering(ends, "", low=None)
    frame = Frame(_study_charts._places(list(found.x), ""), axis, left=66, width=WIDTH - 84, height=250)
    for part, picture in enumerate(pictures):
        path = next(each.attributes["d"] for each in picture.all("path") if each.attributes["class"] == "line blue")
        points_of = re.findall(r"[ML]([\d.]+) ([\d.]+)", path or "")
        expected = [(frame.across(x), frame.up(y)) for x, y in zip(found.x, found.values[4 * part], strict=True)]
        np.testing.assert_allclose([[float(a), float(b)] for a, b in points_of], expected, atol=0.06)
    cells = rows(node.one("table"))
    assert cells[0][1:] == ["100", "250", "500", "1,000", "5,000"]
    assert cells[1][1] == brief(found.values[0, 0]) + between(found.low[0, 0], found.high[0, 0])
    empty = Lines("t", "a", "b", (), (), *(np.empty((0, 0)),) * 3)
    assert "nothing to draw" in drawn(empty).text


def test_a_table_aligns_its_numbers_and_says_how_many_rows_are_missing():
    found = Table("Best", ("place", "model", "score"), tuple((f"{k}", f"m{k}", 0.5) for k in range(203)), "a note")
    node = drawn(found)
    assert len(rows(node.one("table"))) == 201
    assert "3 further rows in the JSON only" in node.text
    assert "a note" in node.text
    kinds = [cell.attributes.get("class") for cell in node.one("tbody").all("tr")[0].all("td")]
    assert kinds == ["number", None, "number"]


# -------------------------------------------------------------------------------------------------------------- edges


def test_a_review_without_anything_gives_a_page():
    empty = StudyReview((), (), 0, (), "", 0, {})
    root = assert_sound(page(StudiedResults("s", empty)).html)
    assert "0 models on 0 data sets" in root.text


def test_further_whole_matrices_open_on_demand(results):
    charts = (matrix(["a", "b"], "First"), matrix(["a", "b"], "Second"), ranking())
    root = parsed(page(StudiedResults("s", replace(results.review, charts=charts))).html)
    section = root.one("section", id="all")
    assert [each.one("summary").text for each in section.all("details")] == ["Second"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_text(name):
    root = assert_sound(page(studied_results(name, name=name), title=name).html)
    assert root.all("img") == []
    inside = data_of(root)
    assert inside["source"] == name if len(name) < 10_000 else "too many to be kept" in inside["left_out"]
