"""Torch modules as models: wrapped, with weights from a file, and with gradients. Importing this loads torch."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from certcal._base.checks import InputError
from certcal._base.files import read_bytes
from certcal._base.text import reason
from certcal.models._adapter import Adapter, Batch, matrix_in
from certcal.models.devices import Fitting, is_out_of_memory, resolve
from certcal.models.fingerprint import weights_digest
from certcal.models.protocol import LARGEST_FILE, Outputs, Source, declared_outputs


class TorchModel(Adapter):
    """A module in evaluation mode, on a device: by default where its weights are.

    The module is copied, so training the original further does not change this model; the copy keeps its convolutions'
    weights in channels-last order, which is faster. The number of torch's threads is not touched. A batch that does not
    fit into the memory of the device is computed in pieces that do.
    """

    def __init__(
        self,
        module: nn.Module,
        outputs: Outputs,
        description: str | None = None,
        source: Source | None = None,
        digest: str | None = None,
        device: str | None = None,
    ) -> None:
        name = getattr(module, "original_name", type(module).__name__)  # TorchScript has a class of its own
        super().__init__(outputs, description or f"{name} (torch module)", source)
        if not isinstance(module, torch.fx.GraphModule) and any(
            getattr(part, "training", False)  # TorchScript that was frozen has none
            for part in module.modules()
        ):
            raise InputError(f"{name} is in training mode; call .eval() on it first")
        own = next((str(tensor.device) for tensor in (*module.parameters(), *module.buffers())), "cpu")
        # What is on an accelerator already stays there unless it is told to go elsewhere.
        self.device = own if device is None or (device == "auto" and own != "cpu") else resolve(device)
        self.module = _frozen_copy(module, name, None if self.device == own else self.device)
        self._digest = digest
        self._dtype = precision(self.module)
        self.sample_shape = configured_shape(module)
        self.fitting = Fitting(self.description, self.device)

    def on(self, device: str | None) -> TorchModel:
        """The model on a device: itself, or a copy where it is elsewhere."""
        if device is None or device == "auto" or resolve(device) == self.device:
            return self
        source = None if self.source is None else replace(self.source, device=device)
        return TorchModel(self.module, self.outputs, self.description, source, self._digest, device)

    @property
    def host_buffer(self) -> Callable[[tuple[int, ...]], Batch] | None:
        """Makes pinned memory, from which CUDA copies faster; None for other devices."""
        pinned = self.device.partition(":")[0] == "cuda"
        return (lambda shape: torch.empty(shape, pin_memory=True).numpy()) if pinned else None

    def _forward(self, batch: Batch) -> Any:
        return self.fitting(self._rows, batch)

    def _rows(self, batch: Batch) -> Any:
        with torch.inference_mode():
            # torch warns about memory that it must not write to; it is then copied.
            given: Any = torch.from_numpy(batch if batch.flags.writeable else batch.copy())  # pyright: ignore[reportUnknownMemberType]
            answer: Any = matrix_in(self.module(given.to(self.device, self._dtype)), self.outputs, self.description)
            if not isinstance(answer, torch.Tensor):
                raise InputError(f"{self.description} returns {type(answer).__name__}; it must return one tensor")
            answer = answer.float() if answer.dtype in (torch.bfloat16, torch.float16) else answer
            return answer.cpu().numpy()

    def fingerprint(self, probe: Any) -> str:
        """Digits of the file, if it came from one; else of the layers' classes and settings, weights and buffers."""
        del probe
        return self._digest or weights_digest(self.module)


def _frozen_copy(module: nn.Module, name: str, device: str | None) -> nn.Module:
    try:
        with torch.no_grad():  # the weights of a copy of TorchScript would else be computed from the original's
            copied = copy.deepcopy(module)
            if device is not None:
                copied.to(device)
    except Exception as error:
        if is_out_of_memory(error):
            raise InputError(
                f"{name} does not fit into the memory of {device or 'its device'}; choose another device"
            ) from error
        raise InputError(
            f"{name} cannot be copied ({reason(error)}); export it with export_onnx, or wrap a function that calls it"
        ) from error
    for parameter in copied.parameters():
        parameter.requires_grad_(False)
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return copied


def precision(module: nn.Module) -> torch.dtype:
    """What a module computes in: the type of its first weights that are not whole numbers."""
    return next((each.dtype for each in module.parameters() if each.is_floating_point()), torch.float32)


def configured_shape(module: Any) -> tuple[int, ...] | None:
    """The shape of one input, as timm (``pretrained_cfg``), Hugging Face (``config``) or ``sample_shape`` says it."""
    own: Any = getattr(module, "sample_shape", None)
    if own is not None:
        return tuple(own)
    config: Any = getattr(module, "config", None)
    side: Any = getattr(config, "image_size", None)
    sides: Any = [side, side] if type(side) is int else side if type(side) in (tuple, list) else []
    found: list[Any] = [[getattr(config, "num_channels", None), *sides]]
    for name in ("pretrained_cfg", "default_cfg"):
        said: Any = getattr(module, name, None)
        found.append(getattr(said, "input_size", said))
        found.append(cast("dict[str, Any]", said).get("input_size") if isinstance(said, dict) else None)
    for sizes in found:
        if type(sizes) in (tuple, list) and len(sizes) == 3 and all(type(size) is int for size in sizes):
            return tuple(sizes)
    return None


def load_named_network(name: str, path: Path, outputs: Outputs | None, device: str = "auto") -> TorchModel:
    from certcal.models.networks.named import with_weights

    data = read_bytes(path, LARGEST_FILE, "a file of weights")
    network, known = with_weights(name, data, path)
    returns = declared_outputs(outputs, known, name)
    source = Source(name, returns, os.path.abspath(path), device)
    return TorchModel(network, returns, f"{name} with {path.name} (torch module)", source, device=device)


def load_network(path: Path, outputs: Outputs | None, device: str = "auto") -> TorchModel:
    from certcal.models.networks.weights import network_from_bytes

    data = read_bytes(path, LARGEST_FILE, "a safetensors file")
    network = network_from_bytes(data, path)
    returns = declared_outputs(outputs, network.outputs, str(path))
    about = f"{path.name} ({network.description})"
    source = Source(os.path.abspath(path), returns, device=device)
    return TorchModel(network, returns, about, source, hashlib.sha256(data).hexdigest(), device)


def with_clear_failures(module: nn.Module, description: str) -> nn.Module:
    """A module whose failures are one sentence; that it gives no gradients is one of them."""
    return _Watched(module, description).eval()


class _Watched(nn.Module):
    def __init__(self, inner: nn.Module, description: str) -> None:
        super().__init__()
        self.inner = inner
        self.dtype = precision(inner)
        self.description = description

    def forward(self, inputs: Tensor) -> Tensor:
        given = tuple(inputs.shape)
        try:
            answer: Any = matrix_in(self.inner(inputs.to(self.dtype)))
        except InputError:
            raise
        except Exception as error:
            if is_out_of_memory(error):  # for those who can ask for less
                raise
            raise InputError(
                f"{self.description} failed on a batch of shape {given}: {reason(error)}; it must accept float32 "
                "batches of that shape"
            ) from error
        if not isinstance(answer, Tensor) or answer.ndim != 2 or len(answer) != len(inputs) or answer.shape[1] < 2:
            found = tuple(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
            raise InputError(
                f"{self.description} returns {found} for a batch of shape {given}; it must return one row per sample "
                "and one column per class"
            )
        if inputs.requires_grad and torch.is_grad_enabled() and not answer.requires_grad:
            raise InputError(
                f"{self.description} gives no gradients with respect to its inputs; take torch.no_grad, .detach() and "
                ".numpy() out of its forward"
            )
        return answer.float() if answer.dtype in (torch.bfloat16, torch.float16) else answer
