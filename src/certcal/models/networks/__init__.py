"""Reference networks, and those that published weights fit, each with its normalisation inside; all return logits.

The same seed gives the same initial weights and leaves torch's global generator alone. Importing this module needs the
extra ``certcal[torch]``.
"""

from __future__ import annotations

try:
    from certcal.models.networks._cell import CellNetwork
    from certcal.models.networks._network import MLP, LeNet, Network, Normalize
    from certcal.models.networks._published import PublishedResNet
    from certcal.models.networks._resnet import PreActResNet, ResNet
    from certcal.models.networks.named import by_name
    from certcal.models.networks.weights import load_weights, save_weights
except ModuleNotFoundError as error:
    if error.name not in ("torch", "safetensors"):
        raise
    raise ImportError(
        f"certcal.models.networks needs {error.name}; install it with: pip install 'certcal[torch]'", name=error.name
    ) from error

__all__ = [
    "MLP",
    "CellNetwork",
    "LeNet",
    "Network",
    "Normalize",
    "PreActResNet",
    "PublishedResNet",
    "ResNet",
    "by_name",
    "load_weights",
    "save_weights",
]
