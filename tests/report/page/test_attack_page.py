"""The page of attacks says what the results say, whatever the names and however many the attacks."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from certcal.report.numbers import number
from certcal.report.page import Provenance, page
from certcal.report.page._attack_page import MOST_DRAWN
from certcal.report.results import estimate_of
from tests.report.attacked import attacked_results
from tests.report.page.parsed import assert_sound, data_of, parsed
from tests.report.page.test_skeleton import HOSTILE


@pytest.fixture(scope="module")
def results():
    return attacked_results()


def test_the_page_is_sound_and_holds_the_whole_json(results):
    made = page(results, Provenance(("certcal", "attack")))
    inside = data_of(assert_sound(made.html))
    assert inside.pop("provenance")["command"] == ["certcal", "attack"]
    assert inside == json.loads(results.to_json())


def test_the_table_has_every_number_that_was_measured(results):
    table = parsed(page(results).html).one("section", id="attacks").one("table")
    rows = [[cell.text for cell in row.children] for row in table.one("tbody").all("tr")]
    headings = [cell.text for cell in table.one("thead").all("th")]
    names = {"AdaECE": "equal_mass_ece", "ECE": "ece", "mean confidence": "mean_confidence", "accuracy": "accuracy"}
    lines = iter([("unattacked", results.clean), *((line.name, line.part) for line in results.lines)])
    for row in rows:
        if len(row) == 1:
            continue
        name, part = next(lines)
        assert row[0] == name
        for heading, metric in names.items():
            assert row[headings.index(heading)] == number(estimate_of(part, metric).value)
    assert next(lines, None) is None
    assert [row[0] for row in rows if len(row) == 1] == ["Within ε = 2/255 (ℓ∞)", "Within ε = 8/255 (ℓ∞)"]


def test_the_headline_is_the_strongest_attack_and_says_that_it_is_no_worst_case(results):
    card = parsed(page(results).html).one("section", id="headline")
    strongest = results.strongest
    assert number(estimate_of(strongest.part, "equal_mass_ece").value) in card.text
    assert f"{strongest.name} within ε = {strongest.epsilon_text} (ℓ∞)" in card.text
    assert "the worst case within the same distance is at least this" in card.text
    for claim in results.claims:
        assert claim in card.text


def test_every_attack_has_a_diagram_up_to_a_number_that_is_looked_at(results):
    diagrams = parsed(page(results).html).one("section", id="diagrams")
    assert len(diagrams.all("svg", role="img")) == 1 + len(results.lines)
    many = replace(results, lines=results.lines * 4)
    diagrams = parsed(page(many).html).one("section", id="diagrams")
    assert len(diagrams.all("svg", role="img")) == MOST_DRAWN
    assert "9 further diagrams" in diagrams.text


def test_names_from_outside_stay_names():
    name = " ".join(HOSTILE)
    made = page(attacked_results(source=name, description=name, claims=(name,)))
    root = assert_sound(made.html)
    assert data_of(root)["source"] == name
    assert "https://example.org/x.js" in root.one("section", id="headline").text
