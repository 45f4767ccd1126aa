"""Several processes, each with its share of a batch, learn what one process learns."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from certcal import InputError
from certcal.lab.training import train
from certcal.lab.training._processes import Processes
from tests.accelerator import accelerator
from tests.training.digits import ROOT, Modern, Stopped, data, network, numbers, small, stop_at

PLAN = small("smoothadv", pieces=3, batch=75, augment="crop+flip")
# Methods that look at a whole batch, whatever its pieces.
TOGETHER = [small(method, pieces=3, batch=150) for method in ("acce-act-star-sum", "exact-act-ahead", "mmce")]

# Two processes as torchrun would start them, but for what takes long to load, which is loaded once.
SCRIPT = """
import json, os, sys
import numpy as np
import torch
from torch import distributed
from certcal.data import Inputs
from certcal.lab.training import Recipe, train
from tests.training.digits import Modern, network

out, data = sys.argv[1], Inputs.from_arrays(**np.load(sys.argv[2]))
plan, *others = map(Recipe.from_dict, json.loads(sys.argv[3]))

children = []
for rank in ("0", "1"):
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        os.environ |= {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
        distributed.init_process_group("gloo")
        found = train(Modern(), data, plan, test=data, device="cpu", out=out)
        losses = [train(network(), data, each, device="cpu").history[-1]["loss"] for each in others]
        losses.insert(0, found.history[-1]["loss"])
        os.write(1, f"{rank} {found.resumed} {found.folder is None} {json.dumps(losses)}\\n".encode())
        os._exit(0)
    children.append(child)
os._exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


def test_two_processes_have_the_loss_curve_of_one_and_go_on_where_it_stopped(tmp_path):
    some, out = data(150), tmp_path / "run"
    np.savez(tmp_path / "data.npz", inputs=some.inputs, labels=some.labels)  # which is quicker to load than digits
    whole = train(Modern(), some, PLAN, test=some, device="cpu")
    with pytest.raises(Stopped):
        train(
            *(Modern(), some, PLAN),
            **{"test": some, "device": "cpu", "out": out, "progress": stop_at(2), "checkpoint_seconds": 0},
        )
    before = json.loads((out / "state.json").read_text())["step"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    plans = [each.to_dict() for each in (PLAN, *TOGETHER)]
    command = [sys.executable, "-c", SCRIPT, str(out), str(tmp_path / "data.npz"), json.dumps(plans)]
    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "MASTER_PORT": port}, capture_output=True, text=True, check=True
    )
    told = sorted(line.split(maxsplit=3) for line in ran.stdout.splitlines())
    assert [line[:3] for line in told] == [["0", str(before), "False"], ["1", str(before), "True"]]
    assert told[0][3] == told[1][3]
    alone = [train(network(), some, replace(each, pieces=1), device="cpu").history[-1]["loss"] for each in TOGETHER]
    assert json.loads(told[0][3])[1:] == pytest.approx(alone, rel=1e-5)
    together = train(Modern(), some, PLAN, test=some, device="cpu", out=out)  # which is finished
    assert together.resumed == whole.history[-1]["step"]
    for one, other in zip(numbers(whole), numbers(together), strict=True):
        assert other == pytest.approx(one, rel=1e-4)
    states = whole.network.state_dict(), together.network.state_dict()
    assert all(torch.allclose(states[0][name], states[1][name], atol=1e-4) for name in states[0])


def test_there_must_be_a_piece_for_every_process():
    with pytest.raises(InputError, match="pieces: it is 3, but there are 4 processes; give 4, one for each"):
        Processes(0, 4).check(PLAN)


def test_each_process_of_a_machine_has_a_device_of_its_own(monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    processes = Processes(3, 4)
    with accelerator():
        assert [processes.device(word) for word in ("pretend", "pretend:0", "cpu")] == ["pretend:1", "pretend:0", "cpu"]
        monkeypatch.setenv("LOCAL_RANK", "2")
        with pytest.raises(InputError, match="there is no 'pretend:2' here"):
            processes.device("pretend")
