"""Random numbers by counter: what is drawn depends on the seed and on what it is for, not on what was drawn before.

So the whole random state of a run is its seed and the number of its step, and neither interruptions nor workers
change a bit of it.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor


def seed_of(purpose: str, *counters: int) -> int:
    """A seed of 63 bits for one purpose, at one place.

    Examples
    --------
    >>> seed_of("noise", 0, 1) == seed_of("noise", 0, 1), seed_of("noise", 0, 1) == seed_of("noise", 1, 0)
    (True, False)
    """
    text = f"{purpose} {' '.join(map(str, counters))}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def generator_of(purpose: str, *counters: int) -> torch.Generator:
    """A fresh generator for one purpose, at one place."""
    return torch.Generator().manual_seed(seed_of(purpose, *counters))


def order_of(weights: Tensor, seed: int, epoch: int) -> Tensor:
    """The samples of an epoch in the order of training, as many as there are in all.

    Samples of weight 0 are left out, and others take their steps: the number of steps stays the same. If all that are
    left have the same weight, they come round again and again, each round in an order of its own; else they are drawn
    with replacement, in proportion to their weights.
    """
    generator = generator_of("order", seed, epoch)
    kept = torch.nonzero(weights > 0).flatten()
    if kept.numel() and bool((weights[kept] == weights[kept[0]]).all()):
        rounds = -(-weights.numel() // kept.numel())
        order = [kept[torch.randperm(kept.numel(), generator=generator)] for _ in range(rounds)]
        return torch.cat(order)[: weights.numel()]
    total = weights[kept].double().cumsum(0)
    places = torch.rand(weights.numel(), generator=generator, dtype=torch.float64) * total[-1]
    return kept[torch.searchsorted(total, places, right=True).clamp_max(kept.numel() - 1)]


def batches_of(order: Tensor, batch: int) -> list[Tensor]:
    """As few batches as the largest size allows, of nearly equal sizes."""
    return list(torch.tensor_split(order, -(-order.numel() // batch)))
