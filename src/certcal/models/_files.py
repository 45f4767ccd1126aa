"""Reading a model file once, so that what was checked is what is used."""

from __future__ import annotations

import os
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from certcal._checks import InputError
from certcal._durable import open_regular, write_durably


def read_bytes(path: Path, most: int, kind: str) -> bytes:
    """The bytes of a regular file of at most ``most`` bytes."""
    check_regular(path)
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


def check_regular(path: Path) -> None:
    """Raise unless there is a regular file."""
    try:
        if path.is_dir():
            raise InputError(f"{path}: this is a folder; give one file")
        if path.is_file():
            return
        if path.exists():
            raise InputError(f"{path}: this is not a regular file; give one")
        names = sorted(entry.name for entry in islice(path.parent.iterdir(), 10_000)) if path.parent.is_dir() else []
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise InputError(f"{str(path)!r} cannot be read ({error}); check the path") from error
    near = get_close_matches(path.name, names, n=1)
    hint = f"did you mean {str(path.parent / near[0])!r}?" if near else "check the path"
    raise InputError(f"{path}: there is no such file; {hint}")


def write_new(path: Path, data: bytes, force: bool) -> None:
    """Write a whole file or nothing; an existing one is kept unless forced."""
    if path.exists() and not force:
        raise InputError(f"{path}: the file exists; choose another name or pass force=True")
    write_durably(path, data)
