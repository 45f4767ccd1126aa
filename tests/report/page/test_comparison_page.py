"""The page of a comparison: its numbers are the JSON's, its verdicts are whole, and names do no harm."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from certcal.report.page import Page, Provenance, page
from certcal.report.page._curves import BETWEEN
from certcal.report.results import ComparedResults

from certcal.smoothing.robustness import WARNING, VoteRecord, compare
from tests.report.reading import Reader, embedded, flat

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e"


def record(name: str, seed: int, *, sigma: float = 0.5, samples: int = 60, draws: int = 1000) -> VoteRecord:
    rng = np.random.default_rng(seed)
    votes = rng.binomial(draws, rng.beta(6, 1 + seed % 3, samples))
    return VoteRecord.of(
        votes, draws, rng.random(samples) < 0.85, sigma=sigma, label=np.arange(samples) % 10, name=name
    )


def compared(*records: VoteRecord, at: Any = None, sources: tuple[str, ...] | None = None) -> ComparedResults:
    names = tuple(f"runs/{each.name}" for each in records) if sources is None else sources
    return ComparedResults(names, compare(records, at))


@pytest.fixture(scope="module")
def results() -> ComparedResults:
    return compared(record("A", 1), record("B", 2), record("C", 3, sigma=1.0, draws=2000))


@pytest.fixture(scope="module")
def made(results: ComparedResults) -> Page:
    return page(results, Provenance.here(["certcal", "compare", "a", "b", "c"]))


def test_the_numbers_in_the_page_are_those_that_json_prints(made: Page, results: ComparedResults) -> None:
    document = embedded(made)
    assert document.pop("provenance")["command"] == ["certcal", "compare", "a", "b", "c"]
    assert document == json.loads(results.to_json())


def test_the_table_has_every_run_at_every_radius_and_the_best(made: Page) -> None:
    header, *rows = Reader(made.html).tables["Certified accuracy, rounded down"]
    document = embedded(made)
    assert header == ["radius", "A", "B", "C", "best", "of"]
    assert [float(row[0]) for row in rows] == document["at"]
    for place, run in enumerate(document["runs"]):
        assert [row[1 + place] for row in rows] == run["certified_accuracy"]["texts"]
    assert [row[4] for row in rows] == document["best"]["texts"]
    assert [row[5] for row in rows] == [
        "all" if len(names) == 3 else ", ".join(names) for names in document["best"]["names"]
    ]


def test_the_curves_of_accuracy_say_on_which_side_and_where_they_hold(made: Page) -> None:
    shown = flat(Reader(made.html))
    assert "At least this share of all samples is predicted correctly" in shown
    assert "where the radii of the samples hold" in shown
    assert BETWEEN in shown
    third = page(compared(record("A", 1), at=[0.2, 2 / 3]))
    assert "at radius 0.666666." in third.html
    assert "0.666667" not in flat(Reader(third.html))


def test_every_verdict_is_said_and_the_headline_is_an_estimate(made: Page, results: ComparedResults) -> None:
    reader = Reader(made.html)
    shown = flat(reader)
    assert len(results.comparison.dominance) == 3
    for pair in results.comparison.dominance:
        assert pair.sentence[1:] in shown
    assert ("span", {"class": "badge estimate"}) in reader.tags
    for sentence in results.comparison.notes:
        assert sentence in shown


def test_the_average_radius_stands_beside_its_warning(made: Page, results: ComparedResults) -> None:
    reader = Reader(made.html)
    assert WARNING[1:] in flat(reader)
    _, *rows = reader.tables["Average certified radius"]
    assert [float(row[1]) for row in rows] == [round(run.average.value, 4) for run in results.comparison.runs]
    assert all(row[2].endswith("%") for row in rows)


def test_shares_and_quantiles_of_p_a_are_those_of_the_distributions(made: Page, results: ComparedResults) -> None:
    _, *rows = Reader(made.html).tables["Distribution of p_A; a range where a log leaves votes open"]
    cells = {row[0]: row[1:] for row in rows}
    for place, run in enumerate(results.comparison.runs):
        assert cells["share with p_A ≥ 0.9"][place] == f"{run.distribution.survival(0.9)[0]:.4f}"
        assert cells["quantile 50%"][place] == f"{run.distribution.quantile(0.5):.4f}"


def test_one_run_has_no_verdict_and_no_best(made: Page) -> None:
    alone = page(compared(record("A", 1)))
    reader = Reader(alone.html)
    shown = flat(reader)
    assert "Better whatever the setting?" not in shown
    assert reader.tables["Certified accuracy, rounded down"][0] == ["radius", "A"]
    assert "How robust is the smoothed classifier?" in shown
    assert "of these 60 samples" in shown


def test_one_radius_and_one_where_nothing_is_certified_are_drawn(made: Page) -> None:
    for radius in (0.0, 50.0):
        reader = Reader(page(compared(record("A", 1), record("B", 2), at=[radius])).html)
        assert len(reader.tables["Certified accuracy, rounded down"]) == 2
        assert not [own["d"] for _, own in reader.tags if "nan" in str(own.get("d"))]


def test_many_runs_are_drawn_in_groups_and_all_are_in_the_table() -> None:
    many = compared(*(record(f"R{i}", i, samples=12, draws=100) for i in range(27)), at=[0.0, 0.2])
    made = page(many)
    reader = Reader(made.html)
    pictures = [own for tag, own in reader.tags if tag == "svg" and own.get("role") == "img"]
    assert len(pictures) == 10
    assert "2 further runs are in the table and in the JSON only." in flat(reader)
    assert len(reader.tables["Certified accuracy, rounded down"][0]) == 1 + 27 + 2
    assert "151 further pairs are in the JSON only." in flat(reader)
    assert len(made.html) < 6_000_000


def test_when_the_numbers_are_too_many_the_steps_are_left_out_and_that_is_said(
    results: ComparedResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    from certcal.report.page import _skeleton

    whole = len(_skeleton.embedded(embedded(page(results))))
    monkeypatch.setattr(_skeleton, "_MOST_DATA", whole - 1)
    made = page(results)
    run = embedded(made)["runs"][0]
    assert "quantiles" in run["distribution"]
    assert "lower" not in run["distribution"]
    assert "The steps of the distributions of p_A are not among the numbers in this page" in flat(Reader(made.html))


def test_hostile_names_are_shown_and_not_run(results: ComparedResults) -> None:
    found = compared(record(HOSTILE, 1), record("B", 2), sources=(HOSTILE, f"{HOSTILE}2"))
    made = page(found, Provenance(("certcal", HOSTILE), HOSTILE), title=HOSTILE)
    reader, plain = Reader(made.html), Reader(page(results).html)
    assert [tag for tag, _ in reader.tags].count("script") == [tag for tag, _ in plain.tags].count("script")
    assert not [tag for tag, own in reader.tags if tag == "img" or any(name.startswith("on") for name in own)]
    assert "\u202e" not in made.html
    assert made.html.count("&lt;script&gt;alert(1)") >= 8
    assert embedded(made)["runs"][0]["source"] == HOSTILE
