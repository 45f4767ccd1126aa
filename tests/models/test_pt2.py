"""torch.export files, read without unpickling or evaluating anything in them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from certcal import InputError
from certcal.models import export_torch, load

BATCH = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def rewritten(path: Path, folder: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """The archive with some of its records changed."""
    records = {name.partition("/")[2]: data for name, data in members(path).items()}
    change(records)
    target = folder / "changed.pt2"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, data in records.items():
            archive.writestr(f"changed/{name}", data)
    return target


def edit(name: str, change: Callable[[Any], None]) -> Callable[[dict[str, bytes]], None]:
    """A change of one JSON record."""

    def apply(records: dict[str, bytes]) -> None:
        content = json.loads(records[name])
        change(content)
        records[name] = json.dumps(content).encode()

    return apply


def edit_graph(change: Callable[[Any], None]) -> Callable[[dict[str, bytes]], None]:
    return edit("models/model.json", lambda program: change(program["graph_module"]["graph"]))


def edit_weight(change: Callable[[Any], None]) -> Callable[[dict[str, bytes]], None]:
    return edit("data/weights/model_weights_config.json", lambda content: change(content["config"]["0.weight"]))


class Transformer(nn.Module):
    """Attention, layer norms, splitting, joining, softmax, sizes computed from the batch."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.split = nn.Linear(2, 12)
        self.norm = nn.LayerNorm(4)
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("scale", torch.tensor(0.7), persistent=False)
        self.last = nn.Linear(4, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        tokens = inputs.reshape(inputs.shape[0], 4, 2)
        query, key, value = self.split(tokens).chunk(3, dim=-1)
        mixed = F.scaled_dot_product_attention(query[:, None], key[:, None], value[:, None])[:, 0]
        mixed = self.dropout(self.norm(mixed)) * self.scale + torch.zeros(inputs.shape[0], 4, 4)
        joined = torch.cat([F.gelu(mixed), torch.tanh(mixed)], dim=1).mean(1)
        return torch.softmax(self.last(joined), dim=1)


class Convolution(nn.Module):
    """Padding, strides, batch norm, in-place operators, largest entries, two results of one operator."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.conv = nn.Conv2d(1, 4, 3, stride=2, padding="valid")
        self.norm = nn.BatchNorm2d(4)
        self.norm.running_mean.fill_(0.3)
        self.last = nn.Linear(4, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        images = F.pad(inputs.view(-1, 1, 2, 4), (1, 1, 1, 1), mode="reflect" if False else "constant")
        hidden = F.relu(self.norm(self.conv(images)), inplace=True)
        hidden += 1
        largest, place = hidden.flatten(2).max(dim=2)
        return self.last(largest + place.to(torch.float32))


class InputChanging(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(8, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        doubled = inputs.view(-1, 8).contiguous()
        return self.last(doubled.clone().mul_(2))


@pytest.mark.parametrize(
    "module",
    [
        Transformer(),
        Convolution(),
        InputChanging(),
        nn.Sequential(nn.Linear(8, 4), nn.ELU(), nn.Linear(4, 2), nn.LogSoftmax(1)),
    ],
    ids=lambda module: type(module).__name__,
)
def test_a_graph_computes_the_same_bits_as_torchs_own_loader(module: nn.Module, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    export_torch(module.eval(), path, outputs="logits", sample_shape=(8,))
    before = BATCH.copy()
    answers = load(path)(BATCH)
    assert np.array_equal(BATCH, before)
    with torch.inference_mode():
        expected = torch.export.load(path).module()(torch.from_numpy(BATCH)).numpy()
        plain = module(torch.from_numpy(BATCH)).numpy()
    assert np.array_equal(answers, expected)
    np.testing.assert_allclose(answers, plain, atol=1e-6)


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pt2") / "linear.pt2"
    torch.manual_seed(0)
    export_torch(nn.Sequential(nn.Linear(8, 3)).eval(), path, outputs="logits", sample_shape=(8,))
    return path


def exported(module: nn.Module, path: Path, dynamic: Any = None, rows: int = 4) -> Path:
    program = torch.export.export(module, (torch.zeros(rows, 8),), dynamic_shapes=dynamic)
    torch.export.save(program, path)
    return path


def test_what_comes_out_of_an_exported_file_is_never_guessed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"outputs is needed for .*model.pt2"):
        load(exported(nn.Linear(8, 2).eval(), tmp_path / "model.pt2"))


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 6])
@pytest.mark.parametrize("limits", [None, (3, 5), (2, None)])
def test_batches_that_do_not_fit_are_filled_and_cut(rows: int, limits: Any, tmp_path: Path) -> None:
    module = nn.Linear(8, 2).eval()
    dim = None if limits is None else torch.export.Dim("batch", min=limits[0], max=limits[1])
    path = exported(module, tmp_path / "model.pt2", None if dim is None else ({0: dim},))
    model = load(path, "logits")
    with torch.inference_mode():
        expected = module(torch.from_numpy(BATCH[:rows])).numpy()
    np.testing.assert_allclose(model(BATCH[:rows]), expected, atol=1e-6)


class Training(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(inputs)[:, :2]


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, inputs: Tensor) -> Tensor:
        self.calls.add_(1)
        return inputs[:, :2] + self.calls


class Noise(nn.Module):
    def forward(self, inputs: Tensor) -> Tensor:
        return inputs[:, :2] + torch.rand_like(inputs[:, :2])


class Pair(nn.Module):
    def forward(self, inputs: Tensor) -> Any:
        return inputs[:, :2], inputs[:, 2:]


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (Training(nn.Dropout()), "behaves as in training.*dropout.*call .eval"),
        (Training(nn.BatchNorm1d(8)), "behaves as in training|changes its own buffers"),
        (Counter(), "changes its own (buffers|weights)"),
        (Noise(), "draws random numbers"),
        (Pair(), "returns something else than one tensor"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_network_whose_answers_are_no_function_of_the_sample_is_refused(
    module: nn.Module, sentence: str, tmp_path: Path
) -> None:
    path = exported(module, tmp_path / "model.pt2", ({0: torch.export.Dim("batch")},))
    with pytest.raises(InputError, match=sentence) as caught:
        load(path, "logits")(BATCH)
    assert "\n" not in str(caught.value)


# What a hostile file may not do. Each of these would leave a file behind if what is in the archive were run.


class Bomb:
    """Unpickled, it creates a folder."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


def torch_bomb(path: Path) -> bytes:
    stream = io.BytesIO()
    torch.save(Bomb(path), stream)
    return stream.getvalue()


def test_pickled_sample_inputs_are_never_opened(linear: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    path = rewritten(
        linear, tmp_path, lambda records: records.update({"data/sample_inputs/model.pt": torch_bomb(mark)})
    )
    assert np.array_equal(load(path)(BATCH), load(linear)(BATCH))
    assert not mark.exists()
    with contextlib.suppress(Exception):  # torch's own loader runs it, which is why it is not used
        torch.export.load(path)
    assert mark.exists()


def test_text_that_torch_would_evaluate_is_only_looked_at(linear: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = f"open({str(mark)!r}, 'w')"

    def change(program: Any) -> None:
        program["guards_code"] = [code]
        values = program["graph_module"]["graph"]["tensor_values"]
        values["linear"]["sizes"][0] = {"as_expr": {"expr_str": code, "hint": {"as_int": 2}}}
        program["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = code
        for node in program["graph_module"]["graph"]["nodes"]:
            node["metadata"] = {"stack_trace": code, "source_fn_stack": code}
            node["name"] = f"x = {code}"

    path = rewritten(linear, tmp_path, edit("models/model.json", change))
    assert np.array_equal(load(path)(BATCH), load(linear)(BATCH))
    assert not mark.exists()


def test_a_batch_size_given_as_code_is_refused(linear: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    def change(graph: Any) -> None:
        name = graph["inputs"][-1]["as_tensor"]["name"]
        graph["tensor_values"][name]["sizes"][0]["as_expr"]["expr_str"] = f"open({str(mark)!r}, 'w')"

    with pytest.raises(InputError, match="only some batch sizes fit this model"):
        load(rewritten(linear, tmp_path, edit_graph(change)))
    assert not mark.exists()


def test_a_pickled_weight_is_refused(linear: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    def change(records: dict[str, bytes]) -> None:
        edit_weight(lambda weight: weight.update(use_pickle=True))(records)
        records["data/weights/weight_0"] = torch_bomb(mark)

    with pytest.raises(InputError, match=r"'0.weight' is stored as a pickle, which is never loaded"):
        load(rewritten(linear, tmp_path, change))
    assert not mark.exists()


@pytest.mark.parametrize("name", ["custom_obj_0", "opaque_obj_0"])
def test_a_pickled_object_is_refused(name: str, linear: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    def change(records: dict[str, bytes]) -> None:
        config = {"thing": {"path_name": name, "is_param": False, "use_pickle": True, "tensor_meta": None}}
        records["data/constants/model_constants_config.json"] = json.dumps({"config": config}).encode()
        records[f"data/constants/{name}"] = pickle.dumps(Bomb(mark))

    with pytest.raises(InputError, match="'thing' is stored as a pickle"):
        load(rewritten(linear, tmp_path, change))
    assert not mark.exists()


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ("data/weights/model.pt", "its weights are pickled"),
        ("data/constants/model.pt", "its weights are pickled"),
        ("data/aotinductor/model/code.so", "holds compiled code, which is never run"),
    ],
)
def test_an_archive_with_pickles_or_programs_is_refused(
    record: str, sentence: str, linear: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        load(rewritten(linear, tmp_path, lambda records: records.update({record: b"x"})))


@pytest.mark.parametrize(
    "target",
    [
        "torch.ops.aten.from_file.default",
        "torch.ops.aten.save.default",
        "torch.ops.aten.warn.default",
        "torch.ops.aten.manual_seed.default",
        "torch.ops.aten.no_such.default",
        "torch.ops.aten.add",
        "torch.ops.aten.add.__class__",
        "torch.ops.aten.__class__.__init__",
        "torch.ops.prim.Print.default",
        "torch.ops.profiler._record_function_enter_new.default",
        "torch.ops.load_library",
        "torch.load",
        "torch.hub.load",
        "torch.serialization.os.system",
        "_operator.methodcaller",
        "_operator.attrgetter",
        "math.factorial",
        "os.system",
        "#custom:op",
    ],
)
def test_an_operator_that_does_not_compute_tensors_is_refused(target: str, linear: Path, tmp_path: Path) -> None:
    def change(graph: Any) -> None:
        graph["nodes"][0]["target"] = target

    with pytest.raises(InputError, match=r"uses the operator .*, which is not run from a file"):
        load(rewritten(linear, tmp_path, edit_graph(change)))


@pytest.mark.parametrize(
    "change",
    [
        lambda weight: weight["tensor_meta"]["sizes"].__setitem__(0, {"as_int": 4}),
        lambda weight: weight["tensor_meta"]["strides"].__setitem__(0, {"as_int": 800}),
        lambda weight: weight["tensor_meta"].update(storage_offset={"as_int": 1}),
        lambda weight: weight["tensor_meta"].update(storage_offset={"as_int": -1}),
        lambda weight: weight["tensor_meta"].update(dtype=8),
        lambda weight: weight["tensor_meta"].update(dtype=99),
        lambda weight: weight["tensor_meta"].update(sizes=[{"as_int": 10**12}] * 4),
        lambda weight: weight["tensor_meta"].update(sizes=[]),
        lambda weight: weight.update(tensor_meta=None),
        lambda weight: weight.update(path_name="weight_../../../etc/passwd"),
        lambda weight: weight.clear(),
    ],
)
def test_a_weight_that_does_not_fit_its_bytes_is_one_sentence(change: Any, linear: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(rewritten(linear, tmp_path, edit_weight(change)))
    assert "changed.pt2" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        edit("models/model.json", lambda program: program["schema_version"].update(major=9)),
        edit("models/model.json", lambda program: program.clear()),
        edit_graph(lambda graph: graph["nodes"].append(graph["nodes"][0])),
        edit_graph(lambda graph: graph["nodes"][0]["inputs"].pop(0)),
        edit_graph(lambda graph: graph["nodes"][0]["inputs"].pop(1)),
        edit_graph(lambda graph: graph["nodes"][0]["inputs"][0].update(name="nothing")),
        edit_graph(lambda graph: graph["nodes"][0]["inputs"][0].update(arg={"as_tensor": {"name": "later"}})),
        edit_graph(lambda graph: graph["nodes"][0]["inputs"][0].update(arg={"as_graph": {}})),
        edit_graph(lambda graph: graph["nodes"][0]["inputs"][0].update(arg={"as_ints": ["a"]})),
        edit_graph(lambda graph: graph["nodes"][0].update(outputs=[{"as_custom_obj": {}}])),
        edit_graph(lambda graph: graph["nodes"][0].update(outputs=[])),
        edit_graph(lambda graph: graph.update(nodes=3)),
        lambda records: records.update({"models/model.json": b"["}),
        lambda records: records.update({"models/model.json": b"[" * 100_000}),
        lambda records: records.update({"models/model.json": b"\xff"}),
        lambda records: records.update({"byteorder": b"big"}),
        lambda records: records.update({"archive_format": b"zip"}),
        lambda records: records.pop("models/model.json"),
        lambda records: records.pop("data/weights/weight_0"),
        lambda records: records.pop("data/weights/model_weights_config.json"),
        lambda records: records.clear(),
    ],
)
def test_a_changed_archive_is_one_sentence(change: Any, linear: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(rewritten(linear, tmp_path, change), "logits")(BATCH)
    assert "changed.pt2" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_archive_that_zip_readers_may_read_in_two_ways_is_refused(linear: Path, tmp_path: Path) -> None:
    twice = tmp_path / "twice.pt2"
    twice.write_bytes(linear.read_bytes())
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(twice, "a") as archive:
        archive.writestr(next(name for name in members(linear) if name.endswith("weight_0")), b"x")
    with pytest.raises(InputError, match="holds 'data/weights/weight_0' twice"):
        load(twice)
    packed = tmp_path / "packed.pt2"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members(linear).items():
            archive.writestr(name, data)
    with pytest.raises(InputError, match="the archive is compressed"):
        load(packed)


def test_every_way_of_cutting_an_archive_short_or_flipping_a_byte_is_noticed(linear: Path, tmp_path: Path) -> None:
    whole = linear.read_bytes()
    path = tmp_path / "changed.pt2"
    for length in range(1, len(whole), 211):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            load(path)
    expected = load(linear)(BATCH)
    refused = 0
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with contextlib.suppress(InputError):
            refused += 1
            assert np.array_equal(load(path, "logits")(BATCH), expected)  # a byte that nothing depends on
            refused -= 1
    assert refused > 10
