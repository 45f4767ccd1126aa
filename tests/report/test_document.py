"""Claims in print: numbers are on the safe side, verdicts say what is shown, and nothing that a claim needs is lost."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import certcal
from certcal._checks import InputError
from certcal.claims import Bound, Certificate, Estimate, Ledger
from certcal.report.document import Claim, Column, assumptions_of, probability_of, verdict
from certcal.smoothing import Counts
from certcal.smoothing.robustness import VoteRecord
from certcal.worst_case import CertifiedValue, WorstCase, certify
from tests.report.attacked import attack_result
from tests.report.recalibrated import run_samples

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
    exact, printed = Decimal(float(value)), Decimal(text.replace("−", "-"))
    return printed >= exact if side == "upper" else printed <= exact


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
    words = [word.rstrip(".,") for word in rest.replace("−", "-").split()]
    printed = float(next(word for word in words if word not in ("at", "most", "least")))
    assert (printed <= limit) == (claim.value <= limit)
    assert float(words[-1]) == limit
    assert said.passed == start.startswith("Pass")
    if not isinstance(claim, Estimate):
        assert is_safe(str(Decimal(float(words[2]))), claim.value, side_of(claim))


@pytest.mark.parametrize(
    ("claim", "limit", "text"),
    [
        (bound(0.05), 0.05, "Pass: at most 0.05 is within the limit of 0.05."),
        (bound(0.049905), 0.04995, "Pass: at most 0.04991 is within the limit of 0.04995."),
        (bound(0.05001), 0.05, "Not established: at most 0.0501 does not establish the limit of 0.05."),
        (bound(0.5, "lower"), 0.05, "Fail: at least 0.5000 exceeds the limit of 0.05."),
        (bound(0.01005, "lower"), 0.05, "Not established: at least 0.0100 does not establish the limit of 0.05."),
        (worst(math.inf), 2, "Not established: at most inf does not establish the limit of 2."),
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
            "Not established: this attack reached 0.0400, and others may exceed the limit of 0.05.",
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


def test_a_bound_or_a_level_without_a_side_is_not_rounded_at_all():
    for kind in ("bound", "level"):
        with pytest.raises(InputError, match="side"):
            Column("radius", kind).text(0.3)


def test_a_certificate_that_spends_nothing_still_rests_on_its_assumptions():
    made = Certificate("error", 0.1, "upper", 0.5, Ledger(0.001), 9, ("the verifier is sound",))
    assert probability_of(made) == "Nothing is random: it holds if its assumptions do."


def test_a_worst_case_says_what_it_holds_under_and_whether_it_is_reached():
    found = certify([0.5, 0.2], [0.9, 0.6], [1, 0])
    end = "where every confidence lies inside its interval and no certified prediction changes."
    assert probability_of(found["calibration_error"].worst) == f"Exact {end}"
    bracket = WorstCase("error", 0.2, 9, None, None, extreme="lowest", lower_end=0.1)
    assert {probability_of(bracket), probability_of(found.skill)} == {f"Holds {end}"}
    assert len(assumptions_of(bracket)) == 2


@pytest.mark.parametrize(("alpha", "end"), [(0.001, " except with probability 0.001"), (0.0, "")])
def test_an_assumption_names_its_level(alpha, end):
    bound = certify([0.5, 0.2], [0.9, 0.6], [1, 0], alpha=alpha).population
    said = Claim.of(bound, "The error", settings=False)
    assert said.assumptions[-1] == f"each interval and correctness holds{end}"
    assert len(said.assumptions) == len(bound.assumptions)


def test_a_table_whose_intervals_may_fail_says_so_below_its_number():
    table = {"radius": [0.5, 0.5], "lower": [0.5, 0.2], "upper": [0.9, 0.6], "correct": [1, 0]}
    sure, unsure = (certcal.certify(table, alpha=alpha).report().headline[0] for alpha in (0, 0.001))
    assert unsure.probability == f"{sure.probability} Each interval may fail with probability 0.001."
    assert "Euclidean" not in sure.meaning  # a verifier may mean another norm


def test_a_run_is_claimed_of_its_smoothed_classifier_even_where_the_clean_error_is_zero():
    counts = Counts.from_confidences(
        np.full((2, 900), 0.5), [0.25, 0.75], votes=[900, 900], sigma=0.5, correct=[True, False]
    )
    found = certcal.certify(counts, radii=[0, 0.1])
    assert found.clean_bins().ece == 0
    report = found.report()
    assert report.headline[0].sentence.startswith("At radius 0.1, the calibration error of the smoothed classifier is")
    assert "under every change of the inputs of Euclidean length up to the radius" in report.headline[0].meaning
    assert "Claims in full at radius 0.1" in [each.title for each in report.appendix]


def test_bounds_beside_each_other_warn_of_choosing():
    z = np.linspace(0, 1, 50)
    table = {"confidence": z, "correct": z > 0.4}
    notes = " ".join(certcal.measure(table, bounds=True).report().notes)
    assert "Each bound fails with probability at most 0.05 on its own: choose one before looking." in notes
    assert "Metrics are estimates from these samples" in notes
    changed = certcal.compare(certcal.bound(table), certcal.bound(table, delta=0.01)).report().headline[0]
    assert changed.probability.startswith("Each of the two fails with probability at most 0.05")
    assert changed.assumptions


def test_bounds_say_their_side_and_their_bins_wherever_they_stand():
    z = np.linspace(0, 1, 50)
    found = certcal.bound({"confidence": z, "correct": z > 0.4}, bins=7)
    said = " ".join(found.report().to_text().split())
    assert f"Binned calibration error of the population is at most {found['binned'].text} with 7 bins." in said
    rows = certcal.compare(found, found).report().sections[0].blocks[0].rows
    signs = {"upper": "≤", "lower": "≥"}
    assert [row[2] for row in rows] == [f"{signs[each.side]} {each.text}" for each in found.claims()]


def test_a_diagram_leaves_room_for_sampling_error_and_an_interval_says_what_it_is():
    z = np.linspace(0, 1, 50)
    report = certcal.measure({"confidence": z, "correct": z > 0.4}, bootstrap=20).report()
    assert "beyond sampling error" in report.charts()[0].caption
    assert "(resampling variability)" in report.headline[0].probability
    assert "perfect" not in report.headline[0].meaning  # bins can hide what is wrong


def test_a_single_run_says_how_often_a_radius_fails():
    run = VoteRecord.of([90, 100], 100, [1, 1], sigma=1.0)
    for made in (certcal.compare(run, alpha=0.01), certcal.compare(only=run, alpha=0.01)):
        claim = made.report().headline[0]
        assert claim.probability == "Each certified radius fails with probability at most 0.01 over the noise."


def test_overlap_is_no_sign_for_calibration_errors():
    rng = np.random.default_rng(0)
    z = rng.random(300)
    sides = [certcal.measure({"confidence": z, "correct": rng.random(300) < z}, bootstrap=20) for _ in (0, 1)]
    (note,) = certcal.compare(*sides).report().notes
    assert "For calibration errors it is none" in note


def test_gains_and_bounds_of_a_map_keep_their_constants():
    blocks = next(
        each.blocks for each in certcal.recalibrate(run_samples()).report().sections if each.title == "Population"
    )
    bound, gain = (block for block in blocks if isinstance(block, Claim))
    assert "alpha" in bound.settings
    assert {"alpha", "constant"} <= gain.settings.keys()
    assert gain.meaning


class Swapped:
    """An attack that does not care for labels."""

    name = "swapped"
    keeps_labels = False

    def run(self, model, inputs, labels, epsilon):
        return model.ball(epsilon).seal(inputs, inputs.flip(0))


def test_an_attack_that_changes_labels_does_not_say_that_it_keeps_them():
    network = torch.nn.Linear(2, 2, bias=False).eval()
    torch.nn.init.eye_(network.weight)
    data = [[0.9, 0.1], [0.2, 0.8]], [0, 1]
    kept, changed = (
        certcal.attack(network, data, epsilon=0.7, attacks=each, outputs="logits") for each in ("one-step", Swapped())
    )
    assert changed.changed > 0 == kept.changed
    for found in (kept, changed):
        text = found.report().to_text(full=True)
        assert ("predictions are the same in all diagrams" in " ".join(text.split())) == (found.changed == 0)
        assert ("No perturbation changes a predicted label" in " ".join(text.split())) == (found.changed == 0)


def test_what_an_attack_reached_is_rounded_down():
    found = attack_result()
    reached = next(each for each in found.report().sections[0].blocks[0].numbers if each.name == "AdaECE after")
    assert is_safe(reached.text, found.strongest["equal_mass_ece"].value, "lower")
    assert reached.remarks[0] == "at least"
