"""A torch.export file, read without torch.export.load.

``torch.export.load`` unpickles sample inputs, objects and older weights, loads shared libraries, and evaluates text in
the file as Python (sizes, guards, names). None of that is needed to run a network: this module takes the graph, which
is JSON, and the weights, which are raw bytes, from the archive, and looks at nothing else in it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certcal._checks import InputError
from certcal.models._adapter import Adapter, Batch, check_shape, extra, in_batches
from certcal.models._files import read_bytes
from certcal.models._protocol import DECLARATION, Outputs, Source, declared
from certcal.models._pt2_graph import DTYPES, Graph

if TYPE_CHECKING:
    from torch import Tensor

_LARGEST = 2**40
_AGAIN = "export the model again with certcal.models.export_torch, or as ONNX"
_SYMBOL = re.compile(r"(?:Symbol\('(\w+)'[\w=, ]*\)|(\w+))")


class ExportedModel(Adapter):
    """A graph of torch's own operators, on the CPU."""

    def __init__(self, graph: Graph, outputs: Outputs, description: str, source: Source, digest: str) -> None:
        super().__init__(outputs, description, source)
        self.graph = graph
        self._digest = digest

    def _forward(self, batch: Batch) -> Any:
        check_shape(batch.shape[1:], self.graph.sample, self.description)
        return in_batches(self.graph.run, batch, self.graph.least, self.graph.most)

    def identity(self, probe: Any) -> str:
        """Of the file."""
        del probe
        return self._digest


def load_pt2(path: Path, outputs: Outputs | None) -> ExportedModel:
    """Read the graph and the weights of a torch.export file."""
    data = read_bytes(path, _LARGEST, "a .pt2 file")
    with extra("torch", ("torch",), "a .pt2 file"):
        import_module("torch")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            reader = _Reader(archive, path)
            returns = declared(outputs, reader.declaration(), str(path))
            graph = reader.graph()
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError) as error:
        raise InputError(f"{path}: this .pt2 archive is damaged ({error}); copy or export it again") from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: the graph in this .pt2 file cannot be understood; {_AGAIN}") from error
    return ExportedModel(
        graph,
        returns,
        f"{path.name} (torch.export)",
        Source(os.path.abspath(path), returns),
        hashlib.sha256(data).hexdigest(),
    )


class _Reader:
    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self.archive, self.path = archive, path
        self.members: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            name = info.filename.partition("/")[2]  # every record lies below one folder
            if name in self.members:
                raise InputError(f"{path}: the archive holds {name!r} twice; {_AGAIN}")
            if info.compress_type != zipfile.ZIP_STORED:
                raise InputError(f"{path}: the archive is compressed, as torch.export never does; {_AGAIN}")
            self.members[name] = info
        self._refuse_unsafe()

    def _refuse_unsafe(self) -> None:
        names = self.members
        if any(name.startswith("data/aotinductor/") for name in names):
            raise InputError(f"{self.path}: the archive holds compiled code, which is never run; {_AGAIN}")
        if any(name.startswith(("data/weights/", "data/constants/")) and name.endswith(".pt") for name in names):
            raise InputError(f"{self.path}: its weights are pickled, which is never loaded; {_AGAIN}")
        if "models/model.json" not in names or self._text("archive_format") != "pt2":
            raise InputError(
                f"{self.path}: this is not a torch.export archive, or one of an older layout; "
                "save it again with a newer torch, or export it as ONNX"
            )
        if self._text("byteorder", "little") != sys.byteorder:
            raise InputError(f"{self.path}: it was written on a machine of another byte order; {_AGAIN}")

    def _text(self, name: str, default: str = "") -> str:
        return self._bytes(name).decode("utf-8", "replace").strip() if name in self.members else default

    def _bytes(self, name: str) -> bytes:
        if name not in self.members:
            raise InputError(f"{self.path}: the archive lacks {name!r}; {_AGAIN}")
        return self.archive.read(self.members[name])

    def declaration(self) -> str | None:
        """What the file says about its outputs."""
        name = f"extra/{DECLARATION}"
        return self._text(name) if name in self.members else None

    def graph(self) -> Graph:
        """The program, ready to run."""
        program: Any = json.loads(self._bytes("models/model.json"))
        if program["schema_version"]["major"] != 8:
            raise InputError(
                f"{self.path}: its format (schema {program['schema_version']['major']}) is unknown; {_AGAIN}"
            )
        module = program["graph_module"]
        tensors = {
            **self._tensors("data/weights/", "model_weights_config.json"),
            **self._tensors("data/constants/", "model_constants_config.json"),
        }
        graph = Graph(module["graph"], module["signature"], tensors, str(self.path))
        self._set_batch(
            graph, module["graph"]["tensor_values"][graph.input_name]["sizes"], program["range_constraints"]
        )
        return graph

    def _tensors(self, folder: str, config: str) -> dict[str, Tensor]:
        entries: Any = json.loads(self._bytes(folder + config))["config"]
        return {str(name): self._tensor(folder, str(name), entry) for name, entry in entries.items()}

    def _tensor(self, folder: str, name: str, entry: Any) -> Tensor:
        torch: Any = import_module("torch")

        if entry["use_pickle"] is not False or not str(entry["path_name"]).startswith(("weight_", "tensor_")):
            raise InputError(f"{self.path}: {name!r} is stored as a pickle, which is never loaded; {_AGAIN}")
        meta = entry["tensor_meta"]
        if meta["dtype"] not in DTYPES:
            raise InputError(f"{self.path}: {name!r} has an unusual type of number; {_AGAIN}")
        dtype: Any = getattr(torch, DTYPES[meta["dtype"]])
        sizes = [_whole(size["as_int"]) for size in meta["sizes"]]
        strides = [_whole(stride["as_int"]) for stride in meta["strides"]]
        offset = _whole(meta["storage_offset"]["as_int"])
        raw = self._bytes(folder + str(entry["path_name"]))
        if 0 in sizes:
            return torch.empty(sizes, dtype=dtype)
        end = offset + 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        if len(raw) % dtype.itemsize or end * dtype.itemsize > len(raw):
            raise InputError(f"{self.path}: {name!r} holds fewer numbers than the file says; {_AGAIN}")
        return torch.frombuffer(bytearray(raw), dtype=dtype).as_strided(sizes, strides, offset)

    def _set_batch(self, graph: Graph, sizes: Any, ranges: Any) -> None:
        graph.sample = tuple(_whole(size["as_int"]) if "as_int" in size else None for size in sizes[1:])
        first = sizes[0]
        if "as_int" in first:
            graph.least = graph.most = max(1, _whole(first["as_int"]))
            return
        symbol = _SYMBOL.fullmatch(first["as_expr"]["expr_str"])
        if symbol is None:
            raise InputError(
                f"{self.path}: only some batch sizes fit this model; export it with a free batch dimension"
            )
        limits = ranges.get(symbol[1] or symbol[2], {})
        graph.least = max(1, limits.get("min_val") or 1)
        graph.most = limits.get("max_val")
        if graph.most is not None and graph.most < graph.least:
            raise InputError(f"{self.path}: no batch size fits this model; export it with a free batch dimension")


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(value)
    return value
