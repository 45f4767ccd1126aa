"""The report of a measurement: its blocks, and the numbers of the result in them."""

import pytest

import certcal
from certcal.claims import in_full
from certcal.report.charts import Chart
from certcal.report.document import Figures, Heading, KeyNumbers, Listing, Table, Text
from tests.report.parsed import assert_sound, data_of

TABLE = {
    "confidence": [0.98, 0.9, 0.8, 0.75, 0.6, 0.55, 0.3, 0.2],
    "correct": [1, 1, 1, 0, 1, 0, 0, 1],
    "site": ["north", "south"] * 4,
}


@pytest.fixture(scope="module")
def found():
    return certcal.measure(TABLE, bins=5, by="site", bounds=True, bootstrap=20, metrics="all")


def test_a_measurement_without_further_questions_has_a_number_a_diagram_and_an_appendix():
    made = certcal.measure(TABLE, bins=5, bootstrap=0).report()
    (rates,) = made.headline
    assert [row[:4] for row in rates.texts()] == [["all", "63.5%", "62.5%", "−1.0"]]
    assert made.answer[0].text == "No miscalibration is shown by these 8 samples."
    assert [section.title for section in made.sections] == ["Key numbers", "Reliability diagram"]
    assert [section.title for section in made.appendix] == ["Metrics", "Definitions", "Claims in full"]
    key, meaning = made.sections[0].blocks
    assert "averaged over predictions" in meaning.text
    assert isinstance(key, KeyNumbers)
    assert [(each.name, each.text) for each in key.numbers] == [
        ("samples", "8"),
        ("accuracy", "62.50%"),
        ("mean confidence", "63.50%"),
        ("ECE", "21.50%"),
        ("SmoothECE", "13.21%"),
        ("Brier score, top label", "0.2257"),
        ("AUROC", "0.7333"),
    ]
    (diagram,) = made.sections[1].blocks
    assert isinstance(diagram, Figures)
    (bins,) = diagram.beside
    assert isinstance(bins, Table)
    assert [row[1] for row in bins.texts()] == ["2", "1", "2", "3"]


def test_groups_bounds_and_intervals_add_their_blocks(found):
    made = found.report()
    assert made.headline[1].kind == "Bound"
    assert [section.title for section in made.sections] == [
        "Key numbers", "Reliability diagram", "Bounds for the population", "Groups",
    ]  # fmt: skip
    said, drawn, rates = made.sections[-1].blocks
    assert isinstance(said, Text)
    assert said.text.startswith(
        "In none of 2 groups the gap is off beyond sampling error. Intervals of gaps hold for all of them"
    )
    assert isinstance(drawn, Figures)
    assert [chart.title for chart in drawn.charts] == ["Groups, clearest first"]
    assert isinstance(rates, Table)
    assert [row[:5] for row in rates.texts()] == [
        ["south", "4", "60.0", "50.0", "−10.0"],
        ["north", "4", "67.0", "75.0", "+8.0"],
    ]
    assert "Metrics per group" in [section.title for section in made.appendix]


def test_every_number_of_the_result_is_in_the_table_of_metrics_and_every_claim_in_full(found):
    made = {section.title: section.blocks for section in found.report().appendix}
    (metrics,) = made["Metrics"]
    values = [cell for row in metrics.rows if not isinstance(row, Heading) for cell in row[2:3]]
    assert sorted(values, key=repr) == sorted((row.value for row in found.whole.rows), key=repr)
    (full,) = made["Claims in full"]
    assert isinstance(full, Listing)
    assert list(full.items) == [in_full(claim) for claim in found.claims()]


def test_a_requirement_gives_a_verdict_and_a_page_says_who_and_what():
    found = certcal.measure(TABLE, bins=5)
    made = found.report(require="estimate ece <= 0.1", about={"model": "a", "owner": "b"})
    assert made.verdict is not None
    assert made.verdict.lines == (
        "not met: the estimate of calibration error in 5 bins is 21.50% (limit 10%), on these samples only.",
    )
    root = assert_sound(made.to_html())
    assert made.verdict.lines[0] in root.of_class("verdict")[0].text
    assert [each.text for each in root.of_class("about")[0].all("dt")][:2] == ["Model", "Owner"]
    assert data_of(root)["measurements"]
    assert data_of(root)["verdict"] == found.verdict("estimate ece <= 0.1").to_dict()


def test_the_figure_is_the_diagram_and_what_is_drawn_of_groups(found):
    from certcal.report.views.measurement import charts

    assert all(isinstance(each, Chart) for each in charts(found))
    assert [each.title for each in charts(found)] == ["table", "Groups, clearest first"]
    assert [each.title for each in charts(certcal.measure(TABLE, bins=5))] == ["table"]
