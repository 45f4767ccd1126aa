"""What is tried before training begins, so that a network which cannot be trained is one sentence."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from certcal._checks import InputError
from certcal.data import Inputs
from certcal.training import recipe, train


class Normalised(nn.Module):
    outputs = "logits"

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))

    def forward(self, inputs):
        return self.layers(inputs)


class Twofold(Normalised):
    def forward(self, inputs):
        rows = self.layers(inputs)
        return (rows, rows) if self.training else rows


@pytest.fixture
def eight():
    return Inputs.from_arrays(np.random.default_rng(0).random((8, 4)), [0, 1] * 4)


def plan(**changes):
    return recipe("gaussian", sigma=0.1, sigma_warmup=0, epochs=1, milestones=(), **changes)


def test_batch_normalisation_of_one_sample_is_refused_before_anything_is_written(eight, tmp_path):
    sentence = "Normalised in training mode does not take 1 of the inputs .*pass a larger batch or fewer pieces"
    for sizes in ({"batch": 1}, {"batch": 4, "pieces": 4}):
        with pytest.raises(InputError, match=sentence):
            train(Normalised(), eight, plan(**sizes), out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    assert len(train(Normalised(), eight, plan(batch=1, draws=2)).history) == 1


def test_a_network_that_returns_something_else_in_training_is_refused(eight):
    with pytest.raises(InputError, match="Twofold in training mode returns a tuple; it must return a row per input"):
        train(Twofold(), eight, plan(batch=4))


def test_the_trial_leaves_torchs_generator_alone(eight):
    network = Normalised()
    torch.manual_seed(0)
    before = torch.get_rng_state()
    trained = train(network, eight, plan(batch=4))
    assert torch.equal(torch.get_rng_state(), before)
    assert int(trained.network.layers[1].num_batches_tracked) == 2
