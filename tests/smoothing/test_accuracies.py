"""Who certifies more at which radius beyond sampling error: against slow twins; the level by enumeration."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certcal
from certcal.lab.logs import compare
from certcal.lab.logs._accuracies import accuracy_differences
from certcal.smoothing.robustness import VoteRecord

DRAWS = 100


def differences(first, second, level=0.05, *, paired=True):
    """Of two runs, whose samples are certified or not at each radius."""
    runs = [("a", 0.5, np.array(first, bool)), ("b", 0.5, np.array(second, bool))]
    return accuracy_differences(runs, range(len(first)), level, pairs=[(0, 1)], paired=paired)


def run(certified, name, n=400):
    """A run with so many samples that are certified at radius 0 and a little beyond, and all others wrong."""
    votes = np.where(np.arange(n) < certified, DRAWS, 40)
    return VoteRecord.of(votes, DRAWS, np.ones(n), sigma=0.5, name=name)


def test_of_two_equal_networks_one_is_ahead_with_exactly_the_level():
    n = 8
    for factor, expected in ((1 - 1e-6, 0.0), (1 + 1e-6, 2 / 2**n)):
        said = 0.0
        for k in range(n + 1):
            first = [[True] * k + [False] * (n - k)]
            second = [[False] * k + [True] * (n - k)]
            (found,) = differences(first, second, level=factor * 2 / 2**n)
            assert found.ahead in (None, "a" if k == n else "b")
            said += math.comb(n, k) / 2**n * (found.ahead is not None)
        assert said == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6))
def test_corrected_levels_are_those_of_rejecting_step_by_step(counts):
    most = max(max(b, c) for b, c in counts) + 1
    first, second = ([[True] * pair[i] + [False] * (most - pair[i]) for pair in counts] for i in (0, 1))
    apart = [row + [False] * most for row in first], [[False] * most + row for row in second]
    found = differences(*apart)
    sides = [(max(b, c), b + c) for b, c in counts]
    tails = [sum(math.comb(n, k) for k in range(most, n + 1)) / 2**n for most, n in sides]
    for each, tail in zip(found, tails, strict=True):
        smaller = sorted(other for other in tails if other <= tail * (1 + 1e-12))
        steps = [(2 * len(tails) - rank) * other for rank, other in enumerate(smaller)]
        same = tails.count(tail)
        assert each.p == pytest.approx(min(1.0, max(steps[: len(smaller) - same + 1])), rel=1e-6)


def test_a_sample_that_both_or_neither_certifies_decides_nothing():
    first, second = np.repeat([True, False], [19, 381]), np.repeat([True, False], [6, 394])
    (found,) = differences([first], [second])
    assert (found.certified, found.alone, found.ahead) == ((19, 6), (13, 0), "a")
    assert found.p == pytest.approx(2 / 2**13)
    rolled = np.roll(second, 200)
    (found,) = differences([first], [rolled])
    assert (found.alone, found.ahead) == ((19, 6), "a")
    assert found.p == pytest.approx(2 * sum(math.comb(25, k) for k in range(19, 26)) / 2**25)


def test_other_samples_are_compared_by_the_exact_test_of_two_shares():
    n, m = (20, 30), (9, 4)
    shares = [np.arange(size)[None] < count for size, count in zip(n, m, strict=True)]
    (found,) = differences(*shares, paired=False)
    whole = math.comb(50, 13)
    tail = sum(math.comb(20, k) * math.comb(30, 13 - k) for k in range(9, 14)) / whole
    assert (found.p, found.alone) == (pytest.approx(2 * tail), None)
    (other,) = differences(*shares[::-1], paired=False)
    assert other.p == pytest.approx(found.p)


def test_nineteen_against_six_is_said_first_and_equal_runs_are_unclear():
    found = certcal.compare(run(19, "few"), run(6, "fewer"), radii=[0.0, 0.25])
    assert [each.certified for each in found.differences] == [
        (one, other) for one, other in zip(found.runs[0].curve.certified, found.runs[1].curve.certified, strict=True)
    ]
    assert found.answer[0].kind == "shown"
    assert found.answer[0].text == (
        "few certifies more than fewer at 0 and 0.25 (at 0: 19 of 400 samples against 6), beyond sampling error."
    )
    assert found.answer[-1].text.startswith("Take few")
    report = found.report()
    assert report.headline[0].sentence == found.answer[0].text
    assert "95% sure, for samples drawn like these" in report.headline[0].probability
    assert "Certified samples, beyond sampling error" in str(found)
    assert str(found.differences[0]) == (
        "At radius 0, few certifies 19 of 400 samples and fewer certifies 6 of 400 samples: "
        "few more beyond sampling error."
    )
    assert str(found.dominance[0]) == found.dominance[0].statement
    equal = certcal.compare(run(19, "few"), run(18, "fewer"), radii=[0.0])
    assert [each.kind for each in equal.answer] == ["seen", "seen", "next"]
    assert "No difference of certified accuracy at these radii is beyond sampling error." in str(equal).replace(
        "\n", " "
    )


def test_what_is_tested_are_single_runs_of_one_noise_level_and_unpaired_ones_as_independent():
    one, two = run(60, ""), run(20, "")
    pooled = compare({"x": [one, two], "y": [one]}, at=[0.0])
    assert pooled.differences == ()
    unpaired = compare(
        [run(60, "p"), VoteRecord.of([DRAWS] * 20 + [40] * 280, DRAWS, [1] * 300, sigma=0.5, name="q")],
        at=[0.0],
        samples="unpaired",
    )
    (found,) = unpaired.differences
    assert (found.n, found.alone, found.ahead) == ((400, 300), None, "p")
    far = VoteRecord.of(one.lowest, DRAWS, one.correct, sigma=1.0)
    several = compare({"x": [one, far], "y": [two]}, at=[0.0, 0.5])
    assert {(each.first, each.second, each.sigma) for each in several.differences} == {("x", "y", 0.5)}
    rows = several.to_pandas()
    assert set(rows[rows.quantity == "certifies_more_beyond_chance"].other) == {"y"}
