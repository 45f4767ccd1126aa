"""Residual networks for CIFAR, as published first and with activations before the convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from certcal._base.checks import InputError
from certcal.models.networks._network import (
    CIFAR10_MEAN,
    CIFAR10_STD,
    Network,
    Normalize,
    check_channels,
    fixed_seed,
    size,
    to_list,
)


class ResNet(Network):
    """A residual network of depth 6n + 2 for 32 × 32 images: three stages of n blocks with 16, 32 and 64 channels.

    As published for CIFAR (He, Zhang, Ren, Sun 2016, section 4.2): shortcuts have no weights (they skip pixels and fill
    channels with zeros), so depth 20 has 0.27 million weights and depth 110 has 1.7 million. Any size of image from
    8 × 8 works.

    Parameters
    ----------
    depth
        20, 32, 44, 56, 110 or another 6n + 2.
    classes, channels
        Number of classes, and of channels of the images.
    mean, std
        Normalisation of the inputs; that of CIFAR-10 if the images have three channels, else 0 and 1.
    seed
        Random seed of the initial weights.

    Examples
    --------
    >>> import torch
    >>> network = ResNet(20).eval()
    >>> network(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        depth: int = 20,
        classes: int = 10,
        channels: int = 3,
        mean: float | Sequence[float] | None = None,
        std: float | Sequence[float] | None = None,
        seed: int = 0,
    ) -> None:
        depth, channels = size(depth, "depth", 8, 1202), size(channels, "channels")
        if (depth - 2) % 6:
            raise InputError(f"depth is {depth}; pass 6n + 2, for example 20 or 110")
        mean, std = normalisation(channels, mean, std)
        settings = {"depth": depth, "classes": size(classes, "classes", least=2), "channels": channels}
        super().__init__((channels, 32, 32), {**settings, "mean": mean, "std": std})
        self.normalize = Normalize(mean, std)
        blocks = (depth - 2) // 6
        with fixed_seed(seed):
            self.first = nn.Sequential(conv(channels, 16), nn.BatchNorm2d(16), nn.ReLU())
            self.stages = nn.Sequential(
                *(_Block(16, 16, 1) for _ in range(blocks)),
                *(_Block(32 if block else 16, 32, 1 if block else 2) for block in range(blocks)),
                *(_Block(64 if block else 32, 64, 1 if block else 2) for block in range(blocks)),
            )
            self.last = nn.Linear(64, classes)
            initialise(self)

    @property
    def description(self) -> str:
        return f"ResNet-{self.settings['depth']}"

    def forward(self, inputs: Tensor) -> Tensor:
        return self.last(self.stages(self.first(self.normalize(inputs))).mean((2, 3)))


class _Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            *(conv(before, after, stride), nn.BatchNorm2d(after), nn.ReLU()),
            *(conv(after, after), nn.BatchNorm2d(after)),
        )
        self.stride = stride
        self.extra = (after - before) // 2

    def forward(self, inputs: Tensor) -> Tensor:
        shortcut = inputs
        if self.extra:
            kept = inputs[:, :, :: self.stride, :: self.stride]
            shortcut = F.pad(kept, (0, 0, 0, 0, self.extra, self.extra))
        return F.relu(self.inner(inputs) + shortcut)


class PreActResNet(Network):
    """PreActResNet-18 for 32 × 32 images: four stages of two blocks, 11.2 million weights.

    From He, Zhang, Ren, Sun 2016, "Identity mappings in deep residual networks".

    Parameters
    ----------
    classes, channels
        Number of classes, and of channels of the images.
    width
        Channels of the first stage; each further stage has twice as many.
    mean, std
        Normalisation of the inputs; that of CIFAR-10 if the images have three channels, else 0 and 1.
    seed
        Random seed of the initial weights.

    Examples
    --------
    >>> import torch
    >>> network = PreActResNet(width=8).eval()
    >>> network(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        classes: int = 10,
        channels: int = 3,
        width: int = 64,
        mean: float | Sequence[float] | None = None,
        std: float | Sequence[float] | None = None,
        seed: int = 0,
    ) -> None:
        channels, width = size(channels, "channels"), size(width, "width", most=4096)
        mean, std = normalisation(channels, mean, std)
        settings = {"classes": size(classes, "classes", least=2), "channels": channels, "width": width}
        super().__init__((channels, 32, 32), {**settings, "mean": mean, "std": std})
        self.normalize = Normalize(mean, std)
        with fixed_seed(seed):
            self.first = conv(channels, width)
            self.stages = nn.Sequential(
                *(_PreActBlock(width, width, 1), _PreActBlock(width, width, 1)),
                *(_PreActBlock(width, 2 * width, 2), _PreActBlock(2 * width, 2 * width, 1)),
                *(_PreActBlock(2 * width, 4 * width, 2), _PreActBlock(4 * width, 4 * width, 1)),
                *(_PreActBlock(4 * width, 8 * width, 2), _PreActBlock(8 * width, 8 * width, 1)),
            )
            self.norm = nn.BatchNorm2d(8 * width)
            self.last = nn.Linear(8 * width, classes)
            initialise(self)

    @property
    def description(self) -> str:
        return "PreActResNet-18"

    def forward(self, inputs: Tensor) -> Tensor:
        features = self.stages(self.first(self.normalize(inputs)))
        return self.last(F.relu(self.norm(features)).mean((2, 3)))


class _PreActBlock(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(before), conv(before, after, stride)
        self.norm2, self.conv2 = nn.BatchNorm2d(after), conv(after, after)
        self.shortcut = None if stride == 1 and before == after else conv(before, after, stride, side=1)

    def forward(self, inputs: Tensor) -> Tensor:
        activated = F.relu(self.norm1(inputs))
        shortcut = inputs if self.shortcut is None else self.shortcut(activated)
        return self.conv2(F.relu(self.norm2(self.conv1(activated)))) + shortcut


def conv(before: int, after: int, stride: int = 1, side: int = 3) -> nn.Conv2d:
    """A convolution that keeps the size of the image, apart from its stride."""
    return nn.Conv2d(before, after, side, stride=stride, padding=side // 2, bias=False)


def initialise(network: nn.Module) -> None:
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def normalisation(
    channels: int,
    mean: float | Sequence[float] | None,
    std: float | Sequence[float] | None,
    usual: tuple[Sequence[float], Sequence[float]] = (CIFAR10_MEAN, CIFAR10_STD),
) -> tuple[list[float], list[float]]:
    """As given; else the usual one of the data set for colour images, and none for others."""
    default_mean, default_std = usual if channels == 3 else ((0.0,), (1.0,))
    result = to_list(default_mean if mean is None else mean), to_list(default_std if std is None else std)
    check_channels(channels, mean=result[0], std=result[1])
    return result
