"""Families of runs: graphs of dominance, other settings, best over noise levels, certified calibration."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from certcal import InputError
from certcal.lab.logs import Budget, chance, compare, dominance
from certcal.lab.logs._graph import graph_of_best, graph_of_shares, reduction
from certcal.smoothing import Counts, certificates
from certcal.smoothing.robustness import PaDistribution, VoteRecord, best_accuracy
from tests.smoothing import naive_robustness as naive

N = 40


def record(votes, correct=None, draws=N, sigma=1.0, name="", label=None):
    right = np.ones(len(votes)) if correct is None else correct
    return VoteRecord.of(votes, draws, right, sigma=sigma, name=name, label=label)


def closure(edges):
    """All that follows from edges by going along them."""
    found = set(edges)
    while True:
        more = {(a, d) for a, b in found for c, d in found if b == c} - found
        if not more:
            return found
        found |= more


several_votes = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(st.integers(N // 2 - 3, N), min_size=n, max_size=n), min_size=2, max_size=6)
)


def graph(votes):
    return graph_of_shares([PaDistribution.of(record(each), f"m{i}") for i, each in enumerate(votes)])


@given(several_votes)
def test_the_graph_is_an_order_and_its_reduction_says_the_same(votes):
    found = graph(votes)
    for edges in (set(found.edges), set(found.strict_edges)):
        assert closure(edges) == edges  # transitive
        assert not any((b, a) in edges for a, b in edges)  # no cycles, not even of two
    assert closure(found.reduced) == set(found.edges)
    for edge in found.reduced:
        assert closure(set(found.reduced) - {edge}) != set(found.edges)  # none can be left out
    assert set(found.strict_edges) <= set(found.edges)
    assert found.undominated
    assert not {worse for _, worse in found.edges} & set(found.undominated)


@given(several_votes)
def test_edges_are_those_of_the_curves_looked_at_one_by_one(votes):
    found = graph(votes)
    curves = {
        f"m{i}": [naive.survival(each, N, [1] * len(each), Fraction(k, N)) for k in range(N // 2, N + 1)]
        for i, each in enumerate(votes)
    }
    for a, b in permutations(curves, 2):
        steps = list(zip(curves[a], curves[b], strict=True))
        nowhere_below, somewhere_above = all(x >= y for x, y in steps), any(x > y for x, y in steps)
        assert ((a, b) in found.edges) == (nowhere_below and somewhere_above)
        strict = all(x > y for x, y in steps if x or y) and somewhere_above
        assert ((a, b) in found.strict_edges) == strict


def test_curves_that_have_both_come_down_to_zero_do_not_spoil_a_strict_order():
    found = graph([[36, 34, 30], [34, 30, 18]])
    assert found.strict_edges == (("m0", "m1"),)
    assert not found.pairs[0].strict  # at p = 1 both are zero


@given(
    st.lists(
        st.lists(st.lists(st.integers(15, N), min_size=3, max_size=3), min_size=1, max_size=3), min_size=2, max_size=3
    )
)
def test_the_best_over_noise_levels_is_compared_at_every_radius(votes):
    sigmas = (0.25, 0.5, 1.0)
    shares = {
        f"m{i}": [PaDistribution.of(record(each, sigma=s)) for each, s in zip(family, sigmas, strict=False)]
        for i, family in enumerate(votes)
    }
    found = graph_of_best(shares, n=N, alpha=0.05)
    reached = [
        [np.nan_to_num(record(each, sigma=s).radii(0.05), nan=-1.0) for each, s in zip(family, sigmas, strict=False)]
        for family in votes
    ]
    every = np.unique(np.concatenate([[0.0], *(each[each >= 0] for family in reached for each in family)]))
    curves = {
        f"m{i}": [max(int(np.sum(each >= at)) for each in family) for at in every] for i, family in enumerate(reached)
    }
    for a, b in permutations(curves, 2):
        pairs = list(zip(curves[a], curves[b], strict=True))
        assert ((a, b) in found.edges) == (all(x >= y for x, y in pairs) and any(x > y for x, y in pairs))
    assert found.sigma is None
    assert "best sigma at each radius" in found.statement


def test_what_average_radius_ranks_and_the_curves_do_not_is_named():
    plain, sharp, worst = [34] * 20, [40] * 12 + [10] * 8, [30] * 20
    found = compare({"plain": [record(plain)], "sharp": [record(sharp)], "worst": [record(worst)]}, at=[0])
    one = found.graphs[0]
    assert one.edges == (("plain", "worst"),)
    assert one.hidden == (("sharp", "plain"), ("sharp", "worst"))
    assert one.undominated == ("plain", "sharp")
    assert (
        "ranks sharp > plain > worst, but the curves put 1 of 3 pairs in that order and 2 in none" in one.contradiction
    )
    assert "sharp and plain; sharp and worst" in one.contradiction
    assert "undominated: plain and sharp" in one.statement
    ordered = compare({"a": [record([40] * 5)], "b": [record([30] * 5)]}, at=[0]).graphs[0]
    assert ordered.contradiction is None


def test_equal_averages_rank_nobody():
    found = compare({"a": [record([40, 30])], "b": [record([30, 40])]}, at=[0]).graphs[0]
    assert (found.hidden, found.contradiction, found.pairs[0].verdict) == ((), None, "equal")


def test_what_is_beyond_chance_shares_its_level_among_all_pairs():
    rng = np.random.default_rng(2)
    votes = {name: rng.binomial(N, p, 300) for name, p in (("low", 0.6), ("middle", 0.8), ("high", 0.97))}
    found = compare({name: [record(k)] for name, k in votes.items()}, at=[0], level=0.03).graphs[0]
    assert [each.level for each in found.chances] == [pytest.approx(0.01)] * 3
    assert found.level == pytest.approx(0.03)
    assert set(found.firm_edges) <= set(found.edges)
    assert ("high", "low") in found.firm_edges
    assert "beyond the sampling error of 300 samples (97% sure" in found.beyond_chance


def test_what_is_beyond_chance_is_said_of_shares_of_votes_where_it_would_be_false_of_p_a():
    draws, samples, rng = 100, 5000, np.random.default_rng(0)
    networks = {"A": {0.95: 0.79, 0.89: 0.11, 0.05: 0.10}, "B": {0.90: 0.80, 0.05: 0.20}}
    votes = np.arange(draws // 2, draws + 1)
    reach = {name: sum(w * binom.sf(votes - 1, draws, p) for p, w in each.items()) for name, each in networks.items()}
    assert (reach["A"] > reach["B"]).all()  # so it is true of shares of 100 votes,
    at_least = {name: sum(w for p, w in each.items() if p >= 0.9) for name, each in networks.items()}
    assert at_least["A"] < at_least["B"]  # and of p_A it is not
    p_a = {name: rng.choice(list(each), samples, p=list(each.values())) for name, each in networks.items()}
    label = np.ones(samples, np.int64)
    records = {name: [VoteRecord.of(rng.binomial(draws, p), draws, label, sigma=1.0)] for name, p in p_a.items()}
    found = compare(records, at=[0]).graphs[0]
    assert found.firm_edges == (("A", "B"),)
    assert found.beyond_chance == (
        "by P(share of 100 votes >= p) rather than p_A, and beyond the sampling error of 5,000 samples (95% sure, "
        "for this pair): A is better than B."
    )
    (pair,) = found.chances
    assert pair.sentence.startswith("by P(share of 100 votes >= p), A is higher than B for p from 0.5 to 1 beyond")
    assert pair.to_dict()["draws"] == draws


def test_what_is_beyond_chance_is_told_pair_by_pair_where_there_are_few():
    plain, sharp, same = [34] * 60 + [39] * 40, [8] * 30 + [28] * 10 + [40] * 60, [34] * 60 + [39] * 40
    found = compare({"plain": [record(plain)], "sharp": [record(sharp)], "same": [record(same)]}, at=[0])
    told = found.graphs[0].beyond_chance
    assert "plain and sharp cross and sharp and same cross" in told
    ahead = compare({"a": [record([40] * 50)], "b": [record([20] * 50)]}, at=[0]).graphs[0]
    assert ahead.beyond_chance.endswith("for this pair): a is higher than b for p above 0.5 up to 1.")
    assert ahead.edges == (("a", "b"),)
    assert ahead.firm_edges == ()  # at p = 1/2 itself they are equal
    equal = compare({"a": [record([40] * 50)], "b": [record([40] * 50)]}, at=[0]).graphs[0]
    assert equal.beyond_chance.endswith("for this pair): nothing, neither from p = 0.5 on nor around 0.9.")
    single = compare({"a": [record([40])], "b": [record([30])]}, at=[0], level=0.03333).graphs[0]
    assert "of 1 sample (96.66% sure, for this pair)" in single.beyond_chance


def test_equal_networks_with_other_numbers_of_draws_are_not_told_apart():
    rng = np.random.default_rng(3)
    few, many = (record(rng.binomial(draws, 0.85, 300), draws=draws) for draws in (10, 10_000))
    assert chance("few", "many", few.values(), many.values()).stretches  # which is of shares, and not of networks
    found = compare({"few": [few], "many": [many]}, at=[0])
    assert (found.graphs[0].chances, found.graphs[0].beyond_chance) == ((), None)
    assert any("nothing is said of what is beyond chance" in note for note in found.notes)
    mixed = record([9, 90], draws=[10, 100])
    assert compare({"a": [mixed], "b": [mixed]}, at=[0]).graphs[0].chances == ()


def test_what_logs_leave_open_is_not_taken_for_an_answer():
    whole, right = record([39, 38, 36]), [1, 1, 0]
    log = replace(
        record([40, 38, 0], right), highest=np.array([40, 38, 38]), unknown=np.array([False, False, True])
    )  # fmt: skip
    above = compare({"a": [whole], "log": [log]}, at=[0]).graphs[0]
    assert (above.edges, above.open_below) == ((("log", "a"),), 38 / 40)
    assert "at sigma 1, by P(p_A >= p) at every p >= 0.951 (open below) on these samples" in above.statement
    log = replace(log, lowest=np.array([39, 37, 0]), highest=np.array([40, 39, 38]))
    found = compare({"a": [whole], "log": [log]}, at=[0]).graphs[0]
    assert [pair.verdict for pair in found.pairs] == ["unclear"]
    assert "no method is surely better than another; 1 pair cannot be told from what the logs print" in found.statement
    assert "put 0 of 1 pair in that order and leave 1 open." in found.contradiction
    three = compare({"a": [whole], "log": [log], "low": [record([30, 25, 21])]}, at=[0]).graphs[0]
    assert three.edges == (("a", "low"), ("log", "low"))
    assert "not surely dominated: a and log; 1 pair cannot be told" in three.statement


def test_several_runs_at_one_noise_level_are_means_over_them():
    votes = [[40, 40, 38, 21], [40, 38, 30, 30], [40, 36, 36, 0]]
    runs, at = [record(each, name=str(i)) for i, each in enumerate(votes)], [0.0, 0.5, 1.0]
    found = compare({"many": runs, "one": [record([39, 39, 39, 39])]}, at=at)
    (repeated,), alone = found.repeats, [compare([each], at=at).runs[0] for each in runs]
    many, one = found.runs
    assert (many.runs, one.runs, many.n, len(found.families[0].runs)) == (3, 1, 12, 1)
    assert many.curve.values == pytest.approx(np.mean([each.curve.values for each in alone], axis=0))
    assert many.average.value == pytest.approx(np.mean([each.average.value for each in alone]))
    assert repeated.average.deviation == pytest.approx(np.std([each.average.value for each in alone], ddof=1))
    spread = np.std([each.curve.values for each in alone], axis=0, ddof=1)
    assert [each.deviation for each in repeated.accuracies] == pytest.approx(spread)
    assert [each.mean for each in repeated.accuracies] == pytest.approx(many.curve.values)
    mean = np.mean([PaDistribution.of(each).survival([0.5, 0.9, 1])[0] for each in runs], axis=0)
    assert many.distribution.survival([0.5, 0.9, 1])[0] == pytest.approx(mean)
    assert found.graphs[0].chances == ()
    assert any("means over them" in note for note in found.notes)
    rows = found.columns()
    assert "standard_deviation_of_certified_accuracy" in rows["quantity"]
    assert json.loads(found.to_json())["repeats"][0]["runs"] == ["many 1 #1", "many 1 #2", "many 1 #3"]


def test_runs_of_different_samples_are_compared_on_those_they_share():
    label = [0, 1, 0, 1, 0]
    whole, rest = record([40, 39, 30, 25, 38], label=label), record([35, 40, 38], label=label[2:])
    rest = replace(rest, index=np.array([2, 3, 4]))
    with pytest.raises(InputError, match=r"about different samples \(sample 0 is in a 1 only\); compare the common"):
        compare({"a": [whole], "b": [rest]}, at=[0])
    found = compare({"a": [whole], "b": [rest]}, at=[0, 0.5], samples="common")
    assert [run.n for run in found.runs] == [3, 3]
    alone = compare([whole.select([2, 3, 4])], at=[0, 0.5]).runs[0]
    assert (found.runs[0].curve.certified, found.runs[0].average.value) == (alone.curve.certified, alone.average.value)
    assert found.notes[0] == "Compared on the 3 samples that all runs have; left out of a 1 (2)."
    both = compare([replace(whole, name="a"), replace(rest, name="b")], at=[0])
    assert both.notes[0].startswith("a and b are about different samples (sample 0 is in a only), and part of")
    shared = compare([replace(whole, name="a"), replace(rest, name="b")], at=[0], samples="common")
    assert [run.n for run in shared.runs] == [3, 3]
    with pytest.raises(InputError, match="have no sample in common"):
        compare({"a": [whole.select([0, 1])], "b": [rest]}, at=[0], samples="common")


def test_families_without_a_common_noise_level_are_compared_at_every_radius():
    found = compare({"a": [record([40] * 5, sigma=0.5)], "b": [record([40] * 5, sigma=0.25)]}, at=[0, 0.25])
    assert [graph.sigma for graph in found.graphs] == [None]
    assert found.graphs[0].edges == (("a", "b"),)


def families_of(seed, sigmas=(0.25, 1.0), names=("gaussian", "acr"), n=30):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, n)
    return {
        name: [record(rng.integers(15, N + 1, n), rng.integers(0, 5, n) > 0, sigma=s, label=label) for s in sigmas]
        for name in names
    }


@pytest.mark.parametrize("sigmas", [(0.5, 0.5, 0.5), (0.5, 0.25, 1.0), (0.5, 0.5, 1.0)])
def test_a_run_without_a_method_is_a_family_of_one(sigmas):
    sources = {name: families_of(4, (sigma,), (name,))[name] for name, sigma in zip("abc", sigmas, strict=True)}
    found, alone = (
        compare(each, at=[0, 0.25, 0.5]).to_dict()
        for each in (sources, [replace(runs[0], name=name) for name, runs in sources.items()])
    )
    for name, sigma in zip("abc", sigmas, strict=True):
        found = json.loads(json.dumps(found).replace(f'"{name} {sigma:g}"', f'"{name}"'))
    assert found == json.loads(json.dumps(alone))
    assert [pair["axis"] for pair in alone["dominance"]] == [
        "p_A" if one == other else "radius" for one, other in combinations(sigmas, 2)
    ]


def test_the_order_of_families_and_of_their_runs_does_not_matter():
    sources = families_of(5, names=("a", "b", "c"))
    found = compare(sources)
    turned = compare({name: runs[::-1] for name, runs in reversed(list(sources.items()))})
    assert {family.name: family.to_dict() for family in found.families} == {
        family.name: family.to_dict() for family in turned.families
    }
    assert found.best.values == turned.best.values
    for one, other in zip(found.graphs, turned.graphs, strict=True):
        assert (one.sigma, set(one.edges), set(one.hidden)) == (other.sigma, set(other.edges), set(other.hidden))
        assert set(one.firm_edges) == set(other.firm_edges)


def test_the_best_over_noise_levels_is_that_of_the_runs():
    found = compare(families_of(6))
    for family in found.families:
        assert family.sigmas == (0.25, 1.0)
        assert family.best.fractions == best_accuracy([run.curve for run in family.runs]).fractions
        assert [run.name for run in family.runs] == [f"{family.name} 0.25", f"{family.name} 1"]
    for i, names in enumerate(found.best.names):
        highest = max(family.best.fractions[i] for family in found.families)
        assert set(names) == {family.name for family in found.families if family.best.fractions[i] == highest}
    assert [graph.sigma for graph in found.graphs] == [0.25, 1.0, None]
    assert "up to 0.004" in " ".join(found.notes)  # four runs at 0.001 each
    assert "another training of the same method" in found.notes[-1]


def test_samples_in_another_order_are_the_same_samples():
    sources = families_of(7)
    turned = np.random.default_rng(0).permutation(30)
    fields = ("index", "label", "correct", "draws", "lowest", "highest", "unknown")
    mixed = {
        name: [replace(run, **{f: getattr(run, f)[turned] for f in fields}) for run in runs]
        for name, runs in sources.items()
    }
    mixed["acr"] = sources["acr"]
    one, other = compare(sources), compare(mixed)
    assert [each.to_dict() for each in one.graphs[0].chances] == [each.to_dict() for each in other.graphs[0].chances]


def test_what_is_beyond_chance_pairs_samples_by_their_numbers():
    low, turned = np.random.default_rng(1).integers(15, N, 300), np.random.default_rng(0).permutation(300)
    mixed = replace(record(low[turned] + 1), index=turned)
    found = compare({"a": [record(low)], "b": [mixed]}, at=[0]).graphs[0].chances[0]
    # One vote more of each sample: beyond chance in pairs of the same sample, and lost among any others.
    assert {each.ahead for each in found.stretches} == {"b"}
    assert chance("a", "b", low / N, (low[turned] + 1) / N).stretches == ()


def test_the_setting_of_the_run_itself_gives_its_own_certified_accuracy():
    found = compare(families_of(8), budgets=[(N, 0.001), (N, 0.001), (7 * N, 0.01)])
    assert [(each.setting, each.sigma) for each in found.budgets] == [
        (Budget(N, 0.001), 0.25),
        (Budget(N, 0.001), 1.0),
        (Budget(7 * N, 0.01), 0.25),
        (Budget(7 * N, 0.01), 1.0),
    ]
    for table in found.budgets[:2]:
        runs = dict(found.at_sigma(table.sigma))
        for name, values in table.rows:
            assert values.lower.tolist() == list(runs[name].curve.values)
        assert all(all(row) for row in table.resolved)
        assert table.note is None
    assert "280" in found.budgets[2].note
    assert "steps of 1/40" in found.budgets[2].note


def test_a_radius_that_needs_more_than_the_steps_of_the_votes_is_not_resolved():
    found = compare({"a": [record([40, 39, 30])]}, at=[0.5, 1.8, 2.2, 3.5], budgets=[(10_000, 0.001)])
    table = found.budgets[0]
    p = table.rows[0][1].p
    assert p[1] < 1 - 1 / N < p[2] <= 1
    assert p[3] > 1
    assert table.resolved == ((True, True, False, True),)  # nobody can be certified at the last one


def test_the_published_case_needs_a_share_of_81_per_cent():
    # Sun et al. (2025), appendix B.1: sigma 1, N = 100, alpha = 0.01, r = 0.5.
    votes = [81, 80, 100, 30]
    found = compare({"x": [record(votes, draws=100)]}, at=[0.5], budgets=[(100, 0.01)])
    values = found.budgets[0].rows[0][1]
    assert values.p.tolist() == [0.81]
    assert values.lower.tolist() == [0.5]


def counts_of(seed, sigma, n=40, draws=400):
    rng = np.random.default_rng(seed)
    share = rng.beta(4, 1, n)
    x = np.clip(rng.normal(share[:, None], 0.05, (n, draws)), 0, 1)
    votes = rng.binomial(draws, share)
    counts = Counts.from_confidences(x, np.linspace(0.05, 0.95, 19), votes=votes, sigma=sigma)
    return replace(counts, label=np.arange(n) % 2, predicted=np.where(rng.random(n) < 0.9, np.arange(n) % 2, 2))


def test_certified_calibration_is_that_of_the_certificates():
    runs = {"a": [counts_of(1, 0.5), counts_of(2, 0.25)], "b": [counts_of(3, 0.5)]}
    found = compare(runs, alpha=0.01)
    assert [(each.family, each.sigma) for each in found.calibration] == [("a", 0.25), ("a", 0.5), ("b", 0.5)]
    for each, counts in zip(found.calibration, (runs["a"][1], runs["a"][0], runs["b"][0]), strict=True):
        assert each.radii == (0.0, 0.25, 0.5)
        for radius, summary in zip(each.radii, each.summaries, strict=True):
            assert summary.to_dict() == certificates(counts, radius, 0.01).summary().to_dict()
    asked = compare(runs, calibration_at=[9.0]).calibration[0]
    assert asked.summaries[0]["calibration_error"].worst is None  # nothing is certified that far
    assert asked.summaries[0]["calibration_error"].worst_all.value > 0
    assert compare(runs, calibration_at=()).calibration == ()
    assert compare(runs, calibration_at=9.0).calibration[0].radii == (9.0,)


def test_votes_without_histograms_have_no_certified_calibration_and_that_is_said():
    counts = counts_of(1, 0.5)
    votes = VoteRecord.from_counts(counts_of(3, 0.5))
    found = compare({"a": [counts], "b": [votes]})
    assert [each.family for each in found.calibration] == ["a"]
    assert any("nothing is certified of those of b 0.5" in note for note in found.notes)
    assert compare({"b": [votes]}).calibration == ()


def test_everything_is_plain_for_json():
    found = compare({"a": [counts_of(1, 0.5)], "b": [counts_of(3, 0.5)]}, at=[0, 0.5])
    document = json.loads(json.dumps(found.to_dict(), allow_nan=True))
    assert document["type"] == "comparison"
    assert [family["name"] for family in document["families"]] == ["a", "b"]
    assert document["graphs"][0]["edges"] == [list(edge) for edge in found.graphs[0].edges]
    assert document["sentences"] == list(found.sentences)
    assert repr(found) == "<Comparison of a, b at 2 radii>"


def test_verdicts_of_a_graph_are_those_of_dominance():
    sources = families_of(9, sigmas=(1.0,), names=("a", "b", "c"))
    pairs = compare(sources).graphs[0].pairs
    seen = [PaDistribution.of(runs[0], name) for name, runs in sources.items()]
    assert [pair.to_dict() for pair in pairs] == [dominance(a, b).to_dict() for a, b in combinations(seen, 2)]


def test_reduction_of_nothing_is_nothing():
    assert reduction([]) == ()


@pytest.mark.parametrize(
    ("sources", "options", "text"),
    [
        ({}, {}, "sources holds no families"),
        ({"a": []}, {}, "family 'a' has no runs"),
        ({"": [record([3])]}, {}, "'' is no name of a family"),
        ({"a": [record([3]), record([4, 4])]}, {}, "sample 1 is in a 1 #2 only"),
        ({"a": [record([3])]}, {"samples": "some"}, "samples is 'some'"),
        (
            {"a": [record([3])], "b": [record([3], label=[7])]},
            {"samples": "common"},
            "sample 0 has label 0 in a 1 and 7 in b 1, so their numbers do not mean the same samples",
        ),
        ({"a": [record([3])], "b": [record([3, 4])]}, {}, "sample 1 is in b 1 only"),
        ({"a": [record([3])], "b": [record([3], label=[7])]}, {}, "sample 0 has label 0 in a 1 and 7 in b 1"),
        ({"a": [record([3])]}, {"budgets": [(10,)]}, "pass pairs of draws and alpha"),
        ({"a": [record([3])]}, {"budgets": [100]}, r"budgets\[0\] is 100; pass pairs of draws and alpha"),
        ({"a": [record([3])]}, {"budgets": None}, "budgets is None; pass pairs of draws and alpha"),
        ({"a": [record([3])]}, {"budgets": [(0, 0.1)]}, r"budgets\[0\] draws is 0"),
        ({"a": [record([3])]}, {"budgets": [(9, 0.1), (9, 2)]}, r"budgets\[1\] alpha is 2"),
        ({"a": [record([3])]}, {"alpha": math.nan}, "alpha is nan"),
        ({"a": [record([3])]}, {"level": 0}, "level is 0"),
        ({"a": [counts_of(1, 0.5)]}, {"calibration_at": [-1.0]}, r"at\[0\] is -1"),
        ({"a": [object()]}, {}, "object holds no votes"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(sources, options, text):
    with pytest.raises(InputError, match=text):
        compare(sources, **options)


def test_graphs_of_one_method_or_of_two_noise_levels_are_refused():
    one, other = PaDistribution.of(record([3]), "a"), PaDistribution.of(record([3], sigma=0.5), "b")
    with pytest.raises(InputError, match="fewer than two methods"):
        graph_of_shares([one])
    with pytest.raises(InputError, match="different sigma"):
        graph_of_shares([one, other])
    with pytest.raises(InputError, match="two methods are called 'a'"):
        graph_of_shares([one, one])
