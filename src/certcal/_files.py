"""Writing a file so that it is there whole or not at all, and never over another one by accident."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from certcal._checks import InputError


def refuse_overwriting(path: Path, *, force: bool = False) -> None:
    """Raise if ``path`` cannot become a new file, before any work is spent on its content.

    Examples
    --------
    >>> refuse_overwriting(Path("no-such-folder-here/picture.png"))
    Traceback (most recent call last):
        ...
    certcal._checks.InputError: no-such-folder-here/picture.png: the folder does not exist; create it first
    """
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give a file name")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder does not exist; create it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: the folder cannot be written to; choose another")
    if path.exists() and not force:
        raise InputError(f"{path} exists and is not overwritten; choose another name, or force it")


def write_bytes(path: Path, content: bytes, *, force: bool = False) -> None:
    """Write a file under a temporary name beside its place, flush it, then move it there.

    Parameters
    ----------
    path
        Where the file goes.
    content
        All of it.
    force
        Replace an existing file. Without it an existing file is an error, even one that appears meanwhile.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "numbers.json"
    >>> write_bytes(path, b"{}")
    >>> path.read_bytes(), len(list(path.parent.iterdir()))
    (b'{}', 1)
    >>> folder.cleanup()
    """
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
        raise InputError(f"{path} exists and is not overwritten; choose another name, or force it") from None
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
