# pyright: reportUnknownMemberType=false
# The annotations of torch.random are incomplete.
"""What all reference networks share."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from certcal._checks import InputError, positive, whole_number
from certcal.models.protocol import Outputs

# Means and standard deviations of the training images of CIFAR-10, per channel.
CIFAR10_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR10_STD = (0.2023, 0.1994, 0.2010)


class Normalize(nn.Module):
    """Subtract a mean and divide by a standard deviation, each one number or one per channel.

    Inside the network, so that noise and perturbations are measured in the units of the inputs.

    Parameters
    ----------
    mean, std
        One number for all channels, or one per channel.

    Examples
    --------
    >>> Normalize(0.5, 0.25)(torch.tensor([[1.0, 0.0]]))
    tensor([[ 2., -2.]])
    """

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]) -> None:
        super().__init__()
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", _per_channel(mean, "mean"))
        self.register_buffer("std", _per_channel([positive(value, "std") for value in listed(std)], "std"))

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalised inputs, channels along the second axis."""
        shape = (-1,) + (1,) * (inputs.ndim - 2)
        return (inputs - self.mean.reshape(shape)) / self.std.reshape(shape)


class Network(nn.Module):
    """A reference network: logits, and the settings that build it again.

    Attributes
    ----------
    outputs
        ``"logits"``.
    settings
        The arguments of the constructor, which ``save_weights`` writes beside the weights.
    sample_shape
        Shape of one input.
    """

    outputs: Outputs = "logits"

    def __init__(self, sample_shape: tuple[int, ...], settings: dict[str, Any]) -> None:
        super().__init__()
        self.sample_shape = sample_shape
        self.settings = settings

    @property
    def description(self) -> str:
        """A few words for people."""
        return type(self).__name__


def listed(value: float | Sequence[float]) -> list[float]:
    """One number or several as a list of floats."""
    several: list[Any] = list(value) if isinstance(value, Sequence) else [value]
    return [float(each) for each in several]


def _per_channel(value: float | Sequence[float], name: str) -> Tensor:
    numbers = listed(value)
    if not numbers or not all(map(math.isfinite, numbers)):
        raise InputError(f"{name} is {value!r}; pass one finite number, or one per channel")
    return torch.tensor(numbers, dtype=torch.float32)


def check_channels(channels: int, **given: float | Sequence[float]) -> None:
    """Raise unless each of the given has one entry or one per channel."""
    for name, value in given.items():
        if len(listed(value)) not in (1, channels):
            raise InputError(
                f"{name} has {len(listed(value))} numbers; pass one, or one for each of {channels} channels"
            )


def size(value: Any, name: str, least: int = 1, most: int = 65_536) -> int:
    """A whole number of channels, units, classes or pixels."""
    return whole_number(value, least, most, name, f"pass a whole number from {least} to {most}")


@contextmanager
def seeded(seed: int) -> Generator[None, None, None]:
    """Weights made inside depend on the seed only, and torch's global generator is as before afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(whole_number(seed, 0, 2**63 - 1, "seed", "pass a whole number that is not negative"))
        yield
