"""What holds in which epoch, by hand from the papers' words, and which samples it has."""

import pytest
import torch

from certcal.lab.training import Recipe, moment, recipe
from certcal.lab.training.schedules import batches_of, order_of


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


def test_an_epoch_is_shared_evenly_among_as_few_batches_as_the_size_allows():
    sizes = [len(batch) for batch in batches_of(torch.arange(60_000), 2048)]
    assert sum(sizes) == 60_000
    assert len(sizes) == 30
    assert max(sizes) == min(sizes) == 2000


def test_every_epoch_has_every_sample_once_in_an_order_of_its_own():
    orders = [order_of(torch.ones(50), 0, epoch) for epoch in (0, 1)]
    assert [sorted(order.tolist()) for order in orders] == [list(range(50))] * 2
    assert orders[0].tolist() != orders[1].tolist()
    assert orders[0].tolist() == order_of(torch.full((50,), 7.0), 0, 0).tolist()


def test_weighted_samples_come_in_proportion_and_left_out_ones_never():
    weights = torch.tensor([0.0, 1.0, 3.0] * 4000)
    counts = torch.bincount(order_of(weights, 0, 0) % 3, minlength=3)
    assert counts.sum() == 12_000  # the samples that are left take the steps of the others
    assert counts[0] == 0
    assert abs(counts[2] / 12_000 - 0.75) < 0.024  # six standard deviations


def test_samples_of_equal_weight_come_in_rounds_that_fill_the_epoch():
    weights = torch.tensor([0.0, 2.5, 2.5, 0.0, 2.5, 0.0, 0.0, 0.0])
    order = order_of(weights, 0, 3)
    rounds = [order[:3].tolist(), order[3:6].tolist(), order[6:].tolist()]
    assert [sorted(each) for each in rounds[:2]] == [[1, 2, 4]] * 2
    assert len(rounds[2]) == len(set(rounds[2])) == 2
    assert set(rounds[2]) < {1, 2, 4}
    orders = {tuple(order_of(weights, 0, epoch).tolist()) for epoch in range(20)}
    assert len(orders) > 10
    assert any(each[:3] != each[3:6] for each in orders)
