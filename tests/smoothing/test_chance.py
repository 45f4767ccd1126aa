"""What of two curves of shares is beyond the chance of the samples: against a slow twin; its level by enumeration."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import InputError
from certcal.lab.logs import Chance, Stretch, chance
from tests.smoothing import naive_robustness as naive

GRID = 20
shares = st.integers(0, GRID)


def holds(found: Chance, p: float) -> set[str]:
    """Who is said to be ahead at p."""
    return {each.ahead for each in found.stretches if each.start <= p <= each.stop}


@given(
    st.lists(st.tuples(shares, shares), min_size=1, max_size=14),
    st.integers(0, 12),
    st.sampled_from([Fraction(1, 20), Fraction(9, 10)]),
)
def test_stretches_are_those_of_the_twin(pairs, more, level):
    pairs = pairs + [(GRID, GRID // 3)] * more
    found = chance("a", "b", *(np.array(each) / GRID for each in zip(*pairs, strict=True)), level=float(level))
    expected = naive.beyond_chance([(Fraction(a, GRID), Fraction(b, GRID)) for a, b in pairs], level, GRID)
    for step in range(GRID // 2, GRID + 1):
        p = Fraction(step, GRID)
        assert holds(found, float(p)) == {"ab"[side] for side in (0, 1) if (side, p) in expected}


def outcomes(n: int):
    """How many of n fair pairs are the first's, and how probable that is."""
    return [(k, math.comb(n, k) / 2**n) for k in range(n + 1)]


def test_something_wrong_is_said_no_more_often_than_the_level_and_nearly_as_often():
    n, single = 8, 1 / 2**8  # eight of eight fair pairs
    level = 5 * single * (1 + 1e-6)
    wrong = total = 0.0
    for (half, w), (below, v), (above, u) in product(outcomes(n), repeat=3):
        # Equal up to 0.8 and above 0.95, in pairs that fall to either side; the first is ahead in between.
        first = [0.6] * half + [0.0] * (n - half) + [0.8] * below + [0.6] * (n - below) + [0.95] * 30
        second = [0.0] * half + [0.6] * (n - half) + [0.6] * below + [0.8] * (n - below) + [0.8] * 30
        first += [1.0] * above + [0.95] * (n - above)
        second += [0.95] * above + [1.0] * (n - above)
        found = chance("a", "b", first, second, level=level)
        assert holds(found, 0.9) == {"a"}
        total += w * v * u
        wrong += w * v * u * bool(holds(found, 0.5) | holds(found, 0.8) | holds(found, 1.0) | {"b"} & holds(found, 0.9))
    assert total == pytest.approx(1)
    assert wrong == pytest.approx(1 - (1 - 2 * single) * (1 - single) ** 2)
    assert 0.75 * level < wrong <= level


@pytest.mark.parametrize("values", [(0.6, 0.0), (1.0, 0.6)])
def test_each_test_spends_exactly_its_share_of_the_level(values):
    high, low = values
    single = 1 / 2**8
    for factor, expected in ((1 - 1e-6, 0.0), (1 + 1e-6, 2 * single)):
        said = 0.0
        for k, weight in outcomes(8):
            first, second = [high] * k + [low] * (8 - k), [low] * k + [high] * (8 - k)
            said += weight * bool(chance("a", "b", first, second, level=5 * single * factor).stretches)
        assert said == pytest.approx(expected)


def test_new_samples_of_equal_networks_are_told_apart_no_more_often_than_the_level():
    rng = np.random.default_rng(11)
    told, rounds, level = 0, 400, 0.2
    for _ in range(rounds):
        easy = rng.beta(2, 0.5, 60)
        first, second = (rng.binomial(50, easy) / 50 for _ in range(2))
        told += bool(chance("a", "b", first, second, level=level).stretches)
    assert told <= level * rounds
    assert told >= 0.1 * level * rounds  # and it is not silent


def test_pairs_that_cross_are_told_from_pairs_that_are_ordered():
    hard, sharp = [0.7] * 60 + [0.99] * 40, [0.2] * 30 + [0.7] * 10 + [1.0] * 60
    crossing = chance("plain", "sharp", hard, sharp, level=0.05)
    assert crossing.verdict == "neither"
    assert [each.ahead for each in crossing.stretches] == ["plain", "sharp"]
    assert crossing.sentence.endswith("so neither is higher at every p.")
    ordered = chance("a", "b", [1.0] * 30, [0.2] * 30, level=0.05)
    assert (ordered.verdict, ordered.stretches) == ("first", (Stretch("a", 0.5, 1.0),))
    assert chance("a", "b", [0.2] * 30, [1.0] * 30, level=0.05).verdict == "second"
    silent = chance("a", "b", [1.0] * 30, [1.0] * 30, level=0.05)
    assert (silent.verdict, silent.stretches) == ("open", ())
    assert "nothing between a and b" in silent.sentence
    assert json.loads(json.dumps(crossing.to_dict()))["verdict"] == "neither"


def test_a_stretch_that_ends_above_one_half_is_not_dominance():
    # Equal at p = 1/2 itself, ahead at every other p.
    found = chance("a", "b", [1.0] * 40, [0.5] * 40, level=0.05)
    assert found.verdict == "open"
    assert holds(found, 0.5) == set()
    assert holds(found, 0.51) == holds(found, 1.0) == {"a"}


def test_a_stretch_is_no_wider_in_print_than_it_is():
    ends = {
        (0.99996, 0.2): "from 0.5 to 0.99996",
        (2 / 3, 0.2): "from 0.5 to 0.666666",
        (1.0, 2 / 3): "above 0.666667 up to 1",
        (0.9999996, 0.50000004): "above 0.500001 up to 0.999999",
    }
    for (high, low), expected in ends.items():
        found = chance("a", "b", [high] * 40, [low] * 40, level=0.05)
        assert found.where == f"a is higher than b for p {expected}"
    assert chance("a", "b", [0.5] * 40, [0.49] * 40, level=0.05).where == "a is higher than b at p = 0.5"


@given(st.lists(st.tuples(shares, shares, shares, shares), min_size=5, max_size=20))
def test_less_knowledge_of_shares_never_says_more(ends):
    a, b = ([tuple(sorted(each[i : i + 2])) for each in ends] for i in (0, 2))
    low, high = ([np.array([pair[end] for pair in each]) / GRID for end in (0, 1)] for each in (a, b))
    loose = chance("a", "b", tuple(low), tuple(high), level=0.9)
    for values in product(low, high):
        exact = chance("a", "b", *values, level=0.9)
        for p in np.arange(0.5, 1.01, 0.05):
            assert holds(loose, p) <= holds(exact, p)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: chance("a", "b", [0.5], [0.5, 1.0]), "lengths differ"),
        (lambda: chance("a", "b", [1.5], [0.5]), r"values\[0\] is 1.5"),
        (lambda: chance("a", "b", [0.5], [float("nan")]), r"others\[0\] is nan"),
        (lambda: chance("a", "b", ([0.5],), [0.5]), "values has 1 arrays"),
        (lambda: chance("a", "b", [0.5], [0.5], level=1.5), "level is 1.5"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(call, text):
    with pytest.raises(InputError, match=text):
        call()
