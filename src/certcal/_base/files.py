"""Reading a file once, and writing one so that it is there whole or not at all and never over another by accident."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Mapping
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, cast

from certcal._base.checks import InputError, shortened
from certcal._base.durable import open_regular


def path_of(value: Any, name: str = "path") -> Path:
    """The name of a file or folder."""
    try:
        path = Path(value)
    except TypeError:
        path = Path("\0")
    if "\0" in str(path):
        raise InputError(f"{name} is {shortened(value)}; pass the name of a file or folder")
    return path


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


def size_and_digest(path: Path) -> tuple[int, str]:
    """Bytes and SHA-256 of a file; of a folder, all its files' bytes and the SHA-256 of the list of their digests."""
    if not path.is_dir():
        with path.open("rb") as stream:
            return path.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()
    # A link can lead anywhere, to a device for example; find and a run's own files know none.
    files = (file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
    names = sorted(os.fsencode(file.relative_to(path)) for file in files)
    kept = [(name, *size_and_digest(path / os.fsdecode(name))) for name in names if not name.startswith(b".")]
    listing = b"".join(digest.encode() + b"  " + name + b"\n" for name, _, digest in kept)
    return sum(size for _, size, _ in kept), hashlib.sha256(listing).hexdigest()


def _check_regular(path: Path) -> None:
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
        raise _exists_error(path)


def _exists_error(path: Path) -> InputError:
    return InputError(f"{path} exists and is not overwritten; choose another name, or force it")


def write_bytes(path: Path, content: bytes, *, force: bool = False) -> None:
    """Write a file under a temporary name beside its place, flush it, then move it there."""
    write_together({path: content}, force=force)


def write_together(files: Mapping[Path, bytes], *, force: bool = False, folder: Path | None = None) -> None:
    """Write files so that all of them are there, whole, or none, and what was there before is as it was.

    All are first written under temporary names and flushed, which is when a disk turns out to be full. Only then are
    they moved to their places, and moved back if one cannot be. ``folder`` is made for them, and goes with them.
    """
    made = folder is not None and not folder.exists()
    waiting: list[tuple[Path, Path, tuple[int, int]]] = []  # place, temporary name, identity
    moved: list[tuple[Path, tuple[int, int], Path | None]] = []  # place, identity, where the old file is kept
    path = Path()
    try:
        if folder is not None:
            path = folder
            folder.mkdir(exist_ok=True)
        for path, content in files.items():
            refuse_overwriting(path, force=force)
            temporary = _temporary_name(path)
            waiting.append((path, temporary, (0, 0)))
            with temporary.open("xb") as stream:
                waiting[-1] = path, temporary, _file_identity(os.fstat(stream.fileno()))
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        for path, temporary, identity in waiting:
            old = force and os.path.lexists(path)
            if not old:
                moved.append((path, identity, None))
            elif len(files) > 1:  # one file is replaced in one move
                moved.append((path, identity, _temporary_name(path)))
                _keep_old(path, cast("Path", moved[-1][2]))
            if force:
                os.replace(temporary, path)
            else:
                _move_to_new(temporary, path)
    except BaseException as error:
        for place, identity, kept in reversed(moved):
            with contextlib.suppress(OSError):
                _put_back(place, identity, kept)
        for _, temporary, _ in waiting:
            temporary.unlink(missing_ok=True)
        if made:
            with contextlib.suppress(OSError):
                cast("Path", folder).rmdir()
        if isinstance(error, FileExistsError):
            raise _exists_error(path) from None
        if isinstance(error, OSError):
            unchanged = "nothing was changed" if len(files) == 1 else f"none of the {len(files)} files was written"
            raise InputError(f"{path}: cannot be written ({error.strerror or error}); {unchanged}") from error
        raise
    for over in (*(temporary for _, temporary, _ in waiting), *(kept for _, _, kept in moved if kept is not None)):
        with contextlib.suppress(OSError):
            over.unlink(missing_ok=True)


def _temporary_name(path: Path) -> Path:
    """A name that nobody has, beside a place."""
    return path.with_name(f".{path.name[:64]}.{secrets.token_hex(4)}.tmp")


def _file_identity(state: os.stat_result) -> tuple[int, int]:
    return state.st_dev, state.st_ino


def _keep_old(path: Path, kept: Path) -> None:
    """Keep a file under another name: a second one where there are hard links, so that the first is never gone."""
    try:
        os.link(path, kept, follow_symlinks=False)
    except OSError:
        os.replace(path, kept)


def _put_back(path: Path, identity: tuple[int, int], kept: Path | None) -> None:
    """Make a place what it was before our file came there, if it did."""
    if kept is not None:
        if os.path.lexists(kept):
            os.replace(kept, path)  # which does nothing where both are names of one file
            kept.unlink(missing_ok=True)
    elif os.path.lexists(path) and _file_identity(path.lstat()) == identity:
        path.unlink()


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
