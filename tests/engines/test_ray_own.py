"""A Ray cluster of one's own: nobody else reaches it, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from certcal.engines import EngineError, RayCluster
from tests.engines.ray_for_tests import PATHS
from tests.engines.tasks_for_tests import Squares

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
LISTENS = "0A"
LOSES_AN_AGENT = """
import os, signal, ray
from pathlib import Path
from certcal.engines import RayCluster
from tests.engines.tasks_for_tests import Squares
from tests.engines.test_ray_own import processes

with RayCluster(workers=1) as engine:
    print(Path(ray._private.worker._global_node.get_temp_dir_path()).parent, flush=True)
    agents = [pid for pid in processes() if b"RuntimeEnvAgent" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(agents[0], signal.SIGKILL)
    while True:  # until Ray notices
        list(engine.run(Squares(), range(3)))
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


def test_a_process_that_ray_ends_because_an_agent_died_leaves_no_password_behind(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PATHS)
    # Whatever removes the folder holds the pipe of errors open until it is done.
    driver = subprocess.run([sys.executable, "-c", LOSES_AN_AGENT], capture_output=True, text=True, check=False)
    folder = Path(driver.stdout.strip())
    assert folder.name.startswith("certcal-"), driver.stderr
    assert driver.returncode != 0
    assert not folder.exists()


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
