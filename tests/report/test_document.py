"""Claims in print: numbers are on the safe side, verdicts say what is shown, and nothing that a claim needs is lost."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certcal
from certcal._checks import InputError
from certcal.claims import Bound, Certificate, Estimate, Ledger
from certcal.report.document import Claim, Column, verdict
from certcal.worst_case import CertifiedValue, WorstCase

VALUES = st.floats(-2, 2) | st.floats(0, 1e-3)
SIDES = st.sampled_from(("upper", "lower"))


def bound(value, side="upper"):
    return Bound("error", value, side, 0.05, 100, ())


def certificate(value, side="upper"):
    return Certificate("error", value, side, 0.5, Ledger(0.001).split(prediction=1), 100, ())


def worst(value, side="upper"):
    extreme = "highest" if side == "upper" else "lowest"
    return WorstCase("error", value, 100, None, None, extreme=extreme, lower_end=value)


MADE = st.builds(lambda make, *given: make(*given), st.sampled_from((bound, certificate, worst)), VALUES, SIDES)


def side_of(claim):
    return getattr(claim, "side", None) or {"highest": "upper", "lowest": "lower"}[claim.extreme]


def is_safe(text, value, side):
    exact = Decimal(float(value))
    return Decimal(text) >= exact if side == "upper" else Decimal(text) <= exact


@given(MADE)
def test_the_number_of_a_claim_is_on_the_safe_side_in_its_sentence_and_in_a_cell(claim):
    side = side_of(claim)
    said = Claim.of(claim, "The error", over="here")
    relation, text = said.value.rsplit(" ", 1)
    assert relation == {"upper": "at most", "lower": "at least"}[side]
    assert is_safe(text, claim.value, side)
    assert said.sentence == f"The error is {relation} {text} here."
    assert Column("error", "bound", side).text(claim) == text
    assert is_safe(Column("error", "bound", side).text(claim.value), claim.value, side)


@given(st.tuples(VALUES, VALUES).map(sorted))
def test_an_interval_in_a_cell_is_rounded_outward(ends):
    low, high = Column("interval", "interval").text(tuple(ends)).split(" – ")
    assert is_safe(low, ends[0], "lower")
    assert is_safe(high, ends[1], "upper")


@given(MADE | st.builds(Estimate, st.just("ece"), VALUES, st.just(9)), VALUES)
def test_a_verdict_compares_what_it_prints(claim, limit):
    said = verdict(claim, limit)
    start, _, rest = said.text.partition(": ")
    words = [word.rstrip(".,") for word in rest.split()]
    printed = float(next(word for word in words if word not in ("at", "most", "least")))
    assert (printed <= limit) == (claim.value <= limit)
    assert float(words[-1]) == limit
    assert said.passed == start.startswith("Pass")
    if not isinstance(claim, Estimate):
        assert is_safe(float(words[2]), claim.value, side_of(claim))


@pytest.mark.parametrize(
    ("claim", "limit", "text"),
    [
        (bound(0.05), 0.05, "Pass: at most 0.05 is within the limit of 0.05."),
        (bound(0.049905), 0.04995, "Pass: at most 0.04991 is within the limit of 0.04995."),
        (bound(0.05001), 0.05, "Not shown: at most 0.0501 does not establish the limit of 0.05."),
        (bound(0.5, "lower"), 0.05, "Fail: at least 0.5000 exceeds the limit of 0.05."),
        (bound(0.01005, "lower"), 0.05, "Not shown: at least 0.0100 does not establish the limit of 0.05."),
        (worst(math.inf), 2, "Not shown: at most inf does not establish the limit of 2."),
        (Estimate("ece", 0.05001, 9), 0.05, "Fail on these samples: 0.05001 (an estimate) exceeds the limit of 0.05."),
        (Estimate("ece", 1e-5, 9), 1, "Pass on these samples: 1.0e-05 (an estimate) is within the limit of 1."),
        (Estimate("ece", math.nan, 9), 1, "Undecided: the number is undefined, so it cannot be held against 1."),
        (
            CertifiedValue("skill", math.nan, 9, "undefined", ""),
            1,
            "Undecided: the number is undefined, so it cannot be held against 1.",
        ),
        (
            Estimate("ece", 0.04005, 9, {"attack": "mine"}),
            0.05,
            "Not shown: this attack reached 0.0400, and others may exceed the limit of 0.05.",
        ),
        (
            Estimate("ece", 0.05999, 9, {"attack": "mine"}),
            0.05,
            "Fail: an attack reached 0.0599 (an estimate), above the limit of 0.05.",
        ),
    ],
)
def test_a_verdict_says_what_is_shown(claim, limit, text):
    said = verdict(claim, limit)
    assert said.text == text
    assert said.passed == text.startswith("Pass")


def test_a_limit_is_a_number_and_held_against_what_should_be_small():
    table = {"confidence": [0.9, 0.6], "correct": [1, 0]}
    with pytest.raises(InputError, match="not a number"):
        certcal.measure(table).report(limit=math.nan)
    with pytest.raises(InputError, match="more of that is better"):
        certcal.measure(table, metrics="accuracy").report(limit=0.5)


def test_the_limit_of_a_change_is_held_against_its_headline():
    rng = np.random.default_rng(0)
    z = rng.random(200)
    found = certcal.compare(*(certcal.measure({"confidence": z**k, "correct": rng.random(200) < z}) for k in (2, 1)))
    report = found.report(limit=0.5)
    assert found.claims()[0] is found["ece"].new
    assert len(set(map(id, found.claims()))) == 2 * len(found.rows)
    assert f"{found['ece'].new.value:.4f}" in report.verdict.text
    assert f"{found['ece'].new.value:.4f}" in report.headline[0].sentence
