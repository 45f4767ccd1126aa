"""A command in a process of its own, for libraries that end the process they are in without a word."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress

import click

_LINE = "CERTCAL_SUPERVISED_BY"  # the descriptor of the line between the two processes
# Ray's core ends its process at once, with exit code 1, when the raylet or the GCS that it talks to is gone.
_LOST = (
    "Ray ended this process because its raylet or GCS is gone (ended, out of memory, or too slow to answer); what was "
    "finished is kept, and the same command resumes"
)


def run_supervised() -> None:
    """Start the running command again below this process, and leave with its exit code, or with LOST and a sentence.

    It returns in the process below. Does nothing where the command line is called as a function.
    """
    from certcal.cli.errors import LOST

    context = click.get_current_context(silent=True)
    words = None if context is None else context.find_root().obj
    if words is None or list(words) != sys.argv[1:] or os.name == "nt":
        return
    number = os.environ.pop(_LINE, None)
    if number is not None:
        line = socket.socket(fileno=int(number))
        atexit.register(_say_farewell, line)
        threading.Thread(target=_leave_with, args=(line,), daemon=True).start()
        return
    ours, theirs = socket.socketpair()
    environment = {**os.environ, _LINE: str(theirs.fileno())}
    command = [sys.executable, *sys.orig_argv[1:]]
    with ours, subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()]) as below:
        theirs.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both, and it is for the other one to answer it
        signal.signal(signal.SIGTERM, lambda _, __: below.terminate())
        code = below.wait()
        ours.setblocking(False)
        with suppress(OSError):
            if ours.recv(1):
                raise click.exceptions.Exit(code)
    click.echo(f"certcal: error: {_LOST}", err=True)
    raise click.exceptions.Exit(LOST)


def _say_farewell(line: socket.socket) -> None:
    with suppress(OSError):
        line.send(b".")


def _leave_with(line: socket.socket) -> None:
    """End this process, as if it were asked to, when the one above it is gone."""
    with suppress(OSError):
        if not line.recv(1):
            os.kill(os.getpid(), signal.SIGTERM)
