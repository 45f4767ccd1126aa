"""What a run continues from: counters, weights, optimiser and selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD, Adam, Optimizer

from certcal.training._recipe import Recipe
from certcal.training._step import Step, Workshop, restore


@dataclass(eq=False)
class State:
    """A run at the end of a step.

    The random state is not here: everything random comes from the recipe's seed and these counters.

    Attributes
    ----------
    workshop, optimiser
        The network, and what moves its weights.
    selection
        Weights of the samples, (n,).
    step
        Steps done since the beginning.
    epoch, batches
        The epoch, and how many of its steps are done.
    loss_sum, correct, samples
        Over this epoch so far; the loss summed over samples.
    history
        One table per finished epoch.
    """

    workshop: Workshop
    optimiser: Optimizer
    selection: Tensor
    step: int = 0
    epoch: int = 0
    batches: int = 0
    loss_sum: float = 0.0
    correct: int = 0
    samples: int = 0
    history: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @classmethod
    def begin(cls, workshop: Workshop) -> State:
        """Before the first step."""
        return cls(workshop, _optimiser(workshop), torch.ones(workshop.labels.numel(), dtype=torch.float64))

    def apply(self, step: Step, learning_rate: float, samples: int) -> None:
        """Move the weights, and count."""
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        for weight, gradient in zip(self.workshop.trained, step.gradients, strict=True):
            weight.grad = gradient
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        restore(self.workshop.buffers, step.buffers)
        self.step += 1
        self.batches += 1
        self.loss_sum += step.loss * samples
        self.correct += step.correct
        self.samples += samples

    def end_epoch(self, line: dict[str, Any]) -> None:
        """Turn the page."""
        self.history.append(line)
        self.epoch += 1
        self.batches, self.loss_sum, self.correct, self.samples = 0, 0.0, 0, 0

    def finite(self) -> bool:
        """Whether all weights and buffers are."""
        tensors = [*self.workshop.network.parameters(), *self.workshop.buffers]
        return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)

    def counters(self) -> dict[str, Any]:
        """All that is not a tensor."""
        return {name: getattr(self, name) for name in COUNTERS} | {
            "history": self.history,
            "random": {"seed": self.workshop.recipe.seed, "step": self.step},
        }

    def tensors(self) -> dict[str, Tensor]:
        """All that is, under names; views of what is trained."""
        network = self.workshop.network
        named = {f"weight/{name}": tensor.detach() for name, tensor in network.named_parameters()}
        named |= {f"buffer/{name}": tensor.detach() for name, tensor in network.named_buffers()}
        moments: Mapping[int, Mapping[str, Any]] = self.optimiser.state_dict()["state"]
        for number, several in moments.items():
            for name, value in several.items():
                if isinstance(value, Tensor):
                    named[f"optimiser/{number}/{name}"] = value
        return named | {"selection": self.selection}

    def load(self, counters: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Go on from what :meth:`counters` and :meth:`tensors` gave; they are known to fit."""
        for name in COUNTERS:
            setattr(self, name, counters[name])
        self.history = [dict(line) for line in counters["history"]]
        network = self.workshop.network
        with torch.no_grad():
            for kind, several in (("weight", network.named_parameters()), ("buffer", network.named_buffers())):
                for name, tensor in several:
                    tensor.copy_(tensors[f"{kind}/{name}"])
        moments: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("optimiser/"):
                _, number, name = key.split("/", 2)
                weight = self.workshop.trained[int(number)]
                # In the memory order of the weight, in which the optimiser made it.
                ordered = torch.empty_like(weight).copy_(value) if value.shape == weight.shape else value.clone()
                moments.setdefault(int(number), {})[name] = ordered.detach()
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": moments})
        self.selection = tensors["selection"].clone()


COUNTERS = ("step", "epoch", "batches", "loss_sum", "correct", "samples")


def _optimiser(workshop: Workshop) -> Optimizer:
    recipe: Recipe = workshop.recipe
    if recipe.optimiser == "adam":
        return Adam(workshop.trained, recipe.learning_rate, weight_decay=recipe.weight_decay)
    return SGD(workshop.trained, recipe.learning_rate, recipe.momentum, weight_decay=recipe.weight_decay)
