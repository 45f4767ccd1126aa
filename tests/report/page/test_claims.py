"""Claims on a page: the kind in words, the number as it is printed, the probability and what it rests on."""

from __future__ import annotations

import pytest

from certcal.claims import Bound, Certificate, Estimate, Interval, Ledger
from certcal.report.page._claims import (
    Claim,
    assumptions,
    badge,
    card,
    how_computed,
    key_numbers,
    kind_of,
    ledger_table,
    probability,
    relation,
    text_of,
)
from certcal.worst_case import certify
from tests.report.page.parsed import parsed

LEDGER = Ledger(0.001).spend("prediction", 0.0005).spend("lower_ends", 0.00025)
SUMMARY = certify([0.513, 0.217], [0.771, 0.433], [1, 0], bins=3)
WORST = SUMMARY["calibration_error"].worst
assert WORST is not None
CLAIMS: dict[str, Claim] = {
    "estimate": Estimate("ece", 0.039781, 100, {"bins": 15}, Interval(0.03, 0.05, 0.95, "percentile")),
    "bound": Bound("ece", 0.08121, "upper", 0.05, 1000, ("draws are independent", "V <= 2"), {"a": 0.04, "b": 0.04121}),
    "lower": Bound("accuracy", 0.91239, "lower", 1 / 3, 10, ()),
    "certificate": Certificate("error", 0.29853, "upper", 0.5, LEDGER, 500, ("noise is Gaussian",)),
    "worst": WORST,
    "accuracy": SUMMARY.accuracy,
    "miscalibration": SUMMARY.information.miscalibration,
    "undefined": certify([0.5], [0.75], [1]).skill,
}


@pytest.mark.parametrize(
    ("name", "kind", "side", "text"),
    [
        ("estimate", "Estimate", "", "0.0398"),
        ("bound", "Bound", "at most", "0.0813"),
        ("lower", "Bound", "at least", "0.9123"),
        ("certificate", "Certificate", "at most", "0.2986"),
        ("worst", "Worst case", "at most", WORST.text),
        ("accuracy", "Worst case", "at least", "0.5000"),
        ("miscalibration", "Worst case", "at most", SUMMARY.information.miscalibration.text),
        ("undefined", "Worst case", "", "undefined"),
    ],
)
def test_a_claim_is_named_by_its_kind_and_rounded_to_its_own_side(name: str, kind: str, side: str, text: str) -> None:
    claim = CLAIMS[name]
    assert (kind_of(claim), relation(claim), text_of(claim)) == (kind, side, text)
    assert parsed(badge(claim)).text == kind


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_card_says_the_sentence_the_probability_and_every_assumption(claim: Claim) -> None:
    root = parsed(card(claim, lead="It is <b>", more=(CLAIMS["bound"], "One more.")))
    assert root.one("strong").text == text_of(claim)
    for words in (claim.sentence, probability(claim), "It is <b>", CLAIMS["bound"].sentence, "One more."):
        assert words in root.text
    assert [each.text for each in root.all("li")] == list(assumptions(claim))


def test_probabilities_are_rounded_up() -> None:
    assert "at most 0.333334 over" in probability(CLAIMS["lower"])
    assert "at most 0.00075 over the noise" in probability(CLAIMS["certificate"])
    bound = Bound("ece", 0.1, "upper", 0.05, 10, (), settings={"alpha": 0.00100000049})
    assert "0.00100001" in [each.text for each in parsed(how_computed([("ece", bound, ())])).all("dd")]
    assert probability(CLAIMS["estimate"]).endswith("shows how it varies under resampling; it is no guarantee.")
    assert "nothing about how it would vary" in probability(Estimate("ece", 0.1, 9))


def test_how_a_claim_was_computed_has_settings_and_terms_rounded_to_its_side() -> None:
    remarks = ("First the bins.",)
    root = parsed(how_computed([("ECE", CLAIMS["estimate"], remarks), ("bound", CLAIMS["bound"], ())]))
    first, second = root.all("details")
    assert [each.text for each in first.all("dt")] == ["bins", "samples"]
    assert [each.text for each in first.all("dd")] == ["15", "100"]
    assert "First the bins." in first.text
    assert [each.text for each in second.one("tbody").all("td")] == ["0.0401", "0.0413"]


def test_a_ledger_lists_what_was_spent_its_sum_and_the_budget() -> None:
    root = parsed(ledger_table(LEDGER)).one("tbody")
    assert [[cell.text for cell in row.all() if cell.tag in ("td", "th")] for row in root.all("tr")] == [
        ["prediction", "0.0005"],
        ["lower ends", "0.00025"],
        ["spent", "0.00075"],
        ["budget", "0.001"],
    ]


def test_key_numbers_have_a_line_per_remark() -> None:
    root = parsed(key_numbers([("ECE", "0.0398", "0.03 – 0.05\n15 bins"), ("n", "9", "")]))
    assert [each.text for each in root.all("strong")] == ["0.0398", "9"]
    assert [each.text for each in root.all("span")] == ["0.03 – 0.05", "15 bins"]
