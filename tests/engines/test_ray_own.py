"""A Ray cluster of one's own: nobody else reaches it, and nothing of it is left."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from certcal.engines import EngineError, RayCluster
from tests.engines.ray_for_tests import PATHS
from tests.engines.tasks_for_tests import Squares
from tests.engines.test_local import alive
from tests.smoothing.drawing import X, Y

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
LISTENS = "0A"
# A process of the cluster that makes its folder anew whenever it is gone, and a driver that ends at once.
OUTLIVED = """
import os, subprocess, sys, tempfile
from certcal.engines._ray_connection import _removed_in_any_case

folder = tempfile.mkdtemp()
agent = '''
import contextlib, os, sys
print(flush=True)
while True:
    with contextlib.suppress(OSError):
        os.makedirs(sys.argv[1] + "/ray/logs", exist_ok=True)
'''
known = {**os.environ, "RAY_AUTH_TOKEN_PATH": folder + "/token"}
with _removed_in_any_case(folder):
    command = [sys.executable, "-c", agent, folder]
    below = subprocess.Popen(command, env=known, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    below.stdout.readline()
    print(folder, below.pid, flush=True)
    os._exit(1)
"""
# The child holds every descriptor of its parent, and lives until that is gone.
FORKS = """
import os, tempfile
from certcal.engines._ray_connection import _removed_in_any_case

folder = tempfile.mkdtemp()
read, write = os.pipe()
with _removed_in_any_case(folder):
    if os.fork() == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
print(os.path.exists(folder))
"""


def listening(ports):
    """Local addresses on which these ports are listened to, as the kernel writes them."""
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    sockets = [(*line[1].split(":"), line[3]) for line in lines]
    return {address for address, port, state in sockets if state == LISTENS and int(port, 16) in ports}


def processes():
    """Of this process and all below it."""
    found = [os.getpid()]
    for pid in found:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
                found += map(int, task.read_text().split())
    return set(found)


def test_a_cluster_of_ones_own_is_reached_from_this_machine_only_and_leaves_nothing(monkeypatch):
    import ray

    monkeypatch.setenv("PYTHONPATH", PATHS)
    monkeypatch.setenv("RAY_ADDRESS", "elsewhere:6379")  # which is for "auto"
    variables, handler, before = dict(os.environ), signal.getsignal(signal.SIGTERM), processes()
    with RayCluster(workers=1) as engine:
        (node,) = ray.nodes()
        folder = Path(ray._private.worker._global_node.get_temp_dir_path()).parent
        gcs = int(ray.get_runtime_context().gcs_address.rpartition(":")[2])
        assert listening({gcs, node["NodeManagerPort"], node["ObjectManagerPort"]}) <= LOOPBACK
        assert listening({gcs})
        assert folder.stat().st_mode & 0o077 == 0, "the password in it is nobody else's"
        assert dict(os.environ) == variables
        first = dict(engine.run(Squares(), range(3)))
        assert {piece: result[0] for piece, result in first.items()} == {0: 0, 1: 1, 2: 4}
        assert len(processes()) > len(before)
    assert not ray.is_initialized()
    assert processes() <= before
    assert not folder.exists()
    assert dict(os.environ) == variables
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_command_that_ray_ends_says_so_resumes_later_and_leaves_no_password_behind(tmp_path):
    np.savez(tmp_path / "data.npz", inputs=X[:4], labels=Y[:4])
    command = [sys.executable, "-m", "certcal", "sample", "--model", "tests.smoothing.models_for_tests:ends_ray"]
    command += ["--outputs", "logits", "--data", str(tmp_path / "data.npz"), "--sigma", "0.5", "-n", "100", "-q"]
    command += ["--engine", "ray", "--workers", "1", "-o", str(tmp_path / "run")]
    variables = {**os.environ, "PYTHONPATH": PATHS, "SEEN": str(tmp_path / "seen")}
    # Whatever removes the folder holds the pipe of errors open until it is done.
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    folder = Path((tmp_path / "seen").read_text())
    assert folder.name.startswith("certcal-")
    assert not folder.exists()
    assert (ran.returncode, ran.stdout) == (75, "")
    assert "certcal: error: Ray ended this process because its raylet or GCS is gone" in ran.stderr
    assert "the same command resumes" in ran.stderr


def test_what_outlives_a_cluster_of_ones_own_is_ended_and_does_not_bring_its_folder_back():
    ran = subprocess.run([sys.executable, "-c", OUTLIVED], capture_output=True, text=True, timeout=60, check=False)
    folder, agent = ran.stdout.split()
    try:
        assert not Path(folder).exists()
        assert not alive(int(agent))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(agent), signal.SIGKILL)


def test_a_forked_process_does_not_keep_the_folder_nor_its_parent():
    ran = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout, ran.stderr) == ("False\n", "")


def test_a_cluster_that_does_not_start_is_tried_again_and_leaves_nothing(monkeypatch):
    def fail(*_):
        begun.append(processes())
        raise OSError("out of luck\nin many words")

    begun, before = [], processes()
    monkeypatch.setattr("ray._private.services.get_node", fail)
    with pytest.raises(EngineError, match=r"Ray could not start a cluster here \(out of luck\); try again when"):
        list(RayCluster(workers=1).run(Squares(), [1]))
    assert len(begun) == 2
    assert all(len(those) > len(before) for those in begun)
    assert processes() <= before


def test_a_version_of_ray_without_passwords_is_refused_before_anything_begins(monkeypatch):
    monkeypatch.delattr("ray._raylet.AuthenticationTokenLoader")
    before = processes()
    with pytest.raises(EngineError, match=r"cannot ask for a password, .* pip install 'ray>=2\.52'"):
        list(RayCluster(workers=1).run(Squares(), [1]))
    assert processes() <= before
