"""A reference network from a safetensors file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from certcal.models._adapter import extra
from certcal.models._files import read_bytes
from certcal.models._protocol import Outputs, Source, declared
from certcal.models._torch import TorchModel


def load_network(path: Path, outputs: Outputs | None) -> TorchModel:
    """The model whose settings and weights a file holds."""
    data = read_bytes(path, 2**40, "a safetensors file")
    with extra("torch", ("torch", "safetensors"), "a safetensors file"):
        from certcal.models.networks._weights import network_from_bytes
    network = network_from_bytes(data, path)
    returns = declared(outputs, network.outputs, str(path))
    about = f"{path.name} ({network.description})"
    return TorchModel(network, returns, about, Source(os.path.abspath(path), returns), hashlib.sha256(data).hexdigest())
