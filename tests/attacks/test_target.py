from __future__ import annotations

import torch

from certcal.attacks import Target
from certcal.models.networks import MLP

NETWORK = MLP(5, hidden=(7,), classes=4).eval().requires_grad_(False)
INPUTS = torch.rand(6, 5, generator=torch.Generator().manual_seed(0))
NOISE = torch.randn(3, 6, 5, generator=torch.Generator().manual_seed(1))


def test_without_noise_the_probabilities_are_those_of_the_network() -> None:
    expected = torch.softmax(NETWORK(INPUTS), 1)
    assert torch.allclose(Target(NETWORK).log_probabilities(INPUTS).exp(), expected, atol=1e-6)


def test_with_noise_they_are_the_mean_over_the_draws() -> None:
    expected = torch.stack([torch.softmax(NETWORK(INPUTS + each), 1) for each in NOISE]).mean(0)
    target = Target(NETWORK, noise=NOISE)
    assert torch.allclose(target.log_probabilities(INPUTS).exp(), expected, atol=1e-6)
    assert torch.allclose(target.draw_log_probabilities(INPUTS).exp().mean(0), expected, atol=1e-6)


def test_some_rows_keep_their_own_noise() -> None:
    target = Target(NETWORK, noise=NOISE)
    rows = torch.tensor([4, 1])
    some = target.rows(rows).log_probabilities(INPUTS[rows])
    assert torch.allclose(some, target.log_probabilities(INPUTS)[rows], atol=1e-6)


def test_probabilities_of_zero_have_finite_logarithms() -> None:
    target = Target(lambda inputs: torch.tensor([[0.0, 1.0]]).expand(len(inputs), 2), outputs="probabilities")
    assert torch.isfinite(target.log_probabilities(INPUTS)).all()


def test_double_precision_is_kept_and_half_is_widened() -> None:
    target = Target(lambda inputs: inputs)
    assert target.log_probabilities(INPUTS.double()).dtype == torch.float64
    assert target.log_probabilities(INPUTS.half()).dtype == torch.float32


def test_gradients_agree_with_finite_differences() -> None:
    network = MLP(5, hidden=(7,), classes=4).double().eval()
    point = INPUTS.double().requires_grad_(True)
    assert torch.autograd.gradcheck(Target(network, noise=NOISE.double()).log_probabilities, (point,))
