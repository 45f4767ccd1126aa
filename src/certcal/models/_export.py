"""Writing a torch module as an ONNX file that says what it returns."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError, whole_number
from certcal._durable import write_durably
from certcal._files import refuse_overwriting
from certcal._text import reason
from certcal.models._adapter import extra
from certcal.models.protocol import DECLARATION, Outputs, declared

if TYPE_CHECKING:
    from torch import nn


def export_onnx(
    module: nn.Module,
    path: str | os.PathLike[str],
    *,
    outputs: Outputs | None = None,
    sample_shape: Sequence[int] | None = None,
    force: bool = False,
) -> None:
    """Write a torch module as one ONNX file with a free batch dimension, which any machine with onnxruntime can run.

    Parameters
    ----------
    module
        In evaluation mode, with its normalisation inside.
    path
        The file, ending in ``.onnx``; an existing one is kept unless ``force`` is true.
    outputs
        What the module returns; written into the file, so that ``load`` need not be told. Needed unless the module
        has an attribute ``outputs``, as the networks in ``certcal.models.networks`` have.
    sample_shape
        Shape of one input, without the batch. Needed unless the module says it: by an attribute ``sample_shape``, or
        in the configuration that timm and Hugging Face give it.
    force
        Whether to write over an existing file.

    Examples
    --------
    >>> import tempfile, certcal
    >>> from certcal.models.networks import MLP
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = folder.name + "/digits.onnx"
    >>> export_onnx(MLP(64, hidden=(32,)).eval(), path)
    >>> certcal.models.load(path)
    <digits.onnx (ONNX): logits>
    >>> folder.cleanup()
    """
    file, returns, shape = _checked(module, path, outputs, sample_shape, force)
    with extra("onnx", ("onnx", "onnxscript"), "writing ONNX"):
        import_module("onnx")
        import_module("onnxscript")
    with _quiet(f"{type(module).__name__} cannot be written as ONNX"):
        torch: Any = import_module("torch")

        device = next((tensor.device for tensor in module.state_dict().values()), torch.device("cpu"))
        program: Any = torch.onnx.export(
            module,
            (torch.zeros((2, *shape), device=device),),
            dynamic_shapes=({0: torch.export.Dim("batch", min=1)},),
            dynamo=True,
            verbose=False,
            input_names=["input"],
        )
        message: Any = program.model_proto
        message.metadata_props.add(key=DECLARATION, value=returns)
        data: bytes = message.SerializeToString()
    write_durably(file, data)


def _checked(
    module: Any,
    path: str | os.PathLike[str],
    outputs: Outputs | None,
    sample_shape: Sequence[int] | None,
    force: bool,
) -> tuple[Path, Outputs, tuple[int, ...]]:
    with extra("torch", ("torch",), "exporting"):
        torch: Any = import_module("torch")
        from certcal.models._torch import configured_shape
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"module is a {type(module).__name__}; pass a torch module")
    name = type(module).__name__
    if isinstance(module, torch.jit.ScriptModule):
        raise InputError(f"module is TorchScript ({name}), which is not exported; pass the module it was made from")
    if any(part.training for part in module.modules()):
        raise InputError(f"{name} is in training mode; call .eval() on it first")
    file = Path(path)
    if file.suffix != ".onnx":
        raise InputError(f"{file}: the file must end in .onnx; change the name")
    refuse_overwriting(file, force=force)
    shape: Any = configured_shape(module) if sample_shape is None else sample_shape
    if shape is None:
        raise InputError(f"sample_shape is needed for {name}: pass the shape of one input, for example (3, 32, 32)")
    sizes = tuple(whole_number(size, 1, 2**24, "sample_shape", "pass sizes from 1 on") for size in shape)
    own = getattr(module, "outputs", None)
    return file, declared(outputs, own if isinstance(own, str) else None, name), sizes


@contextmanager
def _quiet(failure: str) -> Generator[None, None, None]:
    """Exporters warn about their own insides and log about libraries that are not there; only failures are of use."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{failure}: {reason(error)}") from error
    finally:
        logger.setLevel(level)
