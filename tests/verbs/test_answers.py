"""Answers: what is planted is found, and calibrated scores are rarely called wrong."""

import json
from typing import Any

import numpy as np
import pytest

import certcal
from certcal.binning import BinTable, equal_width_edges, sums
from certcal.bounds import clopper_pearson
from certcal.claims import Estimate, Interval
from certcal.metrics import measure as measure_rows
from certcal.verbs.answers import ERROR, GROUPS, SEGMENTS, SLOPE, WHOLE, Diagnosis, calibration_answer
from certcal.verbs.groups import group_rates

RNG = np.random.default_rng(20)
SCORES = np.sort(RNG.beta(1.2, 3, 6000))


def odds(p: Any) -> Any:
    return np.log(p / (1 - p))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def measured(rate: Any, scores: Any = SCORES, **options: Any) -> certcal.Measurement:
    """Scores whose outcomes have a rate that is a function of them."""
    outcomes = np.random.default_rng(3).random(scores.size) < rate(scores)
    return certcal.measure(outcomes.astype(int), scores, **options)


def texts(found: certcal.Measurement) -> list[str]:
    return [f"{each.kind}: {each.text}" for each in found.answer]


def test_scores_that_are_too_extreme_and_understate_low_risks_are_called_so() -> None:
    found = measured(lambda s: sigmoid(0.67 * odds(s) - 0.1)).answer
    assert [each.kind for each in found] == ["shown", "shown", "shown", "next"]
    assert found[0].text.startswith("Not calibrated: low scores are understated")
    assert found[1].text.startswith("Scores are too extreme: slope 0.6")
    low, high = found[1].data["interval"]
    assert low < 0.67 < high < 1
    assert found[2].text.startswith("Below ")
    first = found[2].data["ranges"][0]
    assert first["start"] == 0
    assert first["direction"] == 1
    assert first["interval"][0] > 1
    assert found[3].command == "certcal.recalibrate(y_true, y_prob).save('map.json')"
    assert [each.basis for each in found] == ["proven", "asymptotic", "proven", ""]


def test_a_shift_on_the_whole_has_its_direction_and_the_ratio_lies_in_its_interval() -> None:
    for shift, word in ((0.4, "more"), (-0.4, "fewer")):
        found = measured(lambda s, by=shift: sigmoid(odds(s) + by))
        first = found.answer[0]
        assert f"% {word} events than predicted" in first.text
        low, high = first.data["interval"]
        assert first.data["value"] == pytest.approx(found["observed_expected_ratio"].value)
        assert (low > 1) == (shift > 0)
        assert low < first.data["value"] < high


def test_one_bad_tenth_is_found_where_it_is() -> None:
    edges = np.quantile(SCORES, (0.6, 0.7))
    found = measured(lambda s: np.where((s >= edges[0]) & (s < edges[1]), 0.75, s)).answer
    (only,) = found[-2].data["ranges"]
    assert "middling scores are understated" in found[0].text
    assert (only["start"], only["end"]) == pytest.approx(tuple(edges), abs=0.01)
    assert found[-2].text.startswith(f"From {100 * only['start']:.0f}% to {100 * only['end']:.0f}%")


def test_timid_scores_are_called_timid() -> None:
    assert any(
        text.startswith("shown: Scores are too timid: slope 1.")
        for text in texts(measured(lambda s: sigmoid(1.6 * odds(s))))
    )


def test_calibrated_scores_are_never_shown_to_be_calibrated_and_their_error_has_a_limit() -> None:
    found = measured(lambda s: s)
    assert texts(found)[0] == "seen: No miscalibration is shown by these 6,000 samples."
    limit = found["ece"].interval
    assert limit is not None
    assert found.answer[1].data == {"quantity": "ece", "value": found["ece"].value, "limit": limit.upper}
    assert found.answer[1].text.startswith("The calibration error in 15 bins is at most ")
    assert found.answer[-1].command == "certcal.bound(y_true, y_prob)"
    # An interval of a lower level would take more than its share.
    assert [each.kind for each in measured(lambda s: s, level=0.9).answer] == ["seen", "next"]
    assert [each.kind for each in measured(lambda s: s, bootstrap=0).answer] == ["seen", "next"]


def test_shares_of_the_level_add_up_and_a_shown_sentence_of_calibrated_scores_is_rare() -> None:
    """On 2,000 calibrated tables; the limit of the ECE has the other half of the level and cannot be wrong there."""
    assert pytest.approx(0.05) == WHOLE + GROUPS + SLOPE + ERROR
    tables, n, groups = 2000, 1000, 10
    scores = np.sort(RNG.beta(1, 1, n))
    outcomes = RNG.random((tables, n)) < scores
    slopes, errors = wald_slopes(scores, outcomes)
    hits = outcomes.reshape(tables, groups, -1).sum(axis=2).astype(float)
    expected, noise = (each.reshape(groups, -1).sum(axis=1) for each in (scores, scores * (1 - scores)))
    # Nothing can be shown, at levels far weaker than these, where nothing is two standard deviations away.
    gaps = hits - expected
    away = np.abs(
        np.column_stack((gaps / np.sqrt(noise), gaps.sum(axis=1) / noise.sum() ** 0.5, (slopes - 1) / errors))
    )
    count = np.full(groups, n // groups)
    edges = np.concatenate(([0.0], scores[:: n // groups][1:], [1.0]))
    wrong = 0
    for place in np.flatnonzero(away.max(axis=1) > 2.2).tolist():
        bins = BinTable(edges, "left", count, count.astype(float), count.astype(float), expected, hits[place])
        slope, error = float(slopes[place]), float(errors[place])
        spread = Interval(slope - 1.96 * error, slope + 1.96 * error, 0.95, "Wald")
        slope_row = Estimate("calibration_slope", slope, n, {}, spread)
        wrong += calibration_answer(Diagnosis.of_bins(bins), "binary", slope=slope_row)[0].kind == "shown"
    # Of 2,000 tables 2.5 % are 50; more than 73 would happen once in a thousand tests.
    assert 5 <= wrong <= 73


@pytest.mark.parametrize(
    "draw",
    [
        lambda n: RNG.beta(0.3, 0.3, n),
        lambda n: RNG.beta(0.5, 40, n),
        lambda n: RNG.choice([0.01, 0.05, 0.2, 0.6], n),
        lambda n: np.append(np.full(n - 1, 0.05), 0.9),
    ],
    ids=["both ends", "rare", "tied", "one far away"],
)
def test_few_calibrated_samples_of_any_shape_in_many_small_groups_are_rarely_called_wrong(draw) -> None:
    tables, wrong = 45, 0
    for place in range(tables):
        n = (12, 40, 80)[place % 3]
        scores = draw(n)
        predictions = certcal.Predictions.from_scores(scores, (RNG.random(n) < scores).astype(int))
        slope = measure_rows(predictions, metrics=["calibration_slope"], bootstrap=10).rows[0]
        parts = [predictions.select(np.flatnonzero(np.arange(n) % (n // 4) == k)) for k in range(n // 4)]
        bins = [(sums(part.confidence, part.correct, None, equal_width_edges(1)), None) for part in parts]
        segments = [({}, rate) for rate in group_rates(bins, is_score=True)]
        found = Diagnosis.of(predictions, GROUPS - SEGMENTS)
        answer = calibration_answer(found, "binary", slope=slope, segments=segments)
        wrong += any(each.kind == "shown" for each in answer)
    # Of 45 tables 2.5 % are 1; more than 5 would happen once in a thousand tests.
    assert wrong <= 5


def wald_slopes(scores: Any, outcomes: Any) -> tuple[Any, Any]:
    """Slope and its standard error for each row of outcomes, by Newton's method."""
    x = np.stack((np.ones_like(scores), odds(scores)), axis=1)
    beta = np.tile((0.0, 1.0), (len(outcomes), 1))
    for _ in range(12):
        p = sigmoid(beta @ x.T)
        hessian = np.einsum("tn,ni,nj->tij", p * (1 - p), x, x)
        beta += np.linalg.solve(hessian, ((outcomes - p) @ x)[..., None])[..., 0]
    return beta[:, 1], np.sqrt(np.linalg.inv(hessian)[:, 1, 1])


def test_limits_of_groups_are_those_of_clopper_and_pearson_and_averages_limit_their_union() -> None:
    found = measured(lambda s: sigmoid(0.67 * odds(s)))
    diagnosis = found.diagnosis
    assert diagnosis is not None
    assert [each.n for each in diagnosis.groups] == [600] * 10
    alpha = 1 - (1 - GROUPS) ** (1 / 10)
    for place, each in enumerate(diagnosis.groups):
        own = SCORES[600 * place : 600 * (place + 1)]
        assert each.predicted == pytest.approx(own.mean())
        limits = clopper_pearson(round(each.observed * 600), 600, alpha, identical=False)
        assert (each.lower, each.upper) == pytest.approx(tuple(limits), abs=1e-9)
    limits = clopper_pearson(round(diagnosis.whole.observed * 6000), 6000, WHOLE, identical=False)
    assert (diagnosis.whole.lower, diagnosis.whole.upper) == pytest.approx(tuple(limits), abs=1e-9)
    for union, groups in diagnosis.ranges:
        assert union.lower == pytest.approx(np.mean([each.lower for each in groups]))
        assert union.n == 600 * len(groups)
        assert union.direction != 0


def test_limits_of_classes_share_what_the_slope_has_of_other_scores() -> None:
    rng = np.random.default_rng(5)
    p, labels = rng.dirichlet([1, 2, 3, 4], 500), rng.integers(0, 4, 500)
    diagnosis = certcal.measure(labels, p, metrics=["ece"]).diagnosis
    assert diagnosis is not None
    for k, each in enumerate(diagnosis.classes):
        limits = clopper_pearson(int((labels == k).sum()), 500, SLOPE / 4, identical=False)
        assert (each.lower, each.upper) == pytest.approx(tuple(limits), abs=1e-12)
        assert each.predicted == pytest.approx(p[:, k].mean())


def test_the_curve_is_the_isotonic_regression_of_the_outcomes() -> None:
    scores = SCORES[::8]
    outcomes = (np.random.default_rng(3).random(scores.size) < scores**2).astype(int)
    found = certcal.measure(outcomes, scores, metrics=["ece"]).diagnosis
    assert found is not None
    assert found.curve is not None
    # The largest lower mean: from each place on, the least mean of what follows, over all that begin before.
    sums = np.concatenate(([0], np.cumsum(outcomes)))
    levels, start = [], 0
    while start < scores.size:
        means = (sums[start + 1 :] - sums[start]) / np.arange(1, scores.size - start + 1)
        start += int(np.flatnonzero(means == means.min())[-1]) + 1
        levels.append(means.min())
    assert found.curve[1] == pytest.approx(levels, abs=1e-12)


def test_few_samples_ties_and_weights_have_answers_too() -> None:
    assert (
        texts(certcal.measure([0, 1, 1], [0.2, 0.7, 0.9]))[0] == "seen: No miscalibration is shown by these 3 samples."
    )
    tied = certcal.measure([0, 0, 0, 1] * 100, [0.5] * 400)
    assert texts(tied)[0].startswith("shown: Not calibrated: all scores are overstated; in all 50% fewer events")
    never = certcal.measure([0, 1] * 200, [0.0] * 400).answer
    assert never[0].kind == "shown"
    outcomes, weight = (RNG.random(6000) < SCORES**0.5).astype(int), RNG.random(6000)
    weighted = certcal.measure(outcomes, SCORES, weight=weight)
    assert weighted.answer[0].kind == "shown"
    gap = weighted.diagnosis.whole.gap
    assert gap == pytest.approx(np.average(outcomes - SCORES, weights=weight))


def test_scores_that_are_all_0_or_1_err_in_two_directions() -> None:
    score = np.repeat([0.0, 1.0], 200)
    outcome = np.where(np.arange(400) % 10 == 0, 1 - score, score).astype(int)
    found = certcal.measure(outcome, score)
    assert found.answer[0].text == "Not calibrated: low scores are understated, high scores overstated."
    assert found.answer[1].text.startswith("10% happen where 0% is predicted. 90% happen where 100% is")
    assert "above 100" not in str(found)
    nothing = certcal.measure(np.repeat([1, 0], [5, 95]), np.zeros(100)).answer
    assert nothing[0].text == "Not calibrated: all scores are understated; in all 5.0% happen where 0% is predicted."


def test_confidences_are_over_or_underconfident_and_classes_have_a_worst() -> None:
    confidence = RNG.beta(8, 2, 3000)
    correct = (RNG.random(3000) < confidence**1.6).astype(int)
    first = certcal.measure({"confidence": confidence, "correct": correct}).answer[0]
    assert "overconfident by " in first.text
    low, high = first.data["interval"]
    assert low < first.data["value"] < high < 0
    assert first.data["value"] == pytest.approx((correct - confidence).mean())
    p = RNG.dirichlet(np.ones(3), 3000)
    q = p * (1.0, 1.0, 2.5)
    labels = (RNG.random((3000, 1)) > np.cumsum(q / q.sum(1, keepdims=True), axis=1)).sum(axis=1)
    found = certcal.measure(labels, p).answer
    worst = found[-2]
    assert worst.text.startswith("Worst class: 2 is ")
    assert (worst.kind, worst.data["class"]) == ("shown", 2)


def test_a_file_has_a_command_and_a_frame_a_call_to_copy(tmp_path: Any) -> None:
    path = tmp_path / "my scores.csv"
    path.write_text("pd,default\n" + "0.5,0\n" * 60)
    found = certcal.measure(path, score="pd", outcome="default").answer
    assert found[-1].command == f"certcal recalibrate fit '{path}' --score pd --outcome default -o map.json"
    frame = certcal.measure({"pd": [0.5] * 60, "default": [0] * 60}, score="pd", outcome="default").answer
    assert frame[-1].command == "certcal.recalibrate(data, score='pd', outcome='default').save('map.json')"
    assert found.unsaid[-1].endswith("--by COLUMN")
    assert frame.unsaid[-1].endswith("certcal.measure(data, score='pd', outcome='default', by='COLUMN')")
    arrays = certcal.measure([0, 1] * 60, [0.5] * 120).answer
    assert arrays.unsaid[-1].endswith("certcal.measure(y_true, y_prob, by='COLUMN')")


def test_a_table_read_in_pieces_is_answered_by_its_bins(tmp_path: Any) -> None:
    outcomes = (RNG.random(6000) < SCORES**0.5).astype(int)
    path = tmp_path / "t.csv"
    path.write_text("score,outcome\n" + "".join(f"{s},{y}\n" for s, y in zip(SCORES, outcomes, strict=True)))
    streamed = certcal.measure(path, memory=300_000_000, bounds=None)
    whole = certcal.measure(path)
    assert streamed.answer[0].text.split(";")[-1] == whole.answer[0].text.split(";")[-1]


def test_json_has_the_answer_as_data() -> None:
    found = measured(lambda s: sigmoid(0.67 * odds(s)))
    document = json.loads(found.to_json())
    assert [each["kind"] for each in document["answer"]] == ["shown", "shown", "shown", "next"]
    assert document["answer"][1]["quantity"] == "calibration_slope"
    assert document["answer"] == json.loads(json.dumps(found.answer.to_dict()))
    assert len(document["diagnosis"]["groups"]) == 10


def test_scores_of_exactly_0_that_are_wrong_are_named_without_a_range():
    rng = np.random.default_rng(0)
    chance = rng.beta(1, 3, 3_000)
    votes = rng.binomial(20, chance) / 20
    found = certcal.measure((rng.random(3_000) < chance).astype(int), votes)
    assert found.answer[1].text.startswith("2.1% happen where 0% is predicted. Above ")
    assert "\nexactly 0%* " in str(found)
    assert "log loss ∞" in " ".join(str(found).split())
    assert "– ∞" not in str(found).partition("Without them")[0]


def test_a_limit_that_every_model_keeps_is_not_told():
    few = certcal.measure([0, 1, 0, 1], [0.1, 0.8, 0.4, 0.7]).answer
    assert [each.kind for each in few] == ["seen", "next"]
