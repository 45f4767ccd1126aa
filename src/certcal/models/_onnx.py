"""An ONNX file, run by onnxruntime."""

from __future__ import annotations

import hashlib
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from certcal._checks import InputError, whole_number
from certcal._durable import open_regular
from certcal._files import read_bytes
from certcal._text import reason
from certcal.models._adapter import Adapter, Batch, check_shape, extra, in_batches
from certcal.models._onnx_files import external_files, parse
from certcal.models.protocol import DECLARATION, Outputs, Source, declared

_LARGEST = 2**31 - 1  # of a protobuf message


class OnnxModel(Adapter):
    """A session with one float32 input, and one output that can be a matrix of floats."""

    def __init__(
        self, session: Any, outputs: Outputs, name: str, source: Source | None = None, digest: str | None = None
    ) -> None:
        super().__init__(outputs, name, source)
        self.session = session
        self._digest = digest
        self._given = "" if digest else _session_digest(session)
        inputs: list[Any] = session.get_inputs()
        if len(inputs) != 1 or inputs[0].type != "tensor(float)":
            shown = ", ".join(f"{each.name} ({each.type})" for each in inputs)
            raise InputError(f"{name} takes the inputs {shown}; a model takes one float32 tensor: export it so")
        self._feed = inputs[0].name
        shape: list[Any] = list(inputs[0].shape)
        rows = shape[0] if shape and isinstance(shape[0], int) else None
        if rows is not None and rows < 1:
            raise InputError(f"{name} takes batches of {rows} samples; export it with a free batch dimension")
        self._least, self._most = rows or 1, rows
        self._sample = tuple(size if isinstance(size, int) else None for size in shape[1:]) if shape else None
        self._fetch = [_matrix_output(session, name)]

    def _forward(self, batch: Batch) -> NDArray[Any]:
        check_shape(batch.shape[1:], self._sample, self.description)
        return in_batches(self._run, batch, self._least, self._most)

    def _run(self, batch: Batch) -> NDArray[Any]:
        return self.session.run(self._fetch, {self._feed: batch})[0]

    def identity(self, probe: Any) -> str | None:
        """Of the file and the data files beside it; None for a session given as an object."""
        del probe
        return self._digest

    def fingerprint(self, probe: Any) -> str:
        """As the identity; of a session given as an object, what it was opened from and its answers to the probe."""
        return self._digest or self._behaviour(probe, self._given, complete=False)


def _session_digest(session: Any) -> str:
    """Of what a session was opened from, where it still knows that."""
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
    kinds = ("tensor(float)", "tensor(double)", "tensor(float16)")
    every: list[Any] = session.get_outputs()
    found = [each.name for each in every if each.type in kinds and len(each.shape) in (0, 2)]
    if len(found) == 1:
        return str(found[0])
    shown = ", ".join(f"{each.name} ({each.type} of shape {each.shape})" for each in every)
    raise InputError(f"{name} returns {shown}; export it with one output, a float matrix with a column per class")


def load_onnx(path: Path, outputs: Outputs | None, threads: int) -> OnnxModel:
    """Check an ONNX file and what it refers to, and open it."""
    threads = whole_number(threads, 1, 1024, "threads", "pass a number of threads from 1 to 1024")
    data = read_bytes(path, _LARGEST, "an ONNX file")
    with extra("onnx", ("onnx", "onnxruntime", "google"), "an ONNX file"):
        runtime: Any = import_module("onnxruntime")
        model = parse(data, path)
    files = external_files(model, path)
    known = next((entry.value for entry in model.metadata_props if entry.key == DECLARATION), None)
    returns = declared(outputs, known, str(path))
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
        session: Any = runtime.InferenceSession(
            os.fspath(path) if files else data, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise InputError(
            f"{path}: onnxruntime cannot open this model ({reason(error)}); export it again for its version"
        ) from error
    source = Source(os.path.abspath(path), returns)
    return OnnxModel(session, returns, f"{path.name} (ONNX)", source, digest.hexdigest())
