"""What holds for every test: reproducible examples and no network; what is collected is kept."""

import gc
import ipaddress
import os
import socket
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

# The same examples on every run and machine; `HYPOTHESIS_PROFILE=explore pytest` looks for new ones.
settings.register_profile("certcal", deadline=None, max_examples=25, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "certcal"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay to the end: the garbage collector need not look through them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Docstrings are looked through only where there is an example in one."""
    found = yield
    without = not any(isinstance(each, DoctestModule) for each in found) or b">>>" in file_path.read_bytes()
    return found if without else [each for each in found if not isinstance(each, DoctestModule)]


def _is_local(family: int, address: Any) -> bool:
    if family not in (socket.AF_INET, socket.AF_INET6):
        return True
    host = str(address[0])
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share 45,001 samples as they do 450,001 otherwise: in three blocks, if there are three threads."""
    from certcal._base.threads import map_blocks

    monkeypatch.setattr(map_blocks, "__defaults__", (20_000,))


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """Connections leave this machine in no test."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if not _is_local(self.family, address):
            raise AssertionError(f"a test tried to reach {address!r}; tests work offline")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield
