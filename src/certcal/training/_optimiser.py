"""SGD and Adam by torch's own functions.

Its optimiser classes do the same arithmetic, but load torch's compiler at their first use, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

if TYPE_CHECKING:
    from certcal.training._recipe import Recipe


class Optimiser:
    """Moves weights, and remembers what it needs for that, one table of tensors per weight."""

    def __init__(self, recipe: Recipe, weights: Sequence[Tensor]) -> None:
        self.recipe, self.weights = recipe, list(weights)
        self.moments: list[dict[str, Tensor]] = [{} for _ in self.weights]

    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """Move the weights against their gradients."""
        with torch.no_grad():
            (self._adam if self.recipe.optimiser == "adam" else self._sgd)(list(gradients), learning_rate)

    def _sgd(self, gradients: list[Tensor], learning_rate: float) -> None:
        buffers = [several.get("momentum_buffer") for several in self.moments]
        sgd(
            *(self.weights, gradients, buffers),
            weight_decay=self.recipe.weight_decay,
            momentum=self.recipe.momentum,
            lr=learning_rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
        for several, buffer in zip(self.moments, buffers, strict=True):
            if buffer is not None:
                several["momentum_buffer"] = buffer

    def _adam(self, gradients: list[Tensor], learning_rate: float) -> None:
        for several, weight in zip(self.moments, self.weights, strict=True):
            if not several:
                several["step"] = torch.tensor(0.0)
                several["exp_avg"], several["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
        none: list[Tensor] = []
        first, second, steps = ([each[name] for each in self.moments] for name in ("exp_avg", "exp_avg_sq", "step"))
        adam(
            *(self.weights, gradients, first, second, none, steps),
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=learning_rate,
            weight_decay=self.recipe.weight_decay,
            eps=1e-8,
            maximize=False,
        )

    def tensors(self) -> dict[str, Tensor]:
        """All that is remembered, under names."""
        return {f"{number}/{name}": value for number, each in enumerate(self.moments) for name, value in each.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from what :meth:`tensors` gave."""
        self.moments = [{} for _ in self.weights]
        for key, value in tensors.items():
            number, name = key.split("/", 1)
            weight = self.weights[int(number)].detach()
            # Where the weight is, and in its memory order, in which it was made; the count of steps stays here.
            kept = torch.empty_like(weight).copy_(value) if value.shape == weight.shape and name != "step" else value
            self.moments[int(number)][name] = kept.clone()
