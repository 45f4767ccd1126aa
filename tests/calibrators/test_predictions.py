"""Calibrators of predictions: fitted to one part, measured on the other, and never a changed meaning."""

import csv
import io

import numpy as np
import pytest

from certcal import InputError, Predictions, measure, recalibrate
from certcal.calibrators import (
    CertifiedIsotonic,
    ConfidenceMap,
    ScoreMap,
    TopLabel,
    fit_predictions,
    recalibrated,
    split_positions,
)
from certcal.calibrators._predictions import CONFIDENCE_METHODS, METHODS, SCORE_METHODS

RNG = np.random.default_rng(12)
N, K = 800, 3
LOGITS = 3 * RNG.normal(size=(N, K))
SOFT = np.exp(LOGITS / 2) / np.exp(LOGITS / 2).sum(1, keepdims=True)
LABELS = (RNG.random(N)[:, None] > SOFT.cumsum(1)).sum(1)
BY_CLASS = Predictions.from_logits(LOGITS, LABELS)
SCORES = Predictions.from_confidence(BY_CLASS.confidence, BY_CLASS.correct)


@pytest.mark.parametrize("method", [method for method in METHODS if method not in ("auto", "none")])
def test_every_method_repairs_overconfident_logits_on_samples_that_it_was_not_fitted_to(method):
    found = recalibrate(BY_CLASS, method=method, fraction=0.5)
    fit, rest = (BY_CLASS.select(rows) for rows in split_positions(N))
    assert (found.n_fit, found.n_held_out) == (len(fit), len(rest)) == (400, 400)
    assert found.before["ece"].value == measure(rest)["ece"].value
    after = recalibrated(fit_predictions(fit, method), rest)
    assert found.after["ece"].value == measure(after)["ece"].value
    assert found.after["ece"].value < found.before["ece"].value / 1.5
    assert found.after["top_label_brier_score"].value < found.before["top_label_brier_score"].value
    assert isinstance(found.map, ScoreMap if method in SCORE_METHODS else ConfidenceMap)
    split, *others = found.notes
    assert split == "Fitted to 400 samples and judged on 400 others; no sample is in both parts."
    infinite = np.isinf(found.after["top_label_nll"].value)
    certain = ((after.confidence == 0) | (after.confidence == 1)).any()  # as isotonic maps and bins make them
    assert not certain or method in ("isotonic", "histogram", "equal-mass")
    said = "The log loss is infinite where a map" if infinite else "The map makes "
    assert [note.startswith(said) for note in others] == [True] * int(certain)


@pytest.mark.parametrize("method", CONFIDENCE_METHODS)
def test_maps_of_one_confidence_and_temperatures_change_no_prediction(method):
    found = recalibrate(BY_CLASS, method=method)
    assert found.after["accuracy"].value == found.before["accuracy"].value


@pytest.mark.parametrize("seed", range(4))
def test_without_a_method_the_log_loss_stays_finite(seed):
    # Sure and wrong at the far ends: an isotonic map that was fitted to others has 0 and 1 there.
    z, correct = np.linspace(0, 1, 40), np.arange(40) > 19
    correct[[0, 39]] = True, False
    given = Predictions.from_confidence(z, correct)
    assert np.isfinite(recalibrate(given, seed=seed).after["top_label_nll"].value)


@pytest.mark.parametrize("method", [method for method in SCORE_METHODS if method not in CONFIDENCE_METHODS])
def test_maps_of_scores_need_scores(method):
    with pytest.raises(InputError, match=f"method: {method} needs logits or probabilities of all classes"):
        recalibrate(SCORES, method=method)


def test_bins_of_the_map_reach_it_and_are_for_binned_maps_only():
    fitted = fit_predictions(SCORES, "histogram", map_bins=4)
    assert fitted.get_params()["bins"] == 4
    with pytest.raises(InputError, match="map_bins: it is for the methods histogram and equal-mass"):
        fit_predictions(SCORES, "platt", map_bins=4)


def test_weights_reach_the_fit_and_the_measurement():
    weight = np.where(np.arange(N) % 2, 1.0, 0.0)
    weighted = Predictions.from_confidence(SCORES.confidence, SCORES.correct, weight)
    found = recalibrate(weighted, method="platt", fraction=0.5)
    fit, rest = (weighted.select(rows) for rows in split_positions(N))
    kept = fit.select(fit.sample_weight > 0)
    alone = fit_predictions(Predictions.from_confidence(kept.confidence, kept.correct), "platt")
    np.testing.assert_allclose(
        found.map.transform(rest.confidence), alone.transform(rest.confidence), rtol=0, atol=1e-9
    )
    assert found.before["ece"].value == measure(rest)["ece"].value


def test_a_map_is_applied_only_to_what_it_takes():
    temperature = fit_predictions(BY_CLASS, "temperature")
    other = Predictions.from_probabilities(SOFT, LABELS)
    with pytest.raises(InputError, match="TemperatureScaling, takes logits, and these predictions are probabilities"):
        recalibrated(temperature, other)
    with pytest.raises(InputError, match="takes logits, and these predictions are confidences only; give it logits"):
        recalibrated(temperature, SCORES)
    certified = CertifiedIsotonic(0).fit(np.zeros(N), np.ones(N), SCORES.correct, SCORES.confidence)
    assert recalibrated(certified, BY_CLASS).kind == "confidence"


def test_maps_of_the_top_label_give_probabilities_of_all_classes():
    fitted = TopLabel(fit_predictions(SCORES, "platt").unfitted()).fit(LOGITS, LABELS)
    after = recalibrated(fitted, BY_CLASS)
    np.testing.assert_allclose(after.probabilities.sum(1), 1)


@pytest.mark.parametrize(
    ("correct", "note"),
    [
        (np.ones(12), "6 samples are very few to fit a map to: expect it to be far from the best one."),
        (np.ones(12), "All samples of the fit are correct: little can be learned from them."),
        (np.zeros(12), "All samples of the fit are wrong: little can be learned from them."),
    ],
)
def test_notes_say_when_there_is_little_to_learn(correct, note):
    given = Predictions.from_confidence(np.linspace(0.3, 0.9, 12), correct)
    found = recalibrate(given, method="platt", fraction=0.5)
    assert note in found.notes


def test_all_that_was_found_is_plain_values():
    found = recalibrate(SCORES, method="beta", bins=7, seed=3, fraction=0.5)
    document = found.to_dict()
    assert (document["method"], document["n_fit"]) == ("beta", 400)
    given = {"bins": 7, "closed": "left", "fraction": 0.5, "seed": 3}
    assert document["conventions"] == {**given, "bins_are": "[a, b), the last one closed"}
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    (after,) = [row for row in rows if (row["map"], row["metric"]) == ("beta", "ece")]
    assert (float(after["value"]), after["bins"], after["n"]) == (found.after["ece"].value, "7", "400")
    assert [row["name"] for row in document["after"]["rows"]] == [row["name"] for row in document["before"]["rows"]]


SURE = np.linspace(0.4, 0.6, 42)  # separates what follows
PAIRS = 5 * np.stack([0.5 - SURE, SURE - 0.5], axis=1)
PAIR_SHARES = np.exp(PAIRS) / np.exp(PAIRS).sum(axis=1, keepdims=True)
EXTREME = [0.0, 1e-30, 0.95, 1.0]
SEPARATED = {
    "score": (Predictions.from_scores(SURE, SURE > 0.5), Predictions.from_scores(EXTREME, [1, 1, 0, 0])),
    "confidence": (Predictions.from_confidence(SURE, SURE > 0.5), Predictions.from_confidence(EXTREME, [1, 1, 0, 0])),
    "logits": (
        Predictions.from_logits(PAIRS, (SURE > 0.5).astype(int)),
        Predictions.from_logits([[-900.0, 900.0], [40.0, -40.0]], [0, 1]),
    ),
    "probabilities": (
        Predictions.from_probabilities(PAIR_SHARES, (SURE > 0.5).astype(int)),
        Predictions.from_probabilities([[0.0, 1.0], [1.0, 0.0]], [0, 1]),
    ),
}
SCALING = ("temperature", "vector", "matrix", "platt", "beta")


@pytest.mark.parametrize(
    ("kind", "method"),
    [(kind, method) for kind in SEPARATED for method in SCALING if kind[0] in "lp" or method in CONFIDENCE_METHODS],
)
def test_scaling_never_makes_the_log_loss_infinite(kind, method):
    """The fit is separable, so that maps are as steep as they get, and what follows is extreme and wrong."""
    fit, wrong = SEPARATED[kind]
    after = recalibrated(fit_predictions(fit, method), wrong)
    shown = after.confidence if after.probabilities is None else after.probabilities
    assert shown.min() > 0
    if after.probabilities is None:
        assert shown.max() < 1
    else:
        assert np.isfinite(measure(after, metrics=["nll"])["nll"].value)


def test_a_map_that_makes_certain_confidences_says_so():
    isotonic = recalibrated(fit_predictions(SEPARATED["score"][0], "isotonic"), SEPARATED["score"][1])
    assert isotonic.confidence.tolist() == [0.0, 0.0, 1.0, 1.0]
    found = recalibrate(Predictions.from_scores(SURE, SURE > 0.5), method="isotonic", fraction=0.5)
    assert found.notes[1] == (
        "The map makes 20 scores exactly 0 or 1: a sample that says otherwise makes the log loss infinite."
    )


@pytest.mark.parametrize("outcome", [0, 1])
def test_a_fit_to_one_outcome_says_so_in_the_words_of_the_kind(outcome):
    table = {"score": np.linspace(0.1, 0.9, 40), "outcome": [outcome] * 40}
    assert (
        recalibrate(table, method="platt", fraction=0.5).notes[1]
        == f"All outcomes of the fit are {outcome}: little can be learned from them."
    )
    table = {"confidence": np.linspace(0.1, 0.9, 40), "correct": [outcome] * 40}
    word = "correct" if outcome else "wrong"
    assert (
        recalibrate(table, method="platt", fraction=0.5).notes[1]
        == f"All samples of the fit are {word}: little can be learned from them."
    )
