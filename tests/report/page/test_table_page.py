"""The page of a table of predictions says what the JSON says, whatever the names and however many the groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import certcal
from certcal.binning import BinTable, equal_width_edges
from certcal.claims import Bound, Estimate
from certcal.metrics import Reliability, reliability
from certcal.report.explained import CALIBRATION_ERROR, METRICS
from certcal.report.names import NAMES, label
from certcal.report.numbers import INTERVALS, interval, number
from certcal.report.page import Provenance, page
from certcal.report.page._diagrams import counts_of
from certcal.report.results import MeasuredResults, Part
from tests.report.page.parsed import Node, assert_sound, classes, data_of, parsed
from tests.report.page.test_skeleton import HOSTILE

BOUNDS = (
    Bound("true ECE, bounded variation", 0.16341, "upper", 0.05, 300, ("draws are independent", "V is at most 2"), {
        "binned error": 0.05, "bias": 0.03329, "chance of the draw": 0.08011,
    }),
    Bound("smooth calibration error", 0.08109, "upper", 0.05, 300, ("draws are independent",), {
        "smoothed error": 0.041, "chance of the draw": 0.0401,
    }),
)  # fmt: skip


def predictions(n: int, seed: int = 0) -> certcal.Predictions:
    rng = np.random.default_rng(seed)
    confidence = rng.beta(5, 2, n)
    return certcal.Predictions.from_confidence(confidence, (rng.random(n) < confidence**1.5).astype(int))


def found(
    n: int = 300, bins: int | Sequence[int] = 10, drawn: int = 10, replicates: int = 0, seed: int = 0
) -> tuple[certcal.metrics.Measurements, Reliability]:
    made = predictions(n, seed)
    measured = certcal.measure(made, bins=bins, bootstrap=replicates)
    return measured, reliability(made.confidence, made.correct, bins=drawn, replicates=replicates)


@pytest.fixture(scope="module")
def plain() -> MeasuredResults:
    return MeasuredResults.of(*found(bins=(5, 10), replicates=50), source="predictions.csv")


@pytest.fixture(scope="module")
def grouped() -> MeasuredResults:
    groups = {name: found(n, seed=n) for name, n in (("Berlin", 90), ("مستشفى", 40), ("alone", 1))}
    return MeasuredResults.of(*found(), source="predictions.csv", bounds=BOUNDS, by="hospital", groups=groups)


def section(root: Node, key: str) -> Node:
    return root.one("section", id=key)


def lines(root: Node) -> list[list[str]]:
    return [[cell.text for cell in row.all() if cell.tag in ("td", "th")] for row in root.one("tbody").all("tr")]


def test_the_json_inside_the_page_is_the_results_and_the_page_is_sound(
    plain: MeasuredResults, grouped: MeasuredResults
) -> None:
    for results in (plain, grouped):
        assert data_of(assert_sound(page(results).html)) == results.to_dict()
        origin = Provenance(("certcal",), "2026-01-01T00:00:00Z")
        assert data_of(parsed(page(results, origin).html)) == {**results.to_dict(), "provenance": origin.to_dict()}


def test_no_level_is_promised_for_intervals_of_calibration_errors(
    plain: MeasuredResults, grouped: MeasuredResults
) -> None:
    said = [" ".join(parsed(page(results).html).one("body").text.split()) for results in (plain, grouped)]
    assert [INTERVALS in each for each in said] == [True, False]
    assert "interval, asymptotic" not in said[0]


def test_every_metric_stands_in_the_table_with_its_value_and_interval(plain: MeasuredResults) -> None:
    rows = lines(section(parsed(page(plain).html), "metrics"))
    values = [row for row in rows if len(row) > 1]
    expected = [
        [label(each.name), str(each.settings.get("bins", "")), number(each.value), interval(each)]
        for each in plain.whole.rows
    ]
    assert sorted(values) == sorted(expected)
    assert all("–" in row[3] for row in values)


def test_the_headline_is_the_error_of_the_diagram_or_the_first_bound(
    plain: MeasuredResults, grouped: MeasuredResults
) -> None:
    card = section(parsed(page(plain).html), "headline")
    (ece,) = [each for each in plain.whole.rows if each.name == "ece" and each.settings["bins"] == 10]
    assert card.one("strong").text == number(ece.value) == number(plain.whole.reliability.ece)
    assert ece.sentence in card.text
    assert card.of_class("badge")[0].text == "Estimate"
    bounded = section(parsed(page(grouped).html), "headline")
    assert bounded.one("strong").text == "0.1635"
    assert bounded.of_class("badge")[0].text == "Bound"
    assert BOUNDS[0].sentence in bounded.text
    assert [each.text for each in bounded.all("li")] == list(BOUNDS[0].assumptions)
    assert "probability at most 0.05" in bounded.text


def test_the_headline_says_what_its_number_is_to_those_who_do_not_know_the_name(
    plain: MeasuredResults, grouped: MeasuredResults
) -> None:
    for results, words in ((plain, METRICS["ece"]), (grouped, CALIBRATION_ERROR)):
        assert words in section(parsed(page(results).html), "headline").text


def test_every_bound_stands_with_the_text_of_the_json_its_terms_and_its_assumptions(grouped: MeasuredResults) -> None:
    root = parsed(page(grouped).html)
    part = section(root, "bounds")
    entries = part.one("ul", class_="assumptions").all("li")
    for entry, bound in zip(entries, grouped.to_dict()["bounds"], strict=True):
        assert f"{bound['name']}: at most {bound['text']}." in entry.text
        assert all(each in entry.text for each in bound["assumptions"])
        details = [each for each in section(root, "computed").all("details") if bound["sentence"] in each.text]
        assert len(details) == 1
        assert bound["text"] in details[0].one("summary").text
    header = [each.text for each in part.one("thead").all("th")]
    assert header == ["bound", "binned error", "bias", "chance of the draw", "smoothed error", "at most"]
    assert lines(part)[0] == [BOUNDS[0].name, "0.0501", "0.0333", "0.0802", "", "0.1635"]
    assert "choose one before looking" in part.text


def test_results_without_bounds_have_neither_the_section_nor_the_key(plain: MeasuredResults) -> None:
    assert parsed(page(plain).html).all("section", id="bounds") == []
    assert "bounds" not in plain.to_dict()


def test_the_table_of_bins_says_what_the_diagram_of_the_json_says(plain: MeasuredResults) -> None:
    prepared = plain.to_dict()["reliability"]
    rows = lines(section(parsed(page(plain).html), "diagram"))
    used = [m for m, count in enumerate(prepared["count"]) if count]
    assert [row[1] for row in rows] == [f"{prepared['count'][m]:,}" for m in used]
    assert [row[2] for row in rows] == [number(prepared["confidence"][m]) for m in used]
    assert [row[3] for row in rows] == [number(prepared["accuracy"][m]) for m in used]
    for row, m in zip(rows, used, strict=True):
        low, high = map(float, row[5].split(" – "))
        assert low <= prepared["lower"][m] <= prepared["upper"][m] <= high


def test_groups_stand_side_by_side_in_one_table_and_in_small_diagrams(grouped: MeasuredResults) -> None:
    part = section(parsed(page(grouped).html), "groups")
    (table,) = [each for each in part.all("table") if "Estimates per group" in each.text]
    assert [row[:2] for row in lines(table)] == [
        ["all samples", "300"], ["Berlin", "90"], ["مستشفى", "40"], ["alone", "1"]
    ]  # fmt: skip
    accuracy = {part.name: next(row for row in part.rows if row.name == "accuracy") for part in grouped.parts}
    assert [row[2] for row in lines(table)[1:]] == [number(accuracy[row[0]].value) for row in lines(table)[1:]]
    assert [each.text for each in part.all("h3")] == ["Berlin", "مستشفى", "alone"]
    assert len(part.all("svg", role="img")) == 3


def test_diagrams_of_groups_share_the_axis_of_samples(grouped: MeasuredResults) -> None:
    part = section(parsed(page(grouped).html), "groups")
    written = [[each.text for each in picture.all("text")] for picture in part.all("svg", role="img")]
    assert written[0] == written[1] == written[2]
    apart = [counts_of([each.reliability.table]) for each in grouped.parts]
    assert apart[0] != apart[2]


def test_every_metric_of_the_package_is_explained() -> None:
    assert set(METRICS) == set(NAMES)


def test_every_number_has_a_part_that_says_how_it_was_computed(plain: MeasuredResults) -> None:
    parts = section(parsed(page(plain).html), "computed").all("details")
    texts = [each.text for each in parts]
    for row in plain.whole.rows:
        assert sum(row.sentence in text for text in texts) == 1
        assert any(METRICS[row.name] in text for text in texts)


def test_a_page_has_the_title_that_is_asked_for(plain: MeasuredResults) -> None:
    assert parsed(page(plain).html).one("h1").text == "How calibrated are the confidences?"
    assert parsed(page(plain, title="Review of <model>").html).one("h1").text == "Review of <model>"


def test_the_style_sheet_knows_every_class_of_the_page(grouped: MeasuredResults) -> None:
    root = parsed(page(grouped).html)
    style = root.one("style").text
    assert {name for name in classes(root) if f".{name}" not in style} == set()


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_text(name: str) -> None:
    measured, prepared = found(20)
    bound = Bound(name, 0.2, "upper", 0.05, 20, (name,), {name: 0.2}, {name: name})
    results = MeasuredResults.of(
        measured, prepared, source=name, bounds=(bound, bound), by=name, groups={name: (measured, prepared)}
    )
    made = page(results, title=name)
    root = assert_sound(made.html)
    assert root.all("img") == []
    assert data_of(root) == results.to_dict()
    assert len(made.html) - len(root.one("script", id="data").text) < 200_000


def fine(n: int, bins: int) -> Reliability:
    rng = np.random.default_rng(0)
    count = rng.multinomial(n, np.full(bins, 1 / bins))
    weight = count.astype(float)
    middles = (np.arange(bins) + 0.5) / bins
    table = BinTable(equal_width_edges(bins), "left", count, weight, weight, weight * middles, weight * middles**2)
    return Reliability(table, 0.1, None, None, 0.95)


def test_ten_thousand_bins_and_two_hundred_groups_of_a_large_table_make_a_small_page() -> None:
    rows = [Estimate(metric, 0.1, 40_000, {"bins": 10_000}) for metric in NAMES]
    of_group = fine(40_000, 10_000)
    parts = [Part(f"group {place}", 40_000, rows, of_group) for place in range(250)]
    whole = Part("all", 10_000_000, rows, fine(10_000_000, 10_000))
    results = MeasuredResults("large.parquet", {}, "10,000,000 samples", whole, "site", parts, {"bins": [10_000]})
    made = page(results)
    root = assert_sound(made.html)
    assert len(made.html.encode()) < 6_000_000
    assert len(section(root, "groups").all("svg", role="img")) == 24
    kept = data_of(root)
    assert "reliability" in kept
    assert [group["n"] for group in kept["groups"]] == [40_000] * 250
    assert "reliability" not in kept["groups"][0]
    assert "leaves them out" in section(root, "provenance").text
    assert "50 further groups are not listed" in section(root, "groups").text
    assert "first 24 of 250 groups" in section(root, "groups").text
    assert "Neighbouring bins are drawn as one." in section(root, "diagram").text


def test_results_made_from_python_describe_themselves(plain: MeasuredResults, grouped: MeasuredResults) -> None:
    assert plain.conventions["bins"] == [5, 10]
    assert plain.conventions["level"] == 0.95
    assert plain.by is None
    assert "groups" not in plain.to_dict()
    assert [each["group"] for each in grouped.to_dict()["groups"]] == ["Berlin", "مستشفى", "alone"]
    assert [each["text"] for each in grouped.to_dict()["bounds"]] == ["0.1635", "0.0811"]


def test_results_with_a_single_metric_still_make_a_page() -> None:
    made = predictions(30)
    measured = certcal.measure(made, metrics="auroc")
    root = assert_sound(page(MeasuredResults.of(measured, reliability(made.confidence, made.correct))).html)
    assert section(root, "headline").one("strong").text == number(measured["auroc"].value)
