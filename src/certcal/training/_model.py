"""The trained network as a file that everything else takes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save as write_tensors
from torch import nn

from certcal._checks import InputError
from certcal._durable import write_durably
from certcal.models.networks import Network, save_weights
from certcal.models.networks.named import made_with
from certcal.training._step import Workshop

MODEL, WEIGHTS = "model.safetensors", "weights.safetensors"


def save_model(folder: Path, workshop: Workshop) -> Path:
    """Write the network, unless it is there, and say which file it is.

    A reference network becomes ``model.safetensors``. Of another module the weights are written, with what its maker
    was given, as ``weights.safetensors``.
    """
    network = _plain(workshop.network)
    if isinstance(network, Network):
        try:
            return _once(folder / MODEL, lambda path: save_weights(network, path))
        except InputError:
            pass  # a class derived from a reference network: its file would not say how to build it
    tensors = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    with torch.no_grad():
        classes = int(network(workshop.inputs[:1].cpu()).shape[1])
    marks = made_with(workshop.inputs.shape[1:], classes, workshop.recipe.seed, workshop.outputs)
    return _once(folder / WEIGHTS, lambda path: write_durably(path, write_tensors(tensors, marks)))


def _once(path: Path, write: Callable[[Path], None]) -> Path:
    if not path.exists():
        write(path)
    return path


def _plain(network: nn.Module) -> nn.Module:
    """A copy in evaluation mode on the processor, its weights in the usual memory order."""
    copied = copy.deepcopy(network).eval().cpu()
    for tensor in copied.parameters():
        tensor.data = tensor.data.clone(memory_format=torch.contiguous_format)
    return copied
