"""Bounds on the difference of two classifiers: the twin, exact failure probabilities, and many populations."""

import math
from bisect import bisect_left

import numpy as np
import pytest
from scipy import stats

from certcal import InputError
from certcal.binning import assign, equal_width_edges
from certcal.bounds import difference
from certcal.bounds._bets import SMALL_DEVIATIONS, place_bets
from certcal.bounds._binned import orders
from certcal.claims import ORDER
from certcal.lab.study import SYNTHETIC
from tests.bounds import naive

DELTA = 0.1


def excess_capital(za, ca, zb, cb, bins: int, delta: float, value: float) -> float:
    """Capital against "the error of a minus that of b is ``value``", sample by sample."""
    bin_a, bin_b = (assign(z, equal_width_edges(bins)) for z in (za, zb))
    known = -naive.signs_before(next(orders(za.size, 0)), bin_b, cb - zb) * (cb - zb) / 2
    bets = place_bets(delta / 2, za.size, SMALL_DEVIATIONS)
    return naive.capital_against(np.ones(za.size), (ca - za) / 2, known, bin_a, bets, value / 2)


@pytest.mark.parametrize(("n", "room"), [(40, 1e-9), (300, 1e-9), (30_000, 2e-4)])
def test_the_ends_are_where_the_least_capital_reaches_two_over_delta(n: int, room: float) -> None:
    """Of many samples the corners of cells stand for them, which makes the ends a little wider, never narrower."""
    rng = np.random.default_rng(n)
    z = rng.random(n)
    a, b = z**2, np.clip(z + rng.normal(0, 0.05, n), 0, 1)
    c = (rng.random(n) < z).astype(float)
    found = difference(a, c, b, c, 7, 0.04).binned
    target = math.log(2 / 0.04)
    for value, samples in ((found.upper.value, (a, c, b, c)), (-found.lower.value, (b, c, a, c))):
        assert excess_capital(*samples, 7, 0.04, value) >= target
        assert excess_capital(*samples, 7, 0.04, value - room) < target
    paired, bets = (a - c) ** 2 - (b - c) ** 2, place_bets(0.02, n, SMALL_DEVIATIONS)
    brier = difference(a, c, b, c, 7, 0.04).brier
    for value, values in ((brier.upper.value, paired), (-brier.lower.value, -paired)):
        for moved, enough in ((0.0, True), (-room, False)):
            one, none = np.ones(n), np.zeros(n)
            capital = naive.capital_against(one, none, values, none.astype(int), bets, value + moved)
            assert (capital >= target) is enough


def test_at_a_small_level_a_part_of_either_deviation_fail_too_often() -> None:
    """One is sure of 1, the other of 0, and a coin decides: the errors differ by 1 - 2p, and so do the scores."""
    n, delta, p = 4000, 2e-12, 0.5
    one, zero = np.ones(n), np.zeros(n)

    def log_rate(which: str, part: float) -> float:
        """Of an upper end that is too small, which it is from a number of hits on."""

        def fails(k: int) -> bool:
            c = np.arange(n) < k  # after the first hit, whichever it is, the sign is right
            upper, seen = getattr(difference(one, c, zero, c, 1, delta), which).upper.value, 1 - 2 * k / n
            return seen + part * (upper - seen) < 1 - 2 * p

        least = bisect_left(range(n), True, lo=n // 2, hi=n * 2 // 3, key=fails)
        return float(stats.binom.logsf(least - 1, n, p))

    for which in ("binned", "brier"):
        assert log_rate(which, 1.0) <= math.log(delta / 2)
        assert log_rate(which, 0.88) > math.log(delta / 2)


def shifted(z: np.ndarray) -> np.ndarray:
    return np.clip(z + 0.1, 0, 1)


# Two answers for a score that is uniform on [0, 1], and the outcome's probability.
PAIRS = {
    "the same": (lambda z: z, lambda z: z, "calibrated"),
    "one is calibrated": (lambda z: z**2, lambda z: z, "calibrated"),
    "the other is": (lambda z: z, lambda z: z**2, "calibrated"),
    "errors of opposite signs": (shifted, lambda z: np.clip(z - 0.1, 0, 1), "calibrated"),
    "nearly alike": (lambda z: z, lambda z: np.clip(z + 0.01, 0, 1), "monotone"),
    "one knows nothing": (lambda z: np.full_like(z, 0.5), lambda z: z, "smooth"),
    "few values": (lambda z: np.round(z * 4) / 4, lambda z: z, "calibrated"),
    "sure of all": (lambda z: (z > 0.5) * 1.0, lambda z: z, "calibrated"),
    "waves": (lambda z: z, shifted, "oscillating"),
    "rare outcomes": (lambda z: z**2 * 0.05, lambda z: z * 0.1, "monotone"),
    "reversed": (lambda z: 1 - z, lambda z: z, "calibrated"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_both_ends_hold_together_for_known_populations(name: str) -> None:
    of_a, of_b, outcomes = PAIRS[name]
    eta, bins, n, repetitions = SYNTHETIC[outcomes].eta, 5, 120, 80
    grid = (np.arange(500_000) + 0.5) / 500_000
    edges = equal_width_edges(bins)

    def error(answer) -> float:
        z = answer(grid)
        return float(np.abs(np.bincount(assign(z, edges), eta(grid) - z, bins)).sum()) / grid.size

    def brier(answer) -> float:
        z, p = answer(grid), eta(grid)
        return float((p * (1 - z) ** 2 + (1 - p) * z**2).mean())

    true = {"binned": error(of_a) - error(of_b), "brier": brier(of_a) - brier(of_b)}
    rng = np.random.default_rng(3)
    failed = dict.fromkeys(true, 0)
    for _ in range(repetitions):
        z = rng.random(n)
        c = (rng.random(n) < eta(z)).astype(float)
        found = difference(of_a(z), c, of_b(z), c, bins, DELTA)
        for which, value in true.items():
            both = getattr(found, which)
            failed[which] += not both.lower.value - 1e-5 <= value <= both.upper.value + 1e-5
            assert both.upper.value - both.lower.value < 1.6
    assert max(failed.values()) <= DELTA * repetitions


def test_a_difference_that_is_there_is_found_and_classifiers_that_are_alike_are_close() -> None:
    rng = np.random.default_rng(0)
    z = rng.random(50_000)
    c = rng.random(z.size) < z
    found = difference(z**2, c, z, c)
    assert 0 < found.binned.lower.value < 1 / 6 < found.binned.upper.value
    assert 0 < found.brier.lower.value < 1 / 30 < found.brier.upper.value
    swapped = difference(z, c, z**2, c)
    assert swapped.binned.lower.value == pytest.approx(-found.binned.upper.value, abs=1e-9)
    same = difference(z, c, z, c).brier
    assert same.lower.value < 0 < same.upper.value < 0.001


def test_what_is_claimed_is_one_sentence_with_its_assumptions() -> None:
    found = difference([0.2, 0.9, 0.4], [0, 1, 1], [0.3, 0.8, 0.5], [0, 1, 1], names=("old", "new"))
    assert found.binned.sentence == (
        "binned calibration error of old minus that of new is between −1.0000 and 1.0000: "
        "95% sure, for samples drawn like these 3."
    )
    assert "both classifiers answered for the same samples, in the same order" in found.binned.assumptions
    assert ORDER in found.binned.assumptions
    assert ORDER not in found.brier.assumptions
    assert found.binned.settings == {"bins": 15, "closed": "left", "seed": 0}
    assert found.to_dict()["brier"]["delta"] == 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.5], [1, 0], [0.5], [1]), "lengths differ: confidence_a has 2, confidence_b has 1"),
        (([0.5, 0.5], [1, 0], [0.5, 2], [1, 0]), r"classifier b: confidence\[1\] is 2, outside"),
        (([0.5, 0.5], [1, 3], [0.5, 0.2], [1, 0]), r"classifier a: correct\[1\] is 3, neither 0 nor 1"),
    ],
)
def test_unusable_input_is_named(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        difference(*arguments)
