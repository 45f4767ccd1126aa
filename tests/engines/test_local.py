"""Worker processes: every piece once, whatever happens to the workers."""

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from certcal import InputError
from certcal.engines import EngineError, InProcess, LocalProcesses
from certcal.models.devices import DeviceMemoryWarning
from tests.engines.tasks_for_tests import SENTENCE, Dies, Environment, Refuses, Shared, Squares, Stubborn, Warns

ROOT = Path(__file__).parent.parent.parent


def alive(process: int) -> bool:
    """Whether a process runs (one that ended and was not yet collected does not)."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


@pytest.mark.parametrize("engine", [InProcess(), LocalProcesses(1), LocalProcesses(2)], ids=["here", "one", "two"])
def test_every_piece_comes_back_once_with_its_result(engine):
    done = dict(engine.run(Squares(), range(12)))
    assert {piece: result[0] for piece, result in done.items()} == {k: k**2 for k in range(12)}
    assert {result[1] for result in done.values()} == {1}, "prepared once, before the first piece"
    assert (os.getpid() in {result[2] for result in done.values()}) != engine.remote


def test_nothing_to_do_is_nothing_done():
    assert list(LocalProcesses(3).run(Squares(), [])) == []


def test_no_more_processes_are_started_than_there_are_pieces():
    assert len({result[2] for _, result in LocalProcesses(8).run(Squares(), [5])}) == 1


def test_each_worker_computes_on_one_thread_and_the_driver_is_left_alone(monkeypatch):
    names = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"]
    for name in names:
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    assert dict(LocalProcesses(1).run(Environment(), names)) == dict.fromkeys(names, "1")
    assert dict(os.environ) == before


def test_what_workers_warn_of_is_said_once_by_the_driver():
    with pytest.warns(DeviceMemoryWarning, match="batches of 50") as said:
        assert sorted(LocalProcesses(2).run(Warns(), range(4))) == [(k, k) for k in range(4)]
    assert len(said) == 1


def test_each_worker_is_sent_the_task_of_its_own_place():
    assert dict(LocalProcesses(2).run(Shared(), range(2))) == {0: 0, 1: 1}
    assert dict(InProcess().run(Shared(), range(2))) == {0: None, 1: None}


def test_pieces_are_taken_as_workers_become_free():
    taken = []

    def pieces():
        for piece in range(100):
            taken.append(piece)
            yield piece

    results = LocalProcesses(2).run(Squares(), pieces())
    next(results)
    assert len(taken) <= 4
    results.close()


def test_a_piece_whose_worker_dies_is_done_again(tmp_path):
    done = dict(LocalProcesses(2).run(Dies(at=3, times=1, folder=tmp_path), range(8)))
    assert done == {k: k + 1 for k in range(8)}
    assert len(list(tmp_path.iterdir())) == 1


def test_a_piece_that_kills_every_worker_ends_in_a_sentence_that_names_it(tmp_path):
    with pytest.raises(EngineError, match="ended by signal 9 at 3, and so did a second one; use fewer workers"):
        list(LocalProcesses(2).run(Dies(at=3, times=9, folder=tmp_path), range(8)))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("at", [-1, 2], ids=["preparing", "working"])
def test_a_sentence_from_a_worker_arrives_as_it_is(at):
    with pytest.raises(InputError) as caught:
        list(LocalProcesses(2).run(Refuses(SENTENCE, at), range(4)))
    assert str(caught.value) == "this piece cannot be done; leave it out"
    assert not hasattr(caught.value, "__notes__")


def test_an_unexpected_failure_brings_its_traceback():
    with pytest.raises(ZeroDivisionError, match="broken") as caught:
        list(LocalProcesses(1).run(Refuses(ZeroDivisionError("broken"), 0), [0]))
    assert "tasks_for_tests.py" in caught.value.__notes__[0]


def test_a_task_that_cannot_travel_is_refused_here():
    with pytest.raises(Exception, match=r"pickle|lambda"):
        list(LocalProcesses(1).run(Refuses(Stubborn("a", "b"), 0), [0]))


def test_leaving_early_ends_the_workers():
    results = LocalProcesses(2).run(Squares(), range(1000))
    pids = {next(results)[1][2] for _ in range(20)}
    results.close()
    assert pids
    assert not any(alive(pid) for pid in pids)


def test_workers_end_with_a_driver_that_is_killed(tmp_path):
    script = (
        "import pathlib, sys; sys.path.insert(0, sys.argv[2])\n"
        "from certcal.engines import LocalProcesses\n"
        "from tests.engines.tasks_for_tests import Announces\n"
        "if __name__ == '__main__':\n"
        "    list(LocalProcesses(2).run(Announces(pathlib.Path(sys.argv[1])), range(2)))\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", script, str(tmp_path), str(ROOT)], cwd=ROOT)
    while len(workers := [int(path.name) for path in tmp_path.iterdir()]) < 2:
        assert driver.poll() is None
    assert all(alive(pid) for pid in workers)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    handles = [os.pidfd_open(pid) for pid in workers if alive(pid)]
    for handle in handles:
        assert select.select([handle], [], [], 60)[0], "a worker outlived its driver by a minute"
        os.close(handle)
    assert not any(alive(pid) for pid in workers)


def test_a_script_without_a_guard_is_told_what_to_do(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from certcal.engines import LocalProcesses\n"
        "from tests.engines.tasks_for_tests import Squares\n"
        "list(LocalProcesses(1).run(Squares(), [1]))\n"
    )
    ran = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "before it could begin; in a script, put the call under if __name__ == '__main__':" in ran.stderr
