"""Pre-activation residual networks (He, Zhang, Ren, Sun 2016, "Identity mappings in deep residual networks")."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from certcal.models.networks._network import Network, Normalize, seeded, size
from certcal.models.networks._resnet import cifar_normalisation, conv, initialise


class PreActResNet(Network):
    """PreActResNet-18 for 32 × 32 images: four stages of two blocks, 11.2 million weights.

    Parameters
    ----------
    classes
        Number of classes.
    channels
        Of the images.
    width
        Channels of the first stage; each further stage has twice as many.
    mean, std
        Of the normalisation; those of CIFAR-10 if the images have three channels, else 0 and 1.
    seed
        Of the initial weights.

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
        mean, std = cifar_normalisation(channels, mean, std)
        settings = {"classes": size(classes, "classes", least=2), "channels": channels, "width": width}
        super().__init__((channels, 32, 32), {**settings, "mean": mean, "std": std})
        self.normalize = Normalize(mean, std)
        with seeded(seed):
            self.first = conv(channels, width)
            self.stages = nn.Sequential(
                *(_Block(width, width, 1), _Block(width, width, 1)),
                *(_Block(width, 2 * width, 2), _Block(2 * width, 2 * width, 1)),
                *(_Block(2 * width, 4 * width, 2), _Block(4 * width, 4 * width, 1)),
                *(_Block(4 * width, 8 * width, 2), _Block(8 * width, 8 * width, 1)),
            )
            self.norm = nn.BatchNorm2d(8 * width)
            self.last = nn.Linear(8 * width, classes)
            initialise(self)

    @property
    def description(self) -> str:
        """A few words for people."""
        return "PreActResNet-18"

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits."""
        features = self.stages(self.first(self.normalize(inputs)))
        return self.last(F.relu(self.norm(features)).mean((2, 3)))


class _Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(before), conv(before, after, stride)
        self.norm2, self.conv2 = nn.BatchNorm2d(after), conv(after, after)
        self.shortcut = None if stride == 1 and before == after else conv(before, after, stride, side=1)

    def forward(self, inputs: Tensor) -> Tensor:
        activated = F.relu(self.norm1(inputs))
        shortcut = inputs if self.shortcut is None else self.shortcut(activated)
        return self.conv2(F.relu(self.norm2(self.conv1(activated)))) + shortcut
