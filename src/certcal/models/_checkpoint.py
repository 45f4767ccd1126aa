"""Checkpoints of ``torch.save``: read by torch's restricted unpickler, and by nothing else. Importing this loads torch.

That reader (``weights_only=True``) builds numbers, texts, containers and tensors, and refuses every other name in the
file. Twice a hostile file got around it: CVE-2025-32434 ran code (torch before 2.6), CVE-2026-24747 corrupted memory
(before 2.10). So older versions read no checkpoint here.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from certcal._base.checks import InputError
from certcal._base.text import reason

_OLDEST = (2, 10)
# Where training scripts keep the weights, the averaged ones last.
_PLACES = ("state_dict", "model_state_dict", "model_state", "model", "net", "network", "module", "params", "weights")
_AVERAGED = ("state_dict_ema", "model_ema", "ema_state_dict", "ema")
# What training scripts call their network: locuslab/smoothing for CIFAR, and torch's own example for ImageNet.
_NETWORK = re.compile(r"(?:(cifar)_)?resnet([0-9]+)")
_NAMED = re.compile(r"GLOBAL ([\w.]{1,200})")


def checkpoint_tensors(data: bytes, path: Path) -> dict[str, Tensor]:
    """The weights in the bytes of a checkpoint, under the names that they have there."""
    return _checked_tensors(_load_weights(data, path), path)


def checkpoint_network(data: bytes, path: Path) -> str:
    """The name of the network that a checkpoint says it is of ("arch"), as certcal spells it; empty where it does not.

    Whatever is wrong with the checkpoint is said as by :func:`checkpoint_tensors`.
    """
    content: Any = _load_weights(data, path)
    _checked_tensors(content, path)
    said = _NETWORK.fullmatch(str(content.get("arch", "")))
    return "" if said is None else f"resnet{said[2]}-{said[1] or 'imagenet'}"


def _checked_tensors(content: object, path: Path) -> dict[str, Tensor]:
    tensors = _state_dict(content)
    if tensors is None:
        inside = f"a {type(content).__name__}"
        if isinstance(content, dict) and content:
            inside = ", ".join(repr(key)[:40] for key in list(cast("dict[Any, Any]", content))[:8])
        raise InputError(
            f"{path}: there are no weights in it ({inside}); save the network's state_dict(), alone or under "
            "'state_dict'"
        )
    for key, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized or tensor.is_nested:
            raise InputError(f"{path}: {key!r} is no plain tensor; save the weights dense and not quantized")
    return tensors


def _load_weights(data: bytes, path: Path) -> object:
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if version < _OLDEST:
        raise InputError(
            f"{path}: torch {torch.__version__} does not read checkpoints safely; install torch 2.10 or newer, or "
            "give .safetensors"
        )
    if data[:2] == b"PK":
        _check_archive(data, path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of the age of old files
            return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # hostile bytes raise whatever they like
        named = _NAMED.search(str(error))
        if named:
            raise InputError(
                f"{path}: it holds more than weights ({named[1]}), which could run code and is refused; save the "
                "network's state_dict() alone, or as .safetensors"
            ) from error
        raise InputError(
            f"{path}: this is no checkpoint of torch.save, or it is damaged ({reason(error)[:200]}); save it again"
        ) from error


def _check_archive(data: bytes, path: Path) -> None:
    """Refuse TorchScript, and archives that would grow when they are read; torch.save compresses nothing."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise InputError(
            f"{path}: this is no checkpoint of torch.save, or it is damaged ({error}); save it again"
        ) from error
    if any(entry.filename.endswith("/constants.pkl") for entry in entries):
        raise InputError(
            f"{path}: this is TorchScript, a program, which is not loaded from files; save the network's state_dict(), "
            "export it as ONNX, or open it with torch.jit.load and pass that to certcal.models.wrap"
        )
    if sum(entry.file_size for entry in entries) > len(data):
        raise InputError(f"{path}: it is compressed, which torch.save never does; save it again")


def _state_dict(content: object) -> dict[str, Tensor] | None:
    """The first mapping of names to tensors in the places where scripts put one."""
    if not isinstance(content, Mapping):
        return None
    held = cast("Mapping[Any, Any]", content)
    for place in (*_PLACES, *_AVERAGED):
        inside = _state_dict(held.get(place)) if isinstance(held.get(place), Mapping) else None
        if inside:
            return inside
    found = {key: value for key, value in held.items() if isinstance(key, str) and isinstance(value, Tensor)}
    return found or None
