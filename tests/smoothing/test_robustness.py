"""Certified accuracy, its average, the distribution of p_A and dominance, against slow twins and published figures."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from certcal import InputError
from certcal.lab.logs import compare, dominance, dominance_table
from certcal.smoothing import Counts
from certcal.smoothing._bands import radii_of_limits
from certcal.smoothing._certificates import certified_radii
from certcal.smoothing.robustness import (
    AccuracySteps,
    PaDistribution,
    VoteRecord,
    average_certified_radius,
    best_accuracy,
    certified_accuracy,
    from_curve,
    smallest_votes,
    trivial_average_radius,
    vote_radii,
)
from certcal.smoothing.robustness.votes import certifying_probability, votes_tail
from tests.smoothing import naive_robustness as naive

N = 40


def record(votes, correct=None, draws=N, sigma=1.0, name=""):
    return VoteRecord.of(votes, draws, np.ones(len(votes)) if correct is None else correct, sigma=sigma, name=name)


many_votes = st.lists(st.tuples(st.integers(0, N), st.integers(0, 1)), min_size=1, max_size=12)


@given(many_votes, st.sampled_from([0.001, 0.05]), st.sampled_from([0.25, 1.0]))
def test_certified_accuracy_from_votes_is_that_of_the_twin(samples, alpha, sigma):
    votes, correct = [k for k, _ in samples], [c for _, c in samples]
    at = [0.0, 0.1, 0.2345, 0.5, 1.1]
    curve = certified_accuracy(record(votes, correct, sigma=sigma).radii(alpha), correct, at)
    radii = [naive.radius(k, N, sigma, alpha) for k in votes]
    assert curve.fractions == tuple(naive.certified_accuracy(radii, correct, r) for r in at)


@given(many_votes, many_votes)
def test_the_staircase_is_the_twin_at_every_radius_and_the_highest_is_the_best_of_two(one, other):
    stairs, exact = [], []
    for samples, sigma in ((one, 0.25), (other, 1.0)):
        votes, correct = [k for k, _ in samples], [c for _, c in samples]
        known = record(votes, correct, sigma=sigma).radii(0.05)
        stairs.append(AccuracySteps.of(known, correct))
        exact.append(partial(naive.certified_accuracy, known.tolist(), correct))
    ends = [r for steps in stairs for r in steps.radii.tolist()]
    where = [0.0, 0.05, 0.3, *ends, *np.nextafter(ends, 9.0).tolist(), *np.nextafter(ends, -9.0).tolist(), 5.0]
    both = AccuracySteps.highest(stairs)
    for r in where:
        shares = [twin(r) for twin in exact]
        assert [float(steps.at(r)) for steps in stairs] == [float(share) for share in shares]
        assert float(both.at(r)) == float(max(shares))


def test_abstentions_stay_in_the_denominator_and_never_count():
    curve = certified_accuracy([0.0, math.nan, 0.4], [1, 1, 1], at=[0.0, 0.4, 0.41])
    assert curve.fractions == (Fraction(2, 3), Fraction(1, 3), Fraction(0))
    masked = certified_accuracy([0.0, 5.0, 0.4], [1, 1, 1], at=[0.0], abstained=[0, 1, 0])
    assert masked.certified == (2,)


def test_a_radius_that_is_reached_exactly_counts():
    assert certified_accuracy([0.25], [1], at=[0.25]).certified == (1,)
    assert certified_accuracy([0.25], [1], at=[math.nextafter(0.25, 1)]).certified == (0,)


def test_shares_are_printed_rounded_down_from_their_exact_value():
    curve = certified_accuracy([1.0] * 8317 + [math.nan] * 1683, [1] * 10_000, at=[0.5])
    assert curve.texts == ("0.8317",)  # 8317/10000 as a float is a little less
    assert certified_accuracy([1, 1, math.nan], [1, 1, 1], at=[0.5]).texts == ("0.6666",)
    assert "(66.66 %)" in certified_accuracy([1, 1, math.nan], [1, 1, 1], at=[0.5]).sentences[0]
    assert (curve.percents, certified_accuracy([1.0], [1], at=[0.5, 2]).percents) == (("83.17",), ("100.00", "0.00"))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: certified_accuracy([0.1, -0.2], [1, 1], [0]), r"radii\[1\] is -0.2"),
        (lambda: certified_accuracy([0.1, math.inf], [1, 1], [0]), r"radii\[1\] is inf"),
        (lambda: certified_accuracy([0.1, math.nan], [1, 1], [0], abstained=[0, 0]), r"radii\[1\] is nan"),
        (lambda: certified_accuracy([0.1], [1, 1], [0]), "lengths differ"),
        (lambda: certified_accuracy([], [], [0]), "radii has shape"),
        (lambda: certified_accuracy([0.1], [2], [0]), r"correct\[0\] is 2"),
        (lambda: certified_accuracy([0.1], [1], [-1]), r"at\[0\] is -1"),
        (lambda: certified_accuracy([0.1], [1], []), "at is empty"),
        (lambda: best_accuracy([]), "curves is empty"),
        (lambda: VoteRecord.of([5], 4, [1], sigma=1.0), r"votes\[0\] is 5 of 4 draws"),
        (lambda: VoteRecord.of([], 4, [], sigma=1.0), "votes is empty"),
        (lambda: VoteRecord.of([1], 4, [1], sigma=-1.0), "sigma is -1"),
        (lambda: record([3]).radii(2.0), "alpha is 2"),
        (lambda: PaDistribution.of(object()), "holds no votes"),
        (lambda: PaDistribution.of(record([3])).quantile(1.5), "q has an entry outside"),
        (lambda: PaDistribution.of(record([3])).certified_accuracy([0.1], n=0), "n is 0"),
        (lambda: from_curve([0, 1], [0.2, 0.3], sigma=1, n=100), "accuracy rises from 0.2 at radius 0"),
        (lambda: from_curve([0, 1], [0.2], sigma=1, n=100), "lengths differ"),
        (lambda: from_curve([1, 1], [0.2, 0.2], sigma=1, n=100), "names a radius twice"),
        (lambda: from_curve([0], [65.7], sigma=1, n=100), "is 65.7; pass shares"),
        (lambda: from_curve([9], [0.1], sigma=1, n=100), "certify no sample at radius 9"),
        (lambda: dominance_table([PaDistribution.of(record([3]))]), "fewer than two"),
        (lambda: compare([]), "sources is empty"),
        (lambda: compare([record([3], name="x"), record([3], name="x")]), "two runs are called 'x'"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(call, text):
    with pytest.raises(InputError, match=text):
        call()


def test_curves_at_other_radii_are_not_mixed():
    with pytest.raises(InputError, match="other radii than the first"):
        best_accuracy([certified_accuracy([1], [1], [0]), certified_accuracy([1], [1], [1], name="b")])


def test_the_best_over_sigma_names_everyone_who_reaches_it():
    a = certified_accuracy([0.3, 0.3], [1, 1], [0.0, 0.25, 0.5], name="a")
    b = certified_accuracy([0.6, 0.1, 0.6, 0.1], [1, 1, 1, 1], [0.0, 0.25, 0.5], name="b")
    best = best_accuracy([a, b])
    assert best.names == (("a", "b"), ("a",), ("b",))
    assert best.fractions == (Fraction(1), Fraction(1), Fraction(1, 2))


@pytest.mark.parametrize("alpha", [0.001, 0.05])
@pytest.mark.parametrize("n", [1, 10, 30])
def test_the_smallest_votes_are_those_of_the_exact_tail(n, alpha):
    p = [0.5, 0.6, 0.8413, 0.99]
    assert smallest_votes(p, n, alpha).tolist() == [naive.smallest_votes(each, n, alpha) for each in p]


def test_radii_are_never_above_the_exact_ones_and_lose_nothing_visible():
    for k in range(N + 1):
        exact = naive.radius(k, N, 0.5, 0.01)
        ours = float(vote_radii(k, N, 0.5, 0.01))
        if exact is None:
            assert math.isnan(ours)
        else:
            assert exact - 1e-8 < ours <= exact + 1e-12


@given(many_votes, st.integers(1, 60), st.sampled_from([0.001, 0.01]), st.sampled_from([0.0, 0.2, 0.5, 1.3]))
def test_conversion_asks_for_the_share_of_votes_that_certifies(samples, n, alpha, radius):
    votes, correct = [k for k, _ in samples], [c for _, c in samples]
    asked = PaDistribution.of(record(votes, correct)).certified_accuracy([radius], n=n, alpha=alpha)
    k = naive.smallest_votes(float(certifying_probability(radius, 1.0)), n, alpha)
    expected = naive.survival(votes, N, correct, Fraction(k, n))
    assert asked.lower.tolist() == asked.upper.tolist() == [float(expected)]


@given(many_votes)
def test_conversion_to_the_run_s_own_setting_is_its_certified_accuracy(samples):
    votes, correct = [k for k, _ in samples], [c for _, c in samples]
    at = [0.0, 0.21, 0.5, 0.97]
    runs = record(votes, correct)
    own = certified_accuracy(runs.radii(0.001), correct, at)
    assert PaDistribution.of(runs).certified_accuracy(at, n=N, alpha=0.001).lower.tolist() == list(own.values)


def test_the_expected_accuracy_is_the_mean_over_new_runs():
    rng = np.random.default_rng(5)
    votes = rng.integers(N // 2, N + 1, 50)
    seen = PaDistribution.of(record(votes))
    (expected,) = seen.expected_accuracy([0.3], n=200, alpha=0.01)
    new = rng.binomial(200, np.tile(votes / N, (4000, 1)))
    accuracies = (vote_radii(new, 200, 1.0, 0.01) >= 0.3).mean(axis=1)
    assert abs(accuracies.mean() - expected) < 4 * accuracies.std() / math.sqrt(4000)


def test_a_published_curve_gives_back_the_distribution_at_its_points():
    rng = np.random.default_rng(6)
    correct = rng.random(500) < 0.8
    runs = record(np.round(1000 * rng.beta(6, 1, 500)).astype(int), correct, draws=1000, sigma=0.5)
    seen = PaDistribution.of(runs)
    at = [0.0, 0.25, 0.5, 0.75]
    curve = certified_accuracy(runs.radii(0.001), correct, at)
    points = from_curve(at[::-1], curve.values[::-1], sigma=0.5, n=1000, alpha=0.001)
    lower, upper = points.survival(points.p)
    np.testing.assert_array_equal(lower, upper)
    np.testing.assert_array_equal(lower, seen.survival(points.p)[0])
    for n, alpha in ((100, 0.01), (10_000, 0.001), (50, 0.2)):
        asked, truth = (source.certified_accuracy([0.1, 0.3, 0.6], n=n, alpha=alpha) for source in (points, seen))
        assert np.all(asked.lower <= truth.lower)
        assert np.all(truth.lower <= asked.upper)
        assert "an estimate" in asked.sentence
    json.dumps(points.to_dict())


def test_quantiles_and_survival_are_each_other_s_inverse():
    seen = PaDistribution.of(record([10, 20, 30, 40, 40], [1, 1, 0, 1, 1]))
    assert seen.quantile([0.0, 0.2, 0.21, 0.6, 1.0]).tolist() == [0.0, 0.0, 0.25, 0.5, 1.0]
    assert seen.survival([0.0, 0.5, 0.51, 1.0])[0].tolist() == [1.0, 0.6, 0.4, 0.4]


@given(many_votes, many_votes)
def test_dominance_is_what_a_look_at_every_p_gives(first, second):
    sides = [([k for k, _ in side], [c for _, c in side]) for side in (first, second)]
    a, b = (PaDistribution.of(record(*side, name=name)) for side, name in zip(sides, "ab", strict=True))
    found = dominance(a, b)
    curves = [lambda p, side=side: naive.survival(side[0], N, side[1], p) for side in sides]
    assert (found.verdict, found.strict) == naive.verdict(*curves, grid=2 * N)
    mirrored = dominance(b, a)
    assert mirrored.verdict == {"first": "second", "second": "first"}.get(found.verdict, found.verdict)


@given(many_votes, many_votes, st.integers(1, 300), st.sampled_from([0.001, 0.01, 0.1]))
def test_the_dominating_run_is_ahead_in_every_setting(first, second, n, alpha):
    a, b = (
        PaDistribution.of(record([k for k, _ in s], [c for _, c in s], name=w))
        for s, w in ((first, "a"), (second, "b"))
    )
    found = dominance(a, b)
    at = [0.0, 0.1, 0.4, 1.0, 1.6]
    ahead = a.certified_accuracy(at, n=n, alpha=alpha).lower - b.certified_accuracy(at, n=n, alpha=alpha).lower
    if found.verdict == "first":
        assert np.all(ahead >= 0)
    elif found.verdict == "second":
        assert np.all(ahead <= 0)
    else:
        assert found.verdict in ("neither", "equal")
        assert found.verdict == "neither" or np.all(ahead == 0)


def test_a_crossing_is_said_with_its_place():
    trivial = PaDistribution.of(record([40, 0]), "trivial")
    even = PaDistribution.of(record([36, 36]), "even")
    found = dominance(trivial, even)
    assert found.verdict == "neither"
    assert [(each.ahead, each.start, each.stop) for each in found.stretches] == [
        ("even", 0.5, 0.9),
        ("trivial", 0.9, 1.0),
    ]
    assert "even is higher for p from 0.5 to 0.9 and trivial for p from 0.9 to 1" in found.sentence


def test_at_different_sigma_radii_are_compared_at_one_setting():
    small = PaDistribution.of(record([40, 40], sigma=0.25), "small")
    large = PaDistribution.of(record([40, 30], sigma=1.0), "large")
    found = dominance(small, large, n=N, alpha=0.001)
    # 40 votes certify 0.25 of what they do at sigma 1, where 30 certify little: small leads first, large after that.
    assert (found.verdict, found.axis, found.draws, found.alpha) == ("neither", "radius", N, 0.001)
    assert [each.ahead for each in found.stretches] == ["small", "large"]
    assert found.stretches[0].stop == pytest.approx(float(vote_radii(40, N, 0.25, 0.001)))
    assert "alpha = 0.001" in found.statement
    strong = PaDistribution.of(record([40, 40], sigma=1.0), "strong")
    assert dominance(small, strong, n=N, alpha=0.001).verdict == "second"
    assert "other draws may say otherwise" in dominance(small, strong, n=N).statement


def test_open_votes_decide_nothing_that_they_might_change():
    sure = record([38, 30], name="sure")
    open_ended = VoteRecord(
        "open",
        1.0,
        sure.index,
        sure.label,
        np.array([True, False]),
        sure.draws,
        np.array([36, 0]),
        np.array([36, 25]),
        np.array([False, True]),
    )
    found = dominance(PaDistribution.of(sure), PaDistribution.of(open_ended))
    assert found.verdict == "first"  # above even if the open sample has 25 votes for its label
    raised = VoteRecord(**{**open_ended.__dict__, "highest": np.array([36, 31])})
    above = dominance(PaDistribution.of(sure), PaDistribution.of(raised))
    assert (above.verdict, above.open_below, above.edge) == ("first", 31 / 40, ("sure", "open"))
    assert "sure is above open: P(p_A >= p) is" in above.sentence
    assert "for every p >= 0.776, open below, on these samples" in above.sentence
    assert "that ask for such a p; below that it is open" in above.statement
    rounded = VoteRecord(**{**raised.__dict__, "highest": np.array([39, 31])})
    unclear = dominance(PaDistribution.of(sure), PaDistribution.of(rounded))
    assert (unclear.verdict, unclear.open_below) == ("unclear", None)
    assert "cannot be told" in unclear.sentence
    (left,) = unclear.unsettled
    assert (left.start, left.stop) == (36 / 40, 39 / 40)
    assert "but what is printed leaves 0.9 to 0.975 open" in unclear.statement


def known_in_part(name, votes):
    """Votes of which a log abstained (25 or fewer of 40), or printed radii that two counts fit."""
    unknown = np.array([k <= 25 for k, _ in votes])
    low = np.array([0 if k <= 25 else k for k, _ in votes])
    high = np.array([25 if k <= 25 else min(k + wide, N) for k, wide in votes])
    return VoteRecord(**{**record(high, ~unknown, name=name).__dict__, "lowest": low, "unknown": unknown})


in_part = st.lists(st.tuples(st.integers(20, N), st.integers(0, 1)), min_size=2, max_size=2)


@given(in_part, in_part, st.randoms(use_true_random=False))
def test_a_verdict_on_logs_holds_for_all_votes_that_fit(some, others, chosen):
    first, second = known_in_part("a", some), known_in_part("b", others)
    found = dominance(PaDistribution.of(first), PaDistribution.of(second))
    assert found.open_below in (None, 25 / N)
    asked = [Fraction(k, N) for k in range(20, N + 1) if found.open_below is None or k > 25]
    for _ in range(4):
        votes = [[chosen.randint(*ends) for ends in zip(each.lowest.tolist(), each.highest.tolist(), strict=True)]
                 for each in (first, second)]  # fmt: skip
        a, b = ([naive.survival(each, N, [1, 1], p) for p in asked] for each in votes)
        if found.verdict == "second":
            a, b = b, a
        ahead = [x > y for x, y in zip(a, b, strict=True)]
        if found.edge is not None:
            assert a != b
            assert all(x >= y for x, y in zip(a, b, strict=True))
            assert all(ahead) or not found.strict
        assert found.verdict != "equal" or a == b
        assert found.verdict != "neither" or (any(ahead) and any(y > x for x, y in zip(a, b, strict=True)))


def test_the_average_radius_comes_with_its_warning_and_what_hides_in_it():
    average = average_certified_radius([1.0, 2.0, math.nan, 4.0], [1, 0, 1, 1], trivial=0.5)
    assert average.value == 1.25
    assert average.top_tenth == 0.8
    assert "do not rank models by it" in average.sentence
    assert "Always answering the most frequent class would score 0.5000." in average.statement
    assert average.to_dict()["sentence"] == average.sentence
    assert "makes up 80.0 %" in average.statement
    assert "makes up" not in average_certified_radius([1.0], [0]).statement


# Section 4.1 of Sun et al.: balanced binary data, sigma = 1, alpha = .001. The printed digits are those of 0.9 n votes
# for every sample, not of the mean over binomial votes (which is .560, .767, .915); .7565 is printed as .756.
@pytest.mark.parametrize(("n", "trivial", "even"), [(50, 0.565, 0.544), (100, 0.750, 0.756), (200, 0.913, 0.909)])
def test_the_published_toy_table_is_reproduced(n, trivial, even):
    votes = 9 * n // 10
    averages = [
        average_certified_radius(vote_radii([n, 0], n, 1.0, 0.001), [1, 0]).value,
        average_certified_radius(vote_radii([votes, votes], n, 1.0, 0.001), [1, 1]).value,
    ]
    assert averages[0] == pytest.approx(trivial, abs=5e-4)
    assert averages[0] == pytest.approx(trivial_average_radius([0, 1], sigma=1.0, n=n))
    assert averages[1] == pytest.approx(even, abs=6e-4)
    assert (averages[0] > averages[1]) == (trivial > even)


def test_over_binomial_votes_the_toy_order_turns_once_only():
    means = []
    for n in (50, 100, 200):
        votes = np.arange(n + 1)
        chance = votes_tail(votes, n, 0.9) - votes_tail(votes + 1, n, 0.9)
        means.append(float(np.dot(chance, np.nan_to_num(vote_radii(votes, n, 1.0, 0.001)))))
    assert [round(mean, 3) for mean in means] == [0.56, 0.767, 0.915]
    assert [
        mean > trivial_average_radius([0, 1], sigma=1.0, n=n) for mean, n in zip(means, (50, 100, 200), strict=True)
    ] == [
        False,
        True,
        True,
    ]


def test_the_published_radii_at_a_hundred_thousand_draws_are_reproduced():
    n = 100_000
    radii = vote_radii([99_000, 99_900, n, 76_000], n, 1.0, 0.001)
    assert np.round(radii, 1).tolist() == [2.3, 3.0, 3.8, 0.7]  # the last: "from 0 to 0.76" is worth .99 to .999
    assert radii[2] == pytest.approx(3.8115, abs=5e-5)


def test_the_published_example_of_a_conversion_needs_81_of_100_votes():
    assert smallest_votes(certifying_probability(0.5, 1.0), 100, 0.01) == 81


def test_a_comparison_holds_everything_that_is_printed():
    easy = VoteRecord.of([40, 3], N, [1, 1], sigma=1.0, label=[0, 1], name="easy")
    even = VoteRecord.of([36, 36], N, [1, 1], sigma=1.0, label=[0, 1], name="even")
    both = compare([easy, even])
    assert both.best.at[0] == 0.0
    assert both.dominance[0].verdict == "neither"
    assert both.runs[0].n_abstained == 1
    assert both.runs[0].average.trivial == pytest.approx(both.runs[0].average.value)
    note, *_ = both.notes
    assert "the best of 2 runs, chosen after looking, with up to 0.002." in note
    assert "All of alpha goes to the prediction here, a quarter of it in certificates" in note
    assert compare([easy]).notes == ()
    three = compare([easy, even, replace(even, name="same")], alpha=0.0012345678).notes
    assert "the best of 3 runs, chosen after looking, with up to 0.00370371." in three[0]
    other = VoteRecord.of([36], N, [1], sigma=1.0, label=[0], name="other")
    assert "different samples" in compare([easy, other]).notes[0]
    fewer = VoteRecord.of([18, 18], N // 2, [1, 1], sigma=1.0, label=[0, 1], name="fewer")
    assert "differ in draws or alpha" in compare([easy, fewer]).notes[0]
    json.dumps(both.to_dict(), allow_nan=False)


def test_the_counts_of_a_run_give_the_radii_of_its_certificates():
    votes = np.arange(0, 1001, 7)
    cells = np.stack([1000 - votes, votes], axis=1)
    numbers = np.arange(votes.size)
    counts = Counts(
        thresholds=np.array([0.5]),
        sigma=0.5,
        index=numbers + 5,
        label=numbers % 2,
        predicted=np.zeros_like(numbers),
        draws=np.full_like(votes, 1000),
        votes=votes,
        invalid=np.zeros_like(votes),
        histogram=cells,
    )
    runs = VoteRecord.from_counts(counts, "run")
    np.testing.assert_array_equal(runs.radii(0.001), certified_radii(counts, 0.001))
    np.testing.assert_array_equal(runs.index, numbers + 5)
    np.testing.assert_array_equal(runs.correct, numbers % 2 == 0)
    assert compare([counts, VoteRecord.from_counts(counts, "same")]).dominance[0].verdict == "equal"


def test_a_limit_of_exactly_one_half_certifies_nothing():
    half = np.array([np.nextafter(0.5, 0), 0.5, np.nextafter(0.5, 1)])
    assert np.isnan(radii_of_limits(half, ndtri(half), 1.0)).tolist() == [True, True, False]


def test_a_sentence_never_claims_a_larger_radius_than_was_asked_for():
    curve = certified_accuracy([1.0], [1], at=[0.12345678])
    assert "of norm up to 0.123456, where" in curve.sentences[0]


@pytest.mark.parametrize("votes", [(36, 30), (30, 36), (36, 36), (40, 20)])
def test_every_verdict_on_two_models_says_that_it_is_an_estimate(votes):
    runs = [
        PaDistribution.of(VoteRecord.of([k, 36], N, [1, 1], sigma=sigma), str(k))
        for k, sigma in zip(votes, (1.0, 1.0), strict=True)
    ]
    assert dominance(*runs).statement.endswith("; an estimate, since shares of votes stand for p_A.")


def test_nothing_certified_is_compared_too():
    nothing = compare([record([3, 4], name="none")])
    assert nothing.best.at[0] == 0.0
    assert nothing.best.values[0] == 0.0
    assert nothing.dominance == ()
