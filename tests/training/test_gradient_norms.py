"""Gradient norms of single samples: those of a linear model by hand, of any by autograd, and what is refused."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from certcal import InputError
from certcal.attacks import SmoothAdv, Target
from certcal.attacks.ball import Ball
from certcal.data import Inputs
from certcal.lab.plans.gradient_norms import BINS, GradientNorms, gradient_norms
from certcal.lab.training import Recipe, recipe
from certcal.lab.training.schedules import generator_of
from tests.training.digits import Modern, data, network, small

DIGITS = data(40)


class Linear(nn.Linear):
    """A softmax model, whose gradient is known."""

    outputs = "logits"

    def __init__(self) -> None:
        super().__init__(64, 10)
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(3)))

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs.flatten(1))


def noise_of(sample, draws, sigma, seed=0):
    """The noise that a sample's loss has, by the counters it is drawn by."""
    generator = generator_of("gradient norms: noise", seed, sample)
    return sigma * torch.randn((draws, 1, 64), generator=generator)


def test_norms_of_a_linear_model_are_those_computed_by_hand():
    model = Linear()
    found = gradient_norms(model, DIGITS, Recipe("standard"))
    weight, bias = (each.detach().double().numpy() for each in (model.weight, model.bias))
    inputs = DIGITS.inputs.reshape(40, -1).astype(np.float64)
    scores = inputs @ weight.T + bias
    away = np.exp(scores) / np.exp(scores).sum(1, keepdims=True) - np.eye(10)[DIGITS.labels]
    # The gradient is (p - e_y) times the input with a 1 for the bias.
    by_hand = np.linalg.norm(away, axis=1) * np.sqrt(np.square(inputs).sum(1) + 1)
    np.testing.assert_allclose(found.norms, by_hand, rtol=1e-5)
    np.testing.assert_array_equal(found.p_a, scores.argmax(1) == DIGITS.labels)
    assert found.plain is None


@pytest.mark.parametrize("loss", ["smoothed", "draws"])
def test_the_loss_is_the_recipes_with_its_noise_at_the_end_of_training(loss):
    model = Linear()
    made = Recipe("gaussian", sigma=0.5, draws=3, loss=loss, epochs=8, sigma_warmup=8)
    found = gradient_norms(model, DIGITS, made, samples=10, seed=4)
    weight, bias = model.weight.detach().double().numpy(), model.bias.detach().double().numpy()
    for sample, norm in zip(found.index, found.norms, strict=True):
        noisy = DIGITS.inputs[sample].reshape(-1) + noise_of(sample, 3, 0.5, seed=4)[:, 0].double().numpy()
        scores = noisy @ weight.T + bias
        every = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        label = DIGITS.labels[sample]
        # Of the average's cross entropy each draw has a part in proportion to the label's probability.
        parts = every[:, label] / every[:, label].sum() if loss == "smoothed" else np.full(3, 1 / 3)
        away = every - np.eye(10)[label]
        extended = np.hstack([noisy, np.ones((3, 1))])
        gradient = np.einsum("v,vc,vd->cd", parts, away, extended)
        assert norm == pytest.approx(np.linalg.norm(gradient), rel=1e-5)


def test_adversaries_are_those_of_the_last_epoch_and_batch_normalisation_mixes_no_samples():
    model, images = Modern(), DIGITS.inputs.reshape(-1, 1, 8, 8)
    model(torch.tensor(images))  # statistics that differ from those of any one sample
    model.eval()
    pictures = Inputs.from_arrays(images, DIGITS.labels)
    made = small("smoothadv", epsilon=0.5, epsilon_warmup=2, attack_steps=3, box=None)
    found = gradient_norms(model, pictures, made, samples=6, seed=1)
    for sample, norm in zip(found.index, found.norms, strict=True):
        inputs, label = torch.tensor(images[[sample]]), torch.tensor(DIGITS.labels[[sample]])
        noise = noise_of(sample, 2, 0.1, seed=1).reshape(2, 1, 1, 8, 8)
        moved = SmoothAdv(3)(Target(model, "logits", noise), inputs, label, Ball(0.5, box=None), keep="last").inputs
        model.zero_grad()
        rows = functional.softmax(model((moved + noise).flatten(0, 1)), 1).mean(0)
        (-rows[label].log()).sum().backward()
        by_autograd = math.sqrt(sum(float(each.grad.double().square().sum()) for each in model.parameters()))
        assert norm == pytest.approx(by_autograd, rel=1e-4)


def test_shares_of_votes_are_close_to_the_probabilities_of_a_linear_model():
    model = Linear()
    with torch.no_grad():
        model.weight[2:], model.bias[2:] = 0.0, -100.0
    two = Inputs.from_arrays(DIGITS.inputs[:20], DIGITS.labels[:20] % 2)
    found = gradient_norms(model, two, Recipe("gaussian", sigma=1.0), draws=2000)
    normal, apart = model.weight[0] - model.weight[1], model.bias[0] - model.bias[1]
    margin = (torch.tensor(two.inputs).flatten(1) @ normal + apart) / normal.norm()
    zero = torch.special.ndtr(margin.detach()).double().numpy()
    truth = np.where(two.labels == 0, zero, 1 - zero)
    assert np.abs(found.p_a - truth).max() < 5 * 0.5 / math.sqrt(2000)


def test_a_method_that_attacks_its_noise_has_norms_before_and_after(learned):
    made = small("acr", sphere_steps=6, sphere_step=0.3, sigma=0.4, epochs=3)
    found = gradient_norms(learned, DIGITS, made)
    plain = gradient_norms(learned, DIGITS, small("gaussian", draws=2, loss="draws", sigma=0.4, epochs=3))
    np.testing.assert_array_equal(found.plain, plain.norms)
    np.testing.assert_array_equal(found.p_a, plain.p_a)
    assert found.before is not None
    assert found.before.ratio == plain.ratio
    assert found.easy > 1.05 * found.before.easy
    assert found.ratio > found.before.ratio


@pytest.mark.parametrize("method", ["macer", "consistency", "smoothmix", "cat-rs"])
def test_every_method_that_judges_single_samples_has_norms(method):
    found = gradient_norms(network(), DIGITS, small(method), samples=5, draws=10)
    assert (found.norms > 0).all()
    assert found.plain is None


def test_the_same_seed_gives_the_same_bits_and_leaves_the_network_alone():
    model = Modern().train()
    before = [each.clone() for each in (*model.parameters(), *model.buffers())]
    pictures = Inputs.from_arrays(DIGITS.inputs.reshape(-1, 1, 8, 8), DIGITS.labels)
    made = small("gaussian", batch=10**6)
    one = gradient_norms(model, pictures, made, samples=8)
    torch.manual_seed(17)
    two = gradient_norms(model, pictures, made, samples=8)
    other = gradient_norms(model, pictures, made, samples=8, seed=1)
    for name in ("index", "p_a", "norms"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.index.tolist() != other.index.tolist()
    assert model.training
    assert all(torch.equal(a, b) for a, b in zip(before, (*model.parameters(), *model.buffers()), strict=True))
    assert not one.norms.flags.writeable


def test_samples_are_taken_without_repetition_and_all_where_there_are_no_more():
    some = gradient_norms(network(), DIGITS, Recipe("standard"), samples=39)
    assert len(set(some.index)) == some.norms.size == 39
    assert gradient_norms(network(), DIGITS, Recipe("standard"), samples=10**6).index.tolist() == list(range(40))


def found_of(p_a, norms, plain=None):
    return GradientNorms(np.arange(len(p_a)), np.array(p_a), np.array(norms, float), plain)


@pytest.mark.parametrize(
    ("p_a", "norms", "expected"),
    [
        ([0.49, 0.5, 0.51, 1.0], [4, 100, 1, 3], (2.0, 4.0, 0.5)),  # one half is neither easy nor hard
        ([0.9, 1.0], [1, 2], (1.5, None, None)),
        ([0.1, 0.2], [1, 2], (None, 1.5, None)),
        ([0.1, 0.9], [0, 2], (2.0, 0.0, None)),
    ],
)
def test_easy_and_hard_samples_and_their_ratio_where_it_is_defined(p_a, norms, expected):
    found = found_of(p_a, norms)
    assert (found.easy, found.hard, found.ratio) == expected


def test_bins_of_p_a_hold_every_sample_once_with_the_quantiles_of_its_norms():
    rng = np.random.default_rng(1)
    p_a, norms = rng.integers(0, 101, 400) / 100, rng.exponential(1.0, 400)
    found = found_of([*p_a, 0.3, 1.0], [*norms, 5.0, 6.0])
    assert sum(box.samples for box in found.bins) == 402
    assert len(found.bins) == BINS
    for box in found.bins:
        inside = (found.p_a >= box.low) & ((found.p_a < box.high) | (box.high == 1.0))
        assert box.samples == inside.sum()
        np.testing.assert_allclose(box.quantiles, np.quantile(found.norms[inside], [0.05, 0.25, 0.5, 0.75, 0.95]))
    empty = found_of([0.9], [1]).bins[0]
    assert (empty.low, empty.samples, empty.quantiles) == (0.0, 0, None)


class Broken(Linear):
    """Returns what is no number."""

    def forward(self, inputs):
        return super().forward(inputs) * math.nan


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"samples": 0}, "samples is 0; pass a whole number from 1"),
        ({"draws": 1.5}, "draws is 1.5; pass a whole number from 1"),
        ({"seed": -1}, "seed is -1; pass a whole number of at least 0"),
        ({"inputs": [1, 2]}, "inputs is a list; make it with certcal.data.Inputs.from_arrays"),
        ({"recipe": "gaussian"}, "recipe is a str; make one with certcal.lab.training.recipe"),
        ({"network": nn.Linear(64, 10)}, "logits"),
        ({"network": nn.Linear(5, 10), "outputs": "logits"}, "Linear does not take inputs of shape"),
        ({"network": Broken()}, r"the gradient of inputs\[0\] is not finite; pass a network with finite weights"),
        ({"recipe": recipe("exact-act")}, "exact-act attacks a whole batch together, so that one sample has no loss"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_sentence(changes, complaint):
    arguments = {"network": network(), "inputs": DIGITS, "recipe": Recipe("standard"), **changes}
    with pytest.raises(InputError, match=complaint):
        gradient_norms(**arguments)


def test_a_network_without_weights_to_train_is_refused():
    with pytest.raises(InputError, match="no weights that need gradients"):
        gradient_norms(network().requires_grad_(False), DIGITS, Recipe("standard"))


def test_fewer_samples_than_a_batch_are_enough():
    made = dataclasses.replace(recipe("gaussian", sigma=0.5), batch=4096)
    assert gradient_norms(network(), data(3), made).norms.size == 3
