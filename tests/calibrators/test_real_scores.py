"""Scores on any scale: points of a scorecard, margins; the unit does not matter, nor which way they go."""

import numpy as np
import pytest
from scipy.special import expit

from certcal import InputError
from certcal.calibrators import PlattScaling, RealScores, load, save

RNG = np.random.default_rng(39)
POINTS = RNG.normal(600, 60, 2000)
DEFAULT = RNG.random(2000) < expit((540 - POINTS) / 40)


def test_points_become_the_probabilities_that_a_logistic_regression_finds():
    fitted = RealScores("platt").fit(POINTS, DEFAULT)
    places = np.linspace(400, 800, 9)
    np.testing.assert_allclose(fitted.transform(places), expit((540 - places) / 40), atol=0.03)
    assert fitted.scale_ < 0
    rising = RealScores("platt").fit(-POINTS, DEFAULT)
    np.testing.assert_allclose(rising.transform(-places), fitted.transform(places), atol=1e-9)


@pytest.mark.parametrize("method", ["auto", "platt", "quadratic", "spline", "isotonic"])
def test_the_unit_of_the_scores_does_not_matter(method):
    one, other = RealScores(method).fit(POINTS, DEFAULT), RealScores(method).fit(1e4 * POINTS - 7e6, DEFAULT)
    np.testing.assert_allclose(other.transform(1e4 * POINTS - 7e6), one.transform(POINTS), atol=1e-8)


def test_the_default_is_the_best_map_and_platt_s_where_none_would_be_taken(tmp_path):
    fitted = RealScores().fit(POINTS, DEFAULT)
    assert np.abs(fitted.transform(POINTS) - expit((540 - POINTS) / 40)).mean() < 0.02
    few = RealScores().fit(POINTS[:20], DEFAULT[:20])
    assert isinstance(few.map_, PlattScaling)
    save(fitted, tmp_path / "map.json")
    again = load(tmp_path / "map.json").calibrator
    assert np.array_equal(again.transform(POINTS), fitted.transform(POINTS))
    assert again.to_dict() == fitted.to_dict()


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0, np.nan], r"scores\[1\] is nan; drop the sample"),
        ([[1.0], [2.0]], r"scores has shape \(2, 1\); pass one real number per sample"),
        (["a", "b"], "scores are not numbers"),
        ([1.0, 2.0, 3.0], "scores"),
    ],
)
def test_what_are_no_scores_is_refused_in_one_sentence(scores, message):
    with pytest.raises(InputError, match=message):
        RealScores().fit(scores, [0, 1])
    with pytest.raises(InputError, match="calibrator is 'vector'; expected auto or one of none, temperature, platt"):
        RealScores("vector").fit([1, 2], [0, 1])
    document = RealScores("platt").fit(POINTS, DEFAULT).to_dict()
    document["fitted"]["scale"] = 0.0
    with pytest.raises(InputError, match="scale is 0"):
        RealScores.from_dict(document)
