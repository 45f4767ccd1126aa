from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from certcal.attacks import Ball, Target
from certcal.attacks.ascent import ascend
from certcal.attacks.ball import Norm
from certcal.models.networks import MLP
from tests.attacks.conftest import Trained
from tests.attacks.naive import one_pgd
from tests.attacks.running import pgd


def test_the_first_of_the_best_points_on_the_way_is_kept() -> None:
    """From 0 in steps of 0.5 up a hill with its top at 0.5: the second step overshoots."""
    target = Target(lambda x: torch.cat((x, torch.zeros_like(x)), 1))

    def hill(log_probabilities: Tensor, step: int = 0) -> Tensor:
        x = log_probabilities[:, 0] - log_probabilities[:, 1]
        return x if step < 3 else -x

    def height(log_probabilities: Tensor) -> Tensor:
        return -(log_probabilities[:, 0] - log_probabilities[:, 1] - 0.5).abs()

    clean, ball = torch.zeros(2, 1), Ball(10.0, box=None)
    assert ascend(target, clean, ball, 3, 0.5, hill)[0].item() == pytest.approx(1.5)
    assert ascend(target, clean, ball, 3, 0.5, hill, height)[0].item() == pytest.approx(0.5)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_pgd_agrees_with_its_naive_twin(norm: Norm) -> None:
    network = MLP(6, hidden=(12,), classes=4, seed=3).double().eval().requires_grad_(False)
    rng = np.random.default_rng(0)
    clean, labels = torch.tensor(rng.random((20, 6))), torch.tensor(rng.integers(0, 4, 20))

    def loss(log_probabilities: Tensor, _: int = 0) -> Tensor:
        return -log_probabilities.gather(1, labels.unsqueeze(1)).squeeze(1)

    found = ascend(Target(network), clean, Ball(0.3, norm), 7, 0.6 / 7, loss, loss)
    twin = torch.stack([one_pgd(network, x, int(y), 0.3, norm, 7) for x, y in zip(clean, labels, strict=True)])
    assert torch.allclose(found, twin, atol=1e-9)


def test_pgd_ruins_the_accuracy_and_more_so_with_a_larger_epsilon(trained: Trained) -> None:
    inputs, labels = trained.inputs[:200], trained.labels[:200]
    found = [pgd(trained.network, inputs, labels, epsilon=each, steps=10) for each in (0.0, 0.3, 0.6)]
    accuracies = [each.accuracy for each in found]
    assert accuracies[0] == found[0].clean_accuracy > accuracies[1] > accuracies[2]
    assert found[2].changed > 50
    assert "labels changed" in found[2].sentence
    assert all((each.lengths <= each.epsilon).all() for each in found)
    assert found[0].moved == 0


def test_pgd_against_a_smoothed_classifier_does_not_depend_on_batches(trained: Trained) -> None:
    inputs, labels = trained.inputs[:30], trained.labels[:30]
    one = pgd(trained.network, inputs, labels, epsilon=0.3, steps=3, sigma=0.25, draws=4, seed=5, batch=24)
    two = pgd(trained.network, inputs, labels, epsilon=0.3, steps=3, sigma=0.25, draws=4, seed=5)
    assert np.allclose(one.inputs, two.inputs, atol=1e-5)
    assert np.allclose(one.probabilities, two.probabilities, atol=1e-5)
    other = pgd(trained.network, inputs, labels, epsilon=0.3, steps=3, sigma=0.25, draws=4, seed=6)
    assert not np.allclose(other.clean_probabilities, one.clean_probabilities, atol=1e-3)
