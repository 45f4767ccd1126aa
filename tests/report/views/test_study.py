"""The reports of a study: every answer with its numbers, and charts that hold what the review found."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from certcal import InputError
from certcal.lab.study import (
    BoxPlots,
    Finding,
    FindingTable,
    Lines,
    Matrix,
    ScatterPlot,
    StudyReview,
    StudyTable,
    overview,
    search,
)
from certcal.lab.study.review_view import chart, leading_findings, table
from certcal.report.charts import Band, Boxes, Heatmap, Line, Points, Segments
from certcal.report.document import Details, Facts, Figures, Listing, Table, Text
from certcal.report.numbers import between, brief
from tests.report.parsed import assert_sound, data_of
from tests.report.studied import boxes, lines, matrix, measurement_names, points, ranking, review

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m$\\frac{1}{2}$"


def blocks(section, kind):
    return [block for block in section.blocks if isinstance(block, kind)]


def test_every_question_has_a_section_with_its_answer_cautions_and_all_its_numbers():
    found = review()
    made = found.report()
    sections = {section.title: section for section in made.sections}
    assert list(sections)[1:] == [
        "1 Data sets", "2 Robustness", "3 Metrics", "4 Temperature scaling", "5 Accuracy", "6 Bins", "7 Architecture",
    ]  # fmt: skip
    for answer, section in zip(found, made.sections[1:], strict=True):
        said = [block.text for block in blocks(section, Text)]
        assert said[:2] == [answer.question, answer.answer]
        folded = [inner for block in blocks(section, Details) for inner in block.blocks]
        rows = [row for each in folded for row in each.texts()]
        assert [row[1:] for row in rows] == [
            [brief(each.value), between(each.low, each.high), f"{each.n:,}"] for each in answer.findings
        ]
    (published,) = [block for section in made.appendix for block in blocks(section, Facts)][:1]
    assert [text for _, text in published.pairs] == [answer.published for answer in found]


def test_a_caution_is_said_once():
    text = review().report().to_text(full=True, width=200)
    assert text.count("There are few models: intervals below 30 models are wide.") == 1
    assert text.count("Two rows failed.") == 1


def test_the_overview_has_a_number_per_question_and_says_what_is_not_answered():
    found = review()
    made = found.report()
    (firsts,) = blocks(made.sections[0], Table)
    first = found.answers[0].findings[0]
    assert firsts.texts()[0] == ["1 Data sets", first.name, brief(first.value), between(first.low, first.high)]
    assert [row[0][0] for row in firsts.texts()] == ["1", "3", "4", "5", "6", "7"]
    assert firsts.note == "Not answered for these models: 2 Robustness."
    assert "6 can be answered with 300 models" in found.answer[0].text
    assert found.report().to_text(width=200).count("6 can be answered with 300 models") == 1


def test_numbers_of_all_models_lead():
    part, whole = Finding("a part", 0.1, 0.0, 0.2, 9), Finding("all models", 0.3, 0.2, 0.4, 90)
    assert leading_findings((part, part, whole), 1) == [whole]
    assert leading_findings((part, whole), 2) == [part, whole]


def test_sentences_about_a_data_set_are_a_paragraph_of_their_own():
    found = review()
    text = "Hardly. On digits, it is 0.1 (all). On digits it rises. On fashion, it is 0.2."
    answers = (replace(found.answers[0], answer=text), *found.answers[1:])
    said = [block.text for block in blocks(replace(found, answers=answers).report().sections[1], Text)]
    assert said[1:4] == ["Hardly.", "On digits, it is 0.1 (all). On digits it rises.", "On fashion, it is 0.2."]


def test_a_full_study_stays_small_and_leaves_large_matrices_and_single_models_out_of_its_json():
    large = [matrix(measurement_names(), f"{k}", seed=k) for k in range(6)]
    found = replace(review(), charts=(*large, points(2000), points(2000), ranking()))
    html = found.report().to_html()
    assert len(html) < 1_500_000
    inside = data_of(assert_sound(html))
    assert "leaves out the cells of large matrices and the single models of scatter plots" in html
    assert "values" not in inside["charts"][0]
    assert "x" not in inside["charts"][6]
    assert inside["answers"][0]["charts"][0]["values"][0][0] == 1.0


def test_a_review_without_anything_gives_a_report():
    empty = StudyReview((), (), 0, (), "", 0, {})
    assert_sound(empty.report().to_html())
    assert "0 models on 0 data sets" in str(empty)


def test_hostile_names_stay_text():
    found = review(name=HOSTILE, source=HOSTILE)
    root = assert_sound(found.report(title=HOSTILE).to_html())
    assert root.all("img") == []
    assert data_of(root)["source"] == HOSTILE
    assert "\x1b" not in str(found)


def test_a_requirement_is_refused_where_no_number_is_the_answer():
    with pytest.raises(InputError, match="claims no number that a requirement could be about"):
        review().report(require="ece <= 0.1")


def test_the_figure_has_the_first_chart_of_every_answer():
    found = review()
    titles = [part.axes[0].get_title() for part in found.plot().subfigs]
    assert len(titles) == sum(bool(answer.charts) for answer in found)
    assert "Top 100" in titles[0]


# The numbers for machines


def test_json_holds_every_answer_chart_and_setting_with_null_where_undefined():
    document = json.loads(review().to_json())
    assert (document["type"], document["source"]) == ("study_review", "study.parquet")
    assert [answer["number"] for answer in document["answers"]] == [1, 2, 3, 4, 5, 6, 7]
    assert [each["value"] for each in document["answers"][0]["findings"]] == [0.41678, 0.41678, None]
    assert document["settings"]["level"] == 0.95
    assert document["charts"][0]["values"][-1][0] is None
    assert len(document["charts"][0]["values"]) == 24


def test_the_description_says_how_many_models_data_sets_and_failures():
    found = review()
    assert found.description.startswith("300 models on 3 data sets (digits, fashion, ")
    assert found.description.endswith("split 'test'; 2 rows failed and left out")
    one = replace(found, models=1, datasets=("digits",), failed=0, split="")
    assert one.description == "1 model on 1 data set (digits)"


def test_claims_are_estimates_over_models():
    found = review()
    sentence = found.claims()[0].sentence
    assert "is 0.417 (0.309 to 0.521) over 300 models; an estimate, not a guarantee" in sentence
    (listing,) = [block for section in found.report().appendix for block in blocks(section, Listing)]
    assert list(listing.items) == [claim.sentence for claim in found.claims()]


# Charts


def test_a_matrix_is_a_heatmap_with_its_numbers():
    given = matrix(["digits", "fashion", "svhn", "constant"], note="")
    made = chart(given)
    (heatmap,) = made.panels
    assert isinstance(heatmap, Heatmap)
    np.testing.assert_array_equal(heatmap.values, given.values)
    assert made.description == "Kendall rank correlations of 300 models."
    assert "An empty cell is undefined" in made.caption
    assert chart(Matrix("m", ("a",), np.ones((1, 1)), 3)).caption == ""


def test_boxes_hold_their_five_numbers_and_too_many_are_not_all_drawn():
    given = boxes(4)
    made = chart(given)
    (mark,) = [mark for mark in made.panels[0].marks if isinstance(mark, Boxes)]
    assert list(mark.first) == [box.first for box in given.boxes]
    assert list(mark.median) == [box.median for box in given.boxes]
    assert made.numbers.texts()[1] == [given.boxes[1].name, "300", *map(brief, (0.01, 0.03, 0.05, 0.07, 0.1))]
    many = chart(boxes(70))
    assert "The first 60 of 70 are drawn" in many.caption
    assert (len(many.panels[0].marks[-1].median), len(many.numbers.rows), many.size) == (60, 70, "wide")
    nothing = replace(given.boxes[0], **dict.fromkeys(("low", "first", "median", "third", "high"), math.nan))
    assert chart(BoxPlots("t", "a", "b", (nothing,))).figure().axes[0].texts[0].get_text() == "nothing to draw"


def test_models_are_points_with_names_and_shades():
    given = points(30)
    made = chart(given)
    (mark,) = [mark for mark in made.panels[0].marks if isinstance(mark, Points)]
    np.testing.assert_array_equal(mark.x, given.x)
    np.testing.assert_array_equal(mark.y, given.y)
    np.testing.assert_array_equal(mark.shade, given.colour)
    assert mark.names[3] == (
        f"{given.names[3]}: {brief(given.x[3])}, {brief(given.y[3])}, parameters {brief(given.colour[3])}"
    )
    same = chart(ScatterPlot("t", "a", "b", np.full(3, 1.0), np.full(3, 0.5), ("x", "y", "z")))
    assert same.panels[0].x.low < 1 < same.panels[0].x.high
    assert same.panels[0].y.low < 0.5 < same.panels[0].y.high


def test_lines_go_through_their_values_with_their_bands():
    given = lines(4)
    made = chart(given)
    marks = made.panels[0].marks
    drawn = [mark for mark in marks if isinstance(mark, Line)]
    assert [mark.label for mark in drawn] == list(given.names)
    for place, mark in enumerate(drawn):
        np.testing.assert_array_equal(mark.y, given.values[place])
    bands = [mark for mark in marks if isinstance(mark, Band)]
    np.testing.assert_array_equal([mark.low for mark in bands], given.low)
    assert any(isinstance(mark, Segments) for mark in marks)  # zero lies between the values
    assert made.panels[0].x.log
    assert [column.head for column in made.numbers.columns][1:] == ["100", "250", "500", "1,000", "5,000"]
    assert made.numbers.texts()[1][1] == between(given.low[0, 0], given.high[0, 0])
    with pytest.raises(InputError, match="9 lines are too many"):
        chart(lines(9))


def test_many_lines_are_several_charts_of_the_report():
    found = review()
    answers = (*found.answers[:6], replace(found.answers[6], charts=(lines(9),)))
    (row,) = blocks(replace(found, answers=answers).report().sections[-1], Figures)
    assert [sum(isinstance(mark, Line) for mark in each.panels[0].marks) for each in row.charts] == [4, 5]
    assert row.charts[1].title.endswith("part 2 of 2")
    empty = Lines("t", "a", "b", (), (), *(np.empty((0, 0)),) * 3)
    assert chart(empty).figure().axes[0].texts[0].get_text() == "nothing to draw"


def test_a_table_aligns_its_numbers_and_says_how_many_rows_are_missing():
    made = table(
        FindingTable("Best", ("place", "model", "score"), tuple((f"{k}", f"m{k}", 0.5) for k in range(203)), "a note")
    )
    assert [column.is_number for column in made.columns] == [True, False, True]
    assert made.texts()[0] == ["0", "m0", "0.500"]
    assert (made.rest, made.note) == ("3 further rows are in the JSON only.", "a note")


def test_further_whole_matrices_open_on_demand():
    found = replace(review(), charts=(matrix(["a", "b"], "First"), matrix(["a", "b"], "Second"), ranking()))
    (section,) = [each for each in found.report().appendix if each.title == "All measurements"]
    assert [each.summary for each in blocks(section, Details)] == ["Second"]


# Searches and tables


@pytest.fixture
def searched():
    names = ["a", "b", "c"]
    columns = {"model": names, "accuracy": [0.5, 0.9, 0.7], "pre_ece_15": [0.02, 0.2, 0.1]}
    return search(StudyTable.of(columns), objectives=["accuracy", "ece"], budget=2, repeats=4)


def test_a_search_shows_means_spreads_and_regrets(searched):
    found, regrets = (blocks(section, Table)[0] for section in searched.report().sections[:2])
    texts = [text for row in found.texts() if isinstance(row, list) for text in row]
    for row in (*searched.rows, *searched.oracle):
        assert {f"{100 * row.mean[name]:.2f}" for name in searched.shown} <= set(texts)
    assert {f"±{100 * row.spread['accuracy']:.2f}" for row in searched.rows} <= set(texts)
    assert [row[2] for row in regrets.texts()] == [f"{row.regret:.4f}" for row in searched.rows]
    assert regrets.texts()[0][4] == f"{searched.rows[0].hits} of 4"
    row = searched.rows[0]
    assert f"{row.regret:.4f} ± {row.regret_spread:.4f}" in searched.report().headline[0].sentence
    assert_sound(searched.report().to_html())


def test_a_search_draws_the_regret_of_every_method_and_objective(searched):
    (made,) = searched.report().charts()
    drawn = [mark.y[0] for mark in made.panels[0].marks if isinstance(mark, Line)]
    assert drawn == [row.regret for row in searched.rows]
    assert searched.plot().axes[0].get_ylabel() == "regret"


def test_the_overview_of_a_table_says_what_failed_and_what_it_holds():
    columns = {"model": list("abc"), "accuracy": [0.8, 0.9, math.nan], "pre_ece_15": [0.1, 0.2, math.nan]}
    columns |= {"params": [1.0, 2.0, 3.0], "status": ["ok", "ok", "failed"], "reason": ["", "", "no labels"]}
    found = overview(StudyTable.of(columns), source="study.parquet")
    text = str(found)
    assert "3 models, 1 data set, 2 rows measured" in text
    assert "c on data (test): no labels" in text
    assert "0.8500" in text
    assert "accuracy, params" in text
    assert found.plot().axes[0].get_ylabel() == "median ECE"
    assert [each["reason"] for each in json.loads(found.to_json())["failures"]] == ["no labels"]
    assert found.to_csv().splitlines()[1].startswith("data,test,3,1,15,0.85")


def test_an_overview_saves_its_table(tmp_path):
    made = StudyTable.of({"model": ["a"], "accuracy": [0.5]})
    overview(made).save(tmp_path / "study.parquet")
    assert StudyTable.read(tmp_path / "study.parquet")["accuracy"].tolist() == [0.5]
    with pytest.raises(InputError, match="not overwritten"):
        overview(made).save(tmp_path / "study.parquet")
