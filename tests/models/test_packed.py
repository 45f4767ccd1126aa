"""Models as bytes: what arrives on a machine without the files is the same model."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from certcal.models import Source, load
from certcal.models._packed import PackedSource

PROBE = np.random.default_rng(0).random((3, 1, 28, 28)).astype(np.float32)


@pytest.mark.parametrize("suffix", ["onnx", "pt2", "safetensors"])
def test_a_packed_file_is_loaded_where_the_file_is_not(lenet_files, tmp_path, suffix):
    path = tmp_path / lenet_files[suffix].name
    shutil.copy(lenet_files[suffix], path)
    here = load(path)
    packed = here.source.packed()
    path.unlink()
    there = packed.load()
    assert there.description == here.description
    assert there.outputs == here.outputs
    assert there.fingerprint(PROBE) == here.fingerprint(PROBE)
    np.testing.assert_array_equal(there(PROBE), here(PROBE))


def test_data_files_beside_a_model_are_packed_with_it(lenet_files, tmp_path):
    import onnx

    path = tmp_path / "model" / "net.onnx"
    (path.parent / "parts").mkdir(parents=True)
    model = onnx.load(lenet_files["onnx"])
    onnx.save(model, path, save_as_external_data=True, location="parts/weights.bin", size_threshold=100)
    here = load(path)
    packed = here.source.packed()
    assert isinstance(packed, PackedSource)
    assert list(packed.files) == ["net.onnx", "parts/weights.bin"]
    answers = here(PROBE)
    shutil.rmtree(path.parent)
    there = packed.load()
    assert there.fingerprint(PROBE) == here.fingerprint(PROBE)
    np.testing.assert_array_equal(there(PROBE), answers)


def test_a_name_stays_a_name():
    source = Source("operator:neg", "logits")
    assert source.packed() is source
