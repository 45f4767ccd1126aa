"""A calibrator of one's own goes wherever a name goes: predictions, scores of all classes, certified samples."""

import json
from typing import ClassVar

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from certcal import InputError, Predictions, apply_map, measure, recalibrate
from certcal._base.assumptions import own_map
from certcal.calibrators import CertifiedIsotonic, CertifiedSamples, ConfidenceMap, HistogramBinning, PlattScaling, load
from tests.report.recalibrated import interval_samples

RNG = np.random.default_rng(3)
N = 600
Z = RNG.uniform(0.3, 1, N)
CORRECT = RNG.random(N) < Z**2
TABLE = {"confidence": Z, "correct": CORRECT.astype(int)}
LOGITS = 4 * RNG.normal(size=(N, 3))
LABELS = np.array([RNG.choice(3, p=np.exp(x / 4) / np.exp(x / 4).sum()) for x in LOGITS])
SAMPLES = interval_samples()


class Power:
    """z to the power that makes the mean confidence the accuracy; falls nowhere."""

    def __init__(self, steps=60):
        self.steps = steps

    def fit(self, confidence, correct, sample_weight=None):
        low, high, wanted = 0.01, 100.0, np.average(correct, weights=sample_weight)
        for _ in range(self.steps):
            self.power = (low + high) / 2
            low, high = (self.power, high) if np.mean(confidence**self.power) > wanted else (low, self.power)
        return self

    def predict(self, confidence):
        return np.asarray(confidence) ** self.power


class CertifiedPower(Power):
    """The same for certified samples: monotone, and outward by more than a power rounds."""

    def intervals(self, lower, upper):
        return np.maximum(self.predict(lower) - 1e-12, 0), np.minimum(self.predict(upper) + 1e-12, 1)


class Worst(CertifiedPower):
    """Fitted to the intervals themselves: to the ends that cost most."""

    def fit_samples(self, samples, radius_weight=None):
        self.seen = (len(samples), radius_weight)
        worst = np.where(samples.correct[:, None] == 1, samples.lower, samples.upper)
        return super().fit(worst[:, -1], samples.correct)


class Smoothed:
    """Probabilities of all classes, mixed with equal ones until the log loss is least on a grid."""

    def fit(self, scores, labels, sample_weight=None):
        grid = np.linspace(0, 0.9, 19)
        self.share = min(grid, key=lambda s: -np.log(self._mixed(scores, s)[np.arange(len(labels)), labels]).mean())

    def _mixed(self, scores, share):
        p = np.exp(scores - scores.max(1, keepdims=True))
        return (1 - share) * p / p.sum(1, keepdims=True) + share / p.shape[1]

    def predict_proba(self, scores):
        return self._mixed(scores, self.share)


def test_a_calibrator_of_confidences_is_judged_on_samples_that_it_was_not_fitted_to():
    own = Power()
    found = recalibrate(TABLE, method=own, fraction=0.5)
    assert not hasattr(own, "power")  # a copy is fitted
    held_out = np.setdiff1d(np.arange(len(Z)), found.fitted_on.positions())
    twin = Power().fit(Z[found.fitted_on.positions()], CORRECT[found.fitted_on.positions()])
    assert found.map.power == twin.power
    after = Predictions.from_confidence(twin.predict(Z[held_out]), CORRECT[held_out])
    assert found.after["ece"].value == measure(after)["ece"].value < found.before["ece"].value
    assert (found.method, found.to_dict()["map"]) == ("Power", {"type": "Power"})
    assert json.loads(found.to_json())["n_held_out"] == 300
    assert "Power" in str(found)


def test_calibrators_of_other_libraries_and_built_in_ones_go_the_same_way():
    theirs = recalibrate(TABLE, method=IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip"))
    ours = recalibrate(TABLE, method="isotonic")
    assert theirs.after["ece"].value == pytest.approx(ours.after["ece"].value, abs=1e-9)
    given = recalibrate(TABLE, method=PlattScaling())
    assert given.after["ece"].value == recalibrate(TABLE, method="platt").after["ece"].value


def test_a_calibrator_of_all_classes_gets_scores_and_labels():
    predictions = Predictions.from_logits(LOGITS, LABELS)
    found = recalibrate(predictions, method=Smoothed())
    assert found.map.share > 0
    assert found.after["nll"].value < found.before["nll"].value
    with pytest.raises(InputError, match="takes scores of all classes, and these predictions are confidences only"):
        recalibrate(TABLE, method=Smoothed())


def test_certificates_go_through_a_calibrator_that_maps_intervals():
    found = recalibrate(SAMPLES, method=CertifiedPower())
    fit, rest = SAMPLES.split()
    twin = CertifiedPower().fit(fit.confidence, fit.correct)
    assert [line.name for line in found.lines] == ["before recalibration", "CertifiedPower"]
    assert (found.tradeoff, found.map.power) == (None, twin.power)
    low, high = twin.intervals(rest.lower[:, 1], rest.upper[:, 1])
    kept = rest.certified[:, 1]
    worst = np.where(rest.correct == 1, low, high)[kept]
    brier = found.chosen.at[1].summary["brier_score"].worst.value
    assert brier == pytest.approx(np.mean((rest.correct[kept] - worst) ** 2), abs=1e-9)
    shares = [found.chosen.at[k].summary["brier_score"].worst.value for k in range(2)]
    assert found.front[1].held_out[1] == pytest.approx(np.mean(shares), abs=1e-9)
    assert found.report().charts()


def test_bounds_after_a_map_of_ones_own_say_what_is_not_checked():
    own, built_in = (recalibrate(SAMPLES, method=method).chosen for method in (CertifiedPower(), "isotonic"))
    said = own_map("CertifiedPower")
    for line, there in ((own, True), (built_in, False)):
        bounds = [at.summary.population_all for at in line.at]
        assert [said in bound.assumptions for bound in bounds] == [there] * len(bounds)


def test_fit_samples_is_preferred_and_gets_the_weights_of_the_radii():
    found = recalibrate(SAMPLES, method=Worst(), radius_weight=[1, 3])
    assert found.map.seen == (200, (1.0, 3.0))
    exact = recalibrate(SAMPLES, method=CertifiedIsotonic(0.25))
    named = recalibrate(SAMPLES, tradeoff=0.25, tradeoffs=[])
    assert exact.tradeoff == 0.25
    assert [line.to_dict()["at"] for line in exact.lines] == [line.to_dict()["at"] for line in named.lines]


def test_a_map_that_turns_the_order_round_is_scored_by_its_intervals():
    found = recalibrate(SAMPLES, method=HistogramBinning(bins=7))
    kept = found.after.certified
    worst = np.where(found.after.correct[:, None] == 1, found.after.lower, found.after.upper)
    scores = [np.mean((found.after.correct[k] - worst[k, r]) ** 2) for r, k in enumerate(kept.T)]
    assert found.front[1].held_out[1] == pytest.approx(np.mean(scores), abs=1e-12)


class Liar(CertifiedPower):
    """Intervals that do not hold what predict returns."""

    def intervals(self, lower, upper):
        return np.full(len(lower), 0.2), np.full(len(lower), 0.3)


class TooLarge(Power):
    """Confidences above 1."""

    def predict(self, confidence):
        return 1 + np.asarray(confidence)


@pytest.mark.parametrize(
    ("source", "method", "message"),
    [
        (SAMPLES, Power(), r"method: Power has no predict and intervals\(lower, upper\)"),
        (SAMPLES, Liar(), r"Liar.intervals makes \[0.2, 0.3\] of .* which is outside"),
        (TABLE, TooLarge(), r"TooLarge.predict\[0\] is 1\.\d+, outside \[0, 1\]"),
        (TABLE, object(), "method: object is not a calibrator; give it fit and predict"),
        (TABLE, CertifiedIsotonic(), "method: CertifiedIsotonic is fitted to certified intervals"),
        (interval_samples(clean=False), CertifiedPower(), "fitted to confidences without a perturbation, and those of"),
    ],
)
def test_what_is_no_calibrator_here_is_refused(source, method, message):
    with pytest.raises(InputError, match=message):
        recalibrate(source, method=method)


def test_a_trade_off_is_for_the_named_families():
    with pytest.raises(InputError, match="tradeoff: it is for the methods isotonic, temperature, beta"):
        recalibrate(SAMPLES, method=CertifiedPower(), tradeoff=1)


def test_what_cannot_be_kept_in_a_file_is_refused_only_when_a_file_is_asked_for(tmp_path):
    found = recalibrate(TABLE, method=Power(), fraction=0.5)
    with pytest.raises(InputError, match="Power cannot be written as JSON"):
        found.save(tmp_path / "map.json")
    assert list(tmp_path.iterdir()) == []
    found.save(tmp_path / "numbers.csv")
    done = found.apply(TABLE)
    assert (done.written, done.left_out) == (300, 300)
    np.testing.assert_array_equal(done.after.confidence, found.map.predict(np.delete(Z, found.fitted_on.positions())))


class Halved(ConfidenceMap):
    """A map of one's own that can be kept: a subclass of the project's base."""

    _kept: ClassVar = {"factor": (0.0, 1.0)}

    def fit(self, confidence, correct, sample_weight=None):
        self.factor_ = 0.5
        return self

    def _apply(self, values):
        return self.factor_ * values

    def _interval(self, lower, upper):
        return self.factor_ * lower, self.factor_ * upper

    def _restore(self, state):
        self.factor_ = float(state["factor"])


def test_a_subclass_of_the_base_is_saved_read_and_applied(tmp_path):
    path = tmp_path / "map.json"
    recalibrate(TABLE, method=Halved()).save(path)
    assert isinstance(load(path).calibrator, Halved)
    fresh = CertifiedSamples.from_intervals([0.2, 0.4], [0.6, 0.8], [0, 1], [0.4, 0.6], radii=[0.5])
    assert apply_map(path, fresh).after.upper[:, 0].tolist() == [0.3, 0.4]
