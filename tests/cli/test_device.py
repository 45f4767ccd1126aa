"""``--device``: one word for where a model computes, and a sentence where that is not there."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certcal.models.devices import DeviceMemoryWarning
from certcal.smoothing import open_run
from tests.accelerator import accelerator
from tests.smoothing.drawing import X, Y, assert_same_counts

MODEL = ["--model", "tests.smoothing.networks_for_tests:NETWORK"]


@pytest.fixture
def data(tmp_path: Path) -> list[Any]:
    np.savez(tmp_path / "data.npz", inputs=(X - X.min()) / (X.max() - X.min()), labels=Y)
    return ["--data", tmp_path / "data.npz"]


def test_a_run_is_drawn_on_the_device_and_smaller_batches_are_said_once(
    certcal_command: Any, data: list[Any], tmp_path: Path
) -> None:
    settings = [*MODEL, *data, "--sigma", "0.5", "-n", "100", "--n0", "10", "--batch", "64"]
    assert certcal_command("sample", *settings, "--device", "cpu", "-o", tmp_path / "cpu").code == 0
    with accelerator(memory=100) as state, warnings.catch_warnings():
        warnings.simplefilter("default", DeviceMemoryWarning)  # as in an ordinary process
        ran = certcal_command("sample", *settings, "--device", "pretend:1", "-o", tmp_path / "run")
        assert state.operations > 0
    assert ran.code == 0
    assert re.fullmatch(
        r"certcal: .*64 inputs do not fit into the memory of pretend:1 .* gets 16 at a time.*\n", ran.err
    )
    assert_same_counts(open_run(tmp_path / "run"), open_run(tmp_path / "cpu"))


@pytest.mark.parametrize(
    "command",
    [
        ["sample", "--sigma", "0.5", "-n", "10", "-o", "out"],
        ["decide", "--sigma", "0.5", "-n", "10", "--radius", "0.5", "-o", "out.json"],
        ["attack", "--epsilon", "0.1", "-o", "out.json"],
    ],
    ids=["sample", "decide", "attack"],
)
def test_a_device_that_is_not_there_is_one_sentence_and_nothing_is_written(
    certcal_command: Any, data: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = certcal_command(*command, *MODEL, *data, "--device", "cuda:1")
    assert (ran.code, ran.out) == (2, "")
    assert "--device: there is no 'cuda:1' here, only cpu; give one of these, or 'auto'" in " ".join(ran.err.split())
    assert [each.name for each in tmp_path.iterdir()] == ["data.npz"]


def test_an_attack_runs_on_the_device(certcal_command: Any, data: list[Any]) -> None:
    command = ["attack", *MODEL, *data, "--epsilon", "0.1", "--steps", "3", "--json"]
    expected = certcal_command(*command, "--device", "cpu")
    with accelerator() as state:
        ran = certcal_command(*command, "--device", "pretend")
        assert state.operations > 100
    assert ran.code == 0
    found, same = (json.loads(each.out) for each in (ran, expected))
    assert found.pop("provenance")["fingerprints"] == same.pop("provenance")["fingerprints"]
    assert found == same


def test_a_cluster_gives_a_worker_a_gpu_where_the_device_is_one() -> None:
    from certcal.cli.engine import pop_engine

    def gpus(given: float | None, device: str) -> Any:
        values = {"engine": "ray", "address": None, "workers": None, "gpus": given, "device": device}
        return vars(pop_engine(values))["gpus"]

    assert [gpus(None, "cuda"), gpus(None, "auto"), gpus(0.5, "cuda"), gpus(0.0, "cuda")] == [1.0, 0.0, 0.5, 0.0]
