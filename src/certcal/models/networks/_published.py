"""Residual networks under the names that published weights have, so that these load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from certcal._base.checks import InputError
from certcal.models.networks._network import CIFAR10_MEAN, CIFAR10_STD, Network, Normalize, fixed_seed, size
from certcal.models.networks._resnet import conv, initialise, normalisation

# Usual normalisation, pixels along a side, channels of the first stage.
_FACTS = {
    "cifar": ((CIFAR10_MEAN, CIFAR10_STD), 32, 16),
    "imagenet": (((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), 224, 64),
}
_IMAGENET = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


class PublishedResNet(Network):
    """A residual network with the names and shapes of the weights that Cohen et al., Salman et al. and torchvision use.

    For CIFAR (``locuslab/smoothing``): depth 6n + 2, three stages of n blocks of two convolutions, 16, 32 and 64
    channels; a shortcut that changes the size is a 1 × 1 convolution with batch normalisation. Depth 110 has 1,730,714
    parameters. For ImageNet (torchvision): a convolution of 7 × 7 and pooling, then four stages; from depth 50 on
    blocks have three convolutions, the second with the stride. Depth 50 has 25,557,032 parameters.

    The normalisation of the data set is inside. Any size of image from 8 × 8 works.

    Parameters
    ----------
    depth
        6n + 2 for CIFAR; 18, 34, 50, 101 or 152 for ImageNet.
    images
        ``"cifar"`` or ``"imagenet"``.
    classes, channels
        Number of classes, and of channels of the images.
    mean, std
        Normalisation of the inputs; that of the data set if the images have three channels, else 0 and 1.
    seed
        Random seed of the initial weights.

    Examples
    --------
    >>> import torch
    >>> network = PublishedResNet(20).eval()
    >>> network(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    >>> list(network.state_dict())[2:4]
    ['conv1.weight', 'bn1.weight']
    """

    def __init__(
        self,
        depth: int = 110,
        images: Literal["cifar", "imagenet"] = "cifar",
        classes: int = 10,
        channels: int = 3,
        mean: float | Sequence[float] | None = None,
        std: float | Sequence[float] | None = None,
        seed: int = 0,
    ) -> None:
        depth, channels = size(depth, "depth", 8, 1202), size(channels, "channels")
        stages, deep = _stages(depth, images)
        usual, pixels, width = _FACTS[images]
        mean, std = normalisation(channels, mean, std, usual)
        settings = {"depth": depth, "images": images, "classes": size(classes, "classes", least=2)}
        super().__init__((channels, pixels, pixels), {**settings, "channels": channels, "mean": mean, "std": std})
        self.normalize = Normalize(mean, std)
        with fixed_seed(seed):
            self.conv1 = conv(channels, width) if images == "cifar" else conv(channels, width, 2, side=7)
            self.bn1 = nn.BatchNorm2d(width)
            before = width
            for stage, blocks in enumerate(stages):
                inner = width << stage
                after = 4 * inner if deep else inner
                layers: list[nn.Module] = []
                for block in range(blocks):
                    layers.append(_PublishedBlock(before, inner, after, 2 if stage and not block else 1))
                    before = after
                setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
            self.fc = nn.Linear(before, classes)
            initialise(self)

    @property
    def description(self) -> str:
        return f"ResNet-{self.settings['depth']} for {'CIFAR' if self.settings['images'] == 'cifar' else 'ImageNet'}"

    def forward(self, inputs: Tensor) -> Tensor:
        features = F.relu(self.bn1(self.conv1(self.normalize(inputs))))
        if self.settings["images"] == "imagenet":
            features = F.max_pool2d(features, 3, stride=2, padding=1)
        for name, layer in self.named_children():
            if name.startswith("layer"):
                features = layer(features)
        return self.fc(features.mean((2, 3)))


class _PublishedBlock(nn.Module):
    """Two convolutions, or three if the width inside is another than the one outside."""

    def __init__(self, before: int, inner: int, after: int, stride: int) -> None:
        super().__init__()
        deep = inner != after
        self.conv1 = conv(before, inner, side=1) if deep else conv(before, inner, stride)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = conv(inner, inner, stride if deep else 1)
        self.bn2 = nn.BatchNorm2d(inner)
        if deep:
            self.conv3 = conv(inner, after, side=1)
            self.bn3 = nn.BatchNorm2d(after)
        self.deep = deep
        self.downsample = None
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(conv(before, after, stride, side=1), nn.BatchNorm2d(after))

    def forward(self, inputs: Tensor) -> Tensor:
        features = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(inputs)))))
        if self.deep:
            features = self.bn3(self.conv3(F.relu(features)))
        return F.relu(features + (inputs if self.downsample is None else self.downsample(inputs)))


def _stages(depth: int, images: Any) -> tuple[tuple[int, ...], bool]:
    """Blocks of each stage, and whether they have three convolutions."""
    if images == "cifar":
        if (depth - 2) % 6:
            raise InputError(f"depth is {depth}; pass 6n + 2 for CIFAR, for example 20 or 110")
        return ((depth - 2) // 6,) * 3, False
    if images != "imagenet":
        raise InputError(f"images is {images!r}; pass 'cifar' or 'imagenet'")
    if depth not in _IMAGENET:
        raise InputError(f"depth is {depth}; pass {', '.join(map(str, _IMAGENET))} for ImageNet")
    return _IMAGENET[depth], depth >= 50
