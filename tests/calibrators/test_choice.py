"""The choice between maps: cross-fitted, paired, made anew for every fold that is judged, and it may be none."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from certcal import Predictions, recalibrate
from certcal.calibrators import MapChoice, choose, cross_fit, fit_predictions, mapped
from certcal.calibrators._choice import OF_CLASSES, OF_SCORES, fit_chosen, fold_of_rows
from tests.calibrators import naive_choice as naive


def scores(seed, n=600, slope=0.5, shift=0.0, weighted=False):
    rng = np.random.default_rng([seed, 1])
    x = rng.normal(0, 2, n)
    y = rng.random(n) < expit(slope * x + shift)
    return Predictions.from_scores(expit(x), y, rng.integers(1, 4, n).astype(float) if weighted else None)


def logits(seed, n=600, factor=2.5, classes=4):
    rng = np.random.default_rng([seed, 2])
    x = rng.normal(size=(n, classes))
    return Predictions.from_logits(factor * x, (x + rng.gumbel(size=x.shape)).argmax(axis=1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_losses_differences_and_errors_are_those_of_rows_that_a_map_was_not_fitted_to(seed, weighted):
    given = scores(seed, 300, weighted=weighted)
    found = choose(given, seed)
    wanted = naive.losses_of_scores(given, OF_SCORES, seed)
    assert {each.method for each in found.tried} == set(OF_SCORES)
    for each in found.tried:
        numbers = each.nll, each.difference, each.standard_error
        assert numbers == pytest.approx(wanted[each.method], abs=2e-6)
    assert [each.nll for each in found.tried] == sorted(each.nll for each in found.tried)
    assert found.method == found.tried[0].method


def test_many_scores_are_compared_in_groups_and_the_map_is_fitted_to_all_of_them():
    given = scores(5, 8000)
    found = choose(given)
    wanted = naive.losses_of_scores(given, ("none", "platt", "isotonic"), 0)
    by_name = {each.method: each for each in found.tried}
    for method, numbers in wanted.items():
        assert by_name[method].difference == pytest.approx(numbers[1], abs=2e-4)
    assert found.method in ("platt", "temperature", "beta", "quadratic", "spline")
    alone = fit_predictions(given, found.method)
    assert found.calibrator.to_dict() == alone.to_dict()


@pytest.mark.parametrize("given", [scores(0, 900, slope=1), logits(0, 900, factor=1)], ids=["scores", "classes"])
def test_no_map_is_an_answer_where_the_scores_are_calibrated(given):
    found = choose(given)
    assert found.method == "none"
    assert found.why.startswith("No map helps")
    p = given.confidence if given.kind == "score" else given.probabilities
    np.testing.assert_allclose(mapped(found.calibrator, given), p, atol=1e-12)
    assert all(each.difference >= -each.standard_error for each in found.tried[:1])


def test_calibrated_scores_are_left_alone_most_of_the_time_and_wrong_ones_never():
    left = sum(choose(scores(seed, 300, slope=1)).method == "none" for seed in range(30))
    assert left >= 20
    assert all(choose(scores(seed, 300, slope=0.4)).method != "none" for seed in range(30))


def test_of_classes_the_structured_and_plain_maps_are_compared_and_large_matrices_are_not_tried():
    found = choose(logits(1))
    assert {each.method for each in found.tried} == set(OF_CLASSES)
    assert found.method != "none"
    assert found.tried[0].difference < -0.2
    assert "sms" not in {each.method for each in choose(logits(2, 150, classes=14)).tried}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (Predictions.from_scores(np.linspace(0.1, 0.9, 60), np.arange(60) > 58), "1 of one outcome is too little"),
        (Predictions.from_scores([0.2, 0.3, 0.6], [0, 1, 1]), "3 samples is too little to choose one"),
        (Predictions.from_scores([0.5] * 60, np.zeros(60)), "0 of one outcome"),
    ],
)
def test_too_little_to_choose_leaves_all_as_it_is_and_says_why(given, why):
    found = choose(given)
    assert (found.method, found.tried) == ("none", ())
    assert why in found.why
    np.testing.assert_allclose(mapped(found.calibrator, given), given.confidence)


def test_isotonic_regression_that_is_chosen_makes_no_log_loss_infinite():
    rng = np.random.default_rng(0)
    z = rng.random(4000)
    found = choose(Predictions.from_scores(z, rng.random(4000) < np.where(z < 0.5, 0.02, 0.9)))
    assert found.method == "isotonic"
    made = found.calibrator.transform([0.0, 1.0])
    assert 0 < made[0] < made[1] < 1


def test_every_row_is_judged_by_a_map_that_was_chosen_and_fitted_without_it():
    """Another outcome of a row may change what is made of the rows of other folds, and never what is made of it."""
    given = scores(3, 400)
    folds = fold_of_rows(given, 0, 1)
    seen = []

    def fit(part):
        seen.append(choose(part))
        return seen[-1].calibrator

    after, maps = cross_fit(given, fit)
    assert len(maps) == len(seen) == 5
    assert all(isinstance(each, MapChoice) for each in seen)
    for fold, made in enumerate(maps):
        rows = folds == fold
        again = choose(given.select(np.flatnonzero(~rows)))
        assert again.calibrator.to_dict() == made.to_dict()
        assert np.array_equal(after.confidence[rows], made.transform(given.confidence[rows]))


def test_on_noise_the_judgement_of_the_chosen_map_is_honest_and_its_own_fit_is_not():
    """The best of seven on 60 rows of coin flips looks better than no map; judged with the choice inside, it is not."""
    own, nested = [], []
    for seed in range(12):
        rng = np.random.default_rng([seed, 7])
        z = expit(rng.normal(0, 0.3, 60))
        given = Predictions.from_scores(z, rng.random(60) < 0.5)
        chosen = choose(given, seed)
        rows = np.arange(60)

        def loss(p, y=given.correct):
            return -np.log(np.where(y == 1, p, 1 - p)).mean()

        after = cross_fit(given, lambda part, seed=seed: choose(part, seed).calibrator, seed)[0]
        own.append(min(each.nll for each in chosen.tried) - np.log(2))
        nested.append(loss(after.confidence[rows]) - np.log(2))
    assert np.mean(nested) > np.mean(own) + 0.002
    assert np.mean(nested) > 0


def test_recalibration_fits_to_all_rows_judges_all_and_shows_what_was_tried():
    given = scores(4)
    found = recalibrate(given)
    assert (found.n_fit, found.n_held_out) == (600, 600)
    assert found.method == found.choice.method == choose(given).method
    assert found.fitted_on.positions().size == 600
    assert len(found.fold_methods) == 5
    document = found.to_dict()
    assert [each["method"] for each in document["tried"]] == [each.method for each in found.choice.tried]
    assert found.notes[0] == (
        "Fitted to all 600 samples; each is judged by a map that was fitted without it, in 5 folds. "
        "Ranks mix between folds, so AUROC can fall where one map keeps the order."
    )
    assert found.after["nll"].value < found.before["nll"].value
    halves = recalibrate(given, fraction=0.5)
    assert (halves.n_fit, halves.n_held_out) == (300, 300)
    assert halves.choice.method != "none"


def test_votes_of_a_forest_have_a_finite_log_loss_after_every_map_and_none():
    rng = np.random.default_rng(0)
    p = expit(rng.normal(0, 2, 800))
    given = Predictions.from_scores(rng.binomial(10, p) / 10, rng.random(800) < p)
    assert all(np.isfinite(each.nll) for each in choose(given).tried)
    said = "Scores of 0 and 1 count as 0.05 and 0.95: votes, and not certainty."
    assert said in recalibrate(given, method="platt").notes
    votes = softmax(rng.normal(size=(800, 3)), axis=1)
    shares = np.stack([rng.multinomial(10, row) for row in votes]) / 10
    labels = (votes.cumsum(axis=1) < rng.random(800)[:, None]).sum(axis=1).clip(0, 2)
    assert all(np.isfinite(each.nll) for each in choose(Predictions.from_probabilities(shares, labels)).tried)


def true_loss(found, given_z, slope):
    """How much the log loss of new samples exceeds that of no map, for outcomes of a known slope."""
    z = np.linspace(0.002, 0.998, 400)
    x = np.log(z) - np.log1p(-z)
    p, q = expit(slope * x), found.calibrator.transform(z)
    mass = np.histogram(given_z, bins=np.linspace(0, 1, 401))[0]
    return np.average(p * np.log(z / q) + (1 - p) * np.log((1 - z) / (1 - q)), weights=mass)


@pytest.mark.parametrize("n", [40, 150])
def test_of_few_calibrated_samples_almost_none_gets_a_map(n):
    """In half of these draws some map has a lower cross-fitted log loss than no map, by chance."""
    assert sum(choose(scores(seed, n, slope=1)).method != "none" for seed in range(24)) <= 1


def test_forty_samples_of_overconfident_scores_get_a_map_that_helps():
    found = [(given := scores(seed, 40, slope=0.15), choose(given)) for seed in range(8)]
    losses = [true_loss(each, given.confidence, 0.15) for given, each in found]
    assert sum(each.method != "none" for _, each in found) >= 6
    assert max(losses) < 0.02
    assert np.mean(losses) < -0.1


@pytest.mark.parametrize("kind", ["score", "classes"])
def test_few_samples_without_an_error_do_not_make_every_score_certain(kind):
    rng = np.random.default_rng(0)
    x = rng.normal(0, 2, 40)
    if kind == "score":
        found = choose(Predictions.from_scores(expit(x), x > 0)).calibrator.transform(expit([-2.0, 2.0]))
        confident = max(1 - found[0], found[1])
    else:
        given = np.stack([x, -x, np.zeros(40) - 3], axis=1)
        found = choose(Predictions.from_logits(given, given.argmax(axis=1)))
        confident = found.calibrator.predict_proba([[2.0, -2.0, -3.0]]).max()
    assert confident < 0.995


def test_samples_that_agree_with_the_scores_leave_no_trace_where_samples_are_many():
    given = scores(0, 1000)
    assert fit_chosen(given, "platt").to_dict() == fit_predictions(given, "platt").to_dict()
    few = given.select(np.arange(999))
    slope = [made.slope_ for made in (fit_predictions(few, "platt"), fit_chosen(few, "platt"))]
    assert slope[0] < slope[1] < slope[0] + 0.05
    made = fit_chosen(few.select(np.arange(40)), "platt", believed=False)
    assert made.to_dict() == fit_predictions(few.select(np.arange(40)), "platt").to_dict()


def test_no_map_keeps_zeros_and_ones_that_no_sample_contradicts():
    z = np.tile([0.0, 0.3, 1.0], 40)
    rng = np.random.default_rng(0)
    y = np.where(z == 0.3, rng.random(120) < 0.3, z == 1)
    found = choose(Predictions.from_scores(z, y))
    assert found.method == "none"
    np.testing.assert_allclose(found.calibrator.transform([0, 0.3, 1]), [0, 0.3, 1], atol=2.0**-24)
    y[0] = 1
    made = fit_predictions(Predictions.from_scores(z, y), "none")
    np.testing.assert_allclose(made.transform([0, 0.3, 1]), [0.15, 0.3, 0.85])
