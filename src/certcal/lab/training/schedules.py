"""What an epoch has: its numbers, its random streams and its batches. Epochs are counted from 0.

Random numbers come by counter: what is drawn depends on the seed and on what it is for, not on what was drawn before.
So the whole random state of a run is its seed and the number of its step, and neither interruptions nor the number of
processes change a bit of it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from certcal.models.devices import has_doubles

if TYPE_CHECKING:
    from certcal.lab.training._recipe import Recipe


@dataclass(frozen=True)
class Moment:
    """The numbers in force during an epoch."""

    epoch: int
    """Counted from 0."""
    sigma: float
    epsilon: float
    learning_rate: float
    """After warm-ups and decay."""


def moment(recipe: Recipe, epoch: int) -> Moment:
    """The numbers of an epoch.

    Examples
    --------
    >>> from certcal.lab.training import Recipe
    >>> fine = Recipe("brier-act", sigma=0.5, epsilon=0.75, epsilon_warmup=3, learning_rate=0.01, milestones=(4, 8))
    >>> [moment(fine, epoch).epsilon for epoch in range(4)]
    [0.25, 0.5, 0.75, 0.75]
    """
    return Moment(
        epoch,
        recipe.sigma * warmup_share(epoch, recipe.sigma_warmup),
        recipe.epsilon * warmup_share(epoch, recipe.epsilon_warmup, recipe.epsilon_delay),
        recipe.learning_rate * recipe.decay ** bisect_right(recipe.milestones, epoch),
    )


def warmup_share(epoch: int, warmup: int, delay: int = 0) -> float:
    """The share that an epoch has: 0 during the delay, then 1/W, 2/W, … up to 1 (Salman et al. 2019's code)."""
    if epoch < delay:
        return 0.0
    return 1.0 if epoch - delay + 1 >= warmup else (epoch - delay + 1) / warmup


def seed_of(purpose: str, *counters: int) -> int:
    """A seed of 63 bits for one purpose, at one place."""
    text = f"{purpose} {' '.join(map(str, counters))}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def generator_of(purpose: str, *counters: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A fresh generator for one purpose, at one place: of a device that has generators, otherwise of the CPU."""
    try:
        generator = torch.Generator(device)
    except (NotImplementedError, RuntimeError):
        generator = torch.Generator()
    return generator.manual_seed(seed_of(purpose, *counters))


def draw_like(draw: Callable[..., Tensor], shape: Sequence[int], generator: torch.Generator, like: Tensor) -> Tensor:
    """Random numbers of a tensor's type, drawn where the generator is, for where the tensor is."""
    made = draw(tuple(shape), generator=generator, device=generator.device, dtype=like.dtype)
    return made.to(like.device)


def finest(device: torch.device | str) -> torch.dtype:
    """float64, or float32 on a device that has no other."""
    return torch.float64 if has_doubles(device) else torch.float32


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
