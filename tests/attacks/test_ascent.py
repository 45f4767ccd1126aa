"""What is attacked, and projected gradient ascent on it; every attack gives back the threads it is given."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from certcal import InputError
from certcal.attacks import Ball, Target
from certcal.attacks.ascent import ascend
from certcal.attacks.ball import Norm
from certcal.models.networks import MLP
from tests.attacks.conftest import Trained
from tests.attacks.naive import one_pgd
from tests.attacks.small import ace, one_step_ace, pgd


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


# --- targets ----------------------------------------------------------------------------------------------------------

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


# --- threads ----------------------------------------------------------------------------------------------------------

EVERY: dict[str, tuple[Any, dict[str, Any]]] = {
    "ace": (ace, {"epsilon": 0.1, "steps": 2}),
    "one_step_ace": (one_step_ace, {"epsilon": 0.1}),
    "pgd": (pgd, {"epsilon": 0.1, "steps": 2}),
}
POINTS, LABELS = np.array([[0.75, 0.25], [0.25, 0.5], [0.5, 0.25]], np.float32), [0, 1, 1]


class Counting(nn.Module):
    """Notes how many threads torch has whenever it is called; class level, because models are copied."""

    outputs = "logits"
    seen: set[int]

    def forward(self, inputs: Tensor) -> Tensor:
        type(self).seen.add(torch.get_num_threads())
        torch.rand(1)
        return 3 * inputs


@pytest.mark.parametrize("name", EVERY)
def test_every_attack_has_the_threads_it_is_given_and_gives_them_back(name: str) -> None:
    attack, options = EVERY[name]
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        state = torch.get_rng_state()
        for threads, given in ((1, {}), (2, {"threads": 2})):
            Counting.seen = set()
            attack(Counting().eval(), POINTS, LABELS, **options, **given)
            assert Counting.seen == {threads}
            assert torch.get_num_threads() == 3
            assert torch.equal(torch.get_rng_state(), state)
    finally:
        torch.set_num_threads(before)
    with pytest.raises(InputError, match="threads is 0"):
        attack(Counting().eval(), POINTS, LABELS, **options, threads=0)
