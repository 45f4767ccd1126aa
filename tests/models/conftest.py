"""Model files that several tests read."""

from pathlib import Path

import pytest

from certcal.models import export_onnx
from certcal.models.networks import LeNet, save_weights


@pytest.fixture(scope="session")
def lenet() -> LeNet:
    return LeNet(mean=0.3, std=0.5, seed=3).eval()


@pytest.fixture(scope="session")
def lenet_files(lenet: LeNet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same network as ONNX and weights."""
    folder = tmp_path_factory.mktemp("lenet")
    files = {suffix: folder / f"lenet.{suffix}" for suffix in ("onnx", "safetensors")}
    export_onnx(lenet, files["onnx"])
    save_weights(lenet, files["safetensors"])
    return files
