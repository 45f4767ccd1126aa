"""Writing models."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from certcal import InputError
from certcal.models import export_onnx, load, wrap
from certcal.models.networks import MLP, PreActResNet, ResNet


@pytest.mark.parametrize("network", [ResNet(8), PreActResNet(width=4), MLP(5, (4,), 3)], ids=lambda n: n.description)
def test_a_network_comes_back_with_the_same_answers(network: Any, tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    export_onnx(network.eval(), path)
    images = np.random.default_rng(0).random((3, *network.sample_shape), np.float32)
    np.testing.assert_allclose(load(path)(images), wrap(network)(images), rtol=1e-3, atol=1e-5)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_other_programs_can_run_what_is_written(lenet_files: dict[str, Path], lenet: Any) -> None:
    images = np.random.default_rng(0).random((3, 1, 28, 28), np.float32)
    session = onnxruntime.InferenceSession(lenet_files["onnx"], providers=["CPUExecutionProvider"])
    with torch.inference_mode():
        expected = lenet(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(session.run(None, {"input": images})[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("module", "options", "sentence"),
    [
        (nn.Linear(2, 2).eval(), {"outputs": "logits"}, "sample_shape is needed for Linear"),
        (nn.Linear(2, 2).eval(), {"sample_shape": (2,)}, "outputs: it is needed for Linear"),
        (nn.Linear(2, 2), {"outputs": "logits", "sample_shape": (2,)}, "Linear is in training mode"),
        (nn.Linear(2, 2).eval(), {"outputs": "logits", "sample_shape": (0,)}, "sample_shape is 0"),
        (nn.Linear(2, 2).eval(), {"outputs": "logits", "sample_shape": (3,)}, "Linear cannot be written"),
        (MLP(2).eval(), {"outputs": "probabilities"}, "declares that it returns logits"),
        (
            len,
            {"outputs": "logits", "sample_shape": (2,)},
            "module is a builtin_function_or_method; pass a torch module",
        ),
    ],
)
def test_what_cannot_be_written_is_one_sentence_and_leaves_no_file(
    module: Any, options: Any, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        export_onnx(module, tmp_path / "model.onnx", **options)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_over_only_when_told(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("kept")
    with pytest.raises(InputError, match="exists and is not overwritten; choose another name"):
        export_onnx(MLP(3).eval(), path)
    assert path.read_text() == "kept"
    with pytest.raises(InputError, match=r"the file must end in \.onnx"):
        export_onnx(MLP(3).eval(), tmp_path / "model.bin")
    export_onnx(MLP(3).eval(), path, force=True)
    assert load(path).outputs == "logits"
