"""Questions 1 to 3 with planted truths: data sets, robustness, agreement of metrics."""

import math

import numpy as np
import pytest

from certcal.lab.study import Finding, Lines, Matrix, StudyTable, kendall, review
from tests.study.populations import asked, columns, population


def named(findings: tuple[Finding, ...], words: str) -> Finding:
    (found,) = [finding for finding in findings if words in finding.name]
    return found


def test_unrelated_data_sets_have_an_interval_around_zero() -> None:
    answer = asked(1, population(150, 2))
    found = named(answer.findings, "all 150 models")
    assert found.low < 0 < found.high
    assert abs(found.value) < 0.2
    assert answer.answer.startswith(("It cannot be told", "No."))


def test_data_sets_that_order_models_alike_have_a_correlation_of_one() -> None:
    made = columns(80)
    twice = {name: [*values, *values] for name, values in made.items()} | {"data": ["a"] * 80 + ["b"] * 80}
    answer = asked(1, StudyTable.of(twice))
    found = named(answer.findings, "a and b, all")
    assert (found.value, found.high) == (1, 1)
    assert 0.8 < found.low < 1
    assert answer.answer.startswith("Largely.")


def test_models_are_drawn_with_all_their_data_sets() -> None:
    made = columns(60, 2)
    # The third data set is a copy of the second. If models were drawn anew for each pair of data sets, the intervals of
    # the two pairs with the first one would differ.
    thrice = {name: [*values, *values[60:]] for name, values in made.items()}
    thrice["data"] = ["a"] * 60 + ["b"] * 60 + ["c"] * 60
    answer = asked(1, StudyTable.of(thrice))
    one, two = named(answer.findings, "a and b, all"), named(answer.findings, "a and c, all")
    assert (one.value, one.low, one.high) == (two.value, two.low, two.high)
    mean = named(answer.findings, "mean over pairs of data sets, all")
    assert mean.value == pytest.approx((2 * one.value + 1) / 3)
    # The mean is (2a + 1)/3 in every resample, so that it varies two thirds as much (on its own scale).
    half = [math.atanh(f.high) - math.atanh(f.value) for f in (mean, one)]
    assert half[0] * (1 - mean.value**2) == pytest.approx(2 / 3 * half[1] * (1 - one.value**2))


def test_data_sets_are_compared_on_the_models_that_both_have() -> None:
    made = columns(50, 2)
    table = StudyTable.of(made).select(np.r_[0:50, 70:100])  # set1 without its first 20 models
    found = named(asked(1, table).findings, "set0 and set1, all 30 models")
    error = np.asarray(made["pre_ece_15"])
    assert found.n == 30
    assert found.value == pytest.approx(kendall(error[20:50], error[70:100]))


def test_the_most_accurate_models_have_the_best_mean_rank_over_data_sets() -> None:
    made = columns(40, 2)
    answer = asked(1, StudyTable.of(made), tops=[12])
    accuracy, error = (np.reshape(made[name], (2, 40)) for name in ("accuracy", "pre_ece_15"))
    ranks = np.argsort(np.argsort(-accuracy, axis=1), axis=1).sum(axis=0)
    best = np.argsort(ranks, kind="stable")[:12]
    found = named(answer.findings, "the 12 most accurate models")
    assert found.value == pytest.approx(kendall(error[0, best], error[1, best]))
    assert any("mean rank" in caution for caution in answer.cautions)
    top, whole = answer.charts
    assert isinstance(top, Matrix)
    assert isinstance(whole, Matrix)
    assert (top.n, whole.n) == (12, 40)


def test_many_data_sets_are_summed_up_by_their_mean() -> None:
    answer = asked(1, population(15, 7), resamples=20)
    assert all("mean" in finding.name for finding in answer.findings)
    assert "The pairs lie between" in answer.answer


def test_one_data_set_cannot_say_whether_anything_carries_over() -> None:
    answer = asked(1, population(30))
    assert "one data set, set0" in answer.answer
    assert answer.findings == answer.charts == ()
    apart = columns(30, 2) | {"model": [f"m{k}" for k in range(60)]}
    assert "Only 0 models" in asked(1, StudyTable.of(apart)).answer


def test_without_robustness_columns_it_says_which_to_add() -> None:
    answer = asked(2, population(30))
    assert "no robustness columns" in answer.answer
    assert "auroc_" in answer.answer
    assert answer.findings == ()


def test_robustness_that_follows_the_error_among_accurate_models_only_is_found_there_only() -> None:
    made = columns(200)
    accuracy, error = np.asarray(made["accuracy"]), np.asarray(made["pre_ece_15"])
    good = np.argsort(-accuracy)[:50]
    robust = np.random.default_rng(1).normal(size=200)
    robust[good] = -error[good]
    answer = asked(2, StudyTable.of(made | {"robust": robust}), robustness=["robust"], tops=[50])
    top, whole = (named(answer.findings, f"robust with ECE, {which}") for which in ("top 50", "all models"))
    assert top.value == -1
    assert top.high < whole.low
    assert "Among the 50 most accurate models that is different for robust (−1.00" in answer.answer
    (lines,) = answer.charts
    assert isinstance(lines, Lines)
    assert lines.x == (50, 200)
    assert lines.names == ("robust", "accuracy", "equal-mass ECE", "KS calibration error", "MMCE")
    assert lines.values[0].tolist() == [top.value, whole.value]
    assert (lines.low[2:] > 0.5).all()


@pytest.mark.parametrize("measured", [True, False])
def test_the_published_top_1000_are_said_to_be_the_least_accurate_and_those_here_the_most(measured: bool) -> None:
    table = population(60, robust=lambda rng, e, k: e) if measured else population(60)
    answer = asked(2, table, robustness=["robust"] if measured else None)
    assert "these are the 1,000 least accurate models" in answer.published
    assert "This review takes the most accurate models instead." in answer.published
    assert "the more robust model has the larger error" in answer.published
    assert "accuracy under PGD attacks is +0.27" in answer.published
    assert not any("1,000 most accurate" in each.published for each in review(table).answers)


def test_the_direction_of_robustness_is_said_in_words() -> None:
    table = population(
        100, auroc_far=lambda rng, e, k: -e + 0.001 * rng.normal(size=e.size), wrong=lambda rng, e, k: 2 * e
    )
    answer = asked(2, table, robustness=["wrong"])
    assert "higher auroc_far (−0.9" in answer.answer
    assert "goes with a smaller ECE" in answer.answer
    assert "higher wrong (+1.00" in answer.answer
    assert "goes with a larger one" in answer.answer
    assert "no clear relation" not in answer.answer


def test_metrics_that_agree_and_one_that_does_not_are_told_apart() -> None:
    made = columns(120)
    made["pre_classwise_equal_mass_ece_15"] = -np.asarray(made["pre_ece_15"]) + 1
    answer = asked(3, StudyTable.of(made))
    assert "classwise equal-mass ECE agrees least (−0." in answer.answer
    assert "the least in 100 % of the resamples" in answer.answer
    assert named(answer.findings, "classwise equal-mass ECE with").high < 0
    assert named(answer.findings, "set0: ECE with").low > 0.4
    assert len(answer.findings) == 10


def test_the_mean_agreement_is_that_of_the_matrix() -> None:
    made = columns(60)
    answer = asked(3, StudyTable.of(made))
    (matrix,) = answer.charts
    assert isinstance(matrix, Matrix)
    names = [f"pre_{m}_15" for m in ("ece", "equal_mass_ece")]
    assert matrix.values[0, 1] == pytest.approx(kendall(*(made[name] for name in names)))
    means = [finding.value for finding in answer.findings]
    assert means == pytest.approx((matrix.values.sum(axis=0) - 1) / 9)


def test_where_it_does_agree_the_suspected_metric_is_said_to() -> None:
    made = columns(60)
    made["pre_nll"] = np.random.default_rng(9).uniform(size=60)
    text = asked(3, StudyTable.of(made)).answer
    assert "NLL agrees least" in text
    assert "Classwise equal-mass ECE has +0." in text


def test_metrics_that_agree_alike_but_for_rounding_are_named_together() -> None:
    made = columns(40)
    for name in ("equal_mass_ece_15", "classwise_ece_15"):  # other numbers, the same order as the ECE
        made[f"pre_{name}"] = 2 * np.asarray(made["pre_ece_15"])
    for name, seed in (("nll", 1), ("brier_score", 2)):
        made[f"pre_{name}"] = np.random.default_rng(seed).uniform(size=40)
    answer = asked(3, StudyTable.of(made))
    assert "On set0, ECE, equal-mass ECE and classwise ECE agree best with the other metrics" in answer.answer
    assert "; one of them the best in 100 % of the resamples)" in answer.answer
    same = {name: made["pre_ece_15"] for name in made if name.startswith("pre_")}
    assert "all metrics agree alike" in asked(3, StudyTable.of(made | same)).answer


def test_two_metrics_are_too_few_to_say_which_agrees_least() -> None:
    made = columns(30)
    table = StudyTable.of({name: made[name] for name in ("model", "accuracy", "pre_ece_15", "pre_nll")})
    answer = asked(3, table)
    assert "Needs three metrics" in answer.answer
    assert answer.findings == ()


def on_sets(*errors: np.ndarray) -> StudyTable:
    """Models with these errors on one data set after another."""
    n = errors[0].size
    names = [f"set{place}" for place in range(len(errors)) for _ in range(n)]
    return StudyTable.of(
        {"model": [f"m{k}" for k in range(n)] * len(errors), "data": names, "pre_ece_15": np.concatenate(errors)}
    )


def test_data_sets_of_which_some_agree_and_some_are_opposed_are_not_called_one_or_the_other() -> None:
    error = np.arange(1, 41) / 100
    answer = asked(1, on_sets(error, error**2, 0.5 - error))
    assert answer.answer.startswith("It depends on the data sets.")
    assert asked(1, on_sets(error, 0.5 - error)).answer.startswith("No, rather the opposite.")


def test_a_negligible_negative_correlation_is_no_opposite() -> None:
    from certcal.lab.study.questions._orders import _verdict

    assert _verdict(Finding("mean", -0.04, -0.06, -0.02, 9000), []) == "No."
    assert _verdict(Finding("mean", -0.2, -0.3, -0.1, 9000), []) == "No, rather the opposite."


def test_a_mean_over_pairs_with_few_models_in_common_has_no_interval() -> None:
    error = np.random.default_rng(0).uniform(0.01, 0.1, (3, 60))
    error[0, :30] = np.nan
    error[1, 35:] = np.nan  # five models in common with the first
    answer = asked(1, on_sets(*error))
    mean = named(answer.findings, "mean over pairs of data sets")
    assert mean.n == 5
    assert math.isnan(mean.low)
    assert "5 to 35 models in common" in mean.note
    assert math.isfinite(named(answer.findings, "set0 and set2").low)


def test_a_robustness_that_few_models_have_is_not_said_of_all() -> None:
    made = columns(100)
    some = np.where(np.arange(100) < 30, -np.asarray(made["pre_ece_15"]), np.nan)
    table = StudyTable.of(made | {"some": some, "none": np.full(100, np.nan)})
    text = asked(2, table, robustness=["some", "none"]).answer
    assert "higher some (−1.00 [−1.00, −0.63], of the 30 models that have it)" in text
    assert "none has too few values" in text
    assert "no clear relation" not in text


def test_metrics_that_all_agree_alike_have_no_best_and_no_least() -> None:
    made = columns(30)
    same = {f"pre_{metric}": made["pre_ece_15"] for metric in ("ece_15", "nll", "mmce")}
    table = StudyTable.of({"model": made["model"]} | same)
    assert "all metrics agree alike with one another (mean correlation +1.00" in asked(3, table).answer


def test_which_metric_agrees_least_is_asked_of_resamples_as_large_as_the_population() -> None:
    from certcal.lab.study.questions._orders import _steadiness

    values = np.array([0.5, 0.4])
    first = np.array([0.35, 0.5, 0.5, np.nan])
    resampled = np.stack([first, np.array([0.4, 0.4, 0.4, 0.4])])
    assert _steadiness(values, resampled, 1000) == pytest.approx((2 / 3, 2 / 3))
    assert _steadiness(values, resampled, 4000) == (1, 1)  # half as far from what was found
    assert all(map(math.isnan, _steadiness(values, np.empty((2, 0)), 5)))


def test_a_robustness_whose_correlations_differ_by_chance_is_not_said_to_change() -> None:
    table = population(100, robust=lambda rng, e, k: rng.uniform(size=e.size))
    answer = asked(2, table, robustness=["robust"], tops=[30])
    top, whole = (named(answer.findings, f"robust with ECE, {which}") for which in ("top 30", "all models"))
    assert top.value != whole.value
    assert top.low < whole.high
    assert whole.low < top.high
    assert "The 30 most accurate do not clearly differ." in answer.answer
