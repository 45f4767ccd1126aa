"""A multi-layer perceptron."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from certcal.models.networks._network import Network, Normalize, listed, seeded, size


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
        Of the normalisation: one number each.
    seed
        Of the initial weights.

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
        self.normalize = Normalize(listed(mean), listed(std))
        with seeded(seed):
            layers: list[nn.Module] = []
            for before, after in pairwise(widths):
                layers += [nn.Linear(before, after), nn.ReLU()]
            self.layers = nn.Sequential(*layers[:-1])

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits."""
        return self.layers(self.normalize(inputs.flatten(1)))
