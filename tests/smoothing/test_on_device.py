"""Sampling on an accelerator: the same noise and the same counts, wherever the model computes."""

import pickle
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certcal
from certcal import InputError
from certcal.engines import RayCluster, task_of_worker
from certcal.models.devices import DeviceMemoryWarning
from certcal.smoothing import Run
from tests.accelerator import NAME, accelerator
from tests.smoothing.drawing import X, Y, assert_same_counts
from tests.smoothing.networks_for_tests import Noted

NETWORK = "tests.smoothing.networks_for_tests:NETWORK"


def draw(out: Path, **changes: Any) -> Run:
    given: dict[str, Any] = {"sigma": 0.5, "n": 200, "n0": 10, "batch": 64, "seed": 3}
    return certcal.sample(NETWORK, (X, Y), out=out, **(given | changes))


@pytest.mark.parametrize("doubles", [True, False], ids=["with float64", "without"])
def test_a_run_on_an_accelerator_has_the_counts_of_one_on_the_cpu(tmp_path: Path, doubles: bool) -> None:
    expected = draw(tmp_path / "cpu", device="cpu")
    with accelerator(doubles=doubles) as state:
        found = draw(tmp_path / "device")
        assert state.waits == 0
        assert state.to_host <= 24 * 210 // 64 + 60  # one copy per batch, and those of the tries before
    assert_same_counts(found, expected)
    assert found.manifest.versions["device"] == NAME
    assert expected.manifest.versions["device"] == "cpu"
    assert found.manifest.model.fingerprint == expected.manifest.model.fingerprint


def test_a_run_begun_on_the_cpu_is_continued_on_an_accelerator_and_the_other_way_round(tmp_path: Path) -> None:
    whole = draw(tmp_path / "whole", device="cpu", n=300)
    begun = draw(tmp_path / "run", device="cpu")
    with accelerator() as state:
        grown = draw(tmp_path / "run", device=NAME, n=300)
        assert state.operations > 0
    assert_same_counts(grown, whole, ("predicted", "votes", "histogram"))
    assert grown.manifest.versions == begun.manifest.versions  # the device that it began on
    with accelerator():
        draw(tmp_path / "back")
    assert_same_counts(draw(tmp_path / "back", n=300), whole, ("predicted", "votes", "histogram"))


def test_one_radius_is_decided_on_an_accelerator_as_on_the_cpu() -> None:
    given: dict[str, Any] = {"sigma": 0.5, "radius": 0.2, "n": 500, "batch": 64}
    expected = certcal.decide(NETWORK, (X, Y), device="cpu", **given)
    with accelerator() as state:
        found = certcal.decide(NETWORK, (X, Y), **given)
        assert state.operations > 0
    assert found.decision.tolist() == expected.decision.tolist()


def test_batches_that_do_not_fit_are_halved_in_a_run_which_is_said_once(tmp_path: Path) -> None:
    expected = draw(tmp_path / "cpu", device="cpu")
    with accelerator(memory=100), pytest.warns(DeviceMemoryWarning) as told:
        found = draw(tmp_path / "device")
    assert [str(each.message) for each in told] == [
        f"{NETWORK} (torch module): 64 inputs do not fit into the memory of pretend at once, so it gets 16 at a time; "
        "ask for batches of that size to spare the attempts"
    ]
    assert_same_counts(found, expected)


@pytest.mark.parametrize("device", ["cuda", "mps:3", "nothing"])
def test_a_device_that_is_not_there_is_refused_before_anything_is_written(tmp_path: Path, device: str) -> None:
    with pytest.raises(InputError, match=f"there is no '{device}' here, only cpu"):
        draw(tmp_path / "run", device=device)
    assert list(tmp_path.iterdir()) == []


class TwoWorkers:
    """Two workers as on this machine, who are sent the task; but in this process, where the accelerator is."""

    remote = shares_files = True

    def run(self, task: Any, pieces: Iterable[Any]) -> Generator[Any]:
        workers = [pickle.loads(pickle.dumps(task_of_worker(task, number))) for number in range(2)]
        for worker in workers:
            worker.prepare()
        for number, piece in enumerate(pieces):
            yield piece, workers[number % 2](piece)


def test_workers_take_the_accelerators_in_turn(tmp_path: Path) -> None:
    expected = draw(tmp_path / "cpu", device="cpu")
    for device, seen in (("auto", {f"{NAME}:0", f"{NAME}:1"}), (f"{NAME}:1", {f"{NAME}:1"}), ("cpu", {"cpu"})):
        with accelerator():
            Noted.seen.clear()
            found = draw(tmp_path / f"run-{device[-1]}", device=device, engine=TwoWorkers())
        assert_same_counts(found, expected)
        assert seen == Noted.seen


def test_a_cluster_is_not_asked_for_one_machines_device_nor_for_gpus_that_no_worker_has(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'cuda:1' is of one machine, and the work is for a cluster; give 'cuda'"):
        draw(tmp_path / "run", device="cuda:1", engine=RayCluster(gpus=1))
    with pytest.raises(InputError, match="gpus: a worker was promised none, and 'cuda' is the device; give 1"):
        draw(tmp_path / "run", device="cuda", engine=RayCluster())
    assert list(tmp_path.iterdir()) == []


def test_an_attack_verb_takes_the_device_as_well() -> None:
    unit = (X - X.min()) / (X.max() - X.min())
    given: dict[str, Any] = {"epsilon": 0.1, "steps": 3, "attacks": ("plus-true", "one-step"), "keep_inputs": True}
    expected = certcal.attack(NETWORK, (unit, Y), device="cpu", **given)
    with accelerator() as state:
        found = certcal.attack(NETWORK, (unit, Y), **given)
        assert state.operations > 100
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.attacked.inputs, two.attacked.inputs)  # pyright: ignore
