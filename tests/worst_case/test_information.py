"""What of the information in confidences survives: the parts of the certified Brier score, and the words for them."""

import copy
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from certcal.calibrators import CertifiedIsotonic
from certcal.metrics import top_label_brier_score
from certcal.worst_case import brier_score, certify, information
from tests.worst_case.naive import best_map, brier_parts, feasible, instance, problem, problems, worst_places

TINY = 1e-12


def parts(found):
    return found.miscalibration, found.resolution, found.uncertainty


def point_resolution(z, correct):
    """The resolution of confidences that nobody perturbs."""
    return brier_parts(problem(z, z, correct))[1]


def of(p):
    return information(*p.arguments)


SURE = ([0.75, 0.75, 0.25, 0.125], [1, 1, 0.5, 0.25], [1, 1, 0, 0])  # worth something as they are
SHY = ([0.5, 0.5, 0.1, 0.3], [0.9, 0.7, 0.4, 0.6], [1, 1, 0, 0])  # only a map makes them worth something
WIDE = ([0.0] * 4, [1.0] * 4, [1, 1, 0, 0])


@given(problems())
@settings(max_examples=50)
def test_the_parts_are_those_of_the_definition_and_moved_to_their_safe_sides(p):
    miscalibration, resolution, uncertainty = parts(of(p))
    exact = brier_parts(p)
    assert 0 <= Fraction(miscalibration.value) - exact[0] < TINY
    assert 0 <= exact[1] - Fraction(resolution.value) < TINY
    assert 0 <= Fraction(uncertainty.value) - exact[2] < TINY
    assert (resolution.value == 0) == (exact[1] == 0)


@pytest.mark.parametrize("right", [(49_999, 50_000), (49_998, 50_001)])
def test_a_resolution_that_is_next_to_nothing_is_told_from_none(right):
    """99,999 and 100,001 samples at two confidences whose shares of correct ones may differ by one in 10¹⁰."""
    sizes = (99_999, 100_001)
    z = np.repeat([0.4, 0.6], sizes)
    correct = np.concatenate([np.arange(m) < k for m, k in zip(sizes, right, strict=True)])
    exact = (
        Fraction(sizes[0] * sizes[1], sum(sizes) ** 2)
        * (Fraction(right[1], sizes[1]) - Fraction(right[0], sizes[0])) ** 2
    )
    found = information(z, z, correct)
    assert found.finding == "after a map"
    assert exact * (1 - Fraction(1, 10**9)) <= Fraction(found.resolution.value) <= exact
    assert information(1 - z, 1 - z, correct).finding == "nothing"
    same = np.arange(2 * 99_999) % 99_999 < 7
    assert information(z[: same.size], z[: same.size], same).finding == "nothing"


@given(problems())
def test_the_certified_brier_score_is_miscalibration_minus_resolution_plus_uncertainty(p):
    found = of(p)
    miscalibration, resolution, uncertainty = (part.value for part in parts(found))
    total = miscalibration - resolution + uncertainty
    assert found.brier <= total + 1e-15
    assert total == pytest.approx(found.brier, abs=TINY)
    assert brier_score(*p.arguments).value == found.brier
    assert min(miscalibration, resolution, uncertainty) >= 0


@pytest.mark.parametrize("seed", range(40))
def test_the_best_map_is_the_solution_of_a_quadratic_program(seed):
    p = instance(seed, n=25)
    places = worst_places(p)
    distinct = sorted(set(places))
    # A non-decreasing map is its first value plus steps that are not negative.
    steps = np.tril(np.ones((len(distinct), len(distinct))))[[distinct.index(x) for x in places]]
    lowest = np.r_[-np.inf, np.zeros(len(distinct) - 1)]
    solved = lsq_linear(steps, p.correct.astype(float), (lowest, np.inf), tol=1e-14)
    least = 2 * solved.cost / p.n
    found = of(p)
    assert found.uncertainty.value - found.resolution.value == pytest.approx(least, abs=1e-8)


@given(problems(), st.integers(0, 10_000))
@settings(max_examples=50)
def test_no_monotone_map_is_certified_to_be_better_than_the_best_one(p, seed):
    rng = np.random.default_rng(seed)
    knots = int(rng.integers(1, 12))
    steps, heights = np.sort(rng.random(knots)).round(int(rng.integers(1, 4))), np.sort(rng.random(knots + 1))
    if seed % 2:  # around the best one, where a mistake would show first
        best = best_map(worst_places(p), p.correct.tolist())
        steps = np.array([float(x) for x in best])
        near = np.array([0.0, *map(float, best.values())]) + rng.normal(0, 0.02, len(best) + 1)
        heights = np.maximum.accumulate(np.clip(near, 0, 1))
    lower, upper = (heights[np.searchsorted(steps, ends, side="right")] for ends in (p.lower, p.upper))
    found = of(p)
    assert brier_score(lower, upper, p.correct).value >= found.uncertainty.value - found.resolution.value - TINY


@given(problems(), st.integers(0, 10_000))
@settings(max_examples=50)
def test_the_certified_resolution_is_the_least_of_any_confidences_inside_the_intervals(p, seed):
    certified = Fraction(of(p).resolution.value)
    assert point_resolution(feasible(p, seed), p.correct) >= certified
    there = np.where(p.correct == 1, p.lower, p.upper)
    assert point_resolution(there, p.correct) - certified < TINY


def test_the_best_skill_is_reached_by_certified_recalibration_on_the_samples_it_is_fitted_to():
    rng = np.random.default_rng(2)
    z = rng.random(300)
    correct = (rng.random(300) < z**2).astype(int)
    lower, upper = np.clip(z - 0.05, 0, 1), np.clip(z + 0.05, 0, 1)
    found = information(lower, upper, correct)
    best = CertifiedIsotonic(tradeoff=1).fit(lower, upper, correct)
    after = information(*best.intervals(lower, upper), correct)
    assert found.skill.value < found.best_skill.value - 0.02
    assert after.skill.value == pytest.approx(found.best_skill.value, abs=1e-9)
    assert after.resolution.value == pytest.approx(found.resolution.value, abs=1e-9)
    assert after.miscalibration.value == pytest.approx(0, abs=1e-9)


@given(problems())
def test_strictly_monotone_maps_of_the_intervals_leave_resolution_as_it_is(p):
    ends = np.unique(np.concatenate([p.lower, p.upper]))
    ranks = [(np.searchsorted(ends, each) / ends.size) ** 2 for each in (p.lower, p.upper)]
    found, mapped = of(p), information(*ranks, p.correct)
    assert mapped.resolution.value == found.resolution.value
    assert mapped.best_skill.text == found.best_skill.text


@given(problems(), st.randoms())
def test_wider_intervals_never_have_more_resolution_and_order_and_type_do_not_matter(p, random):
    found = of(p)
    wider = information(p.lower * random.random(), np.clip(p.upper + random.random() / 4, 0, 1), p.correct)
    assert wider.resolution.value <= found.resolution.value + TINY
    order = list(range(p.n))
    random.shuffle(order)
    shuffled = of(p.select(order))
    assert shuffled.resolution.value == found.resolution.value
    assert shuffled.miscalibration.value == pytest.approx(found.miscalibration.value, abs=TINY)
    single = p.lower.astype(np.float32), p.upper.astype(np.float32)
    doubled = information(*(each.astype(np.float64) for each in single), p.correct)
    assert information(*single, p.correct).resolution == doubled.resolution


def test_only_certified_samples_count():
    lower, upper, correct = (np.array(each, float) for each in SURE)
    more = np.r_[lower, np.nan, 0.9], np.r_[upper, np.nan, 0.1], np.r_[correct, 0, 1]
    assert information(*more, certified=[1, 1, 1, 1, 0, 0]) == information(*SURE)
    assert certify(*more, certified=[1, 1, 1, 1, 0, 0]).information == information(*SURE)


def test_every_text_is_rounded_to_its_own_side_by_less_than_one_step():
    for seed in range(42):
        p = instance(seed, n=14)
        exact = dict(zip(("miscalibration", "resolution", "uncertainty"), brier_parts(p), strict=True))
        found = of(p)
        for name, value in exact.items():
            claim = found.values[name]
            up = claim.side == "upper"
            assert up == (name != "resolution")
            off = Fraction(claim.text) - value if up else value - Fraction(claim.text)
            assert 0 <= off < Fraction(1, 10_000) + Fraction(1, 10**11)
        if found.finding != "undefined":
            best = exact["resolution"] / exact["uncertainty"]
            skill = 1 - (exact["miscalibration"] - exact["resolution"] + exact["uncertainty"]) / exact["uncertainty"]
            for claim, value in ((found.best_skill, best), (found.skill, skill)):
                assert 0 <= value - Fraction(claim.text) < Fraction(1, 10_000) + Fraction(1, 10**9)
                assert 0 <= value - Fraction(claim.value) < Fraction(1, 10**9)


def test_uncertainty_is_not_printed_above_what_it_is_exactly():
    assert information([0.5] * 4, [0.5] * 4, [1, 1, 0, 0]).uncertainty.text == "0.2500"
    assert information([0.5] * 10, [0.5] * 10, [1] + [0] * 9).uncertainty.text == "0.0900"
    assert information([0.5] * 3, [0.5] * 3, [1, 0, 0]).uncertainty.text == "0.2223"


# ------------------------------------------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize("n", [2, 3, 10, 1001])
def test_intervals_from_0_to_1_carry_no_information_that_survives(n):
    correct = np.arange(n) % 2
    found = certify(np.zeros(n), np.ones(n), correct).information
    assert (found.finding, found.resolution.value, found.best_skill.value) == ("nothing", 0, 0)
    assert found.resolution.text == found.best_skill.text == "0.0000"
    assert found.verdict_at("0.5") == (
        "At radius 0.5, these confidences carry no information that is certified to survive the attack: on these "
        f"{n} certified samples no non-decreasing map of them is certified to beat one constant confidence."
    )
    assert found.verdict.startswith("Inside the given intervals, these confidences carry no information")
    assert "attack" not in found.verdict


def test_one_constant_confidence_carries_no_information_and_neither_do_confidences_in_the_wrong_order():
    assert information([0.3] * 5, [0.3] * 5, [1, 0, 1, 0, 0]).finding == "nothing"
    upside_down = information([0.2, 0.8], [0.2, 0.8], [1, 0])
    assert upside_down.finding == "nothing"
    assert "no non-decreasing map" in upside_down.verdict


def test_equal_shares_of_correct_samples_everywhere_are_no_information_to_the_last_bit():
    # Three of seven are correct at every one of 999 places: sums of rounded means would leave something above 0.
    places = np.repeat(np.linspace(0, 1, 999), 7)
    found = information(places, places, np.tile([1, 1, 1, 0, 0, 0, 0], 999))
    assert (found.finding, found.resolution.value) == ("nothing", 0)


def test_what_only_a_map_brings_out_is_said_to_be_fitted_to_these_very_samples():
    found = information(*SHY)
    assert (found.finding, found.skill.text, found.best_skill.text) == ("after a map", "-0.0201", "0.3333")
    assert found.verdict_at("0.25") == (
        "At radius 0.25, these confidences are not certified to beat one constant confidence on these 4 certified "
        "samples. The best non-decreasing map of them is, with a certified skill of at least 0.3333; but it is fitted "
        "to these very samples, so expect less on others. certcal recalibrate fits such a map to one part of the "
        "samples and judges it on the rest."
    )


def test_what_survives_as_it_is_is_said_with_both_skills():
    found = information(*SURE)
    assert found.finding == "as they are"
    assert 0 < found.skill.value < found.best_skill.value
    assert found.verdict == (
        "Inside the given intervals, these confidences carry information that is certified to survive: on these 4 "
        f"certified samples they beat every constant confidence, with a certified skill of at least {found.skill.text}."
        " The best non-decreasing map of them, fitted to these very samples, has at least "
        f"{found.best_skill.text}; expect less of it on others."
    )


@given(st.integers(1, 20), st.floats(0, 1), st.integers(0, 10_000))
def test_confidences_that_survive_as_they_are_beat_every_constant_wherever_they_are(pairs, constant, seed):
    rng = np.random.default_rng(seed)
    correct = np.tile([1, 0], pairs)
    ends = np.sort(np.where(correct == 1, 0.55, 0) + 0.45 * rng.random((2, 2 * pairs)), axis=0)
    p = problem(*ends, correct)
    assert of(p).finding == "as they are"
    score = top_label_brier_score(feasible(p, seed), p.correct)
    assert score < top_label_brier_score(np.full(p.n, constant), p.correct)


@pytest.mark.parametrize(("correct", "words"), [(1, "correct: the constant confidence 1"), (0, "wrong: the constant")])
@pytest.mark.parametrize("n", [1, 3])
def test_samples_that_are_all_alike_leave_nothing_to_know(correct, words, n):
    found = information([0.25] * n, [0.75] * n, [correct] * n)
    assert found.finding == "undefined"
    who = f"all {n} certified samples are" if n > 1 else "the one certified sample is"
    assert f"{who} {words}" in found.verdict_at("1")
    assert (found.resolution.value, found.uncertainty.text) == (0, "0.0000")
    assert found.miscalibration.value == pytest.approx(0.5625, abs=TINY)
    for skill in (found.skill, found.best_skill):
        assert math.isnan(skill.value)
        assert skill.text == "undefined"
        assert f"all {n} are" in skill.sentence


def test_nothing_certified_is_said_and_nothing_is_claimed():
    found = information([0.25, 0.5], [0.75, 1], [1, 0], certified=[0, 0])
    assert (found.n, found.right, found.brier, found.finding) == (0, 0, None, "undefined")
    assert found.verdict_at("2") == (
        "At radius 2, no sample is certified, so no information is certified to survive the attack."
    )
    assert {value.text for value in found.values.values()} == {"undefined"}
    assert all("no sample is certified" in value.sentence for value in found.values.values())


# --------------------------------------------------------------------------------------------------------------- forms


@pytest.mark.parametrize("given_", [SURE, SHY, WIDE], ids=["sure", "shy", "wide"])
def test_the_dictionary_is_plain_and_says_what_the_summary_says(given_):
    found, summary = information(*given_), certify(*given_)
    document = found.to_dict()
    assert json.loads(json.dumps(document)) == document
    whole = summary.to_dict()
    assert whole["information"] == {"finding": found.finding, "verdict": found.verdict}
    assert document["verdict"] == found.verdict
    for name, value in found.values.items():
        assert document[name] == whole[f"certified_{name}"] == value.to_dict()
        assert document[name]["side"] == ("lower" if name in ("skill", "best_skill", "resolution") else "upper")
        assert value.text.replace("-", "−") in value.sentence
    assert summary.skill == found.skill
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert other == found


def test_notebooks_show_the_verdict_and_every_part():
    found = information(*SHY)
    for html in (found._repr_html_(), certify(*SHY)._repr_html_()):
        assert found.verdict in html
        assert found.best_skill.text in html
    assert found.miscalibration.text in found._repr_html_()
