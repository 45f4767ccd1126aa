"""Questions 4 to 7 with planted truths: temperature scaling, accuracy, bins, architecture."""

import math
from typing import Any

import numpy as np
import pytest

from certcal.lab.study import (
    BoxPlots,
    Finding,
    FindingTable,
    Matrix,
    ScatterPlot,
    StudyTable,
    kendall,
    kendall_resampled,
    review,
)
from certcal.lab.study._population import Sheet
from certcal.lab.study.questions._architecture import _at_equal_accuracy, _holm, _p_value
from certcal.metrics import ece, equal_mass_ece, ks_error
from tests.study.populations import asked, columns, population


def named(findings: tuple[Finding, ...], words: str) -> Finding:
    (found,) = [finding for finding in findings if words in finding.name]
    return found


def test_scaling_that_halves_every_error_keeps_the_order_and_helps_all() -> None:
    made = columns(80)
    made["post_ece_15"] = np.asarray(made["pre_ece_15"]) / 2
    answer = asked(4, StudyTable.of(made))
    assert named(answer.findings, "before with after, all").value == 1
    share = named(answer.findings, "share of models")
    assert (share.value, share.high) == (1, 1)
    assert share.low == pytest.approx(0.025 ** (1 / 80))
    assert named(answer.findings, "median ECE after / before").value == pytest.approx(0.5)
    assert "mostly survives" in answer.answer


def test_scaling_that_forgets_the_order_is_said_to() -> None:
    answer = asked(4, population(150))
    found = named(answer.findings, "before with after, all")
    assert found.low < 0 < found.high
    assert "survive" in answer.answer
    (matrix,) = answer.charts
    assert isinstance(matrix, Matrix)
    assert matrix.names == ("pre 5", "pre 15", "pre 100", "post 5", "post 15", "post 100")


def test_scaling_that_turns_the_order_over_is_said_to() -> None:
    made = columns(80)
    made["post_ece_15"] = 0.2 - np.asarray(made["pre_ece_15"]) / 10
    answer = asked(4, StudyTable.of(made))
    assert "mostly reversed" in answer.answer
    assert named(answer.findings, "share of models").value < 0.1


def test_an_error_that_chance_explains_is_pointed_out() -> None:
    small = asked(4, population(40, samples=500)).cautions
    assert any("may be mostly noise" in caution for caution in small)
    assert not any("noise" in c for c in asked(4, population(40, samples=1_000_000)).cautions)


def test_without_measurements_after_scaling_it_says_what_is_missing() -> None:
    made = {name: values for name, values in columns(30).items() if not name.startswith("post_")}
    found = review(StudyTable.of(made))
    assert "no column post_ece_15" in found.answers[3].answer
    assert found.answers[3].findings == ()
    assert found.answers[5].findings  # before scaling, bins can be compared
    assert "after scaling" not in found.answers[5].answer


def test_accuracy_that_matters_among_the_best_only_is_found_there_only() -> None:
    made = columns(400)
    accuracy, error = np.asarray(made["accuracy"]), np.asarray(made["pre_ece_15"])
    best = np.argsort(-accuracy)[:100]
    error[best] = 1 - accuracy[best]
    answer = asked(5, StudyTable.of(made | {"pre_ece_15": error}), tops=[100])
    top = next(f for f in answer.findings if f.name.endswith("accuracy with ECE, top 100"))
    assert top.value == -1
    change = named(answer.findings, "top 100 minus all")
    assert change.high < 0
    assert "; among the 100 most accurate, more accurate models have a smaller ECE" in answer.answer
    assert ": clear)." in answer.answer
    whole, few = answer.charts
    assert isinstance(whole, ScatterPlot)
    assert isinstance(few, ScatterPlot)
    assert (whole.x.size, few.x.size) == (400, 100)
    assert few.x.min() > 0.8


def test_accuracy_is_correlated_with_the_plain_sign() -> None:
    made = columns(50)
    answer = asked(5, StudyTable.of(made))
    found = next(f for f in answer.findings if f.name == "set0: accuracy with ECE, all models")
    assert found.value == pytest.approx(kendall(made["accuracy"], made["pre_ece_15"]))


def test_accuracies_that_differ_by_chance_only_are_pointed_out() -> None:
    made = columns(60, samples=200) | {"accuracy": 0.9 + 0.001 * np.random.default_rng(0).normal(size=60)}
    assert any("the two look related" in caution for caution in asked(5, StudyTable.of(made)).cautions)
    assert not any("look related" in c for c in asked(5, population(60, samples=100_000)).cautions)


def test_without_accuracy_the_other_questions_are_answered() -> None:
    made = {name: values for name, values in columns(40, 2, depth=lambda r, e, k: k % 4).items() if name != "accuracy"}
    found = review(StudyTable.of(made | {"auroc_far": np.random.default_rng(0).uniform(size=80)}))
    assert "no column accuracy" in found.answers[4].answer
    assert found.answers[4].findings == ()
    for place in (0, 1, 2, 3, 5, 6):
        assert found.answers[place].findings


def test_bins_that_inflate_the_error_after_scaling_only_are_found() -> None:
    made = columns(100)
    for stage, factor in (("pre", 1.0), ("post", 5.0)):
        made[f"{stage}_ece_100"] = np.asarray(made[f"{stage}_ece_15"]) * factor
    answer = asked(6, StudyTable.of(made))
    before, after = (named(answer.findings, f"{words} scaling, 100 bins / 15 bins") for words in ("before", "after"))
    assert (before.value, after.value) == pytest.approx((1, 5))
    contrast = named(answer.findings, "after scaling / before")
    assert (contrast.value, contrast.low, contrast.high) == pytest.approx((5, 5, 5))
    assert "Bins matter more after scaling" in answer.answer
    first, second = answer.charts
    assert isinstance(first, BoxPlots)
    assert isinstance(second, BoxPlots)
    assert [box.name for box in first.boxes] == ["5", "15", "100"]
    assert second.boxes[2].median == pytest.approx(5 * second.boxes[1].median)


def test_bins_that_change_nothing_are_said_to_be_unclear() -> None:
    answer = asked(6, population(100))
    assert "is not clear" in answer.answer


def test_one_number_of_bins_cannot_be_compared() -> None:
    made = {name: values for name, values in columns(30).items() if not name.endswith(("_5", "_100"))}
    answer = asked(6, StudyTable.of(made))
    assert "two numbers of bins" in answer.answer
    assert answer.findings == ()


@pytest.mark.parametrize("bins", [1, 15, 200])
def test_a_calibrated_model_shows_no_more_than_the_bias_that_is_stated(bins: int) -> None:
    rng = np.random.default_rng(bins)
    confidence = rng.uniform(0.5, 1, 400)
    shown = [ece(confidence, rng.uniform(size=400) < confidence, bins) for _ in range(200)]
    table = StudyTable.of({"model": ["a"], "accuracy": [confidence.mean()], "n": [400]})
    limit = Sheet.of("data", table, np.arange(1)).error_by_chance(bins)
    assert np.mean(shown) <= limit
    occupied = max(1, bins / 2)  # confidences below a half do not occur
    # The limit is no more than the square roots of π/2, of the empty bins and of Jensen's step above the mean.
    variance = np.mean(confidence * (1 - confidence)) / (confidence.mean() * (1 - confidence.mean()))
    assert limit <= 1.1 * np.mean(shown) * math.sqrt(math.pi / 2 * bins / occupied / variance)


def test_a_size_that_orders_the_errors_is_found() -> None:
    table = population(
        120, width=lambda rng, e, k: np.argsort(np.argsort(e)), depth=lambda rng, e, k: rng.integers(1, 5, e.size)
    )
    answer = asked(7, table)
    width, depth = (named(answer.findings, f"{name} with ECE, all models") for name in ("width", "depth"))
    assert named(answer.findings, "width with ECE, at equal accuracy").value == 1
    assert width.value == 1
    assert depth.low < 0 < depth.high
    assert "larger width (+1.00 [+0.90, +1.00]; at equal accuracy +1.00 [" in answer.answer
    assert "depth" in answer.answer
    assert any("Of 4 intervals" in caution for caution in answer.cautions)
    first, second = answer.charts
    assert isinstance(first, BoxPlots)
    assert isinstance(second, BoxPlots)
    assert [box.n for box in first.boxes] == [24] * 5
    assert (np.diff([box.median for box in first.boxes]) > 0).all()
    assert [box.name for box in second.boxes] == ["1", "2", "3", "4"]


def test_a_design_that_only_the_best_models_have_is_found() -> None:
    made = columns(300)
    accuracy, error = np.asarray(made["accuracy"]), np.asarray(made["pre_ece_15"])
    score = 2 * accuracy * (1 - error) / (accuracy + 1 - error)
    edge = np.random.default_rng(0).choice(["none", "conv", "pool"], 300).astype(object)
    edge[np.argsort(-score)[:20]] = "skip"
    answer = asked(7, StudyTable.of(made | {"edge_4": edge}))
    found = named(answer.findings, "edge_4 = skip among the 20 models with the best harmonic calibration score")
    assert (found.value, found.high, found.n) == (1, 1, 20)
    assert found.low == pytest.approx(0.025 ** (1 / 20))
    assert "edge_4 = skip (100.0 % [83.1 %, 100.0 %] against 7 % of all and " in answer.answer
    (table,) = answer.charts
    assert isinstance(table, FindingTable)
    assert len(table.rows) == 4
    assert "corrected for 4 comparisons" in table.note


def cells(seed: int, models: int = 200) -> dict[str, Any]:
    """Cells whose operations decide how accurate they are, and have nothing to do with how well they are calibrated."""
    rng = np.random.default_rng([seed, 7])
    edges = rng.integers(0, 5, (models, 6))
    accuracy = 0.7 + 0.04 * (edges * [2.0, 1, 1, 0, 0, 0] / 5).sum(axis=1) + rng.normal(0, 0.01, models)
    made = {
        "model": [f"m{k}" for k in range(models)],
        "accuracy": accuracy,
        "pre_ece_15": rng.uniform(0.01, 0.04, models),
    }
    names = np.array(["none", "skip", "pool", "conv1", "conv3"], object)
    return made | {f"edge_{k + 1}": names[edges[:, k]] for k in range(6)}


def test_designs_that_only_make_models_accurate_are_seldom_found_at_equal_accuracy() -> None:
    """Holm's correction: at the level of 95 %, at most 5 % of such populations have any finding.

    The best by harmonic calibration score have the designs of accurate models nevertheless, and that is said of them.
    """
    calibrated, best, sizes = 0, 0, 0
    for seed in range(60):
        made = cells(seed)
        made["conv3"] = sum((made[f"edge_{k}"] == "conv3").astype(float) for k in range(1, 7))
        answer = asked(7, StudyTable.of(made), resamples=20)
        calibrated += "at equal accuracy no design is clearly" not in answer.answer
        best += "Whatever the accuracy, no design is clearly" not in answer.answer
        sizes += named(answer.findings, "conv3 with ECE, at equal accuracy").excludes_zero
    assert calibrated <= 9  # more than nine of 60 at 5 % have a probability below 0.001
    assert sizes <= 9
    assert best >= 55


def test_a_design_that_calibrates_is_found_at_equal_accuracy_whatever_makes_models_accurate() -> None:
    made = cells(0, 400)
    made["pre_ece_15"] = made["pre_ece_15"] - np.where(made["edge_5"] == "skip", 0.01, 0)
    answer = asked(7, StudyTable.of(made))
    assert "at equal accuracy the better calibrated models differ in the share of edge_5 = skip (" in answer.answer
    assert "Whatever the accuracy, the 20 models with the best harmonic calibration score differ in" in answer.answer
    found = named(answer.findings, "edge_5 = skip with the lowest ECE at equal accuracy")
    assert (found.n, found.low > 0.25) == (80, True)
    (table,) = answer.charts
    assert isinstance(table, FindingTable)
    (row,) = [dict(zip(table.header, row, strict=True)) for row in table.rows if row[:2] == ("edge_5", "skip")]
    assert row["lowest at equal accuracy"] == found.value
    assert row["p at equal accuracy (Holm)"] <= 0.05
    best = np.argsort(-np.asarray(made["accuracy"]))[:20]
    assert row["of the 20 most accurate"] == np.mean(made["edge_5"][best] == "skip")


def test_the_best_of_strata_are_counted_as_by_every_permutation() -> None:
    """Five models or six in a stratum, all of their orders: how often the lowest of each has the design."""
    has = np.array([1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0])
    error = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.1, 0.2, 0.3, 0.4, 0.5])
    (_, found) = _at_equal_accuracy({"edge": np.where(has, "x", "a").astype(object)}, error)
    first, second = np.meshgrid(has[:5], has[5:])
    law = np.bincount((first + second).ravel()) / first.size
    assert (found.seen, found.chosen) == (2, 2)
    assert found.expected == pytest.approx((0.4 + 1 / 6) / 2)
    assert found.p_value == pytest.approx(2 * law[2])
    tied = _at_equal_accuracy({"edge": np.where(has, "x", "a").astype(object)}, np.minimum(error, 0.1))
    assert [test.chosen for test in tied] == [0, 0]


def test_few_models_have_no_comparison_of_designs() -> None:
    answer = asked(7, population(30, edge=lambda rng, e, k: rng.choice(["a", "b"], e.size).astype(object)))
    assert "30 models are too few" in answer.answer
    assert "from 50 on" in answer.answer


def test_columns_with_many_texts_or_one_value_are_no_designs() -> None:
    table = population(30, note=lambda r, e, k: [f"n{x}" for x in k], same=lambda r, e, k: np.full(e.size, 3.0))
    answer = asked(7, table)
    assert "no columns that describe the models" in answer.answer
    assert answer.findings == ()


def test_chosen_columns_replace_those_that_came_with_the_models() -> None:
    table = population(80, width=lambda r, e, k: k % 9, depth=lambda r, e, k: k % 4, kind=lambda r, e, k: k % 2)
    found = review(table, sizes=["width"], architecture=["kind"])
    assert found.settings["sizes"] == ["width"]
    assert found.settings["architecture"] == ["kind"]
    names = [finding.name for finding in found.answers[6].findings]
    assert not any("depth" in name for name in names)
    assert any("kind = 0" in name or "kind = 1" in name for name in names)


def test_p_values_are_those_of_the_hypergeometric_distribution() -> None:
    from scipy.stats import hypergeom

    for n, among, k, seen in ((50, 20, 10, 8), (50, 20, 10, 0), (200, 3, 20, 1), (1000, 500, 20, 20)):
        law = hypergeom(n, among, k)
        expected = min(1.0, 2 * min(law.cdf(seen), law.sf(seen - 1)))
        assert _p_value(n, among, k, seen) == pytest.approx(expected, rel=1e-9)
    assert _holm([]) == []
    assert _holm([0.5, 0.9]) == [1.0, 1.0]


def test_the_stated_bias_is_reached_by_a_coin() -> None:
    """One sample of confidence one half: the gap is one half whatever happens, so that no smaller limit would do."""
    table = StudyTable.of({"model": ["a"], "accuracy": [0.5], "n": [1]})
    assert Sheet.of("data", table, np.arange(1)).error_by_chance(1) == ece([0.5], [True], 1) == 0.5


@pytest.mark.parametrize("metric", [ece, equal_mass_ece, ks_error])
def test_the_sampling_error_of_an_overconfident_model_is_at_most_the_stated_one_and_near_it(metric: Any) -> None:
    rng = np.random.default_rng(3)
    confidence = rng.uniform(0.9, 1, 300)
    shown = [metric(confidence, rng.uniform(size=300) < 0.7) for _ in range(400)]
    table = StudyTable.of({"model": ["a"], "accuracy": [0.7], "n": [300]})
    limit = Sheet.of("data", table, np.arange(1)).error_by_chance(1)
    # The deviation of 400 numbers is known to 3.5 %.
    assert 0.85 * limit < np.std(shown, ddof=1) < 1.12 * limit


def test_a_correlation_whose_interval_begins_near_zero_is_not_said_to_be_strong() -> None:
    rng = np.random.default_rng(0)
    before = rng.uniform(0.01, 0.1, 12)
    after = before + rng.normal(0, 0.022, 12)
    table = StudyTable.of({"model": list("abcdefghijkl"), "pre_ece_15": before, "post_ece_15": after})
    answer = asked(4, table)
    found = named(answer.findings, "before with after, all")
    assert found.value > 0.6
    assert 0.1 < found.low < 0.3
    assert "survives in part" in answer.answer


def test_errors_that_vanish_after_scaling_are_answered_without_an_interval() -> None:
    made = columns(30)
    zero = {name: np.zeros(30) for name in made if name.startswith("post_")}
    found = review(StudyTable.of(made | zero))
    ratio = named(found.answers[3].findings, "median ECE after / before")
    assert ratio.value == 0
    assert math.isnan(ratio.low)
    assert "no interval" in found.answers[3].answer


def test_the_best_of_models_with_equal_scores_are_not_the_first_of_the_table() -> None:
    made = {"model": [f"m{k:03}" for k in range(200)], "accuracy": np.full(200, 0.9), "pre_ece_15": np.full(200, 0.02)}
    made["edge"] = np.repeat(["conv", "skip"], 100).astype(object)
    answer = asked(7, StudyTable.of(made))
    assert "too many models share the best" in answer.answer
    assert answer.findings == ()
    made["accuracy"] = np.where(np.arange(200) % 25 == 0, 0.95, 0.9)  # eight are better than the rest
    (found,) = asked(7, StudyTable.of(made)).findings
    assert (found.n, found.value) == (8, 0.5)


def test_several_data_sets_are_said_not_to_be_corrected_for_together() -> None:
    made = columns(60, 2, edge=lambda rng, e, k: rng.choice(["a", "b"], e.size).astype(object))
    assert any("not for those of all together" in c for c in asked(7, StudyTable.of(made)).cautions)


@pytest.mark.parametrize(("models", "top"), [(60, 15), (3000, 300)])
def test_the_change_among_the_most_accurate_varies_as_in_whole_resamples(models: int, top: int) -> None:
    made = columns(models)
    table = StudyTable.of({name: made[name] for name in ("model", "accuracy", "pre_ece_15")})
    found = named(asked(5, table, tops=[top], resamples=600).findings, "minus all")
    order = np.argsort(-np.asarray(made["accuracy"]))
    x, y = (np.asarray(made[name])[order] for name in ("accuracy", "pre_ece_15"))
    assert found.value == pytest.approx(kendall(x[:top], y[:top]) - kendall(x, y))
    rows = np.sort(np.random.default_rng(5).integers(0, models, (400, models)), axis=1)
    deviation = (kendall_resampled(x, y, rows[:, :top]) - kendall_resampled(x, y, rows)).std()
    quantile = {60: 2.001, 3000: 1.961}[models]
    # Both deviations are known to 4 %.
    assert (found.high - found.low) / 2 == pytest.approx(quantile * deviation, rel=0.15)


def test_an_error_that_stays_the_same_is_not_lowered() -> None:
    made = columns(20)
    before = np.asarray(made["pre_ece_15"])
    table = StudyTable.of(made | {"post_ece_15": np.where(np.arange(20) < 5, before / 2, before)})
    assert named(asked(4, table).findings, "share of models").value == 0.25


def test_growth_that_is_larger_by_chance_is_not_said_to_matter_more() -> None:
    made = columns(100)
    contrast = named(asked(6, StudyTable.of(made)).findings, "after scaling / before").value
    for factor in (0.97 / contrast, 1.03 / contrast):
        turned = made | {"post_ece_100": np.asarray(made["post_ece_100"]) * factor}
        answer = asked(6, StudyTable.of(turned))
        found = named(answer.findings, "after scaling / before")
        assert found.value == pytest.approx(factor * contrast)
        assert found.low < 1 < found.high
        assert "is not clear" in answer.answer
