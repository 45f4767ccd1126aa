"""The attack on the sphere turns noise to where the network is wrong, and changes nothing else about it."""

from typing import Any

import pytest
import torch
from torch import Tensor

from certcal.attacks import Target, sphere
from certcal.attacks.sphere import sphere_attack
from certcal.models.networks import LeNet
from tests.attacks.conftest import Trained
from tests.attacks.naive import turned
from tests.attacks.small import batch, differences, small_target

NORMS = ("l2", "linf")
STEP = {"l2": 0.25, "linf": 0.03}


def lengths(noise: Tensor) -> Tensor:
    """Of every draw, in double precision."""
    return noise.double().flatten(2).square().sum(2).sqrt()


def digits(trained: Trained, sigma: float = 0.5, n: int = 150) -> tuple[Target, Tensor, Tensor, Tensor]:
    """The network alone, and digits with four draws of noise each, of which it gets some right and some wrong."""
    target, inputs, labels = batch(trained, n, seed=1, draws=4, sigma=sigma)
    assert target.noise is not None
    return Target(target.network), inputs, labels, target.noise


def right(target: Target, inputs: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
    """Whether every draw is classified as the label, (draws, n)."""
    with torch.no_grad():
        return torch.stack([target.network(inputs + each).argmax(1) == labels for each in noise])


@pytest.mark.parametrize("norm", NORMS)
def test_every_draw_ends_where_algorithm_1_takes_it_alone(norm: Any) -> None:
    noisy, inputs, _ = small_target(3, n=40)
    assert noisy.noise is not None
    target = Target(noisy.network)
    labels = target.network(inputs).argmax(1)
    found = sphere_attack(target, inputs, labels, noisy.noise, steps=4, length=0.15, norm=norm)
    taken = set()
    for draw, of_draw in enumerate(noisy.noise):
        for sample, noise in enumerate(of_draw):
            expected, steps = turned(target.network, inputs[sample], int(labels[sample]), noise, 4, 0.15, norm)
            taken.add(steps)
            torch.testing.assert_close(found[draw, sample], expected, rtol=1e-9, atol=1e-12)
    assert taken >= {0, 1, 2, 4}


@pytest.mark.parametrize("norm", NORMS)
def test_lengths_stay_to_float_precision_and_misclassified_noise_to_the_bit(norm: Any, trained: Trained) -> None:
    target, inputs, labels, noise = digits(trained)
    before = noise.clone()
    found = sphere_attack(target, inputs, labels, noise, steps=6, length=STEP[norm], norm=norm)
    assert torch.equal(noise, before)
    assert found.shape == noise.shape
    assert found.dtype == torch.float32
    relative = (lengths(found) - lengths(noise)).abs() / lengths(noise)
    assert relative.max() <= 2.0**-23
    was_right = right(target, inputs, labels, noise)
    assert 0.2 < was_right.float().mean() < 0.9
    assert torch.equal(found[~was_right], noise[~was_right])
    assert (found[was_right] != noise[was_right]).flatten(1).any(1).all()
    assert right(target, inputs, labels, found).float().mean() < 0.5 * was_right.float().mean()


def test_lengths_of_images_stay_to_float_precision_after_many_steps() -> None:
    network, random = LeNet(seed=1).eval(), torch.Generator().manual_seed(0)
    inputs = torch.rand((20, 1, 28, 28), generator=random)
    labels = network(inputs).argmax(1)
    noise = torch.randn((3, 20, 1, 28, 28), generator=random)
    found = sphere_attack(Target(network), inputs, labels, noise, steps=30, length=1e-3)
    assert ((lengths(found) - lengths(noise)).abs() / lengths(noise)).max() <= 2.0**-23
    assert not torch.equal(found, noise)


@pytest.mark.parametrize("norm", NORMS)
def test_the_first_step_goes_along_the_gradient_of_the_cross_entropy(norm: Any) -> None:
    noisy, inputs, _ = small_target(5)
    assert noisy.noise is not None
    target, noise = Target(noisy.network), noisy.noise[:1]
    labels = target.network(inputs + noise[0]).argmax(1)  # so all of it is right, and moves
    found = sphere_attack(target, inputs, labels, noise, steps=1, length=0.01, norm=norm)

    def entropy(x: Tensor) -> Tensor:
        return -target.network(x).softmax(1)[torch.arange(len(labels)), labels].log().sum()

    slope = differences(entropy, inputs + noise[0])
    direction = slope.sign() if norm == "linf" else slope / slope.norm(dim=1, keepdim=True)
    moved = noise[0] + 0.01 * direction
    expected = moved * (noise[0].norm(dim=1) / moved.norm(dim=1)).unsqueeze(1)
    torch.testing.assert_close(found[0], expected, rtol=1e-6, atol=1e-8)
    assert entropy(inputs + found[0]) > entropy(inputs + noise[0])


def test_draws_that_fool_the_network_stop_there(trained: Trained) -> None:
    target, inputs, labels, noise = digits(trained, sigma=0.3)
    few = sphere_attack(target, inputs, labels, noise, steps=3, length=0.25)
    many = sphere_attack(target, inputs, labels, noise, steps=9, length=0.25)
    fooled = ~right(target, inputs, labels, few)
    assert fooled.any()
    assert torch.equal(few[fooled], many[fooled])
    assert (few[~fooled] != many[~fooled]).flatten(1).any(1).all()


def test_what_a_draw_becomes_depends_on_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy, inputs, labels = small_target(7, n=40)
    assert noisy.noise is not None
    target = Target(noisy.network)
    whole = sphere_attack(target, inputs, labels, noisy.noise, steps=4, length=0.15)
    monkeypatch.setattr(sphere, "_ROWS", 7)
    parts = sphere_attack(target, inputs, labels, noisy.noise, steps=4, length=0.15)
    # Products of matrices of other sizes may be rounded in another way.
    torch.testing.assert_close(parts, whole, rtol=0, atol=1e-12)


def test_only_draws_that_need_a_step_are_worked_on(trained: Trained) -> None:
    target, inputs, labels, noise = digits(trained, n=60)
    sizes: list[int] = []

    def counting(x: Tensor) -> Tensor:
        sizes.append(x.shape[0])
        return target.network(x)

    sphere_attack(Target(counting), inputs, labels, noise, steps=5, length=0.25)
    assert sizes[0] == 240
    assert sizes[1] == int(right(target, inputs, labels, noise).sum()) < 240
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 5
    sizes.clear()
    sphere_attack(
        Target(counting), inputs, (target.network(inputs).argmax(1) + 1) % 10, 1e-3 * noise, steps=5, length=1.0
    )
    assert sizes == [240]  # all of it was wrong


@pytest.mark.parametrize("norm", NORMS)
def test_no_gradient_and_no_noise_give_numbers(norm: Any) -> None:
    inputs, labels = torch.ones(2, 3), torch.tensor([0, 0])
    flat = Target(lambda x: torch.cat((x.sum(1, keepdim=True) * 0 + 1, x.sum(1, keepdim=True) * 0), 1))
    noise = torch.randn((2, 2, 3), generator=torch.Generator().manual_seed(0))
    assert torch.equal(sphere_attack(flat, inputs, labels, noise, steps=3, length=0.5, norm=norm), noise)
    slope = Target(lambda x: x)
    nothing = torch.zeros(2, 2, 3)
    assert (sphere_attack(slope, inputs, labels, nothing, steps=3, length=0.5, norm=norm) == 0).all()
    broken = Target(lambda x: torch.cat((1 + 0 * x[:, :1], (x[:, :1] - x[:, :1]).sqrt()), 1))  # its gradient is NaN
    assert torch.equal(sphere_attack(broken, inputs, labels, noise, steps=3, length=0.5, norm=norm), noise)


def test_a_step_to_the_centre_of_the_sphere_is_not_taken() -> None:
    target = Target(lambda x: torch.cat((x, torch.zeros_like(x)), 1))
    noise = torch.tensor([[[0.5]]])
    found = sphere_attack(target, torch.tensor([[1.0]]), torch.tensor([0]), noise, steps=1, length=0.5)
    assert torch.equal(found, noise)
    assert sphere_attack(target, torch.tensor([[1.0]]), torch.tensor([0]), noise, steps=1, length=0.75).item() == -0.5


def test_a_network_that_is_sure_still_has_a_direction() -> None:
    sure = Target(lambda x: 1000 * x)
    inputs, labels = torch.tensor([[9.0, 0.0]]), torch.tensor([0])
    found = sphere_attack(sure, inputs, labels, torch.tensor([[[3.0, 4.0]]]), steps=1, length=1.0)
    assert found[0, 0, 0] < 3.0 < 4.0 < found[0, 0, 1]


def test_weights_keep_their_gradients_and_no_gradient_mode_does_not_matter(trained: Trained) -> None:
    target, inputs, labels, noise = digits(trained, n=20)
    before = [None if weight.grad is None else weight.grad.clone() for weight in trained.network.parameters()]
    with torch.no_grad():
        found = sphere_attack(target, inputs, labels, noise, steps=2, length=0.25)
    assert torch.equal(found, sphere_attack(target, inputs, labels, noise, steps=2, length=0.25))
    assert not found.requires_grad
    for weight, grad in zip(trained.network.parameters(), before, strict=True):
        assert weight.grad is grad is None or torch.equal(weight.grad, grad)
