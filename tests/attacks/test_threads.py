"""Attacks compute on one thread unless told otherwise, and leave torch as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from certcal import InputError
from tests.attacks.running import ace, one_step_ace, pgd

EVERY: dict[str, tuple[Any, dict[str, Any]]] = {
    "ace": (ace, {"epsilon": 0.1, "steps": 2}),
    "one_step_ace": (one_step_ace, {"epsilon": 0.1}),
    "pgd": (pgd, {"epsilon": 0.1, "steps": 2}),
}
INPUTS, LABELS = np.array([[0.75, 0.25], [0.25, 0.5], [0.5, 0.25]], np.float32), [0, 1, 1]


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
            attack(Counting().eval(), INPUTS, LABELS, **options, **given)
            assert Counting.seen == {threads}
            assert torch.get_num_threads() == 3
            assert torch.equal(torch.get_rng_state(), state)
    finally:
        torch.set_num_threads(before)
    with pytest.raises(InputError, match="threads is 0"):
        attack(Counting().eval(), INPUTS, LABELS, **options, threads=0)
