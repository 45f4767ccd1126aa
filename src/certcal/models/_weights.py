"""Networks with weights from a safetensors file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from certcal._files import read_bytes
from certcal.models._adapter import extra
from certcal.models._torch import TorchModel
from certcal.models.protocol import Outputs, Source, declared

_LARGEST = 2**40


def load_named_network(name: str, path: Path, outputs: Outputs | None) -> TorchModel:
    """The network that a Python name makes, with weights from a file."""
    data = read_bytes(path, _LARGEST, "a safetensors file")
    with extra("torch", ("torch", "safetensors"), "a network with weights"):
        from certcal.models.networks.named import with_weights
    network, known = with_weights(name, data, path)
    returns = declared(outputs, known, name)
    source = Source(name, returns, os.path.abspath(path))
    return TorchModel(network, returns, f"{name} with {path.name} (torch module)", source)


def load_network(path: Path, outputs: Outputs | None) -> TorchModel:
    """The model whose settings and weights a file holds."""
    data = read_bytes(path, _LARGEST, "a safetensors file")
    with extra("torch", ("torch", "safetensors"), "a safetensors file"):
        from certcal.models.networks.weights import network_from_bytes
    network = network_from_bytes(data, path)
    returns = declared(outputs, network.outputs, str(path))
    about = f"{path.name} ({network.description})"
    return TorchModel(network, returns, about, Source(os.path.abspath(path), returns), hashlib.sha256(data).hexdigest())
