"""Edges that come last: the bracket holds on both ends, for recomputed equal-mass bins and for any edges."""

from typing import Any

import numpy as np
import pytest

from certcal import InputError
from certcal.metrics import ece, equal_mass_ece
from certcal.worst_case import (
    WorstCase,
    any_edges_error,
    calibration_error,
    certify,
    equal_mass_error,
    population_bound,
)
from tests.worst_case import naive

ROUNDING = 1e-12


def realistic(n: int, width: float, seed: int, accuracy: float = 0.8) -> tuple[Any, Any, Any]:
    """Calibrated confidences, moved by up to a width in their log odds."""
    rng = np.random.default_rng(seed)
    z = rng.beta(8 * accuracy, 8 * (1 - accuracy), n)
    odds, correct = np.log(z / (1 - z)), (rng.random(n) < z).astype(np.uint8)
    return 1 / (1 + np.exp(width - odds)), 1 / (1 + np.exp(-width - odds)), correct


def reached(found: WorstCase) -> float:
    assert found.reached is not None
    return found.reached


def test_the_true_worst_case_of_three_samples_is_inside_the_bracket() -> None:
    met = 0
    for seed in range(18):
        p, bins = naive.instance(seed, n=3), 1 + seed % 4
        found, true = equal_mass_error(*p.arguments, bins, closed=p.closed, trials=300), naive.worst_equal_mass(p, bins)
        assert reached(found) - 1e-9 <= true <= found.value + ROUNDING, seed
        met += true - reached(found) < 1e-6
    assert met >= 16  # the search is no proof, but it finds almost all of these


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("width", [0.1, 1.0])
def test_no_feasible_confidences_exceed_the_value_and_the_witness_has_what_is_reached(
    width: float, closed: str
) -> None:
    lower, upper, correct = realistic(240, width, 3)
    found = equal_mass_error(lower, upper, correct, 10, closed=closed, trials=600)
    z = found.witness
    assert ((lower <= z) & (z <= upper)).all()
    assert equal_mass_ece(z, correct, 10, closed=closed) == pytest.approx(reached(found), abs=ROUNDING)
    assert found.bins is not None
    assert found.bins.count.sum() == 240
    assert found.contributions.sum() == pytest.approx(reached(found), abs=ROUNDING)
    rng = np.random.default_rng(0)
    tried = [np.where(correct == 1, lower, upper), calibration_error(lower, upper, correct, 10).witness, lower, upper]
    tried += [np.clip(place, lower, upper) for place in np.linspace(0.5, 1, 21)]  # large ties
    tried += [lower + rng.random(240) * (upper - lower) for _ in range(30)]
    worst = max(equal_mass_ece(each, correct, 10, closed=closed) for each in tried)
    assert worst <= reached(found) <= found.value


def test_a_bound_that_is_three_per_cent_smaller_is_exceeded() -> None:
    found = equal_mass_error(*realistic(300, 1.0, 1))
    assert found.value * 0.97 < reached(found) <= found.value
    everywhere = any_edges_error(*realistic(300, 0.5, 1))
    assert everywhere.value * 0.97 < reached(everywhere) <= everywhere.value


def test_points_have_the_plain_error_and_single_precision_stays_inside_its_intervals() -> None:
    lower, upper, correct = realistic(100, 0.5, 2)
    for closed in ("left", "right"):
        found = equal_mass_error(lower, lower, correct, closed=closed)
        plain = equal_mass_ece(lower, correct, closed=closed)
        assert reached(found) == plain
        assert plain <= found.value <= plain + 1e-9
    low, high = lower.astype(np.float32), upper.astype(np.float32)
    small = equal_mass_error(low, high, correct)
    assert small.witness.dtype == np.float32
    assert ((low <= small.witness) & (small.witness <= high)).all()
    assert equal_mass_ece(small.witness, correct) <= small.value


def test_failing_samples_may_be_anything() -> None:
    lower, upper, correct = realistic(60, 0.3, 5)
    bound = equal_mass_error(lower, upper, correct, 5, failing=3, trials=0).value
    assert bound > equal_mass_error(lower, upper, correct, 5, trials=0).value
    rng = np.random.default_rng(1)
    for _ in range(8):
        low, high, c, chosen = lower.copy(), upper.copy(), correct.copy(), rng.integers(0, 60, 3)
        low[chosen], high[chosen], c[chosen] = 0, 1, rng.integers(0, 2, 3)
        assert reached(equal_mass_error(low, high, c, 5, trials=20)) <= bound


def test_samples_that_are_not_certified_are_free() -> None:
    lower, upper, correct = realistic(80, 0.3, 7)
    certified = np.arange(80) % 8 != 0
    found = equal_mass_error(lower, upper, correct, 5, certified=certified, trials=100)
    kept = equal_mass_error(lower[certified], upper[certified], correct[certified], 5, trials=100)
    assert (found.value, found.n) == (kept.value, 70)
    assert np.isnan(found.witness[~certified]).all()
    everything = found.all_samples
    assert everything is not None
    assert everything.n == 80
    rng = np.random.default_rng(2)
    for _ in range(30):
        z = np.where(certified, found.witness, rng.choice([0.0, rng.random(), 1.0], 80))
        c = np.where(certified, correct, rng.integers(0, 2, 80))
        assert equal_mass_ece(z, c, 5) <= everything.value
    assert "uncertified" in everything.settings


def test_any_edges_bound_every_binning_and_the_population() -> None:
    lower, upper, correct = realistic(200, 0.5, 9)
    found = any_edges_error(lower, upper, correct, 6)
    rng = np.random.default_rng(3)
    for _ in range(10):
        edges = np.concatenate(([0], np.sort(rng.random(5)), [1]))
        assert calibration_error(lower, upper, correct, edges=edges).value <= found.value + ROUNDING
    assert equal_mass_error(lower, upper, correct, 6, trials=0).value <= found.value
    assert found.bins is not None
    assert ece(found.witness, correct, edges=found.bins.edges) == pytest.approx(reached(found), abs=ROUNDING)
    assert "the edges were not chosen from them" not in population_bound(found).assumptions
    with pytest.raises(InputError, match="edges depend on the samples"):
        population_bound(equal_mass_error(lower, upper, correct, 6, trials=0))


def test_a_summary_has_frozen_edges_and_the_bracket_when_asked_for() -> None:
    lower, upper, correct = realistic(120, 0.4, 11)
    edges = np.array([0, 0.6, 0.8, 0.9, 1])
    plain = certify(lower, upper, correct, bins=4)
    given = certify(lower, upper, correct, bins=4, edges=edges)
    frozen = certify(lower, upper, correct, bins=4, edges=edges, chosen=True, adaptive=True)
    exact = calibration_error(lower, upper, correct, edges=edges).value
    assert given["calibration_error"].worst_all.value == frozen["calibration_error"].worst_all.value == exact
    assert "edges=frozen" in frozen["calibration_error"].sentence
    assert frozen.population_all.value > given.population_all.value
    assert "equal_mass_error" not in plain.ranges
    assert frozen["equal_mass_error"].worst_all.value == equal_mass_error(lower, upper, correct, 4).value
    sentence = frozen["equal_mass_error"].sentence
    assert "edges=recomputed" in sentence
    assert "; some have" in sentence
    assert frozen.to_dict()["equal_mass_error"]["all"]["reached"] < frozen["equal_mass_error"].worst_all.value


def test_mistakes_are_answered_in_a_sentence() -> None:
    with pytest.raises(InputError, match="failing"):
        equal_mass_error([0.1], [0.2], [1], failing=2)
    with pytest.raises(InputError, match="trials"):
        equal_mass_error([0.1], [0.2], [1], trials=-1)
    with pytest.raises(InputError, match="swapped"):
        equal_mass_error([0.3], [0.2], [1])
