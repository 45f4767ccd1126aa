"""Workers on a Ray cluster: every piece once, whatever happens to workers, nodes and drivers."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

from certcal import InputError
from certcal.cli import cli
from certcal.cli.errors import run as command
from certcal.engines import EngineError, RayCluster
from certcal.models.devices import DeviceMemoryWarning
from certcal.smoothing import open_run
from tests.engines.ray_for_tests import ROOT, StallsOnce, node_killed_at, several_nodes, use_loopback
from tests.engines.tasks_for_tests import SENTENCE, Dies, Environment, Refuses, Squares, Stubborn, Warns
from tests.engines.test_local import alive
from tests.smoothing.drawing import HERE, X, Y, assert_same_counts, digests, draw


@pytest.fixture(scope="module")
def nodes():
    with several_nodes() as made:
        yield made


@pytest.fixture
def address(nodes):
    """Of a cluster with two nodes."""
    nodes.fill(2)
    return nodes.address


@pytest.fixture(autouse=True)
def on_this_machine(monkeypatch):
    use_loopback(monkeypatch)


def wait_until_ended(pids):
    for handle in [os.pidfd_open(pid) for pid in pids if alive(pid)]:
        assert select.select([handle], [], [], 60)[0], "a worker outlived its run by a minute"
        os.close(handle)


def test_every_piece_comes_back_once_and_pieces_are_taken_as_workers_become_free(address):
    taken = []

    def pieces():
        for piece in range(30):
            taken.append(piece)
            yield piece

    results = RayCluster(address, workers=4).run(Squares(), pieces())
    done = [next(results)]
    assert len(taken) <= 4 + 2, "one for each worker, and those ahead of a quick one"
    done += results
    assert sorted((piece, result[0]) for piece, result in done) == [(k, k**2) for k in range(30)]
    assert {result[1] for _, result in done} == {1}, "prepared once, before the first piece"
    assert os.getpid() not in {result[2] for _, result in done}
    assert list(RayCluster("nowhere:1").run(Squares(), [])) == [], "nothing to do needs no cluster"


def test_what_workers_warn_of_is_said_once_by_the_driver(address):
    with pytest.warns(DeviceMemoryWarning, match="batches of 50") as said:
        assert sorted(RayCluster(address, workers=2).run(Warns(), range(4))) == [(k, k) for k in range(4)]
    assert len(said) == 1


def test_a_worker_computes_on_its_threads_and_sees_no_gpu_and_the_driver_is_left_alone(address):
    names = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES"]
    before, handler = dict(os.environ), signal.getsignal(signal.SIGTERM)
    found = dict(RayCluster(address, workers=1).run(Environment(), names))
    assert found == {**dict.fromkeys(names[:3], "1"), "CUDA_VISIBLE_DEVICES": ""}
    assert dict(os.environ) == before
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_piece_whose_worker_dies_is_done_again_and_one_that_kills_every_worker_is_named(address, tmp_path):
    done = list(RayCluster(address, workers=2).run(Dies(at=3, times=1, folder=tmp_path), range(8)))
    assert sorted(done) == [(k, k + 1) for k in range(8)]
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(EngineError, match=r"was lost at 3, 2 times in all \(ActorDiedError\); use fewer workers"):
        # Alone: behind another piece the first loss may count as that one's, if its answer was lost as well.
        list(RayCluster(address, workers=1, attempts=2).run(Dies(at=3, times=9, folder=tmp_path), [3]))
    assert len(list(tmp_path.iterdir())) == 1 + 2


@pytest.mark.parametrize("at", [-1, 0], ids=["preparing", "working"])
def test_a_sentence_from_a_worker_arrives_as_it_is(address, at):
    with pytest.raises(InputError) as caught:
        list(RayCluster(address, workers=1).run(Refuses(SENTENCE, at), range(4)))
    assert str(caught.value) == "this piece cannot be done; leave it out"
    assert not hasattr(caught.value, "__notes__")


def test_an_unexpected_failure_brings_its_traceback_also_if_it_cannot_travel(address):
    with RayCluster(address, workers=1) as engine:
        with pytest.raises(ZeroDivisionError, match="broken") as caught:
            list(engine.run(Refuses(ZeroDivisionError("broken"), 0), [0]))
        assert "tasks_for_tests.py" in caught.value.__notes__[0]
        with pytest.raises(RuntimeError, match="Stubborn: one"):
            list(engine.run(Raises(), [0]))


class Raises:
    """A task whose exception can be sent but not be made again."""

    def prepare(self):
        pass

    def __call__(self, piece):
        raise Stubborn("one", "two")


def test_leaving_early_ends_the_workers_and_not_the_cluster(address):
    results = RayCluster(address, workers=2).run(Squares(), range(1000))
    pids = {next(results)[1][2] for _ in range(20)}
    results.close()
    wait_until_ended(pids)
    assert len(list(RayCluster(address, workers=1).run(Squares(), [1]))) == 1


SCRIPT = """
import sys
from pathlib import Path
from certcal.engines import RayCluster
from tests.smoothing.drawing import draw

def say(*words):
    print(*words, flush=True)

draw(Path(sys.argv[1]), engine=RayCluster(sys.argv[2], workers=2), progress=say)
"""


def test_a_run_whose_driver_was_killed_is_finished_by_the_next_one(address, tmp_path):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "killed"), address]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as driver:
        for _ in range(15):
            assert driver.stdout.readline()
        driver.kill()
    run = draw(tmp_path / "killed", engine=RayCluster(address, workers=1))
    whole = draw(tmp_path / "whole")
    assert driver.returncode == -signal.SIGKILL
    assert_same_counts(run, whole)
    assert digests(run) == digests(whole)
    assert list((tmp_path / "killed").rglob(".*.certcal-tmp")) == []


def test_a_model_file_is_sent_to_workers_that_do_not_see_it(address, tmp_path):
    from certcal.models import load
    from certcal.models.networks import MLP, save_weights

    path = tmp_path / "net.safetensors"
    save_weights(MLP(4, (), 3), path)
    whole = draw(tmp_path / "whole", model=load(path))
    model = load(path)

    def remove(finished, _):
        path.unlink(missing_ok=True)  # called before the first worker is asked

    run = draw(tmp_path / "run", model=model, engine=RayCluster(address, workers=1), progress=remove)
    assert not path.exists()
    assert_same_counts(run, whole)
    assert digests(run) == digests(whole)


def test_the_command_draws_on_a_cluster_what_it_draws_here(address, tmp_path, capsys):
    np.savez(tmp_path / "data.npz", inputs=X, labels=Y)
    named = ["--model", f"{HERE}:linear", "--outputs", "logits", "--data", str(tmp_path / "data.npz"), "--json", "-q"]
    settings = ["--sigma", "0.5", "-n", "400", "--n0", "20", "--seed", "7", "--batch", "32"]
    where = ["--engine", "ray", "--address", address, "--workers", "1", "-o", str(tmp_path / "run")]
    assert command(cli, ["sample", *named, *settings, *where]) == 0
    printed = capsys.readouterr()
    assert (json.loads(printed.out)["complete"], printed.err) == (True, "")
    assert_same_counts(open_run(tmp_path / "run"), draw(tmp_path / "here", unit=None))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"threads": 2}, "no worker began within 0.1 seconds: each needs 2 CPU, and the cluster has"),
        ({"gpus": 1}, "each needs 1 CPU and 1 GPU, and the cluster has"),
    ],
)
def test_a_cluster_without_room_is_not_waited_for_in_silence(address, settings, sentence):
    with pytest.raises(EngineError, match=sentence):
        list(RayCluster(address, patience=0.1, **settings).run(Squares(), range(3)))


def test_a_process_that_joined_a_cluster_stays_joined_and_is_not_moved_to_another(address):
    import ray

    with RayCluster(address):
        assert len(list(RayCluster(workers=1).run(Squares(), [1]))) == 1
        assert ray.is_initialized()
        with pytest.raises(EngineError, match="head:6379: this process has joined another cluster"):
            list(RayCluster("head:6379").run(Squares(), [1]))
    assert not ray.is_initialized()


# Last of those on the cluster: whoever came after them would have to wait for another node.
def test_a_piece_on_a_node_that_is_lost_is_done_elsewhere(nodes, address, tmp_path):
    with node_killed_at(nodes, tmp_path / "pipe") as killed:
        done = list(RayCluster(address).run(StallsOnce(Squares(), "0", tmp_path / "pipe"), range(20)))
    assert killed.done()
    assert sorted((piece, result[0]) for piece, result in done) == [(k, k**2) for k in range(20)]


class OnLostNode:
    """Ray's engine, with a task that stalls at the first counting unit."""

    remote, shares_files = True, False

    def __init__(self, address, pipe):
        self.address, self.pipe = address, pipe

    def run(self, task, pieces):
        listed = list(pieces)
        at = str(next((work for work in listed if work.unit.stage == "counting"), None))
        return RayCluster(self.address).run(StallsOnce(task, at, self.pipe), listed)


def test_a_run_that_lost_a_node_in_the_middle_is_the_one_of_a_single_process(nodes, address, tmp_path):
    with node_killed_at(nodes, tmp_path / "pipe") as killed:
        run = draw(tmp_path / "lost", engine=OnLostNode(address, tmp_path / "pipe"))
    assert killed.done()
    whole = draw(tmp_path / "whole")
    assert run.state().complete
    assert_same_counts(run, whole)
    assert digests(run) == digests(whole)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("127.0.0.1:1", "127.0.0.1:1: no cluster answers there"),
        ("6379", "address is '6379'; pass 'host:port'"),
        ("head:many", "address is 'head:many'; pass 'host:port'"),
        ("ray://head:10001", "address is 'ray://head:10001'; pass 'host:port' or 'auto'"),
        ("head:99999", "address is 'head:99999'; pass 'host:port'"),
    ],
)
def test_an_address_without_a_cluster_is_a_sentence(wrong, sentence):
    with pytest.raises(EngineError, match=sentence):
        list(RayCluster(wrong).run(Squares(), [1]))


def test_what_listens_but_is_no_cluster_is_told_apart():
    def answer():
        with server.accept()[0] as connection:
            connection.recv(100)
            connection.sendall(b"220 mail.example.org\r\n")

    with socket.create_server(("0.0.0.0", 0)) as server:
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(EngineError, match=r"no cluster answers there \(what listens there is something else\)"):
            list(RayCluster(f"127.0.0.1:{server.getsockname()[1]}").run(Squares(), [1]))
        thread.join()


def test_without_ray_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError, match=r"needs Ray, which is not installed: pip install 'certcal\[ray\]'"):
        list(RayCluster().run(Squares(), [1]))


@pytest.mark.parametrize("settings", [{"workers": 0}, {"threads": 0}, {"attempts": 0}, {"gpus": -1}, {"gpus": np.nan}])
def test_a_setting_that_cannot_be_is_refused_before_anything_begins(settings):
    with pytest.raises(InputError, match=f"{next(iter(settings))} is "):
        RayCluster(**settings)
