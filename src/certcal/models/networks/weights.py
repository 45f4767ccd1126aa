"""Weights of reference networks as safetensors files, with the settings that build the network again."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors
from torch import Tensor, nn

from certcal._checks import InputError
from certcal._durable import write_durably
from certcal._files import read_bytes, refuse_overwriting
from certcal.models.networks._cell import CellNetwork
from certcal.models.networks._network import MLP, LeNet, Network
from certcal.models.networks._resnet import PreActResNet, ResNet
from certcal.models.protocol import LARGEST_FILE

_NETWORKS: dict[str, type[Network]] = {kind.__name__: kind for kind in (MLP, LeNet, ResNet, PreActResNet, CellNetwork)}
_KEY = "certcal.network"
_HEADER = 100_000_000  # bytes; what safetensors itself allows


def save_weights(network: Network, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a reference network's weights and settings to a ``.safetensors`` file.

    Parameters
    ----------
    network
        One of this module's networks.
    path
        The file; an existing one is kept unless ``force`` is true.
    force
        Whether to write over an existing file.

    Examples
    --------
    >>> import tempfile, certcal
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = folder.name + "/digits.safetensors"
    >>> save_weights(MLP(64, hidden=(32,)), path)
    >>> certcal.models.load(path)
    <digits.safetensors (MLP): logits>
    >>> folder.cleanup()
    """
    if type(network) not in _NETWORKS.values():
        raise InputError(f"network is a {type(network).__name__}; pass one of {', '.join(_NETWORKS)}")
    file = Path(path)
    if file.suffix != ".safetensors":
        raise InputError(f"{file}: weights are written to .safetensors files; change the ending")
    text = json.dumps({"class": type(network).__name__, **network.settings}, sort_keys=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    refuse_overwriting(file, force=force)
    write_durably(file, write_tensors(tensors, {_KEY: text}))


def load_weights(path: str | os.PathLike[str]) -> Network:
    """Read a network that :func:`save_weights` wrote, in evaluation mode.

    Parameters
    ----------
    path
        The file. Nothing is unpickled, and no more memory is taken than the file has bytes.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = folder.name + "/lenet.safetensors"
    >>> save_weights(LeNet(seed=7), path)
    >>> network = load_weights(path)
    >>> bool((network.layers[0].weight == LeNet(seed=7).layers[0].weight).all())
    True
    >>> folder.cleanup()
    """
    file = Path(path)
    return network_from_bytes(read_bytes(file, LARGEST_FILE, "a safetensors file"), file)


def tensors_and_marks(data: bytes, path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors in the bytes of a safetensors file, and the texts that stand beside them."""
    try:
        tensors = read_tensors(data)
        length = int.from_bytes(data[:8], "little")
        header: Any = json.loads(data[8 : 8 + min(length, _HEADER)])
        return tensors, header.get("__metadata__", {})
    except (SafetensorError, ValueError, KeyError, RecursionError) as error:
        raise InputError(
            f"{path}: this is not a safetensors file, or it is damaged ({error}); copy it again"
        ) from error


def check_fit(found: Mapping[str, Tensor], network: nn.Module, what: str, name: str, remedy: str) -> None:
    """Raise unless there is a finite tensor of the right shape for each of a network's, and no other."""
    wanted = network.state_dict()
    for key in sorted(wanted.keys() | found.keys()):
        if key not in found or key not in wanted or found[key].shape != wanted[key].shape:
            shapes = [tuple(each[key].shape) if key in each else "missing" for each in (found, wanted)]
            raise InputError(
                f"{what}: its weights do not fit {name}: {key!r} is {shapes[0]} there and {shapes[1]} in the network; "
                f"{remedy} weights of the same network"
            )
        if found[key].is_floating_point() != wanted[key].is_floating_point():
            kinds = [str(each[key].dtype).removeprefix("torch.") for each in (found, wanted)]
            raise InputError(
                f"{what}: {key!r} is {kinds[0]} there and {kinds[1]} in {name}; {remedy} weights of that type"
            )
        if not bool(torch.isfinite(found[key]).all()):
            raise InputError(f"{what}: {key!r} has entries that are not finite; {remedy} other weights")


def network_from_bytes(data: bytes, path: Path) -> Network:
    """The network in the bytes of a safetensors file."""
    tensors, marks = tensors_and_marks(data, path)
    text = marks.get(_KEY)
    if text is None:
        raise InputError(
            f"{path}: it does not say which network its weights belong to; name the network, 'package.module:name', "
            "and give the file as its weights, or write it with "
            "certcal.models.networks.save_weights"
        )
    network = _built(text, path)
    wanted = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in network.state_dict().items()}
    found = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}
    if wanted != found:
        name = sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))[0]
        raise InputError(f"{path}: its tensor {name!r} does not fit the network it names; write the file again")
    network.load_state_dict(tensors, assign=True)
    return network.eval()


def _built(text: str, path: Path) -> Network:
    """The network without memory for its weights: what a file asks for is compared with what it holds first."""
    try:
        if len(text) > 100_000:
            raise ValueError
        settings: dict[str, Any] = json.loads(text)
        kind = _NETWORKS[settings.pop("class")]
        if settings.keys() != inspect.signature(kind).parameters.keys() - {"seed"}:
            raise ValueError(text)
        with torch.device("meta"):
            return kind(**settings)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, RuntimeError) as error:
        raise InputError(
            f"{path}: the network it names is unknown or impossible; write it with this version"
        ) from error
