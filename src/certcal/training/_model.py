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
from certcal.models import export_torch
from certcal.models.networks import Network, save_weights
from certcal.training._step import Workshop

MODEL, WEIGHTS, PROGRAM = "model.safetensors", "weights.safetensors", "model.pt2"


def save_model(folder: Path, workshop: Workshop) -> Path:
    """Write the network, unless it is there, and say which file it is.

    A reference network becomes ``model.safetensors``. Another module becomes ``weights.safetensors`` (for fine-tuning)
    and ``model.pt2``; where torch cannot export it, the weights are all there is.
    """
    network = _plain(workshop.network)
    if isinstance(network, Network):
        try:
            return _once(folder / MODEL, lambda path: save_weights(network, path))
        except InputError:
            pass  # a class derived from a reference network: its file would not say how to build it
    tensors = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    weights = _once(folder / WEIGHTS, lambda path: write_durably(path, write_tensors(tensors)))
    shape = tuple(workshop.inputs.shape[1:])
    try:
        return _once(
            folder / PROGRAM, lambda path: export_torch(network, path, outputs=workshop.outputs, sample_shape=shape)
        )
    except InputError:
        return weights


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
