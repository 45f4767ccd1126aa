"""Votes for the label under noise: as many as there should be, from the generator alone."""

from __future__ import annotations

import pytest
import torch
from scipy.special import ndtr
from torch import nn

from certcal.attacks import Target
from certcal.training._acr import label_votes


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_votes_are_binomial_with_the_probability_of_the_label():
    # Class 0 if the first entry is above 0: its probability is Φ(x / σ).
    target = Target(lambda x: torch.stack((x[:, 0], -x[:, 0]), 1))
    inputs = torch.tensor([[-1.0], [0.0], [0.5], [3.0]]).repeat(500, 1)
    votes = label_votes(target, inputs, torch.zeros(2000, dtype=torch.int64), 0.5, 40, seeded()).reshape(500, 4)
    assert votes.dtype == torch.int64
    assert votes.min() >= 0
    assert votes.max() <= 40
    chances = ndtr(inputs[:4, 0].numpy() / 0.5)
    for column, chance in zip(votes.T.double(), chances, strict=True):
        spread = (chance * (1 - chance) / (40 * 500)) ** 0.5
        assert abs(column.mean().item() / 40 - chance) <= 5 * spread + 1e-9
    assert votes[:, 1].double().var().item() == pytest.approx(10, rel=0.35)  # 40 · ½ · ½: draws are independent


@pytest.mark.parametrize("draws", [1, 7, 500, 1203])
def test_every_draw_of_every_sample_is_counted_once(draws):
    seen = []

    def network(x):
        seen.append(x.shape[0])
        return torch.stack((torch.ones(len(x)), torch.zeros(len(x))), 1)

    labels = torch.tensor([0, 1] * 11)
    votes = label_votes(Target(network), torch.zeros(22, 3), labels, 1.0, draws, seeded())
    assert votes.tolist() == [draws, 0] * 11
    assert sum(seen) == 22 * draws
    assert max(seen) <= 500


def test_the_same_generator_gives_the_same_votes_and_another_others():
    def votes(seed):
        labels = torch.zeros(50, dtype=torch.int64)
        return label_votes(Target(lambda x: x), torch.zeros(50, 2), labels, 1.0, 20, seeded(seed)).tolist()

    assert votes(0) == votes(0) != votes(1)


def test_no_noise_gives_all_votes_to_one_answer_and_no_history_is_kept():
    network = nn.Linear(2, 3)
    inputs, labels = torch.randn((9, 2), generator=seeded()), torch.arange(9) % 3
    votes = label_votes(Target(network), inputs, labels, 0.0, 5, seeded())
    assert votes.tolist() == (5 * (network(inputs).argmax(1) == labels)).tolist()
    assert not votes.requires_grad
