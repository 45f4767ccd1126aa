"""LeNet-5 with rectifiers and max pooling (LeCun, Bottou, Bengio, Haffner 1998, in the form used since)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from certcal._checks import InputError
from certcal.models.networks._network import Network, Normalize, check_channels, listed, seeded, size


class LeNet(Network):
    """Two convolutions with pooling and three linear layers: 61,706 weights for 28 × 28 pixels and ten classes.

    Parameters
    ----------
    channels
        Of the images.
    pixels
        Along each side: 28 for MNIST and its kin, 32 for CIFAR. At least 12, divisible by 4.
    classes
        Number of classes.
    mean, std
        Of the normalisation: one number, or one per channel.
    seed
        Of the initial weights.

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
        super().__init__((channels, pixels, pixels), {**settings, "mean": listed(mean), "std": listed(std)})
        self.normalize = Normalize(listed(mean), listed(std))
        side = (pixels // 2 - 4) // 2
        with seeded(seed):
            self.layers = nn.Sequential(
                *(nn.Conv2d(channels, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Flatten(), nn.Linear(16 * side * side, 120), nn.ReLU()),
                *(nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, classes)),
            )

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits."""
        return self.layers(self.normalize(inputs))
