"""What training hands back, and what it says on the way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from certcal._checks import InputError
from certcal.training._recipe import Recipe


class Diverged(InputError):
    """Training whose loss or weights are no longer finite. The text says where, what is kept, and what to try."""


@dataclass(frozen=True)
class Progress:
    """Where training is, after a step.

    Attributes
    ----------
    epoch, epochs
        The epoch, from 0, out of how many.
    batch, batches
        Steps done of this epoch, out of how many.
    loss, accuracy
        Mean over this epoch so far, on the inputs as they were trained on: noisy and perturbed.
    samples
        Processed since this call of ``train`` began.
    seconds
        Since this call began.
    sigma, epsilon, learning_rate
        Of this epoch.
    line
        What was written down about the epoch, after its last step; else None.
    """

    epoch: int
    epochs: int
    batch: int
    batches: int
    loss: float
    accuracy: float
    samples: int
    seconds: float
    sigma: float
    epsilon: float
    learning_rate: float
    line: dict[str, Any] | None = None

    @property
    def share(self) -> float:
        """Share of the whole training that is done, from 0 to 1."""
        return (self.epoch + self.batch / self.batches) / self.epochs


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network.

    Attributes
    ----------
    network
        In evaluation mode.
    recipe
        What it was trained with.
    history
        One table per epoch: epoch, loss and accuracy on the inputs as trained on, sigma, epsilon, learning_rate,
        samples, seconds, and with test data test_accuracy, test_ece, test_noisy_accuracy, test_noisy_ece. For a method
        that selects samples also kept (the share that has a weight above 0), largest_weight, and lost_classes if all
        samples of some class were left out.
    folder
        Where checkpoints are, or None.
    file
        The model there that :func:`certcal.models.load` takes (of a network of your own, as ``weights`` with the
        network's name), or None.
    seconds
        That this call took.
    resumed
        The step at which this call went on, 0 if it began.
    """

    network: nn.Module
    recipe: Recipe
    history: list[dict[str, Any]]
    folder: Path | None
    file: Path | None
    seconds: float
    resumed: int

    def __repr__(self) -> str:
        last = self.history[-1]
        return (
            f"Trained({self.recipe.method}, {type(self.network).__name__}, {len(self.history)} epochs, "
            f"loss {last['loss']:.3f}, accuracy {last['accuracy']:.3f})"
        )
