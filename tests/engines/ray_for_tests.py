"""A Ray cluster of several nodes on this machine, which listens to this machine alone."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
# Where workers find the tests, and the very sources that are tested.
PATHS = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # as use_loopback, in processes that are started
    "PYTHONPATH": PATHS,
}
# How soon the head finds out that a node is gone.
_SOON = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 2}


class Nodes:
    """A head without CPUs, where drivers join, and nodes with one CPU each, where workers are."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._shared = {"node_ip_address": "127.0.0.1", "include_dashboard": False, "include_log_monitor": False}
        head = self._shared | {"num_cpus": 0, "no_monitor": True, "_system_config": _SOON}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._nodes: list[Any] = []

    @property
    def address(self) -> str:
        return self._cluster.address

    def fill(self, count: int) -> None:
        """Add nodes until there are so many."""
        while len(self._nodes) < count:
            self._nodes.append(self._cluster.add_node(num_cpus=1, **self._shared))

    def kill_that_of(self, process: int) -> None:
        """SIGKILL for the node of a worker and everything on it."""
        node = next(node for node in self._nodes if process in _children(node))
        self._nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        self._cluster.shutdown()


def _children(node: Any) -> list[int]:
    raylet = node.all_processes["raylet"][0].process.pid
    return [int(pid) for pid in Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split()]


def use_loopback(patch: pytest.MonkeyPatch) -> None:
    """Keep Ray from turning the loopback address into that of the machine."""
    from ray._private import ray_constants

    patch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", False)


@contextmanager
def several_nodes() -> Iterator[Nodes]:
    folder = tempfile.mkdtemp(prefix="nodes-", dir="/tmp")  # not pytest's: paths of sockets are short
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (ENVIRONMENT | {"RAY_TMPDIR": folder}).items():
            patch.setenv(name, value)
        use_loopback(patch)
        nodes = Nodes()
        try:
            yield nodes
        finally:
            nodes.close()
            shutil.rmtree(folder, ignore_errors=True)


@dataclass
class StallsOnce:
    """A task that does not come back from one piece, the first time: it says which process it is in, and waits."""

    task: Any
    at: str
    pipe: Path

    def prepare(self) -> None:
        self.task.prepare()

    def __call__(self, piece: Any) -> Any:
        marker = self.pipe.with_suffix(".met")
        if str(piece) == self.at and not marker.exists():
            marker.touch()
            self.pipe.write_text(str(os.getpid()))
            while True:
                signal.pause()
        return self.task(piece)


@contextmanager
def node_killed_at(nodes: Nodes, pipe: Path) -> Iterator[Future[None]]:
    """Kill the node where a task stalls, as soon as it does."""
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        killed = pool.submit(lambda: nodes.kill_that_of(int(pipe.read_text())))
        yield killed
        killed.result()
