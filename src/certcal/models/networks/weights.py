"""Weights in files: those of reference networks with the settings that build them again, and any others."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors
from torch import Tensor, nn

from certcal._base.checks import InputError
from certcal._base.durable import write_durably
from certcal._base.files import read_bytes, refuse_overwriting
from certcal.models._checkpoint import checkpoint_tensors
from certcal.models._load import CHECKPOINTS, is_checkpoint
from certcal.models.networks._cell import CellNetwork
from certcal.models.networks._network import MLP, LeNet, Network
from certcal.models.networks._published import PublishedResNet
from certcal.models.networks._resnet import PreActResNet, ResNet
from certcal.models.protocol import LARGEST_FILE

_NETWORKS: dict[str, type[Network]] = {
    kind.__name__: kind for kind in (MLP, LeNet, ResNet, PreActResNet, PublishedResNet, CellNetwork)
}
_KEY = "certcal.network"
_HEADER = 100_000_000  # bytes; what safetensors itself allows
_WRAPPERS = {"module", "_orig_mod"}  # names that DataParallel and torch.compile put in between
_NORMALISATIONS = {
    "normalize.mean": {"mean", "means", "mu", "_mean"},
    "normalize.std": {"std", "stds", "sd", "sds", "sigma", "_std"},
}
_SHOWN = 6  # differences that a sentence names
_DEEPEST = 8  # names before those of the network


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
    """The tensors in the bytes of a file of weights, and the texts that stand beside them in a safetensors file."""
    if is_checkpoint(path):
        return checkpoint_tensors(data, path), {}
    try:
        tensors = read_tensors(data)
        length = int.from_bytes(data[:8], "little")
        header: Any = json.loads(data[8 : 8 + min(length, _HEADER)])
        return tensors, header.get("__metadata__", {})
    except (SafetensorError, ValueError, KeyError, RecursionError) as error:
        if path.suffix.lower() != ".safetensors":
            known = f".safetensors, {', '.join(CHECKPOINTS[:-1])} or {CHECKPOINTS[-1]}"
            raise InputError(f"{path}: this is no file of weights; give one that ends in {known}") from error
        raise InputError(
            f"{path}: this is not a safetensors file, or it is damaged ({error}); copy it again"
        ) from error


def fitting(found: Mapping[str, Tensor], network: nn.Module, what: str, name: str, remedy: str) -> dict[str, Tensor]:
    """A finite tensor of the right shape for each of a network's, and no other; or one sentence about all that differ.

    What wrappers put into the names is taken out. A file may lack the whole normalisation, which is then the network's
    own, and counts of batches, as old files do.
    """
    wanted: dict[str, Tensor] = network.state_dict()
    readings = list(_possible_namings(found, wanted))
    tensors = max(readings, key=lambda each: len(each.keys() & wanted.keys()) - len(each.keys() - wanted.keys()))
    free = {key for key in wanted if key.endswith(".num_batches_tracked")}
    if not tensors.keys() & _NORMALISATIONS.keys():
        free |= _NORMALISATIONS.keys() & wanted.keys()
    full = {key: wanted[key] for key in free} | tensors
    wrong = [
        f"{key!r} is {_shape_or_missing(full, key)} there and {_shape_or_missing(wanted, key)} in the network"
        for key in sorted(wanted.keys() | full.keys())
        if key not in full or key not in wanted or full[key].shape != wanted[key].shape
    ]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more differ" if len(wrong) > _SHOWN else ""
        raise InputError(
            f"{what}: its weights do not fit {name}: {', '.join(wrong[:_SHOWN])}{more}; {remedy} weights of the same "
            "network"
        )
    for key, tensor in tensors.items():
        if tensor.is_floating_point() != wanted[key].is_floating_point():
            kinds = [str(each[key].dtype).removeprefix("torch.") for each in (tensors, wanted)]
            raise InputError(
                f"{what}: {key!r} is {kinds[0]} there and {kinds[1]} in {name}; {remedy} weights of that type"
            )
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{what}: {key!r} has entries that are not finite; {remedy} other weights")
        if key == "normalize.std" and not bool((tensor > 0).all()):
            raise InputError(f"{what}: {key!r} has entries that are not positive; {remedy} other weights")
    return full


def _shape_or_missing(tensors: Mapping[str, Tensor], key: str) -> object:
    return tuple(tensors[key].shape) if key in tensors else "missing"


def _possible_namings(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """The tensors as they are called, without the names of wrappers, and without what then stands before all of them.

    A network behind a normalisation, as ``Sequential(NormalizeLayer, network)`` has it, is called ``1.…`` throughout;
    means and deviations are found by their names.
    """
    yield dict(found)
    plain = {".".join(part for part in key.split(".") if part not in _WRAPPERS): each for key, each in found.items()}
    if len(plain) < len(found):
        return  # two tensors would have one name
    yield plain
    outside: dict[str, Tensor] = {}
    body: dict[str, Tensor] = {}
    for key, tensor in plain.items():
        called = key.rpartition(".")[2]
        own = next((own for own, names in _NORMALISATIONS.items() if own in wanted and called in names), "")
        if own and tensor.numel() == wanted[own].numel():
            outside[own] = tensor.reshape(wanted[own].shape)
        else:
            body[key] = tensor
    for _ in range(_DEEPEST):
        yield body | outside
        if len({key.partition(".")[0] for key in body}) != 1 or not all("." in key for key in body):
            return
        body = {key.partition(".")[2]: each for key, each in body.items()}


def network_from_bytes(data: bytes, path: Path) -> Network:
    """The network in the bytes of a safetensors file."""
    tensors, marks = tensors_and_marks(data, path)
    text = marks.get(_KEY)
    if text is None:
        raise InputError(
            f"{path}: it does not say which network its weights belong to",
            remedy="write it with certcal.models.networks.save_weights, or name the network, 'package.module:name', "
            "and give the file as its weights",
            roles=("weights",),
        )
    network = _build_without_memory(text, path)
    wanted = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in network.state_dict().items()}
    found = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}
    if wanted != found:
        name = sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))[0]
        raise InputError(f"{path}: its tensor {name!r} does not fit the network it names; write the file again")
    network.load_state_dict(tensors, assign=True)
    return network.eval()


def _build_without_memory(text: str, path: Path) -> Network:
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
