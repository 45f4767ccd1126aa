"""ONNX files: run by onnxruntime, with data files that must lie in their own folder; and written from torch modules."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, whole_number
from certcal._base.durable import open_regular, write_durably
from certcal._base.files import read_bytes, refuse_overwriting
from certcal._base.text import reason
from certcal.models._adapter import Adapter, Batch, check_shape, extra
from certcal.models.devices import Fitting
from certcal.models.protocol import DECLARATION, Outputs, Source, declared_outputs

if TYPE_CHECKING:
    from torch import nn

_LARGEST = 2**31 - 1  # of a protobuf message
_FLOATS: dict[str, Any] = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
_EXTERNAL = 1  # TensorProto.EXTERNAL
_CPU = "CPUExecutionProvider"
# What onnxruntime calls the devices that torch has other words for; "cuda" is also torch's word for ROCm.
_PROVIDERS = {
    "cuda": ("CUDAExecutionProvider", "MIGraphXExecutionProvider", "ROCMExecutionProvider"),
    "mps": ("CoreMLExecutionProvider",),
    "xpu": ("OpenVINOExecutionProvider",),
}


class OnnxModel(Adapter):
    """A session with one input of floats, and one output that can be a matrix of floats or skl2onnx's list of maps."""

    def __init__(
        self, session: Any, outputs: Outputs, name: str, source: Source | None = None, digest: str | None = None
    ) -> None:
        super().__init__(outputs, name, source)
        self.session = session
        self._digest = digest
        self._given = "" if digest else _session_digest(session)
        inputs: list[Any] = session.get_inputs()
        if len(inputs) != 1 or inputs[0].type not in _FLOATS:
            shown = ", ".join(f"{each.name} ({each.type})" for each in inputs)
            whole = len(inputs) == 1 and "int" in inputs[0].type
            remedy = "export it with a Cast from float32 inside" if whole else "export it so"
            raise InputError(f"{name} takes the inputs {shown}; a model takes one float32 tensor: {remedy}")
        self._feed, self._dtype = inputs[0].name, _FLOATS[inputs[0].type]
        shape: list[Any] = list(inputs[0].shape)
        rows = shape[0] if shape and isinstance(shape[0], int) else None
        if rows is not None and rows < 1:
            raise InputError(f"{name} takes batches of {rows} samples; export it with a free batch dimension")
        self._size = rows  # of its batches, where they have one
        self._sample = tuple(size if isinstance(size, int) else None for size in shape[1:]) if shape else None
        self._fetch = [_matrix_output(session, name)]
        self.device = _device_of(session)
        self.fitting = Fitting(name, self.device)

    def _forward(self, batch: Batch) -> NDArray[Any]:
        check_shape(batch.shape[1:], self._sample, self.description)
        if self._size is None:
            return self.fitting(self._run, batch)
        answers: list[NDArray[Any]] = []
        for start in range(0, len(batch), self._size):
            part = batch[start : start + self._size]
            filled = np.concatenate([part, np.repeat(part[-1:], self._size - len(part), axis=0)])
            answers.append(self._run(filled)[: len(part)])
        return np.concatenate(answers)

    def _run(self, batch: Batch) -> NDArray[Any]:
        answer: Any = self.session.run(self._fetch, {self._feed: batch.astype(self._dtype, copy=False)})[0]
        return _matrix_of_maps(answer, self.description) if type(answer) is list else answer

    def fingerprint(self, probe: Any) -> str:
        """Digits of the file and its data files, or of what a session was opened from and its answers."""
        return next(self._fingerprints(probe))

    def _fingerprints(self, probe: Any) -> Iterator[str]:
        return iter((self._digest,)) if self._digest else self._behaviour_digests(probe, self._given)


def _session_digest(session: Any) -> str:
    content: Any = getattr(session, "_model_bytes", None)
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    try:
        with open(session._model_path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (AttributeError, TypeError, OSError):
        return ""


def _matrix_output(session: Any, name: str) -> str:
    """The one output that may be a matrix of floats. Classifiers often have a second one, the predicted labels."""
    every: list[Any] = session.get_outputs()
    found = [each.name for each in every if each.type in _FLOATS and len(each.shape) in (0, 2)]
    found = found or [each.name for each in every if each.type.startswith("seq(map(")]
    if len(found) == 1:
        return str(found[0])
    shown = ", ".join(f"{each.name} ({each.type} of shape {each.shape})" for each in every)
    raise InputError(f"{name} returns {shown}; export it with one output, a float matrix with a column per class")


def _matrix_of_maps(rows: Any, name: str) -> NDArray[Any]:
    """The matrix in what skl2onnx's ZipMap makes of it: for each sample a map from class to probability."""
    classes = sorted(rows[0]) if all(type(key) is int for key in rows[0]) else []
    if classes != list(range(len(rows[0]))):
        shown = ", ".join(repr(key) for key in list(rows[0])[:5])
        raise InputError(
            f"{name} returns maps from the classes {shown}; fit it on whole numbers from 0, or convert it with "
            "options={'zipmap': False}, so that column k is class k"
        )
    return np.array([[row[each] for each in classes] for row in rows], np.float32)


def providers(device: str, offered: Sequence[str]) -> list[Any]:
    """What onnxruntime is asked for, in its words; what has no other place there is computed on the CPU."""
    kind, _, number = ("cuda" if device == "auto" else device).partition(":")
    found = next((each for each in _PROVIDERS.get(kind, ()) if each in offered), None)
    if device == "cpu" or (device == "auto" and found is None):
        return [_CPU]
    if found is None or not (number or "0").isdigit():
        raise InputError(
            f"onnxruntime has nothing for {device!r} here, only {', '.join(sorted(offered))}",
            argument="device",
            remedy="give 'cpu' or 'auto', or install the onnxruntime for your accelerator, such as onnxruntime-gpu",
        )
    options: dict[str, Any] = {"device_id": int(number or 0)} if kind == "cuda" else {}
    if found == "CUDAExecutionProvider":
        options["use_tf32"] = 0  # answers with all digits, as on the CPU
    return [(found, options) if options else found, _CPU]


def _device_of(session: Any) -> str:
    """Where a session computes, in torch's words."""
    first = next(iter(session.get_providers()), _CPU)
    kind = next((kind for kind, names in _PROVIDERS.items() if first in names), "cpu")
    number = session.get_provider_options().get(first, {}).get("device_id", "0")
    return kind if str(number) == "0" else f"{kind}:{number}"


def load_onnx(path: Path, outputs: Outputs | None, threads: int, device: str = "auto") -> OnnxModel:
    threads = whole_number(threads, 1, 1024, "threads", "pass a number of threads from 1 to 1024")
    data = read_bytes(path, _LARGEST, "an ONNX file")
    with extra("onnx", ("onnx", "onnxruntime", "google"), "an ONNX file"):
        runtime: Any = import_module("onnxruntime")
        model = parse(data, path)
    wanted = providers(device, runtime.get_available_providers())
    files = external_files(model, path)
    known = next((entry.value for entry in model.metadata_props if entry.key == DECLARATION), None)
    returns = declared_outputs(outputs, known, str(path))
    digest = hashlib.sha256(data)
    for file in files:
        with open_regular(file) as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    del model
    options: Any = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        # Without data files the very bytes that were checked are used, whatever happens to the file meanwhile.
        session: Any = runtime.InferenceSession(os.fspath(path) if files else data, options, providers=wanted)
    except Exception as error:
        remedy = (
            "convert it with options={'zipmap': False}" if "ZipMap" in str(error) else "export it again for its version"
        )
        raise InputError(f"{path}: onnxruntime cannot open this model ({reason(error)}); {remedy}") from error
    result = OnnxModel(
        session,
        returns,
        f"{path.name} (ONNX)",
        Source(os.path.abspath(path), returns, device=device),
        digest.hexdigest(),
    )
    if device != "auto" and result.device.partition(":")[0] != device.partition(":")[0]:
        raise InputError(
            f"onnxruntime could not use {device!r} and fell back to {result.device}",
            argument="device",
            remedy="give 'cpu' or 'auto', or check the driver and the libraries that it needs",
        )
    return result


def parse(data: bytes, path: Path) -> Any:
    """The message in the file; nothing that it refers to is read."""
    onnx: Any = import_module("onnx")
    message: Any = import_module("google.protobuf.message")
    try:
        model: Any = onnx.ModelProto.FromString(data)
    except (message.DecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: this is not an ONNX file, or it is damaged; export it again") from error
    if not model.HasField("graph") or not model.opset_import:
        raise InputError(f"{path}: this is not an ONNX file, or it is cut short (it has no graph); export it again")
    return model


def external_files(model: Any, path: Path) -> list[Path]:
    """The data files of a model, each a regular file below the folder of the model and reached by no link.

    A location that is absolute, climbs with ``..`` or passes through a symbolic link could make the model read any
    file of the machine into its weights, and is refused.
    """
    found: dict[Path, None] = {}
    for tensor in _every_tensor(model):
        if tensor.data_location != _EXTERNAL and not tensor.external_data:
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        file = _external_file(entries.get("location", ""), path)
        _check_extent(entries, file, path)
        found[file] = None
    return sorted(found)


def _external_file(location: str, path: Path) -> Path:
    parts = PurePosixPath(location).parts
    if (
        not parts
        or "\0" in location
        or "\\" in location
        or ".." in parts
        or PurePosixPath(location).is_absolute()
        or PureWindowsPath(location).anchor
    ):
        raise InputError(
            f"{path}: its data lies at {location!r}, outside the model's folder, which is refused; "
            "save the model with its data beside it"
        )
    file = path.parent
    try:
        for part in parts:
            file = file / part
            if stat.S_ISLNK(file.lstat().st_mode):
                raise InputError(
                    f"{path}: its data at {location!r} is reached by a symbolic link, which is refused; "
                    "copy the data beside the model"
                )
        if not stat.S_ISREG(file.lstat().st_mode):
            raise InputError(f"{path}: its data at {location!r} is not a regular file; save the model again")
    except OSError as error:
        raise InputError(
            f"{path}: its data file {location!r} cannot be read ({error.strerror or error}); put it beside the model"
        ) from error
    return file


def _check_extent(entries: dict[str, str], file: Path, path: Path) -> None:
    try:
        offset, length = int(entries.get("offset") or 0), int(entries.get("length") or 0)
    except ValueError:
        offset = -1
        length = 0
    size = file.stat().st_size
    if offset < 0 or length < 0 or offset + length > size:
        raise InputError(
            f"{path}: its data file {file.name!r} is shorter ({size} bytes) than the model says; copy it again"
        )


def _every_tensor(model: Any) -> Iterator[Any]:
    """Every tensor in the file, also in branches, loops, functions and training steps."""
    graphs: list[Any] = [model.graph]
    nodes: list[Any] = [node for function in model.functions for node in function.node]
    attributes: list[Any] = [each for function in model.functions for each in function.attribute_proto]
    for step in model.training_info:
        graphs += [step.initialization, step.algorithm]
    while graphs or nodes or attributes:
        while graphs:
            graph = graphs.pop()
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
            nodes += graph.node
        while nodes:
            attributes += nodes.pop().attribute
        while attributes:
            attribute = attributes.pop()
            yield from (attribute.t, *attribute.tensors)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            graphs += [attribute.g, *attribute.graphs]


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
    file, returns, shape = _check_export(module, path, outputs, sample_shape, force)
    with extra("onnx", ("onnx", "onnxscript"), "writing ONNX"):
        import_module("onnx")
        import_module("onnxscript")
    with _only_failures(f"{type(module).__name__} cannot be written as ONNX"):
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


def _check_export(
    module: Any, path: str | os.PathLike[str], outputs: Outputs | None, sample_shape: Sequence[int] | None, force: bool
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
    return file, declared_outputs(outputs, own if isinstance(own, str) else None, name), sizes


@contextmanager
def _only_failures(failure: str) -> Generator[None, None, None]:
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
