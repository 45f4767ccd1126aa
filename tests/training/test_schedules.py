"""By hand, from the papers' words: what holds in which epoch."""

from __future__ import annotations

import pytest

from certcal.training import Recipe, moment, recipe


def test_fine_tuning_reaches_epsilon_in_the_third_epoch_and_divides_the_rate_every_fourth():
    plan = recipe("brier-act", sigma=0.25, epsilon=0.75)
    found = [moment(plan, epoch) for epoch in range(10)]
    assert [each.epsilon for each in found] == pytest.approx([0.25, 0.5] + [0.75] * 8, rel=1e-15)
    assert [each.learning_rate for each in found] == pytest.approx([0.01] * 4 + [0.001] * 4 + [0.0001] * 2, rel=1e-12)
    assert {each.sigma for each in found} == {0.25}


def test_the_baselines_have_no_adversary_for_eight_epochs_which_then_grows_over_eight():
    plan = recipe("smoothadv", sigma=0.5, epsilon=2.0)
    found = [moment(plan, epoch) for epoch in range(150)]
    sigma = [0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375, 0.5]
    assert [each.sigma for each in found] == sigma + [0.5] * 142
    epsilon = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0]
    assert [each.epsilon for each in found] == [0.0] * 8 + epsilon + [2.0] * 134
    rates = [0.1] * 50 + [0.01] * 50 + [0.001] * 50
    assert [each.learning_rate for each in found] == pytest.approx(rates, rel=1e-12)


def test_without_warm_ups_everything_is_whole_from_the_first_epoch():
    now = moment(Recipe("smoothadv", sigma=0.5, epsilon=1.0, learning_rate=0.3), 0)
    assert (now.epoch, now.sigma, now.epsilon, now.learning_rate) == (0, 0.5, 1.0, 0.3)


def test_a_delay_without_a_warm_up_ends_at_once():
    plan = Recipe("smoothadv", sigma=0.5, epsilon=1.0, epsilon_delay=2)
    assert [moment(plan, epoch).epsilon for epoch in range(4)] == [0.0, 0.0, 1.0, 1.0]
