"""Joining a Ray cluster, or having one for oneself."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from certcal.engines._engine import EngineError

_SECONDS = 5  # in which a cluster answers, or is not there
# How HTTP/2 begins: a client's greeting with empty settings, answered by a frame of settings.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = bytes([4])
# Waits for a character, or until the process at the other end of its input is gone, whatever ended it. Processes of the
# cluster that outlived it, which know the password, are ended: they would make the folder anew, open to everybody.
_REMOVE = """
import os, shutil, signal, sys, time

def ended():
    found = 0
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            process = os.pidfd_open(int(name))  # so that no other process gets the number meanwhile
            try:
                with open(f"/proc/{name}/environ", "rb") as variables:
                    if os.fsencode(f"{sys.argv[2]}={sys.argv[1]}/") in variables.read():
                        found += 1
                        signal.pidfd_send_signal(process, signal.SIGKILL)
            finally:
                os.close(process)
        except OSError:
            continue
    return found

sys.stdin.read(1)
for _ in range(100):
    left = ended()
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not left and not os.path.lexists(sys.argv[1]):
        break
    time.sleep(0.1)  # a process of Ray's wrote into it meanwhile
"""
_PASSWORD = "RAY_AUTH_TOKEN_PATH"  # the variable of all processes of a cluster of ours


@contextmanager
def connect(address: str | None, cpus: int | None) -> Generator[Any, None, None]:
    """The module ``ray``, joined to a cluster, which is left again unless this process had joined it before."""
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise EngineError("this engine needs Ray, which is not installed: pip install 'certcal[ray]'") from error
    if ray.is_initialized():
        if address not in (None, "auto", ray.get_runtime_context().gcs_address):
            raise EngineError(f"{address}: this process has joined another cluster; call ray.shutdown() first")
        yield ray
    elif address is None:
        with _start_private_cluster(ray, cpus):
            yield ray
    else:
        _check_answers(address)
        wait = "RAY_gcs_server_port_wait_time_s"
        with _join(ray, address, {wait: os.environ.get(wait, str(_SECONDS))}):
            yield ray


@contextmanager
def _start_private_cluster(ray: Any, cpus: int | None) -> Generator[None, None, None]:
    """A cluster that only this process can reach: it listens to this machine alone and asks for a password."""
    constants: Any = import_module("ray._private.ray_constants")
    if not hasattr(import_module("ray._raylet"), "AuthenticationTokenLoader"):
        raise EngineError(
            f"Ray {ray.__version__} cannot ask for a password, so anybody on this machine could use the cluster; "
            "update it: pip install 'ray>=2.52'"
        )
    # The folder holds sockets, whose paths have at most 107 characters: the usual place for such folders may be longer.
    root = "/tmp" if os.path.isdir("/tmp") else None
    with (
        TemporaryDirectory(prefix="certcal-", dir=root, ignore_cleanup_errors=True) as folder,
        _removed_in_any_case(folder),
    ):
        password = Path(folder) / "token"
        password.write_text(secrets.token_hex(32))
        variables = {
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "token",
            _PASSWORD: str(password),
            "RAY_AUTH_TOKEN": None,
        }
        inside = os.path.join(folder, "ray")  # Ray opens its folder to everybody; the one around it stays closed
        settings = {"num_cpus": cpus, "include_dashboard": False, "_node_ip_address": "127.0.0.1", "_temp_dir": inside}
        before = constants.ENABLE_RAY_CLUSTER
        constants.ENABLE_RAY_CLUSTER = False  # or else Ray turns the loopback address into that of this machine
        try:
            with _join(ray, "local", variables, settings):
                yield
        finally:
            constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def _removed_in_any_case(folder: str) -> Generator[None, None, None]:
    """Have a folder removed also if this process is ended at once, as Ray does to it when an agent of Ray's dies."""
    # In a session of its own, where no Ctrl+C reaches it.
    command = [sys.executable, "-I", "-S", "-c", _REMOVE, folder, _PASSWORD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True) as other:
        try:
            yield
        finally:  # the end of its input comes later where a forked process holds it, too
            with suppress(OSError):
                os.write(other.stdin.fileno() if other.stdin else -1, b".")


@contextmanager
def _join(
    ray: Any, address: str, variables: Mapping[str, str | None], settings: Mapping[str, Any] | None = None
) -> Generator[None, None, None]:
    before = signal.getsignal(signal.SIGTERM)  # which Ray replaces
    inner: Any = import_module("ray._private.worker")
    printing = inner.print_to_stdstream
    inner.print_to_stdstream = _say_nothing
    try:
        with _environment(variables):
            _join_cluster(ray, address, settings or {})
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
        yield
    finally:
        ray.shutdown()
        inner.print_to_stdstream = printing
        _read_passwords_again()


def _join_cluster(ray: Any, address: str, settings: Mapping[str, Any], tries: int = 2) -> None:
    """Join the cluster; one that is to be started gets a second chance, as Ray gives it half a minute only."""
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **settings)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0][:200]
        if not settings:
            raise EngineError(
                f"{address}: Ray could not join a cluster there ({reason}); check the address, that the cluster runs, "
                "and that it has the same versions of Python and Ray"
            ) from error
        _end_what_began(error)
        if tries == 1:
            raise EngineError(
                f"Ray could not start a cluster here ({reason}); try again when this machine has less to do"
            ) from error
        _join_cluster(ray, address, settings, tries - 1)


def _end_what_began(error: Exception) -> None:
    """End the processes of a node whose start failed: only what the error passed through still knows them."""
    trace = error.__traceback__
    while trace is not None:
        node: Any = trace.tb_frame.f_locals.get("self")
        if hasattr(node, "kill_all_processes"):
            node.kill_all_processes(check_alive=False, allow_graceful=False)
        trace = trace.tb_next


def _say_nothing(*_: Any, **__: Any) -> None:
    """In place of news about lost nodes, which Ray prints among what a command prints."""


@contextmanager
def _environment(variables: Mapping[str, str | None]) -> Generator[None, None, None]:
    """Variables that processes started meanwhile inherit; None removes one. Afterwards all are as they were."""
    before = dict(os.environ)
    try:
        for name, value in variables.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        _read_passwords_again()
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def _read_passwords_again() -> None:
    """Ray keeps what it has read from the environment, for whichever cluster it was."""
    inner: Any = import_module("ray._raylet")
    with suppress(AttributeError):  # of versions without passwords
        inner.Config.initialize("")
        inner.AuthenticationTokenLoader.instance().reset_cache()


def _check_answers(address: str) -> None:
    """Raise unless a server of Ray's kind answers there at once; Ray itself would try for minutes, and say so."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not (host and "/" not in host and port.isdigit() and 0 < int(port) < 65536):
        raise EngineError(f"address is {address!r}; pass 'host:port' or 'auto'")
    services: Any = import_module("ray._private.services")
    where = (services.resolve_ip_for_localhost(host.strip("[]")), int(port))  # where Ray will look
    try:
        with socket.create_connection(where, timeout=_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") == "0":
                connection.sendall(_GREETING)
                if connection.recv(4)[3:] != _SETTINGS:
                    raise OSError("what listens there is something else")
    except OSError as error:
        raise EngineError(
            f"{address}: no cluster answers there ({error.strerror or error}); check the address, and that it runs"
        ) from error
