"""Models as bytes: what arrives on a machine without the files is the same model."""

import shutil

import numpy as np
import pytest

from certcal.models import Source, load, wrap
from certcal.models.networks import save_weights
from certcal.models.protocol import PackedSource
from tests.models.makers_for_tests import FITTED

HERE = "tests.models.makers_for_tests"

PROBE = np.random.default_rng(0).random((3, 1, 28, 28)).astype(np.float32)


@pytest.mark.parametrize("suffix", ["onnx", "safetensors"])
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


def test_the_weights_of_a_network_by_name_are_packed_with_it(tmp_path):
    path = tmp_path / "fitted.safetensors"
    save_weights(FITTED, path)
    here = load(f"{HERE}:unfitted", weights=path)
    packed = here.source.packed()
    path.unlink()
    there = packed.load()
    assert there.description == here.description == f"{HERE}:unfitted with fitted.safetensors (torch module)"
    assert there.fingerprint(PROBE[:, 0, 0, :4]) == here.fingerprint(PROBE[:, 0, 0, :4])
    np.testing.assert_array_equal(there(PROBE[:, 0, 0, :4]), wrap(FITTED)(PROBE[:, 0, 0, :4]))


def test_a_name_stays_a_name():
    source = Source("operator:neg", "logits")
    assert source.packed() is source
