"""Processes that need not load their libraries: each is a fresh copy of one that has, on streams of its own."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

# Loads what measuring a table needs, then runs code in a copy of itself for each message it gets. A copy ends as any
# Python process does, so what happens to its streams at the end happens here too.
SCRIPT = """
import json, os, socket, sys
import certcal.verbs.measure, certcal.cli.measure, certcal.data.arrow, certcal.data.text
certcal.measure(certcal.Predictions.from_confidence([0.25, 0.75], [0, 1]))
server = socket.socket(fileno=int(sys.argv[1]))
while True:
    text, streams = socket.recv_fds(server, 1 << 20, 3)[:2]
    if not text:
        break
    child = os.fork()
    if child == 0:
        server.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        code, environment = json.loads(text)
        os.environ.clear()
        os.environ.update(environment)
        sys.stdout = open(1, "w", 1 if os.isatty(1) else -1, encoding="utf-8", closefd=False)
        sys.stderr = open(2, "w", 1, encoding="utf-8", closefd=False)
        exec(code)
        sys.exit()
    for stream in streams:
        os.close(stream)
    server.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
"""


class Copies:
    """Runs code in copies of a process, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def start(self, code: str, out: int, err: int, environment: dict[str, str]) -> None:
        """Begin to run code with these descriptors as standard output and error."""
        with open(os.devnull) as nothing:
            message = json.dumps([code, environment]).encode()
            socket.send_fds(self._connection, [message], [nothing.fileno(), out, err])

    def wait(self) -> int:
        """Exit code of what was started."""
        return int(self._connection.recv(16))

    def run(self, code: str, environment: dict[str, str]) -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        with TemporaryFile() as out, TemporaryFile() as err:
            self.start(code, out.fileno(), err.fileno(), environment)
            left = self.wait()
            out.seek(0)
            err.seek(0)
            return left, out.read().decode(), err.read().decode()  # bytes first: no line end is changed


@contextmanager
def copies() -> Iterator[Copies]:
    """A process that is ready to be copied."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-c", SCRIPT, str(theirs.fileno())]
        with subprocess.Popen(command, pass_fds=[theirs.fileno()]) as process:
            theirs.close()
            try:
                yield Copies(ours)
            finally:
                ours.close()
    assert process.returncode == 0
