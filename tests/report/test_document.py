"""Claims in print: numbers are on the safe side, and nothing that a claim needs is lost."""

from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import certcal
from certcal import InputError
from certcal._base.rounding import claim_text, minus, number_text
from certcal.claims import Bound, Certificate, Ledger
from certcal.report.document import Claim, Column, assumptions_of, frames_of, probability_of
from certcal.smoothing import Counts
from certcal.smoothing.robustness import VoteRecord
from certcal.worst_case import WorstCase, certify
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
    assert is_safe(text.removesuffix("%"), claim.value * (100 if text.endswith("%") else 1), side)
    assert said.sentence == f"The error is {relation} {text} here."
    assert number_text(claim.text, percent=text.endswith("%")) == text
    assert Column("error", "bound", side).text(claim) == minus(claim.text)
    assert is_safe(Column("error", "bound", side).text(claim.value), claim.value, side)


@given(st.tuples(VALUES, VALUES).map(sorted))
def test_an_interval_in_a_cell_is_rounded_outward(ends):
    low, high = Column("interval", "interval").text(tuple(ends)).split(" – ")
    assert is_safe(low, ends[0], "lower")
    assert is_safe(high, ends[1], "upper")


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
    assert unsure.probability == f"{sure.probability} Each interval fails at most 1 time in 1,000."
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
    assert "Each bound is 95% sure on its own: choose one before looking." in notes
    assert "Metrics are estimates from these samples" in notes
    changed = certcal.compare(certcal.bound(table), certcal.bound(table, delta=0.01)).report().headline[0]
    assert changed.probability.startswith("95% sure of each of the two, for samples drawn like its own.")
    assert changed.assumptions


def test_bounds_say_their_side_and_their_bins_wherever_they_stand():
    z = np.linspace(0, 1, 50)
    found = certcal.bound({"confidence": z, "correct": z > 0.4}, bins=7)
    said = " ".join(found.report().to_text().split())
    assert f"Binned calibration error of the population is at most {claim_text(found['binned'])} with 7 bins." in said
    rows = certcal.compare(found, found).report().sections[0].blocks[0].rows
    signs = {"upper": "≤", "lower": "≥"}
    assert [row[2] for row in rows] == [f"{signs[each.side]} {each.text}" for each in found.bounds.values()]


def test_a_diagram_leaves_room_for_sampling_error_and_an_interval_says_what_it_is():
    z = np.linspace(0, 1, 50)
    table = {"confidence": z, "correct": z > 0.4}
    report = certcal.measure(table).report()
    assert "beyond sampling error" in report.charts()[0].caption
    (metrics,) = (section.blocks[0] for section in report.appendix if section.title == "Metrics")
    assert "95% interval" in [column.head for column in metrics.columns]
    measured = certcal.measure(table, metrics=calibration_gap, bootstrap=20, seed=3)
    assert measured.seeds == {"bootstrap": 3}
    said = " ".join(measured.report().notes)
    assert "Metrics of your own have percentiles of 20 resamples, seed 3, which cover averages only." in said
    assert "perfect" not in report.to_text()  # bins can hide what is wrong


def test_a_single_run_says_how_often_a_radius_fails():
    run = VoteRecord.of([90, 100], 100, [1, 1], sigma=1.0)
    for made in (certcal.compare(run, alpha=0.01), certcal.compare(only=run, alpha=0.01)):
        claim = made.report().headline[0]
        assert claim.probability == "Each certified radius fails at most 1 time in 100, over the noise."


def test_the_differences_of_measurements_say_that_they_are_cautious():
    rng = np.random.default_rng(0)
    z = rng.random(300)
    sides = [certcal.measure({"confidence": z, "correct": rng.random(300) < z}, bootstrap=20) for _ in (0, 1)]
    bold, method = certcal.compare(*sides).report().notes
    assert bold.startswith("In bold, better, worse: the 90% interval of the difference excludes 0")
    assert "two intervals that hold together, which is cautious" in method
    changed = certcal.compare(
        *(certcal.measure({"confidence": [z] * 500, "correct": [1, 0] * 250}) for z in (0.9, 0.6))
    )
    plain = changed.report().to_text()  # which nothing is bold in
    assert "In bold" not in plain
    assert "With a *, better, worse: the 90% interval of the difference excludes 0" in plain
    assert "−0.3000*" in plain


def calibration_gap(confidence, correct, sample_weight=None):
    return certcal.metrics.ece(confidence, correct, sample_weight=sample_weight)


def test_an_interval_that_excludes_its_estimate_is_never_shown_without_a_word():
    rng = np.random.default_rng(1)
    z = rng.random(300)
    found = certcal.measure({"confidence": z, "correct": rng.random(300) < z}, metrics=calibration_gap)
    (row,) = found.rows
    assert row.interval.lower > row.value
    assert "it excludes the estimate" in row.sentence
    for said in (found.report().to_text(), found.report().to_html()):
        assert "(excludes the estimate)" in " ".join(said.split())


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
    data = [[0.9, 0.2], [0.2, 0.9]], [0, 1]
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
    assert is_safe(reached.text.removesuffix("%"), 100 * found.strongest["equal_mass_ece"].value, "lower")
    assert reached.remarks[0] == "at least"


def test_of_many_states_a_choice_keeps_a_few_and_the_one_it_starts_with():
    assert frames_of(4, 1) == [0, 1, 2, 3]
    assert frames_of(1000, 10, most=5) == [0, 10, 333, 666, 999]
