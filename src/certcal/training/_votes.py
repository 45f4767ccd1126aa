"""How often the network names the label under noise: what p_A of a training sample is estimated from."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from certcal.attacks import Target

# Rows that the network gets at a time.
_ROWS = 500


def label_votes(
    target: Target, inputs: Tensor, labels: Tensor, sigma: float, draws: int, generator: torch.Generator
) -> Tensor:
    """Among some noisy copies of every sample, how many are classified as its label.

    Their share estimates the probability of the label under noise: p_A of a sample that the smoothed classifier gets
    right.
    """
    votes = torch.zeros(labels.numel(), dtype=torch.int64)
    device = _device(target, inputs)
    several = max(1, _ROWS // draws)
    with torch.no_grad():
        for first in range(0, labels.numel(), several):
            here = slice(first, first + several)
            clean, truth = inputs[here], labels[here].to(device)
            for done in range(0, draws, _ROWS):
                now = min(_ROWS, draws - done)
                noisy = torch.randn((now, *clean.shape), generator=generator, dtype=clean.dtype).mul_(sigma).add_(clean)
                found = target.log_probabilities(noisy.flatten(0, 1).to(device)).argmax(1).reshape(now, -1)
                votes[here] += (found == truth).sum(0).cpu()
    return votes


def _device(target: Target, inputs: Tensor) -> torch.device:
    network = target.network
    weight = next(network.parameters(), None) if isinstance(network, nn.Module) else None
    return inputs.device if weight is None else weight.device
