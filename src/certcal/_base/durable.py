"""Files that are there whole or not at all, and a folder that one process writes to."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import re
import stat
import time
from collections.abc import Collection, Generator
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import Any

from certcal._base.checks import InputError

LOCK = ".lock"
# Names that nobody else gives: what has one was left by a process of ours, and may be removed.
_TEMPORARY = ".certcal-tmp"
_SAFE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_WINDOWS = os.name == "nt"
# Windows lets nobody read a byte that is locked, so the one that is locked there lies behind whatever the file says.
_LOCKED_BYTE = 1 << 30
_HOLDER = re.compile(rb"\d+ on [^\n]*\n")
_SHELL_FILES = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a file to read. A named pipe, which would block until somebody writes to it, or a device is refused.

    What the shell has opened for us (/dev/stdin, /dev/fd/63) is read as it is.
    """
    given = os.fspath(path)
    return open(given, "rb") if given.startswith(_SHELL_FILES) else open(given, "rb", opener=_regular)


def _regular(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # opening a pipe to which nobody writes blocks
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise InputError(f"{path}: this is not a regular file; give one")


def write_durably(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk, move it to its place, flush the folder.

    Whenever the machine stops, ``path`` holds all of the old content or all of the new.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_TEMPORARY}")
    try:
        try:
            temporary.unlink(missing_ok=True)
            with temporary.open("xb") as stream:  # never through a link
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        flush_folder(path.parent)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error}); all that was finished before is kept: "
            "make room or the folder writable, and give the same command again"
        ) from error


def flush_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system has such a thing."""
    if _WINDOWS:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder, with those above it, unless it is there; its name is on the disk when this returns."""
    if folder.is_dir():
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        flush_folder(folder.parent)
    except OSError as error:
        raise InputError(
            f"{folder}: the folder cannot be created ({error.strerror or error}); choose a place that can be written to"
        ) from error


def is_leftover(name: str) -> bool:
    """Whether a file was left by a process of ours that was killed in the middle of writing it.

    Examples
    --------
    >>> is_leftover(".manifest.json.4711.certcal-tmp"), is_leftover(".notes.tmp")
    (True, False)
    """
    return name.startswith(".") and name.endswith(_TEMPORARY)


def remove_leftovers(folder: Path, only: Collection[str] | None = None) -> None:
    """Remove what a process that was killed in the middle of writing has left. Only under the lock.

    Where others write into the folder, too, ``only`` are the names of the files that are this process's to write.
    """
    for place in (folder, *(entry for entry in folder.iterdir() if entry.is_dir())):
        for leftover in filter(lambda entry: is_leftover(entry.name), [*place.iterdir()]):
            if only is not None and leftover.name[1:].removesuffix(_TEMPORARY).rpartition(".")[0] not in only:
                continue
            try:
                leftover.unlink(missing_ok=True)
            except OSError as error:
                raise InputError(f"{leftover}: cannot be removed ({error.strerror or error}); remove it") from error


class FolderInUseError(InputError):
    """A folder that another process is writing to."""


@contextlib.contextmanager
def only_writer(
    folder: Path, doing: str = "writing into this folder", *, lock: str = LOCK, patience: float = 0.0
) -> Generator[None, None, None]:
    """Hold a folder's lock. The system drops it with the process, so what a killed one leaves is harmless.

    ``patience`` are the seconds to wait for somebody who holds it for a moment.
    """
    path, until = folder / lock, time.monotonic() + patience
    if path.is_symlink():
        raise InputError(f"{path}: this is a link, and a lock is a file; remove it or choose another folder")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _SAFE_FLAGS, 0o644)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written to ({error.strerror or error}); make it writable or choose another folder"
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InputError(f"{path}: this is not a regular file; remove it or choose another folder")
        while not _take_lock(descriptor):
            if time.monotonic() < until:
                time.sleep(0.02)
                continue
            holder = _read_beginning(descriptor, 80).decode("ascii", "replace").strip() or "unknown"
            raise FolderInUseError(
                f"{folder}: another process ({holder}) is {doing}; wait for it, or choose another folder"
            )
        if not (path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())):
            raise FolderInUseError(f"{folder}: another process finished it just now; give the same command again")
        with contextlib.suppress(OSError):  # who holds it is a courtesy; a full disk must not prevent reading on
            if _is_own_lock(_read_beginning(descriptor, 1000)):
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, f"{os.getpid()} on {platform.node()}\n".encode("ascii", "replace"))
        yield
    finally:
        os.close(descriptor)


def _is_own_lock(content: bytes) -> bool:
    """Whether a lock says nothing or what this module writes; anything else is somebody's own file."""
    return not content or _HOLDER.fullmatch(content) is not None


def remove_lock(folder: Path, lock: str = LOCK) -> None:
    """Remove a lock, if this module made it. Only under the lock."""
    if _is_own_lock((folder / lock).read_bytes()):
        (folder / lock).unlink()


def _read_beginning(descriptor: int, most: int) -> bytes:
    """The beginning of a file that only this process has this descriptor of."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, most)


def _take_lock(descriptor: int) -> bool:
    locks: Any = import_module("msvcrt") if _WINDOWS else import_module("fcntl")
    try:
        if _WINDOWS:
            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            locks.locking(descriptor, locks.LK_NBLCK, 1)
        else:
            locks.flock(descriptor, locks.LOCK_EX | locks.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        raise InputError(
            f"the folder cannot be locked ({error.strerror or error}); put it on a file system with locks"
        ) from error
    return True
