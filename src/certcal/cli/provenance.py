"""What a page says of its origin: the command as it was typed, and what the files were that it read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import click

from certcal.data import local_file
from certcal.report.provenance import Provenance
from certcal.result import Result

Input = tuple[str, int, str]

_RUNS = (
    "The SHA-256 of a run or folder is that of the list of its files with theirs. Inside its folder: "
    "find * -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum"
)


def provenance(result: Result, sources: Iterable[str | Path]) -> Provenance:
    """Provenance of what the running command has found.

    Parameters
    ----------
    result
        What was found, with the seeds behind it.
    sources
        Files and folders of runs that were read.
    """
    paths = [Path(source) for source in dict.fromkeys(map(str, sources))]
    notes = [_RUNS] if any(path.is_dir() for path in paths) else []
    return Provenance.here(typed(), seeds=result.seeds, inputs=[described(path) for path in paths], notes=notes)


def typed() -> tuple[str, ...] | None:
    """The words of the command that is running, or None outside of one.

    Examples
    --------
    >>> typed() is None
    True
    """
    ctx = click.get_current_context(silent=True)
    words = None if ctx is None else ctx.find_root().obj
    return None if words is None else ("certcal", *words)


def described(path: Path) -> Input:
    """Name, size and SHA-256 of a file, or of all the files of a run.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name) / "scores.csv"
    >>> _ = file.write_bytes(b"")
    >>> described(file)[1:]
    (0, 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
    >>> folder.cleanup()
    """
    if not path.is_dir():
        file = local_file(path)
        return str(path), file.stat().st_size, _digest(file)
    # A link can lead anywhere, to a device for example; find and a run's own files know none.
    files = (file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
    names = sorted(os.fsencode(file.relative_to(path)) for file in files)
    kept = [(name, path / os.fsdecode(name)) for name in names if not name.startswith(b".")]
    listing = b"".join(_digest(file).encode() + b"  " + name + b"\n" for name, file in kept)
    return str(path), sum(file.stat().st_size for _, file in kept), hashlib.sha256(listing).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
