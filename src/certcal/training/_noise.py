"""The noise part: what is added to the inputs of a piece before the network sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from certcal.attacks import Target
from certcal.training._schedules import Moment


class Noise(Protocol):
    """Draws the noise of a piece. It may look at the network, which is in evaluation mode without gradients."""

    def __call__(
        self, target: Target, inputs: Tensor, labels: Tensor, moment: Moment, generator: torch.Generator
    ) -> Tensor | None:
        """Noise (draws, n, …) for inputs (n, …), or None for none."""
        ...


@dataclass(frozen=True)
class NoNoise:
    """The network sees the inputs themselves."""

    def __call__(
        self, target: Target, inputs: Tensor, labels: Tensor, moment: Moment, generator: torch.Generator
    ) -> None:
        """Nothing."""


@dataclass(frozen=True)
class GaussianNoise:
    """Independent Gaussian noise of the epoch's σ."""

    draws: int = 1

    def __call__(
        self, target: Target, inputs: Tensor, labels: Tensor, moment: Moment, generator: torch.Generator
    ) -> Tensor | None:
        """Noise, or None while σ is 0."""
        if moment.sigma == 0:
            return None
        drawn = torch.randn((self.draws, *inputs.shape), generator=generator, dtype=inputs.dtype)
        return drawn.mul_(moment.sigma).to(inputs.device)
