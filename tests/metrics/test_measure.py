"""measure: every metric that the predictions allow, each equal to its own function."""

import dataclasses
import json

import numpy as np
import pytest

import certcal
from certcal import Estimate, InputError, Measurements, Predictions, metrics
from certcal.metrics import METRICS, STUDY_BINS, measure

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.full(4, 0.5), 300)
Y = np.where(RNG.random(300) < 0.7, P.argmax(axis=1), RNG.integers(0, 4, 300))
W = RNG.gamma(1.0, size=300)

BINNED = tuple(name for name, entry in METRICS.items() if entry.bins and entry.reads == "pair")
CLASSWISE = ("classwise_ece", "classwise_equal_mass_ece")
PLAIN = tuple(name for name, entry in METRICS.items() if not entry.bins and "multiclass" in entry.tasks)
each_weight = pytest.mark.parametrize("w", [None, W], ids=["plain", "weighted"])


def expected_rows(predictions, bins, closed, w):
    """Every row from its own function."""
    found = {}
    for entry in METRICS.values():
        arrays, options = entry.arguments(predictions) or (None, {})
        options |= {"bins": bins, "closed": closed} if entry.bins else {}
        if predictions.task in entry.tasks:
            found[entry.text("name", predictions.task)] = entry.function(*arrays, sample_weight=w, **options)
    return found


@each_weight
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("kind", ["probabilities", "logits", "confidence", "score"])
def test_every_row_equals_its_own_function(w, closed, kind):
    predictions = {
        "probabilities": lambda: Predictions.from_probabilities(P, Y, w),
        "logits": lambda: Predictions.from_logits(np.log(P), Y, w),
        "confidence": lambda: Predictions.from_confidence(P.max(axis=1), P.argmax(axis=1) == Y, w),
        "score": lambda: Predictions.from_scores(P[:, 1], Y == 1, w),
    }[kind]()
    table = measure(predictions, bins=10, closed=closed, metrics="all")
    expected = expected_rows(predictions, 10, closed, w)
    assert list(dict.fromkeys(row.name for row in table)) == list(expected)
    assert len(expected) == ({"score": 29, "confidence": 21}.get(kind, 25))
    for row in table:
        assert row.value == pytest.approx(expected[row.name], rel=1e-12, abs=1e-15), row.name
        assert row.n == 300
        assert row.interval is None
    assert table.kind == kind
    assert table.n == 300


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_short_floats_are_measured_with_their_own_edges(dtype):
    z, c = (np.arange(11) / 10).astype(dtype), np.arange(11) % 2
    table = measure(Predictions.from_confidence(z, c), bins=10, metrics="all")
    assert table["ece"].value == pytest.approx(5.3 / 11, abs=1e-2)
    assert table["ece"].value == metrics.ece(z, c, 10)


def test_several_numbers_of_bins_have_a_row_each_and_the_others_one_row():
    predictions = Predictions.from_probabilities(P, Y)
    table = measure(predictions, bins=(5, 15, 100), metrics="all")
    for name in (*BINNED, *CLASSWISE):
        assert [row.settings["bins"] for row in table if row.name == name] == [5, 15, 100]
        for bins in (5, 15, 100):
            alone = measure(predictions, bins=bins, metrics=[name])
            assert table[name, bins].value == alone[name].value
    for name in PLAIN:
        assert [row.name for row in table].count(name) == 1


def test_bins_asked_for_twice_are_measured_once():
    table = measure(Predictions.from_confidence([0.5], [1]), bins=[10, 10, np.int64(10)], metrics="all")
    assert [row.settings["bins"] for row in table if row.name == "ece"] == [10]


def test_the_bin_counts_of_the_study_can_be_asked_for():
    assert STUDY_BINS == (5, 10, 15, 20, 25, 50, 100, 200, 500)
    table = measure(Predictions.from_confidence([0.5, 0.25], [1, 0]), bins=STUDY_BINS, metrics=["ece", "mce"])
    assert len(table) == 2 * len(STUDY_BINS)


def test_settings_of_each_row_say_how_it_was_computed():
    table = measure(Predictions.from_probabilities(P, Y), bins=7, closed="right", metrics="all")
    assert table["ece"].settings == {"bins": 7, "closed": "right"}
    assert table["lp_ece"].settings == {"bins": 7, "closed": "right", "p": 2.0}
    assert table["harmonic_calibration_score"].settings == {"bins": 7, "closed": "right", "beta": 1.0}
    assert table["classwise_equal_mass_ece"].settings == {"bins": 7, "closed": "right"}
    assert table["ks_error"].settings == {}


def test_only_the_metrics_asked_for_are_measured():
    table = measure(Predictions.from_confidence([0.5], [1]), metrics=["ks_error", "ece"])
    assert [row.name for row in table] == ["ece", "ks_error"]
    with pytest.raises(InputError, match=r"metrics: these predictions have no nll; there are accuracy"):
        measure(Predictions.from_confidence([0.5], [1]), metrics=["nll"])


def test_the_predictions_of_two_classes_and_their_confidences_have_the_same_top_label_rows():
    whole = measure(Predictions.from_probabilities(P, Y), metrics="all")
    top = measure(Predictions.from_confidence(P.max(axis=1), P.argmax(axis=1) == Y), metrics="all")
    for row in top:
        assert row.value == whole[row.name].value


def test_rows_are_found_by_name_and_number_of_bins():
    table = measure(Predictions.from_confidence([0.5], [1]), bins=(5, 10), metrics="all")
    assert table["ece", 10].settings["bins"] == 10
    assert table["accuracy"].value == 1
    with pytest.raises(KeyError, match=r"there are 2 of 'ece'; ask for one, as in \['ece', 5\]"):
        table["ece"]
    with pytest.raises(KeyError, match=r"there is no 'precision'; there are accuracy"):
        table["precision"]
    with pytest.raises(KeyError, match=r"there is no \('ece', 7\)"):
        table["ece", 7]


def test_the_table_is_frozen_and_iterates_over_estimates():
    table = measure(Predictions.from_confidence([0.5], [1]), metrics="all")
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.n = 3
    assert isinstance(table, Measurements)
    assert len(table) == len(list(table)) == len(table.rows)
    assert all(isinstance(row, Estimate) for row in table)


def test_the_table_becomes_json_and_text():
    table = measure(Predictions.from_probabilities(P, Y), bins=(5, np.int64(10)), bootstrap=10, metrics="all")
    back = json.loads(json.dumps(table.to_dict()))
    assert back["n"] == 300
    assert back["kind"] == "probabilities"
    assert [row["name"] for row in back["rows"]] == [row.name for row in table]
    assert all(row["type"] == "estimate" and row["sentence"].endswith("not a guarantee.") for row in back["rows"])
    text = repr(table)
    assert text.startswith("Measurements(n=300, kind='probabilities')")
    assert len(text.splitlines()) == len(table) + 1


@each_weight
def test_intervals_are_those_of_each_metric_and_have_the_level_asked_for(w):
    predictions = Predictions.from_confidence(P.max(axis=1), P.argmax(axis=1) == Y, w)
    names = ["accuracy", "ece", "lp_ece", "harmonic_calibration_score", "auroc", "top_label_brier_score"]
    table = measure(predictions, bins=10, metrics=names, bootstrap=50, level=0.8)
    for row in table:
        arrays = (predictions.correct,) if row.name == "accuracy" else (predictions.confidence, predictions.correct)
        metric = getattr(metrics, row.name)
        expected = metrics.with_interval(metric, *arrays, level=0.8, sample_weight=w, **row.settings)
        assert row.interval == expected.interval
        assert row.value == pytest.approx(expected.value, rel=1e-12)
        assert row.interval.level == 0.8


@each_weight
@pytest.mark.parametrize("kind", ["logits", "confidence"])
def test_every_row_has_an_interval_that_needs_no_resamples(kind, w):
    p, y = P[:60], Y[:60]
    w = None if w is None else w[:60]
    predictions = {
        "logits": lambda: Predictions.from_logits(np.log(p), y, w),
        "confidence": lambda: Predictions.from_confidence(p.max(axis=1), p.argmax(axis=1) == y, w),
    }[kind]()
    table = measure(predictions, bins=(5, 15), bootstrap=20, metrics="all")
    assert len(table) > 20
    for row in table:
        assert row.interval is not None, row.name
        assert not row.interval.resampled, row.name
        assert row.interval.lower <= row.value <= row.interval.upper, row.name


@each_weight
def test_intervals_of_classwise_rows_are_those_of_each_metric(w):
    table = measure(Predictions.from_probabilities(P, Y, w), bins=7, metrics=CLASSWISE, bootstrap=30)
    for name in CLASSWISE:
        expected = metrics.with_interval(getattr(metrics, name), P, Y, bins=7, sample_weight=w).interval
        assert table[name].interval == expected


def test_replicates_that_are_too_few_are_refused():
    with pytest.raises(InputError, match="pass a number from 10"):
        measure(Predictions.from_confidence([0.5], [1]), bootstrap=3, metrics="all")


def test_measure_is_a_public_name_of_the_package():
    found = certcal.measure(Predictions.from_confidence([0.5], [1]), metrics="all")
    assert [row.name for row in found] == [
        row.name for row in measure(Predictions.from_confidence([0.5], [1]), metrics="all")
    ]
