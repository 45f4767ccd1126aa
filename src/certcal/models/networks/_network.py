# pyright: reportUnknownMemberType=false
# The annotations of torch.random are incomplete.
"""What all reference networks share, and the two plain ones: the perceptron and LeNet."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from certcal._base.checks import InputError, positive, whole_number
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
        self.register_buffer("std", _per_channel([positive(value, "std") for value in to_list(std)], "std"))

    def forward(self, inputs: Tensor) -> Tensor:
        if self.mean.numel() > 1 and inputs.shape[1] != self.mean.numel():  # which would be broadcast
            raise InputError(
                f"the network takes {self.mean.numel()} channels, and inputs have {inputs.shape[1]}; give such images"
            )
        shape = (-1,) + (1,) * (inputs.ndim - 2)
        return (inputs - self.mean.reshape(shape)) / self.std.reshape(shape)


class Network(nn.Module):
    """A reference network: logits, and the settings that build it again."""

    outputs: Outputs = "logits"

    def __init__(self, sample_shape: tuple[int, ...], settings: dict[str, Any]) -> None:
        super().__init__()
        self.sample_shape = sample_shape
        self.settings = settings  # arguments of the constructor, which save_weights writes beside the weights

    @property
    def description(self) -> str:
        return type(self).__name__


def to_list(value: float | Sequence[float]) -> list[float]:
    several: list[Any] = list(value) if isinstance(value, Sequence) else [value]
    return [float(each) for each in several]


def _per_channel(value: float | Sequence[float], name: str) -> Tensor:
    numbers = to_list(value)
    if not numbers or not all(map(math.isfinite, numbers)):
        raise InputError(f"{name} is {value!r}; pass one finite number, or one per channel")
    return torch.tensor(numbers, dtype=torch.float32)


def check_channels(channels: int, **given: float | Sequence[float]) -> None:
    """Raise unless each of the given has one entry or one per channel."""
    for name, value in given.items():
        if len(to_list(value)) not in (1, channels):
            raise InputError(
                f"{name} has {len(to_list(value))} numbers; pass one, or one for each of {channels} channels"
            )


def size(value: Any, name: str, least: int = 1, most: int = 65_536) -> int:
    """A whole number of channels, units, classes or pixels."""
    return whole_number(value, least, most, name, f"pass a whole number from {least} to {most}")


@contextmanager
def fixed_seed(seed: int) -> Generator[None, None, None]:
    """Weights made inside depend on the seed only, and torch's global generator is as before afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(whole_number(seed, 0, 2**63 - 1, "seed", "pass a whole number that is not negative"))
        yield


class MLP(Network):
    """Fully connected layers with ReLU between them; inputs of any shape are flattened.

    Parameters
    ----------
    features
        Numbers per input.
    hidden
        Units of each hidden layer.
    classes
        Number of classes.
    mean, std
        Mean and standard deviation for the normalisation: one number each.
    seed
        Random seed of the initial weights.

    Examples
    --------
    >>> import torch
    >>> network = MLP(64, hidden=(32,), classes=10).eval()
    >>> network(torch.zeros(5, 1, 8, 8)).shape
    torch.Size([5, 10])
    """

    def __init__(
        self,
        features: int,
        hidden: Sequence[int] = (256, 256),
        classes: int = 10,
        mean: float = 0.0,
        std: float = 1.0,
        seed: int = 0,
    ) -> None:
        widths = [size(features, "features", most=2**24), *(size(width, "hidden") for width in hidden)]
        widths.append(size(classes, "classes", least=2))
        settings = {"features": widths[0], "hidden": widths[1:-1], "classes": widths[-1]}
        super().__init__((widths[0],), {**settings, "mean": float(mean), "std": float(std)})
        self.normalize = Normalize(to_list(mean), to_list(std))
        with fixed_seed(seed):
            layers: list[nn.Module] = []
            for before, after in pairwise(widths):
                layers += [nn.Linear(before, after), nn.ReLU()]
            self.layers = nn.Sequential(*layers[:-1])

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers(self.normalize(inputs.flatten(1)))


class LeNet(Network):
    """LeNet-5 with rectifiers and max pooling (LeCun, Bottou, Bengio, Haffner 1998, in the form used since).

    Two convolutions with pooling and three linear layers: 61,706 weights for 28 × 28 pixels and ten classes.

    Parameters
    ----------
    channels
        Channels of the images.
    pixels
        Along each side: 28 for MNIST and its kin, 32 for CIFAR. At least 12, divisible by 4.
    classes
        Number of classes.
    mean, std
        Mean and standard deviation for the normalisation: one number, or one per channel.
    seed
        Random seed of the initial weights.

    Examples
    --------
    >>> import torch
    >>> network = LeNet().eval()
    >>> network(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        channels: int = 1,
        pixels: int = 28,
        classes: int = 10,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        seed: int = 0,
    ) -> None:
        channels, pixels = size(channels, "channels"), size(pixels, "pixels", most=4096)
        if pixels % 4 or pixels < 12:
            raise InputError(f"pixels is {pixels}; LeNet takes at least 12, divisible by 4")
        check_channels(channels, mean=mean, std=std)
        settings = {"channels": channels, "pixels": pixels, "classes": size(classes, "classes", least=2)}
        super().__init__((channels, pixels, pixels), {**settings, "mean": to_list(mean), "std": to_list(std)})
        self.normalize = Normalize(to_list(mean), to_list(std))
        side = (pixels // 2 - 4) // 2
        with fixed_seed(seed):
            self.layers = nn.Sequential(
                *(nn.Conv2d(channels, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Flatten(), nn.Linear(16 * side * side, 120), nn.ReLU()),
                *(nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, classes)),
            )

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers(self.normalize(inputs))
