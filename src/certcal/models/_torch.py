"""A torch module."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal._text import reason
from certcal.models._adapter import Adapter, Batch
from certcal.models.fingerprint import weights_digest
from certcal.models.protocol import Outputs, Source

if TYPE_CHECKING:
    from torch import Tensor, nn


class TorchModel(Adapter):
    """A module in evaluation mode, on the device where its weights are.

    The module is copied, so training the original further does not change this model; the copy keeps its convolutions'
    weights in channels-last order, which is faster. The number of torch's threads is not touched.
    """

    def __init__(
        self,
        module: nn.Module,
        outputs: Outputs,
        description: str | None = None,
        source: Source | None = None,
        digest: str | None = None,
    ) -> None:
        torch: Any = import_module("torch")
        name = getattr(module, "original_name", type(module).__name__)  # TorchScript has a class of its own
        super().__init__(outputs, description or f"{name} (torch module)", source)
        if not isinstance(module, torch.fx.GraphModule) and any(
            getattr(part, "training", False)  # TorchScript that was frozen has none
            for part in module.modules()
        ):
            raise InputError(f"{name} is in training mode; call .eval() on it first")
        self.module = _frozen(module, name)
        self._digest = digest
        self._device = next((tensor.device for tensor in self.module.state_dict().values()), torch.device("cpu"))

    def _forward(self, batch: Batch) -> Any:
        torch: Any = import_module("torch")

        with torch.inference_mode():
            answer: Any = self.module(_tensor(batch).to(self._device))
            if not isinstance(answer, torch.Tensor):
                raise InputError(f"{self.description} returns {type(answer).__name__}; it must return one tensor")
            answer = answer.float() if answer.dtype in (torch.bfloat16, torch.float16) else answer
            return answer.cpu().numpy()

    def identity(self, probe: Any) -> str:
        """Of the file, if it came from one; else of its layers' classes and settings, and every weight and buffer."""
        del probe
        return self._digest or weights_digest(self.module)


def _tensor(batch: Batch) -> Tensor:
    torch: Any = import_module("torch")

    # torch warns about memory that it must not write to; it is then copied.
    return torch.from_numpy(batch if batch.flags.writeable else batch.copy())


def _frozen(module: nn.Module, name: str) -> nn.Module:
    torch: Any = import_module("torch")

    try:
        with torch.no_grad():  # the weights of a copy of TorchScript would else be computed from the original's
            copied = copy.deepcopy(module)
    except Exception as error:
        raise InputError(
            f"{name} cannot be copied ({reason(error)}); export it with export_onnx, or wrap a function that calls it"
        ) from error
    for parameter in copied.parameters():
        parameter.requires_grad_(False)
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return copied
