"""Accuracy and calibration of the network on data it is not trained on, after an epoch."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certcal.attacks import Target
from certcal.data import Inputs
from certcal.metrics import ece
from certcal.models.protocol import Outputs
from certcal.training._randomness import generator_of

_ROWS = 1000


def evaluate(
    network: nn.Module, outputs: Outputs, data: Inputs, sigma: float, seed: int, epoch: int, bins: int
) -> dict[str, float]:
    """Accuracy and expected calibration error on clean inputs, and with one draw of noise per input if σ > 0."""
    generator = generator_of("test", seed, epoch)
    found = _scores(network, outputs, data, None, generator)
    numbers = {"test_accuracy": float(found[1].mean()), "test_ece": ece(*found, bins=bins)}
    if sigma:
        found = _scores(network, outputs, data, sigma, generator)
        numbers |= {"test_noisy_accuracy": float(found[1].mean()), "test_noisy_ece": ece(*found, bins=bins)}
    return numbers


def _scores(
    network: nn.Module, outputs: Outputs, data: Inputs, sigma: float | None, generator: torch.Generator
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Confidence of the predicted class, and whether it is the true one."""
    network.eval()
    device = next(network.parameters()).device
    target = Target(network, outputs)
    rows: list[Tensor] = []
    with torch.no_grad():
        for first in range(0, len(data), _ROWS):
            batch = torch.tensor(data.inputs[first : first + _ROWS])
            if sigma is not None:
                batch += sigma * torch.randn(batch.shape, generator=generator)
            rows.append(target.log_probabilities(batch.to(device)).cpu())
    best, predicted = torch.cat(rows).max(1)
    return best.exp().clamp(0.0, 1.0).numpy(), predicted.numpy() == data.labels
