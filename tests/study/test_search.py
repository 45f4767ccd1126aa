"""Searches of a tabular benchmark, against what obvious implementations and the definitions say."""

import numpy as np
import pytest

from certcal import InputError
from certcal.lab.study import (
    Benchmark,
    Cell,
    SearchObjective,
    SizeSpace,
    StudyTable,
    TopologySpace,
    search,
)
from certcal.lab.study._search_methods import local_search, random_search, regularised_evolution
from certcal.metrics import harmonic_score

METHODS = {"evolution": regularised_evolution, "local": local_search, "random": random_search}

SIZES = list(SizeSpace([1, 2, 3]))


def total(name):
    return sum(map(int, name.split(":")))


def sizes(names=SIZES, noise=0.0, seed=0, **columns):
    """Wider is more accurate and worse calibrated."""
    rng = np.random.default_rng(seed)
    wide = np.array([total(name) / 15 for name in names])
    accuracy = 0.5 * wide + 0.2 + noise * (rng.random(wide.size) - 0.5)
    error = 0.2 * wide + noise * rng.random(wide.size)
    given = {"model": list(names), "accuracy": accuracy, "pre_ece_15": error, "post_ece_15": error / 2}
    return StudyTable.of({**given, "pre_mmce": error / 3, "pre_ks_error": error / 2, **columns})


@pytest.fixture(scope="module")
def smooth():
    return Benchmark(sizes())


@pytest.fixture(scope="module")
def rough():
    return Benchmark(sizes(noise=0.3))


@pytest.mark.parametrize("method", METHODS)
def test_a_search_evaluates_distinct_architectures_up_to_its_budget(rough, method):
    for budget in (1, 7, 100, 243, 1000):
        found = METHODS[method](rough, "accuracy", budget, seed=3)
        assert len(found.evaluated) == len(set(found.evaluated)) == min(budget, 243)
        values = dict(zip(rough.names, rough.values("accuracy"), strict=True))
        assert found.values.tolist() == [values[name] for name in found.evaluated]
        assert found.value == values[found.best] == max(found.values)


@pytest.mark.parametrize("method", METHODS)
def test_a_search_of_everything_finds_the_best(rough, method):
    for objective in ("accuracy", "ece", "hcs_2", "post_ece_15", "min:accuracy"):
        assert METHODS[method](rough, objective, 243, seed=1).best == rough.best(objective)


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides_everything(rough, method):
    first, same, other = (METHODS[method](rough, "ece", 40, seed=seed).evaluated for seed in (5, 5, 6))
    assert first == same
    assert first != other


def test_random_search_takes_each_architecture_equally_often():
    benchmark = Benchmark(StudyTable.of({"model": list("abcde"), "accuracy": [0.1, 0.2, 0.3, 0.4, 0.5]}))
    first = [random_search(benchmark, "accuracy", 2, seed).evaluated[0] for seed in range(1000)]
    counts = np.array([first.count(name) for name in "abcde"])
    # Pearson's statistic with four degrees of freedom; the 0.9999 quantile of its law.
    assert ((counts - 200) ** 2 / 200).sum() < 23.51


def climbed(benchmark, objective, start):
    """The path of a climb: the best neighbour, as long as it is better."""
    good = benchmark.goodness(objective)
    path = [start]
    while True:
        around = set(benchmark.neighbours(path[-1]))
        step = max(around, key=lambda place: good[place], default=path[-1])
        if good[step] <= good[path[-1]]:
            return path
        path.append(step)


def test_local_search_evaluates_a_climb_and_all_neighbours_on_it_before_it_starts_again(rough):
    for seed in range(10):
        found = local_search(rough, "accuracy", 243, seed)
        path = climbed(rough, "accuracy", rough.find(found.evaluated[0]))
        expected = set(path).union(*(rough.neighbours(place) for place in path))
        assert {rough.find(name) for name in found.evaluated[: len(expected)]} == expected


def test_local_search_climbs_a_smooth_hill_without_a_second_start(smooth):
    for seed in range(10):
        found = local_search(smooth, "accuracy", 51, seed)  # five steps of ten neighbours, and the start
        assert found.best == "3:3:3:3:3"


def test_local_search_where_no_neighbour_was_measured_is_random_search():
    apart = ["1:1:1:1:1", "2:2:2:1:1", "3:3:3:3:3", "1:1:1:3:3", "2:3:2:3:2"]
    benchmark = Benchmark(sizes(apart))
    assert all(benchmark.neighbours(place) == () for place in range(5))
    assert set(local_search(benchmark, "accuracy", 5, 0).evaluated) == set(apart)
    assert len(regularised_evolution(benchmark, "accuracy", 5, 0, population=1).evaluated) == 5


def test_structure_helps_where_neighbours_are_alike(smooth):
    means = {row.method: row.regret for row in search(smooth, objectives=["accuracy"], budget=40, repeats=30).rows}
    assert means["local"] < means["random"]
    assert means["evolution"] < means["random"]


def test_evolution_refuses_an_empty_population(smooth):
    with pytest.raises(InputError, match="population is 0; pass a whole number of at least 1"):
        regularised_evolution(smooth, "accuracy", 5, population=0)


def test_objectives_are_the_columns_and_the_harmonic_score_that_the_metrics_compute(rough):
    accuracy, error = rough.table["accuracy"], rough.table["pre_ece_15"]
    for beta in (1, 2, 3, 0.5):
        expected = [harmonic_score(a, e, beta) for a, e in zip(accuracy, error, strict=True)]
        assert rough.values(f"hcs_{beta}").tolist() == expected
    assert rough.values("ece").tolist() == error.tolist()
    after = Benchmark(rough.table, stage="post")
    assert after.values("ece").tolist() == (error / 2).tolist()
    assert after.values("hcs").tolist() == [harmonic_score(a, e / 2) for a, e in zip(accuracy, error, strict=True)]


@pytest.mark.parametrize(
    ("text", "name", "higher"),
    [
        ("accuracy", "accuracy", True),
        ("hcs", "hcs_1", True),
        ("hcs_2.50", "hcs_2.5", True),
        ("mmce", "mmce", False),
        ("post_classwise_ece_100", "post_classwise_ece_100", False),
        ("auroc_svhn", "auroc_svhn", True),
        ("max:params", "params", True),
        ("min:params", "params", False),
    ],
)
def test_an_objective_says_which_way_is_better(text, name, higher):
    assert SearchObjective.parse(text) == SearchObjective(name, higher)


@pytest.mark.parametrize("text", ["params", "hcs_0", "hcs_", "hcs_-1", "", "max:", "best:params"])
def test_an_objective_without_a_direction_is_refused(text):
    with pytest.raises(InputError, match=r"objective '.*' (is not accuracy|has beta)"):
        SearchObjective.parse(text)


def test_rows_that_failed_other_models_and_values_that_are_missing_are_not_searched():
    accuracy = [0.9, 0.8, np.nan, 0.99, 0.7]
    names = ["1:1:1:1:1", "1:1:1:1:2", "1:1:1:1:3", "resnet", "1:1:1:2:2"]
    status = ["ok", "ok", "ok", "ok", "failed"]
    benchmark = Benchmark(StudyTable.of({"model": names, "accuracy": accuracy, "status": status}))
    assert benchmark.left_out == 1
    assert benchmark.names == tuple(names[:3])
    for method in METHODS.values():
        assert set(method(benchmark, "accuracy", 9).evaluated) == set(names[:2])


def test_there_is_no_harmonic_score_where_accuracy_or_error_is_missing():
    columns = {"model": ["a", "b", "c"], "accuracy": [np.nan, 0.8, 0.9], "pre_ece_15": [0.1, np.nan, 0.2]}
    benchmark = Benchmark(StudyTable.of(columns))
    np.testing.assert_array_equal(benchmark.values("hcs_2"), [np.nan, np.nan, harmonic_score(0.9, 0.2, 2.0)])
    assert random_search(benchmark, "hcs_2", 3).evaluated == ("c",)


def test_a_cell_that_is_missing_is_looked_up_under_one_that_is_the_same():
    space = TopologySpace()
    unique = space.unique()
    table = StudyTable.of({"model": unique, "accuracy": np.linspace(0, 1, len(unique))})
    benchmark = Benchmark(table)
    for name in list(space)[::501]:
        place = benchmark.find(name)
        assert Cell.parse(benchmark.names[place]).published == Cell.parse(name).published
    start = benchmark.find(unique[4000])
    around = [benchmark.find(name) for name in space.neighbours(unique[4000])]
    assert None not in around
    assert list(benchmark.neighbours(start)) == [place for place in around if place != start]
    assert benchmark.find("resnet") is None


def test_the_space_is_told_by_the_names():
    cell = next(iter(TopologySpace()))
    assert isinstance(Benchmark(StudyTable.of({"model": [cell, "a"], "accuracy": [0, 1]})).space, TopologySpace)
    assert Benchmark(sizes()).space.channels == (1, 2, 3)
    assert Benchmark(StudyTable.of({"model": ["a"], "accuracy": [0]})).space is None
    with pytest.raises(InputError, match="both spaces; choose space='topology' or 'size'"):
        Benchmark(StudyTable.of({"model": [cell, "1:1:1:1:1"], "accuracy": [0, 1]}))


def test_a_space_of_ones_own_is_searched():
    class Ring:
        def __len__(self):
            return 30

        def __iter__(self):
            return (f"n{i}" for i in range(30))

        def __contains__(self, name):
            return name in list(self)

        def neighbours(self, name):
            here = int(name[1:])
            return [f"n{(here + step) % 30}" for step in (-1, 1)]

    table = StudyTable.of({"model": list(Ring()), "accuracy": [1 - abs(i - 17) / 30 for i in range(30)]})
    assert local_search(Benchmark(table, space=Ring()), "accuracy", 30).best == "n17"


def test_the_data_set_and_the_split_have_to_be_chosen_where_there_are_several():
    names = ["1:1:1:1:1"] * 3
    table = StudyTable.of(
        {"model": names, "data": ["a", "a", "b"], "split": ["x", "y", "x"], "accuracy": [0.1, 0.2, 0.3]}
    )
    with pytest.raises(InputError, match=r"data: the table has 2 data sets \('a', 'b'\); choose one"):
        Benchmark(table)
    with pytest.raises(InputError, match=r"split: the table has 2 splits \('x', 'y'\); choose one"):
        Benchmark(table, data="a")
    assert Benchmark(table, data="b").values("accuracy").tolist() == [0.3]
    assert Benchmark(table, data="a", split="y").values("accuracy").tolist() == [0.2]
    with pytest.raises(InputError, match="data is 'c'; the table has 'a', 'b'"):
        Benchmark(table, data="c")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"space": "cells"}, "space: 'cells' is not one of 'auto', 'topology'"),
        ({"space": "topology"}, "the table has no architecture of the space"),
        ({"stage": "after"}, "stage is 'after'; use 'pre' or 'post'"),
        ({"metric": "acc"}, "metric is 'acc'; use one of ece"),
        ({"column": "accuracy"}, "column 'accuracy' holds numbers"),
        ({"column": "architecture"}, "the table has no column 'architecture'"),
        ({"column": "kind"}, "architecture 'k' has several rows"),
    ],
)
def test_a_benchmark_that_cannot_be_is_refused(options, complaint):
    with pytest.raises(InputError, match=complaint):
        Benchmark(sizes(kind=["k"] * 243), **options)


def test_what_cannot_be_searched_is_refused(smooth):
    plain = Benchmark(StudyTable.of({"model": ["a", "b"], "accuracy": [0.5, 0.6]}))
    for method in (local_search, regularised_evolution):
        with pytest.raises(InputError, match="has no neighbours; use random search"):
            method(plain, "accuracy", 2)
    with pytest.raises(InputError, match="budget is 0; allow at least 1"):
        random_search(smooth, "accuracy", 0)
    with pytest.raises(InputError, match="seed is -1"):
        random_search(smooth, "accuracy", 1, -1)
    with pytest.raises(InputError, match="no column 'pre_nll'"):
        random_search(smooth, "nll", 1)
    empty = Benchmark(StudyTable.of({"model": ["a"], "accuracy": [np.nan]}))
    with pytest.raises(InputError, match="'accuracy' was measured for no architecture"):
        random_search(empty, "accuracy", 1)
    for bad, complaint in (
        ({"methods": ["annealing"]}, "methods: 'annealing' is not one of 'evolution', 'local', 'random'"),
        ({"repeats": 0}, "repeats: 0 is not"),
        ({"objectives": []}, "0 objectives"),
    ):
        with pytest.raises(InputError, match=complaint):
            search(smooth, **bad)
    with pytest.raises(InputError, match="'local' needs neighbours"):
        search(plain, objectives=["accuracy"], methods=["local"])


def test_a_comparison_is_the_mean_and_spread_of_its_searches(rough):
    found = search(rough, objectives=["ece", "hcs_3"], methods=["local", "random"], budget=20, repeats=7, seed=11)
    assert [(row.objective, row.method) for row in found.rows] == [
        (objective, method) for objective in ("ece", "hcs_3") for method in ("local", "random")
    ]
    assert found.shown == ("accuracy", "ece", "hcs_1", "hcs_2", "hcs_3", "mmce", "ks_error")
    for row in found.rows:
        bests = [METHODS[row.method](rough, row.objective, 20, (11, repeat)).best for repeat in range(7)]
        places = [rough.find(name) for name in bests]
        for name in found.shown:
            values = rough.values(name)[places]
            assert row.mean[name] == pytest.approx(values.mean(), rel=1e-12)
            assert row.spread[name] == pytest.approx(values.std(ddof=1), rel=1e-9, abs=1e-15)
        good = rough.goodness(row.objective)
        assert row.regret == pytest.approx((good.max() - good[places]).mean(), rel=1e-12, abs=1e-15)
        assert row.hits == sum(name == rough.best(row.objective) for name in bests)
        assert sum(row.architectures.values()) == 7
        assert np.isnan(row.judged_regret)
    for best in found.oracle:
        assert list(best.architectures) == [rough.best(best.objective)]
        assert best.regret == 0


def test_judging_by_the_numbers_that_chose_is_said_to_be_optimistic_and_is():
    """Accuracies that are noise alone: what was chosen is no better than any other by another measurement."""
    rng = np.random.default_rng(5)
    draws = rng.normal(0.5, 0.05, size=(2, len(SIZES)))
    searched, judge = (
        Benchmark(StudyTable.of({"model": SIZES, "split": [split] * len(SIZES), "accuracy": values}))
        for split, values in zip(("one", "two"), draws, strict=True)
    )
    alone = search(searched, objectives=["accuracy"], methods=["random"], budget=100, repeats=30)
    judged = search(searched, objectives=["accuracy"], methods=["random"], budget=100, repeats=30, judge=judge)
    assert any("optimistic" in note for note in alone.notes)
    assert not any("optimistic" in note for note in judged.notes)
    assert alone.rows[0].mean["accuracy"] > 0.6  # more than two standard deviations above the truth
    found = list(judged.rows[0].architectures)
    assert judged.rows[0].regret == alone.rows[0].regret
    counts = judged.rows[0].architectures
    expected = sum(draws[1][SIZES.index(name)] * counts[name] for name in found) / 30
    assert judged.rows[0].mean["accuracy"] == pytest.approx(expected)
    assert judged.rows[0].judged_regret == pytest.approx(draws[1].max() - expected)
    assert judged.settings["judge"] == {"data": "data", "split": "two"}


def test_architectures_that_the_judge_does_not_know_are_left_out_and_counted():
    searched = Benchmark(sizes())
    judge = Benchmark(sizes(SIZES[:-1]))
    found = search(searched, objectives=["accuracy"], methods=["random"], budget=243, repeats=2, judge=judge)
    assert np.isnan(found.rows[0].mean["accuracy"])
    assert any("1 of the found architectures are not in the judge's table" in note for note in found.notes)


def test_notes_say_what_limits_the_comparison():
    few = search(Benchmark(sizes(SIZES[::7])), objectives=["accuracy"], budget=50, repeats=2)
    assert any("covers all 35 architectures" in note for note in few.notes)
    assert any(note.startswith("Of the 10 neighbours of an architecture") for note in few.notes)
    table = StudyTable.of({"model": SIZES, "accuracy": np.linspace(0, 1, 243)})
    bare = search(Benchmark(table), objectives=["accuracy"], budget=5, repeats=1)
    assert "The table does not have ece, hcs_1, hcs_2, hcs_3, mmce, ks_error." in bare.notes
    assert np.isnan(bare.rows[0].spread["accuracy"])


def test_a_table_with_none_of_the_numbers_to_show_is_refused():
    table = StudyTable.of({"model": ["a", "b"], "params": [1, 2]})
    with pytest.raises(InputError, match="none of the numbers to show"):
        search(Benchmark(table), objectives=["min:params"])


def aged(benchmark, objective, budget, seed, population, sample):
    """Regularised evolution, spelled out: a list of those that live, the oldest first."""
    rng = np.random.default_rng([seed, 3])
    good = benchmark.goodness(objective)
    waiting = rng.permutation(len(benchmark)).tolist()
    evaluated = waiting[:population]
    living = list(evaluated)
    fruitless = 0
    while len(evaluated) < budget:
        rivals = [living[i] for i in rng.integers(0, population, sample)]
        parent = rivals[int(np.argmax([good[place] for place in rivals]))]
        around = benchmark.neighbours(parent)
        if around and fruitless < population:
            child = around[int(rng.integers(0, len(around)))]
        else:
            child = next(place for place in waiting if place not in evaluated)
        fruitless = fruitless + 1 if child in evaluated else 0
        if child not in evaluated:
            evaluated.append(child)
        living = [*living[1:], child]
    return [benchmark.names[place] for place in evaluated]


@pytest.mark.parametrize(("population", "sample"), [(10, 3), (4, 20), (1, 1)])
def test_evolution_is_the_one_that_is_spelled_out(rough, population, sample):
    for seed in range(5):
        found = regularised_evolution(rough, "hcs_1", 60, seed, population=population, sample=sample)
        assert list(found.evaluated) == aged(rough, "hcs_1", 60, seed, population, sample)


def test_a_judge_with_the_same_numbers_is_still_optimistic(rough):
    same = Benchmark(sizes(noise=0.3), stage="post")
    assert any(
        "optimistic" in note
        for note in search(rough, objectives=["ece"], methods=["random"], repeats=1, judge=same).notes
    )
    other = Benchmark(sizes(noise=0.3, seed=1))
    assert not any(
        "optimistic" in note
        for note in search(rough, objectives=["ece"], methods=["random"], repeats=1, judge=other).notes
    )


def test_the_harmonic_score_needs_a_calibration_error_that_is_a_share():
    table = sizes(pre_nll=np.linspace(0.1, 3, len(SIZES)), pre_kde_ece=np.linspace(0, 1.2, len(SIZES)))
    with pytest.raises(InputError, match="needs a calibration error from 0 to 1, and nll is none"):
        Benchmark(table, metric="nll").values("hcs_1")
    with pytest.raises(InputError, match="calibration_error is"):
        Benchmark(table, metric="kde_ece").values("hcs_1")
    gap = sizes(accuracy=np.where(np.arange(len(SIZES)) == 3, np.nan, 0.5))
    assert np.flatnonzero(np.isnan(Benchmark(gap).values("hcs_1"))).tolist() == [3]
