"""The selection part: which samples an epoch is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from certcal.attacks import Target
from certcal.training._randomness import generator_of
from certcal.training._schedules import Moment


class SelectionWarning(UserWarning):
    """A class of which a selection left no sample. The text says which, from which epoch on, and what to try."""


@dataclass(frozen=True, eq=False)
class Look:
    """What a selection may look at."""

    target: Target
    inputs: Tensor
    labels: Tensor
    moment: Moment
    seed: int

    def generator(self, purpose: str) -> torch.Generator:
        """A generator for this epoch; another purpose gives another."""
        return generator_of(f"selection {purpose}", self.seed, self.moment.epoch)


class Selection(Protocol):
    """Weighs the samples at the beginning of every epoch.

    The weights are all that is remembered from epoch to epoch, and they are part of every checkpoint.
    """

    def __call__(self, weights: Tensor, look: Look) -> Tensor:
        """New weights (n,) from those of the epoch before, which are 1 at first.

        A sample of weight 0 is left out of the epoch. If the others' weights differ, they are drawn in proportion.
        """
        ...


@dataclass(frozen=True)
class AllSamples:
    """Every sample once per epoch."""

    def __call__(self, weights: Tensor, look: Look) -> Tensor:
        """The weights as they are."""
        return weights


def lost_classes(weights: Tensor, labels: Tensor) -> list[int]:
    """Classes that have samples, but none of weight above 0."""
    everything = torch.bincount(labels)
    left = torch.bincount(labels[weights > 0], minlength=everything.numel())
    return [int(each) for each in ((everything > 0) & (left == 0)).nonzero().flatten()]


def selected(weights: Tensor, labels: Tensor) -> dict[str, Any]:
    """What the log says of a selection."""
    lost = lost_classes(weights, labels)
    kept = int((weights > 0).sum()) / weights.numel()
    return {"kept": kept, "largest_weight": float(weights.max()), **({"lost_classes": lost} if lost else {})}
