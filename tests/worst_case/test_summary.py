"""The summary of what intervals certify: the numbers of the single worst cases, put together soundly."""

import copy
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from certcal import InputError
from certcal.claims import in_full
from certcal.metrics import ece, ks_error, mce, top_label_brier_score, top_label_nll
from certcal.worst_case import calibration_error, certify, population_bound
from certcal.worst_case._summary import METRICS, _certified_accuracy

RNG = np.random.default_rng(5)
N = 200
Z = RNG.beta(6, 2, N)
LOWER, UPPER = np.clip(Z - 0.1, 0, 1), np.clip(Z + 0.1, 0, 1)
CORRECT = (RNG.random(N) < Z).astype(int)
CERTIFIED = RNG.random(N) < 0.7
PLAIN = {
    "brier_score": top_label_brier_score,
    "nll": top_label_nll,
    "calibration_error": ece,
    "mce": mce,
    "ks_error": ks_error,
}


def test_every_value_is_that_of_the_single_worst_case():
    summary = certify(LOWER, UPPER, CORRECT, certified=CERTIFIED, bins=7, closed="right", delta=0.1)
    alone = calibration_error(LOWER, UPPER, CORRECT, bins=7, closed="right", certified=CERTIFIED)
    ranges = summary["calibration_error"]
    assert (ranges.worst.value, ranges.worst_all.value) == (alone.value, alone.all_samples.value)
    assert summary.population.value == population_bound(alone, 0.1).value
    assert summary.population_all.value == population_bound(alone.all_samples, 0.1).value
    assert (summary.n, summary.n_certified) == (N, CERTIFIED.sum())
    assert dict(summary.settings) == {"bins": 7, "closed": "right", "delta": 0.1, "alpha": 0.0}


def test_certified_accuracy_counts_samples_that_are_certified_and_correct():
    summary = certify([0.5] * 10, [0.75] * 10, [1] * 8 + [0] * 2, certified=[0] + [1] * 9)
    assert summary.accuracy.text == "0.7000"
    assert Fraction(summary.accuracy.value) <= Fraction(7, 10)
    assert "7 of these 10 samples" in summary.accuracy.sentence


@given(st.integers(1, 3000), st.data())
def test_certified_accuracy_is_never_printed_above_its_value(n, data):
    right = data.draw(st.integers(0, n))
    accuracy = _certified_accuracy(right, n)
    assert Fraction(right, n) - Fraction(1, 10_000) < Fraction(accuracy.text) <= Fraction(right, n)
    assert Fraction(accuracy.value) <= Fraction(right, n)


def test_skill_compares_with_the_constant_confidence_of_the_same_accuracy():
    kept_correct = CORRECT[CERTIFIED]
    constant = top_label_brier_score(np.full(kept_correct.size, kept_correct.mean()), kept_correct)
    worst = np.where(CORRECT == 1, LOWER, UPPER)[CERTIFIED]
    expected = 1 - top_label_brier_score(worst, kept_correct) / constant
    skill = certify(LOWER, UPPER, CORRECT, certified=CERTIFIED).skill
    assert skill.value == pytest.approx(expected, abs=1e-9)
    assert skill.value < expected + 1e-12
    assert float(skill.text) <= skill.value


def test_the_constant_map_itself_has_no_skill_and_a_perfect_one_has_all():
    assert certify([0.5] * 4, [0.5] * 4, [1, 1, 0, 0]).skill.value == pytest.approx(0, abs=1e-9)
    assert certify([1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]).skill.value == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("correct", "word"), [([1, 1], "correct"), ([0, 0], "wrong")])
def test_skill_is_undefined_when_the_constant_is_already_perfect(correct, word):
    skill = certify([0.25, 0.5], [0.5, 0.75], correct).skill
    assert math.isnan(skill.value)
    assert skill.text == "undefined"
    assert f"all 2 are {word}" in skill.sentence


@given(st.integers(0, 10_000))
def test_any_confidences_inside_the_intervals_stay_in_every_range(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    ends = np.sort(rng.random((2, n)).round(int(rng.integers(1, 4))), axis=0)
    correct, mask = rng.integers(0, 2, n), rng.random(n) < 0.7
    mask[0] = True
    summary = certify(*ends, correct, certified=mask, bins=4)
    z = ends[0] + rng.random(n) * (ends[1] - ends[0])
    anything = np.where(mask, z, rng.random(n))
    any_correct = np.where(mask, correct, rng.integers(0, 2, n))
    for key in METRICS:
        options = {"bins": 4} if key in ("calibration_error", "mce") else {}
        ranges, plain = summary[key], PLAIN[key](z[mask], correct[mask], **options)
        assert plain <= float(ranges.worst.text) + 1e-9
        assert ranges.lowest is None or float(ranges.lowest_text) <= plain + 1e-9
        assert PLAIN[key](anything, any_correct, **options) <= float(ranges.worst_all.text) + 1e-9


def test_without_a_mask_all_samples_are_the_certified_ones():
    summary = certify(LOWER, UPPER, CORRECT)
    assert summary.n_certified == N
    assert all(summary[key].worst is summary[key].worst_all for key in METRICS)
    assert summary.population.value == summary.population_all.value


def test_nothing_certified_leaves_only_what_holds_for_all_samples():
    summary = certify(LOWER, UPPER, CORRECT, certified=np.zeros(N))
    assert summary.n_certified == 0
    assert summary.accuracy.value == 0
    assert summary.population is None
    for key in METRICS:
        assert summary[key].worst is None
        assert "no sample is certified" in summary[key].sentence
        assert summary[key].worst_all.value == (math.inf if key == "nll" else 1)
        assert summary[key].worst_all.settings["uncertified"] == "free"
    assert summary.population_all.value == 1
    assert math.isnan(summary.skill.value)
    assert "no sample is certified" in summary.information.verdict
    assert summary.headline == summary["calibration_error"].worst_all.sentence
    assert summary.to_dict()["calibration_error"]["certified"] is None


def test_the_all_samples_value_with_nothing_certified_is_the_limit_of_few_certified_samples():
    few = np.zeros(N, bool)
    few[0] = True
    almost, none = (certify(LOWER, UPPER, CORRECT, certified=mask) for mask in (few, np.zeros(N, bool)))
    for key in ("brier_score", "calibration_error", "ks_error"):
        assert almost[key].worst_all.value <= none[key].worst_all.value <= almost[key].worst_all.value + 2 / N


def test_failing_certificates_are_paid_for_with_a_bound_on_the_certified_share():
    sure = certify(LOWER, UPPER, CORRECT, certified=CERTIFIED)
    summary = certify(LOWER, UPPER, CORRECT, certified=CERTIFIED, alpha=0.01, delta=0.05)
    share = float(summary.population.settings["certified_fraction"])
    assert share < CERTIFIED.mean()
    assert summary.population.terms["certificate failures"] >= 0.02 / CERTIFIED.mean()
    assert summary.population.delta == 0.05
    assert summary.population.value > sure.population.value + 0.02
    assert summary.population_all.terms["certificate failures"] == 0.02
    assert "95% sure" in summary.population.sentence
    # A hundredth of delta went to the share, so the deviation is that of the rest.
    worst = summary["calibration_error"].worst
    assert summary.population.terms["deviation"] == population_bound(worst, 0.05 - 0.0005).terms["deviation"]


@pytest.mark.parametrize(("count", "n", "level"), [(1, 5, 0.004), (30, 40, 0.001), (40, 40, 5e-4), (700, 1000, 0.001)])
def test_the_certified_share_is_bounded_by_clopper_and_pearson(count, n, level):
    mask = np.arange(n) < count
    bound = certify(np.zeros(n), np.ones(n), np.ones(n), certified=mask, alpha=0.01, delta=100 * level).population
    share = 0.02 / bound.terms["certificate failures"]
    assert binom.sf(count - 1, n, share) == pytest.approx(level, rel=1e-6)
    assert binom.sf(count - 1, n, share) <= level * (1 + 1e-9)
    assert binom.sf(count - 1, n, share * 1.01) > level


def test_every_claim_has_a_sentence_and_a_safe_text():
    summary = certify(LOWER, UPPER, CORRECT, certified=CERTIFIED)
    claims = list(summary.claims())
    assert len(claims) == 1 + 5 + 2 * len(METRICS) + 2
    assert summary.sentences == tuple(in_full(claim) for _, _, claim in claims)
    assert len(set(summary.sentences)) == len(claims)
    for key, _, claim in claims:
        below = key in ("certified_accuracy", "certified_skill", "certified_best_skill", "certified_resolution")
        assert float(claim.text) <= claim.value + 1e-15 if below else float(claim.text) >= claim.value
        assert claim.text.replace("-", "−") in claim.sentence
        assert claim.sentence.endswith(".")


def test_the_dictionary_is_plain_and_holds_both_conventions_side_by_side():
    summary = certify(LOWER, UPPER, CORRECT, certified=CERTIFIED)
    document = summary.to_dict()
    assert json.loads(json.dumps(document)) == document
    for key in METRICS:
        assert document[key]["certified"]["value"] == summary[key].worst.value
        assert document[key]["all"]["value"] == summary[key].worst_all.value
        assert {"value", "text", "sentence"} <= document[key]["certified"].keys()
    assert document["calibration_error"]["lowest"]["value"] <= document["calibration_error"]["lowest"]["reached"]
    assert document["mce"]["lowest"] is None
    assert document["population_bound"]["certified"]["text"] == summary.population.text
    assert document["headline"] == summary["calibration_error"].worst.sentence


def test_a_summary_cannot_be_changed():
    summary = certify([0.24999], [0.5], [1])
    with pytest.raises(TypeError):
        summary.ranges["ece"] = summary["mce"]
    with pytest.raises(AttributeError):
        summary.n = 3
    assert repr(summary) == "CertifiedSummary(n=1, n_certified=1, certified_accuracy=1.0000, calibration_error=0.7501)"


@pytest.mark.parametrize("mask", [None, CERTIFIED, np.zeros(N)], ids=["all", "some", "none"])
def test_a_summary_can_be_copied_and_sent_to_another_process(mask):
    summary = certify(LOWER, UPPER, CORRECT, certified=mask, alpha=0.01)
    for other in (copy.deepcopy(summary), pickle.loads(pickle.dumps(summary))):
        assert json.dumps(other.to_dict()) == json.dumps(summary.to_dict())
        assert repr(other) == repr(summary)
        for key in METRICS:
            np.testing.assert_array_equal(other[key].worst_all.witness, summary[key].worst_all.witness)
        with pytest.raises(TypeError):
            other.settings["bins"] = 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 1.0}, "alpha is 1.0"),
        ({"alpha": "x"}, "alpha is 'x'; pass a probability"),
        ({"alpha": "x", "certified": [1, 0]}, "alpha is 'x'"),
        ({"alpha": -0.1, "certified": [1, 0]}, "alpha is -0.1"),
    ],
)
def test_what_cannot_be_used_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        certify([0.1, 0.2], [0.3, 0.4], [1, 0], **arguments)
