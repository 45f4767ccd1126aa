"""Losses against values by hand, and their gradients against finite differences."""

from __future__ import annotations

import math

import pytest
import torch

from certcal.attacks import AcceAdversary, Ball, ExactAdversary, Found, Target
from certcal.training._parts import MeanCrossEntropy, MixedLoss, SmoothedCrossEntropy, View
from certcal.training._schedules import Moment

NOW = Moment(0, 0.5, 0.3, 0.1)


def view(weights, adversary=None):
    """Eight samples under three draws through one linear layer of given weights, all in double precision."""
    random = torch.Generator().manual_seed(3)
    inputs = torch.rand((8, 4), generator=random, dtype=torch.float64)
    noise = 0.5 * torch.randn((3, 8, 4), generator=random, dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])

    def target(matrix):
        return Target(lambda batch: batch @ matrix, noise=noise)

    found = Found(inputs)
    if adversary is not None:
        found = adversary(target(START), inputs, labels, Ball(0.3), keep="last")
    return View(target(weights), inputs, labels, found, NOW, torch.Generator())


START = 3 * torch.randn((4, 3), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
OBJECTIVES = {
    "smoothed": (SmoothedCrossEntropy(), None),
    "draws": (MeanCrossEntropy(), None),
    "mixed with acce": (MixedLoss(0.6), AcceAdversary(3, bins=4, sigma=0.5)),
    "mixed with exact": (MixedLoss(0.6), ExactAdversary(3, bins=4)),
    "mixed of draws": (MixedLoss(0.6, MeanCrossEntropy()), AcceAdversary(3, bins=4, sigma=0.5)),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_are_those_of_finite_differences(name):
    objective, adversary = OBJECTIVES[name]
    weights = START.clone().requires_grad_(True)
    seen = view(weights, adversary)
    (gradient,) = torch.autograd.grad(objective(seen).loss, weights)

    def loss_at(moved):
        target = Target(lambda batch: batch @ moved, noise=seen.target.noise)
        return objective(View(target, seen.clean, seen.labels, seen.found, NOW, seen.generator)).loss.item()

    h = 1e-6
    for place in range(weights.numel()):
        step = torch.zeros(weights.numel(), dtype=torch.float64)
        step[place] = h
        step = step.reshape(weights.shape)
        with torch.no_grad():
            slope = (loss_at(START + step) - loss_at(START - step)) / (2 * h)
        assert gradient.flatten()[place].item() == pytest.approx(slope, rel=1e-5, abs=1e-8)
    assert gradient.abs().max() > 1e-3


def two_draws():
    """One sample, true class 0, of probabilities 0.9 and 0.3 under two draws."""
    rows = torch.log(torch.tensor([[[0.9, 0.1]], [[0.3, 0.7]]]))
    target = Target(lambda batch: batch, noise=rows)
    return View(target, torch.zeros(1, 2), torch.tensor([0]), Found(torch.zeros(1, 2)), NOW, torch.Generator())


def test_the_smoothed_loss_is_the_logarithm_of_the_mean_probability():
    judged = SmoothedCrossEntropy()(two_draws())
    assert judged.loss.item() == pytest.approx(-math.log(0.6), rel=1e-6)
    assert judged.log_probabilities.exp().tolist() == [pytest.approx([0.6, 0.4], rel=1e-6)]


def test_the_mean_loss_is_the_mean_of_the_logarithms():
    judged = MeanCrossEntropy()(two_draws())
    assert judged.loss.item() == pytest.approx(-(math.log(0.9) + math.log(0.3)) / 2, rel=1e-6)
    assert judged.log_probabilities.exp().tolist() == [pytest.approx([0.6, 0.4], rel=1e-6)]


def test_the_mixed_loss_weighs_cross_entropy_and_calibration():
    seen = two_draws()
    found = Found(seen.clean, lambda log_probabilities: 1 - log_probabilities[0, 0].exp())
    judged = MixedLoss(0.8)(View(seen.target, seen.clean, seen.labels, found, NOW, seen.generator))
    assert judged.loss.item() == pytest.approx(-0.8 * math.log(0.6) + 0.2 * 0.4, rel=1e-6)


def test_the_mixed_loss_is_the_cross_entropy_where_nothing_was_attacked():
    assert torch.equal(MixedLoss(0.8)(two_draws()).loss, SmoothedCrossEntropy()(two_draws()).loss)
