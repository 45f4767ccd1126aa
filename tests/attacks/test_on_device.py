"""Every attack and every adversary of a batch on an accelerator that refuses to mix devices."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from certcal.attacks import (
    ADVERSARIES,
    Ace,
    AttackMethod,
    Ball,
    OneStepAce,
    Pgd,
    Subject,
    Target,
    perturb,
    perturb_each,
)
from certcal.attacks.sphere import sphere_attack
from certcal.models.devices import DeviceMemoryWarning
from certcal.models.networks import MLP
from tests.accelerator import NAME, accelerator

RANDOM = np.random.default_rng(0)
INPUTS, LABELS = RANDOM.random((24, 6)).astype(np.float32), RANDOM.integers(0, 3, 24)
METHODS: list[AttackMethod] = [
    *(Ace(eta, omega, steps=4) for eta in (1, -1) for omega in ("true", "predicted")),  # pyright: ignore
    OneStepAce(),
    Pgd(steps=4),
]


def network() -> MLP:
    return MLP(6, hidden=(16,), classes=3, seed=2).eval().requires_grad_(False)


def subject(device: str, norm: Any = "l2", sigma: float | None = None, n: int = 24, **more: Any) -> Subject:
    settings = {"norm": norm, "sigma": sigma, "draws": 3, "device": device, **more}
    return Subject.of(network(), INPUTS[:n], LABELS[:n], **settings)


@pytest.mark.parametrize(
    ("norm", "sigma", "doubles"), [("l2", None, True), ("linf", None, False), ("l2", 0.1, False), ("linf", 0.1, True)]
)
def test_every_attack_finds_on_the_accelerator_what_it_finds_on_the_cpu(
    norm: Any, sigma: float | None, doubles: bool
) -> None:
    expected = perturb_each(subject("cpu", norm, sigma), METHODS, [0.1])
    with accelerator(doubles=doubles):
        found = perturb_each(subject(NAME, norm, sigma), METHODS, [0.1])
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.inputs, two.inputs, err_msg=one.name)
        np.testing.assert_array_equal(one.probabilities, two.probabilities)
        assert one.moved > 0


def batch(device: str, n: int = 24) -> tuple[Target, Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    noise = 0.2 * torch.randn((2, n, 6), generator=random)
    rows = np.resize(np.arange(24), n)
    inputs, labels = (torch.tensor(each[rows]).to(device) for each in (INPUTS, LABELS))
    return Target(network().to(device), noise=noise.to(device)), inputs, labels


def adversary(name: str, steps: int) -> Any:
    return ADVERSARIES[name](steps=steps, **({"sigma": 0.2} if name == "acce" else {}))  # pyright: ignore


@pytest.mark.parametrize("doubles", [True, False], ids=["with float64", "without"])
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("name", ADVERSARIES)
def test_every_adversary_of_a_batch_stays_on_the_accelerator(name: str, norm: Any, doubles: bool) -> None:
    for steps, keep in ((3, "last"), (3, "best"), (1, "best")):
        target, inputs, labels = batch("cpu")
        expected = adversary(name, steps)(target, inputs, labels, Ball(0.2, norm), keep)
        with accelerator(doubles=doubles):
            target, inputs, labels = batch(NAME)
            found = adversary(name, steps)(target, inputs, labels, Ball(0.2, norm), keep)
            assert found.inputs.device == inputs.device
            assert torch.equal(found.inputs.cpu(), expected.inputs)
            if found.calibration is not None:
                error = found.calibration(target.log_probabilities(found.inputs))
                assert error.device == inputs.device


@pytest.mark.parametrize("doubles", [True, False], ids=["with float64", "without"])
def test_noise_is_turned_on_the_accelerator_as_on_the_cpu(doubles: bool) -> None:
    def turned(device: str) -> Tensor:
        target, inputs, labels = batch(device)
        assert target.noise is not None
        plain = Target(target.network)
        return sphere_attack(plain, inputs, labels, target.noise, steps=3, length=0.3).cpu()

    expected = turned("cpu")
    with accelerator(doubles=doubles):
        assert torch.equal(turned(NAME), expected)


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.name)
def test_an_attack_does_not_wait_for_every_sample(method: AttackMethod) -> None:
    waits = {}
    for n in (3, 24):
        with accelerator() as state:
            perturb_each(subject(NAME, n=n), [method], [0.1])
            waits[n] = state.waits + state.to_host
    # Two per step (which samples go on, and what a rounding took out of the ball), and one copy of the result.
    assert max(waits.values()) <= 4 * 16 + 6
    assert waits[24] <= 2 * waits[3] + 4


@pytest.mark.parametrize("name", ADVERSARIES)
def test_an_adversary_waits_at_most_once_per_step_for_any_number_of_samples(name: str) -> None:
    for n in (4, 96):
        with accelerator() as state:
            target, inputs, labels = batch(NAME, n)
            before = state.waits + state.to_host
            adversary(name, 5)(target, inputs, labels, Ball(0.2), "last")
            assert state.waits + state.to_host - before <= 5 + 3  # and to seal the last point


def test_an_attack_that_does_not_fit_into_memory_takes_fewer_samples_at_a_time() -> None:
    given = {"norm": "l2", "sigma": 0.1, "draws": 4, "device": NAME}
    with accelerator():
        expected = perturb(network(), INPUTS, LABELS, Pgd(steps=2), epsilon=0.1, **given)
    # The weights, and the hidden layer of sixteen numbers for four draws of five samples.
    with accelerator(memory=16 * 4 * 5), pytest.warns(DeviceMemoryWarning, match="24 inputs do not fit") as told:
        found = perturb(network(), INPUTS, LABELS, Pgd(steps=2), epsilon=0.1, **given)
    np.testing.assert_allclose(found.inputs, expected.inputs, atol=1e-6)
    assert len(told) == 1


def test_a_module_on_an_accelerator_is_attacked_there() -> None:
    expected = perturb(network(), INPUTS, LABELS, Ace(steps=3), epsilon=0.1, device="cpu")
    with accelerator() as state:
        found = perturb(network().to(NAME), INPUTS, LABELS, Ace(steps=3), epsilon=0.1)
        assert state.operations > 100
    np.testing.assert_array_equal(found.inputs, expected.inputs)
