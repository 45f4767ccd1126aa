"""SIGKILL at random moments, then the same call again: the finished run is the one that was never interrupted."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from certcal.smoothing import open_run
from tests.smoothing.drawing import ROOT, assert_same_counts, digests, draw

SETTINGS = {"n": 900, "n0": 10, "unit": 300}  # about a hundred shards

# Loads everything once, then draws in a fresh copy of itself for each line it reads.
SCRIPT = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
import numpy as np
from certcal.smoothing._sampler import Sampler
from tests.smoothing.drawing import X, draw, model

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def main():
    sampler = Sampler(model(), sigma=1.0, seed=0)
    sampler.count(X, np.arange(24), sampler.select(X, np.arange(24), 1).votes.argmax(axis=1), 0, 1)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            say(os.getpid())
            draw(Path(sys.argv[1]), **{SETTINGS!r}, workers=int(sys.argv[2]), progress=say)
            os._exit(0)
        say("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

if __name__ == "__main__":
    main()
"""


class Victim:
    """A process that draws, again and again, and is killed in the middle of it."""

    def __init__(self, process: subprocess.Popen[str], chance: random.Random) -> None:
        self.process, self.chance = process, chance

    def kill(self, after: int) -> None:
        """Let it finish some units, then kill it somewhere in the middle of what it does next."""
        source, sink = self.process.stdout, self.process.stdin
        assert source is not None
        assert sink is not None
        sink.write("go\n")
        sink.flush()
        pid = int(source.readline())
        for _ in range(after):
            assert "ended" not in source.readline()
        for _ in range(self.chance.randrange(300_000)):
            pass
        os.kill(pid, signal.SIGKILL)
        while not (line := source.readline()).startswith("ended"):
            assert line
        assert line == f"ended {-signal.SIGKILL}\n"


@contextmanager
def victim(folder: Path, workers: int) -> Iterator[Victim]:
    command = [sys.executable, "-c", SCRIPT, str(folder), str(workers)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        yield Victim(process, random.Random(workers))
    assert process.returncode == 0


def check_finished(folder: Path, whole: Path) -> None:
    """Finish a run that was killed, and compare it with one that was not."""
    finished, expected = draw(folder, **SETTINGS), draw(whole, **SETTINGS)
    assert finished.state().complete
    assert_same_counts(finished, expected)
    assert digests(finished) == digests(expected)
    assert list(folder.rglob(".*.certcal-tmp")) == []
    assert not (folder / "damaged").exists()


def test_a_run_that_was_killed_five_times_is_the_one_that_was_not(tmp_path):
    progress = []
    with victim(tmp_path / "killed", 1) as drawing:
        for _ in range(5):
            drawing.kill(after=drawing.chance.randint(1, 6))
            state = open_run(tmp_path / "killed").state()
            assert state.damaged == ()
            progress.append(state.finished)
    assert progress == sorted(progress), "nothing that was finished is lost"
    assert 0 < progress[-1] < state.total
    check_finished(tmp_path / "killed", tmp_path / "whole")


def test_a_run_of_workers_whose_driver_was_killed_is_the_one_that_was_not(tmp_path):
    with victim(tmp_path / "killed", 2) as drawing:
        drawing.kill(5)
        state = open_run(tmp_path / "killed").state()
        assert state.damaged == ()
        assert 0 < state.finished < state.total
    check_finished(tmp_path / "killed", tmp_path / "whole")
