"""The loss for classifiers whose scores will be perturbed."""

import numpy as np
import pytest
import torch
from torch import Tensor

from certcal import InputError
from certcal.bounds import perturb
from certcal.lab.training import PerturbedLoss
from certcal.lab.training._calibrated import expected_log_score, near_pair_margin, perturbed_cross_entropy

BANDWIDTHS = (2**-10, 2**-6, 0.1, 1.0)


def logits_and_outcomes(n: int, seed: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.normal(0, 2, n), requires_grad=True), torch.tensor(rng.integers(0, 2, n))


def integral(score: float, h: float, cells: int = 400_000) -> float:
    """E log S by the midpoint rule after S = t³, which makes the logarithm harmless at 0."""
    t = (np.arange(cells) + 0.5) / cells
    s = t**3
    density = 3 * t * t / np.cosh(np.clip((s - score) / h, -700, 700))
    return float(np.sum(density * np.log(s)) / np.sum(density))


@pytest.mark.parametrize("h", BANDWIDTHS)
def test_the_expected_logarithm_is_the_integral(h: float) -> None:
    scores = np.array([0.0, 1e-9, 0.003, 0.02, 0.3, 0.5, 0.97, 1.0])
    found = expected_log_score(torch.tensor(scores), h).numpy()
    np.testing.assert_allclose(found, [integral(score, h) for score in scores], rtol=0, atol=2e-7)


def test_the_expected_logarithm_is_the_mean_over_the_noise_that_scores_get() -> None:
    scores = np.repeat([0.01, 0.4, 1.0], 200_000)
    logs = np.log(perturb(scores, 2**-5, seed=3)).reshape(3, -1)
    error = logs.std(axis=1) / np.sqrt(200_000)
    found = expected_log_score(torch.tensor([0.01, 0.4, 1.0], dtype=torch.float64), 2**-5).numpy()
    assert np.all(np.abs(logs.mean(axis=1) - found) < 4 * error)


@pytest.mark.parametrize("h", BANDWIDTHS)
def test_gradients_are_those_of_finite_differences(h: float) -> None:
    logits, outcomes = logits_and_outcomes(12, 1)
    assert torch.autograd.gradcheck(lambda z: perturbed_cross_entropy(z, outcomes, h), (logits,))
    assert torch.autograd.gradcheck(lambda z: near_pair_margin(z, outcomes, h), (logits,))
    assert torch.autograd.gradcheck(lambda z: PerturbedLoss(h, margin=0.3)(z, outcomes), (logits,))


def test_gradients_are_finite_where_scores_are_0_or_1_in_double_precision() -> None:
    logits = torch.tensor([800.0, -800.0, 60.0, -60.0, 0.0], requires_grad=True)
    for outcomes in (torch.tensor([1, 0, 1, 0, 1]), torch.tensor([0, 1, 0, 1, 0])):
        (slope,) = torch.autograd.grad(PerturbedLoss(2**-8)(logits, outcomes), logits)
        assert torch.isfinite(slope).all()


def test_without_noise_to_speak_of_the_loss_is_the_cross_entropy() -> None:
    logits, outcomes = logits_and_outcomes(100, 2)
    plain = torch.nn.functional.binary_cross_entropy_with_logits(logits, outcomes.double())
    assert torch.isclose(perturbed_cross_entropy(logits, outcomes, 1e-5), plain, rtol=0, atol=1e-6)


def test_the_margin_is_the_mean_over_near_pairs_of_both_outcomes() -> None:
    logits, outcomes = logits_and_outcomes(40, 3)
    h = 0.05
    z, y = logits.detach().numpy(), outcomes.numpy()
    s = 1 / (1 + np.exp(-z))
    terms = [
        np.log1p(np.exp(2 * h - (z[i] - z[j])))
        for i in np.flatnonzero(y == 1)
        for j in np.flatnonzero(y == 0)
        if abs(s[i] - s[j]) < 2 * h
    ]
    assert len(terms) > 10
    assert near_pair_margin(logits, outcomes, h).item() == pytest.approx(np.mean(terms), rel=1e-12)


def test_a_batch_without_near_pairs_has_no_margin_but_a_gradient() -> None:
    logits = torch.tensor([4.0, -4.0], requires_grad=True)
    for outcomes in (torch.tensor([1, 0]), torch.tensor([1, 1])):
        value = near_pair_margin(logits, outcomes, 0.01)
        assert value.item() == 0
        assert torch.autograd.grad(value, logits)[0].tolist() == [0, 0]


def test_two_columns_are_the_difference_of_the_logits_and_types_are_kept() -> None:
    logits, outcomes = logits_and_outcomes(30, 4)
    shift = torch.linspace(-3, 3, 30, dtype=torch.float64)
    columns = torch.stack([shift, logits + shift], dim=1)
    loss = PerturbedLoss(2**-6)
    assert torch.isclose(loss(columns, outcomes), loss(logits, outcomes), rtol=1e-12)
    assert loss(logits.detach().float(), outcomes.bool()).dtype == torch.float32


def test_training_with_the_loss_separates_what_can_be_separated() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(200, 2, generator=generator)
    outcomes = inputs[:, 0] > 0
    model = torch.nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.zero_()
        model.bias.zero_()
    loss, weights = PerturbedLoss(2**-6), list(model.parameters())
    first = loss(model(inputs), outcomes).item()
    for _ in range(60):  # by hand: torch's optimisers load its compiler first, which takes seconds
        gradients = torch.autograd.grad(loss(model(inputs), outcomes), weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= 10 * gradient
    assert loss(model(inputs), outcomes).item() < first / 3
    assert ((model(inputs)[:, 0] > 0) == outcomes).float().mean() > 0.95


@pytest.mark.parametrize(
    ("logits", "outcomes", "complaint"),
    [
        (torch.zeros(2, 3), torch.zeros(2), "logits has shape"),
        (torch.zeros(2, dtype=torch.int64), torch.zeros(2), "logits has shape"),
        (torch.zeros(0), torch.zeros(0), "logits has shape"),
        (torch.zeros(2), torch.zeros(3), "lengths differ"),
        (torch.zeros(2), torch.tensor([0, 2]), r"outcomes\[1\] is 2, neither 0 nor 1"),
    ],
)
def test_what_cannot_be_used_is_named(logits: Tensor, outcomes: Tensor, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        PerturbedLoss(0.1)(logits, outcomes)


def test_settings_that_make_no_sense_are_refused() -> None:
    for build in (lambda: PerturbedLoss(0), lambda: PerturbedLoss(0.1, margin=-1), lambda: PerturbedLoss(0.1, nodes=1)):
        with pytest.raises(InputError):
            build()
