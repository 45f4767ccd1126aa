"""Claims: what each number says, rounded in the safe direction, with nothing spent twice."""

import copy
import dataclasses
import json
import math
import pickle
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certcal
from certcal import InputError
from certcal._base.rounding import sure_text
from certcal.claims import Bound, Certificate, Estimate, Interval, Ledger, move_outward, round_outward

finite = st.floats(allow_nan=False, allow_infinity=False)
probabilities = st.floats(0, 1, exclude_min=True, exclude_max=True)
sides = st.sampled_from(["upper", "lower"])


def an_estimate(**more):
    return Estimate("ece", 0.0398, 10_000, {"bins": 15}, **more)


def a_bound(value=0.08121, side="upper", delta=0.05, **more):
    return Bound("ece", value, side, delta, 1000, ("samples are independent",), **more)


def a_certificate(value=0.29853, side="upper", radius=0.5, budget=0.001, **more):
    ledger = Ledger(budget).split(prediction=1, band=1)
    return Certificate("calibration error", value, side, radius, ledger, 500, ("noise is exactly Gaussian",), **more)


CLAIMS = [an_estimate(interval=Interval(0.03, 0.05, 0.95, "percentile")), a_bound(), a_certificate()]
each_claim = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: type(claim).__name__)


# ------------------------------------------------------------------------------------------------------------- rounding


@given(finite, sides, st.integers(0, 12))
def test_printed_numbers_are_on_the_safe_side_and_within_one_unit(value, side, digits):
    text = Decimal(round_outward(value, side, digits))
    distance = Fraction(text) - Fraction(value) if side == "upper" else Fraction(value) - Fraction(text)
    assert 0 <= distance < Fraction(1, 10**digits)


@given(st.floats(0, 1), sides)
def test_numbers_that_need_no_rounding_are_printed_as_they_are(value, side):
    exact = round(value * 1024) / 1024
    assert Fraction(round_outward(exact, side, 10)) == Fraction(exact)


@given(finite, sides, st.integers(0, 12))
def test_printed_numbers_have_the_digits_asked_for_and_no_minus_zero(value, side, digits):
    text = round_outward(value, side, digits)
    assert "e" not in text.lower()
    assert len(text.partition(".")[2]) == digits
    assert Fraction(text) != 0 or not text.startswith("-")


@pytest.mark.parametrize(
    ("value", "side", "text"),
    [
        (0.1, "upper", "0.1001"),  # this float is above one tenth
        (0.1, "lower", "0.1000"),
        (0.3, "lower", "0.2999"),  # and this one below three tenths
        (0.3, "upper", "0.3000"),
        (1.0, "lower", "1.0000"),
        (0.0, "upper", "0.0000"),
        (5e-324, "upper", "0.0001"),
        (5e-324, "lower", "0.0000"),
        (-1e-9, "upper", "0.0000"),
        (-1e-9, "lower", "-0.0001"),
        (0.99999, "upper", "1.0000"),
        (math.inf, "upper", "inf"),
    ],
)
def test_the_decimal_is_compared_with_the_float_in_memory_not_with_what_was_typed(value, side, text):
    assert round_outward(value, side) == text


@given(finite.filter(lambda value: abs(value) < 1e300), sides, st.sampled_from([2.0**-52, 1e-12, 1e-6]))
def test_moving_outward_leaves_at_least_the_room_asked_for(value, side, relative):
    moved = move_outward(value, side, relative)
    distance = Fraction(moved) - Fraction(value) if side == "upper" else Fraction(value) - Fraction(moved)
    assert distance > 0
    assert distance >= abs(Fraction(value)) * Fraction(relative)


@given(finite.filter(lambda value: abs(value) < 1e300), sides)
def test_moving_outward_moves_by_little(value, side):
    assert abs(move_outward(value, side) - value) <= 4 * math.ulp(value)


@pytest.mark.parametrize("call", [round_outward, move_outward])
def test_a_side_that_is_neither_upper_nor_lower_is_refused(call):
    with pytest.raises(InputError, match="side is 'up'; pass one of 'upper', 'lower'"):
        call(0.5, "up")


# --------------------------------------------------------------------------------------------------------------- ledger


@given(probabilities, st.lists(probabilities, max_size=8))
def test_a_ledger_never_spends_more_than_its_budget_and_refuses_what_would(budget, alphas):
    ledger, exact = Ledger(budget), Fraction(0)
    for number, alpha in enumerate(alphas):
        if exact + Fraction(alpha) > Fraction(budget):
            with pytest.raises(InputError, match=r"spends .* of a budget of .*; spend less"):
                ledger.spend(f"part {number}", alpha)
        else:
            ledger, exact = ledger.spend(f"part {number}", alpha), exact + Fraction(alpha)
    assert sum(Fraction(alpha) for _, alpha in ledger.entries) == exact <= Fraction(budget)
    assert exact <= Fraction(ledger.spent) <= Fraction(math.nextafter(float(exact), math.inf))
    assert 0 <= Fraction(ledger.remaining) <= Fraction(budget) - exact


@given(st.floats(1e-12, 0.5), st.lists(st.floats(0.01, 100), min_size=1, max_size=6))
def test_splitting_spends_all_that_remains_in_proportion_and_not_one_bit_more(budget, shares):
    ledger = Ledger(budget).spend("first", budget / 3).split(**{f"s{k}": share for k, share in enumerate(shares)})
    total = sum(Fraction(alpha) for _, alpha in ledger.entries)
    assert total <= Fraction(budget)
    assert total >= Fraction(budget) * (1 - Fraction(1, 10**12))
    rest = Fraction(budget) - Fraction(budget / 3)
    for (_, alpha), share in zip(ledger.entries[1:], shares, strict=True):
        assert Fraction(alpha) <= rest * Fraction(share) / sum(map(Fraction, shares))


def test_ten_times_a_tenth_of_the_budget_is_judged_exactly():
    # 0.1 as a float is above one tenth of 1.0 - 2**-53: floats would add up to the budget, the exact sum does not.
    ledger = Ledger(math.nextafter(1.0, 0.0))
    for number in range(9):
        ledger = ledger.spend(f"part {number}", 0.1)
    with pytest.raises(InputError, match="spend less"):
        ledger.spend("part 9", 0.1)


def test_a_ledger_is_not_changed_by_spending_from_it():
    ledger = Ledger(0.01)
    ledger.spend("prediction", 0.005)
    assert ledger.entries == ()
    assert ledger.remaining == 0.01


@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.0, 2.0, math.nan, math.inf])
def test_what_is_spent_must_be_a_probability(alpha):
    with pytest.raises(InputError, match="pass a probability between 0 and 1"):
        Ledger(0.5).spend("part", alpha)
    with pytest.raises(InputError, match=r"budget is .*; pass a probability between 0 and 1"):
        Ledger(alpha)
    with pytest.raises(InputError, match=r"delta is .*; pass a probability between 0 and 1"):
        a_bound(delta=alpha)


def test_nothing_can_be_split_from_an_empty_rest_or_with_no_shares():
    with pytest.raises(InputError, match="nothing can be split"):
        Ledger(0.5).spend("all", 0.5).split(more=1)
    with pytest.raises(InputError, match="nothing can be split"):
        Ledger(0.5).split()
    with pytest.raises(InputError):
        Ledger(0.5).split(one=2, other=-1)


def test_what_a_ledger_writes_adds_up_to_what_it_says_it_spent_also_when_a_name_comes_twice():
    written = json.loads(json.dumps(Ledger(0.5).spend("band", 0.125).spend("band", 0.25).to_dict()))
    entries = written["entries"]
    alphas = entries.values() if isinstance(entries, dict) else [entry[-1] for entry in entries]
    assert sum(alphas) == written["spent"] == 0.375
    assert written["budget"] == 0.5


# --------------------------------------------------------------------------------------------------------------- claims


@each_claim
def test_claims_cannot_be_changed(claim):
    with pytest.raises(dataclasses.FrozenInstanceError):
        claim.value = 0.0
    with pytest.raises(TypeError):
        claim.settings["bins"] = 3
    assert claim.settings == {"bins": 15} if isinstance(claim, Estimate) else claim.settings == {}


def test_settings_given_to_a_claim_are_its_own():
    settings, terms = {"bins": 15}, {"deviation": 0.01}
    estimate = Estimate("ece", 0.1, 5, settings)
    bound = a_bound(terms=terms)
    settings["bins"] = 3
    terms["deviation"] = 0.0
    assert estimate.settings["bins"] == 15
    assert bound.terms["deviation"] == 0.01


@each_claim
def test_claims_take_no_part_in_arithmetic_and_only_an_estimate_is_a_number(claim):
    for convert in (int,) if isinstance(claim, Estimate) else (float, int, complex):
        with pytest.raises(TypeError):
            convert(claim)
    with pytest.raises(TypeError):
        claim + 1


def test_claims_of_different_types_are_never_equal():
    for one in CLAIMS:
        for other in CLAIMS:
            assert (one == other) == (one is other)


def test_claims_are_reachable_from_the_package():
    assert (certcal.Estimate, certcal.Bound, certcal.Certificate) == (Estimate, Bound, Certificate)


@each_claim
def test_claims_can_be_copied_and_sent_to_another_process(claim):
    assert pickle.loads(pickle.dumps(claim)) == claim
    assert copy.deepcopy(claim) == claim


@each_claim
def test_claims_become_json_with_their_type_and_sentence(claim):
    back = json.loads(json.dumps(claim.to_dict()))
    assert back["type"] == type(claim).__name__.lower()
    assert back["sentence"] == claim.sentence
    assert back["value"] == claim.value
    assert back["n"] == claim.n
    assert back["name"] == claim.name


def test_an_estimate_says_that_it_guarantees_nothing():
    assert an_estimate().sentence == "ece (bins=15) is 0.03980 on these 10000 samples; an estimate, not a guarantee."


def test_an_interval_is_said_to_show_resampling_and_promises_no_level_in_the_sentence_nor_in_json():
    estimate = an_estimate(interval=Interval(0.03, 0.05, 0.95, "percentile"))
    assert estimate.sentence == (
        "ece (bins=15) is 0.03980 on these 10000 samples, 95% percentile bootstrap interval 0.02999 to 0.05001 "
        "(resampling variability); an estimate, not a guarantee."
    )
    assert estimate.to_dict()["interval"] == {"lower": 0.03, "upper": 0.05, "level": 0.95, "method": "percentile"}


@given(st.floats(0, 1), sides)
def test_bounds_and_certificates_print_their_value_rounded_outward(value, side):
    relation = "at most" if side == "upper" else "at least"
    for claim in (a_bound(value, side), a_certificate(value, side)):
        assert re.search(rf"is {relation} {re.escape(round_outward(value, side))}[: ]", claim.sentence)
        assert claim.to_dict()["text"] == claim.text == round_outward(value, side)


@given(probabilities)
def test_a_bound_never_claims_more_probability_than_it_has(delta):
    text = a_bound(delta=delta).sentence.partition(": ")[2].partition("% sure")[0]
    assert 0 <= Decimal(text) < 100
    assert Fraction(text) <= 100 * (1 - Fraction(repr(delta))) or delta < 1e-12


@given(st.floats(0.5, 1, exclude_min=True, exclude_max=True))
def test_the_level_of_an_interval_is_never_rounded_up(level):
    interval = Interval(0.03, 0.05, level, "bca")
    said = Estimate("ece", 0.04, 1000, {}, interval).sentence.split("samples, ")[1].split("%")[0]
    assert Decimal(repr(level)) * 100 - Decimal("0.0001") < Decimal(said) <= Decimal(repr(level)) * 100


@pytest.mark.parametrize(
    ("delta", "text"),
    [(0.05, "95%"), (0.5, "50%"), (0.1, "90%"), (0.001, "99.9%"), (1e-6, "99.9999%"), (0.0512, "94.88%")],
)
def test_levels_are_printed_as_people_write_them_and_rounded_down(delta, text):
    assert f": {text} sure, for samples drawn like these 1,000." in a_bound(delta=delta).sentence


def test_a_bound_lists_its_assumptions_and_terms():
    bound = Bound("ece", 0.1, "upper", 0.05, 10, ("one", "two"), {"deviation": 0.04})
    assert bound.statement == f"{bound.sentence} Assumptions: one; two."
    assert str(bound).splitlines() == [bound.sentence, "Assumptions:", "- one", "- two"]
    assert bound.to_dict()["terms"] == {"deviation": 0.04}
    assert bound.to_dict()["assumptions"] == ["one", "two"]
    free = Bound("ece", 0.1, "upper", 0.05, 10, (), settings={"bins": 15})
    assert free.statement == f"{free.sentence} Settings: bins=15."
    assert str(free).splitlines() == [free.sentence, "Settings: bins=15"]


@given(st.floats(0, 1e6), st.floats(1e-12, 0.5))
def test_a_certificate_prints_its_radius_rounded_down_and_its_alpha_rounded_up(radius, budget):
    certificate = a_certificate(radius=radius, budget=budget)
    words = certificate.sentence
    printed = Fraction(words.partition("norm up to ")[2].split(",")[0])
    assert printed <= Fraction(repr(radius))
    assert printed >= Fraction(radius) * (1 - Fraction(1, 10**5))
    sure = Fraction(words.rpartition(", ")[2].removesuffix("% sure."))
    alpha, spent = 1 - sure / 100, certificate.ledger.spent
    assert alpha >= Fraction(repr(spent))
    assert alpha <= Fraction(spent) * Fraction(112, 100)


def test_a_claim_of_nothing_is_refused():
    with pytest.raises(InputError, match="the bound on ece is NaN"):
        a_bound(value=math.nan)
    with pytest.raises(InputError, match="radius >= 0"):
        a_certificate(value=math.nan)
    with pytest.raises(InputError, match="radius >= 0"):
        a_certificate(radius=-0.1)
    with pytest.raises(InputError, match="radius >= 0"):
        a_certificate(radius=math.nan)
    for make in (a_bound, a_certificate):
        with pytest.raises(InputError, match="side is 'both'"):
            make(side="both")


SMALL, LARGE = Estimate("ece", 0.04, 10, {"bins": [5, 15]}), Estimate("mce", 0.2, 10)


@pytest.mark.parametrize("number", [0.05, np.float32(0.05), np.float64(0.05), Decimal("0.05"), Fraction(1, 20), 1])
def test_an_estimate_is_ordered_like_its_value(number):
    found, limit = [SMALL, number]
    assert found < limit
    assert found <= limit
    assert not found > limit
    assert not found >= limit
    assert limit > found


def test_estimates_are_sorted_by_value_and_nan_is_never_smaller():
    assert [each.name for each in sorted([LARGE, SMALL])] == ["ece", "mce"]
    assert max(SMALL, LARGE) is LARGE
    nothing = Estimate("ece", float("nan"), 10)
    assert not nothing < 1
    assert not nothing >= 0


def test_an_estimate_converts_rounds_and_formats_like_its_value():
    assert (float(SMALL), round(SMALL, 1), round(LARGE), f"{SMALL:.1%}") == (0.04, 0.0, 0, "4.0%")
    assert f"{SMALL}" == str(SMALL)
    assert np.asarray([SMALL, LARGE]).tolist() == [0.04, 0.2]
    assert np.asarray(SMALL, np.float32).dtype == np.float32
    assert (np.array([0.01, 0.1]) > SMALL).tolist() == [False, True]


def test_an_estimate_equals_the_same_estimate_and_no_number():
    again = Estimate("ece", 0.04, 10, {"bins": [5, 15]})
    assert again == SMALL
    assert len({SMALL, again, LARGE}) == 2
    assert SMALL != 0.04
    assert Estimate("mce", 0.04, 10, {"bins": [5, 15]}) != SMALL


def test_a_bound_answers_what_it_shows_and_refuses_what_it_cannot():
    upper, lower = (Bound("ece", 0.08, side, 0.05, 10, ()) for side in ("upper", "lower"))
    assert upper <= 0.08
    assert not upper < 0.08
    assert not upper <= np.float64(0.05)
    assert upper < 0.1
    assert lower >= 0.08
    assert not lower > 0.08
    assert lower > 0.05
    for refused in (lambda: upper > 0.05, lambda: upper >= 0.05, lambda: lower < 0.1, lambda: lower <= 0.1):
        with pytest.raises(TypeError, match=r"cannot show that it is (above|below) a number; compare this claim by"):
            refused()
    certificate = Certificate("ece", 0.3, "upper", 0.5, Ledger(0.01).split(band=1), 10, ())
    assert certificate < 0.5
    with pytest.raises(TypeError, match=r"at most 0\.3000, which cannot show"):
        assert certificate > 0.1


@pytest.mark.parametrize("other", [SMALL, "0.05", None, Bound("ece", 0.9, "upper", 0.05, 10, ())])
def test_claims_of_different_types_have_no_order_and_a_bound_is_no_number(other):
    bound = Bound("ece", 0.08, "upper", 0.05, 10, ())
    with pytest.raises(TypeError, match="not supported"):
        assert bound < other
    with pytest.raises(TypeError, match="not supported"):
        assert other > bound
    with pytest.raises(TypeError, match="must be a string or a real number"):
        float(bound)


def test_bounds_with_the_same_fields_are_one_in_a_set():
    assert len({Bound("ece", 0.08, "upper", 0.05, 10, ()), Bound("ece", 0.08, "upper", 0.05, 10, ())}) == 1


@given(st.floats(1e-300, 1, exclude_max=True))
def test_nothing_is_said_to_be_surer_than_it_is(failure):
    said = Decimal(sure_text(failure).removesuffix("% sure"))
    assert 0 <= said < 100
    assert said <= 100 * (1 - Decimal(repr(failure))) or failure < 1e-12
    # In so many digits that little of it is lost.
    assert 100 - said <= Decimal(112) * max(Decimal(repr(failure)), Decimal("1e-12"))
