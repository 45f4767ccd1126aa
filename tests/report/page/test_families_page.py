"""The page of families: every number is one that was found, and every chart has its table."""

from __future__ import annotations

import json
import math
import re
from functools import cache

import pytest
from certcal.report.page import Page, Provenance, _families_drawn, page
from certcal.report.results import FamilyResults

from certcal.smoothing.robustness import WARNING, PaDistribution
from tests.report.compared_families import SEVEN, SIGMAS, record, results_of, seven, with_confidences
from tests.report.parsed import Node, assert_sound, classes, parsed
from tests.report.reading import Reader, embedded, flat

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e"


@pytest.fixture(scope="module")
def votes() -> Page:
    return page(seven(), Provenance.here(["certcal", "compare", "gaussian=a", "acr=b"]))


@pytest.fixture(scope="module")
def made() -> Page:
    return page(with_confidences())


@cache
def root_of(made: Page) -> Node:
    return parsed(made.html)


@cache
def read(made: Page) -> Reader:
    return Reader(made.html)


def pictures_of(made: Page) -> list[Node]:
    return root_of(made).all("svg", role="img")


def rows_of(made: Page, caption: str) -> list[list[str]]:
    tables = read(made).tables
    (found,) = [rows for name, rows in tables.items() if name.startswith(caption)]
    return found


def paths(made: Page, key: str, kind: str) -> list[str]:
    picture = next(each for each in pictures_of(made) if (each.attributes["aria-labelledby"] or "").startswith(key))
    return [each.attributes["d"] or "" for each in picture.all("path") if kind in (each.attributes["class"] or "")]


def test_a_page_is_sound_and_its_style_sheet_knows_its_classes(made: Page, votes: Page) -> None:
    for each in (made, votes):
        root = assert_sound(each.html)
        style = root.one("style").text
        assert {name for name in classes(root) if f".{name}" not in style} <= {"content"}


def test_the_numbers_in_the_page_are_those_that_json_prints(made: Page, votes: Page) -> None:
    document = embedded(votes)
    assert document.pop("provenance")["command"] == ["certcal", "compare", "gaussian=a", "acr=b"]
    assert document == json.loads(seven().to_json())
    assert embedded(made) == json.loads(with_confidences().to_json())


def test_every_run_is_listed_with_its_family_noise_level_and_origin(votes: Page) -> None:
    _, *rows = rows_of(votes, "Families and their runs")
    assert [(row[0], float(row[1])) for row in rows] == [(name, sigma) for name in SEVEN for sigma in SIGMAS]
    assert [row[-1] for row in rows] == [source for _, source in seven().sources]


def test_the_headline_is_what_the_graphs_say_and_marked_as_an_estimate(votes: Page) -> None:
    root = root_of(votes)
    headline = root.one("section", id="headline")
    assert [each.text for each in headline.of_class("badge")] == ["Estimate"]
    said = [each.text[1:] for each in headline.of_class("sentence")]
    assert said == [graph.sentence[1:] for graph in seven().families.graphs]


def test_shares_of_samples_at_each_p_are_those_of_the_distributions(votes: Page) -> None:
    found = seven().families
    for sigma in SIGMAS:
        header, *rows = rows_of(votes, f"Share of samples with p_A of at least p, at sigma {sigma:g}")
        for row, (name, run) in zip(rows, found.at_sigma(sigma), strict=True):
            assert row == [name, *(f"{run.distribution.survival(float(p))[0]:.4f}" for p in header[1:])]


def test_the_staircase_by_radius_falls_where_that_of_p_falls(votes: Page) -> None:
    """Both charts have seven lines that start at the share with p_A of at least one half and never rise."""
    found = seven().families
    for place, sigma in enumerate(SIGMAS):
        for key in (f"p-sigma-{place}-0-title", f"r-sigma-{place}-0-title"):
            lines = paths(votes, key, "line ")
            assert len(lines) == len(SEVEN)
            for line, (_, run) in zip(lines, found.at_sigma(sigma), strict=True):
                heights = [float(each) for each in re.findall(r"V([\d.]+)", line)]
                assert heights == sorted(heights)
                start = float(re.findall(r"M[\d.]+ ([\d.]+)", line)[0])
                top, size = (12.0, 240.0) if key.startswith("p-") else (30.0, 222.0)
                share = run.distribution.survival(0.5)[0]
                assert start == pytest.approx(top + size * (1 - share), abs=0.06)


def test_votes_that_a_log_leaves_open_are_drawn_as_a_band(monkeypatch: pytest.MonkeyPatch) -> None:
    results = results_of({"a": [record(0, 0.5)], "b": [record(1, 0.5)]}, at=[0.0, 0.5])
    assert paths(page(results), "p-sigma-0-0-title", "band ") == []
    run = results.families.families[0].runs[0]
    vague = PaDistribution(run.distribution.name, 0.5, run.distribution.low * 0.9, run.distribution.high)
    monkeypatch.setitem(run.__dict__, "distribution", vague)
    made = page(results)
    assert len(paths(made, "p-sigma-0-0-title", "band ")) == 1
    assert " – " in rows_of(made, "Share of samples")[1][-2]


def test_a_graph_has_a_box_for_each_family_and_an_arrow_for_each_edge(votes: Page) -> None:
    for place, graph in enumerate(seven().families.graphs):
        key = f"graph-{place}-"
        (picture,) = [each for each in pictures_of(votes) if (each.attributes["aria-labelledby"] or "").startswith(key)]
        boxes = {each.one("title").text: each for each in picture.one("g", aria_hidden="true").all("g")}
        assert set(boxes) == set(SEVEN)
        top = {name for name, box in boxes.items() if box.all("rect", class_="node top")}
        assert top == set(graph.undominated)
        assert len(picture.of_class("edge")) == len(picture.of_class("tip")) == len(graph.reduced)
        described = picture.one("desc").text
        assert all(f"{better} is better than {worse}." in described for better, worse in graph.reduced)


def test_the_table_of_a_graph_has_both_sides_of_every_verdict(votes: Page) -> None:
    graph = seven().families.graphs[0]
    header, *rows = rows_of(votes, "What each family is to the others, sigma 0.25")
    cells = {row[0].split(" ", 1)[1]: row[1:] for row in rows}
    assert header[1:] == [str(place) for place in range(1, 8)]
    edges = set(graph.edges)
    for name, row in cells.items():
        for other, words in zip(graph.names, row, strict=True):
            expected = "–" if name == other else "crosses"
            expected = "better" if (name, other) in edges else "worse" if (other, name) in edges else expected
            assert words == expected


def test_every_verdict_is_in_the_page_in_words(votes: Page) -> None:
    shown = flat(read(votes))
    for graph in seven().families.graphs:
        for sentence in (
            graph.sentence,
            *(pair.sentence for pair in graph.pairs),
            *(c.sentence for c in graph.chances),
        ):
            assert sentence[1:] in shown
        for sentence in (graph.contradiction, graph.beyond_chance):
            assert sentence is None or sentence[1:] in shown


def test_the_average_radius_is_ranked_beside_its_warning_and_what_it_hides(votes: Page) -> None:
    found = seven().families
    assert WARNING[1:] in flat(read(votes))
    for sigma, graph in zip(SIGMAS, found.graphs, strict=False):
        _, *rows = rows_of(votes, f"By average certified radius, sigma {sigma:g}")
        averages = [float(row[1]) for row in rows]
        assert averages == sorted(averages, reverse=True)
        runs = dict(found.at_sigma(sigma))
        for name, average, *_, at_half, _, _, better in rows:
            assert average == f"{runs[name].average.value:.4f}"
            assert at_half == f"{runs[name].distribution.survival(0.5)[0]:.4f}"
            assert better == (", ".join(worse for one, worse in graph.edges if one == name) or "–")


def test_certified_accuracies_are_those_of_the_runs_and_of_the_best(votes: Page) -> None:
    found = seven().families
    header, *rows = rows_of(votes, "Certified accuracy, rounded down")
    assert [float(each) for each in header[1:]] == list(found.at)
    lines = [row for row in rows if len(row) > 1]
    runs = [(name, run) for sigma in SIGMAS for name, run in found.at_sigma(sigma)]
    assert lines == [[name, *run.curve.texts] for name, run in runs]
    _, *best = rows_of(votes, "Best certified accuracy over sigma")
    for place, row in enumerate(best):
        for cell, family in zip(row[1:], found.families, strict=False):
            assert cell.startswith(family.best.texts[place])
            reached = family.best.names[place]
            assert cell.endswith("any σ") == (len(reached) == 3)
            if len(reached) == 1:
                assert f"{family.name} {cell.split('σ ')[1]}" == reached[0]
        assert row[-1].startswith(found.best.texts[place])


def test_every_setting_has_a_value_for_every_family_as_far_as_anything_is_certified(votes: Page) -> None:
    found = seven().families
    for sigma in SIGMAS:
        header, *rows = rows_of(votes, f"Certified accuracy to be expected at sigma {sigma:g}")
        own = [each for each in found.settings if each.sigma == sigma]
        assert [row[0] for row in rows if len(row) == 1] == [each.setting.text for each in own]
        lines = [row for row in rows if len(row) > 1]
        expected = [(name, values) for each in own for name, values in each.rows]
        for row, (name, values) in zip(lines, expected, strict=True):
            assert row[0] == name
            shown = [float(cell.lstrip("~")) for cell in row[1:]]
            assert shown == [round(float(value), 4) for value in values.lower[: len(shown)]]
            assert not values.upper[len(shown) :].any()
        assert len(header) < 2 + len(found.at)
    notes = {each.note for each in found.settings if each.note}
    assert notes
    assert all(each in flat(read(votes)) for each in notes)


def test_certified_calibration_is_as_printed_and_missing_where_nothing_is_certified(made: Page) -> None:
    found = with_confidences().families
    for sigma in SIGMAS[:2]:
        _, *rows = rows_of(made, f"Certified calibration at sigma {sigma:g}")
        lines = [row for row in rows if len(row) > 1]
        own = [each for each in found.calibration if each.sigma == sigma]
        expected = [(each.family, each.summaries[i]) for i in range(3) for each in own]
        for row, (name, summary) in zip(lines, expected, strict=True):
            error = summary["calibration_error"]
            worst = "–" if error.worst is None else error.worst.text
            assert row[:4] == [name, f"{summary.n_certified} of {summary.n}", worst, error.worst_all.text]
            assert row[5] == ("–" if math.isnan(summary.skill.value) else summary.skill.text)
        assert [row[2] for row in lines[-len(own) :]] == ["–"] * len(own)
    pictures = [each.attributes["aria-labelledby"] or "" for each in pictures_of(made)]
    for key in ("error", "error-all", "brier", "skill"):
        assert sum(each.startswith(f"{key}-sigma-") for each in pictures) == 2


def test_votes_alone_have_no_part_on_calibration_and_one_noise_level_no_best(votes: Page, made: Page) -> None:
    assert 'id="calibration"' in made.html
    assert 'id="calibration"' not in votes.html
    one = page(results_of({"a": [record(0, 0.5)], "b": [record(1, 0.5)]}))
    assert 'id="best"' in votes.html
    assert 'id="best"' not in one.html


def test_one_family_alone_says_what_is_certified_instead_of_a_verdict() -> None:
    results = results_of({"a": [record(0, 0.25), record(0, 0.5)]}, at=[0.0, 0.25, 0.5])
    root = assert_sound(page(results).html)
    headline = root.one("section", id="headline")
    assert [each.text for each in headline.of_class("badge")] == ["Certificate"]
    assert "a 0.25: " in headline.text
    assert "norm up to 0.25" in headline.text
    assert 'id="better"' not in page(results).html


def test_lines_keep_their_look_from_chart_to_chart(made: Page) -> None:
    kinds = [
        re.findall(r'class="line (\w+)"', str(section))
        for section in re.findall(r'aria-labelledby="accuracy-sigma-\d-0-title.*?</svg>', made.html)
    ]
    assert kinds == [["blue", "orange", "green"], ["blue", "orange"]]


def test_many_families_are_drawn_in_groups_and_all_are_in_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_families_drawn, "TOGETHER", 3)
    monkeypatch.setattr(_families_drawn, "MOST_DRAWN", 9)
    many = {f"method {place}": [record(place % 7, 0.5, 100)] for place in range(11)}
    made = page(results_of(many, at=[0.0, 0.25]))
    root = assert_sound(made.html)
    assert "2 further families are in the tables only." in root.text
    pictures = [each.attributes["aria-labelledby"] or "" for each in root.all("svg", role="img")]
    assert sum(each.startswith("accuracy-sigma-0-") for each in pictures) == 3
    assert len(rows_of(made, "Share of samples")) == 1 + len(many)
    assert len(made.html) < 6_000_000


def test_when_the_numbers_are_too_many_the_steps_are_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from certcal.report.page import _skeleton

    results = with_confidences()
    monkeypatch.setattr(_skeleton, "_MOST_DATA", len(_skeleton.embedded(embedded(page(results)))) - 1)
    made = page(results)
    run = embedded(made)["families"][0]["runs"][0]
    assert "quantiles" in run["distribution"]
    assert "lower" not in run["distribution"]
    assert "The steps of the distributions of p_A are not among the numbers in this page" in flat(Reader(made.html))


def test_hostile_names_are_shown_and_not_run() -> None:
    results = results_of({HOSTILE: [record(0, 0.5), record(0, 1.0)], "b": [record(1, 0.5)]})
    hostile = FamilyResults(tuple((name, HOSTILE) for name, _ in results.sources), results.families)
    made = page(hostile, Provenance(("certcal", HOSTILE), HOSTILE), title=HOSTILE)
    reader = Reader(made.html)
    assert [tag for tag, _ in reader.tags].count("script") == 2
    assert not [tag for tag, own in reader.tags if tag == "img" or any(name.startswith("on") for name in own)]
    assert "\u202e" not in made.html
    assert_sound(made.html)
