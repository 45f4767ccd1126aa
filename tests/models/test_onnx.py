"""ONNX files: shapes, batches, and what a hostile one may not do."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from certcal import InputError
from certcal.models import load, wrap
from certcal.models._onnx import providers

FLOAT = TensorProto.FLOAT
WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2)


def linear(batch: Any = "batch", weight: Any = None, extra_nodes: Any = (), outputs: Any = None, **kinds: Any) -> Any:
    """A model that multiplies samples of three numbers by a 3 × 2 matrix."""
    weight = numpy_helper.from_array(WEIGHT, "weight") if weight is None else weight
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["input", "weight"], ["output"]), *extra_nodes],
        "linear",
        [helper.make_tensor_value_info("input", kinds.get("kind", FLOAT), [batch, 3])],
        outputs or [helper.make_tensor_value_info("output", FLOAT, [batch, 2])],
        initializer=[weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def saved(model: Any, folder: Path, name: str = "model.onnx") -> Path:
    (folder / name).write_bytes(model.SerializeToString())
    return folder / name


def external(location: str, **more: str) -> Any:
    """The weight, kept in a file elsewhere."""
    tensor = TensorProto(name="weight", data_type=FLOAT, dims=[3, 2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


BATCH = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)


def test_an_onnx_file_computes_what_it_says(tmp_path: Path) -> None:
    model = load(saved(linear(), tmp_path), "probabilities")
    np.testing.assert_allclose(model(BATCH), BATCH @ WEIGHT, rtol=1e-6)
    assert (model.outputs, model.description) == ("probabilities", "model.onnx (ONNX)")


def test_what_comes_out_of_an_onnx_file_is_never_guessed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"outputs: it is needed for .*model.onnx"):
        load(saved(linear(), tmp_path))
    wrong = linear()
    wrong.metadata_props.add(key="certcal.outputs", value="scores")
    with pytest.raises(InputError, match=r"declares its outputs as 'scores'"):
        load(saved(wrong, tmp_path))


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 7])
def test_a_fixed_batch_is_filled_and_cut(rows: int, tmp_path: Path) -> None:
    model = load(saved(linear(batch=4), tmp_path), "logits")
    np.testing.assert_allclose(model(BATCH[:rows]), BATCH[:rows] @ WEIGHT, rtol=1e-6)


def test_a_session_is_wrapped_too(tmp_path: Path) -> None:
    session = onnxruntime.InferenceSession(linear().SerializeToString(), providers=["CPUExecutionProvider"])
    model = wrap(session, "logits")
    np.testing.assert_allclose(model(BATCH), BATCH @ WEIGHT, rtol=1e-6)
    assert model.source is None
    assert len(model.fingerprint(BATCH)) == 64
    with pytest.raises(InputError, match="outputs: it is needed for an onnxruntime session"):
        wrap(session)


def test_a_model_runs_on_as_many_threads_as_asked_and_on_one_otherwise(tmp_path: Path) -> None:
    path = saved(linear(), tmp_path)
    model: Any = load(path, "logits")
    assert model.session.get_session_options().intra_op_num_threads == 1
    more: Any = load(path, "logits", threads=2)
    assert more.session.get_session_options().intra_op_num_threads == 2
    with pytest.raises(InputError, match="threads is 0"):
        load(path, "logits", threads=0)


def test_the_batch_reaches_the_session_and_the_answer_comes_back_without_a_copy(tmp_path: Path) -> None:
    model: Any = load(saved(linear(), tmp_path), "logits")
    answer = np.zeros((7, 2), np.float32)
    seen: list[Any] = []

    class Recorder:
        def run(self, names: list[str], feed: dict[str, Any]) -> list[Any]:
            seen.append((names, feed))
            return [answer]

    model.session = Recorder()
    assert model(BATCH) is answer
    assert seen == [(["output"], {"input": BATCH})]
    assert seen[0][1]["input"] is BATCH


def test_labels_beside_the_probabilities_are_left_aside(tmp_path: Path) -> None:
    model = linear(
        extra_nodes=[helper.make_node("ArgMax", ["output"], ["label"], axis=1, keepdims=0)],
        outputs=[
            helper.make_tensor_value_info("label", TensorProto.INT64, ["batch"]),
            helper.make_tensor_value_info("output", FLOAT, ["batch", 2]),
        ],
    )
    np.testing.assert_allclose(load(saved(model, tmp_path), "logits")(BATCH), BATCH @ WEIGHT, rtol=1e-6)


def test_two_matrices_are_refused(tmp_path: Path) -> None:
    model = linear(
        extra_nodes=[helper.make_node("Softmax", ["output"], ["soft"])],
        outputs=[helper.make_tensor_value_info(name, FLOAT, ["batch", 2]) for name in ("output", "soft")],
    )
    with pytest.raises(InputError, match=r"returns output .* soft .*; export it with one output"):
        load(saved(model, tmp_path), "logits")


def zipped(**classes: Any) -> Any:
    """As skl2onnx converts a classifier: each sample's probabilities as a map from its classes."""
    zipmap = helper.make_node("ZipMap", ["output"], ["maps"], domain="ai.onnx.ml", **classes)
    key = TensorProto.STRING if "classlabels_strings" in classes else TensorProto.INT64
    value = helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, []))
    maps = helper.make_value_info("maps", helper.make_sequence_type_proto(value))
    label = helper.make_node("ArgMax", ["output"], ["label"], axis=1, keepdims=0)
    labels = helper.make_tensor_value_info("label", TensorProto.INT64, ["batch"])
    model = linear(extra_nodes=[label, zipmap], outputs=[labels, maps])
    model.opset_import.add(domain="ai.onnx.ml", version=1)
    return model


def test_maps_from_classes_to_probabilities_become_columns(tmp_path: Path) -> None:
    model = load(saved(zipped(classlabels_int64s=[0, 1]), tmp_path), "logits")
    np.testing.assert_allclose(model(BATCH), BATCH @ WEIGHT, rtol=1e-6)
    swapped = load(saved(zipped(classlabels_int64s=[1, 0]), tmp_path), "logits")
    np.testing.assert_allclose(swapped(BATCH), (BATCH @ WEIGHT)[:, ::-1], rtol=1e-6)
    for classes, shown in (({"classlabels_int64s": [1, 2]}, "1, 2"), ({"classlabels_strings": ["a", "b"]}, "'a', 'b'")):
        with pytest.raises(InputError, match=f"returns maps from the classes {shown}; .*options=.'zipmap': False."):
            load(saved(zipped(**classes), tmp_path), "logits")(BATCH)


def test_a_double_precision_input_is_cast_and_others_are_refused(tmp_path: Path) -> None:
    double = linear(kind=TensorProto.DOUBLE, weight=numpy_helper.from_array(WEIGHT.astype(float), "weight"))
    double.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    answers = load(saved(double, tmp_path), "logits")(BATCH)
    assert answers.dtype == np.float64
    np.testing.assert_allclose(answers, BATCH.astype(float) @ WEIGHT)
    whole = linear(kind=TensorProto.INT64, weight=numpy_helper.from_array(WEIGHT.astype(np.int64), "weight"))
    whole.graph.node[0].output[0] = "product"
    whole.graph.node.append(helper.make_node("Cast", ["product"], ["output"], to=FLOAT))
    with pytest.raises(InputError, match=r"inputs input \(tensor\(int64\)\); .*: export it with a Cast from float32"):
        load(saved(whole, tmp_path), "logits")
    two = linear()
    two.graph.initializer.pop()
    two.graph.input.add().CopyFrom(helper.make_tensor_value_info("weight", FLOAT, [3, 2]))
    with pytest.raises(InputError, match=r"takes the inputs input .*, weight"):
        load(saved(two, tmp_path), "logits")


def test_a_network_that_returns_too_few_rows_is_one_sentence(tmp_path: Path) -> None:
    model = linear(extra_nodes=[helper.make_node("ReduceSum", ["output"], ["sum"], keepdims=1)])
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("sum", FLOAT, [None, None]))
    with pytest.raises(InputError, match=r"returns shape \(1, 1\) for a batch of shape \(7, 3\)"):
        load(saved(model, tmp_path), "logits")(BATCH)


# Data files.


def test_data_beside_the_model_is_read_and_part_of_its_digits(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "weight.bin").write_bytes(WEIGHT.tobytes())
    path = saved(linear(weight=external("parts/weight.bin")), tmp_path)
    model = load(path, "logits")
    np.testing.assert_allclose(model(BATCH), BATCH @ WEIGHT, rtol=1e-6)
    (tmp_path / "parts" / "weight.bin").write_bytes((2 * WEIGHT).tobytes())
    assert load(path, "logits").fingerprint(BATCH) != model.fingerprint(BATCH)


@pytest.mark.parametrize(
    "location",
    ["../secret.bin", "sub/../../secret.bin", "{outside}/secret.bin", "", "..", "C:\\secret.bin", "a\\..\\b"],
)
def test_data_outside_the_models_folder_is_refused(location: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(WEIGHT.tobytes())
    path = saved(linear(weight=external(location.format(outside=tmp_path))), folder)
    with pytest.raises(InputError, match=r"outside the model's folder, which is refused") as caught:
        load(path, "logits")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("link", ["file", "folder"])
def test_data_reached_by_a_link_is_refused(link: str, tmp_path: Path) -> None:
    folder, outside = tmp_path / "model", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "weight.bin").write_bytes(WEIGHT.tobytes())
    if link == "file":
        os.symlink(outside / "weight.bin", folder / "weight.bin")
    else:
        os.symlink(outside, folder / "sub")
    location = "weight.bin" if link == "file" else "sub/weight.bin"
    with pytest.raises(InputError, match="is reached by a symbolic link, which is refused"):
        load(saved(linear(weight=external(location)), folder), "logits")


def in_a_branch(tensor: Any) -> Any:
    branch = helper.make_graph(
        [helper.make_node("Constant", [], ["b"], value=tensor)],
        "branch",
        [],
        [helper.make_tensor_value_info("b", FLOAT, [3, 2])],
    )
    condition = numpy_helper.from_array(np.array(True), "condition")
    model = linear(
        extra_nodes=[helper.make_node("If", ["condition"], ["chosen"], then_branch=branch, else_branch=branch)]
    )
    model.graph.initializer.append(condition)
    return model


def in_a_function(tensor: Any) -> Any:
    model = linear()
    model.functions.append(
        helper.make_function(
            "custom", "F", [], ["x"], [helper.make_node("Constant", [], ["x"], value=tensor)], model.opset_import
        )
    )
    return model


def in_a_sparse_weight(tensor: Any) -> Any:
    model = linear()
    indices = numpy_helper.from_array(np.zeros(1, np.int64), "i")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(tensor, indices, [3, 2]))
    return model


def in_an_attribute_list(tensor: Any) -> Any:
    node = helper.make_node("F", [], ["x"], domain="custom")
    node.attribute.append(helper.make_attribute("values", [tensor]))
    return linear(extra_nodes=[node])


def in_training(tensor: Any) -> Any:
    model = linear()
    model.training_info.add().algorithm.initializer.append(tensor)
    return model


@pytest.mark.parametrize("hide", [in_a_branch, in_a_function, in_a_sparse_weight, in_an_attribute_list, in_training])
def test_data_outside_is_found_wherever_the_file_hides_it(hide: Any, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "secret.bin").write_bytes(WEIGHT.tobytes())
    with pytest.raises(InputError, match="outside the model's folder, which is refused"):
        load(saved(hide(external("../secret.bin")), tmp_path / "model"), "logits")


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ({"location": "none.bin"}, "data file 'none.bin' cannot be read"),
        ({"location": "sub"}, "not a regular file"),
        ({"location": "weight.bin", "offset": "20", "length": "24"}, "is shorter"),
        ({"location": "weight.bin", "offset": "-8"}, "is shorter"),
        ({"location": "weight.bin", "length": "many"}, "is shorter"),
    ],
)
def test_data_that_is_missing_or_too_short_is_one_sentence(entries: Any, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "weight.bin").write_bytes(WEIGHT.tobytes())
    with pytest.raises(InputError, match=sentence) as caught:
        load(saved(linear(weight=external(**entries)), tmp_path), "logits")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\x80\x04K\x01.", "not an ONNX file"),
        (b"hello", "not an ONNX file"),
        (b"PK\x03\x04" + bytes(50), "not an ONNX file"),
        (onnx.ModelProto(ir_version=9).SerializeToString(), "it has no graph"),
    ],
)
def test_a_file_that_is_no_model_is_one_sentence(data: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(data)
    with pytest.raises(InputError, match=sentence) as caught:
        load(tmp_path / "model.onnx", "logits")
    assert "\n" not in str(caught.value)


def test_every_way_of_cutting_an_onnx_file_short_is_one_sentence(tmp_path: Path) -> None:
    whole = linear().SerializeToString()
    path = tmp_path / "model.onnx"
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError) as caught:
            load(path, "logits")
        assert "\n" not in str(caught.value)


def test_an_operator_that_onnxruntime_does_not_know_is_one_sentence(tmp_path: Path) -> None:
    model = linear(extra_nodes=[helper.make_node("NoSuchOperator", ["output"], ["x"])])
    with pytest.raises(InputError, match="onnxruntime cannot open this model") as caught:
        load(saved(model, tmp_path), "logits")
    assert "\n" not in str(caught.value)


def test_devices_are_asked_for_in_the_words_of_onnxruntime() -> None:
    offered = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    assert providers("cuda:1", offered)[0] == ("CUDAExecutionProvider", {"device_id": 1, "use_tf32": 0})
    assert providers("auto", offered[1:]) == ["CPUExecutionProvider"]
