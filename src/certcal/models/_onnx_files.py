"""What an ONNX file refers to: data files, which must lie in its own folder."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from certcal._checks import InputError

_EXTERNAL = 1  # TensorProto.EXTERNAL


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
    for tensor in _tensors(model):
        if tensor.data_location != _EXTERNAL and not tensor.external_data:
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        file = _inside(entries.get("location", ""), path)
        _check_extent(entries, file, path)
        found[file] = None
    return sorted(found)


def _inside(location: str, path: Path) -> Path:
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


def _tensors(model: Any) -> Iterator[Any]:
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
