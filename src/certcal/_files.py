"""Reading a file once, and writing one so that it is there whole or not at all and never over another by accident."""

from __future__ import annotations

import os
import secrets
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from certcal._checks import InputError
from certcal._durable import open_regular


def read_bytes(path: Path, most: int, kind: str) -> bytes:
    """The bytes of a regular file of at most ``most`` bytes."""
    _check_regular(path)
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > most:
                raise InputError(f"{path}: {size} bytes are more than {kind} can hold ({most}); check what it is")
            data = stream.read()
    except MemoryError:
        raise InputError(
            f"{path}: the file does not fit into memory; use a smaller model or a larger machine"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check its permissions") from error
    if not data:
        raise InputError(f"{path}: the file is empty; write it again")
    return data


def _check_regular(path: Path) -> None:
    """Raise unless there is a regular file."""
    try:
        if path.is_dir():
            raise InputError(f"{path}: this is a folder; give one file")
        if path.is_file():
            return
        if path.exists():
            raise InputError(f"{path}: this is not a regular file; give one")
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise InputError(f"{str(path)!r} cannot be read ({error}); check the path") from error
    raise InputError(f"{path}: there is no such file; {nearest(path)}")


def nearest(file: Path) -> str:
    """A file of nearly that name beside it, as a question; advice without one."""
    try:
        names = sorted(entry.name for entry in islice(file.parent.iterdir(), 10_000))
    except (OSError, ValueError):  # ValueError: a null byte in the path
        names = []
    near = get_close_matches(file.name, names, n=1)
    return f"did you mean {str(file.parent / near[0])!r}?" if near else "check the path"


def refuse_overwriting(path: Path, *, force: bool = False) -> None:
    """Raise if ``path`` cannot become a new file, before any work is spent on its content."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give a file name")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder does not exist; create it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: the folder cannot be written to; choose another")
    if path.exists() and not force:
        raise _exists(path)


def _exists(path: Path) -> InputError:
    return InputError(f"{path} exists and is not overwritten; choose another name, or force it")


def write_bytes(path: Path, content: bytes, *, force: bool = False) -> None:
    """Write a file under a temporary name beside its place, flush it, then move it there."""
    refuse_overwriting(path, force=force)
    temporary = path.with_name(f".{path.name[:64]}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if force:
            os.replace(temporary, path)
        else:
            _move_to_new(temporary, path)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); nothing was changed") from error
    finally:
        temporary.unlink(missing_ok=True)


def _move_to_new(temporary: Path, path: Path) -> None:
    """Move without replacing: a hard link fails when the name is taken, where renaming would not."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError from None
        os.replace(temporary, path)
