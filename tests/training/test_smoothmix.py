"""SmoothMix: its loss by hand and by finite differences, its adversaries, its constants."""

import math

import numpy as np
import pytest
import torch

from certcal.attacks import Found, Target
from certcal.lab.training import Moment, View, recipe
from certcal.lab.training._smoothmix import FreeAdversary, MixEndpoints, SmoothMix, smoothmix_loss
from certcal.lab.training.parts import parts_of
from tests.training.views import finite_slopes, slopes

LATE = Moment(50, 0.5, 0.0, 0.1)
LABELS = torch.tensor([0, 1, 2, 0, 1, 2])


def random(*shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


NOISE, WEIGHTS = 0.5 * random(3, 6, 4, seed=2), random(4, 3, seed=3)
# Most samples are where their class is, so that some are right and some are not.
INPUTS = random(6, 4, seed=1) + 0.5 * WEIGHTS.T[LABELS]


def target(weights=WEIGHTS, noise=NOISE):
    return Target(lambda batch: batch @ weights, noise=noise)


def seek(own, steps=3, box=None, moment=LATE):
    return FreeAdversary(own, steps, box)(target(), INPUTS, LABELS, moment, torch.Generator())


def view(weights, search_result, moment=LATE, seed=7):
    generator = torch.Generator().manual_seed(seed)
    return View(target(weights), INPUTS, LABELS, Found(INPUTS), moment, generator, search_result)


def naive(weights, near, far, shares, weight):
    """The loss, sample by sample and draw by draw."""

    def predict(x, draw, sample):
        logits = (x + NOISE[draw, sample].numpy()) @ weights
        powers = np.exp(logits - logits.max())
        return powers / powers.sum()

    total = 0.0
    for sample, label in enumerate(LABELS.tolist()):
        x, away, share = near[sample], far[sample], shares[sample]
        clean = [predict(x, draw, sample) for draw in range(3)]
        average = sum(clean) / 3
        total += sum(-math.log(each[label]) for each in clean) / 3
        if average.argmax() == label:
            soft = (1 - share) * average + share / 3
            mixed = [predict((1 - share) * x + share * away, draw, sample) for draw in range(3)]
            total += weight * sum(float((soft * np.log(soft / each)).sum()) for each in mixed) / 3
    return total / len(LABELS)


def test_the_loss_is_that_of_a_batch_by_hand():
    # Two draws of two samples: the first is right on average, the second is not and has no mixed term.
    every = torch.tensor([[[0.6, 0.4], [0.7, 0.3]], [[0.8, 0.2], [0.5, 0.5]]], dtype=torch.float64).log()
    mixed = torch.tensor([[[0.5, 0.5], [0.1, 0.9]], [[0.4, 0.6], [0.1, 0.9]]], dtype=torch.float64).log()
    loss = smoothmix_loss(every, mixed, torch.tensor([0, 1]), torch.tensor([0.4, 0.2], dtype=torch.float64), 5.0)
    natural = -(math.log(0.6) + math.log(0.8) + math.log(0.3) + math.log(0.5)) / 4
    # The average of the first sample is (0.7, 0.3), so its soft label 0.6 · (0.7, 0.3) + 0.4 · (0.5, 0.5).
    first = 0.62 * math.log(0.62 / 0.5) + 0.38 * math.log(0.38 / 0.5)
    second = 0.62 * math.log(0.62 / 0.4) + 0.38 * math.log(0.38 / 0.6)
    assert loss.item() == pytest.approx(natural + 5 * (first + second) / 4, rel=1e-12)


@pytest.mark.parametrize("one_step", [False, True])
def test_the_objective_is_the_loss_computed_sample_by_sample(one_step):
    own = SmoothMix(step=0.7, mixed_weight=3.0, one_step=one_step)
    ends = seek(own)
    right = target().log_probabilities(ends.near).argmax(1) == LABELS
    assert 0 < int(right.sum()) < 6
    judged = own(view(WEIGHTS, ends))
    shares = torch.rand(6, generator=torch.Generator().manual_seed(7), dtype=torch.float64).numpy() / 2
    slow = naive(WEIGHTS.numpy(), ends.near.numpy(), ends.far.numpy(), shares, 3.0)
    assert judged.loss.item() == pytest.approx(slow, rel=1e-12)
    assert torch.allclose(judged.log_probabilities, target().log_probabilities(ends.near))


def test_gradients_are_those_of_finite_differences_also_through_the_soft_label():
    own = SmoothMix(step=0.7)
    ends = seek(own)
    slopes(lambda moved: own(view(moved, ends)).loss, WEIGHTS, 1e-6, 1e-8)


def test_every_step_of_the_adversary_has_the_given_length_and_nothing_limits_their_number():
    before = INPUTS
    for steps in range(1, 6):
        after = seek(SmoothMix(step=0.7), steps).far
        assert torch.allclose((after - before).norm(dim=1), torch.full((6,), 0.7, dtype=torch.float64))
        before = after
    # One draw of a linear network of two classes: all steps go the same way.
    line = Target(lambda batch: batch @ WEIGHTS[:, :2], noise=NOISE[:1, :1])
    far = FreeAdversary(SmoothMix(step=5.0), 8, None)(line, INPUTS[:1], LABELS[:1], LATE, torch.Generator()).far
    assert (far - INPUTS[:1]).norm().item() == pytest.approx(40.0)


def test_the_adversary_is_less_like_its_label_under_the_average_of_the_draws():
    own = target().log_probabilities(INPUTS).gather(1, LABELS.unsqueeze(1))
    moved = target().log_probabilities(seek(SmoothMix(step=0.5)).far).gather(1, LABELS.unsqueeze(1))
    assert bool((moved < own).all())


def test_adversaries_and_what_stands_in_for_inputs_stay_in_the_box():
    ends = seek(SmoothMix(step=3.0, one_step=True), box=(-0.5, 0.5))
    assert bool((ends.far.abs() <= 0.5).all())
    inside = FreeAdversary(SmoothMix(step=3.0, one_step=True), 2, (-0.5, 0.5))(
        target(), INPUTS.clamp(-0.5, 0.5), LABELS, LATE, torch.Generator()
    )
    assert bool((inside.near.abs() <= 0.5).all())
    assert bool((inside.far.abs() == 0.5).any())


def test_the_first_step_stands_in_for_the_input_and_the_adversary_goes_on_from_it():
    plain, one = seek(SmoothMix(step=0.7)), seek(SmoothMix(step=0.7, one_step=True))
    assert torch.equal(plain.near, INPUTS)
    assert torch.allclose(one.near, seek(SmoothMix(step=0.7), steps=1).far)
    assert torch.allclose(one.far, plain.far)
    alone = seek(SmoothMix(step=0.7, one_step=True), steps=1)
    assert torch.equal(alone.near, INPUTS)


def test_both_the_weight_and_the_first_step_rise_during_the_warm_up():
    own = SmoothMix(step=0.8, one_step=True, mixed_warmup=4)
    early = Moment(0, 0.5, 0.0, 0.1)
    ends = seek(own, moment=early)
    assert torch.allclose((ends.near - INPUTS).norm(dim=1), torch.full((6,), 0.2, dtype=torch.float64))
    assert [own.share(Moment(epoch, 0.5, 0.0, 0.1)) for epoch in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert SmoothMix(mixed_warmup=0).share(early) == 1.0
    ends = MixEndpoints(INPUTS, ends.far)
    losses = [own(view(WEIGHTS, ends, Moment(epoch, 0.5, 0.0, 0.1))).loss.item() for epoch in (0, 1, 3)]
    assert losses[2] - losses[1] == pytest.approx(2 * (losses[1] - losses[0]))
    assert losses[1] > losses[0]


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    own = SmoothMix(step=0.7)
    ends = seek(own)
    losses = [own(view(WEIGHTS, ends, seed=seed)).loss.item() for seed in (1, 1, 2)]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("outputs", ["logits", "probabilities"])
def test_extreme_outputs_give_finite_losses_and_gradients(outputs):
    weights = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], requires_grad=True)
    size = 1e20 if outputs == "logits" else 1.0

    def network(batch):
        out = size * batch.sign() @ weights
        return out if outputs == "logits" else (out > 0).float() + 0 * weights.sum() + 0 * batch

    inputs, labels = torch.tensor([[1.0, -1.0], [1.0, -1.0]]), torch.tensor([0, 1])
    seen = Target(network, outputs, torch.zeros(2, 2, 2))
    ends = FreeAdversary(SmoothMix(), 2, None)(seen, inputs.clone(), labels, LATE, torch.Generator())
    ends = MixEndpoints(ends.near, -ends.far)
    loss = SmoothMix()(View(seen, inputs, labels, Found(inputs), LATE, torch.Generator(), ends)).loss
    assert finite_slopes(loss, weights)


def test_its_parts_are_noise_the_search_and_the_loss():
    made = recipe("smoothmix", sigma=0.5, box=(-1.0, 2.0), attack_steps=3, one_step=True)
    parts = parts_of(made)
    assert parts.adversary is None
    assert parts.objective == made.own
    assert parts.inner_search == FreeAdversary(made.own, 3, (-1.0, 2.0))
