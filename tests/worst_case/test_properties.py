"""What must hold of the worst case for any intervals, correctness and bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal.metrics import ece, ks_error, mce
from certcal.worst_case import SignProgram, calibration_error
from certcal.worst_case import ks_error as worst_ks_error
from certcal.worst_case import mce as worst_mce
from tests.worst_case import naive

ROUNDING = 1e-12
# Witnesses are a float away from the open end of a bin, bin sums are rounded to 2**-50.
ATTAINED = 1e-9

problem = naive.problems()
share = st.floats(0, 1)


def value(p: naive.Problem) -> float:
    return calibration_error(*p.arguments, **p.options).value


def with_ends(p: naive.Problem, lower: np.ndarray, upper: np.ndarray) -> naive.Problem:
    return naive.Problem(lower, upper, p.correct, p.edges, p.closed)


def shares(p: naive.Problem, data: st.DataObject) -> np.ndarray:
    return np.array(data.draw(st.lists(share, min_size=p.n, max_size=p.n)))


@given(problem)
def test_the_value_is_that_of_enumeration_and_attained(p: naive.Problem) -> None:
    result = calibration_error(*p.arguments, **p.options)
    assert result.value == pytest.approx(naive.worst_by_signs(p), abs=ROUNDING)
    assert ((result.witness >= p.lower) & (result.witness <= p.upper)).all()
    assert ece(result.witness, p.correct, **p.options) == pytest.approx(result.value, abs=ATTAINED)


@given(problem, st.data())
def test_the_value_is_between_the_plain_error_of_any_feasible_confidences_and_one(
    p: naive.Problem, data: st.DataObject
) -> None:
    z = np.clip(p.lower + shares(p, data) * (p.upper - p.lower), p.lower, p.upper)
    assert ece(z, p.correct, **p.options) - ROUNDING <= value(p) <= 1 + ROUNDING


@given(problem, st.data())
def test_wider_intervals_never_lower_a_worst_case(p: naive.Problem, data: st.DataObject) -> None:
    wider = with_ends(p, p.lower * shares(p, data), p.upper + shares(p, data) * (1 - p.upper))
    assert value(wider) >= value(p) - ROUNDING
    assert worst_ks_error(*wider.arguments).value >= worst_ks_error(*p.arguments).value - ROUNDING
    most, least = worst_mce(*wider.arguments, **p.options).value, worst_mce(*p.arguments, **p.options).value
    assert most >= least - ROUNDING


@given(naive.problems(min_bins=2, max_bins=7), st.data())
def test_merging_two_bins_never_increases_the_value(p: naive.Problem, data: st.DataObject) -> None:
    merged = np.delete(p.edges, data.draw(st.integers(1, p.bins - 1)))
    assert value(naive.Problem(*p.arguments, merged, p.closed)) <= value(p) + ROUNDING


@given(problem, st.randoms(use_true_random=False))
def test_the_order_of_the_samples_changes_nothing(p: naive.Problem, random: object) -> None:
    order = list(range(p.n))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = p.select(np.array(order))
    assert value(shuffled) == pytest.approx(value(p), abs=ROUNDING)
    assert worst_ks_error(*shuffled.arguments).value == pytest.approx(worst_ks_error(*p.arguments).value, abs=ROUNDING)
    one, other = worst_mce(*shuffled.arguments, **p.options), worst_mce(*p.arguments, **p.options)
    assert one.value == pytest.approx(other.value, abs=ROUNDING)


@given(problem)
def test_points_have_their_plain_errors(p: naive.Problem) -> None:
    points = with_ends(p, p.lower, p.lower)
    assert value(points) == pytest.approx(ece(p.lower, p.correct, **p.options), abs=ROUNDING)
    assert worst_ks_error(*points.arguments).value == pytest.approx(ks_error(p.lower, p.correct), abs=ROUNDING)
    largest = worst_mce(*points.arguments, **p.options).value
    assert largest == pytest.approx(mce(p.lower, p.correct, **p.options), abs=ROUNDING)


@given(problem, st.integers(2, 4))
def test_repeating_the_samples_changes_nothing(p: naive.Problem, times: int) -> None:
    assert value(p.select(np.tile(np.arange(p.n), times))) == pytest.approx(value(p), abs=ROUNDING)


@given(st.data())
def test_looking_from_the_other_end_changes_nothing(data: st.DataObject) -> None:
    # z -> 1 - z, right <-> wrong, bins closed on the other side; on a dyadic grid nothing is rounded.
    point = st.integers(0, 32).map(lambda k: k / 32)
    pairs = data.draw(st.lists(st.tuples(point, point, st.integers(0, 1)), min_size=1, max_size=12))
    inner = sorted(data.draw(st.lists(point, max_size=6)))
    closed = data.draw(st.sampled_from(("left", "right")))
    lower, upper = np.array([sorted(pair[:2]) for pair in pairs]).T
    p = naive.problem(lower, upper, [c for *_, c in pairs], [0, *inner, 1], closed)
    other = {"left": "right", "right": "left"}[closed]
    turned = naive.problem(1 - p.upper, 1 - p.lower, 1 - p.correct, 1 - p.edges[::-1], other)
    assert value(turned) == pytest.approx(value(p), abs=ROUNDING)
    one, two = worst_mce(*turned.arguments, **turned.options), worst_mce(*p.arguments, **p.options)
    assert one.value == pytest.approx(two.value, abs=ROUNDING)


@given(problem, st.lists(st.integers(0, 12), max_size=3))
def test_programs_of_pieces_merge_to_the_program_of_the_whole(p: naive.Problem, cuts: list[int]) -> None:
    merged = SignProgram(edges=p.edges, closed=p.closed)
    for piece in np.split(np.arange(p.n), sorted(min(cut, p.n) for cut in cuts)):
        if piece.size:
            part = SignProgram(edges=p.edges, closed=p.closed)
            part.add(*p.select(piece).arguments)
            merged.merge(part)
    whole = calibration_error(*p.arguments, **p.options)
    result = merged.result()
    assert result.value == whole.value
    assert result.signs is not None
    assert whole.signs is not None
    assert result.signs.tolist() == whole.signs.tolist()
    assert ece(whole.witness, p.correct, **p.options) == pytest.approx(result.value, abs=ATTAINED)


@given(problem, st.data())
def test_uncertified_samples_raise_the_value_over_all_samples_and_leave_the_other(
    p: naive.Problem, data: st.DataObject
) -> None:
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=p.n, max_size=p.n)))
    mask[data.draw(st.integers(0, p.n - 1))] = True
    result = calibration_error(*p.arguments, **p.options, certified=mask)
    assert result.value == pytest.approx(value(p.select(mask)), abs=ROUNDING)
    assert result.all_samples is not None
    assert value(p) - ROUNDING <= result.all_samples.value <= 1 + ROUNDING
    largest = max(result.value * mask.sum() + (~mask).sum(), 0) / p.n
    assert result.all_samples.value <= largest + ROUNDING


@given(naive.problems(max_n=5, max_bins=4))
def test_the_best_case_is_bracketed(p: naive.Problem) -> None:
    result = calibration_error(*p.arguments, **p.options, best=True)
    assert result.lower_end is not None
    assert result.lower_end - ROUNDING <= naive.best_by_assignment(p) <= result.value + ROUNDING
