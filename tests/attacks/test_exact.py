"""The exact adversary takes confidences to where the worst-case program has them."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from certcal.attacks import AcceAdversary, Ball, ExactAdversary, Target
from certcal.attacks._exact import ENOUGH, MARGIN, SHORTFALL, Pilot, Reach
from certcal.attacks._protocol import Keep
from certcal.binning import equal_width_edges
from certcal.metrics import ece
from certcal.worst_case import calibration_error
from tests.attacks import naive
from tests.attacks.conftest import Trained
from tests.attacks.small import SIGMA, batch, differences, judged, small_target


def linear_log_odds(seed: int, n: int) -> tuple[Target, Tensor, Tensor, Tensor]:
    """A classifier of two classes with log odds x·w, its inputs, labels, and the log odds of each confidence."""
    random = torch.Generator().manual_seed(seed)
    weight = torch.randn(4, 1, generator=random, dtype=torch.float64)
    weight *= 2 / weight.norm()
    inputs = torch.randn(n, 4, generator=random, dtype=torch.float64)
    labels = torch.randint(2, (n,), generator=random)
    target = Target(lambda x: torch.cat((x @ weight, torch.zeros(n, 1, dtype=torch.float64)), 1))
    return target, inputs, labels, (inputs @ weight).squeeze(1).abs()


def test_confidences_to_go_to_are_those_of_trying_all_sign_patterns() -> None:
    edges, plain = equal_width_edges(5), 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        ends = np.sort(random.random((2, 12)), axis=0)
        now, correct = ends[0] + random.random(12) * (ends[1] - ends[0]), (random.random(12) < 0.6).astype(np.int64)
        lists = [each.tolist() for each in (*ends, now, correct, edges)]
        value, expected = naive.aims(*lists, (MARGIN, SHORTFALL, ENOUGH))
        pilot = Pilot(edges)
        found = pilot(*(torch.tensor(each) for each in (*ends, now, correct)))
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-9)
        assert value == pytest.approx(calibration_error(*ends, correct, 5).value, abs=1e-12)
        # The signs are those of the bins they go to.
        reached = float((pilot.signs * (torch.tensor(correct) - found)).mean())
        assert reached == pytest.approx(naive.error(expected, correct.tolist(), edges.tolist()), abs=1e-12)
        plain += expected == np.where(correct, *ends).tolist()
    assert 0 < plain < 20


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_reach_is_that_of_one_sample_at_a_time(norm: Any) -> None:
    random = np.random.default_rng(3)
    clean = random.random((30, 6)).round(1)
    moved = (clean + random.uniform(-0.1, 0.1, clean.shape)).clip(0, 1)
    gradient, z = random.standard_normal(clean.shape), random.standard_normal(30)
    for left in (0.1, 5.0):
        tensors = (torch.tensor(each) for each in (clean, moved, z, gradient))
        low, high = Reach.of(Ball(0.3, norm), *tensors, left).interval()
        for n in range(30):
            expected = naive.reach(gradient[n], clean[n], moved[n], z[n], 0.3, left, norm, (0.0, 1.0))
            np.testing.assert_allclose((low[n].item(), high[n].item()), expected, atol=1e-9)


@pytest.mark.parametrize(("steps", "margin"), [(1, 0.5), (3, MARGIN)])
@pytest.mark.parametrize("seed", range(4))
def test_where_log_odds_are_linear_the_worst_case_itself_is_reached(seed: int, steps: int, margin: float) -> None:
    target, inputs, labels, at = linear_log_odds(seed, 150)
    found = ExactAdversary(steps)(target, inputs, labels, Ball(0.4, box=None))
    _, after, correct = judged(target, inputs, labels, found)
    low, high = torch.sigmoid(at - 0.8).numpy(), torch.sigmoid(at + 0.8).numpy()
    worst = calibration_error(low, high, correct).value
    far = ece(np.where(correct, low, high), correct)
    # A margin of the bins' width is given away for safety, or a tenth of everything for what needs no aiming.
    least = far - 1e-6 if far >= ENOUGH * worst else worst - margin / 15
    assert least <= ece(after, correct) <= worst + 1e-9


def both_reach(
    trained: Trained, size: int, seed: int, steps: int, epsilon: float, keep: Keep = "last"
) -> tuple[float, float, float]:
    """Calibration errors of one batch: clean, under ACCE, and under the exact adversary."""
    target, inputs, labels = batch(trained, size, seed)
    reached = []
    for adversary in (AcceAdversary(steps, sigma=SIGMA), ExactAdversary(steps)):
        found = adversary(target, inputs, labels, Ball(epsilon), keep=keep)
        before, after, correct = judged(target, inputs, labels, found)
        reached += [ece(before, correct), ece(after, correct)]
    return reached[0], reached[1], reached[3]


@pytest.mark.parametrize("steps", [4, 10])
@pytest.mark.parametrize("size", [64, 800])
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_it_reaches_more_than_acce_on_every_batch(trained: Trained, epsilon: float, size: int, steps: int) -> None:
    keeps: tuple[Keep, Keep] = ("best", "last")
    for seed, keep in product(range(2), keeps):
        clean, acce, exact = both_reach(trained, size, seed, steps, epsilon, keep)
        assert exact >= acce
        assert exact > 1.2 * clean


@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.3])
def test_with_one_step_it_reaches_more_on_every_large_batch_and_on_average_of_small_ones(
    trained: Trained, epsilon: float
) -> None:
    # One step cannot correct where it landed: the last points of single small batches have been up to .02 below ACCE's.
    large = [both_reach(trained, 800, seed, 1, epsilon) for seed in range(4)]
    assert all(exact >= acce for _, acce, exact in large)
    for size in (64, 256):
        _, acce, exact = np.mean([both_reach(trained, size, seed, 1, epsilon) for seed in range(8)], axis=0)
        assert exact > 1.05 * acce


@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.3, 0.5])
def test_with_one_step_its_best_point_is_no_worse_than_that_of_acce_on_every_batch(
    trained: Trained, epsilon: float
) -> None:
    for size, seed in product((16, 64, 256), range(6)):
        clean, acce, exact = both_reach(trained, size, seed, 1, epsilon, "best")
        assert exact >= acce - 1e-6  # the same point, computed in another order
        assert acce >= clean - 1e-6


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_it_reaches_more_than_acce_without_noise_and_in_both_norms(trained: Trained, norm: Any) -> None:
    target, inputs, labels = batch(trained, 500, 0, sigma=0.0)
    ball = Ball(0.5 if norm == "l2" else 0.05, norm)
    reached = []
    for adversary in (AcceAdversary(4), ExactAdversary(4)):
        _, after, correct = judged(target, inputs, labels, adversary(target, inputs, labels, ball))
        reached.append(ece(after, correct))
    assert reached[1] > reached[0]


def test_a_step_goes_up_or_down_the_finite_differences_of_each_confidence() -> None:
    target, inputs, labels = small_target(1)
    rows, chosen = torch.arange(len(labels)), target.log_probabilities(inputs).argmax(1)
    slope = differences(lambda x: target.log_probabilities(x).exp()[rows, chosen].sum(), inputs)
    found = ExactAdversary(1, scale=0.5, bins=3)(target, inputs, labels, Ball(0.05, box=None), keep="last")
    change = found.inputs - inputs
    along = (change * slope).sum(1) / slope.norm(dim=1)
    torch.testing.assert_close(change, along.unsqueeze(1) * slope / slope.norm(dim=1, keepdim=True), atol=1e-7, rtol=0)
    assert (along.abs() <= 0.05 + 1e-9).all()
    assert (along.abs() > 0.01).any()


def test_its_calibration_error_is_the_one_reached_but_for_samples_that_missed_their_bin(trained: Trained) -> None:
    target, inputs, labels = batch(trained, 300, 0)
    found = ExactAdversary(10)(target, inputs, labels, Ball(0.5), keep="last")
    _, after, correct = judged(target, inputs, labels, found)
    assert found.calibration is not None
    value = found.calibration(target.log_probabilities(found.inputs)).item()
    assert value == pytest.approx(ece(after, correct), rel=0.15)
