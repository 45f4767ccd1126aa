"""The review as a whole: seven answers for any population."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certcal import InputError
from certcal.lab.study import Finding, FindingTable, Matrix, ScatterPlot, StudyReview, StudyTable, ask, kendall, review
from certcal.lab.study.questions import QUESTIONS, BracketBoxes, Question, Relation, Scatter
from tests.study.populations import columns, population


def findings(found: StudyReview) -> list[Finding]:
    return [finding for answer in found for finding in answer.findings]


def test_seven_answers_in_order_each_with_numbers_intervals_and_what_was_published() -> None:
    table = population(60, 2, corrupted=lambda rng, e, k: rng.uniform(size=e.size), depth=lambda rng, e, k: k % 7)
    found = review(table, robustness=["corrupted"])
    assert [answer.number for answer in found] == [1, 2, 3, 4, 5, 6, 7]
    assert (found.models, found.datasets, found.split, found.failed) == (60, ("set0", "set1"), "test", 0)
    for answer in found:
        assert answer.question.endswith("?")
        assert answer.answer.endswith(".")
        assert answer.published.endswith(".")
        assert answer.findings
        assert answer.charts
        assert any(math.isfinite(finding.low) for finding in answer.findings)
    for finding in findings(found):
        assert math.isnan(finding.low) or finding.low <= finding.value <= finding.high


def test_single_questions_and_data_sets_are_reviewed_alone_with_the_same_numbers() -> None:
    table = population(40, 3)
    whole, part = review(table, resamples=20), review(table, questions=[4, 1], data=["set2", "set0"], resamples=20)
    assert [(answer.number, answer.name) for answer in part] == [(4, "Temperature scaling"), (1, "Data sets")]
    assert part.datasets == ("set2", "set0")
    known = {found.name: found for found in whole.answers[3].findings}
    assert [found.name.partition(":")[0] for found in part.answers[0].findings[::4]] == ["set2", "set0"]
    assert all(known[found.name] == found for found in part.answers[0].findings)


def test_the_least_accurate_models_are_the_most_accurate_of_the_opposite() -> None:
    made = columns(60, 2)
    least = review(StudyTable.of(made), questions=[1, 4], least=20, resamples=20)
    turned = review(StudyTable.of(made | {"accuracy": -made["accuracy"]}), questions=[1, 4], tops=20, resamples=20)
    numbers = [[(found.value, found.low) for found in findings(each)] for each in (least, turned)]
    np.testing.assert_array_equal(*numbers)
    assert "among the 20 least accurate " in least.answers[1].answer
    assert "set0: ECE before with after, 20 least accurate" in [found.name for found in findings(least)]
    assert "most accurate" not in json.dumps(least.to_dict()["answers"]).replace(QUESTIONS[3].published, "")


def test_named_columns_of_all_data_sets_are_in_one_matrix() -> None:
    table = population(50, 2)
    found = review(table, questions=3, matrix=["pre_ece_15", "pre_mmce"], tops=20, resamples=20)
    whole, part = (chart for chart in found.charts if chart.title.startswith("All data sets"))
    assert isinstance(whole, Matrix)
    assert whole.names == ("set0 pre_ece_15", "set0 pre_mmce", "set1 pre_ece_15", "set1 pre_mmce")
    one, two = table.where(data="set0").numbers(["pre_mmce"])[:, 0], table.where(data="set1").numbers(["pre_ece_15"])
    assert whole.values[1, 2] == pytest.approx(kendall(one, two[:, 0]))
    assert (whole.n, part.n) == (50, 20)


def test_a_question_of_ones_own_is_a_few_lines_of_data() -> None:
    table = population(80, params=lambda rng, e, k: 1000 * e + rng.normal(size=e.size))
    question = Question(
        "Size",
        "Are larger models worse calibrated?",
        (
            Relation(
                "params",
                "metric",
                "larger models have a {direction} {label}",
                "On {data}, {says} ({whole:correlation})[; {also} ({first:correlation})].",
            ),
        ),
        "Larger models are not always worse calibrated.",
        charts=(BracketBoxes("params", "accuracy"), Scatter("params", "metric")),
    )
    (answer,) = ask(table, question, tops=30, resamples=40)
    size, error = (table.numbers([name])[:, 0] for name in ("params", "pre_ece_15"))
    assert answer.findings[1].value == pytest.approx(kendall(size, error))
    assert answer.answer.startswith("On set0, larger models have a larger ECE (+")
    assert [chart.title for chart in answer.charts] == [
        "set0: accuracy by params",
        "set0: all 80 models",
        "set0: the 30 most accurate models",
    ]


def test_it_can_be_written_as_json() -> None:
    text = json.dumps(review(population(12)).to_dict(), allow_nan=False)
    assert len(json.loads(text)["answers"]) == 7


def test_the_same_seed_gives_the_same_review_and_another_seed_other_intervals() -> None:
    table = population(30, 2)
    first, again, other = review(table, seed=4), review(table, seed=4), review(table, seed=5)
    assert first.to_dict() == again.to_dict()
    assert [f.value for f in findings(first)] == [f.value for f in findings(other)]
    assert [f.low for f in findings(first)] != [f.low for f in findings(other)]


def test_a_further_column_changes_no_other_number() -> None:
    made = columns(40, 2, depth=lambda rng, e, k: k % 5)
    alone = {f.name: f for f in findings(review(StudyTable.of(made)))}
    more = review(StudyTable.of(made | {"width": np.tile(np.arange(40.0) % 11, 2)}))
    beside = {f.name: f for f in findings(more)}
    assert set(alone) < set(beside)
    assert {name: beside[name] for name in alone} == alone


def test_the_order_of_the_rows_does_not_matter_for_the_numbers() -> None:
    table = population(30, 2, depth=lambda rng, e, k: k % 5)
    turned = table.select(np.arange(len(table))[::-1])
    one, two = ({f.name: f.value for f in findings(review(t))} for t in (table, turned))
    shared = set(one) & set(two)  # pairs of data sets are named in the order of the table
    assert len(shared) > 20
    assert [one[name] for name in sorted(shared)] == pytest.approx([two[name] for name in sorted(shared)])


def test_rows_that_failed_are_counted_and_left_out() -> None:
    made = columns(31)
    good = review(StudyTable.of({name: values[:30] for name, values in made.items()}))
    made["pre_ece_15"] = np.where(np.arange(31) == 30, np.nan, made["pre_ece_15"])
    made |= {"status": ["ok"] * 30 + ["failed"], "reason": [""] * 30 + ["no such file"]}
    found = review(StudyTable.of(made))
    assert (found.failed, found.models) == (1, 30)
    assert [answer.answer for answer in found] == [answer.answer for answer in good]
    assert findings(found) == findings(good)


def test_models_without_a_value_are_left_out_where_it_is_needed() -> None:
    made = columns(40)
    made["pre_mce_15"] = np.where(np.arange(40) < 4, np.nan, made["pre_mce_15"])
    made["accuracy"] = np.where(np.arange(40) == 39, np.nan, made["accuracy"])
    found = review(StudyTable.of(made))
    assert {f.n for f in found.answers[2].findings} == {36}
    assert {f.n for f in found.answers[3].findings if "before with after, all" in f.name} == {40}
    assert max(f.n for f in found.answers[4].findings) == 39


@pytest.mark.parametrize("models", [1, 2])
def test_one_or_two_models_have_answers_without_numbers(models: int) -> None:
    found = review(population(models, 2, depth=lambda rng, e, k: k))
    assert len(found.answers) == 7
    assert not [f for f in findings(found) if "correlation" in f.name]
    for answer in found:
        assert answer.answer
        correlations = [f for f in answer.findings if "binomial" not in f.note]
        assert all(math.isnan(f.value) and "at least 3" in f.note for f in correlations)


def test_models_that_are_all_the_same_have_answers_without_correlations() -> None:
    made = columns(30, 2, depth=lambda rng, e, k: k % 3)
    same = {name: [values[0]] * 60 if name not in ("model", "data") else values for name, values in made.items()}
    found = review(StudyTable.of(same))
    assert len(found.answers) == 7
    assert all(math.isnan(f.value) or not -1 <= f.value < 0 for f in findings(found))
    assert "the same" in " ".join(f.note for f in findings(found))
    matrices = [chart for chart in found.charts if isinstance(chart, Matrix)]
    assert all(np.isnan(matrix.values).all() and "constant" in matrix.note for matrix in matrices)
    assert any("copies" in caution for caution in found.cautions)


def test_a_small_population_is_told_from_how_many_models_on_it_would_do() -> None:
    few = review(population(20))
    for answer in few:
        if answer.findings:
            assert any("20 models" in caution and "from about 175" in caution for caution in answer.cautions)
    assert not any("by chance" in c for a in review(population(150)) for c in a.cautions if c.startswith("With"))


def test_copies_of_models_are_pointed_out() -> None:
    made = columns(20)
    doubled = {name: [*values, *values] for name, values in made.items()} | {"model": [f"m{k}" for k in range(40)]}
    cautions = " ".join(review(StudyTable.of(doubled)).cautions)
    assert "20 of 40 on set0" in cautions
    assert "too narrow" in cautions
    assert "copies" not in " ".join(review(StudyTable.of(made)).cautions)


def test_few_test_samples_are_pointed_out() -> None:
    assert any("sampling error" in caution for caution in review(population(30, samples=100)).cautions)
    assert not any("sampling error" in caution for caution in review(population(30, samples=100_000)).cautions)


def test_data_sets_of_different_size_are_pointed_out() -> None:
    made = columns(30, 2)
    made["n"] = np.repeat([500.0, 8000.0], 30)
    table = StudyTable.of(made).select(np.arange(50))
    cautions = " ".join(review(table).cautions)
    assert "have 20 to 30 models" in cautions
    assert "have 500 to 8,000 test samples" in cautions


def test_the_whole_matrices_have_every_measurement_of_every_data_set() -> None:
    found = review(population(30, 2, auroc_svhn=lambda rng, e, k: rng.uniform(size=e.size)))
    matrices = [chart for chart in found.charts if isinstance(chart, Matrix)]
    assert [matrix.method for matrix in matrices] == ["Kendall", "Spearman"] * 2
    for matrix in matrices:
        assert len(matrix.names) == 2 * (5 * 3 + 5) + 2
        assert {"accuracy", "auroc_svhn", "pre_ece_15", "post_nll"} <= set(matrix.names)


def test_models_are_ranked_by_harmonic_calibration_score() -> None:
    accuracy, error = np.array([0.9, 0.8, 0.95, 0.5]), np.array([0.1, 0.01, 0.3, 0.0])
    table = StudyTable.of({"model": list("abcd"), "accuracy": accuracy, "pre_ece_15": error})
    (ranking,) = [chart for chart in review(table, hcs_beta=2.0).charts if isinstance(chart, FindingTable)]
    scores = 3 * accuracy * (1 - error) / (2 * accuracy + 1 - error)
    order = np.argsort(-scores)
    assert [row[1] for row in ranking.rows] == [("abcd")[k] for k in order]
    assert [row[2] for row in ranking.rows] == pytest.approx(scores[order])
    assert {row[1]: row[5:] for row in ranking.rows}["c"] == ("1", "4")


def test_large_populations_are_thinned_for_drawing_only() -> None:
    found = review(population(2500), resamples=20)
    whole = next(chart for chart in found.answers[4].charts if isinstance(chart, ScatterPlot))
    assert whole.x.size == whole.y.size == len(whole.names) == 2000
    assert "2,000 of 2,500" in whole.note
    assert max(finding.n for finding in found.answers[4].findings) == 2500


@pytest.mark.parametrize(
    ("models", "tops", "expected"),
    [
        (200, None, [20, 50, 100, 200]),
        (30, None, [15, 30]),
        (6000, None, [1000, 2000, 3000, 4000, 5000, 6000]),
        (200, [150, 40, 900], [40, 150, 200]),
    ],
)
def test_the_most_accurate_parts_fit_the_population(models: int, tops: Any, expected: list[int]) -> None:
    made = columns(models)
    table = StudyTable.of({name: made[name] for name in ("model", "accuracy", "pre_ece_15")})
    found = review(table, tops=tops, resamples=20)
    assert [f.n for f in found.answers[4].findings if "minus" not in f.name] == expected


def test_the_split_is_the_only_one_or_test_or_the_one_that_is_named() -> None:
    made = columns(12)
    doubled = {name: [*values, *values] for name, values in made.items()}
    both = StudyTable.of(doubled | {"split": ["test"] * 12 + ["clean"] * 12})
    assert review(both).split == "test"
    assert review(both, split="clean").split == "clean"
    with pytest.raises(InputError, match="pass split"):
        review(StudyTable.of(doubled | {"split": ["a"] * 12 + ["b"] * 12}))
    with pytest.raises(InputError, match="'test', 'clean'"):
        review(both, split="validation")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "accuracy"}, "metric: 'accuracy' is not one of 'ece'"),
        ({"bins": 20}, "measured at 5, 15, 100 bins"),
        ({"robustness": ["depht"]}, "did you mean 'depth'"),
        ({"sizes": ["edge"]}, "'edge' holds text"),
        ({"tops": [0]}, "tops: 0 is not"),
        ({"tops": 5, "least": 5}, "least: it is given with tops"),
        ({"questions": 8}, "questions: 8 is not"),
        ({"data": "mnist"}, "data: there is no data set 'mnist'; the table has 'set0'"),
        ({"resamples": 3}, "resamples: 3 is not"),
        ({"level": 95}, "level: 95 is not between 0 and 1"),
        ({"seed": -1}, "seed: -1 is not"),
        ({"hcs_beta": 0}, "hcs_beta: 0 is not a number above 0"),
        ({"bin": 5}, "unexpected argument 'bin'; did you mean 'bins'"),
    ],
)
def test_what_cannot_be_used_is_named_with_a_remedy(options: dict[str, Any], words: str) -> None:
    table = population(12, depth=lambda rng, e, k: k % 3, edge=lambda rng, e, k: ["skip"] * e.size)
    with pytest.raises(InputError, match=words):
        review(table, **options)


def test_a_table_without_measured_rows_is_refused() -> None:
    made = columns(3)
    with pytest.raises(InputError, match="no row of split 'test' was measured"):
        review(StudyTable.of(made | {"status": ["failed"] * 3}))
    with pytest.raises(InputError, match="measure the models first"):
        review(StudyTable.of({"model": ["a"], "accuracy": [0.5]}))
    with pytest.raises(InputError, match="it has nll: pass metric"):
        review(StudyTable.of({"model": ["a"], "pre_nll": [0.5]}))


@pytest.mark.parametrize("metric", ["classwise_ece", "ks_error", "nll", "brier_score"])
def test_other_metrics_can_be_reviewed(metric: str) -> None:
    found = review(population(30, 2), metric=metric, resamples=20)
    assert found.settings["metric"] == metric
    assert all(answer.answer for answer in found)
    assert found.answers[5].findings  # of the ECE where the metric has no bins


def test_the_most_accurate_of_equally_accurate_models_are_pointed_out() -> None:
    made = columns(60) | {"accuracy": np.r_[np.full(4, 0.95), np.full(56, 0.9)]}
    cautions = " ".join(review(StudyTable.of(made), tops=[20]).cautions)
    assert "16 of the 20 on set0 are as accurate as 40 others" in cautions
    assert "decides between equals" not in " ".join(review(population(60)).cautions)


def test_scores_of_numbers_that_are_no_shares_are_not_ranked() -> None:
    table = StudyTable.of(
        {"model": list("abcd"), "accuracy": [0.9, 93.0, 0.0, np.nan], "pre_ece_15": [0.1, 4.2, 1.0, 0.1]}
    )
    (ranking,) = [chart for chart in review(table).charts if isinstance(chart, FindingTable)]
    assert [row[1:3] for row in ranking.rows] == [("a", pytest.approx(0.9)), ("c", 0.0)]


def test_a_table_is_reviewed_by_the_name_of_its_file_as_well(tmp_path: Path) -> None:
    table = population(30)
    table.write(tmp_path / "study.parquet")
    found = review(tmp_path / "study.parquet", resamples=20)
    assert found.source == str(tmp_path / "study.parquet")
    assert found.to_csv() == review(table, resamples=20).to_csv()
    with pytest.raises(InputError, match="this is a folder; measure its predictions first"):
        review(tmp_path)
    with pytest.raises(InputError, match="pass a StudyTable or the name of its file"):
        review(7)


def test_one_column_may_be_given_as_a_text() -> None:
    found = review(population(30, depth=lambda rng, e, k: k % 3), sizes="depth", resamples=20)
    assert found.settings["sizes"] == ["depth"]


def test_parts_of_the_models_that_cannot_be_reviewed_are_told() -> None:
    cautions = review(population(30), tops=[5, 10, 1_000_000], resamples=20).cautions
    assert cautions[-1] == (
        "Not reviewed: the top 5 (fewer than 10 models are too few) and the top 1,000,000 (there are only 30 models)."
    )
    assert not any("Not reviewed" in each for each in review(population(30), tops=[10], resamples=20).cautions)
