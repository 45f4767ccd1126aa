"""Venn-Abers prediction: two isotonic fits with the new sample, and what is proved about one of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certcal import InputError, Predictions, measure, recalibrate
from certcal.calibrators import Calibrator, VennAbers
from tests.calibrators import naive_maps as naive

SAMPLES = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=14)


@settings(max_examples=60)
@given(SAMPLES, st.integers(-1, 17))
def test_both_probabilities_are_isotonic_fits_with_one_more_sample(samples, doubled):
    z, y = (np.array(each, float) for each in zip(*samples, strict=True))
    z, place = z / 8, np.clip(doubled / 16, 0, 1)
    low, high = VennAbers().fit(z, y).probabilities([place])
    assert low[0] == pytest.approx(naive.isotonic_with(z, y, place, 0), abs=1e-12)
    assert high[0] == pytest.approx(naive.isotonic_with(z, y, place, 1), abs=1e-12)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=14))
def test_the_probability_of_what_occurs_is_calibrated_exactly_whatever_the_samples_are(samples):
    """Each sample in turn is the new one, which is what exchangeable means; so nothing is left to chance."""
    z, y = (np.array(each, float) for each in zip(*samples, strict=True))
    z /= 6
    own = []
    for k in range(z.size):
        others = np.arange(z.size) != k
        pair = VennAbers().fit(z[others], y[others]).probabilities([z[k]])
        own.append(round(float(pair[int(y[k])][0]), 9))
    for value in set(own):
        assert y[np.array(own) == value].mean() == pytest.approx(value, abs=1e-8)


def test_with_many_samples_the_interval_is_narrow_ordered_and_never_certain():
    rng = np.random.default_rng(0)
    z = rng.random(30_000)
    fitted = VennAbers().fit(z, rng.random(z.size) < z**2)
    places = np.linspace(0, 1, 5001)
    low, high = fitted.probabilities(places)
    value = fitted.transform(places)
    assert (low <= value).all()
    assert (value <= high).all()
    assert min(np.diff(low).min(), np.diff(high).min(), np.diff(value).min()) >= 0
    assert (high - low).mean() < 0.01
    assert 0 < value.min() < value.max() < 1
    assert np.abs(value - places**2).max() < 0.06


def test_weights_of_zero_do_not_count_and_whole_ones_are_copies():
    z, y, w = np.array([0.1, 0.4, 0.4, 0.8]), np.array([0, 1, 0, 1]), np.array([2.0, 1.0, 0.0, 3.0])
    copies = np.repeat(np.arange(4), w.astype(int))
    one, other = VennAbers().fit(z, y, w), VennAbers().fit(z[copies], y[copies])
    assert one.to_dict() == other.to_dict()


@pytest.mark.parametrize("changes", [{"low": [0.5, 0.2]}, {"ends": [0.1, 2.0]}, {"high": [0.0, 0.5]}])
def test_damaged_steps_are_refused(changes):
    document = VennAbers().fit([0.2, 0.8], [0, 1]).to_dict()
    document["fitted"] |= changes
    with pytest.raises(InputError, match="damaged"):
        Calibrator.from_dict(document)


def test_an_applied_map_has_both_probabilities_beside_the_score(tmp_path):
    rng = np.random.default_rng(3)
    z = rng.random(300)
    table = {"score": z.tolist(), "outcome": (rng.random(300) < z**2).astype(int).tolist()}
    found = recalibrate(table, method="venn-abers")
    for source in (table, {"score": table["score"]}):
        done = found.apply(source, everything=True)
        low, high = found.map.probabilities(z)
        assert np.array_equal(done.table["score_p0"], low)
        assert np.array_equal(done.table["score_p1"], high)
        assert (low <= done.table["score_calibrated"]).all()
        assert (done.table["score_calibrated"] <= high).all()
    path = found.apply(table, everything=True).save(tmp_path / "after.csv")
    assert measure(path).n == 300
    points = {"score": (500 * z).tolist(), "outcome": table["outcome"]}
    real = recalibrate(points, method="venn-abers", real_scores=True)
    done = real.apply({"score": points["score"]}).table
    assert (done["score_p0"] <= done["score_calibrated"]).all()
    assert (done["score_calibrated"] <= done["score_p1"]).all()
    assert np.mean(done["score_p1"] - done["score_p0"]) < 0.1


@pytest.mark.parametrize("weighted", [False, True])
def test_a_recalibration_shows_the_interval_and_says_what_is_proved_about_its_ends(weighted):
    rng = np.random.default_rng(3)
    z = rng.random(400)
    w = rng.integers(1, 4, 400).astype(float) if weighted else None
    found = recalibrate(Predictions.from_scores(z, rng.random(400) < z**2, w), method="venn-abers")
    pair = found.two_probabilities
    low, high = found.map.probabilities(z)
    assert (pair.mean_width, pair.largest_width) == pytest.approx(((high - low).mean(), (high - low).max()))
    low, high = found.map.probabilities(pair.score)
    assert (pair.p0, pair.p1, len(pair.score)) == (tuple(low), tuple(high), 11)
    assert found.to_dict()["two_probabilities"] == pair.to_dict()
    proved = "the one of p0 and p1 that belongs to its outcome is calibrated: E[y | p_y] = p_y"
    assert (proved in pair.claim) == (not weighted)
    assert f"{pair.mean_width:.4f} apart on average" in " ".join(each.text for each in found.answer)
    for page in (str(found), found.report().to_html()):
        assert "Two probabilities" in page
        assert ("E[y | p_y] = p_y" in page) == (not weighted)
    assert recalibrate(z.round() > 0, z, method="platt").two_probabilities is None
