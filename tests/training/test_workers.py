"""Several processes give the bits of one, and one that dies is a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from certcal.data import Inputs
from certcal.engines import EngineError
from certcal.training import read_log, train
from certcal.training._workers import TensorLayout, new_file
from tests.training.digits import Modern, Mortal, data, network, numbers, same_weights, small
from tests.training.test_parts import Label, OneSign

SELECTING = {"sigma": 0.4, "learning_rate": 0.05, "discard_below": 0.4, "discard_draws": 20}


@pytest.mark.parametrize(
    ("make", "method", "changes"),
    [
        (Modern, "smoothadv", {"pieces": 3, "adversary": OneSign(), "augment": "crop+flip"}),
        (network, "acr", {"pieces": 2, "loss": Label(), **SELECTING}),
    ],
    ids=["batch normalisation, augmentation and an adversary of one's own", "selection and a loss of one's own"],
)
def test_two_processes_that_read_the_data_give_the_bits_of_one_that_has_it(make, method, changes, learned, tmp_path):
    start = learned if method == "acr" else None
    plan, held = small(method, **changes), data(300)
    np.save(tmp_path / "inputs.npy", held.inputs)
    read = Inputs.from_arrays(np.load(tmp_path / "inputs.npy", mmap_mode="r"), held.labels)
    alone = train(make(), held, plan, start=start, test=held)
    together = train(make(), read, plan, start=start, test=read, workers=2, out=tmp_path / "run")
    assert same_weights(alone, together)
    assert numbers(alone) == numbers(together)
    assert method != "acr" or alone.history[1]["kept"] < 1


def test_a_worker_that_dies_is_one_sentence_and_the_checkpoint_is_kept(tmp_path):
    plan = small("gaussian", batch=150, pieces=2)
    with pytest.raises(EngineError, match="a worker process ended with exit code 7; the last checkpoint is kept"):
        train(Mortal(), data(300), plan, out=tmp_path / "run", workers=2)
    assert (tmp_path / "run" / "checkpoint-000002.safetensors").exists()
    assert len(read_log(tmp_path / "run")) == 1


def test_a_network_that_cannot_travel_is_one_sentence():
    class Local(nn.Module):
        outputs = "logits"

        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, inputs):
            return self.inner(inputs)

    with pytest.raises(EngineError, match=r"Local cannot be sent to a worker process .*; define its class in a module"):
        train(Local(), data(300), small("standard", pieces=2), workers=2)


def test_tensors_in_a_shared_file_are_seen_by_all_who_map_it():
    layout = TensorLayout.of([torch.zeros(3), torch.zeros((2, 2), dtype=torch.int64), torch.zeros(0), torch.zeros(())])
    path = new_file(layout.size)
    one, other = layout.mapped(path), layout.mapped(path)
    Path(path).unlink()
    one[0].fill_(1.5)
    one[1].fill_(7)
    one[3].fill_(2.5)
    assert other[0].tolist() == [1.5] * 3
    assert other[1].tolist() == [[7, 7], [7, 7]]
    assert other[2].numel() == 0
    assert other[3].item() == 2.5
