"""Torch modules and what makes them, for tests that find them by name."""

from typing import Any

import torch
from torch import Tensor, nn

from certcal.models.networks import MLP

FITTED = MLP(4, hidden=(5,), classes=3, seed=9).eval()
NUMBER = 3


def unfitted() -> nn.Module:
    """The same network with other weights."""
    return MLP(4, hidden=(5,), classes=3, seed=1)


class Plain(nn.Module):
    """Takes no arguments, has dropout and batch norm, and fits images of 1 × 4 × 4 and three classes."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(16, width), nn.BatchNorm1d(width), nn.Dropout(), nn.Linear(width, 3)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers(inputs)


def fitting(sample_shape: tuple[int, ...], classes: int, *, std: float = 2.0) -> nn.Module:
    network: Any = nn.Sequential(nn.Flatten(), nn.Linear(int(torch.tensor(sample_shape).prod()), classes))
    network.std = std
    return network


def lazy() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(3))


def probable(classes: int) -> nn.Module:
    network: Any = nn.Sequential(nn.Flatten(), nn.Linear(16, classes), nn.Softmax(1))
    network.outputs = "probabilities"
    return network


def normalised(classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(16, classes), nn.Softmax(1))


def failing() -> nn.Module:
    raise RuntimeError("no such file\nin a folder")


def no_module() -> int:
    return 3


def elsewhere() -> nn.Module:
    """On an accelerator from the beginning."""
    return unfitted().to("pretend")
