"""Choosing how much noise scores stand."""

from typing import Any

import numpy as np
import pytest

from certcal import InputError
from certcal.bounds import choose_bandwidth, perturb
from certcal.bounds._perturb import _AurocTable, distribution
from certcal.metrics import auroc


def scores_and_outcomes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random(n) < 0.2, rng.integers(0, 2, n), rng.beta(0.4, 0.4, n))
    return scores, (rng.random(n) < 0.1 + 0.8 * scores).astype(np.uint8)


def table_of(scores: np.ndarray, outcomes: np.ndarray) -> _AurocTable:
    return _AurocTable(np.sort(scores[outcomes == 1]), np.sort(scores[outcomes == 0]))


def expected_auroc(scores: np.ndarray, outcomes: np.ndarray, h: float) -> float:
    """The integral of one distribution function against the other, on a grid without any sharing out of scores."""
    grid = np.linspace(0, 1, 100_001)
    up, down = (
        np.mean([distribution(grid, np.full(grid.size, score), h) for score in scores[outcomes == y]], axis=0)
        for y in (1, 0)
    )
    return float(np.sum(np.diff(up) * (down[1:] + down[:-1]) / 2))


def test_the_expected_area_agrees_with_the_integral() -> None:
    scores, outcomes = scores_and_outcomes(16, 1)
    table = table_of(scores, outcomes)
    for h in (2**-12, 2**-6, 0.1, 1.0):
        assert table.perturbed(h).auroc == pytest.approx(expected_auroc(scores, outcomes, h), abs=1e-5)


def test_the_expected_area_is_the_mean_over_draws_of_the_noise() -> None:
    scores, outcomes = scores_and_outcomes(2000, 2)
    drawn = [auroc(perturb(scores, 0.05, seed), outcomes) for seed in range(100)]
    found = table_of(scores, outcomes).perturbed(0.05).auroc
    assert abs(np.mean(drawn) - found) < 4 * np.std(drawn) / 10 + 1e-5


def test_without_noise_the_area_is_the_metric() -> None:
    scores, outcomes = scores_and_outcomes(500, 3)
    assert table_of(scores, outcomes).before == pytest.approx(auroc(scores, outcomes), abs=1e-12)


@pytest.mark.parametrize("tolerance", [0.0005, 0.05])
def test_the_chosen_bandwidth_is_the_largest_that_costs_at_most_the_tolerance(tolerance: float) -> None:
    scores, outcomes = scores_and_outcomes(5000, 4)
    choice = choose_bandwidth(scores, outcomes, tolerance)
    table = table_of(scores, outcomes)
    before = auroc(scores, outcomes)
    assert choice.auroc == pytest.approx(before, abs=1e-12)
    assert choice.fall == pytest.approx(before - choice.perturbed_auroc, abs=1e-12)
    assert before - table.perturbed(choice.bandwidth).auroc <= tolerance
    assert before - table.perturbed(choice.bandwidth * 1.01).auroc > tolerance
    assert choice.fall_lower < choice.fall < choice.fall_upper
    assert f"{choice.bandwidth:.4g}" in choice.sentence
    assert choice.to_dict()["bandwidth"] == choice.bandwidth
    assert choose_bandwidth(scores[::-1], outcomes[::-1], tolerance) == choice


def test_the_interval_covers_the_fall_in_the_population_about_as_often_as_it_says() -> None:
    big = table_of(*scores_and_outcomes(400_000, 5))
    h = 0.125
    after = big.perturbed(h)
    assert big.before is not None
    truth = big.before - after.auroc
    hits, errors, falls = 0, [], []
    for seed in range(200):
        table = table_of(*scores_and_outcomes(400, 100 + seed))
        assert table.before is not None
        seen = table.perturbed(h)
        errors.append(table.standard_error(seen))
        falls.append(table.before - seen.auroc)
        hits += abs(falls[-1] - truth) <= 1.96 * errors[-1]
    assert hits >= 180  # 95 % are expected; 180 of 200 is more than three deviations below
    assert np.mean(errors) == pytest.approx(np.std(falls), rel=0.2)


def test_the_interval_is_that_of_every_pair_written_out() -> None:
    scores, outcomes = scores_and_outcomes(60, 9)
    choice = choose_bandwidth(scores, outcomes, 0.05, level=0.9)
    grid = np.linspace(0, 1, 20_001)
    spread = [distribution(grid, np.full(grid.size, score), choice.bandwidth) for score in scores]
    # What the noise costs each pair of samples of different outcomes, and the variances of its means over either one.
    cost = np.array(
        [
            [
                (scores[i] > scores[j])
                + 0.5 * (scores[i] == scores[j])
                - np.sum(np.diff(spread[i]) * (spread[j][1:] + spread[j][:-1]) / 2)
                for j in np.flatnonzero(outcomes == 0)
            ]
            for i in np.flatnonzero(outcomes == 1)
        ]
    )
    error = np.sqrt(cost.mean(axis=1).var() / cost.shape[0] + cost.mean(axis=0).var() / cost.shape[1])
    assert choice.fall == pytest.approx(cost.mean(), abs=2e-5)
    assert choice.fall_upper - choice.fall == pytest.approx(1.6448536 * error, rel=2e-3)
    assert choice.fall - choice.fall_lower == pytest.approx(1.6448536 * error, rel=2e-3)


def test_scores_whose_area_no_noise_can_lower_get_the_widest() -> None:
    rng = np.random.default_rng(6)
    choice = choose_bandwidth(rng.random(20_000), rng.integers(0, 2, 20_000), 0.05)
    assert choice.bandwidth == 1


def test_masses_of_a_coarser_grid_do_not_depend_on_the_way_there() -> None:
    scores, outcomes = scores_and_outcomes(300, 8)
    direct, by_steps = table_of(scores, outcomes), table_of(scores, outcomes)
    for cells in (4096, 2048, 1024):
        by_steps.masses(cells)
    for one, other in zip(direct.masses(1024), by_steps.masses(1024), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-15)
        assert one.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "outcomes", "options", "complaint"),
    [
        ([0.1, 0.2], [1, 1], {}, "outcomes are all equal"),
        ([0.5], [1], {}, "outcomes are all equal"),
        ([0.1, 0.2], [0, 1], {"tolerance": 0}, "tolerance is 0"),
        ([0.1, 0.2], [0, 1], {"level": 1}, "level is 1"),
        ([0.5, 0.50001], [0, 1], {"tolerance": 0.1}, "already lowers AUROC by more"),
    ],
)
def test_what_cannot_be_used_is_named(scores: Any, outcomes: Any, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        choose_bandwidth(scores, outcomes, **options)
