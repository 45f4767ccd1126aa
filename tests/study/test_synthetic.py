"""The synthetic calibration functions are what they say they are."""

import numpy as np
import pytest

from certcal import InputError
from certcal.lab.study import SYNTHETIC
from certcal.lab.study._synthetic import turning_points
from certcal.metrics import ece

# The middle of many equal cells: the rule for integrals is then exact to far below the tolerances here.
CELLS = 2_000_000
MIDDLES = (np.arange(CELLS) + 0.5) / CELLS


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_stated_calibration_error_variation_and_slope_are_those_of_the_function(name: str) -> None:
    each = SYNTHETIC[name]
    eta = each.eta(MIDDLES)
    assert eta.min() >= 0
    assert eta.max() <= 1
    assert np.abs(eta - MIDDLES).mean() == pytest.approx(each.calibration_error, abs=1e-9)
    steps = np.abs(np.diff(eta))
    assert 0.97 * each.lipschitz <= steps.max() * CELLS <= each.lipschitz * (1 + 1e-9)
    # On a grid with both ends a function loses variation at its turning points only: it is at most half a step d from
    # one of them, where it has risen by at most |η″| d²/8, and that counts twice. Here there are up to 60, and |η″| is
    # at most 0.8 (2w + w²/2) with w = 60π. Two million roundings are the rest.
    w = 60 * np.pi
    lost = 60 * 2 * 0.8 * (2 * w + w**2 / 2) / (8 * CELLS**2)
    variation = np.abs(np.diff(each.eta(np.arange(CELLS + 1) / CELLS))).sum()
    assert each.variation - lost - 1e-9 <= variation <= each.variation + 1e-9


def test_the_oscillating_function_turns_once_in_every_half_wave() -> None:
    turns = turning_points()
    assert np.array_equal(np.floor(turns * 60), np.arange(30))
    eta = SYNTHETIC["oscillating"].eta
    heights, beside = eta(turns), np.maximum(eta(turns - 1e-4), eta(turns + 1e-4))
    assert np.all((heights > beside) == (np.arange(30) % 2 == 0))
    assert np.all((heights < np.minimum(eta(turns - 1e-4), eta(turns + 1e-4))) == (np.arange(30) % 2 == 1))
    grid = np.arange(CELLS + 1) / CELLS
    slopes = np.diff(eta(grid)) > 0
    assert np.count_nonzero(slopes[1:] != slopes[:-1]) == 60


@pytest.mark.parametrize("name", SYNTHETIC)
def test_outcomes_are_drawn_with_the_probability_of_their_score(name: str) -> None:
    each = SYNTHETIC[name]
    scores, outcomes = each.draw(200_000, np.random.default_rng(0))
    z = (outcomes - each.eta(scores)).sum() / np.sqrt((each.eta(scores) * (1 - each.eta(scores))).sum())
    assert abs(z) < 4
    assert set(outcomes.tolist()) == {0, 1}
    again = each.draw(200_000, np.random.default_rng(0))
    assert np.array_equal(scores, again[0])
    assert np.array_equal(outcomes, again[1])


def test_the_binned_error_does_not_see_the_oscillation() -> None:
    each = SYNTHETIC["oscillating"]
    scores, outcomes = each.draw(500_000, np.random.default_rng(1))
    assert ece(scores, outcomes) < 0.1 * each.calibration_error


def test_drawing_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="n is 0; pass a number of samples"):
        SYNTHETIC["smooth"].draw(0, np.random.default_rng(0))
